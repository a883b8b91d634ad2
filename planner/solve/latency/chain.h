// A quick bound on the latency of one sample in the published model (problem.h, one_subgraph), for
// graphs of any size. Private to planner/solve.
//
// Along a path of the graph, what a device's subgraph has is one piece without gaps, and with a
// piece it has every node on any way between its nodes: their times are spent one after another,
// after the value that enters the piece was read and before the one that leaves it is written. So
// the least time over all ways to cut a path into pieces (each on a device of its own) and single
// nodes on concurrent devices, within the devices' memories, is a bound: a shortest path, over
// nodes and numbers of devices used. What lies between two nodes of the path is a sum over a
// quadrant: of each node, the last node of the path before it and the first one after it matter.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_CHAIN_H_
#define BERTH_PLANNER_SOLVE_LATENCY_CHAIN_H_

#include "planner/solve/strategies/strategy.h"

// The largest of the bounds of a few paths. Long paths are looked at in as many places as `cells`
// (pairs of places times numbers of devices) allow. O(nodes + edges + cells).
double berth_solve__latency_chain_bound(berth_arena *scratch, const berth_place_problem *problem,
                                        uint64_t cells);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_CHAIN_H_
