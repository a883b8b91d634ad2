#include "planner/solve/bounds/forest_loads.h"

#include <math.h>
#include <string.h>

enum { MOST_STEPS = 48, MOST_PLACES = 4 };
#define MOST_CELLS ((uint64_t)1 << 16)  // staircases
#define ROUNDING 1e-11                  // sums of the same figures in another order

// With no less time left at the start, the load is no less. Ascending by time, descending by load.
typedef struct step {
    double need, load;
} step;

typedef struct stair {
    uint32_t count;  // 0 = the node can not be there
    step steps[MOST_STEPS];
} stair;

struct berth_place__forest {
    const berth_place__paths *paths;
    stair *stairs;     // [node_count * place_count]
    uint32_t *parent;  // [node_count] NONE = a root
    step *merged;      // scratch: steps before there are few again
    const berth_place__burden *burden;
    bool into;
    double end;
};

static double time_at(const berth_place__forest *f, uint32_t node, uint32_t place) {
    const berth_place_problem *problem = f->paths->problem;
    return problem->time[(size_t)node * problem->kind_count + f->paths->kind[place]];
}

static size_t cell_of(const berth_place__forest *f, uint32_t node, uint32_t place) {
    return (size_t)node * f->paths->place_count + place;
}

static bool is_able(const berth_place__forest *f, uint32_t node, uint32_t place) {
    return f->paths->able[(size_t)f->paths->problem->group[node] * f->paths->place_count + place];
}

// As seen from the roots: what is before a node, and after it.
static double before_of(const berth_place__forest *f, uint32_t node, uint32_t place) {
    return (f->into ? f->paths->head : f->paths->tail)[cell_of(f, node, place)];
}

static double after_of(const berth_place__forest *f, uint32_t node, uint32_t place) {
    return (f->into ? f->paths->tail : f->paths->head)[cell_of(f, node, place)];
}

static double load_of(const berth_place__forest *f, uint32_t node, uint32_t place) {
    uint32_t kind = f->paths->kind[place];
    const berth_place__memory_limit *limit = f->burden->limit;
    double load = f->burden->weight[kind] * time_at(f, node, place);
    if (limit && limit->kind == kind) load += f->burden->limit_weight * limit->size[node];
    return load;
}

// Of the value between a parent and a child.
static double copy_between(const berth_place__forest *f, uint32_t parent, uint32_t parent_place,
                           uint32_t child, uint32_t child_place) {
    const berth_place_problem *problem = f->paths->problem;
    if (parent_place == child_place) return 0;
    uint32_t owner = f->into ? parent : child;
    uint32_t here = f->paths->kind[parent_place], there = f->paths->kind[child_place];
    const double *transfer = problem->transfer + (size_t)owner * problem->kind_count;
    double straight = f->into ? berth_place_direct_kinds(problem, owner, here, there)
                              : berth_place_direct_kinds(problem, owner, there, here);
    return fmin(transfer[here] + transfer[there], straight);
}

// ------------------------------------------------------------------------------------------------
// staircases

// Takes the steps, ascending by need, without those that gain nothing; near ones are one with the least of
// both figures.
static void keep_few(const step *steps, uint32_t count, stair *out) {
    uint32_t kept = 0;
    double first = count > 0 ? steps[0].need : 0;
    double width = count > 0 ? (steps[count - 1].need - first) / (MOST_STEPS - 1) : 0;
    double from = 0;  // need of the first step of the current one
    for (uint32_t i = 0; i < count; ++i) {
        if (kept > 0 && steps[i].load >= out->steps[kept - 1].load) continue;
        bool near = kept > 0 && (steps[i].need == from ||
                                 (count > MOST_STEPS && floor((steps[i].need - first) / width) ==
                                                            floor((from - first) / width)));
        if (!near && kept < MOST_STEPS) {
            from = steps[i].need;
            out->steps[kept++] = steps[i];
        } else {
            out->steps[kept - 1].load = steps[i].load;
        }
    }
    out->count = kept;
}

// The least of both, the second one's needs later by `later`.
static void take_least(berth_place__forest *f, stair *all, const stair *more, double later) {
    uint32_t a = 0, b = 0, count = 0;
    while (a < all->count || b < more->count) {
        bool first = b == more->count ||
                     (a < all->count && all->steps[a].need <= more->steps[b].need + later);
        step s = first ? all->steps[a++] : more->steps[b++];
        if (!first) s.need += later;
        f->merged[count++] = s;
    }
    keep_few(f->merged, count, all);
}

// The sum of both, where both have a load.
static void take_sum(berth_place__forest *f, stair *all, const stair *more) {
    uint32_t a = 0, b = 0, count = 0;
    if (all->count == 0 || more->count == 0) {
        all->count = 0;
        return;
    }
    double need = fmax(all->steps[0].need, more->steps[0].need);
    for (;;) {
        while (a + 1 < all->count && all->steps[a + 1].need <= need) ++a;
        while (b + 1 < more->count && more->steps[b + 1].need <= need) ++b;
        f->merged[count++] = (step){need, all->steps[a].load + more->steps[b].load};
        double next = INFINITY;
        if (a + 1 < all->count) next = all->steps[a + 1].need;
        if (b + 1 < more->count) next = fmin(next, more->steps[b + 1].need);
        if (next == INFINITY) break;
        need = next;
    }
    keep_few(f->merged, count, all);
}

