// Solves a placement problem: what `berth place` and the planner's strategies call.
//
//   berth_place_options options = {.objective = BERTH_PLACE_THROUGHPUT};
//   berth_place_answer answer;
//   BERTH_TRY(berth_place_solve(arena, problem, &options, &answer));
#ifndef BERTH_PLANNER_SOLVE_SOLVE_H_
#define BERTH_PLANNER_SOLVE_SOLVE_H_

#include "planner/solve/strategies/strategy.h"

typedef struct berth_place_answer {
    uint32_t *assignment;  // [node_count] device of each node
    berth_place_value value;
    double lower_bound;    // proven: no placement (of those asked for) is below it
    double gap;            // (value - lower_bound) / value; 0 = optimal
    bool proven;           // value equals lower_bound within 1e-9 relative
    bool reproducible;     // false when a deadline ended the search
    const char *strategy;  // what found the placement
    uint64_t nodes;        // search nodes used
} berth_place_answer;

//   ownership: the answer lives in `arena`
//   errors:    INVALID_ARGUMENT unknown strategy (known ones are named) or one that does not apply;
//              FAILED_PRECONDITION proven that no placement keeps the limits; OUT_OF_RANGE none was
//              found within the budget; OUT_OF_MEMORY
//   threads:   thread-safe; one core
BERTH_MUST_USE berth_status berth_place_solve(berth_arena *arena,
                                              const berth_place_problem *problem,
                                              const berth_place_options *options,
                                              berth_place_answer *out_answer);

#endif  // BERTH_PLANNER_SOLVE_SOLVE_H_
