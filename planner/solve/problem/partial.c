#include "planner/solve/problem/partial.h"

#include <math.h>
#include <string.h>

#include "planner/solve/bounds/list_bound.h"
#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/latency/model.h"
#include "planner/solve/problem/evaluate_private.h"

#define ROUNDING 1e-12  // what sums of the same figures in another order may differ by, relatively

struct berth_place__partial {
    berth_arena *arena;
    const berth_place_problem *problem;
    const berth_place_options *options;
    bool list;                         // latency by list scheduling
    uint32_t *at;                      // [node_count]
    bool *fits;                        // [group_count * device_count] support and pins
    double *group_bytes;               // [group_count]
    double *group_time;                // [group_count * kind_count]
    double *bytes, *time;              // [device_count] what is placed
    double *saved_bytes, *saved_time;  // [group_count] of its device before it was placed
    uint32_t *used;                    // [device_count] groups there
    // Throughput: weights of the devices' loads (load_bound.h).
    double *weight;  // [kind_count]
    double *floor;   // [group_count] least weighted time
    double *load;    // [device_count] scratch
    // Latency:
    berth_place__paths *paths;
    berth_solve__list *schedule;
    berth_solve__latency *latency;
    double *least_time;  // [node_count] on any device
    double *way;         // [node_count] over nodes that are not placed, to the end
};

static double time_on(const berth_place__partial *p, uint32_t node, uint32_t device) {
    return p->problem
        ->time[(size_t)node * p->problem->kind_count + p->problem->device_kind[device]];
}

static void describe_groups(berth_place__partial *p) {
    const berth_place_problem *problem = p->problem;
    size_t cells = (size_t)problem->group_count * problem->device_count;
    p->fits = berth_arena_new_array(p->arena, bool, cells);
    p->group_bytes = berth_arena_new_array(p->arena, double, problem->group_count);
    p->group_time =
        berth_arena_new_array(p->arena, double, (size_t)problem->group_count * problem->kind_count);
    memset(p->fits, true, cells);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t g = problem->group[v];
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        p->group_bytes[g] += problem->size_bytes[v];
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            p->group_time[(size_t)g * problem->kind_count + k] +=
                problem->time[(size_t)v * problem->kind_count + k];
        for (uint32_t d = 0; d < problem->device_count; ++d)
            if (time_on(p, v, d) == INFINITY || (pin != BERTH_PLACE_NONE && pin != d))
                p->fits[(size_t)g * problem->device_count + d] = false;
    }
}

berth_place__partial *berth_place__partial_create(berth_arena *arena,
                                                  const berth_place_problem *problem,
                                                  const berth_place_options *options) {
    berth_place__partial *p = berth_arena_new(arena, berth_place__partial);
    uint32_t devices = problem->device_count;
    p->arena = arena;
    p->problem = problem;
    p->options = options;
    p->at = berth_arena_new_array(arena, uint32_t, problem->node_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) p->at[v] = BERTH_PLACE_NONE;
    p->bytes = berth_arena_new_array(arena, double, devices);
    p->time = berth_arena_new_array(arena, double, devices);
    p->saved_bytes = berth_arena_new_array(arena, double, problem->group_count);
    p->saved_time = berth_arena_new_array(arena, double, problem->group_count);
    p->used = berth_arena_new_array(arena, uint32_t, devices);
    p->load = berth_arena_new_array(arena, double, devices);
    describe_groups(p);
    bool latency = options->objective == BERTH_PLACE_LATENCY;
    p->list = latency && !problem->one_subgraph;
    if (p->list) {
        p->paths = berth_place__paths_create(arena, problem, true);
        p->schedule = berth_solve__list_create(arena, problem);
    } else if (latency) {
        p->latency = berth_solve__latency_create(arena, problem);
        p->way = berth_arena_new_array(arena, double, problem->node_count);
        p->least_time = berth_arena_new_array(arena, double, problem->node_count);
        for (uint32_t v = 0; v < problem->node_count; ++v) {
            p->least_time[v] = INFINITY;
            for (uint32_t d = 0; d < devices; ++d)
                p->least_time[v] = fmin(p->least_time[v], time_on(p, v, d));
        }
    } else if (options->objective == BERTH_PLACE_THROUGHPUT) {
        p->weight = berth_arena_new_array(arena, double, problem->kind_count);
        p->floor = berth_arena_new_array(arena, double, problem->group_count);
        (void)berth_place__weigh_loads(problem, berth_place__nets(arena, problem, NULL, 0),
                                       p->weight, p->floor);
    }
    return p;
}

const uint32_t *berth_place__partial_at(const berth_place__partial *partial) {
    return partial->at;
}

// ------------------------------------------------------------------------------------------------
// moves

static void set_group(berth_place__partial *p, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = p->problem;
    for (uint32_t i = problem->group_start[group]; i < problem->group_start[group + 1]; ++i)
        p->at[problem->group_nodes[i]] = device;
    if (p->latency) berth_solve__latency_put(p->latency, group, device);
    bool *able = p->list ? p->paths->able + (size_t)group * problem->device_count : NULL;
    const bool *fits = p->fits + (size_t)group * problem->device_count;
    for (uint32_t d = 0; able && d < problem->device_count; ++d)
        able[d] = device == BERTH_PLACE_NONE ? fits[d] : d == device;
}

bool berth_place__partial_put(berth_place__partial *p, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = p->problem;
    if (!p->fits[(size_t)group * problem->device_count + device]) return false;
    uint32_t kind = problem->device_kind[device];
    double bytes = p->bytes[device] + p->group_bytes[group];
    if (bytes > problem->kinds[kind].capacity_bytes * (1 + ROUNDING)) return false;
    p->saved_bytes[group] = p->bytes[device];
    p->saved_time[group] = p->time[device];
    p->bytes[device] = bytes;
    p->time[device] += p->group_time[(size_t)group * problem->kind_count + kind];
    p->used[device]++;
    set_group(p, group, device);
    return true;
}

