// A proven bound on the latency of one sample in the published model (problem.h, one_subgraph).
//
// For every edge (u, w) and number q: a bound on done(u) in placements where u and w are not in one
// subgraph and no chain of subgraphs that ends at u's is longer than q, in topological order:
//   u by itself:  its smallest time after the largest bound of its inputs;
//   u in S:       S starts after the outside inputs it has. Let t be the largest of their bounds:
//                 every input whose bound exceeds t is inside, and what those need as well, by
//                 groups and convexity. So done(u) >= the least over t of t + the cheapest subgraph
//                 that holds all this and not w (a minimum cut, latency_cut.h), with memory in
//                 Lagrange's manner. What does not fit into a device is not a case.
// Few of the many t are looked at: the cheapest subgraph only grows as t falls, so whole ranges are
// covered by their ends, within a tolerance that gets smaller from pass to pass; and none that cannot be
// below what is known of u by itself.
//
// The same holds backwards, from where w begins to the end. An edge whose two bounds add up to no
// less than the target (the best known latency) is inside a subgraph in every better placement:
// that makes more to be inside everywhere, so passes in both directions go on by turns. Targets
// below the best known latency are tried as well; the largest that turns out to be impossible is
// the bound ("destructive" bounds: Klein and Scholl 1999).
#include "planner/solve/bounds/bound_latency.h"

#include <math.h>
#include <string.h>

#include "planner/solve/bounds/path_loads.h"
#include "planner/solve/bounds/path_sets.h"

enum { MOST_NODES = 16384, MOST_CHAIN = 24, PRICES = 4, WORK_PER_NODE = 400 };
static const double EDGES_SHARE = 0.5;      // of this strategy's budget, before paths are looked at
static const double PATH_SETS_SHARE = 0.6;  // of what that leaves
static const double PATH_LOADS_SHARE = 0.2;  // of what that leaves
#define ROUNDING 1e-11

static bool before(const berth_solve__bounder *b, uint32_t ancestor, uint32_t node) {
    return berth_solve__is_before(b->view, b->words, ancestor, node);
}

static bool spend(berth_solve__bounder *b) {
    if (b->work >= WORK_PER_NODE) {
        if (berth_place_spent(b->search, b->work / WORK_PER_NODE) ||
            berth_place_used(b->search, b->since) > b->share)
            b->stopped = true;
        b->work %= WORK_PER_NODE;
    }
    return !b->stopped;
}

// ------------------------------------------------------------------------------------------------
// the cheapest subgraph

// As for the cut's needs: convexity, and inputs that would be done too late from outside.
static uint8_t edge_needs(const void *user, uint32_t edge) {
    const berth_solve__bounder *b = user;
    const berth_solve__view *view = b->view;
    uint32_t from = view->edge_from[edge], to = view->edge_to[edge], node = b->cut_node;
    uint8_t needs = 0;
    if (before(b, from, node)) {
        if (to == node || before(b, to, node)) needs |= 1;
        uint32_t q = berth_solve__shorter(b, b->cut_chain);
        if (berth_solve__row(view->apart, b, edge)[q] >= b->cut_before) needs |= 2;
    }
    if (before(b, node, from)) needs |= 2;
    if (!view->backwards) return needs;
    return (uint8_t)((needs & 1) << 1 | needs >> 1);
}

// Sets sides and needs for t < before; false when there is no such subgraph.
static bool set_sides(berth_solve__bounder *b, berth_solve__latency_cut *cut, uint32_t node,
                      uint32_t q, const berth_solve__stair *step) {
    const berth_place_problem *problem = b->problem;
    memcpy(cut->side, b->outside, problem->group_count);
    cut->inside_count = 0;
    for (uint32_t i = 0; i < step->count; ++i) {
        uint32_t group = problem->group[b->order[i].node];
        uint8_t *side = &cut->side[group];
        if (*side == BERTH_SOLVE__OUTSIDE) return false;
        if (*side != BERTH_SOLVE__INSIDE) cut->inside[cut->inside_count++] = group;
        *side = BERTH_SOLVE__INSIDE;
    }
    b->cut_node = node;
    b->cut_chain = q;
    b->cut_before = step->before;
    cut->needs = edge_needs;
    cut->needs_user = b;
    b->work += step->count + problem->group_count / 16;
    return true;
}

