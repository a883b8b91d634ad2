#include "compiler/package/package.h"

#include <string.h>

#include "compiler/package/fit_budget.h"
#include "ir/layout.h"

static void describe_devices(const berth_packager *p, berth_program *program) {
    berth_program_device *devices =
        berth_arena_new_array(p->arena, berth_program_device, p->target->device_count);
    for (uint32_t d = 0; d < p->target->device_count; ++d) {
        const berth_target_device *device = &p->target->devices[d];
        devices[d] = (berth_program_device){.name = device->name,
                                            .kind = berth_device_kind_name(device->target->kind),
                                            .virtual_id = device->virtual_id,
                                            .host_only = device->host_only,
                                            .target_json = device->target->canonical};
    }
    program->devices = devices;
    program->device_count = p->target->device_count;
}

// Compiles what the steps use, and leaves the other kernels out.
static berth_status keep_used(berth_packager *p, berth_program *program) {
    uint32_t *now_at = berth_arena_new_array(p->arena, uint32_t, p->kernels.count);
    for (uint32_t i = 0; i < p->facts.count; ++i)
        if (p->facts.data[i].unit != BERTH_NO_INDEX)
            p->pipeline->units.data[p->facts.data[i].unit].used = true;
    BERTH_TRY(berth_pipeline__make_images(p->module, p->pipeline, program));
    uint32_t kept = 0;
    for (uint32_t u = 0; u < p->pipeline->units.count; ++u) {
        berth_unit *unit = &p->pipeline->units.data[u];
        for (uint32_t k = 0; unit->used && k < unit->code.kernel_count; ++k) {
            uint32_t kernel = unit->first_kernel + k;
            now_at[kernel] = kept;
            p->kernels.data[kept] = p->kernels.data[kernel];
            p->kernels.data[kept++].executable = unit->executable;
        }
    }
    p->kernels.count = kept;
    for (uint32_t i = 0; i < p->steps.count; ++i)
        if (p->steps.data[i].kind == BERTH_STEP_DISPATCH)
            p->steps.data[i].kernel = now_at[p->steps.data[i].kernel];
    return BERTH_OK;
}

// Whether a plan exceeds a memory of the target, which is no lack of memory here.
static bool is_over(berth_status status) {
    return berth_status_code(status) == BERTH_OUT_OF_MEMORY && status != berth_status_oom();
}

// Copies beside kernels, and devices of one memory beside each other, need room: without them where it
// is too little, or little is wanted.
static berth_status plan_with_room(berth_packager *p) {
    berth_storage *storages =
        berth_arena_copy(p->arena, p->storages.data, p->storages.count * sizeof(*storages));
    const berth_memory_report report = *p->report;
    const char *objective = p->pipeline->options->objective;
    bool any = false;
    if (!objective || strcmp(objective, "memory") != 0) {
        berth_packager__choose_transfers(p);
        any = berth_packager__keep_beside(p);
    }
    for (uint32_t i = 0; i < p->facts.count; ++i) any |= p->facts.data[i].apart;
    berth_status status = berth_packager__plan_memory(p);
    if (!any || !is_over(status)) return status;
    berth_status_ignore(status);
    for (uint32_t i = 0; i < p->facts.count; ++i) p->facts.data[i].apart = false;
    memcpy(p->storages.data, storages, p->storages.count * sizeof(*storages));
    p->pools.count = p->pool_place.count = 0;
    *p->report = report;
    p->pipeline->over_bytes = 0;
    return berth_packager__plan_memory(p);
}

// What does not fit a budget is made to fit (fit_budget.h).
static berth_status plan_memory(berth_packager *p) {
    berth_status status = plan_with_room(p);
    bool plain = p->target->executor == BERTH_EXECUTOR_AOT && p->report->share_count == 0;
    if (!is_over(status) || (!plain && p->target->executor != BERTH_EXECUTOR_GRAPH)) return status;
    berth_status_free(status);
    return plain ? berth_packager__recompute_to_fit(p) : berth_packager__fit_budgets(p);
}

static const berth_work *const *step_works(const berth_packager *p) {
    const berth_work **works = berth_arena_new_array(p->arena, const berth_work *, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) works[i] = p->facts.data[i].work;
    return works;
}

static const uint32_t *step_choices(const berth_packager *p) {
    uint32_t *choices = berth_arena_new_array(p->arena, uint32_t, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        uint32_t unit = p->facts.data[i].unit;
        choices[i] = unit == BERTH_NO_INDEX ? unit : p->pipeline->units.data[unit].choice;
    }
    return choices;
}

berth_status berth_pipeline__package(berth_module *module, berth_func_id main,
                                     berth_pipeline *pipeline) {
    berth_arena *arena = module->arena;
    berth_program *program = berth_arena_new(arena, berth_program);
    berth_packager packager = {.module = module,
                               .main = main,
                               .pipeline = pipeline,
                               .target = pipeline->options->target,
                               .arena = arena,
                               .report = berth_arena_new(arena, berth_memory_report),
                               .routes = berth_route_memo_create(arena, pipeline->options->target),
                               .scratch_memory = BERTH_NO_INDEX};
    berth_packager *p = &packager;
    berth_packager__find_keepers(p);
    BERTH_TRY(berth_packager__make_steps(p, program));
    BERTH_TRY(berth_packager__share_memory(p));
    BERTH_TRY(berth_packager__store_constants(p));
    BERTH_TRY(plan_memory(p));
    BERTH_TRY(keep_used(p, program));
    BERTH_TRY(berth_packager__order_queues(p));
    describe_devices(p, program);
    BERTH_TRY(berth_pipeline__read_plan(p->module, p->main, p->target, program));
    berth_packager__add_streaming_time(p, program);
    program->name = berth_module_str(module, module->name);
    program->target_json = p->target->canonical;
    // Of executor vm this is the plan of a whole model, as one static list: no byte code is made of it.
    berth_executor_kind executor = p->target->executor;
    if (executor == BERTH_EXECUTOR_VM) executor = BERTH_EXECUTOR_GRAPH;
    program->executor = berth_executor_kind_name(executor);
    program->queues = p->queues.data;
    program->queue_count = p->queues.count;
    program->pools = p->pools.data;
    program->pool_count = p->pools.count;
    program->tensors = p->tensors.data;
    program->tensor_count = p->tensors.count;
    program->constants = p->constants.data;
    program->constant_count = p->constants.count;
    program->kernels = p->kernels.data;
    program->kernel_count = p->kernels.count;
    program->steps = p->steps.data;
    program->step_count = p->steps.count;
    // A driver copies between its own devices only: no program that is opened has others
    // (artifact/verify.c).
    if (p->direct_copy && !pipeline->options->plan_only)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "the copy %s goes over a link between devices of two kinds, which is planned and "
            "simulated, but which no driver copies over: leave the link out of the target, and it "
            "goes by the host's memory",
            p->direct_copy);
    if (!p->direct_copy) BERTH_TRY(berth_program_verify(program));
    pipeline->step_works = step_works(p);
    pipeline->step_choices = step_choices(p);
    pipeline->program = program;
    pipeline->memory = p->report;
    return BERTH_OK;
}
