#include "planner/solve/solve.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "planner/solve/strategies/strategies.h"

typedef struct solve_call {
    berth_arena *arena;
    const berth_place_problem *problem;
    const berth_place_options *options;
    berth_place_answer *out;
    berth_arena *scratch;
} solve_call;

// ------------------------------------------------------------------------------------------------
// what no placement can repair

static bool group_fits(const berth_place_problem *problem, uint32_t group, uint32_t device) {
    uint32_t kind = problem->device_kind[device];
    double bytes = 0;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i) {
        uint32_t v = problem->group_nodes[i];
        if (problem->time[(size_t)v * problem->kind_count + kind] == INFINITY) return false;
        if (problem->pin && problem->pin[v] != BERTH_PLACE_NONE && problem->pin[v] != device)
            return false;
        bytes += problem->size_bytes[v];
    }
    return bytes <= problem->kinds[kind].capacity_bytes;
}

static berth_status check_groups(const berth_place_problem *problem) {
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        bool fits = false;
        for (uint32_t d = 0; d < problem->device_count && !fits; ++d)
            fits = group_fits(problem, g, d);
        if (fits) continue;
        uint32_t first = problem->group_start[g];
        uint32_t others = problem->group_start[g + 1] - first - 1;
        const char *name = problem->node_names[problem->group_nodes[first]];
        const char *node = strncmp(name, "node ", 5) == 0 ? "" : "node ";
        if (others == 0)
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "no device can hold %s%s: each lacks support for it or "
                                     "memory, or the node is pinned to another",
                                     node, name);
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "no device can hold %s%s and the %u others that must share "
                                 "its device: each lacks support for one of them or memory, or "
                                 "they are pinned to another",
                                 node, name, others);
    }
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// running strategies

// Gives `percent` of what is left of the budget to the next strategy.
static void share_budget(berth_place_search *search, uint64_t node_limit, uint32_t percent) {
    uint64_t left = node_limit > search->nodes ? node_limit - search->nodes : 0;
    search->node_limit = percent >= 100
                             ? node_limit
                             : search->nodes + left / 100 * percent + left % 100 * percent / 100;
    int64_t deadline_ns = search->options->deadline_ns;
    search->deadline_ns = deadline_ns;
    if (deadline_ns == 0 || percent >= 100) return;
    int64_t now_ns = berth_clock_ns();
    if (now_ns < deadline_ns)
        search->deadline_ns = now_ns + (deadline_ns - now_ns) / 100 * (int64_t)percent;
}

static berth_status run_strategy(berth_place_search *search, const berth_place_strategy *strategy) {
    const berth_place_options *options = search->options;
    search->strategy = strategy->name;
    if (options->progress) options->progress(options->progress_user, search);
    return berth_status_prefix(strategy->run(search), "strategy %s", strategy->name);
}

static berth_status unknown_strategy(berth_arena *scratch, const char *name) {
    const berth_place_strategy *const *all = berth_place_strategies();
    const char *names[32] = {"auto"};
    uint32_t count = 1;
    berth_strbuf text = berth_strbuf_make(scratch);
    berth_strbuf_add(&text, "auto");
    for (; *all && count + 1 < 32; ++all) {
        uint32_t known = 0;
        while (known < count && strcmp(names[known], (*all)->name) != 0) ++known;
        if (known < count) continue;  // rows of one name stand for one strategy
        names[count++] = (*all)->name;
        berth_strbuf_addf(&text, ", %s", (*all)->name);
    }
    const char *close = berth_closest(name, names);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "unknown strategy \"%s\"%s%s%s; there are %s",
                             name, close ? " (did you mean \"" : "", close ? close : "",
                             close ? "\"?)" : "", berth_strbuf_text(&text));
}

// The first row of that name that applies.
static berth_status run_one(berth_place_search *search, berth_arena *scratch, const char *name) {
    bool known = false;
    for (const berth_place_strategy *const *all = berth_place_strategies(); *all; ++all) {
        if (strcmp((*all)->name, name) != 0) continue;
        known = true;
        if ((*all)->applies(search->problem, search->options)) return run_strategy(search, *all);
    }
    if (!known) return unknown_strategy(scratch, name);
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "the strategy \"%s\" does not apply to this objective and problem; "
                             "\"auto\" always does",
                             name);
}

// What `auto` knows of a strategy.
typedef struct auto_row {
    const berth_place_strategy *strategy;
    uint32_t runs;
    void *kept;             // by the strategy
    double finished_value;  // with this best value it has nothing more to do; NAN = it may have
} auto_row;

// Of all strategies together.
static bool is_spent(berth_place_search *search, uint64_t node_limit) {
    search->node_limit = node_limit;
    search->deadline_ns = search->options->deadline_ns;
    return berth_place_spent(search, 0);
}

