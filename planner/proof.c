// The proof forest of the constraint solver, and the messages made from it.
#include <string.h>

#include "planner/constraints.h"

// Turns the tree of `node` round so that `node` is its root.
static void turn(berth_constraints *c, uint32_t node) {
    uint32_t previous = BERTH_NONE, previous_edge = BERTH_NONE;
    while (node != BERTH_NONE) {
        berth_constraint_node *held = &c->nodes.data[node];
        uint32_t next = held->proof, next_edge = held->proof_edge;
        held->proof = previous;
        held->proof_edge = previous_edge;
        previous = node;
        previous_edge = next_edge;
        node = next;
    }
}

void berth_constraints__prove(berth_constraints *c, uint32_t a, uint32_t b, uint32_t edge,
                              bool turn_a) {
    uint32_t from = turn_a ? a : b, to = turn_a ? b : a;
    turn(c, from);
    c->nodes.data[from].proof = to;
    c->nodes.data[from].proof_edge = edge;
}

typedef struct chain {
    BERTH_VEC(uint32_t) edges;
} chain;

static void walk_up(const berth_constraints *c, uint32_t node, chain *out) {
    for (; c->nodes.data[node].proof != BERTH_NONE; node = c->nodes.data[node].proof)
        berth_vec_push(c->arena, &out->edges, c->nodes.data[node].proof_edge);
}

static void print_edge(const berth_constraints *c, const berth_constraint_edge *edge,
                       berth_strbuf *out) {
    berth_strbuf_addf(out, "\n    %s", edge->reason.text);
    if (edge->reason.loc)
        berth_strbuf_addf(out, ", %s", berth_loc_describe(c->module, edge->reason.loc, c->arena));
}

// The reasons between two nodes of one class, from `from` to `to`: up to where the ways to the root
// meet.
static void print_chain(const berth_constraints *c, uint32_t from, uint32_t to, berth_strbuf *out) {
    chain up = {{0}}, down = {{0}};
    walk_up(c, from, &up);
    walk_up(c, to, &down);
    uint32_t n = up.edges.count, m = down.edges.count;
    while (n && m && up.edges.data[n - 1] == down.edges.data[m - 1]) n--, m--;
    for (uint32_t i = 0; i < n; ++i) print_edge(c, &c->edges.data[up.edges.data[i]], out);
    for (uint32_t i = m; i-- > 0;) print_edge(c, &c->edges.data[down.edges.data[i]], out);
}

static const char *short_name(const berth_constraints *c, uint32_t node) {
    berth_virtual_device device =
        berth_virtual_device_get(c->module->devices, c->nodes.data[node].device);
    device.has_target = false;
    return berth_virtual_device_name(c->arena, device);
}

static int part_of(const char *clash) {
    static const char *const parts[] = {"device type", "virtual id", "target", "memory scope"};
    for (int i = 0; i < BERTH_CONSTRAINT_PARTS; ++i)
        if (strcmp(parts[i], clash) == 0) return i;
    return 0;
}

berth_status berth_constraints__explain(const berth_constraints *c) {
    uint32_t ends[] = {c->conflict.a, c->conflict.b};
    uint32_t roots[] = {berth_constraints_find(c, ends[0]), berth_constraints_find(c, ends[1])};
    berth_device_id devices[] = {c->nodes.data[roots[0]].device, c->nodes.data[roots[1]].device};
    berth_strbuf text = berth_strbuf_make(c->arena);
    const char *clash =
        berth_virtual_device_clash(berth_virtual_device_get(c->module->devices, devices[0]),
                                   berth_virtual_device_get(c->module->devices, devices[1]));
    if (!clash) {
        print_edge(c, &c->conflict, &text);
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "functions of different signatures must be the same:%s",
                                 berth_strbuf_text(&text));
    }
    berth_strbuf_addf(&text, "%s of the same value or operation is demanded twice:", clash);
    for (int i = 0; i < 2; ++i) {
        // The node that brought the part was fixed itself; its class device may have grown since.
        uint32_t source = c->nodes.data[roots[i]].source[part_of(clash)];
        const char *name = short_name(c, roots[i]);
        berth_strbuf_addf(&text, "\n  on %s, because of", name);
        if (source != BERTH_NONE && source != ends[i]) print_chain(c, source, ends[i], &text);
    }
    berth_strbuf_add(&text, "\n  which meet in");
    print_edge(c, &c->conflict, &text);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s", berth_strbuf_text(&text));
}
