#include "planner/solve/latency/network.h"

void berth_solve__network_begin(berth_arena *arena, berth_solve__network *network,
                                const berth_place_problem *problem, uint32_t kind,
                                uint32_t vertices, size_t pairs) {
    size_t nodes = problem->node_count, edges = problem->edge_count;
    size_t most = 2 * (pairs + edges + 3 * (nodes + edges));
    *network = (berth_solve__network){.arena = arena,
                                      .problem = problem,
                                      .kind = kind,
                                      .vertex_count = vertices,
                                      .head = berth_arena_new_array(arena, uint32_t, most),
                                      .base = berth_arena_new_array(arena, double, most),
                                      .tail = berth_arena_new_array(arena, uint32_t, most)};
}

uint32_t berth_solve__network_add_pair(berth_solve__network *network, uint32_t from, uint32_t to,
                                       double there, double back) {
    uint32_t arc = network->arc_count;
    network->head[arc] = to;
    network->base[arc] = there;
    network->tail[arc] = from;
    network->head[arc + 1] = from;
    network->base[arc + 1] = back;
    network->tail[arc + 1] = to;
    network->arc_count += 2;
    return arc;
}

typedef struct value_pins {
    uint32_t *pins;  // [group_count] distinct groups at a value
    uint32_t *seen;  // [group_count] stamps
} value_pins;

static void add_value(berth_solve__network *network, value_pins *p, uint32_t node) {
    const berth_place_problem *problem = network->problem;
    double transfer = problem->transfer[(size_t)node * problem->kind_count + network->kind];
    uint32_t count = 0;
    p->pins[count++] = problem->group[node];
    p->seen[problem->group[node]] = node + 1;
    for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s) {
        uint32_t group = problem->group[problem->succ[s]];
        if (p->seen[group] == node + 1) continue;
        p->seen[group] = node + 1;
        p->pins[count++] = group;
    }
    if (count < 2 || transfer <= 0) return;
    if (count == 2) {
        berth_solve__network_add_pair(network, p->pins[0], p->pins[1], transfer, transfer);
        return;
    }
    uint32_t some = network->vertex_count++, all = network->vertex_count++;
    berth_solve__network_add_pair(network, some, all, transfer, 0);
    for (uint32_t i = 0; i < count; ++i) {
        berth_solve__network_add_pair(network, p->pins[i], some, BERTH_SOLVE__UNLIMITED, 0);
        berth_solve__network_add_pair(network, all, p->pins[i], BERTH_SOLVE__UNLIMITED, 0);
    }
}

void berth_solve__network_add_values(berth_solve__network *network) {
    uint32_t groups = network->problem->group_count;
    value_pins p = {.pins = berth_arena_new_array(network->arena, uint32_t, groups),
                    .seen = berth_arena_new_array(network->arena, uint32_t, groups)};
    for (uint32_t n = 0; n < network->problem->node_count; ++n) add_value(network, &p, n);
}

void berth_solve__network_end(berth_solve__network *network) {
    berth_arena *arena = network->arena;
    uint32_t vertices = network->vertex_count, arcs = network->arc_count;
    network->first = berth_arena_new_array(arena, uint32_t, (size_t)vertices + 1);
    network->arcs = berth_arena_new_array(arena, uint32_t, arcs);
    for (uint32_t a = 0; a < arcs; ++a) network->first[network->tail[a]]++;
    for (uint32_t v = 1; v <= vertices; ++v) network->first[v] += network->first[v - 1];
    for (uint32_t a = arcs; a-- > 0;) network->arcs[--network->first[network->tail[a]]] = a;
    network->room = berth_arena_new_array(arena, double, arcs);
    network->level = berth_arena_new_array(arena, uint32_t, vertices);
    network->next = berth_arena_new_array(arena, uint32_t, vertices);
    network->queue = berth_arena_new_array(arena, uint32_t, vertices);
    network->path = berth_arena_new_array(arena, uint32_t, vertices);
}

uint32_t berth_solve__network_send(berth_solve__network *network, uint32_t depth, double amount) {
    for (uint32_t i = 0; i < depth; ++i) {
        network->room[network->path[i]] -= amount;
        network->room[network->path[i] ^ 1] += amount;
    }
    uint32_t kept = 0;
    while (kept < depth && network->room[network->path[kept]] > network->tolerance) ++kept;
    return kept;
}
