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
    berth_vta_kernel kernels[4];
    const berth_vta_conv square = {.images = 1,
                                   .height = 4,
                                   .width = 4,
                                   .in_channels = 16,
                                   .out_channels = 16,
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .stride_h = 1,
                                   .stride_w = 1,
                                   .pad_h = 1,
                                   .pad_w = 1,
                                   .shift = 7,
                                   .low = -128,
                                   .high = 127};
    berth_vta_conv all[4] = {square, square, square, square};
    all[1].height = all[1].width = all[1].kernel_h = all[1].kernel_w = 1;
    all[1].pad_h = all[1].pad_w = 0;
    all[1].in_channels = 32;
    all[1].out_channels = 48;
    all[2].form = BERTH_VTA_SUMS;
    all[2].sources = all[2].factors[0] = 1;
    all[2].divisor = 9;
    all[3].form = BERTH_VTA_MAXIMA;
    for (int i = 0; i < 4; ++i) {
        berth_vta_conv_tiles tiles;
        must(berth_vta_conv_plan(&config, &all[i], &timing, &tiles));
        must(berth_vta_emit_conv(arena, &config, &all[i], &tiles, &kernels[i]));
    }
    write(arena, argv[1], "conv", &config, kernels, 1);
    write(arena, argv[1], "dense", &config, kernels + 1, 1);
    write(arena, argv[1], "mean", &config, kernels + 2, 1);
    write(arena, argv[1], "maximum", &config, kernels + 3, 1);
    write(arena, argv[1], "both", &config, kernels, 2);
    write(arena, argv[1], "nothing", &config, NULL, 0);
    must(berth_vta_config_set(&config, "log_block", 3));
    write(arena, argv[1], "other_configuration", &config, kernels, 1);
    berth_arena_destroy(arena);
    return 0;
}
