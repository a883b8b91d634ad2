#include "planner/solve/bounds/list_bound.h"

#include <math.h>
#include <string.h>

#include "planner/solve/bounds/list_joins.h"
#include "planner/solve/bounds/load_bound.h"

// ------------------------------------------------------------------------------------------------
// paths

static double time_in(const berth_place__paths *l, uint32_t node, uint32_t place) {
    return l->problem->time[(size_t)node * l->problem->kind_count + l->kind[place]];
}

static double transfer_in(const berth_place__paths *l, uint32_t node, uint32_t place) {
    return l->problem->transfer[(size_t)node * l->problem->kind_count + l->kind[place]];
}

static bool is_able(const berth_place__paths *l, uint32_t node, uint32_t place) {
    return l->able[(size_t)l->problem->group[node] * l->place_count + place];
}

static size_t cell_of(const berth_place__paths *l, uint32_t node, uint32_t place) {
    return (size_t)node * l->place_count + place;
}

// Straight from one device of the place to one of the other.
static double direct_in(const berth_place__paths *l, uint32_t node, uint32_t from, uint32_t to) {
    if (from == to && l->count[from] < 2) return INFINITY;
    return berth_place_direct_kinds(l->problem, node, l->kind[from], l->kind[to]);
}

// What u's value is worth at each place: along[e] is a figure for u at place e, the result the
// least over e of along[e] and the copies from e (or to e: they cost the same both ways).
static void least_over_copies(const berth_place__paths *l, uint32_t u, bool together, bool forth,
                              const double *along, double *out) {
    double in_host = INFINITY;
    for (uint32_t e = 0; e < l->place_count && !together; ++e)
        in_host = fmin(in_host, along[e] + transfer_in(l, u, e));
    for (uint32_t d = 0; d < l->place_count; ++d) {
        double least = fmin(along[d], in_host + transfer_in(l, u, d));
        for (uint32_t e = 0; e < l->place_count && !together && l->problem->direct_ms; ++e)
            least = fmin(least, along[e] + (forth ? direct_in(l, u, e, d) : direct_in(l, u, d, e)));
        out[d] = least;
    }
}

// Earliest start of v's nodes given that its predecessors are where that is best for this edge:
// on v's device, or anywhere with the copies to host memory and from there.
static void find_heads(berth_place__paths *l) {
    const berth_place_problem *problem = l->problem;
    double along[BERTH_PLACE_DEVICE_LIMIT], here[BERTH_PLACE_DEVICE_LIMIT];
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        double *head = &l->head[cell_of(l, v, 0)];
        for (uint32_t d = 0; d < l->place_count; ++d) head[d] = 0;
        for (uint32_t p = problem->pred_start[v]; p < problem->pred_start[v + 1]; ++p) {
            uint32_t u = problem->pred[p];
            for (uint32_t d = 0; d < l->place_count; ++d)
                along[d] =
                    is_able(l, u, d) ? l->head[cell_of(l, u, d)] + time_in(l, u, d) : INFINITY;
            least_over_copies(l, u, problem->group[u] == problem->group[v], true, along, here);
            for (uint32_t d = 0; d < l->place_count; ++d) head[d] = fmax(head[d], here[d]);
        }
        if (l->joins) berth_place__joins_raise(l->joins, l, v, true);
    }
}

static void find_tails(berth_place__paths *l) {
    const berth_place_problem *problem = l->problem;
    double along[BERTH_PLACE_DEVICE_LIMIT], here[BERTH_PLACE_DEVICE_LIMIT];
    for (uint32_t i = problem->node_count; i-- > 0;) {
        uint32_t u = problem->topological[i];
        double *tail = &l->tail[cell_of(l, u, 0)];
        for (uint32_t d = 0; d < l->place_count; ++d) tail[d] = 0;
        for (uint32_t s = problem->succ_start[u]; s < problem->succ_start[u + 1]; ++s) {
            uint32_t v = problem->succ[s];
            for (uint32_t d = 0; d < l->place_count; ++d)
                along[d] =
                    is_able(l, v, d) ? l->tail[cell_of(l, v, d)] + time_in(l, v, d) : INFINITY;
            least_over_copies(l, u, problem->group[u] == problem->group[v], false, along, here);
            for (uint32_t d = 0; d < l->place_count; ++d) tail[d] = fmax(tail[d], here[d]);
        }
        if (l->joins) berth_place__joins_raise(l->joins, l, u, false);
    }
}

double berth_place__paths_bound(berth_place__paths *l) {
    double most = 0;
    find_heads(l);
    find_tails(l);
    for (uint32_t v = 0; v < l->problem->node_count; ++v) {
        double least = INFINITY;
        for (uint32_t d = 0; d < l->place_count; ++d) {
            size_t cell = cell_of(l, v, d);
            if (is_able(l, v, d))
                least = fmin(least, l->head[cell] + time_in(l, v, d) + l->tail[cell]);
        }
        most = fmax(most, least);
    }
    return most;
}

