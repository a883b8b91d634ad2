#include "planner/solve/strategies/strategy.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "planner/solve/strategies/strategies.h"

// In the order of `auto`: cheap ones first; those that prove bounds last, with what is left.
enum { built_in = 15, last_ones = 2, most_registered = 16 };
static const berth_place_strategy *strategies[built_in + most_registered + 1] = {
    &berth_place__greedy,          // every objective
    &berth_place__enumerate,       // every objective, few placements
    &berth_place__heft,            // latency, list scheduling
    &berth_place__enumerate_more,  // every objective, not too many placements
    &berth_place__dp,              // throughput
    &berth_place__search,          // throughput without contiguity, memory
    &berth_place__bound,           // throughput: the bound
    &berth_place__dp_latency,      // latency, one subgraph per device; part of the next one
    &berth_place__search_latency,  // latency, one subgraph per device
    &berth_place__bound_latency,   // latency, one subgraph per device
    &berth_place__dp_list,         // latency, list scheduling; part of the next one
    &berth_place__search_list,     // latency, list scheduling
    &berth_place__bound_list,      // latency, list scheduling
    &berth_place__climb,           // what no other one knows about
    &berth_place__enumerate_more,  // once more, from what the searches found
};

static uint32_t strategy_count = built_in;

berth_status berth_place_strategy_register(const berth_place_strategy *strategy) {
    for (uint32_t i = 0; i < strategy_count; ++i)
        if (strcmp(strategies[i]->name, strategy->name) == 0)
            return berth_status_make(BERTH_ALREADY_EXISTS, "there is a strategy %s already",
                                     strategy->name);
    if (strategy_count == built_in + most_registered)
        return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d strategies are registered",
                                 (int)most_registered);
    uint32_t place = strategy_count++ - last_ones;
    for (uint32_t i = strategy_count - 1; i > place; --i) strategies[i] = strategies[i - 1];
    strategies[place] = strategy;
    return BERTH_OK;
}

const berth_place_strategy *const *berth_place_strategies(void) {
    return strategies;
}

bool berth_place_proven(const berth_place_search *search) {
    return search->best_value < INFINITY &&
           search->lower_bound >= search->best_value * (1 - BERTH_PLACE_EQUAL);
}

bool berth_place_spent(berth_place_search *search, uint64_t nodes) {
    search->nodes += nodes;
    if (berth_place_proven(search)) return true;
    if (search->nodes >= search->node_limit) return true;
    if (search->deadline_ns == 0 || berth_clock_ns() < search->deadline_ns) return false;
    search->out_of_time = true;
    return true;
}

berth_place_since berth_place_now(const berth_place_search *search) {
    return (berth_place_since){.nodes = search->nodes,
                               .ns = search->deadline_ns ? berth_clock_ns() : 0};
}

double berth_place_used(const berth_place_search *search, berth_place_since since) {
    if (search->nodes >= search->node_limit) return 1;
    double used =
        (double)(search->nodes - since.nodes) / (double)(search->node_limit - since.nodes);
    double time_ns = (double)(search->deadline_ns - since.ns);
    if (search->deadline_ns && time_ns > 0)
        used = fmax(used, (double)(berth_clock_ns() - since.ns) / time_ns);
    return fmin(used, 1);
}

static void tell(const berth_place_search *search) {
    if (search->options->progress)
        search->options->progress(search->options->progress_user, search);
}

void berth_place_drop(const berth_place_search *search, berth_status status) {
    bool memory = berth_status_code(status) == BERTH_OUT_OF_MEMORY;
    berth_status_free(status);
    if (memory) berth_arena_fail(search->arena);
}

bool berth_place_offer(berth_place_search *search, const uint32_t *assignment) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, search->problem, search->options->objective,
                                               search->options->contiguous, assignment, &value);
    bool better = !status && value.value < search->best_value;
    assert(!status || berth_status_code(status) == BERTH_OUT_OF_MEMORY);
    berth_place_drop(search, status);
    if (better) {
        search->best_value = value.value;
        search->best_strategy = search->strategy;
        memcpy(search->best, assignment, search->problem->node_count * sizeof(*assignment));
        tell(search);
    }
    berth_arena_destroy(scratch);
    return better;
}

void berth_place_bound(berth_place_search *search, double lower_bound) {
    assert(!isnan(lower_bound));
    if (!(lower_bound > search->lower_bound)) return;
    search->lower_bound = lower_bound;
    tell(search);
}
