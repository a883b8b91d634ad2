// What the latency strategies stand on: the incremental model against the evaluator, the cut
// against all subsets, the bound against brute force.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/solve/latency/chain.h"
#include "planner/solve/latency/cut.h"
#include "planner/solve/latency/intervals.h"
#include "planner/solve/latency/moves.h"
#include "planner/solve/strategies/strategies.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_latency, .init = setup, .fini = teardown);

static void run(berth_status (*body)(void *), void *user) {
    berth_status status = berth_arena_try(arena, body, user);
    cr_assert_null(status, "%s", berth_status_message(status));
}

static berth_place_problem *make(uint64_t seed, random_shape shape) {
    berth_place_problem *p = random_placement(arena, seed, shape);
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
    return p;
}

static double evaluator_value(const berth_place_problem *p, const uint32_t *at) {
    berth_place_value value;
    berth_status status = berth_place_evaluate(arena, p, BERTH_PLACE_LATENCY, false, at, &value);
    double result = status ? INFINITY : value.value;
    berth_status_free(status);
    return result;
}

// ------------------------------------------------------------------------------------------------
// the model

static const random_shape wide_shapes[] = {
    {24, 24, 1, 2, 3, false, false, false}, {24, 14, 1, 2, 2, true, false, false},
    {30, 30, 1, 3, 2, false, false, true},  {40, 30, 1, 1, 4, false, false, false},
    {12, 12, 2, 3, 3, true, false, false},  {1, 1, 0, 2, 1, false, false, false},
};
enum { wide_count = sizeof(wide_shapes) / sizeof(wide_shapes[0]) };

// A random walk: every value equals the evaluator's, every move can be taken back.
static int walk(const berth_place_problem *p, uint64_t seed) {
    berth_solve__latency *latency = berth_solve__latency_create(arena, p);
    berth_solve__latency_moves *moves = berth_solve__latency_moves_create(arena, latency, seed + 1);
    uint32_t *at = berth_arena_new_array(arena, uint32_t, p->node_count);
    for (uint32_t g = 0; g < p->group_count; ++g) {
        uint32_t d = p->device_count;
        while (d-- > 0 && !latency->fits[(size_t)g * p->device_count + d]) continue;
        if (d == UINT32_MAX) return 0;
        for (uint32_t i = p->group_start[g]; i < p->group_start[g + 1]; ++i)
            at[p->group_nodes[i]] = d;
    }
    cr_assert(berth_solve__latency_set(latency, at));
    int feasible = 0;
    for (int step = 0; step < 120; ++step) {
        memcpy(at, latency->device, p->node_count * sizeof(*at));
        double before = evaluator_value(p, at);
        bool made = berth_solve__latency_moves_make(moves, (uint32_t)step % 5);
        double value = berth_solve__latency_value(latency, INFINITY);
        double expected = evaluator_value(p, latency->device);
        if (made)
            cr_assert_eq(value, expected, "seed %d step %d: %g, evaluator %g", (int)seed, step,
                         value, expected);
        if (made && value < INFINITY) {
            feasible++;
            cr_assert_eq(berth_solve__latency_value(latency, value * 0.999 - 1e-3), INFINITY);
            cr_assert_eq(berth_solve__latency_value(latency, value), value);
            berth_solve__latency_moves_look(moves);
            cr_assert_eq(latency->done[latency->last], value);
        }
        if (made && (value < INFINITY || isinf(before)) && step % 3 != 0) continue;
        berth_solve__latency_undo(latency);
        cr_assert_eq(memcmp(at, latency->device, p->node_count * sizeof(*at)), 0);
        cr_assert_eq(berth_solve__latency_value(latency, INFINITY), before);
    }
    return feasible;
}

static berth_status model_body(void *user) {
    (void)user;
    int feasible = 0;
    for (uint64_t seed = 0; seed < 120; ++seed)
        feasible += walk(make(seed, wide_shapes[seed % wide_count]), seed);
    cr_assert_gt(feasible, 1000, "%d feasible placements say little", feasible);
    return BERTH_OK;
}

Test(placement_latency, model_agrees_with_the_evaluator) {
    run(model_body, NULL);
}

