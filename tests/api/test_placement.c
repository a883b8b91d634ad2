// Device placement through the public API. The expected values are worked out by hand.
#include <berth/placement.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

TestSuite(placement, .timeout = 60);

static berth_placement_problem *problem;

// An accelerator (device 0) and a processor (device 1). conv takes 1 or 8 ms there, topk 5 or 2, and
// conv's result 0.1 ms between the accelerator and host memory.
static void make_two_nodes(void) {
    const double conv[] = {1, 8}, topk[] = {5, 2}, move[] = {0.1, 0};
    assert_ok(berth_placement_problem_create(&problem));
    assert_ok(berth_placement_problem_add_kind(problem, "acc", 1, 1000, 0));
    assert_ok(berth_placement_problem_add_kind(problem, "cpu", 1, INFINITY, 1));
    assert_ok(berth_placement_problem_add_node(problem, "conv", conv, move, 600));
    assert_ok(berth_placement_problem_add_node(problem, "topk", topk, move, 600));
    assert_ok(berth_placement_problem_add_edge(problem, 0, 1));
}

Test(placement, throughput_and_latency) {
    make_two_nodes();
    cr_assert_null(berth_placement_problem_answer(problem));
    assert_ok(berth_placement_problem_solve(problem, NULL));
    const berth_placement_answer *answer = berth_placement_problem_answer(problem);
    cr_assert_float_eq(answer->value, 2, 1e-9);  // loads 1 + 0.1 and 2
    cr_assert(answer->proven && answer->reproducible && !answer->is_share);
    cr_assert_float_eq(answer->lower_bound, 2, 1e-9);
    cr_assert_str_eq(berth_placement_problem_node(problem, 0)->name, "conv");
    cr_assert_eq(berth_placement_problem_node(problem, 0)->device, 0);
    cr_assert_eq(berth_placement_problem_node(problem, 1)->device, 1);
    const berth_placement_device *acc = berth_placement_problem_device(problem, 0);
    cr_assert_str_eq(acc->name, "acc0");
    cr_assert_float_eq(acc->load, 1.1, 1e-9);
    cr_assert_eq(acc->node_count, 1);
    cr_assert_float_eq(acc->size_bytes, 600, 0);
    berth_placement_settings settings = {.size_bytes = sizeof(settings),
                                         .objective = BERTH_PLACEMENT_LATENCY};
    assert_ok(berth_placement_problem_solve(problem, &settings));
    cr_assert_float_eq(answer->value, 3.1, 1e-9);  // 1, 0.1 and 2, one after another
    berth_placement_problem_destroy(problem);
}

static void count(void *user, const berth_placement_progress *progress) {
    cr_assert_not_null(progress->strategy);
    ++*(int *)user;
}

Test(placement, pins_and_settings) {
    make_two_nodes();
    int told = 0;
    assert_ok(berth_placement_problem_pin(problem, 0, 1));
    berth_placement_settings settings = {.size_bytes = sizeof(settings),
                                         .strategy = "enumerate",
                                         .progress = count,
                                         .progress_user = &told};
    assert_ok(berth_placement_problem_solve(problem, &settings));
    cr_assert_eq(berth_placement_problem_node(problem, 0)->device, 1);
    cr_assert_gt(told, 0);
    // conv on the processor is 8; topk is better on the accelerator, which waits 5.
    cr_assert_float_eq(berth_placement_problem_answer(problem)->value, 8, 1e-9);
    const char *svg = NULL;
    assert_ok(berth_placement_problem_draw(problem, "two <nodes>", &svg));
    cr_assert(strstr(svg, "<svg") && strstr(svg, "two &lt;nodes&gt;"));
    berth_placement_problem_destroy(problem);
}

