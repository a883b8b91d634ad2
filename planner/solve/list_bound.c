#include "planner/solve/list_bound.h"

#include <math.h>
#include <string.h>

#include "planner/solve/load_bound.h"

typedef struct lists {
    const berth_place_problem *problem;
    uint32_t devices;
    bool *able;    // [group_count * devices]
    double *head;  // [node_count * devices] no earlier start on the device
    double *tail;  // [node_count * devices] no less from its end there to the end of all
} lists;

static double time_on(const lists *l, uint32_t node, uint32_t device) {
    return l->problem
        ->time[(size_t)node * l->problem->kind_count + l->problem->device_kind[device]];
}

static double transfer_on(const lists *l, uint32_t node, uint32_t device) {
    return l->problem
        ->transfer[(size_t)node * l->problem->kind_count + l->problem->device_kind[device]];
}

static bool is_able(const lists *l, uint32_t node, uint32_t device) {
    return l->able[(size_t)l->problem->group[node] * l->devices + device];
}

static void find_able(berth_arena *scratch, lists *l) {
    const berth_place_problem *problem = l->problem;
    size_t cells = (size_t)problem->group_count * l->devices;
    l->able = berth_arena_new_array(scratch, bool, cells);
    memset(l->able, true, cells);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        for (uint32_t d = 0; d < l->devices; ++d)
            if (time_on(l, v, d) == INFINITY || (pin != BERTH_PLACE_NONE && pin != d))
                l->able[(size_t)problem->group[v] * l->devices + d] = false;
    }
}

// Earliest start of v's nodes given that its predecessors are where that is best for this edge:
// on v's device, or anywhere with the copies to host memory and from there.
static void find_heads(lists *l) {
    const berth_place_problem *problem = l->problem;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        double *head = &l->head[(size_t)v * l->devices];
        for (uint32_t p = problem->pred_start[v]; p < problem->pred_start[v + 1]; ++p) {
            uint32_t u = problem->pred[p];
            bool together = problem->group[u] == problem->group[v];
            double in_host = INFINITY;
            for (uint32_t d = 0; d < l->devices && !together; ++d)
                if (is_able(l, u, d))
                    in_host = fmin(in_host, l->head[(size_t)u * l->devices + d] + time_on(l, u, d) +
                                                transfer_on(l, u, d));
            for (uint32_t d = 0; d < l->devices; ++d) {
                double here = in_host + transfer_on(l, u, d);
                for (uint32_t e = 0; e < l->devices && !together && problem->direct_ms; ++e)
                    if (e != d && is_able(l, u, e))
                        here = fmin(here, l->head[(size_t)u * l->devices + e] + time_on(l, u, e) +
                                              berth_place_direct(problem, u, e, d));
                if (is_able(l, u, d))
                    here = fmin(here, l->head[(size_t)u * l->devices + d] + time_on(l, u, d));
                head[d] = fmax(head[d], here);
            }
        }
    }
}

static void find_tails(lists *l) {
    const berth_place_problem *problem = l->problem;
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t u = problem->topological[i];
        double *tail = &l->tail[(size_t)u * l->devices];
        for (uint32_t s = problem->succ_start[u]; s < problem->succ_start[u + 1]; ++s) {
            uint32_t v = problem->succ[s];
            bool together = problem->group[u] == problem->group[v];
            double from_host = INFINITY;
            for (uint32_t d = 0; d < l->devices && !together; ++d)
                if (is_able(l, v, d))
                    from_host = fmin(from_host, transfer_on(l, u, d) + time_on(l, v, d) +
                                                    l->tail[(size_t)v * l->devices + d]);
            for (uint32_t d = 0; d < l->devices; ++d) {
                double here = transfer_on(l, u, d) + from_host;
                for (uint32_t e = 0; e < l->devices && !together && problem->direct_ms; ++e)
                    if (e != d && is_able(l, v, e))
                        here = fmin(here, berth_place_direct(problem, u, d, e) + time_on(l, v, e) +
                                              l->tail[(size_t)v * l->devices + e]);
                if (is_able(l, v, d))
                    here = fmin(here, time_on(l, v, d) + l->tail[(size_t)v * l->devices + d]);
                tail[d] = fmax(tail[d], here);
            }
        }
    }
}

static double path_bound(const lists *l) {
    double most = 0;
    for (uint32_t v = 0; v < l->problem->node_count; ++v) {
        double least = INFINITY;
        for (uint32_t d = 0; d < l->devices; ++d) {
            size_t cell = (size_t)v * l->devices + d;
            if (is_able(l, v, d))
                least = fmin(least, l->head[cell] + time_on(l, v, d) + l->tail[cell]);
        }
        most = fmax(most, least);
    }
    return most;
}

// Of each device: no node that takes time starts earlier, or ends with less to follow.
static void find_margins(const lists *l, double *margin) {
    for (uint32_t d = 0; d < l->devices; ++d) {
        double head = INFINITY, tail = INFINITY;
        for (uint32_t v = 0; v < l->problem->node_count; ++v) {
            if (!is_able(l, v, d) || time_on(l, v, d) == 0) continue;
            head = fmin(head, l->head[(size_t)v * l->devices + d]);
            tail = fmin(tail, l->tail[(size_t)v * l->devices + d]);
        }
        margin[d] = head + tail;
    }
}

// The least end for which the weighted room of the devices holds the weighted work. Room grows
// linearly between margins, so the answer is found from margin to margin.
static double fill(const lists *l, const double *margin, const double *weight, double work) {
    double least = INFINITY;
    for (uint32_t d = 0; d < l->devices; ++d) {
        if (margin[d] == INFINITY) continue;
        // The devices whose margin is at most this one's are open; the end lies beyond it.
        double open = 0, before = 0;
        for (uint32_t e = 0; e < l->devices; ++e) {
            if (margin[e] > margin[d]) continue;
            double w = weight[l->problem->device_kind[e]];
            open += w;
            before += w * margin[e];
        }
        if (open > 0) least = fmin(least, fmax((work + before) / open, margin[d]));
    }
    return least;
}

static double load_bound(berth_arena *scratch, const lists *l) {
    const berth_place_problem *problem = l->problem;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        if (problem->kinds[k].concurrent) return 0;
    berth_place_nets *nets = berth_place__nets(scratch, problem, NULL, 0);
    double *weight = berth_arena_new_array(scratch, double, problem->kind_count);
    double *floors = berth_arena_new_array(scratch, double, nets->item_count);
    double work = berth_place__weigh_loads(problem, nets, weight, floors);
    if (work == 0 || work == INFINITY) return work;
    double *margin = berth_arena_new_array(scratch, double, l->devices);
    find_margins(l, margin);
    return fill(l, margin, weight, work);
}

double berth_place__list_bound(berth_arena *scratch, const berth_place_problem *problem) {
    lists l = {.problem = problem, .devices = problem->device_count};
    if (problem->node_count == 0 || l.devices == 0) return 0;
    size_t cells = (size_t)problem->node_count * l.devices;
    l.head = berth_arena_new_array(scratch, double, cells);
    l.tail = berth_arena_new_array(scratch, double, cells);
    find_able(scratch, &l);
    find_heads(&l);
    find_tails(&l);
    return fmax(path_bound(&l), load_bound(scratch, &l));
}
