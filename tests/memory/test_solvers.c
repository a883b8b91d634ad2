// The solvers against brute force, and against each other, on random problems.
#include <criterion/criterion.h>
#include <string.h>

#include "memory/exact.h"
#include "memory/greedy.h"
#include "memory/validator.h"
#include "tests/check.h"
#include "tests/memory/random_problem.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(memory_solvers, .init = setup, .fini = teardown);

static const random_shape shapes[] = {
    {4, 3, 4, 1, 1},   {5, 5, 6, 1, 1},  {6, 6, 5, 1, 1},  {7, 6, 8, 1, 1},
    {7, 10, 20, 1, 1}, {7, 4, 3, 64, 1}, {6, 6, 9, 1, 4},  {7, 5, 12, 1, 3},
    {7, 8, 4, 16, 6},  {6, 3, 40, 1, 6}, {7, 7, 3, 96, 6}, {5, 12, 100, 7, 2},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]) };

static uint64_t height_of(const berth_memory_problem *problem, const uint64_t *offsets) {
    uint64_t height = 0;
    assert_ok(berth_memory_validate(arena, problem, offsets, NULL, &height));
    cr_assert(!has_overlap(problem, offsets));
    return height;
}

// At the optimum the exact solver finds a solution; one byte below it proves that there is none.
Test(memory_solvers, exact_is_brute_force) {
    for (int s = 0; s < shape_count; ++s) {
        for (uint64_t seed = 1; seed <= 60; ++seed) {
            berth_arena_destroy(arena);
            setup();
            const berth_memory_problem *problem = random_problem(arena, seed, shapes[s]);
            const berth_memory_interval *intervals = problem->intervals;
            uint32_t n = problem->buffer_count;
            uint64_t optimum = brute_force_height(intervals, n);
            cr_assert_leq(berth_memory_lower_bound(arena, intervals, n), optimum);
            uint64_t offsets[8];
            berth_memory_verdict verdict;
            berth_memory_budget budget = {.node_limit = 1000000};
            assert_ok(
                berth_memory_exact_fit(arena, intervals, n, optimum, &budget, offsets, &verdict));
            cr_assert_eq(verdict, BERTH_MEMORY_FITS, "shape %d seed %d: %d at the optimum %d", s,
                         (int)seed, verdict, (int)optimum);
            cr_assert_leq(height_of(problem, offsets), optimum);
            assert_ok(berth_memory_exact_fit(arena, intervals, n, optimum - 1, &budget, offsets,
                                             &verdict));
            cr_assert_eq(verdict, BERTH_MEMORY_CANNOT_FIT,
                         "shape %d seed %d: %d below the optimum %d", s, (int)seed, verdict,
                         (int)optimum);
        }
    }
}

Test(memory_solvers, minimize_is_brute_force) {
    for (int s = 0; s < shape_count; ++s) {
        for (uint64_t seed = 100; seed <= 140; ++seed) {
            berth_arena_destroy(arena);
            setup();
            const berth_memory_problem *problem = random_problem(arena, seed, shapes[s]);
            uint32_t n = problem->buffer_count;
            uint64_t optimum = brute_force_height(problem->intervals, n);
            uint64_t offsets[8];
            uint64_t height = 0;
            uint64_t bound = 0;
            // The worst of the heuristics, so that there is something to do.
            cr_assert_lt(berth_memory_greedy(arena, problem->intervals, n, 5, offsets), UINT64_MAX);
            berth_memory_budget budget = {.node_limit = 1000000};
            assert_ok(berth_memory_exact_minimize(arena, problem->intervals, n, &budget, offsets,
                                                  &height, &bound));
            cr_assert_eq(height, optimum, "shape %d seed %d: %d, optimum %d", s, (int)seed,
                         (int)height, (int)optimum);
            cr_assert_eq(bound, optimum);
            cr_assert_eq(height_of(problem, offsets), height);
        }
    }
}

// Problems too large for brute force, cut from a full rectangle: they fit exactly, and not in less.
static berth_memory_problem *cut_rectangle(uint64_t seed, uint32_t pieces, int64_t times,
                                           uint64_t height) {
    uint64_t state = seed + 77;
    berth_memory_problem *problem = random_problem(arena, seed, (random_shape){pieces, 2, 2, 1, 1});
    problem->intervals[0] = (berth_memory_interval){0, times, height, 1};
    for (uint32_t n = 1; n < pieces;) {
        berth_memory_interval *piece = &problem->intervals[random_next(&state) % n];
        bool in_time = random_next(&state) % 2;
        if (in_time ? piece->upper - piece->lower < 2 : piece->size_bytes < 2) continue;
        problem->intervals[n] = *piece;
        if (in_time) {
            int64_t at =
                piece->lower + 1 +
                (int64_t)(random_next(&state) % (uint64_t)(piece->upper - piece->lower - 1));
            piece->upper = problem->intervals[n].lower = at;
        } else {
            uint64_t low = 1 + random_next(&state) % (piece->size_bytes - 1);
            problem->intervals[n].size_bytes -= low;
            piece->size_bytes = low;
        }
        n++;
    }
    return problem;
}

