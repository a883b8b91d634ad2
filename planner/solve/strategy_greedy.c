// Placements that are quick to find and keep the limits: everything on one device, segments of a
// linear order (linear.h), and groups one by one to where they add least. Also the bounds that a
// look at the figures proves. Whatever the objective, the other strategies start from its result.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/linear.h"
#include "planner/solve/list_bound.h"
#include "planner/solve/load_bound.h"
#include "planner/solve/strategies.h"

#define ROUNDING 1e-12  // what sums of the same figures in another order may differ by, relatively

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    (void)problem;
    (void)options;
    return true;
}

// The candidates here may break a limit; offers may not.
static void offer_valid(berth_place_search *search, const uint32_t *assignment) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, search->problem, search->options->objective,
                                               search->options->contiguous, assignment, &value);
    if (!status && value.value < search->best_value) berth_place_offer(search, assignment);
    berth_status_free(status);
    berth_arena_destroy(scratch);
    (void)berth_place_spent(search,
                            1 + (search->problem->node_count + search->problem->edge_count) / 8);
}

static uint32_t pin_of(const berth_place_problem *problem, uint32_t node) {
    return problem->pin ? problem->pin[node] : BERTH_PLACE_NONE;
}

static double time_on(const berth_place_problem *problem, uint32_t node, uint32_t device) {
    return problem->time[(size_t)node * problem->kind_count + problem->device_kind[device]];
}

// ------------------------------------------------------------------------------------------------
// bounds

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

static bool has_open_memory(const berth_place_problem *problem) {
    for (uint32_t d = 0; d < problem->device_count; ++d)
        if (problem->kinds[problem->device_kind[d]].capacity_bytes == INFINITY) return true;
    return false;
}

static double memory_bound(const berth_place_problem *problem) {
    if (has_open_memory(problem)) return load_bound(problem, problem->size_bytes);
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

static double weighted_loads(berth_arena *scratch, const berth_place_problem *problem) {
    berth_place_nets *nets = berth_place__nets(scratch, problem, NULL, 0);
    double *weight = berth_arena_new_array(scratch, double, problem->kind_count);
    double *floors = berth_arena_new_array(scratch, double, nets->item_count);
    return berth_place__weigh_loads(problem, nets, weight, floors);
}

static void prove_bounds(berth_place_search *search, berth_arena *scratch) {
    const berth_place_problem *problem = search->problem;
    if (search->options->objective == BERTH_PLACE_MEMORY) {
        berth_place_bound(search, memory_bound(problem) * (1 - ROUNDING));
        return;
    }
    double *fastest = berth_arena_new_array(scratch, double, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        fastest[v] = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (pin_of(problem, v) == BERTH_PLACE_NONE || pin_of(problem, v) == d)
                fastest[v] = fmin(fastest[v], time_on(problem, v, d));
    }
    double bound = search->options->objective == BERTH_PLACE_LATENCY
                       ? critical_path(scratch, problem, fastest)
                       : load_bound(problem, fastest);
    if (search->options->objective == BERTH_PLACE_THROUGHPUT)
        bound = fmax(bound, weighted_loads(scratch, problem));
    else if (!problem->one_subgraph)
        bound = fmax(bound, berth_place__list_bound(scratch, problem));
    berth_place_bound(search, bound * (1 - ROUNDING));
}

// ------------------------------------------------------------------------------------------------
// candidates

static void try_single_devices(berth_place_search *search, uint32_t *assignment) {
    const berth_place_problem *problem = search->problem;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        if (problem->kinds[k].device_count == 0) continue;
        uint32_t first = berth_place_kind_first(problem, k);
        for (uint32_t v = 0; v < problem->node_count; ++v) {
            uint32_t pin = pin_of(problem, v);
            assignment[v] = pin == BERTH_PLACE_NONE ? first : pin;
        }
        offer_valid(search, assignment);
    }
}

static void try_segments(berth_place_search *search, berth_arena *scratch, uint32_t *assignment) {
    const berth_place_problem *problem = search->problem;
    bool latency = search->options->objective == BERTH_PLACE_LATENCY;
    for (uint32_t variant = 0; variant < 2; ++variant) {
        berth_solve__order order = berth_solve__order_groups(scratch, problem, !latency, variant);
        if (berth_solve__cut_order(search, &order, latency, assignment))
            offer_valid(search, assignment);
    }
}

