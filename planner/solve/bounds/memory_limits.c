#include "planner/solve/bounds/memory_limits.h"

#include <math.h>
#include <string.h>

enum { MULTIPLES = 3 };  // halves, thirds and quarters of a device
#define ROUNDING 1e-9    // of sums of sizes, and of what a size is of a device

// ------------------------------------------------------------------------------------------------
// limits

// Of a group that takes so much of a device, by multiple (0 = its size).
static double figure_of(double share, uint32_t multiple) {
    if (multiple == 0) return share;
    return floor((multiple + 1) * share * (1 - ROUNDING)) / multiple;
}

static void add_limit(berth_arena *arena, berth_place__memory *memory, uint32_t kind,
                      uint32_t multiple) {
    const berth_place_problem *problem = memory->problem;
    const berth_place_kind *of = &problem->kinds[kind];
    berth_place__memory_limit *limit = &memory->limits[memory->limit_count];
    double *size = berth_arena_new_array(arena, double, problem->node_count), all = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        double bytes = problem->group_bytes[problem->group[v]];
        if (bytes == 0 || !berth_place_has_room(problem, problem->group[v], kind)) continue;
        if (isinf(problem->time[(size_t)v * problem->kind_count + kind])) continue;
        size[v] =
            figure_of(bytes / of->capacity_bytes, multiple) * (problem->size_bytes[v] / bytes);
        all += size[v];
    }
    double room = of->device_count * (1 + ROUNDING);
    if (all <= room) return;
    *limit = (berth_place__memory_limit){.kind = kind, .room = room, .size = size};
    memory->limit_count++;
}

berth_place__memory *berth_place__memory_create(berth_arena *arena,
                                                const berth_place_problem *problem) {
    berth_place__memory *memory = berth_arena_new(arena, berth_place__memory);
    memory->problem = problem;
    memory->limits = berth_arena_new_array(arena, berth_place__memory_limit,
                                           (size_t)problem->kind_count * (1 + MULTIPLES));
    memory->ratio = berth_arena_new_array(arena, double, problem->node_count);
    memory->node = berth_arena_new_array(arena, uint32_t, problem->node_count);
    memory->chosen = berth_arena_new_array(arena, uint32_t, problem->node_count);
    // The sizes themselves are last: what is chosen keeps them.
    for (uint32_t multiple = MULTIPLES + 1; multiple-- > 0;)
        for (uint32_t k = 0; k < problem->kind_count; ++k)
            if (problem->kinds[k].device_count > 0 && problem->kinds[k].capacity_bytes < INFINITY)
                add_limit(arena, memory, k, multiple);
    return memory;
}

bool berth_place__memory_exceeded(const berth_place__memory *memory, const bool *able) {
    const berth_place_problem *problem = memory->problem;
    for (uint32_t i = 0; i < memory->limit_count; ++i) {
        const berth_place__memory_limit *limit = &memory->limits[i];
        double all = 0;
        for (uint32_t v = 0; v < problem->node_count; ++v) {
            const bool *here = able + (size_t)v * problem->kind_count;
            bool bound = here[limit->kind];
            for (uint32_t k = 0; k < problem->kind_count && bound; ++k)
                bound = k == limit->kind || !here[k];
            if (bound) all += limit->size[v];
        }
        if (all > limit->room * (1 + ROUNDING)) return true;
    }
    return false;
}

// ------------------------------------------------------------------------------------------------
// prices

static uint32_t cheapest_but(const berth_place_problem *problem, const double *cost, uint32_t node,
                             uint32_t but) {
    const double *of = cost + (size_t)node * problem->kind_count;
    uint32_t best = BERTH_PLACE_NONE;
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        if (k != but && of[k] < INFINITY && (best == BERTH_PLACE_NONE || of[k] < of[best]))
            best = k;
    return best;
}

static void swap(berth_place__memory *memory, uint32_t a, uint32_t b) {
    double ratio = memory->ratio[a];
    uint32_t node = memory->node[a];
    memory->ratio[a] = memory->ratio[b];
    memory->node[a] = memory->node[b];
    memory->ratio[b] = ratio;
    memory->node[b] = node;
}

