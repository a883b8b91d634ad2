// Bounds of list scheduling: where ways meet, and windows of time. Examples whose optimum follows by
// hand, and random ones, with direct links, against all placements.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "planner/solve/bounds/memory_limits.h"
#include "planner/solve/bounds/path_loads.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(list_bound, .init = setup, .fini = teardown);

static void run(berth_status (*body)(void *), void *user) {
    berth_status status = berth_arena_try(arena, body, user);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// On devices of one kind, that run one node at a time; all transfers are the same.
static berth_place_problem *made(uint32_t nodes, const double *times, uint32_t edges,
                                 uint32_t (*edge)[2], uint32_t devices, double transfer) {
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    p->node_count = nodes;
    p->kind_count = 1;
    p->kinds = berth_arena_new(arena, berth_place_kind);
    p->kinds[0] = (berth_place_kind){"acc", devices, INFINITY, false};
    p->node_names = berth_arena_new_array(arena, const char *, nodes);
    p->time = berth_arena_copy(arena, times, nodes * sizeof(double));
    p->transfer = berth_arena_new_array(arena, double, nodes);
    p->size_bytes = berth_arena_new_array(arena, double, nodes);
    p->group = berth_arena_new_array(arena, uint32_t, nodes);
    p->backward = berth_arena_new_array(arena, bool, nodes);
    for (uint32_t v = 0; v < nodes; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "n%u", v);
        p->transfer[v] = transfer;
        p->group[v] = v;
    }
    p->edge_count = edges;
    p->edge_from = berth_arena_new_array(arena, uint32_t, edges);
    p->edge_to = berth_arena_new_array(arena, uint32_t, edges);
    for (uint32_t e = 0; e < edges; ++e) {
        p->edge_from[e] = edge[e][0];
        p->edge_to[e] = edge[e][1];
    }
    cr_assert_null(berth_place_problem_finish(arena, p));
    return p;
}

static berth_place_answer solved(const berth_place_problem *p, const char *strategy) {
    berth_place_options options = {
        .objective = BERTH_PLACE_LATENCY, .strategy = strategy, .node_budget = 100000};
    berth_place_answer answer;
    berth_status status = berth_place_solve(arena, p, &options, &answer);
    cr_assert_null(status, "%s", berth_status_message(status));
    return answer;
}

// Two branches of 2 between nodes of 1, five times in a row, on two devices. A copy to the other
// device and back takes 4 * 1.5, longer than the branch that it would save: 1 + 5 * (2 + 2 + 1).
Test(list_bound, branches_pay_for_copies) {
    double times[16] = {1};
    uint32_t edge[20][2], edges = 0;
    for (uint32_t block = 0; block < 5; ++block) {
        uint32_t from = 3 * block;
        for (uint32_t side = 1; side <= 2; ++side) {
            times[from + side] = 2;
            edge[edges][0] = from;
            edge[edges++][1] = from + side;
            edge[edges][0] = from + side;
            edge[edges++][1] = from + 3;
        }
        times[from + 3] = 1;
    }
    berth_place_answer answer = solved(made(16, times, edges, edge, 2, 1.5), "greedy");
    cr_assert_float_eq(answer.value.value, 26, 1e-9);
    cr_assert_float_eq(answer.lower_bound, 26, 1e-9, "the bound is %g", answer.lower_bound);
}

// Branches of 2 that begin with 1 and end with 1, on two devices; a copy to the other and back takes 6. Beside
// them 2.6 in two nodes whose values are free to move, and which may be elsewhere: the branches are not.
// 1 + 2 + 2 + 1, with the rest beside it.
Test(list_bound, branches_pay_beside_what_does_not) {
    static const double times[6] = {1, 2, 2, 1, 2.5, 0.1};
    static uint32_t edge[6][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}, {5, 3}};
    berth_place_problem *p = made(6, times, 6, edge, 2, 1.5);
    p->transfer[4] = p->transfer[5] = 0;
    berth_place_answer answer = solved(p, "heft");
    cr_assert_float_eq(answer.value.value, 6, 1e-9, "%g", answer.value.value);
    cr_assert_float_eq(answer.lower_bound, 6, 1e-9, "the bound is %g", answer.lower_bound);
}

