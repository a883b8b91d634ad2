// How well convolutions use a VTA's matrix unit, by the timing model: the twelve convolution shapes of
// ResNet-18 (the table "C1" to "C12" of Chen et al., "TVM", OSDI 2018, arXiv 1802.04799), as
// drivers/vta/emit makes streams of them. Utilisation is useful multiplications (those of the
// convolution itself, not of channels that fill up a block) per cycle, over what the matrix unit can
// do; "serial" is what it would be if load, compute and store took turns. One JSON line per shape, and
// one for all.
//
//   bench_vta [NAME=NUMBER ...]     a figure of the timing model, or of the configuration
//   --no-bias                       a reset, a shift and two bounds per result, as TVM's tuning tasks have
//   --write FOLDER                  the executables as well, for `berth vta profile -o PICTURE`
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "drivers/vta/emit/conv.h"

static const struct {
    const char *name;
    uint32_t size, in_channels, out_channels, kernel, stride, pad;
    uint32_t times;  // in ResNet-18
} shapes[] = {{"C1", 224, 3, 64, 7, 2, 3, 1},    {"C2", 56, 64, 64, 3, 1, 1, 4},
              {"C3", 56, 64, 64, 1, 1, 0, 0},    {"C4", 56, 64, 128, 3, 2, 1, 1},
              {"C5", 56, 64, 128, 1, 2, 0, 1},   {"C6", 28, 128, 128, 3, 1, 1, 3},
              {"C7", 28, 128, 256, 3, 2, 1, 1},  {"C8", 28, 128, 256, 1, 2, 0, 1},
              {"C9", 14, 256, 256, 3, 1, 1, 3},  {"C10", 14, 256, 512, 3, 2, 1, 1},
              {"C11", 14, 256, 512, 1, 2, 0, 1}, {"C12", 7, 512, 512, 3, 1, 1, 3}};

static void must(berth_status status) {
    if (!status) return;
    fprintf(stderr, "bench_vta: %s\n", berth_status_message(status));
    exit(1);
}

static void take(const char *argument, berth_vta_config *config, berth_vta_timing *timing) {
    const char *equals = strchr(argument, '=');
    char name[64];
    snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - argument) : 0, argument);
    uint32_t value = equals ? (uint32_t)strtoul(equals + 1, NULL, 10) : 0;
    berth_status status = berth_vta_config_set(config, name, value);
    if (!status) return;
    berth_status_free(status);
    must(berth_vta_timing_set(timing, name, value));
}

static uint32_t fill_up(uint32_t channels, uint32_t block) {
    return (channels + block - 1) / block * block;
}

typedef struct totals {
    double macs, cycles, serial;
} totals;

static void write(berth_arena *arena, const berth_vta_config *config,
                  const berth_vta_kernel *kernel, const char *folder, const char *name) {
    uint8_t *data = NULL;
    size_t size_bytes = 0;
    must(berth_vta_image_write(arena, config, kernel, 1, &data, &size_bytes));
    must(berth_file_write(berth_arena_printf(arena, "%s/%s.vta", folder, name), data, size_bytes));
}

static void measure(const berth_vta_config *config, const berth_vta_timing *timing, size_t at,
                    bool no_bias, const char *folder, totals *all) {
    uint32_t block = 1u << config->log_block, batch = 1u << config->log_batch;
    berth_vta_conv conv = {.images = batch,
                           .height = shapes[at].size,
                           .width = shapes[at].size,
                           .in_channels = fill_up(shapes[at].in_channels, block),
                           .out_channels = fill_up(shapes[at].out_channels, block),
                           .kernel_h = shapes[at].kernel,
                           .kernel_w = shapes[at].kernel,
                           .stride_h = shapes[at].stride,
                           .stride_w = shapes[at].stride,
                           .pad_h = shapes[at].pad,
                           .pad_w = shapes[at].pad,
                           .shift = 8,
                           .no_bias = no_bias,
                           .low = no_bias ? 0 : -128,
                           .high = 127};
    berth_arena *arena = NULL;
    berth_vta_conv_tiles tiles;
    berth_vta_kernel kernel;
    berth_vta_report report;
    must(berth_arena_create(berth_allocator_system(), &arena));
    must(berth_vta_emit_best_conv(arena, config, &conv, timing, &tiles, &kernel));
    const berth_vta_run_options options = {.timing = *timing};
    must(berth_vta_kernel_time(berth_allocator_system(), config, &kernel, &options, &report));
    double macs = (double)batch * berth_vta_conv_out_height(&conv) *
                  berth_vta_conv_out_width(&conv) * shapes[at].in_channels *
                  shapes[at].out_channels * shapes[at].kernel * shapes[at].kernel;
    double cycles = (double)report.cycles, peak = (double)batch * block * block;
    const berth_vta_unit_report *u = report.units;
    double serial = (double)(u[0].busy + u[1].busy + u[2].busy);
    if (folder) write(arena, config, &kernel, folder, shapes[at].name);
    printf("{\"shape\": \"%s\", \"cycles\": %.0f, \"macs\": %.0f, \"utilisation_percent\": %.1f, "
           "\"serial_utilisation_percent\": %.1f, \"busy_percent\": {\"load\": %.1f, \"compute\": "
           "%.1f, \"store\": %.1f}, "
           "\"tile\": {\"out_blocks\": %u, \"rows\": %u, \"columns\": %u, \"in_blocks\": %u}, "
           "\"instructions\": %u, \"estimate_over_cycles\": %.3f}\n",
           shapes[at].name, cycles, macs, 100 * macs / cycles / peak, 100 * macs / serial / peak,
           100 * (double)u[0].busy / cycles, 100 * (double)u[1].busy / cycles,
           100 * (double)u[2].busy / cycles, tiles.out_blocks, tiles.rows, tiles.columns,
           tiles.in_blocks, kernel.instruction_count, tiles.cycles / cycles);
    all->macs += shapes[at].times * macs;
    all->cycles += shapes[at].times * cycles;
    all->serial += shapes[at].times * serial;
    berth_arena_destroy(arena);
}

int main(int argc, char **argv) {
    berth_vta_config config = berth_vta_config_default();
    berth_vta_timing timing = berth_vta_timing_default();
    const char *folder = NULL;
    bool no_bias = false;
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--write") == 0 && i + 1 < argc)
            folder = argv[++i];
        else if (strcmp(argv[i], "--no-bias") == 0)
            no_bias = true;
        else
            take(argv[i], &config, &timing);
    }
    totals all = {0};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
        measure(&config, &timing, i, no_bias, folder, &all);
    double peak = (double)((uint64_t)1 << (config.log_batch + 2 * config.log_block));
    char text[96];
    berth_vta_config_text(&config, text);
    printf("{\"config\": \"%s\", \"network\": \"ResNet-18's convolutions\", \"cycles\": %.0f, "
           "\"macs\": %.0f, \"utilisation_percent\": %.1f, \"serial_utilisation_percent\": %.1f}\n",
           text, all.cycles, all.macs, 100 * all.macs / all.cycles / peak,
           100 * all.macs / all.serial / peak);
    return 0;
}
