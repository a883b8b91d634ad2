#include "tools/run_profile.h"

#include <berth/target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "tools/cli.h"

// Peaks of the devices of a target, each of which is read once.
typedef struct berth_run_profile_target {
    struct berth_run_profile_target *next;
    const char *text;
    berth_target_info *info;
} target_entry;

berth_status berth_run_profile_open(berth_run_profile *profile) {
    return berth_arena_create(berth_allocator_system(), &profile->arena);
}

void berth_run_profile_close(berth_run_profile *profile) {
    for (target_entry *t = profile->targets; t; t = t->next) berth_target_info_free(t->info);
    berth_arena_destroy(profile->arena);
}

// ---- which step it is ---------------------------------------------------------------------------

static berth_status read_target(berth_run_profile *profile, const char *text,
                                const target_entry **out_entry) {
    target_entry *t = profile->targets;
    while (t && strcmp(t->text, text) != 0) t = t->next;
    *out_entry = t;
    if (t) return BERTH_OK;
    t = berth_arena_new(profile->arena, target_entry);
    t->text = berth_arena_strdup(profile->arena, text);
    t->next = profile->targets;
    profile->targets = t;
    *out_entry = t;
    berth_compiler *reader =
        NULL;  // without the options of the command: the target has them already
    berth_status status = berth_compiler_create(&reader);
    if (!status) status = berth_compiler_read_target(reader, text, &t->info);
    berth_compiler_destroy(reader);
    return status;
}

// Targets name devices as programs do.
static berth_status find_peak(berth_run_profile *profile, const char *target, const char *device,
                              double *out_peak) {
    const target_entry *entry = NULL;
    *out_peak = 0;
    if (!target) return BERTH_OK;
    BERTH_TRY(read_target(profile, target, &entry));
    for (uint32_t i = 0; i < berth_target_info_device_count(entry->info); ++i) {
        const berth_target_device_facts *facts = berth_target_info_device(entry->info, i);
        if (strcmp(facts->name, device) == 0) *out_peak = facts->f32_flops;
    }
    return BERTH_OK;
}

// FNV-1a, from where another one ended (http://www.isthe.com/chongo/tech/comp/fnv/).
static uint64_t hash_more(uint64_t hash, const void *data, size_t size_bytes) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_of(const berth_step_facts *facts, uint32_t number) {
    const size_t rank = facts->result.rank > 0 ? (size_t)facts->result.rank : 0;
    uint64_t hash = hash_more(UINT64_C(0xcbf29ce484222325), &number, sizeof(number));
    hash = hash_more(hash, facts->name, strlen(facts->name));
    return hash_more(hash, facts->result.dims, rank * sizeof(facts->result.dims[0]));
}

static bool is_same(const berth_run_profile_step *step, const berth_step_facts *facts,
                    uint32_t number) {
    const berth_tensor *a = &step->facts.result, *b = &facts->result;
    return step->number == number && strcmp(step->facts.name, facts->name) == 0 &&
           strcmp(step->facts.op, facts->op) == 0 &&
           strcmp(step->facts.device, facts->device) == 0 && a->rank == b->rank &&
           a->dtype == b->dtype &&
           (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0);
}

static void make_room(berth_run_profile *profile) {
    if (profile->step_count < profile->step_capacity) return;
    const uint32_t capacity = profile->step_capacity ? 2 * profile->step_capacity : 64;
    berth_run_profile_step *steps =
        berth_arena_new_array(profile->arena, berth_run_profile_step, capacity);
    if (profile->step_count) memcpy(steps, profile->steps, profile->step_count * sizeof(*steps));
    profile->steps = steps;
    profile->step_capacity = capacity;
    profile->bucket_count = 4 * capacity;  // a power of two
    profile->buckets = berth_arena_new_array(profile->arena, uint32_t, profile->bucket_count);
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        uint64_t at = hash_of(&steps[i].facts, steps[i].number);
        while (profile->buckets[at % profile->bucket_count]) ++at;
        profile->buckets[at % profile->bucket_count] = i + 1;
    }
}

