// Shared pools: memory in which several physical devices work, without copies.
//
// The pool is allocated once, by the first device that takes turns with the host, since it may have wishes, else by the
// one that is not of the host's kind (memory of Vulkan's needs no extension to be the host's, too); the host and the
// others work over the same bytes. The host may touch bytes at any time but while a device that takes turns has them
// (devices/driver.h, buffer_share). So around every batch of such a device the bytes it uses are handed over and back;
// bytes that no one else ever touches stay with it, and those that it never touches with the host.
//
// Bytes change hands in segments: the ends of all tensors cut the pool into intervals, and
// neighbours that the same devices and the same batches touch are one segment. Segments do not
// overlap, which OpenCL asks for. O(uses * intervals of each + intervals log intervals).
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "executor/session_private.h"

static bool works_in_host_memory(const berth_device *device) {
    return berth_device_get_info(device)->memories[0].host_visible;
}

uint32_t berth_executor__home(const berth_session *session, uint32_t device) {
    for (uint32_t d = 0; d < device; ++d)
        if (session->devices[d].device == session->devices[device].device) return d;
    return device;
}

bool berth_executor__shares(const berth_session *session, uint32_t pool, uint32_t device) {
    return berth_program_pool_reached(&session->program->pools[pool], device) &&
           session->devices[berth_executor__home(session, device)].pools[pool] != NULL;
}

bool berth_executor__is_shared(const berth_session *session, uint32_t pool) {
    const berth_program_pool *p = &session->program->pools[pool];
    if (berth_bits_is_empty(p->shared_with)) return false;
    for (uint32_t d = 0; d < session->program->device_count; ++d)
        if (berth_program_pool_reached(p, d) && session->devices[d].device &&
            session->devices[d].device != session->devices[p->device].device)
            return true;
    return false;
}

// ---- allocation ----

// BERTH_NO_INDEX: the owner. Memory that one device's driver maps is for others to import at their risk: with two that
// could, it is the owner's.
static uint32_t allocating_device(const berth_session *session, uint32_t pool) {
    const berth_program *program = session->program;
    uint32_t found = BERTH_NO_INDEX, count = 0;
    for (uint32_t d = 0; d < program->device_count; ++d) {
        if (!berth_program_pool_reached(&program->pools[pool], d) || !session->devices[d].device)
            continue;
        uint32_t home = berth_executor__home(session, d);
        if (!works_in_host_memory(session->devices[d].device)) return home;
        if (home != found &&
            !berth_device_kind_is_host(berth_device_kind_from_name(program->devices[d].kind)))
            found = count++ ? BERTH_NO_INDEX : home;
    }
    return found;
}

static berth_status name_sharer(const berth_session *session, uint32_t pool, uint32_t device,
                                berth_status status) {
    const berth_program *program = session->program;
    return berth_status_prefix(status, "the program plans memory that \"%s\" and \"%s\" share",
                               program->devices[program->pools[pool].device].name,
                               program->devices[device].name);
}

// Tensors begin at multiples of the pool's alignment, the pool at `data` (NULL: where the device's
// own driver put it).
static berth_status check_place(const berth_program_pool *pool, const berth_device *device,
                                const void *data) {
    uint32_t needed = berth_device_get_info(device)->memories[0].alignment_bytes;
    BERTH_TRY(berth_executor__check_alignment(pool, device, 0));
    if (data && (uintptr_t)data % needed != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s works on memory aligned to %u bytes, which the shared memory "
                                 "that another device gives is not",
                                 berth_device_get_info(device)->name, needed);
    return BERTH_OK;
}

static berth_status import(berth_session *session, uint32_t index, uint32_t device, void *data,
                           uint64_t size_bytes) {
    const berth_program_pool *pool = &session->program->pools[index];
    const berth_session_device *sharer = &session->devices[berth_executor__home(session, device)];
    if (sharer->device == session->devices[pool->device].device || sharer->pools[index])
        return BERTH_OK;
    BERTH_TRY(check_place(pool, sharer->device, data));
    return berth_buffer_import(sharer->device, data, size_bytes, &sharer->pools[index]);
}

