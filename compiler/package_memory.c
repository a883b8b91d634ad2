// Places of storages in pools, and the waits between queues.
#include <string.h>

#include "compiler/package.h"
#include "memory/plan.h"

// ---- pools --------------------------------------------------------------------------------------

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

static uint32_t alignment_of(const berth_packager *p, uint32_t owner) {
    uint32_t alignment = p->target->memories[p->target->devices[owner].own_memory].alignment_bytes;
    return alignment < BERTH_DEFAULT_ALIGNMENT_BYTES ? BERTH_DEFAULT_ALIGNMENT_BYTES : alignment;
}

static uint32_t add_pool(berth_packager *p, uint32_t owner, berth_pool_usage usage) {
    berth_program_pool pool = {.device = owner,
                               .scope =
                                   p->target->memories[p->target->devices[owner].own_memory].scope,
                               .usage = usage,
                               .alignment_bytes = alignment_of(p, owner)};
    berth_vec_push(p->arena, &p->pools, pool);
    return p->pools.count - 1;
}

// Constants, inputs and outputs live all the time: one after the other.
static void place_in_row(berth_packager *p, uint32_t owner, berth_pool_usage usage) {
    uint32_t pool = BERTH_NO_INDEX;
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *storage = &p->storages.data[i];
        if (storage->owner != owner || storage->usage != usage) continue;
        if (pool == BERTH_NO_INDEX) pool = add_pool(p, owner, usage);
        berth_program_pool *held = &p->pools.data[pool];
        storage->pool = pool;
        storage->offset_bytes = align_up(held->size_bytes, held->alignment_bytes);
        held->size_bytes = storage->offset_bytes + storage->size_bytes;
        held->lower_bound_bytes += storage->size_bytes;
    }
}

// The tensors that are live where the plan is fullest, largest first, for messages.
static const char *storage_name(const berth_packager *p, uint32_t storage) {
    for (uint32_t t = 0; t < p->tensors.count; ++t)
        if (p->storage_of.data[t] == storage && *p->tensors.data[t].name)
            return p->tensors.data[t].name;
    return "unnamed";
}

static const char *describe_peak(const berth_packager *p, uint32_t owner, uint32_t step) {
    enum { most = 5 };
    berth_strbuf text = berth_strbuf_make(p->arena);
    bool *listed = berth_arena_new_array(p->arena, bool, p->storages.count);
    for (int shown = 0; shown < most; ++shown) {
        uint32_t best = BERTH_NO_INDEX;
        for (uint32_t i = 0; i < p->storages.count; ++i) {
            const berth_storage *s = &p->storages.data[i];
            if (s->usage != BERTH_POOL_WORKSPACE || s->owner != owner || s->first_step > step ||
                s->last_step < step || listed[i])
                continue;
            if (best == BERTH_NO_INDEX || s->size_bytes > p->storages.data[best].size_bytes)
                best = i;
        }
        if (best == BERTH_NO_INDEX) break;
        listed[best] = true;
        char bytes[32];
        berth_format_bytes(p->storages.data[best].size_bytes, bytes);
        berth_strbuf_addf(&text, "%s%s (%s)", shown ? ", " : "", storage_name(p, best), bytes);
    }
    return berth_strbuf_text(&text);
}

static berth_status place_workspace(berth_packager *p, uint32_t owner) {
    BERTH_VEC(berth_memory_plan_buffer) buffers = {0};
    BERTH_VEC(uint32_t) members = {0};
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *s = &p->storages.data[i];
        if (s->owner != owner || s->usage != BERTH_POOL_WORKSPACE) continue;
        if (s->first_step == BERTH_NO_INDEX)
            s->first_step = s->last_step = 0;  // a result that nothing touches
        berth_memory_plan_buffer buffer = {.first_use_step = s->first_step,
                                           .last_use_step = s->last_step,
                                           .size_bytes = s->size_bytes ? s->size_bytes : 1,
                                           .alignment_bytes = alignment_of(p, owner)};
        berth_vec_push(p->arena, &buffers, buffer);
        berth_vec_push(p->arena, &members, i);
    }
    if (buffers.count == 0) return BERTH_OK;
    const berth_target_memory *memory = &p->target->memories[p->target->devices[owner].own_memory];
    uint64_t *offsets = berth_arena_new_array(p->arena, uint64_t, buffers.count);
    berth_memory_plan_pool plan = {0};
    BERTH_TRY(berth_memory_plan_solve(p->arena, buffers.data, buffers.count, &plan, 1, 0, offsets));
    uint32_t pool = add_pool(p, owner, BERTH_POOL_WORKSPACE);
    p->pools.data[pool].size_bytes = plan.peak_bytes;
    p->pools.data[pool].lower_bound_bytes = plan.lower_bound_bytes;
    for (uint32_t i = 0; i < members.count; ++i) {
        p->storages.data[members.data[i]].pool = pool;
        p->storages.data[members.data[i]].offset_bytes = offsets[i];
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->pools.count; ++i)
        if (p->pools.data[i].device == owner) total += p->pools.data[i].size_bytes;
    uint64_t limit = memory->budget_bytes;
    if (limit == 0 || total <= limit) return BERTH_OK;
    char need[32];
    char have[32];
    berth_format_bytes(total, need);
    berth_format_bytes(limit, have);
    return berth_status_make(
        BERTH_OUT_OF_MEMORY,
        "memory \"%s\" needs %s (%llu bytes) for this model, of which %llu bytes are intermediate "
        "values; its limit is %s. The largest values at the peak: %s",
        memory->name, need, (unsigned long long)total, (unsigned long long)plan.peak_bytes, have,
        describe_peak(p, owner, plan.peak_step));
}

