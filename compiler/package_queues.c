// The queues of a program, and what its steps wait for.
#include <string.h>

#include "compiler/latest_access.h"
#include "compiler/package.h"

// What a copy on a queue of its own costs besides: two more batches, and a wait between queues on
// either side. An estimate.
static const double queue_switch_ns = 20000;

typedef struct queuer {
    berth_packager *p;
    berth_arena *arena;            // scratch
    bool placed;                   // storages have their places in pools
    berth_latest_access **latest;  // per space; NULL for constants, which nobody writes
    uint32_t *queue_of;            // per device: its queue for kernels
    uint32_t *transfer_of;         // per device: its queue for copies, BERTH_NO_INDEX = none
} queuer;

// Where the bytes of a tensor are: in a pool, or, as long as nothing is placed, in a storage of their
// own that is part of no other.
typedef struct bytes {
    uint32_t space;
    berth_byte_range range;
} bytes;

static bytes bytes_of(const queuer *q, uint32_t tensor) {
    const berth_packager *p = q->p;
    const berth_program_tensor *t = &p->tensors.data[tensor];
    bytes held = {t->pool, {t->offset_bytes, 0}};
    if (!q->placed) {
        held = (bytes){p->storage_of.data[tensor], {0, 0}};
        for (const berth_storage *s = &p->storages.data[held.space]; s->into != BERTH_NO_INDEX;
             s = &p->storages.data[held.space]) {
            held.range.begin_bytes += s->into_offset_bytes;
            held.space = s->into;
        }
    }
    held.range.end_bytes = held.range.begin_bytes + t->size_bytes;
    return held;
}

static berth_pool_usage usage_of(const queuer *q, uint32_t space) {
    return q->placed ? q->p->pools.data[space].usage : q->p->storages.data[space].usage;
}

// Forgets all accesses; keys are numbers below `key_count`.
static void start_tracking(queuer *q, uint32_t key_count) {
    berth_packager *p = q->p;
    typedef BERTH_VEC(berth_byte_range) range_list;
    uint32_t spaces = q->placed ? p->pools.count : p->storages.count;
    range_list *ranges = berth_arena_new_array(q->arena, range_list, spaces);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        bytes held = bytes_of(q, t);
        berth_vec_push(q->arena, &ranges[held.space], held.range);
    }
    q->latest = berth_arena_new_array(q->arena, berth_latest_access *, spaces);
    for (uint32_t i = 0; i < spaces; ++i)
        if (usage_of(q, i) != BERTH_POOL_CONSTANT && usage_of(q, i) != BERTH_POOL_STORE)
            q->latest[i] =
                berth_latest_access_create(q->arena, ranges[i].data, ranges[i].count, key_count);
}

static void record(queuer *q, uint32_t step, uint32_t key, uint32_t time) {
    berth_packager *p = q->p;
    for (uint32_t b = 0; b < berth_packager__binding_count(p, step); ++b) {
        bytes held = bytes_of(q, p->steps.data[step].bindings[b]);
        if (q->latest[held.space])
            berth_latest_access_record(q->latest[held.space], key, p->facts.data[step].written[b],
                                       held.range, time);
    }
}

// Whether a device has the bytes of a shared pool for itself while it uses them, even to read.
static bool takes_turns(const queuer *q, uint32_t space, uint32_t device) {
    const berth_packager *p = q->p;
    const berth_program_pool *pool = q->placed ? &p->pools.data[space] : NULL;
    return pool && pool->shared_with != 0 && berth_program_pool_reached(pool, device) &&
           !berth_device_kind_is_host(p->target->devices[device].target->kind);
}

// The latest time at which `key`, of `device`, did what `step` must come after.
static uint32_t find_conflict(const queuer *q, uint32_t step, uint32_t key, uint32_t device) {
    const berth_packager *p = q->p;
    uint32_t time = 0;
    for (uint32_t b = 0; b < berth_packager__binding_count(p, step); ++b) {
        bytes held = bytes_of(q, p->steps.data[step].bindings[b]);
        const berth_latest_access *latest = q->latest[held.space];
        if (!latest) continue;
        bool with_reads = p->facts.data[step].written[b] || takes_turns(q, held.space, device) ||
                          takes_turns(q, held.space, p->steps.data[step].device);
        for (int write = !with_reads; write < 2; ++write) {
            uint32_t found = berth_latest_access_find(latest, key, write, held.range);
            if (found > time) time = found;
        }
    }
    return time;
}

