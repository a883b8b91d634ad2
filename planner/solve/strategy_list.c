// Latency of one sample by list scheduling (problem.h, one_subgraph = false): `dp` cuts linear
// orders into intervals (latency_intervals.h), `search` goes on from there and from HEFT's
// placement by annealing with moves of regions and intervals, valued by the evaluator.
#include <math.h>
#include <string.h>

#include "planner/solve/latency_intervals.h"
#include "planner/solve/latency_moves.h"
#include "planner/solve/strategies.h"

enum { ORDERS = 8, FIRST_MOVES = 2000 };

// ------------------------------------------------------------------------------------------------
// annealing

static double value_now(const berth_place_search *search, const berth_solve__latency *latency) {
    for (uint32_t d = 0; d < search->problem->device_count; ++d)
        if (latency->free_bytes[d] < 0) return INFINITY;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, search->problem, BERTH_PLACE_LATENCY, false,
                                               latency->device, &value);
    double result = status ? INFINITY : value.value;
    berth_status_free(status);
    berth_arena_destroy(scratch);
    return result;
}

static void anneal(berth_place_search *search, berth_solve__latency *latency,
                   berth_solve__latency_moves *moves, uint64_t steps, double hot) {
    static const uint32_t sorts[] = {0, 0, 0, 1, 1, 1, 2, 2, 3, 3};
    const berth_place_problem *problem = search->problem;
    uint32_t nodes = 2 + (problem->node_count + problem->edge_count) / 16;
    double value = search->best_value;
    if (!berth_solve__latency_set(latency, search->best)) return;
    for (uint64_t step = 0; step < steps; ++step) {
        if (berth_place_spent(search, nodes)) return;
        double heat = hot * pow(1e-2, (double)step / (double)steps);
        double most = value - heat * log(1 - berth_solve__random_unit(&moves->random));
        uint32_t sort = sorts[berth_solve__random_below(&moves->random, 10)];
        double next = INFINITY;
        if (berth_solve__latency_moves_make(moves, sort) && latency->change_count > 0)
            next = value_now(search, latency);
        if (!(next <= most)) {
            berth_solve__latency_undo(latency);
            continue;
        }
        value = next;
        if (value < search->best_value) (void)berth_place_offer(search, latency->device);
    }
}

// The published model's subgraphs, cut from a few orders, are good places to begin here as well.
static berth_status try_intervals(berth_place_search *search, berth_arena *scratch,
                                  berth_solve__latency *latency, uint64_t *random) {
    berth_solve__units units;
    BERTH_TRY(berth_solve__units_build(scratch, search->problem, &units));
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, units.graph->node_count);
    uint32_t *at = berth_arena_new_array(scratch, uint32_t, search->problem->node_count);
    for (uint32_t i = 0; i < ORDERS && !berth_place_spent(search, 1); ++i) {
        berth_solve__latency_order(scratch, units.graph, random, i, order);
        if (berth_solve__latency_intervals(search, latency, &units, order, at) &&
            berth_solve__latency_set(latency, at) &&
            value_now(search, latency) < search->best_value)
            (void)berth_place_offer(search, at);
    }
    return BERTH_OK;
}

static berth_status run_with(berth_place_search *search, bool rounds) {
    static const double heats[] = {0.01, 0.05};
    berth_arena *scratch = berth_arena_create_child(search->arena);
    berth_solve__latency *latency = berth_solve__latency_create(scratch, search->problem);
    berth_solve__latency_moves *moves =
        berth_solve__latency_moves_create(scratch, latency, 88172645463325252u);
    berth_status status = try_intervals(search, scratch, latency, &moves->random);
    uint64_t steps = FIRST_MOVES;
    for (uint32_t round = 0;
         !status && rounds && search->best_value < INFINITY && search->best_value > 0 &&
         search->problem->device_count > 1 && !berth_place_spent(search, 1);
         ++round, steps += steps / 2)
        anneal(search, latency, moves, steps, search->best_value * heats[round % 2]);
    berth_arena_destroy(scratch);
    return status;
}

static berth_status run_dp(berth_place_search *search) {
    return run_with(search, false);
}

// HEFT's placement is one to begin with; `auto` has it already.
static berth_status run_search(berth_place_search *search) {
    if (search->best_value == INFINITY) BERTH_TRY(berth_place__heft.run(search));
    return run_with(search, true);
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
    .applies = berth_place__is_list_latency,
    .run = run_search,
};
