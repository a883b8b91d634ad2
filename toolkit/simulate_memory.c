// How many bytes of each memory hold something, against the simulated time.
#include <stdlib.h>
#include <string.h>

#include "toolkit/simulate.h"

// Activations of tensors times places of their pool, above which nothing is followed.
static const double work_limit = 2e8;

// A tensor of a workspace while a request needs it.
typedef struct moment {
    double time_ns;
    uint32_t tensor;
    bool ends;
} moment;

typedef struct follower {
    berth_arena *arena;
    berth_arena *scratch;
    berth_simulation *out;
    const berth_program *program;
    const berth_multi_target *target;
    uint64_t **places;      // per pool: where its tensors begin and end, rising
    uint32_t *place_count;  // per pool
    uint32_t **held;        // per pool, per place: tensors that hold the bytes up to the next
    moment *moments;
    uint32_t moment_count;
} follower;

uint32_t berth_simulation__memory_of(const berth_multi_target *target,
                                     const berth_program_pool *pool) {
    const berth_target_device *device = &target->devices[pool->device];
    uint32_t memory = berth_multi_target_memory_of(target, pool->device, pool->scope);
    if (pool->usage == BERTH_POOL_CONSTANT) memory = device->constant_memory;
    return memory == BERTH_NO_INDEX ? device->own_memory : memory;
}

static bool in_workspace(const follower *f, uint32_t tensor) {
    return f->program->pools[f->program->tensors[tensor].pool].usage == BERTH_POOL_WORKSPACE;
}

// ---- the bytes of a pool that tensors hold ------------------------------------------------------

