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

static void *copy_array(berth_module *module, const void *data, size_t size_bytes) {
    return size_bytes ? berth_arena_copy(module->arena, data, size_bytes) : NULL;
}

static void copy_attrs(berth_module *module, berth_attrs *out, const berth_attrs *attrs) {
    *out = (berth_attrs){0};
    for (uint32_t i = 0; i < attrs->items.count; ++i)
        berth_vec_push(module->arena, &out->items, attrs->items.data[i]);
}

static berth_op copy_op(berth_module *module, const berth_op *op) {
    berth_op copy = *op;
    copy.inputs = copy_array(module, op->inputs, op->input_count * sizeof(*op->inputs));
    copy.outputs = copy_array(module, op->outputs, op->output_count * sizeof(*op->outputs));
    copy.regions = copy_array(module, op->regions, op->region_count * sizeof(*op->regions));
    copy_attrs(module, &copy.attrs, &op->attrs);
    return copy;
}

static berth_func_id clone(berth_module *module, berth_func_id function) {
    const berth_graph *from = berth_graph_get(module, function);
    const berth_function *held = berth_module_function(module, function);
    berth_attrs attrs;
    copy_attrs(module, &attrs, &held->attrs);
    berth_func_id id = berth_graph_create(module, berth_module_str(module, held->name), held->loc);
    berth_module_function(module, id)->attrs = attrs;
    berth_graph *to = berth_graph_get(module, id);
    to->regions.count = 0;
    for (uint32_t i = 0; i < from->values.count; ++i)
        berth_vec_push(module->arena, &to->values, from->values.data[i]);
    for (uint32_t i = 0; i < from->ops.count; ++i)
        berth_vec_push(module->arena, &to->ops, copy_op(module, &from->ops.data[i]));
    for (uint32_t i = 0; i < from->regions.count; ++i) {
        const berth_region *region = &from->regions.data[i];
        berth_region copy = {.parent = region->parent};
        for (uint32_t k = 0; k < region->params.count; ++k)
            berth_vec_push(module->arena, &copy.params, region->params.data[k]);
        for (uint32_t k = 0; k < region->ops.count; ++k)
            berth_vec_push(module->arena, &copy.ops, region->ops.data[k]);
        for (uint32_t k = 0; k < region->results.count; ++k)
            berth_vec_push(module->arena, &copy.results, region->results.data[k]);
        berth_vec_push(module->arena, &to->regions, copy);
    }
    return id;
}

static void call_instead(specialiser *s, const berth_planner_wish *call, berth_func_id callee) {
    berth_module *module = s->state->module;
    berth_op *op = &berth_graph_get(module, call->caller)->ops.data[call->op];
    berth_attrs_set(module, &op->attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = callee});
}

static void add_instance(specialiser *s, berth_func_id function) {
    s->instances[s->instance_count++] = clone(s->state->module, function);
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
