// The evaluator against examples done by hand, and against the definitions read literally.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "planner/solve/problem/evaluate_private.h"
#include "tests/solve/random_placement.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_evaluate, .init = setup, .fini = teardown);

//            transfer 1          transfer 4
//        ┌──────────▶ 1 ─────────────┐
//    0 ──┤                           ├──▶ 3 ──▶ 4
//        └──────────▶ 2 ─────────────┘
//                          transfer 2    transfer 8
//
//    node            0    1    2    3    4
//    on acc          1    2    3    4    5
//    on cpu         10   20   30   40   50
//    bytes           1    1    1    1    1
static berth_place_problem *diamond(bool one_subgraph) {
    static const double acc[] = {1, 2, 3, 4, 5};
    static const double moved[] = {1, 4, 2, 8, 16};
    static const uint32_t from[] = {0, 0, 1, 2, 3};
    static const uint32_t to[] = {1, 2, 3, 3, 4};
    berth_place_problem *p = berth_arena_new(arena, berth_place_problem);
    p->node_count = 5;
    p->node_names = berth_arena_new_array(arena, const char *, 5);
    p->time = berth_arena_new_array(arena, double, 10);
    p->transfer = berth_arena_new_array(arena, double, 10);
    p->size_bytes = berth_arena_new_array(arena, double, 5);
    p->group = berth_arena_new_array(arena, uint32_t, 5);
    p->backward = berth_arena_new_array(arena, bool, 5);
    for (uint32_t v = 0; v < 5; ++v) {
        p->node_names[v] = berth_arena_printf(arena, "%u", v);
        p->time[2 * v] = acc[v];
        p->time[2 * v + 1] = 10 * acc[v];
        p->transfer[2 * v] = moved[v];
        p->size_bytes[v] = 1;
        p->group[v] = v;
    }
    p->edge_count = 5;
    p->edge_from = berth_arena_copy(arena, from, sizeof(from));
    p->edge_to = berth_arena_copy(arena, to, sizeof(to));
    p->kind_count = 2;
    p->kinds = berth_arena_new_array(arena, berth_place_kind, 2);
    p->kinds[0] = (berth_place_kind){"acc", 2, 3, false};
    p->kinds[1] = (berth_place_kind){"cpu", 2, INFINITY, true};
    p->one_subgraph = one_subgraph;
    return p;
}

static void finish(berth_place_problem *p) {
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// Figures of direct links are checked like all others.
Test(placement_evaluate, direct_links_that_are_no_numbers_are_refused) {
    static const double bad[] = {NAN, -1};
    for (int i = 0; i < 2; ++i) {
        berth_place_problem *p = diamond(false);
        p->value_bytes = berth_arena_new_array(arena, double, 5);
        p->direct_ms = berth_arena_new_array(arena, double, 4);
        p->direct_ms_per_byte = berth_arena_new_array(arena, double, 4);
        p->direct_ms[1] = bad[i];
        berth_status status = berth_place_problem_finish(arena, p);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
        cr_assert(strstr(berth_status_message(status), "from \"acc\" to \"cpu\""), "%s",
                  berth_status_message(status));
        berth_status_free(status);
    }
}

enum { ACC0, ACC1, CPU0, CPU1 };

static berth_place_value value_of(const berth_place_problem *p, berth_place_objective objective,
                                  const uint32_t *at) {
    berth_place_value value;
    berth_status status = berth_place_evaluate(arena, p, objective, false, at, &value);
    cr_assert_null(status, "%s", berth_status_message(status));
    return value;
}

static void expect_broken(const berth_place_problem *p, berth_place_objective objective,
                          bool contiguous, const uint32_t *at, const char *message) {
    berth_place_value value;
    berth_status status = berth_place_evaluate(arena, p, objective, contiguous, at, &value);
    cr_assert_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION);
    cr_assert(strstr(berth_status_message(status), message), "%s", berth_status_message(status));
    cr_assert_null(value.device_load);
    berth_status_free(status);
}

