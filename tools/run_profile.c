#include "tools/run_profile.h"

#include <stdlib.h>

#include "tools/cli_model.h"

berth_run_profile berth_run_profile_make(berth_arena *arena, const berth_program *program) {
    berth_run_profile profile = {.program = program};
    profile.steps = berth_arena_new_array(arena, berth_run_profile_step, program->step_count);
    for (uint32_t i = 0; i < program->step_count; ++i) profile.steps[i].step = i;
    return profile;
}

void berth_run_profile_add(berth_run_profile *profile, berth_session *session) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    for (uint32_t i = 0; i < report.step_count; ++i)
        profile->steps[i].ns += report.steps[i].end_ns - report.steps[i].start_ns;
    profile->run_ns += report.run_end_ns - report.run_start_ns;
    profile->run_count++;
}

// Longest first; equal ones in the order of the program.
static int by_time(const void *a, const void *b) {
    const berth_run_profile_step *x = a;
    const berth_run_profile_step *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return x->step < y->step ? -1 : 1;
}

static void sort_steps(berth_run_profile *profile) {
    if (profile->program->step_count)
        qsort(profile->steps, profile->program->step_count, sizeof(*profile->steps), by_time);
}

// A row: what one step takes in a run.
typedef struct profile_row {
    const berth_program_step *step;
    const char *device;
    double ms;
    double share;  // of the run's time; those of devices that work at once add up to more than 1
    double flops;  // of kernels, as the compiler estimates
    double bytes;  // read and written at least once; of copies, copied
} profile_row;

static profile_row row_of(const berth_run_profile *profile, uint32_t index) {
    const berth_program *program = profile->program;
    const berth_run_profile_step *time = &profile->steps[index];
    const berth_program_step *step = &program->steps[time->step];
    profile_row row = {.step = step,
                       .device = program->devices[step->device].name,
                       .ms = (double)time->ns / 1e6 / (double)profile->run_count,
                       .share = profile->run_ns ? (double)time->ns / (double)profile->run_ns : 0};
    if (step->kind == BERTH_STEP_COPY) {
        row.bytes = (double)program->tensors[step->bindings[0]].size_bytes;
    } else {
        row.flops = program->kernels[step->kernel].flops;
        row.bytes = program->kernels[step->kernel].bytes;
    }
    return row;
}

// A billion per second.
static double rate(double amount, double ms) {
    return ms > 0 ? amount / ms / 1e6 : 0;
}

static double busy_ms(const berth_run_profile *profile) {
    int64_t sum_ns = 0;
    for (uint32_t i = 0; i < profile->program->step_count; ++i) sum_ns += profile->steps[i].ns;
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
    for (uint32_t i = 0; i < profile->program->step_count; ++i) {
        profile_row row = row_of(profile, i);
        berth_cli_print("%10.3f %5.1f%% %9.2f %8.2f  %-10s %s (%s)\n", row.ms, 100 * row.share,
                        rate(row.flops, row.ms), rate(row.bytes, row.ms), row.device,
                        row.step->name, row.step->op);
    }
}

json_t *berth_run_profile_json(berth_run_profile *profile) {
    json_t *rows = json_array();
    sort_steps(profile);
    for (uint32_t i = 0; i < profile->program->step_count; ++i) {
        profile_row row = row_of(profile, i);
        json_array_append_new(rows,
                              json_pack("{s:o, s:o, s:o, s:b, s:f, s:f, s:f, s:f}", "step",
                                        berth_cli_json_text(row.step->name), "op",
                                        berth_cli_json_text(row.step->op), "device",
                                        berth_cli_json_text(row.device), "copy",
                                        row.step->kind == BERTH_STEP_COPY, "ms", row.ms, "share",
                                        row.share, "flops", row.flops, "bytes", row.bytes));
    }
    return rows;
}
