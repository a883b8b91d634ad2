// The least capacity: a search over capacities between what is proven impossible and what was
// found.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "memory/exact_private.h"
#include "memory/stack.h"

enum { STEPS_PER_NODE = 2048 };  // of tables of stacks: they take about as long

typedef struct clique_table {
    uint64_t work;
    uint32_t clique;
} clique_table;

typedef struct minimize_call {
    berth_arena *arena;
    berth_arena *scratch;
    const berth_memory_interval *intervals;
    uint32_t count;
    berth_memory_budget *budget;
    uint64_t *offsets;  // in: a solution of height `best`; out: the best found
    uint64_t lower_bound;
    uint64_t best;
    // Of a rule and an order: what found a solution is tried first for the next target, and after a
    // target that had too few nodes for all pairs others have their turn.
    uint32_t pair;
    bool exhausted;  // more nodes would not help

    // Cliques whose stacks are to be solved exactly, those with the least work first.
    berth_memory_span *spans;
    clique_table *tables;
    uint32_t table_count;
    uint32_t tables_seen;
} minimize_call;

static uint64_t height_of(const minimize_call *call, const uint64_t *offsets) {
    uint64_t height = 0;
    for (uint32_t i = 0; i < call->count; ++i) {
        uint64_t end = offsets[i] + call->intervals[i].size_bytes;
        if (end > height) height = end;
    }
    return height;
}

// Least height above `height` that some solution can have: a multiple of its part's unit plus a
// size.
static uint64_t next_height(const minimize_call *call, const uint64_t *units, uint64_t height) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < call->count; ++i) {
        uint64_t size = call->intervals[i].size_bytes;
        uint64_t candidate =
            size > height ? size : ((height - size) / units[i] + 1) * units[i] + size;
        if (candidate < next) next = candidate;
    }
    return next;
}

static bool budget_left(const berth_memory_budget *budget) {
    if (budget->node_limit && budget->nodes >= budget->node_limit) return false;
    return !budget->deadline_ns || berth_clock_ns() < budget->deadline_ns;
}

// --- Stacks of cliques ---

static int compare_tables(const void *left, const void *right) {
    const clique_table *a = left;
    const clique_table *b = right;
    if (a->work != b->work) return a->work < b->work ? -1 : 1;
    return a->clique < b->clique ? -1 : a->clique > b->clique;
}

static void list_tables(minimize_call *call) {
    uint32_t clique_count = 0;
    bool varied = false;
    berth_memory_span members[BERTH_MEMORY_STACK_LIMIT];
    call->spans = berth_memory__make_spans(call->scratch, call->intervals, call->count,
                                           &clique_count, &varied);
    if (!varied) return;
    call->tables = berth_arena_new_array(call->scratch, clique_table, clique_count);
    for (uint32_t c = 0; c < clique_count; ++c) {
        uint32_t count = berth_memory__clique_spans(call->spans, call->count, c, members);
        uint64_t work = berth_memory__stack_table_work(members, count);
        if (work > 0) call->tables[call->table_count++] = (clique_table){work, c};
    }
    qsort(call->tables, call->table_count, sizeof(*call->tables), compare_tables);
}

// The stack with the greatest alignments below: little is lost, and often it shows that a clique
// cannot raise the bound.
static uint64_t easy_stack(const berth_memory_span *members, uint32_t count) {
    uint64_t top = 0;
    for (uint32_t bit = 64; bit-- > 0;)
        for (uint32_t i = 0; i < count; ++i)
            if (members[i].alignment == (uint64_t)1 << bit)
                top = berth_memory_align_up(top, members[i].alignment) + members[i].size;
    return top;
}

// Solves stacks with at most as much work as the searches have done, which are of no use where the
// optimum is what one clique needs.
static void raise_by_stacks(minimize_call *call, const uint64_t *units) {
    berth_memory_span members[BERTH_MEMORY_STACK_LIMIT];
    for (; call->tables_seen < call->table_count && budget_left(call->budget);
         ++call->tables_seen) {
        const clique_table *table = &call->tables[call->tables_seen];
        uint64_t nodes = table->work / STEPS_PER_NODE;
        if (nodes > call->budget->nodes) return;
        if (call->budget->node_limit && nodes > call->budget->node_limit - call->budget->nodes)
            return;
        uint32_t count =
            berth_memory__clique_spans(call->spans, call->count, table->clique, members);
        if (easy_stack(members, count) <= call->lower_bound) continue;
        uint64_t height = berth_memory__stack_table(call->scratch, members, count);
        call->budget->nodes += nodes;
        if (height > call->lower_bound) call->lower_bound = next_height(call, units, height - 1);
    }
}

// --- Targets ---

typedef struct attempt {
    uint64_t target;
    uint64_t nodes;
} attempt;

