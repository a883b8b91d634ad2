// Bound of the latency by list scheduling: targets that turn out impossible (Klein and Scholl 1999).
// With an end in mind, a node is no longer able to be where its paths (list_bound.h) do not let it
// end in time; that makes other paths longer. What is left must have time on the devices: in every
// window of time, the parts of the nodes that cannot lie outside of it (energetic reasoning;
// Erschler and Lopez 1990, Baptiste, Le Pape and Nuijten 1999), each where it takes least; and in forests whole nodes (bounds/forest_loads.h).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/bounds/forest_loads.h"
#include "planner/solve/bounds/list_bound.h"
#include "planner/solve/bounds/list_joins.h"
#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/bounds/memory_limits.h"
#include "planner/solve/bounds/path_loads.h"
#include "planner/solve/strategies/strategies.h"

enum { MOST_TARGETS = 16, MOST_PASSES = 4, MOST_CUTS = 24, FOREST_WORK = 4 };
static const double PATH_LOADS_SHARE = 0.7;  // of this strategy's budget
#define ROUNDING 1e-11                       // sums of the same figures in another order
#define MOST_CELLS ((uint64_t)1 << 20)

typedef struct bounder {
    berth_place_search *search;
    const berth_place_problem *problem;
    berth_place__paths *paths;
    bool *able;       // [group_count * place_count] before any target
    double *weights;  // [weight_count * kind_count] ways to weigh the kinds
    uint32_t weight_count;
    berth_place__memory *memory;
    berth_place__forest *forest;  // NULL = not looked at
    bool *able_kinds;             // [node_count * kind_count]
    double *sorted;               // [node_count]
    double heads[MOST_CUTS + 1], tails[MOST_CUTS + 1];
} bounder;

static bool *able_at(const bounder *b, uint32_t node, uint32_t place) {
    return &b->paths->able[(size_t)b->problem->group[node] * b->paths->place_count + place];
}

static double time_at(const bounder *b, uint32_t node, uint32_t place) {
    return b->problem->time[(size_t)node * b->problem->kind_count + b->paths->kind[place]];
}

static bool spend(bounder *b, uint64_t pairs) {
    return !berth_place_spent(b->search, 1 + pairs / 16);
}

// ------------------------------------------------------------------------------------------------
// windows

