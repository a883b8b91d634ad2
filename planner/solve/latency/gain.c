#include "planner/solve/latency/gain.h"

#include <math.h>
#include <string.h>

#define UNLIMITED 1e300

typedef struct builder {
    berth_solve__gain *gain;
    uint32_t *tail;  // [arc_count] vertex it leaves
    uint32_t *pins;  // [group_count] distinct groups at a value
    uint32_t *seen;  // [group_count] stamps
} builder;

static uint32_t add_pair(builder *b, uint32_t from, uint32_t to, double there, double back) {
    berth_solve__gain *g = b->gain;
    uint32_t arc = g->arc_count;
    g->head[arc] = to;
    g->base[arc] = there;
    b->tail[arc] = from;
    g->head[arc + 1] = from;
    g->base[arc + 1] = back;
    b->tail[arc + 1] = to;
    g->arc_count += 2;
    return arc;
}

static void add_value(builder *b, uint32_t node) {
    berth_solve__gain *g = b->gain;
    const berth_place_problem *problem = g->problem;
    double transfer = problem->transfer[(size_t)node * problem->kind_count + g->kind];
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
    uint32_t some = g->vertex_count++, all = g->vertex_count++;
    add_pair(b, some, all, transfer, 0);
    for (uint32_t i = 0; i < count; ++i) {
        add_pair(b, b->pins[i], some, UNLIMITED, 0);
        add_pair(b, all, b->pins[i], UNLIMITED, 0);
    }
}

static void sort_arcs(berth_arena *arena, builder *b) {
    berth_solve__gain *g = b->gain;
    g->first = berth_arena_new_array(arena, uint32_t, (size_t)g->vertex_count + 1);
    g->arcs = berth_arena_new_array(arena, uint32_t, g->arc_count);
    for (uint32_t a = 0; a < g->arc_count; ++a) g->first[b->tail[a]]++;
    for (uint32_t v = 1; v <= g->vertex_count; ++v) g->first[v] += g->first[v - 1];
    for (uint32_t a = g->arc_count; a-- > 0;) g->arcs[--g->first[b->tail[a]]] = a;
}

static void allocate_vertices(berth_arena *arena, berth_solve__gain *g) {
    g->room = berth_arena_new_array(arena, double, g->arc_count);
    g->supply = berth_arena_new_array(arena, double, g->vertex_count);
    g->demand = berth_arena_new_array(arena, double, g->vertex_count);
    g->level = berth_arena_new_array(arena, uint32_t, g->vertex_count);
    g->next = berth_arena_new_array(arena, uint32_t, g->vertex_count);
    g->queue = berth_arena_new_array(arena, uint32_t, g->vertex_count);
    g->path = berth_arena_new_array(arena, uint32_t, g->vertex_count);
}

berth_solve__gain *berth_solve__gain_create(berth_arena *arena, const berth_place_problem *problem,
                                            uint32_t kind) {
    berth_solve__gain *g = berth_arena_new(arena, berth_solve__gain);
    uint32_t groups = problem->group_count, edges = problem->edge_count;
    size_t most = 2 * ((size_t)edges + 3 * ((size_t)problem->node_count + edges));
    g->problem = problem;
    g->kind = kind;
    g->gain = berth_arena_new_array(arena, double, groups);
    g->enter = berth_arena_new_array(arena, double, edges);
    g->inside = berth_arena_new_array(arena, bool, groups);
    g->head = berth_arena_new_array(arena, uint32_t, most);
    g->base = berth_arena_new_array(arena, double, most);
    g->edge_arc = berth_arena_new_array(arena, uint32_t, edges);
    builder b = {.gain = g};
    b.tail = berth_arena_new_array(arena, uint32_t, most);
    b.pins = berth_arena_new_array(arena, uint32_t, groups);
    b.seen = berth_arena_new_array(arena, uint32_t, groups);
    g->vertex_count = groups;
    for (uint32_t n = 0; n < problem->node_count; ++n) add_value(&b, n);
    for (uint32_t e = 0; e < edges; ++e) {
        uint32_t from = problem->group[problem->edge_from[e]];
        uint32_t to = problem->group[problem->edge_to[e]];
        g->edge_arc[e] = from == to ? BERTH_PLACE_NONE : add_pair(&b, to, from, 0, 0);
    }
    sort_arcs(arena, &b);
    allocate_vertices(arena, g);
    return g;
}

