#include "planner/solve/problem/evaluate.h"

#include <math.h>
#include <string.h>

#include "planner/solve/problem/evaluate_private.h"

// ------------------------------------------------------------------------------------------------
// limits

static berth_status check_node(const berth_place_problem *problem, const uint32_t *assignment,
                               uint32_t v) {
    uint32_t d = assignment[v];
    const char *name = problem->node_names[v];
    if (d >= problem->device_count)
        return berth_status_make(BERTH_FAILED_PRECONDITION, "node %s is on device %u of %u", name,
                                 d, problem->device_count);
    uint32_t kind = problem->device_kind[d];
    if (problem->time[(size_t)v * problem->kind_count + kind] == INFINITY)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "node %s is on device %u (%s), which does not support it", name, d,
                                 problem->kinds[kind].name);
    if (problem->pin && problem->pin[v] != BERTH_PLACE_NONE && problem->pin[v] != d)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "node %s is on device %u, but pinned to device %u", name, d,
                                 problem->pin[v]);
    uint32_t first = problem->group_nodes[problem->group_start[problem->group[v]]];
    if (assignment[first] != d)
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "nodes %s and %s must share a device, but are on devices %u and "
                                 "%u",
                                 problem->node_names[first], name, assignment[first], d);
    return BERTH_OK;
}

static berth_status check_limits(berth_arena *scratch, const berth_place_problem *problem,
                                 const uint32_t *assignment) {
    double *bytes = berth_arena_new_array(scratch, double, problem->device_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        BERTH_TRY(check_node(problem, assignment, v));
        bytes[assignment[v]] += problem->size_bytes[v];
    }
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        const berth_place_kind *kind = &problem->kinds[problem->device_kind[d]];
        if (bytes[d] > kind->capacity_bytes * (1 + 1e-12))  // sizes may be fractions
            return berth_status_make(BERTH_FAILED_PRECONDITION,
                                     "device %u (%s) holds %.17g bytes, its capacity is %.17g", d,
                                     kind->name, bytes[d], kind->capacity_bytes);
    }
    return BERTH_OK;
}

// Follows "comes before" among the devices: before[a * count + b]. Repeatedly takes away a device
// with nothing before it; what cannot be taken away is on a cycle.
static bool is_acyclic(berth_arena *scratch, const bool *before, uint32_t count, uint32_t *out_on) {
    bool *gone = berth_arena_new_array(scratch, bool, count);
    for (uint32_t left = count; left > 0; --left) {
        uint32_t free = BERTH_PLACE_NONE;
        for (uint32_t b = 0; b < count && free == BERTH_PLACE_NONE; ++b) {
            bool waits = gone[b];
            for (uint32_t a = 0; a < count && !waits; ++a)
                waits = !gone[a] && before[(size_t)a * count + b];
            if (!waits) free = b;
        }
        if (free == BERTH_PLACE_NONE) {
            for (*out_on = 0; gone[*out_on];) ++*out_on;
            return false;
        }
        gone[free] = true;
    }
    return true;
}

// The order of the devices exists when "a forward node of a feeds a forward node of b" has no
// cycle.
static berth_status check_contiguous(berth_arena *scratch, const berth_place_problem *problem,
                                     const uint32_t *assignment) {
    uint32_t count = problem->device_count;
    bool *before = berth_arena_new_array(scratch, bool, (size_t)count *count);
    for (uint32_t e = 0; e < problem->edge_count; ++e) {
        uint32_t u = problem->edge_from[e];
        uint32_t v = problem->edge_to[e];
        if (problem->backward[u] || problem->backward[v] || assignment[u] == assignment[v])
            continue;
        before[(size_t)assignment[u] * count + assignment[v]] = true;
    }
    uint32_t on = 0;
    if (is_acyclic(scratch, before, count, &on)) return BERTH_OK;
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "not contiguous: forward nodes of device %u feed another device and "
                             "(through others, perhaps) need its results",
                             on);
}

// ------------------------------------------------------------------------------------------------
// throughput and memory

static double transfer_of(const berth_place_problem *problem, uint32_t node, uint32_t device) {
    return problem->transfer[(size_t)node * problem->kind_count + problem->device_kind[device]];
}

static double time_of(const berth_place_problem *problem, uint32_t node, uint32_t device) {
    return problem->time[(size_t)node * problem->kind_count + problem->device_kind[device]];
}

static double largest(const double *values, uint32_t count) {
    double most = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (values[i] > most) most = values[i];
    return most;
}

