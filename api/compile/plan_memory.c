// Records of a plan's memory: memories, pools, constants that are read in each run (<berth/plan.h>).
#include <string.h>

#include "api/compile/plan.h"
#include "toolkit/memory_picture.h"

// The target's memory that a pool lies in.
static uint32_t memory_of(const berth_multi_target *target, const berth_program_pool *pool) {
    const berth_target_device *device = &target->devices[pool->device];
    uint32_t memory = device->own_memory;
    uint32_t store = berth_multi_target_memory_of(target, pool->device, BERTH_TARGET_SCOPE_STORE);
    if (pool->usage == BERTH_POOL_STORE && store != BERTH_NO_INDEX) return store;
    if (strcmp(pool->scope, target->memories[memory].scope) != 0)
        memory = berth_multi_target_memory_of(target, pool->device, pool->scope);
    else if (pool->usage == BERTH_POOL_CONSTANT)
        memory = device->constant_memory;
    // A further memory for values of plain C is known by its name.
    if (memory == BERTH_NO_INDEX) memory = berth_multi_target_memory(target, pool->scope);
    return memory;
}

static void make_memories(berth_plan_info *info) {
    const berth_program *program = berth_model_program(info->model);
    const berth_multi_target *target = berth_model_target(info->model);
    info->memory_count = target->memory_count;
    info->memories =
        berth_arena_new_array(info->arena, berth_planned_memory, target->memory_count + 1);
    for (uint32_t m = 0; m < target->memory_count; ++m)
        info->memories[m] = (berth_planned_memory){
            .name = target->memories[m].name, .budget_bytes = target->memories[m].budget_bytes};
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        uint32_t memory = memory_of(target, pool);
        bool outside = pool->usage == BERTH_POOL_STORE &&  // in the program's file, say
                       strcmp(target->memories[memory].scope, BERTH_TARGET_SCOPE_STORE) != 0;
        if (!outside) info->memories[memory].used_bytes += pool->size_bytes;
    }
}

static const berth_memory_report_pool *report_of(const berth_memory_report *memory, uint32_t pool) {
    for (uint32_t i = 0; i < memory->pool_count; ++i)
        if (memory->pools[i].pool == pool) return &memory->pools[i];
    return NULL;
}

static void add_sharers(berth_plan_info *info, const berth_program_pool *pool,
                        berth_planned_pool *out) {
    const berth_program *program = berth_model_program(info->model);
    const char **names = berth_arena_new_array(info->arena, const char *, program->device_count);
    for (uint32_t d = 0; d < program->device_count; ++d)
        if (d != pool->device && berth_program_pool_reached(pool, d))
            names[out->shared_with_count++] = program->devices[d].name;
    out->shared_with = names;
}

static void add_workspace(berth_plan_info *info, const berth_memory_report_pool *report,
                          berth_planned_pool *out) {
    berth_planned_value *values =
        berth_arena_new_array(info->arena, berth_planned_value, report->value_count + 1);
    for (uint32_t i = 0; i < report->value_count; ++i) {
        const berth_memory_value *v = &report->values[i];
        values[i] = (berth_planned_value){v->name, v->size_bytes, v->first_step, v->last_step};
    }
    out->is_workspace_known = 1;
    out->live_bytes = report->live_bytes;
    out->made_bytes = report->made_bytes;
    out->padding_bytes = report->padding_bytes;
    out->peak_step = report->peak_step;
    out->strategy = report->strategy;
    out->values = values;
    out->value_count = report->value_count;
}

static void make_pools(berth_plan_info *info) {
    static const char *const usages[] = {"workspace", "constants", "io", "store"};
    const berth_program *program = berth_model_program(info->model);
    const berth_multi_target *target = berth_model_target(info->model);
    info->pool_count = program->pool_count;
    info->pools = berth_arena_new_array(info->arena, berth_planned_pool, program->pool_count + 1);
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        const berth_memory_report_pool *report = report_of(berth_model_memory(info->model), i);
        info->pools[i] =
            (berth_planned_pool){.device = program->devices[pool->device].name,
                                 .memory = target->memories[memory_of(target, pool)].name,
                                 .scope = pool->scope,
                                 .usage = usages[pool->usage],
                                 .size_bytes = pool->size_bytes,
                                 .lower_bound_bytes = pool->lower_bound_bytes};
        add_sharers(info, pool, &info->pools[i]);
        if (report) add_workspace(info, report, &info->pools[i]);
    }
}

