// The steps as a problem of memory/order.h.
#include <string.h>

#include "compiler/package/package.h"
#include "memory/order.h"

// What a step does to bytes of a root storage.
typedef struct access {
    uint32_t node;  // of the step
    bool write;
    uint64_t begin_bytes, end_bytes;
} access;

typedef struct access_list {
    BERTH_VEC(access) items;  // in order of steps
} access_list;

typedef struct orderer {
    berth_packager *p;
    berth_arena *arena;  // scratch
    uint32_t *node_of;   // per step, BERTH_NO_INDEX: removed
    uint32_t *step_of;   // per node
    berth_sharing sharing;
    access_list *lists;  // per storage
    BERTH_VEC(berth_memory_order_edge) edges;
    BERTH_VEC(berth_memory_order_buffer) buffers;
    BERTH_VEC(berth_memory_order_in_place) in_place;
    uint32_t *buffer_of;  // per storage, BERTH_NO_INDEX
} orderer;

static uint32_t find_root(const orderer *o, uint32_t tensor, uint64_t *out_offset) {
    *out_offset = 0;
    return berth_packager__root(&o->sharing, o->p->storage_of.data[tensor], out_offset);
}

static void collect_accesses(orderer *o) {
    berth_packager *p = o->p;
    o->lists = berth_arena_new_array(o->arena, access_list, p->storages.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        uint32_t bindings = p->facts.data[i].removed ? 0 : berth_packager__binding_count(p, i);
        for (uint32_t b = 0; b < bindings; ++b) {
            uint32_t tensor = p->steps.data[i].bindings[b];
            uint64_t offset = 0;
            uint32_t root = find_root(o, tensor, &offset);
            access now = {o->node_of[i], p->facts.data[i].written[b], offset,
                          offset + p->tensors.data[tensor].size_bytes};
            berth_vec_push(o->arena, &o->lists[root].items, now);
        }
    }
}

static bool overlap(const access *a, const access *b) {
    return a->begin_bytes < b->end_bytes && b->begin_bytes < a->end_bytes;
}

static bool covers(const access *a, const access *b) {
    return a->begin_bytes <= b->begin_bytes && a->end_bytes >= b->end_bytes;
}

// An earlier step comes first where one of the two writes what the other touches. Behind a write of
// all those bytes nothing is to be said: what comes then depends on that write. (A long chain of
// operations in the same bytes would have edges between all pairs.)
static void add_edges(orderer *o, const access_list *list) {
    for (uint32_t i = 0; i < list->items.count; ++i) {
        const access *earlier = &list->items.data[i];  // by node, ascending
        for (uint32_t k = i + 1; k < list->items.count; ++k) {
            const access *later = &list->items.data[k];
            if (later->node == earlier->node || !(earlier->write || later->write) ||
                !overlap(earlier, later))
                continue;
            berth_memory_order_edge edge = {earlier->node, later->node};
            berth_vec_push(o->arena, &o->edges, edge);
            if (later->write && covers(later, earlier)) break;
        }
    }
}

static void add_buffer(orderer *o, uint32_t storage) {
    const access_list *list = &o->lists[storage];
    const berth_storage *held = &o->p->storages.data[storage];
    if (held->usage != BERTH_POOL_WORKSPACE || list->items.count == 0) return;
    uint32_t *users = berth_arena_new_array(o->arena, uint32_t, list->items.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->items.count; ++i)
        if (count == 0 || users[count - 1] != list->items.data[i].node)
            users[count++] = list->items.data[i].node;
    o->buffer_of[storage] = o->buffers.count;
    berth_memory_order_buffer buffer = {held->size_bytes, users, count};
    berth_vec_push(o->arena, &o->buffers, buffer);
}

static bool is_whole(const orderer *o, uint32_t tensor, uint32_t root, uint64_t offset) {
    return offset == 0 &&
           o->p->tensors.data[tensor].size_bytes == o->p->storages.data[root].size_bytes;
}

// Two accesses to the front of a list.
static void put_before(orderer *o, access_list *list, const access first[2]) {
    uint32_t count = list->items.count;
    berth_vec_push(o->arena, &list->items, first[0]);
    berth_vec_push(o->arena, &list->items, first[1]);
    memmove(list->items.data + 2, list->items.data, count * sizeof(access));
    list->items.data[0] = first[0];
    list->items.data[1] = first[1];
}

