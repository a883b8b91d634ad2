// The queues of a program, and what its steps wait for.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/package/latest_access.h"
#include "compiler/package/package.h"

// How much later than predicted a step may end, as a part of the time until then.
static const double spare_part = 0.25;

typedef BERTH_VEC(berth_byte_range) range_list;

typedef struct queuer {
    berth_packager *p;
    berth_arena *arena;            // scratch
    bool placed;                   // storages have their places in pools
    berth_latest_access **latest;  // per space; NULL for constants, which nobody writes
    range_list *ranges;            // per space, while they are collected
    double *times;                 // kernel time of one device's steps, of the first i
    uint32_t *queue_of;            // per device: its queue for kernels
    uint32_t *asked_at;            // per queue: step + 1 that it was listed for
    uint32_t *latest_of;           // per queue: its latest step, + 1
    uint32_t *others;              // room for a queue each
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

static bool is_written(const queuer *q, uint32_t space) {
    return usage_of(q, space) != BERTH_POOL_CONSTANT && usage_of(q, space) != BERTH_POOL_STORE;
}

// Forgets all accesses; keys are numbers below `key_count`.
static void start_tracking(queuer *q, uint32_t key_count) {
    berth_packager *p = q->p;
    uint32_t spaces = q->placed ? p->pools.count : p->storages.count;
    range_list *ranges = berth_arena_new_array(q->arena, range_list, spaces);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        bytes held = bytes_of(q, t);
        berth_vec_push(q->arena, &ranges[held.space], held.range);
    }
    q->latest = berth_arena_new_array(q->arena, berth_latest_access *, spaces);
    for (uint32_t i = 0; i < spaces; ++i)
        if (is_written(q, i))
            q->latest[i] =
                berth_latest_access_create(q->arena, ranges[i].data, ranges[i].count, key_count);
}

// Forgets all accesses; steps from the list will be recorded, with key 0, and nothing else.
static void track_steps(queuer *q, berth_arena *arena, const uint32_t *steps, uint32_t count) {
    berth_packager *p = q->p;
    BERTH_VEC(uint32_t) spaces = {0};
    for (uint32_t i = 0; i < count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, steps[i]); ++b) {
            bytes held = bytes_of(q, p->steps.data[steps[i]].bindings[b]);
            range_list *ranges = &q->ranges[held.space];
            if (ranges->count == 0) berth_vec_push(arena, &spaces, held.space);
            berth_vec_push(arena, ranges, held.range);
        }
    for (uint32_t i = 0; i < spaces.count; ++i) {
        range_list *ranges = &q->ranges[spaces.data[i]];
        if (is_written(q, spaces.data[i]))
            q->latest[spaces.data[i]] =
                berth_latest_access_create(arena, ranges->data, ranges->count, 1);
        *ranges = (range_list){0};
    }
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
    return pool && !berth_bits_is_empty(pool->shared_with) &&
           berth_program_pool_reached(pool, device) &&
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
    return berth_bits_count(berth_packager__workers(p, place)) > 1;
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

double berth_packager__copy_ns(const berth_packager *p, uint32_t index, uint32_t *out_way) {
    const berth_program_step *step = &p->steps.data[index];
    berth_target_route route;
    *out_way = BERTH_NO_INDEX;
    if (!berth_route_memo_get(p->routes, memory_of(p, step->bindings[0]),
                              memory_of(p, step->bindings[1]),
                              p->tensors.data[step->bindings[0]].size_bytes, &route))
        return 0;
    const berth_target_hop *hop = &route.hops[0];
    if (route.hop_count && hop->link != BERTH_NO_INDEX)
        *out_way = berth_multi_target_link_way(p->target, hop->link,
                                               p->target->links[hop->link].from == hop->from);
    return route.time_ns;
}

double berth_packager__work_ns(const berth_packager *p, uint32_t index, berth_dtype dtype) {
    const berth_program_step *step = &p->steps.data[index];
    const berth_program_kernel *kernel = &p->kernels.data[step->kernel];
    berth_work work = {
        .key = "", .kind = "", .dtype = dtype, .flops = kernel->flops, .bytes = kernel->bytes};
    berth_cost_figure figure;
    return berth_cost_work_ns(p->target, NULL, step->device, &work, (berth_cost_constants){0},
                              &figure);
}

