#include "tools/run_profile.h"

#include <berth/target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"

// The peak of the step's device. Targets name devices as programs do.
static double peak_of(const berth_target_info *target, const char *device) {
    for (uint32_t i = 0; i < berth_target_info_device_count(target); ++i) {
        const berth_target_device_facts *facts = berth_target_info_device(target, i);
        if (strcmp(facts->name, device) == 0) return facts->f32_flops;
    }
    return 0;
}

static berth_status find_peaks(berth_run_profile *profile, berth_session *session,
                               const berth_target_info *target) {
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        berth_run_profile_step *step = &profile->steps[i];
        BERTH_TRY(berth_session_get_step(session, i, &step->facts, sizeof(step->facts)));
        step->peak_flops = peak_of(target, step->facts.device);
    }
    return BERTH_OK;
}

berth_status berth_run_profile_make(berth_arena *arena, berth_session *session, const char *target,
                                    berth_run_profile *out_profile) {
    berth_run_profile profile = {.step_count = berth_session_step_count(session)};
    profile.steps = berth_arena_new_array(arena, berth_run_profile_step, profile.step_count);
    profile.by_start = berth_arena_new_array(arena, berth_run_profile_step *, profile.step_count);
    for (uint32_t i = 0; i < profile.step_count; ++i) {
        profile.steps[i].step = i;
        profile.by_start[i] = &profile.steps[i];
    }
    *out_profile = profile;
    berth_compiler *reader =
        NULL;  // without the options of the command: the target has them already
    berth_target_info *info = NULL;
    berth_status status = berth_compiler_create(&reader);
    if (!status) status = berth_compiler_read_target(reader, target, &info);
    if (!status) status = find_peaks(out_profile, session, info);
    berth_target_info_free(info);
    berth_compiler_destroy(reader);
    return status;
}

static int by_start(const void *a, const void *b) {
    const berth_run_profile_step *x = *(berth_run_profile_step *const *)a;
    const berth_run_profile_step *y = *(berth_run_profile_step *const *)b;
    if (x->facts.start_ns != y->facts.start_ns)
        return x->facts.start_ns < y->facts.start_ns ? -1 : 1;
    return x->step < y->step ? -1 : 1;
}

// What the devices waited for each step of the last run: from the end of all that they began earlier, or from the run's beginning.
static void add_waits(berth_run_profile *profile) {
    enum { most_devices = 32 };
    const char *devices[most_devices];
    int64_t free_ns[most_devices];
    uint32_t count = 0;
    if (!profile->step_count) return;
    qsort(profile->by_start, profile->step_count, sizeof(*profile->by_start), by_start);
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        berth_run_profile_step *step = profile->by_start[i];
        uint32_t d = 0;
        while (d < count && strcmp(devices[d], step->facts.device) != 0) ++d;
        if (d == most_devices) continue;
        if (d == count) {
            devices[count] = step->facts.device;
            free_ns[count++] = 0;
        }
        int64_t end_ns = step->facts.start_ns + step->facts.duration_ns;
        if (step->facts.start_ns > free_ns[d]) step->wait_ns += step->facts.start_ns - free_ns[d];
        if (end_ns > free_ns[d]) free_ns[d] = end_ns;
    }
}

berth_status berth_run_profile_add(berth_run_profile *profile, berth_session *session) {
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        berth_run_profile_step *step = &profile->steps[i];
        BERTH_TRY(berth_session_get_step(session, i, &step->facts, sizeof(step->facts)));
        step->ns += step->facts.duration_ns;
    }
    add_waits(profile);
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
    double wait_ms;
    double of_peak;  // of the device's operations per second; 0 = unknown
} profile_row;

static profile_row row_of(const berth_run_profile *profile, uint32_t index) {
    const berth_run_profile_step *step = &profile->steps[index];
    double runs = (double)profile->run_count;
    double peak = step->peak_flops * (double)step->ns / 1e9;  // what it could have done
    return (profile_row){.step = &step->facts,
                         .ms = (double)step->ns / 1e6 / runs,
                         .share = profile->run_ns ? (double)step->ns / (double)profile->run_ns : 0,
                         .wait_ms = (double)step->wait_ns / 1e6 / runs,
                         .of_peak = peak > 0 ? step->facts.flops * runs / peak : 0};
}

// "f32[1,64,112,112]"
static const char *shape_text(const berth_tensor *result, char *out, size_t size) {
    size_t at = 0;
    if (result->rank < 0) return "";
    at += (size_t)snprintf(out, size, "%s[", berth_dtype_name(result->dtype));
    for (int i = 0; i < result->rank && at < size; ++i)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "",
                               (long long)result->dims[i]);
    if (at < size) snprintf(out + at, size - at, "]");
    return out;
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
    berth_cli_print("%10s %6s %8s %7s %9s %8s  %-10s %-20s step (operators)\n", "ms", "share",
                    "waited", "of peak", "GFLOP/s", "GB/s", "device", "result");
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        profile_row row = row_of(profile, i);
        char shape[128];
        berth_cli_print("%10.4f %5.1f%% %8.4f ", row.ms, 100 * row.share, row.wait_ms);
        if (row.of_peak > 0)
            berth_cli_print("%6.1f%%", 100 * row.of_peak);
        else
            berth_cli_print("%7s", "-");
        berth_cli_print(" %9.2f %8.2f  %-10s %-20s %s (%s)\n", rate(row.step->flops, row.ms),
                        rate(row.step->bytes, row.ms), row.step->device,
                        shape_text(&row.step->result, shape, sizeof(shape)), row.step->name,
                        row.step->op);
    }
}

json_t *berth_run_profile_json(berth_run_profile *profile) {
    json_t *rows = json_array();
    sort_steps(profile);
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        profile_row row = row_of(profile, i);
        const berth_tensor *result = &row.step->result;
        json_t *json = json_pack(
            "{s:o, s:o, s:o, s:b, s:f, s:f, s:f, s:f, s:f}", "step",
            berth_cli_json_text(row.step->name), "op", berth_cli_json_text(row.step->op), "device",
            berth_cli_json_text(row.step->device), "copy", row.step->is_copy, "ms", row.ms, "share",
            row.share, "wait_ms", row.wait_ms, "flops", row.step->flops, "bytes", row.step->bytes);
        json_t *shape = result->rank < 0 ? json_null() : json_array();
        for (int d = 0; d < result->rank; ++d)
            json_array_append_new(shape, json_integer(result->dims[d]));
        json_object_set_new(json, "shape", shape);
        json_object_set_new(json, "of_peak",
                            row.of_peak > 0 ? json_real(row.of_peak) : json_null());
        json_array_append_new(rows, json);
    }
    return rows;
}
