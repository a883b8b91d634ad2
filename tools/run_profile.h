// `berth run --profile`: the mean time of every kernel and copy over the runs of a session.
#ifndef BERTH_TOOLS_RUN_PROFILE_H_
#define BERTH_TOOLS_RUN_PROFILE_H_

#include <jansson.h>

#include <berth/session.h>

#include "base/arena.h"

typedef struct berth_run_profile_step {
    uint32_t step;      // of the program
    int64_t ns;         // the sum over the runs
    int64_t wait_ns;    // that its device had nothing to do before it, the sum over the runs
    double peak_flops;  // of its device, for f32, as the target says; 0 = unknown
    berth_step_facts facts;
} berth_run_profile_step;

typedef struct berth_run_profile {
    berth_run_profile_step *steps;  // [step_count]
    uint32_t step_count;
    berth_run_profile_step **by_start;  // [step_count], for a run: in the order of their starts
    int64_t run_ns;                     // from the beginning to the end of the runs, the sum
    uint64_t run_count;
} berth_run_profile;

// For the plan that runs now, which is for the target (JSON, of berth_program_target). Lives in the arena; inside berth_arena_try
// of it.
BERTH_MUST_USE berth_status berth_run_profile_make(berth_arena *arena, berth_session *session,
                                                   const char *target,
                                                   berth_run_profile *out_profile);
// Adds the last run of the session, which was opened with `profile`.
BERTH_MUST_USE berth_status berth_run_profile_add(berth_run_profile *profile,
                                                  berth_session *session);
// A table on stdout, and the same as JSON, longest first. After one run at least; none is added after.
void berth_run_profile_print(berth_run_profile *profile);
json_t *berth_run_profile_json(berth_run_profile *profile);

#endif  // BERTH_TOOLS_RUN_PROFILE_H_