// Returns the most that the transfers of devices on one link take together; 0 where none share one.
//   shared: sums of what copies take (problem.h)
static double add_loads(berth_arena *scratch, const berth_place_problem *problem,
                        const uint32_t *assignment, double *load, double *shared) {
    double *moved = berth_arena_new_array(scratch, double, problem->device_count);
    bool *reads = berth_arena_new_array(scratch, bool, problem->device_count);
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        uint32_t home = assignment[u];
        load[home] += time_of(problem, u, home);
        memset(reads, 0, problem->device_count * sizeof(*reads));
        bool leaves = false;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
            uint32_t d = assignment[problem->succ[i]];
            if (d == home || reads[d]) continue;
            leaves = true;
            reads[d] = true;
            load[d] += transfer_of(problem, u, d);
            berth_place_shared_copy(problem, u, BERTH_PLACE_NONE, d, transfer_of(problem, u, d),
                                    shared);
            if (problem->bus) moved[problem->bus[d]] += transfer_of(problem, u, d);
        }
        if (!leaves) continue;
        load[home] += transfer_of(problem, u, home);
        berth_place_shared_copy(problem, u, home, BERTH_PLACE_NONE, transfer_of(problem, u, home),
                                shared);
        if (problem->bus) moved[problem->bus[home]] += transfer_of(problem, u, home);
    }
    return problem->bus ? largest(moved, problem->device_count) : 0;
}

// Of devices that share what they compute with, the sum counts.
static double largest_load(berth_arena *scratch, const berth_place_problem *problem,
                           const double *load) {
    if (!problem->resource) return largest(load, problem->device_count);
    double *sum = berth_arena_new_array(scratch, double, problem->device_count);
    for (uint32_t d = 0; d < problem->device_count; ++d) sum[problem->resource[d]] += load[d];
    return largest(sum, problem->device_count);
}

static double throughput_value(berth_arena *scratch, const berth_place_problem *problem,
                               const uint32_t *assignment, double *load) {
    double *shared = berth_arena_new_array(scratch, double, berth_place_shared_count(problem) + 1);
    berth_place_shared_nodes(problem, assignment, shared);
    double moved = add_loads(scratch, problem, assignment, load, shared);
    return fmax(fmax(largest_load(scratch, problem, load), moved),
                berth_place_shared_most(problem, shared));
}

bool berth_place_memory_is_share(const berth_place_problem *problem) {
    for (uint32_t d = 0; d < problem->device_count; ++d)
        if (problem->kinds[problem->device_kind[d]].capacity_bytes == INFINITY) return false;
    return true;
}

static double memory_value(const berth_place_problem *problem, const uint32_t *assignment,
                           double *bytes) {
    for (uint32_t v = 0; v < problem->node_count; ++v)
        bytes[assignment[v]] += problem->size_bytes[v];
    if (!berth_place_memory_is_share(problem)) return largest(bytes, problem->device_count);
    double most = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d)
        if (bytes[d] > 0)
            most = fmax(most, bytes[d] / problem->kinds[problem->device_kind[d]].capacity_bytes);
    return most;
}

// ------------------------------------------------------------------------------------------------
// latency, one subgraph per device

typedef struct subgraphs {
    const berth_place_problem *problem;
    const uint32_t *assignment;
    uint32_t unit_count;  // devices, then one for each node by itself; most are empty
    uint32_t *unit;       // [node_count] device, or device_count + v
    uint32_t *first;      // [unit_count + 1] into members
    uint32_t *members;    // [node_count]
    uint32_t *waiting;    // [unit_count] edges from other units not yet done
    uint32_t *ready;      // [unit_count] a queue
    uint32_t ready_count;
    double *start;  // [unit_count] latest done() of what came in
    double *busy;   // [unit_count] reads, times, writes
} subgraphs;

// Reads (values of other units with a successor inside, once each), times, and writes.
static void add_busy(berth_arena *scratch, const subgraphs *s) {
    const berth_place_problem *problem = s->problem;
    uint32_t devices = problem->device_count;
    bool *reads = berth_arena_new_array(scratch, bool, devices);
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        uint32_t home = s->unit[u];
        s->busy[home] += time_of(problem, u, s->assignment[u]);
        memset(reads, 0, devices * sizeof(*reads));
        bool leaves = false;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
            uint32_t to = s->unit[problem->succ[i]];
            if (to == home) continue;
            leaves = true;
            s->waiting[to]++;
            if (to >= devices || reads[to]) continue;
            reads[to] = true;
            s->busy[to] += transfer_of(problem, u, to);
        }
        if (leaves && home < devices) s->busy[home] += transfer_of(problem, u, home);
    }
}

// Lists the nodes of each unit, counts what each waits for, sums what each takes.
static void build_units(berth_arena *scratch, subgraphs *s) {
    const berth_place_problem *problem = s->problem;
    uint32_t n = problem->node_count;
    size_t units = s->unit_count;
    s->unit = berth_arena_new_array(scratch, uint32_t, n);
    s->waiting = berth_arena_new_array(scratch, uint32_t, units);
    s->start = berth_arena_new_array(scratch, double, units);
    s->busy = berth_arena_new_array(scratch, double, units);
    s->first = berth_arena_new_array(scratch, uint32_t, units + 1);
    s->members = berth_arena_new_array(scratch, uint32_t, n);
    for (uint32_t v = 0; v < n; ++v) {
        uint32_t d = s->assignment[v];
        bool alone = problem->kinds[problem->device_kind[d]].concurrent;
        s->unit[v] = alone ? problem->device_count + v : d;
        s->first[s->unit[v]]++;
    }
    for (size_t i = 1; i <= units; ++i) s->first[i] += s->first[i - 1];  // ends, so far
    for (uint32_t v = n; v-- > 0;) s->members[--s->first[s->unit[v]]] = v;
    add_busy(scratch, s);
}

