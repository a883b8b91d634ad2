// Buffers that are all live together, one on top of another: the least height of such a stack when
// they have different alignments. A bound for every clique. Private to memory/.
#ifndef BERTH_MEMORY_STACK_H_
#define BERTH_MEMORY_STACK_H_

#include <stdint.h>

#include "base/arena.h"
#include "memory/measure.h"

enum { BERTH_MEMORY_STACK_LIMIT = 64 };

// Lower bound of the height of every stack of `count` spans (at most BERTH_MEMORY_STACK_LIMIT; all
// taken as live together). `enough` is a bound that is known already: when a stack that high is
// found, it is returned.
//   A* over the sets of stacked buffers (a lower end of the same set is never worse), with sums
//   and measures of the rest as the estimate: exact, unless *states (in: how many may be looked
//   at; out: less those) run out, when the least estimate is returned.
//   ownership: scratch memory from a child of `arena`; inside berth_arena_try
uint64_t berth_memory__stack_bound(berth_arena *arena, const berth_memory_span *spans,
                                   uint32_t count, uint64_t enough, uint32_t *states);

#endif  // BERTH_MEMORY_STACK_H_
