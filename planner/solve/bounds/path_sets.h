// A lower bound of the latency in the published model (problem.h, one_subgraph) that looks at all paths
// and at what each device may hold at once. Private to planner/solve.
//
// With weights f on paths, 1 in all, the latency is no less than their mean length. On a path, nodes
// by themselves take their times, and each subgraph S that the path enters takes its whole load L(S):
// reads, times, writes. A path enters a subgraph once, so that
//   latency >= sum over v of f(v) plain(v) - sum over S of gain(S),
//   gain(S)  = sum over v in S of f(v) plain(v) - enter(S) L(S),
// enter(S) being the weight of the paths that enter S. There are as many subgraphs as devices, so each
// is counted with the most that any set gains. A node is in one subgraph only: plain times count
// with a factor of 0 to 1 for each node, which is a bound as well.
//
// The product is what makes it hard: for sets of a load between l and l', enter(S) L(S) >= enter(S) l,
// and a price on L(S) <= l' (and one on the memory) leaves a sum over nodes, values and edges, whose best
// set is a minimum cut (latency/gain.h). Ranges of loads cover all.
//
// The best weights and factors are the dual of a linear program over all sets, found as in path_loads.h:
// by conditional gradients on a smooth maximum over all paths, the sets that gain most being what the
// paths' lengths are made of next. Every step's weights are a bound by themselves.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_PATH_SETS_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_PATH_SETS_H_

#include "planner/solve/strategies/strategy.h"

typedef struct berth_solve__path_sets berth_solve__path_sets;

// Needs a placement's value (search->best_value); NULL where no kind of device holds one subgraph. Memory
// of `arena`, which lives as long as it.
berth_solve__path_sets *berth_place__path_sets_create(berth_arena *arena,
                                                      berth_place_search *search);

// Raises search->lower_bound where it can; uses `share` of what is left of the running strategy's
// budget at most, and ends where steps gain little. The next call goes on there.
void berth_place__path_sets_bound(berth_solve__path_sets *sets, double share);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_PATH_SETS_H_
