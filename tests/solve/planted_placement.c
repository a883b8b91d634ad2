#include "tests/solve/planted_placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/problem/evaluate.h"
#include "tests/solve/random_placement.h"

enum { MOST_PREDS = 8, LAYERS_OF_DEVICE = 4, REACH_TENTHS = 1, TRIES = 60, RATIO = 6 };
#define GRAIN 0.0625  // times are multiples of it: their sums are exact

const char *const planted_shape_names[PLANTED_SHAPES] = {"random",   "chains",  "layers",
                                                         "out_tree", "in_tree", "fork_join"};

typedef struct planter {
    berth_arena *arena;
    planted_shape shape;
    uint64_t random;
    uint32_t nodes, accelerators;
    double end;        // of the schedule
    uint32_t *device;  // [nodes] accelerator, or `accelerators` for the processor
    double *start, *done;
    double *copy;          // [nodes] one way
    uint32_t *by_start;    // [nodes]
    uint32_t *preds;       // [nodes * MOST_PREDS]
    uint32_t *pred_count;  // [nodes]
    uint32_t *readers;     // [nodes]
    bool *hub;             // [nodes]
} planter;

static uint32_t below(planter *p, uint32_t count) {
    return (uint32_t)(placement_random(&p->random) % count);
}

// Of mean about 1, now and then much more.
static double figure(planter *p, double mean) {
    double u = (double)(1 + below(p, 1000)) / 1001;
    return GRAIN * ceil(-log(u) * mean / GRAIN);
}

// ------------------------------------------------------------------------------------------------
// the schedule

// Every accelerator has so many nodes; those that would end early get longer ones.
static void fill_accelerators(planter *p, uint32_t first, uint32_t count) {
    double most = 0;
    double *sum = berth_arena_new_array(p->arena, double, p->accelerators);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t v = first + i;
        p->device[v] = i % p->accelerators;
        p->done[v] = figure(p, 1);  // its time, for now
        sum[p->device[v]] += p->done[v];
        most = fmax(most, sum[p->device[v]]);
    }
    for (uint32_t d = 0; d < p->accelerators; ++d)
        for (uint32_t i = d; sum[d] < most;
             i = i + p->accelerators < count ? i + p->accelerators : d) {
            p->done[first + i] += GRAIN;
            sum[d] += GRAIN;
        }
    memset(sum, 0, p->accelerators * sizeof(*sum));
    for (uint32_t v = first; v < first + count; ++v) {
        p->start[v] = sum[p->device[v]];
        sum[p->device[v]] = p->done[v] = p->start[v] + p->done[v];
    }
    p->end = most;
}

// Any number at a time; anywhere in time.
static void fill_processor(planter *p, uint32_t count) {
    for (uint32_t v = 0; v < count; ++v) {
        double time = fmin(figure(p, 1), p->end);
        p->device[v] = p->accelerators;
        p->start[v] = GRAIN * floor((double)below(p, 1000) / 1000 * (p->end - time) / GRAIN);
        p->done[v] = p->start[v] + time;
    }
}

typedef struct begun {
    double start;
    uint32_t node;
} begun;

