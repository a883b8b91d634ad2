// Values that wait in host memory while a device's memory is full.
#include <string.h>

#include "compiler/package/stream.h"

typedef struct spiller {
    berth_packager *p;
    const berth_spill_request *request;
    uint32_t root;           // storage of the value
    uint32_t before, after;  // the last step that touches it before it leaves, the first one behind
} spiller;

static uint32_t root_of(const berth_packager *p, uint32_t tensor, uint64_t *out_offset) {
    uint32_t storage = p->storage_of.data[tensor];
    *out_offset = 0;
    for (; p->storages.data[storage].into != BERTH_NO_INDEX;
         storage = p->storages.data[storage].into)
        *out_offset += p->storages.data[storage].into_offset_bytes;
    return storage;
}

// ---- which --------------------------------------------------------------------------------------

static bool is_candidate(const spiller *s, uint32_t storage) {
    const berth_storage *held = &s->p->storages.data[storage];
    uint32_t peak = s->request->peak_step;
    return held->usage == BERTH_POOL_WORKSPACE && held->place == s->request->place &&
           held->into == BERTH_NO_INDEX && held->first_step != BERTH_NO_INDEX &&
           held->first_step < peak && held->last_step > peak;
}

// The largest value that is there at the peak and not used by its step.
static bool find_value(spiller *s) {
    const berth_packager *p = s->p;
    uint32_t peak = s->request->peak_step;
    berth_arena *scratch = berth_arena_create_child(p->arena);
    uint32_t *before = berth_arena_new_array(scratch, uint32_t, p->storages.count);
    uint32_t *after = berth_arena_new_array(scratch, uint32_t, p->storages.count);
    memset(before, 0xff, p->storages.count * sizeof(*before));
    memset(after, 0xff, p->storages.count * sizeof(*after));
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint64_t offset = 0;
            uint32_t root = root_of(p, p->steps.data[i].bindings[b], &offset);
            if (i <= peak) before[root] = i;
            if (i > peak && after[root] == BERTH_NO_INDEX) after[root] = i;
        }
    uint64_t most = 0;
    for (uint32_t v = 0; v < p->storages.count; ++v) {
        bool waits = before[v] < peak && after[v] != BERTH_NO_INDEX;
        if (!waits || !is_candidate(s, v) || p->storages.data[v].size_bytes <= most) continue;
        most = p->storages.data[v].size_bytes;
        s->root = v;
        s->before = before[v];
        s->after = after[v];
    }
    berth_arena_destroy(scratch);
    return most > 0;
}

// ---- how ----------------------------------------------------------------------------------------

static const bool writes_second[] = {false, true};

static uint32_t add_storage(berth_packager *p, uint32_t place, uint64_t size_bytes, uint32_t first,
                            uint32_t last) {
    berth_storage storage = {.place = place,
                             .usage = BERTH_POOL_WORKSPACE,
                             .size_bytes = size_bytes,
                             .into = BERTH_NO_INDEX,
                             .first_step = first,
                             .last_step = last};
    berth_vec_push(p->arena, &p->storages, storage);
    return p->storages.count - 1;
}

// All bytes of a storage.
static uint32_t add_whole(berth_packager *p, uint32_t storage, const char *name) {
    uint64_t size_bytes = p->storages.data[storage].size_bytes;
    berth_program_tensor tensor = {.name = name,
                                   .size_bytes = size_bytes,
                                   .dtype = BERTH_DTYPE_U8,
                                   .rank = 1,
                                   .dims = {(int64_t)size_bytes},
                                   .layout = ""};
    berth_vec_push(p->arena, &p->tensors, tensor);
    berth_vec_push(p->arena, &p->storage_of, storage);
    return p->tensors.count - 1;
}

// The tensor's bytes in another storage that the value is in from now on.
static uint32_t move_tensor(berth_packager *p, uint32_t tensor, uint32_t storage, uint64_t offset) {
    berth_program_tensor moved = p->tensors.data[tensor];
    uint32_t part = storage;
    if (offset || moved.size_bytes != p->storages.data[storage].size_bytes) {
        part = add_storage(p, p->storages.data[storage].place, moved.size_bytes, BERTH_NO_INDEX, 0);
        p->storages.data[part].into = storage;
        p->storages.data[part].into_offset_bytes = offset;
    }
    berth_vec_push(p->arena, &p->tensors, moved);
    berth_vec_push(p->arena, &p->storage_of, part);
    return p->tensors.count - 1;
}

