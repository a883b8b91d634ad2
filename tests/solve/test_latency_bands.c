// Orders in bands, for latency with one subgraph per device: what later bands do not need runs
// beside them. Cuts at some places only, so that large graphs are cut at all.
#include <criterion/criterion.h>
#include <math.h>

#include "planner/solve/latency/intervals.h"
#include "planner/solve/strategies/strategies.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_bands, .init = setup, .fini = teardown);

static void run(berth_status (*body)(void *), void *user) {
    berth_status status = berth_arena_try(arena, body, user);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// Predecessors first, whatever the weights, and every unit once.
static berth_status topological_body(void *user) {
    (void)user;
    static const random_shape shape = {40, 30, 1, 1, 4, false, false, false};
    for (uint64_t seed = 0; seed < 40; ++seed) {
        berth_place_problem *p = random_placement(arena, seed, shape);
        BERTH_TRY(berth_place_problem_finish(arena, p));
        berth_solve__units units;
        BERTH_TRY(berth_solve__units_build(arena, p, &units));
        const berth_place_problem *graph = units.graph;
        double *weight = berth_arena_new_array(arena, double, graph->node_count);
        for (uint32_t u = 0; u < graph->node_count; ++u) weight[u] = (double)(u * 7 % 5);
        for (uint32_t bands = 1; bands < 6; ++bands) {
            uint32_t *order = berth_arena_new_array(arena, uint32_t, graph->node_count);
            uint32_t *place = berth_arena_new_array(arena, uint32_t, graph->node_count);
            berth_solve__units_order_bands(arena, &units, weight, bands, order);
            for (uint32_t i = 0; i < graph->node_count; ++i) place[order[i]] += i + 1;
            for (uint32_t u = 0; u < graph->node_count; ++u) cr_assert_neq(place[u], 0);
            for (uint32_t e = 0; e < graph->edge_count; ++e)
                cr_assert_lt(place[graph->edge_from[e]], place[graph->edge_to[e]]);
        }
    }
    return BERTH_OK;
}

Test(placement_bands, orders_are_topological) {
    run(topological_body, NULL);
}

// A spine of `count` nodes, each of which also feeds a leaf; 1 ms each on one of six accelerators,
// 1 s on the processor, values move for nothing.
static berth_place_problem *make_spine(uint32_t count) {
    uint32_t nodes = 2 * count;
    berth_place_problem *p = placement_of_nodes(arena, nodes, nodes, 6, INFINITY);
    p->one_subgraph = true;
    for (uint32_t v = 0; v < nodes; ++v) {
        p->time[2 * (size_t)v] = 1;
        p->time[2 * (size_t)v + 1] = 1000;
        bool leaf = v >= count;
        if (v == 0) continue;
        p->edge_from[p->edge_count] = leaf ? v - count : v - 1;
        p->edge_to[p->edge_count++] = v;
    }
    return p;
}

// On one device: 2 n. The spine in three equal parts, each on a device, and the leaves of each part
// on another one: those of the first two run beside the next part, those of the last one after it:
// n + n / 3. Nothing is below n. Cuts at some places only may miss a hundredth.
static berth_status spine_body(void *user) {
    uint32_t count = *(const uint32_t *)user;
    berth_place_problem *p = make_spine(count);
    BERTH_TRY(berth_place_problem_finish(arena, p));
    berth_place_options options = {
        .objective = BERTH_PLACE_LATENCY, .strategy = "dp", .node_budget = 4000000};
    berth_place_answer answer;
    BERTH_TRY(berth_place_solve(arena, p, &options, &answer));
    cr_expect_leq(answer.value.value, (1 + 1.0 / 3) * count * 1.01, "%u: %g", count,
                  answer.value.value);
    cr_expect_geq(answer.value.value, count);
    return BERTH_OK;
}

Test(placement_bands, leaves_run_beside_the_spine) {
    uint32_t count = 300;
    run(spine_body, &count);
}

// The budget is enough for several orders of 5,000 nodes.
Test(placement_bands, large_graphs_are_cut_within_the_budget) {
    uint32_t count = 2500;
    run(spine_body, &count);
}
