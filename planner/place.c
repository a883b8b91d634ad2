// Stage 3: placement. The `default` strategy: what is free goes to the default device where that
// can run it, else to the first listed device that can, else to the host.
#include <string.h>

#include "planner/stages.h"

static const char *unsupported(const berth_planner_state *state, berth_op_id op, uint32_t device) {
    const berth_cost_model *cost = &state->options->cost;
    if (!cost->unsupported) return NULL;
    return cost->unsupported(cost->user, state->module, state->function, op, device, state->arena);
}

// The first device, in order of preference, that can run the operation; BERTH_NO_INDEX when none
// can.
static uint32_t first_able(berth_planner_state *state, berth_op_id op,
                           const char **out_default_problem) {
    const berth_multi_target *target = state->options->target;
    *out_default_problem = unsupported(state, op, target->default_device);
    if (!*out_default_problem) return target->default_device;
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (d != target->default_device && !unsupported(state, op, d)) return d;
    return BERTH_NO_INDEX;
}

static void note_failure(berth_planner_state *state, berth_op_id id, const char *problem,
                         berth_strbuf *failures) {
    const berth_op *op = &berth_graph_get(state->module, state->function)->ops.data[id];
    berth_strbuf_addf(failures, "\n  %s: %s",
                      berth_loc_describe(state->module, op->loc, state->arena), problem);
}

static void place_one(berth_planner_state *state, berth_op_id id, berth_strbuf *failures) {
    const berth_multi_target *target = state->options->target;
    const berth_op *op = &berth_graph_get(state->module, state->function)->ops.data[id];
    if (state->device[id] != BERTH_NO_INDEX) {
        const char *problem = unsupported(state, id, state->device[id]);
        if (problem) note_failure(state, id, problem, failures);
        return;
    }
    if (berth_op_has(op->kind, BERTH_TRAIT_HOST)) {
        state->device[id] = target->host;
        state->reason[id] = "host operation: reads shapes, not data";
        state->host_operation[id] = true;
        return;
    }
    const char *problem = NULL;
    uint32_t device = first_able(state, id, &problem);
    if (device == BERTH_NO_INDEX) {
        note_failure(state, id, problem, failures);
        return;
    }
    state->device[id] = device;
    state->reason[id] =
        problem ? berth_arena_printf(state->arena, "%s cannot: %s",
                                     target->devices[target->default_device].name, problem)
                : "default device";
}

berth_status berth_planner__place(berth_planner_state *state) {
    const berth_graph *graph = berth_graph_get(state->module, state->function);
    berth_strbuf failures = berth_strbuf_make(state->arena);
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind == BERTH_OP_CONSTANT) continue;
        place_one(state, i, &failures);
    }
    if (failures.length)
        return berth_status_make(BERTH_UNSUPPORTED, "no device of the target can run:%s",
                                 berth_strbuf_text(&failures));
    return BERTH_OK;
}
