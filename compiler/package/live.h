// How many bytes are live at each step, while values come and go: a segment tree with sums of ranges (Bentley
// 1977), so that a change takes O(log steps) and the most is known at once.
//
//   berth_live *live = berth_live_create(arena, step_count);
//   berth_live_add(live, first_step, last_step, size_bytes);
//   uint64_t peak_bytes = berth_live_peak(live);
#ifndef BERTH_COMPILER_PACKAGE_LIVE_H_
#define BERTH_COMPILER_PACKAGE_LIVE_H_

#include <stdint.h>

#include "base/arena.h"

typedef struct berth_live berth_live;

// Nothing is live. Inside berth_arena_try.
berth_live *berth_live_create(berth_arena *arena, uint32_t step_count);

// At steps first to last; negative bytes take away what was added.
void berth_live_add(berth_live *live, uint32_t first_step, uint32_t last_step, int64_t bytes);

// The most that is live at one step, and the first step where it is that much (0 without steps).
uint64_t berth_live_peak(const berth_live *live);
uint32_t berth_live_peak_step(const berth_live *live);

#endif  // BERTH_COMPILER_PACKAGE_LIVE_H_
