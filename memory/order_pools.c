#include "memory/order_pools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/order_private.h"

enum {
    LEAST_WIDTH = 16,  // states of a level that are kept in any case
    WAYS = 4096,       // to give pools to what one node makes
    NOWHERE = 0xff     // the pool of what is not live
};

// A set of finished nodes, and the pools of what is live.
typedef struct state {
    double cost;  // of all buffers that were made
    double rest;  // at least that of the others
    uint64_t live_bytes;
    uint32_t step;  // in `steps`: how it was reached
    const uint64_t *done;
    const uint64_t *live;  // [pool]
    const uint8_t *pool;   // [buffer]
} state;

typedef struct step {
    uint32_t before, node;
} step;

typedef struct level {
    berth_arena *arena;
    BERTH_VEC(state) states;
    uint32_t *slots;  // open addressing, state + 1
    uint32_t mask;
} level;

typedef struct explorer {
    berth_arena *arena;
    const order_part *part;
    const double *moved_bytes;
    const berth_memory_assign_pool *pools;
    uint32_t pool_count, words;
    double *least_cost;  // per buffer, in the cheapest pool that is large enough
    bool *gives;         // per buffer: another may take its place
    double limit_cost;
    uint32_t width;
    BERTH_VEC(step) steps;
    double dropped_cost;  // of states that were left out, the least that they can come to
    uint64_t states;
    // The node that is being run, and what it makes.
    const state *from;
    level *to;
    uint32_t node;
    uint32_t *born;
    uint32_t born_count;
    uint64_t *done;
    uint64_t *live;
    uint8_t *pool;
    uint8_t *kept;  // pools of what the node touches
    uint32_t ways;
} explorer;

// ---- levels -------------------------------------------------------------------------------------

