// Places of storages in pools.
#include <string.h>

#include "compiler/package/package.h"
#include "compiler/package/plans.h"
#include "memory/plan.h"

// ---- pools --------------------------------------------------------------------------------------

static uint64_t align_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

uint32_t berth_packager__alignment(const berth_packager *packager, uint32_t place) {
    const berth_multi_target *target = packager->target;
    berth_bits workers = berth_packager__workers(packager, place);
    uint32_t memory = berth_packager__memory(packager, place, BERTH_POOL_WORKSPACE);
    uint32_t alignment = target->memories[memory].alignment_bytes;
    if (target->executor == BERTH_EXECUTOR_AOT) alignment = BERTH_PLAIN_ALIGNMENT_BYTES;
    for (uint32_t d = berth_bits_first(workers); d != BERTH_BITS_END;
         d = berth_bits_next(workers, d)) {
        uint32_t least = berth_device_kind_is_host(target->devices[d].target->kind)
                             ? BERTH_CPU_ALIGNMENT_BYTES
                             : BERTH_DEFAULT_ALIGNMENT_BYTES;
        if (target->executor == BERTH_EXECUTOR_AOT) least = BERTH_PLAIN_ALIGNMENT_BYTES;
        if (alignment < least) alignment = least;
    }
    return alignment;
}

// Records the devices that work in each storage. The other end of a copy is reached by way of the
// host: that is no use by the copy's device, but one by the host, also where only a GPU works there.
static void find_users(berth_packager *p) {
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        uint32_t device = p->steps.data[i].device;
        uint32_t bindings = berth_packager__binding_count(p, i);
        for (uint32_t b = 0; b < bindings; ++b) {
            uint32_t root = p->storage_of.data[p->steps.data[i].bindings[b]];
            while (p->storages.data[root].into != BERTH_NO_INDEX)
                root = p->storages.data[root].into;
            berth_storage *held = &p->storages.data[root];
            uint32_t user = berth_bits_has(berth_packager__workers(p, held->place), device)
                                ? device
                                : berth_packager__owner(p, held->place);
            if (user == device || berth_device_kind_is_host(p->target->devices[user].target->kind))
                held->users = berth_bits_with(p->arena, held->users, user);
        }
    }
}

static bool is_held(const berth_storage *storage, uint32_t place, berth_pool_usage usage) {
    return storage->place == place && storage->usage == usage && storage->into == BERTH_NO_INDEX;
}

// All devices that work in the storages of a use.
static berth_bits users_of(const berth_packager *p, uint32_t place, berth_pool_usage usage) {
    berth_bits users = {0};
    for (uint32_t k = p->place_first[place]; k < p->place_first[place + 1]; ++k) {
        const berth_storage *storage = &p->storages.data[p->place_storages[k]];
        if (is_held(storage, place, usage)) users = berth_bits_or(p->arena, users, storage->users);
    }
    return users;
}

static uint32_t alignment_in(const berth_packager *p, uint32_t place, berth_pool_usage usage) {
    uint32_t least = berth_packager__alignment(p, place);
    uint32_t own = p->target->memories[berth_packager__memory(p, place, usage)].alignment_bytes;
    if (p->target->executor == BERTH_EXECUTOR_AOT) return least;
    return own > least ? own : least;
}

// The pool for storages with these users: of the only device that uses it, or of the memory's
// owner and shared. Inputs and outputs are the host's in any case.
static uint32_t pool_for(berth_packager *p, uint32_t place, berth_pool_usage usage,
                         berth_bits users) {
    if (usage == BERTH_POOL_STORE) users = (berth_bits){0};  // nobody's memory
    bool alone = berth_bits_is_single(users) && usage != BERTH_POOL_IO;
    uint32_t device = alone ? berth_bits_first(users) : berth_packager__owner(p, place);
    const berth_target_memory *memory =
        &p->target->memories[berth_packager__memory(p, place, BERTH_POOL_WORKSPACE)];
    // A further memory for values is known by its name.
    bool own = place < p->target->device_count || strcmp(memory->scope, "global") != 0;
    berth_program_pool pool = {.device = device,
                               .scope = own ? memory->scope : memory->name,
                               .usage = usage,
                               .alignment_bytes = alignment_in(p, place, usage),
                               .shared_with = berth_bits_without(p->arena, users, device)};
    for (uint32_t i = 0; i < p->pools.count; ++i) {
        const berth_program_pool *known = &p->pools.data[i];
        if (known->device == device && known->usage == usage && p->pool_place.data[i] == place &&
            berth_bits_equal(known->shared_with, pool.shared_with))
            return i;
    }
    berth_vec_push(p->arena, &p->pools, pool);
    berth_vec_push(p->arena, &p->pool_place, place);
    return p->pools.count - 1;
}

