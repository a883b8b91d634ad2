// The contiguous dynamic program and what it is made of, against brute force on random small
// problems: it must prove the optimum of every one.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

#include "planner/solve/bounds/load_bound.h"
#include "planner/solve/problem/ideals.h"
#include "planner/solve/problem/merge.h"
#include "planner/solve/strategies/strategies.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_dp, .init = setup, .fini = teardown);

static const random_shape shapes[] = {
    {6, 6, 2, 2, 2, false, false, false}, {7, 7, 3, 2, 2, true, false, false},
    {9, 6, 3, 2, 3, false, true, false},  {8, 7, 3, 2, 2, true, true, false},
    {8, 8, 2, 1, 3, false, true, false},  {12, 6, 2, 3, 2, false, true, false},
    {8, 6, 3, 3, 2, true, true, true},    {7, 7, 1, 2, 2, false, true, true},
    {10, 5, 2, 2, 4, true, true, false},  {7, 7, 5, 2, 2, false, true, false},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]), SEEDS = 60 };

static berth_place_problem *make(uint64_t seed, random_shape shape) {
    berth_arena_destroy(arena);
    setup();
    berth_place_problem *p = random_placement(arena, seed, shape);
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

ParameterizedTestParameters(placement_dp, proves_the_contiguous_optimum) {
    static int indices[shape_count];
    for (int i = 0; i < shape_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, shape_count);
}

ParameterizedTest(int *index, placement_dp, proves_the_contiguous_optimum) {
    for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
        const berth_place_problem *p = make(seed + 1000, shapes[*index]);
        double optimum = brute_force_placement(arena, p, BERTH_PLACE_THROUGHPUT, true);
        berth_place_options options = {.contiguous = true, .strategy = "dp"};
        berth_place_answer answer;
        berth_status status = berth_place_solve(arena, p, &options, &answer);
        if (status) {
            cr_assert_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION, "%s",
                         berth_status_message(status));
            cr_assert_eq(optimum, INFINITY, "shape %d, seed %d: %s, but there is %g", *index,
                         (int)seed, berth_status_message(status), optimum);
            berth_status_free(status);
            continue;
        }
        cr_assert_float_eq(answer.value.value, optimum, 1e-9, "shape %d, seed %d: %g is not %g",
                           *index, (int)seed, answer.value.value, optimum);
        cr_assert(answer.proven, "shape %d, seed %d: bound %g of %g", *index, (int)seed,
                  answer.lower_bound, optimum);
    }
}

// Makes the classes groups of a problem of their own, without contiguity.
static const berth_place_problem *apply_classes(const berth_place_problem *p,
                                                const berth_place_classes *classes) {
    berth_place_problem *merged = berth_arena_copy(arena, p, sizeof(*p));
    merged->group = berth_arena_new_array(arena, uint32_t, p->node_count);
    for (uint32_t v = 0; v < p->node_count; ++v) merged->group[v] = classes->of_group[p->group[v]];
    berth_status status = berth_place_problem_finish(arena, merged);
    cr_assert_null(status, "%s", berth_status_message(status));
    return merged;
}

typedef uint32_t merge_function(berth_arena *arena, const berth_place_problem *p,
                                const berth_place_nets *nets, double optimum,
                                uint32_t *out_partner);

static uint32_t merge_free(berth_arena *scratch, const berth_place_problem *p,
                           const berth_place_nets *nets, double optimum, uint32_t *out_partner) {
    (void)optimum;
    return berth_place__merge_free(scratch, p, nets, NULL, out_partner);
}

// Everything up to and with the optimum must survive, so the limit is just above.
static uint32_t merge_tied(berth_arena *scratch, const berth_place_problem *p,
                           const berth_place_nets *nets, double optimum, uint32_t *out_partner) {
    return berth_place__merge_tied(scratch, p, nets, optimum + 1e-6, out_partner);
}

static int check_merging(merge_function *merge) {
    int merged = 0;
    for (int shape = 0; shape < shape_count; ++shape) {
        for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
            const berth_place_problem *p = make(seed + 2000, shapes[shape]);
            double optimum = brute_force_placement(arena, p, BERTH_PLACE_THROUGHPUT, false);
            berth_place_classes classes = berth_place__classes(arena, p);
            uint32_t partner[16];
            for (;;) {
                const berth_place_nets *nets =
                    berth_place__nets(arena, p, classes.of_group, classes.count);
                if (merge(arena, p, nets, optimum, partner) == 0) break;
                berth_place__merge_apply(arena, nets, partner, &classes);
                merged++;
            }
            if (classes.count == p->group_count || optimum == INFINITY) continue;
            double after = brute_force_placement(arena, apply_classes(p, &classes),
                                                 BERTH_PLACE_THROUGHPUT, false);
            cr_assert_float_eq(after, optimum, 1e-9, "shape %d, seed %d: %g became %g", shape,
                               (int)seed, optimum, after);
        }
    }
    return merged;
}

Test(placement_dp, joining_for_free_keeps_the_optimum) {
    cr_assert_gt(check_merging(merge_free), 20);
}

Test(placement_dp, tied_items_are_together_in_an_optimum) {
    cr_assert_gt(check_merging(merge_tied), 20);
}