// ------------------------------------------------------------------------------------------------
// the forest

// Of the nodes before each, the one that ends last where that is earliest.
static void choose_parents(berth_place__forest *f) {
    const berth_place_problem *problem = f->paths->problem;
    const uint32_t *start = f->into ? problem->pred_start : problem->succ_start;
    const uint32_t *list = f->into ? problem->pred : problem->succ;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double latest = -1;
        f->parent[v] = BERTH_PLACE_NONE;
        for (uint32_t i = start[v]; i < start[v + 1]; ++i) {
            double earliest = INFINITY;
            for (uint32_t d = 0; d < f->paths->place_count; ++d)
                if (is_able(f, list[i], d))
                    earliest = fmin(earliest, before_of(f, list[i], d) + time_at(f, list[i], d));
            if (earliest <= latest || earliest == INFINITY) continue;
            latest = earliest;
            f->parent[v] = list[i];
        }
    }
}

// The node at a place, with all its children below it.
static void climb_to(berth_place__forest *f, uint32_t node, uint32_t place) {
    const berth_place_problem *problem = f->paths->problem;
    const uint32_t *start = f->into ? problem->succ_start : problem->pred_start;
    const uint32_t *list = f->into ? problem->succ : problem->pred;
    stair *own = &f->stairs[cell_of(f, node, place)];
    double time = time_at(f, node, place), left = f->end - before_of(f, node, place);
    own->count = 0;
    if (!is_able(f, node, place)) return;
    own->steps[own->count++] = (step){time + after_of(f, node, place), load_of(f, node, place)};
    for (uint32_t i = start[node]; i < start[node + 1] && own->count > 0; ++i) {
        uint32_t child = list[i];
        if (f->parent[child] != node) continue;
        stair below = {.count = 0};
        for (uint32_t d = 0; d < f->paths->place_count; ++d) {
            double later = time + copy_between(f, node, place, child, d);
            if (later < INFINITY) take_least(f, &below, &f->stairs[cell_of(f, child, d)], later);
        }
        take_sum(f, own, &below);
    }
    while (own->count > 0 && own->steps[own->count - 1].need > left + f->end * ROUNDING)
        own->count--;
}

// The devices' time by then, weighted, less what comes before and after all that could be there.
static double room_of(const berth_place__forest *f) {
    double room = f->burden->limit ? f->burden->limit_weight * f->burden->limit->room : 0;
    for (uint32_t d = 0; d < f->paths->place_count; ++d) {
        double before = INFINITY, after = INFINITY;
        for (uint32_t v = 0; v < f->paths->problem->node_count; ++v) {
            if (!is_able(f, v, d) || time_at(f, v, d) == 0) continue;
            before = fmin(before, before_of(f, v, d));
            after = fmin(after, after_of(f, v, d));
        }
        double open = fmax(0, f->end - before - after);
        room += f->burden->weight[f->paths->kind[d]] * f->paths->count[d] * open;
    }
    return room;
}

bool berth_place__forest_exceeded(berth_place__forest *f, const berth_place__burden *burden,
                                  bool into, double end) {
    const berth_place_problem *problem = f->paths->problem;
    double sum = 0;
    f->burden = burden;
    f->into = into;
    f->end = end;
    choose_parents(f);
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[into ? problem->node_count - 1 - i : i];
        double least = INFINITY;
        for (uint32_t d = 0; d < f->paths->place_count; ++d) {
            const stair *own = &f->stairs[cell_of(f, v, d)];
            climb_to(f, v, d);
            if (own->count > 0) least = fmin(least, own->steps[own->count - 1].load);
        }
        if (least == INFINITY) return true;
        if (f->parent[v] == BERTH_PLACE_NONE) sum += least;
    }
    double room = room_of(f);
    return sum > room * (1 + ROUNDING * problem->node_count) + sum * ROUNDING;
}

berth_place__forest *berth_place__forest_create(berth_arena *arena,
                                                const berth_place__paths *paths) {
    uint64_t cells = (uint64_t)paths->problem->node_count * paths->place_count;
    if (paths->place_count > MOST_PLACES || cells > MOST_CELLS) return NULL;
    berth_place__forest *f = berth_arena_new(arena, berth_place__forest);
    f->paths = paths;
    f->stairs = berth_arena_new_array(arena, stair, (size_t)cells);
    f->parent = berth_arena_new_array(arena, uint32_t, paths->problem->node_count);
    f->merged = berth_arena_new_array(arena, step, 2 * MOST_STEPS);
    return f;
}
