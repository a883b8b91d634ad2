// The dynamic program of pricing.h.
#include "planner/solve/bounds/pricing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPEN_LIMIT = 30,
    LEVEL_STATE_LIMIT = 3000,
    LEAST_LEVEL_STATES = 2,  // an item that is here, or not
    TABLE_SIZE = 1 << 13,
    DECISION = 10,  // on an item in a state: as much work as so many keys
    KEYS_PER_NODE = 192
};

// What a decision on a level's item does to a state.
typedef struct transition {
    uint32_t target;  // state of the next level, or BERTH_PLACE_NONE
    double cost;      // of nets that this makes span devices
} transition;

struct berth_place_pricing {
    berth_arena *arena;
    uint32_t item_count;
    const uint32_t *order;
    double *time;           // [item_count] by level
    uint32_t *state_start;  // [item_count + 2] states of each level; level item_count has one
    transition *here;       // [states]
    transition *elsewhere;  // [states]
    size_t cell_count;
    uint32_t most;    // of the last pass: largest sum of prices
    uint32_t enough;  // of the last pass
    double *least;    // [states * (most + 1)] least load; INFINITY = none
    uint32_t *begin;  // [states] sums with a load are in begin..end-1
    uint32_t *end;    // [states]
    double rate;      // best for the last prices, per sum of prices; 0 = not known
    double *rest;     // [states] most that prices less rate * loads to come can be
    struct dense_item {
        double density, time;
    } * dense;  // [item_count] scratch
    uint64_t work;
};

// ------------------------------------------------------------------------------------------------
// states

// Of each open net two bits: pins here, pins elsewhere. Nets that an item opens together share them
// until their second pins.
typedef struct builder {
    const berth_place_problem *problem;
    const berth_place_nets *nets;
    const berth_place_sorts *sorts;
    uint32_t sort, kind;
    uint32_t level_limit;  // states of one level
    uint32_t *left;        // [nets]
    bool *dropped;         // [nets] costs nothing (more): too many are open, or free for the kind
    uint32_t *slot;        // [nets] place in the key while open
    uint32_t *came_from;   // [nets] slot that it leaves with this level's item; else its own
    uint32_t *sharing;     // [OPEN_LIMIT] nets that have the slot; 0 = free
    double *slot_cost;     // [OPEN_LIMIT] of those nets
    uint64_t vacated;      // bits of slots that have no net from the next level on
    uint64_t *keys[2];     // [LEVEL_STATE_LIMIT] of this level and the next
    uint32_t count[2];
    uint32_t *table;   // [TABLE_SIZE] of keys[1]: index; where `stamps` says so
    uint32_t *stamps;  // [TABLE_SIZE]
    uint32_t stamp;
    uint64_t work;         // keys looked up, not yet counted in the budget
    uint32_t *renumbered;  // [LEVEL_STATE_LIMIT]
    BERTH_VEC(transition) here;
    BERTH_VEC(transition) elsewhere;
} builder;

static double net_cost(const builder *b, uint32_t net) {
    return b->nets->cost[(size_t)net * b->nets->kind_count + b->kind];
}

// Key after a decision on the item, with the cost of nets that now span devices; nets that end at
// the item lose their bits.
static uint64_t decide(const builder *b, uint32_t item, uint64_t key, bool here, double *out_cost) {
    const berth_place_nets *nets = b->nets;
    uint64_t old = key;
    *out_cost = 0;
    for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
        uint32_t net = nets->inets[e];
        if (b->dropped[net]) continue;
        uint32_t slot = b->slot[net];
        uint64_t before = old >> (2 * b->came_from[net]) & 3;
        uint64_t after = before | (here ? 1 : 2);
        if (before != 3 && after == 3) *out_cost += net_cost(b, net);
        key = (key & ~((uint64_t)3 << (2 * slot))) | after << (2 * slot);
    }
    return key & ~b->vacated;
}

static void forget_keys(builder *b) {
    b->count[1] = 0;
    b->stamp++;
}

