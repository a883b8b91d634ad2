// Simulated annealing of a placement under a p-norm of the loads.
//
// The largest load alone has no slope where two devices are equally full, so what is annealed is
// (sum of load^p)^(1/p) with p growing while the temperature falls. Moves: one unit to another
// device (half of them to a device of a neighbour), exchanges of two units, and runs: what follows
// each other in the graph on one device goes to the device that comes before or after it. (Where
// the cheap places to cut are far apart, no single unit can leave without a loss.)
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/search_private.h"

enum {
    CHANCES = 1024,
    WORK_PER_NODE = 128,   // visits of nets that take about a microsecond
    MOVES_AT_ONCE = 4096,  // between two looks at the budget
    LONGEST_RUN = 64
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

// What a move would make of two devices.
typedef struct outcome {
    double from_load, to_load;
    double from_term, to_term;
    double change;  // of the sum of terms
} outcome;

static void value_outcome(const annealing *a, uint32_t from, uint32_t to, double moved_bytes,
                          outcome *o) {
    const place_state *state = a->state;
    o->from_term = term_of(a, from, o->from_load, state->memory[from] - moved_bytes);
    o->to_term = term_of(a, to, o->to_load, state->memory[to] + moved_bytes);
    o->change = o->from_term + o->to_term - a->term[from] - a->term[to];
}

static uint32_t degree(const annealing *a, uint32_t unit) {
    return a->hyper->net_start[unit + 1] - a->hyper->net_start[unit];
}

static void look_at_move(annealing *a, uint32_t unit, uint32_t to, outcome *o) {
    a->work += 4 + degree(a, unit);
    berth_place__state_try(a->state, unit, to, &o->from_load, &o->to_load);
    value_outcome(a, a->state->device[unit], to, a->hyper->size[unit], o);
}

static void apply(annealing *a, uint32_t unit, uint32_t to, const outcome *o) {
    uint32_t from = a->state->device[unit];
    a->work += degree(a, unit);
    berth_place__state_put(a->state, unit, to, o->from_load, o->to_load);
    a->sum += o->change;
    a->term[from] = o->from_term;
    a->term[to] = o->to_term;
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
    if (!berth_bits_has(a->hyper->allowed[unit], to)) return;
    outcome o;
    look_at_move(a, unit, to, &o);
    if (!accepts(a, o.change)) return;
    apply(a, unit, to, &o);
    keep_if_better(a);
}

static bool share_a_net(const place_hyper *hyper, uint32_t one, uint32_t two) {
    uint32_t i = hyper->net_start[one];
    uint32_t j = hyper->net_start[two];
    while (i < hyper->net_start[one + 1] && j < hyper->net_start[two + 1]) {
        if (hyper->net[i] == hyper->net[j]) return true;
        if (hyper->net[i] < hyper->net[j])
            ++i;
        else
            ++j;
    }
    return false;
}

// Units without a common net change the loads independently of each other: no need to move the
// first to know what the second does.
static void exchange_strangers(annealing *a, uint32_t one, uint32_t two) {
    uint32_t from = a->state->device[one];
    uint32_t to = a->state->device[two];
    outcome o;
    double back_from, back_to;
    berth_place__state_try(a->state, one, to, &o.from_load, &o.to_load);
    berth_place__state_try(a->state, two, from, &back_to, &back_from);
    o.from_load += back_from - a->state->load[from];
    o.to_load += back_to - a->state->load[to];
    a->work += 4 + degree(a, one) + degree(a, two);
    value_outcome(a, from, to, a->hyper->size[one] - a->hyper->size[two], &o);
    if (!accepts(a, o.change)) return;
    berth_place__state_put(a->state, two, from, o.to_load, o.from_load);
    apply(a, one, to, &o);
    keep_if_better(a);
}

static void exchange_neighbours(annealing *a, uint32_t one, uint32_t two) {
    uint32_t from = a->state->device[one];
    uint32_t to = a->state->device[two];
    double old_from = a->term[from], old_to = a->term[to], old_sum = a->sum;
    outcome o;
    look_at_move(a, one, to, &o);
    apply(a, one, to, &o);
    look_at_move(a, two, from, &o);
    if (accepts(a, a->sum + o.change - old_sum)) {
        apply(a, two, from, &o);
        keep_if_better(a);
        return;
    }
    berth_place__state_move(a->state, one, from);
    a->term[from] = old_from;
    a->term[to] = old_to;
    a->sum = old_sum;
}

static void try_exchange(annealing *a) {
    const place_hyper *hyper = a->hyper;
    uint32_t one = place_random_below(&a->out->random, hyper->unit_count);
    uint32_t two = place_random_below(&a->out->random, hyper->unit_count);
    uint32_t from = a->state->device[one];
    uint32_t to = a->state->device[two];
    ++a->work;
    if (from == to || !berth_bits_has(hyper->allowed[one], to) ||
        !berth_bits_has(hyper->allowed[two], from))
        return;
    if (share_a_net(hyper, one, two))
        exchange_neighbours(a, one, two);
    else
        exchange_strangers(a, one, two);
}

// The device of the first unit before `place` (in steps of `step`, which may be "minus one") that
// is not on `from`; `from` when there is none near.
static uint32_t device_beside(const annealing *a, const uint32_t *order, uint32_t place,
                              uint32_t step, uint32_t from) {
    enum { NEAR = 16 };
    for (uint32_t i = 0; i < NEAR; ++i) {
        place -= step;
        if (place >= a->hyper->unit_count) break;
        if (a->state->device[order[place]] != from) return a->state->device[order[place]];
    }
    return from;
}

// A length whose logarithm is even.
static uint32_t pick_length(annealing *a) {
    double length = 2;
    while (length < LONGEST_RUN && (place_random(&a->out->random) & 3) != 0) length *= 1.5;
    return length < LONGEST_RUN ? (uint32_t)length : LONGEST_RUN;
}

static void try_run(annealing *a) {
    uint64_t word = place_random(&a->out->random);
    uint32_t unit = place_random_below(&a->out->random, a->hyper->unit_count);
    const uint32_t *order = a->hyper->order[word % PLACE_ORDERS];
    uint32_t place = a->hyper->rank[word % PLACE_ORDERS][unit];
    uint32_t step = (word >> 8 & 1) ? 1 : UINT32_MAX;
    uint32_t from = a->state->device[unit];
    uint32_t to = (word >> 16 & 7) ? device_beside(a, order, place, step, from)
                                   : place_random_below(&a->out->random, a->hyper->device_count);
    if (to == from) return;
    uint32_t moved[LONGEST_RUN], count = 0, length = pick_length(a);
    for (uint32_t i = 0; i < 2 * length && count < length; ++i, place += step) {
        if (place >= a->hyper->unit_count) break;
        uint32_t next = order[place];
        if (a->state->device[next] != from || !berth_bits_has(a->hyper->allowed[next], to))
            continue;
        berth_place__state_move(a->state, next, to);
        a->work += 4 + 2 * degree(a, next);
        moved[count++] = next;
    }
    outcome o = {.from_load = a->state->load[from], .to_load = a->state->load[to]};
    value_outcome(a, from, to, 0, &o);
    if (count > 0 && accepts(a, o.change)) {
        a->sum += o.change;
        a->term[from] = o.from_term;
        a->term[to] = o.to_term;
        keep_if_better(a);
        return;
    }
    while (count-- > 0) {
        a->work += 4 + 2 * degree(a, moved[count]);
        berth_place__state_move(a->state, moved[count], from);
    }
}

static void try_moves(annealing *a, uint64_t most) {
    uint32_t count = most < MOVES_AT_ONCE ? (uint32_t)most : MOVES_AT_ONCE;
    for (uint32_t i = 0; i < count; ++i)
        if (i % 16 == 0)
            try_run(a);
        else if (i % 4 == 0)
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
