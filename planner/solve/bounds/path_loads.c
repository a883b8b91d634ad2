#include "planner/solve/bounds/path_loads.h"

#include <math.h>

#include "planner/solve/bounds/memory_limits.h"

enum { MOST_STEPS = 4000, LOOK_EVERY = 100 };
static const double FIRST_BLUR = 0.15;  // of the smooth maximum, relative to it
static const double LEAST_HOPE = 0.8;   // of the best bound, to look at copies as well
static const double LEAST_BLUR = 2e-4;
static const double FIRST_PART_BLUR = 0.3;  // of the fractions' differences
static const double LEAST_PART_BLUR = 0.01;
static const double LEAST_GAIN = 5e-4;  // of LOOK_EVERY steps, relative, to go on
static const double ROUNDING = 1e-9;    // what the sums may be wrong by, relatively

typedef struct weigher {
    const berth_place_problem *problem;
    double *time;    // [node_count * kind_count] INFINITY = not there
    double *mean;    // [node_count] of the times of the fractions of a node
    double *load;    // [kind_count] per device; 0 for kinds that run any number of nodes
    double *head;    // [node_count] smooth longest path up to the end of the node
    double *most;    // [node_count] largest head of its predecessors
    double *sum;     // [node_count] of exp((head - most) / blur) over them
    double *flow;    // [node_count] weight of the paths through it
    double *weight;  // [kind_count] of the loads
    berth_place__memory *memory;
    double *cost;      // [node_count * kind_count] by the weights
    uint32_t *chosen;  // [node_count] kind
    double blur;
    // What copies cost; NULL where they are not looked at.
    double *part;         // [node_count * kind_count] fractions of the nodes
    double *copy;         // [edge_count, as in problem->pred] time of the copies on the edge
    double *link;         // [kind_count] time of the copies on a link of the kind, on average
    double *link_weight;  // [kind_count]
    double *pull;         // [node_count * kind_count] what a node there costs in copies, by weights
    double part_blur;
} weigher;

static bool is_serial(const berth_place_problem *problem, uint32_t kind) {
    return !problem->kinds[kind].concurrent && problem->kinds[kind].device_count > 0;
}

static weigher weigher_create(berth_arena *arena, const berth_place_problem *problem, bool copies,
                              const bool *able) {
    uint32_t nodes = problem->node_count, kinds = problem->kind_count;
    weigher w = {.problem = problem};
    w.time = berth_arena_new_array(arena, double, (size_t)nodes *kinds);
    w.mean = berth_arena_new_array(arena, double, nodes);
    w.load = berth_arena_new_array(arena, double, kinds);
    w.head = berth_arena_new_array(arena, double, nodes);
    w.most = berth_arena_new_array(arena, double, nodes);
    w.sum = berth_arena_new_array(arena, double, nodes);
    w.flow = berth_arena_new_array(arena, double, nodes);
    w.weight = berth_arena_new_array(arena, double, kinds);
    w.memory = berth_place__memory_create(arena, problem);
    w.cost = berth_arena_new_array(arena, double, (size_t)nodes *kinds);
    w.chosen = berth_arena_new_array(arena, uint32_t, nodes);
    w.link = berth_arena_new_array(arena, double, kinds);
    w.link_weight = berth_arena_new_array(arena, double, kinds);
    if (copies) {
        w.part = berth_arena_new_array(arena, double, (size_t)nodes *kinds);
        w.pull = berth_arena_new_array(arena, double, (size_t)nodes *kinds);
        w.copy = berth_arena_new_array(arena, double, problem->edge_count);
    }
    for (uint32_t v = 0; v < nodes; ++v) {
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        for (uint32_t k = 0; k < kinds; ++k) {
            size_t cell = (size_t)v * kinds + k;
            bool out = problem->kinds[k].device_count == 0 || (able && !able[cell]) ||
                       !berth_place_has_room(problem, problem->group[v], k) ||
                       (pin != BERTH_PLACE_NONE && problem->device_kind[pin] != k);
            w.time[cell] = out ? INFINITY : problem->time[cell];
        }
    }
    return w;
}

// ------------------------------------------------------------------------------------------------
// copies

static double transfer(const weigher *w, uint32_t node, uint32_t kind) {
    // In the model of subgraphs, what is not in one moves nothing.
    if (w->problem->one_subgraph && !is_serial(w->problem, kind)) return 0;
    return w->problem->transfer[(size_t)node * w->problem->kind_count + kind];
}

static double part_of(const weigher *w, uint32_t node, uint32_t kind) {
    return w->part[(size_t)node * w->problem->kind_count + kind];
}