// Where a result is an output, an operand that only it reads can be there too, in every order.
static void move_to_outputs(orderer *o) {
    berth_packager *p = o->p;
    for (uint32_t i = p->in_place.count; i-- > 0;) {
        const berth_in_place_step *pair = &p->in_place.data[i];
        uint32_t node = o->node_of[pair->step];
        uint64_t from_offset = 0;
        uint64_t to_offset = 0;
        uint32_t from = find_root(o, pair->from, &from_offset);
        uint32_t to = find_root(o, pair->to, &to_offset);
        const access_list *list = &o->lists[from];
        if (node == BERTH_NO_INDEX || p->storages.data[to].usage != BERTH_POOL_IO ||
            p->storages.data[from].usage != BERTH_POOL_WORKSPACE ||
            p->storages.data[from].place != p->storages.data[to].place || list->items.count != 2 ||
            list->items.data[1].node != node || !is_whole(o, pair->to, to, to_offset) ||
            !is_whole(o, pair->from, from, from_offset) ||
            p->storages.data[to].size_bytes != p->storages.data[from].size_bytes ||
            o->lists[to].items.data[0].node != node)
            continue;
        o->sharing.into[from] = to;
        o->sharing.offset_bytes[from] = 0;
        put_before(o, &o->lists[to], list->items.data);
        o->lists[from] = (access_list){0};
    }
}

static void add_in_place(orderer *o) {
    berth_packager *p = o->p;
    for (uint32_t i = 0; i < p->in_place.count; ++i) {
        const berth_in_place_step *pair = &p->in_place.data[i];
        uint32_t node = o->node_of[pair->step];
        uint64_t from_offset = 0;
        uint64_t to_offset = 0;
        uint32_t from = find_root(o, pair->from, &from_offset);
        uint32_t to = find_root(o, pair->to, &to_offset);
        if (node == BERTH_NO_INDEX || from == to || o->buffer_of[from] == BERTH_NO_INDEX ||
            o->buffer_of[to] == BERTH_NO_INDEX || !is_whole(o, pair->from, from, from_offset) ||
            !is_whole(o, pair->to, to, to_offset) ||
            p->storages.data[from].size_bytes != p->storages.data[to].size_bytes ||
            p->storages.data[from].place != p->storages.data[to].place ||
            o->lists[to].items.data[0].node != node)
            continue;
        berth_memory_order_in_place whole = {node, o->buffer_of[from], o->buffer_of[to]};
        berth_vec_push(o->arena, &o->in_place, whole);
    }
}

static uint32_t number_nodes(orderer *o) {
    berth_packager *p = o->p;
    uint32_t count = 0;
    o->node_of = berth_arena_new_array(o->arena, uint32_t, p->steps.count);
    o->step_of = berth_arena_new_array(o->arena, uint32_t, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        o->node_of[i] = p->facts.data[i].removed ? BERTH_NO_INDEX : count;
        if (!p->facts.data[i].removed) o->step_of[count++] = i;
    }
    return count;
}

static berth_memory_order_problem problem_of(const orderer *o, uint32_t node_count) {
    return (berth_memory_order_problem){.node_count = node_count,
                                        .edges = o->edges.data,
                                        .edge_count = o->edges.count,
                                        .buffers = o->buffers.data,
                                        .buffer_count = o->buffers.count,
                                        .in_place = o->in_place.data,
                                        .in_place_count = o->in_place.count};
}

// Nodes of the problem back to steps, in the packager's arena.
static uint32_t *steps_of(const orderer *o, const uint32_t *nodes, uint32_t node_count) {
    uint32_t *steps = berth_arena_new_array(o->p->arena, uint32_t, node_count);
    for (uint32_t i = 0; i < node_count; ++i) steps[i] = o->step_of[nodes[i]];
    return steps;
}

static berth_status solve(orderer *o, uint32_t node_count, berth_memory_order *out_order) {
    berth_memory_order_problem problem = problem_of(o, node_count);
    BERTH_TRY(berth_memory_order_solve(o->arena, &problem, 0, out_order));
    out_order->nodes = steps_of(o, out_order->nodes, node_count);
    return BERTH_OK;
}

const berth_memory_order_edge *berth_packager__find_dependencies(berth_packager *p,
                                                                 const berth_sharing *sharing,
                                                                 berth_arena *arena,
                                                                 uint32_t *out_count) {
    orderer o = {.p = p, .arena = arena, .sharing = *sharing};
    number_nodes(&o);
    collect_accesses(&o);
    for (uint32_t i = 0; i < p->storages.count; ++i) add_edges(&o, &o.lists[i]);
    *out_count = o.edges.count;
    return o.edges.data;
}

static bool on_several_devices(const berth_packager *p) {
    for (uint32_t i = 1; i < p->steps.count; ++i)
        if (p->steps.data[i].device != p->steps.data[0].device) return true;
    return false;
}