// The state of the next level with that key, or BERTH_PLACE_NONE when there are too many.
static uint32_t find_key(builder *b, uint64_t key) {
    b->work++;
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 40) % TABLE_SIZE;
    for (; b->stamps[at] == b->stamp; at = (at + 1) % TABLE_SIZE)
        if (b->keys[1][b->table[at]] == key) return b->table[at];
    if (b->count[1] == b->level_limit) return BERTH_PLACE_NONE;
    b->stamps[at] = b->stamp;
    b->table[at] = b->count[1];
    b->keys[1][b->count[1]] = key;
    return b->count[1]++;
}

static void swap_keys(builder *b) {
    uint64_t *keys = b->keys[0];
    b->keys[0] = b->keys[1];
    b->keys[1] = keys;
    b->count[0] = b->count[1];
}

static void take_slot(builder *b, uint32_t net, uint32_t slot) {
    b->slot[net] = slot;
    b->sharing[slot]++;
    b->slot_cost[slot] += net_cost(b, net);
}

static void leave_slot(builder *b, uint32_t net) {
    uint32_t slot = b->slot[net];
    b->slot_cost[slot] -= net_cost(b, net);
    if (--b->sharing[slot] == 0) b->slot_cost[slot] = 0;
}

// A slot that neither a net has nor the states say anything of; OPEN_LIMIT when there is none.
static uint32_t free_slot(const builder *b) {
    uint32_t slot = 0;
    while (slot < OPEN_LIMIT && b->sharing[slot] != 0) ++slot;
    return slot;
}

// Opens the item's nets, and gives those that were opened together with others a slot of their own.
// Where there is no slot, nets are left out.
static void open_nets(builder *b, uint32_t item) {
    const berth_place_nets *nets = b->nets;
    uint32_t shared = OPEN_LIMIT;  // of those that the item opens
    for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
        uint32_t net = nets->inets[e];
        uint32_t pins = nets->pin_start[net + 1] - nets->pin_start[net];
        uint32_t placed = pins - b->left[net]--;
        if (b->dropped[net] || (placed > 0 && b->sharing[b->slot[net]] == 1)) continue;
        uint32_t slot = placed == 0 && shared != OPEN_LIMIT ? shared : free_slot(b);
        if (placed == 0) shared = slot;
        if (placed > 0) leave_slot(b, net);
        b->dropped[net] = slot == OPEN_LIMIT;
        if (b->dropped[net]) {
            b->slot[net] = OPEN_LIMIT;
            continue;
        }
        b->came_from[net] = placed > 0 ? b->slot[net] : slot;
        take_slot(b, net, slot);
    }
    b->vacated = 0;
    for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
        uint32_t net = nets->inets[e];
        if (!b->dropped[net] && b->left[net] == 0) b->vacated |= (uint64_t)3 << (2 * b->slot[net]);
    }
}

static void close_nets(builder *b, uint32_t item) {
    const berth_place_nets *nets = b->nets;
    for (uint32_t e = nets->inet_start[item]; e < nets->inet_start[item + 1]; ++e) {
        uint32_t net = nets->inets[e];
        if (b->dropped[net]) continue;
        b->came_from[net] = b->slot[net];
        if (b->left[net] > 0) continue;
        leave_slot(b, net);
        b->slot[net] = OPEN_LIMIT;
    }
}

// How many states there would be without the net of that slot.
static uint32_t count_without(builder *b, uint32_t slot) {
    forget_keys(b);
    for (uint32_t s = 0; s < b->count[0]; ++s)
        (void)find_key(b, b->keys[0][s] & ~((uint64_t)3 << (2 * slot)));
    return b->count[1];
}

// The slot with nets that cost least for the states that they make; OPEN_LIMIT when none is open.
static uint32_t cheapest_slot(builder *b) {
    uint32_t best = OPEN_LIMIT;
    double best_price = INFINITY;
    for (uint32_t slot = 0; slot < OPEN_LIMIT; ++slot) {
        if (b->sharing[slot] == 0) continue;
        double fewer = log((double)b->count[0] / count_without(b, slot));
        double price = b->slot_cost[slot] / fmax(fewer, 1e-9);
        if (best != OPEN_LIMIT && price >= best_price) continue;
        best = slot;
        best_price = price;
    }
    return best;
}