// Copies are free: 3, then five nodes of 2 beside each other, then 3, on two devices. Between the
// first and the last there is room for two at a time, 2 * 5 / 2; whole nodes make it 6.
Test(list_bound, windows_hold_what_must_be_in_them) {
    static const double times[7] = {3, 2, 2, 2, 2, 2, 3};
    uint32_t edge[10][2];
    for (uint32_t i = 0; i < 5; ++i) {
        edge[2 * i][0] = 0;
        edge[2 * i][1] = edge[2 * i + 1][0] = i + 1;
        edge[2 * i + 1][1] = 6;
    }
    berth_place_answer answer = solved(made(7, times, 10, edge, 2, 0), "bound");
    cr_assert_float_eq(answer.value.value, 12, 1e-9);
    cr_assert_geq(answer.lower_bound, 11 * (1 - 1e-3), "the bound is %g", answer.lower_bound);
}

// No bound is above the least of all placements, whatever links there are.
Test(list_bound, direct_links_against_brute_force) {
    static const random_shape shapes[] = {
        {7, 7, 3, 3, 2, false, false, false},
        {8, 6, 3, 2, 3, true, false, false},
        {8, 8, 2, 1, 2, false, false, false},
        {7, 6, 4, 3, 1, false, false, true},
    };
    int better = 0, count = 0;
    for (uint64_t seed = 1; seed <= 48; ++seed) {
        berth_arena_destroy(arena);
        setup();
        berth_place_problem *p = random_placement(arena, seed, shapes[seed % 4]);
        uint64_t random = seed * 7919;
        uint32_t pairs = p->kind_count * p->kind_count;
        p->one_subgraph = false;
        p->direct_ms = berth_arena_new_array(arena, double, pairs);
        p->direct_ms_per_byte = berth_arena_new_array(arena, double, pairs);
        p->value_bytes = berth_arena_new_array(arena, double, p->node_count);
        for (uint32_t i = 0; i < pairs; ++i) {
            p->direct_ms[i] = placement_random(&random) % 3 == 0
                                  ? INFINITY
                                  : (double)(placement_random(&random) % 8) / 4;
            p->direct_ms_per_byte[i] = (double)(placement_random(&random) % 3) / 4;
        }
        for (uint32_t v = 0; v < p->node_count; ++v)
            p->value_bytes[v] = (double)(placement_random(&random) % 4);
        cr_assert_null(berth_place_problem_finish(arena, p));
        double optimum = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
        if (optimum == INFINITY) continue;
        double simple = solved(p, "heft").lower_bound, bound = solved(p, "bound").lower_bound;
        cr_assert_leq(bound, optimum * (1 + 1e-9), "seed %d: %g is above the optimum %g", (int)seed,
                      bound, optimum);
        better += bound > simple * (1 + 1e-6);
        ++count;
    }
    cr_assert_gt(count, 24);
    cr_assert_gt(better, 0, "windows and targets prove nothing more in %d problems", count);
}

// ------------------------------------------------------------------------------------------------
// paths and loads at once

static double path_loads(berth_place_problem *p, double value) {
    berth_place_options options = {.objective = BERTH_PLACE_LATENCY};
    berth_place_search search = {.problem = p,
                                 .options = &options,
                                 .arena = arena,
                                 .best_value = value,
                                 .node_limit = 10000000};
    berth_place__path_loads_bound(&search, 1, NULL);
    return search.lower_bound;
}

// Chains of two nodes for one accelerator and a processor that takes any number at a time; times and
// transfers are to be filled in.
static berth_place_problem *make_pairs(uint32_t pairs) {
    uint32_t nodes = 2 * pairs;
    berth_place_problem *p = placement_of_nodes(arena, nodes, pairs, 1, INFINITY);
    p->edge_count = pairs;
    for (uint32_t v = 0; v < nodes; ++v) {
        if (v % 2 == 0) continue;
        p->edge_from[v / 2] = v - 1;
        p->edge_to[v / 2] = v;
    }
    return p;
}

// Five chains of two nodes, each 1 on the one accelerator and 4 on the processor, which takes any
// number at a time. With a share x of everything on the accelerator, paths take 8 - 6 x and the
// accelerator 10 x: 5 at x = 1/2, and nothing is below 5 for both, by symmetry. Paths alone say 2.
static berth_status chains_body(void *user) {
    (void)user;
    berth_place_problem *p = make_pairs(5);
    for (uint32_t v = 0; v < p->node_count; ++v) {
        p->time[2 * (size_t)v] = 1;
        p->time[2 * (size_t)v + 1] = 4;
    }
    BERTH_TRY(berth_place_problem_finish(arena, p));
    double bound = path_loads(p, 8);
    cr_assert(bound <= 5 && bound > 5 * 0.995, "%g", bound);
    return BERTH_OK;
}

