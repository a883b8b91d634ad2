#include "planner/solve/latency/gain.h"

#include <math.h>
#include <string.h>

berth_solve__gain *berth_solve__gain_create(berth_arena *arena, const berth_place_problem *problem,
                                            uint32_t kind) {
    berth_solve__gain *g = berth_arena_new(arena, berth_solve__gain);
    uint32_t groups = problem->group_count, edges = problem->edge_count;
    g->problem = problem;
    g->kind = kind;
    g->gain = berth_arena_new_array(arena, double, groups);
    g->enter = berth_arena_new_array(arena, double, edges);
    g->inside = berth_arena_new_array(arena, bool, groups);
    g->edge_arc = berth_arena_new_array(arena, uint32_t, edges);
    berth_solve__network_begin(arena, &g->net, problem, kind, groups, 0);
    berth_solve__network_add_values(&g->net);
    for (uint32_t e = 0; e < edges; ++e) {
        uint32_t from = problem->group[problem->edge_from[e]];
        uint32_t to = problem->group[problem->edge_to[e]];
        g->edge_arc[e] =
            from == to ? BERTH_PLACE_NONE : berth_solve__network_add_pair(&g->net, to, from, 0, 0);
    }
    berth_solve__network_end(&g->net);
    g->supply = berth_arena_new_array(arena, double, g->net.vertex_count);
    g->demand = berth_arena_new_array(arena, double, g->net.vertex_count);
    return g;
}

// Sets capacities, supplies and demands; returns the sum of the supplies.
static double prepare(berth_solve__gain *g) {
    const berth_place_problem *problem = g->problem;
    double sum = 0;
    for (uint32_t a = 0; a < g->net.arc_count; ++a)
        g->net.room[a] = g->net.base[a] >= BERTH_SOLVE__UNLIMITED
                             ? BERTH_SOLVE__UNLIMITED
                             : g->net.base[a] * g->transfer_cost;
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (g->edge_arc[e] != BERTH_PLACE_NONE) g->net.room[g->edge_arc[e]] = g->enter[e];
    memset(g->supply, 0, g->net.vertex_count * sizeof(double));
    memset(g->demand, 0, g->net.vertex_count * sizeof(double));
    for (uint32_t i = 0; i < problem->group_count; ++i) {
        double gain = g->gain[i];
        if (gain > 0) sum += g->supply[i] = gain;
        if (gain < 0) g->demand[i] = fmin(-gain, BERTH_SOLVE__UNLIMITED);
    }
    g->net.tolerance = sum * 1e-13;
    return sum;
}

// Distances from what has supplies left. Returns whether a demand is within reach.
static bool find_levels(berth_solve__gain *g, uint64_t *work) {
    uint32_t count = 0;
    bool found = false;
    memset(g->net.level, 0xff, g->net.vertex_count * sizeof(uint32_t));
    for (uint32_t v = 0; v < g->net.vertex_count; ++v) {
        if (g->supply[v] <= g->net.tolerance) continue;
        g->net.level[v] = 0;
        g->net.queue[count++] = v;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t vertex = g->net.queue[i];
        g->net.next[vertex] = g->net.first[vertex];
        found |= g->demand[vertex] > g->net.tolerance;
        *work += g->net.first[vertex + 1] - g->net.first[vertex];
        for (uint32_t a = g->net.first[vertex]; a < g->net.first[vertex + 1]; ++a) {
            uint32_t arc = g->net.arcs[a], to = g->net.head[arc];
            if (g->net.room[arc] <= g->net.tolerance || g->net.level[to] != UINT32_MAX) continue;
            g->net.level[to] = g->net.level[vertex] + 1;
            g->net.queue[count++] = to;
        }
    }
    return found;
}

// Sends what the path and its two ends allow; returns how many of its arcs are kept.
static uint32_t send(berth_solve__gain *g, uint32_t source, uint32_t sink, uint32_t depth) {
    double least = fmin(g->supply[source], g->demand[sink]);
    for (uint32_t i = 0; i < depth; ++i) least = fmin(least, g->net.room[g->net.path[i]]);
    g->supply[source] -= least;
    g->demand[sink] -= least;
    return berth_solve__network_send(&g->net, depth, least);
}

// Sends flow from one supply along shortest ways until none is left (a blocking flow).
static void send_from(berth_solve__gain *g, uint32_t source, uint64_t *work) {
    uint32_t depth = 0, vertex = source;
    while (g->supply[source] > g->net.tolerance) {
        if (g->demand[vertex] > g->net.tolerance) {
            *work += depth;
            depth = send(g, source, vertex, depth);
            vertex = depth > 0 ? g->net.head[g->net.path[depth - 1]] : source;
            continue;
        }
        bool advanced = false;
        for (; g->net.next[vertex] < g->net.first[vertex + 1]; ++g->net.next[vertex]) {
            uint32_t arc = g->net.arcs[g->net.next[vertex]], to = g->net.head[arc];
            ++*work;
            if (g->net.room[arc] <= g->net.tolerance ||
                g->net.level[to] != g->net.level[vertex] + 1)
                continue;
            g->net.path[depth++] = arc;
            vertex = to;
            advanced = true;
            break;
        }
        if (advanced) continue;
        if (depth == 0) break;
        vertex = g->net.head[g->net.path[--depth] ^ 1];
        g->net.next[vertex]++;
    }
}

double berth_solve__gain_best(berth_solve__gain *g, uint64_t *out_work) {
    double best = prepare(g);
    *out_work += g->net.arc_count / 4;
    while (find_levels(g, out_work))
        for (uint32_t v = 0; v < g->problem->group_count; ++v)
            if (g->supply[v] > g->net.tolerance) send_from(g, v, out_work);
    // What could not be sent on is the gain.
    best = 0;
    for (uint32_t v = 0; v < g->problem->group_count; ++v) best += g->supply[v];
    for (uint32_t v = 0; v < g->problem->group_count; ++v)
        g->inside[v] = g->net.level[v] != UINT32_MAX;
    return best;
}
