// Problems of memory/order.h, built a node and a buffer at a time, and random ones.
#ifndef BERTH_TESTS_MEMORY_RANDOM_ORDER_H_
#define BERTH_TESTS_MEMORY_RANDOM_ORDER_H_

#include "memory/order.h"
#include "tests/memory/random_problem.h"

enum { ORDER_MOST_NODES = 250, ORDER_MOST_LISTS = 1200 };

typedef struct order_builder {
    berth_memory_order_problem p;
    berth_memory_order_edge edges[ORDER_MOST_LISTS * 4];
    berth_memory_order_buffer buffers[ORDER_MOST_LISTS];
    uint32_t users[ORDER_MOST_LISTS][ORDER_MOST_NODES];
    berth_memory_order_in_place in_place[ORDER_MOST_LISTS];
} order_builder;

order_builder *order_start(berth_arena *arena, uint32_t nodes);
void order_add_edge(order_builder *b, uint32_t before, uint32_t after);
uint32_t order_add_buffer(order_builder *b, uint64_t size_bytes, uint32_t node);
void order_use(order_builder *b, uint32_t buffer, uint32_t node);

// Every node makes a buffer (some none), reads those of up to three of the `reach` nodes before it,
// may take over one of them, may have scratch memory, and may write a part of a shared buffer.
order_builder *random_order(berth_arena *arena, uint64_t seed, uint32_t nodes, uint32_t reach);

// Whether it is a permutation of the nodes that no edge goes against.
bool order_is_valid(const berth_memory_order_problem *p, const uint32_t *nodes);

// Calls `visit` with every order of the nodes that no edge goes against.
void order_try_all(const berth_memory_order_problem *p,
                   void (*visit)(const uint32_t *nodes, void *user), void *user);

#endif  // BERTH_TESTS_MEMORY_RANDOM_ORDER_H_
