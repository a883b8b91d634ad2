#include "planner/solve/latency/order.h"

#include <math.h>
#include <string.h>

#include "planner/solve/linear.h"

// Nodes by the longest path to an end, farthest first: a counting sort.
static void order_layers(berth_arena *arena, const berth_place_problem *problem, uint32_t *order) {
    uint32_t count = problem->node_count;
    uint32_t *depth = berth_arena_new_array(arena, uint32_t, count);
    uint32_t *start = berth_arena_new_array(arena, uint32_t, count + 1);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t node = problem->topological[i];
        for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s)
            if (depth[problem->succ[s]] >= depth[node]) depth[node] = depth[problem->succ[s]] + 1;
        start[count - depth[node]]++;
    }
    for (uint32_t d = 0; d < count; ++d) start[d + 1] += start[d];
    for (uint32_t i = count; i-- > 0;) {
        uint32_t node = problem->topological[i];
        order[--start[count - depth[node]]] = node;
    }
}

// Depth first from the ends towards the predecessors, each node after its predecessors: branches
// stay together, and inputs stand just before what reads them.
static void order_branches(berth_arena *arena, const berth_place_problem *problem, uint64_t *random,
                           uint32_t *order) {
    uint32_t count = problem->node_count, made = 0;
    uint32_t *stack = berth_arena_new_array(arena, uint32_t, count);
    uint32_t *turn = berth_arena_new_array(arena, uint32_t, count);  // first predecessor looked at
    uint32_t *looked = berth_arena_new_array(arena, uint32_t, count);  // how many + 1; 0 = unseen
    uint32_t shift = random ? berth_solve__random_below(random, count) : 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t depth = 0, root = problem->topological[(i + shift) % count];
        if (looked[root] != 0 || problem->succ_start[root + 1] > problem->succ_start[root])
            continue;
        stack[depth++] = root;
        while (depth > 0) {
            uint32_t node = stack[depth - 1], begin = problem->pred_start[node];
            uint32_t size = problem->pred_start[node + 1] - begin;
            if (looked[node] == 0) {
                looked[node] = 1;
                turn[node] = random && size > 0 ? berth_solve__random_below(random, size) : 0;
            }
            uint32_t i_pred = looked[node] - 1;
            if (i_pred == size) {
                order[made++] = node;
                depth--;
                continue;
            }
            looked[node]++;
            uint32_t pred = problem->pred[begin + (i_pred + turn[node]) % size];
            if (looked[pred] == 0) stack[depth++] = pred;
        }
    }
}

void berth_solve__latency_order(berth_arena *arena, const berth_place_problem *problem,
                                uint64_t *random, uint32_t flavour, uint32_t *order) {
    berth_arena *scratch = berth_arena_create_child(arena);
    if (flavour == 1) {
        order_layers(scratch, problem, order);
    } else {
        order_branches(scratch, problem, flavour == 0 ? NULL : random, order);
    }
    berth_arena_destroy(scratch);
}

berth_status berth_solve__units_build(berth_arena *arena, const berth_place_problem *problem,
                                      berth_solve__units *out_units) {
    berth_solve__order blocks = berth_solve__order_groups(arena, problem, false, 0);
    uint32_t count = blocks.block_count, nodes = problem->node_count;
    uint32_t *group_unit = berth_arena_new_array(arena, uint32_t, problem->group_count);
    for (uint32_t b = 0; b < count; ++b)
        for (uint32_t i = blocks.block_start[b]; i < blocks.block_start[b + 1]; ++i)
            group_unit[blocks.groups[i]] = b;
    out_units->unit = berth_arena_new_array(arena, uint32_t, nodes);
    out_units->start = berth_arena_new_array(arena, uint32_t, (size_t)count + 1);
    out_units->nodes = berth_arena_new_array(arena, uint32_t, nodes);
    for (uint32_t n = 0; n < nodes; ++n) {
        out_units->unit[n] = group_unit[problem->group[n]];
        out_units->start[out_units->unit[n]]++;
    }
    for (uint32_t b = 1; b <= count; ++b) out_units->start[b] += out_units->start[b - 1];
    for (uint32_t i = nodes; i-- > 0;) {
        uint32_t node = problem->topological[i];
        out_units->nodes[--out_units->start[out_units->unit[node]]] = node;
    }
    berth_place_problem *graph = berth_arena_new(arena, berth_place_problem);
    graph->node_count = count;
    graph->node_names = berth_arena_new_array(arena, const char *, count);
    graph->size_bytes = berth_arena_new_array(arena, double, count);
    graph->group = berth_arena_new_array(arena, uint32_t, count);
    graph->edge_from = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    graph->edge_to = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    for (uint32_t b = 0; b < count; ++b) {
        graph->node_names[b] = "unit";
        graph->group[b] = b;
    }
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = out_units->unit[problem->edge_from[e]];
        uint32_t to = out_units->unit[problem->edge_to[e]];
        if (from == to) continue;
        graph->edge_from[graph->edge_count] = from;
        graph->edge_to[graph->edge_count++] = to;
    }
    out_units->graph = graph;
    return berth_place_problem_finish(arena, graph);
}

// ------------------------------------------------------------------------------------------------
// the order of a placement

typedef struct pace {
    const berth_place_problem *problem;
    const berth_solve__latency *latency;
    double *start;  // [node_count + device_count] of items: nodes, then devices' subgraphs
    double *spare;  // [node_count + device_count] how much later each could be done
} pace;

static uint32_t item_of(const pace *p, uint32_t node) {
    uint32_t device = p->latency->device[node];
    return p->latency->single[device] ? p->problem->node_count + device : node;
}