static const berth_planned_load *loads_of(berth_arena *arena, const berth_memory_streamed *s) {
    berth_planned_load *loads = berth_arena_new_array(arena, berth_planned_load, s->load_count + 1);
    for (uint32_t i = 0; i < s->load_count; ++i) {
        const berth_memory_load *load = &s->loads[i];
        loads[i] = (berth_planned_load){load->name, load->size_bytes, load->from_step,
                                        load->first_step, load->last_step};
    }
    return loads;
}

static void make_streams(berth_plan_info *info) {
    const berth_memory_report *memory = berth_model_memory(info->model);
    info->stream_count = memory->streamed_count;
    info->streams =
        berth_arena_new_array(info->arena, berth_planned_stream, memory->streamed_count + 1);
    for (uint32_t i = 0; i < memory->streamed_count; ++i) {
        const berth_memory_streamed *s = &memory->streamed[i];
        info->streams[i] = (berth_planned_stream){
            .memory = s->memory,
            .device = berth_model_program(info->model)->devices[s->device].name,
            .budget_bytes = s->budget_bytes,
            .constant_bytes = s->constant_bytes,
            .resident_bytes = s->resident_bytes,
            .constant_count = s->constant_count,
            .loaded_bytes = s->loaded_bytes,
            .spilled_count = s->spilled_count,
            .spilled_bytes = s->spilled_bytes,
            .recomputed_count = s->recomputed_count,
            .recomputed_bytes = s->recomputed_bytes,
            .recomputed_steps = s->recomputed_steps,
            .recompute_ns = s->recompute_ns,
            .load_ns = s->load_ns,
            .run_ns = s->run_ns,
            .whole_ns = s->whole_ns,
            .loads = loads_of(info->arena, s),
            .load_count = s->load_count};
    }
}

// Of the kernel that takes most.
static uint64_t thread_bytes(const berth_program *program) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > most) most = program->kernels[i].scratch_bytes;
    return most;
}

void berth_api__plan_memory(berth_plan_info *info) {
    const berth_memory_report *memory = berth_model_memory(info->model);
    make_memories(info);
    make_pools(info);
    make_streams(info);
    info->sharing =
        (berth_planned_sharing){.plain_bytes = memory->plain_bytes,
                                .in_place_bytes = memory->in_place_bytes,
                                .views_bytes = memory->views_bytes,
                                .ordered_bytes = memory->ordered_bytes,
                                .in_place_count = memory->in_place_count,
                                .removed_steps = memory->removed_steps,
                                .removed_bytes = memory->removed_bytes,
                                .order_bound_bytes = memory->order_bound_bytes,
                                .order_states = memory->order_states,
                                .thread_bytes = thread_bytes(berth_model_program(info->model))};
}

// ---- picture ------------------------------------------------------------------------------------

typedef struct draw_job {
    berth_plan_info *plan;
    const char *svg;
} draw_job;

static berth_status draw_memory(void *user) {
    draw_job *job = user;
    berth_strbuf svg = berth_strbuf_make(job->plan->arena);
    BERTH_TRY(berth_memory_picture_svg(job->plan->model, &svg));
    job->svg = berth_strbuf_text(&svg);
    return BERTH_OK;
}

berth_status berth_plan_info_draw_memory(berth_plan_info *plan, const char **out_svg) {
    draw_job job = {.plan = plan};
    *out_svg = NULL;
    BERTH_TRY(berth_arena_try(plan->arena, draw_memory, &job));
    *out_svg = job.svg;
    return BERTH_OK;
}
