// Plain C for a device with several memories (DTCM beside SRAM): which values lie in which.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/package/package.h"
#include "memory/assign.h"

bool berth_packager__takes_values(const berth_multi_target *target, uint32_t memory) {
    const berth_target_memory *m = &target->memories[memory];
    if (target->executor != BERTH_EXECUTOR_AOT || strcmp(m->scope, "global") != 0 ||
        m->holds_constants)
        return false;
    bool reached = false;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        if (target->devices[d].own_memory == memory) return false;
        reached |= berth_bits_has(m->reached_by, d);
    }
    return reached;
}

typedef struct choice {
    berth_memory_assign_pool pool;
    uint32_t memory;
    bool own;
} choice;

// Small cores have no cache: what they move a word at a time waits for the memory each time.
static double ns_per_byte(const berth_target_memory *memory) {
    enum { word_bytes = 4 };
    return 1e9 / memory->bandwidth_bytes_per_s + (double)memory->latency_ns / word_bytes;
}

static int compare_choices(const void *left, const void *right) {
    const choice *a = left, *b = right;
    if (a->pool.cost_per_byte != b->pool.cost_per_byte)
        return a->pool.cost_per_byte < b->pool.cost_per_byte ? -1 : 1;
    if (a->own != b->own) return a->own ? -1 : 1;
    return a->memory < b->memory ? -1 : a->memory > b->memory;
}

// The memories for values, the fastest first, and the room that each has for them.
static choice *find_choices(const berth_packager *p, uint32_t place, uint32_t *out_count) {
    const berth_multi_target *target = p->target;
    uint32_t own = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE), count = 0;
    choice *choices = berth_arena_new_array(p->arena, choice, target->memory_count);
    for (uint32_t m = 0; m < target->memory_count; ++m) {
        if (m != own && !berth_packager__takes_values(target, m)) continue;
        const berth_target_memory *memory = &target->memories[m];
        uint64_t used = berth_packager__used_bytes(p, m) - berth_packager__scratch_bytes(p, m);
        uint64_t room = memory->budget_bytes > used ? memory->budget_bytes - used : 0;
        room -= room % BERTH_PLAIN_ALIGNMENT_BYTES;  // as large as the static array may be
        if (memory->budget_bytes == 0) room = UINT64_MAX;
        choices[count++] = (choice){{room, ns_per_byte(memory)}, m, m == own};
    }
    qsort(choices, count, sizeof(*choices), compare_choices);
    *out_count = count;
    return choices;
}

typedef struct values {
    BERTH_VEC(berth_memory_plan_buffer) buffers;
    BERTH_VEC(uint32_t) storages;  // of the buffers; BERTH_NO_INDEX = private arrays
    double *moved_bytes;           // by storage, and of private arrays
} values;

static uint32_t root_of(const berth_packager *p, uint32_t tensor) {
    uint32_t root = p->storage_of.data[tensor];
    while (p->storages.data[root].into != BERTH_NO_INDEX) root = p->storages.data[root].into;
    return root;
}

static void count_moves(const berth_packager *p, values *v) {
    v->moved_bytes = berth_arena_new_array(p->arena, double, p->storages.count + 1);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const berth_step_facts *facts = &p->facts.data[i];
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t tensor = p->steps.data[i].bindings[b];
            v->moved_bytes[root_of(p, tensor)] += facts->moved_bytes
                                                      ? facts->moved_bytes[b]
                                                      : (double)p->tensors.data[tensor].size_bytes;
        }
        v->moved_bytes[p->storages.count] += facts->scratch_moved_bytes;
    }
}

static void add_value(berth_packager *p, values *v, uint32_t storage,
                      berth_memory_plan_buffer buffer) {
    buffer.alignment_bytes = BERTH_PLAIN_ALIGNMENT_BYTES;
    berth_vec_push(p->arena, &v->buffers, buffer);
    berth_vec_push(p->arena, &v->storages, storage);
}

static void collect(berth_packager *p, uint32_t place, uint32_t own, values *v) {
    for (uint32_t k = p->place_first[place]; k < p->place_first[place + 1]; ++k) {
        uint32_t i = p->place_storages[k];
        const berth_storage *s = &p->storages.data[i];
        if (s->usage != BERTH_POOL_WORKSPACE || s->into != BERTH_NO_INDEX ||
            s->first_step == BERTH_NO_INDEX)
            continue;
        add_value(p, v, i,
                  (berth_memory_plan_buffer){.first_use_step = s->first_step,
                                             .last_use_step = s->last_step,
                                             .size_bytes = s->size_bytes ? s->size_bytes : 1});
    }
    uint64_t scratch_bytes = berth_packager__scratch_bytes(p, own);
    if (scratch_bytes == 0) return;
    add_value(p, v, BERTH_NO_INDEX,
              (berth_memory_plan_buffer){.last_use_step = p->steps.count - 1,
                                         .size_bytes = scratch_bytes});
}

