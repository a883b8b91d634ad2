// `berth run --profile` and `--trace`: the mean time of every kernel, copy and operation on the host over the
// runs of a session, or of a model of byte code, piece by piece.
//
//   BERTH_TRY(berth_run_profile_open(&profile));
//   berth_run_profile_begin(&profile);                      // a run
//   BERTH_TRY(berth_run_profile_add(&profile, &part));      // after it, or for each of its pieces
//   berth_run_profile_end(&profile, run_ns);
//   ... berth_run_profile_print(&profile)
//   berth_run_profile_close(&profile);
#ifndef BERTH_TOOLS_RUN_PROFILE_H_
#define BERTH_TOOLS_RUN_PROFILE_H_

#include <jansson.h>

#include <berth/dynamic.h>
#include <berth/session.h>

#include "base/arena.h"

// A kernel, a copy or an operation on the host that makes a result of one shape.
typedef struct berth_run_profile_step {
    uint32_t number;    // of its program, or UINT32_MAX: on the host
    uint64_t count;     // how often it ran
    int64_t ns;         // the sum over the runs
    int64_t wait_ns;    // that its device had nothing to do before it, the sum over the runs
    double peak_flops;  // of its device, for f32, as the target says; 0 = unknown
    berth_step_facts facts;
} berth_run_profile_step;

// A slice of a trace.
typedef struct berth_run_profile_event {
    uint32_t step;  // of `steps`
    int64_t start_ns, end_ns;
} berth_run_profile_event;

enum { BERTH_RUN_PROFILE_DEVICES = 32 };

// All zero = it is not open, and nothing is recorded.
typedef struct berth_run_profile {
    berth_arena *arena;
    berth_run_profile_step *steps;
    uint32_t step_count, step_capacity;
    uint32_t *buckets;  // of a hash of what steps are: 1 + index into `steps`, 0 = none
    uint32_t bucket_count;
    // The run in progress: until when devices have work, since its beginning.
    const char *devices[BERTH_RUN_PROFILE_DEVICES];
    int64_t free_ns[BERTH_RUN_PROFILE_DEVICES];
    uint32_t device_count;
    bool keeps_events;                // for a trace
    berth_run_profile_event *events;  // of the last run
    uint64_t event_count, event_capacity;
    // Targets that peaks were asked of.
    struct berth_run_profile_target *targets;
    int64_t run_ns;  // from the beginning to the end of the runs, the sum
    uint64_t run_count;
} berth_run_profile;

// What ran of a run: the last run of a session that was opened with `profile`, or an operation on the host.
typedef struct berth_run_profile_part {
    berth_session *session;  // NULL: on the host:
    const char *name, *op;   // of it
    int64_t duration_ns;     // of it
    const char *target;      // of the session's program (JSON); NULL: no peaks are known
    int64_t start_ns;        // since the run's beginning
} berth_run_profile_part;

BERTH_MUST_USE berth_status berth_run_profile_open(berth_run_profile *profile);
void berth_run_profile_close(berth_run_profile *profile);  // all zero is fine

void berth_run_profile_begin(berth_run_profile *profile);
// Errors: OUT_OF_MEMORY; those of reading the target.
BERTH_MUST_USE berth_status berth_run_profile_add(berth_run_profile *profile,
                                                  const berth_run_profile_part *part);
void berth_run_profile_end(berth_run_profile *profile, int64_t run_ns);

// A table on stdout, and the same as JSON, longest first. After one run at least; none is added after.
void berth_run_profile_print(berth_run_profile *profile);
json_t *berth_run_profile_json(berth_run_profile *profile);
// Milliseconds of all steps in a run, the mean.
double berth_run_profile_busy_ms(const berth_run_profile *profile);
// The last run, for Perfetto, a track per device; before the two above. Errors: IO, OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_run_profile_write_trace(const berth_run_profile *profile,
                                                          const char *model, const char *path);

#endif  // BERTH_TOOLS_RUN_PROFILE_H_
