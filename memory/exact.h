// Exact solver of static memory allocation: fits (with offsets), cannot fit (proven), or not known
// within the budget; and the least capacity, with proof or bounds. Algorithm and sources:
// docs/memory.md.
//
//   berth_memory_budget budget = {.node_limit = 1000000};
//   berth_memory_verdict verdict;
//   BERTH_TRY(berth_memory_exact_fit(arena, intervals, count, 1 << 20, &budget, offsets,
//   &verdict));
#ifndef BERTH_MEMORY_EXACT_H_
#define BERTH_MEMORY_EXACT_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "memory/interval.h"

typedef enum berth_memory_verdict {
    BERTH_MEMORY_FITS,
    BERTH_MEMORY_CANNOT_FIT,  // proven
    BERTH_MEMORY_UNKNOWN,     // the budget ended first
} berth_memory_verdict;

// Only node_limit: the same result every time. With deadline_ns: as good as the machine was fast.
typedef struct berth_memory_budget {
    uint64_t node_limit;  // 0 = none
    int64_t deadline_ns;  // on berth_clock_ns; 0 = none
    uint64_t nodes;       // out: used so far, counted up
} berth_memory_budget;

// Looks for offsets with every offset + size <= capacity_bytes. Independent parts (in time) with
// more than 2^24 pairs of an interval and a clique it is in are not searched: UNKNOWN, unless
// another part cannot fit. Sets `out_offsets`
// [count] only when it fits.
//   errors: OUT_OF_MEMORY. Inside or outside berth_arena_try; scratch memory is a child arena,
//   freed before return. threads: thread-compatible
BERTH_MUST_USE berth_status berth_memory_exact_fit(berth_arena *arena,
                                                   const berth_memory_interval *intervals,
                                                   uint32_t count, uint64_t capacity_bytes,
                                                   berth_memory_budget *budget,
                                                   uint64_t *out_offsets,
                                                   berth_memory_verdict *out_verdict);

// Looks for the least height. `offsets` [count] must hold a solution (of a heuristic); it is
// replaced by better ones, also when an error is returned. The height is optimal when *out_height
// == *out_lower_bound.
//   out_lower_bound: proven; at least the largest live sum
//   errors, threads: as above
BERTH_MUST_USE berth_status berth_memory_exact_minimize(berth_arena *arena,
                                                        const berth_memory_interval *intervals,
                                                        uint32_t count, berth_memory_budget *budget,
                                                        uint64_t *offsets, uint64_t *out_height,
                                                        uint64_t *out_lower_bound);

#endif  // BERTH_MEMORY_EXACT_H_