static berth_status orders_body(void *user) {
    (void)user;
    uint64_t random = 7;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        berth_place_problem *p = make(seed, wide_shapes[seed % wide_count]);
        uint32_t *order = berth_arena_new_array(arena, uint32_t, p->node_count);
        for (uint32_t flavour = 0; flavour < 5; ++flavour) {
            uint32_t *place = berth_arena_new_array(arena, uint32_t, p->node_count);
            berth_solve__latency_order(arena, p, &random, flavour, order);
            for (uint32_t i = 0; i < p->node_count; ++i) place[order[i]] += i + 1;
            for (uint32_t n = 0; n < p->node_count; ++n) cr_assert_neq(place[n], 0);
            for (uint32_t e = 0; e < p->edge_count; ++e)
                cr_assert_lt(place[p->edge_from[e]], place[p->edge_to[e]]);
        }
    }
    return BERTH_OK;
}

Test(placement_latency, orders_are_topological) {
    run(orders_body, NULL);
}

// ------------------------------------------------------------------------------------------------
// the cut

// Cost of a subgraph read off the definition; INFINITY when it breaks a side or a need.
static double literal_cost(const berth_place_problem *p, const berth_solve__latency_cut *cut,
                           uint32_t inside) {
    double cost = 0;
    for (uint32_t g = 0; g < p->group_count; ++g) {
        if (cut->side[g] == BERTH_SOLVE__INSIDE && !(inside >> g & 1)) return INFINITY;
        if (cut->side[g] == BERTH_SOLVE__OUTSIDE && (inside >> g & 1)) return INFINITY;
    }
    for (uint32_t v = 0; v < p->node_count; ++v) {
        bool in = inside >> p->group[v] & 1, crosses = false;
        if (in) cost += p->time[v * p->kind_count] + cut->byte_cost * p->size_bytes[v];
        for (uint32_t e = 0; e < p->edge_count; ++e) {
            bool to = inside >> p->group[p->edge_to[e]] & 1;
            if (p->edge_from[e] != v) continue;
            if (in != to) crosses = true;
            uint8_t needs = cut->needs(cut->needs_user, e);
            if ((needs & 1) && in && !to) return INFINITY;
            if ((needs & 2) && to && !in) return INFINITY;
        }
        if (crosses) cost += p->transfer[v * p->kind_count];
    }
    return cost;
}

static uint8_t listed_needs(const void *user, uint32_t edge) {
    return ((const uint8_t *)user)[edge];
}

static void choose_sides(const berth_place_problem *p, berth_solve__latency_cut *cut,
                         uint8_t *needs, uint64_t *random) {
    cut->inside_count = 0;
    for (uint32_t g = 0; g < p->group_count; ++g) {
        cut->side[g] =
            (uint8_t)(placement_random(random) % 12 < 8 ? 0 : 1 + placement_random(random) % 2);
        if (cut->side[g] == BERTH_SOLVE__INSIDE) cut->inside[cut->inside_count++] = g;
    }
    for (uint32_t e = 0; e < p->edge_count; ++e)
        needs[e] = (uint8_t)(placement_random(random) % 8 == 0 ? placement_random(random) % 4 : 0);
    cut->needs = listed_needs;
    cut->needs_user = needs;
}

static berth_status cut_body(void *user) {
    (void)user;
    uint64_t random = 99;
    int finite = 0;
    for (uint64_t seed = 0; seed < 400; ++seed) {
        berth_place_problem *p =
            make(seed, (random_shape){12, seed % 2 ? 8 : 12, 2, 2, 1, false, false, false});
        berth_solve__latency *latency = berth_solve__latency_create(arena, p);
        berth_solve__latency_cut *cut = berth_solve__latency_cut_create(arena, latency, 0);
        for (uint32_t v = 0; v < p->node_count; ++v)
            if (isinf(p->time[v * p->kind_count])) p->time[v * p->kind_count] = 0;
        uint8_t needs[256];
        cr_assert_leq(p->edge_count, sizeof(needs));
        choose_sides(p, cut, needs, &random);
        cut->byte_cost = seed % 3 == 0 ? 0.25 : 0;
        double least = INFINITY;
        for (uint32_t inside = 0; inside < 1u << p->group_count; ++inside)
            least = fmin(least, literal_cost(p, cut, inside));
        uint64_t work = 0;
        double value = berth_solve__latency_cut_value(cut, INFINITY, &work);
        finite += least < INFINITY && least > 0;
        if (isinf(least))
            cr_assert_eq(value, INFINITY, "seed %d: %g", (int)seed, value);
        else
            cr_assert_float_eq(value, least, 1e-9, "seed %d: %g, %g", (int)seed, value, least);
        if (least < INFINITY) {
            double some = berth_solve__latency_cut_value(cut, least / 2, &work);
            cr_assert(some >= least / 2 - 1e-9 && some <= least + 1e-9);
        }
    }
    cr_assert_gt(finite, 150);
    return BERTH_OK;
}