// 0 and 1 on acc0, 2 on cpu0, 3 and 4 on acc1:
//   acc0: 1 + 2, 0 goes out (1), 1 goes out (4): 8
//   acc1: 4 + 5, 1 comes in (4), 2 comes in (2): 15
//   cpu0: 30, transfers are free
Test(placement_evaluate, throughput_by_hand) {
    berth_place_problem *p = diamond(true);
    finish(p);
    const uint32_t at[] = {ACC0, ACC0, CPU0, ACC1, ACC1};
    berth_place_value value = value_of(p, BERTH_PLACE_THROUGHPUT, at);
    cr_assert_eq(value.device_load[ACC0], 8);
    cr_assert_eq(value.device_load[ACC1], 15);
    cr_assert_eq(value.device_load[CPU0], 30);
    cr_assert_eq(value.device_load[CPU1], 0);
    cr_assert_eq(value.value, 30);
    // 0 feeds two nodes of acc1 and is moved once: acc0 1 + 1, acc1 2 + 3 + 1 and 1, 2 go out (4,
    // 2); cpu0 40 + 50.
    const uint32_t once[] = {ACC0, ACC1, ACC1, CPU0, CPU0};
    value = value_of(p, BERTH_PLACE_THROUGHPUT, once);
    cr_assert_eq(value.device_load[ACC0], 2);
    cr_assert_eq(value.device_load[ACC1], 12);
    cr_assert_eq(value.value, 90);
}

Test(placement_evaluate, memory_by_hand) {
    berth_place_problem *p = diamond(true);
    finish(p);
    const uint32_t at[] = {ACC0, ACC0, CPU0, ACC1, ACC0};
    cr_assert_eq(value_of(p, BERTH_PLACE_MEMORY, at).value, 3, "bytes: the CPUs have no limit");
    p->kinds[1].capacity_bytes = 2;
    p->kinds[0].capacity_bytes = 4;
    berth_place_value value = value_of(p, BERTH_PLACE_MEMORY, at);
    cr_assert_eq(value.value, 0.75, "3 of 4 bytes");
    cr_assert_eq(value.device_load[CPU0], 1);
}

// 0 on the CPU is done at 10. acc0 {1}: reads 0 (1), computes 2, writes 1 (4): done at 17.
// 2 on the CPU: done at 40. acc1 {3, 4}: starts at 40, reads 1 and 2 (4 + 2), computes 9: 55.
Test(placement_evaluate, subgraph_latency_by_hand) {
    berth_place_problem *p = diamond(true);
    finish(p);
    const uint32_t at[] = {CPU0, ACC0, CPU0, ACC1, ACC1};
    berth_place_value value = value_of(p, BERTH_PLACE_LATENCY, at);
    cr_assert_eq(value.node_done[0], 10);
    cr_assert_eq(value.node_start[1], 10);
    cr_assert_eq(value.node_done[1], 17);
    cr_assert_eq(value.node_done[2], 40);
    cr_assert_eq(value.node_start[3], 40);
    cr_assert_eq(value.node_done[3], 55, "all of a subgraph is done at once");
    cr_assert_eq(value.node_done[4], 55);
    cr_assert_eq(value.value, 55);
    cr_assert_eq(value.device_load[ACC0], 7);
    cr_assert_eq(value.device_load[ACC1], 15);
    cr_assert_eq(value.device_load[CPU0], 40);
    // Both on the same CPU at once: 1 and 2 start at 10.
    const uint32_t cpu[] = {CPU0, CPU0, CPU0, CPU0, CPU0};
    cr_assert_eq(value_of(p, BERTH_PLACE_LATENCY, cpu).value, 10 + 30 + 40 + 50);
}

Test(placement_evaluate, subgraphs_must_be_convex) {
    berth_place_problem *p = diamond(true);
    finish(p);
    const uint32_t around[] = {ACC0, CPU0, ACC0, ACC0, CPU0};  // 0 -> 1 -> 3 leaves and returns
    expect_broken(p, BERTH_PLACE_LATENCY, false, around, "device 0 cannot run as one subgraph");
    cr_assert_lt(value_of(p, BERTH_PLACE_THROUGHPUT, around).value, INFINITY);
    // acc0 {0, 3} and acc1 {1, 2}: each needs the other.
    const uint32_t circle[] = {ACC0, ACC1, ACC1, ACC0, CPU0};
    expect_broken(p, BERTH_PLACE_LATENCY, false, circle, "cannot run as one subgraph");
}

