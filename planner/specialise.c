// Instances of functions: one signature per function unless copies are saved by more. Where calls
// of a function have their arguments, or want their results, elsewhere than the function does, they
// get an instance of their own (@f.1, @f.2, ...), and keep it where the whole module then copies
// less. Where the module has no plan because two calls demand contradicting places, calls are split
// until it has one. In source order, so that the result is the same every time.
#include "planner/instances.h"

// Solutions that are looked at, at most; each takes the time of one plan.
enum { solution_limit = 64, instance_limit = 8 };

typedef struct specialiser {
    berth_planner_state *state;
    uint32_t solutions;
    uint32_t instances[instance_limit];  // of the function at hand, the function itself first
    uint32_t instance_count;
} specialiser;

typedef struct solution {
    bool found;
    berth_planner_estimate cost;
    berth_planner_wishes wishes;
} solution;

// What the rules make of the module as it is now.
static berth_status solve(specialiser *s, berth_arena *arena, solution *out) {
    berth_plan_options options = *s->state->options;
    options.after_phase = NULL;
    options.strategy = NULL;
    berth_planner_state probe = {
        .module = s->state->module, .main = s->state->main, .options = &options, .arena = arena};
    *out = (solution){0};
    s->solutions++;
    berth_status status = berth_planner__constrain(&probe);
    if (!status) status = berth_planner__place(&probe);
    if (status && berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    out->found = !status;
    berth_status_free(status);
    if (!out->found) return BERTH_OK;
    out->cost = berth_planner__estimate(&probe);
    berth_planner__wishes(&probe, &out->wishes);
    return BERTH_OK;
}

// ---- instances ----------------------------------------------------------------------------------

static void call_instead(specialiser *s, const berth_planner_wish *call, berth_func_id callee) {
    berth_module *module = s->state->module;
    berth_planner__set_callee(module, &berth_graph_get(module, call->caller)->ops.data[call->op],
                              callee);
}

static void add_instance(specialiser *s, berth_func_id function) {
    s->instances[s->instance_count++] = berth_planner__clone(s->state->module, function);
}

// The latest instance is the module's last function.
static void drop_instance(specialiser *s) {
    s->state->module->functions.count--;
    s->instance_count--;
}

static bool may_add(const specialiser *s) {
    uint32_t most = s->state->options->max_instances;
    return s->instance_count < (most < instance_limit ? most : instance_limit) &&
           s->solutions < solution_limit;
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
static void send(specialiser *s, const berth_planner_wishes *wishes, uint32_t first,
                 berth_func_id callee) {
    for (uint32_t i = first; i < wishes->items.count; ++i)
        if (same_wish(&wishes->items.data[first], &wishes->items.data[i]))
            call_instead(s, &wishes->items.data[i], callee);
}

static bool seen_before(const berth_planner_wishes *wishes, uint32_t index) {
    for (uint32_t i = 0; i < index; ++i)
        if (same_wish(&wishes->items.data[i], &wishes->items.data[index])) return true;
    return false;
}

static berth_status save_copies(specialiser *s, berth_arena *arena, berth_func_id function,
                                solution *best) {
    berth_planner_wishes wishes = best->wishes;
    for (uint32_t i = 0; i < wishes.items.count && may_add(s); ++i) {
        const berth_planner_wish *wish = &wishes.items.data[i];
        if (wish->callee != function || wish->met || seen_before(&wishes, i)) continue;
        solution tried;
        add_instance(s, function);
        send(s, &wishes, i, s->instances[s->instance_count - 1]);
        BERTH_TRY(solve(s, arena, &tried));
        if (tried.found && cheaper(tried.cost, best->cost)) {
            *best = tried;
            continue;
        }
        send(s, &wishes, i, function);
        drop_instance(s);
    }
    return BERTH_OK;
}

// ---- where there is no plan otherwise -----------------------------------------------------------

// The calls of a function, whether there is a plan or not.
static void list_calls(const specialiser *s, berth_func_id function, berth_arena *arena,
                       berth_planner_wishes *out) {
    const berth_module *module = s->state->module;
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_graph *graph = berth_graph_get(module, i);
        if (!graph || module->functions.data[i].removed) continue;
        uint32_t count = 0;
        berth_planner_state orders = {.module = s->state->module, .arena = arena};
        berth_op_id *order = berth_planner__order(&orders, graph, &count);
        for (uint32_t k = 0; k < count; ++k) {
            const berth_op *op = &graph->ops.data[order[k]];
            if (op->kind != BERTH_OP_CALL || berth_planner__callee(module, op) != function)
                continue;
            berth_vec_push(arena, &out->items,
                           (berth_planner_wish){.caller = i, .op = order[k], .callee = function});
        }
    }
}

// Every call behind the first its own instance, one after the other, until there is a plan; then
// those that were split for nothing go back.
static berth_status split(specialiser *s, berth_arena *arena, berth_func_id function,
                          solution *best) {
    berth_planner_wishes calls = {{0}};
    list_calls(s, function, arena, &calls);
    uint32_t done = 1;
    for (; done < calls.items.count && !best->found && may_add(s); ++done) {
        add_instance(s, function);
        call_instead(s, &calls.items.data[done], s->instances[s->instance_count - 1]);
        BERTH_TRY(solve(s, arena, best));
    }
    while (s->instance_count > 1) {
        uint32_t last = s->instance_count - 1;
        const berth_planner_wish *call = &calls.items.data[last];
        solution tried = {0};
        call_instead(s, call, function);
        if (best->found && s->solutions < solution_limit) BERTH_TRY(solve(s, arena, &tried));
        if (best->found && (!tried.found || cheaper(best->cost, tried.cost))) {
            call_instead(s, call, s->instances[last]);
            break;  // the others stand behind this one in the module
        }
        drop_instance(s);
        if (best->found) *best = tried;
    }
    return BERTH_OK;
}

static bool is_called(const berth_planner_state *state, berth_func_id function) {
    return function != state->main && !state->module->functions.data[function].removed &&
           berth_graph_get(state->module, function);
}

static berth_status specialise(specialiser *s, berth_arena *arena) {
    uint32_t count = s->state->module->functions.count;
    solution best;
    BERTH_TRY(solve(s, arena, &best));
    for (berth_func_id i = 0; i < count && s->solutions < solution_limit; ++i) {
        if (!is_called(s->state, i)) continue;
        s->instances[0] = i;
        s->instance_count = 1;
        BERTH_TRY(best.found ? save_copies(s, arena, i, &best) : split(s, arena, i, &best));
    }
    return BERTH_OK;
}

berth_status berth_planner__specialise(berth_planner_state *state) {
    if (state->options->max_instances < 2) return BERTH_OK;
    specialiser s = {.state = state};
    berth_arena *arena = berth_arena_create_child(state->arena);
    berth_status status = specialise(&s, arena);
    berth_arena_destroy(arena);
    return status;
}
