// Which of several memories each buffer lives in: what moves most bytes for each of its own goes into
// the fast ones (scratch-pad allocation; Avissar, Barua and Stewart, "An Optimal Memory Allocation
// Scheme for Scratch-Pad-Based Embedded Systems", 2002, with buffers that follow each other in time).
//
//   berth_memory_assign_pool pools[] = {{.room_bytes = 65536, .cost_per_byte = 1},    // DTCM
//                                       {.room_bytes = 262144, .cost_per_byte = 3}};  // SRAM
//   berth_memory_assignment found;
//   BERTH_TRY(berth_memory_assign(arena, buffers, moved_bytes, count, pools, 2, 1, 0, &found));
//   // buffers[i].pool is set: memory/plan.h places them
#ifndef BERTH_MEMORY_ASSIGN_H_
#define BERTH_MEMORY_ASSIGN_H_

#include <stdbool.h>

#include "memory/plan.h"

typedef struct berth_memory_assign_pool {
    uint64_t room_bytes;
    double cost_per_byte;  // moved; finite, >= 0
} berth_memory_assign_pool;

typedef struct berth_memory_assignment {
    bool fits;     // every pool has a plan within its room
    bool optimal;  // proven: no assignment costs less
    double cost;   // moved bytes times the cost of their pool
    double bound;  // no assignment costs less (proven)
    uint64_t nodes;
} berth_memory_assignment;

#define BERTH_MEMORY_ASSIGN_DEFAULT_NODES 20000

// Sets `pool` of every buffer so that each pool's plan (berth_memory_plan_solve with its defaults) is within
// its room and the cost is low. A search in depth, densest buffers first, the cheapest pool first; its bound
// is the fractional knapsack of buffers that are live at one step, for sets of such buffers that have none in
// common. Where nothing fits, `fits` is false: all pools but `last` are within their rooms, and this one has as little
// as was found to be possible (by halves, for up to 256 buffers).
//   moved_bytes: [count] that reads and writes move while the buffer lives, >= 0
//   pools:       by rising cost
//   node_limit:  of the search; 0 = the default, fewer where there are very many buffers. The same input
//                gives the same result.
//   errors:      INVALID_ARGUMENT a malformed buffer
//   ownership:   inside berth_arena_try of `scratch`; nothing in the results refers to it
BERTH_MUST_USE berth_status berth_memory_assign(berth_arena *scratch,
                                                berth_memory_plan_buffer *buffers,
                                                const double *moved_bytes, uint32_t buffer_count,
                                                const berth_memory_assign_pool *pools,
                                                uint32_t pool_count, uint32_t last,
                                                uint64_t node_limit, berth_memory_assignment *out);

#endif  // BERTH_MEMORY_ASSIGN_H_
