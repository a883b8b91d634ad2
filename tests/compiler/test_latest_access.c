// berth_latest_access against a list of all that was recorded.
#include <criterion/criterion.h>

#include "compiler/package/latest_access.h"
#include "tests/check.h"

enum { most_ranges = 40, key_count = 3 };

typedef struct touch {
    uint32_t key;
    bool write;
    berth_byte_range range;
} touch;

static uint32_t next_random(uint64_t *state, uint32_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

static uint32_t expected(const touch *touches, uint32_t count, uint32_t key, bool write,
                         berth_byte_range range) {
    if (range.begin_bytes == range.end_bytes) return 0;
    for (uint32_t i = count; i-- > 0;)
        if (touches[i].key == key && touches[i].write == write &&
            touches[i].range.begin_bytes < range.end_bytes &&
            range.begin_bytes < touches[i].range.end_bytes)
            return i + 1;
    return 0;
}

Test(latest_access, random_ranges) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        uint64_t state = seed;
        berth_byte_range ranges[most_ranges];
        uint32_t range_count = 1 + next_random(&state, most_ranges);
        for (uint32_t i = 0; i < range_count; ++i) {
            ranges[i].begin_bytes = next_random(&state, 100);
            ranges[i].end_bytes = ranges[i].begin_bytes + next_random(&state, 30);
        }
        berth_latest_access *latest =
            berth_latest_access_create(arena, ranges, range_count, key_count);
        touch touches[60];
        for (uint32_t i = 0; i < 60; ++i) {
            touch now = {next_random(&state, key_count), next_random(&state, 2) == 1,
                         ranges[next_random(&state, range_count)]};
            for (uint32_t key = 0; key < key_count; ++key)
                for (int write = 0; write < 2; ++write)
                    cr_assert_eq(berth_latest_access_find(latest, key, write, now.range),
                                 expected(touches, i, key, write, now.range), "seed %llu, step %u",
                                 (unsigned long long)seed, i);
            touches[i] = now;
            if (now.range.begin_bytes == now.range.end_bytes) touches[i].key = key_count;
            berth_latest_access_record(latest, now.key, now.write, now.range, i + 1);
        }
    }
    berth_arena_destroy(arena);
}
