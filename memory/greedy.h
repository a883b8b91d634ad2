// Heuristics of static memory allocation.
//
// First fit in an order of decreasing size, conflicts, area or duration, with and without filling
// the gaps below what is already placed; and the skyline heuristic for large problems. All
// deterministic.
//
//   uint64_t height = berth_memory_greedy_best(arena, intervals, count, offsets, &name);
#ifndef BERTH_MEMORY_GREEDY_H_
#define BERTH_MEMORY_GREEDY_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "memory/interval.h"

// "size gaps" (by size, lowest gap that is large enough), "size stack" (by size, on top of
// everything in conflict), "conflicts ...", "area ...", "duration ...", "skyline duration",
// "skyline area", "skyline size".
uint32_t berth_memory_greedy_count(void);
const char *berth_memory_greedy_name(uint32_t heuristic);

// Places all intervals; returns the height, or UINT64_MAX when the heuristic does not take this
// problem (the ones that fill gaps look at every pair live together, and take at most
// BERTH_MEMORY_GREEDY_PAIR_LIMIT).
//   complexity: gaps O(pairs log n); stack O(n log n), conflicts of all pairs counted in O(n log
//   n); skyline O(n log n)
//               placements, each with a search in a k-d tree (O(sqrt n) at worst)
//   ownership:  scratch memory from a child of `arena`; inside berth_arena_try
uint64_t berth_memory_greedy(berth_arena *arena, const berth_memory_interval *intervals,
                             uint32_t count, uint32_t heuristic, uint64_t *out_offsets);

#define BERTH_MEMORY_GREEDY_PAIR_LIMIT ((uint64_t)1 << 23)

// The lowest of all heuristics (the first of equals); stops early when one reaches the lower
// bound. For more than BERTH_MEMORY_GREEDY_FAST_COUNT intervals or FAST_PAIRS pairs live together
// only the fast ones: the skylines, and "size gaps" up to a quarter of the limit of pairs.
// *out_name is its name.
uint64_t berth_memory_greedy_best(berth_arena *arena, const berth_memory_interval *intervals,
                                  uint32_t count, uint64_t *out_offsets, const char **out_name);

#define BERTH_MEMORY_GREEDY_FAST_COUNT 20000
#define BERTH_MEMORY_GREEDY_FAST_PAIRS ((uint64_t)1 << 18)

#endif  // BERTH_MEMORY_GREEDY_H_
