// Instances where there is no plan otherwise: which calls may share one.
//
// The hard constraints are solved once more with every call and reference apart: callees first, each
// call gets a copy of what is known of the callee's parameters and results (which are equal, on what
// device), as let-polymorphism instantiates a type scheme (Damas and Milner, "Principal
// type-schemes for functional programs", POPL 1982). What a call demands of its callee is then what
// is known of its copy. Callers first, calls whose demands join share an instance, in source order;
// what an instance's callers demand goes on to the calls in it. Functions that call each other are
// one unit: their calls among themselves are not apart. Linear in the module, apart from parameters
// and results of calls, which are looked at once per instance.
#include "planner/instances.h"

// A node of the callee and the one that stands for it at the call.
typedef struct pair {
    uint32_t theirs, copy;
} pair;

// A call of, or reference to, a function of another unit.
typedef struct site {
    berth_func_id callee;
    berth_op_id op;
    uint32_t first_pair, pair_count;
} site;

typedef struct site_list {
    BERTH_VEC(site) items;
} site_list;

// A site in a function or in an instance of it.
typedef struct visit {
    berth_func_id caller;
    berth_func_id callee;
    berth_op_id op;
    berth_device_id *devices;  // demanded, per root of the callee's unit
} visit;

typedef struct group {
    berth_device_id *devices;  // per root of the unit
    berth_func_id *functions;  // per member of the unit
} group;

// Functions that call each other; most are alone.
typedef struct unit {
    uint32_t first_member, member_count;  // in `members`
    BERTH_VEC(uint32_t) roots;            // classes that sites may demand something of
    BERTH_VEC(visit) visits;
    BERTH_VEC(group) groups;
} unit;

typedef struct id_list {
    BERTH_VEC(uint32_t) items;
} id_list;

typedef struct splitter {
    berth_planner_families *families;
    berth_planner_state state;  // calls apart
    berth_arena *arena;
    id_list members;        // of all units, one after the other
    uint32_t *unit_of;      // per function
    uint32_t *member_of;    // per function: index in its unit
    BERTH_VEC(unit) units;  // callees first
    site_list *sites;       // per function
    BERTH_VEC(pair) pairs;
    id_list image;       // per node: the copy of its class, while one is made; BERTH_NONE
    id_list touched;     // entries of `image` that are set
    id_list root_index;  // per node: index in its unit's roots; BERTH_NONE
} splitter;

// The entry of a list that grows with the constraint system.
static uint32_t *entry(const splitter *s, id_list *list, uint32_t node) {
    while (list->items.count <= node) berth_vec_push(s->arena, &list->items, BERTH_NONE);
    return &list->items.data[node];
}

// ---- units --------------------------------------------------------------------------------------

// The graph function that an operation calls or refers to.
static berth_func_id referred(const splitter *s, const berth_planner_function *f, berth_op_id id) {
    const berth_op *op = &f->graph->ops.data[id];
    if (op->kind != BERTH_OP_CALL && op->kind != BERTH_OP_FUNC_REF) return BERTH_NONE;
    berth_func_id callee = berth_planner__callee(s->state.module, op);
    return callee != BERTH_NONE && s->state.functions[callee].graph ? callee : BERTH_NONE;
}

// Tarjan, "Depth-first search and linear graph algorithms" (SIAM J. Comput. 1972), without
// recursion.
typedef struct walk_frame {
    berth_func_id function;
    uint32_t next;  // in its operations
} walk_frame;

typedef struct walker {
    BERTH_VEC(walk_frame) frames;
    id_list stack;
    uint32_t *index, *low;  // per function; index BERTH_NONE = not seen
    bool *on_stack;
    uint32_t count;
} walker;

static void enter(splitter *s, walker *w, berth_func_id function) {
    w->index[function] = w->low[function] = w->count++;
    w->on_stack[function] = true;
    berth_vec_push(s->arena, &w->stack.items, function);
    berth_vec_push(s->arena, &w->frames, (walk_frame){function, 0});
}

static void end_unit(splitter *s, walker *w, berth_func_id first) {
    unit made = {.first_member = s->members.items.count};
    berth_func_id function = BERTH_NONE;
    while (function != first) {
        function = w->stack.items.data[--w->stack.items.count];
        w->on_stack[function] = false;
        s->unit_of[function] = s->units.count;
        s->member_of[function] = made.member_count++;
        berth_vec_push(s->arena, &s->members.items, function);
    }
    berth_vec_push(s->arena, &s->units, made);
}

