// The two exact searches by themselves, bounds from alignments, and parts of many buffers.
#include <criterion/criterion.h>

#include "memory/exact.h"
#include "memory/greedy.h"
#include "memory/learn_private.h"
#include "memory/solve.h"
#include "memory/stack.h"
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

TestSuite(memory_exact, .init = setup, .fini = teardown);

static const random_shape shapes[] = {
    {5, 5, 6, 1, 1},  {6, 6, 5, 1, 1},  {7, 6, 8, 1, 1},  {7, 4, 3, 64, 1}, {6, 6, 9, 1, 4},
    {7, 5, 12, 1, 3}, {7, 8, 4, 16, 6}, {7, 3, 40, 1, 6}, {7, 1, 50, 1, 6}, {6, 3, 70, 1, 13},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]) };

// Searches every part in one of the two ways. False: one has no solution.
static bool search_parts(const berth_memory_problem *problem, uint64_t capacity, bool learning,
                         uint64_t *offsets) {
    uint32_t part_count = 0;
    exact_part *parts = berth_memory__exact_parts(arena, problem->intervals, problem->buffer_count,
                                                  capacity, NULL, &part_count);
    for (uint32_t p = 0; p < part_count; ++p) {
        const int64_t *found = NULL;
        exact_outcome outcome;
        if (learning) {
            learn_search *search = berth_memory__learn_create(arena, &parts[p], NULL, 0);
            uint64_t nodes = 1000000;
            cr_assert_not_null(search);
            outcome = berth_memory__learn_run(search, &nodes);
            found = search->offsets;
        } else {
            exact_search *search = berth_memory__exact_search_create(arena, &parts[p], 0);
            berth_memory__exact_grow_table(search, 1024);
            for (uint32_t i = 0; i < parts[p].item_count; ++i) search->rank[i] = i;
            search->nodes_left = 1000000;
            outcome = berth_memory__exact_run(search);
            found = search->offsets;
        }
        cr_assert_neq(outcome, EXACT_STOPPED);
        if (outcome == EXACT_FAILED) return false;
        for (uint32_t i = 0; i < parts[p].item_count; ++i)
            offsets[parts[p].items[i].source] = (uint64_t)(found[i] * parts[p].unit_bytes);
    }
    return true;
}

Test(memory_exact, both_searches_are_brute_force) {
    for (int s = 0; s < shape_count; ++s) {
        for (uint64_t seed = 1; seed <= 40; ++seed) {
            berth_arena_destroy(arena);
            setup();
            const berth_memory_problem *problem = random_problem(arena, seed, shapes[s]);
            uint64_t optimum = brute_force_height(problem->intervals, problem->buffer_count);
            for (int learning = 0; learning < 2; ++learning) {
                uint64_t offsets[8];
                cr_assert(search_parts(problem, optimum, learning, offsets),
                          "shape %d seed %d learning %d: not found", s, (int)seed, learning);
                assert_ok(berth_memory_validate(arena, problem, offsets, &optimum, NULL));
                cr_assert(!has_overlap(problem, offsets));
                cr_assert(!search_parts(problem, optimum - 1, learning, offsets),
                          "shape %d seed %d learning %d: found below the optimum", s, (int)seed,
                          learning);
            }
        }
    }
}

// Of buffers that are all live together the bound is the optimum, whatever their alignments.
Test(memory_exact, bound_of_one_clique_is_brute_force) {
    for (uint32_t alignments = 1; alignments <= 13; ++alignments) {
        for (uint64_t seed = 1; seed <= 60; ++seed) {
            random_shape shape = {7, 1, 1 + (uint32_t)(seed * 7 % 90), 1, alignments};
            const berth_memory_problem *problem = random_problem(arena, seed, shape);
            cr_assert_eq(berth_memory_lower_bound(arena, problem->intervals, 7),
                         brute_force_height(problem->intervals, 7), "alignments %u seed %d",
                         alignments, (int)seed);
        }
    }
}

// What a clique's members ask for, by the definition: for every t, those with a lowest offset of at
// least t fit between t and the capacity. Also the least of the lowest offsets.
static bool fits_by_definition(const exact_search *search, uint32_t clique, int64_t *out_floor) {
    const exact_part *part = search->part;
    bool fits = true;
    *out_floor = INT64_MAX;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *it = &part->items[i];
        int64_t above = search->lowest[i];
        if (above == EXACT_PLACED || it->first > clique || it->end <= clique) continue;
        if (above < *out_floor) *out_floor = above;
        for (uint32_t k = 0; k < part->item_count; ++k)
            if (part->items[k].first <= clique && part->items[k].end > clique &&
                search->lowest[k] >= search->lowest[i])
                above += part->items[k].size;
        fits &= above <= part->capacity;
    }
    return fits;
}