// Plain C is far from the peaks: its time is that of the cost model.
static double plain_c_ns(const berth_packager *p, uint32_t index) {
    const berth_work *call = p->facts.data[index].work;
    return berth_packager__work_ns(p, index, call ? call->dtype : BERTH_DTYPE_F32);
}

double berth_packager__kernel_ns(const berth_packager *p, uint32_t index) {
    const berth_program_step *step = &p->steps.data[index];
    if (step->kind != BERTH_STEP_DISPATCH) return 0;
    const berth_program_kernel *kernel = &p->kernels.data[step->kernel];
    const berth_target_device *device = &p->target->devices[step->device];
    if (p->target->executor == BERTH_EXECUTOR_AOT) return plain_c_ns(p, index);
    double bandwidth = p->target->memories[device->own_memory].bandwidth_bytes_per_s;
    double compute_s = kernel->flops / berth_target_peak(device->target, BERTH_DTYPE_F32);
    double memory_s = bandwidth > 0 ? kernel->bytes / bandwidth : 0;
    return (compute_s > memory_s ? compute_s : memory_s) * 1e9;
}

// Kernel time of a device's steps, by number of all steps: [i] is that of the first i.
static void find_times(const queuer *q, const uint32_t *steps, uint32_t count) {
    const berth_packager *p = q->p;
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        bool own = at < count && steps[at] == i;
        q->times[i + 1] = q->times[i] + (own ? berth_packager__kernel_ns(p, i) : 0);
        at += own;
    }
}

