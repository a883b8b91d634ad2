// Instances of functions: one signature per function unless more are needed or save copies. Where
// the module has no plan because calls demand contradicting places, each distinct demand gets an
// instance (polymorphic.c). Where calls of a function have their arguments, or want their results,
// elsewhere than the function does, they get instances of it and of what it calls (@f.1, @f.2, ...),
// which stay where the whole module then copies less; of these, what is placed as another instance
// is becomes that again. In source order, so that the result is the same every time.
#include "planner/instances.h"

// Solutions that are looked at, at most; each takes the time of one plan.
enum { solution_limit = 64, instance_limit = 8 };

typedef struct specialiser {
    berth_planner_state *state;
    berth_arena *arena;
    berth_planner_families families;
    uint32_t solutions;
} specialiser;

typedef struct solution {
    bool found;
    berth_planner_state state;  // solved
    berth_planner_estimate cost;
    berth_planner_wishes wishes;
} solution;

// What the rules make of the module as it is now.
static berth_status solve(specialiser *s, solution *out) {
    berth_plan_options *options = berth_arena_copy(s->arena, s->state->options, sizeof(*options));
    options->after_stage = NULL;
    options->strategy = NULL;
    *out = (solution){.state = {.module = s->state->module,
                                .main = s->state->main,
                                .behind = s->families.behind.data,
                                .options = options,
                                .arena = s->arena}};
    s->solutions++;
    berth_status status = berth_planner__constrain(&out->state);
    if (!status) status = berth_planner__place(&out->state);
    if (status && berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    out->found = !status;
    berth_status_free(status);
    if (!out->found) return BERTH_OK;
    out->cost = berth_planner__estimate(&out->state);
    berth_planner__wishes(&out->state, &out->wishes);
    return BERTH_OK;
}

// ---- instances ----------------------------------------------------------------------------------

berth_func_id berth_planner__add_instance(berth_planner_families *families, berth_func_id function,
                                          bool by_demand) {
    berth_func_id made = berth_planner__clone(families->module, function);
    berth_func_id origin = families->origin.data[function];
    berth_vec_push(families->arena, &families->origin, origin);
    berth_vec_push(families->arena, &families->behind, by_demand ? origin : made);
    return made;
}

static berth_op *op_of(const berth_planner_families *families, berth_func_id caller,
                       berth_op_id op) {
    return &berth_graph_get(families->module, caller)->ops.data[op];
}

void berth_planner__send(berth_planner_families *families, berth_func_id caller, berth_op_id op,
                         berth_func_id callee) {
    berth_op *call = op_of(families, caller, op);
    berth_planner_sent sent = {caller, berth_planner__callee(families->module, call), op};
    if (sent.before == callee) return;
    berth_vec_push(families->arena, &families->sent, sent);
    berth_planner__set_callee(families->module, call, callee);
}

// How many of both there are: what to go back to.
typedef struct mark {
    uint32_t functions, sent;
} mark;

static mark now(const berth_planner_families *families) {
    return (mark){families->module->functions.count, families->sent.count};
}

static void cut(berth_planner_families *families, uint32_t count) {
    families->module->functions.count = families->origin.count = families->behind.count = count;
}

static void take_back(berth_planner_families *families, mark to) {
    while (families->sent.count > to.sent) {
        berth_planner_sent sent = families->sent.data[--families->sent.count];
        berth_planner__set_callee(families->module, op_of(families, sent.caller, sent.op),
                                  sent.before);
    }
    cut(families, to.functions);
}

static uint32_t count_instances(const berth_planner_families *families, berth_func_id function) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < families->origin.count; ++i)
        count += families->origin.data[i] == families->origin.data[function] &&
                 !families->module->functions.data[i].removed;
    return count;
}

static bool may_add(const specialiser *s, berth_func_id function) {
    return count_instances(&s->families, function) < s->families.most;
}

