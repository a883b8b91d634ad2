// The dynamic program over ideals (Tarnawski et al., NeurIPS 2020, section 5.1.1), without a list
// of pairs: from each ideal that a chain below the limit can reach, a walk adds blocks in ascending
// order, so that it meets every larger ideal at most once. What it has passed over is out for good,
// so the load has a part that only grows, and the walk turns back where that part reaches the
// limit.
#include <math.h>
#include <string.h>

#include "planner/solve/throughput/contiguous.h"

typedef struct frame {
    uint32_t ideal;
    uint32_t step;   // next step of the ideal to try
    uint32_t added;  // the block that led here
    uint32_t out_begin;
    double inside;  // weighted load of the ideal's blocks
} frame;

typedef struct ideal_search {
    const berth_place_chain *chain;
    const berth_place_ideals *ideals;
    double limit;
    double *best;    // [ideals * states] least largest load of a chain for the ideal
    uint32_t *from;  // [ideals * states] the ideal before its last device
    uint8_t *by;     // [ideals * states] the last device's sort; IDLE = none
    berth_place_load *load;
    frame *frames;        // [blocks + 1]
    double *saved;        // [(blocks + 1) * sums] sums before the frame's block
    double *saved_out;    // [blocks * sums] sums before each block that was ruled out
    uint32_t *ruled_out;  // [blocks] stack
    uint32_t ruled_count;
    uint32_t *live;  // [states] of the ideal the walk began at
    uint32_t live_count;
    uint64_t steps, counted;
    double floor_total;
} ideal_search;

enum { IDLE = 255 };

// Whether the devices not used yet could have what is left, by weighted loads (which are sums, and
// so not exact).
static bool has_room(const ideal_search *s, double rest, uint32_t state) {
    return isinf(s->limit) || rest <= s->limit * s->chain->room[state] + s->floor_total * 1e-9;
}

static void relax(const ideal_search *s, uint32_t begin, uint32_t end, double rest) {
    const berth_place_chain *chain = s->chain;
    uint32_t states = chain->state_count;
    const double *before = &s->best[(size_t)begin * states];
    double *after = &s->best[(size_t)end * states];
    for (uint32_t q = 0; q < chain->sorts->count; ++q) {
        if (!berth_place__load_allowed(s->load, q)) continue;
        double load = berth_place__load_value(s->load, q);
        if (load >= s->limit) continue;
        load += berth_place__loose_extra(s->chain->loose, s->load, q);
        if (load >= s->limit) continue;
        for (uint32_t i = 0; i < s->live_count; ++i) {
            uint32_t state = s->live[i];
            if (!berth_place__chain_has(chain, state, q)) continue;
            uint32_t next = state + chain->stride[q];
            double value = fmax(load, before[state]);
            if (value >= after[next] || !has_room(s, rest, next)) continue;
            after[next] = value;
            s->from[(size_t)end * states + next] = begin;
            s->by[(size_t)end * states + next] = (uint8_t)q;
        }
    }
}

// Whether some device could still take the walk's blocks and more.
static bool is_possible(const ideal_search *s) {
    for (uint32_t q = 0; q < s->chain->sorts->count; ++q)
        if (berth_place__load_floor(s->load, q) < s->limit && berth_place__load_allowed(s->load, q))
            return true;
    return false;
}

static void leave_frame(ideal_search *s, uint32_t depth) {
    const frame *top = &s->frames[depth];
    uint32_t sums = s->load->sum_count;
    while (s->ruled_count > top->out_begin) {
        --s->ruled_count;
        berth_place__load_undo_rule_out(s->load, s->ruled_out[s->ruled_count],
                                        &s->saved_out[(size_t)s->ruled_count * sums]);
    }
    if (depth == 0) return;
    berth_place__load_undo_add(s->load, top->added, &s->saved[(size_t)depth * sums]);
}

static void rule_out(ideal_search *s, uint32_t block) {
    uint32_t sums = s->load->sum_count;
    memcpy(&s->saved_out[(size_t)s->ruled_count * sums], s->load->sums,
           sums * sizeof(*s->load->sums));
    s->ruled_out[s->ruled_count++] = block;
    berth_place__load_rule_out(s->load, block);
}

// Counts steps that were not counted yet; whether the budget is spent.
static bool is_spent(ideal_search *s) {
    enum { STEPS_PER_NODE = 16 };
    uint64_t nodes = (s->steps - s->counted) / STEPS_PER_NODE;
    s->counted += nodes * STEPS_PER_NODE;
    return berth_place_spent(s->chain->search, nodes);
}

// All ideals above `begin` that one more device could reach. False when the budget ran out.
static bool walk(ideal_search *s, uint32_t begin, double inside) {
    enum { STEPS_AT_ONCE = 4096 };
    const berth_place_ideals *ideals = s->ideals;
    uint32_t sums = s->load->sum_count;
    uint32_t depth = 0;
    s->frames[0] = (frame){.ideal = begin, .step = ideals->step_start[begin], .inside = inside};
    for (;;) {
        frame *top = &s->frames[depth];
        if (top->step == ideals->step_start[top->ideal + 1]) {
            leave_frame(s, depth);
            if (depth-- == 0) return true;
            rule_out(s, s->frames[depth + 1].added);
            if (!is_possible(s))
                s->frames[depth].step = ideals->step_start[s->frames[depth].ideal + 1];
            continue;
        }
        uint32_t step = top->step++;
        uint32_t block = ideals->vertex[step];
        if (depth > 0 && block < top->added) continue;
        if (++s->steps % STEPS_AT_ONCE == 0 && is_spent(s)) return false;
        frame *next = &s->frames[depth + 1];
        *next = (frame){.ideal = ideals->target[step],
                        .step = ideals->step_start[ideals->target[step]],
                        .added = block,
                        .out_begin = s->ruled_count,
                        .inside = top->inside + s->chain->floor[block]};
        memcpy(&s->saved[(size_t)(depth + 1) * sums], s->load->sums, sums * sizeof(*s->load->sums));
        berth_place__load_add(s->load, block);
        depth++;
        if (is_possible(s)) {
            relax(s, begin, next->ideal, s->floor_total - next->inside);
        } else {
            next->step = ideals->step_start[next->ideal + 1];
        }
    }
}

