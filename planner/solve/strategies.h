// The strategies, one file each (strategy_NAME.c); strategy.c lists them in the order in which
// `auto` runs them. Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_STRATEGIES_H_
#define BERTH_PLANNER_SOLVE_STRATEGIES_H_

#include "planner/solve/strategy.h"

extern const berth_place_strategy berth_place__greedy;
extern const berth_place_strategy berth_place__enumerate;
extern const berth_place_strategy berth_place__dp;
extern const berth_place_strategy berth_place__search;
extern const berth_place_strategy berth_place__bound;
extern const berth_place_strategy berth_place__climb;
extern const berth_place_strategy berth_place__heft;
extern const berth_place_strategy berth_place__latency;
extern const berth_place_strategy berth_place__latency_bound;
extern const berth_place_strategy berth_place__latency_anneal;

#endif  // BERTH_PLANNER_SOLVE_STRATEGIES_H_