Test(list_bound, paths_and_loads_by_hand) {
    run(chains_body, NULL);
}

// Pairs of nodes, the first 1 on the one accelerator and 10 on the processor, the second the other way
// round; moving the first one's value takes 3. One pair takes 1 + 3 + 1. Five at once, x of the first
// nodes on the accelerator and none of the second: paths 11 - 6 x, the link 15 x, the accelerator 5 x.
// What of the second nodes is there as well changes none of the first two.
static berth_status copies_body(void *user) {
    (void)user;
    static const double expected[] = {5, 55.0 / 7};
    for (int many = 0; many < 2; ++many) {
        uint32_t pairs = many ? 5 : 1, nodes = 2 * pairs;
        berth_place_problem *p = make_pairs(pairs);
        for (uint32_t v = 0; v < nodes; ++v) {
            p->time[2 * (size_t)v] = v % 2 ? 10 : 1;
            p->time[2 * (size_t)v + 1] = v % 2 ? 1 : 10;
            p->transfer[2 * (size_t)v] = 3;
        }
        BERTH_TRY(berth_place_problem_finish(arena, p));
        double bound = path_loads(p, 11);
        cr_assert(bound <= expected[many] && bound > expected[many] * 0.99, "%g", bound);
    }
    return BERTH_OK;
}

Test(list_bound, copies_by_hand) {
    run(copies_body, NULL);
}