static berth_status run_row(berth_place_search *search, auto_row *row, uint64_t node_limit,
                            uint32_t percent) {
    share_budget(search, node_limit, percent);
    search->round = row->runs++;
    search->kept = row->kept;
    search->finished = false;
    BERTH_TRY(run_strategy(search, row->strategy));
    row->kept = search->kept;
    row->finished_value = search->finished ? search->best_value : NAN;
    return BERTH_OK;
}

// One turn of those rows that can do something. The last one in the first turn has all that is
// left.
static berth_status run_turn(berth_place_search *search, auto_row *rows, uint32_t count,
                             uint64_t node_limit, bool first) {
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t percent = first ? rows[i].strategy->auto_percent : rows[i].strategy->again_percent;
        if (percent == 0 || rows[i].finished_value == search->best_value) continue;
        // Without any placement even what is quick has to be tried.
        if (search->best_value < INFINITY && is_spent(search, node_limit)) break;
        BERTH_TRY(run_row(search, &rows[i], node_limit, first && i + 1 == count ? 100 : percent));
        if (berth_place_proven(search) || search->infeasible) break;
    }
    return BERTH_OK;
}

// Turns until the budget is spent, or nobody can do more.
static berth_status run_auto(berth_place_search *search) {
    enum { MOST_ROWS = 32 };
    auto_row rows[MOST_ROWS];
    uint32_t count = 0;
    uint64_t node_limit = search->node_limit;
    for (const berth_place_strategy *const *all = berth_place_strategies(); *all; ++all)
        if ((*all)->auto_percent > 0 && (*all)->applies(search->problem, search->options))
            rows[count++] = (auto_row){.strategy = *all, .finished_value = NAN};
    uint64_t before = UINT64_MAX;
    for (bool first = true; search->nodes != before; first = false) {
        before = search->nodes;
        BERTH_TRY(run_turn(search, rows, count, node_limit, first));
        if (berth_place_proven(search) || search->infeasible || is_spent(search, node_limit)) break;
    }
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// the answer

static berth_status no_answer(const berth_place_search *search) {
    if (search->infeasible)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "no placement keeps all limits (support, memory, shared devices, "
                                 "pins) at once; every possibility was tried");
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "no placement that keeps all limits was found within the budget; "
                             "more time or nodes, or the strategy auto, may find one");
}

static berth_status write_answer(const solve_call *call, const berth_place_search *search) {
    if (search->best_value == INFINITY) return no_answer(search);
    berth_place_answer *out = call->out;
    out->assignment = search->best;
    BERTH_TRY(berth_status_prefix(
        berth_place_evaluate(call->arena, call->problem, call->options->objective,
                             call->options->contiguous, search->best, &out->value),
        "the placement found is wrong, please report this"));
    double value = out->value.value;
    if (search->lower_bound > value * (1 + BERTH_PLACE_EQUAL))
        return berth_status_make(BERTH_INTERNAL,
                                 "the lower bound %.17g is above the value %.17g found by %s; "
                                 "please report this",
                                 search->lower_bound, value, search->best_strategy);
    out->proven = berth_place_proven(search);
    out->lower_bound = out->proven ? value : search->lower_bound;
    out->gap = out->proven ? 0 : (value - out->lower_bound) / value;
    out->reproducible = !search->out_of_time;
    out->strategy = search->best_strategy;
    out->nodes = search->nodes;
    return BERTH_OK;
}

static berth_status solve_body(void *user) {
    solve_call *call = user;
    const berth_place_options *options = call->options;
    if (options->contiguous && options->objective != BERTH_PLACE_THROUGHPUT)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "contiguous placements are for the objective throughput only");
    BERTH_TRY(check_groups(call->problem));
    call->scratch = berth_arena_create_child(call->arena);
    berth_place_search search = {
        .problem = call->problem,
        .options = options,
        .arena = call->arena,
        .best = berth_arena_new_array(call->arena, uint32_t, call->problem->node_count),
        .best_value = INFINITY,
        .best_strategy = "",
        .deadline_ns = options->deadline_ns,
    };
    // A deadline alone means: as many nodes as fit into the time.
    search.node_limit = options->node_budget   ? options->node_budget
                        : options->deadline_ns ? UINT64_MAX
                                               : BERTH_PLACE_DEFAULT_NODES;
    berth_place__simple_bounds(&search);
    if (!options->strategy || strcmp(options->strategy, "auto") == 0)
        BERTH_TRY(run_auto(&search));
    else
        BERTH_TRY(run_one(&search, call->scratch, options->strategy));
    return write_answer(call, &search);
}

berth_status berth_place_solve(berth_arena *arena, const berth_place_problem *problem,
                               const berth_place_options *options, berth_place_answer *out_answer) {
    *out_answer = (berth_place_answer){0};
    solve_call call = {arena, problem, options, out_answer, NULL};
    berth_status status = berth_arena_try(arena, solve_body, &call);
    berth_arena_destroy(call.scratch);
    if (status) *out_answer = (berth_place_answer){0};
    return status;
}