// ---- copies on queues of their own --------------------------------------------------------------

// Whether several devices work there.
static bool is_shared_memory(const berth_packager *p, uint32_t place) {
    uint64_t workers = berth_packager__workers(p, place);
    return (workers & (workers - 1)) != 0;
}

static const berth_storage *storage_of(const berth_packager *p, uint32_t tensor) {
    return &p->storages.data[p->storage_of.data[tensor]];
}

// Shared memory is handed over around the batches of one queue, and cores make copies themselves.
static bool may_transfer(const berth_packager *p, uint32_t step) {
    const berth_program_step *s = &p->steps.data[step];
    return s->kind == BERTH_STEP_COPY &&
           !berth_target_is_cores(p->target->devices[s->device].target) &&
           !is_shared_memory(p, storage_of(p, s->bindings[0])->place) &&
           !is_shared_memory(p, storage_of(p, s->bindings[1])->place);
}

static uint32_t memory_of(const berth_packager *p, uint32_t tensor) {
    const berth_storage *storage = storage_of(p, tensor);
    return berth_packager__memory(p, storage->place, storage->usage);
}

static double copy_ns(const berth_packager *p, const berth_program_step *step) {
    berth_target_route route;
    if (!berth_multi_target_route(p->target, memory_of(p, step->bindings[0]),
                                  memory_of(p, step->bindings[1]),
                                  p->tensors.data[step->bindings[0]].size_bytes, &route))
        return 0;
    return route.time_ns;
}

double berth_packager__kernel_ns(const berth_packager *p, uint32_t index) {
    const berth_program_step *step = &p->steps.data[index];
    if (step->kind != BERTH_STEP_DISPATCH) return 0;
    const berth_program_kernel *kernel = &p->kernels.data[step->kernel];
    const berth_target_device *device = &p->target->devices[step->device];
    double bandwidth = p->target->memories[device->own_memory].bandwidth_bytes_per_s;
    double compute_s = kernel->flops / berth_target_peak(device->target, BERTH_DTYPE_F32);
    double memory_s = bandwidth > 0 ? kernel->bytes / bandwidth : 0;
    return (compute_s > memory_s ? compute_s : memory_s) * 1e9;
}

// Kernel time of the steps of a copy's device, by number of steps: [i] is that of the first i.
static double *kernel_times(const queuer *q, uint32_t device) {
    const berth_packager *p = q->p;
    double *times = berth_arena_new_array(q->arena, double, (size_t)p->steps.count + 1);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const berth_program_step *step = &p->steps.data[i];
        times[i + 1] = times[i] + (step->device == device ? berth_packager__kernel_ns(p, i) : 0);
    }
    return times;
}

// Per copy of a device that may be apart: the steps of the device that come before all that must
// wait for it, as a number of steps (until), and those that it must come after (from). What is
// between goes on beside it.
static void find_windows(queuer *q, uint32_t device, uint32_t *from, uint32_t *until) {
    berth_packager *p = q->p;
    uint32_t count = p->steps.count;
    start_tracking(q, 1);
    for (uint32_t i = 0; i < count; ++i) {
        if (p->steps.data[i].device != device) continue;
        if (may_transfer(p, i)) from[i] = find_conflict(q, i, 0, device);
        record(q, i, 0, i + 1);
    }
    start_tracking(q, 1);
    for (uint32_t i = count; i-- > 0;) {
        if (p->steps.data[i].device != device) continue;
        if (may_transfer(p, i)) until[i] = count - find_conflict(q, i, 0, device);
        record(q, i, 0, count - i);
    }
}

