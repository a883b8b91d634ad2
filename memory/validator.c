#include "memory/validator.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct change {
    uint32_t pool;
    int64_t time;
    bool begins;
    uint32_t buffer;
} change;

static int compare_changes(const void *left, const void *right) {
    const change *a = left;
    const change *b = right;
    if (a->pool != b->pool) return a->pool < b->pool ? -1 : 1;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->begins != b->begins) return a->begins ? 1 : -1;  // [lower, upper): who ends makes room
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static change *sort_changes(berth_arena *arena, const berth_memory_problem *problem) {
    change *changes = berth_arena_new_array(arena, change, (size_t)problem->buffer_count * 2);
    for (uint32_t b = 0; b < problem->buffer_count; ++b) {
        const berth_memory_interval *i = &problem->intervals[b];
        changes[(size_t)b * 2] = (change){problem->pools[b], i->lower, true, b};
        changes[(size_t)b * 2 + 1] = (change){problem->pools[b], i->upper, false, b};
    }
    qsort(changes, (size_t)problem->buffer_count * 2, sizeof(*changes), compare_changes);
    return changes;
}

// The live buffers as a treap (Seidel and Aragon 1996) by offset. Since they are disjoint, a new
// buffer can only overlap its neighbours in this order.
typedef struct node {
    uint32_t left, right;  // buffer + 1; 0 = none
    uint32_t priority;
} node;

typedef struct live_set {
    node *nodes;  // [buffer_count + 1]
    const uint64_t *offsets;
    uint32_t root;
} live_set;

static bool is_before(const live_set *set, uint32_t a, uint32_t b) {
    uint64_t x = set->offsets[a - 1];
    uint64_t y = set->offsets[b - 1];
    return x != y ? x < y : a < b;
}

static void split(live_set *set, uint32_t tree, uint32_t at, uint32_t *out_before,
                  uint32_t *out_after) {
    while (tree) {
        if (is_before(set, tree, at)) {
            *out_before = tree;
            out_before = &set->nodes[tree].right;
            tree = *out_before;
        } else {
            *out_after = tree;
            out_after = &set->nodes[tree].left;
            tree = *out_after;
        }
    }
    *out_before = *out_after = 0;
}

static uint32_t join(live_set *set, uint32_t before, uint32_t after) {
    uint32_t root = 0;
    uint32_t *link = &root;
    while (before && after) {
        if (set->nodes[before].priority > set->nodes[after].priority) {
            *link = before;
            link = &set->nodes[before].right;
            before = *link;
        } else {
            *link = after;
            link = &set->nodes[after].left;
            after = *link;
        }
    }
    *link = before ? before : after;
    return root;
}

static void insert(live_set *set, uint32_t id) {
    uint32_t *link = &set->root;
    while (*link && set->nodes[*link].priority >= set->nodes[id].priority)
        link = is_before(set, id, *link) ? &set->nodes[*link].left : &set->nodes[*link].right;
    uint32_t below = *link;
    split(set, below, id, &set->nodes[id].left, &set->nodes[id].right);
    *link = id;
}

static void erase(live_set *set, uint32_t id) {
    uint32_t *link = &set->root;
    while (*link != id)
        link = is_before(set, id, *link) ? &set->nodes[*link].left : &set->nodes[*link].right;
    *link = join(set, set->nodes[id].left, set->nodes[id].right);
    set->nodes[id].left = set->nodes[id].right = 0;
}

static void find_neighbors(const live_set *set, uint32_t id, uint32_t *out_before,
                           uint32_t *out_after) {
    *out_before = *out_after = 0;
    for (uint32_t at = set->root; at;) {
        bool below = is_before(set, at, id);
        *(below ? out_before : out_after) = at;
        at = below ? set->nodes[at].right : set->nodes[at].left;
    }
}

static berth_status overlap_error(const berth_memory_problem *problem, const uint64_t *offsets,
                                  uint32_t a, uint32_t b, int64_t time) {
    return berth_status_make(
        BERTH_FAILED_PRECONDITION,
        "buffers \"%s\" [%llu, +%llu) and \"%s\" [%llu, +%llu) overlap at time %lld",
        problem->ids[a], (unsigned long long)offsets[a],
        (unsigned long long)problem->intervals[a].size_bytes, problem->ids[b],
        (unsigned long long)offsets[b], (unsigned long long)problem->intervals[b].size_bytes,
        (long long)time);
}