// Per copy of a device that may be apart: the steps of the device that come before all that must
// wait for it, as a number of steps (until), and those that it must come after (from). What is
// between goes on beside it. `steps`: those of the device.
static void find_windows(queuer *q, uint32_t device, const uint32_t *steps, uint32_t step_count,
                         uint32_t *from, uint32_t *until) {
    berth_packager *p = q->p;
    uint32_t count = p->steps.count;
    for (int backwards = 0; backwards < 2; ++backwards) {
        berth_arena *arena = berth_arena_create_child(q->arena);
        track_steps(q, arena, steps, step_count);
        for (uint32_t k = 0; k < step_count; ++k) {
            uint32_t i = steps[backwards ? step_count - 1 - k : k];
            bool asked = may_transfer(p, i);
            if (asked && !backwards) from[i] = find_conflict(q, i, 0, device);
            if (asked && backwards) until[i] = count - find_conflict(q, i, 0, device);
            record(q, i, 0, backwards ? count - i : i + 1);
        }
        berth_arena_destroy(arena);
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

static void choose_transfers(queuer *q, uint32_t device, const uint32_t *steps, uint32_t count,
                             uint32_t *from, uint32_t *until) {
    berth_packager *p = q->p;
    bool any = false;
    for (uint32_t i = 0; i < count; ++i) any |= may_transfer(p, steps[i]);
    if (!any) return;
    find_windows(q, device, steps, count, from, until);
    find_times(q, steps, count);
    for (uint32_t k = 0; k < count; ++k) {
        uint32_t i = steps[k];
        if (!may_transfer(p, i)) continue;
        double beside_ns = q->times[until[i]] - q->times[from[i]];
        uint32_t way;
        double copied_ns = berth_packager__copy_ns(p, i, &way);
        if ((beside_ns < copied_ns ? beside_ns : copied_ns) < berth_packager_queue_switch_ns)
            continue;
        p->facts.data[i].apart = true;
        keep_bytes(q, i, from[i], until[i], q->times, copied_ns);
    }
}

void berth_packager__choose_transfers(berth_packager *p) {
    queuer q = {.p = p, .arena = berth_arena_create_child(p->arena)};
    uint32_t devices = p->target->device_count, count = p->steps.count;
    uint32_t *first = berth_arena_new_array(q.arena, uint32_t, devices + 2);
    uint32_t *steps = berth_arena_new_array(q.arena, uint32_t, count + 1);
    uint32_t *from = berth_arena_new_array(q.arena, uint32_t, count + 1);
    uint32_t *until = berth_arena_new_array(q.arena, uint32_t, count + 1);
    q.times = berth_arena_new_array(q.arena, double, (size_t)count + 1);
    q.ranges = berth_arena_new_array(q.arena, range_list, p->storages.count + 1);
    q.latest = berth_arena_new_array(q.arena, berth_latest_access *, p->storages.count + 1);
    for (uint32_t i = 0; i < count; ++i) first[p->steps.data[i].device + 2]++;
    for (uint32_t d = 0; d < devices; ++d) first[d + 2] += first[d + 1];
    for (uint32_t i = 0; i < count; ++i) steps[first[p->steps.data[i].device + 1]++] = i;
    for (uint32_t d = 0; d < devices; ++d)
        choose_transfers(&q, d, steps + first[d], first[d + 1] - first[d], from, until);
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

static int compare_queues(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

// Queues that have touched what the step touches, and `also` (BERTH_NO_INDEX: none), ascending.
static uint32_t list_others(queuer *q, uint32_t index, uint32_t also) {
    berth_packager *p = q->p;
    const berth_program_step *step = &p->steps.data[index];
    uint32_t count = 0;
    if (also != BERTH_NO_INDEX) {
        q->asked_at[also] = index + 1;
        q->others[count++] = also;
    }
    for (uint32_t b = 0; b < berth_packager__binding_count(p, index); ++b) {
        const berth_latest_access *latest = q->latest[bytes_of(q, step->bindings[b]).space];
        uint32_t key_count = 0;
        const uint32_t *keys = latest ? berth_latest_access_keys(latest, &key_count) : NULL;
        for (uint32_t i = 0; i < key_count; ++i) {
            if (keys[i] == step->queue || q->asked_at[keys[i]] == index + 1) continue;
            q->asked_at[keys[i]] = index + 1;
            q->others[count++] = keys[i];
        }
    }
    if (count > 1) qsort(q->others, count, sizeof(*q->others), compare_queues);
    return count;
}

static void set_waits(queuer *q, uint32_t index) {
    berth_packager *p = q->p;
    berth_program_step *step = &p->steps.data[index];
    uint32_t own = q->queue_of[step->device];
    bool held = p->facts.data[index].held && step->queue != own && q->latest_of[own];
    uint32_t count = list_others(q, index, held ? own : BERTH_NO_INDEX);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t other = q->others[i];
        uint32_t found = held && other == own
                             ? q->latest_of[own]
                             : find_conflict(q, index, other, p->queues.data[other].device);
        if (found) q->others[step->wait_count++] = found - 1;  // not behind i
    }
    step->waits = berth_arena_copy(p->arena, q->others, step->wait_count * sizeof(uint32_t));
}

// Queues, and the waits of all steps.
static void order_steps(queuer *q) {
    berth_packager *p = q->p;
    make_queues(q);
    if (p->queues.count < 2) return;
    start_tracking(q, p->queues.count);
    q->asked_at = berth_arena_new_array(q->arena, uint32_t, p->queues.count);
    q->latest_of = berth_arena_new_array(q->arena, uint32_t, p->queues.count);
    q->others = berth_arena_new_array(q->arena, uint32_t, p->queues.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        set_waits(q, i);
        q->latest_of[p->steps.data[i].queue] = i + 1;
        record(q, i, p->steps.data[i].queue, i + 1);
    }
}

berth_status berth_packager__order_queues(berth_packager *p) {
    queuer q = {.p = p, .arena = berth_arena_create_child(p->arena), .placed = true};
    order_steps(&q);
    berth_arena_destroy(q.arena);
    return BERTH_OK;
}

// ---- bytes that queues would wait for -----------------------------------------------------------

// The steps as they run where every value has bytes of its own.
typedef struct timetable {
    double *start_ns, *end_ns;  // per step
    double *next_ns;            // [i]: the earliest start of step i and those behind it
    uint32_t *done;  // [step * queues + queue]: steps that are done then, all before this
} timetable;

static timetable make_timetable(const queuer *q) {
    const berth_packager *p = q->p;
    uint32_t count = p->steps.count, queues = p->queues.count;
    timetable t = {.start_ns = berth_arena_new_array(q->arena, double, count),
                   .end_ns = berth_arena_new_array(q->arena, double, count),
                   .next_ns = berth_arena_new_array(q->arena, double, (size_t)count + 1),
                   .done = berth_arena_new_array(q->arena, uint32_t, (size_t)count * queues)};
    uint32_t *latest = berth_arena_new_array(q->arena, uint32_t, queues);  // step + 1
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_step *step = &p->steps.data[i];
        uint32_t *done = &t.done[(size_t)i * queues];
        for (uint32_t w = 0; w <= step->wait_count; ++w) {
            bool own = w == step->wait_count;
            if (own && !latest[step->queue]) continue;
            uint32_t before = own ? latest[step->queue] - 1 : step->waits[w];
            const uint32_t *known = &t.done[(size_t)before * queues];
            for (uint32_t k = 0; k < queues; ++k)
                if (known[k] > done[k]) done[k] = known[k];
            uint32_t *of = &done[p->steps.data[before].queue];
            if (before + 1 > *of) *of = before + 1;
            if (t.end_ns[before] > t.start_ns[i]) t.start_ns[i] = t.end_ns[before];
        }
        uint32_t way;
        double ns = step->kind == BERTH_STEP_COPY ? berth_packager__copy_ns(p, i, &way)
                                                  : berth_packager__kernel_ns(p, i);
        t.end_ns[i] = t.start_ns[i] + ns;
        latest[step->queue] = i + 1;
    }
    t.next_ns[count] = INFINITY;
    for (uint32_t i = count; i-- > 0;) t.next_ns[i] = fmin(t.start_ns[i], t.next_ns[i + 1]);
    return t;
}

// Per storage that is a workspace's: per queue, the last step that touches it, + 1.
static uint32_t *find_last_uses(const queuer *q) {
    const berth_packager *p = q->p;
    uint32_t queues = p->queues.count;
    uint32_t *last = berth_arena_new_array(q->arena, uint32_t, (size_t)p->storages.count * queues);
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t space = bytes_of(q, p->steps.data[i].bindings[b]).space;
            last[(size_t)space * queues + p->steps.data[i].queue] = i + 1;
        }
    return last;
}

// Whether all that touches a storage (last: per queue) is done before a step, whenever that runs.
static bool comes_after(const uint32_t *last, const uint32_t *done, uint32_t queues) {
    for (uint32_t k = 0; k < queues; ++k)
        if (last[k] > done[k]) return false;
    return true;
}

bool berth_packager__keep_beside(berth_packager *p) {
    queuer q = {.p = p, .arena = berth_arena_create_child(p->arena)};
    bool any = false;
    order_steps(&q);
    uint32_t queues = p->queues.count;
    if (queues > 1) {
        timetable t = make_timetable(&q);
        const uint32_t *last = find_last_uses(&q);
        for (uint32_t i = 0; i < p->storages.count; ++i) {
            berth_storage *s = &p->storages.data[i];
            if (s->usage != BERTH_POOL_WORKSPACE || s->into != BERTH_NO_INDEX ||
                s->first_step == BERTH_NO_INDEX || !is_shared_memory(p, s->place))
                continue;
            const uint32_t *own = &last[(size_t)i * queues];
            double end_ns = 0;
            for (uint32_t k = 0; k < queues; ++k)
                if (own[k]) end_ns = fmax(end_ns, t.end_ns[own[k] - 1]);
            end_ns += spare_part * end_ns + berth_packager_queue_switch_ns;
            for (uint32_t k = s->last_step + 1; k < p->steps.count && t.next_ns[k] < end_ns; ++k)
                if (t.start_ns[k] < end_ns &&
                    !comes_after(own, &t.done[(size_t)k * queues], queues)) {
                    s->last_step = k;
                    any = true;
                }
        }
    }
    for (uint32_t i = 0; i < p->steps.count; ++i) p->steps.data[i].wait_count = 0;
    p->queues.count = 0;
    berth_arena_destroy(q.arena);
    return any;
}
