// Values that are computed again when they are wanted, rather than kept while a memory is full.
#include <string.h>

#include "compiler/package/value_moves.h"

// Of one value; what takes more is rather kept, or moved.
enum { most_steps = 32 };

// Where the bytes that a step reads come from when it runs again.
typedef enum source { UNKNOWN, KEPT, AGAIN } source;

typedef struct finder {
    const berth_packager *p;
    berth_arena *arena;
    uint32_t device;
    const berth_waiting_value *value;
    uint32_t depth;
    source *sources;       // per storage
    bool *must_run_again;  // per storage: its bytes change before they are wanted
    uint32_t *level;       // per storage: operations between it and the value
    uint32_t *until;       // per storage, of AGAIN: the last step that needs it
    uint32_t *last_write;  // per storage: the last step before the value is wanted
    bool *chosen;          // per step
    bool restart;          // a storage turned out to change
} finder;

static uint32_t root_at(const finder *f, uint32_t step, uint32_t binding) {
    uint64_t offset = 0;
    return berth_packager__root_of(f->p, f->p->steps.data[step].bindings[binding], &offset);
}

static bool is_value_here(const finder *f, uint32_t root) {
    const berth_storage *held = &f->p->storages.data[root];
    return held->usage == BERTH_POOL_WORKSPACE &&
           held->place == f->p->storages.data[f->value->storage].place;
}

static bool writes_again(const finder *f, uint32_t step) {
    const berth_packager *p = f->p;
    for (uint32_t b = 0; b < berth_packager__binding_count(p, step); ++b) {
        uint32_t root = root_at(f, step, b);
        if (p->facts.data[step].written[b] && f->sources[root] == AGAIN && step <= f->until[root])
            return true;
    }
    return false;
}

static bool can_run_again(const finder *f, uint32_t step) {
    const berth_packager *p = f->p;
    if (p->steps.data[step].kind != BERTH_STEP_DISPATCH || p->steps.data[step].device != f->device)
        return false;
    for (uint32_t b = 0; b < berth_packager__binding_count(p, step); ++b)
        if (p->facts.data[step].written[b] && !is_value_here(f, root_at(f, step, b))) return false;
    return true;
}

// The lowest level of what a step writes and is wanted again.
static uint32_t level_of(const finder *f, uint32_t step) {
    uint32_t level = BERTH_NO_INDEX;
    for (uint32_t b = 0; b < berth_packager__binding_count(f->p, step); ++b) {
        uint32_t root = root_at(f, step, b);
        if (f->p->facts.data[step].written[b] && f->sources[root] == AGAIN &&
            f->level[root] < level)
            level = f->level[root];
    }
    return level;
}

static void run_again(finder *f, uint32_t root, uint32_t level, uint32_t until) {
    if (f->sources[root] == KEPT) {
        f->must_run_again[root] = f->restart = true;
        return;
    }
    if (f->sources[root] == UNKNOWN) {
        f->level[root] = level;
        f->until[root] = until;
    }
    f->sources[root] = AGAIN;
}

// A step that runs again reads these bytes, as they were when it ran.
static void need(finder *f, uint32_t root, uint32_t step, uint32_t level) {
    bool changed = f->last_write[root] != BERTH_NO_INDEX && f->last_write[root] >= step;
    if (f->sources[root] == AGAIN) {
        if (f->until[root] < step) f->until[root] = step;
        return;
    }
    if (f->sources[root] == KEPT) {
        if (changed) f->must_run_again[root] = f->restart = true;
        return;
    }
    bool there = !is_value_here(f, root) || f->p->storages.data[root].last_step >= f->value->after;
    if (changed || f->must_run_again[root] || (!there && level + 1 < f->depth))
        run_again(f, root, level + 1, step);
    else
        f->sources[root] = KEPT;
}

// Chooses steps from the last one back. False: one of them cannot run again, or they are too many.
static bool choose_steps(finder *f, uint32_t *out_count) {
    const berth_packager *p = f->p;
    memset(f->sources, 0, p->storages.count * sizeof(*f->sources));
    memset(f->chosen, 0, p->steps.count * sizeof(*f->chosen));
    f->restart = false;
    *out_count = 0;
    run_again(f, f->value->storage, 0, f->value->before);
    for (uint32_t i = f->value->after; i-- > 0 && !f->restart;) {
        if (!writes_again(f, i)) continue;
        if (!can_run_again(f, i) || ++*out_count > most_steps) return false;
        f->chosen[i] = true;
        uint32_t level = level_of(f, i);
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t root = root_at(f, i, b);
            if (p->facts.data[i].written[b])
                run_again(f, root, level, i);
            else
                need(f, root, i, level);
        }
    }
    return true;
}

// Bytes that nothing here may keep: values of other memories that end before.
static bool keeps_others(const finder *f) {
    for (uint32_t s = 0; s < f->p->storages.count; ++s) {
        const berth_storage *held = &f->p->storages.data[s];
        if (f->sources[s] == KEPT && !is_value_here(f, s) && held->usage == BERTH_POOL_WORKSPACE &&
            held->last_step < f->value->after)
            return true;
    }
    return false;
}