// Many cliques at once: the same verdict and the same floors as clique by clique.
Test(memory_exact, sweeps_conclude_what_the_definition_says) {
    uint32_t verdicts[2] = {0};
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        berth_arena_destroy(arena);
        setup();
        random_shape shape = {60, 30, 9, 1, 1};
        const berth_memory_problem *problem = random_problem(arena, seed, shape);
        uint64_t peak = berth_memory_live_peak(arena, problem->intervals, 60).size_bytes;
        uint32_t part_count = 0;
        exact_part *part = berth_memory__exact_parts(arena, problem->intervals, 60,
                                                     peak + seed % 3 * peak / 8, NULL, &part_count);
        exact_search *search = berth_memory__exact_search_create(arena, part, 0);
        berth_memory__exact_reset(search);
        uint64_t random = seed;
        bool placed = true;
        for (int moves = 0; moves < 6 && placed; ++moves) {
            uint32_t item = (uint32_t)(random_next(&random) % part->item_count);
            if (search->lowest[item] != EXACT_PLACED)
                placed = berth_memory__exact_place(search, item);
        }
        if (!placed) continue;
        cr_assert(berth_memory__exact_sweep_pays(search), "seed %d", (int)seed);
        bool expected = true;
        int64_t floor;
        for (uint32_t c = 0; c < part->clique_count; ++c)
            if (search->clique_queue.waiting[c]) expected &= fits_by_definition(search, c, &floor);
        cr_assert_eq(berth_memory__exact_sweep(search), expected, "seed %d", (int)seed);
        verdicts[expected]++;
        for (uint32_t c = 0; c < part->clique_count && expected; ++c) {
            (void)fits_by_definition(search, c, &floor);
            if (floor != INT64_MAX)
                cr_assert_eq(search->floor[c], floor, "seed %d: clique %u", (int)seed, c);
        }
    }
    cr_assert(verdicts[0] > 10 && verdicts[1] > 10, "%u and %u", verdicts[0], verdicts[1]);
}

// Problems that the largest live sum says little about.
Test(memory_exact, mixed_alignments_are_proven_within_few_nodes) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
        random_shape shape = {12 + (uint32_t)seed % 24, 7, 4, 1, 4};
        berth_memory_problem *problem = random_problem(arena, seed, shape);
        berth_memory_solve_options options = {.node_limit = 60000};
        berth_memory_solution solution;
        assert_ok(berth_memory_solve(arena, problem, &options, &solution));
        cr_assert(solution.pools[0].proven, "seed %d: %d of %d", (int)seed,
                  (int)solution.pools[0].height_bytes, (int)solution.pools[0].lower_bound_bytes);
        assert_ok(berth_memory_validate(arena, problem, solution.offsets, NULL, NULL));
    }
}

static berth_memory_problem *chain(uint32_t count, uint32_t longest) {
    berth_memory_problem *problem =
        random_problem(arena, count, (random_shape){count, 2, 1000, 1, 1});
    uint64_t state = count;
    for (uint32_t i = 0; i < count; ++i) {
        problem->intervals[i].lower = i;
        problem->intervals[i].upper = i + 1 + (int64_t)(random_next(&state) % longest);
    }
    return problem;
}

// Nothing depends on how many buffers one part has.
Test(memory_exact, large_parts_reach_the_bound_like_small_ones) {
    static const uint32_t counts[] = {4000, 4200, 10000};
    for (int k = 0; k < 3; ++k) {
        const berth_memory_problem *problem = chain(counts[k], 30);
        berth_memory_solve_options options = {.node_limit = 4 * (uint64_t)counts[k]};
        berth_memory_solution solution;
        assert_ok(berth_memory_solve(arena, problem, &options, &solution));
        cr_assert(solution.pools[0].proven, "%u buffers: %d of %d", counts[k],
                  (int)solution.pools[0].height_bytes, (int)solution.pools[0].lower_bound_bytes);
        assert_ok(berth_memory_validate(arena, problem, solution.offsets, NULL, NULL));
    }
}

