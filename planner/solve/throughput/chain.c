// What the searches for chains share, and the search along one order of the items.
#include <math.h>
#include <string.h>

#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/throughput/contiguous.h"

berth_place_chain *berth_place__chain(berth_arena *arena, berth_place_search *search,
                                      const berth_place_blocks *blocks,
                                      const berth_place_sorts *sorts) {
    const berth_place_problem *problem = search->problem;
    berth_place_chain *chain = berth_arena_new(arena, berth_place_chain);
    chain->search = search;
    chain->blocks = blocks;
    chain->sorts = sorts;
    chain->loose = berth_place__loose(arena, problem, blocks, sorts);
    chain->stride = berth_arena_new_array(arena, uint32_t, (size_t)sorts->count + 1);
    chain->state_count = 1;
    for (uint32_t q = 0; q < sorts->count; ++q) {
        chain->stride[q] = chain->state_count;
        chain->state_count *= sorts->device_count[q] + 1;
        if (chain->state_count > BERTH_PLACE_STATE_LIMIT) return NULL;
    }
    double *weight = berth_arena_new_array(arena, double, (size_t)problem->kind_count + 1);
    chain->floor = berth_arena_new_array(arena, double, (size_t)blocks->nets->item_count + 1);
    chain->bound = berth_place__weigh_loads(problem, blocks->nets, weight, chain->floor);
    chain->room = berth_arena_new_array(arena, double, chain->state_count);
    for (uint32_t s = 0; s < chain->state_count; ++s) {
        for (uint32_t q = 0; q < sorts->count; ++q) {
            uint32_t used = s / chain->stride[q] % (sorts->device_count[q] + 1);
            chain->room[s] += weight[sorts->kind[q]] * (sorts->device_count[q] - used);
        }
    }
    return chain;
}

typedef struct order_search {
    const berth_place_chain *chain;
    const uint32_t *order;
    double limit;
    double *best;    // [(items + 1) * states] least largest load of the items before
    uint32_t *from;  // [(items + 1) * states] where the last part begins
    uint32_t *by;    // [(items + 1) * states] its sort; BERTH_PLACE_NONE = a device left idle
    berth_place_load *load;
    double *saved;
} order_search;

// Leaving a device idle is allowed in any state.
static void leave_idle(const order_search *s, uint32_t position) {
    const berth_place_chain *chain = s->chain;
    size_t row = (size_t)position * chain->state_count;
    for (uint32_t state = 0; state < chain->state_count; ++state) {
        for (uint32_t q = 0; q < chain->sorts->count; ++q) {
            if (!berth_place__chain_has(chain, state, q)) continue;
            size_t to = row + state + chain->stride[q];
            if (s->best[row + state] >= s->best[to]) continue;
            s->best[to] = s->best[row + state];
            s->from[to] = state;
            s->by[to] = BERTH_PLACE_NONE;
        }
    }
}

static void extend(const order_search *s, uint32_t begin, uint32_t end, uint32_t sort,
                   double load) {
    const berth_place_chain *chain = s->chain;
    size_t row = (size_t)begin * chain->state_count;
    for (uint32_t state = 0; state < chain->state_count; ++state) {
        if (s->best[row + state] >= s->limit || !berth_place__chain_has(chain, state, sort))
            continue;
        double value = fmax(load, s->best[row + state]);
        size_t to = (size_t)end * chain->state_count + state + chain->stride[sort];
        if (value >= s->best[to]) continue;
        s->best[to] = value;
        s->from[to] = begin;
        s->by[to] = sort;
    }
}

// All parts that begin at `begin`; items before are out.
static void extend_from(const order_search *s, uint32_t begin) {
    const berth_place_chain *chain = s->chain;
    uint32_t items = chain->blocks->nets->item_count;
    for (uint32_t end = begin; end < items; ++end) {
        berth_place__load_add(s->load, s->order[end]);
        bool possible = false;
        for (uint32_t q = 0; q < chain->sorts->count; ++q) {
            if (!berth_place__load_allowed(s->load, q) ||
                berth_place__load_floor(s->load, q) >= s->limit)
                continue;
            possible = true;
            double load = berth_place__load_value(s->load, q);
            if (load < s->limit) extend(s, begin, end + 1, q, load);
        }
        if (!possible) break;
    }
}

static void trace_parts(const order_search *s, berth_place_parts *out_parts) {
    const berth_place_chain *chain = s->chain;
    uint32_t states = chain->state_count;
    uint32_t position = chain->blocks->nets->item_count;
    uint32_t state = states - 1;
    memcpy(out_parts->items, s->order, position * sizeof(*s->order));
    uint32_t count = 0;
    while (position > 0) {
        size_t at = (size_t)position * states + state;
        if (s->by[at] == BERTH_PLACE_NONE) {
            state = s->from[at];
            continue;
        }
        out_parts->sort[count] = s->by[at];
        out_parts->start[count++] = s->from[at];
        state -= chain->stride[s->by[at]];
        position = s->from[at];
    }
    for (uint32_t a = 0, b = count; a + 1 < b; ++a) {  // from last to first
        --b;
        uint32_t sort = out_parts->sort[a];
        uint32_t start = out_parts->start[a];
        out_parts->sort[a] = out_parts->sort[b];
        out_parts->start[a] = out_parts->start[b];
        out_parts->sort[b] = sort;
        out_parts->start[b] = start;
    }
    out_parts->count = count;
    out_parts->start[count] = chain->blocks->nets->item_count;
}

double berth_place__chain_in_order(berth_arena *arena, const berth_place_chain *chain,
                                   const uint32_t *order, double limit,
                                   berth_place_parts *out_parts) {
    const berth_place_nets *nets = chain->blocks->nets;
    size_t cells = ((size_t)nets->item_count + 1) * chain->state_count;
    order_search s = {.chain = chain, .order = order, .limit = limit};
    s.best = berth_arena_new_array(arena, double, cells);
    s.from = berth_arena_new_array(arena, uint32_t, cells);
    s.by = berth_arena_new_array(arena, uint32_t, cells);
    s.load = berth_place__load(arena, chain->search->problem, nets, chain->sorts, nets->item_count);
    for (size_t i = 0; i < cells; ++i) s.best[i] = INFINITY;
    s.best[0] = 0;
    for (uint32_t begin = 0; begin < nets->item_count; ++begin) {
        leave_idle(&s, begin);
        bool alive = false;
        for (uint32_t state = 0; state < chain->state_count; ++state)
            alive = alive || s.best[(size_t)begin * chain->state_count + state] < limit;
        if (!alive) continue;
        berth_place__load_clear(s.load);
        for (uint32_t i = 0; i < begin; ++i) berth_place__load_rule_out(s.load, order[i]);
        extend_from(&s, begin);
        if (berth_place_spent(chain->search, 1 + nets->item_count / 16)) return INFINITY;
    }
    leave_idle(&s, nets->item_count);
    double value = s.best[cells - 1];
    if (value < limit) trace_parts(&s, out_parts);
    return value < limit ? value : INFINITY;
}
