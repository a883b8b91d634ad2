// The parts of berth_place_evaluate that have a file of their own.
#ifndef BERTH_PLANNER_SOLVE_EVALUATE_PRIVATE_H_
#define BERTH_PLANNER_SOLVE_EVALUATE_PRIVATE_H_

#include "planner/solve/evaluate.h"

typedef struct berth_solve__copies {
    berth_arena *arena;
    BERTH_VEC(berth_place_copy) list;
} berth_solve__copies;

// Latency with list scheduling (one_subgraph = false). `out`'s arrays are zeroed; the limits have
// been checked. `copies`: (optional) filled. Inside berth_arena_try of the scratch arena.
void berth_solve__evaluate_list(berth_arena *scratch, const berth_place_problem *problem,
                                const uint32_t *assignment, berth_place_value *out,
                                berth_solve__copies *copies);

#endif  // BERTH_PLANNER_SOLVE_EVALUATE_PRIVATE_H_
