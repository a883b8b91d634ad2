// Orders and pools together: against all orders and all pools of small random graphs, and by properties of large ones.
#include "memory/order_pools.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

#include "tests/memory/random_order.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_order_pools, .init = setup, .fini = teardown, .timeout = 300);

typedef struct pools_call {
    const berth_memory_order_problem *problem;
    const double *moved_bytes;
    const berth_memory_assign_pool *pools;
    uint32_t pool_count;
    double limit_cost;
    uint64_t budget;
    berth_memory_order_pools *out;
} pools_call;

static berth_status solve_body(void *user) {
    pools_call *c = user;
    return berth_memory_order_pools_solve(arena, c->problem, c->moved_bytes, c->pools,
                                          c->pool_count, c->limit_cost, c->budget, c->out);
}

static berth_memory_order_pools solve(const berth_memory_order_problem *problem,
                                      const double *moved_bytes,
                                      const berth_memory_assign_pool *pools, uint32_t pool_count,
                                      double limit_cost, uint64_t budget) {
    berth_memory_order_pools found;
    pools_call call = {problem, moved_bytes, pools, pool_count, limit_cost, budget, &found};
    berth_status status = berth_arena_try(arena, solve_body, &call);
    cr_assert_null(status, "%s", berth_status_message(status));
    return found;
}

// ---- the definition, by trying all --------------------------------------------------------------

typedef struct brute {
    const berth_memory_order_problem *p;
    const double *moved_bytes;
    const berth_memory_assign_pool *pools;
    uint32_t pool_count;
    uint32_t nodes[ORDER_MOST_NODES];
    uint32_t first[ORDER_MOST_LISTS], last[ORDER_MOST_LISTS];
    uint32_t given_to[ORDER_MOST_LISTS], taken_from[ORDER_MOST_LISTS];
    uint32_t pool[ORDER_MOST_LISTS];
    double best;
} brute;

// The pairs in place that the order allows, and the steps at which each buffer is live.
static void read_order(brute *b) {
    const berth_memory_order_problem *p = b->p;
    uint32_t position[ORDER_MOST_NODES];
    for (uint32_t i = 0; i < p->node_count; ++i) position[b->nodes[i]] = i;
    for (uint32_t k = 0; k < p->buffer_count; ++k) {
        b->first[k] = b->given_to[k] = b->taken_from[k] = UINT32_MAX;
        b->last[k] = 0;
        for (uint32_t i = 0; i < p->buffers[k].user_count; ++i) {
            uint32_t at = position[p->buffers[k].users[i]];
            if (at < b->first[k]) b->first[k] = at;
            if (at > b->last[k]) b->last[k] = at;
        }
    }
    for (uint32_t i = 0; i < p->in_place_count; ++i) {
        const berth_memory_order_in_place *t = &p->in_place[i];
        uint32_t at = position[t->node];
        if (b->last[t->from] != at || b->first[t->to] != at || b->given_to[t->from] != UINT32_MAX ||
            b->taken_from[t->to] != UINT32_MAX)
            continue;
        b->given_to[t->from] = t->to;
        b->taken_from[t->to] = t->from;
    }
}

static bool has_room(const brute *b) {
    const berth_memory_order_problem *p = b->p;
    for (uint32_t at = 0; at < p->node_count; ++at)
        for (uint32_t k = 0; k < b->pool_count; ++k) {
            uint64_t live = 0;
            for (uint32_t i = 0; i < p->buffer_count; ++i) {
                if (b->pool[i] != k || b->first[i] > at || b->last[i] < at) continue;
                if (b->last[i] == at && b->given_to[i] != UINT32_MAX) continue;
                live += p->buffers[i].size_bytes;
            }
            if (live > b->pools[k].room_bytes) return false;
        }
    return true;
}

static void try_pools(brute *b, uint32_t buffer, double cost) {
    if (cost >= b->best) return;
    if (buffer == b->p->buffer_count) {
        for (uint32_t i = 0; i < b->p->buffer_count; ++i)
            if (b->taken_from[i] != UINT32_MAX && b->pool[i] != b->pool[b->taken_from[i]]) return;
        if (has_room(b)) b->best = cost;
        return;
    }
    for (uint32_t k = 0; k < b->pool_count; ++k) {
        b->pool[buffer] = k;
        try_pools(b, buffer + 1, cost + b->moved_bytes[buffer] * b->pools[k].cost_per_byte);
    }
}

