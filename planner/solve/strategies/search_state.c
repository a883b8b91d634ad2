// Loads of a placement of units, kept through moves.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/search_private.h"

// Sizes may be fractions; less than what the evaluator allows.
#define CAPACITY_ROUNDING 5e-13

place_state *berth_place__state_create(berth_arena *arena, const place_hyper *hyper) {
    place_state *state = berth_arena_new(arena, place_state);
    state->hyper = hyper;
    state->device = berth_arena_new_array(arena, uint32_t, hyper->unit_count);
    state->count =
        berth_arena_new_array(arena, uint32_t, (size_t)hyper->net_count * hyper->device_count);
    state->span = berth_arena_new_array(arena, uint32_t, hyper->net_count);
    state->load = berth_arena_new_array(arena, double, hyper->device_count);
    state->memory = berth_arena_new_array(arena, double, hyper->device_count);
    return state;
}

void berth_place__state_set(place_state *state, const uint32_t *device) {
    const place_hyper *hyper = state->hyper;
    uint32_t devices = hyper->device_count;
    if (device != state->device) memcpy(state->device, device, hyper->unit_count * sizeof(*device));
    memset(state->count, 0, (size_t)hyper->net_count * devices * sizeof(*state->count));
    memset(state->span, 0, hyper->net_count * sizeof(*state->span));
    memset(state->load, 0, devices * sizeof(*state->load));
    memset(state->memory, 0, devices * sizeof(*state->memory));
    for (uint32_t u = 0; u < hyper->unit_count; ++u) {
        uint32_t d = state->device[u];
        state->load[d] += hyper->time[(size_t)u * hyper->kind_count + hyper->device_kind[d]];
        state->memory[d] += hyper->size[u];
    }
    for (uint32_t n = 0; n < hyper->net_count; ++n) {
        uint32_t *count = state->count + (size_t)n * devices;
        for (uint32_t p = hyper->pin_start[n]; p < hyper->pin_start[n + 1]; ++p)
            if (count[state->device[hyper->pin[p]]]++ == 0) ++state->span[n];
        if (state->span[n] < 2) continue;
        const double *cost = hyper->cost + (size_t)n * hyper->kind_count;
        for (uint32_t d = 0; d < devices; ++d)
            if (count[d] != 0) state->load[d] += cost[hyper->device_kind[d]];
    }
}

void berth_place__state_try(const place_state *state, uint32_t unit, uint32_t to,
                            double *out_from_load, double *out_to_load) {
    const place_hyper *hyper = state->hyper;
    uint32_t devices = hyper->device_count;
    uint32_t kinds = hyper->kind_count;
    uint32_t from = state->device[unit];
    uint32_t from_kind = hyper->device_kind[from];
    uint32_t to_kind = hyper->device_kind[to];
    double from_load = state->load[from] - hyper->time[(size_t)unit * kinds + from_kind];
    double to_load = state->load[to] + hyper->time[(size_t)unit * kinds + to_kind];
    for (uint32_t i = hyper->net_start[unit]; i < hyper->net_start[unit + 1]; ++i) {
        uint32_t net = hyper->net[i];
        const uint32_t *count = state->count + (size_t)net * devices;
        const double *cost = hyper->cost + (size_t)net * kinds;
        uint32_t span = state->span[net];
        uint32_t leaves = count[from] == 1;
        uint32_t joins = count[to] == 0;
        from_load += cost[from_kind] * ((int)!leaves - (int)(span > 1));
        to_load += cost[to_kind] * ((int)(span - leaves + joins > 1) - (int)!joins);
    }
    *out_from_load = from_load;
    *out_to_load = to_load;
}

void berth_place__state_put(place_state *state, uint32_t unit, uint32_t to, double from_load,
                            double to_load) {
    const place_hyper *hyper = state->hyper;
    uint32_t from = state->device[unit];
    state->load[from] = from_load;
    state->load[to] = to_load;
    state->memory[from] -= hyper->size[unit];
    state->memory[to] += hyper->size[unit];
    state->device[unit] = to;
    for (uint32_t i = hyper->net_start[unit]; i < hyper->net_start[unit + 1]; ++i) {
        uint32_t net = hyper->net[i];
        uint32_t *count = state->count + (size_t)net * hyper->device_count;
        if (--count[from] == 0) --state->span[net];
        if (count[to]++ == 0) ++state->span[net];
    }
}

void berth_place__state_move(place_state *state, uint32_t unit, uint32_t to) {
    double from_load;
    double to_load;
    berth_place__state_try(state, unit, to, &from_load, &to_load);
    berth_place__state_put(state, unit, to, from_load, to_load);
}

double berth_place__state_value(const place_state *state) {
    const place_hyper *hyper = state->hyper;
    double value = 0;
    for (uint32_t d = 0; d < hyper->device_count; ++d) {
        if (state->memory[d] > hyper->capacity[d] * (1 + CAPACITY_ROUNDING)) return INFINITY;
        value = fmax(value, state->load[d]);
    }
    return value;
}
