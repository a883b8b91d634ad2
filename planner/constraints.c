#include "planner/constraints.h"

#include <string.h>

berth_constraints *berth_constraints_create(const berth_module *module,
                                            const berth_multi_target *target, berth_arena *arena,
                                            bool scoped) {
    berth_constraints *c = berth_arena_new(arena, berth_constraints);
    c->module = module;
    c->target = target;
    c->arena = arena;
    c->scoped = scoped;
    c->all = berth_bits_below(arena, target->device_count);
    return c;
}

static uint32_t push_node(berth_constraints *c) {
    uint32_t id = c->nodes.count;
    berth_constraint_node node = {.parent = id,
                                  .function = BERTH_NONE,
                                  .allowed = c->all,
                                  .proof = BERTH_NONE,
                                  .proof_edge = BERTH_NONE,
                                  .size = 1};
    for (int i = 0; i < BERTH_CONSTRAINT_PARTS; ++i) node.source[i] = BERTH_NONE;
    berth_vec_push(c->arena, &c->nodes, node);
    return id;
}

uint32_t berth_constraints_node(berth_constraints *c) {
    uint32_t id = push_node(c);
    if (c->scoped) (void)push_node(c);
    return id;
}

uint32_t berth_constraints_function(berth_constraints *c, const uint32_t *nodes,
                                    uint32_t param_count, uint32_t count) {
    uint32_t id = berth_constraints_node(c);
    berth_constraint_function function = {
        .nodes = berth_arena_copy(c->arena, nodes, count * sizeof(*nodes)),
        .param_count = param_count,
        .count = count};
    berth_vec_push(c->arena, &c->functions, function);
    c->nodes.data[id].function = c->functions.count - 1;
    return id;
}

uint32_t berth_constraints_find(const berth_constraints *c, uint32_t node) {
    while (c->nodes.data[node].parent != node) node = c->nodes.data[node].parent;
    return node;
}

// Device and scope of a node, put together from the node and its twin.
berth_device_id berth_constraints_device(const berth_constraints *c, uint32_t node) {
    berth_device_id device = c->nodes.data[berth_constraints_find(c, node)].device, scope = 0;
    if (c->scoped) scope = c->nodes.data[berth_constraints_find(c, node + 1)].device;
    // The parts are disjoint, so that a join cannot fail.
    (void)berth_virtual_device_join_ids(c->module->devices, device, scope, &device);
    return device;
}

static berth_device_id scope_part(const berth_constraints *c, berth_device_id id) {
    berth_virtual_device part = BERTH_VIRTUAL_DEVICE_FREE;
    part.memory_scope = berth_virtual_device_get(c->module->devices, id).memory_scope;
    return berth_virtual_device_intern(c->module->devices, part);
}

static berth_device_id device_part(const berth_constraints *c, berth_device_id id) {
    berth_virtual_device part = berth_virtual_device_get(c->module->devices, id);
    part.memory_scope = NULL;
    return berth_virtual_device_intern(c->module->devices, part);
}

static void later(berth_constraints *c, uint32_t a, uint32_t b, berth_constraint_reason reason) {
    berth_vec_push(c->arena, &c->pending, (berth_constraint_edge){a, b, reason});
}

static void later_both(berth_constraints *c, uint32_t a, uint32_t b,
                       berth_constraint_reason reason) {
    later(c, a, b, reason);
    if (c->scoped) later(c, a + 1, b + 1, reason);
}

// What follows for functions: equal ones agree pairwise; one that is a tuple's field or has a
// device is all in one place.
static bool follow_functions(berth_constraints *c, uint32_t root, uint32_t other,
                             berth_constraint_node before, berth_constraint_reason reason) {
    berth_constraint_node *held = &c->nodes.data[root];
    uint32_t f = before.function, g = c->nodes.data[other].function;
    if (f == BERTH_NONE && g == BERTH_NONE) return true;
    held->function = f != BERTH_NONE ? f : g;
    if (f != BERTH_NONE && g != BERTH_NONE) {
        const berth_constraint_function *x = &c->functions.data[f], *y = &c->functions.data[g];
        if (x->param_count != y->param_count || x->count != y->count) return false;
        for (uint32_t i = 0; i < x->count; ++i) later_both(c, x->nodes[i], y->nodes[i], reason);
    }
    bool was = before.function != BERTH_NONE && before.first_order;
    if (!held->first_order || was) return true;
    const berth_constraint_function *function = &c->functions.data[held->function];
    for (uint32_t i = 0; i < function->count; ++i) later(c, function->nodes[i], root, reason);
    return true;
}

static void take_sources(berth_constraint_node *root, const berth_constraint_node *other) {
    for (int i = 0; i < BERTH_CONSTRAINT_PARTS; ++i)
        if (root->source[i] == BERTH_NONE) root->source[i] = other->source[i];
}

