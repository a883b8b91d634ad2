// Why things are where they are, read from the proof forest: the neighbour on the way to the nearest
// constraint that brings the device, and that constraint. All ways are found at once, in two passes
// over the forest, so that all reasons together are linear.
#include "planner/stages.h"

// What a node stands for.
typedef struct subject {
    berth_func_id function;
    enum { SUBJECT_NONE, SUBJECT_VALUE, SUBJECT_OP, SUBJECT_RESULT } kind;
    uint32_t index;
} subject;

struct berth_planner_reasons {
    const berth_planner_state *state;
    uint32_t *source;    // per node: the nearest that brings the class its device; BERTH_NONE
    uint32_t *distance;  // to it, in edges
    uint32_t *next;      // on the way there
    subject *subjects;
};

static void name_nodes(berth_planner_reasons *r) {
    for (uint32_t i = 0; i < r->state->module->functions.count; ++i) {
        const berth_planner_function *f = &r->state->functions[i];
        if (!f->graph) continue;
        for (uint32_t v = 0; v < f->value_count; ++v)
            r->subjects[f->value[v]] = (subject){i, SUBJECT_VALUE, v};
        for (uint32_t k = 0; k < f->order_count; ++k) {
            berth_op_id op = f->order[k];
            r->subjects[f->op[op]] = (subject){i, SUBJECT_OP, op};
            if (f->extra[op] != BERTH_NONE)
                r->subjects[f->extra[op]] = (subject){i, SUBJECT_OP, op};
        }
        for (uint32_t k = 0; k < f->result_count; ++k)
            r->subjects[f->result[k]] = (subject){i, SUBJECT_RESULT, k};
    }
}

// Whether a constraint alone says as much as its class knows of kind and number: what it was made
// with stays at a node.
static bool brings_device(const berth_constraints *c, const berth_constraint_node *root,
                          uint32_t node) {
    const berth_constraint_node *held = &c->nodes.data[node];
    for (int part = 0; part < 2; ++part)
        if (root->source[part] != BERTH_NONE && held->source[part] != node) return false;
    return held->source[0] == node;
}

static void set_sources(berth_planner_reasons *r) {
    const berth_constraints *c = r->state->constraints;
    for (uint32_t n = 0; n < c->nodes.count; ++n) r->source[n] = BERTH_NONE;
    for (uint32_t i = 0; i < c->origins.count; ++i) {
        uint32_t node = c->origins.data[i].node;
        const berth_constraint_node *root = &c->nodes.data[berth_constraints_find(c, node)];
        if (brings_device(c, root, node)) r->source[node] = node;
    }
    // Where several had to meet for that, the one that brought the kind.
    for (uint32_t n = 0; n < c->nodes.count; ++n) {
        uint32_t source = c->nodes.data[n].parent == n ? c->nodes.data[n].source[0] : BERTH_NONE;
        if (source != BERTH_NONE) r->source[source] = source;
    }
}

// Nodes of the proof forest, parents before children.
static uint32_t *downwards(const berth_planner_reasons *r) {
    const berth_constraints *c = r->state->constraints;
    berth_arena *arena = r->state->arena;
    uint32_t count = c->nodes.count, ordered = 0;
    uint32_t *order = berth_arena_new_array(arena, uint32_t, count + 1);
    uint32_t *way = berth_arena_new_array(arena, uint32_t, count + 1);
    bool *seen = berth_arena_new_array(arena, bool, count + 1);
    for (uint32_t n = 0; n < count; ++n) {
        uint32_t length = 0;
        for (uint32_t at = n; at != BERTH_NONE && !seen[at]; at = c->nodes.data[at].proof) {
            seen[at] = true;
            way[length++] = at;
        }
        while (length) order[ordered++] = way[--length];
    }
    return order;
}

static void relax(berth_planner_reasons *r, uint32_t node, uint32_t by) {
    if (by == BERTH_NONE || r->source[by] == BERTH_NONE) return;
    if (r->source[node] != BERTH_NONE && r->distance[node] <= r->distance[by] + 1) return;
    r->source[node] = r->source[by];
    r->distance[node] = r->distance[by] + 1;
    r->next[node] = by;
}

berth_planner_reasons *berth_planner__reasons(const berth_planner_state *state) {
    const berth_constraints *c = state->constraints;
    uint32_t count = c->nodes.count;
    berth_planner_reasons *r = berth_arena_new(state->arena, berth_planner_reasons);
    r->state = state;
    r->source = berth_arena_new_array(state->arena, uint32_t, count + 1);
    r->distance = berth_arena_new_array(state->arena, uint32_t, count + 1);
    r->next = berth_arena_new_array(state->arena, uint32_t, count + 1);
    r->subjects = berth_arena_new_array(state->arena, subject, count + 1);
    name_nodes(r);
    set_sources(r);
    const uint32_t *order = downwards(r);
    for (uint32_t i = count; i-- > 0;)
        if (c->nodes.data[order[i]].proof != BERTH_NONE)
            relax(r, c->nodes.data[order[i]].proof, order[i]);
    for (uint32_t i = 0; i < count; ++i) relax(r, order[i], c->nodes.data[order[i]].proof);
    return r;
}

