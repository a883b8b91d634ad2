// `berth run --profile`: the mean time of every kernel and copy over the runs of a session.
#ifndef BERTH_TOOLS_RUN_PROFILE_H_
#define BERTH_TOOLS_RUN_PROFILE_H_

#include <jansson.h>

#include "executor/session.h"

typedef struct berth_run_profile_step {
    uint32_t step;  // of the program
    int64_t ns;     // the sum over the runs
} berth_run_profile_step;

typedef struct berth_run_profile {
    const berth_program *program;
    berth_run_profile_step *steps;  // [program->step_count]
    int64_t run_ns;                 // from the beginning to the end of the runs, the sum
    uint64_t run_count;
} berth_run_profile;

// Lives in the arena; inside berth_arena_try of it.
berth_run_profile berth_run_profile_make(berth_arena *arena, const berth_program *program);
// Adds the last run of a session of the program that was opened with `profile`.
void berth_run_profile_add(berth_run_profile *profile, berth_session *session);
// A table on stdout, and the same as JSON, longest first. After one run at least; none is added after.
void berth_run_profile_print(berth_run_profile *profile);
json_t *berth_run_profile_json(berth_run_profile *profile);

#endif  // BERTH_TOOLS_RUN_PROFILE_H_