static void walk(splitter *s, walker *w, berth_func_id from) {
    enter(s, w, from);
    while (w->frames.count) {
        walk_frame *top = &w->frames.data[w->frames.count - 1];
        berth_func_id function = top->function;
        const berth_planner_function *f = &s->state.functions[function];
        if (top->next < f->order_count) {
            berth_func_id callee = referred(s, f, f->order[top->next++]);
            if (callee == BERTH_NONE) continue;
            if (w->index[callee] == BERTH_NONE)
                enter(s, w, callee);
            else if (w->on_stack[callee] && w->index[callee] < w->low[function])
                w->low[function] = w->index[callee];
            continue;
        }
        w->frames.count--;
        if (w->low[function] == w->index[function]) {
            end_unit(s, w, function);
            continue;
        }
        berth_func_id caller = w->frames.data[w->frames.count - 1].function;
        if (w->low[function] < w->low[caller]) w->low[caller] = w->low[function];
    }
}

static void find_units(splitter *s) {
    uint32_t count = s->state.module->functions.count;
    walker w = {.index = berth_arena_new_array(s->arena, uint32_t, count + 1),
                .low = berth_arena_new_array(s->arena, uint32_t, count + 1),
                .on_stack = berth_arena_new_array(s->arena, bool, count + 1)};
    s->unit_of = berth_arena_new_array(s->arena, uint32_t, count + 1);
    s->member_of = berth_arena_new_array(s->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; ++i) w.index[i] = BERTH_NONE;
    for (uint32_t i = 0; i < count; ++i)
        if (s->state.functions[i].graph && w.index[i] == BERTH_NONE) walk(s, &w, i);
}

static berth_func_id member(const splitter *s, const unit *u, uint32_t index) {
    return s->members.items.data[u->first_member + index];
}

// ---- calls apart --------------------------------------------------------------------------------

static berth_status copy_node(splitter *s, uint32_t node, uint32_t *out_copy);

static berth_status copy_function(splitter *s, berth_constraint_function function, uint32_t copy) {
    berth_constraints *c = s->state.constraints;
    uint32_t *nodes = berth_arena_new_array(s->arena, uint32_t, function.count + 1);
    for (uint32_t i = 0; i < function.count; ++i)
        BERTH_TRY(copy_node(s, function.nodes[i], &nodes[i]));
    uint32_t made = berth_constraints_function(c, nodes, function.param_count, function.count);
    return berth_constraints_hard_device(c, copy, made, (berth_constraint_reason){"", 0});
}

// What is known of the class of a node, or of its twin (the scope), goes to the copy: nodes of one
// class have copies of one class.
static berth_status copy_class(splitter *s, uint32_t node, bool scope, uint32_t copy) {
    berth_constraints *c = s->state.constraints;
    berth_constraint_reason reason = {"", 0};
    uint32_t root = berth_constraints_find(c, node + scope);
    berth_constraint_node known = c->nodes.data[root];
    uint32_t first = *entry(s, &s->image, root);
    if (first != BERTH_NONE)
        return scope ? berth_constraints_hard_scope(c, copy, first, reason)
                     : berth_constraints_hard_device(c, copy, first, reason);
    *entry(s, &s->image, root) = copy;
    berth_vec_push(s->arena, &s->touched.items, root);
    c->nodes.data[copy + scope].first_order = known.first_order;
    BERTH_TRY(berth_constraints_fix(c, copy, known.device, reason));
    if (known.function == BERTH_NONE) return BERTH_OK;
    return copy_function(s, c->functions.data[known.function], copy);
}

static berth_status copy_node(splitter *s, uint32_t node, uint32_t *out_copy) {
    berth_constraints *c = s->state.constraints;
    uint32_t copy = *out_copy = berth_constraints_node(c);
    berth_vec_push(s->arena, &s->pairs, (pair){node, copy});
    BERTH_TRY(copy_class(s, node, false, copy));
    if (!c->scoped) return BERTH_OK;
    berth_vec_push(s->arena, &s->pairs, (pair){node + 1, copy + 1});
    return copy_class(s, node, true, copy);
}

