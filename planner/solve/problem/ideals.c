// Enumeration by size: each ideal hands its addable vertices on to the ideals one larger, which a
// hash table keeps apart.
#include "planner/solve/problem/ideals.h"

#include <string.h>

typedef struct enumeration {
    berth_arena *arena;
    const berth_place_dag *dag;
    berth_place_ideals *ideals;
    uint32_t limit;
    uint32_t capacity;       // of sets, step_start, parent, parent_step
    uint32_t step_capacity;  // of vertex, target
    uint32_t *parent;        // [capacity] an ideal with one vertex less
    uint32_t *added;         // [capacity] that vertex
    uint32_t *table;         // ideal + 1, or 0; open addressing
    uint32_t table_mask;
    uint32_t *missing;  // [dag->count] scratch: vertices to add
} enumeration;

static uint64_t hash_set(const uint64_t *set, uint32_t words) {
    uint64_t hash = 0x9E3779B97F4A7C15u;
    for (uint32_t w = 0; w < words; ++w) {
        hash = (hash ^ set[w]) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 31;
    }
    return hash;
}

static void insert_into_table(enumeration *e, uint32_t ideal) {
    const berth_place_ideals *ideals = e->ideals;
    uint64_t hash = hash_set(&ideals->sets[(size_t)ideal * ideals->words], ideals->words);
    uint32_t slot = (uint32_t)hash & e->table_mask;
    while (e->table[slot]) slot = (slot + 1) & e->table_mask;
    e->table[slot] = ideal + 1;
}

// Room for one more ideal. The arena keeps the old arrays: growth doubles, so at most as much
// again.
static void grow(enumeration *e) {
    berth_place_ideals *ideals = e->ideals;
    uint32_t old = e->capacity;
    uint32_t wanted = old * 2;
    size_t set_bytes = ideals->words * sizeof(uint64_t);
    ideals->sets = berth_arena_grow(e->arena, ideals->sets, old * set_bytes, wanted * set_bytes);
    size_t before = old * sizeof(uint32_t);
    size_t after = wanted * sizeof(uint32_t);
    ideals->step_start = berth_arena_grow(e->arena, ideals->step_start, before + sizeof(uint32_t),
                                          after + sizeof(uint32_t));
    e->parent = berth_arena_grow(e->arena, e->parent, before, after);
    e->added = berth_arena_grow(e->arena, e->added, before, after);
    e->capacity = wanted;
    e->table = berth_arena_new_array(e->arena, uint32_t, (size_t)wanted * 2);
    e->table_mask = wanted * 2 - 1;
    for (uint32_t i = 0; i < ideals->count; ++i) insert_into_table(e, i);
}

// The ideal `from` + vertex, listed if it is new. UINT32_MAX when there are too many.
static uint32_t find_or_list(enumeration *e, uint32_t from, uint32_t vertex) {
    berth_place_ideals *ideals = e->ideals;
    if (ideals->count == e->capacity) grow(e);
    uint32_t words = ideals->words;
    uint64_t *set = &ideals->sets[(size_t)ideals->count * words];
    memcpy(set, &ideals->sets[(size_t)from * words], words * sizeof(*set));
    set[vertex / 64] |= (uint64_t)1 << (vertex % 64);
    uint32_t slot = (uint32_t)hash_set(set, words) & e->table_mask;
    for (; e->table[slot]; slot = (slot + 1) & e->table_mask) {
        const uint64_t *other = &ideals->sets[(size_t)(e->table[slot] - 1) * words];
        if (memcmp(set, other, words * sizeof(*set)) == 0) return e->table[slot] - 1;
    }
    if (ideals->count >= e->limit) return UINT32_MAX;
    e->table[slot] = ideals->count + 1;
    e->parent[ideals->count] = from;
    e->added[ideals->count] = vertex;
    return ideals->count++;
}

