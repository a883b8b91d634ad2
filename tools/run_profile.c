#include "tools/run_profile.h"

#include <stdlib.h>

#include "tools/cli.h"

berth_run_profile berth_run_profile_make(berth_arena *arena, const berth_session *session) {
    berth_run_profile profile = {.step_count = berth_session_step_count(session)};
    profile.steps = berth_arena_new_array(arena, berth_run_profile_step, profile.step_count);
    for (uint32_t i = 0; i < profile.step_count; ++i) profile.steps[i].step = i;
    return profile;
}

berth_status berth_run_profile_add(berth_run_profile *profile, berth_session *session) {
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        berth_run_profile_step *step = &profile->steps[i];
        BERTH_TRY(berth_session_get_step(session, i, &step->facts, sizeof(step->facts)));
        step->ns += step->facts.duration_ns;
    }
    profile->run_ns += berth_session_run_ns(session);
    profile->run_count++;
    return BERTH_OK;
}

// Longest first; equal ones in the order of the program.
static int by_time(const void *a, const void *b) {
    const berth_run_profile_step *x = a;
    const berth_run_profile_step *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return x->step < y->step ? -1 : 1;
}

static void sort_steps(berth_run_profile *profile) {
    if (profile->step_count)
        qsort(profile->steps, profile->step_count, sizeof(*profile->steps), by_time);
}

// A row: what one step takes in a run.
typedef struct profile_row {
    const berth_step_facts *step;
    double ms;
    double share;  // of the run's time; those of devices that work at once add up to more than 1
} profile_row;

static profile_row row_of(const berth_run_profile *profile, uint32_t index) {
    const berth_run_profile_step *step = &profile->steps[index];
    return (profile_row){.step = &step->facts,
                         .ms = (double)step->ns / 1e6 / (double)profile->run_count,
                         .share = profile->run_ns ? (double)step->ns / (double)profile->run_ns : 0};
}

// A billion per second.
static double rate(double amount, double ms) {
    return ms > 0 ? amount / ms / 1e6 : 0;
}

static double busy_ms(const berth_run_profile *profile) {
    int64_t sum_ns = 0;
    for (uint32_t i = 0; i < profile->step_count; ++i) sum_ns += profile->steps[i].ns;
    return (double)sum_ns / 1e6 / (double)profile->run_count;
}

void berth_run_profile_print(berth_run_profile *profile) {
    double run_ms = (double)profile->run_ns / 1e6 / (double)profile->run_count;
    sort_steps(profile);
    berth_cli_print("profile: mean of %llu run%s, %.3f ms, of which %.3f ms are steps\n",
                    (unsigned long long)profile->run_count, profile->run_count == 1 ? "" : "s",
                    run_ms, busy_ms(profile));
    berth_cli_print("%10s %6s %9s %8s  %-10s step (operators)\n", "ms", "share", "GFLOP/s", "GB/s",
                    "device");
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        profile_row row = row_of(profile, i);
        berth_cli_print("%10.3f %5.1f%% %9.2f %8.2f  %-10s %s (%s)\n", row.ms, 100 * row.share,
                        rate(row.step->flops, row.ms), rate(row.step->bytes, row.ms),
                        row.step->device, row.step->name, row.step->op);
    }
}

json_t *berth_run_profile_json(berth_run_profile *profile) {
    json_t *rows = json_array();
    sort_steps(profile);
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        profile_row row = row_of(profile, i);
        json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:b, s:f, s:f, s:f, s:f}", "step",
                                              berth_cli_json_text(row.step->name), "op",
                                              berth_cli_json_text(row.step->op), "device",
                                              berth_cli_json_text(row.step->device), "copy",
                                              row.step->is_copy, "ms", row.ms, "share", row.share,
                                              "flops", row.step->flops, "bytes", row.step->bytes));
    }
    return rows;
}
