// Blocks: strongly connected components of the classes over forward edges (Tarjan, 1972, with an
// explicit stack), which come out successors first.
#include <string.h>

#include "planner/solve/throughput/contiguous.h"

typedef struct class_graph {
    uint32_t count;
    uint32_t *start;  // [count + 2]
    uint32_t *next;   // successors of each class over forward edges; may repeat
} class_graph;

// Class of a node.
static uint32_t class_of(const berth_place_problem *problem, const berth_place_classes *classes,
                         uint32_t node) {
    return classes->of_group[problem->group[node]];
}

static bool is_tie(const berth_place_problem *problem, const berth_place_classes *classes,
                   uint32_t edge) {
    uint32_t from = problem->edge_from[edge];
    uint32_t to = problem->edge_to[edge];
    return !problem->backward[from] && !problem->backward[to] &&
           class_of(problem, classes, from) != class_of(problem, classes, to);
}

static class_graph list_edges(berth_arena *arena, const berth_place_problem *problem,
                              const berth_place_classes *classes) {
    class_graph graph = {.count = classes->count};
    graph.start = berth_arena_new_array(arena, uint32_t, (size_t)graph.count + 2);
    graph.next = berth_arena_new_array(arena, uint32_t, (size_t)problem->edge_count + 1);
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (is_tie(problem, classes, e))
            graph.start[class_of(problem, classes, problem->edge_from[e]) + 2]++;
    for (uint32_t g = 0; g < graph.count; ++g) graph.start[g + 2] += graph.start[g + 1];
    for (uint32_t e = 0; e < problem->edge_count; ++e)
        if (is_tie(problem, classes, e))
            graph.next[graph.start[class_of(problem, classes, problem->edge_from[e]) + 1]++] =
                class_of(problem, classes, problem->edge_to[e]);
    return graph;
}

typedef struct tarjan {
    const class_graph *graph;
    uint32_t *index;      // [classes] order of discovery + 1; 0 = not yet
    uint32_t *low;        // [classes]
    uint32_t *position;   // [classes] next edge to look at
    uint32_t *open;       // [classes] stack of classes without a component
    uint32_t *path;       // [classes] stack of the walk
    uint32_t *component;  // [classes] BERTH_PLACE_NONE = none yet
    uint32_t open_count;
    uint32_t found;
    uint32_t component_count;
} tarjan;

static void close_component(tarjan *t, uint32_t root) {
    uint32_t group;
    do {
        group = t->open[--t->open_count];
        t->component[group] = t->component_count;
    } while (group != root);
    t->component_count++;
}

static void discover(tarjan *t, uint32_t group) {
    t->index[group] = t->low[group] = ++t->found;
    t->position[group] = t->graph->start[group];
    t->open[t->open_count++] = group;
}

static void walk_from(tarjan *t, uint32_t root) {
    uint32_t depth = 0;
    discover(t, root);
    t->path[depth++] = root;
    while (depth > 0) {
        uint32_t group = t->path[depth - 1];
        if (t->position[group] < t->graph->start[group + 1]) {
            uint32_t next = t->graph->next[t->position[group]++];
            if (t->index[next] == 0) {
                discover(t, next);
                t->path[depth++] = next;
            } else if (t->component[next] == BERTH_PLACE_NONE && t->index[next] < t->low[group]) {
                t->low[group] = t->index[next];
            }
            continue;
        }
        if (t->low[group] == t->index[group]) close_component(t, group);
        if (--depth > 0 && t->low[group] < t->low[t->path[depth - 1]])
            t->low[t->path[depth - 1]] = t->low[group];
    }
}

// Component of each class that is `tied`, numbered successors first; BERTH_PLACE_NONE for the
// others.
static uint32_t find_components(berth_arena *arena, const class_graph *graph, const bool *tied,
                                uint32_t *out_component) {
    size_t n = (size_t)graph->count + 1;
    tarjan t = {.graph = graph, .component = out_component};
    t.index = berth_arena_new_array(arena, uint32_t, n);
    t.low = berth_arena_new_array(arena, uint32_t, n);
    t.position = berth_arena_new_array(arena, uint32_t, n);
    t.open = berth_arena_new_array(arena, uint32_t, n);
    t.path = berth_arena_new_array(arena, uint32_t, n);
    for (uint32_t g = 0; g < graph->count; ++g) out_component[g] = BERTH_PLACE_NONE;
    for (uint32_t g = graph->count; g-- > 0;)
        if (tied[g] && t.index[g] == 0) walk_from(&t, g);
    return t.component_count;
}

