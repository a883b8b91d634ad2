// Instances of functions (private to planner/): specialise.c decides which, polymorphic.c which a
// plan needs, estimate.c says what they save.
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

// ---- instances (specialise.c) ----

// A call that was sent to another instance.
typedef struct berth_planner_sent {
    berth_func_id caller, before;
    berth_op_id op;
} berth_planner_sent;

typedef struct berth_planner_families {
    berth_module *module;
    berth_arena *arena;
    uint32_t most;                    // instances of one function
    BERTH_VEC(berth_func_id) origin;  // per function: what it is an instance of; itself
    BERTH_VEC(berth_func_id) behind;  // per function: as in the state
    BERTH_VEC(berth_planner_sent) sent;
} berth_planner_families;

// A copy of the function, after all others in the module. `by_demand`: its body decides before its
// callers, as the function's does; else they do.
berth_func_id berth_planner__add_instance(berth_planner_families *families, berth_func_id function,
                                          bool by_demand);
// Makes a call or reference one of `callee`.
void berth_planner__send(berth_planner_families *families, berth_func_id caller, berth_op_id op,
                         berth_func_id callee);

// Gives calls whose hard demands do not join instances of their own, as few as demands allow.
// *out_split = false: none were needed, or there is no plan whatever the instances; what was made
// until then stays, and is taken back by the caller.
berth_status berth_planner__split(berth_planner_families *families,
                                  const berth_planner_state *state, berth_arena *arena,
                                  bool *out_split);

#endif  // BERTH_PLANNER_INSTANCES_H_