Test(placement_latency, cut_is_the_cheapest_subgraph) {
    run(cut_body, NULL);
}

// ------------------------------------------------------------------------------------------------
// the bound

static const random_shape small_shapes[] = {
    {8, 8, 2, 2, 2, true, false, false},  {8, 6, 3, 2, 3, false, false, false},
    {9, 6, 2, 2, 2, true, false, false},  {7, 7, 3, 3, 1, true, false, false},
    {8, 5, 2, 2, 2, false, false, true},  {7, 7, 2, 1, 3, false, false, false},
    {10, 8, 1, 2, 2, true, false, false}, {8, 8, 4, 2, 1, false, false, true},
};
enum { small_count = sizeof(small_shapes) / sizeof(small_shapes[0]) };

static double bound_below(const berth_place_problem *p, double known) {
    berth_place_options options = {.objective = BERTH_PLACE_LATENCY};
    berth_place_search search = {.problem = p,
                                 .options = &options,
                                 .arena = arena,
                                 .best_value = known,
                                 .node_limit = UINT64_MAX};
    berth_status status = berth_place__bound_latency.run(&search);
    cr_assert_null(status, "%s", berth_status_message(status));
    return search.lower_bound;
}

static berth_status bound_body(void *user) {
    (void)user;
    int tight = 0, solved = 0;
    for (uint64_t seed = 0; seed < 600; ++seed) {
        berth_place_problem *p = make(seed, small_shapes[seed % small_count]);
        double best = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
        double known[] = {INFINITY, best, best * 1.3 + 1};
        double bound = 0;
        for (int i = 0; i < 3; ++i) {
            bound = bound_below(p, known[i]);
            cr_assert_leq(bound, best * (1 + 1e-9),
                          "seed %d: bound %.12g, optimum %.12g (known %g)", (int)seed, bound, best,
                          known[i]);
        }
        if (isinf(best)) continue;
        solved++;
        tight += bound >= best * (1 - 1e-9);
    }
    printf("latency: %d of %d bounds are the optimum\n", tight, solved);
    cr_assert_gt(solved, 300);
    cr_assert_gt(tight, solved / 2, "%d of %d", tight, solved);
    return BERTH_OK;
}

Test(placement_latency, bound_is_below_the_optimum) {
    run(bound_body, NULL);
}

static berth_status slices_body(void *user) {
    (void)user;
    int unfinished = 0;
    for (uint64_t seed = 0; seed < 600; ++seed) {
        berth_place_problem *p = make(seed, small_shapes[seed % small_count]);
        double best = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
        if (isinf(best)) continue;
        berth_place_options options = {.objective = BERTH_PLACE_LATENCY};
        berth_place_search search = {.problem = p, .options = &options, .arena = arena};
        enum { ROUNDS = 64 };
        for (search.round = 0; search.round < ROUNDS; ++search.round) {
            // Better placements become known from round to round.
            search.best_value = best * (1 + 1e-4 * (ROUNDS - 1 - search.round));
            search.node_limit = search.nodes + 1 + seed % 40;
            berth_status status = berth_place__bound_latency.run(&search);
            cr_assert_null(status, "%s", berth_status_message(status));
            unfinished += !search.finished;
            cr_assert_leq(search.lower_bound, best * (1 + 1e-9),
                          "seed %d, round %d: bound %.12g, optimum %.12g", (int)seed,
                          (int)search.round, search.lower_bound, best);
        }
    }
    printf("latency: %d rounds were stopped\n", unfinished);
    cr_assert_gt(unfinished, 10000);
    return BERTH_OK;
}

// Wherever the budget ends a round, the next one proves nothing that is wrong.
Test(placement_latency, bound_in_slices_is_below_the_optimum) {
    run(slices_body, NULL);
}

// ------------------------------------------------------------------------------------------------
// intervals