// Constants, inputs and outputs live all the time: one after the other. Constants have a pool for
// each set of devices that use them, so that what one device alone reads is not shared.
static void place_in_row(berth_packager *p, uint32_t place, berth_pool_usage usage) {
    berth_bits all_users = users_of(p, place, usage);
    for (uint32_t k = p->place_first[place]; k < p->place_first[place + 1]; ++k) {
        berth_storage *storage = &p->storages.data[p->place_storages[k]];
        if (!is_held(storage, place, usage)) continue;
        uint32_t pool =
            pool_for(p, place, usage, usage == BERTH_POOL_IO ? all_users : storage->users);
        berth_program_pool *held = &p->pools.data[pool];
        storage->pool = pool;
        storage->offset_bytes = align_up(held->size_bytes, held->alignment_bytes);
        held->size_bytes = storage->offset_bytes + storage->size_bytes;
        held->lower_bound_bytes += storage->size_bytes;
    }
}

// ---- workspace ----------------------------------------------------------------------------------

// [storages.count] the largest tensor with a name of each: the whole rather than its parts. NULL: none has one.
static const berth_program_tensor **named_tensors(const berth_packager *p) {
    const berth_program_tensor **best =
        berth_arena_new_array(p->arena, const berth_program_tensor *, p->storages.count);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        const berth_program_tensor *tensor = &p->tensors.data[t];
        uint32_t root = p->storage_of.data[t];
        if (!*tensor->name) continue;
        while (p->storages.data[root].into != BERTH_NO_INDEX) root = p->storages.data[root].into;
        if (!best[root] || tensor->size_bytes > best[root]->size_bytes) best[root] = tensor;
    }
    return best;
}

// Bytes of a tensor beyond those of its elements.
static uint64_t layout_padding(const berth_program_tensor *tensor) {
    uint64_t bytes = berth_dtype_size_bytes(tensor->dtype);
    for (int d = 0; d < tensor->rank; ++d) bytes *= (uint64_t)tensor->dims[d];
    return tensor->size_bytes > bytes ? tensor->size_bytes - bytes : 0;
}

typedef struct workspace {
    uint32_t place;
    BERTH_VEC(berth_memory_plan_buffer) buffers;
    BERTH_VEC(uint32_t) members;  // their storages
} workspace;

static const char *name_of(berth_packager *p, const berth_program_tensor *tensor,
                           const berth_storage *storage) {
    if (tensor) return tensor->name;
    return berth_arena_printf(p->arena, "inside %s", p->steps.data[storage->first_step].name);
}

// What is live where the plan is fullest, for reports and messages.
static void report_peak(berth_packager *p, const workspace *w, const berth_memory_plan_pool *plan,
                        const berth_program_tensor **named, berth_memory_report_pool *out) {
    uint32_t *live = NULL;
    uint32_t count = berth_memory_plan_live(p->arena, w->buffers.data, w->buffers.count, 0,
                                            plan->peak_step, &live);
    berth_memory_value *values = berth_arena_new_array(p->arena, berth_memory_value, count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t storage = w->members.data[live[i]];
        const berth_storage *s = &p->storages.data[storage];
        if (named[storage])
            out->padding_bytes += layout_padding(named[storage]);
        else
            out->made_bytes += s->size_bytes;
        values[i] = (berth_memory_value){.name = name_of(p, named[storage], s),
                                         .size_bytes = s->size_bytes,
                                         .first_step = p->steps.data[s->first_step].name,
                                         .last_step = p->steps.data[s->last_step].name};
    }
    out->live_bytes = plan->live_bytes;
    out->peak_step = p->steps.data[plan->peak_step].name;
    out->values = values;
    out->value_count = count;
}

// All that lies in the pool.
static void report_places(berth_packager *p, const workspace *w, const berth_program_tensor **named,
                          berth_memory_report_pool *out) {
    berth_memory_place *places =
        berth_arena_new_array(p->arena, berth_memory_place, w->members.count);
    const char **steps = berth_arena_new_array(p->arena, const char *, p->steps.count);
    for (uint32_t i = 0; i < w->members.count; ++i) {
        uint32_t storage = w->members.data[i];
        const berth_storage *s = &p->storages.data[storage];
        const char *step = p->steps.data[s->first_step].name;
        places[i] = (berth_memory_place){.name = named[storage]
                                                     ? named[storage]->name
                                                     : berth_arena_printf(p->arena, "in %s", step),
                                         .offset_bytes = s->offset_bytes,
                                         .size_bytes = s->size_bytes,
                                         .first_step = s->first_step,
                                         .last_step = s->last_step};
    }
    for (uint32_t i = 0; i < p->steps.count; ++i) steps[i] = p->steps.data[i].name;
    out->places = places;
    out->place_count = w->members.count;
    out->step_names = steps;
    out->step_count = p->steps.count;
}

