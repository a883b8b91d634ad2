// The third exact search of a part: solutions of a window of time guide the search of a larger one,
// until the window is the whole part. Only memory/exact*.c include this.
//
//   exact_grow *grow = berth_memory__grow_create(arena, part, intervals, capacity_bytes, deadline);
//   exact_outcome outcome = berth_memory__grow_run(grow, &nodes_left);   // one restart
#ifndef BERTH_MEMORY_EXACT_GROW_H_
#define BERTH_MEMORY_EXACT_GROW_H_

#include "memory/exact_private.h"

typedef struct exact_grow exact_grow;

// `intervals` are those of the whole problem: items' sources count them. Lives in `arena`.
exact_grow *berth_memory__grow_create(berth_arena *arena, const exact_part *part,
                                      const berth_memory_interval *intervals,
                                      uint64_t capacity_bytes, int64_t deadline_ns);

// One restart in the present window, of at most `nodes_left`, which becomes less. FOUND: the part's
// solution (berth_memory__grow_offsets); FAILED: proven that there is none; STOPPED: a later call
// goes on.
exact_outcome berth_memory__grow_run(exact_grow *grow, uint64_t *nodes_left);

// [items] in units, once it has found.
const int64_t *berth_memory__grow_offsets(const exact_grow *grow);

uint64_t berth_memory__grow_work(const exact_grow *grow);  // members looked at
bool berth_memory__grow_out_of_time(const exact_grow *grow);

#endif  // BERTH_MEMORY_EXACT_GROW_H_
