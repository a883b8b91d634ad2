#include "planner/solve/problem/problem.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

static berth_status check_figure(const berth_place_problem *problem, const char *what,
                                 uint32_t node, double value) {
    if (!(value >= 0))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the %s of node %s is %g; it must be a number from 0", what,
                                 problem->node_names[node], value);
    if (value > BERTH_PLACE_FIGURE_LIMIT)
        return berth_status_make(BERTH_OUT_OF_RANGE, "the %s of node %s is %g, more than %g", what,
                                 problem->node_names[node], value, BERTH_PLACE_FIGURE_LIMIT);
    return BERTH_OK;
}

static berth_status check_figures(const berth_place_problem *problem) {
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        BERTH_TRY(check_figure(problem, "size", v, problem->size_bytes[v]));
        for (uint32_t k = 0; k < problem->kind_count; ++k) {
            size_t at = (size_t)v * problem->kind_count + k;
            if (problem->time[at] != INFINITY)
                BERTH_TRY(check_figure(problem, "time", v, problem->time[at]));
            BERTH_TRY(check_figure(problem, "transfer", v, problem->transfer[at]));
            if (problem->memory)
                BERTH_TRY(check_figure(problem, "memory's time", v, problem->memory_ms[at]));
            if (problem->copy_ms)
                BERTH_TRY(check_figure(problem, "copy's time", v, problem->copy_ms[at]));
        }
        if (problem->direct_ms)
            BERTH_TRY(check_figure(problem, "value", v, problem->value_bytes[v]));
    }
    size_t pairs = problem->direct_ms ? (size_t)problem->kind_count * problem->kind_count : 0;
    for (size_t i = 0; i < pairs; ++i)
        if (problem->direct_ms[i] != INFINITY &&
            !(problem->direct_ms[i] >= 0 && problem->direct_ms_per_byte[i] >= 0))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the direct link from \"%s\" to \"%s\" takes %g ms and %g "
                                     "ms per byte; both must be numbers from 0",
                                     problem->kinds[i / problem->kind_count].name,
                                     problem->kinds[i % problem->kind_count].name,
                                     problem->direct_ms[i], problem->direct_ms_per_byte[i]);
    return BERTH_OK;
}

static berth_status build_devices(berth_arena *arena, berth_place_problem *problem) {
    problem->device_count = 0;
    for (uint32_t k = 0; k < problem->kind_count; ++k) {
        const berth_place_kind *kind = &problem->kinds[k];
        if (kind->device_count > BERTH_PLACE_DEVICE_LIMIT - problem->device_count)
            return berth_status_make(BERTH_OUT_OF_RANGE, "more than %u devices",
                                     BERTH_PLACE_DEVICE_LIMIT);
        if (!(kind->capacity_bytes >= 0))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the capacity of \"%s\" is %g; it must be a number from 0",
                                     kind->name, kind->capacity_bytes);
        problem->device_count += kind->device_count;
    }
    problem->device_kind = berth_arena_new_array(arena, uint32_t, problem->device_count);
    uint32_t device = 0;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        for (uint32_t i = 0; i < problem->kinds[k].device_count; ++i)
            problem->device_kind[device++] = k;
    return BERTH_OK;
}

static berth_status build_groups(berth_arena *arena, berth_place_problem *problem) {
    uint32_t n = problem->node_count;
    problem->group_count = 0;
    for (uint32_t v = 0; v < n; ++v) {
        if (problem->group[v] >= n)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "node %s is in group %u of %u",
                                     problem->node_names[v], problem->group[v], n);
        if (problem->group[v] >= problem->group_count) problem->group_count = problem->group[v] + 1;
    }
    problem->group_start = berth_arena_new_array(arena, uint32_t, (size_t)problem->group_count + 1);
    problem->group_nodes = berth_arena_new_array(arena, uint32_t, n);
    for (uint32_t v = 0; v < n; ++v) problem->group_start[problem->group[v] + 1]++;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        if (problem->group_start[g + 1] == 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "group %u of %u has no nodes", g,
                                     problem->group_count);
        problem->group_start[g + 1] += problem->group_start[g];
    }
    for (uint32_t v = n; v-- > 0;)  // group_start[g + 1] counts down to the group's start
        problem->group_nodes[--problem->group_start[problem->group[v] + 1]] = v;
    for (uint32_t g = 0; g < problem->group_count; ++g)
        problem->group_start[g] = problem->group_start[g + 1];
    problem->group_start[problem->group_count] = n;
    problem->group_bytes = berth_arena_new_array(arena, double, problem->group_count);
    for (uint32_t v = 0; v < n; ++v)
        problem->group_bytes[problem->group[v]] += problem->size_bytes[v];
    return BERTH_OK;
}

