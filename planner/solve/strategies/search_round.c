// One round of the multilevel search: coarsen, place the coarsest units, refine on each finer
// level.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/search_private.h"

enum {
    LEVELS = 24,
    COARSEST_PER_DEVICE = 8,  // units
    STEPS = 40,
    MOVES_PER_UNIT = 30  // in each step
};

typedef struct level {
    const place_hyper *hyper;
    uint32_t *target;  // [hyper->unit_count] unit of the next coarser level
} level;

// Fills `levels`, the finest first, and returns their number. No unit gets more than a third of a
// device's share.
static uint32_t coarsen(berth_arena *arena, place_round *round, level *levels) {
    const place_hyper *hyper = round->hyper;
    const uint32_t *part = round->part;
    uint32_t wanted = COARSEST_PER_DEVICE * hyper->device_count;
    double total = 0;
    for (uint32_t u = 0; u < hyper->unit_count; ++u)
        total += berth_place__hyper_least_time(hyper, u);
    double limit = fmin(round->weight_limit, total);
    uint32_t count = 1;
    levels[0] = (level){.hyper = hyper};
    while (count < LEVELS && levels[count - 1].hyper->unit_count > wanted) {
        level *fine = &levels[count - 1];
        uint32_t units = fine->hyper->unit_count;
        fine->target = berth_arena_new_array(arena, uint32_t, units);
        uint32_t left = berth_place__hyper_match(arena, fine->hyper, part, wanted, limit,
                                                 &round->random, fine->target);
        if (left + units / 20 >= units) break;
        if (part != NULL) {
            uint32_t *coarse_part = berth_arena_new_array(arena, uint32_t, left);
            for (uint32_t u = 0; u < units; ++u) coarse_part[fine->target[u]] = part[u];
            part = coarse_part;
        }
        levels[count++].hyper = berth_place__hyper_contract(arena, fine->hyper, fine->target, left);
    }
    return count;
}

static void place_randomly(const place_hyper *hyper, uint64_t *random, uint32_t *device) {
    for (uint32_t u = 0; u < hyper->unit_count; ++u) {
        uint32_t d = place_random_below(random, hyper->device_count);
        while (!berth_bits_has(hyper->allowed[u], d)) d = (d + 1) % hyper->device_count;
        device[u] = d;
    }
}

// The round's start on the coarsest level.
static uint32_t *coarsest_start(berth_arena *arena, place_round *round, const level *levels,
                                uint32_t count) {
    const place_hyper *coarsest = levels[count - 1].hyper;
    uint32_t *device = berth_arena_new_array(arena, uint32_t, coarsest->unit_count);
    if (round->start == NULL) {
        place_randomly(coarsest, &round->random, device);
        return device;
    }
    for (uint32_t u = 0; u < round->hyper->unit_count; ++u) {
        uint32_t at = u;
        for (uint32_t i = 0; i + 1 < count; ++i) at = levels[i].target[at];
        device[at] = round->start[u];
    }
    return device;
}

// Anneals `device` in place; returns its value.
static double refine(berth_arena *arena, place_round *round, const place_hyper *hyper, double heat,
                     uint32_t *device) {
    bool finest = hyper == round->hyper;
    place_anneal_options options = {
        .heat_start = heat,
        .heat_end = finest ? 1e-6 : heat * 0.02,
        .steps = STEPS,
        .moves_per_step = (uint64_t)hyper->unit_count * MOVES_PER_UNIT,
        .exponent_log2 = {round->exponent_log2[0], round->exponent_log2[finest ? 2 : 1]},
        .stop = round->stop,
        .stop_user = round->stop_user,
    };
    place_anneal anneal = {
        .state = berth_place__state_create(arena, hyper),
        .best = berth_arena_new_array(arena, uint32_t, hyper->unit_count),
        .best_value = INFINITY,
        .random = place_random(&round->random),
    };
    berth_place__state_set(anneal.state, device);
    berth_place__anneal(&anneal, &options);
    bool found = anneal.best_value < INFINITY;
    berth_place__state_set(anneal.state, found ? anneal.best : anneal.state->device);
    memcpy(device, anneal.state->device, hyper->unit_count * sizeof(*device));
    return berth_place__state_value(anneal.state);
}

double berth_place__round(berth_arena *arena, place_round *round) {
    level levels[LEVELS];
    uint32_t count = coarsen(arena, round, levels);
    uint32_t *device = coarsest_start(arena, round, levels, count);
    double heat = round->heat;
    double value = INFINITY;
    for (uint32_t i = count; i-- > 0; heat *= 0.3) {
        // When the budget is spent, what there is is still carried to the finest level.
        value = refine(arena, round, levels[i].hyper, heat, device);
        if (i == 0) break;
        const level *fine = &levels[i - 1];
        uint32_t units = fine->hyper->unit_count;
        uint32_t *finer = berth_arena_new_array(arena, uint32_t, units);
        for (uint32_t u = 0; u < units; ++u) finer[u] = device[fine->target[u]];
        device = finer;
    }
    memcpy(round->device, device, round->hyper->unit_count * sizeof(*device));
    return value;
}