// What can be added to `ideal`: what could be added to its parent, and the successors of the vertex
// that it has more. Ascending into e->missing; returns how many.
static uint32_t list_addable(enumeration *e, uint32_t ideal) {
    const berth_place_dag *dag = e->dag;
    const berth_place_ideals *ideals = e->ideals;
    uint32_t count = 0;
    if (ideal == 0) {
        for (uint32_t v = 0; v < dag->count; ++v)
            if (dag->pred_start[v] == dag->pred_start[v + 1]) e->missing[count++] = v;
        return count;
    }
    uint32_t parent = e->parent[ideal];
    uint32_t added = e->added[ideal];
    for (uint32_t s = ideals->step_start[parent]; s < ideals->step_start[parent + 1]; ++s)
        if (ideals->vertex[s] != added) e->missing[count++] = ideals->vertex[s];
    for (uint32_t s = dag->succ_start[added]; s < dag->succ_start[added + 1]; ++s) {
        uint32_t v = dag->succs[s];
        bool ready = true;
        for (uint32_t p = dag->pred_start[v]; ready && p < dag->pred_start[v + 1]; ++p)
            ready = berth_place__ideal_has(ideals, ideal, dag->preds[p]);
        if (!ready) continue;
        uint32_t at = count++;
        for (; at > 0 && e->missing[at - 1] > v; --at) e->missing[at] = e->missing[at - 1];
        e->missing[at] = v;
    }
    return count;
}

static bool list_steps(enumeration *e, uint32_t ideal) {
    berth_place_ideals *ideals = e->ideals;
    uint32_t count = list_addable(e, ideal);
    uint32_t start = ideals->step_start[ideal];
    while (start + count > e->step_capacity) {
        size_t old = e->step_capacity * sizeof(uint32_t);
        ideals->vertex = berth_arena_grow(e->arena, ideals->vertex, old, old * 2);
        ideals->target = berth_arena_grow(e->arena, ideals->target, old, old * 2);
        e->step_capacity *= 2;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t target = find_or_list(e, ideal, e->missing[i]);
        if (target == UINT32_MAX) return false;
        ideals->vertex[start + i] = e->missing[i];
        ideals->target[start + i] = target;
    }
    ideals->step_start[ideal + 1] = start + count;
    return true;
}

berth_place_ideals *berth_place__ideals(berth_arena *arena, const berth_place_dag *dag,
                                        uint32_t limit, berth_place_search *search) {
    enum { FIRST_CAPACITY = 1024 };
    enumeration e = {.arena = arena, .dag = dag, .limit = limit, .capacity = FIRST_CAPACITY};
    berth_place_ideals *ideals = e.ideals = berth_arena_new(arena, berth_place_ideals);
    ideals->vertex_count = dag->count;
    ideals->words = dag->count / 64 + 1;
    ideals->sets = berth_arena_new_array(arena, uint64_t, (size_t)e.capacity * ideals->words);
    ideals->step_start = berth_arena_new_array(arena, uint32_t, e.capacity + 1);
    e.step_capacity = FIRST_CAPACITY;
    ideals->vertex = berth_arena_new_array(arena, uint32_t, e.step_capacity);
    ideals->target = berth_arena_new_array(arena, uint32_t, e.step_capacity);
    e.parent = berth_arena_new_array(arena, uint32_t, e.capacity);
    e.added = berth_arena_new_array(arena, uint32_t, e.capacity);
    e.table = berth_arena_new_array(arena, uint32_t, (size_t)e.capacity * 2);
    e.table_mask = e.capacity * 2 - 1;
    e.missing = berth_arena_new_array(arena, uint32_t, (size_t)dag->count + 1);
    ideals->count = 1;
    insert_into_table(&e, 0);
    for (uint32_t i = 0; i < ideals->count; ++i) {
        if (!list_steps(&e, i)) return NULL;
        uint32_t steps = ideals->step_start[i + 1] - ideals->step_start[i];
        if (search && berth_place_spent(search, (uint64_t)steps * (4 + ideals->words) / 64))
            return NULL;
    }
    return ideals;
}
