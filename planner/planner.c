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

// ---- stages -------------------------------------------------------------------------------------

static berth_status border(berth_planner_state *state) {
    if (state->options->host_bound) berth_planner__separate_border(state->module, state->main);
    return BERTH_OK;
}

static berth_status project(berth_planner_state *state) {
    berth_planner__project(state->module);
    return BERTH_OK;
}

static berth_status nodes(berth_planner_state *state) {
    state->constraints =
        berth_constraints_create(state->module, state->options->target, state->arena,
                                 berth_planner__names_scopes(state->module));
    berth_planner__nodes(state);
    return BERTH_OK;
}

// Keeps which operations there were before copies were made.
static berth_status copies(berth_planner_state *state) {
    const berth_region *root = &berth_graph_get(state->module, state->main)->regions.data[0];
    state->op_count = root->ops.count;
    state->ops = berth_arena_copy(state->module->arena, root->ops.data,
                                  root->ops.count * sizeof(berth_op_id));
    return berth_planner__copies(state);
}

// Copies and annotations that are gone may leave scopes decided that were open: what is in a scope
// and read there decides for the buffer, and the other way round. Until nothing changes, so that
// planning again changes nothing.
static berth_status settle(berth_planner_state *state) {
    enum { most_rounds = 16 };
    berth_plan_options options = *state->options;
    options.after_stage = NULL;
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

static berth_status report(berth_planner_state *state) {
    state->plan = berth_planner__report(state, state->ops, state->op_count);
    return BERTH_OK;
}

// In the order in which they run. Those that `constrains` make the system of constraints: choose,
// specialise and settle run them, too, on states of their own (berth_planner__constrain).
static const struct {
    berth_plan_stage named;
    bool constrains;
    berth_status (*run)(berth_planner_state *state);
} stages[] = {
    {{"border", "the module", "the module: a copy of @main for who calls it"}, false, border},
    {{"project", "the module", "the module: annotations of fields"}, false, project},
    {{"specialise", "the module, the target, the costs", "the module: instances of functions"},
     false,
     berth_planner__specialise},
    {{"nodes", "the module", "the nodes: one per value, operation, result"}, true, nodes},
    {{"hard", "the module, the nodes", "hard constraints"}, true, berth_planner__hard},
    {{"pins", "the target's pins, the nodes", "hard constraints"}, true, berth_planner__pins},
    {{"support", "the target, the nodes", "the devices that can run an operation"},
     true,
     berth_planner__support},
    {{"choose", "the constraints, the costs", "the strategy's devices"},
     false,
     berth_planner__choose},
    {{"place", "the constraints, the strategy's devices", "a device for every node"},
     false,
     berth_planner__place},
    {{"copies", "the devices", "the module: copies, devices"}, false, copies},
    {{"settle", "the module", "the module: scopes that are decided now"}, false, settle},
    {{"report", "the devices, the constraints", "the plan"}, false, report},
    {{"value", "the plan, the costs", "the plan: its value, what else was possible"},
     false,
     berth_planner__value},
};

enum { stage_count = sizeof(stages) / sizeof(stages[0]) };

const berth_plan_stage *berth_plan_stage_at(uint32_t index) {
    return index < stage_count ? &stages[index].named : NULL;
}

static berth_status run_stages(berth_planner_state *state, bool only_constraints) {
    if (!state->routes)
        state->routes = berth_route_memo_create(state->arena, state->options->target);
    for (uint32_t i = 0; i < stage_count; ++i) {
        if (only_constraints && !stages[i].constrains) continue;
        BERTH_TRY(stages[i].run(state));
        const berth_plan_options *options = state->options;
        if (options->after_stage) options->after_stage(options->stage_user, &stages[i].named);
    }
    return BERTH_OK;
}

berth_status berth_planner__constrain(berth_planner_state *state) {
    return run_stages(state, true);
}

berth_status berth_plan_module(berth_module *module, const berth_plan_options *options,
                               berth_plan **out_plan) {
    *out_plan = NULL;
    berth_func_id function = berth_module_find_function(module, "main");
    if (function == BERTH_NONE || !berth_graph_get(module, function))
        return berth_status_make(BERTH_NOT_FOUND, "the module has no graph function @main");
    berth_planner_state state = {
        .module = module, .main = function, .options = options, .arena = module->arena};
    BERTH_TRY(run_stages(&state, false));
    *out_plan = state.plan;
    return BERTH_OK;
}