// A chain, 1 a node on an accelerator and 4 on the processor; copies are free. Memory for half of ten nodes:
// 5 + 20, and no fractions gain anything. Three nodes of 0.6 on two accelerators of 1: two of them have
// room, 1 + 1 + 4, though there is memory for 3.3. One larger than the accelerator: 4.
static berth_status memory_body(void *user) {
    (void)user;
    static const struct {
        uint32_t nodes, accelerators;
        double size, capacity, expected;
    } cases[] = {{10, 1, 1, 5, 25}, {3, 2, 0.6, 1, 6}, {1, 1, 2, 1, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
        uint32_t nodes = cases[i].nodes;
        berth_place_problem *p =
            placement_of_nodes(arena, nodes, nodes, cases[i].accelerators, cases[i].capacity);
        for (uint32_t v = 0; v < nodes; ++v) {
            p->time[2 * (size_t)v] = 1;
            p->time[2 * (size_t)v + 1] = 4;
            p->size_bytes[v] = cases[i].size;
            if (v == 0) continue;
            p->edge_from[p->edge_count] = v - 1;
            p->edge_to[p->edge_count++] = v;
        }
        BERTH_TRY(berth_place_problem_finish(arena, p));
        double expected = cases[i].expected, bound = path_loads(p, 4.0 * nodes);
        cr_assert(bound <= expected && bound > expected * 0.999, "%g for %g", bound, expected);
    }
    return BERTH_OK;
}

Test(list_bound, memory_by_hand) {
    run(memory_body, NULL);
}

// Six chains of two nodes, 1 each on the one accelerator and 3 on the processor, which takes any number at a
// time. A chain that ends before 6 has a node on the accelerator, which has no time for six before 6;
// with fractions of nodes, 3/8 of each on the accelerator would do by 4.5.
static berth_status forest_body(void *user) {
    (void)user;
    berth_place_problem *p = make_pairs(6);
    for (uint32_t v = 0; v < p->node_count; ++v) {
        p->time[2 * (size_t)v] = 1;
        p->time[2 * (size_t)v + 1] = 3;
    }
    BERTH_TRY(berth_place_problem_finish(arena, p));
    double fractions = path_loads(p, 6), bound = solved(p, "bound").lower_bound;
    cr_assert(fractions > 4.4 && fractions <= 4.5, "%g", fractions);
    cr_assert(bound > 6 * 0.999 && bound <= 6 * (1 + 1e-9), "%g", bound);
    return BERTH_OK;
}

Test(list_bound, nodes_of_forests_are_whole) {
    run(forest_body, NULL);
}

// The least cost over fractions of nodes on two kinds, the first with room for some: dearest first.
static double by_fractions(const berth_place_problem *p, const double *cost, double room) {
    bool taken[64] = {false};
    double sum = 0;
    for (uint32_t v = 0; v < p->node_count; ++v) sum += cost[2 * v + 1];
    for (;;) {
        uint32_t best = BERTH_PLACE_NONE;
        double most = 0;
        for (uint32_t v = 0; v < p->node_count; ++v) {
            double gain = (cost[2 * v + 1] - cost[2 * v]) / p->size_bytes[v];
            if (taken[v] || gain <= most) continue;
            most = gain;
            best = v;
        }
        if (best == BERTH_PLACE_NONE || room <= 0) return sum;
        double part = fmin(1, room / p->size_bytes[best]);
        sum -= part * most * p->size_bytes[best];
        room -= p->size_bytes[best];
        taken[best] = true;
    }
}

// Small sizes, so that only their sum is a limit; costs that are often equal.
static berth_status fractions_body(void *user) {
    (void)user;
    enum { NODES = 40 };
    for (uint64_t seed = 1; seed <= 50; ++seed) {
        uint64_t state = seed * 7919;
        berth_place_problem *p = placement_of_nodes(arena, NODES, 0, 2, 25);
        double cost[2 * NODES], before[2 * NODES];
        uint32_t chosen[NODES];
        for (uint32_t v = 0; v < NODES; ++v)
            p->size_bytes[v] = (double)(1 + placement_random(&state) % 5);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        for (uint32_t i = 0; i < 2 * NODES; ++i)
            before[i] = cost[i] = (double)(placement_random(&state) % 6);
        berth_place__memory *memory = berth_place__memory_create(arena, p);
        berth_place__split split;
        double bound = berth_place__memory_choose(memory, cost, chosen, &split);
        double expected = by_fractions(p, before, 50), sum = 0, bytes = 0;
        cr_assert_float_eq(bound, expected, 1e-6, "%g %g", bound, expected);
        for (uint32_t v = 0; v < NODES; ++v) {
            double part = v == split.node ? split.share : 0;
            sum += (1 - part) * before[2 * v + chosen[v]];
            if (part > 0) sum += part * before[2 * v + split.kind];
            bytes += p->size_bytes[v] * (chosen[v] == 0 ? 1 : part);
        }
        cr_assert_float_eq(sum, expected, 1e-6, "%g %g", sum, expected);
        cr_assert_leq(bytes, 50 + 1e-6);
    }
    return BERTH_OK;
}

Test(list_bound, prices_of_memory_are_the_best) {
    run(fractions_body, NULL);
}

// It ends with its share of the budget.
static berth_status share_body(void *user) {
    (void)user;
    static const random_shape shape = {64, 64, 3, 2, 3, false, false, false};
    berth_place_problem *p = random_placement(arena, 1, shape);
    BERTH_TRY(berth_place_problem_finish(arena, p));
    berth_place_options options = {.objective = BERTH_PLACE_LATENCY};
    enum { LIMIT = 20000 };
    for (int whole = 0; whole < 2; ++whole) {
        berth_place_search search = {.problem = p,
                                     .options = &options,
                                     .arena = arena,
                                     .best_value = 1000,
                                     .node_limit = LIMIT};
        berth_place__path_loads_bound(&search, whole ? 1 : 0.2, NULL);
        cr_assert_gt(search.lower_bound, 0);
        cr_assert(whole ? search.nodes > LIMIT / 2 : search.nodes < LIMIT / 4, "%llu",
                  (unsigned long long)search.nodes);
    }
    return BERTH_OK;
}

Test(list_bound, paths_and_loads_end_with_their_share) {
    run(share_body, NULL);
}

// Of both models, with groups, pins and kinds that differ.
static berth_status path_loads_holds_body(void *user) {
    (void)user;
    static const random_shape shapes[] = {
        {7, 7, 2, 2, 2, false, false, false},
        {8, 6, 3, 2, 2, true, false, false},
        {7, 7, 4, 3, 1, true, false, true},
        {8, 5, 2, 1, 3, false, false, false},
    };
    for (uint64_t i = 0; i < 200; ++i) {
        berth_place_problem *p = random_placement(arena, i, shapes[i % 4]);
        p->one_subgraph = i / 4 % 2 == 1;
        // Also where values of every kind cost something to move.
        uint64_t state = i + 1;
        for (uint32_t c = 0; i / 8 % 2 == 1 && c < p->node_count * p->kind_count; ++c)
            p->transfer[c] = 0.25 * (double)(placement_random(&state) % 16);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        double least = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
        if (isinf(least)) continue;
        double bound = path_loads(p, 2 * least);
        cr_assert_leq(bound, least * (1 + 1e-9), "%llu: %g %g", (unsigned long long)i, bound,
                      least);
    }
    return BERTH_OK;
}

Test(list_bound, paths_and_loads_hold) {
    run(path_loads_holds_body, NULL);
}