// The problem of all steps; the number of its nodes.
static uint32_t make_problem(orderer *o, const berth_sharing *sharing) {
    uint32_t count = o->p->storages.count;
    o->arena = berth_arena_create_child(o->p->arena);
    o->sharing.into = berth_arena_copy(o->arena, sharing->into, count * sizeof(*sharing->into));
    o->sharing.offset_bytes =
        berth_arena_copy(o->arena, sharing->offset_bytes, count * sizeof(*sharing->offset_bytes));
    o->buffer_of = berth_arena_new_array(o->arena, uint32_t, count);
    uint32_t node_count = number_nodes(o);
    memset(o->buffer_of, 0xff, count * sizeof(*o->buffer_of));
    collect_accesses(o);
    move_to_outputs(o);
    for (uint32_t i = 0; i < count; ++i) {
        add_edges(o, &o->lists[i]);
        add_buffer(o, i);
    }
    add_in_place(o);
    return node_count;
}

berth_status berth_packager__find_order(berth_packager *p, const berth_sharing *sharing,
                                        berth_memory_order *out_order) {
    *out_order = (berth_memory_order){0};
    if (on_several_devices(p)) return BERTH_OK;
    orderer o = {.p = p};
    uint32_t node_count = make_problem(&o, sharing);
    berth_status status = solve(&o, node_count, out_order);
    berth_arena_destroy(o.arena);
    return status;
}

// ---- several memories ---------------------------------------------------------------------------

// Private arrays are there all the time.
static void add_private_arrays(orderer *o, uint32_t place, uint32_t node_count) {
    uint32_t own = berth_packager__memory(o->p, place, BERTH_POOL_WORKSPACE);
    uint64_t size_bytes = berth_packager__scratch_bytes(o->p, own);
    if (size_bytes == 0) return;
    uint32_t *users = berth_arena_new_array(o->arena, uint32_t, node_count);
    for (uint32_t i = 0; i < node_count; ++i) users[i] = i;
    berth_vec_push(o->arena, &o->buffers,
                   ((berth_memory_order_buffer){size_bytes, users, node_count}));
}

// Per buffer of the problem.
static double *count_moves(const orderer *o) {
    const berth_packager *p = o->p;
    double *moved_bytes = berth_arena_new_array(o->arena, double, o->buffers.count + 1);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const berth_step_facts *facts = &p->facts.data[i];
        uint32_t bindings = facts->removed ? 0 : berth_packager__binding_count(p, i);
        for (uint32_t b = 0; b < bindings; ++b) {
            uint32_t tensor = p->steps.data[i].bindings[b];
            uint64_t offset = 0;
            uint32_t buffer = o->buffer_of[find_root(o, tensor, &offset)];
            if (buffer == BERTH_NO_INDEX) continue;
            moved_bytes[buffer] += facts->moved_bytes ? facts->moved_bytes[b]
                                                      : (double)p->tensors.data[tensor].size_bytes;
        }
        moved_bytes[o->buffers.count] += facts->scratch_moved_bytes;
    }
    return moved_bytes;
}

// What is in other memories than those to choose from takes no part.
static void leave_others_out(orderer *o, uint32_t place, double *moved_bytes) {
    for (uint32_t i = 0; i < o->p->storages.count; ++i) {
        uint32_t buffer = o->buffer_of[i];
        if (buffer == BERTH_NO_INDEX || o->p->storages.data[i].place == place) continue;
        o->buffers.data[buffer].size_bytes = 0;
        moved_bytes[buffer] = 0;
    }
}

berth_status berth_packager__find_order_of_memories(berth_packager *p, const berth_sharing *sharing,
                                                    uint32_t place,
                                                    const berth_packager_memories *memories,
                                                    berth_memory_order_pools *out_order) {
    *out_order = (berth_memory_order_pools){0};
    if (on_several_devices(p) || memories->pool_count < 2) return BERTH_OK;
    orderer o = {.p = p};
    uint32_t node_count = make_problem(&o, sharing);
    // Those of private arrays, which are the last buffer where there are any, are counted last.
    double *moved_bytes = count_moves(&o);
    leave_others_out(&o, place, moved_bytes);
    add_private_arrays(&o, place, node_count);
    berth_memory_order_problem problem = problem_of(&o, node_count);
    berth_status status =
        berth_memory_order_pools_solve(o.arena, &problem, moved_bytes, memories->pools,
                                       memories->pool_count, memories->cost, 0, out_order);
    if (!status && out_order->fits) out_order->nodes = steps_of(&o, out_order->nodes, node_count);
    berth_arena_destroy(o.arena);
    return status;
}
