// Plans (<berth/plan.h>).
#include <berth/plan.h>

#include <string.h>

#include "api/compile/compiler.h"
#include "api/compile/plan.h"
#include "base/str.h"
#include "toolkit/plan_picture.h"

typedef struct plan_job {
    berth_arena *arena;
    const char *path;
    const void *data;
    size_t size_bytes;
    const char *folder;
    berth_compiler *compiler;
    berth_plan_info *info;
} plan_job;

static berth_status load_model(const plan_job *job, const berth_model_options *options,
                               berth_model **out_model) {
    if (job->data)
        return berth_model_load_memory(job->data, job->size_bytes, "the model in memory",
                                       job->folder, options, out_model);
    return berth_model_load(job->path, options, out_model);
}

typedef struct shapes_job {
    berth_plan_info *info;
    const berth_program *program;
} shapes_job;

static berth_status add_shapes(void *user) {
    const shapes_job *job = user;
    berth_api__plan_shapes(job->info, job->program);
    return BERTH_OK;
}

// For all values within bounds, as compiling would make a program of them.
static berth_status plan_shapes(plan_job *job, berth_model_options options) {
    berth_model *model = NULL;
    options.import.bounds_at_most = false;
    options.makes_vm_program = true;
    options.target_options.executor = berth_executor_kind_name(BERTH_EXECUTOR_VM);
    options.compile.log = (berth_log){.write = NULL};  // the plan for the most has said it
    BERTH_TRY(load_model(job, &options, &model));
    shapes_job shapes = {job->info, berth_model_program(model)};
    berth_status status = berth_arena_try(job->arena, add_shapes, &shapes);
    berth_model_destroy(model);
    return status;
}

static berth_status load(plan_job *job) {
    berth_model_options options;
    BERTH_TRY(berth_api__plan_options(job->compiler, &options));
    if (!job->data && berth_program_file_is(job->path))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, planned already: "
                                 "berth_program_open and its placements show how",
                                 job->path);
    BERTH_TRY(load_model(job, &options, &job->info->model));
    return options.import.bounds_count ? plan_shapes(job, options) : BERTH_OK;
}

static void make_placements(berth_plan_info *info) {
    const berth_program *program = berth_model_program(info->model);
    info->placements =
        berth_arena_new_array(info->arena, berth_placement, program->placement_count + 1);
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *placement = &program->placements[i];
        info->placements[i] = (berth_placement){.node = placement->node,
                                                .op = placement->op,
                                                .device = program->devices[placement->device].name,
                                                .reason = placement->reason};
    }
}

static berth_status make_info(void *user) {
    enum { alignment_bytes = 128 };
    plan_job *job = user;
    berth_plan_info *info = job->info = berth_arena_new(job->arena, berth_plan_info);
    info->arena = job->arena;
    if (job->path) info->path = berth_arena_strdup(job->arena, job->path);
    if (job->data) {  // the model looks into it as long as it is there
        void *copy = berth_arena_alloc_unset(job->arena, job->size_bytes + 1, alignment_bytes);
        job->data = memcpy(copy, job->data, job->size_bytes);
    }
    BERTH_TRY(load(job));
    make_placements(info);
    berth_api__plan_operations(info);
    berth_api__plan_memory(info);
    berth_api__plan_kernels(info);
    berth_strbuf svg = berth_strbuf_make(job->arena), dot = berth_strbuf_make(job->arena);
    berth_plan_picture_svg(info->model, &svg);
    berth_plan_picture_dot(info->model, &dot);
    info->svg = berth_strbuf_text(&svg);
    info->dot = berth_strbuf_text(&dot);
    return BERTH_OK;
}

static berth_status plan(plan_job *job, berth_plan_info **out_plan) {
    *out_plan = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job->arena));
    berth_status status = berth_arena_try(job->arena, make_info, job);
    if (!status) {
        *out_plan = job->info;
        return BERTH_OK;
    }
    berth_model *model = job->info ? job->info->model : NULL;
    berth_arena_destroy(job->arena);
    berth_model_destroy(model);
    return status;
}

