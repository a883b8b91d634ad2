// The bound over paths and subgraphs: never above the optimum that brute force finds, and as large as it is
// by hand where one path is all there is.
#include "planner/solve/bounds/path_sets.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/solve/random_placement.h"

static double bound_of(berth_arena *arena, const berth_place_problem *p, double known) {
    berth_place_options options = {.objective = BERTH_PLACE_LATENCY};
    berth_place_search search = {.problem = p,
                                 .options = &options,
                                 .arena = arena,
                                 .best_value = known,
                                 .node_limit = 200000};
    berth_solve__path_sets *sets = berth_place__path_sets_create(arena, &search);
    if (sets) berth_place__path_sets_bound(sets, 1);
    return search.lower_bound;
}

static const random_shape shapes[] = {
    {8, 8, 2, 2, 2, true, false, false}, {8, 6, 3, 2, 3, false, false, false},
    {9, 6, 2, 2, 2, true, false, false}, {7, 7, 3, 3, 1, true, false, false},
    {8, 5, 2, 2, 2, false, false, true}, {7, 7, 2, 1, 3, false, false, false},
    {8, 8, 1, 2, 2, true, false, false}, {8, 8, 4, 2, 1, false, false, true},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

Test(placement_path_sets, bound_is_below_the_optimum) {
    int solved = 0, some = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        berth_place_problem *p = random_placement(arena, seed, shapes[seed % SHAPES]);
        cr_assert_null(berth_place_problem_finish(arena, p));
        p->one_subgraph = true;
        double best = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
        double known[] = {best, best * 1.3 + 1};
        for (int i = 0; i < 2 && !isinf(best); ++i) {
            double bound = bound_of(arena, p, known[i]);
            cr_assert_leq(bound, best * (1 + 1e-9), "seed %d: bound %.12g, optimum %.12g, known %g",
                          (int)seed, bound, best, known[i]);
            solved++;
            some += bound > 0;
            sum += best > 0 ? bound / best : 1;
        }
        berth_arena_destroy(arena);
    }
    printf("path sets: %d problems, %d bounds above 0, on average %.3f of the optimum\n", solved,
           some, sum / solved);
    cr_assert_gt(some, solved / 2);
}

// Twenty nodes beside each other, 100 ms each on the processor, 1 ms on the accelerator: with all of them
// on the accelerator it takes 20. With the same weight on each node k of them gain 5 k - k/20 k, at
// most 80 of 100. Loads of a range count as its least one, 256^(1/31) below its largest.
Test(placement_path_sets, nodes_beside_each_other_wait_for_their_subgraph) {
    enum { COUNT = 20 };
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_place_problem *p = placement_of_nodes(arena, COUNT, 1, 1, INFINITY);
    p->one_subgraph = true;
    for (uint32_t v = 0; v < COUNT; ++v) {
        p->time[2 * v] = 1;
        p->time[2 * v + 1] = 100;
    }
    cr_assert_null(berth_place_problem_finish(arena, p));
    double bound = bound_of(arena, p, 20);
    cr_assert_leq(bound, 20);
    cr_assert_geq(bound, 20 / pow(256, 1.0 / 31) * 0.99, "%g", bound);
    berth_arena_destroy(arena);
}