static int by_place(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void find_places(follower *f, uint32_t pool) {
    const berth_program *program = f->program;
    uint32_t count = 0, kept = 0;
    for (uint32_t t = 0; t < program->tensor_count; ++t)
        count += program->tensors[t].pool == pool ? 2 : 0;
    uint64_t *places = berth_arena_new_array(f->scratch, uint64_t, count + 1);
    count = 0;
    for (uint32_t t = 0; t < program->tensor_count; ++t) {
        if (program->tensors[t].pool != pool) continue;
        places[count++] = program->tensors[t].offset_bytes;
        places[count++] = program->tensors[t].offset_bytes + program->tensors[t].size_bytes;
    }
    if (count) qsort(places, count, sizeof(*places), by_place);
    for (uint32_t i = 0; i < count; ++i)
        if (i == 0 || places[i] != places[i - 1]) places[kept++] = places[i];
    f->places[pool] = places;
    f->place_count[pool] = kept;
    f->held[pool] = berth_arena_new_array(f->scratch, uint32_t, kept + 1);
}

static uint32_t place_of(const follower *f, uint32_t pool, uint64_t offset) {
    const uint64_t *found =
        bsearch(&offset, f->places[pool], f->place_count[pool], sizeof(offset), by_place);
    return (uint32_t)(found - f->places[pool]);
}

// Bytes that begin or end to hold something.
static double turn(follower *f, const moment *m) {
    const berth_program_tensor *tensor = &f->program->tensors[m->tensor];
    uint32_t pool = tensor->pool;
    uint32_t end = place_of(f, pool, tensor->offset_bytes + tensor->size_bytes);
    double bytes = 0;
    for (uint32_t i = place_of(f, pool, tensor->offset_bytes); i < end; ++i) {
        double size = (double)(f->places[pool][i + 1] - f->places[pool][i]);
        if (m->ends)
            bytes -= --f->held[pool][i] == 0 ? size : 0;
        else
            bytes += f->held[pool][i]++ == 0 ? size : 0;
    }
    return bytes;
}

// ---- when tensors are needed --------------------------------------------------------------------

typedef struct need {
    double first_ns, last_ns;
    uint32_t request;  // plus 1; 0 = none yet
} need;

static void close_need(follower *f, uint32_t tensor, const need *n) {
    if (!n->request) return;
    f->moments[f->moment_count++] = (moment){.time_ns = n->first_ns, .tensor = tensor};
    f->moments[f->moment_count++] = (moment){.time_ns = n->last_ns, .tensor = tensor, .ends = true};
}

static void touch(follower *f, need *needs, uint32_t tensor, const berth_sim_event *event) {
    need *n = &needs[tensor];
    if (!in_workspace(f, tensor)) return;
    if (n->request != event->request + 1) {
        close_need(f, tensor, n);
        *n = (need){event->start_ns, event->end_ns, event->request + 1};
    }
    if (event->start_ns < n->first_ns) n->first_ns = event->start_ns;
    if (event->end_ns > n->last_ns) n->last_ns = event->end_ns;
}

// What ends comes before what begins at the same time: the bytes are free then.
static int by_time(const void *a, const void *b) {
    const moment *x = a;
    const moment *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
    if (x->ends != y->ends) return x->ends ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static void find_moments(follower *f) {
    const berth_program *program = f->program;
    const berth_sim_result *result = &f->out->result;
    uint32_t most = program->tensor_count * f->out->load.requests;
    need *needs = berth_arena_new_array(f->scratch, need, program->tensor_count + 1);
    f->moments = berth_arena_new_array(f->scratch, moment, 2 * (size_t)most + 1);
    for (uint32_t i = 0; i < result->event_count; ++i) {
        const berth_program_step *step = &program->steps[result->events[i].task];
        uint32_t bindings =
            step->kind == BERTH_STEP_COPY ? 2 : program->kernels[step->kernel].binding_count;
        for (uint32_t b = 0; b < bindings; ++b)
            touch(f, needs, step->bindings[b], &result->events[i]);
    }
    for (uint32_t t = 0; t < program->tensor_count; ++t) close_need(f, t, &needs[t]);
    if (f->moment_count) qsort(f->moments, f->moment_count, sizeof(moment), by_time);
}

// ---- curves -------------------------------------------------------------------------------------

static void add_point(berth_simulated_memory *memory, double time_ns, double bytes) {
    if (memory->count && memory->time_ns[memory->count - 1] == time_ns) memory->count--;
    memory->time_ns[memory->count] = time_ns;
    memory->bytes[memory->count++] = bytes;
}

static uint32_t moment_memory(const follower *f, uint32_t i) {
    uint32_t pool = f->program->tensors[f->moments[i].tensor].pool;
    return berth_simulation__memory_of(f->target, &f->program->pools[pool]);
}

static void make_curves(follower *f) {
    uint32_t count = f->target->memory_count;
    double *now = berth_arena_new_array(f->scratch, double, count + 1);
    uint32_t *points = berth_arena_new_array(f->scratch, uint32_t, count + 1);
    berth_simulated_memory *memories =
        berth_arena_new_array(f->arena, berth_simulated_memory, count + 1);
    for (uint32_t i = 0; i < f->moment_count; ++i) points[moment_memory(f, i)]++;
    for (uint32_t p = 0; p < f->program->pool_count; ++p) {
        const berth_program_pool *pool = &f->program->pools[p];
        if (pool->usage != BERTH_POOL_WORKSPACE && pool->usage != BERTH_POOL_STORE)
            memories[berth_simulation__memory_of(f->target, pool)].fixed_bytes +=
                (double)pool->size_bytes;
    }
    for (uint32_t m = 0; m < count; ++m) {
        if (points[m] == 0) continue;
        memories[m].time_ns = berth_arena_new_array(f->arena, double, points[m] + 1);
        memories[m].bytes = berth_arena_new_array(f->arena, double, points[m] + 1);
        add_point(&memories[m], 0, 0);
    }
    for (uint32_t i = 0; i < f->moment_count; ++i) {
        uint32_t m = moment_memory(f, i);
        now[m] += turn(f, &f->moments[i]);
        add_point(&memories[m], f->moments[i].time_ns, now[m]);
    }
    for (uint32_t m = 0; m < count; ++m)
        for (uint32_t i = 0; i < memories[m].count; ++i)
            if (memories[m].bytes[i] > memories[m].peak_bytes) {
                memories[m].peak_bytes = memories[m].bytes[i];
                memories[m].peak_ns = memories[m].time_ns[i];
            }
    f->out->memories = memories;
}

void berth_simulation__follow_memory(berth_arena *arena, berth_simulation *simulation) {
    follower f = {.arena = arena,
                  .out = simulation,
                  .program = berth_model_program(simulation->model),
                  .target = berth_model_target(simulation->model)};
    double tensors = f.program->tensor_count, requests = simulation->load.requests;
    simulation->memories = NULL;
    if (simulation->load.streams > 1 || 2 * tensors * tensors * requests > work_limit) return;
    f.scratch = berth_arena_create_child(arena);
    f.places = berth_arena_new_array(f.scratch, uint64_t *, f.program->pool_count + 1);
    f.held = berth_arena_new_array(f.scratch, uint32_t *, f.program->pool_count + 1);
    f.place_count = berth_arena_new_array(f.scratch, uint32_t, f.program->pool_count + 1);
    for (uint32_t p = 0; p < f.program->pool_count; ++p) find_places(&f, p);
    find_moments(&f);
    make_curves(&f);
    berth_arena_destroy(f.scratch);
}
