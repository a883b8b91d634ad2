// Lower bound of the latency by list scheduling (problem.h, one_subgraph = false). Private to
// planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LIST_BOUND_H_
#define BERTH_PLANNER_SOLVE_LIST_BOUND_H_

#include "planner/solve/problem.h"

// The larger of two bounds. Paths: the longest one where each node is on the device, and comes over
// the copies, that suit it best, given its predecessors. Loads: devices run one node at a time,
// none before the earliest start of any of its nodes or later than what must follow them; the work
// that is left between is spread as evenly as fractions allow. O((nodes + edges) * devices),
// squared with direct links, and the loads' weights (load_bound.h). 0 for an empty problem;
// INFINITY when a group has no device.
double berth_place__list_bound(berth_arena *scratch, const berth_place_problem *problem);

#endif  // BERTH_PLANNER_SOLVE_LIST_BOUND_H_
