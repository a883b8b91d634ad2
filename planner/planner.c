#include "planner/planner.h"

#include <string.h>

#include "planner/stages.h"
#include "target/virtual_device.h"

const char *const *berth_plan_strategies(void) {
    static const char *const names[] = {"default", NULL};
    return names;
}

uint32_t berth_plan_device_of(const berth_module *module, const berth_multi_target *target,
                              berth_device_id device) {
    return device ? berth_multi_target_resolve(target,
                                               berth_virtual_device_get(module->devices, device))
                  : BERTH_NO_INDEX;
}

static berth_planner_state make_state(berth_module *module, berth_func_id function,
                                      const berth_plan_options *options) {
    const berth_graph *graph = berth_graph_get(module, function);
    uint32_t count = graph->ops.count;
    berth_planner_state state = {
        .module = module, .function = function, .options = options, .arena = module->arena};
    state.device = berth_arena_new_array(state.arena, uint32_t, count);
    state.reason = berth_arena_new_array(state.arena, const char *, count);
    state.host_operation = berth_arena_new_array(state.arena, bool, count);
    for (uint32_t i = 0; i < count; ++i) {
        state.device[i] = berth_plan_device_of(module, options->target, graph->ops.data[i].device);
        if (state.device[i] != BERTH_NO_INDEX) state.reason[i] = "placed by an earlier run";
    }
    return state;
}

static berth_plan *report(berth_planner_state *state) {
    const berth_graph *graph = berth_graph_get(state->module, state->function);
    const berth_region *root = &graph->regions.data[0];
    const berth_cost_model *cost = &state->options->cost;
    berth_plan *plan = berth_arena_new(state->arena, berth_plan);
    plan->strategy = "default";
    plan->entries = berth_arena_new_array(state->arena, berth_plan_entry, root->ops.count);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *op = &graph->ops.data[id];
        if (op->kind == BERTH_OP_CONSTANT || op->kind == BERTH_OP_DEVICE_COPY) continue;
        berth_plan_entry entry = {.op = id,
                                  .loc = op->loc,
                                  .device = state->device[id],
                                  .reason = state->reason[id],
                                  .host_operation = state->host_operation[id]};
        if (cost->time_ns)
            entry.time_ns =
                cost->time_ns(cost->user, state->module, state->function, id, state->device[id]);
        plan->predicted_ns += entry.time_ns;
        plan->entries[plan->entry_count++] = entry;
    }
    for (uint32_t i = 0; i < state->copies.count; ++i)
        plan->predicted_ns += state->copies.data[i].time_ns;
    plan->copies = state->copies.data;
    plan->copy_count = state->copies.count;
    plan->warnings = state->warnings.data;
    plan->warning_count = state->warnings.count;
    return plan;
}

berth_status berth_plan_module(berth_module *module, const berth_plan_options *options,
                               berth_plan **out_plan) {
    *out_plan = NULL;
    if (options->strategy && strcmp(options->strategy, "default") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "unknown strategy \"%s\"; known: default",
                                 options->strategy);
    berth_func_id function = berth_module_find_function(module, "main");
    if (function == BERTH_NONE)
        return berth_status_make(BERTH_NOT_FOUND, "the module has no function @main");
    berth_planner_state state = make_state(module, function, options);
    BERTH_TRY(berth_planner__pins(&state));
    BERTH_TRY(berth_planner__place(&state));
    BERTH_TRY(berth_planner__copies(&state));
    *out_plan = report(&state);
    return BERTH_OK;
}
