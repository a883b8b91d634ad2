// The ideals (sets closed under predecessors) of a directed acyclic graph, with the steps between
// them: what the contiguous placements are made of (Tarnawski et al., NeurIPS 2020, section 5).
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_IDEALS_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_IDEALS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "planner/solve/strategies/strategy.h"

// Vertices are numbered so that predecessors come first.
typedef struct berth_place_dag {
    uint32_t count;
    uint32_t *pred_start;  // [count + 1] into preds
    uint32_t *preds;
    uint32_t *succ_start;  // [count + 1] into succs
    uint32_t *succs;
} berth_place_dag;

// Ideal 0 is empty, the last is everything; by number of members, so that every proper subset of an
// ideal has a smaller index.
typedef struct berth_place_ideals {
    uint32_t vertex_count;
    uint32_t count;
    uint32_t words;        // 64-bit words of one set
    uint64_t *sets;        // [count * words]
    uint32_t *step_start;  // [count + 1] into the steps
    uint32_t *vertex;      // vertices that can be added, ascending
    uint32_t *target;      // the ideal they lead to
} berth_place_ideals;

// Lists all ideals; NULL when there are more than `limit`, or the budget of `search` (optional) is
// spent.
//   ownership:  in `arena`
//   complexity: O(ideals * (width + words)), width being the longest antichain
berth_place_ideals *berth_place__ideals(berth_arena *arena, const berth_place_dag *dag,
                                        uint32_t limit, berth_place_search *search);

static inline bool berth_place__ideal_has(const berth_place_ideals *ideals, uint32_t ideal,
                                          uint32_t vertex) {
    return ideals->sets[(size_t)ideal * ideals->words + vertex / 64] >> (vertex % 64) & 1;
}

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_IDEALS_H_
