// How loops are arranged for Vulkan devices, from the target's attributes: matrix products and
// convolutions become tiles in local memory, on the matrix units where the device has them for the
// type, and everything else one work-item per element.
// Processor cores behind Vulkan (lavapipe) run a subgroup of work-items as one vector, so that they
// want the same shape of kernels as GPUs.
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/work_groups.h"

// One work-item per iteration of all loops.
static berth_stmt flat(berth_tfn *fn, berth_nest nest) {
    for (int i = 0; i < nest.count; ++i)
        if (nest.loops[i].kind == BERTH_LOOP_SERIAL) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    return berth_nest_emit(fn, &nest);
}

berth_stmt berth_gpu__choose_form(berth_tfn *fn, const berth_nest *nest, const void *limits) {
    berth_stmt tiled = 0;
    if (berth_decide_form(fn, BERTH_FORM_LOCAL_TILE)) tiled = berth_local_tile(fn, nest, limits);
    if (!tiled && berth_decide_form(fn, BERTH_FORM_GROUP_ROWS))
        tiled = berth_group_rows(fn, nest, limits);
    if (tiled || !berth_decide_form(fn, BERTH_FORM_ITEMS)) return tiled;
    return flat(fn, *nest);
}

static berth_stmt choose_form(berth_tfn *fn, const berth_nest *nest, const void *limits) {
    berth_stmt tiled = 0;
    if (berth_decide_form(fn, BERTH_FORM_MATRIX_TILE)) tiled = berth_matrix_tile(fn, nest, limits);
    return tiled ? tiled : berth_gpu__choose_form(fn, nest, limits);
}

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *limits) {
    berth_stmt split = berth_split_sum(fn, nest, limits, choose_form, limits);
    return split ? split : choose_form(fn, nest, limits);
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    berth_local_tile_limits limits = berth_local_tile_limits_of(target);
    limits.target = target;
    return berth_schedule_nests(fn, schedule_nest, &limits);
}

const berth_schedule_policy berth_schedule_policy_vulkan = {.kind = "vulkan", .apply = apply};
