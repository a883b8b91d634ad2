// Choosing among tiles by the timing model: an estimate cannot know how well the first and last tiles of a
// stream overlap with the others. Four of them: with more, no shape of ResNet-18 gains 0.5 %.
#include "drivers/vta/emit/conv.h"

enum { tried = 4 };

static berth_status time_tiles(berth_arena *arena, const berth_vta_config *config,
                               const berth_vta_conv *conv, const berth_vta_timing *timing,
                               const berth_vta_conv_tiles *tiles, uint64_t *out_cycles) {
    const berth_vta_run_options options = {.timing = *timing};
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_vta_kernel kernel;
    berth_vta_report report = {0};
    berth_status status = berth_vta_emit_conv(scratch, config, conv, tiles, &kernel);
    if (!status)
        status =
            berth_vta_kernel_time(berth_allocator_system(), config, &kernel, &options, &report);
    berth_arena_destroy(scratch);
    *out_cycles = report.cycles;
    return status;
}

berth_status berth_vta_emit_best_conv(berth_arena *arena, const berth_vta_config *config,
                                      const berth_vta_conv *conv, const berth_vta_timing *timing,
                                      berth_vta_conv_tiles *out_tiles,
                                      berth_vta_kernel *out_kernel) {
    berth_vta_conv_tiles tiles[tried];
    uint32_t count = 0, best = 0;
    uint64_t fewest = UINT64_MAX;
    BERTH_TRY(berth_vta_conv_plans(config, conv, timing, tried, tiles, &count));
    for (uint32_t i = 0; i < count && count > 1; ++i) {
        uint64_t cycles = 0;
        berth_status status = time_tiles(arena, config, conv, timing, &tiles[i], &cycles);
        // Too long a stream, say: others may do. Where none does, emitting the first says why.
        if (!status && cycles < fewest) {
            fewest = cycles;
            best = i;
        }
        berth_status_free(status);
    }
    *out_tiles = tiles[best];
    return berth_vta_emit_conv(arena, config, conv, &tiles[best], out_kernel);
}