static void find_pace(pace *p) {
    const berth_place_problem *problem = p->problem;
    const double *done = p->latency->done;
    double end = done[p->latency->last];
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = item_of(p, problem->edge_from[e]), to = item_of(p, problem->edge_to[e]);
        if (from != to) p->start[to] = fmax(p->start[to], done[problem->edge_from[e]]);
    }
    for (uint32_t n = 0; n < problem->node_count; ++n) p->spare[item_of(p, n)] = end - done[n];
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = item_of(p, problem->edge_from[e]), to = item_of(p, problem->edge_to[e]);
        if (from != to)
            p->spare[from] = fmin(p->spare[from], p->start[to] - done[problem->edge_from[e]]);
    }
}

typedef struct keyed {
    double key;
    uint32_t unit;
} keyed;

static bool is_sooner(const keyed *a, const keyed *b) {
    return a->key < b->key || (a->key == b->key && a->unit < b->unit);
}

static void push_keyed(keyed *heap, uint32_t *count, keyed entry) {
    uint32_t at = (*count)++;
    for (; at > 0 && is_sooner(&entry, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = entry;
}

static keyed pop_keyed(keyed *heap, uint32_t *count) {
    keyed top = heap[0], moved = heap[--*count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < *count; child = 2 * at + 1) {
        if (child + 1 < *count && is_sooner(&heap[child + 1], &heap[child])) ++child;
        if (!is_sooner(&heap[child], &moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return top;
}

// Kahn's algorithm, smallest key first.
static void sort_units(berth_arena *arena, const berth_place_problem *graph, const double *key,
                       uint32_t *order) {
    uint32_t *need = berth_arena_new_array(arena, uint32_t, graph->node_count);
    keyed *heap = berth_arena_new_array(arena, keyed, graph->node_count);
    uint32_t count = 0, made = 0;
    for (uint32_t u = 0; u < graph->node_count; ++u) {
        need[u] = graph->pred_start[u + 1] - graph->pred_start[u];
        if (need[u] == 0) push_keyed(heap, &count, (keyed){key[u], u});
    }
    while (count > 0) {
        uint32_t unit = pop_keyed(heap, &count).unit;
        order[made++] = unit;
        for (uint32_t s = graph->succ_start[unit]; s < graph->succ_start[unit + 1]; ++s)
            if (--need[graph->succ[s]] == 0)
                push_keyed(heap, &count, (keyed){key[graph->succ[s]], graph->succ[s]});
    }
}

// Band of each unit: bands of equal weight, in an order in which none stands before what it reads.
static void number_bands(const berth_place_problem *graph, const double *weight, uint32_t bands,
                         const uint32_t *order, uint32_t *band) {
    double total = 0, sum = 0;
    for (uint32_t u = 0; u < graph->node_count; ++u) total += weight[u];
    for (uint32_t i = 0; i < graph->node_count; ++i) {
        double share = total > 0 ? sum / total * bands : 0;
        band[order[i]] = share < bands ? (uint32_t)share : bands - 1;
        sum += weight[order[i]];
    }
}

void berth_solve__units_order_bands(berth_arena *arena, const berth_solve__units *units,
                                    const double *weight, uint32_t bands, uint32_t *order) {
    berth_arena *scratch = berth_arena_create_child(arena);
    const berth_place_problem *graph = units->graph;
    uint32_t count = graph->node_count;
    double *key = berth_arena_new_array(scratch, double, count);
    uint32_t *band = berth_arena_new_array(scratch, uint32_t, count);
    uint32_t *reach = berth_arena_new_array(scratch, uint32_t, count);  // last band that needs it
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t unit = graph->topological[i];
        for (uint32_t e = graph->pred_start[unit]; e < graph->pred_start[unit + 1]; ++e)
            key[unit] = fmax(key[unit], key[graph->pred[e]] + weight[graph->pred[e]]);
    }
    sort_units(scratch, graph, key, order);
    number_bands(graph, weight, bands, order, band);
    for (uint32_t i = count; i-- > 0;) {
        uint32_t unit = order[i];
        reach[unit] = band[unit];
        for (uint32_t e = graph->succ_start[unit]; e < graph->succ_start[unit + 1]; ++e)
            if (reach[graph->succ[e]] > reach[unit]) reach[unit] = reach[graph->succ[e]];
    }
    // sort_units keeps what a unit reads before it, and these keys never fall along an edge.
    for (uint32_t i = 0; i < count; ++i)
        key[order[i]] = (2.0 * band[order[i]] + (reach[order[i]] > band[order[i]] ? 0 : 1)) *
                            ((double)count + 1) +
                        i;
    sort_units(scratch, graph, key, order);
    berth_arena_destroy(scratch);
}

void berth_solve__units_order_like(berth_arena *arena, const berth_solve__units *units,
                                   const berth_solve__latency *latency, uint64_t *random,
                                   uint32_t *order) {
    berth_arena *scratch = berth_arena_create_child(arena);
    const berth_place_problem *problem = latency->problem;
    uint32_t items = problem->node_count + problem->device_count;
    pace p = {.problem = problem, .latency = latency};
    p.start = berth_arena_new_array(scratch, double, items);
    p.spare = berth_arena_new_array(scratch, double, items);
    double *key = berth_arena_new_array(scratch, double, units->graph->node_count);
    find_pace(&p);
    for (uint32_t i = 0; i < items; ++i)
        p.spare[i] *= fmax(0, 1.5 * berth_solve__random_unit(random) - 0.5);
    for (uint32_t n = 0; n < problem->node_count; ++n) {
        uint32_t unit = units->unit[n];
        key[unit] = fmax(key[unit], latency->done[n] + p.spare[item_of(&p, n)]);
    }
    sort_units(scratch, units->graph, key, order);
    berth_arena_destroy(scratch);
}