Test(placement_dp, weighted_loads_bound_the_optimum) {
    for (int shape = 0; shape < shape_count; ++shape) {
        for (uint64_t seed = 1; seed <= SEEDS; ++seed) {
            const berth_place_problem *p = make(seed + 3000, shapes[shape]);
            double optimum = brute_force_placement(arena, p, BERTH_PLACE_THROUGHPUT, false);
            double weight[4], floor[16];
            const berth_place_nets *nets = berth_place__nets(arena, p, NULL, 0);
            double bound = berth_place__weigh_loads(p, nets, weight, floor);
            cr_assert_leq(bound, optimum + 1e-9, "shape %d, seed %d", shape, (int)seed);
        }
    }
}

// Two accelerators and a CPU ten times slower: 21 of work, so 10 for each accelerator and 10 on the
// CPU.
Test(placement_dp, weighted_loads_solve_the_fractional_problem) {
    berth_place_kind kinds[] = {{"acc", 2, INFINITY, false}, {"cpu", 1, INFINITY, true}};
    berth_place_problem p = {.kind_count = 2, .kinds = kinds};
    double time[] = {15, 150, 6, 60};
    double size[2] = {0};
    berth_place_nets nets = {.kind_count = 2, .item_count = 2, .time = time, .size_bytes = size};
    double weight[2], floor[2];
    cr_assert_float_eq(berth_place__weigh_loads(&p, &nets, weight, floor), 10, 1e-9);
    cr_assert_float_eq(floor[0] + floor[1], 10, 1e-9);
}

// ------------------------------------------------------------------------------------------------
// ideals

static berth_place_dag dag_of(uint32_t count, const uint32_t (*edges)[2], uint32_t edge_count) {
    berth_place_dag dag = {.count = count};
    dag.pred_start = berth_arena_new_array(arena, uint32_t, count + 1);
    dag.succ_start = berth_arena_new_array(arena, uint32_t, count + 1);
    dag.preds = berth_arena_new_array(arena, uint32_t, edge_count + 1);
    dag.succs = berth_arena_new_array(arena, uint32_t, edge_count + 1);
    uint32_t preds = 0, succs = 0;
    for (uint32_t v = 0; v < count; ++v) {
        for (uint32_t e = 0; e < edge_count; ++e) {
            if (edges[e][1] == v) dag.preds[preds++] = edges[e][0];
            if (edges[e][0] == v) dag.succs[succs++] = edges[e][1];
        }
        dag.pred_start[v + 1] = preds;
        dag.succ_start[v + 1] = succs;
    }
    return dag;
}

// A chain of n has n + 1 ideals, n single vertices have 2^n, and two chains of 3 have 4 * 4.
Test(placement_dp, counts_of_ideals) {
    static const uint32_t chain[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
    static const uint32_t chains[][2] = {{0, 1}, {1, 2}, {3, 4}, {4, 5}};
    berth_place_dag dag = dag_of(5, chain, 4);
    cr_assert_eq(berth_place__ideals(arena, &dag, 100, NULL)->count, 6);
    dag = dag_of(12, NULL, 0);
    cr_assert_eq(berth_place__ideals(arena, &dag, 10000, NULL)->count, 4096);
    dag = dag_of(6, chains, 4);
    cr_assert_eq(berth_place__ideals(arena, &dag, 16, NULL)->count, 16);
    cr_assert_null(berth_place__ideals(arena, &dag, 15, NULL));
}

// Against all subsets of a random graph.
Test(placement_dp, ideals_are_the_closed_sets) {
    enum { COUNT = 11 };
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        uint64_t state = seed * 77;
        uint32_t edges[COUNT * COUNT][2];
        uint32_t preds[COUNT] = {0};
        uint32_t edge_count = 0;
        for (uint32_t u = 0; u < COUNT; ++u) {
            for (uint32_t v = u + 1; v < COUNT; ++v) {
                if (placement_random(&state) % 5 != 0) continue;
                edges[edge_count][0] = u;
                edges[edge_count++][1] = v;
                preds[v] |= 1u << u;
            }
        }
        berth_place_dag dag = dag_of(COUNT, (const uint32_t(*)[2])edges, edge_count);
        const berth_place_ideals *ideals = berth_place__ideals(arena, &dag, 1 << COUNT, NULL);
        uint32_t closed = 0;
        for (uint32_t set = 0; set < 1u << COUNT; ++set) {
            bool ok = true;
            for (uint32_t v = 0; v < COUNT; ++v)
                ok = ok && (!(set >> v & 1) || (preds[v] & ~set) == 0);
            closed += ok;
        }
        cr_assert_eq(ideals->count, closed);
        for (uint32_t i = 0; i < ideals->count; ++i) {
            for (uint32_t s = ideals->step_start[i]; s < ideals->step_start[i + 1]; ++s) {
                uint32_t v = ideals->vertex[s];
                cr_assert(s == ideals->step_start[i] || ideals->vertex[s - 1] < v);
                cr_assert_not(berth_place__ideal_has(ideals, i, v));
                cr_assert_eq(ideals->sets[ideals->target[s]], ideals->sets[i] | (uint64_t)1 << v);
                cr_assert_lt(i, ideals->target[s]);
            }
        }
    }
}