static double middle_of_three(double a, double b, double c) {
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

// Puts the dearest nodes that fit into `room` first; returns how many. The one after them fits in part.
static uint32_t select_dearest(berth_place__memory *memory, const double *size, uint32_t count,
                               double *room) {
    uint32_t first = 0, end = count;  // before `first` all fit; from `end` on none does
    while (first < end) {
        const double *ratio = memory->ratio;
        double pivot =
            middle_of_three(ratio[first], ratio[first + (end - first) / 2], ratio[end - 1]);
        uint32_t above = first, below = end;  // [above, i) equals the pivot, [below, end) is less
        double dearer = 0;
        for (uint32_t i = first; i < below;) {
            if (ratio[i] > pivot) {
                dearer += size[memory->node[i]];
                swap(memory, i++, above++);
            } else if (ratio[i] < pivot) {
                swap(memory, i, --below);
            } else {
                ++i;
            }
        }
        if (dearer > *room) {
            end = above;
            continue;
        }
        *room -= dearer;
        for (first = above; first < below && size[memory->node[first]] <= *room; ++first)
            *room -= size[memory->node[first]];
        if (first < below) return first;
    }
    return first;
}

// The limit's best price for these costs, which are free of its price. Nodes on the limit's
// kind are those that gain there, and where it is not 0 those that gain most and fit.
static void choose_price(berth_place__memory *memory, berth_place__memory_limit *limit,
                         const double *cost, uint32_t *chosen, berth_place__split *split) {
    const berth_place_problem *problem = memory->problem;
    double room = limit->room, wanted = 0;
    uint32_t count = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t other = cheapest_but(problem, cost, v, limit->kind);
        double here = cost[(size_t)v * problem->kind_count + limit->kind];
        chosen[v] = limit->kind;
        if (other == BERTH_PLACE_NONE) {
            room -= isinf(here) ? 0 : limit->size[v];
            continue;
        }
        double there = cost[(size_t)v * problem->kind_count + other];
        if (there <= here) chosen[v] = other;
        if (there <= here || limit->size[v] == 0) continue;
        wanted += limit->size[v];
        memory->ratio[count] = (there - here) / limit->size[v];
        memory->node[count++] = v;
    }
    limit->price = 0;
    split->node = BERTH_PLACE_NONE;
    if (wanted <= room || room < 0) return;
    uint32_t kept = select_dearest(memory, limit->size, count, &room);
    for (uint32_t i = kept; i < count; ++i)
        chosen[memory->node[i]] = cheapest_but(problem, cost, memory->node[i], limit->kind);
    if (kept == count) return;
    uint32_t last = memory->node[kept];
    limit->price = memory->ratio[kept];
    *split = (berth_place__split){last, limit->kind, room / limit->size[last]};
}

static void add_price(const berth_place__memory *memory, const berth_place__memory_limit *limit,
                      double price, double *cost) {
    uint32_t kinds = memory->problem->kind_count;
    for (uint32_t v = 0; price != 0 && v < memory->problem->node_count; ++v)
        cost[(size_t)v * kinds + limit->kind] += price * limit->size[v];
}

double berth_place__memory_choose(berth_place__memory *memory, double *cost, uint32_t *out_chosen,
                                  berth_place__split *out_split) {
    const berth_place_problem *problem = memory->problem;
    out_split->node = BERTH_PLACE_NONE;
    for (uint32_t i = 0; i < memory->limit_count; ++i)
        add_price(memory, &memory->limits[i], memory->limits[i].price, cost);
    bool binds = false;
    double bound = 0;
    for (uint32_t i = 0; i < memory->limit_count; ++i) {
        berth_place__memory_limit *limit = &memory->limits[i];
        add_price(memory, limit, -limit->price, cost);
        berth_place__split split;
        choose_price(memory, limit, cost, memory->chosen, &split);
        binds = binds || limit->price > 0;
        if (limit->price > 0 || (!binds && i + 1 == memory->limit_count)) {
            memcpy(out_chosen, memory->chosen, problem->node_count * sizeof(*out_chosen));
            *out_split = split;
        }
        add_price(memory, limit, limit->price, cost);
    }
    for (uint32_t i = 0; i < memory->limit_count; ++i)
        bound -= memory->limits[i].price * memory->limits[i].room;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        uint32_t best = cheapest_but(problem, cost, v, BERTH_PLACE_NONE);
        if (best == BERTH_PLACE_NONE) return INFINITY;
        if (memory->limit_count == 0) out_chosen[v] = best;
        bound += cost[(size_t)v * problem->kind_count + best];
    }
    return bound;
}