// What is assigned to a further memory has its place from now on.
static void move_values(berth_packager *p, const values *v, const choice *choices, uint32_t own) {
    for (uint32_t i = 0; i < v->buffers.count; ++i) {
        uint32_t storage = v->storages.data[i], memory = choices[v->buffers.data[i].pool].memory;
        if (memory == own) continue;
        if (storage == BERTH_NO_INDEX)
            p->scratch_memory = memory;
        else
            p->storages.data[storage].place = p->target->device_count + memory;
    }
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *part = &p->storages.data[i];
        uint32_t whole = part->into;
        while (whole != BERTH_NO_INDEX && p->storages.data[whole].into != BERTH_NO_INDEX)
            whole = p->storages.data[whole].into;
        if (whole != BERTH_NO_INDEX) part->place = p->storages.data[whole].place;
    }
    berth_packager__index_places(p);
}

static void report_shares(berth_packager *p, const values *v, const double *moved_bytes,
                          const choice *choices, uint32_t count) {
    berth_memory_share *shares = berth_arena_new_array(p->arena, berth_memory_share, count);
    for (uint32_t i = 0; i < count; ++i)
        shares[i] = (berth_memory_share){.memory = p->target->memories[choices[i].memory].name,
                                         .is_own = choices[i].own};
    for (uint32_t i = 0; i < v->buffers.count; ++i) {
        berth_memory_share *share = &shares[v->buffers.data[i].pool];
        share->moved_bytes += moved_bytes[i];
        share->has_scratch |= v->storages.data[i] == BERTH_NO_INDEX;
    }
    p->report->shares = shares;
    p->report->share_count = count;
}

typedef struct assigning {
    choice *choices;
    uint32_t count;  // fewer than two: there is nothing to choose
    uint32_t own;    // memory of the target
    values v;
    double *moved_bytes;  // per value
    berth_memory_assign_pool *pools;
    berth_memory_assignment found;
} assigning;

static berth_status find_assignment(berth_packager *p, uint32_t place, assigning *a) {
    uint32_t last = 0;
    *a = (assigning){0};
    if (p->target->executor != BERTH_EXECUTOR_AOT || place >= p->target->device_count ||
        p->steps.count == 0)
        return BERTH_OK;
    a->own = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    a->choices = find_choices(p, place, &a->count);
    if (a->count < 2) return BERTH_OK;
    values *v = &a->v;
    count_moves(p, v);
    collect(p, place, a->own, v);
    a->pools = berth_arena_new_array(p->arena, berth_memory_assign_pool, a->count);
    for (uint32_t i = 0; i < a->count; ++i) {
        a->pools[i] = a->choices[i].pool;
        if (a->choices[i].own) last = i;
    }
    a->moved_bytes = berth_arena_new_array(p->arena, double, v->buffers.count + 1);
    for (uint32_t i = 0; i < v->buffers.count; ++i) {
        uint32_t storage = v->storages.data[i];
        a->moved_bytes[i] = v->moved_bytes[storage == BERTH_NO_INDEX ? p->storages.count : storage];
    }
    return berth_memory_assign(p->arena, v->buffers.data, a->moved_bytes, v->buffers.count,
                               a->pools, a->count, last, 0, &a->found);
}

berth_status berth_packager__assign_memories(berth_packager *p, uint32_t place) {
    assigning a;
    BERTH_TRY(find_assignment(p, place, &a));
    if (a.count < 2) return BERTH_OK;
    move_values(p, &a.v, a.choices, a.own);
    report_shares(p, &a.v, a.moved_bytes, a.choices, a.count);
    p->report->shares_proven = a.found.optimal;
    return BERTH_OK;
}

berth_status berth_packager__weigh_memories(berth_packager *p, uint32_t place,
                                            berth_packager_memories *out) {
    assigning a;
    *out = (berth_packager_memories){0};
    BERTH_TRY(find_assignment(p, place, &a));
    if (a.count < 2) return BERTH_OK;
    *out = (berth_packager_memories){.pools = a.pools,
                                     .pool_count = a.count,
                                     .cost = a.found.fits ? a.found.cost : INFINITY,
                                     .optimal = a.found.optimal};
    return BERTH_OK;
}