berth_status berth_executor__share_pool(berth_session *session, uint32_t index) {
    const berth_program *program = session->program;
    const berth_program_pool *pool = &program->pools[index];
    berth_device *owner = session->devices[pool->device].device;
    uint64_t size_bytes = pool->size_bytes ? pool->size_bytes : 1;
    uint32_t first = allocating_device(session, index);
    if (!works_in_host_memory(owner))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "device \"%s\" shares it with others, but not with the host, "
                                 "which has to reach it: give "
                                 "each a memory of its own in the target",
                                 program->devices[pool->device].name);
    if (first == BERTH_NO_INDEX) {
        BERTH_TRY(berth_buffer_share(owner, size_bytes, &session->pools[index]));
    } else {
        const berth_session_device *device = &session->devices[first];
        berth_buffer **buffer = &device->pools[index];
        berth_status status = berth_buffer_share(device->device, size_bytes, buffer);
        if (!status) status = check_place(pool, device->device, NULL);
        if (!status) status = check_place(pool, owner, berth_buffer_host(*buffer));
        if (status) return name_sharer(session, index, first, status);
        BERTH_TRY(berth_buffer_import(owner, berth_buffer_host(*buffer), size_bytes,
                                      &session->pools[index]));
    }
    void *data = berth_buffer_host(session->pools[index]);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        if (!berth_program_pool_reached(pool, d) || !session->devices[d].device) continue;
        berth_status status = import(session, index, d, data, size_bytes);
        if (status) return name_sharer(session, index, d, status);
    }
    return BERTH_OK;
}

// ---- who uses which bytes ----

// A use of bytes of the pool. Parties: 0 the host, k + 1 the k-th sharer.
typedef struct use {
    uint64_t begin, end;
    uint32_t party;
    uint32_t batch;  // BERTH_NO_INDEX: between runs
} use;

typedef struct interval {
    uint64_t begin, end;
    berth_bits parties;
    uint64_t batches;     // hash of the set of batches of sharers that touch it
    uint32_t last_batch;  // + 1, of those seen so far
    uint32_t segment;
} interval;

typedef struct sharing {
    berth_session *session;
    berth_arena *scratch;
    uint32_t pool;
    uint32_t *sharers;  // home devices that need turns
    uint32_t sharer_count;
    BERTH_VEC(use) uses;  // in order of batches
    interval *intervals;
    uint32_t interval_count;
    uint32_t segment_count;
} sharing;

static void find_sharers(sharing *s) {
    const berth_session *session = s->session;
    s->sharers = berth_arena_new_array(s->scratch, uint32_t, session->program->device_count);
    for (uint32_t d = 0; d < session->program->device_count; ++d)
        if (session->devices[d].pools[s->pool] && !works_in_host_memory(session->devices[d].device))
            s->sharers[s->sharer_count++] = d;
}

static void add_use(sharing *s, uint32_t tensor, uint32_t party, uint32_t batch) {
    const berth_program *program = s->session->program;
    const berth_program_tensor *t = &program->tensors[tensor];
    if (t->pool != s->pool || t->size_bytes == 0) return;
    uint64_t alignment = program->pools[s->pool].alignment_bytes;  // no two tensors share a unit
    uint64_t end = (t->offset_bytes + t->size_bytes + alignment - 1) / alignment * alignment;
    if (end > program->pools[s->pool].size_bytes) end = program->pools[s->pool].size_bytes;
    berth_vec_push(s->scratch, &s->uses, (use){t->offset_bytes, end, party, batch});
}

static uint32_t party_of(const sharing *s, uint32_t device) {
    if (!berth_executor__shares(s->session, s->pool, device)) return 0;
    uint32_t home = berth_executor__home(s->session, device);
    for (uint32_t k = 0; k < s->sharer_count; ++k)
        if (s->sharers[k] == home) return k + 1;
    return 0;
}

static void collect_uses(sharing *s) {
    const berth_session *session = s->session;
    const berth_program *program = session->program;
    for (uint32_t i = 0; i < session->schedule.batch_count; ++i) {
        const berth_schedule_batch *batch = &session->schedule.batches[i];
        uint32_t party = party_of(s, program->queues[batch->queue].device);
        for (uint32_t k = 0; k < batch->step_count; ++k) {
            const berth_program_step *step = &program->steps[batch->steps[k]];
            uint32_t count =
                step->kind == BERTH_STEP_COPY ? 2 : program->kernels[step->kernel].binding_count;
            for (uint32_t b = 0; b < count; ++b) add_use(s, step->bindings[b], party, i);
        }
    }
    for (uint32_t i = 0; i < program->input_count; ++i)
        add_use(s, program->inputs[i].tensor, 0, BERTH_NO_INDEX);
    for (uint32_t i = 0; i < program->output_count; ++i)
        add_use(s, program->outputs[i].tensor, 0, BERTH_NO_INDEX);
}

