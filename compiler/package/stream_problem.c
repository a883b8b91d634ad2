// What is to be decided for a memory that cannot hold all: its constants, when steps read them, and what
// is there besides.
#include <string.h>

#include "compiler/package/fit_budget.h"

// A stream's reads at a run, where nothing better is known: a constant in host memory, or in a file
// that the system keeps in memory, is read and written once. A slower disk only makes the prediction
// wrong.
enum { passes_of_a_copy = 2 };

// Uses of a constant by steps this close to each other are one: kernels of one operation.
enum { same_operation = 2 };

static bool is_constant_here(const berth_streamer *s, uint32_t storage) {
    const berth_storage *held = &s->p->storages.data[storage];
    return held->usage == BERTH_POOL_CONSTANT && held->place == s->place;
}

uint64_t berth_streamer__aligned(const berth_streamer *s, uint64_t bytes) {
    uint64_t alignment = berth_packager__alignment(s->p, s->place);
    return (bytes + alignment - 1) / alignment * alignment;
}

double berth_streamer__load_ns(const berth_streamer *s, uint64_t bytes) {
    const berth_multi_target *target = s->p->target;
    if (target->executor == BERTH_EXECUTOR_AOT)  // from a store, which the application reads
        for (uint32_t m = 0; m < target->memory_count; ++m)
            if (strcmp(target->memories[m].scope, BERTH_TARGET_SCOPE_STORE) == 0)
                return (double)target->memories[m].latency_ns +
                       (double)bytes / target->memories[m].bandwidth_bytes_per_s * 1e9;
    uint32_t host = target->devices[target->host].own_memory;
    berth_target_route route;
    if (host != s->memory &&
        berth_multi_target_route(target, s->arena, host, s->memory, bytes, &route))
        return route.time_ns;
    double bandwidth = target->memories[s->memory].bandwidth_bytes_per_s;
    return bandwidth > 0 ? passes_of_a_copy * (double)bytes / bandwidth * 1e9 : 0;
}

static void find_mixed(berth_streamer *s) {
    berth_packager *p = s->p;
    s->mixed = berth_arena_new_array(s->arena, bool, p->storages.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const berth_program_step *step = &p->steps.data[i];
        bool plain = step->kind == BERTH_STEP_DISPATCH && step->device == s->device;
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i) && !plain; ++b)
            s->mixed[p->storage_of.data[step->bindings[b]]] = true;
    }
}

// A use of a constant by a step: goes on with the load before, or is one of its own.
static void add_use(berth_streamer *s, uint32_t storage, uint32_t step, uint32_t *weight_of,
                    uint32_t *last_load) {
    if (weight_of[storage] == BERTH_NO_INDEX) {
        uint64_t bytes = s->p->storages.data[storage].size_bytes;
        weight_of[storage] = s->weights.count;
        berth_vec_push(s->arena, &s->weights,
                       ((berth_stream_weight){.storage = storage,
                                              .size_bytes = berth_streamer__aligned(s, bytes),
                                              .first = step,
                                              .load_ns = berth_streamer__load_ns(s, bytes)}));
    }
    uint32_t weight = weight_of[storage];
    if (s->weights.data[weight].load_count) {
        berth_stream_load *before = &s->loads.data[last_load[storage]];
        if (step - before->last <= same_operation) {
            before->last = step;
            return;
        }
    }
    s->weights.data[weight].load_count++;
    last_load[storage] = s->loads.count;
    berth_vec_push(s->arena, &s->loads, ((berth_stream_load){weight, step, step, step}));
}

static void find_loads(berth_streamer *s) {
    berth_packager *p = s->p;
    uint32_t *weight_of = berth_arena_new_array(s->arena, uint32_t, p->storages.count);
    uint32_t *last_load = berth_arena_new_array(s->arena, uint32_t, p->storages.count);
    memset(weight_of, 0xff, p->storages.count * sizeof(*weight_of));
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t storage = p->storage_of.data[p->steps.data[i].bindings[b]];
            if (is_constant_here(s, storage) && !s->mixed[storage] &&
                p->storages.data[storage].size_bytes)
                add_use(s, storage, i, weight_of, last_load);
        }
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (is_constant_here(s, i) && weight_of[i] == BERTH_NO_INDEX)
            s->stays_bytes += berth_streamer__aligned(s, p->storages.data[i].size_bytes);
}

static uint64_t *live_bytes(const berth_streamer *s) {
    const berth_packager *p = s->p;
    uint64_t *live = berth_arena_new_array(s->arena, uint64_t, p->steps.count + 1);
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        const berth_storage *held = &p->storages.data[i];
        if (held->usage != BERTH_POOL_WORKSPACE || held->place != s->place ||
            held->into != BERTH_NO_INDEX || held->first_step == BERTH_NO_INDEX)
            continue;
        live[held->first_step] += berth_streamer__aligned(s, held->size_bytes);
        live[held->last_step + 1] -= berth_streamer__aligned(s, held->size_bytes);
    }
    for (uint32_t i = 1; i < p->steps.count; ++i) live[i] += live[i - 1];
    return live;
}

static double *step_times(const berth_streamer *s) {
    const berth_packager *p = s->p;
    double *times = berth_arena_new_array(s->arena, double, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        times[i] = berth_packager__kernel_ns(p, i);
        if (p->facts.data[i].apart)  // a value that moves: as if nothing went on beside it
            times[i] = berth_streamer__load_ns(
                s, p->tensors.data[p->steps.data[i].bindings[0]].size_bytes);
    }
    return times;
}

static double burden_of(const berth_streamer *s) {
    const berth_target *device = s->p->target->devices[s->device].target;
    if (!berth_target_is_cores(device)) return 0;
    int64_t cores = device->cores > 0 ? device->cores : device->compute_units;
    return 1.0 / (double)(cores > 0 ? cores : 1);
}

void berth_streamer__init(berth_streamer *s, berth_packager *p, uint32_t place,
                          const berth_value_moves *moves) {
    *s = (berth_streamer){.p = p,
                          .arena = berth_arena_create_child(p->arena),
                          .place = place,
                          .device = berth_bits_first(berth_packager__workers(p, place)),
                          .memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE),
                          .moves = *moves};
    find_mixed(s);
    find_loads(s);
    s->problem = (berth_stream_problem){.arena = s->arena,
                                        .step_count = s->p->steps.count,
                                        .live = live_bytes(s),
                                        .step_ns = step_times(s),
                                        .weights = s->weights.data,
                                        .weight_count = s->weights.count,
                                        .loads = s->loads.data,
                                        .load_count = s->loads.count,
                                        .burden = burden_of(s)};
}

// What is there beside values and constants that can be streamed: inputs and outputs, other
// constants, what kernels keep for threads.
uint64_t berth_streamer__fixed_bytes(const berth_streamer *s) {
    const berth_packager *p = s->p;
    uint64_t bytes = s->stays_bytes + berth_packager__scratch_bytes(p, s->memory);
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (p->storages.data[i].usage == BERTH_POOL_IO && p->storages.data[i].place == s->place)
            bytes += berth_streamer__aligned(s, p->storages.data[i].size_bytes);
    return bytes;
}