// Sets capacities, supplies and demands; returns the sum of the supplies.
static double prepare(berth_solve__gain *g) {
    const berth_place_problem *problem = g->problem;
    double sum = 0;
    for (uint32_t a = 0; a < g->arc_count; ++a)
        g->room[a] = g->base[a] >= UNLIMITED ? UNLIMITED : g->base[a] * g->transfer_cost;
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (g->edge_arc[e] != BERTH_PLACE_NONE) g->room[g->edge_arc[e]] = g->enter[e];
    memset(g->supply, 0, g->vertex_count * sizeof(double));
    memset(g->demand, 0, g->vertex_count * sizeof(double));
    for (uint32_t i = 0; i < problem->group_count; ++i) {
        double gain = g->gain[i];
        if (gain > 0) sum += g->supply[i] = gain;
        if (gain < 0) g->demand[i] = fmin(-gain, UNLIMITED);
    }
    g->tolerance = sum * 1e-13;
    return sum;
}

// Distances from what has supplies left. Returns whether a demand is within reach.
static bool find_levels(berth_solve__gain *g, uint64_t *work) {
    uint32_t count = 0;
    bool found = false;
    memset(g->level, 0xff, g->vertex_count * sizeof(uint32_t));
    for (uint32_t v = 0; v < g->vertex_count; ++v) {
        if (g->supply[v] <= g->tolerance) continue;
        g->level[v] = 0;
        g->queue[count++] = v;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t vertex = g->queue[i];
        g->next[vertex] = g->first[vertex];
        found |= g->demand[vertex] > g->tolerance;
        *work += g->first[vertex + 1] - g->first[vertex];
        for (uint32_t a = g->first[vertex]; a < g->first[vertex + 1]; ++a) {
            uint32_t arc = g->arcs[a], to = g->head[arc];
            if (g->room[arc] <= g->tolerance || g->level[to] != UINT32_MAX) continue;
            g->level[to] = g->level[vertex] + 1;
            g->queue[count++] = to;
        }
    }
    return found;
}

// Sends what the path and its two ends allow; returns how many of its arcs are kept.
static uint32_t send(berth_solve__gain *g, uint32_t source, uint32_t sink, uint32_t depth) {
    double least = fmin(g->supply[source], g->demand[sink]);
    for (uint32_t i = 0; i < depth; ++i) least = fmin(least, g->room[g->path[i]]);
    g->supply[source] -= least;
    g->demand[sink] -= least;
    for (uint32_t i = 0; i < depth; ++i) {
        g->room[g->path[i]] -= least;
        g->room[g->path[i] ^ 1] += least;
    }
    uint32_t kept = 0;
    while (kept < depth && g->room[g->path[kept]] > g->tolerance) ++kept;
    return kept;
}

// Sends flow from one supply along shortest ways until none is left (a blocking flow).
static void send_from(berth_solve__gain *g, uint32_t source, uint64_t *work) {
    uint32_t depth = 0, vertex = source;
    while (g->supply[source] > g->tolerance) {
        if (g->demand[vertex] > g->tolerance) {
            *work += depth;
            depth = send(g, source, vertex, depth);
            vertex = depth > 0 ? g->head[g->path[depth - 1]] : source;
            continue;
        }
        bool advanced = false;
        for (; g->next[vertex] < g->first[vertex + 1]; ++g->next[vertex]) {
            uint32_t arc = g->arcs[g->next[vertex]], to = g->head[arc];
            ++*work;
            if (g->room[arc] <= g->tolerance || g->level[to] != g->level[vertex] + 1) continue;
            g->path[depth++] = arc;
            vertex = to;
            advanced = true;
            break;
        }
        if (advanced) continue;
        if (depth == 0) break;
        vertex = g->head[g->path[--depth] ^ 1];
        g->next[vertex]++;
    }
}

double berth_solve__gain_best(berth_solve__gain *g, uint64_t *out_work) {
    double best = prepare(g);
    *out_work += g->arc_count / 4;
    while (find_levels(g, out_work))
        for (uint32_t v = 0; v < g->problem->group_count; ++v)
            if (g->supply[v] > g->tolerance) send_from(g, v, out_work);
    // What could not be sent on is the gain.
    best = 0;
    for (uint32_t v = 0; v < g->problem->group_count; ++v) best += g->supply[v];
    for (uint32_t v = 0; v < g->problem->group_count; ++v) g->inside[v] = g->level[v] != UINT32_MAX;
    return best;
}
