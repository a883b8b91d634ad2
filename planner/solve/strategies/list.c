// Latency of one sample by list scheduling (problem.h, one_subgraph = false): `dp` cuts linear
// orders into intervals (latency_intervals.h), `search` goes on from there and from HEFT's
// placement by simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) with moves of nodes, regions
// and intervals, each valued by a schedule (evaluate_private.h). Most moves begin at what the end
// of the last schedule waited for: without a change there it can not be earlier (Adams, Balas and
// Zawack 1988); one that cannot be good by the times of that schedule (latency/guess.h) is not
// valued. Rounds get longer. How hot a round is depends on what its moves cost (White 1984:
// from as hot as most are accepted), not on the value: a node is a large part of a small problem.
#include <math.h>
#include <string.h>

#include "planner/solve/latency/guess.h"
#include "planner/solve/latency/intervals.h"
#include "planner/solve/latency/moves.h"
#include "planner/solve/problem/evaluate_private.h"
#include "planner/solve/strategies/strategies.h"

enum {
    ORDERS = 8,
    PLACES = 192,
    FIRST_MOVES = 2000,
    MOVES_OF_GROUP = 10,  // of a first round as well
    GUESS_NODES = 2,
    TRIALS = 64,
    HOT_MOVES = 30,
    PATH_EIGHTHS = 7
};
static const double COLD_HEATS[] = {0.003, 0.03};  // of a move's cost
// Of the budget that is left, the most that a round takes.
static const double ROUND_SHARE = 0.5;

// ------------------------------------------------------------------------------------------------
// annealing

typedef struct annealing {
    berth_place_search *search;
    berth_solve__latency *latency;  // the placement, its moves and capacities
    berth_solve__latency_moves *moves;
    berth_solve__list *schedule;
    berth_solve__guess *guess;
    uint64_t nodes;    // that a schedule costs
    bool guessed;      // the last move was dropped without one
    double per_share;  // what a device's memory costs that exceeds its capacity, per such share
    double value;      // of the placement, with that
} annealing;

// By how much the devices' capacities are exceeded, as shares of them.
static double excess_of(const annealing *a) {
    const berth_place_problem *problem = a->search->problem;
    double excess = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        double capacity = problem->kinds[problem->device_kind[d]].capacity_bytes;
        if (!(a->latency->free_bytes[d] < -1e-12 * capacity)) continue;
        excess += capacity > 0 ? -a->latency->free_bytes[d] / capacity : 1;
    }
    return excess;
}

// INFINITY when it is above `most`. Placements that do not fit are a way to others that do: where
// memory is tight, few moves lead from one that fits to another.
static double value_now(const annealing *a, double most) {
    double excess = excess_of(a) * a->per_share;
    if (!(excess <= most)) return INFINITY;
    return excess +
           berth_solve__list_value(a->schedule, a->latency->device, most - excess, NULL, NULL);
}

// The value after a random move, which is not undone.
static double value_moved(annealing *a, double most) {
    static const uint32_t sorts[] = {0, 0, 0, 1, 1, 2, 2, 3, 5, 5};
    uint32_t sort = sorts[berth_solve__random_below(&a->moves->random, 10)];
    a->guessed = true;
    if (!berth_solve__latency_moves_make(a->moves, sort) || a->latency->change_count == 0)
        return INFINITY;
    a->guessed = berth_solve__guess_end(a->guess) > most;
    return a->guessed ? INFINITY : value_now(a, most);
}

// What a move that makes it worse costs, on average; 0 when none was found.
static double cost_of_moves(annealing *a) {
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < TRIALS && !berth_place_spent(a->search, a->nodes); ++i) {
        double value = value_moved(a, INFINITY);
        berth_solve__latency_undo(a->latency);
        if (!(value > a->value) || isinf(value)) continue;
        sum += value - a->value;
        ++count;
    }
    return count > 0 ? sum / count : 0;
}

// Moves look at what the value waited for.
static void look(annealing *a) {
    a->moves->path_count = berth_solve__list_critical(a->schedule, a->moves->path);
    berth_solve__guess_look(a->guess, a->schedule);
}

static void anneal(annealing *a, uint64_t steps, double hot, double cold) {
    berth_place_search *search = a->search;
    const berth_place_since since = berth_place_now(search);
    for (uint64_t step = 0; step < steps; ++step) {
        if (berth_place_spent(search, a->guessed ? GUESS_NODES : a->nodes)) return;
        // Where the budget is short for the steps, it says how cold it is: no round ends hot.
        double used = berth_place_used(search, since) / ROUND_SHARE;
        double progress = fmax(used, (double)step / (double)steps);
        if (progress >= 1) return;
        double heat = hot * pow(cold / hot, progress);
        double most = a->value - heat * log(1 - berth_solve__random_unit(&a->moves->random));
        double next = value_moved(a, most);
        if (!(next <= most)) {
            berth_solve__latency_undo(a->latency);
            continue;
        }
        a->value = next;
        look(a);
        if (next < search->best_value && excess_of(a) == 0)
            (void)berth_place_offer(search, a->latency->device);
    }
}

