// Simulated annealing of a placement under a p-norm of the loads.
//
// The largest load alone has no slope where two devices are equally full, so what is annealed is
// (sum of load^p)^(1/p) with p growing while the temperature falls. Moves: one unit to another
// device (half of them to a device of a neighbour), and exchanges of two units.
#include <math.h>
#include <string.h>

#include "planner/solve/search_private.h"

enum {
    CHANCES = 1024,
    WORK_PER_NODE = 128,  // visits of nets that take about a microsecond
    MOVES_AT_ONCE = 4096  // between two looks at the budget
};

typedef struct annealing {
    place_anneal *out;
    place_state *state;
    const place_hyper *hyper;
    double scale;          // loads are divided by it before they are raised to the power
    double memory_weight;  // load per byte too many
    double penalty;        // factor on memory_weight
    bool limited;          // some capacity is finite
    uint32_t exponent_log2;
    double heat;             // accepted change of the sum of terms, relative to the sum
    double *term;            // [device_count] (load / scale)^p
    double sum;              // of term
    double look_below;       // sums above it cannot hold a better value
    double chance[CHANCES];  // -log of equally spaced chances
    uint64_t work;
} annealing;

static double term_of(const annealing *a, uint32_t device, double load, double memory) {
    double excess = memory - a->hyper->capacity[device];
    if (excess > 0) load += excess * a->memory_weight * a->penalty;
    double x = load / a->scale;
    if (x > 32) x = 32;
    for (uint32_t i = 0; i < a->exponent_log2; ++i) x *= x;
    return x;
}

static void compute_terms(annealing *a) {
    a->sum = 0;
    for (uint32_t d = 0; d < a->hyper->device_count; ++d) {
        a->term[d] = term_of(a, d, a->state->load[d], a->state->memory[d]);
        a->sum += a->term[d];
    }
}

static void set_look_below(annealing *a) {
    double x = a->out->best_value / a->scale;
    if (x > 32) x = 32;
    for (uint32_t i = 0; i < a->exponent_log2; ++i) x *= x;
    a->look_below = x * a->hyper->device_count;
}

static void keep_if_better(annealing *a) {
    if (a->sum >= a->look_below) return;
    double value = berth_place__state_value(a->state);
    if (value >= a->out->best_value) return;
    a->out->best_value = value;
    memcpy(a->out->best, a->state->device, a->hyper->unit_count * sizeof(*a->out->best));
    set_look_below(a);
}

static bool accepts(annealing *a, double change) {
    return change <= 0 ||
           change < a->heat * a->sum * a->chance[place_random(&a->out->random) % CHANCES];
}

static double change_of(annealing *a, uint32_t unit, uint32_t to, double *out_from,
                        double *out_to) {
    const place_state *state = a->state;
    uint32_t from = state->device[unit];
    double size = a->hyper->size[unit];
    double from_load, to_load;
    berth_place__state_try(state, unit, to, &from_load, &to_load);
    a->work += 4 + a->hyper->net_start[unit + 1] - a->hyper->net_start[unit];
    *out_from = term_of(a, from, from_load, state->memory[from] - size);
    *out_to = term_of(a, to, to_load, state->memory[to] + size);
    return *out_from + *out_to - a->term[from] - a->term[to];
}

static void apply(annealing *a, uint32_t unit, uint32_t to, double from_term, double to_term) {
    uint32_t from = a->state->device[unit];
    berth_place__state_move(a->state, unit, to);
    a->sum += from_term + to_term - a->term[from] - a->term[to];
    a->term[from] = from_term;
    a->term[to] = to_term;
    a->work += a->hyper->net_start[unit + 1] - a->hyper->net_start[unit];
}

// A device for the unit other than its own: a neighbour's, or any.
static uint32_t pick_device(annealing *a, uint32_t unit) {
    const place_hyper *hyper = a->hyper;
    uint64_t word = place_random(&a->out->random);
    uint32_t nets = hyper->net_start[unit + 1] - hyper->net_start[unit];
    uint32_t from = a->state->device[unit];
    uint32_t high = (uint32_t)(word >> 32);
    if ((word & 1) != 0 && nets != 0) {
        uint32_t net =
            hyper->net[hyper->net_start[unit] + (uint32_t)(((word & 0xFFFF) * nets) >> 16)];
        uint32_t begin = hyper->pin_start[net];
        uint32_t pins = hyper->pin_start[net + 1] - begin;
        uint32_t other = hyper->pin[begin + (uint32_t)(((uint64_t)high * pins) >> 32)];
        if (a->state->device[other] != from) return a->state->device[other];
    }
    uint32_t to = (uint32_t)(((uint64_t)high * (hyper->device_count - 1)) >> 32);
    return to + (to >= from);
}