// Times of the copies on all edges, and of the links: what of a node is there and not of all its
// readers is written, what of a reader is there and not of the node is read.
static void look_at_copies(weigher *w) {
    const berth_place_problem *problem = w->problem;
    for (uint32_t k = 0; k < problem->kind_count; ++k) w->link[k] = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e) {
            uint32_t u = problem->pred[e];
            w->copy[e] = 0;
            for (uint32_t k = 0; k < problem->kind_count; ++k)
                w->copy[e] += transfer(w, u, k) * fabs(part_of(w, u, k) - part_of(w, v, k));
        }
    for (uint32_t u = 0; u < problem->node_count; ++u)
        for (uint32_t k = 0; k < problem->kind_count; ++k) {
            double time = transfer(w, u, k), written = 0, read = 0;
            if (time == 0 || problem->kinds[k].device_count == 0) continue;
            for (uint32_t s = problem->succ_start[u]; s < problem->succ_start[u + 1]; ++s) {
                double more = part_of(w, u, k) - part_of(w, problem->succ[s], k);
                written = fmax(written, more);
                read = fmax(read, -more);
            }
            w->link[k] += time * (written + read) / problem->kinds[k].device_count;
        }
}

// Adds what the node's copies on links of the kind cost to it and its readers, `cost` for all of it in
// one direction. Shares of the readers are those of the smooth maximum over them and nothing.
static void pull_link(weigher *w, uint32_t u, uint32_t kind, double cost, double sign) {
    const berth_place_problem *problem = w->problem;
    uint32_t first = problem->succ_start[u], end = problem->succ_start[u + 1];
    double here = part_of(w, u, kind), most = 0;
    for (uint32_t s = first; s < end; ++s)
        most = fmax(most, sign * (here - part_of(w, problem->succ[s], kind)));
    double sum = exp(-most / w->part_blur);
    for (uint32_t s = first; s < end; ++s)
        sum += exp((sign * (here - part_of(w, problem->succ[s], kind)) - most) / w->part_blur);
    for (uint32_t s = first; s < end; ++s) {
        uint32_t v = problem->succ[s];
        double more = sign * (here - part_of(w, v, kind));
        double share = sign * cost * exp((more - most) / w->part_blur) / sum;
        w->pull[(size_t)u * problem->kind_count + kind] += share;
        w->pull[(size_t)v * problem->kind_count + kind] -= share;
    }
}

static void pull_links(weigher *w) {
    const berth_place_problem *problem = w->problem;
    for (uint32_t u = 0; u < problem->node_count; ++u)
        for (uint32_t k = 0; k < problem->kind_count; ++k) {
            double cost = transfer(w, u, k) * w->link_weight[k];
            if (problem->kinds[k].device_count > 0) cost /= problem->kinds[k].device_count;
            if (cost < 1e-12) continue;
            pull_link(w, u, k, cost, 1);
            pull_link(w, u, k, cost, -1);
        }
}

// The same of the copies on an edge that so much of the paths runs through.
static void pull_edge(weigher *w, uint32_t u, uint32_t v, double flow) {
    for (uint32_t k = 0; k < w->problem->kind_count; ++k) {
        double more = part_of(w, u, k) - part_of(w, v, k);
        double share = flow * transfer(w, u, k) * more / (fabs(more) + w->part_blur);
        w->pull[(size_t)u * w->problem->kind_count + k] += share;
        w->pull[(size_t)v * w->problem->kind_count + k] -= share;
    }
}

// ------------------------------------------------------------------------------------------------
// steps

// When u's value can be where the other end of an edge is.
static double along(const weigher *w, uint32_t edge) {
    return w->head[w->problem->pred[edge]] + (w->copy ? w->copy[edge] : 0);
}

// Weights of the loads and links, which are one where copies and computation take turns. Returns their
// sum.
static double weigh_kinds(weigher *w, double largest) {
    const berth_place_problem *problem = w->problem;
    double all = 0;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        bool turns = problem->one_subgraph, serial = is_serial(problem, k);
        double load = w->load[k] + (turns ? w->link[k] : 0);
        w->weight[k] = serial ? exp((load - largest) / w->blur) : 0;
        w->link_weight[k] = 0;
        if (w->copy && !turns) w->link_weight[k] = exp((w->link[k] - largest) / w->blur);
        all += w->weight[k] + w->link_weight[k];
        if (w->copy && turns) w->link_weight[k] = w->weight[k];
    }
    return all;
}

// Heads, and the smooth maximum over paths and loads.
static double look_forwards(weigher *w) {
    const berth_place_problem *problem = w->problem;
    double largest = 0, all = 0;
    if (w->copy) look_at_copies(w);
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        uint32_t first = problem->pred_start[v], end = problem->pred_start[v + 1];
        double most = 0, sum = 0;
        for (uint32_t e = first; e < end; ++e) most = fmax(most, along(w, e));
        for (uint32_t e = first; e < end; ++e) sum += exp((along(w, e) - most) / w->blur);
        w->most[v] = most;
        w->sum[v] = sum;
        w->head[v] = w->mean[v] + most + (sum > 1 ? w->blur * log(sum) : 0);
        largest = fmax(largest, w->head[v]);
    }
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        largest = fmax(largest, problem->one_subgraph ? w->load[k] + w->link[k]
                                                      : fmax(w->load[k], w->link[k]));
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        bool ends = problem->succ_start[v + 1] == problem->succ_start[v];
        w->flow[v] = ends ? exp((w->head[v] - largest) / w->blur) : 0;
        all += w->flow[v];
    }
    all += weigh_kinds(w, largest);
    for (uint32_t v = 0; v < problem->node_count; ++v) w->flow[v] /= all;
    for (uint32_t k = 0; k < problem->kind_count; ++k) w->weight[k] /= all;
    for (uint32_t k = 0; k < problem->kind_count; ++k) w->link_weight[k] /= all;
    return largest;
}

