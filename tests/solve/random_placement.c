#include "tests/solve/random_placement.h"

#include <math.h>
#include <string.h>

enum { MOST_NODES = 64, MOST_DEVICES = 8 };

uint64_t placement_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Du >> 16;
}

static double quarter(uint64_t *state, uint32_t most) {
    return (double)(placement_random(state) % (4 * most + 1)) / 4;
}

static void random_kinds(berth_arena *arena, berth_place_problem *p, random_shape shape) {
    p->kind_count = shape.kinds;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, shape.kinds);
    p->kinds[0] = (berth_place_kind){"acc", shape.devices, shape.tight ? 12 : 60, false};
    if (shape.kinds > 1) p->kinds[1] = (berth_place_kind){"cpu", 1, INFINITY, true};
    if (shape.kinds > 2) p->kinds[2] = (berth_place_kind){"npu", 1, 20, false};
}

static void random_nodes(berth_arena *arena, uint64_t *state, berth_place_problem *p,
                         random_shape shape) {
    uint32_t n = shape.nodes;
    p->node_count = n;
    p->node_names = berth_arena_new_array(arena, const char *, n);
    p->time = berth_arena_new_array(arena, double, (size_t)n *shape.kinds);
    p->transfer = berth_arena_new_array(arena, double, (size_t)n *shape.kinds);
    p->size_bytes = berth_arena_new_array(arena, double, n);
    p->group = berth_arena_new_array(arena, uint32_t, n);
    p->backward = berth_arena_new_array(arena, bool, n);
    uint32_t dense[MOST_NODES];
    memset(dense, 0xff, sizeof(dense));
    uint32_t groups = 0;
    for (uint32_t v = 0; v < n; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "n%u", v);
        for (uint32_t k = 0; k < shape.kinds; ++k) {
            p->time[v * shape.kinds + k] = quarter(state, k == 1 ? 20 : 8);
            if (k != 1 && placement_random(state) % 8 == 0) p->time[v * shape.kinds + k] = INFINITY;
            p->transfer[v * shape.kinds + k] = k == 0 ? quarter(state, 4) : 0;
        }
        p->size_bytes[v] = (double)(placement_random(state) % 7);
        uint32_t g = shape.groups < n ? (uint32_t)(placement_random(state) % shape.groups) : v;
        if (dense[g] == UINT32_MAX) dense[g] = groups++;
        p->group[v] = dense[g];
        p->backward[v] = shape.training && v >= n / 2;
    }
}

berth_place_problem *placement_of_nodes(berth_arena *arena, uint32_t nodes, size_t edges,
                                        uint32_t accelerators, double capacity) {
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    p->node_count = nodes;
    p->kind_count = 2;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, 2);
    p->kinds[0] = (berth_place_kind){"acc", accelerators, capacity, false};
    p->kinds[1] = (berth_place_kind){"cpu", 1, INFINITY, true};
    p->node_names = berth_arena_new_array(arena, const char *, nodes);
    p->time = berth_arena_new_array(arena, double, 2 * (size_t)nodes);
    p->transfer = berth_arena_new_array(arena, double, 2 * (size_t)nodes);
    p->size_bytes = berth_arena_new_array(arena, double, nodes);
    p->group = berth_arena_new_array(arena, uint32_t, nodes);
    p->backward = berth_arena_new_array(arena, bool, nodes);
    p->edge_from = berth_arena_new_array(arena, uint32_t, edges);
    p->edge_to = berth_arena_new_array(arena, uint32_t, edges);
    for (uint32_t v = 0; v < nodes; ++v) {
        p->node_names[v] = "n";
        p->group[v] = v;
    }
    return p;
}