static void list_storages(const finder *f, source wanted, const uint32_t **out, uint32_t *count) {
    uint32_t *list = berth_arena_new_array(f->arena, uint32_t, f->p->storages.count);
    *count = 0;
    for (uint32_t s = 0; s < f->p->storages.count; ++s)
        if (f->sources[s] == wanted && is_value_here(f, s)) list[(*count)++] = s;
    *out = list;
}

static void find_last_writes(finder *f) {
    memset(f->last_write, 0xff, f->p->storages.count * sizeof(*f->last_write));
    for (uint32_t i = 0; i < f->value->after; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(f->p, i); ++b)
            if (f->p->facts.data[i].written[b]) f->last_write[root_at(f, i, b)] = i;
}

bool berth_packager__find_recomputation(const berth_packager *p, berth_arena *arena,
                                        uint32_t device, const berth_waiting_value *value,
                                        uint32_t depth, berth_recomputation *out) {
    uint32_t storages = p->storages.count, count = 0;
    finder f = {.p = p,
                .arena = arena,
                .device = device,
                .value = value,
                .depth = depth,
                .sources = berth_arena_new_array(arena, source, storages),
                .must_run_again = berth_arena_new_array(arena, bool, storages),
                .level = berth_arena_new_array(arena, uint32_t, storages),
                .until = berth_arena_new_array(arena, uint32_t, storages),
                .last_write = berth_arena_new_array(arena, uint32_t, storages),
                .chosen = berth_arena_new_array(arena, bool, p->steps.count)};
    find_last_writes(&f);
    do  // each time one more storage is known to change
        if (!choose_steps(&f, &count)) return false;
    while (f.restart);
    if (count == 0 || keeps_others(&f)) return false;
    uint32_t *steps = berth_arena_new_array(arena, uint32_t, count);
    *out = (berth_recomputation){.value = *value, .steps = steps};
    for (uint32_t i = 0; i < value->after; ++i) {
        if (!f.chosen[i]) continue;
        steps[out->step_count++] = i;
        out->ns += berth_packager__kernel_ns(p, i);
    }
    list_storages(&f, AGAIN, &out->roots, &out->root_count);
    list_storages(&f, KEPT, &out->kept, &out->kept_count);
    return true;
}

// ---- the program --------------------------------------------------------------------------------

static void insert_again(berth_packager *p, const berth_recomputation *again) {
    uint32_t count = again->step_count;
    berth_program_step *steps = berth_arena_new_array(p->arena, berth_program_step, count);
    berth_step_facts *facts = berth_arena_new_array(p->arena, berth_step_facts, count);
    for (uint32_t k = 0; k < count; ++k) {
        steps[k] = p->steps.data[again->steps[k]];
        facts[k] = p->facts.data[again->steps[k]];
        steps[k].name = berth_arena_printf(p->arena, "%s again", steps[k].name);
    }
    berth_packager__insert_steps(p, again->value.after, steps, facts, count);
}

// The steps [at, at + count) work in storages of their own. Sets how long these live.
static void bind_again(berth_packager *p, const berth_recomputation *again, uint32_t root,
                       uint32_t second) {
    berth_storage *held = &p->storages.data[second];
    uint32_t at = again->value.after;
    for (uint32_t i = at; i < at + again->step_count; ++i) {
        bool touches = false;
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint64_t offset = 0;
            touches |= berth_packager__root_of(p, p->steps.data[i].bindings[b], &offset) == root;
        }
        if (!touches) continue;
        if (held->first_step == BERTH_NO_INDEX) held->first_step = i;
        held->last_step = i;
        berth_packager__rebind_step(p, i, root, second);
        held = &p->storages.data[second];
    }
}

void berth_packager__recompute(berth_packager *p, const berth_recomputation *again) {
    const berth_waiting_value *value = &again->value;
    uint32_t wanted_at = value->after + again->step_count;  // the step that wants it
    insert_again(p, again);
    for (uint32_t k = 0; k < again->root_count; ++k) {
        uint32_t root = again->roots[k];
        const berth_storage held = p->storages.data[root];
        uint32_t second =
            berth_packager__add_workspace(p, held.place, held.size_bytes, BERTH_NO_INDEX, 0);
        bind_again(p, again, root, second);
        if (root != value->storage) continue;
        for (uint32_t i = wanted_at; i < p->steps.count; ++i)
            berth_packager__rebind_step(p, i, root, second);
        p->storages.data[second].last_step = held.last_step;
        p->storages.data[root].last_step = value->before;
    }
    for (uint32_t k = 0; k < again->kept_count; ++k) {
        berth_storage *kept = &p->storages.data[again->kept[k]];
        for (uint32_t i = value->after; i < wanted_at; ++i)
            for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
                uint64_t offset = 0;
                bool reads = berth_packager__root_of(p, p->steps.data[i].bindings[b], &offset) ==
                             again->kept[k];
                if (reads && kept->last_step < i) kept->last_step = i;
            }
    }
}
