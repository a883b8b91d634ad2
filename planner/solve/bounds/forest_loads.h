// A bound of list scheduling that keeps nodes whole: loads of forests. Private to planner/solve.
//
// Of all edges only one into each node is kept (or one out of each), so that what is left is a forest, in
// which the least load has a recursion: with a node on a place and so much time left at its start, its own
// load and, of each child, the least over the places where it still ends in time, copies between kinds of
// devices included. Nodes start no earlier than their heads and leave their tails, as all edges have them
// (list_bound.h). Where the forest's least load, weighted, is more than the devices have room for before an
// end, no schedule ends by then. Fractions of nodes, by which paths and loads (path_loads.h) gain as much
// time as they need of what is slightly too slow, are not there.
//
// As a function of the time left the least load is a staircase; with more than some steps, those that
// are near each other become one that is below them all, so that it stays a bound.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_FOREST_LOADS_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_FOREST_LOADS_H_

#include "planner/solve/bounds/list_bound.h"
#include "planner/solve/bounds/memory_limits.h"

typedef struct berth_place__forest berth_place__forest;

// What a unit of time on the kinds counts, and of memory.
typedef struct berth_place__burden {
    const double *weight;  // [kind_count] 0 for kinds that run any number of nodes
    const berth_place__memory_limit *limit;  // NULL = memory is not looked at
    double limit_weight;
} berth_place__burden;

// NULL where the graph is too large, or has too many places, for it to be worth its time. Thread-compatible;
// arena memory.
berth_place__forest *berth_place__forest_create(berth_arena *arena,
                                                const berth_place__paths *paths);

// Whether it is certain that no schedule ends by `end`, given heads and tails of the paths and where nodes are
// able to be. O(edges * places^2) of staircases.
//   into: the edge kept is the one into each node that comes latest; otherwise the one out of it
bool berth_place__forest_exceeded(berth_place__forest *forest, const berth_place__burden *burden,
                                  bool into, double end);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_FOREST_LOADS_H_