// The index of the step, which is there from here on.
static berth_status find_step(berth_run_profile *profile, const berth_step_facts *facts,
                              uint32_t number, const char *target, uint32_t *out_index) {
    make_room(profile);
    uint64_t at = hash_of(facts, number);
    for (uint32_t held = 0; (held = profile->buckets[at % profile->bucket_count]); ++at) {
        *out_index = held - 1;
        if (is_same(&profile->steps[*out_index], facts, number)) return BERTH_OK;
    }
    berth_run_profile_step *step = &profile->steps[profile->step_count];
    *step = (berth_run_profile_step){.number = number, .facts = *facts};
    step->facts.name = berth_arena_strdup(profile->arena, facts->name);
    step->facts.op = berth_arena_strdup(profile->arena, facts->op);
    step->facts.device = berth_arena_strdup(profile->arena, facts->device);
    *out_index = profile->step_count;
    profile->buckets[at % profile->bucket_count] = ++profile->step_count;
    return find_peak(profile, target, facts->device, &step->peak_flops);
}

// ---- runs ---------------------------------------------------------------------------------------

void berth_run_profile_begin(berth_run_profile *profile) {
    profile->device_count = 0;
    profile->event_count = 0;
}

static void note_event(berth_run_profile *profile, uint32_t step, int64_t start_ns,
                       int64_t duration_ns) {
    if (!profile->keeps_events) return;
    if (profile->event_count == profile->event_capacity) {
        const uint64_t capacity = profile->event_capacity ? 2 * profile->event_capacity : 1024;
        berth_run_profile_event *events =
            berth_arena_new_array(profile->arena, berth_run_profile_event, capacity);
        if (profile->event_count)
            memcpy(events, profile->events, profile->event_count * sizeof(*events));
        profile->events = events;
        profile->event_capacity = capacity;
    }
    profile->events[profile->event_count++] =
        (berth_run_profile_event){step, start_ns, start_ns + duration_ns};
}

// A step of the part that is added.
typedef struct placed_step {
    uint32_t index;  // of the profile's steps
    uint32_t number;
    int64_t start_ns, duration_ns;
} placed_step;