static const char *describe_peak(const berth_packager *p, const berth_memory_report_pool *report) {
    enum { most = 5 };
    berth_strbuf text = berth_strbuf_make(p->arena);
    for (uint32_t i = 0; i < report->value_count && i < most; ++i) {
        char bytes[32];
        berth_format_bytes(report->values[i].size_bytes, bytes);
        berth_strbuf_addf(&text, "%s%s (%s)", i ? ", " : "", report->values[i].name, bytes);
    }
    return berth_strbuf_text(&text);
}

static void collect_workspace(berth_packager *p, workspace *w) {
    uint32_t alignment_bytes = berth_packager__alignment(p, w->place);
    for (uint32_t k = p->place_first[w->place]; k < p->place_first[w->place + 1]; ++k) {
        uint32_t i = p->place_storages[k];
        berth_storage *s = &p->storages.data[i];
        if (!is_held(s, w->place, BERTH_POOL_WORKSPACE)) continue;
        if (s->first_step == BERTH_NO_INDEX)
            s->first_step = s->last_step = 0;  // a result that nothing touches
        berth_memory_plan_buffer buffer = {.first_use_step = s->first_step,
                                           .last_use_step = s->last_step,
                                           .size_bytes = s->size_bytes ? s->size_bytes : 1,
                                           .alignment_bytes = alignment_bytes};
        berth_vec_push(p->arena, &w->buffers, buffer);
        berth_vec_push(p->arena, &w->members, i);
    }
}

static berth_status place_workspace(berth_packager *p, uint32_t place,
                                    berth_memory_report_pool *reports) {
    workspace w = {.place = place};
    collect_workspace(p, &w);
    if (w.buffers.count == 0 || p->steps.count == 0) return BERTH_OK;
    uint64_t *offsets = berth_arena_new_array(p->arena, uint64_t, w.buffers.count);
    berth_memory_plan_pool plan = {0};
    BERTH_TRY(
        berth_memory_plan_solve(p->arena, w.buffers.data, w.buffers.count, &plan, 1, 0, offsets));
    uint32_t pool =
        pool_for(p, place, BERTH_POOL_WORKSPACE, users_of(p, place, BERTH_POOL_WORKSPACE));
    p->pools.data[pool].size_bytes = plan.peak_bytes;
    p->pools.data[pool].lower_bound_bytes = plan.lower_bound_bytes;
    for (uint32_t i = 0; i < w.members.count; ++i) {
        p->storages.data[w.members.data[i]].pool = pool;
        p->storages.data[w.members.data[i]].offset_bytes = offsets[i];
    }
    berth_memory_report_pool *report = &reports[p->report->pool_count++];
    const berth_program_tensor **named = named_tensors(p);
    *report = (berth_memory_report_pool){.pool = pool, .strategy = plan.strategy};
    report_peak(p, &w, &plan, named, report);
    report_places(p, &w, named, report);
    return BERTH_OK;
}

const char *berth_packager__constant_name(const berth_packager *p, uint32_t tensor) {
    if (*p->tensors.data[tensor].name) return p->tensors.data[tensor].name;
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b)
            if (p->steps.data[i].bindings[b] == tensor)
                return berth_arena_printf(p->arena, "of %s", p->steps.data[i].name);
    return "that nobody reads";
}

// The largest constants of a memory.
static const char *describe_constants(const berth_packager *p, uint32_t memory) {
    enum { most = 5 };
    uint32_t largest[most], count = 0;
    for (uint32_t i = 0; i < p->constants.count; ++i) {
        uint32_t tensor = p->constants.data[i].tensor;
        const berth_storage *storage = &p->storages.data[p->storage_of.data[tensor]];
        if (storage->usage != BERTH_POOL_CONSTANT ||
            berth_packager__memory(p, storage->place, BERTH_POOL_CONSTANT) != memory)
            continue;
        uint64_t size_bytes = p->tensors.data[tensor].size_bytes;
        uint32_t at = count < most ? count++ : (uint32_t)most;
        for (; at > 0 && p->tensors.data[largest[at - 1]].size_bytes < size_bytes; --at)
            if (at < most) largest[at] = largest[at - 1];
        if (at < most) largest[at] = tensor;
    }
    berth_strbuf text = berth_strbuf_make(p->arena);
    for (uint32_t i = 0; i < count; ++i) {
        char bytes[32];
        berth_format_bytes(p->tensors.data[largest[i]].size_bytes, bytes);
        berth_strbuf_addf(&text, "%s%s (%s)", i ? ", " : "",
                          berth_packager__constant_name(p, largest[i]), bytes);
    }
    return berth_strbuf_text(&text);
}

