#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "planner/solve/problem/problem_file.h"
#include "tests/check.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_file, .init = setup, .fini = teardown);

#define HEAD "{\"maxSizePerFPGA\": 100, \"maxFPGAs\": 2, \"maxCPUs\": 1, "
#define NODE_REST                                                                                  \
    "\"cpuLatency\": 2, \"fpgaLatency\": 1, \"size\": 3, \"supportedOnFpga\": 1, "                 \
    "\"isBackwardNode\": 0}"
#define NODE(id) "{\"id\": " #id ", " NODE_REST
#define EDGE(from, to, cost) "{\"sourceId\": " #from ", \"destId\": " #to ", \"cost\": " #cost "}"

static const char small[] =
    "{\"maxSizePerFPGA\": 17.5, \"maxFPGAs\": 3, \"maxCPUs\": 2, \"comment\": [1],\n"
    " \"nodes\": [\n"
    "  {\"id\": 7, \"cpuLatency\": 2.5, \"fpgaLatency\": 1, \"size\": 3.5, \"supportedOnFpga\": "
    "true, \"isBackwardNode\": false, \"colorClass\": 4},\n"
    "  {\"id\": -1, \"cpuLatency\": 4, \"size\": 0, \"supportedOnFpga\": 0, \"isBackwardNode\": "
    "1},\n"
    "  {\"id\": 3, \"cpuLatency\": 4, \"fpgaLatency\": 0.5, \"size\": 1e3, \"colorClass\": 4},\n"
    "  {\"id\": 4, \"cpuLatency\": 4, \"fpgaLatency\": 0.5, \"size\": 1, \"colorClass\": null}],\n"
    " \"edges\": [{\"sourceId\": 3, \"destId\": 7, \"cost\": 0.25, \"size\": 9},\n"
    "  {\"sourceId\": 7, \"destId\": -1, \"cost\": 2}, {\"sourceId\": 7, \"destId\": 4, \"cost\": "
    "2}, {\"sourceId\": 7, \"destId\": -1, \"cost\": 2}]}";

static berth_place_problem *parse_ok(const char *text) {
    berth_place_problem *problem = NULL;
    berth_status status =
        berth_place_problem_parse(arena, "t.json", text, strlen(text), NULL, &problem);
    cr_assert_null(status, "%s", berth_status_message(status));
    cr_assert_not_null(problem);
    return problem;
}

Test(placement_file, fields) {
    const berth_place_problem *p = parse_ok(small);
    cr_assert_eq(p->node_count, 4);
    cr_assert_eq(p->kind_count, 2);
    cr_assert_str_eq(p->kinds[0].name, "acc");
    cr_assert_eq(p->kinds[0].device_count, 3);
    cr_assert_eq(p->kinds[0].capacity_bytes, 17.5);
    cr_assert(!p->kinds[0].concurrent);
    cr_assert_str_eq(p->kinds[1].name, "cpu");
    cr_assert_eq(p->kinds[1].device_count, 2);
    cr_assert_eq(p->kinds[1].capacity_bytes, INFINITY);
    cr_assert(p->kinds[1].concurrent);
    cr_assert(p->one_subgraph);
    cr_assert_eq(p->device_count, 5);
    cr_assert_eq(berth_place_kind_first(p, 1), 3);
    cr_assert_str_eq(p->node_names[0], "7");
    cr_assert_str_eq(p->node_names[1], "-1");
    cr_assert_eq(p->time[0], 1);
    cr_assert_eq(p->time[1], 2.5);
    cr_assert_eq(p->time[2], INFINITY, "not supported there");
    cr_assert_eq(p->size_bytes[2], 1000);
    cr_assert(p->backward[1] && !p->backward[0] && !p->backward[2]);
    cr_assert_eq(p->group_count, 3);
    cr_assert_eq(p->group[0], p->group[2]);
    cr_assert_neq(p->group[1], p->group[3]);
    cr_assert_eq(p->transfer[0], 2, "7's output on an accelerator");
    cr_assert_eq(p->transfer[1], 0, "a CPU pays nothing");
    cr_assert_eq(p->transfer[4], 0.25);
    cr_assert_null(p->pin);
}

