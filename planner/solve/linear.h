// Placements that cut one linear order of the groups into segments, a segment per device: the
// linearisation of Tarnawski et al. (NeurIPS 2020, "DPL"). Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LINEAR_H_
#define BERTH_PLANNER_SOLVE_LINEAR_H_

#include "planner/solve/strategies/strategy.h"

// Groups in an order that the edges respect, in blocks: groups of one block depend on each other in
// a circle, and cannot be on different devices where devices must be ordered.
typedef struct berth_solve__order {
    uint32_t block_count;
    uint32_t *block_start;  // [block_count + 1] into groups
    uint32_t *groups;       // [group_count]
} berth_solve__order;

// Orders the groups depth first. `forward_only`: edges of backward nodes do not bind; groups of
// backward nodes alone stand beside a neighbour. `variant` 0 and 1 give different orders.
// O(nodes + edges). Inside berth_arena_try of `arena`.
berth_solve__order berth_solve__order_groups(berth_arena *arena, const berth_place_problem *problem,
                                             bool forward_only, uint32_t variant);

// Cuts the order into segments, each on a device of its own, so that the largest load (`sum`: the
// sum of the loads, and a segment on a concurrent kind takes no device) is smallest: dynamic
// programming over (blocks so far, devices used of each kind). O(blocks^2 * kinds * states + blocks
// * edges). False when no cut keeps the limits, there are too many states, or the budget is spent.
// Pins are not looked at.
//   assignment: [node_count] out
bool berth_solve__cut_order(berth_place_search *search, const berth_solve__order *order, bool sum,
                            uint32_t *assignment);

#endif  // BERTH_PLANNER_SOLVE_LINEAR_H_
