// Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) on the evaluator itself: for what no
// strategy knows more about, such as memory, and pins. Moves a group to
// another device or swaps two. Rounds of growing length, each from the best placement, so that a
// longer budget continues a shorter one's search.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/strategies.h"

enum { FIRST_ROUND_MOVES = 40 };  // per group

typedef struct climb {
    berth_place_search *search;
    const berth_place_problem *problem;
    uint32_t *at;  // [node_count]
    double value;
    uint64_t random;
} climb;

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    if (problem->device_count < 2 || problem->group_count == 0) return false;
    if (options->objective == BERTH_PLACE_MEMORY) return true;
    for (uint32_t v = 0; problem->pin && v < problem->node_count; ++v)
        if (problem->pin[v] != BERTH_PLACE_NONE) return true;
    return false;
}

static uint64_t next_random(climb *c) {  // xorshift64* (Vigna 2016)
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return c->random * 0x2545F4914F6CDD1Du;
}

static uint32_t below(climb *c, uint32_t limit) {
    return (uint32_t)((next_random(c) >> 32) * limit >> 32);
}

static void put(climb *c, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = c->problem;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        c->at[problem->group_nodes[i]] = device;
}

static uint32_t device_of(const climb *c, uint32_t group) {
    return c->at[c->problem->group_nodes[c->problem->group_start[group]]];
}

// The value where `at` keeps all limits, else INFINITY.
static double value_now(climb *c) {
    const berth_place_options *options = c->search->options;
    berth_arena *scratch = berth_arena_create_child(c->search->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, c->problem, options->objective,
                                               options->contiguous, c->at, &value);
    double result = status ? INFINITY : value.value;
    berth_place_drop(c->search, status);
    berth_arena_destroy(scratch);
    return result;
}

// One move, taken back unless it is accepted. Worse by x is accepted with probability exp(-x /
// temperature).
static void step(climb *c, double temperature) {
    uint32_t g = below(c, c->problem->group_count);
    uint32_t h = below(c, c->problem->group_count);
    uint32_t from = device_of(c, g);
    uint32_t to = below(c, c->problem->device_count - 1);
    bool swap = below(c, 4) == 0;
    if (to >= from) ++to;
    if (swap) {
        to = device_of(c, h);
        if (to == from) return;
        put(c, h, from);
    }
    put(c, g, to);
    double value = value_now(c);
    double worse = value - c->value;
    double chance = (double)(next_random(c) >> 11) * 0x1p-53;
    if (value < INFINITY && (worse <= 0 || chance < exp(-worse / temperature))) {
        c->value = value;
        if (value < c->search->best_value) berth_place_offer(c->search, c->at);
        return;
    }
    put(c, g, from);
    if (swap) put(c, h, to);
}

static void run_rounds(climb *c) {
    const berth_place_problem *problem = c->problem;
    // An evaluation takes about a microsecond for 16 nodes and edges, and one to begin with.
    uint32_t step_nodes = 2 + (problem->node_count + problem->edge_count) / 16;
    for (uint64_t moves = (uint64_t)FIRST_ROUND_MOVES * problem->group_count;; moves *= 2) {
        memcpy(c->at, c->search->best, problem->node_count * sizeof(*c->at));
        c->value = c->search->best_value;
        double hot = c->value * 0.05;
        for (uint64_t i = 0; i < moves; ++i) {
            if (berth_place_spent(c->search, step_nodes)) return;
            step(c, hot * pow(1e-3, (double)i / (double)moves));
        }
    }
}

static berth_status run(berth_place_search *search) {
    const berth_place_problem *problem = search->problem;
    if (search->best_value == INFINITY) BERTH_TRY(berth_place__greedy.run(search));
    if (search->best_value == INFINITY || search->best_value == 0) return BERTH_OK;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    climb c = {.search = search, .problem = problem, .random = 0x9E3779B97F4A7C15u + search->round};
    c.at = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    run_rounds(&c);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__climb = {
    .name = "search",
    .doc = "annealing with any objective",
    .auto_percent = 50,
    .again_percent = 50,
    .applies = applies,
    .run = run,
};