Test(placement_file, finished_lists) {
    const berth_place_problem *p = parse_ok(small);
    cr_assert_eq(p->edge_count, 3, "one edge is there twice");
    cr_assert_eq(p->succ_start[1] - p->succ_start[0], 2);
    cr_assert_eq(p->succ[p->succ_start[0]], 1);
    cr_assert_eq(p->succ[p->succ_start[0] + 1], 3);
    cr_assert_eq(p->pred_start[1] - p->pred_start[0], 1);
    cr_assert_eq(p->pred[p->pred_start[0]], 2);
    const uint32_t order[] = {2, 0, 1, 3};
    cr_assert_eq(memcmp(p->topological, order, sizeof(order)), 0);
    uint32_t g = p->group[0];
    cr_assert_eq(p->group_start[g + 1] - p->group_start[g], 2);
    cr_assert_eq(p->group_nodes[p->group_start[g]], 0);
    cr_assert_eq(p->group_nodes[p->group_start[g] + 1], 2);
}

static const struct {
    const char *text;
    const char *message;  // how it begins
    berth_code code;
} bad[] = {
    {"", "t.json:1:0: ", BERTH_INVALID_ARGUMENT},
    {"{\n \"nodes\": [NaN]}", "t.json:2:", BERTH_INVALID_ARGUMENT},
    {"{\"a\": 1, \"a\": 2}", "t.json:1:", BERTH_INVALID_ARGUMENT},
    {"{\"a\": 1e400}", "t.json:1:", BERTH_INVALID_ARGUMENT},
    {"{} x", "t.json:1:", BERTH_INVALID_ARGUMENT},
    {"[]", "t.json: expected an object, not an array", BERTH_INVALID_ARGUMENT},
    {"{}", "t.json: maxSizePerFPGA: missing", BERTH_INVALID_ARGUMENT},
    {"{\"maxSizePerFPGA\": \"1G\"}", "t.json: maxSizePerFPGA: expected a number, not text",
     BERTH_INVALID_ARGUMENT},
    {"{\"maxSizePerFPGA\": -1}", "t.json: maxSizePerFPGA: -1 is negative", BERTH_INVALID_ARGUMENT},
    {"{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1.5}",
     "t.json: maxFPGAs: expected a whole number from 0", BERTH_INVALID_ARGUMENT},
    {"{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 1e9}",
     "t.json: maxFPGAs: 1e+09 devices; the limit is 4096", BERTH_OUT_OF_RANGE},
    {"{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 4000, \"maxCPUs\": 200, \"nodes\": [], \"edges\": []}",
     "t.json: maxCPUs: with maxFPGAs these are 4200 devices; the limit is 4096",
     BERTH_OUT_OF_RANGE},
    {HEAD "\"edges\": []}", "t.json: nodes: missing", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": {}, \"edges\": []}", "t.json: nodes: expected an array, not an object",
     BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": []}", "t.json: edges: missing", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [5], \"edges\": []}", "t.json: nodes: [0]: expected an object, not a number",
     BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": 1.5}], \"edges\": []}",
     "t.json: nodes[0].id: expected a whole number, not a fraction", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": \"x\"}], \"edges\": []}",
     "t.json: nodes[0].id: expected a whole number, not text", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) ", {\"id\": 2}], \"edges\": []}",
     "t.json: nodes[1].cpuLatency: missing", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) ", " NODE(2) ", " NODE(1) "], \"edges\": []}",
     "t.json: nodes[2].id: 1 is already the id of nodes[0]", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": 1, \"cpuLatency\": -3}], \"edges\": []}",
     "t.json: nodes[0].cpuLatency: -3 is negative", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": 1, \"cpuLatency\": 3}], \"edges\": []}",
     "t.json: nodes[0].fpgaLatency: missing", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": 1, \"cpuLatency\": 3, \"fpgaLatency\": 1e308}], \"edges\": []}",
     "t.json: nodes[0].fpgaLatency: 1e+308 is more than 1e+18", BERTH_OUT_OF_RANGE},
    {HEAD "\"nodes\": [{\"id\": 1, \"supportedOnFpga\": 2}], \"edges\": []}",
     "t.json: nodes[0].supportedOnFpga: expected true, false, 0 or 1", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"id\": 1, \"isBackwardNode\": \"no\"}], \"edges\": []}",
     "t.json: nodes[0].isBackwardNode: expected true", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [{\"colorClass\": 1.5, \"id\": 1, " NODE_REST "], \"edges\": []}",
     "t.json: nodes[0].colorClass: expected a whole number or text, not a fraction",
     BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) "], \"edges\": [{\"sourceId\": 1}]}",
     "t.json: edges[0].destId: missing", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) "], \"edges\": [" EDGE(1, 9, 1) "]}",
     "t.json: edges[0].destId: no node has the id 9", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) "], \"edges\": [" EDGE(1, 1, 1) "]}",
     "t.json: edges[0].destId: node 1 has an edge to itself", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) ", " NODE(2) "], \"edges\": [" EDGE(1, 2, -1) "]}",
     "t.json: edges[0].cost: -1 is negative", BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) ", " NODE(2) ", " NODE(3) "], \"edges\": [" EDGE(
         1, 2, 1) ", " EDGE(1, 3, 2) "]}",
     "t.json: edges[1].cost: 2 differs from the 1 of another edge from node 1",
     BERTH_INVALID_ARGUMENT},
    {HEAD "\"nodes\": [" NODE(1) ", " NODE(5) ", " NODE(3) "], \"edges\": [" EDGE(
         1, 5, 1) ", " EDGE(5, 3, 2) ", " EDGE(3, 5, 2) "]}",
     "t.json: the edges form a cycle: ", BERTH_INVALID_ARGUMENT},
};
enum { bad_count = sizeof(bad) / sizeof(bad[0]) };

