#include "tests/memory/random_order.h"

#include <string.h>

bool order_is_valid(const berth_memory_order_problem *p, const uint32_t *nodes) {
    uint32_t position[ORDER_MOST_NODES];
    memset(position, 0xff, sizeof(position));
    for (uint32_t i = 0; i < p->node_count; ++i) {
        if (nodes[i] >= p->node_count || position[nodes[i]] != UINT32_MAX) return false;
        position[nodes[i]] = i;
    }
    for (uint32_t i = 0; i < p->edge_count; ++i)
        if (position[p->edges[i].before] > position[p->edges[i].after]) return false;
    return true;
}

void order_add_edge(order_builder *b, uint32_t before, uint32_t after) {
    b->edges[b->p.edge_count++] = (berth_memory_order_edge){before, after};
}

uint32_t order_add_buffer(order_builder *b, uint64_t size_bytes, uint32_t node) {
    uint32_t index = b->p.buffer_count++;
    b->users[index][0] = node;
    b->buffers[index] = (berth_memory_order_buffer){size_bytes, b->users[index], 1};
    return index;
}

void order_use(order_builder *b, uint32_t buffer, uint32_t node) {
    berth_memory_order_buffer *held = &b->buffers[buffer];
    if (b->users[buffer][held->user_count - 1] == node) return;
    b->users[buffer][held->user_count++] = node;
}

order_builder *order_start(berth_arena *arena, uint32_t nodes) {
    order_builder *b = berth_arena_new(arena, order_builder);
    b->p = (berth_memory_order_problem){
        .node_count = nodes, .edges = b->edges, .buffers = b->buffers, .in_place = b->in_place};
    return b;
}

order_builder *random_order(berth_arena *arena, uint64_t seed, uint32_t nodes, uint32_t reach) {
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    order_builder *b = order_start(arena, nodes);
    uint32_t made[ORDER_MOST_NODES];
    uint32_t shared = UINT32_MAX;
    for (uint32_t node = 0; node < nodes; ++node) {
        uint64_t size = (uint64_t)1 << random_next(&state) % 4;
        made[node] = random_next(&state) % 8 == 0 ? UINT32_MAX : order_add_buffer(b, size, node);
        uint32_t readings = (uint32_t)(random_next(&state) % 4);
        for (uint32_t i = 0; i < readings && node > 0; ++i) {
            uint32_t span = node < reach ? node : reach;
            uint32_t other = node - 1 - (uint32_t)(random_next(&state) % span);
            order_add_edge(b, other, node);
            if (made[other] == UINT32_MAX) continue;
            order_use(b, made[other], node);
            if (made[node] != UINT32_MAX && b->buffers[made[other]].size_bytes == size)
                b->in_place[b->p.in_place_count++] =
                    (berth_memory_order_in_place){node, made[other], made[node]};
        }
        if (random_next(&state) % 6 == 0) order_add_buffer(b, 1 + random_next(&state) % 5, node);
        if (random_next(&state) % 5 == 0) {
            if (shared == UINT32_MAX)
                shared = order_add_buffer(b, 1 + random_next(&state) % 9, node);
            else
                order_use(b, shared, node);
        }
    }
    return b;
}

typedef struct orders {
    const berth_memory_order_problem *p;
    void (*visit)(const uint32_t *nodes, void *user);
    void *user;
    uint32_t nodes[ORDER_MOST_NODES];
    uint32_t count;
} orders;

static void try_from(orders *o) {
    if (o->count == o->p->node_count) {
        o->visit(o->nodes, o->user);
        return;
    }
    for (uint32_t node = 0; node < o->p->node_count; ++node) {
        bool free = true;
        for (uint32_t i = 0; i < o->count; ++i) free &= o->nodes[i] != node;
        for (uint32_t e = 0; e < o->p->edge_count && free; ++e) {
            bool done = o->p->edges[e].after != node;
            for (uint32_t i = 0; i < o->count; ++i) done |= o->nodes[i] == o->p->edges[e].before;
            free = done;
        }
        if (!free) continue;
        o->nodes[o->count++] = node;
        try_from(o);
        o->count--;
    }
}

void order_try_all(const berth_memory_order_problem *p,
                   void (*visit)(const uint32_t *nodes, void *user), void *user) {
    orders all = {.p = p, .visit = visit, .user = user};
    try_from(&all);
}