// What a copy moves must stay while it goes on, and what it makes must be there: over as many of the
// steps in its window as take its time, after its own place or, where that is not enough, before.
static void keep_bytes(const queuer *q, uint32_t step, uint32_t from, uint32_t until,
                       const double *times, double copied_ns) {
    const berth_packager *p = q->p;
    uint32_t first = step;
    uint32_t end = step + 1;
    while (end < until && times[end] - times[step] < copied_ns) ++end;
    while (first > from && times[end] - times[first] < copied_ns) --first;
    for (int b = 0; b < 2; ++b) {
        berth_storage *s = &p->storages.data[bytes_of(q, p->steps.data[step].bindings[b]).space];
        if (s->usage != BERTH_POOL_WORKSPACE) continue;
        if (b == 0 && s->last_step < end - 1) s->last_step = end - 1;
        if (b == 1 && s->first_step > first) s->first_step = first;
    }
}

static void choose_transfers(queuer *q, uint32_t device) {
    berth_packager *p = q->p;
    bool any = false;
    for (uint32_t i = 0; i < p->steps.count; ++i)
        any |= p->steps.data[i].device == device && may_transfer(p, i);
    if (!any) return;
    uint32_t *from = berth_arena_new_array(q->arena, uint32_t, p->steps.count);
    uint32_t *until = berth_arena_new_array(q->arena, uint32_t, p->steps.count);
    find_windows(q, device, from, until);
    const double *times = kernel_times(q, device);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        if (p->steps.data[i].device != device || !may_transfer(p, i)) continue;
        double beside_ns = times[until[i]] - times[from[i]];
        double copied_ns = copy_ns(p, &p->steps.data[i]);
        if ((beside_ns < copied_ns ? beside_ns : copied_ns) < queue_switch_ns) continue;
        p->facts.data[i].apart = true;
        keep_bytes(q, i, from[i], until[i], times, copied_ns);
    }
}

void berth_packager__choose_transfers(berth_packager *p) {
    queuer q = {.p = p, .arena = berth_arena_create_child(p->arena)};
    for (uint32_t d = 0; d < p->target->device_count; ++d) choose_transfers(&q, d);
    berth_arena_destroy(q.arena);
}

// ---- queues and waits ---------------------------------------------------------------------------

static uint32_t add_queue(berth_packager *p, uint32_t device, berth_queue_kind kind) {
    berth_vec_push(p->arena, &p->queues, (berth_program_queue){device, kind});
    return p->queues.count - 1;
}

static void make_queues(queuer *q) {
    berth_packager *p = q->p;
    uint32_t devices = p->target->device_count;
    bool *has_steps = berth_arena_new_array(q->arena, bool, devices);
    bool *has_transfers = berth_arena_new_array(q->arena, bool, devices);
    q->queue_of = berth_arena_new_array(q->arena, uint32_t, devices);
    q->transfer_of = berth_arena_new_array(q->arena, uint32_t, devices);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        has_steps[p->steps.data[i].device] = true;
        has_transfers[p->steps.data[i].device] |= p->facts.data[i].apart;
    }
    for (uint32_t d = 0; d < devices; ++d)
        if (has_steps[d]) q->queue_of[d] = add_queue(p, d, BERTH_QUEUE_COMPUTE);
    for (uint32_t d = 0; d < devices; ++d)
        if (has_transfers[d]) q->transfer_of[d] = add_queue(p, d, BERTH_QUEUE_TRANSFER);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        berth_program_step *step = &p->steps.data[i];
        step->queue =
            p->facts.data[i].apart ? q->transfer_of[step->device] : q->queue_of[step->device];
    }
}

static void set_waits(queuer *q, uint32_t index) {
    berth_packager *p = q->p;
    berth_program_step *step = &p->steps.data[index];
    uint32_t *waits = berth_arena_new_array(p->arena, uint32_t, p->queues.count);
    for (uint32_t other = 0; other < p->queues.count; ++other) {
        if (other == step->queue) continue;
        uint32_t found = find_conflict(q, index, other, p->queues.data[other].device);
        if (found) waits[step->wait_count++] = found - 1;
    }
    step->waits = waits;
}

berth_status berth_packager__order_queues(berth_packager *p) {
    queuer q = {.p = p, .arena = berth_arena_create_child(p->arena), .placed = true};
    make_queues(&q);
    if (p->queues.count > 1) {
        start_tracking(&q, p->queues.count);
        for (uint32_t i = 0; i < p->steps.count; ++i) {
            set_waits(&q, i);
            record(&q, i, p->steps.data[i].queue, i + 1);
        }
    }
    berth_arena_destroy(q.arena);
    return BERTH_OK;
}
