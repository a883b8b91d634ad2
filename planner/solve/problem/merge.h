// Makes a throughput problem smaller without losing its best placements: classes are groups that
// may be taken to share a device.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_MERGE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_MERGE_H_

#include "planner/solve/problem/ideals.h"
#include "planner/solve/problem/nets.h"

typedef struct berth_place_classes {
    uint32_t group_count;
    uint32_t count;
    uint32_t *of_group;  // [group_count] dense 0..count-1
} berth_place_classes;

// Each group a class. Arena memory.
berth_place_classes berth_place__classes(berth_arena *arena, const berth_place_problem *problem);

// Finds items that cost nothing to join: moving item v to the device of item u makes no load larger
// when what v adds there (its time, its nets without u) is not more than the nets {u, v}, which
// that device then need not pay. `dag` (NULL = no contiguity): u must be v's only predecessor or
// only successor there, so that the order of devices holds; items from dag->count on are free of
// the order, and nothing below joins them.
//   out_partner: [item_count] the item joined, or BERTH_PLACE_NONE; no item both joins and is
//   joined
//   returns:     how many join
uint32_t berth_place__merge_free(berth_arena *arena, const berth_place_problem *problem,
                                 const berth_place_nets *nets, const berth_place_dag *dag,
                                 uint32_t *out_partner);

// Finds items that are together in every placement with all loads below `limit`: apart, their nets
// and times would exceed it on one device, or the weighted mean of the loads would (load_bound.h).
uint32_t berth_place__merge_tied(berth_arena *arena, const berth_place_problem *problem,
                                 const berth_place_nets *nets, double limit, uint32_t *out_partner);

// Joins the classes of items that have partners. item_of_group: of the nets that the partners were
// found in.
void berth_place__merge_apply(berth_arena *arena, const berth_place_nets *nets,
                              const uint32_t *partner, berth_place_classes *classes);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_MERGE_H_
