// The least capacity: a search over capacities between what is proven impossible and what was
// found.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "memory/exact_private.h"
#include "memory/stack.h"

enum {
    STEPS_PER_NODE = 2048,  // of tables of stacks: they take about as long
    LINES = 2,
    STEPS_DOWN = 32,  // a line's next target is nearer to the bound by this part of what is between
    // Nodes for each interval:
    PLAIN_NODES = 1024,  // before solutions are followed
    TURN_NODES = 64,     // of a line
    PATIENCE_NODES =
        2048,  // without a gain; then a line goes on from the other one, if that is lower
    LONG_NODES =
        8192,  // then lines have GAINING_SHARE times the nodes of all else, while they gain
    GAINING_SHARE = 4,
};

// Solutions, each found by following the one before (exact_follow.c). Two differ in what is easy for them: a restart may
// follow both, one on each side of a moment.
typedef struct solution_line {
    uint64_t *offsets;
    uint64_t height;
    uint64_t failed;  // nodes since it was last improved
} solution_line;

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
    bool exhausted;       // more nodes would not help
    uint64_t *units;      // [count] of each interval's part
    uint64_t *candidate;  // [count] what the last attempt found
    solution_line lines[LINES];
    uint32_t turn;      // of the lines
    uint64_t followed;  // nodes that they have spent
    uint64_t random;    // state of what followers do

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
static uint64_t next_height(const minimize_call *call, uint64_t height) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < call->count; ++i) {
        uint64_t size = call->intervals[i].size_bytes;
        uint64_t candidate =
            size > height ? size : ((height - size) / call->units[i] + 1) * call->units[i] + size;
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
static void raise_by_stacks(minimize_call *call) {
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
        if (height > call->lower_bound) call->lower_bound = next_height(call, height - 1);
    }
}

// --- Targets ---

typedef struct attempt {
    uint64_t target;
    uint64_t nodes;
    const uint64_t *known;  // parts that fit stay as they are in this solution
    exact_guide *guide;     // or NULL
} attempt;