// The cost of exactly the groups that must be inside.
static double cost_inside(const berth_solve__latency_cut *cut, double *out_bytes) {
    const berth_place_problem *problem = cut->problem;
    double cost = 0;
    *out_bytes = 0;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        if (cut->side[g] != BERTH_SOLVE__INSIDE) continue;
        cost += cut->group_time[g];
        *out_bytes += cut->group_bytes[g];
    }
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        bool inside = cut->side[problem->group[u]] == BERTH_SOLVE__INSIDE, split = false;
        for (uint32_t s = problem->succ_start[u]; s < problem->succ_start[u + 1] && !split; ++s)
            split = (cut->side[problem->group[problem->succ[s]]] == BERTH_SOLVE__INSIDE) != inside;
        if (split) cost += problem->transfer[(size_t)u * problem->kind_count + cut->kind];
    }
    return cost;
}

// Bound on the cost of a subgraph with the sides set, memory included: the Lagrangian dual of the
// capacity, by intersecting the two best lines a few times.
static double cheapest(berth_solve__bounder *b, berth_solve__latency_cut *cut, double enough) {
    double capacity = b->problem->kinds[cut->kind].capacity_bytes;
    cut->byte_cost = 0;
    double best = berth_solve__latency_cut_value(cut, enough, &b->work);
    if (best >= enough || cut->inside_bytes <= capacity) return best;
    double over = cut->inside_bytes, over_cost = best, under = 0;
    double under_cost = cost_inside(cut, &under);
    b->work += b->problem->edge_count;
    if (under > capacity * (1 + 1e-9)) return INFINITY;
    for (int i = 0; i < PRICES; ++i) {
        double price = (under_cost - over_cost) / (over - under);
        if (!(price > 0)) break;
        cut->byte_cost = price;
        double sum = berth_solve__latency_cut_value(cut, INFINITY, &b->work);
        if (isinf(sum)) return INFINITY;
        double value = sum - price * capacity, cost = sum - price * cut->inside_bytes;
        bool better = value > best * (1 + 1e-6);
        best = fmax(best, value);
        if (best >= enough || !better) break;
        if (cut->inside_bytes > capacity) {
            over = cut->inside_bytes;
            over_cost = cost;
        } else {
            under = cut->inside_bytes;
            under_cost = cost;
        }
    }
    return best;
}

typedef struct range {
    uint32_t first, end;  // of the stairs
    double cost;          // bound on the cost of each
} range;

// The least over the stairs of t + cost, not above `limit` (INFINITY then).
static double best_stair(berth_solve__bounder *b, berth_solve__latency_cut *cut, uint32_t node,
                         uint32_t q, double limit) {
    range stack[64];  // halves of halves: never more than the digits of an index
    uint32_t depth = 0;
    double best = INFINITY, slack = b->tolerance;
    stack[depth++] = (range){0, b->stair_count, 0};
    while (depth > 0 && spend(b)) {
        range r = stack[--depth];
        if (r.first >= r.end) continue;
        double floor = b->stairs[r.end - 1].after + r.cost;
        if (floor >= fmin(best, limit)) continue;
        if (best < INFINITY && floor >= best - slack) {
            best = floor;
            continue;
        }
        uint32_t at = r.first + (r.end - r.first) / 2;
        if (depth == 0 && r.first == 0 && r.cost == 0) at = 0;
        const berth_solve__stair *step = &b->stairs[at];
        double cost = INFINITY, least = b->stairs[r.end - 1].after;
        if (set_sides(b, cut, node, q, step))
            cost = fmax(r.cost, cheapest(b, cut, fmin(best, limit) - least));
        best = fmin(best, step->after + cost);
        stack[depth++] = (range){r.first, at, r.cost};
        if (!isinf(cost)) stack[depth++] = (range){at + 1, r.end, cost};
    }
    return best < limit ? best : INFINITY;
}

// ------------------------------------------------------------------------------------------------
// one pass

static bool *changes_of(const berth_solve__bounder *b, uint32_t node) {
    return b->changes + (size_t)node * (b->chain + 1);
}

// What a bound of the edge must stay below, when exactly q subgraphs follow each other up to it.
static double edge_limit(const berth_solve__bounder *b, uint32_t edge, uint32_t q) {
    uint32_t left = b->open_end ? b->chain : b->chain - q;
    return b->target - b->opposite[(size_t)edge * (b->chain + 1) + left];
}

