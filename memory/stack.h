// Buffers that are all live together, one on top of another: the least height of such a stack when
// they have different alignments. A bound for every clique. Private to memory/.
#ifndef BERTH_MEMORY_STACK_H_
#define BERTH_MEMORY_STACK_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "memory/interval.h"
#include "memory/measure.h"

enum { BERTH_MEMORY_STACK_LIMIT = 64, BERTH_MEMORY_STACK_TABLE_LIMIT = 1 << 24 };

// Lower bound of the height of every stack of `count` spans (at most BERTH_MEMORY_STACK_LIMIT; all
// taken as live together). `enough` is a bound that is known already: when a stack that high is
// found, it is returned.
//   A* over the sets of stacked buffers (a lower end of the same set is never worse), with sums
//   and measures of the rest as the estimate: exact, unless *states (in: how many may be looked
//   at; out: less those) run out, when the least estimate is returned.
//   ownership: scratch memory from a child of `arena`; inside berth_arena_try
uint64_t berth_memory__stack_bound(berth_arena *arena, const berth_memory_span *spans,
                                   uint32_t count, uint64_t enough, uint32_t *states);

// The same, exact (stack_table.c): a table of the least end of every multiset of stacked spans, where those of equal
// size and alignment are one. Only where stack_table_work is not 0.
//   complexity: stack_table_work steps, 4 bytes for each of at most BERTH_MEMORY_STACK_TABLE_LIMIT sets
uint64_t berth_memory__stack_table(berth_arena *arena, const berth_memory_span *spans,
                                   uint32_t count);
// 0: too many spans or sets, or heights of more than 32 bits (in units of what divides all).
uint64_t berth_memory__stack_table_work(const berth_memory_span *spans, uint32_t count);

// The intervals as spans, in `arena`; *out_varied: there are different alignments.
berth_memory_span *berth_memory__make_spans(berth_arena *arena,
                                            const berth_memory_interval *intervals, uint32_t count,
                                            uint32_t *out_clique_count, bool *out_varied);
// Those of a clique, of which at most BERTH_MEMORY_STACK_LIMIT go to `out`. Returns how many there are.
uint32_t berth_memory__clique_spans(const berth_memory_span *spans, uint32_t count, uint32_t clique,
                                    berth_memory_span *out);

#endif  // BERTH_MEMORY_STACK_H_
