// Busy times of a device and the first gap among them (planner/solve/problem/busy.h), beside a plain list.
#include <criterion/criterion.h>

#include "planner/solve/problem/busy.h"
#include "tests/solve/random_placement.h"

enum { most = 3000 };

typedef struct plain {
    double start[most], end[most];
    uint32_t user[most], count;
} plain;

// By trying: at `ready` and at every end after it.
static double plain_find(const plain *p, double ready, double length) {
    double start = ready;
    for (uint32_t i = 0; i < p->count; ++i) {
        if (p->end[i] <= ready) continue;
        if (start + length <= p->start[i]) return start;
        if (p->end[i] > start) start = p->end[i];
    }
    return start;
}

static void plain_take(plain *p, double start, double end, uint32_t user) {
    uint32_t at = p->count++;
    for (; at > 0 && p->start[at - 1] >= end; --at) {
        p->start[at] = p->start[at - 1];
        p->end[at] = p->end[at - 1];
        p->user[at] = p->user[at - 1];
    }
    p->start[at] = start;
    p->end[at] = end;
    p->user[at] = user;
}

static uint32_t user_before(const plain *p, double start) {
    uint32_t user = UINT32_MAX;
    for (uint32_t i = 0; i < p->count; ++i)
        if (p->end[i] == start) user = p->user[i];
    return user;
}

typedef struct job {
    berth_arena *arena;
    berth_solve__busy busy;
    plain plain;
    uint64_t random;
} job;

// Lengths and times of binary fractions: sums are exact, and touching intervals are common.
static double draw(job *j, uint32_t below) {
    return (double)(1 + placement_random(&j->random) % below) / 4;
}

static berth_status compare(void *user) {
    job *j = user;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
        uint32_t horizon = seed % 3 == 0 ? 1 : seed % 3 == 1 ? most : 40 * most;
        j->random = seed;
        j->plain.count = 0;
        berth_solve__busy_clear(&j->busy, j->arena);
        for (uint32_t i = 0; i < most; ++i) {
            double ready = draw(j, horizon), length = draw(j, seed % 2 ? 9 : 60);
            berth_solve__gap gap;
            double expected = plain_find(&j->plain, ready, length);
            double start = berth_solve__busy_find(&j->busy, ready, length, &gap);
            cr_assert_eq(start, expected, "seed %llu, interval %u: %g for %g",
                         (unsigned long long)seed, i, start, expected);
            cr_assert_eq(gap.behind, start > ready ? user_before(&j->plain, start) : UINT32_MAX);
            if (placement_random(&j->random) % 4 == 0) continue;  // only asked
            berth_solve__busy_take(&j->busy, &gap, start, start + length, i);
            plain_take(&j->plain, start, start + length, i);
        }
    }
    return BERTH_OK;
}

Test(busy, first_gaps_are_those_of_a_plain_list) {
    job *j = calloc(1, sizeof(*j));
    cr_assert_null(berth_arena_create(berth_allocator_system(), &j->arena));
    cr_assert_null(berth_arena_try(j->arena, compare, j));
    berth_arena_destroy(j->arena);
    free(j);
}

// Everything could start at once, and gaps that are too short stay behind: a search that went through all that is busy
// would look at 200 million intervals.
static berth_status fill(void *user) {
    enum { count = 20000 };
    job *j = user;
    for (uint32_t i = 0; i < count; ++i) {
        berth_solve__gap gap;
        double start = i % 2 ? 3.0 * i : 0, length = i % 2 ? 1 : 8;
        start = berth_solve__busy_find(&j->busy, start, length, &gap);
        berth_solve__busy_take(&j->busy, &gap, start, start + length, i);
    }
    cr_expect_lt(j->busy.looked_at, (uint64_t)count * 500, "%llu",
                 (unsigned long long)j->busy.looked_at);
    return BERTH_OK;
}

Test(busy, what_is_full_is_not_looked_through_again) {
    job *j = calloc(1, sizeof(*j));
    cr_assert_null(berth_arena_create(berth_allocator_system(), &j->arena));
    berth_solve__busy_clear(&j->busy, j->arena);
    cr_assert_null(berth_arena_try(j->arena, fill, j));
    berth_arena_destroy(j->arena);
    free(j);
}
