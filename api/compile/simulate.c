// Simulated schedules (<berth/simulate.h>).
#include <berth/simulate.h>
#include <math.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "base/file.h"
#include "toolkit/simulate.h"

struct berth_simulation_info {
    berth_arena *arena;  // of this struct
    berth_model *model;
    berth_simulation simulation;
    berth_simulation_resource *resources;
    berth_simulation_memory *memories;
};

typedef struct simulate_job {
    berth_arena *arena;
    berth_model *model;
    berth_sim_load load;
    berth_simulation_info *info;
} simulate_job;

static void take_resources(berth_simulation_info *info) {
    const berth_simulation *s = &info->simulation;
    info->resources =
        berth_arena_new_array(info->arena, berth_simulation_resource, s->resource_count);
    for (uint32_t r = 0; r < s->resource_count; ++r)
        info->resources[r] = (berth_simulation_resource){s->resources[r], s->result.busy_ns[r]};
}

static void take_memories(berth_simulation_info *info) {
    const berth_simulation *s = &info->simulation;
    const berth_multi_target *target = berth_model_target(info->model);
    info->memories =
        berth_arena_new_array(info->arena, berth_simulation_memory, target->memory_count);
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        const berth_simulated_memory *followed = s->memories ? &s->memories[m] : NULL;
        info->memories[m] =
            (berth_simulation_memory){.name = target->memories[m].name,
                                      .size_bytes = s->memory_bytes[m],
                                      .capacity_bytes = target->memories[m].capacity_bytes,
                                      .is_followed = followed != NULL,
                                      .fixed_bytes = followed ? followed->fixed_bytes : 0,
                                      .peak_bytes = followed ? followed->peak_bytes : 0,
                                      .peak_ns = followed ? followed->peak_ns : 0};
    }
}

static berth_status make_info(void *user) {
    simulate_job *job = user;
    berth_simulation_info *info = berth_arena_new(job->arena, berth_simulation_info);
    info->arena = job->arena;
    info->model = job->model;
    BERTH_TRY(berth_model_simulate(job->arena, job->model, &job->load, &info->simulation));
    take_resources(info);
    take_memories(info);
    job->info = info;
    return BERTH_OK;
}

static berth_status read_load(const berth_simulation_load *given, berth_sim_load *out) {
    berth_simulation_load load = {.size_bytes = 0};
    *out = (berth_sim_load){.requests = 1, .streams = 1};
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(load))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_simulation_load.size_bytes is %zu; set it to "
                                 "sizeof(berth_simulation_load), %zu in this version",
                                 given->size_bytes, sizeof(load));
    memcpy(&load, given, given->size_bytes);
    if (!(load.requests_per_s >= 0 && load.requests_per_s <= 1e9))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%g requests per second: at most 1e9",
                                 load.requests_per_s);
    if (load.requests) out->requests = load.requests;
    if (load.streams) out->streams = load.streams;
    if (load.requests_per_s > 0) out->interval_ns = 1e9 / load.requests_per_s;
    return BERTH_OK;
}

berth_status berth_compiler_simulate_file(berth_compiler *compiler, const char *path,
                                          const berth_simulation_load *load,
                                          berth_simulation_info **out_info) {
    *out_info = NULL;
    simulate_job job = {.arena = NULL};
    berth_model_options options;
    BERTH_TRY(read_load(load, &job.load));
    BERTH_TRY(berth_api__plan_options(compiler, &options));
    BERTH_TRY(berth_model_load(path, &options, &job.model));
    berth_status status = berth_arena_make(make_info, &job, &job.arena);
    if (!status) {
        *out_info = job.info;
        return BERTH_OK;
    }
    berth_model_destroy(job.model);
    return status;
}

void berth_simulation_info_free(berth_simulation_info *info) {
    if (!info) return;
    berth_model *model = info->model;
    berth_arena_destroy(info->arena);
    berth_model_destroy(model);
}

