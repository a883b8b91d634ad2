#include "planner/solve/latency/model.h"

#include <math.h>
#include <string.h>

uint64_t berth_solve__random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

uint32_t berth_solve__random_below(uint64_t *state, uint32_t count) {
    return (uint32_t)(((berth_solve__random(state) >> 32) * count) >> 32);
}

double berth_solve__random_unit(uint64_t *state) {
    return (double)(berth_solve__random(state) >> 11) * 0x1p-53;
}

static double smallest_time(const berth_place_problem *problem, uint32_t node) {
    double least = INFINITY;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        if (problem->kinds[k].device_count > 0 &&
            berth_place_has_room(problem, problem->group[node], k))
            least = fmin(least, problem->time[(size_t)node * problem->kind_count + k]);
    return least;
}

static void find_tails(berth_solve__latency *latency) {
    const berth_place_problem *problem = latency->problem;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t node = problem->topological[i];
        double after = 0;
        for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s)
            after = fmax(after, latency->tail[problem->succ[s]]);
        latency->tail[node] = smallest_time(problem, node) + after;
    }
}

static void find_fits(berth_solve__latency *latency) {
    const berth_place_problem *problem = latency->problem;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        bool *fits = latency->fits + (size_t)g * problem->device_count;
        for (uint32_t d = 0; d < problem->device_count; ++d)
            fits[d] = berth_place_has_room(problem, g, problem->device_kind[d]);
        for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i) {
            uint32_t node = problem->group_nodes[i];
            const double *time = problem->time + (size_t)node * problem->kind_count;
            uint32_t pin = problem->pin ? problem->pin[node] : BERTH_PLACE_NONE;
            for (uint32_t d = 0; d < problem->device_count; ++d)
                if (isinf(time[problem->device_kind[d]]) || (pin != BERTH_PLACE_NONE && pin != d))
                    fits[d] = false;
        }
    }
}

berth_solve__latency *berth_solve__latency_create(berth_arena *arena,
                                                  const berth_place_problem *problem) {
    berth_solve__latency *latency = berth_arena_new(arena, berth_solve__latency);
    uint32_t nodes = problem->node_count, devices = problem->device_count;
    uint32_t groups = problem->group_count, items = nodes + devices;
    latency->problem = problem;
    latency->single = berth_arena_new_array(arena, bool, devices);
    latency->device = berth_arena_new_array(arena, uint32_t, nodes);
    latency->free_bytes = berth_arena_new_array(arena, double, devices);
    latency->count = berth_arena_new_array(arena, uint32_t, devices);
    latency->tail = berth_arena_new_array(arena, double, nodes);
    latency->fits = berth_arena_new_array(arena, bool, (size_t)groups *devices);
    latency->group_bytes = problem->group_bytes;
    latency->done = berth_arena_new_array(arena, double, nodes);
    latency->critical = berth_arena_new_array(arena, uint32_t, nodes);
    latency->changes = berth_arena_new_array(arena, berth_solve__latency_change, groups);
    latency->changed = berth_arena_new_array(arena, uint32_t, groups);
    latency->need = berth_arena_new_array(arena, uint32_t, items);
    latency->stack = berth_arena_new_array(arena, uint32_t, items);
    latency->next = berth_arena_new_array(arena, uint32_t, nodes);
    latency->head = berth_arena_new_array(arena, uint32_t, devices);
    latency->seen = berth_arena_new_array(arena, uint32_t, devices);
    latency->load = berth_arena_new_array(arena, double, devices);
    latency->ready = berth_arena_new_array(arena, double, items);
    latency->from = berth_arena_new_array(arena, uint32_t, items);
    for (uint32_t n = 0; n < nodes; ++n) latency->device[n] = BERTH_PLACE_NONE;
    for (uint32_t d = 0; d < devices; ++d) {
        latency->single[d] = !problem->kinds[problem->device_kind[d]].concurrent;
        latency->free_bytes[d] = problem->kinds[problem->device_kind[d]].capacity_bytes;
    }
    find_tails(latency);
    find_fits(latency);
    return latency;
}

void berth_solve__latency_begin(berth_solve__latency *latency) {
    latency->change_count = 0;
    latency->move_number++;
    if (latency->move_number == 0) {  // wrapped around
        memset(latency->changed, 0, latency->problem->group_count * sizeof(uint32_t));
        latency->move_number = 1;
    }
}

static void put_group(berth_solve__latency *latency, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = latency->problem;
    uint32_t first = problem->group_start[group], end = problem->group_start[group + 1];
    uint32_t old = latency->device[problem->group_nodes[first]];
    if (old != BERTH_PLACE_NONE) {
        latency->free_bytes[old] += latency->group_bytes[group];
        latency->count[old] -= end - first;
        latency->placed -= end - first;
    }
    if (device != BERTH_PLACE_NONE) {
        latency->free_bytes[device] -= latency->group_bytes[group];
        latency->count[device] += end - first;
        latency->placed += end - first;
    }
    for (uint32_t i = first; i < end; ++i) latency->device[problem->group_nodes[i]] = device;
}

void berth_solve__latency_put(berth_solve__latency *latency, uint32_t group, uint32_t device) {
    put_group(latency, group, device);
}

bool berth_solve__latency_move(berth_solve__latency *latency, uint32_t group, uint32_t device) {
    const berth_place_problem *problem = latency->problem;
    if (!latency->fits[(size_t)group * problem->device_count + device]) return false;
    uint32_t old = latency->device[problem->group_nodes[problem->group_start[group]]];
    if (old == device) return true;
    if (latency->changed[group] != latency->move_number) {
        latency->changed[group] = latency->move_number;
        latency->changes[latency->change_count++] =
            (berth_solve__latency_change){.group = group, .device = old};
    }
    put_group(latency, group, device);
    return true;
}

