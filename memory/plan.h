// Static memory planning as the compiler uses it: offsets for buffers with known lifetimes, in one
// or more pools. Works on plain intervals, with no knowledge of the IR.
//
//   berth_memory_plan_pool pool = {.capacity_bytes = 0};
//   BERTH_TRY(berth_memory_plan_solve(arena, buffers, count, &pool, 1, 0, offsets));
//   // pool.peak_bytes to allocate; buffer i at offsets[i]
#ifndef BERTH_MEMORY_PLAN_H_
#define BERTH_MEMORY_PLAN_H_

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct berth_memory_plan_buffer {
    uint32_t first_use_step;  // first and last step that touch it, inclusive
    uint32_t last_use_step;
    uint64_t size_bytes;       // > 0
    uint32_t alignment_bytes;  // power of two
    uint32_t pool;             // index into the pools
} berth_memory_plan_buffer;

typedef struct berth_memory_plan_pool {
    uint64_t capacity_bytes;     // 0 = unlimited
    uint64_t peak_bytes;         // out: height of the plan
    uint64_t lower_bound_bytes;  // out: no plan is lower (proven); at least the largest live sum
    uint64_t live_bytes;         // out: the largest sum of sizes live at one step
    uint32_t peak_step;          // out: the first step where that sum is reached
    const char *strategy;        // out: what found the plan (static text)
} berth_memory_plan_pool;

// What node_budget 0 stands for: about ten milliseconds of search, spent only when the heuristics
// do not reach the lower bound. At most so many nodes, and fewer (or none) where a node costs more:
// its cost grows with the buffers times the steps they live.
#define BERTH_MEMORY_PLAN_DEFAULT_NODES 2000
#define BERTH_MEMORY_PLAN_DEFAULT_WORK ((uint64_t)8 << 20)

// Sets out_offsets[i] for every buffer: buffers of one pool whose lifetimes overlap do not overlap
// in memory. The heuristics of memory/greedy.h, then the exact search of memory/exact.h.
//   node_budget: search nodes per pool; 0 = the default. The same input gives the same plan.
//   errors:      OUT_OF_MEMORY when a pool's capacity is below the best plan found (the message
//   says
//                what would do, and whether it is proven that nothing less does; pools and
//                out_offsets are set nevertheless); INVALID_ARGUMENT for a malformed buffer
//   ownership:   inside berth_arena_try of `scratch`; nothing in the results refers to it
BERTH_MUST_USE berth_status berth_memory_plan_solve(berth_arena *scratch,
                                                    const berth_memory_plan_buffer *buffers,
                                                    uint32_t buffer_count,
                                                    berth_memory_plan_pool *pools,
                                                    uint32_t pool_count, uint64_t node_budget,
                                                    uint64_t *out_offsets);

// The buffers of `pool` that are live at `step`, largest first (at a pool's peak_step: those that
// set its lower bound). Returns their number; the indices live in `arena`. Inside berth_arena_try.
uint32_t berth_memory_plan_live(berth_arena *arena, const berth_memory_plan_buffer *buffers,
                                uint32_t buffer_count, uint32_t pool, uint32_t step,
                                uint32_t **out_indices);

#endif  // BERTH_MEMORY_PLAN_H_
