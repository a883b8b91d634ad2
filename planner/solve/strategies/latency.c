// Latency of one sample in the published model: cuts of several topological orders into intervals
// (latency_intervals.h), then simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) of the best
// one, in rounds that get longer and begin at different heats. Always the same random numbers.
#include <math.h>
#include <string.h>

#include "planner/solve/latency/intervals.h"
#include "planner/solve/latency/moves.h"
#include "planner/solve/strategies/strategies.h"

typedef struct annealing {
    berth_place_search *search;
    berth_solve__latency *latency;
    berth_solve__latency_moves *moves;
    double value, cost;  // of the state
    double best;         // found so far by this strategy
    uint64_t step_nodes;
} annealing;

enum {
    ORDERS = 32,
    CUTS = 2,
    COARSE_PLACES = 192,  // where many orders are cut
    FINE_PLACES = 1024,   // where one is
    FIRST_STEPS = 100000,
    SPENT_EVERY = 16,
};
static const double COOLING = 0.02;      // last heat over first
static const double ROUND_SHARE = 0.5;   // of the budget that is left, the most that a round takes
static const double ORDERS_SHARE = 0.3;  // after which no more orders are cut, once bands were

static double cost_of(const annealing *state, double value) {
    // Ties (most changes leave the value as it is) go to placements whose parts are done early.
    return value * (1 + 1e-3) + 1e-3 * state->latency->spread / state->latency->problem->node_count;
}

static void note_value(annealing *state) {
    if (state->value >= state->best) return;
    state->best = state->value;
    if (state->value < state->search->best_value * (1 - BERTH_PLACE_EQUAL))
        (void)berth_place_offer(state->search, state->latency->device);
}

// How far a round is, 0 to 1: by its steps, or by the budget where that is short for them, so that
// no round ends before it is cold.
static double progress_of(const annealing *state, const berth_place_since *since, uint64_t step,
                          uint64_t steps) {
    double used = berth_place_used(state->search, *since) / ROUND_SHARE;
    return fmin(1, fmax(used, (double)step / (double)steps));
}

static void anneal(annealing *state, double hot, double cold, uint64_t steps) {
    berth_solve__latency *latency = state->latency;
    const berth_place_since since = berth_place_now(state->search);
    static const uint32_t sorts[] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 4};
    bool stale = true;
    double heat = hot;
    for (uint64_t step = 0; step < steps; ++step) {
        if (step % SPENT_EVERY == 0 &&
            berth_place_spent(state->search, SPENT_EVERY * state->step_nodes))
            return;
        if (step % SPENT_EVERY == 0) {
            double progress = progress_of(state, &since, step, steps);
            if (progress == 1) return;
            heat = hot * pow(cold / hot, progress);
        }
        if (stale) {
            berth_solve__latency_begin(latency);
            (void)berth_solve__latency_value(latency, INFINITY);
            berth_solve__latency_moves_look(state->moves);
            stale = false;
        }
        double most = state->cost - heat * log(1 - berth_solve__random_unit(&state->moves->random));
        uint32_t sort = sorts[berth_solve__random_below(&state->moves->random, 10)];
        double value = INFINITY;
        if (berth_solve__latency_moves_make(state->moves, sort) && latency->change_count > 0)
            value = berth_solve__latency_value(latency, most);
        double cost = isinf(value) ? INFINITY : cost_of(state, value);
        if (!(cost <= most)) {
            berth_solve__latency_undo(latency);
            continue;
        }
        state->value = value;
        state->cost = cost;
        stale = true;
        note_value(state);
    }
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return options->objective == BERTH_PLACE_LATENCY && problem->one_subgraph;
}

static bool start_plain(berth_place_search *search, berth_solve__latency *latency) {
    const berth_place_problem *problem = search->problem;
    berth_solve__latency_begin(latency);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        bool placed = false;
        for (uint32_t d = problem->device_count; d-- > 0 && !placed;)
            placed = !latency->single[d] && berth_solve__latency_move(latency, g, d);
        if (!placed) return false;
    }
    return true;
}

// Starts from an assignment; false when it breaks a limit.
static bool start_from(annealing *state, const uint32_t *assignment) {
    if (!berth_solve__latency_set(state->latency, assignment)) return false;
    state->value = berth_solve__latency_value(state->latency, INFINITY);
    if (isinf(state->value)) return false;
    state->cost = cost_of(state, state->value);
    note_value(state);
    return true;
}

// Of each unit: its nodes where they are fastest.
static double *weigh_units(berth_arena *scratch, const berth_place_problem *problem,
                           const berth_solve__units *units) {
    double *weight = berth_arena_new_array(scratch, double, units->graph->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double least = INFINITY;
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            if (problem->kinds[k].device_count > 0)
                least = fmin(least, problem->time[(size_t)v * problem->kind_count + k]);
        weight[units->unit[v]] += isinf(least) ? 0 : least;
    }
    return weight;
}

