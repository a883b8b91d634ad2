// Plans (<berth/plan.h>).
#include <berth/plan.h>

#include "api/compile/compiler.h"
#include "artifact/file.h"
#include "toolkit/plan_picture.h"

struct berth_plan_info {
    berth_arena *arena;  // of this struct
    double predicted_ns;
    berth_placement *placements;
    uint32_t placement_count;
    const char *svg, *dot;
};

typedef struct plan_job {
    berth_arena *arena;
    const berth_model *model;
    berth_plan_info *info;
} plan_job;

static berth_status make_info(void *user) {
    plan_job *job = user;
    const berth_program *program = berth_model_program(job->model);
    const berth_plan *plan = berth_model_plan(job->model);
    berth_plan_info *info = job->info = berth_arena_new(job->arena, berth_plan_info);
    info->arena = job->arena;
    info->predicted_ns = plan ? plan->predicted_ns : program->predicted_ns;
    info->placements = berth_arena_new_array(job->arena, berth_placement, program->placement_count);
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *placement = &program->placements[i];
        info->placements[info->placement_count++] = (berth_placement){
            .node = berth_arena_strdup(job->arena, placement->node),
            .op = berth_arena_strdup(job->arena, placement->op),
            .device = berth_arena_strdup(job->arena, program->devices[placement->device].name),
            .reason = berth_arena_strdup(job->arena, placement->reason)};
    }
    berth_strbuf svg = berth_strbuf_make(job->arena), dot = berth_strbuf_make(job->arena);
    berth_plan_picture_svg(job->model, &svg);
    berth_plan_picture_dot(job->model, &dot);
    info->svg = berth_strbuf_text(&svg);
    info->dot = berth_strbuf_text(&dot);
    return BERTH_OK;
}

// `path`, or `data`.
static berth_status load(berth_compiler *compiler, const char *path, const void *data,
                         size_t size_bytes, const char *folder, berth_model **out_model) {
    berth_model_options options;
    *out_model = NULL;
    BERTH_TRY(berth_api__compiler_options(compiler, &options));
    options.compile.plan_only = true;
    if (data)
        return berth_model_load_memory(data, size_bytes, "the model in memory", folder, &options,
                                       out_model);
    if (berth_program_file_is(path))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a program, planned already: berth_program_open and its "
                                 "placements show how",
                                 path);
    return berth_model_load(path, &options, out_model);
}

static berth_status plan(berth_compiler *compiler, const char *path, const void *data,
                         size_t size_bytes, const char *folder, berth_plan_info **out_plan) {
    *out_plan = NULL;
    berth_model *model = NULL;
    plan_job job = {.arena = NULL};
    berth_status status = load(compiler, path, data, size_bytes, folder, &model);
    if (!status) status = berth_arena_create(berth_allocator_system(), &job.arena);
    job.model = model;
    if (!status) status = berth_arena_try(job.arena, make_info, &job);
    if (status)
        berth_arena_destroy(job.arena);
    else
        *out_plan = job.info;
    berth_model_destroy(model);
    return status;
}

berth_status berth_compiler_plan_file(berth_compiler *compiler, const char *path,
                                      berth_plan_info **out_plan) {
    return plan(compiler, path, NULL, 0, NULL, out_plan);
}

berth_status berth_compiler_plan_memory(berth_compiler *compiler, const void *data,
                                        size_t size_bytes, const char *folder,
                                        berth_plan_info **out_plan) {
    static const char empty[1] = "";
    return plan(compiler, NULL, data ? data : empty, size_bytes, folder, out_plan);
}

void berth_plan_info_free(berth_plan_info *plan) {
    if (plan) berth_arena_destroy(plan->arena);
}

double berth_plan_info_predicted_ns(const berth_plan_info *plan) {
    return plan->predicted_ns;
}

uint32_t berth_plan_info_placement_count(const berth_plan_info *plan) {
    return plan->placement_count;
}

const berth_placement *berth_plan_info_placement_at(const berth_plan_info *plan, uint32_t index) {
    return index < plan->placement_count ? &plan->placements[index] : NULL;
}

const char *berth_plan_info_svg(const berth_plan_info *plan) {
    return plan->svg;
}

const char *berth_plan_info_dot(const berth_plan_info *plan) {
    return plan->dot;
}
