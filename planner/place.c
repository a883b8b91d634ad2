// Stages support and place: what operators cannot do, soft edges in source order, then defaults.
#include <string.h>

#include "planner/stages.h"

static const char *unsupported(const berth_planner_state *state, berth_func_id function,
                               berth_op_id op, uint32_t device) {
    const berth_cost_model *cost = &state->options->cost;
    if (!cost->unsupported) return NULL;
    return cost->unsupported(cost->user, state->module, function, op, device, state->arena);
}

// A call of a function without operations of its own (tensor, external) computes.
static bool computes(const berth_planner_state *state, const berth_op *op) {
    if (op->kind == BERTH_OP_CALL) {
        berth_func_id callee = berth_planner__callee(state->module, op);
        return callee != BERTH_NONE && !state->functions[callee].graph && op->output_count;
    }
    return !berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST);
}

// Which devices can run an operation, while it is found out.
typedef struct support {
    uint64_t *words;  // of the set of the operation
    uint32_t word_count;
    berth_bits latest;  // set: most operations have the one of the operation before
} support;

// Devices that can run the operation, and why the default one cannot (NULL = it can).
static berth_bits able_devices(const berth_planner_state *state, berth_func_id function,
                               berth_op_id id, support *s, const char **out_problem) {
    const berth_multi_target *target = state->options->target;
    *out_problem = NULL;
    for (uint32_t w = 0; w < s->word_count; ++w) s->words[w] = 0;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        const char *problem = unsupported(state, function, id, d);
        if (!problem) s->words[d / 64] |= (uint64_t)1 << d % 64;
        if (problem && d == target->default_device) *out_problem = problem;
    }
    if (!berth_bits_is_of_words(s->latest, s->words, s->word_count))
        s->latest = berth_bits_from_words(state->arena, s->words, s->word_count);
    return s->latest;
}

static void support_one(berth_planner_state *state, berth_func_id function, berth_op_id id,
                        support *s) {
    berth_planner_function *f = &state->functions[function];
    f->able[id] = able_devices(state, function, id, s, &f->cannot[id]);
    uint32_t root = berth_constraints_find(state->constraints, f->op[id]);
    berth_bits *allowed = &state->constraints->nodes.data[root].allowed;
    if (!berth_bits_is_empty(f->able[id]))
        *allowed = berth_bits_and(state->arena, *allowed, f->able[id]);
}

// The operation that makes operand i and without which the device does not run `id`; BERTH_NONE: it
// runs alone, or that is elsewhere.
static berth_op_id needed_before(const berth_planner_state *state, berth_func_id function,
                                 berth_op_id id, uint32_t i, uint32_t device) {
    const berth_planner_function *f = &state->functions[function];
    const berth_cost_model *cost = &state->options->cost;
    berth_value_id value = f->graph->ops.data[id].inputs[i];
    berth_op_id previous = value == BERTH_NONE ? BERTH_NONE : f->graph->values.data[value].op;
    if (!cost->only_after || previous == BERTH_NONE ||
        !computes(state, &f->graph->ops.data[previous]) || !berth_bits_has(f->able[id], device) ||
        !cost->only_after(cost->user, state->module, function, id, device, previous))
        return BERTH_NONE;
    return previous;
}

// What a device runs only together with the operation before it stays with that one.
static void keep_together(berth_planner_state *state, berth_func_id function, berth_op_id id) {
    const berth_planner_function *f = &state->functions[function];
    const berth_op *op = &f->graph->ops.data[id];
    for (uint32_t d = 0; d < state->options->target->device_count; ++d)
        for (uint32_t i = 0; i < op->input_count; ++i) {
            berth_op_id previous = needed_before(state, function, id, i, d);
            if (previous != BERTH_NONE)
                (void)berth_constraints_soft(
                    state->constraints, f->op[previous], f->op[id],
                    (berth_constraint_reason){"a device runs it only with what makes its operand",
                                              op->loc});
        }
}

// Why the operation cannot run where demands have put it: what it needs before it is elsewhere.
static const char *apart(const berth_planner_state *state, berth_func_id function, berth_op_id id,
                         uint32_t device) {
    const berth_planner_function *f = &state->functions[function];
    for (uint32_t i = 0; i < f->graph->ops.data[id].input_count; ++i) {
        berth_op_id previous = needed_before(state, function, id, i, device);
        if (previous == BERTH_NONE || berth_planner__device_of(state, f->op[previous]) == device)
            continue;
        return berth_arena_printf(
            state->arena, "%s runs it only with what makes its operand, %s, which is elsewhere",
            state->options->target->devices[device].name,
            berth_loc_describe(state->module, f->graph->ops.data[previous].loc, state->arena));
    }
    return NULL;
}

