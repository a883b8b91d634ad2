// Random small problems, and their optimum by brute force.
#ifndef BERTH_TESTS_MEMORY_RANDOM_PROBLEM_H_
#define BERTH_TESTS_MEMORY_RANDOM_PROBLEM_H_

#include "base/arena.h"
#include "memory/problem.h"

typedef struct random_shape {
    uint32_t buffers;      // exact count
    uint32_t times;        // lifetimes lie in [0, times)
    uint32_t largest;      // size, in grains
    uint64_t grain_bytes;  // sizes are multiples of it
    uint32_t alignments;   // alignments are 1 .. 2^(alignments - 1)
} random_shape;

uint64_t random_next(uint64_t *state);

berth_memory_problem *random_problem(berth_arena *arena, uint64_t seed, random_shape shape);

// Optimal height by trying all orders of placing each buffer at the lowest offset it fits at: some
// order gives an optimal solution, because a solution whose buffers cannot be lowered is what its
// own order by offset gives. Exponential: up to 7 buffers.
uint64_t brute_force_height(const berth_memory_interval *intervals, uint32_t count);

// Are there two buffers of one pool that share a byte while both are live? Looks at all pairs.
bool has_overlap(const berth_memory_problem *problem, const uint64_t *offsets);

#endif  // BERTH_TESTS_MEMORY_RANDOM_PROBLEM_H_