static uint32_t hash_of(const explorer *x, const uint64_t *done, const uint8_t *pool) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint32_t w = 0; w < x->words; ++w) {
        hash = (hash ^ done[w]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    for (uint32_t b = 0; b < x->part->buffer_count; ++b) hash = (hash ^ pool[b]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t *find_slot(const explorer *x, const level *l, const uint64_t *done,
                           const uint8_t *pool) {
    for (uint32_t at = hash_of(x, done, pool) & l->mask;; at = (at + 1) & l->mask) {
        uint32_t *slot = &l->slots[at];
        if (*slot == 0) return slot;
        const state *s = &l->states.data[*slot - 1];
        if (memcmp(s->done, done, x->words * sizeof(*done)) == 0 &&
            memcmp(s->pool, pool, x->part->buffer_count) == 0)
            return slot;
    }
}

static void grow_table(const explorer *x, level *l) {
    l->mask = l->mask ? l->mask * 2 + 1 : 255;
    l->slots = berth_arena_new_array(l->arena, uint32_t, (size_t)l->mask + 1);
    for (uint32_t i = 0; i < l->states.count; ++i)
        *find_slot(x, l, l->states.data[i].done, l->states.data[i].pool) = i + 1;
}

static uint64_t sum_of(const explorer *x, const uint64_t *live) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < x->pool_count; ++k) sum += live[k];
    return sum;
}

// Of two ways to one state the cheaper one is kept.
static void add_state(explorer *x, double cost, double rest) {
    level *l = x->to;
    if (cost + rest >= x->limit_cost) return;
    if (l->states.count * 2 >= l->mask) grow_table(x, l);
    uint32_t *slot = find_slot(x, l, x->done, x->pool);
    if (*slot && l->states.data[*slot - 1].cost <= cost) return;
    x->states++;
    berth_vec_push(x->arena, &x->steps, ((step){x->from->step, x->node}));
    uint32_t last = x->steps.count - 1;
    if (*slot) {
        l->states.data[*slot - 1].cost = cost;
        l->states.data[*slot - 1].step = last;
        return;
    }
    state made = {.cost = cost,
                  .rest = rest,
                  .live_bytes = sum_of(x, x->live),
                  .step = last,
                  .done = berth_arena_copy(l->arena, x->done, x->words * sizeof(*x->done)),
                  .live = berth_arena_copy(l->arena, x->live, x->pool_count * sizeof(*x->live)),
                  .pool = berth_arena_copy(l->arena, x->pool, x->part->buffer_count)};
    berth_vec_push(l->arena, &l->states, made);
    *slot = l->states.count;
}

static int compare_cost(const void *left, const void *right) {
    const state *a = left, *b = right;
    double ours = a->cost + a->rest, theirs = b->cost + b->rest;
    if (ours != theirs) return ours < theirs ? -1 : 1;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes ? -1 : 1;
    return a->step < b->step ? -1 : a->step > b->step;
}

static int compare_room(const void *left, const void *right) {
    const state *a = left, *b = right;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes ? -1 : 1;
    return compare_cost(left, right);
}

// The cheapest half of those kept, then those with most room.
static void narrow(explorer *x, level *l) {
    uint32_t count = l->states.count, half = x->width / 2;
    if (count <= x->width) return;
    qsort(l->states.data, count, sizeof(state), compare_cost);
    qsort(l->states.data + half, count - half, sizeof(state), compare_room);
    for (uint32_t i = x->width; i < count; ++i)
        x->dropped_cost = fmin(x->dropped_cost, l->states.data[i].cost + l->states.data[i].rest);
    l->states.count = x->width;
}

// ---- running a node -----------------------------------------------------------------------------

static bool is_born(const explorer *x, const uint64_t *done, uint32_t buffer) {
    const order_lists *users = &x->part->users;
    for (uint32_t i = users->first[buffer]; i < users->first[buffer + 1]; ++i)
        if (berth_order__has(done, users->items[i])) return false;
    return true;
}

// Whether `node` is the last one to touch it.
static bool dies(const explorer *x, const uint64_t *done, uint32_t node, uint32_t buffer) {
    const order_lists *users = &x->part->users;
    for (uint32_t i = users->first[buffer]; i < users->first[buffer + 1]; ++i)
        if (users->items[i] != node && !berth_order__has(done, users->items[i])) return false;
    return true;
}

static bool is_ready(const explorer *x, const uint64_t *done, uint32_t node) {
    const order_lists *before = &x->part->predecessors;
    if (berth_order__has(done, node)) return false;
    for (uint32_t i = before->first[node]; i < before->first[node + 1]; ++i)
        if (!berth_order__has(done, before->items[i])) return false;
    return true;
}

// Buffers that end with the node leave the pools; the state after it is complete.
static void end_node(explorer *x, double cost, double rest) {
    const order_lists *touches = &x->part->touches;
    uint64_t live[BERTH_MEMORY_ORDER_POOLS_MOST];
    uint32_t first = touches->first[x->node], count = touches->first[x->node + 1] - first;
    memcpy(live, x->live, x->pool_count * sizeof(*live));
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t b = touches->items[first + i];
        x->kept[i] = x->pool[b];
        if (!dies(x, x->from->done, x->node, b)) continue;
        // What gave its bytes to another is in no pool any more.
        if (x->pool[b] != NOWHERE) x->live[x->pool[b]] -= x->part->sizes[b];
        x->pool[b] = NOWHERE;
    }
    berth_order__add(x->done, x->node);
    add_state(x, cost, rest);
    x->done[x->node / 64] &= ~((uint64_t)1 << (x->node % 64));
    for (uint32_t i = 0; i < count; ++i) x->pool[touches->items[first + i]] = x->kept[i];
    memcpy(x->live, live, x->pool_count * sizeof(*live));
}

