// Decisions and restarts of the search that learns.
#include <string.h>

#include "base/clock.h"
#include "memory/learn_private.h"

enum { RESTART_CONFLICTS = 64, FIRST_CLAUSE_LIMIT = 4096 };
#define WORK_PER_CLOCK ((uint64_t)1 << 18)

bool berth_memory__learn_assign(learn_search *search, learn_literal literal, learn_reason reason) {
    if (learn_is_true(search, literal)) return true;
    if (learn_is_false(search, literal)) {
        search->conflict.count = 0;
        berth_memory__learn_explain(search, literal, reason, &search->conflict);
        learn_push(search, &search->conflict, literal ^ 1);
        return false;
    }
    uint32_t pair = literal >> 1;
    uint32_t low = learn_low(search, literal);
    uint32_t high = learn_high(search, literal);
    uint32_t n = search->part->item_count;
    search->values[pair] = literal & 1 ? -1 : 1;
    search->sides[(size_t)low * n + high] = 1 + LEARN_ABOVE;
    search->sides[(size_t)high * n + low] = 1 + LEARN_BELOW;
    search->levels[pair] = search->level_marks.count;
    search->reasons[pair] = reason;
    learn_push(search, &search->trail, literal);
    return true;
}

// --- Heap of open pairs ---

static bool goes_before(const learn_search *search, uint32_t a, uint32_t b) {
    if (search->activity[a] != search->activity[b])
        return search->activity[a] > search->activity[b];
    return a < b;
}

static void put(learn_search *search, uint32_t at, uint32_t pair) {
    search->heap[at] = pair;
    search->heap_at[pair] = at + 1;
}

