#include "tests/memory/random_problem.h"

uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Du >> 16;
}

berth_memory_problem *random_problem(berth_arena *arena, uint64_t seed, random_shape shape) {
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    berth_memory_problem *problem = berth_arena_new(arena, berth_memory_problem);
    uint32_t n = shape.buffers;
    *problem = (berth_memory_problem){
        .buffer_count = n,
        .ids = berth_arena_new_array(arena, const char *, n),
        .intervals = berth_arena_new_array(arena, berth_memory_interval, n),
        .pools = berth_arena_new_array(arena, uint32_t, n),
        .pool_count = 1,
        .pool_names = berth_arena_new_array(arena, const char *, 1),
        .has_alignment = true,
    };
    problem->pool_names[0] = "";
    for (uint32_t i = 0; i < n; ++i) {
        problem->ids[i] = berth_arena_printf(arena, "b%u", i);
        int64_t a = (int64_t)(random_next(&state) % shape.times);
        int64_t b = (int64_t)(random_next(&state) % shape.times);
        problem->intervals[i] = (berth_memory_interval){
            .lower = a < b ? a : b,
            .upper = (a < b ? b : a) + 1,
            .size_bytes = (1 + random_next(&state) % shape.largest) * shape.grain_bytes,
            .alignment_bytes = (uint64_t)1 << random_next(&state) % shape.alignments,
        };
    }
    return problem;
}

typedef struct brute {
    const berth_memory_interval *intervals;
    uint32_t count;
    uint64_t offsets[8];
    bool placed[8];
    uint64_t best;
} brute;

static bool fits_at(const brute *b, uint32_t i, uint64_t offset) {
    const berth_memory_interval *x = &b->intervals[i];
    for (uint32_t j = 0; j < b->count; ++j) {
        const berth_memory_interval *y = &b->intervals[j];
        if (b->placed[j] && x->lower < y->upper && y->lower < x->upper &&
            offset < b->offsets[j] + y->size_bytes && b->offsets[j] < offset + x->size_bytes)
            return false;
    }
    return true;
}

static void place_rest(brute *b, uint32_t depth, uint64_t height) {
    if (height >= b->best) return;
    if (depth == b->count) {
        b->best = height;
        return;
    }
    for (uint32_t i = 0; i < b->count; ++i) {
        if (b->placed[i]) continue;
        uint64_t offset = 0;
        while (!fits_at(b, i, offset)) offset += b->intervals[i].alignment_bytes;
        uint64_t end = offset + b->intervals[i].size_bytes;
        b->placed[i] = true;
        b->offsets[i] = offset;
        place_rest(b, depth + 1, end > height ? end : height);
        b->placed[i] = false;
    }
}

uint64_t brute_force_height(const berth_memory_interval *intervals, uint32_t count) {
    brute b = {.intervals = intervals, .count = count, .best = UINT64_MAX};
    place_rest(&b, 0, 0);
    return b.best;
}

bool has_overlap(const berth_memory_problem *problem, const uint64_t *offsets) {
    for (uint32_t i = 0; i < problem->buffer_count; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            const berth_memory_interval *x = &problem->intervals[i];
            const berth_memory_interval *y = &problem->intervals[j];
            if (problem->pools[i] == problem->pools[j] && x->lower < y->upper &&
                y->lower < x->upper && offsets[i] < offsets[j] + y->size_bytes &&
                offsets[j] < offsets[i] + x->size_bytes)
                return true;
        }
    }
    return false;
}
