// What the copies will cost, and where calls would have what they pass and get: read from a solved
// constraint system, without touching the module.
#include "planner/instances.h"

// Pairs of (value, destination) seen in one function; open addressing, 0 = free.
typedef struct pairs {
    uint64_t *slots;
    uint32_t mask;
    uint32_t count;
    berth_arena *arena;
} pairs;

static uint64_t *find_slot(pairs *p, uint64_t key) {
    uint64_t hash = (key ^ key >> 31) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 32) & p->mask;
    while (p->slots[at] && p->slots[at] != key) at = (at + 1) & p->mask;
    return &p->slots[at];
}

static bool add_pair(pairs *p, berth_value_id value, berth_device_id device) {
    uint64_t key = ((uint64_t)value << 32 | device) + 1;
    uint64_t *slot = find_slot(p, key);
    if (*slot) return false;
    *slot = key;
    if (++p->count * 2 <= p->mask) return true;
    pairs bigger = {.mask = p->mask * 2 + 1, .count = p->count, .arena = p->arena};
    bigger.slots = berth_arena_new_array(p->arena, uint64_t, bigger.mask + 1);
    for (uint32_t i = 0; i <= p->mask; ++i)
        if (p->slots[i]) *find_slot(&bigger, p->slots[i]) = p->slots[i];
    *p = bigger;
    return true;
}

// ---- uses ---------------------------------------------------------------------------------------

static berth_device_id complete(const berth_planner_state *state, berth_device_id id) {
    uint32_t index = berth_plan_device_of(state->module, state->options->target, id);
    const char *scope = berth_virtual_device_get(state->module->devices, id).memory_scope;
    if (index == BERTH_NO_INDEX) return id;
    berth_virtual_device full = berth_multi_target_virtual_device(state->options->target, index);
    full.memory_scope = scope;
    return berth_virtual_device_intern(state->module->devices, full);
}

static berth_device_id device_of(const berth_planner_state *state, uint32_t node) {
    return complete(state, berth_constraints_device(state->constraints, node));
}

static berth_device_id wanted_by(const berth_planner_state *state, berth_use u) {
    if (u.kind != BERTH_USE_LOWERED) return device_of(state, u.node);
    return complete(state, berth_planner__in_scope(state, u.node, u.scope));
}

// What stands for the value once annotations are gone.
static berth_value_id behind(const berth_graph *graph, berth_value_id value) {
    for (;;) {
        berth_op_id op = graph->values.data[value].op;
        if (op == BERTH_NONE || graph->ops.data[op].kind != BERTH_OP_ON_DEVICE) return value;
        value = graph->ops.data[op].inputs[0];
    }
}

typedef void visit_fn(void *user, berth_func_id function, berth_value_id value, berth_use u);

static void visit_use(const berth_planner_state *state, berth_func_id function,
                      berth_value_id value, berth_use u, visit_fn *visit, void *user) {
    const berth_graph *graph = state->functions[function].graph;
    if (value == BERTH_NONE || u.kind == BERTH_USE_FREE) return;
    value = behind(graph, value);
    if (berth_planner__is_constant(graph, value) || berth_planner__is_function(state, graph, value))
        return;
    visit(user, function, value, u);
}

static void visit_uses(const berth_planner_state *state, berth_func_id function, visit_fn *visit,
                       void *user) {
    const berth_planner_function *f = &state->functions[function];
    for (uint32_t k = 0; k < f->order_count; ++k) {
        const berth_op *op = &f->graph->ops.data[f->order[k]];
        if (op->kind == BERTH_OP_ON_DEVICE) continue;
        for (uint32_t i = 0; i < op->input_count; ++i)
            visit_use(state, function, op->inputs[i],
                      berth_planner__operand(state, function, op, f->order[k], i), visit, user);
        for (uint32_t r = 0; r < op->region_count; ++r) {
            const berth_region *region = &f->graph->regions.data[op->regions[r]];
            for (uint32_t i = 0; i < region->results.count; ++i)
                visit_use(state, function, region->results.data[i],
                          berth_planner__result(state, function, op->regions[r], i), visit, user);
        }
    }
    const berth_region *root = &f->graph->regions.data[0];
    for (uint32_t i = 0; i < root->results.count; ++i)
        visit_use(state, function, root->results.data[i],
                  berth_planner__result(state, function, 0, i), visit, user);
}

// ---- cost ---------------------------------------------------------------------------------------

typedef struct estimator {
    const berth_planner_state *state;
    berth_planner_estimate sum;
    double weight;  // how often the function runs
    pairs seen;
} estimator;

static void count_copy(void *user, berth_func_id function, berth_value_id value, berth_use u) {
    estimator *e = user;
    const berth_planner_function *f = &e->state->functions[function];
    berth_device_id at = device_of(e->state, f->value[value]), wanted = wanted_by(e->state, u);
    if (at == wanted || !add_pair(&e->seen, value, wanted)) return;
    double time_ns = 0;
    (void)berth_planner__copy_cost(e->state, at, wanted, f->graph->values.data[value].type,
                                   &time_ns);
    e->sum.time_ns += e->weight * time_ns;
    e->sum.copies += e->weight;
}

