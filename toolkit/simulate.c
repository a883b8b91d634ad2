#include "toolkit/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "compiler/cost/cost.h"
#include "compiler/cost/table.h"
#include "target/route_memo.h"

typedef struct builder {
    berth_arena *arena;
    const berth_model *model;
    const berth_program *program;
    const berth_multi_target *target;
    berth_sim_load load;
    berth_simulation *out;
    berth_sim_task *tasks;
    berth_route_memo *routes;
    double constant_bytes;  // of the whole program
    uint32_t *access;       // per tensor: what kernels do with it (berth_access)
} builder;

// ---- times --------------------------------------------------------------------------------------

// Of a share of some work.
static void add_work(const builder *b, uint32_t device, const berth_work *work,
                     double constant_bytes, double share, berth_sim_task *task) {
    berth_cost_figure figure;
    berth_cost_constants constants = {.bytes = constant_bytes, .run_bytes = b->constant_bytes};
    task->ns = share * berth_cost_work_ns(b->target, berth_model_costs(b->model), device, work,
                                          constants, &figure);
    task->uses[0] =
        (berth_sim_use){b->target->devices[device].own_memory,
                        share * berth_cost_memory_ns(b->target, device, work, constants)};
}

// Bytes of constants that a step reads: they may be in a memory of their own.
static double constant_bytes(const builder *b, const berth_program_step *step) {
    double bytes = 0;
    for (uint32_t i = 0; i < b->program->kernels[step->kernel].binding_count; ++i) {
        const berth_program_tensor *tensor = &b->program->tensors[step->bindings[i]];
        if (b->program->pools[tensor->pool].usage == BERTH_POOL_CONSTANT)
            bytes += (double)tensor->size_bytes;
    }
    return bytes;
}

// What a step is of its call's kernels, and the constants that these read.
static double share_of(const builder *b, uint32_t step, double *out_constant_bytes) {
    enum { steps_of_a_call = 64 };
    const berth_work *const *works = berth_model_step_works(b->model);
    double own = 0, all = 0;
    uint32_t first = step > steps_of_a_call ? step - steps_of_a_call : 0;
    *out_constant_bytes = 0;
    for (uint32_t i = first; i < b->program->step_count && i < step + steps_of_a_call; ++i) {
        if (works[i] != works[step]) continue;
        const berth_program_kernel *kernel = &b->program->kernels[b->program->steps[i].kernel];
        double weight = kernel->flops / 8 + kernel->bytes + 1;
        all += weight;
        if (i == step) own = weight;
        *out_constant_bytes += constant_bytes(b, &b->program->steps[i]);
    }
    return own / all;
}

static void add_kernel(const builder *b, uint32_t index, berth_sim_task *task) {
    const berth_program_step *step = &b->program->steps[index];
    const berth_work *work = berth_model_step_works(b->model)[index];
    double constants = 0;
    if (work) {
        double share = share_of(b, index, &constants);
        add_work(b, step->device, work, constants, share, task);
        return;
    }
    const berth_program_kernel *kernel = &b->program->kernels[step->kernel];
    berth_work plain = {.key = "",
                        .kind = "",
                        .dtype = BERTH_DTYPE_F32,
                        .flops = kernel->flops,
                        .bytes = kernel->bytes};
    add_work(b, step->device, &plain, constant_bytes(b, step), 1, task);
}

// ---- resources ----------------------------------------------------------------------------------

// Devices by what they compute with, both directions of links, then devices' own copies.
static uint32_t link_resource(const builder *b, uint32_t link, bool forth) {
    return b->target->device_count + berth_multi_target_link_way(b->target, link, forth);
}

static uint32_t pool_device(const builder *b, uint32_t tensor) {
    return b->program->pools[b->program->tensors[tensor].pool].device;
}

// Of so many bytes that are read or written once.
static berth_sim_use use_of(const builder *b, uint32_t memory, uint64_t size_bytes) {
    double bandwidth = b->target->memories[memory].bandwidth_bytes_per_s;
    return (berth_sim_use){memory, bandwidth > 0 ? 1e9 * (double)size_bytes / bandwidth : 0};
}

static void find_access(builder *b) {
    b->access = berth_arena_new_array(b->arena, uint32_t, b->program->tensor_count + 1);
    for (uint32_t i = 0; i < b->program->step_count; ++i) {
        const berth_program_step *step = &b->program->steps[i];
        if (step->kind != BERTH_STEP_DISPATCH) continue;
        const berth_program_kernel *kernel = &b->program->kernels[step->kernel];
        for (uint32_t k = 0; k < kernel->binding_count; ++k)
            b->access[step->bindings[k]] |= kernel->bindings[k].access;
    }
}

