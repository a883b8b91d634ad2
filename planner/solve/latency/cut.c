#include "planner/solve/latency/cut.h"

#include <math.h>
#include <string.h>

berth_solve__latency_cut *berth_solve__latency_cut_create(berth_arena *arena,
                                                          const berth_solve__latency *latency,
                                                          uint32_t kind) {
    const berth_place_problem *problem = latency->problem;
    berth_solve__latency_cut *cut = berth_arena_new(arena, berth_solve__latency_cut);
    uint32_t groups = problem->group_count, nodes = problem->node_count;
    cut->problem = problem;
    cut->kind = kind;
    cut->group_time = berth_arena_new_array(arena, double, groups);
    cut->group_bytes = latency->group_bytes;
    cut->side = berth_arena_new_array(arena, uint8_t, groups);
    cut->needs = berth_arena_new_array(arena, uint8_t, problem->edge_count);
    cut->edge_arc = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    cut->group_arc = berth_arena_new_array(arena, uint32_t, groups);
    berth_solve__network_begin(arena, &cut->net, problem, kind, groups + 1,
                               groups);  // the sink is last
    double largest = 0;
    for (uint32_t n = 0; n < nodes; ++n) {
        double time = problem->time[(size_t)n * problem->kind_count + kind];
        cut->group_time[problem->group[n]] += isinf(time) ? 0 : time;
        largest = fmax(largest, problem->transfer[(size_t)n * problem->kind_count + kind]);
    }
    for (uint32_t g = 0; g < groups; ++g)
        cut->group_arc[g] =
            berth_solve__network_add_pair(&cut->net, g, groups, cut->group_time[g], 0);
    berth_solve__network_add_values(&cut->net);
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = problem->group[problem->edge_from[e]];
        uint32_t to = problem->group[problem->edge_to[e]];
        cut->edge_arc[e] = from == to ? BERTH_PLACE_NONE
                                      : berth_solve__network_add_pair(&cut->net, from, to, 0, 0);
    }
    berth_solve__network_end(&cut->net);
    cut->net.tolerance = largest * 1e-12;
    return cut;
}

static bool is_source(const berth_solve__latency_cut *cut, uint32_t vertex) {
    return vertex < cut->problem->group_count && cut->side[vertex] == BERTH_SOLVE__INSIDE;
}

static bool is_sink(const berth_solve__latency_cut *cut, uint32_t vertex) {
    uint32_t groups = cut->problem->group_count;
    return vertex == groups || (vertex < groups && cut->side[vertex] == BERTH_SOLVE__OUTSIDE);
}

// Sets the arcs' capacities; returns what the groups inside cost for certain.
static double prepare(berth_solve__latency_cut *cut) {
    const berth_place_problem *problem = cut->problem;
    double sum = 0;
    memcpy(cut->net.room, cut->net.base, cut->net.arc_count * sizeof(double));
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        double cost = cut->group_time[g] + cut->byte_cost * cut->group_bytes[g];
        cut->net.room[cut->group_arc[g]] = cost;
        if (cut->side[g] != BERTH_SOLVE__INSIDE) continue;
        sum += cost;
        cut->net.room[cut->group_arc[g]] = 0;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        if (cut->edge_arc[e] == BERTH_PLACE_NONE || cut->needs[e] == 0) continue;
        if (cut->needs[e] & 1) cut->net.room[cut->edge_arc[e]] = BERTH_SOLVE__UNLIMITED;
        if (cut->needs[e] & 2) cut->net.room[cut->edge_arc[e] + 1] = BERTH_SOLVE__UNLIMITED;
    }
    return sum;
}

// Distances from the groups inside. Returns whether the sink is within reach.
static bool find_levels(berth_solve__latency_cut *cut, uint64_t *work) {
    uint32_t count = 0;
    bool found = false;
    memset(cut->net.level, 0xff, cut->net.vertex_count * sizeof(uint32_t));
    for (uint32_t g = 0; g < cut->problem->group_count; ++g) {
        if (cut->side[g] != BERTH_SOLVE__INSIDE) continue;
        cut->net.level[g] = 0;
        cut->net.queue[count++] = g;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t vertex = cut->net.queue[i];
        cut->net.next[vertex] = cut->net.first[vertex];
        *work += cut->net.first[vertex + 1] - cut->net.first[vertex];
        for (uint32_t a = cut->net.first[vertex]; a < cut->net.first[vertex + 1]; ++a) {
            uint32_t arc = cut->net.arcs[a], to = cut->net.head[arc];
            if (cut->net.room[arc] <= cut->net.tolerance || cut->net.level[to] != UINT32_MAX)
                continue;
            if (is_sink(cut, to)) {
                found = true;
                continue;
            }
            cut->net.level[to] = cut->net.level[vertex] + 1;
            cut->net.queue[count++] = to;
        }
    }
    return found;
}

// Pushes flow along shortest ways from one source until none is left (a blocking flow).
static double push_from(berth_solve__latency_cut *cut, uint32_t source, double enough,
                        uint64_t *work) {
    uint32_t depth = 0, vertex = source;
    double flow = 0;
    while (flow < enough) {
        bool sink = depth > 0 && is_sink(cut, vertex);
        if (sink) {
            double least = INFINITY;
            for (uint32_t i = 0; i < depth; ++i)
                least = fmin(least, cut->net.room[cut->net.path[i]]);
            flow += least;
            *work += depth;
            depth = berth_solve__network_send(&cut->net, depth, least);
            vertex = depth > 0 ? cut->net.head[cut->net.path[depth - 1]] : source;
            continue;
        }
        bool advanced = false;
        for (; cut->net.next[vertex] < cut->net.first[vertex + 1]; ++cut->net.next[vertex]) {
            uint32_t arc = cut->net.arcs[cut->net.next[vertex]], to = cut->net.head[arc];
            ++*work;
            if (cut->net.room[arc] <= cut->net.tolerance) continue;
            if (!is_sink(cut, to) && cut->net.level[to] != cut->net.level[vertex] + 1) continue;
            cut->net.path[depth++] = arc;
            vertex = to;
            advanced = true;
            break;
        }
        if (advanced) continue;
        if (depth == 0) break;
        vertex = cut->net.head[cut->net.path[--depth] ^ 1];
        cut->net.next[vertex]++;
    }
    return flow;
}

double berth_solve__latency_cut_value(berth_solve__latency_cut *cut, double enough,
                                      uint64_t *out_work) {
    double value = prepare(cut);
    *out_work += cut->net.arc_count / 8;
    while (value < enough && find_levels(cut, out_work)) {
        for (uint32_t g = 0; g < cut->problem->group_count && value < enough; ++g)
            if (is_source(cut, g)) value += push_from(cut, g, enough - value, out_work);
    }
    if (value >= BERTH_SOLVE__UNLIMITED / 2) return INFINITY;
    cut->inside_bytes = 0;
    if (value < enough)
        for (uint32_t g = 0; g < cut->problem->group_count; ++g)
            if (cut->net.level[g] != UINT32_MAX) cut->inside_bytes += cut->group_bytes[g];
    return value;
}
