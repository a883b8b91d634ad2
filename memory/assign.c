#include "memory/assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Buffers times nodes of a search: about a tenth of a second.
#define SEARCH_WORK ((uint64_t)8 << 20)

enum {
    EXACT_COUNT = 256,      // up to so many buffers,
    EXACT_PLACEMENTS = 64,  // so many complete assignments are given to the memory planner,
    PLACEMENTS = 4,         // beyond so many
    SEARCHED_COUNT = 4096   // beyond, nothing is searched
};

#define NO_CHOICE UINT32_MAX

typedef struct search {
    berth_arena *scratch;
    berth_memory_plan_buffer *buffers;
    const double *moved_bytes;
    uint32_t count, pool_count, step_count;
    berth_memory_assign_pool *pools;
    uint64_t *peak_bytes;   // by pool, of the plans that were made last
    uint32_t *order;        // by depth: the buffer that is decided there
    uint32_t *clique;       // by buffer: a set of buffers that are live at one step
    uint32_t *clique_step;  // by clique
    uint32_t clique_count;
    uint64_t *used;       // [pool * step_count + step] of what is decided
    uint64_t *left;       // for the bound: [clique * pool_count + pool]
    uint32_t *choice;     // by depth
    uint32_t *best;       // by buffer
    double best_cost;     // INFINITY = nothing found
    bool any;             // the first that fits will do
    bool refused;         // the planner found no places for an assignment
    uint32_t placements;  // that may still be tried
    uint64_t nodes;
} search;

