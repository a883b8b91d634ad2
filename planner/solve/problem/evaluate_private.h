// List scheduling (evaluate_list.c): the part of the definition of latency that is a program. Its
// value is what the definition says, so the strategies for it use the same one. Private to
// planner/solve.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_PRIVATE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_PRIVATE_H_

#include "planner/solve/problem/evaluate.h"

typedef struct berth_solve__copies {
    berth_arena *arena;
    BERTH_VEC(berth_place_copy) list;
} berth_solve__copies;

// Room to schedule one placement after another. Thread-compatible; arena memory.
typedef struct berth_solve__list berth_solve__list;

berth_solve__list *berth_solve__list_create(berth_arena *arena, const berth_place_problem *problem);

// When all is done. INFINITY as soon as that is sure to be later than `limit`.
//   assignment: [node_count] supported devices; capacities and groups are not looked at
//   out:        (optional) arrays as evaluate.h has them, device_load zeroed; `value` is not set
//   copies:     (optional) filled, in the order of their starts
double berth_solve__list_value(berth_solve__list *list, const uint32_t *assignment, double limit,
                               berth_place_value *out, berth_solve__copies *copies);

// Whose computations and copies the last value (not INFINITY) waited for one after another, latest
// first: each began when the next one listed ended, for its value or for its turn.
//   nodes: [node_count] filled; returns how many
uint32_t berth_solve__list_critical(const berth_solve__list *list, uint32_t *nodes);

// Of the last value (not INFINITY). All [node_count]; O(nodes + edges + copies).
//   done:  when each node's computation ended
//   left:  from its start to the end of all, if every turn on a device or a link stays as it was
//   order: the nodes in the order of their ends
void berth_solve__list_times(berth_solve__list *list, double *done, double *left, uint32_t *order);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_PRIVATE_H_
