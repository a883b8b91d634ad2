// What placement_facts.c finds out of @main's placement problem, while it is being made (private to placement_*.c).
#ifndef BERTH_PLANNER_PLACEMENT_FACTS_H_
#define BERTH_PLANNER_PLACEMENT_FACTS_H_

#include "planner/placement.h"

typedef struct berth_planner__facts {
    berth_placement *placement;
    const berth_planner_state *state;
    const berth_planner_function *f;
    const berth_multi_target *target;
    berth_arena *arena;
    double *function_ms;  // [functions * devices] of called graph functions; NULL = none is called
    double **time;        // [devices][nodes] before identical devices are one kind
    double **transfer;    // [devices][nodes]
    double **memory_ms;   // [devices][nodes] of the bandwidth of a memory that others share
    const char **bus;     // [devices] of the way to host memory; "" = none
    double *sizes;        // of values, ascending, each once
    double *link_ms;      // [devices * devices] straight from one to the other; INFINITY = not
    double *link_ms_per_byte;
    const char **link_bus;  // [devices * devices] of that way; "" = none
} berth_planner__facts;

// Whether others want the memory that the device works in, too.
bool berth_planner__memory_is_wanted(const berth_planner__facts *facts, uint32_t device);

// placement_shared.c: which devices of the solver take turns, by cores, by ways to the host's memory and by links, and
// what they take together of a memory's bandwidth. After kinds are known.
void berth_planner__fill_shared(berth_planner__facts *facts);

#endif  // BERTH_PLANNER_PLACEMENT_FACTS_H_