static berth_status copy_interface(splitter *s, berth_func_id caller, berth_op_id op,
                                   berth_func_id callee) {
    berth_planner_function *f = &s->state.functions[caller];
    const berth_planner_function *g = &s->state.functions[callee];
    uint32_t params = g->graph->regions.data[0].params.count;
    uint32_t count = params + g->result_count;
    uint32_t *nodes = berth_arena_new_array(s->arena, uint32_t, count + 1);
    site made = {.callee = callee, .op = op, .first_pair = s->pairs.count};
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(copy_node(s, g->interface[i], &nodes[i]));
    for (uint32_t i = 0; i < s->touched.items.count; ++i)
        *entry(s, &s->image, s->touched.items.data[i]) = BERTH_NONE;
    s->touched.items.count = 0;
    f->copies[op] = nodes;
    if (f->graph->ops.data[op].kind == BERTH_OP_FUNC_REF)
        f->extra[op] = berth_constraints_function(s->state.constraints, nodes, params, count);
    made.pair_count = s->pairs.count - made.first_pair;
    berth_vec_push(s->arena, &s->sites[caller].items, made);
    return BERTH_OK;
}

static berth_status separate(splitter *s, berth_func_id function) {
    berth_planner_function *f = &s->state.functions[function];
    f->copies = berth_arena_new_array(s->arena, uint32_t *, f->op_count + 1);
    for (uint32_t k = 0; k < f->order_count; ++k) {
        berth_func_id callee = referred(s, f, f->order[k]);
        if (callee != BERTH_NONE && s->unit_of[callee] != s->unit_of[function])
            BERTH_TRY(copy_interface(s, function, f->order[k], callee));
    }
    return BERTH_OK;
}

static berth_status constrain_apart(splitter *s) {
    berth_planner__nodes(&s->state);
    find_units(s);
    s->sites = berth_arena_new_array(s->arena, site_list, s->state.module->functions.count + 1);
    BERTH_TRY(berth_planner__hard_start(&s->state));
    for (uint32_t i = 0; i < s->units.count; ++i) {
        const unit *u = &s->units.data[i];
        for (uint32_t m = 0; m < u->member_count; ++m) BERTH_TRY(separate(s, member(s, u, m)));
        for (uint32_t m = 0; m < u->member_count; ++m) {
            BERTH_TRY(berth_planner__hard_function(&s->state, member(s, u, m)));
            BERTH_TRY(berth_planner__pin_function(&s->state, member(s, u, m)));
        }
    }
    return BERTH_OK;
}

// ---- groups -------------------------------------------------------------------------------------

static void index_roots(splitter *s) {
    for (uint32_t i = 0; i < s->members.items.count; ++i) {
        const site_list *sites = &s->sites[s->members.items.data[i]];
        for (uint32_t k = 0; k < sites->items.count; ++k) {
            const site *at = &sites->items.data[k];
            unit *callee = &s->units.data[s->unit_of[at->callee]];
            for (uint32_t p = 0; p < at->pair_count; ++p) {
                uint32_t theirs = s->pairs.data[at->first_pair + p].theirs;
                uint32_t root = berth_constraints_find(s->state.constraints, theirs);
                uint32_t *index = entry(s, &s->root_index, root);
                if (*index != BERTH_NONE) continue;
                *index = callee->roots.count;
                berth_vec_push(s->arena, &callee->roots, root);
            }
        }
    }
}

static group *add_group(splitter *s, unit *u) {
    group made = {.devices = berth_arena_new_array(s->arena, berth_device_id, u->roots.count + 1),
                  .functions = berth_arena_new_array(s->arena, berth_func_id, u->member_count + 1)};
    for (uint32_t r = 0; r < u->roots.count; ++r)
        made.devices[r] = s->state.constraints->nodes.data[u->roots.data[r]].device;
    for (uint32_t m = 0; m < u->member_count; ++m) {
        berth_func_id function = member(s, u, m);
        made.functions[m] =
            u->groups.count ? berth_planner__add_instance(s->families, function, true) : function;
    }
    berth_vec_push(s->arena, &u->groups, made);
    return &u->groups.data[u->groups.count - 1];
}

// Whether all demands join with those of the group, which then has them.
static bool join(splitter *s, const unit *u, group *g, const berth_device_id *devices) {
    berth_constraints *c = s->state.constraints;
    berth_device_id *joined = berth_arena_new_array(s->arena, berth_device_id, u->roots.count + 1);
    for (uint32_t r = 0; r < u->roots.count; ++r)
        if (!berth_virtual_device_join_ids(c->module->devices, g->devices[r], devices[r],
                                           &joined[r]) ||
            berth_bits_is_empty(berth_constraints_agreeing(c, joined[r])))
            return false;
    g->devices = joined;
    return true;
}

