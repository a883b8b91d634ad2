#include "planner/solve/bounds/path_loads.h"

#include <math.h>

enum { MOST_STEPS = 4000, LOOK_EVERY = 100 };
static const double FIRST_BLUR = 0.15;  // of the smooth maximum, relative to it
static const double LEAST_BLUR = 2e-4;
static const double LEAST_GAIN = 5e-4;  // of LOOK_EVERY steps, relative, to go on
static const double ROUNDING = 1e-9;    // what the sums may be wrong by, relatively

typedef struct weigher {
    const berth_place_problem *problem;
    double *time;    // [node_count * kind_count] INFINITY = not there
    double *mean;    // [node_count] of the times of the fractions of a node
    double *load;    // [kind_count] per device; 0 for kinds that run any number of nodes
    double *head;    // [node_count] smooth longest path up to the end of the node
    double *most;    // [node_count] largest head of its predecessors
    double *sum;     // [node_count] of exp((head - most) / blur) over them
    double *flow;    // [node_count] weight of the paths through it
    double *weight;  // [kind_count]
    double *added;   // [kind_count] load of the last choice
    double blur;
} weigher;

static bool is_serial(const berth_place_problem *problem, uint32_t kind) {
    return !problem->kinds[kind].concurrent && problem->kinds[kind].device_count > 0;
}

static weigher weigher_create(berth_arena *arena, const berth_place_problem *problem) {
    uint32_t nodes = problem->node_count, kinds = problem->kind_count;
    weigher w = {.problem = problem};
    w.time = berth_arena_new_array(arena, double, (size_t)nodes *kinds);
    w.mean = berth_arena_new_array(arena, double, nodes);
    w.load = berth_arena_new_array(arena, double, kinds);
    w.head = berth_arena_new_array(arena, double, nodes);
    w.most = berth_arena_new_array(arena, double, nodes);
    w.sum = berth_arena_new_array(arena, double, nodes);
    w.flow = berth_arena_new_array(arena, double, nodes);
    w.weight = berth_arena_new_array(arena, double, kinds);
    w.added = berth_arena_new_array(arena, double, kinds);
    for (uint32_t v = 0; v < nodes; ++v) {
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        for (uint32_t k = 0; k < kinds; ++k) {
            bool out = problem->kinds[k].device_count == 0 ||
                       (pin != BERTH_PLACE_NONE && problem->device_kind[pin] != k);
            size_t cell = (size_t)v * kinds + k;
            w.time[cell] = out ? INFINITY : problem->time[cell];
        }
    }
    return w;
}

// Heads, and the smooth maximum over paths and loads.
static double look_forwards(weigher *w) {
    const berth_place_problem *problem = w->problem;
    double largest = 0, all = 0;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        uint32_t first = problem->pred_start[v], end = problem->pred_start[v + 1];
        double most = 0, sum = 0;
        for (uint32_t e = first; e < end; ++e) most = fmax(most, w->head[problem->pred[e]]);
        for (uint32_t e = first; e < end; ++e)
            sum += exp((w->head[problem->pred[e]] - most) / w->blur);
        w->most[v] = most;
        w->sum[v] = sum;
        w->head[v] = w->mean[v] + most + (sum > 1 ? w->blur * log(sum) : 0);
        largest = fmax(largest, w->head[v]);
    }
    for (uint32_t k = 0; k < problem->kind_count; ++k) largest = fmax(largest, w->load[k]);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        bool ends = problem->succ_start[v + 1] == problem->succ_start[v];
        w->flow[v] = ends ? exp((w->head[v] - largest) / w->blur) : 0;
        all += w->flow[v];
    }
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        w->weight[k] = is_serial(problem, k) ? exp((w->load[k] - largest) / w->blur) : 0;
        all += w->weight[k];
    }
    for (uint32_t v = 0; v < problem->node_count; ++v) w->flow[v] /= all;
    for (uint32_t k = 0; k < problem->kind_count; ++k) w->weight[k] /= all;
    return largest;
}

// What ends in a node comes from its predecessors: the flow's shares are those of the maximum.
static void look_backwards(weigher *w) {
    const berth_place_problem *problem = w->problem;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t v = problem->topological[i];
        for (uint32_t e = problem->pred_start[v]; e < problem->pred_start[v + 1]; ++e) {
            uint32_t u = problem->pred[e];
            w->flow[u] += w->flow[v] * exp((w->head[u] - w->most[v]) / w->blur) / w->sum[v];
        }
    }
}

// The bound of these weights; moves `part` of every node to the kind that is best for it by them.
static double step_towards(weigher *w, double part) {
    const berth_place_problem *problem = w->problem;
    uint32_t kinds = problem->kind_count;
    double bound = 0;
    for (uint32_t k = 0; k < kinds; ++k) w->added[k] = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double least = INFINITY;
        uint32_t best = 0;
        for (uint32_t k = 0; k < kinds; ++k) {
            double time = w->time[(size_t)v * kinds + k];
            if (isinf(time)) continue;
            double cost = time * (w->flow[v] + w->weight[k] / problem->kinds[k].device_count);
            if (cost >= least) continue;
            least = cost;
            best = k;
        }
        if (isinf(least)) return 0;  // it is able nowhere: others say so
        bound += least;
        double time = w->time[(size_t)v * kinds + best];
        w->mean[v] += part * (time - w->mean[v]);
        w->added[best] += time / problem->kinds[best].device_count;
    }
    for (uint32_t k = 0; k < kinds; ++k)
        if (is_serial(problem, k)) w->load[k] += part * (w->added[k] - w->load[k]);
    return bound;
}

void berth_place__path_loads_bound(berth_place_search *search, double share) {
    const berth_place_problem *problem = search->problem;
    double scale = search->best_value < INFINITY ? search->best_value : search->lower_bound;
    if (!(scale > 0)) return;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    const berth_place_since since = berth_place_now(search);
    weigher w = weigher_create(scratch, problem);
    uint64_t work = 1 + ((uint64_t)problem->node_count + problem->edge_count) / 16;
    double best = 0, looked = 0;
    (void)step_towards(&w, 1);  // without weights: each node somewhere
    for (uint32_t i = 0; i < MOST_STEPS && !berth_place_spent(search, work); ++i) {
        w.blur = fmax(FIRST_BLUR / sqrt(i + 1.0), LEAST_BLUR) * scale;
        (void)look_forwards(&w);
        look_backwards(&w);
        best = fmax(best, step_towards(&w, 2.0 / (i + 3.0)));
        if (berth_place_used(search, since) > share) break;
        if (i % LOOK_EVERY != LOOK_EVERY - 1) continue;
        if (best < looked * (1 + LEAST_GAIN)) break;
        looked = best;
    }
    berth_place_bound(search, best * (1 - ROUNDING));
    berth_arena_destroy(scratch);
}
