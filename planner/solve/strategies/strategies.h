// The strategies; strategy.c lists them in the order in which `auto` runs them. Rows of one name do
// the same by other means for another objective or model. Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGIES_H_
#define BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGIES_H_

#include "planner/solve/strategies/strategy.h"

extern const berth_place_strategy berth_place__greedy;
extern const berth_place_strategy berth_place__enumerate;
extern const berth_place_strategy berth_place__dp;
extern const berth_place_strategy berth_place__search;
extern const berth_place_strategy berth_place__bound;
extern const berth_place_strategy berth_place__climb;
extern const berth_place_strategy berth_place__heft;
extern const berth_place_strategy berth_place__dp_latency;
extern const berth_place_strategy berth_place__search_latency;
extern const berth_place_strategy berth_place__bound_latency;
extern const berth_place_strategy berth_place__enumerate_more;
extern const berth_place_strategy berth_place__dp_list;
extern const berth_place_strategy berth_place__search_list;
extern const berth_place_strategy berth_place__bound_list;

// Whether the problem is latency by list scheduling (one_subgraph = false).
bool berth_place__is_list_latency(const berth_place_problem *problem,
                                  const berth_place_options *options);

// Bounds that hold for every strategy; O(devices * (nodes + edges)) and a little more.
void berth_place__simple_bounds(berth_place_search *search);

#endif  // BERTH_PLANNER_SOLVE_STRATEGIES_STRATEGIES_H_
