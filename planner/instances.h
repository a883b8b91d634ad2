// Instances of functions (private to planner/): specialise.c decides which, estimate.c says what
// they save.
#ifndef BERTH_PLANNER_INSTANCES_H_
#define BERTH_PLANNER_INSTANCES_H_

#include "planner/stages.h"

// What the copies of a solved, not yet rewritten module cost: each once per (value, destination),
// functions as often as they are called.
typedef struct berth_planner_estimate {
    double time_ns;
    double copies;
} berth_planner_estimate;

// Where a call's arguments are and its results are wanted, each a device in full.
typedef struct berth_planner_wish {
    berth_func_id caller;
    berth_op_id op;
    berth_func_id callee;
    uint32_t count;  // arguments, then results
    berth_device_id *devices;
    bool met;  // the callee's parameters and results are there
} berth_planner_wish;

typedef struct berth_planner_wishes {
    BERTH_VEC(berth_planner_wish) items;  // calls of graph functions by name, in source order
} berth_planner_wishes;

berth_planner_estimate berth_planner__estimate(const berth_planner_state *state);
void berth_planner__wishes(const berth_planner_state *state, berth_planner_wishes *out);

#endif  // BERTH_PLANNER_INSTANCES_H_