Test(placement, refused) {
    make_two_nodes();
    const double ten[] = {10, 10};
    assert_fails(berth_placement_problem_add_edge(problem, 0, 2), BERTH_OUT_OF_RANGE, "node 2");
    assert_fails(berth_placement_problem_pin(problem, 0, 2), BERTH_OUT_OF_RANGE, "device 2");
    assert_fails(berth_placement_problem_add_kind(problem, "late", 1, 1, 0),
                 BERTH_FAILED_PRECONDITION, "late");
    berth_placement_settings settings = {.size_bytes = sizeof(settings), .strategy = "guess"};
    assert_fails(berth_placement_problem_solve(problem, &settings), BERTH_INVALID_ARGUMENT,
                 "guess");
    settings = (berth_placement_settings){.size_bytes = sizeof(settings), .one_node_at_a_time = 1};
    assert_fails(berth_placement_problem_solve(problem, &settings), BERTH_INVALID_ARGUMENT,
                 "latency");
    settings.size_bytes = 1;
    assert_fails(berth_placement_problem_solve(problem, &settings), BERTH_INVALID_ARGUMENT,
                 "size_bytes");
    assert_fails(berth_placement_problem_add_node(problem, "more", ten, ten, 0),
                 BERTH_FAILED_PRECONDITION, "no more nodes");
    berth_placement_problem_destroy(problem);
    make_two_nodes();
    assert_ok(berth_placement_problem_add_edge(problem, 1, 0));
    assert_fails(berth_placement_problem_solve(problem, NULL), BERTH_INVALID_ARGUMENT, "cycle");
    berth_placement_problem_destroy(problem);
    // 600 bytes each, and 1000 on the only device that can: neither fits with the other.
    const double here[] = {1, INFINITY}, move[] = {0, 0};
    assert_ok(berth_placement_problem_create(&problem));
    assert_ok(berth_placement_problem_add_kind(problem, "acc", 1, 1000, 0));
    assert_ok(berth_placement_problem_add_kind(problem, "cpu", 1, INFINITY, 1));
    assert_ok(berth_placement_problem_add_node(problem, "a", here, move, 600));
    assert_ok(berth_placement_problem_add_node(problem, "b", here, move, 600));
    assert_fails(berth_placement_problem_solve(problem, NULL), BERTH_FAILED_PRECONDITION, "");
    berth_placement_problem_destroy(problem);
}

Test(placement, files_and_answers) {
    static const char answer_text[] = "{\"assignment\": {\"0\": \"cpu0\", \"1\": \"cpu0\"}}";
    static const char text[] =
        "{\"maxSizePerFPGA\": 1000, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": ["
        "{\"id\": 0, \"cpuLatency\": 8, \"fpgaLatency\": 1, \"size\": 600},"
        "{\"id\": 1, \"cpuLatency\": 2, \"fpgaLatency\": 5, \"size\": 600}],"
        "\"edges\": [{\"sourceId\": 0, \"destId\": 1, \"cost\": 0.1}]}";
    char path[] = "/tmp/berth-placement-XXXXXX";
    int file = mkstemp(path);
    cr_assert_eq(write(file, answer_text, sizeof(answer_text) - 1), sizeof(answer_text) - 1);
    close(file);
    assert_ok(berth_placement_problem_parse("text", text, strlen(text), &problem));
    cr_assert_eq(berth_placement_problem_node_count(problem), 2);
    cr_assert_eq(berth_placement_problem_device_count(problem), 2);
    assert_ok(berth_placement_problem_solve(problem, NULL));
    cr_assert_float_eq(berth_placement_problem_answer(problem)->value, 2, 1e-9);
    assert_ok(berth_placement_problem_check(problem, path, NULL));
    cr_assert_float_eq(berth_placement_problem_answer(problem)->value, 10, 1e-9);
    berth_placement_problem_destroy(problem);
    berth_placement_problem *none = NULL;
    assert_fails(berth_placement_problem_parse("text", "{", 1, &none), BERTH_INVALID_ARGUMENT,
                 "text:1");
    assert_fails(berth_placement_problem_read_limited("no/such.json", "", &none), BERTH_NOT_FOUND,
                 "such");
    assert_fails(berth_placement_problem_read_limited(path, "bytes=3", &none), BERTH_OUT_OF_RANGE,
                 "");
    assert_fails(berth_placement_problem_read("no/such.json", &none), BERTH_NOT_FOUND, "such");
    unlink(path);
}

Test(placement, strategies) {
    const char *name = NULL, *text = NULL;
    bool greedy = false;
    uint32_t count_of_all = 0;
    for (; berth_placement_strategy_at(count_of_all, &name, &text); ++count_of_all)
        greedy |= strcmp(name, "greedy") == 0 && *text;
    cr_assert(greedy && count_of_all > 5);
}