static int compare_starts(const void *left, const void *right) {
    const begun *a = left, *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static void sort_by_start(planter *p) {
    begun *list = berth_arena_new_array(p->arena, begun, p->nodes);
    for (uint32_t v = 0; v < p->nodes; ++v) list[v] = (begun){p->start[v], v};
    qsort(list, p->nodes, sizeof(*list), compare_starts);
    for (uint32_t v = 0; v < p->nodes; ++v) p->by_start[v] = list[v].node;
}

// ------------------------------------------------------------------------------------------------
// edges that it keeps

static double copies(const planter *p, uint32_t u, uint32_t v) {
    if (p->device[u] == p->device[v]) return 0;
    return p->copy[u] * ((p->device[u] != p->accelerators) + (p->device[v] != p->accelerators));
}

static bool is_in_time(const planter *p, uint32_t u, uint32_t v) {
    return p->done[u] + copies(p, u, v) <= p->start[v];
}

static uint32_t layer_of(const planter *p, uint32_t v) {
    double layers = (double)p->nodes / (p->accelerators * LAYERS_OF_DEVICE);
    return (uint32_t)(p->start[v] / p->end * layers);
}

static bool suits(const planter *p, uint32_t u, uint32_t v) {
    switch (p->shape) {
    case PLANTED_CHAINS:
    case PLANTED_IN_TREE: return p->readers[u] == 0;
    case PLANTED_LAYERS: return layer_of(p, u) + 1 == layer_of(p, v);
    case PLANTED_FORK_JOIN: return p->hub[u] != p->hub[v];
    default: return true;
    }
}

static void add_edge(planter *p, uint32_t u, uint32_t v) {
    for (uint32_t i = 0; i < p->pred_count[v]; ++i)
        if (p->preds[v * MOST_PREDS + i] == u) return;
    p->preds[v * MOST_PREDS + p->pred_count[v]++] = u;
    p->readers[u]++;
}

// Predecessors of the node at this place by start, from those that start up to a tenth of the schedule
// before it.
static void choose_preds(planter *p, uint32_t place) {
    static const uint32_t wanted[PLANTED_SHAPES] = {3, 1, 3, 1, 2, 1};
    uint32_t v = p->by_start[place], most = 1 + below(p, wanted[p->shape]);
    if (p->hub[v]) most = MOST_PREDS / 2;
    uint32_t reach = p->nodes * REACH_TENTHS / 10 + 4 * p->accelerators;
    if (reach > place) reach = place;
    for (uint32_t i = 0; i < TRIES && reach > 0 && p->pred_count[v] < most; ++i) {
        // A hub is rare: nodes look for the last one.
        uint32_t back = p->shape == PLANTED_FORK_JOIN && !p->hub[v] ? i : below(p, reach);
        if (back >= reach) break;
        uint32_t u = p->by_start[place - 1 - back];
        if (is_in_time(p, u, v) && suits(p, u, v)) add_edge(p, u, v);
    }
}

static void drop_edge(planter *p, uint32_t v, uint32_t at) {
    p->readers[p->preds[v * MOST_PREDS + at]]--;
    p->preds[v * MOST_PREDS + at] = p->preds[v * MOST_PREDS + --p->pred_count[v]];
}

// ------------------------------------------------------------------------------------------------
// the problem

// Longest paths before and after the nodes, at their times in the schedule.
static void find_ways(const planter *p, double *head, double *tail) {
    for (uint32_t i = 0; i < p->nodes; ++i) {
        uint32_t v = p->by_start[i];
        for (uint32_t e = 0; e < p->pred_count[v]; ++e) {
            uint32_t u = p->preds[v * MOST_PREDS + e];
            head[v] = fmax(head[v], head[u] + p->done[u] - p->start[u]);
        }
    }
    for (uint32_t i = p->nodes; i-- > 0;) {
        uint32_t v = p->by_start[i];
        for (uint32_t e = 0; e < p->pred_count[v]; ++e) {
            uint32_t u = p->preds[v * MOST_PREDS + e];
            tail[u] = fmax(tail[u], tail[v] + p->done[v] - p->start[v]);
        }
    }
}

// Node i of the problem is node name[i] of the schedule.
static berth_status make_problem(planter *p, const uint32_t *name, planted *out) {
    uint32_t edges = 0;
    for (uint32_t v = 0; v < p->nodes; ++v) edges += p->pred_count[v];
    berth_place_problem *problem =
        placement_of_nodes(p->arena, p->nodes, edges, p->accelerators, INFINITY);
    uint32_t *index = berth_arena_new_array(p->arena, uint32_t, p->nodes);
    double *head = berth_arena_new_array(p->arena, double, p->nodes);
    double *tail = berth_arena_new_array(p->arena, double, p->nodes);
    find_ways(p, head, tail);
    out->problem = problem;
    out->optimum = p->end;
    out->assignment = berth_arena_new_array(p->arena, uint32_t, p->nodes);
    for (uint32_t i = 0; i < p->nodes; ++i) {
        uint32_t v = name[i];
        double time = p->done[v] - p->start[v], spare = p->end - head[v] - tail[v];
        index[v] = i;
        out->assignment[i] = p->device[v];
        problem->transfer[2 * (size_t)i] = p->copy[v];
        problem->time[2 * (size_t)i] = p->device[v] == p->accelerators ? INFINITY : time;
        problem->time[2 * (size_t)i + 1] =
            p->device[v] == p->accelerators ? time : fmax(RATIO * time, spare + GRAIN);
    }
    for (uint32_t v = 0; v < p->nodes; ++v)
        for (uint32_t e = 0; e < p->pred_count[v]; ++e) {
            problem->edge_from[problem->edge_count] = index[p->preds[v * MOST_PREDS + e]];
            problem->edge_to[problem->edge_count++] = index[v];
        }
    return berth_place_problem_finish(p->arena, problem);
}

// Where list scheduling leaves the schedule: the first node that starts later than planned. If something
// that was to come later on its device went first, that is made to wait for it; otherwise one of the values
// that it waits for is taken away. False: it leaves it nowhere.
static bool mend(planter *p, const uint32_t *index, const double *start) {
    for (uint32_t i = 0; i < p->nodes; ++i) {
        uint32_t v = p->by_start[i];
        double begins = start[index[v]];
        if (begins <= p->start[v] + GRAIN / 2) continue;
        for (uint32_t j = i + 1; j < p->nodes && p->device[v] != p->accelerators; ++j) {
            uint32_t w = p->by_start[j];
            if (p->device[w] != p->device[v] || start[index[w]] >= begins ||
                p->pred_count[w] == MOST_PREDS)
                continue;
            add_edge(p, v, w);
            return true;
        }
        for (uint32_t e = p->pred_count[v]; e-- > 0;)
            if (p->device[p->preds[v * MOST_PREDS + e]] != p->device[v]) {
                drop_edge(p, v, e);
                return true;
            }
    }
    return false;
}

static planter planter_create(berth_arena *arena, planted_shape shape, uint32_t nodes,
                              uint32_t accelerators, uint64_t seed) {
    planter p = {.arena = arena, .shape = shape, .random = 2 * seed + 1};
    p.nodes = nodes;
    p.accelerators = accelerators;
    p.device = berth_arena_new_array(arena, uint32_t, nodes);
    p.start = berth_arena_new_array(arena, double, nodes);
    p.done = berth_arena_new_array(arena, double, nodes);
    p.copy = berth_arena_new_array(arena, double, nodes);
    p.by_start = berth_arena_new_array(arena, uint32_t, nodes);
    p.preds = berth_arena_new_array(arena, uint32_t, (size_t)nodes * MOST_PREDS);
    p.pred_count = berth_arena_new_array(arena, uint32_t, nodes);
    p.readers = berth_arena_new_array(arena, uint32_t, nodes);
    p.hub = berth_arena_new_array(arena, bool, nodes);
    for (int i = 0; i < 100; ++i) (void)placement_random(&p.random);  // away from the seed
    return p;
}

// In any order.
static uint32_t *name_nodes(planter *p) {
    uint32_t *name = berth_arena_new_array(p->arena, uint32_t, p->nodes);
    for (uint32_t v = 0; v < p->nodes; ++v) {
        uint32_t i = below(p, v + 1);
        name[v] = name[i];
        name[i] = v;
    }
    return name;
}

berth_status planted_placement(berth_arena *arena, planted_shape shape, uint32_t nodes,
                               uint32_t accelerators, double transfer, uint64_t seed,
                               planted *out_planted) {
    planter p = planter_create(arena, shape, nodes, accelerators, seed);
    fill_accelerators(&p, nodes / 10, nodes - nodes / 10);
    fill_processor(&p, nodes / 10);
    sort_by_start(&p);
    for (uint32_t v = 0; v < nodes; ++v) {
        p.copy[v] = figure(&p, transfer);
        p.hub[v] = shape == PLANTED_FORK_JOIN && below(&p, 12) == 0;
    }
    for (uint32_t i = 0; i < nodes; ++i) choose_preds(&p, i);
    uint32_t *name = name_nodes(&p), *index = berth_arena_new_array(arena, uint32_t, nodes);
    for (uint32_t i = 0; i < nodes; ++i) index[name[i]] = i;
    berth_place_value value;
    do {
        BERTH_TRY(make_problem(&p, name, out_planted));
        BERTH_TRY(berth_place_evaluate(arena, out_planted->problem, BERTH_PLACE_LATENCY, false,
                                       out_planted->assignment, &value));
    } while (value.value > p.end && mend(&p, index, value.node_start));
    if (value.value > p.end)
        return berth_status_make(BERTH_INTERNAL, "the schedule of %g takes %g", p.end, value.value);
    return BERTH_OK;
}
