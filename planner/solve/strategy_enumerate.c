// All placements of a problem with few of them: groups in topological order, each on every device
// that can take it, without telling unused devices of a kind apart. Proves what it finds, for every
// objective; branches end where memory or the time already placed is too much.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies.h"

#define MOST_PLACEMENTS 1e5

typedef struct tree {
    berth_place_search *search;
    const berth_place_problem *problem;
    uint32_t *order;       // [group_count] groups, by their first node in topological order
    double *group_time;    // [group_count * kind_count]; INFINITY = unsupported
    double *group_bytes;   // [group_count]
    uint32_t *group_pin;   // [group_count]
    uint32_t *choice;      // [group_count] by depth: device, or BERTH_PLACE_NONE
    uint32_t *assignment;  // [node_count]
    uint32_t *used;        // [device_count] groups on it
    double *bytes;         // [device_count]
    double *time;          // [device_count]
    bool symmetric;        // devices of a kind are interchangeable
} tree;

static bool has_pins(const berth_place_problem *problem) {
    for (uint32_t v = 0; problem->pin && v < problem->node_count; ++v)
        if (problem->pin[v] != BERTH_PLACE_NONE) return true;
    return false;
}

// (Unused devices of a kind count once: roughly the product over groups by the factorials.)
static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    (void)options;
    if (problem->device_count == 0) return false;
    double log_count = problem->group_count * log(problem->device_count);
    if (!has_pins(problem))
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            for (uint32_t i = 2; i <= problem->kinds[k].device_count; ++i) log_count -= log(i);
    return log_count <= log(MOST_PLACEMENTS);
}

static void build(berth_arena *scratch, tree *t) {
    const berth_place_problem *problem = t->problem;
    uint32_t groups = problem->group_count;
    t->order = berth_arena_new_array(scratch, uint32_t, groups);
    t->group_time = berth_arena_new_array(scratch, double, (size_t)groups * problem->kind_count);
    t->group_bytes = berth_arena_new_array(scratch, double, groups);
    t->group_pin = berth_arena_new_array(scratch, uint32_t, groups);
    t->choice = berth_arena_new_array(scratch, uint32_t, (size_t)groups + 1);
    t->assignment = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    t->used = berth_arena_new_array(scratch, uint32_t, problem->device_count);
    t->bytes = berth_arena_new_array(scratch, double, problem->device_count);
    t->time = berth_arena_new_array(scratch, double, problem->device_count);
    t->symmetric = !has_pins(problem);
    bool *listed = berth_arena_new_array(scratch, bool, groups);
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        uint32_t g = problem->group[v];
        if (!listed[g]) t->order[count++] = g;
        listed[g] = true;
        t->group_pin[g] = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        t->group_bytes[g] += problem->size_bytes[v];
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            t->group_time[(size_t)g * problem->kind_count + k] +=
                problem->time[(size_t)v * problem->kind_count + k];
    }
}

// Whether a branch may hold something better than the best.
static bool may_take(const tree *t, uint32_t g, uint32_t d) {
    const berth_place_problem *problem = t->problem;
    uint32_t kind = problem->device_kind[d];
    double time = t->group_time[(size_t)g * problem->kind_count + kind];
    if (time == INFINITY) return false;
    if (t->group_pin[g] != BERTH_PLACE_NONE && t->group_pin[g] != d) return false;
    double bytes = t->bytes[d] + t->group_bytes[g];
    if (bytes > problem->kinds[kind].capacity_bytes * (1 + 1e-12)) return false;
    if (t->search->options->objective == BERTH_PLACE_THROUGHPUT &&
        t->time[d] + time >= t->search->best_value * (1 + 1e-12))
        return false;
    // Of the unused devices of a kind, only the first.
    return !t->symmetric || d == 0 || t->used[d] > 0 || problem->device_kind[d - 1] != kind ||
           t->used[d - 1] > 0;
}

static void move(tree *t, uint32_t g, uint32_t d, int sign) {
    const berth_place_problem *problem = t->problem;
    double time = t->group_time[(size_t)g * problem->kind_count + problem->device_kind[d]];
    t->used[d] += (uint32_t)sign;
    t->bytes[d] += sign * t->group_bytes[g];
    t->time[d] += sign * time;
    if (t->used[d] == 0) t->bytes[d] = t->time[d] = 0;  // no rounding errors left behind
    if (sign < 0) return;
    for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i)
        t->assignment[problem->group_nodes[i]] = d;
}

static void value_leaf(tree *t) {
    const berth_place_options *options = t->search->options;
    berth_arena *scratch = berth_arena_create_child(t->search->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, t->problem, options->objective,
                                               options->contiguous, t->assignment, &value);
    if (!status && value.value < t->search->best_value) berth_place_offer(t->search, t->assignment);
    berth_status_free(status);
    berth_arena_destroy(scratch);
}

// Depth first; true when everything was seen.
static bool walk(tree *t) {
    const berth_place_problem *problem = t->problem;
    uint32_t leaf_nodes = 4 + (problem->node_count + problem->edge_count) / 8;
    uint32_t depth = 0;
    t->choice[0] = BERTH_PLACE_NONE;
    for (;;) {
        bool leaf = depth == problem->group_count;
        if (berth_place_spent(t->search, leaf ? leaf_nodes : 1)) return false;
        if (leaf) {
            value_leaf(t);
        } else {
            uint32_t g = t->order[depth];
            uint32_t d = t->choice[depth];
            if (d != BERTH_PLACE_NONE) move(t, g, d, -1);
            for (++d; d < problem->device_count && !may_take(t, g, d);) ++d;
            if (d < problem->device_count) {
                move(t, g, d, 1);
                t->choice[depth++] = d;
                t->choice[depth] = BERTH_PLACE_NONE;
                continue;
            }
        }
        if (depth == 0) return true;
        --depth;
    }
}

static berth_status run(berth_place_search *search) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    tree t = {.search = search, .problem = search->problem};
    build(scratch, &t);
    if (walk(&t)) {
        search->infeasible = search->best_value == INFINITY;
        if (!search->infeasible) berth_place_bound(search, search->best_value);
    }
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__enumerate = {
    .name = "enumerate",
    .doc = "all placements, where they are few",
    .auto_percent = 40,
    .applies = applies,
    .run = run,
};
