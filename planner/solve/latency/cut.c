#include "planner/solve/latency/cut.h"

#include <math.h>
#include <string.h>

enum { FURTHER = 2 };  // levels

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
    cut->inside = berth_arena_new_array(arena, uint32_t, groups);
    cut->group_arc = berth_arena_new_array(arena, uint32_t, groups);
    cut->edge_of = berth_arena_new_array(arena, uint32_t, problem->edge_count);
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
    cut->edges_from = cut->net.arc_count;
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = problem->group[problem->edge_from[e]];
        uint32_t to = problem->group[problem->edge_to[e]];
        if (from == to) continue;
        uint32_t arc = berth_solve__network_add_pair(&cut->net, from, to, 0, 0);
        cut->edge_of[(arc - cut->edges_from) / 2] = e;
    }
    berth_solve__network_end(&cut->net);
    cut->net.tolerance = largest * 1e-12;
    cut->opened = berth_arena_new_array(arena, uint64_t, cut->net.vertex_count);
    memset(cut->net.level, 0xff, cut->net.vertex_count * sizeof(uint32_t));
    return cut;
}

static bool is_sink(const berth_solve__latency_cut *cut, uint32_t vertex) {
    uint32_t groups = cut->problem->group_count;
    return vertex == groups || (vertex < groups && cut->side[vertex] == BERTH_SOLVE__OUTSIDE);
}

static double cost_of(const berth_solve__latency_cut *cut, uint32_t group) {
    return cut->group_time[group] + cut->byte_cost * cut->group_bytes[group];
}

// Sets the rooms of a vertex's arcs, once in a call. Most calls come to few of the vertices.
static void open_vertex(berth_solve__latency_cut *cut, uint32_t vertex, uint64_t *work) {
    if (cut->opened[vertex] == cut->call) return;
    cut->opened[vertex] = cut->call;
    const uint32_t *arcs = cut->net.arcs;
    uint32_t end = cut->net.first[vertex + 1];
    *work += end - cut->net.first[vertex];
    for (uint32_t a = cut->net.first[vertex]; a < end; ++a) {
        uint32_t arc = arcs[a];
        cut->net.room[arc] = cut->net.base[arc];
        if (arc < cut->edges_from) continue;
        uint8_t needs = cut->needs(cut->needs_user, cut->edge_of[(arc - cut->edges_from) / 2]);
        if (needs >> (arc & 1) & 1) cut->net.room[arc] = BERTH_SOLVE__UNLIMITED;
    }
    if (vertex < cut->problem->group_count)
        cut->net.room[cut->group_arc[vertex]] =
            cut->side[vertex] == BERTH_SOLVE__INSIDE ? 0 : cost_of(cut, vertex);
}

static void reach(berth_solve__latency_cut *cut, uint32_t vertex, uint32_t level, uint64_t *work) {
    cut->net.level[vertex] = level;
    cut->net.next[vertex] = cut->net.first[vertex + 1];  // until it is its turn
    cut->net.queue[cut->reached++] = vertex;
    open_vertex(cut, vertex, work);
}

// Distances from the groups inside, to a little beyond the nearest way to the sink: mostly all flow finds
// room there. Returns whether the sink is within reach; if not, what is has a level.
static bool find_levels(berth_solve__latency_cut *cut, uint64_t *work) {
    uint32_t last = UINT32_MAX;
    while (cut->reached > 0) cut->net.level[cut->net.queue[--cut->reached]] = UINT32_MAX;
    for (uint32_t i = 0; i < cut->inside_count; ++i) reach(cut, cut->inside[i], 0, work);
    for (uint32_t i = 0; i < cut->reached; ++i) {
        uint32_t vertex = cut->net.queue[i], level = cut->net.level[vertex];
        if (level > last) break;
        cut->net.next[vertex] = cut->net.first[vertex];
        *work += cut->net.first[vertex + 1] - cut->net.first[vertex];
        for (uint32_t a = cut->net.first[vertex]; a < cut->net.first[vertex + 1]; ++a) {
            uint32_t arc = cut->net.arcs[a], to = cut->net.head[arc];
            if (cut->net.room[arc] <= cut->net.tolerance || cut->net.level[to] != UINT32_MAX)
                continue;
            if (!is_sink(cut, to))
                reach(cut, to, level + 1, work);
            else if (last == UINT32_MAX)
                last = level + FURTHER;
        }
    }
    return last != UINT32_MAX;
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
    double value = 0;
    cut->call++;
    for (uint32_t i = 0; i < cut->inside_count; ++i) value += cost_of(cut, cut->inside[i]);
    *out_work += 16 + cut->inside_count;
    while (value < enough && find_levels(cut, out_work)) {
        for (uint32_t i = 0; i < cut->inside_count && value < enough; ++i)
            value += push_from(cut, cut->inside[i], enough - value, out_work);
    }
    if (value >= BERTH_SOLVE__UNLIMITED / 2) return INFINITY;
    cut->inside_bytes = 0;
    for (uint32_t i = 0; i < cut->reached && value < enough; ++i) {
        uint32_t vertex = cut->net.queue[i];
        if (vertex < cut->problem->group_count) cut->inside_bytes += cut->group_bytes[vertex];
    }
    return value;
}