// A part that is too large to be searched ends at once, with a node budget and with none spent.
Test(memory_exact, what_cannot_be_searched_ends, .timeout = 60) {
    uint32_t count = 16000;
    const berth_memory_problem *problem = chain(count, count);
    berth_memory_cliques cliques = berth_memory_find_cliques(arena, problem->intervals, count);
    cr_assert_gt(berth_memory_membership(&cliques, count), EXACT_MEMBER_LIMIT);
    uint64_t *offsets = berth_arena_new_array(arena, uint64_t, count);
    const char *name = NULL;
    uint64_t before = berth_memory_greedy_best(arena, problem->intervals, count, offsets, &name);
    berth_memory_budget budget = {.node_limit = 1000};
    uint64_t height = 0;
    uint64_t bound = 0;
    assert_ok(berth_memory_exact_minimize(arena, problem->intervals, count, &budget, offsets,
                                          &height, &bound));
    cr_assert_eq(height, before);
    cr_assert_eq(budget.nodes, 0);
}

// Of random cliques the table gives the height of the best of all orders; what it costs is known before.
Test(exact, tables_of_stacks_are_exact) {
    uint64_t random = 20261127;
    berth_arena *own = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &own));
    for (int round = 0; round < 200; ++round) {
        berth_memory_interval intervals[7];
        berth_memory_span spans[7];
        uint32_t count = 2 + (uint32_t)(random_next(&random) % 6);
        uint64_t unit = round % 2 ? (uint64_t)1 << 33 : 1;
        for (uint32_t i = 0; i < count; ++i) {
            spans[i] = (berth_memory_span){.size = unit * (1 + random_next(&random) % 20),
                                           .alignment = unit << random_next(&random) % 4,
                                           .end = 1};
            intervals[i] = (berth_memory_interval){.lower = 0,
                                                   .upper = 1,
                                                   .size_bytes = spans[i].size,
                                                   .alignment_bytes = spans[i].alignment};
        }
        cr_assert_gt(berth_memory__stack_table_work(spans, count), 0);
        cr_assert_eq(berth_memory__stack_table(own, spans, count),
                     brute_force_height(intervals, count), "round %d", round);
    }
    berth_arena_destroy(own);
}

// Buffer aligned.look.15 of bench/memory_families.py: one clique needs its height, which A* within its states and the
// searches do not show in 4,000,000 nodes.
Test(exact, a_stack_of_many_is_proven) {
    static const uint8_t rows[][4] = {
        {6, 8, 79, 8},   {4, 9, 32, 16},  {0, 2, 194, 8},   {4, 9, 194, 16},  {2, 4, 175, 32},
        {0, 1, 80, 1},   {1, 5, 68, 8},   {7, 13, 41, 1},   {7, 13, 140, 16}, {5, 11, 150, 2},
        {4, 8, 113, 16}, {9, 15, 98, 1},  {10, 11, 87, 32}, {6, 9, 133, 32},  {7, 13, 63, 2},
        {4, 7, 148, 32}, {5, 10, 123, 2}, {2, 5, 154, 4},   {9, 15, 24, 32},  {9, 12, 160, 4},
        {5, 7, 105, 4},  {2, 5, 160, 16}, {9, 15, 190, 2},  {5, 8, 13, 1},    {10, 11, 81, 32},
        {4, 8, 174, 1},  {7, 13, 6, 32},  {6, 10, 133, 2},  {2, 5, 35, 2},    {7, 9, 131, 32},
        {7, 11, 63, 16}, {5, 6, 29, 1}};
    enum { count = sizeof(rows) / sizeof(rows[0]) };
    berth_memory_interval intervals[count];
    for (int i = 0; i < count; ++i)
        intervals[i] = (berth_memory_interval){.lower = rows[i][0],
                                               .upper = rows[i][1],
                                               .size_bytes = rows[i][2],
                                               .alignment_bytes = rows[i][3]};
    uint64_t offsets[count] = {0};
    uint64_t height = 0, bound = 0;
    uint64_t top = 0;
    for (int i = 0; i < count; ++i) {  // some solution to begin with
        offsets[i] = berth_memory_align_up(top, rows[i][3]);
        top = offsets[i] + rows[i][2];
    }
    berth_arena *own = NULL;
    berth_memory_budget budget = {.node_limit = 200000};
    assert_ok(berth_arena_create(berth_allocator_system(), &own));
    assert_ok(
        berth_memory_exact_minimize(own, intervals, count, &budget, offsets, &height, &bound));
    cr_expect_eq(height, bound, "%llu above %llu", (unsigned long long)height,
                 (unsigned long long)bound);
    berth_arena_destroy(own);
}