berth_place_problem *random_placement(berth_arena *arena, uint64_t seed, random_shape shape) {
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    random_kinds(arena, p, shape);
    random_nodes(arena, &state, p, shape);
    uint32_t n = shape.nodes;
    p->one_subgraph = true;
    p->edge_from = berth_arena_new_array(arena, uint32_t, (size_t)n * n);
    p->edge_to = berth_arena_new_array(arena, uint32_t, (size_t)n * n);
    for (uint32_t u = 0; u < n; ++u)
        for (uint32_t v = u + 1; v < n; ++v)
            if (placement_random(&state) % 8 < shape.edges_in_8) {
                p->edge_from[p->edge_count] = u;
                p->edge_to[p->edge_count++] = v;
            }
    if (shape.pins) {
        uint32_t devices = 0;
        for (uint32_t k = 0; k < p->kind_count; ++k) devices += p->kinds[k].device_count;
        p->pin = berth_arena_new_array(arena, uint32_t, n);
        memset(p->pin, 0xff, n * sizeof(*p->pin));
        p->pin[placement_random(&state) % n] = (uint32_t)(placement_random(&state) % devices);
    }
    return p;
}

// ------------------------------------------------------------------------------------------------
// the definitions

static uint32_t kind_of(const berth_place_problem *p, uint32_t device) {
    uint32_t kind = 0;
    for (; device >= p->kinds[kind].device_count; ++kind) device -= p->kinds[kind].device_count;
    return kind;
}

static double time_at(const berth_place_problem *p, uint32_t v, uint32_t device) {
    return p->time[v * p->kind_count + kind_of(p, device)];
}

static double transfer_at(const berth_place_problem *p, uint32_t v, uint32_t device) {
    return p->transfer[v * p->kind_count + kind_of(p, device)];
}

static uint32_t count_devices(const berth_place_problem *p) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->kind_count; ++k) count += p->kinds[k].device_count;
    return count;
}

static bool keeps_limits(const berth_place_problem *p, const uint32_t *at) {
    for (uint32_t v = 0; v < p->node_count; ++v) {
        if (time_at(p, v, at[v]) == INFINITY) return false;
        if (p->pin && p->pin[v] != BERTH_PLACE_NONE && p->pin[v] != at[v]) return false;
        for (uint32_t u = 0; u < v; ++u)
            if (p->group[u] == p->group[v] && at[u] != at[v]) return false;
    }
    for (uint32_t d = 0; d < count_devices(p); ++d) {
        double bytes = 0;
        for (uint32_t v = 0; v < p->node_count; ++v)
            if (at[v] == d) bytes += p->size_bytes[v];
        if (bytes > p->kinds[kind_of(p, d)].capacity_bytes) return false;
    }
    return true;
}

// Does some successor of u lie on (or, `elsewhere`, off) device d?
static bool has_successor(const berth_place_problem *p, const uint32_t *at, uint32_t u, uint32_t d,
                          bool elsewhere) {
    for (uint32_t e = 0; e < p->edge_count; ++e)
        if (p->edge_from[e] == u && (at[p->edge_to[e]] == d) != elsewhere) return true;
    return false;
}

static double load_of(const berth_place_problem *p, const uint32_t *at, uint32_t d) {
    double load = 0;
    for (uint32_t u = 0; u < p->node_count; ++u) {
        if (at[u] == d) {
            load += time_at(p, u, d);
            if (has_successor(p, at, u, d, true)) load += transfer_at(p, u, d);
        } else if (has_successor(p, at, u, d, false)) {
            load += transfer_at(p, u, d);
        }
    }
    return load;
}

// Are the forward nodes of the first i devices closed under predecessors, for every i?
static bool is_order(const berth_place_problem *p, const uint32_t *at, const uint32_t *position) {
    for (uint32_t e = 0; e < p->edge_count; ++e) {
        uint32_t u = p->edge_from[e];
        uint32_t v = p->edge_to[e];
        if (!p->backward[u] && !p->backward[v] && position[at[u]] > position[at[v]]) return false;
    }
    return true;
}

// Tries all orders of the devices: position[d] for d from `next` are still free.
static bool has_order(const berth_place_problem *p, const uint32_t *at, uint32_t *position,
                      uint32_t next) {
    uint32_t count = count_devices(p);
    if (next == count) return is_order(p, at, position);
    for (uint32_t i = 0; i < count; ++i) {
        bool taken = false;
        for (uint32_t d = 0; d < next; ++d) taken |= position[d] == i;
        position[next] = i;
        if (!taken && has_order(p, at, position, next + 1)) return true;
    }
    return false;
}