static const berth_bits *find_agreeing(const berth_constraints *c, berth_device_id id) {
    berth_virtual_device device = berth_virtual_device_get(c->module->devices, id);
    uint32_t word_count = berth_bits_word_count(c->target->device_count);
    uint64_t *words = berth_arena_new_array(c->arena, uint64_t, word_count);
    berth_bits *agreeing = berth_arena_new(c->arena, berth_bits);
    device.memory_scope = NULL;
    for (uint32_t d = 0; d < c->target->device_count; ++d)
        if (!berth_virtual_device_clash(device, berth_multi_target_virtual_device(c->target, d)))
            words[d / 64] |= (uint64_t)1 << d % 64;
    *agreeing = berth_bits_from_words(c->arena, words, word_count);
    return agreeing;
}

berth_bits berth_constraints_agreeing(berth_constraints *c, berth_device_id device) {
    while (c->agreeing.count <= device) berth_vec_push(c->arena, &c->agreeing, NULL);
    if (!c->agreeing.data[device]) c->agreeing.data[device] = find_agreeing(c, device);
    return *c->agreeing.data[device];
}

// Those that are allowed where there are any.
static berth_bits preferred(const berth_constraints *c, berth_bits agreeing, berth_bits allowed) {
    berth_bits both = berth_bits_and(c->arena, agreeing, allowed);
    return berth_bits_is_empty(both) ? agreeing : both;
}

berth_bits berth_constraints_candidates(berth_constraints *c, uint32_t node) {
    const berth_constraint_node *root = &c->nodes.data[berth_constraints_find(c, node)];
    return preferred(c, berth_constraints_agreeing(c, root->device), root->allowed);
}

static bool unite(berth_constraints *c, uint32_t a, uint32_t b, berth_constraint_reason reason,
                  bool soft) {
    uint32_t root = berth_constraints_find(c, a), other = berth_constraints_find(c, b);
    if (root == other) return true;
    berth_device_id device = 0;
    if (!berth_virtual_device_join_ids(c->module->devices, c->nodes.data[root].device,
                                       c->nodes.data[other].device, &device))
        return false;
    berth_bits allowed =
        berth_bits_and(c->arena, c->nodes.data[root].allowed, c->nodes.data[other].allowed);
    berth_bits agreeing = berth_constraints_agreeing(c, device);
    if (berth_bits_is_empty(agreeing) || (soft && !berth_bits_meet(agreeing, allowed)))
        return false;
    bool turn_a = c->nodes.data[root].size < c->nodes.data[other].size;
    if (c->nodes.data[root].rank < c->nodes.data[other].rank) {
        uint32_t swap = root;
        root = other;
        other = swap;
    }
    berth_constraint_node *held = &c->nodes.data[root];
    berth_constraint_node before = *held;
    berth_vec_push(c->arena, &c->trail,
                   (berth_constraint_trail){other, root, turn_a ? a : b, before});
    held->device = device;
    held->allowed = allowed;
    held->first_order |= c->nodes.data[other].first_order;
    held->size += c->nodes.data[other].size;
    held->rank += held->rank == c->nodes.data[other].rank;
    take_sources(held, &c->nodes.data[other]);
    c->nodes.data[other].parent = root;
    berth_vec_push(c->arena, &c->edges, (berth_constraint_edge){a, b, reason});
    berth_constraints__prove(c, a, b, c->edges.count - 1, turn_a);
    return follow_functions(c, root, other, before, reason);
}

enum { on_device = 1, on_scope = 2, on_both = 3 };

// Unites a and b and all that follows; a work list, no recursion.
static bool unite_all(berth_constraints *c, uint32_t a, uint32_t b, berth_constraint_reason reason,
                      bool soft, int parts) {
    c->pending.count = 0;
    c->trail.count = 0;
    if (parts & on_device) later(c, a, b, reason);
    if (c->scoped && (parts & on_scope)) later(c, a + 1, b + 1, reason);
    for (uint32_t i = 0; i < c->pending.count; ++i) {
        berth_constraint_edge edge = c->pending.data[i];
        if (unite(c, edge.a, edge.b, edge.reason, soft)) continue;
        c->conflict = edge;
        return false;
    }
    return true;
}

static void undo_to(berth_constraints *c, uint32_t mark) {
    while (c->trail.count > mark) {
        berth_constraint_trail last = c->trail.data[--c->trail.count];
        // Either tree stays a proof of its class whatever its root is, so cutting is enough.
        c->nodes.data[last.cut].proof = BERTH_NONE;
        c->nodes.data[last.cut].proof_edge = BERTH_NONE;
        c->nodes.data[last.child].parent = last.child;
        uint32_t proof = c->nodes.data[last.root].proof;
        uint32_t proof_edge = c->nodes.data[last.root].proof_edge;
        c->nodes.data[last.root] = last.saved;
        c->nodes.data[last.root].proof = proof;
        c->nodes.data[last.root].proof_edge = proof_edge;
        c->edges.count--;
    }
}

