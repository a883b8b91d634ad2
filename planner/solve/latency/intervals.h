// Placements whose subgraphs are intervals of one topological order, by dynamic programming.
// Private to planner/solve.
#ifndef BERTH_PLANNER_SOLVE_LATENCY_INTERVALS_H_
#define BERTH_PLANNER_SOLVE_LATENCY_INTERVALS_H_

#include "planner/solve/latency/order.h"
#include "planner/solve/strategies/strategy.h"

// Cuts an order of the units into intervals on devices with one subgraph and plain units between:
// for every prefix and every number of devices used of each kind, the placement whose completions
// plus shortest ways to the end are smallest is kept, and lengthened exactly. Not optimal where
// branches compete (a single placement is kept for each state), exact on a chain.
// O(places * states * (units + nodes + edges)). Spends budget.
//   order:      [unit_count] topological
//   places:     where it may be cut, about; evenly, everywhere when there are fewer units
//   assignment: [node_count] out; a start for other searches, not checked
//   returns:    false when there is none, or too many states, or the budget is spent
bool berth_solve__latency_intervals(berth_place_search *search, const berth_solve__latency *latency,
                                    const berth_solve__units *units, const uint32_t *order,
                                    uint32_t places, uint32_t *assignment);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_INTERVALS_H_