berth_status berth_compiler_plan_file(berth_compiler *compiler, const char *path,
                                      berth_plan_info **out_plan) {
    plan_job job = {.compiler = compiler, .path = path};
    return plan(&job, out_plan);
}

berth_status berth_compiler_plan_memory(berth_compiler *compiler, const void *data,
                                        size_t size_bytes, const char *folder,
                                        berth_plan_info **out_plan) {
    static const char empty[1] = "";
    plan_job job = {.compiler = compiler,
                    .data = data ? data : empty,
                    .size_bytes = size_bytes,
                    .folder = folder};
    return plan(&job, out_plan);
}

void berth_plan_info_free(berth_plan_info *plan) {
    if (!plan) return;
    berth_model *model = plan->model;
    berth_arena_destroy(plan->arena);
    berth_model_destroy(model);
}

double berth_plan_info_predicted_ns(const berth_plan_info *plan) {
    return plan->facts.predicted_ns;
}

uint32_t berth_plan_info_placement_count(const berth_plan_info *plan) {
    return plan->operation_count;
}

const berth_placement *berth_plan_info_placement_at(const berth_plan_info *plan, uint32_t index) {
    return index < plan->operation_count ? &plan->placements[index] : NULL;
}

const char *berth_plan_info_svg(const berth_plan_info *plan) {
    return plan->svg;
}

const char *berth_plan_info_dot(const berth_plan_info *plan) {
    return plan->dot;
}

const berth_plan_facts *berth_plan_info_facts(const berth_plan_info *plan) {
    return &plan->facts;
}

const berth_planned_sharing *berth_plan_info_sharing(const berth_plan_info *plan) {
    return &plan->sharing;
}

uint32_t berth_plan_info_device_count(const berth_plan_info *plan) {
    return plan->device_count;
}

const berth_planned_device *berth_plan_info_device(const berth_plan_info *plan, uint32_t index) {
    return index < plan->device_count ? &plan->devices[index] : NULL;
}

uint32_t berth_plan_info_memory_count(const berth_plan_info *plan) {
    return plan->memory_count;
}

const berth_planned_memory *berth_plan_info_memory(const berth_plan_info *plan, uint32_t index) {
    return index < plan->memory_count ? &plan->memories[index] : NULL;
}

uint32_t berth_plan_info_operation_count(const berth_plan_info *plan) {
    return plan->operation_count;
}

const berth_planned_operation *berth_plan_info_operation(const berth_plan_info *plan,
                                                         uint32_t index) {
    return index < plan->operation_count ? &plan->operations[index] : NULL;
}

uint32_t berth_plan_info_copy_count(const berth_plan_info *plan) {
    return plan->copy_count;
}

const berth_planned_copy *berth_plan_info_copy(const berth_plan_info *plan, uint32_t index) {
    return index < plan->copy_count ? &plan->copies[index] : NULL;
}

uint32_t berth_plan_info_transfer_count(const berth_plan_info *plan) {
    return plan->transfer_count;
}

const berth_planned_transfer *berth_plan_info_transfer(const berth_plan_info *plan,
                                                       uint32_t index) {
    return index < plan->transfer_count ? &plan->transfers[index] : NULL;
}

uint32_t berth_plan_info_pool_count(const berth_plan_info *plan) {
    return plan->pool_count;
}

const berth_planned_pool *berth_plan_info_pool(const berth_plan_info *plan, uint32_t index) {
    return index < plan->pool_count ? &plan->pools[index] : NULL;
}

uint32_t berth_plan_info_stream_count(const berth_plan_info *plan) {
    return plan->stream_count;
}

const berth_planned_stream *berth_plan_info_stream(const berth_plan_info *plan, uint32_t index) {
    return index < plan->stream_count ? &plan->streams[index] : NULL;
}

uint32_t berth_plan_info_kernel_count(const berth_plan_info *plan) {
    return plan->kernel_count;
}

const berth_planned_kernel *berth_plan_info_kernel(const berth_plan_info *plan, uint32_t index) {
    return index < plan->kernel_count ? &plan->kernels[index] : NULL;
}