Test(placement_file, bad_input_names_the_field) {
    for (int i = 0; i < bad_count; ++i) {
        berth_place_problem *problem = NULL;
        berth_status status = berth_place_problem_parse(arena, "t.json", bad[i].text,
                                                        strlen(bad[i].text), NULL, &problem);
        cr_assert_not_null(status, "accepted: %s", bad[i].text);
        cr_assert_null(problem);
        cr_assert_eq(berth_status_code(status), bad[i].code, "%s", berth_status_message(status));
        cr_assert_eq(strncmp(berth_status_message(status), bad[i].message, strlen(bad[i].message)),
                     0, "got \"%s\", expected \"%s\"", berth_status_message(status),
                     bad[i].message);
        berth_status_free(status);
    }
}

// The cycle is 5 -> 3 -> 5, wherever one starts; 1 and 8 are not on it.
Test(placement_file, cycle_is_named) {
    const char text[] =
        HEAD "\"nodes\": [" NODE(1) ", " NODE(5) ", " NODE(3) ", " NODE(8) "], \"edges\": [" EDGE(
            1, 5, 1) ", " EDGE(5, 3, 2) ", " EDGE(3, 5, 2) ", " EDGE(3, 8, 2) "]}";
    berth_place_problem *problem = NULL;
    berth_status status = berth_place_problem_parse(arena, "t", text, strlen(text), NULL, &problem);
    const char *message = berth_status_message(status);
    cr_assert(strstr(message, ": 5 -> 3 -> 5") || strstr(message, ": 3 -> 5 -> 3"), "%s", message);
    cr_assert(!strstr(message, "8") && !strstr(message, "1"), "%s", message);
    berth_status_free(status);
}

// A zero byte does not end the text: what comes after it would not be read.
Test(placement_file, zero_bytes_are_refused) {
    char text[] = HEAD "\n\"nodes\": [], \"edges\": []} ";
    text[sizeof(text) - 2] = 0;
    berth_place_problem *problem = NULL;
    assert_fails(berth_place_problem_parse(arena, "t.json", text, sizeof(text) - 1, NULL, &problem),
                 BERTH_INVALID_ARGUMENT, "t.json:2:26: a zero byte");
    cr_assert_null(problem);
}

Test(placement_file, deep_nesting_is_an_error) {
    enum { DEPTH = 100000 };
    char *text = berth_arena_alloc(arena, DEPTH + 1);
    memset(text, '[', DEPTH);
    berth_place_problem *problem = NULL;
    assert_fails(berth_place_problem_parse(arena, "t", text, DEPTH, NULL, &problem),
                 BERTH_OUT_OF_RANGE, "nested more than 500 deep");
}

