// berth_live against sums of each step.
#include "compiler/package/live.h"
#include "tests/check.h"

enum { most_steps = 70 };

static uint32_t next_random(uint64_t *state, uint32_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

Test(live, random_ranges) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        uint64_t state = seed, sums[most_steps] = {0};
        uint32_t count = 1 + next_random(&state, most_steps);
        berth_live *live = berth_live_create(arena, count);
        for (uint32_t i = 0; i < 60; ++i) {
            uint32_t first = next_random(&state, count), at = 0;
            uint32_t last = first + next_random(&state, count - first);
            uint64_t bytes = 1 + next_random(&state, 20);
            berth_live_add(live, first, last, (int64_t)bytes);
            for (uint32_t k = first; k <= last; ++k) sums[k] += bytes;
            if (next_random(&state, 2) && sums[first] >= 7) {
                berth_live_add(live, first, first, -7);
                sums[first] -= 7;
            }
            for (uint32_t k = 0; k < count; ++k)
                if (sums[k] > sums[at]) at = k;
            cr_assert_eq(berth_live_peak(live), sums[at], "seed %llu, turn %u",
                         (unsigned long long)seed, i);
            cr_assert_eq(berth_live_peak_step(live), at, "seed %llu, turn %u",
                         (unsigned long long)seed, i);
        }
    }
    berth_arena_destroy(arena);
}

Test(live, nothing) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_live *live = berth_live_create(arena, 0);
    cr_expect_eq(berth_live_peak(live), 0);
    cr_expect_eq(berth_live_peak_step(live), 0);
    berth_arena_destroy(arena);
}