// An instance of a function and of all that it calls, as far as there may be more of these.
static berth_func_id add_with_callees(specialiser *s, berth_func_id function) {
    berth_module *module = s->state->module;
    uint32_t count = module->functions.count;
    berth_func_id *made = berth_arena_new_array(s->arena, berth_func_id, count + 1);
    for (uint32_t i = 0; i < count; ++i) made[i] = BERTH_NONE;
    struct {
        BERTH_VEC(berth_func_id) items;
    } todo = {{0}};
    berth_vec_push(s->arena, &todo.items, function);
    made[function] = berth_planner__add_instance(&s->families, function, false);
    for (uint32_t i = 0; i < todo.items.count; ++i) {
        berth_func_id from = todo.items.data[i], caller = made[from];
        uint32_t op_count = berth_graph_get(module, caller)->ops.count;
        for (uint32_t k = 0; k < op_count; ++k) {
            const berth_op *op = op_of(&s->families, caller, k);
            berth_func_id callee = berth_planner__callee(module, op);
            if (op->kind != BERTH_OP_CALL || op->region == BERTH_NONE || callee == BERTH_NONE ||
                callee == s->state->main || !berth_graph_get(module, callee))
                continue;
            if (made[callee] == BERTH_NONE) {
                if (!may_add(s, callee)) continue;
                made[callee] = berth_planner__add_instance(&s->families, callee, false);
                berth_vec_push(s->arena, &todo.items, callee);
            }
            berth_planner__send(&s->families, caller, k, made[callee]);
        }
    }
    return made[function];
}

// ---- where it costs less ------------------------------------------------------------------------

static bool cheaper(berth_planner_estimate a, berth_planner_estimate b) {
    double slack_ns = 1e-9 * b.time_ns;
    if (a.time_ns < b.time_ns - slack_ns) return true;
    return a.time_ns <= b.time_ns + slack_ns && a.copies < b.copies;
}

static bool same_wish(const berth_planner_wish *a, const berth_planner_wish *b) {
    if (a->callee != b->callee || a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; ++i)
        if (a->devices[i] != b->devices[i]) return false;
    return true;
}

// The calls that wish what `first` wishes, sent to `callee`.
static void send_all(specialiser *s, const berth_planner_wishes *wishes, uint32_t first,
                     berth_func_id callee) {
    for (uint32_t i = first; i < wishes->items.count; ++i) {
        const berth_planner_wish *wish = &wishes->items.data[i];
        if (same_wish(&wishes->items.data[first], wish))
            berth_planner__send(&s->families, wish->caller, wish->op, callee);
    }
}

static bool seen_before(const berth_planner_wishes *wishes, uint32_t index) {
    for (uint32_t i = 0; i < index; ++i)
        if (same_wish(&wishes->items.data[i], &wishes->items.data[index])) return true;
    return false;
}

// Whether two instances of one function are in the same places, and so is what they call.
static bool same_instance(const specialiser *s, const berth_planner_state *solved, berth_func_id a,
                          berth_func_id b) {
    const berth_planner_function *f = &solved->functions[a], *g = &solved->functions[b];
    const berth_constraints *c = solved->constraints;
    if (!f->graph || !g->graph || f->value_count != g->value_count) return false;
    for (uint32_t v = 0; v < f->value_count; ++v)
        if (berth_constraints_device(c, f->value[v]) != berth_constraints_device(c, g->value[v]))
            return false;
    for (uint32_t k = 0; k < f->order_count; ++k) {
        const berth_op *x = op_of(&s->families, a, f->order[k]);
        const berth_op *y = op_of(&s->families, b, f->order[k]);
        if (x->kind == BERTH_OP_CALL && berth_planner__callee(s->state->module, x) !=
                                            berth_planner__callee(s->state->module, y))
            return false;
    }
    return true;
}

static void merge(specialiser *s, berth_func_id from, berth_func_id to) {
    berth_module *module = s->state->module;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_graph *graph =
            module->functions.data[i].removed ? NULL : berth_graph_get(module, i);
        for (uint32_t k = 0; graph && k < graph->ops.count; ++k)
            if (graph->ops.data[k].kind == BERTH_OP_CALL &&
                berth_planner__callee(module, &graph->ops.data[k]) == from)
                berth_planner__send(&s->families, i, k, to);
    }
    module->functions.data[from].removed = true;
}

