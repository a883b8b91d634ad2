// Stage pins: pins of the configuration and the command line, as constraints. A pin says where an
// operation runs, not where its neighbours do: its edges to them are left out when `place` takes in the soft ones.
#include <stdio.h>
#include <string.h>

#include "planner/stages.h"

static bool text_matches(const char *match, const char *node, const char *op_type) {
    if (strncmp(match, "op:", 3) == 0) return berth_glob_match(match + 3, op_type);
    return berth_glob_match(match, node);
}

// Operations of text have no names: plans show where they are, which is in a pin to the letter.
static bool is_place(const berth_loc *loc, const char *match) {
    char place[32];
    snprintf(place, sizeof(place), "%u:%u", loc->line, loc->column);
    return loc->line && strcmp(match, place) == 0;
}

static bool part_matches(const berth_module *module, const berth_loc *loc, const char *match) {
    if (!loc->node && is_place(loc, match)) return true;
    const char *node = berth_module_str(module, loc->node);
    const char *op_type = berth_module_str(module, loc->op_type);
    bool named = strncmp(match, "op:", 3) == 0 ? loc->op_type != 0 : loc->node != 0;
    return named && text_matches(match, node, op_type);
}

// A fused operation matches where any of its origins does, or by the name that plans print
// ("conv1+bn1"), for patterns with a plus.
static bool loc_matches(const berth_module *module, berth_arena *arena, berth_loc_id id,
                        const char *match) {
    const berth_loc *loc = berth_loc_get(module, id);
    if (!loc->part_count) return part_matches(module, loc, match);
    for (uint32_t i = 0; i < loc->part_count; ++i)
        if (part_matches(module, berth_loc_get(module, loc->parts[i]), match)) return true;
    return strchr(match, '+') && text_matches(match, berth_loc_label(module, id, arena),
                                              berth_loc_names(module, id, true, arena));
}

bool berth_planner_pinned_apart(const berth_module *module, berth_arena *arena,
                                const berth_multi_target *target, berth_loc_id a, berth_loc_id b) {
    for (uint32_t i = 0; target && target->pin_count > 1 && i < target->pin_count; ++i) {
        if (!loc_matches(module, arena, a, target->pins[i].match)) continue;
        for (uint32_t j = 0; j < target->pin_count; ++j)
            if (target->pins[j].device != target->pins[i].device &&
                loc_matches(module, arena, b, target->pins[j].match))
                return true;
    }
    return false;
}

// Of the nodes of the model, those included of which nothing is left.
static bool matches_node(const berth_module *module, berth_arena *arena, const char *match) {
    for (uint32_t i = 0; i < module->locs.count; ++i)
        if (loc_matches(module, arena, i, match)) return true;
    return false;
}

static bool is_given(const berth_target_pin *pin) {
    return strncmp(pin->source, "pin ", 4) == 0;
}

// "pin 2 of those given", "pins[0]".
static const char *pin_name(const berth_planner_state *state, uint32_t index) {
    const berth_target_pin *pins = state->options->target->pins;
    uint32_t number = 1;
    if (!is_given(&pins[index])) return pins[index].source;
    for (uint32_t i = 0; i < index; ++i) number += is_given(&pins[i]);
    return berth_arena_printf(state->arena, "pin %u of those given", number);
}

// Pins hold operations that compute; copies and annotations carry the locations of others.
static bool pinnable(const berth_op *op) {
    return !berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE) || op->kind == BERTH_OP_CALL ||
           op->kind == BERTH_OP_CALL_VALUE;
}

static berth_status apply(berth_planner_state *state, berth_func_id function, uint32_t index) {
    const berth_multi_target *target = state->options->target;
    const berth_target_pin *pin = &target->pins[index];
    berth_planner_function *f = &state->functions[function];
    const char *reason =
        berth_arena_printf(state->arena, "pinned: %s=%s (%s)", pin->match,
                           target->devices[pin->device].name, pin_name(state, index));
    for (uint32_t k = 0; k < f->order_count; ++k) {
        berth_op_id id = f->order[k];
        const berth_op *op = &f->graph->ops.data[id];
        if (!pinnable(op) || !loc_matches(state->module, state->arena, op->loc, pin->match))
            continue;
        state->pinned[index] = true;
        if (berth_op_has(op->kind, BERTH_TRAIT_HOST)) continue;
        f->loose[id] = true;
        if (!op->device) f->reason[id] = reason;
        BERTH_TRY(berth_constraints_fix(state->constraints, f->op[id],
                                        berth_planner__device_id(state, pin->device),
                                        (berth_constraint_reason){reason, op->loc}));
    }
    return BERTH_OK;
}

berth_status berth_planner__pin_function(berth_planner_state *state, berth_func_id function) {
    uint32_t count = state->options->target->pin_count;
    if (!state->pinned) state->pinned = berth_arena_new_array(state->arena, bool, count + 1);
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(apply(state, function, i));
    return BERTH_OK;
}

// What somebody asks for now must be there; what a target says may be about other models.
static berth_status no_node(const berth_target_pin *pin, const char **out_note) {
    *out_note = "matches no operation of this model; no effect";
    if (!is_given(pin)) return BERTH_OK;
    const berth_remedy operations = {BERTH_REMEDY_LOOK, "operations"};
    return berth_status_with_remedies(
        berth_status_make(BERTH_INVALID_ARGUMENT,
                          "%s: pattern \"%s\" matches no operation of the model", pin->source,
                          pin->match),
        &operations, 1);
}

static berth_status unmatched(berth_planner_state *state, const berth_target_pin *pin) {
    if (pin->may_match_nothing) return BERTH_OK;
    const char *note = "matches nothing that is left to compute; no effect";
    if (!matches_node(state->module, state->arena, pin->match)) BERTH_TRY(no_node(pin, &note));
    berth_vec_push(
        state->arena, &state->warnings,
        berth_arena_printf(state->arena, "%s: \"%s\" %s", pin->source, pin->match, note));
    return BERTH_OK;
}

berth_status berth_planner__pins(berth_planner_state *state) {
    const berth_multi_target *target = state->options->target;
    if (!target->pin_count) return BERTH_OK;
    for (uint32_t i = 0; i < state->module->functions.count; ++i)
        if (state->functions[i].graph) BERTH_TRY(berth_planner__pin_function(state, i));
    for (uint32_t i = 0; i < target->pin_count; ++i)
        if (!state->pinned[i]) BERTH_TRY(unmatched(state, &target->pins[i]));
    return BERTH_OK;
}

berth_status berth_plan_check_pins(const berth_module *module, berth_multi_target *target,
                                   berth_log log, berth_arena *arena) {
    if (!target->pin_count) return BERTH_OK;
    berth_target_pin *pins =
        berth_arena_copy(arena, target->pins, target->pin_count * sizeof(*pins));
    for (uint32_t i = 0; i < target->pin_count; ++i) {
        const char *note = NULL;
        if (!matches_node(module, arena, pins[i].match)) BERTH_TRY(no_node(&pins[i], &note));
        if (note)
            berth_log_message(log, BERTH_LOG_WARNING, "%s: \"%s\" %s", pins[i].source,
                              pins[i].match, note);
        pins[i].may_match_nothing = true;
    }
    target->pins = pins;
    return BERTH_OK;
}
