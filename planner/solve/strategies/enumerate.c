// All placements, depth first: groups in topological order, each on every device that can take it,
// without telling unused devices of a kind apart. A branch ends where no completion can be better
// than the best placement (partial.h): branch and bound (Land and Doig 1960). Proves what it finds,
// for every objective. Twice in `auto`: at first where placements are few, and after the searches,
// whose placements end branches early, where they are not too many.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "planner/solve/problem/partial.h"
#include "planner/solve/strategies/strategies.h"

#define FEW_PLACEMENTS 1e5
#define MOST_GROUPS 40

typedef struct tree {
    berth_place_search *search;
    const berth_place_problem *problem;
    berth_place__partial *partial;
    uint32_t *order;   // [group_count] groups, by their first node in topological order
    uint32_t *choice;  // [group_count + 1] by depth: device, or BERTH_PLACE_NONE
    uint32_t *used;    // [device_count] groups on it
    double *share;     // [group_count + 1] by depth: part of all placements in the branch, about
    double seen;       // part of all placements that is done with
    uint64_t steps;
    bool symmetric;  // devices of a kind are interchangeable
} tree;

static bool has_pins(const berth_place_problem *problem) {
    for (uint32_t v = 0; problem->pin && v < problem->node_count; ++v)
        if (problem->pin[v] != BERTH_PLACE_NONE) return true;
    return false;
}

// (Unused devices of a kind count once: roughly the product over groups by the factorials.)
static bool are_few(const berth_place_problem *problem, const berth_place_options *options) {
    (void)options;
    if (problem->device_count == 0) return false;
    double log_count = problem->group_count * log(problem->device_count);
    if (!has_pins(problem))
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            for (uint32_t i = 2; i <= problem->kinds[k].device_count; ++i) log_count -= log(i);
    return log_count <= log(FEW_PLACEMENTS);
}

static bool may_end(const berth_place_problem *problem, const berth_place_options *options) {
    return !are_few(problem, options) && problem->device_count > 0 &&
           problem->group_count <= MOST_GROUPS;
}

static void build(berth_arena *scratch, tree *t) {
    const berth_place_problem *problem = t->problem;
    uint32_t groups = problem->group_count;
    t->partial = berth_place__partial_create(scratch, problem, t->search->options);
    t->order = berth_arena_new_array(scratch, uint32_t, groups);
    t->choice = berth_arena_new_array(scratch, uint32_t, (size_t)groups + 1);
    t->share = berth_arena_new_array(scratch, double, (size_t)groups + 1);
    t->used = berth_arena_new_array(scratch, uint32_t, problem->device_count);
    t->symmetric = !has_pins(problem);
    bool *listed = berth_arena_new_array(scratch, bool, groups);
    uint32_t count = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t g = problem->group[problem->topological[i]];
        if (!listed[g]) t->order[count++] = g;
        listed[g] = true;
    }
}

// Puts the group on the device; false where that cannot lead to something better than the best.
static bool enter(tree *t, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = t->problem;
    // Of the unused devices of a kind, only the first.
    if (t->symmetric && device > 0 && t->used[device] == 0 && t->used[device - 1] == 0 &&
        problem->device_kind[device - 1] == problem->device_kind[device])
        return false;
    if (!berth_place__partial_put(t->partial, group, device)) return false;
    double bound = berth_place__partial_bound(t->partial);
    if (bound < t->search->best_value * (1 - BERTH_PLACE_EQUAL) ||
        (isinf(t->search->best_value) && bound < INFINITY)) {
        t->used[device]++;
        return true;
    }
    berth_place__partial_take(t->partial, group);
    return false;
}

static void leave(tree *t, uint32_t group, uint32_t device) {
    t->used[device]--;
    berth_place__partial_take(t->partial, group);
}

static void value_leaf(tree *t) {
    if (berth_place__partial_value(t->partial, t->search->best_value) < t->search->best_value)
        (void)berth_place_offer(t->search, berth_place__partial_at(t->partial));
}

// Whether the budget is spent, or it is clear by now that it will not do: when an eighth of it has
// not seen a hundredth of the placements.
static bool is_hopeless(tree *t, uint64_t nodes, berth_place_since since) {
    berth_place_search *search = t->search;
    if (berth_place_spent(search, nodes)) return true;
    if (++t->steps % 256 != 0) return false;
    double used = berth_place_used(search, since);
    return used > 0.125 && t->seen < 0.01;
}

// True when everything was seen.
static bool walk(tree *t) {
    const berth_place_problem *problem = t->problem;
    uint64_t cost =
        1 + (uint64_t)(problem->node_count + problem->edge_count) * problem->device_count / 64;
    const berth_place_since since = berth_place_now(t->search);
    uint32_t depth = 0;
    t->choice[0] = BERTH_PLACE_NONE;
    t->share[0] = 1;
    for (;;) {
        if (is_hopeless(t, cost, since)) return false;
        if (depth == problem->group_count) {
            value_leaf(t);
            t->seen += t->share[depth];
        } else {
            uint32_t g = t->order[depth];
            uint32_t d = t->choice[depth];
            double each = t->share[depth] / problem->device_count;
            if (d != BERTH_PLACE_NONE) leave(t, g, d);
            for (++d; d < problem->device_count && !enter(t, g, d); ++d) t->seen += each;
            if (d < problem->device_count) {
                t->choice[depth++] = d;
                t->choice[depth] = BERTH_PLACE_NONE;
                t->share[depth] = each;
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
    if (walk(&t)) {  // else it would not end another time either
        search->infeasible = search->best_value == INFINITY;
        if (!search->infeasible) berth_place_bound(search, search->best_value);
    }
    search->finished = true;
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__enumerate = {
    .name = "enumerate",
    .doc = "all placements, where they are few",
    .auto_percent = 40,
    .applies = are_few,
    .run = run,
};

const berth_place_strategy berth_place__enumerate_more = {
    .name = "enumerate",
    .doc = "all placements by branch and bound, where they are not too many",
    .auto_percent = 30,
    .applies = may_end,
    .run = run,
};