// Leaves out the nets of that slot from here on: states that differ in it only become one. What they
// have cost stays paid, so loads are still not more than the true ones. False when none is open.
static bool drop_cheapest(builder *b, uint32_t level_start) {
    uint32_t best = cheapest_slot(b);
    if (best == OPEN_LIMIT) return false;
    for (uint32_t t = 0; t < b->nets->net_count; ++t) {
        if (b->slot[t] == OPEN_LIMIT) continue;
        b->dropped[t] = b->dropped[t] || b->slot[t] == best;
        if (b->came_from[t] == best) b->came_from[t] = b->slot[t];  // where nothing is known yet
    }
    b->sharing[best] = 0;
    b->slot_cost[best] = 0;
    forget_keys(b);
    for (uint32_t s = 0; s < b->count[0]; ++s)
        b->renumbered[s] = find_key(b, b->keys[0][s] & ~((uint64_t)3 << (2 * best)));
    swap_keys(b);
    for (uint32_t s = level_start; s < b->here.count; ++s) {  // transitions to this level
        transition *both[2] = {&b->here.data[s], &b->elsewhere.data[s]};
        for (int i = 0; i < 2; ++i)
            if (both[i]->target != BERTH_PLACE_NONE)
                both[i]->target = b->renumbered[both[i]->target];
    }
    return true;
}

static bool may_be(const builder *b, uint32_t item, bool here) {
    uint32_t pin = b->nets->pin[item];
    bool pinned_here = pin != BERTH_PLACE_NONE && b->sorts->of_device[pin] == b->sort;
    if (!here) return !pinned_here;  // a device with a pin is a sort by itself
    if (pin != BERTH_PLACE_NONE && !pinned_here) return false;
    return !isinf(b->nets->time[(size_t)item * b->nets->kind_count + b->kind]) &&
           b->nets->size_bytes[item] <= b->problem->kinds[b->kind].capacity_bytes;
}

// The transitions of one level. False when they lead to too many states: the level has none then.
static bool build_level(berth_arena *arena, builder *b, uint32_t item) {
    uint32_t start = b->here.count;
    forget_keys(b);
    for (uint32_t s = 0; s < b->count[0]; ++s) {
        transition both[2];
        for (int i = 0; i < 2; ++i) {
            both[i].target = BERTH_PLACE_NONE;
            if (!may_be(b, item, i == 1)) continue;
            uint64_t key = decide(b, item, b->keys[0][s], i == 1, &both[i].cost);
            both[i].target = find_key(b, key);
            if (both[i].target != BERTH_PLACE_NONE) continue;
            b->here.count = b->elsewhere.count = start;
            return false;
        }
        berth_vec_push(arena, &b->elsewhere, both[0]);
        berth_vec_push(arena, &b->here, both[1]);
    }
    return true;
}

// All levels, with at most b->level_limit states each. False when they are more than `state_limit`
// together, or the budget is spent.
static bool build_levels(berth_arena *arena, builder *b, berth_place_pricing *pricing,
                         uint32_t state_limit, berth_place_search *search) {
    uint32_t n = pricing->item_count;
    b->here.count = b->elsewhere.count = 0;
    for (uint32_t t = 0; t < b->nets->net_count; ++t) {
        b->left[t] = b->nets->pin_start[t + 1] - b->nets->pin_start[t];
        b->dropped[t] = !(net_cost(b, t) > 0);
        b->slot[t] = OPEN_LIMIT;
    }
    memset(b->sharing, 0, OPEN_LIMIT * sizeof(*b->sharing));
    memset(b->slot_cost, 0, OPEN_LIMIT * sizeof(*b->slot_cost));
    b->count[0] = 1;
    b->keys[0][0] = 0;
    uint32_t before = 0;  // where the transitions to this level begin
    for (uint32_t level = 0; level < n; ++level) {
        uint32_t item = pricing->order[level];
        open_nets(b, item);
        while (!build_level(arena, b, item))
            if (!drop_cheapest(b, before)) return false;
        pricing->state_start[level + 1] = pricing->state_start[level] + b->count[0];
        if (pricing->state_start[level + 1] > state_limit) return false;
        b->work += (uint64_t)DECISION * b->count[0];
        if (search && berth_place_spent(search, 1 + b->work / KEYS_PER_NODE)) return false;
        b->work = 0;
        before = pricing->state_start[level];
        close_nets(b, item);
        swap_keys(b);
    }
    pricing->state_start[n + 1] = pricing->state_start[n] + b->count[0];
    pricing->here = b->here.data;
    pricing->elsewhere = b->elsewhere.data;
    return true;
}

