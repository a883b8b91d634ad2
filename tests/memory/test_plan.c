#include <criterion/criterion.h>
#include <string.h>

#include "memory/plan.h"
#include "tests/memory/random_problem.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_plan, .init = setup, .fini = teardown);

typedef struct plan_call {
    const berth_memory_plan_buffer *buffers;
    uint32_t count;
    berth_memory_plan_pool *pools;
    uint32_t pool_count;
    uint64_t nodes;
    uint64_t *offsets;
} plan_call;

static berth_status solve_body(void *user) {
    plan_call *c = user;
    return berth_memory_plan_solve(arena, c->buffers, c->count, c->pools, c->pool_count, c->nodes,
                                   c->offsets);
}

static berth_status solve(const berth_memory_plan_buffer *buffers, uint32_t count,
                          berth_memory_plan_pool *pools, uint32_t pool_count, uint64_t *offsets) {
    plan_call call = {buffers, count, pools, pool_count, 0, offsets};
    return berth_arena_try(arena, solve_body, &call);
}

// Looks at every step: sum and overlaps of what is live, by definition.
static void check_plan(const berth_memory_plan_buffer *buffers, uint32_t count,
                       const berth_memory_plan_pool *pool, uint32_t pool_index,
                       const uint64_t *offsets, uint32_t steps) {
    uint64_t peak = 0;
    uint64_t live_most = 0;
    for (uint32_t step = 0; step < steps; ++step) {
        uint64_t live = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const berth_memory_plan_buffer *a = &buffers[i];
            if (a->pool != pool_index || step < a->first_use_step || step > a->last_use_step)
                continue;
            live += a->size_bytes;
            cr_assert_eq(offsets[i] % a->alignment_bytes, 0);
            if (offsets[i] + a->size_bytes > peak) peak = offsets[i] + a->size_bytes;
            for (uint32_t j = 0; j < i; ++j) {
                const berth_memory_plan_buffer *b = &buffers[j];
                if (b->pool != pool_index || step < b->first_use_step || step > b->last_use_step)
                    continue;
                cr_assert(offsets[i] >= offsets[j] + b->size_bytes ||
                              offsets[j] >= offsets[i] + a->size_bytes,
                          "buffers %u and %u at step %u", i, j, step);
            }
        }
        if (live > live_most) {
            live_most = live;
            cr_assert(live <= pool->live_bytes);
        }
    }
    cr_assert_eq(pool->peak_bytes, peak);
    cr_assert_eq(pool->live_bytes, live_most);
    cr_assert_leq(pool->lower_bound_bytes, pool->peak_bytes);
    cr_assert_geq(pool->lower_bound_bytes, pool->live_bytes);
}

Test(memory_plan, random_plans_in_several_pools) {
    enum { steps = 40, most = 80, pools = 3 };
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        uint64_t state = seed;
        berth_memory_plan_buffer buffers[most];
        uint32_t count = 1 + (uint32_t)(random_next(&state) % most);
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t a = (uint32_t)(random_next(&state) % steps);
            uint32_t b = a + (uint32_t)(random_next(&state) % (steps - a));
            buffers[i] = (berth_memory_plan_buffer){a, b, 1 + random_next(&state) % 5000,
                                                    1u << random_next(&state) % 8,
                                                    (uint32_t)(random_next(&state) % pools)};
        }
        berth_memory_plan_pool out[pools] = {{0}};
        uint64_t offsets[most];
        berth_status status = solve(buffers, count, out, pools, offsets);
        cr_assert_null(status, "%s", berth_status_message(status));
        for (uint32_t p = 0; p < pools; ++p) check_plan(buffers, count, &out[p], p, offsets, steps);
    }
}

Test(memory_plan, chain_shares_memory) {
    // a -> b -> c -> d: two live at a time, so that two halves of 100 do.
    const berth_memory_plan_buffer buffers[] = {
        {0, 1, 100, 64, 0}, {1, 2, 100, 64, 0}, {2, 3, 100, 64, 0}, {3, 4, 100, 64, 0}};
    berth_memory_plan_pool pool = {0};
    uint64_t offsets[4];
    cr_assert_null(solve(buffers, 4, &pool, 1, offsets));
    check_plan(buffers, 4, &pool, 0, offsets, 5);
    cr_assert_eq(pool.live_bytes, 200);
    cr_assert_eq(pool.peak_step, 1);
    cr_assert_eq(pool.peak_bytes, 228);         // one of them at 128
    cr_assert_eq(pool.lower_bound_bytes, 228);  // with the alignment nothing less is possible
    cr_assert_eq(offsets[0], offsets[2]);
    uint32_t *live = NULL;
    cr_assert_eq(berth_memory_plan_live(arena, buffers, 4, 0, 2, &live), 2);
    cr_assert_eq(live[0], 1);
    cr_assert_eq(live[1], 2);
}

Test(memory_plan, live_buffers_largest_first) {
    const berth_memory_plan_buffer buffers[] = {
        {0, 9, 5, 1, 0}, {3, 4, 50, 1, 0}, {3, 3, 20, 1, 1}, {4, 9, 20, 1, 0}};
    uint32_t *live = NULL;
    cr_assert_eq(berth_memory_plan_live(arena, buffers, 4, 0, 4, &live), 3);
    cr_assert_eq(live[0], 1);
    cr_assert_eq(live[1], 3);
    cr_assert_eq(live[2], 0);
    cr_assert_eq(berth_memory_plan_live(arena, buffers, 4, 1, 4, &live), 0);
}

Test(memory_plan, too_small_a_capacity_says_what_would_do) {
    const berth_memory_plan_buffer buffers[] = {{0, 1, 100, 1, 0}, {0, 2, 30, 1, 0}};
    berth_memory_plan_pool pool = {.capacity_bytes = 129};
    uint64_t offsets[2];
    berth_status status = solve(buffers, 2, &pool, 1, offsets);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    cr_assert_str_eq(
        berth_status_message(status),
        "pool 0 needs 130 bytes, its capacity is 129 (proven: no plan needs less than 130)");
    berth_status_free(status);
    cr_assert_eq(pool.peak_bytes, 130);
    pool.capacity_bytes = 130;
    cr_assert_null(solve(buffers, 2, &pool, 1, offsets));
}

Test(memory_plan, malformed_buffers) {
    const berth_memory_plan_buffer bad[] = {
        {3, 2, 1, 1, 0}, {0, 0, 0, 1, 0}, {0, 0, 1, 0, 0}, {0, 0, 1, 48, 0}, {0, 0, 1, 1, 1}};
    const char *const words[] = {"first step", "size is 0", "power of two", "power of two", "pool"};
    for (int i = 0; i < 5; ++i) {
        berth_memory_plan_pool pool = {0};
        uint64_t offset = 0;
        berth_status status = solve(&bad[i], 1, &pool, 1, &offset);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
        cr_assert(strstr(berth_status_message(status), words[i]), "%s",
                  berth_status_message(status));
        berth_status_free(status);
    }
    const berth_memory_plan_buffer huge[] = {{0, 0, (uint64_t)1 << 62, 1, 0}, {0, 0, 1, 1, 0}};
    berth_memory_plan_pool pool = {0};
    uint64_t offsets[2];
    berth_status status = solve(huge, 2, &pool, 1, offsets);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_RANGE);
    berth_status_free(status);
}
