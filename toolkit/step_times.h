// How long the steps of a run took, from the executor's profile.
#ifndef BERTH_TOOLKIT_STEP_TIMES_H_
#define BERTH_TOOLKIT_STEP_TIMES_H_

#include "executor/session.h"

// Times of the last run of a session that profiles, one per step of its program: from when a step could
// begin (the run's start, the end of the one before it on its queue, of those that it waits for) to
// its end. Launches and wake-ups are in it, and the steps of a single queue add up to the run.
// `arena`: of what is needed on the way. O(steps + waits).
void berth_step_times(const berth_program *program, berth_session *session, berth_arena *arena,
                      double *out_ns);
// Sorts the values. 0 when there are none.
double berth_median(double *values, uint32_t count);

#endif  // BERTH_TOOLKIT_STEP_TIMES_H_
