// What list scheduling has to do for a placement: computations, and copies of values that are needed elsewhere.
// A value goes by one task on its device's link (to host memory), then one on the link of each device that needs it; or
// only the latter, where a link between the two is faster.
#include <math.h>

#include "planner/solve/problem/evaluate_list.h"

#define LOAD_ROUNDING 1e-11  // sums of the same figures in another order

static double cost(const berth_solve__list *s, uint32_t node, uint32_t device) {
    return s->problem
        ->transfer[(size_t)node * s->problem->kind_count + s->problem->device_kind[device]];
}

static void add_copy(berth_solve__list *s, uint32_t u, double length, uint32_t device,
                     uint32_t reader, bool direct) {
    uint32_t link = s->problem->bus && !direct ? s->problem->bus[device] : device;
    uint32_t resource = length == 0 ? BERTH_PLACE_NONE : s->problem->device_count + link;
    s->tasks[s->task_count++] = (list_task){length, 0, resource, u, reader, direct};
}

// The other devices that need node u's value.
static uint32_t list_readers(berth_solve__list *s, uint32_t u) {
    const berth_place_problem *problem = s->problem;
    uint32_t home = s->assignment[u], count = 0;
    for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i) {
        uint32_t d = s->assignment[problem->succ[i]];
        if (d == home || s->needs[d]) continue;
        s->needs[d] = true;
        uint32_t at = count++;
        for (; at > 0 && s->readers[at - 1] > d; --at) s->readers[at] = s->readers[at - 1];
        s->readers[at] = d;
    }
    for (uint32_t i = 0; i < count; ++i) s->needs[s->readers[i]] = false;
    return count;
}

// The write comes first, if there is one, then reads from host memory, then those over links.
static void add_copies(berth_solve__list *s, uint32_t u) {
    const berth_place_problem *problem = s->problem;
    uint32_t home = s->assignment[u], count = list_readers(s, u);
    uint32_t write = s->task_count;
    s->first_copy[u] = write;
    for (int direct = 0; direct < 2; ++direct)
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t d = s->readers[i];
            double straight = berth_place_direct(problem, u, home, d);
            bool goes_straight = straight < cost(s, u, home) + cost(s, u, d);
            if (goes_straight != (direct == 1)) continue;
            if (direct == 0 && s->task_count == write)
                add_copy(s, u, cost(s, u, home), home, BERTH_PLACE_NONE, false);
            add_copy(s, u, goes_straight ? straight : cost(s, u, d), d, d, goes_straight);
        }
}

static void build_tasks(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t d = s->assignment[v];
        uint32_t kind = problem->device_kind[d];
        double length = problem->time[(size_t)v * problem->kind_count + kind];
        bool waits_for_nobody = problem->kinds[kind].concurrent || length == 0;
        uint32_t runs_on = problem->resource ? problem->resource[d] : d;
        if (waits_for_nobody) runs_on = BERTH_PLACE_NONE;
        s->tasks[v] = (list_task){length, 0, runs_on, v, BERTH_PLACE_NONE, false};
    }
    s->task_count = problem->node_count;
    for (uint32_t u = 0; u < problem->node_count; ++u) add_copies(s, u);
    s->first_copy[problem->node_count] = s->task_count;
}

// The most that nodes and copies take of a memory or a bus.
static double add_shared_copies(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    bool any = problem->copy_ms || problem->direct_bus;
    for (uint32_t i = problem->node_count; any && i < s->task_count; ++i) {
        const list_task *t = &s->tasks[i];
        uint32_t home = s->assignment[t->node];
        bool from_home = t->direct || t->reader == BERTH_PLACE_NONE;
        berth_place_shared_copy(problem, t->node, from_home ? home : BERTH_PLACE_NONE, t->reader,
                                t->length, s->shared);
    }
    return berth_place_shared_most(problem, s->shared);
}

static void add_loads(berth_solve__list *s) {
    uint32_t resources = 2 * s->problem->device_count;
    for (uint32_t r = 0; r < resources; ++r) s->load[r] = 0;
    for (uint32_t i = 0; i < s->task_count; ++i)
        if (s->tasks[i].resource != BERTH_PLACE_NONE)
            s->load[s->tasks[i].resource] += s->tasks[i].length;
    s->most_load = 0;
    for (uint32_t r = 0; r < resources; ++r) s->most_load = fmax(s->most_load, s->load[r]);
}

// Sets the ranks of u's copies; returns the longest way that its value goes.
static double rank_copies(berth_solve__list *s, uint32_t u) {
    uint32_t write = s->first_copy[u], end = s->first_copy[u + 1];
    double most = s->rank_there[s->assignment[u]], after = 0;
    for (uint32_t i = write; i < end; ++i) {
        list_task *read = &s->tasks[i];
        if (read->reader == BERTH_PLACE_NONE) continue;
        read->rank = read->length + s->rank_there[read->reader];
        if (read->direct)
            most = fmax(most, read->rank);
        else
            after = fmax(after, read->rank);
    }
    if (write < end && s->tasks[write].reader == BERTH_PLACE_NONE) {
        s->tasks[write].rank = s->tasks[write].length + after;
        most = fmax(most, s->tasks[write].rank);
    }
    return most;
}

// Returns the longest way through all.
static double rank_tasks(berth_solve__list *s) {
    const berth_place_problem *problem = s->problem;
    double longest = 0;
    for (uint32_t at = problem->node_count; at-- > 0;) {
        uint32_t u = problem->topological[at];
        uint32_t first = problem->succ_start[u], end = problem->succ_start[u + 1];
        for (uint32_t i = first; i < end; ++i) {
            double *there = &s->rank_there[s->assignment[problem->succ[i]]];
            *there = fmax(*there, s->tasks[problem->succ[i]].rank);
        }
        s->tasks[u].rank = s->tasks[u].length + rank_copies(s, u);
        longest = fmax(longest, s->tasks[u].rank);
        for (uint32_t i = first; i < end; ++i) s->rank_there[s->assignment[problem->succ[i]]] = 0;
    }
    return longest;
}

bool berth_solve__list_build(berth_solve__list *s, double limit, double *out_shared_ms) {
    const berth_place_problem *problem = s->problem;
    berth_place_shared_nodes(problem, s->assignment, s->shared);
    if (berth_place_shared_most(problem, s->shared) > limit) return false;
    build_tasks(s);
    *out_shared_ms = add_shared_copies(s);
    if (*out_shared_ms > limit) return false;
    add_loads(s);
    if (s->most_load > limit * (1 + LOAD_ROUNDING)) return false;
    s->longest_way = rank_tasks(s);
    return s->longest_way <= limit;
}
