// Parts in turns. A part is searched in two ways that share the work evenly: restarts of the search
// from the bottom (pairs of branching rule and order of candidates in turn, with limits that
// double; states that were proven to have no completion stay known from one to the next), and the
// search that learns. With a guide: restarts that follow it.
#include "memory/exact.h"

#include <stdlib.h>
#include <string.h>

#include "memory/learn_private.h"

enum {
    PLAIN_ROUNDS = 2,  // then with random factors
    RESTARTS = EXACT_RULES * EXACT_ORDERS,
    FIRST_TABLE = 1 << 12,
    GUIDED_TABLE = 1 << 16,
    LARGEST_TABLE = 1 << 20,
    LEARN_NODES = 64,           // at a time
    LEARN_AFTER = EXACT_RULES,  // restarts of the other search
};

typedef struct part_search {
    const exact_part *part;
    berth_arena *arena;
    berth_memory_verdict verdict;
    bool open;  // the search can go on
    exact_search *bottom;
    learn_search *learn;  // NULL: not yet, or too many pairs
    bool too_many_pairs;
    uint32_t round;
    uint32_t number;  // restart of the round
    uint64_t limit;   // nodes of a restart
} part_search;

typedef struct fit_call {
    berth_arena *arena;
    const berth_memory_interval *intervals;
    uint32_t count;
    uint64_t capacity_bytes;
    const uint64_t *known;
    exact_guide *guide;  // or NULL
    berth_memory_budget *budget;
    uint64_t *offsets;
    berth_memory_verdict verdict;
    bool exhausted;
    uint32_t pair;       // of a rule and an order: the one to begin with
    uint32_t last_pair;  // the last one that was used
} fit_call;

static uint64_t nodes_left(const berth_memory_budget *budget) {
    if (!budget->node_limit) return UINT64_MAX;
    return budget->nodes < budget->node_limit ? budget->node_limit - budget->nodes : 0;
}

static void decide(fit_call *call, part_search *search, exact_outcome outcome,
                   const int64_t *offsets) {
    if (outcome == EXACT_STOPPED) return;
    search->open = false;
    search->verdict = outcome == EXACT_FOUND ? BERTH_MEMORY_FITS : BERTH_MEMORY_CANNOT_FIT;
    for (uint32_t i = 0; i < search->part->item_count && outcome == EXACT_FOUND; ++i)
        call->offsets[search->part->items[i].source] =
            (uint64_t)(offsets[i] * search->part->unit_bytes);
}

// One restart of the search from the bottom. The direction changes from one round to the next.
static void run_bottom(fit_call *call, part_search *search) {
    exact_search *bottom = search->bottom;
    uint64_t left = nodes_left(call->budget);
    uint32_t pair = (search->number + call->pair) % RESTARTS;
    berth_memory__exact_rank(bottom->arena, bottom->part, call->intervals, pair / EXACT_RULES,
                             search->round < PLAIN_ROUNDS ? 0 : 1.0,
                             ((uint64_t)search->round << 32) + pair + 1, bottom->rank);
    bottom->rule = (exact_rule)(pair % EXACT_RULES);
    call->last_pair = pair;
    bottom->from_end = search->round % 2 == 1;
    bottom->nodes_left = search->limit < left ? search->limit : left;
    uint64_t before = bottom->node_count;
    exact_outcome outcome = berth_memory__exact_run(bottom);
    call->budget->nodes += bottom->node_count - before;
    decide(call, search, outcome, bottom->offsets);
    if (++search->number < RESTARTS) return;
    search->number = 0;
    search->round++;
    search->limit *= 2;
    if ((bottom->failed_mask + 1) * 4 <= LARGEST_TABLE)
        berth_memory__exact_grow_table(bottom, (bottom->failed_mask + 1) * 4);
}

static void run_guided(fit_call *call, part_search *search) {
    exact_search *bottom = search->bottom;
    uint64_t left = nodes_left(call->budget);
    berth_memory__exact_follow(bottom, call->guide);
    if (bottom->nodes_left > left) bottom->nodes_left = left;
    uint64_t before = bottom->node_count;
    exact_outcome outcome = berth_memory__exact_run(bottom);
    call->budget->nodes += bottom->node_count - before;
    decide(call, search, outcome, bottom->offsets);
}

static bool out_of_time(const part_search *search) {
    return search->bottom->out_of_time || (search->learn && search->learn->out_of_time);
}

// The search that learns, until it has worked as much as the other.
static void run_learn(fit_call *call, part_search *search) {
    if (!search->learn && search->open && !search->too_many_pairs) {
        search->learn = berth_memory__learn_create(search->arena, search->part, NULL,
                                                   call->budget->deadline_ns);
        search->too_many_pairs = !search->learn;
    }
    learn_search *learn = search->learn;
    while (learn && search->open && learn->work < search->bottom->work && !out_of_time(search)) {
        uint64_t left = nodes_left(call->budget);
        uint64_t nodes = left < LEARN_NODES ? left : LEARN_NODES;
        uint64_t before = nodes;
        if (left == 0) return;
        exact_outcome outcome = berth_memory__learn_run(learn, &nodes);
        call->budget->nodes += before - nodes;
        decide(call, search, outcome, learn->offsets);
    }
}