static bool share_bytes(const berth_memory_problem *problem, const uint64_t *offsets, uint32_t a,
                        uint32_t b) {
    return offsets[a] < offsets[b] + problem->intervals[b].size_bytes &&
           offsets[b] < offsets[a] + problem->intervals[a].size_bytes;
}

static berth_status check_each(const berth_memory_problem *problem, const uint64_t *offsets,
                               const uint64_t *capacities_bytes, uint64_t *out_heights) {
    for (uint32_t p = 0; out_heights && p < problem->pool_count; ++p) out_heights[p] = 0;
    for (uint32_t b = 0; b < problem->buffer_count; ++b) {
        const berth_memory_interval *i = &problem->intervals[b];
        uint32_t pool = problem->pools[b];
        uint64_t limit =
            capacities_bytes && capacities_bytes[pool] ? capacities_bytes[pool] : UINT64_MAX;
        if (offsets[b] % i->alignment_bytes != 0)
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "buffer \"%s\": offset %llu is not a multiple of %llu",
                                     problem->ids[b], (unsigned long long)offsets[b],
                                     (unsigned long long)i->alignment_bytes);
        if (i->size_bytes > limit || offsets[b] > limit - i->size_bytes)
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "buffer \"%s\" [%llu, +%llu) is beyond the capacity of %llu",
                                     problem->ids[b], (unsigned long long)offsets[b],
                                     (unsigned long long)i->size_bytes, (unsigned long long)limit);
        if (out_heights && offsets[b] + i->size_bytes > out_heights[pool])
            out_heights[pool] = offsets[b] + i->size_bytes;
    }
    return BERTH_OK;
}

typedef struct validate_call {
    berth_arena *arena;
    const berth_memory_problem *problem;
    const uint64_t *offsets;
} validate_call;

static berth_status check_pairs(void *user) {
    validate_call *call = user;
    const berth_memory_problem *problem = call->problem;
    berth_arena *scratch = berth_arena_create_child(call->arena);
    change *changes = sort_changes(scratch, problem);
    live_set set = {berth_arena_new_array(scratch, node, (size_t)problem->buffer_count + 1),
                    call->offsets, 0};
    uint32_t random = 2463534242u;  // xorshift (Marsaglia 2003): priorities
    berth_status status = BERTH_OK;
    for (size_t k = 0; k < (size_t)problem->buffer_count * 2 && !status; ++k) {
        uint32_t id = changes[k].buffer + 1;
        if (!changes[k].begins) {
            erase(&set, id);
            continue;
        }
        uint32_t neighbors[2];
        find_neighbors(&set, id, &neighbors[0], &neighbors[1]);
        for (int n = 0; n < 2 && !status; ++n)
            if (neighbors[n] && share_bytes(problem, call->offsets, id - 1, neighbors[n] - 1))
                status = overlap_error(problem, call->offsets, neighbors[n] - 1, id - 1,
                                       changes[k].time);
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        set.nodes[id].priority = random;
        insert(&set, id);
    }
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_memory_validate(berth_arena *arena, const berth_memory_problem *problem,
                                   const uint64_t *offsets, const uint64_t *capacities_bytes,
                                   uint64_t *out_heights) {
    BERTH_TRY(check_each(problem, offsets, capacities_bytes, out_heights));
    validate_call call = {arena, problem, offsets};
    return berth_arena_try(arena, check_pairs, &call);
}

uint64_t berth_memory_validate_lower_bound(berth_arena *arena, const berth_memory_problem *problem,
                                           uint32_t pool) {
    berth_arena *scratch = berth_arena_create_child(arena);
    change *changes = sort_changes(scratch, problem);
    uint64_t live = 0;
    uint64_t most = 0;
    for (size_t k = 0; k < (size_t)problem->buffer_count * 2; ++k) {
        if (changes[k].pool != pool) continue;
        uint64_t size = problem->intervals[changes[k].buffer].size_bytes;
        live = changes[k].begins ? live + size : live - size;
        if (live > most) most = live;
    }
    berth_arena_destroy(scratch);
    return most;
}