static void bound_plain(berth_solve__bounder *b, uint32_t node) {
    const berth_solve__view *view = b->view;
    double *plain = berth_solve__row(b->plain, b, node);
    for (uint32_t q = 0; q <= b->chain; ++q) {
        double ready = 0;
        bool changed = q == 0;
        for (uint32_t p = view->pred_start[node]; p < view->pred_start[node + 1]; ++p) {
            ready = fmax(ready, berth_solve__row(view->apart, b, view->pred_edge[p])[q]);
            changed |= changes_of(b, view->pred[p])[q];
        }
        plain[q] = ready + b->plain_time[node];
        changes_of(b, node)[q] = changed;
    }
}

// The bound in a subgraph of the cut's kind that the edge's target is not in (`edge` NONE: an end); `known`
// where it is no less than that, as it is then of no use.
static double bound_inside(berth_solve__bounder *b, berth_solve__latency_cut *cut, uint32_t node,
                           uint32_t edge, uint32_t q, double known) {
    uint32_t apart = edge == BERTH_PLACE_NONE ? edge : b->view->edge_to[edge];
    double limit = edge == BERTH_PLACE_NONE ? b->target : edge_limit(b, edge, q);
    berth_solve__bound_outside(b, node, apart);
    bool can = b->outside[b->problem->group[node]] != BERTH_SOLVE__OUTSIDE && limit > 0;
    if (!can) return INFINITY;
    double found = best_stair(b, cut, node, q, fmin(limit, known));
    return isinf(found) && known < limit ? known : found;
}

static void bound_on_kind(berth_solve__bounder *b, uint32_t kind, uint32_t node) {
    berth_solve__latency_cut *cut = b->cuts[kind];
    const berth_solve__view *view = b->view;
    uint32_t first = view->succ_start[node], count = view->succ_start[node + 1] - first;
    if (!berth_solve__bound_base(b, kind, node)) return;
    for (uint32_t q = 1; q <= b->chain && spend(b); ++q) {
        // Else what was found for the q before holds.
        bool again = q == 1 || changes_of(b, node)[berth_solve__shorter(b, q)];
        if (again) berth_solve__bound_stairs(b, cut, node, q);
        for (uint32_t i = 0; i < (count > 0 ? count : 1); ++i) {
            uint32_t edge = count > 0 ? view->succ_edge[first + i] : BERTH_PLACE_NONE;
            double *value = &b->values[(size_t)i * (b->chain + 1) + q];
            if (again) b->found[i] = bound_inside(b, cut, node, edge, q, *value);
            *value = fmin(*value, b->found[i]);
        }
    }
}

// Keeps what is possible below the target, and never less than an earlier pass proved.
static void keep_edge(berth_solve__bounder *b, uint32_t edge, const double *values) {
    double *apart = berth_solve__row(b->view->apart, b, edge);
    double least = INFINITY;
    for (uint32_t q = 0; q <= b->chain; ++q) {
        if (values[q] < edge_limit(b, edge, q)) least = fmin(least, values[q]);
        apart[q] = fmax(apart[q], least);
    }
}

// Returns the bound of an end, 0 of other nodes.
static double bound_node(berth_solve__bounder *b, uint32_t node) {
    const berth_solve__view *view = b->view;
    uint32_t first = view->succ_start[node], count = view->succ_start[node + 1] - first;
    uint32_t columns = b->chain + 1;
    bound_plain(b, node);
    for (uint32_t i = 0; i < (count > 0 ? count : 1); ++i)
        memcpy(b->values + (size_t)i * columns, berth_solve__row(b->plain, b, node),
               columns * sizeof(double));
    for (uint32_t k = 0; k < b->kind_count; ++k) bound_on_kind(b, k, node);
    if (b->stopped) return 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t edge = view->succ_edge[first + i];
        keep_edge(b, edge, b->values + (size_t)i * columns);
        const double *apart = berth_solve__row(view->apart, b, edge);
        for (uint32_t q = 1; q <= b->chain; ++q) changes_of(b, node)[q] |= apart[q] != apart[q - 1];
    }
    return count > 0 ? 0 : b->values[b->chain];
}

