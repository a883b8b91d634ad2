#include "planner/planner.h"

#include "ir/tensor/function.h"
#include "planner/stages.h"
#include "target/virtual_device.h"

uint32_t berth_plan_device_of(const berth_module *module, const berth_multi_target *target,
                              berth_device_id device) {
    return device ? berth_multi_target_resolve(target,
                                               berth_virtual_device_get(module->devices, device))
                  : BERTH_NO_INDEX;
}

const char *berth_cost_figure_name(berth_cost_figure figure) {
    static const char *const names[] = {"none", "analytic", "modelled", "interpolated", "measured"};
    return names[figure];
}

static void after_phase(const berth_planner_state *state, const char *phase) {
    if (state->options->after_phase) state->options->after_phase(state->options->phase_user, phase);
}

bool berth_planner__names_scopes(const berth_module *module) {
    for (berth_device_id id = 0; id < berth_virtual_device_count(module->devices); ++id)
        if (berth_virtual_device_get(module->devices, id).memory_scope) return true;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_tfn *fn = module->functions.data[i].removed ? NULL : berth_tfn_get(module, i);
        for (uint32_t p = 0; fn && p < fn->param_count; ++p)
            if (fn->bufs.data[p].memory_scope) return true;
    }
    return false;
}

berth_status berth_planner__constrain(berth_planner_state *state) {
    state->constraints =
        berth_constraints_create(state->module, state->options->target, state->arena,
                                 berth_planner__names_scopes(state->module));
    berth_planner__nodes(state);
    after_phase(state, "nodes");
    BERTH_TRY(berth_planner__hard(state));
    BERTH_TRY(berth_planner__pins(state));
    after_phase(state, "hard");
    BERTH_TRY(berth_planner__support(state));
    after_phase(state, "support");
    return BERTH_OK;
}

static berth_status solve(berth_planner_state *state) {
    BERTH_TRY(berth_planner__constrain(state));
    BERTH_TRY(berth_planner__choose(state));
    after_phase(state, "choose");
    BERTH_TRY(berth_planner__place(state));
    after_phase(state, "place");
    return BERTH_OK;
}

// Copies and annotations that are gone may leave scopes decided that were open: what is in a scope
// and read there decides for the buffer, and the other way round. Until nothing changes, so that
// planning again changes nothing.
static berth_status settle_scopes(const berth_planner_state *state) {
    enum { most_rounds = 16 };
    berth_plan_options options = *state->options;
    options.after_phase = NULL;
    for (int round = 0; round < most_rounds && state->constraints->scoped; ++round) {
        berth_planner_state again = {.module = state->module,
                                     .main = state->main,
                                     .behind = state->behind,
                                     .options = &options,
                                     .arena = state->arena};
        BERTH_TRY(berth_planner__constrain(&again));
        BERTH_TRY(berth_planner__place(&again));
        BERTH_TRY(berth_planner__copies(&again));
        if (!again.changed) break;
    }
    return BERTH_OK;
}

berth_status berth_plan_module(berth_module *module, const berth_plan_options *options,
                               berth_plan **out_plan) {
    *out_plan = NULL;
    berth_func_id function = berth_module_find_function(module, "main");
    if (function == BERTH_NONE || !berth_graph_get(module, function))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    berth_planner_state state = {
        .module = module, .main = function, .options = options, .arena = module->arena};
    if (options->host_bound) berth_planner__separate_border(module, function);
    berth_planner__project(module);
    after_phase(&state, "project");
    BERTH_TRY(berth_planner__specialise(&state));
    after_phase(&state, "specialise");
    BERTH_TRY(solve(&state));
    const berth_region *root = &berth_graph_get(module, function)->regions.data[0];
    uint32_t op_count = root->ops.count;
    berth_op_id *ops =
        berth_arena_copy(module->arena, root->ops.data, op_count * sizeof(berth_op_id));
    BERTH_TRY(berth_planner__copies(&state));
    BERTH_TRY(settle_scopes(&state));
    after_phase(&state, "copies");
    berth_plan *plan = berth_planner__report(&state, ops, op_count);
    after_phase(&state, "report");
    BERTH_TRY(berth_planner__value(&state, plan));
    after_phase(&state, "value");
    *out_plan = plan;
    return BERTH_OK;
}