// A pin of one node holds for its group.
static berth_status spread_pins(const berth_place_problem *problem) {
    if (!problem->pin) return BERTH_OK;
    for (uint32_t g = 0; g < problem->group_count; ++g) {
        uint32_t pinned = BERTH_PLACE_NONE;
        for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i) {
            uint32_t v = problem->group_nodes[i];
            uint32_t pin = problem->pin[v];
            if (pin == BERTH_PLACE_NONE) continue;
            if (pin >= problem->device_count)
                return berth_status_make(BERTH_INVALID_ARGUMENT,
                                         "node %s is pinned to device %u of %u",
                                         problem->node_names[v], pin, problem->device_count);
            if (pinned != BERTH_PLACE_NONE && problem->pin[pinned] != pin)
                return berth_status_make(BERTH_INVALID_ARGUMENT,
                                         "nodes %s and %s share a device but are pinned to "
                                         "devices %u and %u",
                                         problem->node_names[pinned], problem->node_names[v],
                                         problem->pin[pinned], pin);
            pinned = v;
        }
        if (pinned == BERTH_PLACE_NONE) continue;
        for (uint32_t i = problem->group_start[g]; i < problem->group_start[g + 1]; ++i)
            problem->pin[problem->group_nodes[i]] = problem->pin[pinned];
    }
    return BERTH_OK;
}

// The neighbours of each node in the order of the edges: counting sort by `key`.
static void build_lists(berth_arena *arena, const berth_place_problem *problem, const uint32_t *key,
                        const uint32_t *value, uint32_t **out_start, uint32_t **out_list) {
    uint32_t *start = berth_arena_new_array(arena, uint32_t, (size_t)problem->node_count + 1);
    uint32_t *list = berth_arena_new_array(arena, uint32_t, problem->edge_count);
    for (uint32_t e = 0; e < problem->edge_count; ++e) start[key[e] + 1]++;
    for (uint32_t v = 0; v < problem->node_count; ++v) start[v + 1] += start[v];
    for (uint32_t e = problem->edge_count; e-- > 0;) list[--start[key[e] + 1]] = value[e];
    for (uint32_t v = 0; v < problem->node_count; ++v) start[v] = start[v + 1];
    start[problem->node_count] = problem->edge_count;
    *out_start = start;
    *out_list = list;
}

// Drops edges that repeat an earlier one; keeps the order. `last[v]` is the source that last wrote
// to v.
static void drop_repeated(berth_arena *scratch, berth_place_problem *problem) {
    uint32_t n = problem->node_count;
    uint32_t *order = berth_arena_new_array(scratch, uint32_t, problem->edge_count);
    bool *repeated = berth_arena_new_array(scratch, bool, problem->edge_count);
    uint32_t *index = berth_arena_new_array(scratch, uint32_t, problem->edge_count);
    uint32_t *start = NULL;
    for (uint32_t e = 0; e < problem->edge_count; ++e) index[e] = e;
    build_lists(scratch, problem, problem->edge_from, index, &start, &order);
    uint32_t *last = berth_arena_new_array(scratch, uint32_t, n);
    memset(last, 0xff, (size_t)n * sizeof(*last));
    for (uint32_t v = 0; v < n; ++v)
        for (uint32_t i = start[v]; i < start[v + 1]; ++i) {
            uint32_t to = problem->edge_to[order[i]];
            repeated[order[i]] = last[to] == v;
            last[to] = v;
        }
    uint32_t kept = 0;
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        if (repeated[e]) continue;
        problem->edge_from[kept] = problem->edge_from[e];
        problem->edge_to[kept++] = problem->edge_to[e];
    }
    problem->edge_count = kept;
}

static void sift_down(uint32_t *heap, uint32_t count, uint32_t at) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && heap[child + 1] < heap[child]) ++child;
        if (heap[at] <= heap[child]) return;
        uint32_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