// A pass in one direction, from where it was stopped: the bound it proves for placements below the target
// (INFINITY: there are none), 0 when the budget ran out.
static double bound_all(berth_solve__bounder *b, uint32_t direction, double tolerance) {
    b->view = &b->views[direction];
    b->opposite = b->views[1 - direction].apart;
    b->tolerance = tolerance;
    for (; b->place < b->problem->node_count; ++b->place) {
        double bound = bound_node(b, b->view->order[b->place]);
        if (!spend(b)) return 0;
        b->pass_bound = fmax(b->pass_bound, bound);
        if (b->pass_bound >= b->target) return INFINITY;
    }
    return b->pass_bound;
}

// ------------------------------------------------------------------------------------------------
// passes and targets

enum { MOST_PASSES = 12, MOST_TARGETS = 10, FINE_PASS = 6 };

static void set_target(berth_solve__bounder *b, double target, double finest) {
    b->best_target = target;
    b->target = target * (1 - ROUNDING);
    b->finest = finest;
    b->proven = b->pass_bound = 0;
    b->pass = b->place = 0;
}

// Passes until nothing is gained, or the budget ends: then the next call goes on there. Returns a bound on
// all placements: the target when none is below.
static double bound_target(berth_solve__bounder *b) {
    static const double tolerances[FINE_PASS] = {0.05, 0.02, 0.01, 0.003, 0.001, 0.0003};
    double target = b->best_target;
    for (; b->pass < MOST_PASSES && !b->stopped; ++b->pass, b->place = 0, b->pass_bound = 0) {
        double tolerance = fmax(b->pass < FINE_PASS ? tolerances[b->pass] : 0, b->finest);
        double bound = bound_all(b, b->pass % 2, target < INFINITY ? tolerance * target : 0);
        if (b->stopped) break;
        if (bound == INFINITY && target < INFINITY) return b->proven = b->target;
        bound = bound < INFINITY ? bound * (1 - ROUNDING) : 0;
        if (b->pass >= FINE_PASS && bound < b->proven * (1 + 1e-5)) break;
        b->proven = fmax(b->proven, bound);
        berth_place_bound(b->search, fmin(b->proven, target));
        if (target == INFINITY && b->pass >= 1) break;
    }
    return b->proven;
}

// The largest target that no placement is below, by halving what is left.
static void raise_targets(berth_solve__bounder *b, double best) {
    size_t bytes = (size_t)b->problem->edge_count * (b->chain + 1) * sizeof(double);
    berth_arena *scratch = berth_arena_create_child(b->search->arena);
    double *kept[2];  // what holds for the best value holds for smaller targets
    for (int v = 0; v < 2; ++v) kept[v] = berth_arena_copy(scratch, b->views[v].apart, bytes);
    double low = b->search->lower_bound, high = best;
    for (uint32_t i = 0; i < MOST_TARGETS && !b->stopped && low < high * (1 - 1e-6); ++i) {
        double target = low + (high - low) / 2;
        for (int v = 0; v < 2; ++v) memcpy(b->views[v].apart, kept[v], bytes);
        set_target(b, target, 1e-5);
        double proven = bound_target(b);
        low = fmax(low, proven);
        if (proven < target * (1 - 2 * ROUNDING))
            high = target;
        else
            berth_place_bound(b->search, proven);
    }
    for (int v = 0; v < 2; ++v) memcpy(b->views[v].apart, kept[v], bytes);
    set_target(b, best, 0);  // a pass that was stopped was for another one
    b->pass = MOST_PASSES;
    berth_arena_destroy(scratch);
}

// ------------------------------------------------------------------------------------------------
// tables

static void list_edges(berth_arena *arena, const berth_place_problem *problem,
                       berth_solve__view *view) {
    size_t bytes = ((size_t)problem->node_count + 1) * sizeof(uint32_t);
    uint32_t *pred_at = berth_arena_copy(arena, view->pred_start, bytes);
    uint32_t *succ_at = berth_arena_copy(arena, view->succ_start, bytes);
    view->pred_edge = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    view->succ_edge = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    for (uint32_t e = 0; e < problem->edge_count; ++e) {  // the lists are in the order of edges
        view->pred_edge[pred_at[view->edge_to[e]]++] = e;
        view->succ_edge[succ_at[view->edge_from[e]]++] = e;
    }
}