static berth_status unite_hard(berth_constraints *c, uint32_t a, uint32_t b,
                               berth_constraint_reason reason, int parts) {
    return unite_all(c, a, b, reason, false, parts) ? BERTH_OK : berth_constraints__explain(c);
}

static bool unite_soft(berth_constraints *c, uint32_t a, uint32_t b, berth_constraint_reason reason,
                       int parts) {
    if (unite_all(c, a, b, reason, true, parts)) return true;
    undo_to(c, 0);
    return false;
}

berth_status berth_constraints_hard(berth_constraints *c, uint32_t a, uint32_t b,
                                    berth_constraint_reason reason) {
    return unite_hard(c, a, b, reason, on_both);
}

berth_status berth_constraints_hard_device(berth_constraints *c, uint32_t a, uint32_t b,
                                           berth_constraint_reason reason) {
    return unite_hard(c, a, b, reason, on_device);
}

berth_status berth_constraints_hard_scope(berth_constraints *c, uint32_t a, uint32_t b,
                                          berth_constraint_reason reason) {
    return unite_hard(c, a, b, reason, on_scope);
}

bool berth_constraints_soft(berth_constraints *c, uint32_t a, uint32_t b,
                            berth_constraint_reason reason) {
    return unite_soft(c, a, b, reason, on_both);
}

bool berth_constraints_soft_device(berth_constraints *c, uint32_t a, uint32_t b,
                                   berth_constraint_reason reason) {
    return unite_soft(c, a, b, reason, on_device);
}

bool berth_constraints_soft_scope(berth_constraints *c, uint32_t a, uint32_t b,
                                  berth_constraint_reason reason) {
    return unite_soft(c, a, b, reason, on_scope);
}

berth_status berth_constraints_fix(berth_constraints *c, uint32_t node, berth_device_id device,
                                   berth_constraint_reason reason) {
    if (!device) return BERTH_OK;
    uint32_t fixed = berth_constraints_node(c);
    berth_vec_push(c->arena, &c->origins, (berth_constraint_origin){fixed, reason});
    berth_constraint_node *held = &c->nodes.data[fixed];
    berth_virtual_device parts = berth_virtual_device_get(c->module->devices, device);
    held->device = c->scoped ? device_part(c, device) : device;
    held->first_order = true;
    if (parts.device_type != BERTH_DEVICE_FREE) held->source[0] = fixed;
    if (parts.virtual_id != BERTH_VIRTUAL_ID_FREE) held->source[1] = fixed;
    if (parts.has_target) held->source[2] = fixed;
    if (c->scoped && parts.memory_scope) {
        held[1].device = scope_part(c, device);
        held[1].source[3] = fixed + 1;
    }
    int which = (held->device ? on_device : 0) | (parts.memory_scope ? on_scope : 0);
    return unite_hard(c, node, fixed, reason, which);
}

// The device that a class goes to whose device is `known` so far: the default's where that is among
// the candidates, else the first that computes.
static berth_device_id complete(berth_constraints *c, berth_bits allowed, berth_device_id known,
                                berth_device_id both) {
    berth_bits agreeing = berth_constraints_agreeing(c, both);
    bool elsewhere = !berth_bits_meet(agreeing, allowed) &&
                     berth_bits_meet(berth_constraints_agreeing(c, known), allowed);
    if (elsewhere || berth_bits_is_empty(agreeing)) agreeing = berth_constraints_agreeing(c, known);
    agreeing = preferred(c, agreeing, allowed);
    uint32_t first = berth_bits_first(agreeing);
    for (uint32_t d = first; d != BERTH_BITS_END; d = berth_bits_next(agreeing, d)) {
        if (c->target->devices[d].host_only) continue;
        first = d;
        break;
    }
    if (!both || first == BERTH_BITS_END) return known;
    return berth_virtual_device_intern(c->module->devices,
                                       berth_multi_target_virtual_device(c->target, first));
}

void berth_constraints_default(berth_constraints *c, uint32_t node, berth_device_id device,
                               const char *why) {
    const berth_constraint_node *held = &c->nodes.data[berth_constraints_find(c, node)];
    if (held->function != BERTH_NONE && !held->first_order)
        return;  // in as many places as it likes
    berth_device_id both = berth_virtual_device_default_ids(
        c->module->devices, berth_constraints_device(c, node), device);
    if (c->scoped) c->nodes.data[berth_constraints_find(c, node + 1)].device = scope_part(c, both);
    berth_constraint_node *root = &c->nodes.data[berth_constraints_find(c, node)];
    both = complete(c, root->allowed, root->device, device_part(c, both));
    if (root->device == both) return;
    root->device = both;
    if (!root->why) root->why = why;
}
