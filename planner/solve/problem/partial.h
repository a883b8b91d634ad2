// Placements with some groups still on no device, and a bound on what any completion is worth: what
// a tree search over placements (strategy_enumerate.c) turns back at. Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_PARTIAL_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_PARTIAL_H_

#include "planner/solve/strategies/strategy.h"

// Thread-compatible; arena memory.
typedef struct berth_place__partial berth_place__partial;

// All groups on no device.
berth_place__partial *berth_place__partial_create(berth_arena *arena,
                                                  const berth_place_problem *problem,
                                                  const berth_place_options *options);

// The device of each node, BERTH_PLACE_NONE = none yet. Changes with the placement.
const uint32_t *berth_place__partial_at(const berth_place__partial *partial);

// Puts a group that is on no device onto one. False, and nothing is done, when the device cannot
// have it: support, pins, memory.
bool berth_place__partial_put(berth_place__partial *partial, uint32_t group, uint32_t device);
// The opposite, for the group that was put last.
void berth_place__partial_take(berth_place__partial *partial, uint32_t group);

// No completion is worth less: for the objective, by what is placed so far and the best case for
// the rest. INFINITY when no completion keeps the limits. O((nodes + edges) * devices).
double berth_place__partial_bound(berth_place__partial *partial);

// The value of a complete placement; INFINITY when it breaks a limit or is above `limit`.
double berth_place__partial_value(berth_place__partial *partial, double limit);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_PARTIAL_H_
