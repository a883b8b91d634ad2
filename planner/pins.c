// Stage 1: pins of the configuration and the command line.
#include <string.h>

#include "planner/stages.h"

static bool part_matches(const berth_module *module, const berth_loc *loc, const char *match) {
    if (strncmp(match, "op:", 3) == 0)
        return loc->op_type && berth_glob_match(match + 3, berth_module_str(module, loc->op_type));
    return loc->node && berth_glob_match(match, berth_module_str(module, loc->node));
}

// A fused operation matches where any of its origins does.
static bool loc_matches(const berth_module *module, berth_loc_id id, const char *match) {
    const berth_loc *loc = berth_loc_get(module, id);
    for (uint32_t i = 0; i < loc->part_count; ++i)
        if (part_matches(module, berth_loc_get(module, loc->parts[i]), match)) return true;
    return loc->part_count == 0 && part_matches(module, loc, match);
}

static bool matches_folded(const berth_module *module, const char *match) {
    for (uint32_t i = 0; i < module->locs.count; ++i)
        if (loc_matches(module, i, match)) return true;
    return false;
}

static berth_status apply(berth_planner_state *state, uint32_t index) {
    const berth_multi_target *target = state->options->target;
    const berth_target_pin *pin = &target->pins[index];
    const berth_graph *graph = berth_graph_get(state->module, state->function);
    bool matched = false;
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE || op->kind == BERTH_OP_CONSTANT) continue;
        if (!loc_matches(state->module, op->loc, pin->match)) continue;
        matched = true;
        if (state->device[i] != BERTH_NO_INDEX) continue;
        state->device[i] = pin->device;
        state->reason[i] = berth_arena_printf(state->arena, "pinned: %s=%s (%s)", pin->match,
                                              target->devices[pin->device].name, pin->source);
    }
    if (matched) return BERTH_OK;
    if (!matches_folded(state->module, pin->match))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "%s: pattern \"%s\" matches no operation of the model; `berth plan` lists them",
            pin->source, pin->match);
    berth_vec_push(
        state->arena, &state->warnings,
        berth_arena_printf(state->arena,
                           "%s: everything that \"%s\" matches was folded away; no effect",
                           pin->source, pin->match));
    return BERTH_OK;
}

berth_status berth_planner__pins(berth_planner_state *state) {
    for (uint32_t i = 0; i < state->options->target->pin_count; ++i) BERTH_TRY(apply(state, i));
    return BERTH_OK;
}