// Instances from `first` on that are placed as another one become that again: those of callees, that
// were made with an instance, first. True when there were some.
static bool merge_equal(specialiser *s, const berth_planner_state *solved, berth_func_id first) {
    berth_module *module = s->state->module;
    uint32_t count = module->functions.count;
    bool merged = false, again = true;
    while (again) {
        again = false;
        for (berth_func_id i = count; i-- > first;) {
            for (berth_func_id k = 0; k < count && !module->functions.data[i].removed; ++k) {
                bool other = k != i && !module->functions.data[k].removed &&
                             s->families.origin.data[k] == s->families.origin.data[i];
                if (!other || !same_instance(s, solved, i, k)) continue;
                merge(s, i, k);
                merged = again = true;
            }
        }
    }
    while (count > first && module->functions.data[count - 1].removed) cut(&s->families, --count);
    return merged;
}

static berth_status merge_back(specialiser *s, berth_func_id first, solution *best) {
    mark before = now(&s->families);
    solution tried;
    if (!merge_equal(s, &best->state, first)) return BERTH_OK;
    BERTH_TRY(solve(s, &tried));
    if (tried.found && !cheaper(best->cost, tried.cost)) {
        *best = tried;
        return BERTH_OK;
    }
    // Does not happen as long as equal places mean equal copies; the functions are still there.
    cut(&s->families, before.functions);
    for (uint32_t i = first; i < before.functions; ++i)
        s->state->module->functions.data[i].removed = false;
    take_back(&s->families, before);
    return BERTH_OK;
}

static berth_status save_copies(specialiser *s, berth_func_id function, solution *best) {
    berth_planner_wishes wishes = best->wishes;
    for (uint32_t i = 0; i < wishes.items.count && s->solutions < solution_limit; ++i) {
        const berth_planner_wish *wish = &wishes.items.data[i];
        if (wish->callee != function || wish->met || seen_before(&wishes, i)) continue;
        if (!may_add(s, function)) break;
        mark before = now(&s->families);
        solution tried;
        berth_func_id made = add_with_callees(s, function);
        send_all(s, &wishes, i, made);
        BERTH_TRY(solve(s, &tried));
        if (!tried.found || !cheaper(tried.cost, best->cost)) {
            take_back(&s->families, before);
            continue;
        }
        *best = tried;
        BERTH_TRY(merge_back(s, made + 1, best));
    }
    return BERTH_OK;
}

static bool is_called(const berth_planner_state *state, berth_func_id function) {
    return function != state->main && !state->module->functions.data[function].removed &&
           berth_graph_get(state->module, function);
}

static berth_status specialise(specialiser *s) {
    solution best;
    mark before = now(&s->families);
    BERTH_TRY(solve(s, &best));
    if (!best.found) {
        bool split = false;
        BERTH_TRY(berth_planner__split(&s->families, s->state, s->arena, &split));
        if (split) BERTH_TRY(solve(s, &best));
        if (!best.found) take_back(&s->families, before);
    }
    uint32_t count = s->state->module->functions.count;
    for (berth_func_id i = 0; best.found && i < count; ++i)
        if (is_called(s->state, i)) BERTH_TRY(save_copies(s, i, &best));
    return BERTH_OK;
}

berth_status berth_planner__specialise(berth_planner_state *state) {
    uint32_t most = state->options->max_instances;
    if (most < 2) return BERTH_OK;
    berth_arena *arena = berth_arena_create_child(state->arena);
    specialiser s = {.state = state, .arena = arena};
    s.families = (berth_planner_families){.module = state->module,
                                          .arena = arena,
                                          .most = most < instance_limit ? most : instance_limit};
    for (uint32_t i = 0; i < state->module->functions.count; ++i) {
        berth_vec_push(arena, &s.families.origin, i);
        berth_vec_push(arena, &s.families.behind, i);
    }
    berth_status status = specialise(&s);
    if (!status)
        state->behind = berth_arena_copy(state->arena, s.families.behind.data,
                                         s.families.behind.count * sizeof(berth_func_id));
    berth_arena_destroy(arena);
    return status;
}