// done[v] when everything that v waits for is done; false when a circle never gets done.
static bool subgraph_times(const berth_place_problem *p, const uint32_t *at, double *done) {
    uint32_t n = p->node_count;
    bool known[MOST_NODES] = {false};
    for (uint32_t round = 0; round < n; ++round) {
        for (uint32_t v = 0; v < n; ++v) {
            if (known[v]) continue;
            uint32_t d = at[v];
            bool alone = p->kinds[kind_of(p, d)].concurrent;
            double start = 0;
            double length = 0;
            bool ready = true;
            for (uint32_t m = 0; m < n; ++m) {  // the members of v's subgraph
                if (alone ? m != v : at[m] != d) continue;
                length += time_at(p, m, d);
                if (!alone && has_successor(p, at, m, d, true)) length += transfer_at(p, m, d);
                for (uint32_t e = 0; e < p->edge_count; ++e) {
                    uint32_t u = p->edge_from[e];
                    if (p->edge_to[e] != m || (!alone && at[u] == d)) continue;
                    ready &= known[u];
                    if (known[u]) start = fmax(start, done[u]);
                }
            }
            for (uint32_t u = 0; u < n && !alone; ++u)
                if (at[u] != d && has_successor(p, at, u, d, false)) length += transfer_at(p, u, d);
            if (!ready) continue;
            for (uint32_t m = 0; m < n; ++m)
                if (alone ? m == v : at[m] == d) {
                    known[m] = true;
                    done[m] = start + length;
                }
        }
    }
    for (uint32_t v = 0; v < n; ++v)
        if (!known[v]) return false;
    return true;
}

static double memory_of(const berth_place_problem *p, const uint32_t *at) {
    bool shares = true;
    for (uint32_t d = 0; d < count_devices(p); ++d)
        shares &= p->kinds[kind_of(p, d)].capacity_bytes < INFINITY;
    double most = 0;
    for (uint32_t d = 0; d < count_devices(p); ++d) {
        double bytes = 0;
        for (uint32_t v = 0; v < p->node_count; ++v)
            if (at[v] == d) bytes += p->size_bytes[v];
        if (shares && bytes > 0) bytes /= p->kinds[kind_of(p, d)].capacity_bytes;
        most = fmax(most, bytes);
    }
    return most;
}

double literal_value(const berth_place_problem *p, berth_place_objective objective, bool contiguous,
                     const uint32_t *at) {
    uint32_t position[MOST_DEVICES] = {0};
    double done[MOST_NODES] = {0};
    double most = 0;
    if (!keeps_limits(p, at)) return INFINITY;
    if (contiguous && !has_order(p, at, position, 0)) return INFINITY;
    if (objective == BERTH_PLACE_MEMORY) return memory_of(p, at);
    if (objective == BERTH_PLACE_THROUGHPUT) {
        for (uint32_t d = 0; d < count_devices(p); ++d) most = fmax(most, load_of(p, at, d));
        return most;
    }
    if (!subgraph_times(p, at, done)) return INFINITY;
    for (uint32_t v = 0; v < p->node_count; ++v) most = fmax(most, done[v]);
    return most;
}

double brute_force_placement(berth_arena *arena, const berth_place_problem *p,
                             berth_place_objective objective, bool contiguous) {
    uint32_t devices = count_devices(p);
    uint32_t device_of_group[MOST_NODES] = {0};
    uint32_t at[MOST_NODES];
    double best = INFINITY;
    bool list = objective == BERTH_PLACE_LATENCY && !p->one_subgraph;
    for (bool more = devices > 0; more;) {
        for (uint32_t v = 0; v < p->node_count; ++v) at[v] = device_of_group[p->group[v]];
        if (list) {
            berth_place_value value;
            berth_arena *scratch = berth_arena_create_child(arena);
            berth_status status =
                berth_place_evaluate(scratch, p, objective, contiguous, at, &value);
            if (!status) best = fmin(best, value.value);
            berth_status_free(status);
            berth_arena_destroy(scratch);
        } else {
            best = fmin(best, literal_value(p, objective, contiguous, at));
        }
        more = false;
        for (uint32_t g = 0; g < p->group_count && !more; ++g) {  // count up
            more = ++device_of_group[g] < devices;
            if (!more) device_of_group[g] = 0;
        }
    }
    return best;
}
