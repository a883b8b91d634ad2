// The bound by weighted loads: transfers and whole items aside, how evenly can the times be spread?
//
// For any weights w >= 0 of the kinds with sum over devices of w = 1, the largest load is at least
// the weighted mean of the loads, so at least the sum over items of min over kinds of w * time. The
// best weights make it the optimum of the fractional problem (they are its dual solution).
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_LOAD_BOUND_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_LOAD_BOUND_H_

#include "planner/solve/problem/nets.h"

// Weights for the kinds and floor[i] = min over kinds of weight * time, which sum up to the bound:
// exact for up to two kinds, and valid for more. INFINITY when some item has no device.
//   out_weight: [kind_count]; out_floor: [item_count]
double berth_place__weigh_loads(const berth_place_problem *problem, const berth_place_nets *nets,
                                double *out_weight, double *out_floor);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_LOAD_BOUND_H_
