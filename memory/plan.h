// Static memory planning as the compiler uses it: offsets for buffers with known lifetimes, in one
// or more pools. Works on plain intervals, with no knowledge of the IR.
#ifndef BERTH_MEMORY_PLAN_H_
#define BERTH_MEMORY_PLAN_H_

#include <stdint.h>

#include "base/arena.h"

typedef struct berth_memory_plan_buffer {
    uint32_t first_use_step;  // first and last step that touch it, inclusive
    uint32_t last_use_step;
    uint64_t size_bytes;       // > 0
    uint32_t alignment_bytes;  // power of two
    uint32_t pool;             // index into the pools
} berth_memory_plan_buffer;

typedef struct berth_memory_plan_pool {
    uint64_t capacity_bytes;     // 0 = unlimited
    uint64_t peak_bytes;         // out
    uint64_t lower_bound_bytes;  // out: the largest sum of sizes live at one step
    uint32_t peak_step;          // out: a step where that sum is reached
} berth_memory_plan_pool;

// Sets out_offsets[i] for every buffer: buffers of one pool whose lifetimes overlap do not overlap
// in memory.
//   node_budget: search nodes to spend on getting below the greedy plan; 0 = the default. The same
//   input gives the same
//                plan.
//   errors: OUT_OF_MEMORY when a pool's capacity is below the best plan found (the message says
//   what would do);
//           INVALID_ARGUMENT for a malformed buffer.
// Inside berth_arena_try of `scratch`.
BERTH_MUST_USE berth_status berth_memory_plan_solve(berth_arena *scratch,
                                                    const berth_memory_plan_buffer *buffers,
                                                    uint32_t buffer_count,
                                                    berth_memory_plan_pool *pools,
                                                    uint32_t pool_count, uint64_t node_budget,
                                                    uint64_t *out_offsets);

#endif  // BERTH_MEMORY_PLAN_H_