void berth_place__partial_take(berth_place__partial *p, uint32_t group) {
    uint32_t device = p->at[p->problem->group_nodes[p->problem->group_start[group]]];
    p->bytes[device] = p->saved_bytes[group];  // exactly what it was
    p->time[device] = p->saved_time[group];
    p->used[device]--;
    set_group(p, group, BERTH_PLACE_NONE);
}

// ------------------------------------------------------------------------------------------------
// bounds

// Adds what moving a node's value costs each of the devices that have its ends; nothing where that is
// one. 64 devices at a time.
static void add_transfers(berth_place__partial *p, uint32_t u) {
    const berth_place_problem *problem = p->problem;
    uint32_t some = p->at[u];
    bool cut = false;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
        uint32_t at = p->at[problem->succ[i]];
        cut |= at != BERTH_PLACE_NONE && some != BERTH_PLACE_NONE && at != some;
        if (some == BERTH_PLACE_NONE) some = at;
    }
    for (uint32_t first = 0; cut && first < problem->device_count; first += 64) {
        uint64_t span = p->at[u] - first < 64 ? (uint64_t)1 << (p->at[u] - first) : 0;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i)
            if (p->at[problem->succ[i]] - first < 64)  // BERTH_PLACE_NONE is far off
                span |= (uint64_t)1 << (p->at[problem->succ[i]] - first);
        for (; span; span &= span - 1) {
            uint32_t d = first + (uint32_t)__builtin_ctzll(span);
            p->load[d] +=
                problem->transfer[(size_t)u * problem->kind_count + problem->device_kind[d]];
        }
    }
}

static double throughput_bound(berth_place__partial *p) {
    const berth_place_problem *problem = p->problem;
    double *load = p->load, most = 0, mean = 0;
    memcpy(load, p->time, problem->device_count * sizeof(*load));
    for (uint32_t u = 0; u < problem->node_count; ++u) add_transfers(p, u);
    for (uint32_t g = 0; g < problem->group_count; ++g)
        if (p->at[problem->group_nodes[problem->group_start[g]]] == BERTH_PLACE_NONE)
            mean += p->floor[g];
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        most = fmax(most, load[d]);
        mean += p->weight[problem->device_kind[d]] * load[d];
    }
    return fmax(most, mean);
}

static double memory_bound(const berth_place__partial *p) {
    const berth_place_problem *problem = p->problem;
    bool share = berth_place_memory_is_share(problem);
    double most = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        double capacity = problem->kinds[problem->device_kind[d]].capacity_bytes;
        if (p->bytes[d] > 0) most = fmax(most, share ? p->bytes[d] / capacity : p->bytes[d]);
    }
    return most;
}

// The paths, and for each device that runs one node at a time: what is there, between the earliest
// start of any of it and the least that must follow any of it.
static double list_bound(berth_place__partial *p) {
    const berth_place_problem *problem = p->problem;
    double most = berth_place__paths_bound(p->paths);
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        double head = INFINITY, tail = INFINITY;
        if (problem->kinds[problem->device_kind[d]].concurrent || p->used[d] == 0) continue;
        for (uint32_t v = 0; v < problem->node_count; ++v) {
            if (p->at[v] != d || time_on(p, v, d) == 0) continue;
            head = fmin(head, p->paths->head[(size_t)v * problem->device_count + d]);
            tail = fmin(tail, p->paths->tail[(size_t)v * problem->device_count + d]);
        }
        if (head < INFINITY) most = fmax(most, head + p->time[d] + tail);
    }
    return most;
}

// What is placed, as if there were nothing else (less can only be earlier), and the shortest way
// from there on over nodes that are not placed. Those may come to the same subgraph: then it ends
// later by as much. (A way that comes back to a placed node ends there: its time is counted.)
static double subgraph_bound(berth_place__partial *p) {
    const berth_place_problem *problem = p->problem;
    double most = berth_solve__latency_value(p->latency, INFINITY);
    for (uint32_t i = problem->node_count; i-- > 0 && most < INFINITY;) {
        uint32_t v = problem->topological[i];
        bool placed = p->at[v] != BERTH_PLACE_NONE;
        double after = 0;
        for (uint32_t s = problem->succ_start[v]; s < problem->succ_start[v + 1]; ++s)
            if (p->at[problem->succ[s]] == BERTH_PLACE_NONE)
                after = fmax(after, p->way[problem->succ[s]]);
        if (placed) most = fmax(most, p->latency->done[v] + after);
        p->way[v] = (placed ? 0 : p->least_time[v]) + after;
    }
    return most;
}

double berth_place__partial_bound(berth_place__partial *p) {
    switch (p->options->objective) {
    case BERTH_PLACE_THROUGHPUT: return throughput_bound(p) * (1 - ROUNDING);
    case BERTH_PLACE_MEMORY: return memory_bound(p) * (1 - ROUNDING);
    default: return (p->list ? list_bound(p) : subgraph_bound(p)) * (1 - ROUNDING);
    }
}

double berth_place__partial_value(berth_place__partial *p, double limit) {
    if (p->list) return berth_solve__list_value(p->schedule, p->at, limit, NULL, NULL);
    berth_arena *scratch = berth_arena_create_child(p->arena);
    berth_place_value value;
    berth_status status = berth_place_evaluate(scratch, p->problem, p->options->objective,
                                               p->options->contiguous, p->at, &value);
    if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) berth_arena_fail(p->arena);
    double result = status || value.value > limit ? INFINITY : value.value;
    berth_status_free(status);
    berth_arena_destroy(scratch);
    return result;
}
