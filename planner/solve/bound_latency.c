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
// covered by their ends, within a tolerance that gets smaller from pass to pass.
#include <math.h>
#include <string.h>

#include "planner/solve/latency_cut.h"
#include "planner/solve/strategies.h"

enum { MOST_NODES = 4096, MOST_CHAIN = 24, MOST_KINDS = 8, PRICES = 4, WORK_PER_NODE = 64 };
#define ROUNDING 1e-11

typedef struct candidate {
    double reach;  // the largest t for which the node must be inside
    uint32_t node;
} candidate;

typedef struct stair {     // t from `after` up: the first `count` nodes of the order are inside
    double before, after;  // t < before
    uint32_t count;
} stair;

typedef struct bounder {
    berth_place_search *search;
    const berth_place_problem *problem;
    berth_solve__latency *latency;
    uint32_t chain;  // longest chain of subgraphs
    bool open_end;   // there are more devices than that
    uint32_t kind_count;
    berth_solve__latency_cut *cuts[MOST_KINDS];  // of the kinds with one subgraph per device
    double *plain_time;                          // [node_count] alone on a concurrent kind
    double *apart;        // [edge_count * (chain + 1)] done(source) when not with the target
    double *plain;        // [node_count * (chain + 1)] done when by itself
    double *last;         // [node_count * (chain + 1)] of ends: done
    bool *changes;        // [node_count * (chain + 1)] inputs' bounds differ from those of q - 1
    uint32_t *pred_edge;  // [edge_count] edge of each entry of problem->pred
    uint32_t *succ_edge;
    uint64_t *before;  // [node_count * words] bit sets of ancestors
    size_t words;
    uint8_t *base;         // [group_count] sides for a node, whoever is apart from it
    uint32_t *work_list;   // [node_count]
    candidate *heap;       // [2 * (node_count + edge_count) + group members]
    candidate *order;      // [node_count]
    uint32_t order_count;  // those that fit
    bool order_full;       // another one would not fit
    double order_next;     // its reach
    double *found;         // [node_count] for the edges of a node
    uint8_t *outside;      // [group_count]
    bool *visited;         // [node_count]
    stair *stairs;         // [node_count + 1]
    uint32_t stair_count;
    double tolerance;
    uint64_t work;
    bool stopped;
} bounder;

static bool has_bit(const bounder *b, uint32_t node, uint32_t ancestor) {
    return b->before[node * b->words + ancestor / 64] >> (ancestor % 64) & 1;
}

static double *row_of(double *table, const bounder *b, uint32_t index) {
    return table + (size_t)index * (b->chain + 1);
}

// Chain length of what comes before a subgraph: the last row stands for any length when there are
// more devices than rows.
static uint32_t before_of(const bounder *b, uint32_t q) {
    return b->open_end && q == b->chain ? q : q - 1;
}

static bool spend(bounder *b) {
    if (b->work >= WORK_PER_NODE) {
        if (berth_place_spent(b->search, b->work / WORK_PER_NODE)) b->stopped = true;
        b->work %= WORK_PER_NODE;
    }
    return !b->stopped;
}

// ------------------------------------------------------------------------------------------------
// what cannot be inside together with a node

// Marks a node's group as outside. Nodes whose ancestors or descendants are then cut off from
// `node` follow by way of the list.
static void put_outside(bounder *b, uint8_t *side, uint32_t other, uint32_t *count) {
    const berth_place_problem *problem = b->problem;
    uint32_t group = problem->group[other];
    if (side[group] == BERTH_SOLVE__OUTSIDE) return;
    side[group] = BERTH_SOLVE__OUTSIDE;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        b->work_list[(*count)++] = problem->group_nodes[i];
}

// Convexity: beyond a node that is outside, nothing is inside.
static void spread_outside(bounder *b, uint8_t *side, uint32_t node, uint32_t count) {
    const berth_place_problem *problem = b->problem;
    while (count > 0) {
        uint32_t other = b->work_list[--count];
        b->work += 4;
        if (has_bit(b, node, other))
            for (uint32_t p = problem->pred_start[other]; p < problem->pred_start[other + 1]; ++p)
                put_outside(b, side, problem->pred[p], &count);
        if (has_bit(b, other, node))
            for (uint32_t s = problem->succ_start[other]; s < problem->succ_start[other + 1]; ++s)
                put_outside(b, side, problem->succ[s], &count);
    }
}