Test(placement_file, limits_of_items_and_depth) {
    static const char text[] = HEAD "\"nodes\": [], \"edges\": [], \"more\": [[\"[[[\"]]}";
    berth_place_problem *problem = NULL;
    berth_limits limits = {.depth = 3};
    berth_status status =
        berth_place_problem_parse(arena, "t", text, sizeof(text) - 1, &limits, &problem);
    cr_expect_neq(berth_status_code(status), BERTH_OUT_OF_RANGE, "brackets of a text count");
    berth_status_free(status);
    limits.depth = 2;
    assert_fails(berth_place_problem_parse(arena, "t", text, sizeof(text) - 1, &limits, &problem),
                 BERTH_OUT_OF_RANGE, "the limit is depth=2");
    limits = (berth_limits){.items = 1};
    assert_fails(berth_place_problem_parse(arena, "t", small, strlen(small), &limits, &problem),
                 BERTH_OUT_OF_RANGE, "more than 1 nodes and edges");
    limits = (berth_limits){.bytes = 4};
    assert_fails(berth_place_problem_parse(arena, "t", small, strlen(small), &limits, &problem),
                 BERTH_OUT_OF_RANGE, "bytes=4");
}

Test(placement_file, every_allocation_may_fail) {
    bool done = false;
    int failures = 0;
    for (int at = 1; !done; ++at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, at);
        berth_arena *failing = NULL;
        berth_place_problem *problem = NULL;
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &failing);
        if (!status)
            status = berth_place_problem_parse(failing, "t", small, strlen(small), NULL, &problem);
        done = !status;
        failures += !done;
        cr_assert(done || berth_status_code(status) == BERTH_OUT_OF_MEMORY, "%s",
                  berth_status_message(status));
        cr_assert_eq(done, problem != NULL);
        berth_status_free(status);
        berth_arena_destroy(failing);
        atomic_store(&counting.fail_at, 0);
        cr_assert_eq(atomic_load(&counting.live_count), 0, "leak at allocation %d", at);
        cr_assert_lt(at, 100000);
    }
    cr_assert_gt(failures, 2);
}

// ------------------------------------------------------------------------------------------------
// answers

Test(placement_file, answers) {
    const berth_place_problem *p = parse_ok(small);
    static const char *const texts[] = {
        "{\"7\": \"acc2\", \"3\": \"acc2\", \"-1\": \"cpu1\", \"4\": \"cpu0\"}",
        "{\"value\": 3, \"assignment\": {\"7\": \"acc2\", \"3\": \"acc2\", \"-1\": \"cpu1\", "
        "\"4\": \"cpu0\", \"99\": 0}}",
    };
    for (int i = 0; i < 2; ++i) {
        uint32_t *at = NULL;
        berth_status status =
            berth_place_answer_parse(arena, "a.json", texts[i], strlen(texts[i]), p, &at);
        cr_assert_null(status, "%s", berth_status_message(status));
        const uint32_t expected[] = {2, 4, 2, 3};
        cr_assert_eq(memcmp(at, expected, sizeof(expected)), 0);
    }
    cr_assert_str_eq(berth_place_device_name(arena, p, 4), "cpu1");
}

static const struct {
    const char *text;
    const char *message;
} bad_answers[] = {
    {"{\"7\": \"acc0\"", "a.json:1:"},
    {"[]", "a.json: expected an object, not an array"},
    {"{\"assignment\": 3}", "a.json: assignment: expected an object, not a number"},
    {"{\"7\": \"acc0\"}", "a.json: assignment: node -1 is missing"},
    {"{\"7\": 0}", "a.json: 7: expected the name of a device, not a number"},
    {"{\"7\": \"acc3\"}", "a.json: 7: there is no device \"acc3\""},
};

Test(placement_file, bad_answers) {
    const berth_place_problem *p = parse_ok(small);
    for (size_t i = 0; i < sizeof(bad_answers) / sizeof(bad_answers[0]); ++i) {
        uint32_t *at = NULL;
        berth_status status = berth_place_answer_parse(arena, "a.json", bad_answers[i].text,
                                                       strlen(bad_answers[i].text), p, &at);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
        cr_assert_null(at);
        cr_assert_eq(strncmp(berth_status_message(status), bad_answers[i].message,
                             strlen(bad_answers[i].message)),
                     0, "%s", berth_status_message(status));
        berth_status_free(status);
    }
}