static berth_status try_target(minimize_call *call, attempt a, uint64_t *candidate,
                               const uint64_t *units, berth_memory_verdict *out_verdict) {
    berth_memory_budget *budget = call->budget;
    berth_memory_budget own = {.node_limit = a.nodes, .deadline_ns = budget->deadline_ns};
    if (budget->node_limit && budget->node_limit - budget->nodes < own.node_limit)
        own.node_limit = budget->node_limit - budget->nodes;
    bool exhausted = false;
    BERTH_TRY(berth_memory__exact_fit(call->scratch, call->intervals, call->count, a.target,
                                      call->offsets, &own, candidate, out_verdict, &call->pair,
                                      &exhausted));
    call->exhausted &= exhausted;
    budget->nodes += own.nodes;
    if (*out_verdict == BERTH_MEMORY_FITS) {
        memcpy(call->offsets, candidate, call->count * sizeof(*candidate));
        call->best = height_of(call, candidate);
    } else if (*out_verdict == BERTH_MEMORY_CANNOT_FIT) {
        call->lower_bound = next_height(call, units, a.target);
    }
    return BERTH_OK;
}

// A target from `floor` to below `best`, another one for each number, evenly in the long run
// (multiples of the golden ratio; Weyl 1916). How long a target takes is a matter of luck: one can
// take a hundred times as long as another one below it.
static uint64_t between(uint64_t floor, uint64_t best, uint32_t number) {
    uint64_t fraction = ((uint64_t)number * 0x9E3779B9u + 0x80000000u) & 0xFFFFFFFFu;
    uint64_t width = best - floor;  // < 2^63
    return floor + (width >> 32) * fraction + ((width & 0xFFFFFFFFu) * fraction >> 32);
}

// Each round: the lower bound itself (often it can be reached), with about as many nodes as all
// other targets have; then targets between it and the best, until that is decided or the round's
// nodes are spent; then more nodes.
static berth_status minimize_rounds(minimize_call *call) {
    uint64_t *units = berth_arena_new_array(call->scratch, uint64_t, call->count);
    uint64_t *candidate = berth_arena_new_array(call->scratch, uint64_t, call->count);
    berth_memory__exact_units(call->scratch, call->intervals, call->count, units);
    uint64_t bound = berth_memory_lower_bound(call->scratch, call->intervals, call->count);
    call->lower_bound = next_height(call, units, bound - 1);
    list_tables(call);
    enum { growth = 4 };
    uint32_t number = 0;  // of targets above the lower bound
    uint64_t nodes = 4 * (uint64_t)call->count + 64;
    uint64_t spent = 0;  // by the other targets in the round before
    while (call->lower_bound < call->best && budget_left(call->budget) && !call->exhausted) {
        raise_by_stacks(call, units);
        if (call->lower_bound >= call->best || !budget_left(call->budget)) break;
        call->exhausted = true;
        berth_memory_verdict verdict = BERTH_MEMORY_UNKNOWN;
        attempt a = {.target = call->lower_bound, .nodes = spent > nodes ? spent : nodes};
        BERTH_TRY(try_target(call, a, candidate, units, &verdict));
        // No target below `floor` is tried again in this round.
        uint64_t floor =
            call->lower_bound > a.target ? call->lower_bound : next_height(call, units, a.target);
        uint64_t before = call->budget->nodes;
        a.nodes = nodes;
        while (floor < call->best && budget_left(call->budget)) {
            a.target = between(floor, call->best, number++);
            BERTH_TRY(try_target(call, a, candidate, units, &verdict));
            if (verdict != BERTH_MEMORY_FITS) floor = next_height(call, units, a.target);
            raise_by_stacks(call, units);
            if (floor < call->lower_bound) floor = call->lower_bound;
        }
        spent = call->budget->nodes - before;
        nodes *= growth;
    }
    return BERTH_OK;
}

static berth_status minimize_body(void *user) {
    minimize_call *call = user;
    call->scratch = berth_arena_create_child(call->arena);
    berth_status status = minimize_rounds(call);
    berth_arena_destroy(call->scratch);
    return status;
}

berth_status berth_memory_exact_minimize(berth_arena *arena, const berth_memory_interval *intervals,
                                         uint32_t count, berth_memory_budget *budget,
                                         uint64_t *offsets, uint64_t *out_height,
                                         uint64_t *out_lower_bound) {
    *out_height = *out_lower_bound = 0;
    if (count == 0) return BERTH_OK;
    minimize_call call = {.arena = arena,
                          .intervals = intervals,
                          .count = count,
                          .budget = budget,
                          .offsets = offsets};
    call.best = height_of(&call, offsets);
    berth_status status = berth_arena_try(arena, minimize_body, &call);
    *out_height = call.best;
    *out_lower_bound = call.lower_bound;
    return status;
}