// How often every function runs when each call of the text runs once. Functions of a cycle, and
// what only they call, once.
static double *weights(const berth_planner_state *state) {
    uint32_t count = state->module->functions.count;
    double *weight = berth_arena_new_array(state->arena, double, count + 1);
    uint32_t *callers = berth_arena_new_array(state->arena, uint32_t, count + 1);
    struct {
        BERTH_VEC(berth_func_id) items;
    } ready = {{0}};
    for (int round = 0; round < 2; ++round) {  // count the callers, then hand weights down
        for (uint32_t i = 0; round && i < count; ++i)
            if (!callers[i]) berth_vec_push(state->arena, &ready.items, i);
        uint32_t total = round ? ready.items.count : count;
        for (uint32_t i = 0; i < total; ++i) {
            berth_func_id function = round ? ready.items.data[i] : i;
            const berth_planner_function *f = &state->functions[function];
            if (round && weight[function] == 0) weight[function] = 1;
            for (uint32_t k = 0; f->graph && k < f->order_count; ++k) {
                const berth_op *op = &f->graph->ops.data[f->order[k]];
                berth_func_id callee = op->kind == BERTH_OP_CALL
                                           ? berth_planner__callee(state->module, op)
                                           : BERTH_NONE;
                if (callee == BERTH_NONE) continue;
                if (!round) {
                    callers[callee]++;
                    continue;
                }
                weight[callee] += weight[function];
                if (--callers[callee]) continue;
                berth_vec_push(state->arena, &ready.items, callee);
                total = ready.items.count;
            }
        }
    }
    for (uint32_t i = 0; i < count; ++i)
        if (weight[i] == 0) weight[i] = 1;
    return weight;
}

berth_planner_estimate berth_planner__estimate(const berth_planner_state *state) {
    estimator e = {.state = state};
    double *weight = weights(state);
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        if (!state->functions[i].graph) continue;
        e.weight = weight[i];
        e.seen = (pairs){.mask = 63, .arena = state->arena};
        e.seen.slots = berth_arena_new_array(state->arena, uint64_t, e.seen.mask + 1);
        visit_uses(state, i, count_copy, &e);
    }
    return e.sum;
}

// ---- wishes -------------------------------------------------------------------------------------

typedef struct wisher {
    const berth_planner_state *state;
    berth_device_id *wanted;  // per value: where all its users want it; 0 = no user yet
    bool *mixed;              // per value: its users do not agree
} wisher;

static void note_use(void *user, berth_func_id function, berth_value_id value, berth_use u) {
    wisher *w = user;
    (void)function;
    berth_device_id device = wanted_by(w->state, u);
    if (w->wanted[value] && w->wanted[value] != device) w->mixed[value] = true;
    w->wanted[value] = device;
}

static void wish_of(const wisher *w, berth_func_id caller, berth_op_id id, berth_func_id callee,
                    berth_planner_wishes *out) {
    const berth_planner_state *state = w->state;
    const berth_planner_function *f = &state->functions[caller], *g = &state->functions[callee];
    const berth_op *op = &f->graph->ops.data[id];
    const berth_region *root = &g->graph->regions.data[0];
    berth_planner_wish wish = {.caller = caller, .op = id, .callee = callee, .met = true};
    wish.devices = berth_arena_new_array(state->arena, berth_device_id,
                                         op->input_count + op->output_count + 1);
    for (uint32_t i = 0; i < op->input_count && i < root->params.count; ++i) {
        berth_value_id value = op->inputs[i];
        berth_device_id here = 0, there = device_of(state, g->value[root->params.data[i]]);
        if (value != BERTH_NONE) value = behind(f->graph, value);
        if (value != BERTH_NONE && !berth_planner__is_constant(f->graph, value) &&
            !berth_planner__is_function(state, f->graph, value)) {
            here = device_of(state, f->value[value]);
            wish.met &= here == there;
        }
        wish.devices[wish.count++] = here;
    }
    for (uint32_t i = 0; i < op->output_count && i < root->results.count; ++i) {
        berth_value_id value = op->outputs[i];
        berth_device_id there = device_of(state, g->result[i]), here = there;
        if (w->wanted[value] && !w->mixed[value]) here = w->wanted[value];
        wish.met &= here == there;
        wish.devices[wish.count++] = here;
    }
    berth_vec_push(state->arena, &out->items, wish);
}

void berth_planner__wishes(const berth_planner_state *state, berth_planner_wishes *out) {
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        const berth_planner_function *f = &state->functions[i];
        if (!f->graph) continue;
        wisher w = {.state = state};
        w.wanted = berth_arena_new_array(state->arena, berth_device_id, f->value_count + 1);
        w.mixed = berth_arena_new_array(state->arena, bool, f->value_count + 1);
        visit_uses(state, i, note_use, &w);
        for (uint32_t k = 0; k < f->order_count; ++k) {
            const berth_op *op = &f->graph->ops.data[f->order[k]];
            if (op->kind != BERTH_OP_CALL) continue;
            berth_func_id callee = berth_planner__callee(state->module, op);
            if (callee != BERTH_NONE && state->functions[callee].graph)
                wish_of(&w, i, f->order[k], callee, out);
        }
    }
}