// Intervals of orders: depth first, in bands, by layers, and depth first with random turns.
// Where `rounds` follow they are left a part of the budget.
static void try_orders(annealing *state, berth_arena *scratch, const berth_solve__units *units,
                       uint32_t *assignment, bool rounds) {
    berth_place_search *search = state->search;
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, units->graph->node_count);
    const double *weight = weigh_units(scratch, search->problem, units);
    uint32_t most_bands = search->problem->device_count < 8 ? search->problem->device_count : 8;
    const berth_place_since since = berth_place_now(search);
    for (uint32_t i = 0; i < ORDERS && !berth_place_spent(search, 1); ++i) {
        if (rounds && i > most_bands && berth_place_used(search, since) > ORDERS_SHARE) break;
        if (i > 0 && i < most_bands)
            berth_solve__units_order_bands(scratch, units, weight, i + 1, order);
        else
            berth_solve__latency_order(scratch, units->graph, &state->moves->random,
                                       i < most_bands ? i : i + 1 - most_bands, order);
        if (berth_solve__latency_intervals(search, state->latency, units, order, COARSE_PLACES,
                                           assignment))
            (void)start_from(state, assignment);
    }
}

// Cuts orders in which the best placement runs, each time with other ties; goes on from what is
// better.
static void cut_again(annealing *state, berth_arena *scratch, const berth_solve__units *units,
                      uint32_t *assignment) {
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, units->graph->node_count);
    uint32_t *kept = berth_arena_new_array(scratch, uint32_t, state->search->problem->node_count);
    memcpy(assignment, state->search->best, state->search->problem->node_count * sizeof(*kept));
    if (!start_from(state, assignment)) return;
    for (uint32_t tries = 0; tries < CUTS && !berth_place_spent(state->search, 1); ++tries) {
        double value = state->value;
        memcpy(kept, state->latency->device, state->search->problem->node_count * sizeof(*kept));
        berth_solve__units_order_like(scratch, units, state->latency, &state->moves->random, order);
        bool found = berth_solve__latency_intervals(state->search, state->latency, units, order,
                                                    FINE_PLACES, assignment) &&
                     start_from(state, assignment);
        if (found && state->value < value * (1 - BERTH_PLACE_EQUAL)) tries = 0;
        if (!found || state->value > value) (void)start_from(state, kept);
    }
}

// Rounds of annealing, by turns from the best placement and from the intervals of a new order.
static void run_rounds(annealing *state, berth_arena *scratch, const berth_solve__units *units,
                       uint32_t *assignment) {
    static const double heats[] = {0.01, 0.02, 0.003, 0.02, 0.03, 0.01};
    berth_place_search *search = state->search;
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, units->graph->node_count);
    uint64_t steps = FIRST_STEPS;
    for (uint32_t round = 0; search->best_value < INFINITY && !berth_place_spent(search, 1);
         ++round) {
        bool fresh = false;
        if (round % 2 == 1) {
            berth_solve__latency_order(scratch, units->graph, &state->moves->random, 2, order);
            fresh = berth_solve__latency_intervals(search, state->latency, units, order,
                                                   FINE_PLACES, assignment) &&
                    start_from(state, assignment);
        }
        if (!fresh) memcpy(assignment, search->best, search->problem->node_count * sizeof(*order));
        if (!fresh && !start_from(state, assignment)) break;
        double hot = state->value * heats[round % (sizeof(heats) / sizeof(heats[0]))];
        anneal(state, hot, hot * COOLING, steps);
        berth_arena *round_scratch = berth_arena_create_child(scratch);
        cut_again(state, round_scratch, units, assignment);
        berth_arena_destroy(round_scratch);
        if (round % 2 == 1) steps += steps / 4;
    }
}

static berth_status run_with(berth_place_search *search, bool orders, bool rounds, uint64_t seed) {
    const berth_place_problem *problem = search->problem;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    uint32_t *assignment = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    annealing state = {.search = search, .best = INFINITY};
    state.latency = berth_solve__latency_create(scratch, problem);
    state.moves = berth_solve__latency_moves_create(scratch, state.latency, seed);
    state.step_nodes = 1 + (problem->node_count + problem->edge_count) / 256;
    if (start_plain(search, state.latency)) {
        memcpy(assignment, state.latency->device, problem->node_count * sizeof(*assignment));
        (void)start_from(&state, assignment);
    }
    berth_solve__units units;
    berth_status status = berth_solve__units_build(scratch, problem, &units);
    if (!status && orders) try_orders(&state, scratch, &units, assignment, rounds);
    if (!status && rounds) run_rounds(&state, scratch, &units, assignment);
    berth_arena_destroy(scratch);
    return status;
}

static berth_status run_dp(berth_place_search *search) {
    return run_with(search, true, false, 88172645463325252u);
}

static berth_status run_search(berth_place_search *search) {
    // Later runs begin with what was found and go on with other random numbers.
    bool orders = search->round == 0 || search->best_value == INFINITY;
    return run_with(search, orders, true, 88172645463325252u + search->round);
}

const berth_place_strategy berth_place__dp_latency = {
    .name = "dp",
    .doc = "orders cut into intervals by dynamic programming; latency, one subgraph per device",
    .applies = applies,
    .run = run_dp,
};

const berth_place_strategy berth_place__search_latency = {
    .name = "search",
    .doc = "intervals of many orders, then annealing; latency, one subgraph per device",
    .auto_percent = 50,
    .again_percent = 60,
    .applies = applies,
    .run = run_search,
};