// A unit is done: so are its nodes, and what waits for them comes nearer.
static void finish_unit(subgraphs *s, uint32_t unit, berth_place_value *out) {
    const berth_place_problem *problem = s->problem;
    double done = s->start[unit] + s->busy[unit];
    out->value = fmax(out->value, done);
    for (uint32_t m = s->first[unit]; m < s->first[unit + 1]; ++m) {
        uint32_t v = s->members[m];
        out->node_start[v] = s->start[unit];
        out->node_done[v] = done;
        if (unit >= problem->device_count) out->device_load[s->assignment[v]] += s->busy[unit];
        for (uint32_t i = problem->succ_start[v]; i < problem->succ_start[v + 1]; ++i) {
            uint32_t to = s->unit[problem->succ[i]];
            if (to == unit) continue;
            s->start[to] = fmax(s->start[to], done);
            if (--s->waiting[to] == 0) s->ready[s->ready_count++] = to;
        }
    }
    if (unit < problem->device_count) out->device_load[unit] = s->busy[unit];
}

static berth_status subgraph_latency(berth_arena *scratch, const berth_place_problem *problem,
                                     const uint32_t *assignment, berth_place_value *out) {
    subgraphs s = {.problem = problem, .assignment = assignment};
    s.unit_count = problem->device_count + problem->node_count;
    s.ready = berth_arena_new_array(scratch, uint32_t, s.unit_count);
    build_units(scratch, &s);
    for (uint32_t i = 0; i < s.unit_count; ++i)
        if (s.waiting[i] == 0) s.ready[s.ready_count++] = i;
    for (uint32_t at = 0; at < s.ready_count; ++at) finish_unit(&s, s.ready[at], out);
    if (s.ready_count == s.unit_count) return BERTH_OK;
    uint32_t stuck = 0;
    while (stuck < problem->device_count && s.waiting[stuck] == 0) ++stuck;
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "the nodes on device %u cannot run as one subgraph: a node outside "
                             "needs one of them and is needed by another (perhaps through other "
                             "devices' subgraphs)",
                             stuck);
}

// ------------------------------------------------------------------------------------------------

typedef struct evaluate_call {
    berth_arena *arena;
    const berth_place_problem *problem;
    berth_place_objective objective;
    bool contiguous;
    const uint32_t *assignment;
    berth_place_value *out;
    berth_solve__copies *copies;  // NULL = not asked for
    berth_arena *scratch;
} evaluate_call;

static berth_status evaluate_body(void *user) {
    evaluate_call *call = user;
    const berth_place_problem *problem = call->problem;
    berth_place_value *out = call->out;
    call->scratch = berth_arena_create_child(call->arena);
    BERTH_TRY(check_limits(call->scratch, problem, call->assignment));
    if (call->contiguous) BERTH_TRY(check_contiguous(call->scratch, problem, call->assignment));
    out->device_load = berth_arena_new_array(call->arena, double, problem->device_count);
    if (call->objective == BERTH_PLACE_MEMORY) {
        out->value = memory_value(problem, call->assignment, out->device_load);
        return BERTH_OK;
    }
    if (call->objective == BERTH_PLACE_THROUGHPUT) {
        out->value = throughput_value(call->scratch, problem, call->assignment, out->device_load);
        return BERTH_OK;
    }
    out->node_start = berth_arena_new_array(call->arena, double, problem->node_count);
    out->node_done = berth_arena_new_array(call->arena, double, problem->node_count);
    if (problem->one_subgraph)
        return subgraph_latency(call->scratch, problem, call->assignment, out);
    berth_solve__list *list = berth_solve__list_create(call->scratch, problem);
    out->value = berth_solve__list_value(list, call->assignment, INFINITY, out, call->copies);
    return BERTH_OK;
}

static berth_status evaluate(evaluate_call *call) {
    *call->out = (berth_place_value){0};
    berth_status status = berth_arena_try(call->arena, evaluate_body, call);
    berth_arena_destroy(call->scratch);
    if (status) *call->out = (berth_place_value){0};
    return status;
}

berth_status berth_place_evaluate(berth_arena *arena, const berth_place_problem *problem,
                                  berth_place_objective objective, bool contiguous,
                                  const uint32_t *assignment, berth_place_value *out_value) {
    evaluate_call call = {arena, problem, objective, contiguous, assignment, out_value, NULL, NULL};
    return evaluate(&call);
}

berth_status berth_place_schedule(berth_arena *arena, const berth_place_problem *problem,
                                  const uint32_t *assignment, berth_place_value *out_value,
                                  berth_place_copy **out_copies, uint32_t *out_copy_count) {
    berth_solve__copies copies = {.arena = arena};
    evaluate_call call = {arena,   problem, BERTH_PLACE_LATENCY, false, assignment, out_value,
                          &copies, NULL};
    berth_status status = evaluate(&call);
    *out_copies = copies.list.data;
    *out_copy_count = copies.list.count;
    return status;
}