void berth_solve__latency_undo(berth_solve__latency *latency) {
    while (latency->change_count > 0) {
        const berth_solve__latency_change *change = &latency->changes[--latency->change_count];
        put_group(latency, change->group, change->device);
    }
}

bool berth_solve__latency_set(berth_solve__latency *latency, const uint32_t *assignment) {
    const berth_place_problem *problem = latency->problem;
    berth_solve__latency_begin(latency);
    for (uint32_t g = 0; g < problem->group_count; ++g)
        if (!berth_solve__latency_move(latency, g,
                                       assignment[problem->group_nodes[problem->group_start[g]]]))
            return false;
    return true;
}

// Loads, lists and open predecessors of all items: a plain node is its own item, the nodes of a
// device with one subgraph are item node_count + device.
static bool count_needs(berth_solve__latency *latency) {
    const berth_place_problem *problem = latency->problem;
    uint32_t nodes = problem->node_count, devices = problem->device_count;
    const uint32_t *device = latency->device;
    for (uint32_t d = 0; d < devices; ++d) {
        if (latency->free_bytes[d] < 0 && latency->count[d] > 0) return false;
        latency->head[d] = BERTH_PLACE_NONE;
        latency->load[d] = 0;
    }
    memset(latency->need, 0, (nodes + devices) * sizeof(uint32_t));
    memset(latency->ready, 0, (nodes + devices) * sizeof(double));
    for (uint32_t u = 0; u < nodes; ++u) {
        uint32_t d = device[u];
        bool outside = false;
        if (d == BERTH_PLACE_NONE) continue;
        latency->stamp++;
        if (latency->stamp == 0) {
            memset(latency->seen, 0, devices * sizeof(uint32_t));
            latency->stamp = 1;
        }
        const double *transfer = problem->transfer + (size_t)u * problem->kind_count;
        for (uint32_t s = problem->succ_start[u]; s < problem->succ_start[u + 1]; ++s) {
            uint32_t v = problem->succ[s], e = device[v];
            if (e == BERTH_PLACE_NONE) continue;
            if (latency->single[e]) {
                if (e == d) continue;
                latency->need[nodes + e]++;
                if (latency->seen[e] != latency->stamp) {
                    latency->seen[e] = latency->stamp;
                    latency->load[e] += transfer[problem->device_kind[e]];
                }
            } else {
                latency->need[v]++;
            }
            outside |= e != d;
        }
        if (!latency->single[d]) continue;
        latency->load[d] +=
            problem->time[(size_t)u * problem->kind_count + problem->device_kind[d]];
        if (outside) latency->load[d] += transfer[problem->device_kind[d]];
        latency->next[u] = latency->head[d];
        latency->head[d] = u;
    }
    return true;
}

typedef struct sweep {
    uint32_t depth;  // of the stack of ready items
    uint32_t done_count;
    double value;
} sweep;

// `node` is done at `time`: tells its successors outside.
static void finish_node(berth_solve__latency *latency, sweep *state, uint32_t node, double time) {
    const berth_place_problem *problem = latency->problem;
    uint32_t d = latency->device[node];
    latency->done[node] = time;
    state->done_count++;
    for (uint32_t s = problem->succ_start[node]; s < problem->succ_start[node + 1]; ++s) {
        uint32_t item = problem->succ[s], e = latency->device[item];
        if (e == BERTH_PLACE_NONE) continue;
        if (latency->single[e]) {
            if (e == d) continue;
            item = problem->node_count + e;
        }
        if (time >= latency->ready[item]) {
            latency->ready[item] = time;
            latency->from[item] = node;
        }
        if (--latency->need[item] == 0) latency->stack[state->depth++] = item;
    }
}

static bool sweep_items(berth_solve__latency *latency, sweep *state, double limit) {
    const berth_place_problem *problem = latency->problem;
    uint32_t nodes = problem->node_count;
    while (state->depth > 0) {
        uint32_t item = latency->stack[--state->depth];
        double time = latency->ready[item];
        uint32_t d = item < nodes ? latency->device[item] : item - nodes;
        if (item < nodes) {
            if (time + latency->tail[item] > limit) return false;
            time += problem->time[(size_t)item * problem->kind_count + problem->device_kind[d]];
        } else {
            time += latency->load[d];
        }
        if (time > limit) return false;
        latency->spread += time;
        if (time > state->value || state->done_count == 0) {
            state->value = time;
            latency->last = item < nodes ? item : latency->head[d];
        }
        if (item < nodes) {
            latency->critical[item] = latency->from[item];
            finish_node(latency, state, item, time);
            continue;
        }
        for (uint32_t u = latency->head[d]; u != BERTH_PLACE_NONE; u = latency->next[u]) {
            latency->critical[u] = latency->from[item];
            finish_node(latency, state, u, time);
        }
    }
    return true;
}

double berth_solve__latency_value(berth_solve__latency *latency, double limit) {
    const berth_place_problem *problem = latency->problem;
    uint32_t nodes = problem->node_count;
    sweep state = {0};
    latency->spread = 0;
    if (!count_needs(latency)) return INFINITY;
    for (uint32_t item = 0; item < nodes + problem->device_count; ++item) {
        latency->from[item] = BERTH_PLACE_NONE;
        if (latency->need[item] > 0) continue;
        if (item < nodes
                ? latency->device[item] != BERTH_PLACE_NONE &&
                      !latency->single[latency->device[item]]
                : latency->single[item - nodes] && latency->head[item - nodes] != BERTH_PLACE_NONE)
            latency->stack[state.depth++] = item;
    }
    if (!sweep_items(latency, &state, limit)) return INFINITY;
    // A cycle leaves nodes undone.
    return state.done_count == latency->placed ? state.value : INFINITY;
}