berth_status berth_packager__plan_memory(berth_packager *p) {
    for (uint32_t owner = 0; owner < p->target->device_count; ++owner) {
        place_in_row(p, owner, BERTH_POOL_IO);
        place_in_row(p, owner, BERTH_POOL_CONSTANT);
        BERTH_TRY(place_workspace(p, owner));
    }
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        const berth_storage *storage = &p->storages.data[p->storage_of.data[t]];
        p->tensors.data[t].pool = storage->pool;
        p->tensors.data[t].offset_bytes = storage->offset_bytes;
    }
    return BERTH_OK;
}

// ---- queues -------------------------------------------------------------------------------------

typedef struct access {
    uint64_t offset_bytes, end_bytes;
    uint32_t step;
    bool write;
} access;

typedef struct access_list {
    BERTH_VEC(access) items;
} access_list;

// The last binding of a copy and the results of a dispatch are written. A kernel's written bindings
// are not told apart here: every binding outside constants and inputs counts as both, which can
// only add waits between queues.
static bool may_write(const berth_packager *p, const berth_program_step *step, uint32_t binding) {
    if (step->kind == BERTH_STEP_COPY) return binding == 1;
    return p->storages.data[p->storage_of.data[step->bindings[binding]]].usage !=
           BERTH_POOL_CONSTANT;
}

static void order_step(berth_packager *p, access_list *lists, uint32_t index) {
    berth_program_step *step = &p->steps.data[index];
    uint32_t queue_count = p->target->device_count;
    uint32_t *latest =
        berth_arena_new_array(p->arena, uint32_t, queue_count);  // step + 1, 0 = none
    uint32_t bindings =
        step->kind == BERTH_STEP_COPY ? 2 : p->kernels.data[step->kernel].binding_count;
    for (uint32_t b = 0; b < bindings; ++b) {
        const berth_program_tensor *tensor = &p->tensors.data[step->bindings[b]];
        access_list *list = &lists[tensor->pool];
        access now = {tensor->offset_bytes, tensor->offset_bytes + tensor->size_bytes, index,
                      may_write(p, step, b)};
        if (p->pools.data[tensor->pool].usage == BERTH_POOL_CONSTANT) continue;
        for (uint32_t i = 0; i < list->items.count; ++i) {
            const access *before = &list->items.data[i];
            uint32_t queue = p->steps.data[before->step].device;
            bool conflict = (now.write || before->write) && before->offset_bytes < now.end_bytes &&
                            now.offset_bytes < before->end_bytes;
            if (conflict && queue != step->device && before->step + 1 > latest[queue])
                latest[queue] = before->step + 1;
        }
        berth_vec_push(p->arena, &list->items, now);
    }
    uint32_t *waits = berth_arena_new_array(p->arena, uint32_t, queue_count);
    for (uint32_t q = 0; q < queue_count; ++q)
        if (latest[q]) waits[step->wait_count++] = latest[q] - 1;
    step->waits = waits;
}

berth_status berth_packager__order_queues(berth_packager *p) {
    bool several = false;
    for (uint32_t i = 1; i < p->steps.count; ++i)
        several |= p->steps.data[i].device != p->steps.data[0].device;
    if (!several) return BERTH_OK;
    access_list *lists = berth_arena_new_array(p->arena, access_list, p->pools.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) order_step(p, lists, i);
    return BERTH_OK;
}
