// Writes images of VTA kernels into a folder, for the corpus of fuzz_vta_image.
// Usage: make_vta_corpus FOLDER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "drivers/vta/emit/conv.h"

static void must(berth_status status) {
    if (!status) return;
    fprintf(stderr, "make_vta_corpus: %s\n", berth_status_message(status));
    exit(1);
}

static void write(berth_arena *arena, const char *folder, const char *name,
                  const berth_vta_config *config, const berth_vta_kernel *kernels, uint32_t count) {
    uint8_t *data = NULL;
    size_t size_bytes = 0;
    must(berth_vta_image_write(arena, config, kernels, count, &data, &size_bytes));
    must(berth_file_write(berth_arena_printf(arena, "%s/%s", folder, name), data, size_bytes));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    berth_arena *arena = NULL;
    must(berth_arena_create(berth_allocator_system(), &arena));
    berth_vta_config config = berth_vta_config_default();
    berth_vta_timing timing = berth_vta_timing_default();
    berth_vta_conv_tiles tiles;
    berth_vta_kernel kernels[2];
    const berth_vta_conv square = {1, 4, 4, 16, 16, 3, 3, 1, 1, 7, -128, 127, false, false};
    const berth_vta_conv dense = {1, 1, 1, 32, 48, 1, 1, 1, 0, 5, 0, 127, false, false};
    must(berth_vta_conv_plan(&config, &square, &timing, &tiles));
    must(berth_vta_emit_conv(arena, &config, &square, &tiles, &kernels[0]));
    must(berth_vta_conv_plan(&config, &dense, &timing, &tiles));
    must(berth_vta_emit_conv(arena, &config, &dense, &tiles, &kernels[1]));
    write(arena, argv[1], "conv", &config, kernels, 1);
    write(arena, argv[1], "dense", &config, kernels + 1, 1);
    write(arena, argv[1], "both", &config, kernels, 2);
    write(arena, argv[1], "nothing", &config, NULL, 0);
    must(berth_vta_config_set(&config, "log_block", 3));
    write(arena, argv[1], "other_configuration", &config, kernels, 1);
    berth_arena_destroy(arena);
    return 0;
}