// Lets devices idle, and lists the states worth going on from: below the limit, below every state
// with a device less.
static double prepare(ideal_search *s, uint32_t ideal) {
    const berth_place_chain *chain = s->chain;
    size_t row = (size_t)ideal * chain->state_count;
    double inside = 0;
    for (uint32_t b = 0; b < chain->blocks->block_count; ++b)
        if (berth_place__ideal_has(s->ideals, ideal, b)) inside += chain->floor[b];
    double rest = s->floor_total - inside;
    s->live_count = 0;
    for (uint32_t state = 0; state < chain->state_count; ++state) {
        double *best = &s->best[row + state];
        bool own = *best < s->limit;
        for (uint32_t q = 0; q < chain->sorts->count; ++q) {
            bool used = state / chain->stride[q] % (chain->sorts->device_count[q] + 1) > 0;
            if (!used) continue;
            uint32_t less = state - chain->stride[q];
            if (s->best[row + less] > *best) continue;
            *best = s->best[row + less];
            s->from[row + state] = less;
            s->by[row + state] = IDLE;
            own = false;
        }
        if (own && has_room(s, rest, state)) s->live[s->live_count++] = state;
    }
    return inside;
}

static void trace(const ideal_search *s, berth_place_parts *out_parts) {
    const berth_place_chain *chain = s->chain;
    uint32_t blocks = chain->blocks->block_count;
    uint32_t devices = chain->search->problem->device_count;
    uint32_t ideal = s->ideals->count - 1;
    uint32_t state = chain->state_count - 1;
    uint32_t part = devices;
    uint32_t filled = blocks;
    while (ideal != 0) {
        size_t at = (size_t)ideal * chain->state_count + state;
        if (s->by[at] == IDLE) {
            state = s->from[at];
            continue;
        }
        uint32_t before = s->from[at];
        for (uint32_t b = 0; b < blocks; ++b)
            if (berth_place__ideal_has(s->ideals, ideal, b) &&
                !berth_place__ideal_has(s->ideals, before, b))
                out_parts->items[--filled] = b;
        --part;
        out_parts->sort[part] = s->by[at];
        out_parts->start[part] = filled;
        state -= chain->stride[s->by[at]];
        ideal = before;
    }
    out_parts->count = devices - part;
    memmove(out_parts->sort, &out_parts->sort[part], out_parts->count * sizeof(*out_parts->sort));
    memmove(out_parts->start, &out_parts->start[part],
            out_parts->count * sizeof(*out_parts->start));
    out_parts->start[out_parts->count] = blocks;
}

static ideal_search *create(berth_arena *arena, const berth_place_chain *chain,
                            const berth_place_ideals *ideals, double limit) {
    uint32_t blocks = chain->blocks->block_count;
    size_t cells = (size_t)ideals->count * chain->state_count;
    ideal_search *s = berth_arena_new(arena, ideal_search);
    s->chain = chain;
    s->ideals = ideals;
    s->limit = limit;
    s->best = berth_arena_new_array(arena, double, cells);
    s->from = berth_arena_new_array(arena, uint32_t, cells);
    s->by = berth_arena_new_array(arena, uint8_t, cells);
    s->load =
        berth_place__load(arena, chain->search->problem, chain->blocks->nets, chain->sorts, blocks);
    s->frames = berth_arena_new_array(arena, frame, (size_t)blocks + 1);
    s->saved = berth_arena_new_array(arena, double, ((size_t)blocks + 1) * s->load->sum_count);
    s->saved_out = berth_arena_new_array(arena, double, ((size_t)blocks + 1) * s->load->sum_count);
    s->ruled_out = berth_arena_new_array(arena, uint32_t, (size_t)blocks + 1);
    s->live = berth_arena_new_array(arena, uint32_t, chain->state_count);
    for (uint32_t b = 0; b < blocks; ++b) s->floor_total += chain->floor[b];
    for (size_t i = 0; i < cells; ++i) s->best[i] = INFINITY;
    s->best[0] = 0;
    return s;
}

berth_place_outcome berth_place__chain_of_ideals(berth_arena *arena, const berth_place_chain *chain,
                                                 const berth_place_ideals *ideals, double limit,
                                                 double *out_value, berth_place_parts *out_parts) {
    ideal_search *s = create(arena, chain, ideals, limit);
    uint32_t blocks = chain->blocks->block_count;
    *out_value = INFINITY;
    for (uint32_t i = 0; i + 1 < ideals->count; ++i) {
        double inside = prepare(s, i);
        if (s->live_count == 0) continue;
        berth_place__load_clear(s->load);
        for (uint32_t b = 0; b < blocks; ++b)
            if (berth_place__ideal_has(ideals, i, b)) berth_place__load_rule_out(s->load, b);
        if (!walk(s, i, inside) || is_spent(s)) return BERTH_PLACE_STOPPED;
        s->steps += 16;  // what an ideal costs besides
    }
    prepare(s, ideals->count - 1);
    double value =
        s->best[(size_t)(ideals->count - 1) * chain->state_count + (chain->state_count - 1)];
    if (!(value < limit)) return BERTH_PLACE_NONE_BELOW;
    *out_value = value;
    trace(s, out_parts);
    return BERTH_PLACE_FOUND;
}