static void find_ancestors(berth_arena *arena, berth_solve__bounder *b, berth_solve__view *view) {
    view->before = berth_arena_array(arena, b->problem->node_count, b->words * sizeof(uint64_t));
    for (uint32_t i = 0; i < b->problem->node_count; ++i) {
        uint32_t node = view->order[i];
        uint64_t *set = view->before + node * b->words;
        for (uint32_t p = view->pred_start[node]; p < view->pred_start[node + 1]; ++p) {
            const uint64_t *more = view->before + view->pred[p] * b->words;
            for (size_t w = 0; w < b->words; ++w) set[w] |= more[w];
            set[view->pred[p] / 64] |= (uint64_t)1 << (view->pred[p] % 64);
        }
    }
}

// Edges begin with the longest ways of smallest times, whatever q.
static void make_view(berth_arena *arena, berth_solve__bounder *b, bool backwards) {
    const berth_place_problem *problem = b->problem;
    berth_solve__view *view = &b->views[backwards];
    uint32_t count = problem->node_count;
    *view = (berth_solve__view){
        .backwards = backwards,
        .pred_start = backwards ? problem->succ_start : problem->pred_start,
        .pred = backwards ? problem->succ : problem->pred,
        .succ_start = backwards ? problem->pred_start : problem->succ_start,
        .succ = backwards ? problem->pred : problem->succ,
        .edge_from = backwards ? problem->edge_to : problem->edge_from,
        .edge_to = backwards ? problem->edge_from : problem->edge_to,
        .order = berth_arena_new_array(arena, uint32_t, count),
    };
    double *way = berth_arena_new_array(arena, double, count);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t node = problem->topological[backwards ? count - 1 - i : i];
        view->order[i] = node;
        for (uint32_t p = view->pred_start[node]; p < view->pred_start[node + 1]; ++p)
            way[node] = fmax(way[node], way[view->pred[p]]);
        way[node] += b->least_time[node];
    }
    list_edges(arena, problem, view);
    find_ancestors(arena, b, view);
    view->apart = berth_arena_array(arena, problem->edge_count, (b->chain + 1) * sizeof(double));
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        for (uint32_t q = 0; q <= b->chain; ++q)
            berth_solve__row(view->apart, b, e)[q] = way[view->edge_from[e]];
}

// Times on a concurrent kind, and on any device.
static void find_times(berth_arena *arena, berth_solve__bounder *b) {
    const berth_place_problem *problem = b->problem;
    b->plain_time = berth_arena_new_array(arena, double, problem->node_count);
    b->least_time = berth_arena_new_array(arena, double, problem->node_count);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
        b->plain_time[n] = b->least_time[n] = INFINITY;
        const bool *fits = b->latency->fits + (size_t)problem->group[n] * problem->device_count;
        for (uint32_t d = 0; d < problem->device_count; ++d) {
            if (!fits[d]) continue;
            double time = problem->time[(size_t)n * problem->kind_count + problem->device_kind[d]];
            b->least_time[n] = fmin(b->least_time[n], time);
            if (!b->latency->single[d]) b->plain_time[n] = fmin(b->plain_time[n], time);
        }
    }
}

static void allocate(berth_arena *arena, berth_solve__bounder *b) {
    const berth_place_problem *problem = b->problem;
    size_t nodes = problem->node_count, columns = b->chain + 1, degree = 1;
    for (uint32_t n = 0; n < nodes; ++n) {
        uint32_t out = problem->succ_start[n + 1] - problem->succ_start[n];
        uint32_t in = problem->pred_start[n + 1] - problem->pred_start[n];
        uint32_t more = out > in ? out : in;
        if (more > degree) degree = more;
    }
    b->plain = berth_arena_array(arena, nodes, columns * sizeof(double));
    b->values = berth_arena_array(arena, degree, columns * sizeof(double));
    b->changes = berth_arena_array(arena, nodes, columns * sizeof(bool));
    size_t words = ((size_t)problem->group_count + 63) / 64;
    for (uint32_t k = 0; k < b->kind_count; ++k) {
        b->bases[k] = berth_arena_array(arena, nodes, words * sizeof(uint64_t));
        b->base_known[k] = berth_arena_new_array(arena, bool, nodes);
    }
    for (uint32_t n = 0; n < nodes; ++n) b->all_bytes += problem->size_bytes[n];
    b->base = berth_arena_new_array(arena, uint8_t, problem->group_count);
    b->outside = berth_arena_new_array(arena, uint8_t, problem->group_count);
    b->found = berth_arena_new_array(arena, double, degree);
    b->work_list = berth_arena_new_array(arena, uint32_t, nodes);
    // Every node is taken once and adds its neighbours; groups add their members once.
    size_t most = 1 + nodes + 2 * (size_t)problem->edge_count;
    b->heap = berth_arena_new_array(arena, berth_solve__candidate, most);
    b->order = berth_arena_new_array(arena, berth_solve__candidate, nodes);
    b->met = berth_arena_new_array(arena, bool, problem->group_count);
    b->visited = berth_arena_new_array(arena, bool, nodes);
    b->stairs = berth_arena_new_array(arena, berth_solve__stair, nodes + 1);
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return options->objective == BERTH_PLACE_LATENCY && problem->one_subgraph &&
           problem->node_count > 0 && problem->node_count <= MOST_NODES;
}

