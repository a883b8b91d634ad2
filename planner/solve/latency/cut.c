#include "planner/solve/latency/cut.h"

#include <math.h>
#include <string.h>

#define UNLIMITED 1e300

typedef struct builder {
    berth_solve__latency_cut *cut;
    uint32_t *tail;  // [arc_count] vertex it leaves
    uint32_t *pins;  // [group_count] distinct groups at a value
    uint32_t *seen;  // [group_count] stamps
} builder;

static uint32_t add_pair(builder *b, uint32_t from, uint32_t to, double there, double back) {
    berth_solve__latency_cut *cut = b->cut;
    uint32_t arc = cut->arc_count;
    cut->head[arc] = to;
    cut->base[arc] = there;
    b->tail[arc] = from;
    cut->head[arc + 1] = from;
    cut->base[arc + 1] = back;
    b->tail[arc + 1] = to;
    cut->arc_count += 2;
    return arc;
}

static void add_value(builder *b, uint32_t node) {
    berth_solve__latency_cut *cut = b->cut;
    const berth_place_problem *problem = cut->problem;
    double transfer = problem->transfer[(size_t)node * problem->kind_count + cut->kind];
    uint32_t count = 0;
    b->pins[count++] = problem->group[node];
    b->seen[problem->group[node]] = node + 1;
    for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s) {
        uint32_t group = problem->group[problem->succ[s]];
        if (b->seen[group] == node + 1) continue;
        b->seen[group] = node + 1;
        b->pins[count++] = group;
    }
    if (count < 2 || transfer <= 0) return;
    if (count == 2) {
        add_pair(b, b->pins[0], b->pins[1], transfer, transfer);
        return;
    }
    uint32_t some = cut->vertex_count++, all = cut->vertex_count++;
    add_pair(b, some, all, transfer, 0);
    for (uint32_t i = 0; i < count; ++i) {
        add_pair(b, b->pins[i], some, UNLIMITED, 0);
        add_pair(b, all, b->pins[i], UNLIMITED, 0);
    }
}

static void sort_arcs(berth_arena *arena, builder *b) {
    berth_solve__latency_cut *cut = b->cut;
    cut->first = berth_arena_new_array(arena, uint32_t, (size_t)cut->vertex_count + 1);
    cut->arcs = berth_arena_new_array(arena, uint32_t, cut->arc_count);
    for (uint32_t a = 0; a < cut->arc_count; ++a) cut->first[b->tail[a]]++;
    for (uint32_t v = 1; v <= cut->vertex_count; ++v) cut->first[v] += cut->first[v - 1];
    for (uint32_t a = cut->arc_count; a-- > 0;) cut->arcs[--cut->first[b->tail[a]]] = a;
}

berth_solve__latency_cut *berth_solve__latency_cut_create(berth_arena *arena,
                                                          const berth_solve__latency *latency,
                                                          uint32_t kind) {
    const berth_place_problem *problem = latency->problem;
    berth_solve__latency_cut *cut = berth_arena_new(arena, berth_solve__latency_cut);
    uint32_t groups = problem->group_count, nodes = problem->node_count;
    size_t most =
        2 * ((size_t)groups + problem->edge_count + 3 * ((size_t)nodes + problem->edge_count));
    cut->problem = problem;
    cut->kind = kind;
    cut->group_time = berth_arena_new_array(arena, double, groups);
    cut->group_bytes = latency->group_bytes;
    cut->side = berth_arena_new_array(arena, uint8_t, groups);
    cut->needs = berth_arena_new_array(arena, uint8_t, problem->edge_count);
    cut->head = berth_arena_new_array(arena, uint32_t, most);
    cut->base = berth_arena_new_array(arena, double, most);
    cut->edge_arc = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    cut->group_arc = berth_arena_new_array(arena, uint32_t, groups);
    builder b = {.cut = cut};
    b.tail = berth_arena_new_array(arena, uint32_t, most);
    b.pins = berth_arena_new_array(arena, uint32_t, groups);
    b.seen = berth_arena_new_array(arena, uint32_t, groups);
    cut->vertex_count = groups + 1;  // the sink comes after the groups
    double largest = 0;
    for (uint32_t n = 0; n < nodes; ++n) {
        double time = problem->time[(size_t)n * problem->kind_count + kind];
        cut->group_time[problem->group[n]] += isinf(time) ? 0 : time;
        largest = fmax(largest, problem->transfer[(size_t)n * problem->kind_count + kind]);
    }
    for (uint32_t g = 0; g < groups; ++g)
        cut->group_arc[g] = add_pair(&b, g, groups, cut->group_time[g], 0);
    for (uint32_t n = 0; n < nodes; ++n) add_value(&b, n);
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = problem->group[problem->edge_from[e]];
        uint32_t to = problem->group[problem->edge_to[e]];
        cut->edge_arc[e] = from == to ? BERTH_PLACE_NONE : add_pair(&b, from, to, 0, 0);
    }
    sort_arcs(arena, &b);
    cut->room = berth_arena_new_array(arena, double, cut->arc_count);
    cut->level = berth_arena_new_array(arena, uint32_t, cut->vertex_count);
    cut->next = berth_arena_new_array(arena, uint32_t, cut->vertex_count);
    cut->queue = berth_arena_new_array(arena, uint32_t, cut->vertex_count);
    cut->path = berth_arena_new_array(arena, uint32_t, cut->vertex_count);
    cut->tolerance = largest * 1e-12;
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
    memcpy(cut->room, cut->base, cut->arc_count * sizeof(double));
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        double cost = cut->group_time[g] + cut->byte_cost * cut->group_bytes[g];
        cut->room[cut->group_arc[g]] = cost;
        if (cut->side[g] != BERTH_SOLVE__INSIDE) continue;
        sum += cost;
        cut->room[cut->group_arc[g]] = 0;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        if (cut->edge_arc[e] == BERTH_PLACE_NONE || cut->needs[e] == 0) continue;
        if (cut->needs[e] & 1) cut->room[cut->edge_arc[e]] = UNLIMITED;
        if (cut->needs[e] & 2) cut->room[cut->edge_arc[e] + 1] = UNLIMITED;
    }
    return sum;
}

