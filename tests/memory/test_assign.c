// Buffers in one of several memories: against all assignments of small problems, and by properties of large ones.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "memory/assign.h"
#include "tests/memory/random_problem.h"

enum { most = 10, pool_count = 2 };

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_assign, .init = setup, .fini = teardown);

typedef struct assign_call {
    berth_memory_plan_buffer *buffers;
    const double *moved_bytes;
    uint32_t count;
    const berth_memory_assign_pool *pools;
    uint32_t pools_count, last;
    berth_memory_assignment *out;
} assign_call;

static berth_status assign_body(void *user) {
    assign_call *c = user;
    return berth_memory_assign(arena, c->buffers, c->moved_bytes, c->count, c->pools,
                               c->pools_count, c->last, 0, c->out);
}

static berth_memory_assignment assign(berth_memory_plan_buffer *buffers, const double *moved_bytes,
                                      uint32_t count, const berth_memory_assign_pool *pools,
                                      uint32_t pools_count, uint32_t last) {
    berth_memory_assignment found;
    assign_call call = {buffers, moved_bytes, count, pools, pools_count, last, &found};
    cr_assert_null(berth_arena_try(arena, assign_body, &call));
    return found;
}

typedef struct height_call {
    const berth_memory_plan_buffer *buffers;
    uint32_t count;
    berth_memory_plan_pool *plans;
    uint32_t pools_count;
} height_call;

static berth_status height_body(void *user) {
    height_call *c = user;
    uint64_t *offsets = berth_arena_new_array(arena, uint64_t, c->count);
    return berth_memory_plan_solve(arena, c->buffers, c->count, c->plans, c->pools_count, 0,
                                   offsets);
}

// Whether every pool but `spared` has a plan within its room. *out_spared_bytes: what that one's plan needs.
static bool fits(const berth_memory_plan_buffer *buffers, uint32_t count,
                 const berth_memory_assign_pool *pools, uint32_t pools_count, uint32_t spared,
                 uint64_t *out_spared_bytes) {
    berth_memory_plan_pool plans[4] = {{0}};
    height_call call = {buffers, count, plans, pools_count};
    cr_assert_null(berth_arena_try(arena, height_body, &call));
    if (spared < pools_count) *out_spared_bytes = plans[spared].peak_bytes;
    for (uint32_t k = 0; k < pools_count; ++k)
        if (k != spared && plans[k].peak_bytes > pools[k].room_bytes) return false;
    return true;
}

static double cost_of(const berth_memory_plan_buffer *buffers, const double *moved_bytes,
                      uint32_t count, const berth_memory_assign_pool *pools) {
    double cost = 0;
    for (uint32_t i = 0; i < count; ++i)
        cost += moved_bytes[i] * pools[buffers[i].pool].cost_per_byte;
    return cost;
}

// The least cost of all assignments that fit; INFINITY = none fits.
static double least_cost(const berth_memory_plan_buffer *buffers, const double *moved_bytes,
                         uint32_t count, const berth_memory_assign_pool *pools) {
    berth_memory_plan_buffer tried[most];
    double least = INFINITY;
    memcpy(tried, buffers, count * sizeof(*tried));
    for (uint32_t set = 0; set < 1u << count; ++set) {
        for (uint32_t i = 0; i < count; ++i) tried[i].pool = set >> i & 1;
        double cost = cost_of(tried, moved_bytes, count, pools);
        if (cost < least && fits(tried, count, pools, pool_count, UINT32_MAX, NULL)) least = cost;
    }
    return least;
}

// The least that the last pool needs of all assignments with which the first one fits.
static uint64_t least_bytes(const berth_memory_plan_buffer *buffers, uint32_t count,
                            const berth_memory_assign_pool *pools) {
    berth_memory_plan_buffer tried[most];
    uint64_t least = UINT64_MAX, bytes = 0;
    memcpy(tried, buffers, count * sizeof(*tried));
    for (uint32_t set = 0; set < 1u << count; ++set) {
        for (uint32_t i = 0; i < count; ++i) tried[i].pool = set >> i & 1;
        if (fits(tried, count, pools, pool_count, 1, &bytes) && bytes < least) least = bytes;
    }
    return least;
}

static uint32_t random_below(uint64_t *state, uint32_t limit) {
    return (uint32_t)(random_next(state) % limit);
}

// Eight-byte units, as the planner places them.
static void random_buffers(uint64_t *state, berth_memory_plan_buffer *buffers, double *moved_bytes,
                           uint32_t count, uint32_t steps) {
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t first = random_below(state, steps), length = random_below(state, steps / 2);
        buffers[i] = (berth_memory_plan_buffer){
            .first_use_step = first,
            .last_use_step = first + length < steps ? first + length : steps - 1,
            .size_bytes = 8 * (1 + random_below(state, 8)),
            .alignment_bytes = 8};
        moved_bytes[i] = random_below(state, 1000);
    }
}