// Without an operating system constants stay where the program itself is: they take nothing of the
// memory of values unless the target has a memory for them.
static bool stays_in_program(const berth_packager *p, uint32_t pool) {
    uint32_t place = p->pool_place.data[pool];
    return p->target->runtime == BERTH_RUNTIME_BARE &&
           p->pools.data[pool].usage == BERTH_POOL_CONSTANT &&
           berth_packager__memory(p, place, BERTH_POOL_CONSTANT) ==
               berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
}

uint64_t berth_packager__scratch_bytes(const berth_packager *p, uint32_t memory) {
    uint64_t total = 0;
    bool plain = p->target->executor == BERTH_EXECUTOR_AOT;
    for (uint32_t d = 0; d < p->target->device_count; ++d) {
        const berth_target_device *device = &p->target->devices[d];
        uint64_t most = 0;
        uint32_t held =
            p->scratch_memory == BERTH_NO_INDEX ? device->own_memory : p->scratch_memory;
        if (held != memory || !berth_device_kind_is_host(device->target->kind)) continue;
        for (uint32_t i = 0; i < p->steps.count; ++i) {
            const berth_program_step *step = &p->steps.data[i];
            if (step->device != d || step->kind != BERTH_STEP_DISPATCH) continue;
            uint64_t bytes = p->kernels.data[step->kernel].scratch_bytes;
            if (bytes > most) most = bytes;
        }
        // Of plain C, one static array. Else, while it grows, a thread has two (devices/cpu/executable.c).
        if (plain)
            total += align_up(most, BERTH_PLAIN_ALIGNMENT_BYTES);
        else
            total += most * (uint64_t)(device->target->cores > 0 ? device->target->cores + 1 : 2);
    }
    return total;
}

uint64_t berth_packager__used_bytes(const berth_packager *p, uint32_t memory) {
    uint64_t total = berth_packager__scratch_bytes(p, memory);
    bool plain = p->target->executor == BERTH_EXECUTOR_AOT;
    for (uint32_t i = 0; i < p->pools.count; ++i) {
        const berth_program_pool *pool = &p->pools.data[i];
        if (stays_in_program(p, i) || pool->usage == BERTH_POOL_STORE ||
            berth_packager__memory(p, p->pool_place.data[i], pool->usage) != memory)
            continue;
        // A static array is as large as its alignment makes it.
        bool array = plain && pool->usage == BERTH_POOL_WORKSPACE;
        total += align_up(pool->size_bytes, array ? BERTH_PLAIN_ALIGNMENT_BYTES : 1);
    }
    return total;
}

// A memory of constants must fit those of all devices that keep them there.
static berth_status check_constants(berth_packager *p, uint32_t place) {
    uint32_t owner = berth_packager__owner(p, place);
    uint32_t index = berth_packager__memory(p, place, BERTH_POOL_CONSTANT);
    if (index == berth_packager__memory(p, place, BERTH_POOL_WORKSPACE)) return BERTH_OK;
    const berth_target_memory *memory = &p->target->memories[index];
    uint64_t total = berth_packager__used_bytes(p, index);
    if (total <= memory->budget_bytes) return BERTH_OK;
    p->pipeline->over_device = owner;
    p->pipeline->over_memory = index;
    p->pipeline->over_bytes = total - memory->budget_bytes;
    char need[32];
    char have[32];
    berth_format_bytes(total, need);
    berth_format_bytes(memory->budget_bytes, have);
    return berth_status_make(BERTH_OUT_OF_MEMORY,
                             "memory \"%s\", which holds the constants of \"%s\", needs %s (%llu "
                             "bytes) for this model; its limit is %s. The largest: %s",
                             memory->name, p->target->devices[owner].name, need,
                             (unsigned long long)total, have, describe_constants(p, index));
}