static builder make_builder(berth_arena *arena, const berth_place_problem *problem,
                            const berth_place_nets *nets, const berth_place_sorts *sorts,
                            uint32_t sort) {
    builder b = {.problem = problem, .nets = nets, .sorts = sorts, .sort = sort};
    b.kind = sorts->kind[sort];
    b.left = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    b.dropped = berth_arena_new_array(arena, bool, (size_t)nets->net_count + 1);
    b.slot = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    b.came_from = berth_arena_new_array(arena, uint32_t, (size_t)nets->net_count + 1);
    b.sharing = berth_arena_new_array(arena, uint32_t, OPEN_LIMIT);
    b.slot_cost = berth_arena_new_array(arena, double, OPEN_LIMIT);
    b.table = berth_arena_new_array(arena, uint32_t, TABLE_SIZE);
    b.stamps = berth_arena_new_array(arena, uint32_t, TABLE_SIZE);
    b.renumbered = berth_arena_new_array(arena, uint32_t, LEVEL_STATE_LIMIT);
    for (int i = 0; i < 2; ++i)
        b.keys[i] = berth_arena_new_array(arena, uint64_t, LEVEL_STATE_LIMIT);
    return b;
}

berth_place_pricing *berth_place__pricing(berth_arena *arena, const berth_place_problem *problem,
                                          const berth_place_nets *nets,
                                          const berth_place_sorts *sorts, uint32_t sort,
                                          const uint32_t *order, uint32_t state_limit,
                                          berth_place_search *search) {
    berth_place_pricing *pricing = berth_arena_new(arena, berth_place_pricing);
    uint32_t n = nets->item_count;
    pricing->arena = arena;
    pricing->item_count = n;
    pricing->order = order;
    pricing->time = berth_arena_new_array(arena, double, (size_t)n + 1);
    for (uint32_t level = 0; level < n; ++level)
        pricing->time[level] =
            nets->time[(size_t)order[level] * nets->kind_count + sorts->kind[sort]];
    pricing->state_start = berth_arena_new_array(arena, uint32_t, (size_t)n + 2);
    builder b = make_builder(arena, problem, nets, sorts, sort);
    b.level_limit = LEVEL_STATE_LIMIT;
    while (!build_levels(arena, &b, pricing, state_limit, search)) {
        if (search && berth_place_spent(search, 0)) return NULL;
        b.level_limit -= b.level_limit / 3;
        if (b.level_limit < LEAST_LEVEL_STATES) return NULL;
    }
    uint32_t states = pricing->state_start[n + 1];
    pricing->begin = berth_arena_new_array(arena, uint32_t, states);
    pricing->end = berth_arena_new_array(arena, uint32_t, states);
    pricing->rest = berth_arena_new_array(arena, double, states);
    return pricing;
}

uint64_t berth_place__pricing_work(const berth_place_pricing *pricing) {
    return pricing->work;
}

uint32_t berth_place__pricing_states(const berth_place_pricing *pricing) {
    return pricing->state_start[pricing->item_count + 1];
}

// ------------------------------------------------------------------------------------------------
// prices

typedef struct pass {
    berth_place_pricing *pricing;
    const double *price;
    double limit;
    double rate;  // prices per load
    double enough;
} pass;

// What the levels from each state on can still bring at the rate.
static void look_ahead(const pass *p) {
    berth_place_pricing *pricing = p->pricing;
    uint32_t n = pricing->item_count;
    for (uint32_t s = pricing->state_start[n]; s < pricing->state_start[n + 1]; ++s)
        pricing->rest[s] = 0;
    for (uint32_t level = n; level-- > 0;) {
        const double *next = &pricing->rest[pricing->state_start[level + 1]];
        double gain = p->price[pricing->order[level]] - p->rate * pricing->time[level];
        for (uint32_t s = pricing->state_start[level]; s < pricing->state_start[level + 1]; ++s) {
            const transition *here = &pricing->here[s];
            const transition *elsewhere = &pricing->elsewhere[s];
            double most = -INFINITY;
            if (elsewhere->target != BERTH_PLACE_NONE)
                most = next[elsewhere->target] - p->rate * elsewhere->cost;
            if (here->target != BERTH_PLACE_NONE)
                most = fmax(most, next[here->target] + gain - p->rate * here->cost);
            pricing->rest[s] = most;
        }
    }
}