static void sift_up(learn_search *search, uint32_t at) {
    uint32_t pair = search->heap[at];
    for (; at > 0 && goes_before(search, pair, search->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(search, at, search->heap[(at - 1) / 2]);
    put(search, at, pair);
}

static uint32_t pop(learn_search *search) {
    uint32_t first = search->heap[0];
    uint32_t last = search->heap[--search->heap_count];
    search->heap_at[first] = 0;
    if (search->heap_count == 0) return first;
    uint32_t at = 0;
    for (uint32_t child = 1; child < search->heap_count; child = 2 * at + 1) {
        if (child + 1 < search->heap_count &&
            goes_before(search, search->heap[child + 1], search->heap[child]))
            ++child;
        if (!goes_before(search, search->heap[child], last)) break;
        put(search, at, search->heap[child]);
        at = child;
    }
    put(search, at, last);
    return first;
}

void berth_memory__learn_reopen(learn_search *search, uint32_t pair) {
    if (search->heap_at[pair] != 0) return;
    put(search, search->heap_count++, pair);
    sift_up(search, search->heap_count - 1);
}

void berth_memory__learn_bump(learn_search *search, uint32_t pair) {
    search->activity[pair] += search->activity_step;
    if (search->activity[pair] > 1e100) {
        for (uint32_t p = 0; p < search->pair_count; ++p) search->activity[p] *= 1e-100;
        search->activity_step *= 1e-100;
    }
    if (search->heap_at[pair] != 0) sift_up(search, search->heap_at[pair] - 1);
}

// --- The search ---

// 1 1 2 1 1 2 4 ... (Luby, Sinclair and Zuckerman 1993)
static uint64_t luby(uint32_t index) {
    uint32_t size = 1;
    uint32_t power = 0;
    for (; size < index + 1; size = 2 * size + 1) ++power;
    while (size - 1 != index) {
        size = (size - 1) / 2;
        --power;
        index %= size;
    }
    return (uint64_t)1 << power;
}

static bool propagate(learn_search *search) {
    for (;;) {
        if (!berth_memory__learn_propagate_clauses(search)) return false;
        if (!berth_memory__learn_propagate_bounds(search)) return false;
        if (search->clauses_seen == search->trail.count) return true;
    }
}

static bool begin_restart(learn_search *search) {
    berth_memory__learn_backtrack(search, 0);
    search->conflicts_left = RESTART_CONFLICTS * luby(search->restart_count++);
    if (search->clauses.count > search->clause_limit) {
        if (!propagate(search)) return false;
        berth_memory__learn_reduce(search);
        search->clause_limit += search->clause_limit / 16;
    }
    return true;
}

static bool out_of_time(learn_search *search) {
    if (search->deadline_ns && search->work >= search->next_clock) {
        search->next_clock = search->work + WORK_PER_CLOCK;
        search->out_of_time = berth_clock_ns() > search->deadline_ns;
    }
    return search->out_of_time;
}

// Decides the next pair. False: all are.
static bool decide(learn_search *search) {
    uint32_t pair = LEARN_NONE;
    while (search->heap_count > 0 && pair == LEARN_NONE) {
        pair = pop(search);
        if (search->values[pair] != 0) pair = LEARN_NONE;
    }
    if (pair == LEARN_NONE) return false;
    learn_level level = {search->trail.count, search->bounds.count, search->from.count};
    berth_vec_push(search->arena, &search->level_marks, level);
    (void)berth_memory__learn_assign(search, 2 * pair + (search->phases[pair] < 0),
                                     (learn_reason){LEARN_DECIDED, 0});
    return true;
}

exact_outcome berth_memory__learn_run(learn_search *search, uint64_t *nodes_left) {
    while (!search->failed) {
        if (!propagate(search)) {
            if (search->conflicts_left > 0) search->conflicts_left--;
            if (!berth_memory__learn_resolve(search)) search->failed = true;
            continue;
        }
        if (*nodes_left == 0 || out_of_time(search)) return EXACT_STOPPED;
        --*nodes_left;
        search->work += 64;
        if (search->conflicts_left == 0) {
            if (!begin_restart(search)) search->failed = true;
            continue;
        }
        if (decide(search)) continue;
        for (uint32_t i = 0; i < search->part->item_count; ++i)
            search->offsets[i] = learn_value(search, LEARN_BELOW, i);
        return EXACT_FOUND;
    }
    return EXACT_FAILED;
}

// --- Making it ---

static bool live_together(const exact_item *a, const exact_item *b) {
    return a->first < b->end && b->first < a->end;
}

static uint64_t count_pairs(const exact_part *part) {
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < part->item_count; ++i)
        for (uint32_t j = i + 1; j < part->item_count && part->items[j].first < part->items[i].end;
             ++j)
            ++pairs;
    return pairs;
}

static void list_pairs(learn_search *search) {
    const exact_part *part = search->part;
    uint32_t n = part->item_count;
    uint32_t pair = 0;
    uint32_t neighbor = 0;
    memset(search->pair_of, 0xff, (size_t)n * n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t j = i + 1; j < n && part->items[j].first < part->items[i].end; ++j) {
            search->pair_items[2 * (size_t)pair] = i;
            search->pair_items[2 * (size_t)pair + 1] = j;
            search->pair_of[(size_t)i * n + j] = search->pair_of[(size_t)j * n + i] = pair++;
        }
    for (uint32_t i = 0; i < n; ++i) {
        search->neighbor_begin[i] = neighbor;
        for (uint32_t j = 0; j < n; ++j)
            if (i != j && live_together(&part->items[i], &part->items[j]))
                search->neighbors[neighbor++] = j;
    }
    search->neighbor_begin[n] = neighbor;
}

static void make_arrays(learn_search *search) {
    berth_arena *arena = search->arena;
    const exact_part *part = search->part;
    size_t n = part->item_count;
    size_t pairs = search->pair_count;
    search->offsets = berth_arena_new_array(arena, int64_t, n);
    search->pair_items = berth_arena_new_array(arena, uint32_t, 2 * pairs);
    search->pair_of = berth_arena_new_array(arena, uint32_t, n * n);
    search->neighbor_begin = berth_arena_new_array(arena, uint32_t, n + 1);
    search->neighbors = berth_arena_new_array(arena, uint32_t, 2 * pairs);
    search->values = berth_arena_new_array(arena, int8_t, pairs);
    search->sides = berth_arena_new_array(arena, int8_t, n * n);
    search->levels = berth_arena_new_array(arena, uint32_t, pairs);
    search->reasons = berth_arena_new_array(arena, learn_reason, pairs);
    search->current = berth_arena_new_array(arena, uint32_t, 2 * n);
    for (int side = 0; side < 2; ++side)
        search->members[side] = berth_arena_copy(
            arena, part->members, part->member_begin[part->clique_count] * sizeof(uint32_t));
    search->cliques.entries = berth_arena_new_array(arena, uint32_t, part->clique_count);
    search->cliques.waiting = berth_arena_new_array(arena, bool, part->clique_count);
    search->items.entries = berth_arena_new_array(arena, uint32_t, n);
    search->items.waiting = berth_arena_new_array(arena, bool, n);
    search->owners.entries = berth_arena_new_array(arena, uint32_t, 2 * n);
    search->owners.waiting = berth_arena_new_array(arena, bool, 2 * n);
    search->scratch = berth_arena_new_array(arena, uint32_t, n);
    if (part->cover) search->below = berth_arena_new_array(arena, exact_points, n);
    search->picked = berth_arena_new_array(arena, uint32_t, pairs);
    search->marked = berth_arena_new_array(arena, bool, pairs);
    search->watch_heads = berth_arena_new_array(arena, uint32_t, 2 * pairs);
    search->activity = berth_arena_new_array(arena, double, pairs);
    search->heap = berth_arena_new_array(arena, uint32_t, pairs);
    search->heap_at = berth_arena_new_array(arena, uint32_t, pairs);
    search->phases = berth_arena_new_array(arena, int8_t, pairs);
}

// Large pairs first; the order of the hint, or else the item that takes more below.
static void order_pairs(learn_search *search, const int64_t *hint) {
    const exact_part *part = search->part;
    for (uint32_t p = 0; p < search->pair_count; ++p) {
        uint32_t a = search->pair_items[2 * (size_t)p];
        uint32_t b = search->pair_items[2 * (size_t)p + 1];
        const exact_item *first = &part->items[a];
        const exact_item *second = &part->items[b];
        search->activity[p] =
            1e-3 * (double)(first->size + second->size) / (double)(2 * part->capacity + 1);
        double area = (double)first->size * (first->end - first->first);
        double other = (double)second->size * (second->end - second->first);
        bool below = hint ? hint[a] < hint[b] : area >= other;
        search->phases[p] = below ? 1 : -1;
    }
    for (uint32_t p = 0; p < search->pair_count; ++p) berth_memory__learn_reopen(search, p);
}

learn_search *berth_memory__learn_create(berth_arena *arena, const exact_part *part,
                                         const int64_t *hint, int64_t deadline_ns) {
    uint64_t pairs = part->item_count <= LEARN_ITEM_LIMIT ? count_pairs(part) : UINT64_MAX;
    if (pairs > LEARN_PAIR_LIMIT) return NULL;
    learn_search *search = berth_arena_new(arena, learn_search);
    *search = (learn_search){.part = part,
                             .arena = arena,
                             .deadline_ns = deadline_ns,
                             .pair_count = (uint32_t)pairs,
                             .clause_step = 1,
                             .clause_limit = FIRST_CLAUSE_LIMIT,
                             .activity_step = 1};
    make_arrays(search);
    list_pairs(search);
    order_pairs(search, hint);
    for (uint32_t i = 0; i < part->item_count; ++i) search->failed |= part->items[i].latest < 0;
    if (search->failed) return search;
    berth_memory__learn_make_bounds(search);
    for (uint32_t i = 0; i < part->item_count; ++i)  // identical items in one order
        if (part->items[i].twin != i)
            search->failed |=
                !berth_memory__learn_assign(search, learn_below(search, part->items[i].twin, i),
                                            (learn_reason){LEARN_DECIDED, 0});
    search->conflicts_left = RESTART_CONFLICTS;
    search->restart_count = 1;
    return search;
}