typedef struct ranked {
    double key;
    uint32_t index;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

// Largest keys first.
static void sort_by(search *s, double (*key)(const search *, uint32_t)) {
    ranked *list = berth_arena_new_array(s->scratch, ranked, s->count);
    for (uint32_t i = 0; i < s->count; ++i) list[i] = (ranked){key(s, i), i};
    qsort(list, s->count, sizeof(*list), compare_ranked);
    for (uint32_t i = 0; i < s->count; ++i) s->order[i] = list[i].index;
}

static double density(const search *s, uint32_t i) {
    return s->moved_bytes[i] / (double)s->buffers[i].size_bytes;
}

static double size_of(const search *s, uint32_t i) {
    return (double)s->buffers[i].size_bytes;
}

// ---- the bound ----------------------------------------------------------------------------------

// Sets of buffers that are live at one step each: the step with most bytes that are in no set yet, again
// and again.
static void find_cliques(search *s) {
    uint64_t *live = berth_arena_new_array(s->scratch, uint64_t, s->step_count);
    s->clique = berth_arena_new_array(s->scratch, uint32_t, s->count);
    s->clique_step = berth_arena_new_array(s->scratch, uint32_t, s->count);
    for (uint32_t i = 0; i < s->count; ++i) {
        const berth_memory_plan_buffer *b = &s->buffers[i];
        for (uint32_t t = b->first_use_step; t <= b->last_use_step; ++t) live[t] += b->size_bytes;
        s->clique[i] = NO_CHOICE;
    }
    for (;;) {
        uint32_t most = 0;
        for (uint32_t t = 1; t < s->step_count; ++t)
            if (live[t] > live[most]) most = t;
        if (live[most] == 0) return;
        for (uint32_t i = 0; i < s->count; ++i) {
            const berth_memory_plan_buffer *b = &s->buffers[i];
            if (s->clique[i] != NO_CHOICE || b->first_use_step > most || b->last_use_step < most)
                continue;
            s->clique[i] = s->clique_count;
            for (uint32_t t = b->first_use_step; t <= b->last_use_step; ++t)
                live[t] -= b->size_bytes;
        }
        s->clique_step[s->clique_count++] = most;
    }
}

// The least cost of all that is not decided, if buffers could be cut: in each set the densest bytes fill the
// cheapest room that is left at its step. INFINITY: they have no room at all.
static double bound_from(search *s, uint32_t depth) {
    for (uint32_t c = 0; c < s->clique_count; ++c)
        for (uint32_t k = 0; k < s->pool_count; ++k)
            s->left[c * s->pool_count + k] =
                s->pools[k].room_bytes - s->used[k * s->step_count + s->clique_step[c]];
    double cost = 0;
    for (uint32_t d = depth; d < s->count; ++d) {
        uint32_t i = s->order[d];
        uint64_t *left = &s->left[s->clique[i] * s->pool_count], rest = s->buffers[i].size_bytes;
        for (uint32_t k = 0; k < s->pool_count && rest > 0; ++k) {
            uint64_t taken = left[k] < rest ? left[k] : rest;
            cost += density(s, i) * (double)taken * s->pools[k].cost_per_byte;
            left[k] -= taken;
            rest -= taken;
        }
        if (rest > 0) return INFINITY;
    }
    return cost;
}

// ---- the search ---------------------------------------------------------------------------------

// Adds the buffer to what a pool holds where there is room for it at every step.
static bool add_to(search *s, uint32_t i, uint32_t pool) {
    const berth_memory_plan_buffer *b = &s->buffers[i];
    uint64_t *used = &s->used[pool * s->step_count], room = s->pools[pool].room_bytes;
    for (uint32_t t = b->first_use_step; t <= b->last_use_step; ++t)
        if (b->size_bytes > room - used[t]) return false;
    for (uint32_t t = b->first_use_step; t <= b->last_use_step; ++t) used[t] += b->size_bytes;
    return true;
}

static void take_from(search *s, uint32_t i, uint32_t pool) {
    const berth_memory_plan_buffer *b = &s->buffers[i];
    uint64_t *used = &s->used[pool * s->step_count];
    for (uint32_t t = b->first_use_step; t <= b->last_use_step; ++t) used[t] -= b->size_bytes;
}

// Plans of the buffers as they are assigned: which pool needs more than its room (NO_CHOICE = none does), and
// which part of what it needs is too much.
static berth_status place(search *s, uint32_t spared, uint32_t *out_over, double *out_excess) {
    berth_arena *child = berth_arena_create_child(s->scratch);
    berth_memory_plan_pool *plans =
        berth_arena_new_array(child, berth_memory_plan_pool, s->pool_count);
    uint64_t *offsets = berth_arena_new_array(child, uint64_t, s->count);
    berth_status status =
        berth_memory_plan_solve(child, s->buffers, s->count, plans, s->pool_count, 0, offsets);
    *out_over = NO_CHOICE;
    for (uint32_t k = 0; k < s->pool_count; ++k) s->peak_bytes[k] = plans[k].peak_bytes;
    for (uint32_t k = s->pool_count; !status && k-- > 0;)
        if (k != spared && plans[k].peak_bytes > s->pools[k].room_bytes) *out_over = k;
    if (*out_over != NO_CHOICE) {
        double need = (double)plans[*out_over].peak_bytes;
        *out_excess = (need - (double)s->pools[*out_over].room_bytes) / need;
    }
    berth_arena_destroy(child);
    return status;
}

// A complete assignment that costs less than the best one.
static berth_status try_leaf(search *s, double cost) {
    uint32_t over = 0;
    double excess = 0;
    if (s->placements == 0) return BERTH_OK;
    s->placements--;
    for (uint32_t d = 0; d < s->count; ++d) s->buffers[s->order[d]].pool = s->choice[d];
    BERTH_TRY(place(s, NO_CHOICE, &over, &excess));
    if (over != NO_CHOICE) {
        s->refused = true;
        return BERTH_OK;
    }
    s->best_cost = cost;
    for (uint32_t i = 0; i < s->count; ++i) s->best[i] = s->buffers[i].pool;
    return BERTH_OK;
}

// Whether it looked at everything.
static berth_status search_all(search *s, uint64_t node_limit, bool *out_complete) {
    double *cost = berth_arena_new_array(s->scratch, double, s->count + 1);
    uint64_t last_node = s->nodes + node_limit;
    uint32_t depth = 0;
    s->choice[0] = NO_CHOICE;
    *out_complete = false;
    for (;;) {
        uint32_t i = s->order[depth];
        if (s->choice[depth] != NO_CHOICE) take_from(s, i, s->choice[depth]);
        uint32_t k = s->choice[depth] + 1;  // of NO_CHOICE: 0
        while (k < s->pool_count && !add_to(s, i, k)) ++k;
        if (k == s->pool_count) {
            *out_complete = depth == 0 && s->placements > 0;
            if (depth-- == 0) return BERTH_OK;
            continue;
        }
        s->choice[depth] = k;
        cost[depth + 1] = cost[depth] + s->moved_bytes[i] * s->pools[k].cost_per_byte;
        if (++s->nodes > last_node || s->placements == 0) break;
        double least = cost[depth + 1] + bound_from(s, depth + 1);
        if (isinf(least) || least >= s->best_cost * (1 - 1e-12)) continue;
        if (depth + 1 < s->count) {
            s->choice[++depth] = NO_CHOICE;
            continue;
        }
        BERTH_TRY(try_leaf(s, least));
        if (s->any && !isinf(s->best_cost)) break;
    }
    for (uint32_t d = 0; d <= depth; ++d) take_from(s, s->order[d], s->choice[d]);
    return BERTH_OK;
}

// ---- where the search found nothing ---------------------------------------------------------------

static double cost_of(const search *s) {
    double cost = 0;
    for (uint32_t i = 0; i < s->count; ++i)
        cost += s->moved_bytes[i] * s->pools[s->buffers[i].pool].cost_per_byte;
    return cost;
}

// Densest first into the cheapest pool with room, what has none into `last`; then the least dense buffers of
// pools whose plans are too high go there, too.
static berth_status fill(search *s, uint32_t last, bool *out_fits) {
    uint32_t over = 0, held = 0;
    double excess = 0;
    sort_by(s, density);
    for (uint32_t d = 0; d < s->count; ++d) {
        uint32_t i = s->order[d], k = 0;
        while (k < s->pool_count && !add_to(s, i, k)) ++k;
        s->buffers[i].pool = k < s->pool_count ? k : last;
        s->choice[d] = k;
    }
    for (uint32_t d = 0; d < s->count; ++d)
        if (s->choice[d] < s->pool_count) take_from(s, s->order[d], s->choice[d]);
    for (;;) {
        BERTH_TRY(place(s, last, &over, &excess));
        if (over == NO_CHOICE) break;
        held = 0;
        for (uint32_t i = 0; i < s->count; ++i) held += s->buffers[i].pool == over;
        uint32_t moves = 1 + (uint32_t)(excess * held);
        for (uint32_t d = s->count; d-- > 0 && moves > 0;)
            if (s->buffers[s->order[d]].pool == over) {
                s->buffers[s->order[d]].pool = last;
                moves--;
            }
    }
    BERTH_TRY(place(s, NO_CHOICE, &over, &excess));
    *out_fits = over == NO_CHOICE;
    return BERTH_OK;
}

static void keep(search *s) {
    s->best_cost = cost_of(s);
    for (uint32_t i = 0; i < s->count; ++i) s->best[i] = s->buffers[i].pool;
}

static search make_search(berth_arena *scratch, berth_memory_plan_buffer *buffers,
                          const double *moved_bytes, uint32_t count,
                          const berth_memory_assign_pool *pools, uint32_t pool_count) {
    search s = {.scratch = scratch,
                .buffers = buffers,
                .moved_bytes = moved_bytes,
                .count = count,
                .pool_count = pool_count,
                .pools = berth_arena_copy(scratch, pools, pool_count * sizeof(*pools)),
                .peak_bytes = berth_arena_new_array(scratch, uint64_t, pool_count),
                .best_cost = INFINITY};
    for (uint32_t i = 0; i < count; ++i)
        if (buffers[i].last_use_step >= s.step_count) s.step_count = buffers[i].last_use_step + 1;
    s.order = berth_arena_new_array(scratch, uint32_t, count);
    s.choice = berth_arena_new_array(scratch, uint32_t, count);
    s.best = berth_arena_new_array(scratch, uint32_t, count);
    s.used = berth_arena_new_array(scratch, uint64_t, (size_t)pool_count * s.step_count);
    s.left = berth_arena_new_array(scratch, uint64_t, (size_t)pool_count * count);
    if (count <= SEARCHED_COUNT) find_cliques(&s);
    return s;
}

// By `key` first, from the best assignment so far on.
static berth_status search_by(search *s, double (*key)(const search *, uint32_t),
                              uint64_t node_limit, bool *out_complete) {
    uint64_t most = SEARCH_WORK / s->count;
    if (most < 2 * (uint64_t)s->count) most = 2 * (uint64_t)s->count;
    if (node_limit == 0) node_limit = BERTH_MEMORY_ASSIGN_DEFAULT_NODES;
    s->placements = s->count <= EXACT_COUNT ? EXACT_PLACEMENTS : PLACEMENTS;
    sort_by(s, key);
    return search_all(s, node_limit < most ? node_limit : most, out_complete);
}

// An assignment that fits the rooms as they are, and is cheap.
static berth_status find(search *s, uint32_t last, uint64_t node_limit,
                         berth_memory_assignment *out) {
    bool complete = false, fits = false, searched = s->count <= SEARCHED_COUNT;
    s->any = s->refused = false;
    s->best_cost = INFINITY;
    out->bound = 0;
    sort_by(s, density);
    for (uint32_t i = 0; i < s->count; ++i)
        out->bound += s->moved_bytes[i] * s->pools[0].cost_per_byte;
    if (searched) {
        out->bound = bound_from(s, 0);
        BERTH_TRY(search_by(s, density, node_limit, &complete));
    }
    out->optimal = complete && !s->refused && !isinf(s->best_cost);
    if (out->optimal) out->bound = s->best_cost;
    if (isinf(s->best_cost) && !isinf(out->bound)) {
        BERTH_TRY(fill(s, last, &fits));
        if (fits) keep(s);
    }
    if (isinf(s->best_cost) && searched && !isinf(out->bound)) {  // the largest first, at any cost
        s->any = true;
        BERTH_TRY(search_by(s, size_of, node_limit, &complete));
    }
    out->fits = !isinf(s->best_cost);
    for (uint32_t i = 0; out->fits && i < s->count; ++i) s->buffers[i].pool = s->best[i];
    return BERTH_OK;
}

// Where nothing fits: the least room of `last` with which something does, by halves.
static berth_status exceed(search *s, uint32_t last, uint64_t node_limit) {
    uint32_t *least = berth_arena_new_array(s->scratch, uint32_t, s->count);
    uint64_t low = s->pools[last].room_bytes;
    uint32_t over = 0;
    double excess = 0;
    bool fits = false;
    BERTH_TRY(fill(s, last, &fits));
    uint64_t high = s->peak_bytes[last];
    for (uint32_t i = 0; i < s->count; ++i) least[i] = s->buffers[i].pool;
    while (s->count <= EXACT_COUNT && high > low + 1) {
        berth_memory_assignment tried;
        s->pools[last].room_bytes = low + (high - low) / 2;
        BERTH_TRY(find(s, last, node_limit, &tried));
        if (!tried.fits) {
            low = s->pools[last].room_bytes;
            continue;
        }
        BERTH_TRY(place(s, NO_CHOICE, &over, &excess));
        high = s->peak_bytes[last];
        for (uint32_t i = 0; i < s->count; ++i) least[i] = s->buffers[i].pool;
    }
    for (uint32_t i = 0; i < s->count; ++i) s->buffers[i].pool = least[i];
    return BERTH_OK;
}

static berth_status assign(search *s, uint32_t last, uint64_t node_limit,
                           berth_memory_assignment *out) {
    BERTH_TRY(find(s, last, node_limit, out));
    if (!out->fits) BERTH_TRY(exceed(s, last, node_limit));
    out->cost = cost_of(s);
    out->nodes = s->nodes;
    return BERTH_OK;
}

berth_status berth_memory_assign(berth_arena *scratch, berth_memory_plan_buffer *buffers,
                                 const double *moved_bytes, uint32_t buffer_count,
                                 const berth_memory_assign_pool *pools, uint32_t pool_count,
                                 uint32_t last, uint64_t node_limit, berth_memory_assignment *out) {
    *out = (berth_memory_assignment){.fits = true, .optimal = true};
    if (buffer_count == 0) return BERTH_OK;
    for (uint32_t i = 0; i < buffer_count; ++i) {
        buffers[i].pool = 0;
        if (buffers[i].first_use_step > buffers[i].last_use_step || buffers[i].size_bytes == 0)
            return berth_status_make(
                BERTH_INVALID_ARGUMENT,
                "buffer %u of the assignment: its size is 0, or its first step "
                "is behind its last",
                i);
    }
    search s = make_search(scratch, buffers, moved_bytes, buffer_count, pools, pool_count);
    return assign(&s, last, node_limit, out);
}
