// Intervals: what every solver of static memory allocation works on. Plain data: no ids, no pools,
// no IR.
//
// A buffer is live in the half-open time [lower, upper); two buffers that are live at one moment
// must not share memory. The problem of placing them with the least height is dynamic storage
// allocation (Garey and Johnson SR2), NP-hard. Included by the solvers, the plan and their tests.
//
//   berth_memory_peak peak = berth_memory_live_peak(arena, intervals, count);
//   // peak.size_bytes is a lower bound of the height of every solution
#ifndef BERTH_MEMORY_INTERVAL_H_
#define BERTH_MEMORY_INTERVAL_H_

#include <stdint.h>

#include "base/arena.h"

typedef struct berth_memory_interval {
    int64_t lower;  // live in [lower, upper), lower < upper
    int64_t upper;
    uint64_t size_bytes;       // at least 1
    uint64_t alignment_bytes;  // power of two, at least 1; offsets are multiples of it
} berth_memory_interval;

// Sum of all sizes rounded up to their alignments: no solver needs more. Limit of
// berth_memory_total, so that no sum of offsets and sizes overflows 64 bits.
#define BERTH_MEMORY_TOTAL_LIMIT_BYTES ((uint64_t)1 << 62)

// Sum of sizes, each with alignment - 1 added. UINT64_MAX when it is above
// BERTH_MEMORY_TOTAL_LIMIT_BYTES.
uint64_t berth_memory_total(const berth_memory_interval *intervals, uint32_t count);

typedef struct berth_memory_peak {
    uint64_t size_bytes;  // largest sum of sizes live at one moment: the lower bound of the height
    int64_t time;         // first moment with that sum; 0 when there are no intervals
} berth_memory_peak;

// O(n log n). Scratch memory comes from a child of `arena`; call inside berth_arena_try.
berth_memory_peak berth_memory_live_peak(berth_arena *arena, const berth_memory_interval *intervals,
                                         uint32_t count);

// Time in steps that matter: the maximal sets of intervals that are live together ("cliques"), in
// order of time. Two intervals are live together exactly when their ranges of cliques intersect. At
// most `count` cliques.
typedef struct berth_memory_cliques {
    uint32_t count;
    uint32_t *first;  // [intervals] first clique of each interval
    uint32_t *end;    // [intervals] one after its last clique
} berth_memory_cliques;

// O(n log n). The arrays live in `arena`.
berth_memory_cliques berth_memory_find_cliques(berth_arena *arena,
                                               const berth_memory_interval *intervals,
                                               uint32_t count);

// Lower bound of the height of every solution: the largest live sum, or what the alignments need
// (memory/measure.h). O(n log n) for each alignment that occurs. Inside berth_arena_try.
uint64_t berth_memory_lower_bound(berth_arena *arena, const berth_memory_interval *intervals,
                                  uint32_t count);

// Intervals times the cliques they are in: what a node of the exact search looks at.
uint64_t berth_memory_membership(const berth_memory_cliques *cliques, uint32_t interval_count);

static inline uint64_t berth_memory_align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

#endif  // BERTH_MEMORY_INTERVAL_H_