static void sift_up(uint32_t *heap, uint32_t at) {
    for (; at > 0 && heap[(at - 1) / 2] > heap[at]; at = (at - 1) / 2) {
        uint32_t swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
    }
}

// What is left after the topological order has a predecessor that is left: walking backwards runs
// into a cycle.
static berth_status cycle_error(berth_arena *scratch, const berth_place_problem *problem,
                                const uint32_t *waiting) {
    uint32_t *seen = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    uint32_t at = 0;
    while (waiting[at] == 0) ++at;
    uint32_t steps = 0;
    while (!seen[at]) {
        seen[at] = ++steps;
        for (uint32_t i = problem->pred_start[at]; i < problem->pred_start[at + 1]; ++i)
            if (waiting[problem->pred[i]]) {
                at = problem->pred[i];
                break;
            }
    }
    // `at` is on the cycle; collected backwards, shown forwards.
    uint32_t length = steps - seen[at] + 1;
    uint32_t *cycle = berth_arena_new_array(scratch, uint32_t, length);
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (seen[v] >= seen[at]) cycle[length - 1 - (seen[v] - seen[at])] = v;
    enum { SHOWN = 16 };
    berth_strbuf text = berth_strbuf_make(scratch);
    for (uint32_t i = 0; i < length && i < SHOWN; ++i)
        berth_strbuf_addf(&text, "%s -> ", problem->node_names[cycle[i]]);
    if (length > SHOWN) berth_strbuf_addf(&text, "(%u more) -> ", length - SHOWN);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the edges form a cycle: %s%s",
                             berth_strbuf_text(&text), problem->node_names[cycle[0]]);
}

// Kahn's algorithm with a heap, so that ties go by index.
static berth_status build_order(berth_arena *arena, berth_arena *scratch,
                                berth_place_problem *problem) {
    uint32_t n = problem->node_count;
    problem->topological = berth_arena_new_array(arena, uint32_t, n);
    uint32_t *waiting = berth_arena_new_array(scratch, uint32_t, n);
    uint32_t *heap = berth_arena_new_array(scratch, uint32_t, n);
    uint32_t count = 0;
    for (uint32_t v = 0; v < n; ++v) {
        waiting[v] = problem->pred_start[v + 1] - problem->pred_start[v];
        if (waiting[v] == 0) heap[count++] = v;  // increasing: a heap
    }
    uint32_t done = 0;
    while (count > 0) {
        uint32_t v = heap[0];
        heap[0] = heap[--count];
        sift_down(heap, count, 0);
        problem->topological[done++] = v;
        for (uint32_t i = problem->succ_start[v]; i < problem->succ_start[v + 1]; ++i) {
            if (--waiting[problem->succ[i]] > 0) continue;
            heap[count] = problem->succ[i];
            sift_up(heap, count++);
        }
    }
    return done == n ? BERTH_OK : cycle_error(scratch, problem, waiting);
}

static berth_status check_edges(const berth_place_problem *problem) {
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t from = problem->edge_from[e];
        uint32_t to = problem->edge_to[e];
        if (from >= problem->node_count || to >= problem->node_count)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "edge %u from %u to %u: there are %u "
                                     "nodes",
                                     e, from, to, problem->node_count);
        if (from == to)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "node %s has an edge to itself",
                                     problem->node_names[from]);
    }
    return BERTH_OK;
}

typedef struct finish_call {
    berth_arena *arena;
    berth_arena *scratch;
    berth_place_problem *problem;
} finish_call;

static berth_status finish_body(void *user) {
    finish_call *call = user;
    berth_place_problem *problem = call->problem;
    if (problem->node_count > BERTH_PLACE_NODE_LIMIT)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%u nodes; the limit is %u",
                                 problem->node_count, BERTH_PLACE_NODE_LIMIT);
    BERTH_TRY(check_figures(problem));
    BERTH_TRY(build_devices(call->arena, problem));
    uint64_t pairs = (uint64_t)problem->node_count * problem->device_count;
    if (pairs > BERTH_PLACE_PAIR_LIMIT)
        return berth_status_make(
            BERTH_OUT_OF_RANGE, "%u nodes on %u devices are %llu pairs; the limit is %llu",
            problem->node_count, problem->device_count, (unsigned long long)pairs,
            (unsigned long long)BERTH_PLACE_PAIR_LIMIT);
    BERTH_TRY(check_edges(problem));
    BERTH_TRY(build_groups(call->arena, problem));
    BERTH_TRY(spread_pins(problem));
    call->scratch = berth_arena_create_child(call->arena);
    drop_repeated(call->scratch, problem);
    build_lists(call->arena, problem, problem->edge_from, problem->edge_to, &problem->succ_start,
                &problem->succ);
    build_lists(call->arena, problem, problem->edge_to, problem->edge_from, &problem->pred_start,
                &problem->pred);
    return build_order(call->arena, call->scratch, problem);
}

