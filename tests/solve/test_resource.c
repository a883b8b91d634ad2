// Devices that compute with the same thing take turns.
#include <criterion/criterion.h>
#include <math.h>

#include "planner/solve/solve.h"
#include "tests/check.h"

// Two nodes that do not need each other, 3 and 4 ms on either of two devices.
static berth_place_problem *two_nodes(berth_arena *arena, uint32_t *resource) {
    static double time[] = {3, 3, 4, 4}, transfer[4], size[2];
    static const char *names[] = {"a", "b"};
    static uint32_t group[] = {0, 1}, pin[] = {BERTH_PLACE_NONE, BERTH_PLACE_NONE};
    static bool backward[2];
    berth_place_kind *kinds = berth_arena_new_array(arena, berth_place_kind, 2);
    kinds[0] = (berth_place_kind){.name = "x", .device_count = 1, .capacity_bytes = 1e18};
    kinds[1] = (berth_place_kind){.name = "y", .device_count = 1, .capacity_bytes = 1e18};
    berth_place_problem *problem = berth_arena_new(arena, berth_place_problem);
    *problem = (berth_place_problem){.node_count = 2,
                                     .node_names = names,
                                     .time = time,
                                     .transfer = transfer,
                                     .size_bytes = size,
                                     .group = group,
                                     .group_count = 2,
                                     .pin = pin,
                                     .backward = backward,
                                     .kind_count = 2,
                                     .kinds = kinds,
                                     .resource = resource};
    assert_ok(berth_place_problem_finish(arena, problem));
    return problem;
}

static double best(berth_arena *arena, const berth_place_problem *problem,
                   berth_place_objective objective) {
    berth_place_options options = {
        .objective = objective, .strategy = "auto", .node_budget = 100000};
    berth_place_answer answer;
    assert_ok(berth_place_solve(arena, problem, &options, &answer));
    cr_expect_leq(answer.lower_bound, answer.value.value + 1e-9);
    return answer.value.value;
}

// Two thirds of a node's time and more go to a memory, which both devices have or each its own.
Test(resource, a_memory_serves_only_so_much) {
    static double memory_ms[] = {3, 3, 3, 3};
    uint32_t one[] = {0, 0}, apart[] = {0, 1};
    static const berth_place_objective objectives[] = {BERTH_PLACE_LATENCY, BERTH_PLACE_THROUGHPUT};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (int i = 0; i < 2; ++i) {
        berth_place_problem *problem = two_nodes(arena, NULL);
        problem->memory_ms = memory_ms;
        problem->memory = apart;
        cr_expect_float_eq(best(arena, problem, objectives[i]), 4, 1e-9);
        problem->memory = one;
        cr_expect_float_eq(best(arena, problem, objectives[i]), 6, 1e-9);
    }
    berth_arena_destroy(arena);
}

// Values from the host to two devices, 5 ms each, for 1 ms of work there: over a link each or one for both.
Test(resource, transfers_of_one_link_take_turns) {
    static double time[] = {0, INFINITY, INFINITY, 1, INFINITY, 1};
    static double transfer[] = {0, 5, 0, 0, 0, 0};
    static double size[3];
    static const char *names[] = {"host", "a", "b"};
    static uint32_t group[] = {0, 1, 2}, pin[] = {0, 1, 2}, from[] = {0, 0}, to[] = {1, 2};
    static bool backward[3];
    static const struct {
        berth_place_objective objective;
        uint32_t bus[3];
        double value;
    } cases[] = {{BERTH_PLACE_LATENCY, {0, 1, 2}, 6},
                 {BERTH_PLACE_LATENCY, {0, 1, 1}, 11},
                 {BERTH_PLACE_THROUGHPUT, {0, 1, 2}, 6},
                 {BERTH_PLACE_THROUGHPUT, {0, 1, 1}, 10}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_place_kind kinds[] = {{.name = "cpu", .device_count = 1, .capacity_bytes = INFINITY},
                                    {.name = "gpu", .device_count = 2, .capacity_bytes = INFINITY}};
        uint32_t bus[3] = {cases[i].bus[0], cases[i].bus[1], cases[i].bus[2]};
        berth_place_problem problem = {.node_count = 3,
                                       .node_names = names,
                                       .time = time,
                                       .transfer = transfer,
                                       .size_bytes = size,
                                       .group = group,
                                       .group_count = 3,
                                       .pin = pin,
                                       .backward = backward,
                                       .edge_count = 2,
                                       .edge_from = from,
                                       .edge_to = to,
                                       .kind_count = 2,
                                       .kinds = kinds,
                                       .bus = bus};
        assert_ok(berth_place_problem_finish(arena, &problem));
        cr_expect_float_eq(best(arena, &problem, cases[i].objective), cases[i].value, 1e-9,
                           "case %zu", i);
    }
    berth_arena_destroy(arena);
}

Test(resource, shared_ones_are_no_faster_together) {
    berth_arena *arena = NULL;
    uint32_t shared[] = {0, 0};
    static const berth_place_objective objectives[] = {BERTH_PLACE_LATENCY, BERTH_PLACE_THROUGHPUT};
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    for (int i = 0; i < 2; ++i) {
        cr_expect_float_eq(best(arena, two_nodes(arena, NULL), objectives[i]), 4, 1e-9);
        cr_expect_float_eq(best(arena, two_nodes(arena, shared), objectives[i]), 7, 1e-9);
    }
    berth_arena_destroy(arena);
}
