// Classes of groups that may be taken to share a device.
#include "planner/solve/problem/merge.h"

#include <math.h>
#include <string.h>

#include "planner/solve/bounds/load_bound.h"

// What differences of equal sums may differ by, relatively.
#define ROUNDING 1e-12

berth_place_classes berth_place__classes(berth_arena *arena, const berth_place_problem *problem) {
    berth_place_classes classes = {.group_count = problem->group_count,
                                   .count = problem->group_count};
    classes.of_group = berth_arena_new_array(arena, uint32_t, (size_t)problem->group_count + 1);
    for (uint32_t g = 0; g < problem->group_count; ++g) classes.of_group[g] = g;
    return classes;
}

// Memory never decides: everything fits on one device of each kind.
static bool is_memory_ample(const berth_place_problem *problem, const berth_place_nets *nets) {
    double bytes = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) bytes += nets->size_bytes[i];
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        if (problem->kinds[k].device_count > 0 && problem->kinds[k].capacity_bytes < bytes)
            return false;
    return true;
}

typedef struct neighbors {
    const berth_place_nets *nets;
    double *pair;      // [items * kinds] cost of the nets {item, other}
    double *shared;    // [items * kinds] cost of all nets with both
    double *all;       // [kinds] cost of all nets of the item
    uint32_t *others;  // [items] items that share a net with it
    uint32_t count;
    bool *seen;  // [items]
} neighbors;

static neighbors make_neighbors(berth_arena *arena, const berth_place_nets *nets) {
    size_t n = (size_t)nets->item_count + 1;
    neighbors near = {.nets = nets};
    near.pair = berth_arena_new_array(arena, double, n * nets->kind_count);
    near.shared = berth_arena_new_array(arena, double, n * nets->kind_count);
    near.all = berth_arena_new_array(arena, double, (size_t)nets->kind_count + 1);
    near.others = berth_arena_new_array(arena, uint32_t, n);
    near.seen = berth_arena_new_array(arena, bool, n);
    return near;
}