static void try_order(const uint32_t *nodes, void *user) {
    brute *b = user;
    memcpy(b->nodes, nodes, b->p->node_count * sizeof(*nodes));
    read_order(b);
    try_pools(b, 0, 0);
}

static double cost_of_order(const berth_memory_order_problem *problem, const double *moved_bytes,
                            const berth_memory_assign_pool *pools, uint32_t pool_count,
                            const uint32_t *nodes) {
    brute *b = berth_arena_new(arena, brute);
    *b = (brute){.p = problem,
                 .moved_bytes = moved_bytes,
                 .pools = pools,
                 .pool_count = pool_count,
                 .best = INFINITY};
    try_order(nodes, b);
    return b->best;
}

// ---- random graphs ------------------------------------------------------------------------------

static double *random_moves(uint64_t seed, uint32_t count) {
    uint64_t state = seed * 77 + 5;
    double *moved = berth_arena_new_array(arena, double, count + 1);
    for (uint32_t i = 0; i < count; ++i) moved[i] = (double)(random_next(&state) % 40);
    return moved;
}

static int small_seeds[16];

ParameterizedTestParameters(memory_order_pools, finds_the_cheapest_of_small_graphs) {
    for (int i = 0; i < 16; ++i) small_seeds[i] = i;
    return cr_make_param_array(int, small_seeds, 16);
}

ParameterizedTest(int *block, memory_order_pools, finds_the_cheapest_of_small_graphs) {
    for (uint64_t i = 0; i < 20; ++i) {
        uint64_t seed = (uint64_t)*block * 20 + i;
        order_builder *b =
            random_order(arena, seed, 2 + (uint32_t)(seed % 5), 1 + (uint32_t)(seed % 4));
        const double *moved = random_moves(seed, b->p.buffer_count);
        uint32_t count = seed % 7 == 0 && b->p.buffer_count < 8 ? 3 : 2;
        const berth_memory_assign_pool pools[] = {
            {2 + seed % 9, 1}, {seed % 3 == 0 ? 12 : 40, 3}, {10, 8}};
        brute *all = berth_arena_new(arena, brute);
        *all = (brute){.p = &b->p,
                       .moved_bytes = moved,
                       .pools = pools,
                       .pool_count = count,
                       .best = INFINITY};
        order_try_all(&b->p, try_order, all);
        berth_memory_order_pools found = solve(&b->p, moved, pools, count, INFINITY, 0);
        cr_expect(found.proven);
        cr_expect_eq(found.fits, all->best < INFINITY, "seed %llu", (unsigned long long)seed);
        cr_expect_eq(found.cost, all->best, "seed %llu: %g, by trying all %g",
                     (unsigned long long)seed, found.cost, all->best);
        cr_expect_eq(found.bound, all->best);
        if (!found.fits) continue;
        cr_assert(order_is_valid(&b->p, found.nodes));
        cr_expect_eq(cost_of_order(&b->p, moved, pools, count, found.nodes), found.cost);
        // Nothing costs less than that.
        cr_expect_not(solve(&b->p, moved, pools, count, found.cost, 0).fits);
    }
}

// The problems above are not all trivial: in some the given order is dearer than another, in some nothing fits.
Test(memory_order_pools, small_graphs_gain_from_orders) {
    uint32_t refused = 0, gained = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        order_builder *b =
            random_order(arena, seed, 2 + (uint32_t)(seed % 5), 1 + (uint32_t)(seed % 4));
        const double *moved = random_moves(seed, b->p.buffer_count);
        const berth_memory_assign_pool pools[] = {{2 + seed % 9, 1}, {seed % 3 == 0 ? 12 : 40, 3}};
        uint32_t source[ORDER_MOST_NODES];
        for (uint32_t k = 0; k < b->p.node_count; ++k) source[k] = k;
        berth_memory_order_pools found = solve(&b->p, moved, pools, 2, INFINITY, 0);
        refused += !found.fits;
        gained += found.cost < cost_of_order(&b->p, moved, pools, 2, source);
    }
    cr_expect_gt(refused, 3);
    cr_expect_gt(gained, 4, "%u", gained);
}