// The group that a call joins; NULL when there would be too many.
static group *group_of(splitter *s, unit *u, const berth_device_id *devices) {
    for (uint32_t i = 0; i < u->groups.count; ++i)
        if (join(s, u, &u->groups.data[i], devices)) return &u->groups.data[i];
    if (u->groups.count && u->groups.count >= s->families->most) return NULL;
    group *made = add_group(s, u);
    return join(s, u, made, devices) ? made : NULL;
}

// ---- instances ----------------------------------------------------------------------------------

// Calls among the members of an instance of a unit stay in it.
static void close_group(splitter *s, const unit *u, const group *g) {
    for (uint32_t m = 0; m < u->member_count; ++m) {
        const berth_planner_function *f = &s->state.functions[member(s, u, m)];
        for (uint32_t k = 0; k < f->order_count; ++k) {
            berth_func_id callee = referred(s, f, f->order[k]);
            if (callee != BERTH_NONE && &s->units.data[s->unit_of[callee]] == u)
                berth_planner__send(s->families, g->functions[m], f->order[k],
                                    g->functions[s->member_of[callee]]);
        }
    }
}

// What a group's callers demand, and what the function itself does, goes on to what it calls.
static void hand_down(splitter *s, const unit *u, const group *g, uint32_t index) {
    const berth_constraints *c = s->state.constraints;
    const site_list *sites = &s->sites[member(s, u, index)];
    for (uint32_t k = 0; k < sites->items.count; ++k) {
        const site *at = &sites->items.data[k];
        unit *callee = &s->units.data[s->unit_of[at->callee]];
        visit made = {.caller = g->functions[index], .callee = at->callee, .op = at->op};
        made.devices = berth_arena_new_array(s->arena, berth_device_id, callee->roots.count + 1);
        for (uint32_t p = 0; p < at->pair_count; ++p) {
            pair both = s->pairs.data[at->first_pair + p];
            uint32_t theirs = *entry(s, &s->root_index, berth_constraints_find(c, both.theirs));
            uint32_t root = berth_constraints_find(c, both.copy);
            uint32_t own = *entry(s, &s->root_index, root);
            made.devices[theirs] = own == BERTH_NONE ? c->nodes.data[root].device : g->devices[own];
        }
        berth_vec_push(s->arena, &callee->visits, made);
    }
}

// All calls of a unit are known: its callers are done. False where the instances do not suffice.
static bool place_unit(splitter *s, unit *u) {
    bool holds_main = false;
    for (uint32_t m = 0; m < u->member_count; ++m) holds_main |= member(s, u, m) == s->state.main;
    if (holds_main || !u->visits.count) (void)add_group(s, u);
    for (uint32_t i = 0; i < u->visits.count; ++i) {
        const visit *v = &u->visits.data[i];
        const group *g = group_of(s, u, v->devices);
        if (!g) return false;
        berth_planner__send(s->families, v->caller, v->op, g->functions[s->member_of[v->callee]]);
    }
    for (uint32_t i = 0; i < u->groups.count; ++i) {
        if (i) close_group(s, u, &u->groups.data[i]);
        for (uint32_t m = 0; m < u->member_count; ++m) hand_down(s, u, &u->groups.data[i], m);
    }
    return true;
}

berth_status berth_planner__split(berth_planner_families *families,
                                  const berth_planner_state *state, berth_arena *arena,
                                  bool *out_split) {
    berth_plan_options options = *state->options;
    options.after_stage = NULL;
    splitter s = {
        .families = families,
        .arena = arena,
        .state = {
            .module = state->module, .main = state->main, .options = &options, .arena = arena}};
    uint32_t before = state->module->functions.count;
    s.state.constraints = berth_constraints_create(state->module, options.target, arena,
                                                   berth_planner__names_scopes(state->module));
    *out_split = false;
    berth_status status = constrain_apart(&s);
    if (status && berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    bool possible = !status;  // else it is not for the calls that there is no plan
    berth_status_free(status);
    if (possible) index_roots(&s);
    for (uint32_t i = s.units.count; possible && i-- > 0;)
        possible = place_unit(&s, &s.units.data[i]);
    *out_split = possible && state->module->functions.count > before;
    return BERTH_OK;
}
