#include "compiler/package/value_moves.h"

#include <string.h>

uint32_t berth_packager__root_of(const berth_packager *p, uint32_t tensor, uint64_t *out_offset) {
    uint32_t storage = p->storage_of.data[tensor];
    *out_offset = 0;
    for (; p->storages.data[storage].into != BERTH_NO_INDEX;
         storage = p->storages.data[storage].into)
        *out_offset += p->storages.data[storage].into_offset_bytes;
    return storage;
}

static bool may_wait(const berth_packager *p, uint32_t place, uint32_t storage, uint32_t step) {
    const berth_storage *held = &p->storages.data[storage];
    return held->usage == BERTH_POOL_WORKSPACE && held->place == place &&
           held->into == BERTH_NO_INDEX && held->first_step != BERTH_NO_INDEX &&
           held->size_bytes > 0 && held->first_step < step && held->last_step > step;
}

uint32_t berth_packager__find_waiting(const berth_packager *p, berth_arena *arena, uint32_t place,
                                      uint32_t step, berth_waiting_value **out_values) {
    uint32_t *before = berth_arena_new_array(arena, uint32_t, p->storages.count);
    uint32_t *after = berth_arena_new_array(arena, uint32_t, p->storages.count);
    BERTH_VEC(berth_waiting_value) found = {0};
    memset(before, 0xff, p->storages.count * sizeof(*before));
    memset(after, 0xff, p->storages.count * sizeof(*after));
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint64_t offset = 0;
            uint32_t root = berth_packager__root_of(p, p->steps.data[i].bindings[b], &offset);
            if (i <= step) before[root] = i;
            if (i > step && after[root] == BERTH_NO_INDEX) after[root] = i;
        }
    for (uint32_t v = 0; v < p->storages.count; ++v)
        if (before[v] < step && after[v] != BERTH_NO_INDEX && may_wait(p, place, v, step))
            berth_vec_push(
                arena, &found,
                ((berth_waiting_value){v, p->storages.data[v].size_bytes, before[v], after[v]}));
    *out_values = found.data;
    return found.count;
}

uint32_t berth_packager__add_workspace(berth_packager *p, uint32_t place, uint64_t size_bytes,
                                       uint32_t first_step, uint32_t last_step) {
    berth_storage storage = {.place = place,
                             .usage = BERTH_POOL_WORKSPACE,
                             .size_bytes = size_bytes,
                             .into = BERTH_NO_INDEX,
                             .first_step = first_step,
                             .last_step = last_step};
    berth_vec_push(p->arena, &p->storages, storage);
    return p->storages.count - 1;
}

uint32_t berth_packager__move_tensor(berth_packager *p, uint32_t tensor, uint32_t storage,
                                     uint64_t offset) {
    berth_program_tensor moved = p->tensors.data[tensor];
    uint32_t part = storage;
    if (offset || moved.size_bytes != p->storages.data[storage].size_bytes) {
        part = berth_packager__add_workspace(p, p->storages.data[storage].place, moved.size_bytes,
                                             BERTH_NO_INDEX, 0);
        p->storages.data[part].into = storage;
        p->storages.data[part].into_offset_bytes = offset;
    }
    berth_vec_push(p->arena, &p->tensors, moved);
    berth_vec_push(p->arena, &p->storage_of, part);
    return p->tensors.count - 1;
}

void berth_packager__rebind_step(berth_packager *p, uint32_t step, uint32_t root,
                                 uint32_t storage) {
    uint32_t count = berth_packager__binding_count(p, step);
    uint32_t *bindings =
        berth_arena_copy(p->arena, p->steps.data[step].bindings, count * sizeof(*bindings));
    for (uint32_t b = 0; b < count; ++b) {
        uint64_t offset = 0;
        if (berth_packager__root_of(p, bindings[b], &offset) == root)
            bindings[b] = berth_packager__move_tensor(p, bindings[b], storage, offset);
    }
    p->steps.data[step].bindings = bindings;
}

const char *berth_packager__name_of(const berth_packager *p, uint32_t root, uint32_t step) {
    const berth_program_tensor *best = NULL;
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        uint64_t offset = 0;
        if (*p->tensors.data[t].name && berth_packager__root_of(p, t, &offset) == root &&
            (!best || p->tensors.data[t].size_bytes > best->size_bytes))
            best = &p->tensors.data[t];
    }
    return best ? best->name : berth_arena_printf(p->arena, "of %s", p->steps.data[step].name);
}

void berth_packager__insert_steps(berth_packager *p, uint32_t at, const berth_program_step *steps,
                                  const berth_step_facts *facts, uint32_t count) {
    uint32_t after = p->steps.count - at;
    for (uint32_t k = 0; k < count; ++k) {
        berth_vec_push(p->arena, &p->steps, steps[k]);
        berth_vec_push(p->arena, &p->facts, facts[k]);
    }
    memmove(&p->steps.data[at + count], &p->steps.data[at], after * sizeof(*p->steps.data));
    memmove(&p->facts.data[at + count], &p->facts.data[at], after * sizeof(*p->facts.data));
    memcpy(&p->steps.data[at], steps, count * sizeof(*steps));
    memcpy(&p->facts.data[at], facts, count * sizeof(*facts));
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *held = &p->storages.data[i];
        if (held->first_step == BERTH_NO_INDEX) continue;
        if (held->first_step >= at) held->first_step += count;
        if (held->last_step >= at) held->last_step += count;
    }
}
