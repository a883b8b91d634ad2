// The part of a device's target that kernels' speed depends on.
#include <string.h>

#include "target/internal.h"

// What code is made from, and what it runs on. Figures that only predict (peaks, bandwidths, fixed
// costs), room and names of things apart from the device say nothing about a measured kernel. The
// clock is the product's, or changes by itself; where a device is nothing but its attributes, it is
// one of them.
static const char *const kept[] = {"kind",
                                   "arch",
                                   "cpu",
                                   "model",
                                   "features",
                                   "libs",
                                   "cores",
                                   "threads",
                                   "vector_bits",
                                   "vector_registers",
                                   "tile_rows",
                                   "tile_own_rows",
                                   "tile_page_rows",
                                   "unrolled_terms",
                                   "tile_singles",
                                   "sums_in_flight",
                                   "item_rows",
                                   "group_columns",
                                   "group_rows",
                                   "tile_depth",
                                   "compute_units",
                                   "subgroup_size",
                                   "max_group_size",
                                   "local_memory_bytes",
                                   "l1_bytes",
                                   "l2_bytes",
                                   "l3_bytes"};

const char *berth_target_culled(berth_arena *arena, const berth_target *target) {
    json *all = berth_target__device_json(arena, target);
    json *culled = berth_target__json_object(arena);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); ++i) {
        json *value = berth_target__json_get(all, kept[i]);
        if (value) berth_target__json_set(arena, culled, kept[i], value);
    }
    if (!berth_device_kind_is_host(target->kind) && !berth_device_kind_is_gpu(target->kind) &&
        target->clock_hz > 0)
        berth_target__json_set(arena, culled, "clock_hz",
                               berth_target__json_int(arena, target->clock_hz));
    for (uint32_t i = 0; i < target->extra_count; ++i)
        berth_target__json_set(arena, culled, target->extras[i].name,
                               berth_target__json_int(arena, target->extras[i].value));
    return berth_target__json_print(arena, culled, 0);
}

typedef struct renewal {
    berth_arena *arena;
    const berth_target *device;
    const char *out;
} renewal;

static berth_status cull(void *user) {
    renewal *job = user;
    job->out = berth_target_culled(job->arena, job->device);
    return BERTH_OK;
}

berth_status berth_target_renew_culled(berth_arena *arena, const char *culled,
                                       const char **out_culled) {
    const berth_target_options options = {.no_files = true};
    berth_multi_target *target = NULL;
    *out_culled = NULL;
    BERTH_TRY(berth_target_parse(arena, culled, &options, &target));
    renewal job = {.arena = arena, .device = target->devices[0].target};
    BERTH_TRY(berth_arena_try(arena, cull, &job));
    *out_culled = job.out;
    return BERTH_OK;
}
