// A lower bound of the latency, of either model, that looks at paths and loads at once. Private to
// planner/solve.
//
// Whatever the placement, the latency is no less than any path's times, and no less than the work of
// a kind that runs one node at a time, shared evenly among its devices; so it is no less than any
// weighted mean of these. With weights on paths (a flow f through the graph) and on kinds (w), the
// placement that makes the mean smallest chooses a kind for each node by itself: the bound is the sum
// over the nodes of min over kinds k of time(v, k) (f(v) + w(k) / devices(k)). The best weights are
// the dual of a linear program (the time-cost problem of Kelley 1961, with fractions of nodes), found
// by conditional gradients (Frank and Wolfe 1956) on a smooth maximum over all paths and loads, whose
// weights the passes forwards and backwards over the graph give (Nesterov 2005). Every step's weights
// are a bound by themselves, so it does not matter for correctness how far the steps come.
//
// Memory is a limit on what of the nodes is on a kind, so that the choice is no longer each node's own:
// bytes get prices (memory_limits.h), which keep the sum a bound, and what is left out of a device that
// would exceed it goes where it costs least.
//
// Then once more with copies, where no value goes straight between devices. With x(v, k) of node v on
// kind k, an edge from u to v takes at least the sum over k of transfer(u, k) |x(u, k) - x(v, k)| on a
// path, and the links of kind k have to write and to read at least transfer(u, k) times the largest
// x(u, k) - x(v, k), and the largest x(v, k) - x(u, k), over u's readers v. Both are exact for whole
// nodes and convex, so their gradients, which move costs from one end of an edge to the other, keep the
// sum above a bound. Copies between devices of one kind are not seen.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_PATH_LOADS_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_PATH_LOADS_H_

#include "planner/solve/strategies/strategy.h"

// Raises search->lower_bound where it can; uses `share` of what is left of the running strategy's budget
// at most, and ends where steps gain little. O((nodes + edges) * kinds) a step.
//   able: [node_count * kind_count] where the nodes of every placement better than the best are; NULL =
//         anywhere
void berth_place__path_loads_bound(berth_place_search *search, double share, const bool *able);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_PATH_LOADS_H_
