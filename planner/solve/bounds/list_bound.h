// Lower bounds of the latency by list scheduling (problem.h, one_subgraph = false). Private to
// planner/solve.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_LIST_BOUND_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_LIST_BOUND_H_

#include "planner/solve/problem/problem.h"

typedef struct berth_place__joins berth_place__joins;  // list_joins.h

// Longest paths where each node is in the place, and comes over the copies, that suit it best,
// given its predecessors. A place is one device, or all devices that cannot be told apart.
// Thread-compatible; arena memory.
typedef struct berth_place__paths {
    const berth_place_problem *problem;
    uint32_t place_count;
    uint32_t *kind;   // [place_count]
    uint32_t *count;  // [place_count] devices of the place
    bool *able;       // [group_count * place_count] groups that may be there; may be changed
    double *head;     // [node_count * place_count] no earlier start there
    double *tail;     // [node_count * place_count] no less from its end there to the end of all
    berth_place__joins *joins;  // (optional) raises both where ways meet; NULL = paths alone
} berth_place__paths;

// by_device: each device is a place.
berth_place__paths *berth_place__paths_create(berth_arena *arena,
                                              const berth_place_problem *problem, bool by_device);

// No schedule in which every group is where it is able to be ends earlier. Sets head and tail.
// O((nodes + edges) * places), squared with direct links, and the joins' work. INFINITY when a group is able nowhere.
double berth_place__paths_bound(berth_place__paths *paths);

// The larger of that bound and one on loads: devices run one node at a time, none before the
// earliest start of any of its nodes or later than what must follow them; the work that is left
// between is spread as evenly as fractions allow (load_bound.h). 0 for an empty problem.
double berth_place__list_bound(berth_arena *scratch, const berth_place_problem *problem);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_LIST_BOUND_H_