// Every group anywhere that it may be.
static void place_anywhere(annealing *a) {
    const berth_place_problem *problem = a->search->problem;
    berth_solve__latency_begin(a->latency);
    for (uint32_t g = 0; g < problem->group_count; ++g)
        for (uint32_t tries = 0; tries < 4 * problem->device_count; ++tries)
            if (berth_solve__latency_move(
                    a->latency, g,
                    berth_solve__random_below(&a->moves->random, problem->device_count)))
                break;
}

// Rounds of annealing from the best placement at several heats; now and then, hot, from anywhere.
static void run_rounds(annealing *a) {
    static const double heats[] = {0.05, 0.3, 0.02, 1};
    berth_place_search *search = a->search;
    uint64_t steps = FIRST_MOVES, groups = search->problem->group_count;
    if (steps < MOVES_OF_GROUP * groups) steps = MOVES_OF_GROUP * groups;
    for (uint32_t round = 0; !berth_place_spent(search, 1); ++round, steps += steps / 4) {
        double heat = heats[round % (sizeof(heats) / sizeof(*heats))];
        // A round too short for its nodes to cool down again begins cold, or less so.
        if (steps < HOT_MOVES * groups) heat = COLD_HEATS[round % 2];
        if (!berth_solve__latency_set(a->latency, search->best)) return;
        a->value = search->best_value;
        a->per_share = 2 * a->value;
        double cost = cost_of_moves(a);
        if (cost == 0) cost = 1e-3 * a->value;
        if (heat == 1) {
            place_anywhere(a);
            a->value = value_now(a, INFINITY);
        } else {
            (void)value_now(a, INFINITY);
        }
        look(a);
        anneal(a, steps, heat * cost, 1e-3 * cost);
    }
}

// The published model's subgraphs, cut from a few orders, are good places to begin here as well.
static berth_status try_intervals(annealing *a, berth_arena *scratch) {
    berth_place_search *search = a->search;
    berth_solve__units units;
    BERTH_TRY(berth_solve__units_build(scratch, search->problem, &units));
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, units.graph->node_count);
    uint32_t *at = berth_arena_new_array(scratch, uint32_t, search->problem->node_count);
    for (uint32_t i = 0; i < ORDERS && !berth_place_spent(search, 1); ++i) {
        berth_solve__latency_order(scratch, units.graph, &a->moves->random, i, order);
        if (berth_solve__latency_intervals(search, a->latency, &units, order, PLACES, at) &&
            berth_solve__latency_set(a->latency, at) && excess_of(a) == 0 &&
            value_now(a, search->best_value) < search->best_value)
            (void)berth_place_offer(search, at);
    }
    return BERTH_OK;
}

static berth_status run_with(berth_place_search *search, bool orders, bool rounds) {
    const berth_place_problem *problem = search->problem;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    annealing a = {.search = search};
    a.latency = berth_solve__latency_create(scratch, problem);
    a.moves =
        berth_solve__latency_moves_create(scratch, a.latency, 88172645463325252u + search->round);
    a.moves->path_eighths = PATH_EIGHTHS;
    a.schedule = berth_solve__list_create(scratch, problem);
    a.guess = berth_solve__guess_create(scratch, a.latency);
    a.nodes = 1 + (problem->node_count + problem->edge_count) / 16;
    berth_status status = orders ? try_intervals(&a, scratch) : BERTH_OK;
    if (!status && rounds && problem->device_count > 1 && search->best_value > 0 &&
        search->best_value < INFINITY)
        run_rounds(&a);
    berth_arena_destroy(scratch);
    return status;
}

static berth_status run_dp(berth_place_search *search) {
    return run_with(search, true, false);
}

// HEFT's placement is one to begin with; `auto` has it already.
static berth_status run_search(berth_place_search *search) {
    if (search->best_value == INFINITY) BERTH_TRY(berth_place__heft.run(search));
    return run_with(search, search->round == 0, true);
}

const berth_place_strategy berth_place__dp_list = {
    .name = "dp",
    .doc = "linear orders cut into intervals by dynamic programming; latency by list scheduling",
    .applies = berth_place__is_list_latency,
    .run = run_dp,
};

const berth_place_strategy berth_place__search_list = {
    .name = "search",
    .doc = "intervals of orders, then annealing of regions; latency by list scheduling",
    .auto_percent = 70,
    .again_percent = 70,
    .applies = berth_place__is_list_latency,
    .run = run_search,
};