static int by_start(const void *a, const void *b) {
    const placed_step *x = a, *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

// What the device waited for the step: from the end of all that it began earlier, or from the run's beginning.
static void add_wait(berth_run_profile *profile, const placed_step *placed) {
    berth_run_profile_step *step = &profile->steps[placed->index];
    uint32_t d = 0;
    while (d < profile->device_count && strcmp(profile->devices[d], step->facts.device) != 0) ++d;
    if (d == BERTH_RUN_PROFILE_DEVICES) return;
    if (d == profile->device_count) {
        profile->devices[d] = step->facts.device;
        profile->free_ns[d] = 0;
        profile->device_count++;
    }
    const int64_t end_ns = placed->start_ns + placed->duration_ns;
    if (placed->start_ns > profile->free_ns[d])
        step->wait_ns += placed->start_ns - profile->free_ns[d];
    if (end_ns > profile->free_ns[d]) profile->free_ns[d] = end_ns;
}

typedef struct add_job {
    berth_run_profile *profile;
    const berth_run_profile_part *part;
    placed_step *placed;
} add_job;

static berth_status add_host(const add_job *job) {
    berth_run_profile *profile = job->profile;
    const berth_run_profile_part *part = job->part;
    const berth_step_facts facts = {
        .name = part->name, .op = part->op, .device = "host", .result = {.rank = -1}};
    uint32_t index = 0;
    BERTH_TRY(find_step(profile, &facts, UINT32_MAX, NULL, &index));
    profile->steps[index].ns += part->duration_ns;
    profile->steps[index].count++;
    note_event(profile, index, part->start_ns, part->duration_ns);
    return BERTH_OK;
}

static berth_status add_part(void *user) {
    add_job *job = user;
    berth_run_profile *profile = job->profile;
    const berth_run_profile_part *part = job->part;
    if (!part->session) return add_host(job);
    const uint32_t count = berth_session_step_count(part->session);
    for (uint32_t i = 0; i < count; ++i) {
        berth_step_facts facts;
        placed_step *placed = &job->placed[i];
        BERTH_TRY(berth_session_get_step(part->session, i, &facts, sizeof(facts)));
        // Modules need not name their nodes: what is known then is the piece.
        if (!facts.name[0] && part->name) facts.name = part->name;
        if (!facts.op[0] && part->op) facts.op = part->op;
        BERTH_TRY(find_step(profile, &facts, i, part->target, &placed->index));
        placed->number = i;
        placed->start_ns = part->start_ns + facts.start_ns;
        placed->duration_ns = facts.duration_ns;
        profile->steps[placed->index].ns += facts.duration_ns;
        profile->steps[placed->index].count++;
        note_event(profile, placed->index, placed->start_ns, facts.duration_ns);
    }
    if (count) qsort(job->placed, count, sizeof(*job->placed), by_start);
    for (uint32_t i = 0; i < count; ++i) add_wait(profile, &job->placed[i]);
    return BERTH_OK;
}

berth_status berth_run_profile_add(berth_run_profile *profile, const berth_run_profile_part *part) {
    const size_t count = part->session ? berth_session_step_count(part->session) : 0;
    add_job job = {.profile = profile, .part = part};
    job.placed = malloc((count + 1) * sizeof(*job.placed));
    if (!job.placed) return berth_status_oom();
    berth_status status = berth_arena_try(profile->arena, add_part, &job);
    free(job.placed);
    return status;
}

void berth_run_profile_end(berth_run_profile *profile, int64_t run_ns) {
    profile->run_ns += run_ns;
    profile->run_count++;
}

// ---- a trace ------------------------------------------------------------------------------------

typedef struct trace_job {
    const berth_run_profile *profile;
    berth_arena *arena;
    const char *model, *path;
} trace_job;

static berth_status write_trace(void *user) {
    const trace_job *job = user;
    const berth_run_profile *profile = job->profile;
    const char *tracks[BERTH_RUN_PROFILE_DEVICES + 1] = {NULL};
    uint32_t track_count = 0;
    berth_trace_event *events =
        berth_arena_new_array(job->arena, berth_trace_event, profile->event_count + 1);
    for (uint64_t i = 0; i < profile->event_count; ++i) {
        const berth_run_profile_event *event = &profile->events[i];
        const berth_run_profile_step *step = &profile->steps[event->step];
        uint32_t track = 0;
        while (track < track_count && strcmp(tracks[track], step->facts.device) != 0) ++track;
        if (track == track_count && track < BERTH_RUN_PROFILE_DEVICES)
            tracks[track_count++] = step->facts.device;
        events[i] = (berth_trace_event){.name = step->facts.name,
                                        .category = step->number == UINT32_MAX ? "host"
                                                    : step->facts.is_copy      ? "copy"
                                                                               : "kernel",
                                        .detail = step->facts.op,
                                        .size_bytes = step->facts.copied_bytes,
                                        .track = track,
                                        .start_ns = event->start_ns,
                                        .end_ns = event->end_ns};
    }
    return berth_trace_write(job->path, job->model, tracks, track_count, events,
                             (uint32_t)profile->event_count);
}

berth_status berth_run_profile_write_trace(const berth_run_profile *profile, const char *model,
                                           const char *path) {
    trace_job job = {.profile = profile, .model = model, .path = path};
    return berth_arena_scratch(write_trace, &job, &job.arena);
}

// ---- the table ----------------------------------------------------------------------------------

// Longest first; equal ones in the order of the program.
static int by_time(const void *a, const void *b) {
    const berth_run_profile_step *x = a;
    const berth_run_profile_step *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

static void sort_steps(berth_run_profile *profile) {
    if (profile->step_count)
        qsort(profile->steps, profile->step_count, sizeof(*profile->steps), by_time);
}

// A row: what one step takes in a run.
typedef struct profile_row {
    const berth_step_facts *step;
    double ms;
    double count;  // how often it runs
    double share;  // of the run's time; those of devices that work at once add up to more than 1
    double wait_ms;
    double of_peak;       // of the device's operations per second; 0 = unknown
    double flops, bytes;  // of all of them
} profile_row;

static profile_row row_of(const berth_run_profile *profile, uint32_t index) {
    const berth_run_profile_step *step = &profile->steps[index];
    double runs = (double)profile->run_count;
    double peak = step->peak_flops * (double)step->ns / 1e9;  // what it could have done
    double count = (double)step->count / runs;
    return (profile_row){.step = &step->facts,
                         .count = count,
                         .flops = step->facts.flops * count,
                         .bytes = step->facts.bytes * count,
                         .ms = (double)step->ns / 1e6 / runs,
                         .share = profile->run_ns ? (double)step->ns / (double)profile->run_ns : 0,
                         .wait_ms = (double)step->wait_ns / 1e6 / runs,
                         .of_peak = peak > 0 ? step->facts.flops * (double)step->count / peak : 0};
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

double berth_run_profile_busy_ms(const berth_run_profile *profile) {
    int64_t sum_ns = 0;
    for (uint32_t i = 0; i < profile->step_count; ++i) sum_ns += profile->steps[i].ns;
    return (double)sum_ns / 1e6 / (double)profile->run_count;
}

// Whether a step runs several times, or not in every run.
static bool is_repeated(const berth_run_profile *profile) {
    for (uint32_t i = 0; i < profile->step_count; ++i)
        if (profile->steps[i].count != profile->run_count) return true;
    return false;
}

void berth_run_profile_print(berth_run_profile *profile) {
    double run_ms = (double)profile->run_ns / 1e6 / (double)profile->run_count;
    sort_steps(profile);
    berth_cli_print("profile: mean of %llu run%s, %.3f ms, of which %.3f ms are steps\n",
                    (unsigned long long)profile->run_count, profile->run_count == 1 ? "" : "s",
                    run_ms, berth_run_profile_busy_ms(profile));
    bool repeats = is_repeated(profile);
    if (repeats) berth_cli_print("%8s", "times");
    berth_cli_print("%10s %6s %8s %7s %9s %8s  %-10s %-20s step (operators)\n", "ms", "share",
                    "waited", "of peak", "GFLOP/s", "GB/s", "device", "result");
    for (uint32_t i = 0; i < profile->step_count; ++i) {
        profile_row row = row_of(profile, i);
        char shape[128];
        if (repeats) berth_cli_print("%8.4g", row.count);
        berth_cli_print("%10.4f %5.1f%% %8.4f ", row.ms, 100 * row.share, row.wait_ms);
        if (row.of_peak > 0)
            berth_cli_print("%6.1f%%", 100 * row.of_peak);
        else
            berth_cli_print("%7s", "-");
        berth_cli_print(" %9.2f %8.2f  %-10s %-20s %s (%s)\n", rate(row.flops, row.ms),
                        rate(row.bytes, row.ms), row.step->device,
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
        json_t *json =
            json_pack("{s:o, s:o, s:o, s:b, s:f, s:f, s:f, s:f, s:f, s:f}", "step",
                      berth_cli_json_text(row.step->name), "op", berth_cli_json_text(row.step->op),
                      "device", berth_cli_json_text(row.step->device), "copy", row.step->is_copy,
                      "count", row.count, "ms", row.ms, "share", row.share, "wait_ms", row.wait_ms,
                      "flops", row.flops, "bytes", row.bytes);
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