// Whatever the budget: a valid order, its cost not below the bound, the same again.
Test(memory_order_pools, large_graphs_with_any_budget) {
    static const uint64_t budgets[] = {20000, 1};
    for (uint64_t seed = 0; seed < 4; ++seed)
        for (int i = 0; i < 2; ++i) {
            order_builder *b = random_order(arena, seed + 500, 60, 3 + (uint32_t)seed * 6);
            const double *moved = random_moves(seed, b->p.buffer_count);
            const berth_memory_assign_pool pools[] = {{20, 1}, {400, 4}};
            berth_memory_order_pools found = solve(&b->p, moved, pools, 2, INFINITY, budgets[i]);
            cr_assert(found.fits);
            cr_expect(order_is_valid(&b->p, found.nodes));
            cr_expect_leq(found.bound, found.cost);
            berth_memory_order_pools again = solve(&b->p, moved, pools, 2, INFINITY, budgets[i]);
            cr_expect_eq(found.cost, again.cost);
            cr_expect_arr_eq(found.nodes, again.nodes, 60 * sizeof(uint32_t));
        }
}

// ---- by hand ------------------------------------------------------------------------------------

// Two chains x -> a -> b of values that are moved much, joined: one chain after the other keeps both
// values of the one that runs in a fast memory of two places beside the result of the first in the slow one.
Test(memory_order_pools, one_chain_after_the_other) {
    order_builder *b = order_start(arena, 5);
    uint32_t a0 = order_add_buffer(b, 1, 0), a1 = order_add_buffer(b, 1, 1);
    uint32_t b0 = order_add_buffer(b, 1, 2), b1 = order_add_buffer(b, 1, 3);
    order_add_edge(b, 0, 2);
    order_use(b, a0, 2);
    order_add_edge(b, 1, 3);
    order_use(b, a1, 3);
    order_add_edge(b, 2, 4);
    order_use(b, b0, 4);
    order_add_edge(b, 3, 4);
    order_use(b, b1, 4);
    const double moved[] = {100, 100, 1, 1};
    const berth_memory_assign_pool pools[] = {{1, 1}, {8, 2}};
    // Given: both first values are live together, so that one of them is in the slow memory.
    uint32_t source[] = {0, 1, 2, 3, 4};
    cr_expect_eq(cost_of_order(&b->p, moved, pools, 2, source), 100 + 200 + 2 + 1);
    berth_memory_order_pools found = solve(&b->p, moved, pools, 2, INFINITY, 0);
    cr_expect(found.proven);
    cr_expect_eq(found.cost, 100 + 100 + 2 + 2);
}

Test(memory_order_pools, nothing_fits) {
    order_builder *b = order_start(arena, 1);
    order_add_buffer(b, 9, 0);
    const double moved[] = {1};
    const berth_memory_assign_pool pools[] = {{8, 1}, {8, 2}};
    berth_memory_order_pools found = solve(&b->p, moved, pools, 2, INFINITY, 0);
    cr_expect_not(found.fits);
    cr_expect(found.proven);
    cr_expect_null(found.nodes);
}

Test(memory_order_pools, malformed) {
    order_builder *b = order_start(arena, 3);
    order_add_edge(b, 2, 1);
    const berth_memory_assign_pool pools[9] = {{8, 1}, {8, 2}};
    berth_memory_order_pools found;
    pools_call call = {&b->p, NULL, pools, 2, INFINITY, 0, &found};
    berth_status status = berth_arena_try(arena, solve_body, &call);
    cr_expect(strstr(berth_status_message(status), "edge 0: it goes backwards"));
    berth_status_free(status);
    b = order_start(arena, 3);
    call.problem = &b->p;
    call.pool_count = 9;
    status = berth_arena_try(arena, solve_body, &call);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect(strstr(berth_status_message(status), "9 memories"), "%s",
              berth_status_message(status));
    berth_status_free(status);
}