// What ends in a node comes from its predecessors: the flow's shares are those of the maximum.
static void look_backwards(weigher *w) {
    const berth_place_problem *problem = w->problem;
    size_t cells = (size_t)problem->node_count * problem->kind_count;
    for (size_t i = 0; w->copy && i < cells; ++i) w->pull[i] = 0;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t v = problem->topological[i];
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e) {
            double flow = w->flow[v] * exp((along(w, e) - w->most[v]) / w->blur) / w->sum[v];
            w->flow[problem->pred[e]] += flow;
            if (w->copy && flow > 0) pull_edge(w, problem->pred[e], v, flow);
        }
    }
    if (w->copy) pull_links(w);
}

// What each node costs on each kind by the weights.
static void find_costs(weigher *w) {
    const berth_place_problem *problem = w->problem;
    uint32_t kinds = problem->kind_count;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        for (uint32_t k = 0; k < kinds; ++k) {
            size_t cell = (size_t)v * kinds + k;
            w->cost[cell] = INFINITY;
            if (isinf(w->time[cell])) continue;
            w->cost[cell] =
                w->time[cell] * (w->flow[v] + w->weight[k] / problem->kinds[k].device_count);
            if (w->copy) w->cost[cell] += w->pull[cell];
        }
}

// Moves `part` of the node to the kind.
static void move_part(weigher *w, uint32_t node, uint32_t kind, double part) {
    size_t cell = (size_t)node * w->problem->kind_count + kind;
    w->mean[node] += part * w->time[cell];
    if (w->copy) w->part[cell] += part;
    if (is_serial(w->problem, kind))
        w->load[kind] += part * w->time[cell] / w->problem->kinds[kind].device_count;
}

// The bound of these weights; moves `part` of every node to the kind that is best for it by them, in
// as far as the memory allows.
static double step_towards(weigher *w, double part) {
    const berth_place_problem *problem = w->problem;
    uint32_t kinds = problem->kind_count;
    find_costs(w);
    berth_place__split split;
    double bound = berth_place__memory_choose(w->memory, w->cost, w->chosen, &split);
    if (isinf(bound)) return 0;  // something is able nowhere: others say so
    for (uint32_t k = 0; k < kinds; ++k) w->load[k] -= part * w->load[k];
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        w->mean[v] -= part * w->mean[v];
        for (uint32_t k = 0; w->copy && k < kinds; ++k)
            w->part[(size_t)v * kinds + k] -= part * w->part[(size_t)v * kinds + k];
        double here = v == split.node ? split.share : 0;
        move_part(w, v, w->chosen[v], part * (1 - here));
        if (here > 0) move_part(w, v, split.kind, part * here);
    }
    return bound;
}

// Returns the best bound, which is also the search's.
static double climb(berth_place_search *search, double share, const bool *able, bool copies) {
    const berth_place_problem *problem = search->problem;
    double scale = search->best_value < INFINITY ? search->best_value : search->lower_bound;
    if (!(scale > 0)) return 0;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    const berth_place_since since = berth_place_now(search);
    weigher w = weigher_create(scratch, problem, copies, able);
    uint64_t work = 1 + ((uint64_t)problem->node_count + problem->edge_count) / (copies ? 5 : 16);
    work += (uint64_t)problem->node_count * w.memory->limit_count / 16;
    double best = 0, looked = 0;
    (void)step_towards(&w, 1);  // without weights: each node somewhere
    for (uint32_t i = 0; i < MOST_STEPS && !berth_place_spent(search, work); ++i) {
        w.part_blur = fmax(FIRST_PART_BLUR / sqrt(i + 1.0), LEAST_PART_BLUR);
        w.blur = fmax(FIRST_BLUR / sqrt(i + 1.0), LEAST_BLUR) * scale;
        (void)look_forwards(&w);
        look_backwards(&w);
        best = fmax(best, step_towards(&w, 2.0 / (i + 3.0)));
        if (berth_place_used(search, since) > share) break;
        if (i % LOOK_EVERY != LOOK_EVERY - 1) continue;
        if (best < looked * (1 + LEAST_GAIN)) break;
        looked = best;
    }
    double proven = best * (1 - ROUNDING);
    berth_place_bound(search, able ? fmin(proven, search->best_value) : proven);
    berth_arena_destroy(scratch);
    return best;
}

void berth_place__path_loads_bound(berth_place_search *search, double share, const bool *able) {
    double best = climb(search, share / 2, able, false);
    // Copies need longer, and are looked at where the bound is not far below what others prove. Those
    // over direct links cost less.
    if (search->problem->direct_ms || best < LEAST_HOPE * search->lower_bound) return;
    (void)climb(search, share / 2, able, true);
}