// False where there are too many kinds.
static bool create(berth_arena *arena, berth_solve__bounder *b, berth_place_search *search) {
    const berth_place_problem *problem = search->problem;
    *b = (berth_solve__bounder){.search = search, .problem = problem};
    b->latency = berth_solve__latency_create(arena, problem);
    b->words = ((size_t)problem->node_count + 63) / 64;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        if (problem->kinds[k].concurrent || problem->kinds[k].device_count == 0) continue;
        if (b->kind_count == BERTH_SOLVE__BOUND_KINDS) return false;
        b->chain += problem->kinds[k].device_count;
        b->cuts[b->kind_count++] = berth_solve__latency_cut_create(arena, b->latency, k);
    }
    b->open_end = b->chain > MOST_CHAIN;
    if (b->open_end) b->chain = MOST_CHAIN;
    find_times(arena, b);
    make_view(arena, b, false);
    make_view(arena, b, true);
    allocate(arena, b);
    return true;
}

// Passes for the best value with a share of what is left of the budget.
static double prove_some(berth_solve__bounder *b, double share) {
    b->since = berth_place_now(b->search);
    b->share = share;
    b->stopped = false;
    double proven = bound_target(b);
    berth_place_bound(b->search, proven);
    return proven;
}

typedef struct prover {  // kept from round to round
    berth_solve__bounder edges;
    bool has_edges;
    berth_solve__path_sets *paths;  // NULL = does not apply
} prover;

// Passes over edges first, as they mostly are the best bound and the first ones are quick; then what looks
// at paths and sees what edges do not; then all that is left for the edges.
static void prove(berth_place_search *search, prover *p) {
    berth_solve__bounder *edges = &p->edges;
    double best = search->best_value;
    if (p->has_edges && best < edges->best_target) {
        // What holds for placements below a value holds for those below a smaller one.
        edges->best_target = best;
        edges->target = best * (1 - ROUNDING);
        if (edges->pass > FINE_PASS) edges->pass = FINE_PASS;
    }
    if (p->has_edges) (void)prove_some(edges, EDGES_SHARE);
    if (p->paths) berth_place__path_sets_bound(p->paths, PATH_SETS_SHARE);
    if (search->round == 0) berth_place__path_loads_bound(search, PATH_LOADS_SHARE, NULL);
    if (!p->has_edges) return;
    (void)prove_some(edges, 1);
    if (best < INFINITY && !edges->stopped && !berth_place_proven(search))
        raise_targets(edges, best);
    search->finished = !edges->stopped;
}

static berth_status run(berth_place_search *search) {
    // Asked for by name it needs a placement, too; `auto` has some.
    if (search->best && search->best_value == INFINITY)
        BERTH_TRY(berth_place__dp_latency.run(search));
    prover *p = search->kept;
    if (!p) {
        search->kept = p = berth_arena_new(search->arena, prover);
        p->has_edges = create(search->arena, &p->edges, search);
        if (p->has_edges) set_target(&p->edges, search->best_value, 0);
        p->paths = berth_place__path_sets_create(search->arena, search);
    }
    prove(search, p);
    return BERTH_OK;
}

const berth_place_strategy berth_place__bound_latency = {
    .name = "bound",
    .doc = "bounds on completions along the edges; latency with one subgraph per device",
    .auto_percent = 60,
    .again_percent = 60,
    .applies = applies,
    .run = run,
};