static part_search begin_part(fit_call *call, berth_arena *arena, const exact_part *part) {
    part_search search = {.part = part, .arena = arena, .verdict = BERTH_MEMORY_UNKNOWN};
    if (part->height_bytes <= call->capacity_bytes) {
        search.verdict = BERTH_MEMORY_FITS;
        for (uint32_t i = 0; i < part->item_count; ++i)
            call->offsets[part->items[i].source] = call->known[part->items[i].source];
    } else if (part->members) {
        search.open = true;
        search.limit = 2 * (uint64_t)part->item_count + 16;
        search.bottom = berth_memory__exact_search_create(arena, part, call->budget->deadline_ns);
        berth_memory__exact_grow_table(search.bottom, call->guide ? GUIDED_TABLE : FIRST_TABLE);
    }
    return search;
}

// One turn of each part that is open. False: nothing is to be done any more.
static bool take_turns(fit_call *call, part_search *searches, uint32_t count) {
    bool open = false;
    for (uint32_t p = 0; p < count; ++p) {
        part_search *search = &searches[p];
        if (!search->open) continue;
        if (nodes_left(call->budget) == 0) return false;
        if (call->guide)
            run_guided(call, search);
        else
            run_bottom(call, search);
        bool learns = search->round > 0 || search->number >= LEARN_AFTER;
        if (learns && !call->guide) run_learn(call, search);
        if (search->verdict == BERTH_MEMORY_CANNOT_FIT) return false;
        if (search->open && out_of_time(search)) return false;
        open |= search->open;
    }
    return open;
}

static berth_memory_verdict join_verdicts(fit_call *call, const part_search *searches,
                                          uint32_t count) {
    berth_memory_verdict verdict = BERTH_MEMORY_FITS;
    call->exhausted = true;
    for (uint32_t p = 0; p < count; ++p) {
        if (searches[p].verdict == BERTH_MEMORY_CANNOT_FIT) return BERTH_MEMORY_CANNOT_FIT;
        if (searches[p].verdict == BERTH_MEMORY_UNKNOWN) verdict = BERTH_MEMORY_UNKNOWN;
        call->exhausted &= !searches[p].open;
    }
    return verdict;
}

static berth_status fit_body(void *user) {
    fit_call *call = user;
    berth_arena *scratch = berth_arena_create_child(call->arena);
    uint64_t *out_offsets = call->offsets;
    call->offsets = berth_arena_new_array(scratch, uint64_t, call->count);
    uint32_t part_count = 0;
    exact_part *parts = berth_memory__exact_parts(scratch, call->intervals, call->count,
                                                  call->capacity_bytes, call->known, &part_count);
    part_search *searches = berth_arena_new_array(scratch, part_search, part_count);
    for (uint32_t p = 0; p < part_count; ++p) searches[p] = begin_part(call, scratch, &parts[p]);
    while (take_turns(call, searches, part_count)) continue;
    call->verdict = join_verdicts(call, searches, part_count);
    // The solution goes to the caller only when it is whole.
    if (call->verdict == BERTH_MEMORY_FITS && call->count > 0)
        memcpy(out_offsets, call->offsets, call->count * sizeof(*out_offsets));
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

berth_status berth_memory__exact_fit(berth_arena *arena, const berth_memory_interval *intervals,
                                     uint32_t count, uint64_t capacity_bytes, const uint64_t *known,
                                     exact_guide *guide, berth_memory_budget *budget,
                                     uint64_t *out_offsets, berth_memory_verdict *out_verdict,
                                     uint32_t *pair, bool *out_exhausted) {
    *out_verdict = BERTH_MEMORY_UNKNOWN;
    if (capacity_bytes > BERTH_MEMORY_TOTAL_LIMIT_BYTES)
        capacity_bytes = BERTH_MEMORY_TOTAL_LIMIT_BYTES;
    fit_call call = {.arena = arena,
                     .intervals = intervals,
                     .count = count,
                     .capacity_bytes = capacity_bytes,
                     .known = known,
                     .guide = guide,
                     .budget = budget,
                     .offsets = out_offsets,
                     .verdict = BERTH_MEMORY_UNKNOWN,
                     .pair = *pair,
                     .last_pair = *pair};
    BERTH_TRY(berth_arena_try(arena, fit_body, &call));
    *out_verdict = call.verdict;
    *out_exhausted = call.exhausted;
    if (!guide) *pair = call.verdict == BERTH_MEMORY_FITS ? call.last_pair : call.last_pair + 1;
    return BERTH_OK;
}

berth_status berth_memory_exact_fit(berth_arena *arena, const berth_memory_interval *intervals,
                                    uint32_t count, uint64_t capacity_bytes,
                                    berth_memory_budget *budget, uint64_t *out_offsets,
                                    berth_memory_verdict *out_verdict) {
    uint32_t pair = 0;
    bool exhausted = false;
    return berth_memory__exact_fit(arena, intervals, count, capacity_bytes, NULL, NULL, budget,
                                   out_offsets, out_verdict, &pair, &exhausted);
}