Test(placement_evaluate, contiguity) {
    berth_place_problem *p = diamond(true);
    finish(p);
    const uint32_t around[] = {ACC0, CPU0, ACC0, ACC0, CPU0};
    expect_broken(p, BERTH_PLACE_THROUGHPUT, true, around, "not contiguous");
    const uint32_t pipeline[] = {ACC0, ACC0, ACC0, ACC1, ACC1};
    berth_place_value value;
    cr_assert_null(berth_place_evaluate(arena, p, BERTH_PLACE_THROUGHPUT, true, pipeline, &value));
    // As a training graph whose nodes 3 and 4 are backward nodes, 3 may return to acc0.
    p->backward[3] = p->backward[4] = true;
    const uint32_t back[] = {ACC0, CPU0, ACC0, ACC0, CPU0};
    cr_assert_null(berth_place_evaluate(arena, p, BERTH_PLACE_THROUGHPUT, true, back, &value));
}

Test(placement_evaluate, limits) {
    berth_place_problem *p = diamond(true);
    p->group[4] = 0;
    p->group[3] = 3;
    p->pin = berth_arena_new_array(arena, uint32_t, 5);
    memset(p->pin, 0xff, 5 * sizeof(*p->pin));
    p->pin[1] = CPU1;
    p->time[2 * 2] = INFINITY;
    finish(p);
    const uint32_t none[] = {ACC0, CPU1, CPU0, ACC1, 9};
    expect_broken(p, BERTH_PLACE_THROUGHPUT, false, none, "node 4 is on device 9 of 4");
    const uint32_t group[] = {ACC0, CPU1, CPU0, ACC1, ACC1};
    expect_broken(p, BERTH_PLACE_THROUGHPUT, false, group, "nodes 0 and 4 must share a device");
    const uint32_t pin[] = {ACC0, CPU0, CPU0, ACC1, ACC0};
    expect_broken(p, BERTH_PLACE_THROUGHPUT, false, pin, "node 1 is on device 2, but pinned");
    const uint32_t support[] = {ACC0, CPU1, ACC1, ACC1, ACC0};
    expect_broken(p, BERTH_PLACE_LATENCY, false, support, "node 2 is on device 1 (acc), which");
    p->kinds[0].capacity_bytes = 2;
    const uint32_t full[] = {ACC0, CPU1, CPU0, ACC0, ACC0};
    expect_broken(p, BERTH_PLACE_MEMORY, false, full,
                  "device 0 (acc) holds 3 bytes, its capacity is 2");
}

// A pin holds for the group; two different ones in a group are an error.
Test(placement_evaluate, pins_of_groups) {
    berth_place_problem *p = diamond(true);
    p->group[4] = 0;
    p->pin = berth_arena_new_array(arena, uint32_t, 5);
    memset(p->pin, 0xff, 5 * sizeof(*p->pin));
    p->pin[4] = ACC1;
    finish(p);
    cr_assert_eq(p->pin[0], ACC1);
    cr_assert_eq(p->pin[1], BERTH_PLACE_NONE);
    p->pin[0] = CPU0;
    berth_status status = berth_place_problem_finish(arena, p);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert(strstr(berth_status_message(status), "nodes 0 and 4 share a device but are pinned"));
    berth_status_free(status);
}