Test(memory_solvers, full_rectangles) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        const berth_memory_problem *problem =
            cut_rectangle(seed, 12 + (uint32_t)seed % 12, 30, 200);
        uint32_t n = problem->buffer_count;
        uint64_t *offsets = berth_arena_new_array(arena, uint64_t, n);
        berth_memory_verdict verdict;
        berth_memory_budget budget = {.node_limit = 3000000};
        assert_ok(
            berth_memory_exact_fit(arena, problem->intervals, n, 200, &budget, offsets, &verdict));
        cr_assert_eq(verdict, BERTH_MEMORY_FITS, "seed %d: %d", (int)seed, verdict);
        cr_assert_eq(height_of(problem, offsets), 200);
        assert_ok(
            berth_memory_exact_fit(arena, problem->intervals, n, 199, &budget, offsets, &verdict));
        cr_assert_eq(verdict, BERTH_MEMORY_CANNOT_FIT);
    }
}

Test(memory_solvers, heuristics_are_valid_and_bounded) {
    const random_shape large[] = {
        {60, 40, 50, 1, 1}, {200, 30, 1000, 4, 7}, {500, 900, 64, 64, 3}, {300, 8, 9, 1, 5}};
    for (int s = 0; s < 4; ++s) {
        for (uint64_t seed = 1; seed <= 8; ++seed) {
            const berth_memory_problem *problem = random_problem(arena, seed, large[s]);
            uint32_t n = problem->buffer_count;
            uint64_t *offsets = berth_arena_new_array(arena, uint64_t, n);
            uint64_t bound = berth_memory_validate_lower_bound(arena, problem, 0);
            cr_assert_eq(berth_memory_live_peak(arena, problem->intervals, n).size_bytes, bound);
            uint64_t least = UINT64_MAX;
            for (uint32_t h = 0; h < berth_memory_greedy_count(); ++h) {
                uint64_t height = berth_memory_greedy(arena, problem->intervals, n, h, offsets);
                cr_assert_eq(height_of(problem, offsets), height, "%s",
                             berth_memory_greedy_name(h));
                cr_assert_geq(height, bound);
                cr_assert_leq(height, berth_memory_total(problem->intervals, n));
                if (height < least) least = height;
            }
            const char *name = NULL;
            uint64_t best = berth_memory_greedy_best(arena, problem->intervals, n, offsets, &name);
            cr_assert_eq(best, least, "%s", name);
            cr_assert_eq(height_of(problem, offsets), best);
        }
    }
}

Test(memory_solvers, gaps_are_filled) {
    // By size: a (8, [0,2)) at 0, b (6, [2,4)) at 0, c (4, [1,3)) on a at 8, d (2, [2,4)): between
    // b and c, or on top.
    const berth_memory_interval intervals[] = {
        {0, 2, 8, 1}, {2, 4, 6, 1}, {1, 3, 4, 1}, {2, 4, 2, 1}};
    uint64_t offsets[4];
    cr_assert_eq(berth_memory_greedy(arena, intervals, 4, 0, offsets), 12);
    cr_assert_eq(offsets[3], 6);
    cr_assert_eq(berth_memory_greedy(arena, intervals, 4, 1, offsets), 14);
    cr_assert_eq(offsets[3], 12);
}

Test(memory_solvers, budget_ends_the_search_and_repeats) {
    const berth_memory_problem *problem = cut_rectangle(5, 120, 400, 100000);
    uint32_t n = problem->buffer_count;
    uint64_t *first = berth_arena_new_array(arena, uint64_t, n);
    uint64_t *second = berth_arena_new_array(arena, uint64_t, n);
    uint64_t heights[2];
    uint64_t bounds[2];
    uint64_t nodes[2];
    for (int turn = 0; turn < 2; ++turn) {
        const char *name = NULL;
        uint64_t *offsets = turn ? second : first;
        (void)berth_memory_greedy_best(arena, problem->intervals, n, offsets, &name);
        berth_memory_budget budget = {.node_limit = 5000};
        assert_ok(berth_memory_exact_minimize(arena, problem->intervals, n, &budget, offsets,
                                              &heights[turn], &bounds[turn]));
        nodes[turn] = budget.nodes;
        cr_assert_leq(budget.nodes, 5000);
    }
    cr_assert_eq(heights[0], heights[1]);
    cr_assert_eq(bounds[0], bounds[1]);
    cr_assert_eq(nodes[0], nodes[1]);
    cr_assert_eq(memcmp(first, second, n * sizeof(*first)), 0);
    cr_assert_leq(bounds[0], 100000);
    cr_assert_geq(heights[0], 100000);
}

Test(memory_solvers, nothing_to_place) {
    berth_memory_verdict verdict;
    berth_memory_budget budget = {.node_limit = 10};
    uint64_t height = 1;
    uint64_t bound = 1;
    const char *name = NULL;
    assert_ok(berth_memory_exact_fit(arena, NULL, 0, 0, &budget, NULL, &verdict));
    cr_assert_eq(verdict, BERTH_MEMORY_FITS);
    assert_ok(berth_memory_exact_minimize(arena, NULL, 0, &budget, NULL, &height, &bound));
    cr_assert_eq(height, 0);
    cr_assert_eq(bound, 0);
    cr_assert_eq(berth_memory_greedy_best(arena, NULL, 0, NULL, &name), 0);
}