// ---- segments ----

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void cut_intervals(sharing *s) {
    uint32_t count = 0;
    uint64_t *ends = berth_arena_new_array(s->scratch, uint64_t, 2 * (size_t)s->uses.count);
    for (uint32_t i = 0; i < s->uses.count; ++i) {
        ends[count++] = s->uses.data[i].begin;
        ends[count++] = s->uses.data[i].end;
    }
    if (count) qsort(ends, count, sizeof(*ends), compare_numbers);
    s->intervals = berth_arena_new_array(s->scratch, interval, count);
    for (uint32_t i = 0; i + 1 < count; ++i)
        if (ends[i] < ends[i + 1])
            s->intervals[s->interval_count++] = (interval){.begin = ends[i], .end = ends[i + 1]};
}

// The first interval of a use.
static interval *first_interval(const sharing *s, const use *u) {
    uint32_t low = 0;
    uint32_t high = s->interval_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->intervals[middle].begin < u->begin)
            low = middle + 1;
        else
            high = middle;
    }
    return &s->intervals[low];
}

// The finaliser of MurmurHash3 (Appleby, public domain): spreads batch numbers over 64 bits.
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

static void mark_uses(sharing *s) {
    const interval *end = s->intervals + s->interval_count;
    for (uint32_t i = 0; i < s->uses.count; ++i) {
        const use *u = &s->uses.data[i];
        for (interval *at = first_interval(s, u); at < end && at->begin < u->end; ++at) {
            at->parties = berth_bits_with(s->scratch, at->parties, u->party);
            if (u->party == 0 || at->last_batch == u->batch + 1) continue;
            at->last_batch = u->batch + 1;
            at->batches += mix(u->batch + (uint64_t)1);
        }
    }
}

static void merge_intervals(sharing *s) {
    for (uint32_t i = 0; i < s->interval_count; ++i) {
        interval *at = &s->intervals[i];
        const interval *before = i ? at - 1 : NULL;
        bool same = before && before->end == at->begin &&
                    berth_bits_equal(before->parties, at->parties) &&
                    before->batches == at->batches;
        if (!same) s->segment_count++;
        at->segment = s->segment_count - 1;
        at->last_batch = 0;
    }
}

// ---- handing over ----

static bool alternates(const interval *at, uint32_t sharer) {
    return berth_bits_has(at->parties, sharer + 1) && !berth_bits_is_single(at->parties);
}

static bool only_has(berth_bits set, uint32_t member) {
    return berth_bits_is_single(set) && berth_bits_has(set, member);
}

// Views of the segments that others than the k-th sharer use: the host has them between batches.
static berth_status make_views(sharing *s, uint32_t k, berth_buffer **views) {
    berth_session *session = s->session;
    berth_session_segments list = {.device = s->sharers[k]};
    list.buffers = berth_arena_new_array(session->arena, berth_buffer *, s->segment_count);
    berth_vec_push(session->arena, &session->segments, list);
    berth_session_segments *held = &session->segments.data[session->segments.count - 1];
    for (uint32_t i = 0; i < s->interval_count; ++i) {
        const interval *at = &s->intervals[i];
        if (berth_bits_is_empty(at->parties) || only_has(at->parties, k + 1)) continue;
        uint64_t end = at->end;
        while (i + 1 < s->interval_count && s->intervals[i + 1].segment == at->segment)
            end = s->intervals[++i].end;
        BERTH_TRY(berth_buffer_view(session->devices[s->sharers[k]].pools[s->pool], at->begin,
                                    end - at->begin, &held->buffers[held->count]));
        views[at->segment] = held->buffers[held->count++];
    }
    return BERTH_OK;
}

