// What a strategy made of @main's placement problem: handed from choice.c to rejected.c. Private
// to planner/.
#ifndef BERTH_PLANNER_CHOICE_H_
#define BERTH_PLANNER_CHOICE_H_

#include "planner/placement.h"

struct berth_planner_choice {
    berth_arena *arena;  // scratch: the placement and what is below
    berth_placement *placement;
    berth_place_objective objective;
    const char *found_by;
    double lower_bound;  // in the problem's unit
    bool reproducible;
    uint64_t search_nodes;
    const char *note;         // NULL = nothing was left out
    uint64_t *reserve_bytes;  // per device of the target: left for values
};

// The value of a placement, in the problem's unit; INFINITY where it does not keep the limits.
BERTH_MUST_USE berth_status berth_planner__value_of(const berth_planner_state *state,
                                                    const uint32_t *assignment, double *out_value);

// finished.c: what a placement is worth by the kernels that are made of it.
typedef struct berth_planner_kernels {
    berth_place_problem problem;  // with their times: good for this placement only
    const berth_plan_kernel *data;
    uint32_t count;  // 0 = not known: the problem is the search's
} berth_planner_kernels;

// In the choice's arena. False: they are not known.
bool berth_planner__by_kernels(const berth_planner_state *state, const uint32_t *assignment,
                               berth_planner_kernels *out_kernels);
// When and for how long the plan's operations run, in a schedule of that problem.
void berth_planner__fill_entries(const berth_planner_state *state,
                                 const berth_planner_kernels *kernels,
                                 const berth_place_value *value, berth_plan *plan);

// simple_plans.c: sets *assignment, which a search found and which is worth `value`, to that of a simple plan
// unless it is surely better. Simple are the plan of the rules (`rules`, worth `rules_value`) and, for latency, all
// on one device of each kind, what cannot run there where the rules have it. Sets found_by.
BERTH_MUST_USE berth_status berth_planner__prefer_simple(const berth_planner_state *state,
                                                         const uint32_t *rules, double rules_value,
                                                         double value, const uint32_t **assignment);

// Fills the rejected devices of the plan's entries. `assignment`: of the finished plan.
void berth_planner__reject(const berth_planner_state *state, const uint32_t *assignment,
                           berth_plan *plan);

#endif  // BERTH_PLANNER_CHOICE_H_
