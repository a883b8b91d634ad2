// Bounds that a look at the figures proves, whatever strategy runs: the critical path, the largest
// group, averages over the devices, weighted loads (load_bound.h), paths over copies
// (list_bound.h), the bandwidth of shared memories.
#include <math.h>

#include "planner/solve/bounds/list_bound.h"
#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/latency/chain.h"
#include "planner/solve/strategies/strategies.h"

#define ROUNDING 1e-12  // what sums of the same figures in another order may differ by, relatively

static uint32_t pin_of(const berth_place_problem *problem, uint32_t node) {
    return problem->pin ? problem->pin[node] : BERTH_PLACE_NONE;
}

static double time_on(const berth_place_problem *problem, uint32_t node, uint32_t device) {
    return problem->time[(size_t)node * problem->kind_count + problem->device_kind[device]];
}

// The longest path with each node at its fastest; the slowest node (in any group) is below it.
static double critical_path(berth_arena *scratch, const berth_place_problem *problem,
                            const double *fastest) {
    double *done = berth_arena_new_array(scratch, double, problem->node_count);
    double most = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        for (uint32_t p = problem->pred_start[v]; p < problem->pred_start[v + 1]; ++p)
            done[v] = fmax(done[v], done[problem->pred[p]]);
        done[v] += fastest[v];
        most = fmax(most, done[v]);
    }
    return most;
}

static double sum_of(const double *figures, const uint32_t *nodes, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += figures[nodes[i]];
    return sum;
}

static double largest_group(const berth_place_problem *problem, const double *figures) {
    double most = 0;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        uint32_t start = problem->group_start[g];
        most = fmax(most, sum_of(figures, problem->group_nodes + start,
                                 problem->group_start[g + 1] - start));
    }
    return most;
}

// The busiest device has at least the largest group, and at least the average.
static double load_bound(const berth_place_problem *problem, const double *fastest) {
    double total = sum_of(fastest, problem->topological, problem->node_count);
    return fmax(largest_group(problem, fastest),
                problem->device_count ? total / problem->device_count : 0);
}

static double memory_bound(const berth_place_problem *problem) {
    if (!berth_place_memory_is_share(problem)) return load_bound(problem, problem->size_bytes);
    double all = 0;
    double largest = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        double capacity = problem->kinds[problem->device_kind[d]].capacity_bytes;
        all += capacity;
        largest = fmax(largest, capacity);
    }
    if (largest == 0) return 0;
    double total = sum_of(problem->size_bytes, problem->topological, problem->node_count);
    return fmax(total / all, largest_group(problem, problem->size_bytes) / largest);
}

// What all nodes take of shared memories at least, spread evenly.
static double memories_bound(const berth_place_problem *problem) {
    double least = 0;
    uint32_t memories = 0;
    if (!problem->memory) return 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) memories += problem->memory[d] == d;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double of_node = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d) {
            size_t at = (size_t)v * problem->kind_count + problem->device_kind[d];
            if (time_on(problem, v, d) < INFINITY &&
                (pin_of(problem, v) == BERTH_PLACE_NONE || pin_of(problem, v) == d))
                of_node = fmin(of_node, problem->memory_ms[at]);
        }
        if (of_node < INFINITY) least += of_node;
    }
    return least / memories;
}

static double weighted_loads(berth_arena *scratch, const berth_place_problem *problem) {
    berth_place_nets *nets = berth_place__nets(scratch, problem, NULL, 0);
    double *weight = berth_arena_new_array(scratch, double, problem->kind_count);
    double *floors = berth_arena_new_array(scratch, double, nets->item_count);
    return berth_place__weigh_loads(problem, nets, weight, floors);
}

static void prove(berth_place_search *search, berth_arena *scratch) {
    const berth_place_problem *problem = search->problem;
    if (search->options->objective == BERTH_PLACE_MEMORY) {
        berth_place_bound(search, memory_bound(problem) * (1 - ROUNDING));
        return;
    }
    double *fastest = berth_arena_new_array(scratch, double, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        fastest[v] = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if ((pin_of(problem, v) == BERTH_PLACE_NONE || pin_of(problem, v) == d) &&
                berth_place_has_room(problem, problem->group[v], problem->device_kind[d]))
                fastest[v] = fmin(fastest[v], time_on(problem, v, d));
    }
    double bound = search->options->objective == BERTH_PLACE_LATENCY
                       ? critical_path(scratch, problem, fastest)
                       : load_bound(problem, fastest);
    if (search->options->objective == BERTH_PLACE_THROUGHPUT)
        bound = fmax(bound, weighted_loads(scratch, problem));
    else if (search->options->objective == BERTH_PLACE_LATENCY && problem->one_subgraph)
        bound = fmax(bound, berth_solve__latency_chain_bound(scratch, problem, 20000000));
    else if (!problem->one_subgraph)
        bound = fmax(bound, berth_place__list_bound(scratch, problem));
    if (!problem->one_subgraph || search->options->objective == BERTH_PLACE_THROUGHPUT)
        bound = fmax(bound, memories_bound(problem));
    berth_place_bound(search, bound * (1 - ROUNDING));
}

void berth_place__simple_bounds(berth_place_search *search) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    prove(search, scratch);
    berth_arena_destroy(scratch);
}