// Bytes of what lies between an ancestor and a node, both included: all inside with them.
static double bytes_between(bounder *b, uint32_t ancestor, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    double bytes = problem->size_bytes[ancestor] + problem->size_bytes[node];
    const uint64_t *set = b->before + node * b->words;
    for (size_t w = 0; w < b->words; ++w)
        for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
            uint32_t between = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
            if (has_bit(b, between, ancestor)) bytes += problem->size_bytes[between];
        }
    b->work += b->words;
    return bytes;
}

// False when the node cannot be on the kind at all.
static bool find_base(bounder *b, const berth_solve__latency_cut *cut, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    double capacity = problem->kinds[cut->kind].capacity_bytes;
    uint32_t first = berth_place_kind_first(problem, cut->kind), count = 0;
    memset(b->base, BERTH_SOLVE__FREE, problem->group_count);
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        bool fits = false;
        for (uint32_t d = first; d < first + problem->kinds[cut->kind].device_count; ++d)
            fits |= b->latency->fits[(size_t)g * problem->device_count + d];
        if (fits && cut->group_bytes[g] <= capacity) continue;
        put_outside(b, b->base, problem->group_nodes[problem->group_start[g]], &count);
        spread_outside(b, b->base, node, count);
        count = 0;
    }
    for (uint32_t i = 0; i < 2 * problem->node_count && capacity < INFINITY; ++i) {
        bool late = i < problem->node_count;  // nearest first on both sides
        uint32_t other =
            late ? problem->topological[i] : problem->topological[2 * problem->node_count - 1 - i];
        if (!(late ? has_bit(b, other, node) : has_bit(b, node, other))) continue;
        if (b->base[problem->group[other]] == BERTH_SOLVE__OUTSIDE) continue;
        double bytes = late ? bytes_between(b, node, other) : bytes_between(b, other, node);
        if (bytes <= capacity * (1 + 1e-9)) continue;
        put_outside(b, b->base, other, &count);
        spread_outside(b, b->base, node, count);
        count = 0;
    }
    return b->base[problem->group[node]] != BERTH_SOLVE__OUTSIDE;
}

// ------------------------------------------------------------------------------------------------
// what must be inside together with a node, by t

static void push(bounder *b, uint32_t *count, double reach, uint32_t node) {
    if (b->visited[node]) return;
    uint32_t at = (*count)++;
    for (; at > 0 && b->heap[(at - 1) / 2].reach < reach; at = (at - 1) / 2)
        b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = (candidate){reach, node};
}