// Whether a kernel makes what is copied and another one reads it.
static bool is_between_kernels(const builder *b, const berth_program_step *copy) {
    return (b->access[copy->bindings[0]] & BERTH_ACCESS_WRITE) &&
           (b->access[copy->bindings[1]] & BERTH_ACCESS_READ);
}

static void add_copy(const builder *b, const berth_program_step *step, berth_sim_task *task) {
    uint32_t from = pool_device(b, step->bindings[0]), to = pool_device(b, step->bindings[1]);
    uint64_t size_bytes = b->program->tensors[step->bindings[0]].size_bytes;
    const berth_target_device *devices = b->target->devices;
    berth_target_route route = {0};
    bool found = berth_route_memo_get(b->routes, devices[from].own_memory, devices[to].own_memory,
                                      size_bytes, &route);
    task->resource = b->target->device_count + 2 * b->target->link_count + step->device;
    if (found && route.hop_count && route.hops[0].link != BERTH_NO_INDEX)
        task->resource = link_resource(
            b, route.hops[0].link, b->target->links[route.hops[0].link].from == route.hops[0].from);
    task->ns = route.time_ns;
    task->uses[0] = use_of(b, devices[from].own_memory, size_bytes);
    task->uses[1] = use_of(b, devices[to].own_memory, size_bytes);
    if (devices[from].own_memory == devices[to].own_memory) {  // read and written
        task->uses[0].ns += task->uses[1].ns;
        task->uses[1].ns = 0;
    }
    if (from == to) task->ns = task->uses[0].ns;
    struct berth_cost_table *table = berth_model_costs(b->model);
    if (table && from != to)
        (void)berth_cost_table_copy(table, devices[from].target, devices[to].target,
                                    (double)size_bytes, &task->ns);
    if (is_between_kernels(b, step)) task->ns += berth_cost_between_kernels_ns(b->target, from, to);
}

// Devices of one memory hand over without a copy.
static void add_hand_overs(builder *b) {
    for (uint32_t i = 0; i < b->program->step_count; ++i) {
        const berth_program_step *step = &b->program->steps[i];
        for (uint32_t w = 0; w < step->wait_count; ++w) {
            const berth_program_step *before = &b->program->steps[step->waits[w]];
            if (before->device == step->device || before->kind == BERTH_STEP_COPY ||
                step->kind == BERTH_STEP_COPY)
                continue;
            double ns = berth_cost_hand_over_ns(b->target, berth_model_costs(b->model),
                                                before->device, step->device, 0);
            b->tasks[i].woken_ns = fmax(b->tasks[i].woken_ns, ns);
            berth_sim_task *waking = &b->tasks[step->waits[w]];
            waking->waking_ns = fmax(waking->waking_ns, ns);
        }
    }
}

static void name_resources(builder *b) {
    const berth_multi_target *target = b->target;
    uint32_t count = 2 * target->device_count + 2 * target->link_count;
    b->out->resource_count = count;
    b->out->resources = berth_arena_new_array(b->arena, const char *, count + 1);
    for (uint32_t d = 0; d < target->device_count; ++d) {
        uint32_t first = berth_multi_target_resource_of(target, d);
        const char **name = &b->out->resources[first];
        *name = *name ? berth_arena_printf(b->arena, "%s, %s", *name, target->devices[d].name)
                      : target->devices[d].name;
        b->out->resources[target->device_count + 2 * target->link_count + d] =
            berth_arena_printf(b->arena, "copies by %s", target->devices[d].name);
    }
    for (uint32_t i = 0; i < target->link_count; ++i)
        for (uint32_t forth = 0; forth < 2; ++forth) {
            const berth_target_link *link = &target->links[i];
            uint32_t from = forth ? link->from : link->to, to = forth ? link->to : link->from;
            const char *way = link->duplex ? ">" : "-";
            const char **name = &b->out->resources[link_resource(b, i, forth)];
            if (*name) continue;
            *name = *link->bus && !link->duplex
                        ? berth_arena_printf(b->arena, "bus %s", link->bus)
                        : berth_arena_printf(b->arena, "link %s %s %s", target->memories[from].name,
                                             way, target->memories[to].name);
        }
    for (uint32_t r = 0; r < count; ++r)
        if (!b->out->resources[r]) b->out->resources[r] = "";
}