berth_status berth_place_problem_finish(berth_arena *arena, berth_place_problem *problem) {
    finish_call call = {arena, NULL, problem};
    berth_status status = berth_arena_try(arena, finish_body, &call);
    berth_arena_destroy(call.scratch);
    return status;
}

bool berth_place_has_room(const berth_place_problem *problem, uint32_t group, uint32_t kind) {
    // Sizes may be fractions; the check (evaluate.c) allows their sums as much.
    return problem->group_bytes[group] <= problem->kinds[kind].capacity_bytes * (1 + 1e-12);
}

double berth_place_direct_kinds(const berth_place_problem *problem, uint32_t node,
                                uint32_t from_kind, uint32_t to_kind) {
    if (!problem->direct_ms) return INFINITY;
    size_t pair = (size_t)from_kind * problem->kind_count + to_kind;
    if (problem->direct_ms[pair] == INFINITY) return INFINITY;
    return problem->direct_ms[pair] +
           problem->value_bytes[node] * problem->direct_ms_per_byte[pair];
}

double berth_place_direct(const berth_place_problem *problem, uint32_t node, uint32_t from,
                          uint32_t to) {
    return berth_place_direct_kinds(problem, node, problem->device_kind[from],
                                    problem->device_kind[to]);
}

uint32_t berth_place_kind_first(const berth_place_problem *problem, uint32_t kind) {
    uint32_t first = 0;
    for (uint32_t k = 0; k < kind; ++k) first += problem->kinds[k].device_count;
    return first;
}

// Memories by their first devices, then buses to host memory by theirs, then other buses.
uint32_t berth_place_shared_count(const berth_place_problem *problem) {
    return 2 * problem->device_count + problem->direct_bus_count;
}

void berth_place_shared_nodes(const berth_place_problem *problem, const uint32_t *assignment,
                              double *sums) {
    memset(sums, 0, berth_place_shared_count(problem) * sizeof(*sums));
    for (uint32_t v = 0; problem->memory && v < problem->node_count; ++v) {
        uint32_t d = assignment[v];
        sums[problem->memory[d]] +=
            problem->memory_ms[(size_t)v * problem->kind_count + problem->device_kind[d]];
    }
}

void berth_place_shared_copy(const berth_place_problem *problem, uint32_t node, uint32_t from,
                             uint32_t to, double ms, double *sums) {
    const uint32_t *kind = problem->device_kind;
    const uint32_t ends[2] = {from == BERTH_PLACE_NONE ? problem->hub : from,
                              to == BERTH_PLACE_NONE ? problem->hub : to};
    bool moves = problem->copy_ms && problem->memory[ends[0]] != problem->memory[ends[1]];
    for (int i = 0; moves && i < 2; ++i)
        sums[problem->memory[ends[i]]] +=
            problem->copy_ms[(size_t)node * problem->kind_count + kind[ends[i]]];
    if (!problem->direct_bus) return;
    bool direct = from != BERTH_PLACE_NONE && to != BERTH_PLACE_NONE;
    uint32_t device = from == BERTH_PLACE_NONE ? to : from;
    uint32_t bus = direct         ? problem->direct_bus[kind[from] * problem->kind_count + kind[to]]
                   : problem->bus ? problem->bus[device]
                                  : device;
    if (bus != BERTH_PLACE_NONE) sums[problem->device_count + bus] += ms;
}

double berth_place_shared_most(const berth_place_problem *problem, const double *sums) {
    double most = 0;
    for (uint32_t i = 0; i < berth_place_shared_count(problem); ++i)
        if (sums[i] > most) most = sums[i];
    return most;
}
