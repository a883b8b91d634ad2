// When a device or a link is busy: intervals in order of time, and the first gap between them that is long enough (the
// insertion of HEFT: Topcuoglu, Hariri and Wu 2002). Intervals are kept in blocks, each with a bound of its longest gap, so that
// what is full is not looked through again: O(BLOCK + intervals / BLOCK) for each, and a few steps for short rows.
//
//   double start = berth_solve__busy_find(busy, ready, length, &gap);
//   berth_solve__busy_take(busy, &gap, start, start + length, task);
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_BUSY_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_BUSY_H_

#include "base/arena.h"

typedef struct berth_solve__busy_block berth_solve__busy_block;

typedef struct berth_solve__busy {
    berth_arena *arena;
    berth_solve__busy_block **blocks;  // [made] the first `count` hold intervals, in order
    uint32_t count, made, room;
    uint64_t looked_at;  // intervals and blocks, by all searches so far
} berth_solve__busy;

// Where an interval would be; good until the next one is taken.
typedef struct berth_solve__gap {
    uint32_t block, at;
    uint32_t
        behind;  // `user` of the interval that ends where it starts; UINT32_MAX where it starts when it is ready
} berth_solve__gap;

// An empty one, in place of what was there.
void berth_solve__busy_clear(berth_solve__busy *busy, berth_arena *arena);

// The earliest start of `length`, not before `ready`.
double berth_solve__busy_find(berth_solve__busy *busy, double ready, double length,
                              berth_solve__gap *out);

void berth_solve__busy_take(berth_solve__busy *busy, const berth_solve__gap *gap, double start,
                            double end, uint32_t user);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_BUSY_H_