typedef struct packing {
    const berth_place_problem *problem;
    bool by_bytes;  // balance bytes rather than times
    bool by_share;  // bytes as shares of the capacity
    double *bytes;  // [device_count]
    double *load;   // [device_count]
} packing;

static double group_load(const packing *p, uint32_t group, uint32_t device, double *out_bytes) {
    const berth_place_problem *problem = p->problem;
    double load = 0;
    *out_bytes = 0;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i) {
        uint32_t v = problem->group_nodes[i];
        uint32_t pin = pin_of(problem, v);
        if (pin != BERTH_PLACE_NONE && pin != device) return INFINITY;
        load += time_on(problem, v, device);
        *out_bytes += problem->size_bytes[v];
    }
    double capacity = problem->kinds[problem->device_kind[device]].capacity_bytes;
    if (p->bytes[device] + *out_bytes > capacity) return INFINITY;
    if (!p->by_bytes || load == INFINITY) return load;
    return p->by_share && *out_bytes > 0 ? *out_bytes / capacity : *out_bytes;
}

typedef struct weighted {
    double weight;
    uint32_t group;
} weighted;

static int heavier_first(const void *left, const void *right) {
    const weighted *a = left;
    const weighted *b = right;
    if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
    return a->group < b->group ? -1 : a->group > b->group;
}

// Heaviest first, each to the device whose sum is then least (Graham's LPT rule, 1969). False when
// one fits nowhere.
static bool pack(packing *p, weighted *order, uint32_t *assignment) {
    const berth_place_problem *problem = p->problem;
    for (uint32_t i = 0; i < problem->group_count; ++i) {
        uint32_t g = order[i].group;
        uint32_t best = BERTH_PLACE_NONE;
        double best_load = INFINITY;
        double best_bytes = 0;
        for (uint32_t d = 0; d < problem->device_count; ++d) {
            double bytes = 0;
            double load = p->load[d] + group_load(p, g, d, &bytes);
            if (load >= best_load) continue;
            best = d;
            best_load = load;
            best_bytes = bytes;
        }
        if (best == BERTH_PLACE_NONE) return false;
        p->load[best] = best_load;
        p->bytes[best] += best_bytes;
        for (uint32_t m = problem->group_start[g]; m < problem->group_start[g + 1]; ++m)
            assignment[problem->group_nodes[m]] = best;
    }
    return true;
}

static void try_packing(berth_place_search *search, berth_arena *scratch, bool by_bytes,
                        uint32_t *assignment) {
    const berth_place_problem *problem = search->problem;
    packing p = {.problem = problem, .by_bytes = by_bytes, .by_share = !has_open_memory(problem)};
    p.bytes = berth_arena_new_array(scratch, double, problem->device_count);
    p.load = berth_arena_new_array(scratch, double, problem->device_count);
    weighted *order = berth_arena_new_array(scratch, weighted, problem->group_count);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        order[g] = (weighted){0, g};
        for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i) {
            uint32_t v = problem->group_nodes[i];
            double least = INFINITY;
            for (uint32_t d = 0; d < problem->device_count; ++d)
                least = fmin(least, time_on(problem, v, d));
            order[g].weight += by_bytes ? problem->size_bytes[v] : least;
        }
    }
    if (problem->group_count > 1) qsort(order, problem->group_count, sizeof(*order), heavier_first);
    if (pack(&p, order, assignment)) offer_valid(search, assignment);
}

static berth_status run(berth_place_search *search) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    uint32_t *assignment = berth_arena_new_array(scratch, uint32_t, search->problem->node_count);
    prove_bounds(search, scratch);
    try_single_devices(search, assignment);
    if (search->options->objective != BERTH_PLACE_MEMORY && !search->problem->pin)
        try_segments(search, scratch, assignment);
    try_packing(search, scratch, true, assignment);
    try_packing(search, scratch, false, assignment);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__greedy = {
    .name = "greedy",
    .doc = "one device, segments of an order, heaviest first",
    .auto_percent = 100,
    .applies = applies,
    .run = run,
};