static double bound_at(pass *p, double rate) {
    p->rate = rate;
    look_ahead(p);
    return rate * p->limit + p->pricing->rest[0];
}

static double sum_prices(const pass *p) {
    double sum = 0;
    for (uint32_t level = 0; level < p->pricing->item_count; ++level)
        sum += p->price[p->pricing->order[level]];
    return sum;
}

// The rate at which the prices of a device are at most rate * limit + rest[0] with the least of
// those bounds: convex in the rate. The last best rate of these prices is near, mostly.
static void find_rate(pass *p) {
    enum { FIRST_STEPS = 24, STEPS = 7 };
    double sum = sum_prices(p);
    bool first = p->pricing->rate == 0;
    double low = first ? 0 : p->pricing->rate * sum * 0.7;
    double high = first ? 4 * sum / p->limit : p->pricing->rate * sum * 1.4;
    int steps = first ? FIRST_STEPS : STEPS;
    for (int step = 0; step < steps; ++step) {
        double left = low + (high - low) * 0.4;
        double right = low + (high - low) * 0.6;
        if (bound_at(p, left) < bound_at(p, right)) {
            high = right;
        } else {
            low = left;
        }
    }
    p->pricing->rate = sum > 0 ? (low + high) / 2 / sum : 0;
}

// Shrinks a state's sums to those that can still reach enough within the limit.
static void trim(const pass *p, uint32_t state) {
    berth_place_pricing *pricing = p->pricing;
    const double *least = &pricing->least[(size_t)state * (pricing->most + 1)];
    double rest = pricing->rest[state] + p->rate * p->limit;
    while (pricing->begin[state] < pricing->end[state]) {
        double load = least[pricing->begin[state]];
        double reach = pricing->begin[state] + rest - p->rate * load;
        if (load <= p->limit && reach >= p->enough - 1e-6 * p->enough) break;
        pricing->begin[state]++;
    }
    while (pricing->begin[state] < pricing->end[state] &&
           !(least[pricing->end[state] - 1] <= p->limit))
        pricing->end[state]--;
}

// Hands a state's sums on along one decision.
static void hand_on(const pass *p, uint32_t level, uint32_t state, bool here) {
    berth_place_pricing *pricing = p->pricing;
    const transition *t = here ? &pricing->here[state] : &pricing->elsewhere[state];
    if (t->target == BERTH_PLACE_NONE) return;
    uint32_t most = pricing->most;
    uint32_t next = pricing->state_start[level + 1] + t->target;
    double load = t->cost + (here ? pricing->time[level] : 0);
    uint32_t worth = here ? (uint32_t)p->price[pricing->order[level]] : 0;
    const double *from = &pricing->least[(size_t)state * (most + 1)];
    double *to = &pricing->least[(size_t)next * (most + 1)];
    uint32_t begin = pricing->begin[state];
    uint32_t end = pricing->end[state];
    uint32_t first = begin + worth < most ? begin + worth : most;
    uint32_t last = end + worth <= most ? end + worth : most + 1;  // one after
    // Cells of `next` outside its range so far have not been written.
    if (pricing->begin[next] >= pricing->end[next]) {
        pricing->begin[next] = pricing->end[next] = first;
    }
    while (pricing->begin[next] > first) to[--pricing->begin[next]] = INFINITY;
    while (pricing->end[next] < last) to[pricing->end[next]++] = INFINITY;
    uint32_t plain = most > worth ? most - worth : 0;  // sums below stay below most
    if (plain > end) plain = end;
    double *shifted = to + worth;
    uint32_t sum = begin;
    for (; sum < plain; ++sum) {
        double value = from[sum] + load;
        shifted[sum] = value < shifted[sum] ? value : shifted[sum];
    }
    for (; sum < end; ++sum) to[most] = fmin(to[most], from[sum] + load);
    pricing->work += end - begin;
}

