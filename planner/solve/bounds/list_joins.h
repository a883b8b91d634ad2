// Bounds of list scheduling where ways of a graph meet. Private to planner/solve.
//
// Branches that run beside each other need several devices, and several devices need copies. Take a
// node y on a device D, and some nodes R that it depends on. Either all of R are on D: then they
// run one after another, so y starts no earlier than the earliest of them and the sum of their
// times. Or one of them is elsewhere: then y starts no earlier than the longest way over that one,
// with a copy to get to D. The smaller of the two is a bound, for every R; the sets tried are, of the
// nodes near y, those that make y latest from elsewhere, one more at a time (as Jung, Kirousis and Spirakis
// 1993 and Colin and Chrétienne 1991 bound starts with communication where nodes may be run twice; here
// they run once, so those on D take turns, each with its own earliest start and way to y: Carlier 1982).
// The same backwards. Paths alone (list_bound.h) take the first part of each node's choice and pay for
// neither.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_LIST_JOINS_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_LIST_JOINS_H_

#include "planner/solve/bounds/list_bound.h"

// NULL where the graph is too large, or has too many places, for it to be worth its time.
berth_place__joins *berth_place__joins_create(berth_arena *arena, const berth_place__paths *paths);

// Raises the head (forth) or the tail of the node, [place_count], given those of all nodes before
// (after) it. O(nodes looked at * (places + degree)) for each place; see berth_place__joins_work.
void berth_place__joins_raise(berth_place__joins *joins, const berth_place__paths *paths,
                              uint32_t node, bool forth);

// Pairs of nodes and places that both directions of all nodes look at, at most.
uint64_t berth_place__joins_work(const berth_place__joins *joins);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_LIST_JOINS_H_
