// Prices that prove a bound: a proximal bundle method (Lemarechal 1975; Kiwiel 1990) for a concave
// function of item prices that is known by its linear pieces through zero,
// value(prices) = min over pieces of piece . prices, on prices >= 0 with sum 1.
#ifndef BERTH_PLANNER_SOLVE_PROBLEM_BUNDLE_H_
#define BERTH_PLANNER_SOLVE_PROBLEM_BUNDLE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

// Thread-compatible; arena memory.
typedef struct berth_place_bundle berth_place_bundle;

// start: [item_count] prices with sum 1, copied; also how far each price is thought to move
berth_place_bundle *berth_place__bundle(berth_arena *arena, uint32_t item_count,
                                        const double *start);

// The prices to look at now: [item_count]. May be changed a little (rounded), to a sum of 1.
double *berth_place__bundle_prices(berth_place_bundle *bundle);

// Tells the value at those prices and the piece that gives it, and moves on to new prices.
// Returns how much more than the best value so far the known pieces allow nearby.
double berth_place__bundle_step(berth_place_bundle *bundle, double value, const double *piece);

// Begins again from other prices, for another function.
void berth_place__bundle_restart(berth_place_bundle *bundle, const double *start);

// Looks further afield again: what can be told about the function has become finer.
void berth_place__bundle_widen(berth_place_bundle *bundle);

#endif  // BERTH_PLANNER_SOLVE_PROBLEM_BUNDLE_H_