static int compare_figures(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

// Some of the nodes' least heads or tails, and 0; returns how many.
static uint32_t choose_cuts(bounder *b, const double *reach, double *cuts) {
    uint32_t places = b->paths->place_count, count = 0, kept = 1;
    for (uint32_t v = 0; v < b->problem->node_count; ++v) {
        double least = INFINITY;
        for (uint32_t d = 0; d < places; ++d)
            if (*able_at(b, v, d)) least = fmin(least, reach[(size_t)v * places + d]);
        if (least < INFINITY) b->sorted[count++] = least;
    }
    qsort(b->sorted, count, sizeof(*b->sorted), compare_figures);
    cuts[0] = 0;
    for (uint32_t i = 0; i < MOST_CUTS && count > 0; ++i) {
        double cut = b->sorted[(uint64_t)i * count / MOST_CUTS];
        if (cut > cuts[kept - 1]) cuts[kept++] = cut;
    }
    return kept;
}

// The least part, weighted, of the node that lies between head and end - tail.
static double part_inside(const bounder *b, uint32_t v, const double *weight, double end,
                          double head, double tail) {
    double least = INFINITY;
    for (uint32_t d = 0; d < b->paths->place_count; ++d) {
        if (!*able_at(b, v, d)) continue;
        size_t cell = (size_t)v * b->paths->place_count + d;
        double w = weight[b->paths->kind[d]], time = time_at(b, v, d);
        double early = b->paths->head[cell] + time - head;
        double late = b->paths->tail[cell] + time - tail;
        double part = fmin(fmin(time, end - head - tail), fmin(early, late));
        least = fmin(least, w > 0 && part > 0 ? w * part : 0);
        if (least == 0) break;
    }
    return least;
}

static bool overflows(bounder *b, const double *weight, double end, double head, double tail) {
    double room = 0, work = 0;
    for (uint32_t k = 0; k < b->problem->kind_count; ++k)
        room += weight[k] * b->problem->kinds[k].device_count;
    room *= end - head - tail;
    if (room < 0) return false;
    for (uint32_t v = 0; v < b->problem->node_count; ++v)
        work += part_inside(b, v, weight, end, head, tail);
    return work > room * (1 + ROUNDING) + end * ROUNDING;
}

// Whether some window cannot hold what must be in it.
static bool has_overflow(bounder *b, double end) {
    uint32_t heads = choose_cuts(b, b->paths->head, b->heads);
    uint32_t tails = choose_cuts(b, b->paths->tail, b->tails);
    uint64_t pairs = (uint64_t)b->problem->node_count * b->paths->place_count;
    for (uint32_t w = 0; w < b->weight_count; ++w)
        for (uint32_t h = 0; h < heads; ++h)
            for (uint32_t t = 0; t < tails; ++t) {
                if (!spend(b, pairs / 4)) return false;
                const double *weight = b->weights + (size_t)w * b->problem->kind_count;
                if (overflows(b, weight, end, b->heads[h], b->tails[t])) return true;
            }
    return false;
}

// ------------------------------------------------------------------------------------------------
// targets

// Whether a group is no longer able to be somewhere.
static bool forbid_late(bounder *b, double end) {
    bool changed = false;
    for (uint32_t v = 0; v < b->problem->node_count; ++v)
        for (uint32_t d = 0; d < b->paths->place_count; ++d) {
            size_t cell = (size_t)v * b->paths->place_count + d;
            double way = b->paths->head[cell] + time_at(b, v, d) + b->paths->tail[cell];
            if (!*able_at(b, v, d) || way <= end * (1 + ROUNDING)) continue;
            *able_at(b, v, d) = false;
            changed = true;
        }
    return changed;
}

static void find_able_kinds(bounder *b) {
    uint32_t kinds = b->problem->kind_count;
    memset(b->able_kinds, false, (size_t)b->problem->node_count * kinds);
    for (uint32_t v = 0; v < b->problem->node_count; ++v)
        for (uint32_t d = 0; d < b->paths->place_count; ++d)
            if (*able_at(b, v, d)) b->able_kinds[(size_t)v * kinds + b->paths->kind[d]] = true;
}

// Whether some way is too long to end by then, or the memory too small for what is too slow elsewhere. Leaves
// what is able to be where.
static bool is_out_of_reach(bounder *b, double end) {
    uint64_t pairs =
        (uint64_t)(b->problem->node_count + b->problem->edge_count) * b->paths->place_count;
    if (b->paths->joins) pairs += berth_place__joins_work(b->paths->joins) / 4;
    size_t bytes = (size_t)b->problem->group_count * b->paths->place_count * sizeof(bool);
    memcpy(b->paths->able, b->able, bytes);
    for (int pass = 0; pass < MOST_PASSES; ++pass) {
        if (!spend(b, pairs)) return false;
        if (berth_place__paths_bound(b->paths) > end * (1 + ROUNDING)) return true;
        if (!forbid_late(b, end)) break;
    }
    find_able_kinds(b);
    return berth_place__memory_exceeded(b->memory, b->able_kinds);
}

// Whether whole nodes of forests take more than there is: of each way to weigh the kinds, and of each of them
// beside memory, as parts of what there is.
static bool has_full_forest(bounder *b, double end) {
    uint32_t kinds = b->problem->kind_count;
    uint64_t pairs = (uint64_t)b->problem->edge_count * b->paths->place_count;
    for (uint32_t w = 0; b->forest && w < b->weight_count; ++w)
        for (uint32_t i = 0; i <= b->memory->limit_count; ++i) {
            const berth_place__memory_limit *limit = i > 0 ? &b->memory->limits[i - 1] : NULL;
            const double *weight = b->weights + (size_t)w * kinds;
            double room = 0;
            for (uint32_t k = 0; k < kinds; ++k)
                room += end * weight[k] * b->problem->kinds[k].device_count;
            berth_place__burden burden = {weight, limit, limit ? room / limit->room : 0};
            for (int into = 0; into < 2; ++into) {
                if (!spend(b, FOREST_WORK * pairs)) return false;
                if (berth_place__forest_exceeded(b->forest, &burden, into == 1, end)) return true;
            }
        }
    return false;
}

// Whether it is certain that no schedule ends by then.
static bool is_impossible(bounder *b, double end) {
    return is_out_of_reach(b, end) || has_overflow(b, end) || has_full_forest(b, end);
}

// By halving what is left between the bound and the best value.
static void raise_targets(bounder *b) {
    berth_place_search *search = b->search;
    double low = search->lower_bound, high = search->best_value;
    double end = high * (1 - BERTH_PLACE_EQUAL);
    for (int i = 0; i < MOST_TARGETS && low < high * (1 - 1e-4); ++i) {
        if (is_impossible(b, end)) {
            berth_place_bound(search, end * (1 - ROUNDING));
            low = end;
        } else {
            high = end;
        }
        if (berth_place_spent(search, 1)) return;
        end = low + (high - low) / 2;
    }
    search->finished = true;
}

// Each kind that runs one node at a time by itself; all of them, balanced.
static void choose_weights(berth_arena *scratch, bounder *b) {
    const berth_place_problem *problem = b->problem;
    uint32_t kinds = problem->kind_count, serial = 0;
    b->weights = berth_arena_new_array(scratch, double, ((size_t)kinds + 1) * kinds);
    for (uint32_t k = 0; k < kinds; ++k) {
        if (problem->kinds[k].concurrent || problem->kinds[k].device_count == 0) continue;
        ++serial;
        b->weights[(size_t)b->weight_count++ * kinds + k] = 1;
    }
    for (uint32_t k = 0; k < kinds; ++k)
        if (problem->kinds[k].concurrent && problem->kinds[k].device_count > 0) return;
    if (serial < 2) return;
    berth_place_nets *nets = berth_place__nets(scratch, problem, NULL, 0);
    double *floors = berth_arena_new_array(scratch, double, nets->item_count);
    (void)berth_place__weigh_loads(problem, nets, &b->weights[(size_t)b->weight_count++ * kinds],
                                   floors);
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    return berth_place__is_list_latency(problem, options) && problem->device_count > 1 &&
           (uint64_t)problem->node_count * problem->device_count <= MOST_CELLS;
}

static berth_status run(berth_place_search *search) {
    if (search->best_value == INFINITY) BERTH_TRY(berth_place__heft.run(search));
    if (search->best_value == INFINITY) return BERTH_OK;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    bounder b = {.search = search, .problem = search->problem};
    b.paths = berth_place__paths_create(scratch, search->problem, false);
    b.paths->joins = berth_place__joins_create(scratch, b.paths);
    b.able = berth_arena_copy(scratch, b.paths->able,
                              (size_t)search->problem->group_count * b.paths->place_count);
    b.sorted = berth_arena_new_array(scratch, double, search->problem->node_count);
    b.memory = berth_place__memory_create(scratch, search->problem);
    b.able_kinds = berth_arena_new_array(
        scratch, bool, (size_t)search->problem->node_count * search->problem->kind_count);
    b.forest = berth_place__forest_create(scratch, b.paths);
    choose_weights(scratch, &b);
    if (search->round == 0) {
        (void)is_out_of_reach(&b, search->best_value * (1 - BERTH_PLACE_EQUAL));
        find_able_kinds(&b);
        berth_place__path_loads_bound(search, PATH_LOADS_SHARE, b.able_kinds);
    }
    raise_targets(&b);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

const berth_place_strategy berth_place__bound_list = {
    .name = "bound",
    .doc = "ends that turn out impossible: paths and windows of time; latency by list scheduling",
    .auto_percent = 20,
    .again_percent = 20,
    .applies = applies,
    .run = run,
};