static bool has_batches(const sharing *s, uint32_t k) {
    for (uint32_t i = 0; i < s->uses.count; ++i)
        if (s->uses.data[i].party == k + 1) return true;
    return false;
}

// Adds the views to the batches of the k-th sharer that touch them.
static void hand_to_batches(sharing *s, uint32_t k, berth_buffer *const *views) {
    uint32_t *last_batch = berth_arena_new_array(s->scratch, uint32_t, s->segment_count);
    const interval *end = s->intervals + s->interval_count;
    for (uint32_t i = 0; i < s->uses.count; ++i) {
        const use *u = &s->uses.data[i];
        if (u->party != k + 1) continue;
        for (const interval *at = first_interval(s, u); at < end && at->begin < u->end; ++at) {
            if (!alternates(at, k) || last_batch[at->segment] == u->batch + 1) continue;
            last_batch[at->segment] = u->batch + 1;
            berth_vec_push(s->session->arena, &s->session->batches[u->batch].handed,
                           views[at->segment]);
        }
    }
}

static berth_status hand_over(const berth_session *session, uint32_t device, bool to_host,
                              berth_buffer *const *buffers, uint32_t count, bool read_only) {
    berth_queue *queue = NULL;  // any of the physical device
    for (uint32_t q = 0; q < session->program->queue_count && !queue; ++q)
        if (session->devices[session->program->queues[q].device].device ==
            session->devices[device].device)
            queue = session->queues[q].queue;
    if (!queue) return BERTH_OK;  // no step runs on it
    berth_command command = {.kind = to_host ? BERTH_COMMAND_TO_HOST : BERTH_COMMAND_TO_DEVICE,
                             .hand_over = {buffers, count, read_only}};
    return berth_queue_run(queue, &command, 1);
}

static berth_status share_with(sharing *s, uint32_t k) {
    berth_session *session = s->session;
    uint32_t device = s->sharers[k];
    berth_buffer *root = session->devices[device].pools[s->pool];
    if (session->program->pools[s->pool].usage == BERTH_POOL_CONSTANT) {  // both only read
        BERTH_TRY(hand_over(session, device, false, &root, 1, false));
        return hand_over(session, device, true, &root, 1, true);
    }
    if (!has_batches(s, k)) return BERTH_OK;  // all stays with the host
    berth_buffer **views = berth_arena_new_array(s->scratch, berth_buffer *, s->segment_count);
    BERTH_TRY(make_views(s, k, views));
    hand_to_batches(s, k, views);
    const berth_session_segments *held = &session->segments.data[session->segments.count - 1];
    BERTH_TRY(hand_over(session, device, false, &root, 1, false));
    return hand_over(session, device, true, held->buffers, held->count, false);
}

static berth_status share_segments_of(berth_session *session, uint32_t pool, berth_arena *scratch) {
    sharing s = {.session = session, .scratch = scratch, .pool = pool};
    find_sharers(&s);
    collect_uses(&s);
    cut_intervals(&s);
    mark_uses(&s);
    merge_intervals(&s);
    for (uint32_t k = 0; k < s.sharer_count; ++k) {
        berth_status status = share_with(&s, k);
        if (status) return name_sharer(session, pool, s.sharers[k], status);
    }
    return BERTH_OK;
}

berth_status berth_executor__share_segments(berth_session *session) {
    session->batches =
        berth_arena_new_array(session->arena, berth_session_batch, session->schedule.batch_count);
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < session->program->pool_count && !status; ++i) {
        if (!berth_executor__is_shared(session, i)) continue;
        berth_arena *scratch = berth_arena_create_child(session->arena);
        status = share_segments_of(session, i, scratch);
        berth_arena_destroy(scratch);
    }
    return status;
}

berth_status berth_executor__take_back(berth_session *session) {
    for (uint32_t i = 0; i < session->segments.count; ++i) {
        const berth_session_segments *held = &session->segments.data[i];
        BERTH_TRY(hand_over(session, held->device, true, held->buffers, held->count, false));
    }
    return BERTH_OK;
}

void berth_executor__free_segments(berth_session *session) {
    for (uint32_t i = 0; i < session->segments.count; ++i)
        for (uint32_t k = 0; k < session->segments.data[i].count; ++k)
            berth_buffer_free(session->segments.data[i].buffers[k]);
    session->segments.count = 0;
}