Test(memory_assign, costs_as_little_as_the_best_of_all_assignments, .timeout = 120) {
    uint64_t state = 11;
    uint32_t impossible = 0, divided = 0;
    for (int round = 0; round < 150; ++round) {
        berth_memory_plan_buffer buffers[most];
        double moved_bytes[most];
        uint32_t count = 1 + random_below(&state, most);
        random_buffers(&state, buffers, moved_bytes, count, 8);
        berth_memory_assign_pool pools[pool_count] = {{8 * random_below(&state, 12), 1},
                                                      {8 * (4 + random_below(&state, 16)), 3}};
        double least = least_cost(buffers, moved_bytes, count, pools);
        berth_memory_assignment found = assign(buffers, moved_bytes, count, pools, pool_count, 1);
        cr_expect_eq(found.fits, !isinf(least), "round %d", round);
        uint64_t last_bytes = 0;
        cr_expect(fits(buffers, count, pools, pool_count, found.fits ? UINT32_MAX : 1, &last_bytes),
                  "round %d", round);
        impossible += !found.fits;
        if (!found.fits)
            cr_expect_eq(last_bytes, least_bytes(buffers, count, pools), "round %d", round);
        if (!found.fits) continue;
        cr_expect_float_eq(found.cost, least, 1e-6, "round %d: %g, not %g", round, found.cost,
                           least);
        cr_expect_float_eq(cost_of(buffers, moved_bytes, count, pools), found.cost, 1e-6);
        cr_expect_leq(found.bound, found.cost + 1e-6, "round %d", round);
        for (uint32_t i = 1; i < count; ++i) divided += buffers[i].pool != buffers[0].pool;
    }
    cr_expect_gt(impossible, 10);
    cr_expect_gt(divided, 50);
}

// A buffer that moves most for its size goes into the fast memory, not the one that moves most.
Test(memory_assign, density_counts) {
    berth_memory_plan_buffer buffers[] = {{0, 1, 64, 8, 0}, {0, 1, 32, 8, 0}, {0, 1, 32, 8, 0}};
    const double moved_bytes[] = {100, 70, 60};
    const berth_memory_assign_pool pools[] = {{64, 1}, {256, 2}};
    berth_memory_assignment found = assign(buffers, moved_bytes, 3, pools, 2, 1);
    cr_expect(found.fits && found.optimal);
    cr_expect_eq(buffers[0].pool, 1);
    cr_expect_eq(buffers[1].pool, 0);
    cr_expect_eq(buffers[2].pool, 0);
    cr_expect_float_eq(found.cost, 330, 1e-9);
}

// Buffers that are not live together share the fast memory.
Test(memory_assign, lifetimes_count) {
    berth_memory_plan_buffer buffers[] = {{0, 1, 64, 8, 0}, {2, 3, 64, 8, 0}, {1, 2, 64, 8, 0}};
    const double moved_bytes[] = {10, 10, 15};
    const berth_memory_assign_pool pools[] = {{64, 1}, {64, 5}};
    berth_memory_assignment found = assign(buffers, moved_bytes, 3, pools, 2, 1);
    cr_expect(found.fits && found.optimal);
    cr_expect_eq(buffers[0].pool, 0);
    cr_expect_eq(buffers[1].pool, 0);
    cr_expect_eq(buffers[2].pool, 1);
}

// By density alone nothing would have room in the end: what fits comes before what is fast.
Test(memory_assign, what_fits_comes_before_what_is_fast) {
    berth_memory_plan_buffer buffers[] = {{0, 0, 32, 8, 0}, {0, 0, 64, 8, 0}};
    const double moved_bytes[] = {1000, 1};
    const berth_memory_assign_pool pools[] = {{64, 1}, {32, 5}};
    berth_memory_assignment found = assign(buffers, moved_bytes, 2, pools, 2, 1);
    cr_expect(found.fits && found.optimal);
    cr_expect_eq(buffers[0].pool, 1);
    cr_expect_eq(buffers[1].pool, 0);
}

// Many buffers in three memories: within every room, and not far from the bound.
Test(memory_assign, large_problems_keep_to_their_rooms, .timeout = 120) {
    enum { many = 4200 };
    static const uint32_t counts[] = {300, many};
    uint64_t state = 5;
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); ++n) {
        berth_memory_plan_buffer *buffers =
            berth_arena_array(arena, many, sizeof(berth_memory_plan_buffer));
        double *moved_bytes = berth_arena_array(arena, many, sizeof(double));
        uint32_t count = counts[n];
        for (uint32_t i = 0; i < count; ++i) {
            buffers[i] = (berth_memory_plan_buffer){.first_use_step = i,
                                                    .last_use_step = i + random_below(&state, 20),
                                                    .size_bytes = 8 + random_below(&state, 100),
                                                    .alignment_bytes = 8};
            moved_bytes[i] = random_below(&state, 1000);
        }
        const berth_memory_assign_pool pools[] = {{128, 1}, {256, 2}, {1 << 20, 4}};
        berth_memory_assignment found = assign(buffers, moved_bytes, count, pools, 3, 2);
        double slowest = 0;
        for (uint32_t i = 0; i < count; ++i) slowest += 4 * moved_bytes[i];
        cr_expect(found.fits);
        cr_expect(fits(buffers, count, pools, 3, UINT32_MAX, NULL));
        cr_expect_leq(found.bound, found.cost);
        // About 600 bytes are live at once; 384 of them have room in fast memories, where all fits as it is cut.
        cr_expect_lt(found.cost, 0.85 * slowest, "%g of %g", found.cost, slowest);
    }
}

Test(memory_assign, a_malformed_buffer_is_refused) {
    berth_memory_plan_buffer buffers[] = {{2, 1, 64, 8, 0}};
    const double moved_bytes[] = {1};
    const berth_memory_assign_pool pools[] = {{64, 1}, {64, 2}};
    berth_memory_assignment found;
    assign_call call = {buffers, moved_bytes, 1, pools, 2, 1, &found};
    berth_status status = berth_arena_try(arena, assign_body, &call);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
}