berth_status berth_planner__support(berth_planner_state *state) {
    support s = {.word_count = berth_bits_word_count(state->options->target->device_count)};
    s.words = berth_arena_new_array(state->arena, uint64_t, s.word_count);
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        berth_planner_function *f = &state->functions[i];
        if (!state->options->cost.unsupported || !f->graph) continue;
        f->able = berth_arena_new_array(state->arena, berth_bits, f->op_count + 1);
        f->cannot = berth_arena_new_array(state->arena, const char *, f->op_count + 1);
        for (uint32_t k = 0; k < f->order_count; ++k)
            if (computes(state, &f->graph->ops.data[f->order[k]]))
                support_one(state, i, f->order[k], &s);
        for (uint32_t k = 0; k < f->order_count; ++k)
            if (computes(state, &f->graph->ops.data[f->order[k]]))
                keep_together(state, i, f->order[k]);
    }
    return BERTH_OK;
}

// An operation that the default device cannot run goes to the first that can, alone.
static berth_status place_unable(berth_planner_state *state, berth_func_id function,
                                 berth_op_id id) {
    berth_planner_function *f = &state->functions[function];
    const berth_multi_target *target = state->options->target;
    if (!f->cannot || !f->cannot[id]) return BERTH_OK;
    if (berth_planner__device_of(state, f->op[id]) != BERTH_NO_INDEX) return BERTH_OK;
    berth_bits candidates = berth_constraints_candidates(state->constraints, f->op[id]);
    uint32_t d = berth_bits_first(berth_bits_and(state->arena, f->able[id], candidates));
    if (d == BERTH_BITS_END) return BERTH_OK;  // check_support lists it
    f->loose[id] = true;
    if (state->unable_count++ == 0) state->unable_why = f->cannot[id];
    f->reason[id] = berth_arena_printf(state->arena, "%s cannot: %s",
                                       target->devices[target->default_device].name, f->cannot[id]);
    return berth_constraints_fix(
        state->constraints, f->op[id], berth_planner__device_id(state, d),
        (berth_constraint_reason){f->reason[id], f->graph->ops.data[id].loc});
}

// ---- soft edges ---------------------------------------------------------------------------------

static bool loose_value(const berth_planner_function *f, berth_value_id value) {
    berth_op_id op = f->graph->values.data[value].op;
    return op != BERTH_NONE && f->loose[op];
}

static berth_device_id with_scope(const berth_planner_state *state, berth_device_id id,
                                  const char *scope) {
    berth_virtual_device device = berth_virtual_device_get(state->module->devices, id);
    device.memory_scope = scope;
    return berth_virtual_device_intern(state->module->devices, device);
}

// On the device of the lowered call, in the scope of its buffer. What one side knows of the scope
// goes to the other: the first call site decides where the buffer leaves it open.
static void soft_lowered(berth_planner_state *state, uint32_t value, berth_use u,
                         berth_constraint_reason reason) {
    if (!berth_constraints_soft_device(state->constraints, value, u.node, reason)) return;
    if (u.scope != BERTH_NONE)
        (void)berth_constraints_soft_scope(state->constraints, value, u.scope, reason);
}

static void soft_use(berth_planner_state *state, const berth_planner_function *f, berth_use u,
                     berth_value_id value, bool loose, berth_loc_id loc) {
    berth_constraint_reason reason = {u.reason, loc};
    if (value == BERTH_NONE) return;
    if (berth_planner__is_constant(f->graph, value)) {
        // Cloned where it is used; one that an earlier run put somewhere says where that was.
        if (u.kind == BERTH_USE_HARD && f->graph->values.data[value].device)
            (void)berth_constraints_soft(state->constraints, f->value[value], u.node, reason);
        return;
    }
    if (loose || loose_value(f, value)) return;
    if (u.kind == BERTH_USE_SOFT)
        (void)berth_constraints_soft(state->constraints, f->value[value], u.node, reason);
    if (u.kind == BERTH_USE_LOWERED) soft_lowered(state, f->value[value], u, reason);
}

static void soft_op(berth_planner_state *state, berth_func_id function, berth_op_id id) {
    const berth_planner_function *f = &state->functions[function];
    const berth_op *op = &f->graph->ops.data[id];
    for (uint32_t i = 0; i < op->input_count; ++i)
        soft_use(state, f, berth_planner__operand(state, function, op, id, i), op->inputs[i],
                 f->loose[id], op->loc);
    for (uint32_t r = 0; r < op->region_count; ++r) {
        const berth_region *region = &f->graph->regions.data[op->regions[r]];
        for (uint32_t i = 0; i < region->results.count; ++i)
            soft_use(state, f, berth_planner__result(state, function, op->regions[r], i),
                     region->results.data[i], false, op->loc);
    }
    for (uint32_t i = 0; i < op->output_count; ++i) {
        uint32_t scope = berth_planner__result_scope(state, function, id, i);
        if (scope != BERTH_NONE)
            (void)berth_constraints_soft_scope(
                state->constraints, f->value[op->outputs[i]], scope,
                (berth_constraint_reason){"result of a call", op->loc});
    }
}

static void soft_function(berth_planner_state *state, berth_func_id function) {
    const berth_planner_function *f = &state->functions[function];
    if (!f->graph) return;
    for (uint32_t k = 0; k < f->order_count; ++k) soft_op(state, function, f->order[k]);
    const berth_region *root = &f->graph->regions.data[0];
    for (uint32_t r = 0; r < root->results.count; ++r)
        soft_use(state, f, berth_planner__result(state, function, 0, r), root->results.data[r],
                 false, 0);
}

