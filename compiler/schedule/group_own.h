// Loops whose iterations work alone, for schedules that share them among work-items (private to
// compiler/schedule).
#ifndef BERTH_COMPILER_SCHEDULE_GROUP_OWN_H_
#define BERTH_COMPILER_SCHEDULE_GROUP_OWN_H_

#include "compiler/schedule/nest.h"

// Whether every iteration of `loops` writes an element of its own: each loop's variable is an
// index, or one plus what the loops do not change.
bool berth_group_own__is_own_element(const berth_tfn *fn, const berth_nest *loops,
                                     berth_stmt store);

// Whether the iterations of `loops` may run in any order, at once, without barriers: what the body
// allocates is an iteration's, and of anything else it writes an element of its own and reads of
// what is written that one alone. The body may have loops and conditions. O(stores * loads).
bool berth_group_own__is_independent(berth_tfn *fn, const berth_nest *loops);

#endif  // BERTH_COMPILER_SCHEDULE_GROUP_OWN_H_
