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

static berth_plan *report(berth_planner_state *state, const berth_op_id *ops, uint32_t op_count) {
    const berth_planner_function *f = &state->functions[state->main];
    const berth_cost_model *cost = &state->options->cost;
    berth_plan *plan = berth_arena_new(state->arena, berth_plan);
    plan->strategy = "default";
    plan->entries = berth_arena_new_array(state->arena, berth_plan_entry, op_count);
    for (uint32_t i = 0; i < op_count; ++i) {
        const berth_op *op = &f->graph->ops.data[ops[i]];
        if (op->kind == BERTH_OP_CONSTANT || op->kind == BERTH_OP_DEVICE_COPY ||
            op->kind == BERTH_OP_ON_DEVICE || op->kind == BERTH_OP_FUNC_REF)
            continue;
        uint32_t device = berth_planner__device_of(state, f->op[ops[i]]);
        if (device == BERTH_NO_INDEX) continue;
        const char *reason = f->reason[ops[i]];
        if (!reason)
            reason = device == state->options->target->default_device
                         ? "default device"
                         : "goes with what it is connected to";
        berth_plan_entry entry = {.op = ops[i],
                                  .loc = op->loc,
                                  .device = device,
                                  .reason = reason,
                                  .host_operation = berth_op_has(op->kind, BERTH_TRAIT_HOST)};
        if (cost->time_ns)
            entry.time_ns = cost->time_ns(cost->user, state->module, state->main, ops[i], device);
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

static berth_status solve(berth_planner_state *state) {
    berth_planner__nodes(state);
    BERTH_TRY(berth_planner__hard(state));
    BERTH_TRY(berth_planner__pins(state));
    BERTH_TRY(berth_planner__support(state));
    return berth_planner__place(state);
}

berth_status berth_plan_module(berth_module *module, const berth_plan_options *options,
                               berth_plan **out_plan) {
    *out_plan = NULL;
    if (options->strategy && strcmp(options->strategy, "default") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "unknown strategy \"%s\"; known: default",
                                 options->strategy);
    berth_func_id function = berth_module_find_function(module, "main");
    if (function == BERTH_NONE || !berth_graph_get(module, function))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    berth_planner_state state = {.module = module,
                                 .main = function,
                                 .options = options,
                                 .arena = module->arena,
                                 .constraints = berth_constraints_create(module, module->arena)};
    berth_planner__project(module);
    BERTH_TRY(solve(&state));
    const berth_region *root = &berth_graph_get(module, function)->regions.data[0];
    uint32_t op_count = root->ops.count;
    berth_op_id *ops =
        berth_arena_copy(module->arena, root->ops.data, op_count * sizeof(berth_op_id));
    BERTH_TRY(berth_planner__copies(&state));
    *out_plan = report(&state, ops, op_count);
    return BERTH_OK;
}