static void rebind(spiller *s, uint32_t storage) {
    berth_packager *p = s->p;
    for (uint32_t i = s->after; i < p->steps.count; ++i) {
        uint32_t count = berth_packager__binding_count(p, i);
        uint32_t *bindings =
            berth_arena_copy(p->arena, p->steps.data[i].bindings, count * sizeof(*bindings));
        for (uint32_t b = 0; b < count; ++b) {
            uint64_t offset = 0;
            if (root_of(p, bindings[b], &offset) == s->root)
                bindings[b] = move_tensor(p, bindings[b], storage, offset);
        }
        p->steps.data[i].bindings = bindings;
    }
}

// Puts a copy before step `at`; all later steps move on.
static void insert_copy(spiller *s, uint32_t at, uint32_t source, uint32_t destination,
                        const char *name) {
    berth_packager *p = s->p;
    uint32_t *bindings = berth_arena_new_array(p->arena, uint32_t, 2);
    bindings[0] = source;
    bindings[1] = destination;
    berth_program_step step = {.kind = BERTH_STEP_COPY,
                               .device = s->request->device,
                               .kernel = BERTH_NO_INDEX,
                               .bindings = bindings,
                               .name = name,
                               .op = "copy"};
    berth_step_facts facts = {.written = writes_second, .unit = BERTH_NO_INDEX, .apart = true};
    berth_vec_push(p->arena, &p->steps, step);
    berth_vec_push(p->arena, &p->facts, facts);
    uint32_t behind = p->steps.count - 1 - at;
    memmove(&p->steps.data[at + 1], &p->steps.data[at], behind * sizeof(*p->steps.data));
    memmove(&p->facts.data[at + 1], &p->facts.data[at], behind * sizeof(*p->facts.data));
    p->steps.data[at] = step;
    p->facts.data[at] = facts;
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *held = &p->storages.data[i];
        if (held->first_step == BERTH_NO_INDEX) continue;
        held->first_step += held->first_step >= at;
        held->last_step += held->last_step >= at;
    }
}

// Where the value comes back: as early before its use as there is room for it and kernels hide it.
static uint32_t return_step(const spiller *s) {
    const berth_spill_request *request = s->request;
    uint32_t at = s->after;
    double hidden_ns = 0;
    while (at - 1 > request->peak_step && request->needed[at - 1] <= request->room_bytes &&
           hidden_ns < request->copy_ns(request->user, s->p->storages.data[s->root].size_bytes))
        hidden_ns += request->step_ns[--at];
    return at;
}

bool berth_packager__spill_value(berth_packager *p, const berth_spill_request *request,
                                 uint64_t *out_bytes) {
    spiller s = {.p = p, .request = request};
    if (!find_value(&s)) return false;
    const berth_storage held = p->storages.data[s.root];
    uint32_t host = berth_packager__place(p, p->target->host, NULL), back = return_step(&s);
    const char *name = berth_arena_printf(p->arena, "of %s", p->steps.data[s.before].name);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        uint64_t offset = 0;
        if (*p->tensors.data[t].name && root_of(p, t, &offset) == s.root) {
            name = p->tensors.data[t].name;
            break;
        }
    }
    uint32_t second = add_storage(p, held.place, held.size_bytes, s.after, held.last_step);
    uint32_t waiting = add_storage(p, host, held.size_bytes, s.before, s.after);
    uint32_t out = add_whole(p, s.root, name), kept = add_whole(p, waiting, name);
    uint32_t in = add_whole(p, second, name);
    rebind(&s, second);
    insert_copy(&s, back, kept, in, berth_arena_printf(p->arena, "%s back", name));
    p->storages.data[second].first_step = p->storages.data[waiting].last_step = back;
    p->storages.data[s.root].last_step = s.before;
    insert_copy(&s, s.before + 1, out, kept, berth_arena_printf(p->arena, "%s away", name));
    p->storages.data[s.root].last_step = p->storages.data[waiting].first_step = s.before + 1;
    *out_bytes = held.size_bytes;
    return true;
}