// Every pool with room for each buffer that the node makes, cheap ones first.
static void choose_pools(explorer *x, uint32_t at, double cost, double rest) {
    if (at == x->born_count) {
        end_node(x, cost, rest);
        return;
    }
    uint32_t b = x->born[at];
    for (uint32_t k = 0; k < x->pool_count; ++k) {
        if (x->live[k] + x->part->sizes[b] > x->pools[k].room_bytes) continue;
        if (x->ways++ >= WAYS) {
            x->dropped_cost = fmin(x->dropped_cost, cost + rest);
            return;
        }
        x->live[k] += x->part->sizes[b];
        x->pool[b] = (uint8_t)k;
        choose_pools(x, at + 1, cost + x->moved_bytes[b] * x->pools[k].cost_per_byte,
                     rest - x->least_cost[b]);
        x->live[k] -= x->part->sizes[b];
        x->pool[b] = NOWHERE;
    }
}

// Results that take the place of an operand: in its pool, whose room they do not need. Gives what they cost.
static double place_over(explorer *x, double *rest) {
    const order_lists *pairs = &x->part->from;
    double cost = 0;
    for (uint32_t i = pairs->first[x->node]; i < pairs->first[x->node + 1]; ++i) {
        uint32_t from = pairs->items[i], to = x->part->to[i];
        if (x->pool[from] == NOWHERE || x->pool[to] != NOWHERE ||
            !dies(x, x->from->done, x->node, from) || !is_born(x, x->from->done, to))
            continue;
        x->pool[to] = x->pool[from];
        x->pool[from] = NOWHERE;
        cost += x->moved_bytes[to] * x->pools[x->pool[to]].cost_per_byte;
        *rest -= x->least_cost[to];
    }
    return cost;
}

static void begin_node(explorer *x, const state *from, uint32_t node) {
    const order_lists *touches = &x->part->touches;
    x->from = from;
    x->node = node;
    x->ways = 0;
    memcpy(x->done, from->done, x->words * sizeof(*x->done));
    memcpy(x->live, from->live, x->pool_count * sizeof(*x->live));
    memcpy(x->pool, from->pool, x->part->buffer_count);
    double rest = from->rest, cost = from->cost + place_over(x, &rest);
    x->born_count = 0;
    for (uint32_t i = touches->first[node]; i < touches->first[node + 1]; ++i) {
        uint32_t b = touches->items[i];
        if (is_born(x, from->done, b) && x->pool[b] == NOWHERE) x->born[x->born_count++] = b;
    }
    choose_pools(x, 0, cost, rest);
}

// Whether a node makes nothing, and decides no pair in place: nothing is gained by waiting with it.
static bool only_frees(explorer *x, const state *from, uint32_t node) {
    const order_lists *touches = &x->part->touches;
    for (uint32_t i = touches->first[node]; i < touches->first[node + 1]; ++i)
        if (x->gives[touches->items[i]] || is_born(x, from->done, touches->items[i])) return false;
    return true;
}

static void expand(explorer *x, const state *from) {
    uint32_t n = x->part->node_count;
    for (uint32_t node = 0; node < n; ++node)
        if (is_ready(x, from->done, node) && only_frees(x, from, node)) {
            begin_node(x, from, node);
            return;
        }
    for (uint32_t node = 0; node < n; ++node)
        if (is_ready(x, from->done, node)) begin_node(x, from, node);
}

// ---- the whole ----------------------------------------------------------------------------------

static void find_least_costs(explorer *x) {
    x->least_cost = berth_arena_new_array(x->arena, double, x->part->buffer_count);
    for (uint32_t b = 0; b < x->part->buffer_count; ++b) {
        uint32_t k = 0;
        while (k < x->pool_count && x->pools[k].room_bytes < x->part->sizes[b]) ++k;
        x->least_cost[b] =
            k < x->pool_count ? x->moved_bytes[b] * x->pools[k].cost_per_byte : INFINITY;
    }
}

static void find_givers(explorer *x) {
    const order_lists *pairs = &x->part->from;
    x->gives = berth_arena_new_array(x->arena, bool, x->part->buffer_count);
    for (uint32_t i = 0; i < pairs->first[x->part->node_count]; ++i)
        x->gives[pairs->items[i]] = true;
}