static berth_status try_target(minimize_call *call, attempt a, berth_memory_verdict *out_verdict) {
    berth_memory_budget *budget = call->budget;
    berth_memory_budget own = {.node_limit = a.nodes, .deadline_ns = budget->deadline_ns};
    if (budget->node_limit && budget->node_limit - budget->nodes < own.node_limit)
        own.node_limit = budget->node_limit - budget->nodes;
    bool exhausted = false;
    BERTH_TRY(berth_memory__exact_fit(call->scratch, call->intervals, call->count, a.target,
                                      a.known, a.guide, &own, call->candidate, out_verdict,
                                      &call->pair, &exhausted));
    call->exhausted &= exhausted;
    budget->nodes += own.nodes;
    if (*out_verdict == BERTH_MEMORY_CANNOT_FIT) call->lower_bound = next_height(call, a.target);
    if (*out_verdict != BERTH_MEMORY_FITS) return BERTH_OK;
    uint64_t height = height_of(call, call->candidate);
    if (height >= call->best) return BERTH_OK;
    call->best = height;
    memcpy(call->offsets, call->candidate, call->count * sizeof(*call->offsets));
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

// --- Lines of solutions ---

static void set_line(const minimize_call *call, solution_line *line, const uint64_t *offsets) {
    memcpy(line->offsets, offsets, call->count * sizeof(*offsets));
    line->height = height_of(call, offsets);
    line->failed = 0;
}

static bool is_open(const minimize_call *call) {
    return call->lower_bound < call->best && budget_left(call->budget);
}

// One line from the best solution, the others from solutions of their own that are no higher, where `nodes` find one;
// else from the best one, too.
static berth_status begin_lines(minimize_call *call, uint64_t nodes) {
    for (int l = 0; l < LINES; ++l) {
        solution_line *line = &call->lines[l];
        line->offsets = berth_arena_new_array(call->scratch, uint64_t, call->count);
        berth_memory_verdict verdict = BERTH_MEMORY_UNKNOWN;
        attempt a = {.target = call->best, .nodes = nodes};
        if (l > 0 && is_open(call)) BERTH_TRY(try_target(call, a, &verdict));
        set_line(call, line, verdict == BERTH_MEMORY_FITS ? call->candidate : call->offsets);
        if (l > 0) call->pair++;  // a further line begins with another order
    }
    return BERTH_OK;
}

// One turn of a line: a solution that is lower by a step is looked for.
static berth_status take_turn(minimize_call *call, uint64_t nodes) {
    solution_line *line = &call->lines[call->turn % LINES];
    const solution_line *other = &call->lines[(call->turn + 1) % LINES];
    call->turn++;
    bool tired = line->failed > PATIENCE_NODES * (uint64_t)call->count;
    if (tired && other->height < line->height) set_line(call, line, other->offsets);
    if (line->height <= call->lower_bound) return BERTH_OK;  // the optimum, and known to be
    uint64_t step = (line->height - call->lower_bound) / STEPS_DOWN;
    exact_guide guide = {line->offsets, other->offsets, call->random};
    attempt a = {.target = line->height - (step > 1 ? step : 1),
                 .nodes = TURN_NODES * (uint64_t)call->count,
                 .known = line->offsets,
                 .guide = &guide};
    if (a.nodes > nodes) a.nodes = nodes;
    uint64_t before = call->budget->nodes;
    berth_memory_verdict verdict = BERTH_MEMORY_UNKNOWN;
    BERTH_TRY(try_target(call, a, &verdict));
    call->random = guide.random;
    line->failed += call->budget->nodes - before;
    if (verdict == BERTH_MEMORY_FITS) set_line(call, line, call->candidate);
    return BERTH_OK;
}

// As many nodes as everything else, and in long searches more while lines gain. Small problems never come here: the other
// searches solve them.
static uint64_t share_of_lines(const minimize_call *call, uint64_t others) {
    uint64_t count = call->count;
    uint64_t patience = PATIENCE_NODES * count;
    bool gain = call->lines[0].failed < patience || call->lines[1].failed < patience;
    return gain && call->budget->nodes > LONG_NODES * count ? GAINING_SHARE * others : others;
}

// Lines in turns.
static berth_status follow_lines(minimize_call *call) {
    uint64_t count = call->count;
    if (call->budget->nodes < PLAIN_NODES * count) return BERTH_OK;
    if (!call->lines[0].offsets) BERTH_TRY(begin_lines(call, TURN_NODES * count));
    if (call->best < call->lines[0].height && call->best < call->lines[1].height)
        set_line(call, &call->lines[0], call->offsets);
    uint64_t others = call->budget->nodes - call->followed;
    for (;;) {
        uint64_t share = share_of_lines(call, others);
        if (!is_open(call) || call->followed >= share) break;
        uint64_t before = call->budget->nodes;
        BERTH_TRY(take_turn(call, share - call->followed));
        if (call->budget->nodes == before) break;  // nothing that nodes could be spent on
        call->followed += call->budget->nodes - before;
    }
    return BERTH_OK;
}

// --- Rounds ---

static void begin_rounds(minimize_call *call) {
    call->units = berth_arena_new_array(call->scratch, uint64_t, call->count);
    call->candidate = berth_arena_new_array(call->scratch, uint64_t, call->count);
    call->random = 0x9E3779B97F4A7C15u;
    berth_memory__exact_units(call->scratch, call->intervals, call->count, call->units);
    uint64_t bound = berth_memory_lower_bound(call->scratch, call->intervals, call->count);
    call->lower_bound = next_height(call, bound - 1);
    list_tables(call);
}

// The lower bound itself, then targets between it and the best, until that is decided or `nodes` are spent.
// `*spent`: by the targets above the bound in the round before, then in this one.
static berth_status try_targets(minimize_call *call, uint64_t nodes, uint32_t *number,
                                uint64_t *spent) {
    berth_memory_verdict verdict = BERTH_MEMORY_UNKNOWN;
    attempt a = {.target = call->lower_bound,
                 .nodes = *spent > nodes ? *spent : nodes,
                 .known = call->offsets};
    BERTH_TRY(try_target(call, a, &verdict));
    // No target below `floor` is tried again in this round.
    uint64_t floor = call->lower_bound > a.target ? call->lower_bound : next_height(call, a.target);
    uint64_t before = call->budget->nodes;
    a.nodes = nodes;
    while (floor < call->best && budget_left(call->budget)) {
        a.target = between(floor, call->best, (*number)++);
        BERTH_TRY(try_target(call, a, &verdict));
        if (verdict != BERTH_MEMORY_FITS) floor = next_height(call, a.target);
        raise_by_stacks(call);
        if (floor < call->lower_bound) floor = call->lower_bound;
    }
    *spent = call->budget->nodes - before;
    return BERTH_OK;
}

// Each round: the lower bound itself (often it can be reached), with about as many nodes as all
// other targets have; then targets between it and the best, until that is decided or the round's
// nodes are spent; then lines of solutions; then more nodes.
static berth_status minimize_rounds(minimize_call *call) {
    enum { growth = 4 };
    begin_rounds(call);
    uint32_t number = 0;  // of targets above the lower bound
    uint64_t nodes = 4 * (uint64_t)call->count + 64;
    uint64_t spent = 0;  // by the other targets in the round before
    while (is_open(call) && !call->exhausted) {
        raise_by_stacks(call);
        if (!is_open(call)) break;
        call->exhausted = true;
        BERTH_TRY(try_targets(call, nodes, &number, &spent));
        BERTH_TRY(follow_lines(call));
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