static void follow_back(const pass *p, uint32_t sum, bool *out_has) {
    berth_place_pricing *pricing = p->pricing;
    uint32_t most = pricing->most;
    uint32_t state = 0;
    for (uint32_t level = pricing->item_count; level-- > 0;) {
        uint32_t item = pricing->order[level];
        double load =
            pricing->least[(size_t)(pricing->state_start[level + 1] + state) * (most + 1) + sum];
        bool found = false;
        for (uint32_t s = pricing->state_start[level];
             !found && s < pricing->state_start[level + 1]; ++s) {
            const double *least = &pricing->least[(size_t)s * (most + 1)];
            for (uint32_t here = 0; here < 2 && !found; ++here) {
                const transition *t = here ? &pricing->here[s] : &pricing->elsewhere[s];
                if (t->target != state) continue;
                double added = t->cost + (here ? pricing->time[level] : 0);
                uint32_t worth = here ? (uint32_t)p->price[item] : 0;
                uint32_t from = sum >= worth ? sum - worth : 0;
                uint32_t to = sum == most ? most : sum - worth;
                if (sum < worth && sum < most) continue;
                for (uint32_t before = from; before <= to && !found; ++before) {
                    if (before < pricing->begin[s] || before >= pricing->end[s]) continue;
                    if (least[before] + added != load) continue;
                    found = true;
                    out_has[item] = here == 1;
                    state = s - pricing->state_start[level];
                    sum = before;
                }
            }
        }
    }
}

double berth_place__price_roughly(berth_place_pricing *pricing, const double *price, double limit) {
    pass p = {.pricing = pricing, .price = price, .limit = limit};
    find_rate(&p);
    return fmax(bound_at(&p, pricing->rate * sum_prices(&p)), 0);
}

uint32_t berth_place__price(berth_place_pricing *pricing, const double *price, double limit,
                            uint32_t enough, bool *out_has) {
    uint32_t n = pricing->item_count;
    uint32_t states = pricing->state_start[n + 1];
    pass p = {.pricing = pricing, .price = price, .limit = limit, .enough = enough};
    if (pricing->rate == 0) find_rate(&p);
    double sum = sum_prices(&p);
    double most = fmin(bound_at(&p, pricing->rate * sum), sum);
    pricing->most = most > 0 ? (uint32_t)(most * (1 + 1e-9)) + 1 : 1;
    size_t cells = (size_t)states * ((size_t)pricing->most + 1);
    if (cells > pricing->cell_count) {
        pricing->cell_count = cells + cells / 4;
        pricing->least = berth_arena_new_array(pricing->arena, double, pricing->cell_count);
    }
    pricing->enough = enough;
    pricing->work = states;
    memset(pricing->begin, 0, states * sizeof(*pricing->begin));
    memset(pricing->end, 0, states * sizeof(*pricing->end));
    pricing->least[0] = 0;
    pricing->end[0] = 1;
    for (uint32_t level = 0; level < n; ++level) {
        for (uint32_t s = pricing->state_start[level]; s < pricing->state_start[level + 1]; ++s) {
            trim(&p, s);
            if (pricing->begin[s] >= pricing->end[s]) continue;
            hand_on(&p, level, s, false);
            hand_on(&p, level, s, true);
        }
    }
    uint32_t best = berth_place__price_within(pricing, limit);
    if (best < enough || best == 0) return 0;
    follow_back(&p, best, out_has);
    return best;
}

uint32_t berth_place__price_within(const berth_place_pricing *pricing, double limit) {
    uint32_t last = pricing->state_start[pricing->item_count];
    const double *least = &pricing->least[(size_t)last * ((size_t)pricing->most + 1)];
    uint32_t less = pricing->enough > 0 ? pricing->enough - 1 : 0;  // smaller sums may be missing
    for (uint32_t sum = pricing->end[last]; sum-- > pricing->begin[last] && sum > less;)
        if (least[sum] <= limit) return sum;
    return less;
}