static candidate pop(bounder *b, uint32_t *count) {
    candidate top = b->heap[0], moved = b->heap[--*count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < *count; child = 2 * at + 1) {
        if (child + 1 < *count && b->heap[child + 1].reach > b->heap[child].reach) ++child;
        if (b->heap[child].reach <= moved.reach) break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = moved;
    return top;
}

static void push_needs(bounder *b, uint32_t *count, candidate c, uint32_t node, uint32_t q) {
    const berth_place_problem *problem = b->problem;
    uint32_t group = problem->group[c.node];
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        push(b, count, c.reach, problem->group_nodes[i]);
    bool early = has_bit(b, node, c.node), late = has_bit(b, c.node, node);
    for (uint32_t p = problem->pred_start[c.node]; p < problem->pred_start[c.node + 1]; ++p) {
        uint32_t pred = problem->pred[p];
        double apart = row_of(b->apart, b, b->pred_edge[p])[before_of(b, q)];
        if (late && has_bit(b, pred, node))
            push(b, count, c.reach, pred);
        else if (has_bit(b, node, pred) && apart > 0)
            push(b, count, fmin(c.reach, apart), pred);
    }
    for (uint32_t s = problem->succ_start[c.node]; early && s < problem->succ_start[c.node + 1];
         ++s)
        if (has_bit(b, node, problem->succ[s])) push(b, count, c.reach, problem->succ[s]);
}

// Fills order and stairs: widest paths from the node (as Dijkstra's algorithm finds them).
static void find_stairs(bounder *b, const berth_solve__latency_cut *cut, uint32_t node,
                        uint32_t q) {
    const berth_place_problem *problem = b->problem;
    double capacity = problem->kinds[cut->kind].capacity_bytes, bytes = 0;
    uint32_t count = 0;
    memset(b->visited, 0, problem->node_count * sizeof(bool));
    b->order_count = b->stair_count = 0;
    b->order_full = false;
    b->order_next = 0;
    push(b, &count, INFINITY, node);
    double reach = INFINITY;
    while (count > 0) {
        candidate c = pop(b, &count);
        b->work += 8;
        if (b->visited[c.node]) continue;
        if (c.reach < reach) {
            b->stairs[b->stair_count++] = (stair){reach, c.reach, b->order_count};
            reach = c.reach;
        }
        bytes += problem->size_bytes[c.node];
        if (bytes > capacity * (1 + 1e-9) ||
            b->base[problem->group[c.node]] == BERTH_SOLVE__OUTSIDE)
            return;
        b->visited[c.node] = true;
        b->order[b->order_count++] = c;
        push_needs(b, &count, c, node, q);
    }
    b->stairs[b->stair_count++] = (stair){reach, 0, b->order_count};
}

// ------------------------------------------------------------------------------------------------
// the cheapest subgraph

// Sets sides and needs for t < before; false when there is no such subgraph.
static bool set_sides(bounder *b, berth_solve__latency_cut *cut, uint32_t node, uint32_t q,
                      const uint8_t *outside, const stair *step) {
    const berth_place_problem *problem = b->problem;
    memcpy(cut->side, outside, problem->group_count);
    for (uint32_t i = 0; i < step->count; ++i) {
        uint8_t *side = &cut->side[problem->group[b->order[i].node]];
        if (*side == BERTH_SOLVE__OUTSIDE) return false;
        *side = BERTH_SOLVE__INSIDE;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = problem->edge_from[e], to = problem->edge_to[e];
        uint8_t needs = 0;
        if (has_bit(b, node, from)) {
            if (to == node || has_bit(b, node, to)) needs |= 1;
            if (row_of(b->apart, b, e)[before_of(b, q)] >= step->before) needs |= 2;
        }
        if (has_bit(b, from, node)) needs |= 2;
        cut->needs[e] = needs;
    }
    b->work += problem->edge_count / 2;
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
static double cheapest(bounder *b, berth_solve__latency_cut *cut, double enough) {
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
static double best_stair(bounder *b, berth_solve__latency_cut *cut, uint32_t node, uint32_t q,
                         const uint8_t *outside, double limit) {
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
        const stair *step = &b->stairs[at];
        double cost = INFINITY, least = b->stairs[r.end - 1].after;
        if (set_sides(b, cut, node, q, outside, step))
            cost = fmax(r.cost, cheapest(b, cut, fmin(best, limit) - least));
        best = fmin(best, step->after + cost);
        stack[depth++] = (range){r.first, at, r.cost};
        if (!isinf(cost)) stack[depth++] = (range){at + 1, r.end, cost};
    }
    return best < limit ? best : INFINITY;
}

// ------------------------------------------------------------------------------------------------

// Bound on done(node) inside a subgraph that `apart` (NONE: nobody in particular) is not in.
static double inside_bound(bounder *b, berth_solve__latency_cut *cut, uint32_t node, uint32_t apart,
                           uint32_t q) {
    const berth_place_problem *problem = b->problem;
    uint8_t *outside = b->outside;
    double limit = b->search->best_value;
    uint32_t count = 0;
    memcpy(outside, b->base, problem->group_count);
    if (apart != BERTH_PLACE_NONE) {
        limit -= b->latency->tail[apart];
        put_outside(b, outside, apart, &count);
        spread_outside(b, outside, node, count);
    }
    if (outside[problem->group[node]] == BERTH_SOLVE__OUTSIDE) return INFINITY;
    return best_stair(b, cut, node, q, outside, limit * (1 - ROUNDING));
}

static void bound_plain(bounder *b, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    for (uint32_t q = 0; q <= b->chain; ++q) {
        double ready = 0;
        bool changed = false;
        for (uint32_t p = problem->pred_start[node]; p < problem->pred_start[node + 1]; ++p) {
            ready = fmax(ready, row_of(b->apart, b, b->pred_edge[p])[q]);
            changed |= b->changes[(size_t)problem->pred[p] * (b->chain + 1) + q];
        }
        row_of(b->plain, b, node)[q] = ready + b->plain_time[node];
        b->changes[(size_t)node * (b->chain + 1) + q] = changed || q == 0;
    }
}

static void bound_edge(bounder *b, berth_solve__latency_cut *cut, uint32_t node, uint32_t edge,
                       uint32_t q, bool again, double *found) {
    if (again) *found = inside_bound(b, cut, node, b->problem->edge_to[edge], q);
    double *apart = row_of(b->apart, b, edge);
    apart[q] = fmin(apart[q], *found);
}

static void bound_on_kind(bounder *b, berth_solve__latency_cut *cut, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    uint32_t first = problem->succ_start[node], end = problem->succ_start[node + 1];
    const bool *changes = b->changes + (size_t)node * (b->chain + 1);
    if (!find_base(b, cut, node)) return;
    for (uint32_t q = 1; q <= b->chain && spend(b); ++q) {
        bool again = q == 1 || changes[before_of(b, q)];
        if (again) find_stairs(b, cut, node, q);
        for (uint32_t s = first; s < end; ++s)
            bound_edge(b, cut, node, b->succ_edge[s], q, again, &b->found[s - first]);
        if (first < end) continue;
        if (again) b->found[0] = inside_bound(b, cut, node, BERTH_PLACE_NONE, q);
        double *last = row_of(b->last, b, node);
        last[q] = fmin(last[q], b->found[0]);
    }
}

static void bound_node(bounder *b, uint32_t node) {
    const berth_place_problem *problem = b->problem;
    uint32_t first = problem->succ_start[node], end = problem->succ_start[node + 1];
    double best = b->search->best_value * (1 - ROUNDING);
    bound_plain(b, node);
    const double *plain = row_of(b->plain, b, node);
    for (uint32_t q = 0; q <= b->chain; ++q) {
        row_of(b->last, b, node)[q] = plain[q];
        for (uint32_t s = first; s < end; ++s)
            row_of(b->apart, b, b->succ_edge[s])[q] =
                plain[q] + b->latency->tail[problem->succ[s]] < best ? plain[q] : INFINITY;
    }
    for (uint32_t k = 0; k < b->kind_count; ++k) bound_on_kind(b, b->cuts[k], node);
    for (uint32_t s = first; s < end; ++s) {
        const double *apart = row_of(b->apart, b, b->succ_edge[s]);
        for (uint32_t q = 1; q <= b->chain; ++q)
            b->changes[(size_t)node * (b->chain + 1) + q] |= apart[q] != apart[q - 1];
    }
}

// One pass over the nodes. False when the budget ran out.
static bool bound_all(bounder *b) {
    const berth_place_problem *problem = b->problem;
    double bound = 0;
    memset(b->apart, 0, (size_t)problem->edge_count * (b->chain + 1) * sizeof(double));
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t node = problem->topological[i];
        bound_node(b, node);
        if (!spend(b)) return false;
        if (problem->succ_start[node] == problem->succ_start[node + 1])
            bound = fmax(bound, row_of(b->last, b, node)[b->chain]);
    }
    // Cases not below the best value were left out: at least that, then.
    bound = fmin(bound, b->search->best_value) * (1 - ROUNDING);
    if (bound < INFINITY) berth_place_bound(b->search, bound);
    return true;
}

// ------------------------------------------------------------------------------------------------

static void list_edges(berth_arena *arena, bounder *b) {
    const berth_place_problem *problem = b->problem;
    uint32_t *pred_at = berth_arena_copy(arena, problem->pred_start,
                                         ((size_t)problem->node_count + 1) * sizeof(uint32_t));
    uint32_t *succ_at = berth_arena_copy(arena, problem->succ_start,
                                         ((size_t)problem->node_count + 1) * sizeof(uint32_t));
    b->pred_edge = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    b->succ_edge = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    for (uint32_t e = 0; e < problem->edge_count; ++e) {  // the lists are in the order of edges
        b->pred_edge[pred_at[problem->edge_to[e]]++] = e;
        b->succ_edge[succ_at[problem->edge_from[e]]++] = e;
    }
}

static void find_ancestors(berth_arena *arena, bounder *b) {
    const berth_place_problem *problem = b->problem;
    b->words = ((size_t)problem->node_count + 63) / 64;
    b->before = berth_arena_array(arena, problem->node_count, b->words * sizeof(uint64_t));
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t node = problem->topological[i];
        uint64_t *set = b->before + node * b->words;
        for (uint32_t p = problem->pred_start[node]; p < problem->pred_start[node + 1]; ++p) {
            uint32_t pred = problem->pred[p];
            for (size_t w = 0; w < b->words; ++w) set[w] |= b->before[pred * b->words + w];
            set[pred / 64] |= (uint64_t)1 << (pred % 64);
        }
    }
}