// A chain of four: 10 ms each on the CPU, 1 ms on one of two accelerators that hold two nodes each.
// Values cost 1, 1, 3, 1, 0: cutting in the middle of the four costs 3 twice.
static berth_status chain_body(void *user) {
    (void)user;
    enum { COUNT = 5 };
    static const double costs[COUNT] = {1, 1, 3, 1, 0};
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    p->node_count = COUNT;
    p->kind_count = 2;
    p->one_subgraph = true;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, 2);
    p->kinds[0] = (berth_place_kind){"acc", 2, 2, false};
    p->kinds[1] = (berth_place_kind){"cpu", 1, INFINITY, true};
    p->node_names = berth_arena_new_array(arena, const char *, COUNT);
    p->time = berth_arena_new_array(arena, double, 2 * COUNT);
    p->transfer = berth_arena_new_array(arena, double, 2 * COUNT);
    p->size_bytes = berth_arena_new_array(arena, double, COUNT);
    p->group = berth_arena_new_array(arena, uint32_t, COUNT);
    p->backward = berth_arena_new_array(arena, bool, COUNT);
    p->edge_from = berth_arena_new_array(arena, uint32_t, COUNT);
    p->edge_to = berth_arena_new_array(arena, uint32_t, COUNT);
    for (uint32_t v = 0; v < COUNT; ++v) {
        p->node_names[v] = "n";
        p->time[2 * v] = 1;
        p->time[2 * v + 1] = 10;
        p->transfer[2 * v] = costs[v];
        p->size_bytes[v] = 1;
        p->group[v] = v;
        if (v == 0) continue;
        p->edge_from[p->edge_count] = v - 1;
        p->edge_to[p->edge_count++] = v;
    }
    BERTH_TRY(berth_place_problem_finish(arena, p));
    // Four nodes fit, one is left to the CPU. The least: {0, 1} 1 + 1 + 1 (write), 2 on the CPU,
    // {3, 4} 3 (read) + 1 + 1, in all 18; {0} would pay 1 + 1; with 4 on the CPU: {0, 1}, {2, 3}:
    // 3 + 1 (read) + 2 + 1 (write) + 10 = 17; with 0 on the CPU: 10 + {1, 2}: 1 + 2 + 3, {3, 4}:
    // 3 + 2: 21.
    berth_place_options options = {
        .objective = BERTH_PLACE_LATENCY, .strategy = "search", .node_budget = 2000};
    berth_place_answer answer;
    BERTH_TRY(berth_place_solve(arena, p, &options, &answer));
    cr_assert_float_eq(answer.value.value, 17, 1e-9, "%g", answer.value.value);
    cr_assert_float_eq(bound_below(p, INFINITY), 17, 1e-6);

    uint32_t order[COUNT] = {0, 1, 2, 3, 4}, at[COUNT];
    berth_solve__units units;
    BERTH_TRY(berth_solve__units_build(arena, p, &units));
    cr_assert_eq(units.graph->node_count, COUNT);
    berth_place_search search = {.problem = p,
                                 .options = &options,
                                 .arena = arena,
                                 .best_value = INFINITY,
                                 .node_limit = UINT64_MAX};
    uint32_t *place = berth_arena_new_array(arena, uint32_t, COUNT);
    for (uint32_t i = 0; i < COUNT; ++i) place[i] = units.unit[order[i]];
    cr_assert(berth_solve__latency_intervals(&search, berth_solve__latency_create(arena, p), &units,
                                             place, COUNT, at));
    cr_assert_float_eq(evaluator_value(p, at), 17, 1e-9);
    return BERTH_OK;
}

Test(placement_latency, chain_is_cut_where_it_is_cheap) {
    run(chain_body, NULL);
}

// ------------------------------------------------------------------------------------------------
// list scheduling

// A fork of two branches of 5 ms between a source and a sink of 1 ms, on two equal devices; a copy
// takes 1 ms to write and 1 ms to read. On one device: 12. The source and one branch on one device,
// the other branch and the sink on the other one: that branch runs from 3 to 8, the copy of the
// first one's result is there at 6 + 2, and the sink is done at 9.
static berth_status fork_body(void *user) {
    (void)user;
    enum { COUNT = 4 };
    static const double times[COUNT] = {1, 5, 5, 1};
    static const uint32_t from[COUNT] = {0, 0, 1, 2}, to[COUNT] = {1, 2, 3, 3};
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    p->node_count = p->edge_count = COUNT;
    p->kind_count = 1;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, 1);
    p->kinds[0] = (berth_place_kind){"npu", 2, INFINITY, false};
    p->node_names = berth_arena_new_array(arena, const char *, COUNT);
    p->time = berth_arena_copy(arena, times, sizeof(times));
    p->transfer = berth_arena_new_array(arena, double, COUNT);
    p->size_bytes = berth_arena_new_array(arena, double, COUNT);
    p->group = berth_arena_new_array(arena, uint32_t, COUNT);
    p->backward = berth_arena_new_array(arena, bool, COUNT);
    p->edge_from = berth_arena_copy(arena, from, sizeof(from));
    p->edge_to = berth_arena_copy(arena, to, sizeof(to));
    for (uint32_t v = 0; v < COUNT; ++v) {
        p->node_names[v] = "n";
        p->transfer[v] = 1;
        p->group[v] = v;
    }
    BERTH_TRY(berth_place_problem_finish(arena, p));
    // So small a budget leaves the list scheduling alone.
    berth_place_options options = {
        .objective = BERTH_PLACE_LATENCY, .strategy = "heft", .node_budget = 1};
    berth_place_answer answer;
    BERTH_TRY(berth_place_solve(arena, p, &options, &answer));
    cr_assert_float_eq(answer.value.value, 9, 1e-9, "%g", answer.value.value);
    return BERTH_OK;
}

