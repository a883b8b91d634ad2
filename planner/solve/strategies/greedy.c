// Placements that are quick to find and keep the limits: everything on one device, segments of a
// linear order (linear.h), and groups one by one to where they add least. Whatever the objective,
// the other strategies start from its result.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/linear.h"
#include "planner/solve/strategies/strategies.h"

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
    berth_place_drop(search, status);
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
    // Earliest finish times (heft.c) are as quick, and better.
    if (berth_place__is_list_latency(problem, search->options)) return;
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
    packing p = {
        .problem = problem, .by_bytes = by_bytes, .by_share = berth_place_memory_is_share(problem)};
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
