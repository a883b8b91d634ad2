// Whether a move of a placement is likely to end later than a limit, without a schedule: for latency by
// list scheduling (problem.h, one_subgraph = false). Private to planner/solve.
//
// A schedule costs O(nodes + edges), and most moves are dropped after it. As in the shifting of operations
// in job shops (Taillard 1994; Dell'Amico and Trubian 1993), the heads and tails of the last schedule, with
// the turns that its tasks took, say how long the longest way through the moved nodes is where each is put
// between those of its new device: O(moved nodes and their edges). What else a move changes is not looked
// at, so the guess is neither above nor below the value for certain, and good for choosing only.
//
//   berth_solve__guess *guess = berth_solve__guess_create(arena, latency);
//   berth_solve__guess_look(guess, list);              // after each value that is kept
//   ... a move of `latency` ...
//   if (berth_solve__guess_end(guess) > most) berth_solve__latency_undo(latency);
#ifndef BERTH_PLANNER_SOLVE_LATENCY_GUESS_H_
#define BERTH_PLANNER_SOLVE_LATENCY_GUESS_H_

#include "planner/solve/latency/model.h"
#include "planner/solve/problem/evaluate_private.h"

// Thread-compatible; arena memory, O(nodes + devices).
typedef struct berth_solve__guess berth_solve__guess;

berth_solve__guess *berth_solve__guess_create(berth_arena *arena,
                                              const berth_solve__latency *latency);

// Reads the list's last value (not INFINITY), which was of the placement that the latency has now.
void berth_solve__guess_look(berth_solve__guess *guess, berth_solve__list *list);

// The longest way through what the latency's current move put elsewhere; 0 where that is too much to be
// looked at. Needs a look since the last kept move.
double berth_solve__guess_end(berth_solve__guess *guess);

#endif  // BERTH_PLANNER_SOLVE_LATENCY_GUESS_H_