static void try_move(annealing *a) {
    uint32_t unit = place_random_below(&a->out->random, a->hyper->unit_count);
    uint32_t to = pick_device(a, unit);
    ++a->work;
    if ((a->hyper->allowed[unit] >> to & 1) == 0) return;
    double from_term, to_term;
    double change = change_of(a, unit, to, &from_term, &to_term);
    if (!accepts(a, change)) return;
    apply(a, unit, to, from_term, to_term);
    keep_if_better(a);
}

static void try_exchange(annealing *a) {
    const place_hyper *hyper = a->hyper;
    uint32_t one = place_random_below(&a->out->random, hyper->unit_count);
    uint32_t two = place_random_below(&a->out->random, hyper->unit_count);
    uint32_t from = a->state->device[one];
    uint32_t to = a->state->device[two];
    ++a->work;
    if (from == to || (hyper->allowed[one] >> to & 1) == 0 ||
        (hyper->allowed[two] >> from & 1) == 0)
        return;
    double from_term, to_term;
    double old_from = a->term[from], old_to = a->term[to], old_sum = a->sum;
    change_of(a, one, to, &from_term, &to_term);
    apply(a, one, to, from_term, to_term);
    double change = change_of(a, two, from, &to_term, &from_term);
    if (accepts(a, a->sum + change - old_sum)) {
        apply(a, two, from, to_term, from_term);
        keep_if_better(a);
        return;
    }
    berth_place__state_move(a->state, one, from);
    a->term[from] = old_from;
    a->term[to] = old_to;
    a->sum = old_sum;
}

static void try_moves(annealing *a, uint64_t most) {
    uint32_t count = most < MOVES_AT_ONCE ? (uint32_t)most : MOVES_AT_ONCE;
    for (uint32_t i = 0; i < count; ++i)
        if (i % 4 == 0)
            try_exchange(a);
        else
            try_move(a);
}

// Between two temperatures: rounding is removed, and the scale follows the loads.
static void renew(annealing *a, uint32_t exponent_log2) {
    berth_place__state_set(a->state, a->state->device);
    a->scale = 0;
    bool fits = true;
    for (uint32_t d = 0; d < a->hyper->device_count; ++d) {
        a->scale = fmax(a->scale, a->state->load[d]);
        fits = fits && a->state->memory[d] <= a->hyper->capacity[d];
    }
    if (a->scale <= 0) a->scale = 1;
    if (a->limited) a->penalty = fits ? fmax(1, a->penalty * 0.8) : fmin(1e6, a->penalty * 1.5);
    a->exponent_log2 = exponent_log2;
    compute_terms(a);
    set_look_below(a);
    keep_if_better(a);
}

static void begin(annealing *a, place_anneal *anneal) {
    *a = (annealing){.out = anneal, .state = anneal->state, .hyper = anneal->state->hyper};
    const place_hyper *hyper = a->hyper;
    for (uint32_t i = 0; i < CHANCES; ++i) a->chance[i] = -log((i + 0.5) / CHANCES);
    double bytes = 0, load = 0;
    for (uint32_t u = 0; u < hyper->unit_count; ++u) {
        bytes += hyper->size[u];
        load +=
            hyper->time[(size_t)u * hyper->kind_count + hyper->device_kind[a->state->device[u]]];
    }
    a->memory_weight = bytes > 0 ? load / bytes : 0;
    a->penalty = 2;
    for (uint32_t d = 0; d < hyper->device_count; ++d)
        a->limited = a->limited || hyper->capacity[d] < bytes;
}

void berth_place__anneal(place_anneal *anneal, const place_anneal_options *options) {
    annealing a;
    double terms[BERTH_PLACE_DEVICE_LIMIT];
    begin(&a, anneal);
    a.term = terms;
    if (a.hyper->device_count < 2) {
        renew(&a, 0);
        return;
    }
    double steps = options->steps > 1 ? options->steps - 1 : 1;
    double cooling = pow(options->heat_end / options->heat_start, 1 / steps);
    double heat = options->heat_start;
    for (uint32_t step = 0; step < options->steps; ++step, heat *= cooling) {
        double part = step / steps;
        double exponent = options->exponent_log2[0] * (1 - part) + options->exponent_log2[1] * part;
        renew(&a, (uint32_t)(exponent + 0.5));
        a.heat = heat * (double)(1u << a.exponent_log2);
        for (uint64_t done = 0; done < options->moves_per_step; done += MOVES_AT_ONCE) {
            try_moves(&a, options->moves_per_step - done);
            if (options->stop(options->stop_user, a.work / WORK_PER_NODE + 1)) return;
            a.work = 0;
        }
    }
    renew(&a, a.exponent_log2);
}
