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

// ---- chains -------------------------------------------------------------------------------------

typedef struct chain {
    BERTH_VEC(const berth_constraint_edge *) edges;
} chain;

static bool same_reason(const berth_constraint_edge *a, const berth_constraint_edge *b) {
    return a->reason.loc == b->reason.loc && strcmp(a->reason.text, b->reason.text) == 0;
}

// An operation and its result, say, are tied for the same reason as that and the next: said once.
static void add_edge(const berth_constraints *c, chain *out, uint32_t id) {
    const berth_constraint_edge *edge = &c->edges.data[id];
    if (out->edges.count && same_reason(out->edges.data[out->edges.count - 1], edge)) return;
    berth_vec_push(c->arena, &out->edges, edge);
}

typedef struct way {
    BERTH_VEC(uint32_t) edges;
} way;

static void walk_up(const berth_constraints *c, uint32_t node, way *out) {
    for (; c->nodes.data[node].proof != BERTH_NONE; node = c->nodes.data[node].proof)
        berth_vec_push(c->arena, &out->edges, c->nodes.data[node].proof_edge);
}

// The reasons between two nodes of one class, from `from` to `to`: up to where the ways to the root
// meet.
static chain chain_between(const berth_constraints *c, uint32_t from, uint32_t to) {
    chain out = {{0}};
    way up = {{0}}, down = {{0}};
    walk_up(c, from, &up);
    walk_up(c, to, &down);
    uint32_t n = up.edges.count, m = down.edges.count;
    while (n && m && up.edges.data[n - 1] == down.edges.data[m - 1]) n--, m--;
    for (uint32_t i = 0; i < n; ++i) add_edge(c, &out, up.edges.data[i]);
    for (uint32_t i = m; i-- > 0;) add_edge(c, &out, down.edges.data[i]);
    return out;
}

static void print_edge(const berth_constraints *c, const berth_constraint_edge *edge,
                       berth_strbuf *out) {
    berth_strbuf_addf(out, "\n    %s", edge->reason.text);
    if (edge->reason.loc)
        berth_strbuf_addf(out, ", %s", berth_loc_describe(c->module, edge->reason.loc, c->arena));
}

// Both ends of a long chain, and how much there is between.
static void print_chain(const berth_constraints *c, const chain *steps, berth_strbuf *out) {
    enum { shown = 5 };  // of each end
    uint32_t count = steps->edges.count;
    for (uint32_t i = 0; i < count; ++i) {
        if (i == shown && count > 2 * shown + 1) {
            i = count - shown;
            berth_strbuf_addf(out, "\n    ... %u more steps between ...", i - shown);
        }
        print_edge(c, steps->edges.data[i], out);
    }
}

// ---- conflicts ----------------------------------------------------------------------------------

static berth_virtual_device device_of(const berth_constraints *c, uint32_t root) {
    return berth_virtual_device_get(c->module->devices, c->nodes.data[root].device);
}

// Without the target, where kind and number say enough.
static const char *short_name(const berth_constraints *c, uint32_t root) {
    berth_virtual_device device = device_of(c, root);
    if (device.device_type != BERTH_DEVICE_FREE) device.has_target = false;
    return berth_virtual_device_name(c->arena, device);
}

const char *berth_constraints__devices_text(berth_arena *arena, const berth_multi_target *target) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t d = 0; d < target->device_count; ++d) {
        berth_virtual_device device = berth_multi_target_virtual_device(target, d);
        device.has_target = false;
        const char *name = berth_virtual_device_name(arena, device),
                   *given = target->devices[d].name;
        bool named = given && strcmp(given, name) != 0;
        berth_strbuf_addf(&text, "%s%s%s%s%s", d ? ", " : "", named ? given : "", named ? " (" : "",
                          name, named ? ")" : "");
    }
    return berth_strbuf_text(&text);
}

static int part_of(const char *clash) {
    static const char *const parts[] = {"device type", "virtual id", "target", "memory scope"};
    for (int i = 0; i < BERTH_CONSTRAINT_PARTS; ++i)
        if (strcmp(parts[i], clash) == 0) return i;
    return 0;
}

// The node that brought what cannot be: the part that clashes, else one that the other has not.
static uint32_t source_of(const berth_constraints *c, const char *clash, uint32_t root,
                          uint32_t other) {
    const uint32_t *mine = c->nodes.data[root].source, *theirs = c->nodes.data[other].source;
    if (clash) return mine[part_of(clash)];
    uint32_t found = BERTH_NONE;
    for (int i = BERTH_CONSTRAINT_PARTS - 1; i >= 0; --i)
        if (mine[i] != BERTH_NONE && (found == BERTH_NONE || theirs[i] == BERTH_NONE))
            found = mine[i];
    return found;
}

static void print_head(const berth_constraints *c, const char *clash, const uint32_t roots[2],
                       berth_strbuf *out) {
    if (clash)
        berth_strbuf_addf(out, "%s of the same value or operation is demanded twice:", clash);
    else
        berth_strbuf_addf(out,
                          "the same value or operation is demanded on %s and on %s, and no device "
                          "of the target is both (it has %s):",
                          short_name(c, roots[0]), short_name(c, roots[1]),
                          berth_constraints__devices_text(c->arena, c->target));
}

// A chain ends in front of the edge where it meets the other; one that has no other edge is that
// edge, and then nothing is left to be said of where they meet.
berth_status berth_constraints__explain(berth_constraints *c) {
    const berth_constraint_edge *meet = &c->conflict;
    uint32_t ends[] = {meet->a, meet->b};
    uint32_t roots[] = {berth_constraints_find(c, ends[0]), berth_constraints_find(c, ends[1])};
    berth_strbuf text = berth_strbuf_make(c->arena);
    const char *clash = berth_virtual_device_clash(device_of(c, roots[0]), device_of(c, roots[1]));
    berth_device_id both = 0;
    if (!clash &&
        berth_virtual_device_join_ids(c->module->devices, c->nodes.data[roots[0]].device,
                                      c->nodes.data[roots[1]].device, &both) &&
        !berth_bits_is_empty(berth_constraints_agreeing(c, both))) {
        print_edge(c, meet, &text);
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "functions of different signatures must be the same:%s",
                                 berth_strbuf_text(&text));
    }
    bool said = false;
    print_head(c, clash, roots, &text);
    for (int i = 0; i < 2; ++i) {
        uint32_t source = source_of(c, clash, roots[i], roots[1 - i]);
        chain steps = {{0}};
        if (source != BERTH_NONE) steps = chain_between(c, source, ends[i]);
        uint32_t count = steps.edges.count;
        if (count > 1 && same_reason(steps.edges.data[count - 1], meet)) steps.edges.count--;
        if (count == 0) berth_vec_push(c->arena, &steps.edges, meet);
        said |= same_reason(steps.edges.data[steps.edges.count - 1], meet);
        berth_strbuf_addf(&text, "\n  on %s, because of", short_name(c, roots[i]));
        print_chain(c, &steps, &text);
    }
    if (!said) {
        berth_strbuf_add(&text, "\n  which meet in");
        print_edge(c, meet, &text);
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s", berth_strbuf_text(&text));
}