static void find_plain_times(berth_arena *arena, bounder *b) {
    const berth_place_problem *problem = b->problem;
    b->plain_time = berth_arena_new_array(arena, double, problem->node_count);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
        b->plain_time[n] = INFINITY;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (!b->latency->single[d] &&
                b->latency->fits[(size_t)problem->group[n] * problem->device_count + d])
                b->plain_time[n] =
                    fmin(b->plain_time[n],
                         problem->time[(size_t)n * problem->kind_count + problem->device_kind[d]]);
    }
}

static void allocate(berth_arena *arena, bounder *b) {
    const berth_place_problem *problem = b->problem;
    size_t nodes = problem->node_count, edges = problem->edge_count, rows = b->chain + 1;
    b->apart = berth_arena_array(arena, edges, rows * sizeof(double));
    b->plain = berth_arena_array(arena, nodes, rows * sizeof(double));
    b->last = berth_arena_array(arena, nodes, rows * sizeof(double));
    b->changes = berth_arena_array(arena, nodes, rows * sizeof(bool));
    b->base = berth_arena_new_array(arena, uint8_t, problem->group_count);
    b->outside = berth_arena_new_array(arena, uint8_t, problem->group_count);
    b->found = berth_arena_new_array(arena, double, nodes + 1);
    b->work_list = berth_arena_new_array(arena, uint32_t, nodes);
    // Every node is taken once, and adds its neighbours; groups add each member for each.
    size_t most = 1 + 2 * edges;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        size_t members = problem->group_start[g + 1] - problem->group_start[g];
        most += members * members;
    }
    b->heap = berth_arena_new_array(arena, candidate, most);
    b->order = berth_arena_new_array(arena, candidate, nodes);
    b->visited = berth_arena_new_array(arena, bool, nodes);
    b->stairs = berth_arena_new_array(arena, stair, nodes + 1);
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return options->objective == BERTH_PLACE_LATENCY && problem->one_subgraph &&
           problem->node_count > 0 && problem->node_count <= MOST_NODES;
}