// List scheduling. 0, 1 on acc0; 2, 3, 4 on acc1; ways to the end:
//   4: 5; 3: 9; 2: 12; 1: 2 + write 4 + read 4 + 9 = 19; 0: 1 + max(19, write 1 + read 1 + 12) = 20
//   acc0 computes   0: [0, 1), 1: [1, 3)            its link:  0: [1, 2)  1: [3, 7)
//   acc1's link     0: [2, 3), 1: [7, 11)           computes   2: [3, 6)  3: [11, 15)  4: [15, 20)
Test(placement_evaluate, list_latency_by_hand) {
    berth_place_problem *p = diamond(false);
    finish(p);
    const uint32_t at[] = {ACC0, ACC0, ACC1, ACC1, ACC1};
    berth_place_value value = value_of(p, BERTH_PLACE_LATENCY, at);
    const double starts[] = {0, 1, 3, 11, 15};
    const double ends[] = {1, 3, 6, 15, 20};
    for (uint32_t v = 0; v < 5; ++v) {
        cr_assert_eq(value.node_start[v], starts[v], "node %u: %g", v, value.node_start[v]);
        cr_assert_eq(value.node_done[v], ends[v]);
    }
    cr_assert_eq(value.value, 20);
    cr_assert_eq(value.device_load[ACC0], 3);
    const berth_place_copy expected[] = {{0, ACC0, ACC0, BERTH_PLACE_NONE, 1, 2},
                                         {0, ACC1, BERTH_PLACE_NONE, ACC1, 2, 3},
                                         {1, ACC0, ACC0, BERTH_PLACE_NONE, 3, 7},
                                         {1, ACC1, BERTH_PLACE_NONE, ACC1, 7, 11}};
    berth_place_copy *copies = NULL;
    uint32_t count = 0;
    cr_assert_null(berth_place_schedule(arena, p, at, &value, &copies, &count));
    cr_assert_eq(value.value, 20);
    cr_assert_eq(count, 4);
    for (uint32_t i = 0; i < count; ++i) {
        cr_expect_eq(copies[i].node, expected[i].node);
        cr_expect_eq(copies[i].link, expected[i].link);
        cr_expect_eq(copies[i].from, expected[i].from);
        cr_expect_eq(copies[i].to, expected[i].to);
        cr_expect_eq(copies[i].start, expected[i].start);
        cr_expect_eq(copies[i].end, expected[i].end);
    }
    // One device at a time, without links: the longer way (2: 12, 1: 11) goes first.
    p->kinds[0].capacity_bytes = 9;
    const uint32_t one[] = {ACC0, ACC0, ACC0, ACC0, ACC0};
    value = value_of(p, BERTH_PLACE_LATENCY, one);
    cr_assert_eq(value.value, 15);
    cr_assert_eq(value.node_start[2], 1);
    cr_assert_eq(value.node_start[1], 4);
    // The CPU computes any number at once, and its values are in host memory: 3 waits for 2 (40),
    // acc1 reads 1 (from 30) and 2 (from 40) on its link: [30, 34), [40, 42).
    const uint32_t mixed[] = {CPU0, CPU0, CPU0, ACC1, ACC1};
    value = value_of(p, BERTH_PLACE_LATENCY, mixed);
    cr_assert_eq(value.node_start[1], 10);
    cr_assert_eq(value.node_start[2], 10);
    cr_assert_eq(value.node_start[3], 42);
    cr_assert_eq(value.value, 51);
}

// One accelerator and a processor that computes any number at once; no copy takes time. What comes first on acc0, 3 (9), keeps
// it from 1 (10), which 2 (9) waits for: 28. It ends at 20 where acc0 waits for 1, and 3 comes after it.
//   0 on cpu0: [0, 1)   1 on acc0: [1, 11)   2 on cpu0: [11, 20)   3 on acc0: [11, 20)
Test(placement_evaluate, a_device_waits_for_what_is_urgent) {
    berth_place_problem *p = placement_of_nodes(arena, 4, 2, 1, INFINITY);
    const double times[] = {1, 10, 9, 9};
    for (uint32_t v = 0; v < 4; ++v) p->time[2 * v] = p->time[2 * v + 1] = times[v];
    p->edge_from[0] = 0, p->edge_to[0] = 1;
    p->edge_from[1] = 1, p->edge_to[1] = 2;
    p->edge_count = 2;
    finish(p);
    const uint32_t at[] = {1, 0, 1, 0};
    berth_place_value value = value_of(p, BERTH_PLACE_LATENCY, at);
    const double starts[] = {0, 1, 11, 11};
    for (uint32_t v = 0; v < 4; ++v)
        cr_expect_eq(value.node_start[v], starts[v], "node %u: %g", v, value.node_start[v]);
    cr_expect_eq(value.value, 20);
    berth_solve__list *list = berth_solve__list_create(arena, p);
    cr_expect_eq(berth_solve__list_value(list, at, INFINITY, NULL, NULL), 20);
    cr_expect_eq(berth_solve__list_value(list, at, 19, NULL, NULL), INFINITY);
    uint32_t nodes[4];
    cr_assert_eq(berth_solve__list_critical(list, nodes), 3);
    cr_expect(nodes[0] == 2 || nodes[0] == 3);
    cr_expect_eq(nodes[1], 1);
    cr_expect_eq(nodes[2], 0);
}