static const char *with_location(const berth_planner_state *state, berth_constraint_reason reason) {
    if (!reason.loc) return reason.text;
    return berth_arena_printf(state->arena, "%s, %s", reason.text,
                              berth_loc_describe(state->module, reason.loc, state->arena));
}

static const char *origin_of(const berth_planner_state *state, uint32_t source) {
    const berth_constraints *c = state->constraints;
    uint32_t low = 0, high = c->origins.count;
    while (low + 1 < high) {
        uint32_t middle = (low + high) / 2;
        if (c->origins.data[middle].node <= source)
            low = middle;
        else
            high = middle;
    }
    return with_location(state, c->origins.data[low].reason);
}

static const char *name_of(const berth_planner_reasons *r, subject s) {
    const berth_planner_state *state = r->state;
    const berth_planner_function *f = &state->functions[s.function];
    berth_value_id value = s.index;
    if (s.kind == SUBJECT_RESULT)
        return berth_arena_printf(
            state->arena, "result %u of @%s", s.index,
            berth_module_str(state->module,
                             berth_module_function(state->module, s.function)->name));
    if (s.kind == SUBJECT_OP) {
        const berth_op *op = &f->graph->ops.data[s.index];
        if (!op->output_count)
            return berth_arena_printf(state->arena, "%s", berth_op_facts_get(op->kind)->name);
        value = op->outputs[0];
    }
    return berth_arena_printf(state->arena, "%%%s", berth_planner__value_name(state, f, value));
}

static bool same_operation(const berth_planner_reasons *r, subject a, subject b) {
    if (a.kind == SUBJECT_NONE || b.kind == SUBJECT_NONE || a.function != b.function) return false;
    const berth_graph *graph = r->state->functions[a.function].graph;
    subject both[] = {a, b};
    for (int i = 0; i < 2; ++i) {
        if (both[i].kind == SUBJECT_RESULT) return false;
        if (both[i].kind == SUBJECT_VALUE) both[i].index = graph->values.data[both[i].index].op;
    }
    return both[0].index == both[1].index && both[0].index != BERTH_NONE;
}

// The steps from a node to what decides it, from an operation over its own results on: what is
// another's, and by which edge. Stops after `limit` of them.
static uint32_t steps_of(const berth_planner_reasons *r, uint32_t node, const char **out_steps,
                         uint32_t limit) {
    const berth_planner_state *state = r->state;
    const berth_constraints *c = state->constraints;
    uint32_t source = r->source[node], count = 0;
    subject self = r->subjects[node];
    while (node != source && count < limit) {
        uint32_t next = r->next[node];
        uint32_t edge = c->nodes.data[node].proof == next ? c->nodes.data[node].proof_edge
                                                          : c->nodes.data[next].proof_edge;
        node = next;
        if (node == source || r->subjects[node].kind == SUBJECT_NONE ||
            same_operation(r, self, r->subjects[node]))
            continue;
        self = r->subjects[node];
        out_steps[count++] = berth_arena_printf(state->arena, "with %s (%s)", name_of(r, self),
                                                c->edges.data[edge].reason.text);
    }
    return count;
}

// What decides a node in the end.
static const char *end_of(const berth_planner_reasons *r, uint32_t node) {
    const berth_constraints *c = r->state->constraints;
    const berth_constraint_node *root = &c->nodes.data[berth_constraints_find(c, node)];
    if (r->source[node] == BERTH_NONE) return root->why ? root->why : "nothing decides it";
    return origin_of(r->state, r->source[node]);
}

const char *berth_planner__why(const berth_planner_reasons *r, uint32_t node) {
    const char *step = NULL;
    if (r->source[node] == BERTH_NONE || steps_of(r, node, &step, 1) == 0) return end_of(r, node);
    return berth_arena_printf(r->state->arena, "%s: %s", step, end_of(r, node));
}

const char *const *berth_planner__chain(const berth_planner_reasons *r, uint32_t node,
                                        uint32_t *out_count) {
    const char *steps[BERTH_PLAN_CHAIN_LIMIT];
    uint32_t count = 0;
    if (r->source[node] != BERTH_NONE) count = steps_of(r, node, steps, BERTH_PLAN_CHAIN_LIMIT - 1);
    if (count == BERTH_PLAN_CHAIN_LIMIT - 1) steps[count - 1] = "and so on";
    steps[count++] = end_of(r, node);
    *out_count = count;
    return berth_arena_copy(r->state->arena, steps, count * sizeof(*steps));
}
