// The independent check of placements: says whether a placement keeps every limit and what it is
// worth, straight from the definitions in problem.h. Shares no code with the strategies; every
// answer of berth_place_solve passes through it.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_H_

#include "planner/solve/problem/problem.h"

typedef enum berth_place_objective {
    BERTH_PLACE_THROUGHPUT,
    BERTH_PLACE_LATENCY,
    BERTH_PLACE_MEMORY,  // the largest sum of sizes on any device; as a share of its capacity where
                         // every device has one
} berth_place_objective;

// Whether values of BERTH_PLACE_MEMORY are shares of the capacity, not bytes.
bool berth_place_memory_is_share(const berth_place_problem *problem);

typedef struct berth_place_value {
    double value;
    double *device_load;  // [device_count] throughput: loads; latency: busy times (of a subgraph,
                          // with its transfers); memory: bytes
    double *node_start;   // [node_count] latency only, else NULL
    double *node_done;    // [node_count] latency only
} berth_place_value;

// A value on its way (latency by list scheduling).
typedef struct berth_place_copy {
    uint32_t node;  // whose value
    uint32_t link;  // device whose link is busy
    uint32_t from;  // device; BERTH_PLACE_NONE = host memory
    uint32_t to;    // device; BERTH_PLACE_NONE = host memory
    double start, end;
} berth_place_copy;

// assignment: [node_count] device of each node.
//   errors: FAILED_PRECONDITION a limit is broken (the message names the nodes and devices);
//   OUT_OF_MEMORY
//   ownership: the arrays live in `arena`
BERTH_MUST_USE berth_status berth_place_evaluate(berth_arena *arena,
                                                 const berth_place_problem *problem,
                                                 berth_place_objective objective, bool contiguous,
                                                 const uint32_t *assignment,
                                                 berth_place_value *out_value);

// The latency of a placement by list scheduling (not one_subgraph), with its copies in the order of
// their starts; those that take no time are left out. Errors and ownership as above.
BERTH_MUST_USE berth_status berth_place_schedule(
    berth_arena *arena, const berth_place_problem *problem, const uint32_t *assignment,
    berth_place_value *out_value, berth_place_copy **out_copies, uint32_t *out_copy_count);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_EVALUATE_H_