Test(placement_latency, earliest_finish_uses_both_devices) {
    run(fork_body, NULL);
}

// ------------------------------------------------------------------------------------------------
// the bound along paths

static double chain_bound(const berth_place_problem *p, uint64_t cells) {
    berth_arena *scratch = berth_arena_create_child(arena);
    double bound = berth_solve__latency_chain_bound(scratch, p, cells);
    berth_arena_destroy(scratch);
    return bound;
}

// However few places of the path it looks at, it is a bound.
Test(placement_latency, chain_bound_holds) {
    static const random_shape shapes[] = {
        {7, 7, 2, 2, 2, false, false, false}, {8, 6, 3, 2, 2, true, false, false},
        {7, 7, 4, 3, 1, true, false, false},  {8, 5, 2, 2, 2, true, false, true},
        {7, 7, 7, 2, 2, true, false, false},
    };
    int tight = 0;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); ++i)
        for (uint64_t seed = 1; seed <= 30; ++seed) {
            const berth_place_problem *p = make(seed, shapes[i]);
            double optimum = brute_force_placement(arena, p, BERTH_PLACE_LATENCY, false);
            for (uint64_t cells = 1; cells <= 1000000; cells *= 100) {
                double bound = chain_bound(p, cells);
                cr_assert_leq(bound, optimum * (1 + 1e-9), "shape %zu, seed %d: %g > %g", i,
                              (int)seed, bound, optimum);
                tight += bound >= optimum * (1 - 1e-9);
            }
        }
    cr_assert_geq(tight, 60);
}

// `count` nodes in a row: 1 ms and 1 byte each on an accelerator, 100 ms on a CPU; values take
// 0.25.
static berth_place_problem *row(uint32_t count, uint32_t accelerators, double capacity) {
    random_shape none = {1, 1, 0, 2, 1, false, false, false};
    berth_place_problem *p = random_placement(arena, 1, none);
    p->node_count = count;
    p->kinds[0].device_count = accelerators;
    p->kinds[0].capacity_bytes = capacity;
    p->node_names = berth_arena_new_array(arena, const char *, count);
    p->time = berth_arena_new_array(arena, double, (size_t)count * 2);
    p->transfer = berth_arena_new_array(arena, double, (size_t)count * 2);
    p->size_bytes = berth_arena_new_array(arena, double, count);
    p->group = berth_arena_new_array(arena, uint32_t, count);
    p->backward = berth_arena_new_array(arena, bool, count);
    p->edge_from = berth_arena_new_array(arena, uint32_t, count);
    p->edge_to = berth_arena_new_array(arena, uint32_t, count);
    for (uint32_t v = 0; v < count; ++v) {
        p->node_names[v] = "n";
        p->time[2 * v] = 1;
        p->time[2 * v + 1] = 100;
        p->transfer[2 * v] = 0.25;
        p->size_bytes[v] = 1;
        p->group[v] = v;
        p->edge_from[v] = v;
        p->edge_to[v] = v + 1;
    }
    p->edge_count = count - 1;
    cr_assert_null(berth_place_problem_finish(arena, p));
    return p;
}

Test(placement_latency, chain_bound_by_hand) {
    // Two pieces of 5: 10 ms, a write and a read.
    cr_assert_float_eq(chain_bound(row(10, 2, 5), 1000000), 10.5, 1e-9);
    // Three of at most 4, and the reverse: 4 nodes are left for CPUs with two accelerators of 3.
    cr_assert_float_eq(chain_bound(row(10, 3, 4), 1000000), 11, 1e-9);
    cr_assert_geq(chain_bound(row(10, 2, 3), 1000000), 406);
    // A long row in few places: next to nothing is lost.
    double all = chain_bound(row(20000, 4, 5000), 20000000);
    cr_assert_leq(all, 20001.5 + 1e-6);
    cr_assert_geq(all, 19900);
}
