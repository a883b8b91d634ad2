// Restarts: pairs of branching rule and order of candidates in turn, with node limits that double.
// States that were proven to have no completion stay known from one restart to the next.
#include "memory/exact.h"

#include <stdlib.h>
#include <string.h>

#include "memory/exact_private.h"

enum { PLAIN_ROUNDS = 2, ORDER_KEYS = 3, FIRST_TABLE = 1 << 12, LARGEST_TABLE = 1 << 20 };

typedef struct order_entry {
    double keys[ORDER_KEYS];  // descending
    uint32_t item;
} order_entry;

static int compare_entries(const void *left, const void *right) {
    const order_entry *a = left;
    const order_entry *b = right;
    for (int k = 0; k < ORDER_KEYS; ++k)
        if (a->keys[k] != b->keys[k]) return a->keys[k] > b->keys[k] ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

// W: duration; A: duration times size; T: largest live sum while it lives; Z: size. The first three
// orders are those of MiniMalloc.
static const char *const orders[] = {"WAT", "TAW", "TWA", "ZWA"};
enum { order_count = sizeof(orders) / sizeof(orders[0]) };

static double order_key(char letter, const exact_item *item, const berth_memory_interval *interval,
                        int64_t most) {
    double width = (double)interval->upper - (double)interval->lower;
    switch (letter) {
    case 'W': return width;
    case 'A': return width * (double)item->size;
    case 'T': return (double)most;
    default: return (double)item->size;
    }
}

static uint64_t random_word(uint64_t *state) {  // xorshift64* (Vigna 2016)
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

// Orders items by the keys, greatest first. Every key is multiplied with a random factor of the
// item from 1 - noise / 2 to 1 + noise / 2: restarts that differ.
static void rank_items(berth_arena *arena, const exact_part *part,
                       const berth_memory_interval *intervals, const char *order, double noise,
                       uint64_t state, uint32_t *rank) {
    berth_arena *scratch = berth_arena_create_child(arena);
    order_entry *entries = berth_arena_new_array(scratch, order_entry, part->item_count);
    int64_t *live = berth_arena_new_array(scratch, int64_t, part->clique_count);
    for (uint32_t i = 0; i < part->item_count; ++i)
        for (uint32_t c = part->items[i].first; c < part->items[i].end; ++c)
            live[c] += part->items[i].size;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *item = &part->items[i];
        int64_t most = 0;
        for (uint32_t c = item->first; c < item->end; ++c)
            if (live[c] > most) most = live[c];
        double factor = 1 + noise * ((double)(random_word(&state) >> 11) * 0x1p-53 - 0.5);
        entries[i].item = i;
        for (int k = 0; k < ORDER_KEYS; ++k)
            entries[i].keys[k] = factor * order_key(order[k], item, &intervals[item->source], most);
    }
    qsort(entries, part->item_count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < part->item_count; ++i) rank[entries[i].item] = i;
    berth_arena_destroy(scratch);
}

typedef struct fit_call {
    berth_arena *arena;
    const berth_memory_interval *intervals;
    uint32_t count;
    uint64_t capacity_bytes;
    berth_memory_budget *budget;
    uint64_t *out_offsets;
    berth_memory_verdict verdict;
} fit_call;

static exact_search *make_search(fit_call *call, berth_arena *arena, const exact_part *part) {
    exact_search *search = berth_arena_new(arena, exact_search);
    size_t n = part->item_count;
    *search = (exact_search){
        .part = part,
        .arena = arena,
        .frames = berth_arena_new_array(arena, exact_frame, n + 2),
        .rank = berth_arena_new_array(arena, uint32_t, n),
        .offsets = berth_arena_new_array(arena, int64_t, n),
        .run_end = berth_arena_new_array(arena, uint32_t, part->clique_count),
        .cover = berth_arena_new_array(arena, int32_t, (size_t)part->clique_count + 1),
        .sorted = berth_arena_new_array(arena, exact_sorted, n),
        .order = berth_arena_new_array(arena, uint32_t, n),
        .slot = berth_arena_new_array(arena, uint32_t, n),
        .above = berth_arena_new_array(arena, int64_t, part->clique_count),
        .low = berth_arena_new_array(arena, int64_t, part->clique_count),
        .hanging = berth_arena_new_array(arena, exact_hanging, n),
        .is_hanging = berth_arena_new_array(arena, bool, n),
        .deadline_ns = call->budget->deadline_ns,
    };
    for (uint32_t i = 0; i < part->item_count; ++i) search->order[i] = i;
    berth_memory__exact_grow_table(search, FIRST_TABLE);
    return search;
}

// One restart. The direction changes from one round to the next.
static exact_outcome restart(fit_call *call, exact_search *search, uint32_t round, uint32_t number,
                             uint64_t node_limit) {
    berth_memory_budget *budget = call->budget;
    uint64_t left = budget->node_limit ? budget->node_limit - budget->nodes : UINT64_MAX;
    rank_items(search->arena, search->part, call->intervals,
               orders[number / EXACT_RULES % order_count], round < PLAIN_ROUNDS ? 0 : 1.0,
               ((uint64_t)round << 32) + number + 1, search->rank);
    search->rule = (exact_rule)(number % EXACT_RULES);
    search->from_end = round % 2 == 1;
    search->nodes_left = node_limit < left ? node_limit : left;
    uint64_t before = search->nodes;
    exact_outcome outcome = berth_memory__exact_run(search);
    budget->nodes += search->nodes - before;
    return outcome;
}

static berth_memory_verdict fit_part(fit_call *call, berth_arena *arena, const exact_part *part) {
    const berth_memory_budget *budget = call->budget;
    if (!part->members) return BERTH_MEMORY_UNKNOWN;
    exact_search *search = make_search(call, arena, part);
    uint64_t limit = 2 * (uint64_t)part->item_count + 16;
    for (uint32_t round = 0;; ++round, limit *= 2) {
        for (uint32_t number = 0; number < EXACT_RULES * order_count; ++number) {
            if (search->out_of_time || (budget->node_limit && budget->nodes >= budget->node_limit))
                return BERTH_MEMORY_UNKNOWN;
            exact_outcome outcome = restart(call, search, round, number, limit);
            if (outcome == EXACT_FAILED) return BERTH_MEMORY_CANNOT_FIT;
            if (outcome == EXACT_STOPPED) continue;
            for (uint32_t i = 0; i < part->item_count; ++i)
                call->out_offsets[part->items[i].source] =
                    (uint64_t)(search->offsets[i] * part->unit_bytes);
            return BERTH_MEMORY_FITS;
        }
        if ((search->failed_mask + 1) * 4 <= LARGEST_TABLE)
            berth_memory__exact_grow_table(search, (search->failed_mask + 1) * 4);
    }
}

static berth_status fit_body(void *user) {
    fit_call *call = user;
    call->verdict = BERTH_MEMORY_FITS;
    berth_arena *scratch = berth_arena_create_child(call->arena);
    uint32_t part_count = 0;
    exact_part *parts = berth_memory__exact_parts(scratch, call->intervals, call->count,
                                                  call->capacity_bytes, &part_count);
    for (uint32_t p = 0; p < part_count && call->verdict != BERTH_MEMORY_CANNOT_FIT; ++p) {
        berth_arena *part_scratch = berth_arena_create_child(scratch);
        berth_memory_verdict verdict = fit_part(call, part_scratch, &parts[p]);
        if (verdict != BERTH_MEMORY_FITS) call->verdict = verdict;
        berth_arena_destroy(part_scratch);
    }
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

// The solution goes to the caller only when it is whole.
static berth_status fit_whole(void *user) {
    fit_call *call = user;
    uint64_t *out_offsets = call->out_offsets;
    berth_arena *scratch = berth_arena_create_child(call->arena);
    call->out_offsets = berth_arena_new_array(scratch, uint64_t, call->count);
    berth_status status = fit_body(call);
    if (!status && call->verdict == BERTH_MEMORY_FITS && call->count > 0)
        memcpy(out_offsets, call->out_offsets, call->count * sizeof(*out_offsets));
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_memory_exact_fit(berth_arena *arena, const berth_memory_interval *intervals,
                                    uint32_t count, uint64_t capacity_bytes,
                                    berth_memory_budget *budget, uint64_t *out_offsets,
                                    berth_memory_verdict *out_verdict) {
    *out_verdict = BERTH_MEMORY_UNKNOWN;
    if (capacity_bytes > BERTH_MEMORY_TOTAL_LIMIT_BYTES)
        capacity_bytes = BERTH_MEMORY_TOTAL_LIMIT_BYTES;
    fit_call call = {arena,       intervals,           count, capacity_bytes, budget,
                     out_offsets, BERTH_MEMORY_UNKNOWN};
    BERTH_TRY(berth_arena_try(arena, fit_whole, &call));
    *out_verdict = call.verdict;
    return BERTH_OK;
}
