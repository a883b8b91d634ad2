// Solves a whole problem, pool by pool: heuristics, then the exact search. What `berth memory
// solve` calls.
//
//   berth_memory_solve_options options = {.deadline_ns = berth_clock_ns() + 10000000000};
//   berth_memory_solution solution;
//   BERTH_TRY(berth_memory_solve(arena, problem, &options, &solution));
#ifndef BERTH_MEMORY_SOLVE_H_
#define BERTH_MEMORY_SOLVE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "memory/exact.h"
#include "memory/problem.h"

typedef struct berth_memory_solve_options {
    const uint64_t
        *capacities_bytes;  // [pool_count] what must be fitted in; NULL or 0: minimise that pool
    uint64_t node_limit;    // search nodes in all; 0 = none
    int64_t deadline_ns;    // on berth_clock_ns; 0 = none
} berth_memory_solve_options;

typedef struct berth_memory_pool_solution {
    uint64_t capacity_bytes;       // 0 = it was minimised
    berth_memory_verdict verdict;  // FITS also for pools that were minimised
    uint64_t height_bytes;         // of the solution found; the best known where it does not fit
    uint64_t lower_bound_bytes;    // proven
    bool proven;  // minimised: the height is optimal. With a capacity: the verdict is not UNKNOWN
    const char *strategy;  // what found the solution (static text)
} berth_memory_pool_solution;

typedef struct berth_memory_solution {
    uint64_t *offsets;  // [buffer_count] always valid without capacities; see verdict
    berth_memory_pool_solution *pools;  // [pool_count]
    uint64_t nodes;                     // search nodes used
} berth_memory_solution;

//   ownership: the solution lives in `arena`
//   errors:    OUT_OF_MEMORY. That it does not fit is no error: see the verdicts
BERTH_MUST_USE berth_status berth_memory_solve(berth_arena *arena,
                                               const berth_memory_problem *problem,
                                               const berth_memory_solve_options *options,
                                               berth_memory_solution *out_solution);

#endif  // BERTH_MEMORY_SOLVE_H_
