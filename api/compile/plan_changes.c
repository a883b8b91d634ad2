// Plans for changed machines and for less memory (<berth/plan.h>).
#include <string.h>

#include "api/compile/compiler.h"
#include "api/compile/plan.h"
#include "base/str.h"
#include "toolkit/memory_sweep.h"
#include "toolkit/what_if.h"

struct berth_what_if_info {
    berth_arena *arena;  // of this struct
    berth_what_if_report report;
    berth_what_if_change *changes;
};

struct berth_memory_sweep_info {
    berth_arena *arena;  // of this struct
    berth_memory_sweep sweep;
    berth_sweep_point *points;
    const char *svg;
};

// ---- changed machines ---------------------------------------------------------------------------

typedef struct what_if_job {
    berth_arena *arena;
    berth_what_if_options options;
    berth_what_if_info *info;
} what_if_job;

static berth_status make_what_if(void *user) {
    what_if_job *job = user;
    berth_what_if_info *info = berth_arena_new(job->arena, berth_what_if_info);
    info->arena = job->arena;
    BERTH_TRY(berth_what_if(job->arena, &job->options, &info->report));
    info->changes = berth_arena_new_array(job->arena, berth_what_if_change, info->report.count + 1);
    for (uint32_t i = 0; i < info->report.count; ++i) {
        const berth_what_if_item *item = &info->report.items[i];
        info->changes[i] =
            (berth_what_if_change){item->what, item->problem, item->value, item->gain};
    }
    job->info = info;
    return BERTH_OK;
}

static berth_status read_settings(const berth_what_if_settings *given,
                                  berth_what_if_settings *out) {
    *out = (berth_what_if_settings){.size_bytes = sizeof(*out)};
    if (!given) return BERTH_OK;
    if (given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*out))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_what_if_settings.size_bytes is %zu; set it to "
                                 "sizeof(berth_what_if_settings), %zu in this version",
                                 given->size_bytes, sizeof(*out));
    memcpy(out, given, given->size_bytes);
    return BERTH_OK;
}

berth_status berth_compiler_what_if(berth_compiler *compiler, const berth_plan_info *plan,
                                    const berth_what_if_settings *settings,
                                    berth_what_if_info **out_info) {
    berth_what_if_settings wanted;
    berth_model_options model;
    what_if_job job = {.arena = NULL};
    *out_info = NULL;
    BERTH_TRY(read_settings(settings, &wanted));
    if (!plan->path)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the plan is of a model in memory: plan the model's file");
    BERTH_TRY(berth_api__plan_options(compiler, &model));
    job.options = (berth_what_if_options){.path = plan->path,
                                          .model = &model,
                                          .before = plan->model,
                                          .time_limit_ns = wanted.time_limit_ns,
                                          .progress = wanted.on_plan,
                                          .progress_user = wanted.user};
    BERTH_TRY(berth_arena_make(make_what_if, &job, &job.arena));
    *out_info = job.info;
    return BERTH_OK;
}

void berth_what_if_info_free(berth_what_if_info *info) {
    if (info) berth_arena_destroy(info->arena);
}

double berth_what_if_info_before(const berth_what_if_info *info, const char **out_unit) {
    if (out_unit) *out_unit = info->report.unit;
    return info->report.before;
}

uint32_t berth_what_if_info_left_out(const berth_what_if_info *info) {
    return info->report.left_out;
}

uint32_t berth_what_if_info_change_count(const berth_what_if_info *info) {
    return info->report.count;
}

const berth_what_if_change *berth_what_if_info_change(const berth_what_if_info *info,
                                                      uint32_t index) {
    return index < info->report.count ? &info->changes[index] : NULL;
}

// ---- less memory --------------------------------------------------------------------------------

typedef struct sweep_job {
    berth_arena *arena;
    const char *path, *memory;
    const berth_model_options *options;
    uint32_t count;
    berth_memory_sweep_info *info;
} sweep_job;

static berth_status make_sweep(void *user) {
    sweep_job *job = user;
    berth_memory_sweep_info *info = berth_arena_new(job->arena, berth_memory_sweep_info);
    berth_memory_sweep *sweep = &info->sweep;
    info->arena = job->arena;
    BERTH_TRY(berth_memory_sweep_make(job->arena, job->path, job->options, job->memory, job->count,
                                      sweep));
    info->points = berth_arena_new_array(job->arena, berth_sweep_point, sweep->point_count + 1);
    for (uint32_t i = 0; i < sweep->point_count; ++i) {
        const berth_memory_sweep_point *p = &sweep->points[i];
        info->points[i] =
            (berth_sweep_point){p->budget_bytes, p->planned_bytes, p->read_bytes, p->predicted_ns};
    }
    berth_strbuf svg = berth_strbuf_make(job->arena);
    berth_memory_sweep_draw(sweep, &svg);
    info->svg = berth_strbuf_text(&svg);
    job->info = info;
    return BERTH_OK;
}

berth_status berth_compiler_sweep_memory_file(berth_compiler *compiler, const char *path,
                                              const char *memory, uint32_t count,
                                              berth_memory_sweep_info **out_info) {
    berth_model_options options;
    *out_info = NULL;
    BERTH_TRY(berth_api__plan_options(compiler, &options));
    sweep_job job = {.path = path, .memory = memory, .options = &options, .count = count};
    BERTH_TRY(berth_arena_make(make_sweep, &job, &job.arena));
    *out_info = job.info;
    return BERTH_OK;
}

void berth_memory_sweep_info_free(berth_memory_sweep_info *info) {
    if (info) berth_arena_destroy(info->arena);
}

const char *berth_memory_sweep_info_model(const berth_memory_sweep_info *info) {
    return info->sweep.model;
}

const char *berth_memory_sweep_info_memory(const berth_memory_sweep_info *info) {
    return info->sweep.memory;
}

uint64_t berth_memory_sweep_info_least_bytes(const berth_memory_sweep_info *info) {
    return info->sweep.least_bytes;
}

uint32_t berth_memory_sweep_info_point_count(const berth_memory_sweep_info *info) {
    return info->sweep.point_count;
}

const berth_sweep_point *berth_memory_sweep_info_point(const berth_memory_sweep_info *info,
                                                       uint32_t index) {
    return index < info->sweep.point_count ? &info->points[index] : NULL;
}

const char *berth_memory_sweep_info_svg(const berth_memory_sweep_info *info) {
    return info->svg;
}