// The graph of blocks: both directions, no edge twice.
static void build_dag(berth_arena *arena, const class_graph *graph, const uint32_t *item_of_class,
                      uint32_t block_count, berth_place_dag *out_dag) {
    uint32_t edges = graph->start[graph->count];
    uint32_t *from = berth_arena_new_array(arena, uint32_t, (size_t)edges + 1);
    uint32_t *first = berth_arena_new_array(arena, uint32_t, (size_t)block_count + 2);
    for (uint32_t g = 0; g < graph->count; ++g)
        for (uint32_t e = graph->start[g]; e < graph->start[g + 1]; ++e)
            first[item_of_class[graph->next[e]] + 2]++;
    for (uint32_t b = 0; b < block_count; ++b) first[b + 2] += first[b + 1];
    for (uint32_t g = 0; g < graph->count; ++g)
        for (uint32_t e = graph->start[g]; e < graph->start[g + 1]; ++e)
            from[first[item_of_class[graph->next[e]] + 1]++] = item_of_class[g];

    berth_place_dag dag = {.count = block_count};
    dag.pred_start = berth_arena_new_array(arena, uint32_t, (size_t)block_count + 1);
    dag.preds = berth_arena_new_array(arena, uint32_t, (size_t)edges + 1);
    dag.succ_start = berth_arena_new_array(arena, uint32_t, (size_t)block_count + 2);
    dag.succs = berth_arena_new_array(arena, uint32_t, (size_t)edges + 1);
    uint32_t *seen = berth_arena_new_array(arena, uint32_t, (size_t)block_count + 1);
    uint32_t kept = 0;
    for (uint32_t b = 0; b < block_count; ++b) {
        for (uint32_t e = first[b]; e < first[b + 1]; ++e) {
            if (from[e] == b || seen[from[e]] == b + 1) continue;
            seen[from[e]] = b + 1;
            dag.preds[kept++] = from[e];
            dag.succ_start[from[e] + 2]++;
        }
        dag.pred_start[b + 1] = kept;
    }
    for (uint32_t b = 0; b < block_count; ++b) dag.succ_start[b + 2] += dag.succ_start[b + 1];
    for (uint32_t b = 0; b < block_count; ++b)
        for (uint32_t p = dag.pred_start[b]; p < dag.pred_start[b + 1]; ++p)
            dag.succs[dag.succ_start[dag.preds[p] + 1]++] = b;
    *out_dag = dag;
}

berth_place_blocks *berth_place__blocks(berth_arena *arena, const berth_place_problem *problem,
                                        const berth_place_classes *classes, const bool *is_vertex) {
    berth_place_blocks *blocks = berth_arena_new(arena, berth_place_blocks);
    bool *tied = berth_arena_new_array(arena, bool, (size_t)classes->count + 1);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (!problem->backward[v] || is_vertex[problem->group[v]])
            tied[class_of(problem, classes, v)] = true;
    class_graph graph = list_edges(arena, problem, classes);
    uint32_t *item = berth_arena_new_array(arena, uint32_t, (size_t)classes->count + 1);
    blocks->block_count = find_components(arena, &graph, tied, item);
    uint32_t loose = blocks->block_count;
    for (uint32_t c = 0; c < classes->count; ++c)
        item[c] = item[c] == BERTH_PLACE_NONE ? loose++ : blocks->block_count - 1 - item[c];
    build_dag(arena, &graph, item, blocks->block_count, &blocks->dag);
    uint32_t *of_group = berth_arena_new_array(arena, uint32_t, (size_t)problem->group_count + 1);
    for (uint32_t g = 0; g < problem->group_count; ++g) of_group[g] = item[classes->of_group[g]];
    blocks->nets = berth_place__nets(arena, problem, of_group, loose);
    return blocks;
}