static void find_able(berth_place__paths *l, const berth_place_sorts *sorts) {
    const berth_place_problem *problem = l->problem;
    memset(l->able, true, (size_t)problem->group_count * l->place_count);
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t pin = problem->pin ? problem->pin[v] : BERTH_PLACE_NONE;
        bool pinned = pin != BERTH_PLACE_NONE;
        uint32_t at = pinned && sorts ? sorts->of_device[pin] : pin;
        for (uint32_t d = 0; d < l->place_count; ++d)
            if (time_in(l, v, d) == INFINITY || (pinned && d != at) ||
                !berth_place_has_room(problem, problem->group[v], l->kind[d]))
                l->able[(size_t)problem->group[v] * l->place_count + d] = false;
    }
}

berth_place__paths *berth_place__paths_create(berth_arena *arena,
                                              const berth_place_problem *problem, bool by_device) {
    const berth_place_sorts *sorts = by_device ? NULL : berth_place__sorts(arena, problem);
    berth_place__paths *l = berth_arena_new(arena, berth_place__paths);
    l->problem = problem;
    l->place_count = sorts ? sorts->count : problem->device_count;
    l->kind = berth_arena_new_array(arena, uint32_t, l->place_count);
    l->count = berth_arena_new_array(arena, uint32_t, l->place_count);
    for (uint32_t d = 0; d < l->place_count; ++d) {
        l->kind[d] = sorts ? sorts->kind[d] : problem->device_kind[d];
        l->count[d] = sorts ? sorts->device_count[d] : 1;
    }
    size_t cells = (size_t)problem->node_count * l->place_count;
    l->able = berth_arena_new_array(arena, bool, (size_t)problem->group_count * l->place_count);
    l->head = berth_arena_new_array(arena, double, cells);
    l->tail = berth_arena_new_array(arena, double, cells);
    find_able(l, sorts);
    return l;
}

// ------------------------------------------------------------------------------------------------
// loads

// Of each place: no node that takes time starts earlier, or ends with less to follow.
static void find_margins(const berth_place__paths *l, double *margin) {
    for (uint32_t d = 0; d < l->place_count; ++d) {
        double head = INFINITY, tail = INFINITY;
        for (uint32_t v = 0; v < l->problem->node_count; ++v) {
            if (!is_able(l, v, d) || time_in(l, v, d) == 0) continue;
            head = fmin(head, l->head[cell_of(l, v, d)]);
            tail = fmin(tail, l->tail[cell_of(l, v, d)]);
        }
        margin[d] = head + tail;
    }
}

// The least end for which the weighted room of the devices holds the weighted work. Room grows
// linearly between margins, so the answer is found from margin to margin.
static double fill(const berth_place__paths *l, const double *margin, const double *weight,
                   double work) {
    double least = INFINITY;
    for (uint32_t d = 0; d < l->place_count; ++d) {
        if (margin[d] == INFINITY) continue;
        // The devices whose margin is at most this one's are open; the end lies beyond it.
        double open = 0, before = 0;
        for (uint32_t e = 0; e < l->place_count; ++e) {
            if (margin[e] > margin[d]) continue;
            double w = weight[l->kind[e]] * l->count[e];
            open += w;
            before += w * margin[e];
        }
        if (open > 0) least = fmin(least, fmax((work + before) / open, margin[d]));
    }
    return least;
}

static double load_bound(berth_arena *scratch, const berth_place__paths *l) {
    const berth_place_problem *problem = l->problem;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        if (problem->kinds[k].concurrent) return 0;
    berth_place_nets *nets = berth_place__nets(scratch, problem, NULL, 0);
    double *weight = berth_arena_new_array(scratch, double, problem->kind_count);
    double *floors = berth_arena_new_array(scratch, double, nets->item_count);
    double work = berth_place__weigh_loads(problem, nets, weight, floors);
    if (work == 0 || work == INFINITY) return work;
    double *margin = berth_arena_new_array(scratch, double, l->place_count);
    find_margins(l, margin);
    return fill(l, margin, weight, work);
}

double berth_place__list_bound(berth_arena *scratch, const berth_place_problem *problem) {
    if (problem->node_count == 0 || problem->device_count == 0) return 0;
    berth_place__paths *paths = berth_place__paths_create(scratch, problem, false);
    paths->joins = berth_place__joins_create(scratch, paths);
    double bound = berth_place__paths_bound(paths);
    return fmax(bound, load_bound(scratch, paths));
}