static state first_state(explorer *x) {
    state s = {.step = UINT32_MAX};
    uint8_t *pool = berth_arena_new_array(x->arena, uint8_t, x->part->buffer_count);
    memset(pool, NOWHERE, x->part->buffer_count);
    s.pool = pool;
    s.done = berth_arena_new_array(x->arena, uint64_t, x->words);
    s.live = berth_arena_new_array(x->arena, uint64_t, x->pool_count);
    for (uint32_t b = 0; b < x->part->buffer_count; ++b) s.rest += x->least_cost[b];
    return s;
}

static level run_levels(explorer *x) {
    level now = {.arena = berth_arena_create_child(x->arena)};
    state first = first_state(x);
    if (first.rest < INFINITY && first.rest < x->limit_cost)
        berth_vec_push(now.arena, &now.states, first);
    for (uint32_t i = 0; i < x->part->node_count; ++i) {
        level next = {.arena = berth_arena_create_child(x->arena)};
        x->to = &next;
        for (uint32_t s = 0; s < now.states.count; ++s) expand(x, &now.states.data[s]);
        narrow(x, &next);
        berth_arena_destroy(now.arena);
        now = next;
    }
    return now;
}

static void read_order(const explorer *x, berth_arena *arena, uint32_t last,
                       berth_memory_order_pools *out) {
    uint32_t at = x->part->node_count;
    out->nodes = berth_arena_new_array(arena, uint32_t, at + 1);
    for (uint32_t i = last; i != UINT32_MAX; i = x->steps.data[i].before)
        out->nodes[--at] = x->steps.data[i].node;
}

berth_status berth_memory_order_pools_solve(berth_arena *arena,
                                            const berth_memory_order_problem *problem,
                                            const double *moved_bytes,
                                            const berth_memory_assign_pool *pools,
                                            uint32_t pool_count, double limit_cost,
                                            uint64_t state_budget, berth_memory_order_pools *out) {
    *out = (berth_memory_order_pools){.cost = INFINITY, .bound = INFINITY};
    BERTH_TRY(berth_order__check(problem));
    if (pool_count == 0 || pool_count > BERTH_MEMORY_ORDER_POOLS_MOST)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u memories to choose from, not 1 to %d",
                                 pool_count, BERTH_MEMORY_ORDER_POOLS_MOST);
    order_part part;
    uint64_t budget = state_budget ? state_budget : BERTH_MEMORY_ORDER_POOLS_DEFAULT_STATES;
    uint64_t width = budget / (problem->node_count + 1);
    explorer x = {.arena = berth_arena_create_child(arena),
                  .part = &part,
                  .moved_bytes = moved_bytes,
                  .pools = pools,
                  .pool_count = pool_count,
                  .limit_cost = limit_cost,
                  .dropped_cost = INFINITY,
                  .words = problem->node_count / 64 + 1};
    x.width = width < LEAST_WIDTH ? LEAST_WIDTH : width > UINT32_MAX ? UINT32_MAX : (uint32_t)width;
    berth_order__cut_part(x.arena, problem, 0, problem->node_count, &part);
    x.done = berth_arena_new_array(x.arena, uint64_t, x.words);
    x.live = berth_arena_new_array(x.arena, uint64_t, pool_count);
    x.pool = berth_arena_new_array(x.arena, uint8_t, part.buffer_count);
    x.kept = berth_arena_new_array(x.arena, uint8_t, part.buffer_count);
    x.born = berth_arena_new_array(x.arena, uint32_t, part.buffer_count);
    find_least_costs(&x);
    find_givers(&x);
    level last = run_levels(&x);
    for (uint32_t i = 0; i < last.states.count; ++i) {
        const state *s = &last.states.data[i];
        if (s->cost >= out->cost) continue;
        out->cost = s->cost;
        out->fits = true;
        read_order(&x, arena, s->step, out);
    }
    out->bound = fmin(out->cost, x.dropped_cost);
    out->proven = x.dropped_cost >= out->cost;
    out->states = x.states;
    berth_arena_destroy(x.arena);
    return BERTH_OK;
}
