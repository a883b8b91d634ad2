// How much can one device have? Given a whole-number price of every item, the largest sum of prices
// of a set of items whose load (times and nets to elsewhere) is within a limit.
//
// A dynamic program over an order of the items in which few nets are open at any time: its states
// say of every open net whether it has pins here, elsewhere, or both (which costs), and for each
// state and sum of prices it keeps the least load. Exact, unless so many nets are open that some
// are left out, which makes the answer an upper bound. Memory is not looked at.
#ifndef BERTH_PLANNER_SOLVE_BOUNDS_PRICING_H_
#define BERTH_PLANNER_SOLVE_BOUNDS_PRICING_H_

#include "planner/solve/problem/nets.h"
#include "planner/solve/strategies/strategy.h"

// One sort of devices. Immutable apart from scratch; arena memory; thread-compatible.
typedef struct berth_place_pricing berth_place_pricing;

// An order of the items in which few nets are open: the best of several, each started from another
// item and then greedy, with none, one, or some of the items of most nets before all others. (Of an
// item that is decided on first, all nets know the one thing that it says, however many they are.)
//   search:    (optional) its budget is used; when it is spent, false, and the order may be of no
//   use out_order: [item_count] complexity: O(pins log pins) for each
BERTH_MUST_USE bool berth_place__pricing_order(berth_arena *arena, const berth_place_nets *nets,
                                               berth_place_search *search, uint32_t *out_order);

// With at most `state_limit` states: nets are left out where more would be needed. NULL when there
// are more items than that allows, or the budget of `search` (optional) is spent.
berth_place_pricing *berth_place__pricing(berth_arena *arena, const berth_place_problem *problem,
                                          const berth_place_nets *nets,
                                          const berth_place_sorts *sorts, uint32_t sort,
                                          const uint32_t *order, uint32_t state_limit,
                                          berth_place_search *search);

uint32_t berth_place__pricing_states(const berth_place_pricing *pricing);

// No set of load <= limit has prices of more than this in all (any prices >= 0): by the best rate
// at which load may be paid for (searched near the last best one). O(states), so much cheaper than
// berth_place__price.
double berth_place__price_roughly(berth_place_pricing *pricing, const double *price, double limit);

// The largest sum of prices of items with a load <= limit.
//   price:   whole numbers
//   enough:  sums below this do not matter: when there is none as large, 0 is returned
//   out_has: [item_count] a set that has so much; undefined when 0 is returned
//   memory:  8 bytes * states * berth_place__price_roughly, kept
uint32_t berth_place__price(berth_place_pricing *pricing, const double *price, double limit,
                            uint32_t enough, bool *out_has);

// For the arguments of the last berth_place__price, but a smaller limit: at most so much (enough -
// 1 when it is less than enough).
uint32_t berth_place__price_within(const berth_place_pricing *pricing, double limit);

// Cells looked at by the last berth_place__price, for budgets.
uint64_t berth_place__pricing_work(const berth_place_pricing *pricing);

#endif  // BERTH_PLANNER_SOLVE_BOUNDS_PRICING_H_