// ---- memory -------------------------------------------------------------------------------------

// A session has all its pools for as long as it is open; constants are there once per session, too.
static void add_memory(builder *b) {
    b->out->memory_bytes = berth_arena_new_array(b->arena, double, b->target->memory_count + 1);
    for (uint32_t p = 0; p < b->program->pool_count; ++p) {
        const berth_program_pool *pool = &b->program->pools[p];
        if (pool->usage == BERTH_POOL_STORE) continue;  // takes no memory of a device
        b->out->memory_bytes[berth_simulation__memory_of(b->target, pool)] +=
            (double)pool->size_bytes * b->load.streams;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static berth_status build(void *user) {
    builder *b = user;
    b->tasks = berth_arena_new_array(b->arena, berth_sim_task, b->program->step_count + 1);
    b->routes = berth_route_memo_create(b->arena, b->target);
    name_resources(b);
    find_access(b);
    for (uint32_t i = 0; i < b->program->step_count; ++i) {
        const berth_program_step *step = &b->program->steps[i];
        b->tasks[i] = (berth_sim_task){
            .queue = step->queue, .waits = step->waits, .wait_count = step->wait_count};
        if (step->kind == BERTH_STEP_COPY) {
            add_copy(b, step, &b->tasks[i]);
            continue;
        }
        b->tasks[i].resource = berth_multi_target_resource_of(b->target, step->device);
        add_kernel(b, i, &b->tasks[i]);
    }
    add_hand_overs(b);
    add_memory(b);
    b->out->tasks = b->tasks;
    berth_sim_schedule schedule = {b->tasks, b->program->step_count, b->program->queue_count,
                                   b->out->resource_count};
    BERTH_TRY(berth_simulate(b->arena, &schedule, &b->load, &b->out->result));
    berth_simulation__follow_memory(b->arena, b->out);
    b->out->sorted_latency_ns =
        berth_arena_copy(b->arena, b->out->result.latency_ns, b->load.requests * sizeof(double));
    qsort(b->out->sorted_latency_ns, b->load.requests, sizeof(double), compare);
    return BERTH_OK;
}

berth_status berth_model_simulate(berth_arena *arena, const berth_model *model,
                                  const berth_sim_load *load, berth_simulation *out_simulation) {
    *out_simulation = (berth_simulation){.model = model, .load = *load};
    if (!berth_model_step_works(model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a built program says nothing of the work of its kernels: give "
                                 "the model");
    builder b = {.arena = arena,
                 .model = model,
                 .program = berth_model_program(model),
                 .target = berth_model_target(model),
                 .load = *load,
                 .out = out_simulation};
    for (uint32_t i = 0; i < b.program->pool_count; ++i)
        if (b.program->pools[i].usage == BERTH_POOL_CONSTANT)
            b.constant_bytes += (double)b.program->pools[i].size_bytes;
    return berth_arena_try(arena, build, &b);
}

// ---- trace -----------------------------------------------------------------------------------

typedef struct trace_job {
    berth_arena *arena;
    const berth_simulation *simulation;
    berth_trace_event *events;
} trace_job;

static berth_status make_events(void *user) {
    trace_job *job = user;
    const berth_simulation *s = job->simulation;
    const berth_program *program = berth_model_program(s->model);
    job->events = berth_arena_new_array(job->arena, berth_trace_event, s->result.event_count + 1);
    for (uint32_t i = 0; i < s->result.event_count; ++i) {
        const berth_sim_event *event = &s->result.events[i];
        const berth_program_step *step = &program->steps[event->task];
        job->events[i] = (berth_trace_event){
            .name = step->name,
            .category = step->kind == BERTH_STEP_COPY ? "copy" : "kernel",
            .detail = berth_arena_printf(job->arena, "request %u, %s", event->request,
                                         program->devices[step->device].name),
            .track = s->tasks[event->task].resource,
            .start_ns = llround(event->start_ns),
            .end_ns = llround(event->end_ns)};
    }
    return BERTH_OK;
}

berth_status berth_simulation_write_trace(berth_arena *arena, const berth_simulation *simulation,
                                          const char *path) {
    trace_job job = {arena, simulation, NULL};
    BERTH_TRY(berth_arena_try(arena, make_events, &job));
    return berth_trace_write(path, berth_model_program(simulation->model)->name,
                             simulation->resources, simulation->resource_count, job.events,
                             simulation->result.event_count);
}