// As above. Backwards from the end: 4 waited for 3, 3 for the read of 1, that for its write, that for
// 1, and 1 for its turn after 0 on acc0.
Test(placement_evaluate, critical_nodes_by_hand) {
    berth_place_problem *p = diamond(false);
    finish(p);
    const uint32_t at[] = {ACC0, ACC0, ACC1, ACC1, ACC1}, expected[] = {4, 3, 1, 0};
    berth_solve__list *list = berth_solve__list_create(arena, p);
    cr_assert_eq(berth_solve__list_value(list, at, INFINITY, NULL, NULL), 20);
    uint32_t nodes[5], count = berth_solve__list_critical(list, nodes);
    cr_assert_eq(count, 4);
    for (uint32_t i = 0; i < count; ++i) cr_expect_eq(nodes[i], expected[i]);
    // A turn, not a value: 2 before 1 on one device, 3 waits for 1 as the later one.
    p->kinds[0].capacity_bytes = 9;
    const uint32_t one[] = {ACC0, ACC0, ACC0, ACC0, ACC0}, turns[] = {4, 3, 1, 2, 0};
    cr_assert_eq(berth_solve__list_value(list, one, INFINITY, NULL, NULL), 15);
    count = berth_solve__list_critical(list, nodes);
    cr_assert_eq(count, 5);
    for (uint32_t i = 0; i < count; ++i) cr_expect_eq(nodes[i], turns[i]);
}

// Two values for one device share its link: the one with the longer way goes first.
//   0, 1 on cpu0 (done at 10 and 20, made equal below), 2 and 3 need them on acc0.
Test(placement_evaluate, list_links_take_turns) {
    berth_place_problem *p = diamond(false);
    p->edge_count = 2;
    p->edge_from[0] = 0;
    p->edge_to[0] = 2;
    p->edge_from[1] = 1;
    p->edge_to[1] = 3;
    p->time[1] = p->time[3] = 10;
    finish(p);
    // Ways: read 0 (1) + 2 (3) = 4; read 1 (4) + 3 (4) = 8: 1 is read [10, 14), 0 [14, 15).
    const uint32_t at[] = {CPU0, CPU0, ACC0, ACC0, ACC1};
    berth_place_value value = value_of(p, BERTH_PLACE_LATENCY, at);
    cr_assert_eq(value.node_start[3], 14);
    cr_assert_eq(value.node_start[2], 18, "the device is computing 3 when 0 comes");
    cr_assert_eq(value.value, 21);
}

static const random_shape shapes[] = {
    {5, 5, 3, 2, 2, false, false, false}, {6, 4, 3, 2, 2, true, false, false},
    {7, 5, 2, 3, 2, true, false, false},  {8, 4, 3, 2, 3, false, true, false},
    {7, 7, 2, 1, 3, false, true, false},  {6, 6, 4, 3, 1, false, false, true},
};

Test(placement_evaluate, is_the_definition) {
    static const berth_place_objective objectives[] = {
        BERTH_PLACE_THROUGHPUT, BERTH_PLACE_THROUGHPUT, BERTH_PLACE_LATENCY, BERTH_PLACE_MEMORY};
    uint64_t state = 4711;
    int valid[4] = {0};
    int broken[4] = {0};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s)
        for (uint64_t seed = 0; seed < 60; ++seed) {
            berth_arena *scratch = NULL;
            cr_assert_null(berth_arena_create(berth_allocator_system(), &scratch));
            berth_place_problem *p = random_placement(scratch, seed, shapes[s]);
            cr_assert_null(berth_place_problem_finish(scratch, p));
            for (int trial = 0; trial < 80; ++trial) {
                uint32_t device[12];
                uint32_t at[12];
                uint32_t devices = 1 + (uint32_t)(placement_random(&state) % p->device_count);
                for (uint32_t g = 0; g < p->group_count; ++g)
                    device[g] = (uint32_t)(placement_random(&state) % devices);
                for (uint32_t v = 0; v < p->node_count; ++v) at[v] = device[p->group[v]];
                for (int o = 0; o < 4; ++o) {
                    double literal = literal_value(p, objectives[o], o == 1, at);
                    berth_place_value value;
                    berth_status status =
                        berth_place_evaluate(scratch, p, objectives[o], o == 1, at, &value);
                    double got = status ? INFINITY : value.value;
                    cr_assert_eq(got, literal, "objective %d: %g, not %g %s", o, got, literal,
                                 berth_status_message(status));
                    *(literal < INFINITY ? &valid[o] : &broken[o]) += 1;
                    berth_status_free(status);
                }
            }
            berth_arena_destroy(scratch);
        }
    for (int o = 0; o < 4; ++o)
        cr_assert(valid[o] > 500 && broken[o] > 500, "%d valid, %d broken", valid[o], broken[o]);
}