// ---- facts --------------------------------------------------------------------------------------

const char *berth_simulation_info_name(const berth_simulation_info *info) {
    return berth_model_program(info->model)->name;
}

uint32_t berth_simulation_info_request_count(const berth_simulation_info *info) {
    return info->simulation.load.requests;
}

uint32_t berth_simulation_info_stream_count(const berth_simulation_info *info) {
    return info->simulation.load.streams;
}

double berth_simulation_info_end_ns(const berth_simulation_info *info) {
    return info->simulation.result.end_ns;
}

double berth_simulation_info_latency_ns(const berth_simulation_info *info, double share) {
    const berth_simulation *s = &info->simulation;
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    return s->sorted_latency_ns[(uint32_t)llround(share * (double)(s->load.requests - 1))];
}

uint32_t berth_simulation_info_event_count(const berth_simulation_info *info) {
    return info->simulation.result.event_count;
}

uint32_t berth_simulation_info_resource_count(const berth_simulation_info *info) {
    return info->simulation.resource_count;
}

uint32_t berth_simulation_info_memory_count(const berth_simulation_info *info) {
    return berth_model_target(info->model)->memory_count;
}

berth_status berth_simulation_info_get_event(const berth_simulation_info *info, uint32_t index,
                                             berth_simulation_event *out_event, size_t size_bytes) {
    const berth_simulation *s = &info->simulation;
    const berth_program *program = berth_model_program(info->model);
    if (index >= s->result.event_count)
        return berth_status_make(BERTH_OUT_OF_RANGE, "event %u of %u", index,
                                 s->result.event_count);
    const berth_sim_event *event = &s->result.events[index];
    const berth_program_step *step = &program->steps[event->task];
    const berth_simulation_event facts = {.request = event->request,
                                          .step = step->name,
                                          .op = step->op,
                                          .device = program->devices[step->device].name,
                                          .resource = s->resources[s->tasks[event->task].resource],
                                          .is_copy = step->kind == BERTH_STEP_COPY,
                                          .start_ns = event->start_ns,
                                          .end_ns = event->end_ns};
    if (size_bytes < sizeof(facts.request) || size_bytes > sizeof(facts))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "an event has %zu bytes in this version, not %zu", sizeof(facts),
                                 size_bytes);
    memcpy(out_event, &facts, size_bytes);
    return BERTH_OK;
}

const berth_simulation_resource *berth_simulation_info_resource(const berth_simulation_info *info,
                                                                uint32_t index) {
    return index < info->simulation.resource_count ? &info->resources[index] : NULL;
}

const berth_simulation_memory *berth_simulation_info_memory(const berth_simulation_info *info,
                                                            uint32_t index) {
    return index < berth_simulation_info_memory_count(info) ? &info->memories[index] : NULL;
}

// ---- files --------------------------------------------------------------------------------------

typedef struct write_job {
    berth_arena *arena;
    const berth_simulation_info *info;
    const char *path;
} write_job;

static berth_status write_svg(void *user) {
    const write_job *job = user;
    berth_strbuf svg = berth_strbuf_make(job->arena);
    berth_simulation_draw(&job->info->simulation, &svg);
    return berth_file_write(job->path, svg.data, svg.length);
}

static berth_status write_trace(void *user) {
    const write_job *job = user;
    return berth_simulation_write_trace(job->arena, &job->info->simulation, job->path);
}

static berth_status write_file(const berth_simulation_info *info, const char *path,
                               berth_status (*write)(void *user)) {
    write_job job = {.info = info, .path = path};
    return berth_arena_scratch(write, &job, &job.arena);
}

berth_status berth_simulation_info_write_svg(const berth_simulation_info *info, const char *path) {
    return write_file(info, path, write_svg);
}

berth_status berth_simulation_info_write_trace(const berth_simulation_info *info,
                                               const char *path) {
    return write_file(info, path, write_trace);
}
