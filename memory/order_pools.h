// The order of operations, and with it the memory of every buffer, by which the bytes that are moved cost least: an order
// decides what is live together, and so what fits into a fast memory. memory/order.h looks for the least peak of one
// memory instead, memory/assign.h for the memories of buffers in one order.
//
//   berth_memory_order_pools found;
//   BERTH_TRY(berth_memory_order_pools_solve(arena, &problem, moved_bytes, pools, 2, INFINITY, 0, &found));
//   // where found.fits: found.nodes is the order; memory/assign.h then sets the pool of each buffer
#ifndef BERTH_MEMORY_ORDER_POOLS_H_
#define BERTH_MEMORY_ORDER_POOLS_H_

#include "memory/assign.h"
#include "memory/order.h"

typedef struct berth_memory_order_pools {
    bool fits;  // an order and pools were found in which nothing exceeds its room
    bool
        proven;  // nothing costs less; where nothing fits: nothing does (or costs less than the limit)
    uint32_t *nodes;  // in the order found; in the caller's arena, NULL where nothing fits
    double cost;      // moved bytes times the cost of their pool; INFINITY where nothing fits
    double bound;     // nothing costs less (proven)
    uint64_t states;  // that the search looked at
} berth_memory_order_pools;

#define BERTH_MEMORY_ORDER_POOLS_DEFAULT_STATES 20000

enum { BERTH_MEMORY_ORDER_POOLS_MOST = 8 };  // pools

// A buffer is in one pool from the first node that touches it to the last; at each node the sizes of what is live in a
// pool are at most its room, as a plan needs that wastes nothing between buffers. A pair in place (problem->in_place)
// that the order allows lies in one pool and needs its size once.
//
// A dynamic program over the sets of finished nodes (Ahn et al., "Ordering Chaos", MLSys 2020) and the pools of what is
// live then: of two ways there the cheaper one is as good for all that follows. It goes level by level, a node each; where a level
// has more states than the budget allows, half of those kept are the cheapest with what is still to come in its
// cheapest pool, half those that have most room left. The bound is what was left out at least.
//   moved_bytes:  [problem->buffer_count] that reads and writes move, >= 0
//   pools:        by rising cost, at most BERTH_MEMORY_ORDER_POOLS_MOST
//   limit_cost:   only what costs less is of interest; INFINITY: anything
//   state_budget: 0 = the default. The same input gives the same result.
//   errors:       INVALID_ARGUMENT for a malformed problem
//   ownership:    inside berth_arena_try of `arena`, which owns the result
BERTH_MUST_USE berth_status berth_memory_order_pools_solve(
    berth_arena *arena, const berth_memory_order_problem *problem, const double *moved_bytes,
    const berth_memory_assign_pool *pools, uint32_t pool_count, double limit_cost,
    uint64_t state_budget, berth_memory_order_pools *out);

#endif  // BERTH_MEMORY_ORDER_POOLS_H_