static bool is_streamed(const berth_packager *p, const char *memory) {
    for (uint32_t i = 0; i < p->report->streamed_count; ++i)
        if (strcmp(p->report->streamed[i].memory, memory) == 0) return true;
    return false;
}

// What all devices put into a memory must fit it, however many share it.
static berth_status check_limit(berth_packager *p, uint32_t place,
                                const berth_memory_report_pool *values) {
    uint32_t index = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    const berth_target_memory *memory = &p->target->memories[index];
    uint64_t total = berth_packager__used_bytes(p, index);
    uint64_t workspace_bytes = values ? p->pools.data[values->pool].size_bytes : 0;
    uint64_t limit = memory->budget_bytes, stated = p->pipeline->options->stated_limit_bytes;
    if (limit == 0 || total <= limit) return BERTH_OK;
    p->pipeline->over_device = berth_packager__owner(p, place);
    p->pipeline->over_memory = index;
    p->pipeline->over_bytes = total - limit;
    char need[32];
    char have[32];
    berth_format_bytes(total, need);
    berth_format_bytes(stated ? stated : limit, have);
    return berth_status_make(
        BERTH_OUT_OF_MEMORY,
        "memory \"%s\" needs %s (%llu bytes) for this model, of which %llu bytes are intermediate "
        "values; its limit is %s%s.%s%s",
        memory->name, need, (unsigned long long)total, (unsigned long long)workspace_bytes, have,
        is_streamed(p, memory->name)
            ? ", and no smaller one would do: constants are only there while they are used, "
              "and values that wait are moved or computed again where that needs less"
            : "",
        values ? " The largest values at the peak: " : " The largest constants: ",
        values ? describe_peak(p, values) : describe_constants(p, index));
}

// What is live all the time.
static void place_rows(berth_packager *p, uint32_t place) {
    place_in_row(p, place, BERTH_POOL_IO);
    place_in_row(p, place, BERTH_POOL_CONSTANT);
    place_in_row(p, place, BERTH_POOL_STORE);
}

static berth_status place_all(berth_packager *p, uint32_t place,
                              berth_memory_report_pool *reports) {
    place_rows(p, place);
    BERTH_TRY(berth_packager__assign_memories(p, place));
    return place_workspace(p, place, reports);
}

berth_status berth_packager__measure_place(berth_packager *p, uint32_t place, uint64_t *out_bytes) {
    berth_memory_report_pool report = {0};
    p->pools.count = p->pool_place.count = p->report->pool_count = 0;
    berth_packager__index_places(p);
    find_users(p);
    BERTH_TRY(place_all(p, place, &report));
    *out_bytes =
        berth_packager__used_bytes(p, berth_packager__memory(p, place, BERTH_POOL_WORKSPACE));
    p->pools.count = p->pool_place.count = p->report->pool_count = 0;
    return BERTH_OK;
}

berth_status berth_packager__find_memories(berth_packager *p, uint32_t place,
                                           berth_packager_memories *out) {
    berth_packager__index_places(p);
    find_users(p);
    place_rows(p, place);
    berth_status status = berth_packager__weigh_memories(p, place, out);
    p->pools.count = p->pool_place.count = 0;
    return status;
}

// By memory planning, or as an earlier program for other sizes has it.
static berth_status place_storages(berth_packager *p) {
    berth_memory_plans *plans = p->pipeline->options->plans;
    berth_memory_report_pool *reports =
        berth_arena_new_array(p->arena, berth_memory_report_pool, berth_packager__place_count(p));
    p->report->pools = reports;
    berth_packager__index_places(p);
    find_users(p);
    if (plans && berth_memory_plans_recall(plans, p)) return BERTH_OK;
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place) {
        uint32_t known = p->report->pool_count;
        BERTH_TRY(place_all(p, place, reports));
        BERTH_TRY(check_constants(p, place));
        BERTH_TRY(check_limit(p, place, p->report->pool_count > known ? &reports[known] : NULL));
    }
    if (plans) berth_memory_plans_keep(plans, p);
    return BERTH_OK;
}

berth_status berth_packager__plan_memory(berth_packager *p) {
    p->scratch_memory = BERTH_NO_INDEX;
    BERTH_TRY(place_storages(p));
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        const berth_storage *storage = &p->storages.data[p->storage_of.data[t]];
        uint64_t offset = 0;
        for (; storage->into != BERTH_NO_INDEX; storage = &p->storages.data[storage->into])
            offset += storage->into_offset_bytes;
        p->tensors.data[t].pool = storage->pool;
        p->tensors.data[t].offset_bytes = storage->offset_bytes + offset;
    }
    return BERTH_OK;
}