// Nets with many pins are left out of `pair` and `shared` (which makes both checks stricter).
static void look_around(neighbors *near, uint32_t item) {
    enum { PIN_LIMIT = 64 };
    const berth_place_nets *nets = near->nets;
    uint32_t kinds = nets->kind_count;
    for (uint32_t i = 0; i < near->count; ++i) {
        size_t at = (size_t)near->others[i] * kinds;
        memset(&near->pair[at], 0, kinds * sizeof(double));
        memset(&near->shared[at], 0, kinds * sizeof(double));
        near->seen[near->others[i]] = false;
    }
    near->count = 0;
    memset(near->all, 0, kinds * sizeof(double));
    for (uint32_t i = nets->inet_start[item]; i < nets->inet_start[item + 1]; ++i) {
        uint32_t net = nets->inets[i];
        const double *cost = &nets->cost[(size_t)net * kinds];
        for (uint32_t k = 0; k < kinds; ++k) near->all[k] += cost[k];
        uint32_t pins = nets->pin_start[net + 1] - nets->pin_start[net];
        if (pins > PIN_LIMIT) continue;
        for (uint32_t p = nets->pin_start[net]; p < nets->pin_start[net + 1]; ++p) {
            uint32_t other = nets->pins[p];
            if (other == item) continue;
            if (!near->seen[other]) near->others[near->count++] = other;
            near->seen[other] = true;
            for (uint32_t k = 0; k < kinds; ++k) {
                near->shared[(size_t)other * kinds + k] += cost[k];
                if (pins == 2) near->pair[(size_t)other * kinds + k] += cost[k];
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------
// joining for free

static bool order_allows(const berth_place_dag *dag, uint32_t item, uint32_t other) {
    if (!dag || item >= dag->count) return true;
    if (other >= dag->count) return false;
    uint32_t preds = dag->pred_start[item + 1] - dag->pred_start[item];
    uint32_t succs = dag->succ_start[item + 1] - dag->succ_start[item];
    return (preds == 1 && dag->preds[dag->pred_start[item]] == other) ||
           (succs == 1 && dag->succs[dag->succ_start[item]] == other);
}

static bool joins_free(const berth_place_problem *problem, const neighbors *near, uint32_t item,
                       uint32_t other) {
    const berth_place_nets *nets = near->nets;
    uint32_t kinds = nets->kind_count;
    for (uint32_t k = 0; k < kinds; ++k) {
        if (problem->kinds[k].device_count == 0) continue;
        double time = nets->time[(size_t)item * kinds + k];
        double pair = near->pair[(size_t)other * kinds + k];
        double outside = near->all[k] - near->shared[(size_t)other * kinds + k];
        if (isinf(nets->time[(size_t)other * kinds + k])) {
            // Never there; but item may be, and must not lose by leaving.
            if (outside > pair * (1 + ROUNDING)) return false;
            continue;
        }
        if (!(time + outside <= pair * (1 + ROUNDING))) return false;
    }
    return true;
}

uint32_t berth_place__merge_free(berth_arena *arena, const berth_place_problem *problem,
                                 const berth_place_nets *nets, const berth_place_dag *dag,
                                 uint32_t *out_partner) {
    bool ample = is_memory_ample(problem, nets);
    neighbors near = make_neighbors(arena, nets);
    bool *joined = berth_arena_new_array(arena, bool, (size_t)nets->item_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) out_partner[i] = BERTH_PLACE_NONE;
    for (uint32_t i = 0; i < nets->item_count; ++i) {
        if (joined[i] || nets->pin[i] != BERTH_PLACE_NONE) continue;
        if (!ample && nets->size_bytes[i] > 0) continue;
        look_around(&near, i);
        for (uint32_t n = 0; n < near.count; ++n) {
            uint32_t other = near.others[n];
            if (out_partner[other] != BERTH_PLACE_NONE || !order_allows(dag, i, other) ||
                !joins_free(problem, &near, i, other))
                continue;
            out_partner[i] = other;
            joined[other] = true;
            count++;
            break;
        }
    }
    return count;
}

// ------------------------------------------------------------------------------------------------
// tied below a limit

typedef struct tie {
    const berth_place_problem *problem;
    const berth_place_nets *nets;
    double *weight;  // [kinds]
    double *floor;   // [items]
    double bound;
    double limit;
} tie;

// Whether the two can be on different devices.
static bool can_part(const tie *t, uint32_t u, uint32_t v, const double *shared) {
    uint32_t kinds = t->nets->kind_count;
    for (uint32_t a = 0; a < kinds; ++a) {
        double load_u = t->nets->time[(size_t)u * kinds + a] + shared[a];
        if (t->problem->kinds[a].device_count == 0 || !(load_u < t->limit)) continue;
        for (uint32_t b = 0; b < kinds; ++b) {
            if (t->problem->kinds[b].device_count < (a == b ? 2u : 1u)) continue;
            double load_v = t->nets->time[(size_t)v * kinds + b] + shared[b];
            if (!(load_v < t->limit)) continue;
            double mean = t->bound - t->floor[u] - t->floor[v] + t->weight[a] * load_u +
                          t->weight[b] * load_v;
            if (mean < t->limit) return true;
        }
    }
    return false;
}

uint32_t berth_place__merge_tied(berth_arena *arena, const berth_place_problem *problem,
                                 const berth_place_nets *nets, double limit,
                                 uint32_t *out_partner) {
    tie t = {.problem = problem, .nets = nets, .limit = limit};
    t.weight = berth_arena_new_array(arena, double, (size_t)nets->kind_count + 1);
    t.floor = berth_arena_new_array(arena, double, (size_t)nets->item_count + 1);
    t.bound = berth_place__weigh_loads(problem, nets, t.weight, t.floor);
    uint32_t count = 0;
    for (uint32_t i = 0; i < nets->item_count; ++i) out_partner[i] = BERTH_PLACE_NONE;
    if (!isfinite(t.bound) || !isfinite(limit)) return 0;
    neighbors near = make_neighbors(arena, nets);
    for (uint32_t u = 0; u < nets->item_count; ++u) {
        look_around(&near, u);
        for (uint32_t n = 0; n < near.count; ++n) {
            uint32_t v = near.others[n];
            if (v > u || can_part(&t, u, v, &near.shared[(size_t)v * nets->kind_count])) continue;
            out_partner[u] = v;
            count++;
            break;
        }
    }
    return count;
}

// ------------------------------------------------------------------------------------------------

static uint32_t find_root(uint32_t *parent, uint32_t item) {
    while (parent[item] != item) item = parent[item] = parent[parent[item]];
    return item;
}

void berth_place__merge_apply(berth_arena *arena, const berth_place_nets *nets,
                              const uint32_t *partner, berth_place_classes *classes) {
    uint32_t n = nets->item_count;
    uint32_t *parent = berth_arena_new_array(arena, uint32_t, (size_t)n + 1);
    uint32_t *number = berth_arena_new_array(arena, uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < n; ++i) parent[i] = i;
    for (uint32_t i = 0; i < n; ++i) {
        if (partner[i] == BERTH_PLACE_NONE) continue;
        uint32_t a = find_root(parent, i);
        uint32_t b = find_root(parent, partner[i]);
        parent[a < b ? b : a] = a < b ? a : b;
    }
    classes->count = 0;
    for (uint32_t i = 0; i < n; ++i)
        number[i] = parent[i] == i ? classes->count++ : number[find_root(parent, i)];
    for (uint32_t g = 0; g < classes->group_count; ++g)
        classes->of_group[g] = number[nets->item_of_group[g]];
}