// ---- defaults -----------------------------------------------------------------------------------

static void defaults(berth_planner_state *state) {
    berth_constraints *c = state->constraints;
    uint32_t count = state->module->functions.count;
    berth_device_id device =
        berth_planner__device_id(state, state->options->target->default_device);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        for (uint32_t r = 0; f->graph && r < f->graph->regions.data[0].results.count; ++r)
            berth_constraints_default(c, f->result[r], device, "default device");
    }
    for (uint32_t i = 0; i < count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        if (!f->graph) continue;
        const berth_region *root = &f->graph->regions.data[0];
        berth_device_id result = device;
        // Parameters bound to the host go nowhere with the result: copies are made at the border.
        bool border = state->options->host_bound && i == state->main;
        if (root->results.count && !border) result = berth_constraints_device(c, f->result[0]);
        for (uint32_t p = 0; p < root->params.count; ++p)
            berth_constraints_default(c, f->value[root->params.data[p]],
                                      with_scope(state, result, NULL),
                                      border ? "default device" : "with the function's result");
    }
    for (uint32_t i = 0; i < count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        for (uint32_t k = 0; f->graph && k < f->order_count; ++k) {
            const berth_op *op = &f->graph->ops.data[f->order[k]];
            uint32_t argument = f->extra[f->order[k]];
            if (op->kind != BERTH_OP_ON_DEVICE || !berth_constraints_device(c, argument)) continue;
            berth_constraints_default(c, argument, device, "default device");
            berth_constraints_default(c, f->value[op->outputs[0]],
                                      berth_constraints_device(c, argument),
                                      "with the argument of on_device");
        }
    }
    for (uint32_t n = 0; n < c->nodes.count; n += c->scoped ? 2 : 1)
        if (c->nodes.data[n].parent == n) berth_constraints_default(c, n, device, "default device");
}

static berth_status check_support(const berth_planner_state *state) {
    enum { most = 8 };  // operations that the message names
    berth_strbuf failures = berth_strbuf_make(state->arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        for (uint32_t k = 0; f->graph && k < f->order_count; ++k) {
            const berth_op *op = &f->graph->ops.data[f->order[k]];
            if (!computes(state, op)) continue;
            uint32_t device = berth_planner__device_of(state, f->op[f->order[k]]);
            if (!f->able) continue;
            const char *problem = berth_bits_has(f->able[f->order[k]], device)
                                      ? apart(state, i, f->order[k], device)
                                      : unsupported(state, i, f->order[k], device);
            if (problem && ++count <= most)
                berth_strbuf_addf(&failures, "\n  %s: %s",
                                  berth_loc_describe(state->module, op->loc, state->arena),
                                  problem);
        }
    }
    if (!count) return BERTH_OK;
    if (count > most) berth_strbuf_addf(&failures, "\n  and %u more", count - most);
    return berth_status_make(BERTH_UNSUPPORTED, "no device of the target can run:%s",
                             berth_strbuf_text(&failures));
}

// Nothing goes elsewhere in silence.
static void warn_of_unable(berth_planner_state *state) {
    const berth_multi_target *target = state->options->target;
    if (state->unable_count == 0) return;
    const char *warning = berth_arena_printf(
        state->arena, "\"%s\" cannot run %u of the operations, which run elsewhere: %s%s",
        target->devices[target->default_device].name, state->unable_count, state->unable_why,
        state->unable_count == 1 ? "" : ", ... (the plan says why of each)");
    berth_vec_push(state->arena, &state->warnings, warning);
}

// Functions in source order: of the module, but for instances that stand after others.
static berth_func_id *source_order(const berth_planner_state *state) {
    uint32_t count = state->module->functions.count, placed = 0;
    berth_func_id *order = berth_arena_new_array(state->arena, berth_func_id, count + 1);
    berth_func_id *next = berth_arena_new_array(state->arena, berth_func_id, count + 1);
    berth_func_id *last = berth_arena_new_array(state->arena, berth_func_id, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_func_id first = state->behind ? state->behind[i] : i;
        next[i] = BERTH_NONE;
        if (first != i) next[last[first]] = i;
        last[first] = i;
    }
    for (uint32_t i = 0; i < count; ++i)
        for (berth_func_id f = i; f != BERTH_NONE && (!state->behind || state->behind[i] == i);
             f = next[f])
            order[placed++] = f;
    return order;
}

berth_status berth_planner__place(berth_planner_state *state) {
    const berth_func_id *order = source_order(state);
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        for (uint32_t k = 0; f->graph && k < f->order_count; ++k)
            BERTH_TRY(place_unable(state, i, f->order[k]));
    }
    warn_of_unable(state);
    for (uint32_t i = 0; i < state->module->functions.count; ++i) soft_function(state, order[i]);
    defaults(state);
    return check_support(state);
}