// Distances from the groups inside. Returns whether the sink is within reach.
static bool find_levels(berth_solve__latency_cut *cut, uint64_t *work) {
    uint32_t count = 0;
    bool found = false;
    memset(cut->level, 0xff, cut->vertex_count * sizeof(uint32_t));
    for (uint32_t g = 0; g < cut->problem->group_count; ++g) {
        if (cut->side[g] != BERTH_SOLVE__INSIDE) continue;
        cut->level[g] = 0;
        cut->queue[count++] = g;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t vertex = cut->queue[i];
        cut->next[vertex] = cut->first[vertex];
        *work += cut->first[vertex + 1] - cut->first[vertex];
        for (uint32_t a = cut->first[vertex]; a < cut->first[vertex + 1]; ++a) {
            uint32_t arc = cut->arcs[a], to = cut->head[arc];
            if (cut->room[arc] <= cut->tolerance || cut->level[to] != UINT32_MAX) continue;
            if (is_sink(cut, to)) {
                found = true;
                continue;
            }
            cut->level[to] = cut->level[vertex] + 1;
            cut->queue[count++] = to;
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
            for (uint32_t i = 0; i < depth; ++i) least = fmin(least, cut->room[cut->path[i]]);
            for (uint32_t i = 0; i < depth; ++i) {
                cut->room[cut->path[i]] -= least;
                cut->room[cut->path[i] ^ 1] += least;
            }
            flow += least;
            *work += depth;
            uint32_t kept = 0;  // arcs before the first that is full now
            while (kept < depth && cut->room[cut->path[kept]] > cut->tolerance) ++kept;
            depth = kept;
            vertex = depth > 0 ? cut->head[cut->path[depth - 1]] : source;
            continue;
        }
        bool advanced = false;
        for (; cut->next[vertex] < cut->first[vertex + 1]; ++cut->next[vertex]) {
            uint32_t arc = cut->arcs[cut->next[vertex]], to = cut->head[arc];
            ++*work;
            if (cut->room[arc] <= cut->tolerance) continue;
            if (!is_sink(cut, to) && cut->level[to] != cut->level[vertex] + 1) continue;
            cut->path[depth++] = arc;
            vertex = to;
            advanced = true;
            break;
        }
        if (advanced) continue;
        if (depth == 0) break;
        vertex = cut->head[cut->path[--depth] ^ 1];
        cut->next[vertex]++;
    }
    return flow;
}

double berth_solve__latency_cut_value(berth_solve__latency_cut *cut, double enough,
                                      uint64_t *out_work) {
    double value = prepare(cut);
    *out_work += cut->arc_count / 8;
    while (value < enough && find_levels(cut, out_work)) {
        for (uint32_t g = 0; g < cut->problem->group_count && value < enough; ++g)
            if (is_source(cut, g)) value += push_from(cut, g, enough - value, out_work);
    }
    if (value >= UNLIMITED / 2) return INFINITY;
    cut->inside_bytes = 0;
    if (value < enough)
        for (uint32_t g = 0; g < cut->problem->group_count; ++g)
            if (cut->level[g] != UINT32_MAX) cut->inside_bytes += cut->group_bytes[g];
    return value;
}