static void run_passes(berth_place_search *search, berth_arena *scratch) {
    static const double tolerances[] = {0.02, 0.005, 0.001, 0.0001, 0};
    const berth_place_problem *problem = search->problem;
    bounder b = {.search = search, .problem = problem};
    b.latency = berth_solve__latency_create(scratch, problem);
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        if (problem->kinds[k].concurrent || problem->kinds[k].device_count == 0) continue;
        if (b.kind_count == MOST_KINDS) return;
        b.chain += problem->kinds[k].device_count;
        b.cuts[b.kind_count++] = berth_solve__latency_cut_create(scratch, b.latency, k);
    }
    b.open_end = b.chain > MOST_CHAIN;
    if (b.open_end) b.chain = MOST_CHAIN;
    list_edges(scratch, &b);
    find_ancestors(scratch, &b);
    find_plain_times(scratch, &b);
    allocate(scratch, &b);
    for (size_t i = 0; i < sizeof(tolerances) / sizeof(tolerances[0]); ++i) {
        b.tolerance = search->best_value < INFINITY ? search->best_value * tolerances[i] : 0;
        if (!bound_all(&b)) break;
    }
}

static berth_status run(berth_place_search *search) {
    berth_arena *scratch = berth_arena_create_child(search->arena);
    run_passes(search, scratch);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__latency_bound = {
    .name = "latency-bound",
    .doc = "bounds on completions along the edges; latency with one subgraph per device",
    .auto_percent = 100,
    .applies = applies,
    .run = run,
};
