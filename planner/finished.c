// What a finished placement is worth by the kernels that are made of it. The search gives each kernel's
// time to the operation with most of its work, as if all of the model ran on one device; here what is
// fused is fused with what is on its own device only, and a kernel begins when the operands of all its
// operations are there.
#include <math.h>

#include "planner/choice.h"

static const double ns_per_ms = 1e6;

static double *copy_array(berth_arena *arena, const double *from, size_t count) {
    return from ? berth_arena_copy(arena, from, count * sizeof(double)) : NULL;
}

// A device of the target per operation of @main: where those without a node are does not matter.
static uint32_t *devices_of(const berth_planner_state *state, const uint32_t *assignment,
                            berth_arena *arena, uint32_t node_count) {
    const berth_placement *placement = state->choice->placement;
    uint32_t count = state->functions[state->main].graph->ops.count;
    uint32_t *devices = berth_arena_new_array(arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) devices[i] = state->options->target->host;
    for (uint32_t v = 0; v < node_count; ++v)
        if (placement->nodes[v].sort == BERTH_PLACEMENT_OP)
            devices[placement->nodes[v].index] = placement->target_device[assignment[v]];
    return devices;
}

bool berth_planner__by_kernels(const berth_planner_state *state, const uint32_t *assignment,
                               berth_planner_kernels *out) {
    const berth_cost_model *cost = &state->options->cost;
    const berth_placement *placement = state->choice->placement;
    const berth_place_problem *problem = &placement->problem;
    berth_arena *arena = state->choice->arena;
    *out = (berth_planner_kernels){.problem = *problem};
    if (!cost->kernels) return false;
    const uint32_t *devices = devices_of(state, assignment, arena, problem->node_count);
    if (!cost->kernels(cost->user, state->module, state->main, devices, arena, &out->data,
                       &out->count))
        return false;
    size_t times = (size_t)problem->node_count * problem->kind_count;
    double *time = out->problem.time = copy_array(arena, problem->time, times);
    double *memory_ms = out->problem.memory_ms = copy_array(arena, problem->memory_ms, times);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        size_t at = (size_t)v * problem->kind_count + problem->device_kind[assignment[v]];
        if (placement->nodes[v].sort != BERTH_PLACEMENT_OP) continue;
        time[at] = 0;
        if (memory_ms) memory_ms[at] = 0;
    }
    for (uint32_t i = 0; i < out->count; ++i) {
        uint32_t v = placement->node_of_op[out->data[i].last];
        if (v == BERTH_NONE) continue;
        size_t at = (size_t)v * problem->kind_count + problem->device_kind[assignment[v]];
        double ms = fmin(fmax(out->data[i].time_ns, 0) / ns_per_ms, BERTH_PLACE_FIGURE_LIMIT);
        time[at] += ms;
        if (memory_ms) memory_ms[at] += fmin(fmax(out->data[i].memory_ns, 0) / ns_per_ms, ms);
    }
    return true;
}

void berth_planner__fill_entries(const berth_planner_state *state, const berth_planner_kernels *k,
                                 const berth_place_value *value, berth_plan *plan) {
    const berth_placement *placement = state->choice->placement;
    uint32_t ops = state->functions[state->main].graph->ops.count;
    berth_plan_entry **entry_of =
        berth_arena_new_array(state->choice->arena, berth_plan_entry *, ops + 1);
    double *taken_ns =
        berth_arena_new_array(state->choice->arena, double, k->problem.node_count + 1);
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        berth_plan_entry *entry = &plan->entries[i];
        uint32_t node = placement->node_of_op[entry->op];
        entry->start_ns = node == BERTH_NONE ? 0 : value->node_start[node] * ns_per_ms;
        if (k->count == 0) continue;
        entry_of[entry->op] = entry;
        entry->time_ns = 0;
        entry->figure = BERTH_COST_NONE;
    }
    for (uint32_t i = 0; i < k->count; ++i) {
        const berth_plan_kernel *kernel = &k->data[i];
        berth_plan_entry *entry = entry_of[kernel->op];
        uint32_t node = placement->node_of_op[kernel->last];
        if (!entry || node == BERTH_NONE) continue;
        if (entry->time_ns == 0)
            entry->start_ns = value->node_start[node] * ns_per_ms + taken_ns[node];
        taken_ns[node] += kernel->time_ns;
        entry->time_ns += kernel->time_ns;
        bool less_sure = !entry->figure || kernel->figure < entry->figure;
        if (kernel->figure && less_sure) entry->figure = kernel->figure;
    }
}
