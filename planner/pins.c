// Stage 2: pins of the configuration and the command line, as constraints. A pin says where an
// operation runs, not where its neighbours do: its edges to them are left out of the soft phase.
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

// "pin 2 on the command line", "pins[0]".
static const char *pin_name(const berth_planner_state *state, uint32_t index) {
    const berth_target_pin *pins = state->options->target->pins;
    uint32_t number = 1;
    if (strncmp(pins[index].source, "--pin", 5) != 0) return pins[index].source;
    for (uint32_t i = 0; i < index; ++i) number += strncmp(pins[i].source, "--pin", 5) == 0;
    return berth_arena_printf(state->arena, "pin %u on the command line", number);
}

// Pins hold operations that compute; copies and annotations carry the locations of others.
static bool pinnable(const berth_op *op) {
    return !berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE) || op->kind == BERTH_OP_CALL ||
           op->kind == BERTH_OP_CALL_VALUE;
}

static berth_status apply(berth_planner_state *state, uint32_t index) {
    const berth_multi_target *target = state->options->target;
    const berth_target_pin *pin = &target->pins[index];
    berth_planner_function *f = &state->functions[state->main];
    const char *reason =
        berth_arena_printf(state->arena, "pinned: %s=%s (%s)", pin->match,
                           target->devices[pin->device].name, pin_name(state, index));
    bool matched = false;
    for (uint32_t k = 0; k < f->order_count; ++k) {
        berth_op_id id = f->order[k];
        const berth_op *op = &f->graph->ops.data[id];
        if (!pinnable(op) || !loc_matches(state->module, op->loc, pin->match)) continue;
        matched = true;
        if (berth_op_has(op->kind, BERTH_TRAIT_HOST)) continue;
        f->loose[id] = true;
        if (!op->device) f->reason[id] = reason;
        BERTH_TRY(berth_constraints_fix(state->constraints, f->op[id],
                                        berth_planner__device_id(state, pin->device),
                                        (berth_constraint_reason){reason, op->loc}));
    }
    if (matched) return BERTH_OK;
    if (!matches_folded(state->module, pin->match))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "%s: pattern \"%s\" matches no operation of the model; `berth inspect` lists them",
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
