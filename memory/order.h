// The order of operations that needs the least memory. A node touches buffers; a buffer is live
// from the first node that touches it to the last one, both included. The peak of an order is the
// largest sum of sizes that are live at one node: the lower bound of every memory plan of it. Plain
// data, with no knowledge of the IR.
//
//   berth_memory_order order;
//   BERTH_TRY(berth_memory_order_solve(arena, &problem, 0, &order));
//   // order.nodes[0..node_count) in the order found; order.peak_bytes <= order.source_bytes
#ifndef BERTH_MEMORY_ORDER_H_
#define BERTH_MEMORY_ORDER_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct berth_memory_order_edge {
    uint32_t before;  // runs before `after`; before < after: the numbering is one valid order
    uint32_t after;
} berth_memory_order_edge;

typedef struct berth_memory_order_buffer {
    uint64_t size_bytes;
    const uint32_t *users;  // nodes that touch it, ascending, each once; at least one
    uint32_t user_count;
} berth_memory_order_buffer;

// At `node`, `to` may take over the bytes of `from`: where `node` is the last one to touch `from`
// and the first one to touch `to`, both together need their size once. Equal sizes; the other users
// of `to` depend on `node`. A buffer takes part in at most one such pair on either side of it;
// earlier entries go first.
typedef struct berth_memory_order_in_place {
    uint32_t node, from, to;
} berth_memory_order_in_place;

typedef struct berth_memory_order_problem {
    uint32_t node_count;
    const berth_memory_order_edge *edges;
    uint32_t edge_count;
    const berth_memory_order_buffer *buffers;
    uint32_t buffer_count;
    const berth_memory_order_in_place *in_place;
    uint32_t in_place_count;
} berth_memory_order_problem;

typedef struct berth_memory_order {
    uint32_t *nodes;             // in the order found; in the caller's arena
    uint64_t source_bytes;       // peak of the order 0, 1, 2, ...
    uint64_t peak_bytes;         // of the order found: at most source_bytes
    uint64_t lower_bound_bytes;  // no order has a lower peak (proven)
    bool proven;                 // peak_bytes is the least
    uint64_t states;             // sets of nodes that the search looked at
} berth_memory_order;

// What state_budget 0 stands for: tens of milliseconds.
#define BERTH_MEMORY_ORDER_DEFAULT_STATES 20000

// The least peak of all orders, or the best that was found: never worse than the given order, which
// is kept where nothing is gained. The same input gives the same order.
//
// Nodes that come before or after all others cut the problem into parts. In each part a best-first
// search over the sets of finished nodes (the states of the dynamic program of Ahn et al.,
// "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices",
// MLSys 2020, section 3.1) by the peak so far: the first complete set has the least peak, and at
// any moment nothing is lower than the lowest open one. A node that frees at least what it adds,
// without exceeding the peak so far, is taken at once. What exceeds the budget goes to a beam
// search.
//
//   state_budget: sets per problem; 0 = the default
//   errors:       INVALID_ARGUMENT for malformed problems
//   ownership:    inside berth_arena_try of `arena`, which owns the result
BERTH_MUST_USE berth_status berth_memory_order_solve(berth_arena *arena,
                                                     const berth_memory_order_problem *problem,
                                                     uint64_t state_budget,
                                                     berth_memory_order *out_order);

// The peak of a given order (a permutation of the nodes), by definition. O(nodes + touches +
// pairs in place). Inside berth_arena_try.
uint64_t berth_memory_order_peak(berth_arena *arena, const berth_memory_order_problem *problem,
                                 const uint32_t *nodes);

#endif  // BERTH_MEMORY_ORDER_H_
