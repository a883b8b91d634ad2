// Why things are where they are, read from the proof forest: the neighbour on the way to the
// constraint that brought the device, and that constraint. One walk per class, so that all reasons
// together are linear.
#include "planner/stages.h"

// What a node stands for.
typedef struct subject {
    berth_func_id function;
    enum { SUBJECT_NONE, SUBJECT_VALUE, SUBJECT_OP, SUBJECT_RESULT } kind;
    uint32_t index;
} subject;

struct berth_planner_reasons {
    const berth_planner_state *state;
    uint32_t *down;  // per node between a source and its proof tree's root: the next to the source
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

berth_planner_reasons *berth_planner__reasons(const berth_planner_state *state) {
    const berth_constraints *c = state->constraints;
    berth_planner_reasons *r = berth_arena_new(state->arena, berth_planner_reasons);
    r->state = state;
    r->down = berth_arena_new_array(state->arena, uint32_t, c->nodes.count + 1);
    r->subjects = berth_arena_new_array(state->arena, subject, c->nodes.count + 1);
    name_nodes(r);
    for (uint32_t n = 0; n < c->nodes.count; ++n) r->down[n] = BERTH_NONE;
    for (uint32_t n = 0; n < c->nodes.count; ++n) {
        uint32_t at = c->nodes.data[n].parent == n ? c->nodes.data[n].source[0] : BERTH_NONE;
        if (at == BERTH_NONE) continue;
        for (; c->nodes.data[at].proof != BERTH_NONE; at = c->nodes.data[at].proof)
            r->down[c->nodes.data[at].proof] = at;
    }
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
    berth_str_id name = f->graph->values.data[value].name;
    if (name)
        return berth_arena_printf(state->arena, "%%%s", berth_module_str(state->module, name));
    return berth_arena_printf(state->arena, "%%%u", value);
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

const char *berth_planner__why(const berth_planner_reasons *r, uint32_t node) {
    const berth_planner_state *state = r->state;
    const berth_constraints *c = state->constraints;
    const berth_constraint_node *root = &c->nodes.data[berth_constraints_find(c, node)];
    uint32_t source = root->source[0];
    if (source == BERTH_NONE) return root->why ? root->why : "nothing decides it";
    // From the operation over its own results to the first thing that is another's.
    subject self = r->subjects[node];
    while (node != source) {
        uint32_t next = r->down[node] != BERTH_NONE ? r->down[node] : c->nodes.data[node].proof;
        uint32_t edge = r->down[node] != BERTH_NONE ? c->nodes.data[next].proof_edge
                                                    : c->nodes.data[node].proof_edge;
        node = next;
        if (node == source || r->subjects[node].kind == SUBJECT_NONE ||
            same_operation(r, self, r->subjects[node]))
            continue;
        return berth_arena_printf(state->arena, "with %s (%s): %s", name_of(r, r->subjects[node]),
                                  c->edges.data[edge].reason.text, origin_of(state, source));
    }
    return origin_of(state, source);
}
