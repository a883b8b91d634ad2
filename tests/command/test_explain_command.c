// berth explain: what it says of changed machines is what planning for them, written out, gives.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"
// A GPU behind a slow link, and figures of which everything follows.
#define GPU                                                                                        \
    "{\"kind\":\"multi\",\"devices\":[{\"name\":\"gpu\",\"target\":{\"kind\":\"cuda\","            \
    "\"peak_flops\":{\"f32\":1e12},\"dispatch_ns\":1000}},{\"name\":\"cpu\",\"target\":"           \
    "{\"kind\":\"cpu\",\"arch\":\"x86_64\",\"cores\":1,\"clock_hz\":1000000000}}],"                \
    "\"memories\":[{\"name\":\"vram\",\"capacity_bytes\":\"%s\",\"reached_by\":[\"gpu\"],"         \
    "\"bandwidth_bytes_per_s\":1e11}],\"links\":[{\"from\":\"host\",\"to\":\"vram\","              \
    "\"bandwidth_bytes_per_s\":%s,\"latency_ns\":1000}]%s}"
#define PIN ",\"pins\":[{\"match\":\"op:Conv\",\"device\":\"cpu\"}]"

static json_t *ask(const char *command, const char *capacity, const char *bandwidth,
                   const char *rest, const char *options) {
    char target[1024], text[2048];
    snprintf(target, sizeof(target), GPU, capacity, bandwidth, rest);
    snprintf(text, sizeof(text), "%s " DIGITS " --costs none -q --format=json --target '%s' %s",
             command, target, options);
    return berth_run_json(text);
}

static double predicted_ms(const char *capacity, const char *bandwidth, const char *rest,
                           const char *options) {
    json_t *json = ask("plan", capacity, bandwidth, rest, options);
    double ms = json_number_value(json_object_get(json, "predicted_ms"));
    json_decref(json);
    return ms;
}

// Of the change that is called so.
static const json_t *change_of(const json_t *json, const char *what) {
    const json_t *changes = json_object_get(json_object_get(json, "what_if"), "changes");
    for (size_t i = 0; i < json_array_size(changes); ++i) {
        const json_t *change = json_array_get(changes, i);
        if (strcmp(json_string_value(json_object_get(change, "what")), what) == 0) return change;
    }
    cr_assert_fail("no change \"%s\"", what);
    return NULL;
}

static void expect_change(const json_t *json, const char *what, double before, double after) {
    const json_t *change = change_of(json, what);
    double value = json_number_value(json_object_get(change, "value"));
    double gain = json_number_value(json_object_get(change, "gain"));
    cr_expect_float_eq(value, after, 1e-9 * after, "%s: %g, planned so %g", what, value, after);
    cr_expect_float_eq(gain, 1 - after / before, 1e-9, "%s", what);
}

Test(explain_command, changes_are_plans_for_such_machines) {
    static const char automatic[] = "--strategy auto";
    double before = predicted_ms("1GiB", "1e9", PIN, automatic);
    json_t *json = ask("explain", "1GiB", "1e9", PIN, automatic);
    double said = json_number_value(json_object_get(json_object_get(json, "what_if"), "before"));
    cr_expect_float_eq(said, before, 1e-9 * before);
    double unpinned = predicted_ms("1GiB", "1e9", "", automatic);
    cr_expect_lt(unpinned, before * 0.9, "the test is about a pin that costs");
    expect_change(json, "without the pin op:Conv=cpu", before, unpinned);
    expect_change(
        json, "without gpu", before,
        predicted_ms("1GiB", "1e9", PIN ",\"budgets\":{}", "--pin '*=cpu' --strategy auto"));
    json_decref(json);
    json = ask("explain", "1GiB", "1e9", "", automatic);
    double linked = predicted_ms("1GiB", "2e9", "", automatic);
    cr_expect_lt(linked, unpinned * 0.999, "the test is about a link that costs");
    expect_change(json, "link host-vram twice as fast", unpinned, linked);
    json_decref(json);
}

// Sorted; what the rules place gains by a strategy; too small a memory is no plan.
Test(explain_command, order_and_problems) {
    json_t *json = ask("explain", "256KiB", "1e9", "", "--pin 'op:Conv=gpu'");
    const json_t *what_if = json_object_get(json, "what_if");
    const json_t *changes = json_object_get(what_if, "changes");
    double last = INFINITY;
    bool problems = false;
    for (size_t i = 0; i < json_array_size(changes); ++i) {
        const json_t *change = json_array_get(changes, i), *gain = json_object_get(change, "gain");
        problems |= !gain;
        cr_expect(!problems || !gain, "those without a plan come last");
        if (!gain) cr_expect_not_null(json_object_get(change, "problem"));
        if (!gain) continue;
        cr_expect_leq(json_number_value(gain), last);
        last = json_number_value(gain);
    }
    expect_change(json, "the strategy auto",
                  predicted_ms("256KiB", "1e9", "", "--pin 'op:Conv=gpu'"),
                  predicted_ms("256KiB", "1e9", "", "--pin 'op:Conv=gpu' --strategy auto"));
    cr_expect_eq(json_integer_value(json_object_get(what_if, "left_out")), 0);
    json_decref(json);
    // No further plan is begun: nothing is tried in no time, but said.
    json = ask("explain", "1GiB", "1e9", "", "--what-if-time 0.000001ms");
    cr_expect_geq(json_integer_value(json_object_get(json_object_get(json, "what_if"), "left_out")),
                  5);
    json_decref(json);
}

// The sums are those of the plan.
Test(explain_command, sums) {
    json_t *json = ask("explain", "1GiB", "1e9", "", "--no-what-if --strategy auto");
    json_t *plan = ask("plan", "1GiB", "1e9", "", "--strategy auto");
    double devices_ms = 0, operations_us = 0;
    size_t i = 0;
    json_t *item = NULL;
    cr_expect_null(json_object_get(json, "what_if"));
    json_array_foreach(json_object_get(json, "devices"), i, item) devices_ms +=
        json_number_value(json_object_get(item, "time_ms"));
    json_array_foreach(json_object_get(plan, "operations"), i, item) operations_us +=
        json_number_value(json_object_get(item, "time_us"));
    cr_expect_float_eq(devices_ms, operations_us / 1e3, 1e-9);
    long long traffic = 0, copies = 0;
    json_array_foreach(json_object_get(json, "traffic"), i, item) traffic +=
        json_integer_value(json_object_get(item, "bytes"));
    json_array_foreach(json_object_get(plan, "copies"), i, item) copies +=
        json_integer_value(json_object_get(item, "bytes"));
    cr_expect_eq(traffic, copies);
    cr_expect_gt(traffic, 0);
    json_decref(json);
    json_decref(plan);
}

Test(explain_command, operations_and_reasons) {
    json_t *json = ask("explain", "1GiB", "1e9", PIN, "--no-what-if --op op:Conv");
    json_t *operations = json_object_get(json, "operations");
    cr_assert_geq(json_array_size(operations), 1);
    for (size_t i = 0; i < json_array_size(operations); ++i) {
        const json_t *operation = json_array_get(operations, i);
        const json_t *chain = json_object_get(operation, "chain");
        cr_expect_not_null(strstr(json_string_value(json_object_get(operation, "op")), "Conv"));
        cr_expect_str_eq(json_string_value(json_object_get(operation, "device")), "cpu");
        cr_expect_str_eq(json_string_value(json_object_get(operation, "memory")), "host");
        cr_assert_geq(json_array_size(chain), 1);
        cr_expect_not_null(
            strstr(json_string_value(json_array_get(chain, 0)), "pinned: op:Conv=cpu"));
    }
    json_decref(json);
    const result *r = berth_run("explain " DIGITS " --target cpu --costs none --op op:Conv");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "because: default device"));
    cr_expect_not_null(strstr(r->out, "memory host twice as fast"));
    cr_expect_not_null(strstr(r->err, "what if 1 of "));
    berth_run_fails("explain " DIGITS " --op nothing*", 1, "--op nothing* matches no operation");
    berth_run_fails("explain " DIGITS " --what-if-time soon", 2, "--what-if-time takes a time");
    berth_run_fails("explain " DIGITS " --format=svg", 2, "--format takes text or json");
}

// docs/planner.md has the module and its plan: %l goes with its annotation.
Test(explain_command, chain_of_reasons) {
    json_t *json = berth_run_json("explain examples/planner/annotation.txt --target "
                                  "examples/planner/gpu_cpu.json --no-what-if --format=json");
    const json_t *first = json_array_get(json_object_get(json, "operations"), 0);
    const json_t *chain = json_object_get(first, "chain");
    cr_expect_str_eq(json_string_value(json_object_get(first, "device")), "cpu:0");
    cr_assert_eq(json_array_size(chain), 2);
    cr_expect_str_eq(json_string_value(json_array_get(chain, 0)),
                     "with %m (annotated by on_device)");
    cr_expect_str_eq(json_string_value(json_array_get(chain, 1)),
                     "annotation on_device, examples/planner/annotation.txt:5:3");
    const json_t *copy = json_array_get(json_object_get(json, "copies"), 1);
    cr_expect_str_eq(json_string_value(json_object_get(copy, "value")), "l");
    cr_expect_str_eq(json_string_value(json_object_get(copy, "reason")),
                     "needed there by sub, examples/planner/annotation.txt:7:3");
    json_decref(json);
    const result *r = berth_run("explain examples/planner/annotation.txt --target "
                                "examples/planner/gpu_cpu.json --no-what-if");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "\nexamples/planner/annotation.txt:4:3\n  on cpu:0"));
}

// ---- berth plan --compare -----------------------------------------------------------------------

static void save_plan(const char *path, const char *options) {
    char text[512];
    snprintf(text, sizeof(text),
             "plan " DIGITS " --target cpu,cpu --costs none -q --format=json %s", options);
    json_t *json = berth_run_json(text);
    cr_assert_eq(json_dump_file(json, path, 0), 0);
    json_decref(json);
}

static double pair_of(const json_t *object, const char *key, size_t side) {
    return json_number_value(json_array_get(json_object_get(object, key), side));
}

// What was pinned moved, and nothing else; the sums are those of the two plans.
Test(explain_command, compare_two_plans) {
    static const char a[] = "/tmp/berth-compare-a.json", b[] = "/tmp/berth-compare-b.json";
    save_plan(a, "");
    save_plan(b, "--pin 'op:Conv=cpu:1'");
    char command[256];
    snprintf(command, sizeof(command), "plan --compare %s %s --format=json", a, b);
    json_t *json = berth_run_json(command);
    json_error_t error;
    json_t *plans[] = {json_load_file(a, 0, &error), json_load_file(b, 0, &error)};
    size_t i = 0, moved = 0;
    const json_t *item = NULL;
    json_array_foreach(json_object_get(json, "operations"), i, item) {
        const json_t *device = json_object_get(item, "device");
        cr_expect_not_null(strstr(json_string_value(json_object_get(item, "op")), "Conv"));
        cr_expect_str_eq(json_string_value(json_array_get(device, 0)), "cpu:0");
        cr_expect_str_eq(json_string_value(json_array_get(device, 1)), "cpu:1");
        ++moved;
    }
    cr_expect_geq(moved, 1);
    for (size_t side = 0; side < 2; ++side) {
        double sum_us = 0, devices_ms = 0;
        cr_expect_eq(pair_of(json, "predicted_ms", side),
                     json_number_value(json_object_get(plans[side], "predicted_ms")));
        json_array_foreach(json_object_get(plans[side], "operations"), i, item) sum_us +=
            json_number_value(json_object_get(item, "time_us"));
        json_array_foreach(json_object_get(json, "devices"), i, item) devices_ms +=
            pair_of(item, "time_ms", side);
        cr_expect_float_eq(devices_ms, sum_us / 1e3, 1e-9);
        json_decref(plans[side]);
    }
    json_decref(json);
    snprintf(command, sizeof(command), "plan --compare %s %s", a, a);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "0 of "));
    cr_expect_not_null(strstr(r->out, "+0.0 %"));
    remove(a);
    remove(b);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

Test(explain_command, compare_what_is_no_plan) {
    static const char bad[] = "/tmp/berth-compare-bad.json";
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "is not JSON: line "},
        {"[1, 2", "is not JSON: line 1"},
        {"[]", "predicted_ms: a number from 0 is wanted"},
        {"{\"predicted_ms\": -1}", "predicted_ms: a number from 0 is wanted"},
        {"{\"predicted_ms\": 1, \"strategy\": 2}", "strategy: a text is wanted"},
        {"{\"predicted_ms\": 1, \"strategy\": \"\", \"copies\": {}}", "copies: a list is wanted"},
        {"{\"predicted_ms\": 1, \"strategy\": \"\", \"copies\": [7]}",
         "copies[0].from: a text is wanted"},
        {"{\"predicted_ms\": 1, \"strategy\": \"\", \"copies\": [], \"memory\": [], "
         "\"operations\": [{\"node\": \"n\", \"op\": \"o\", \"device\": \"d\"}]}",
         "operations[0].time_us: a number from 0 is wanted"},
    };
    char command[128];
    snprintf(command, sizeof(command), "plan --compare %s %s", bad, bad);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        write_text(bad, cases[i].text);
        berth_run_fails(command, 1, cases[i].message);
    }
    remove(bad);
    berth_run_fails(command, 1, "berth-compare-bad.json");
    berth_run_fails("plan --compare /tmp/a.json", 2, "--compare takes two plans");
    berth_run_fails("plan --compare a b c", 2, "--compare takes two plans");
}

// Two GPUs behind one bus: each copy says how fast its way is and what it shares, the sum what the bus is
// busy with. A link that nothing shares is no bus.
Test(explain_command, copies_say_their_bandwidth_and_bus) {
    static const char two[] =
        "%s " DIGITS " --costs none -q --format=json --pin 'op:Conv=g' --pin 'op:Relu=h' --target "
        "'{\"kind\":\"multi\",\"devices\":[{\"name\":\"cpu\",\"target\":{\"kind\":\"cpu\"}},"
        "{\"name\":\"g\",\"target\":{\"kind\":\"cuda\"}},{\"name\":\"h\",\"target\":{\"kind\":"
        "\"cuda\"}}],\"memories\":[{\"name\":\"one\",\"capacity_bytes\":\"1GiB\",\"reached_by\":"
        "[\"g\"]},{\"name\":\"two\",\"capacity_bytes\":\"1GiB\",\"reached_by\":[\"h\"]}],\"links\":"
        "[{\"from\":\"host\",\"to\":\"one\",\"bandwidth_bytes_per_s\":3e9,\"latency_ns\":0,\"bus\":"
        "\"pcie\"},{\"from\":\"host\",\"to\":\"two\",\"bandwidth_bytes_per_s\":2e9,\"latency_ns\":"
        "0,"
        "\"bus\":\"%s\"}]}'";
    for (int shared = 0; shared < 2; ++shared) {
        char text[2048];
        double bytes = 0, time_us = 0;
        snprintf(text, sizeof(text), two, "plan", shared ? "pcie" : "other");
        json_t *plan = berth_run_json(text);
        const json_t *copies = json_object_get(plan, "copies");
        size_t count = json_array_size(copies);
        cr_assert_geq(count, 4u);
        for (size_t i = 0; i < count; ++i) {
            const json_t *copy = json_array_get(copies, i);
            bool second = strcmp(json_string_value(json_object_get(copy, "from")), "h") == 0 ||
                          strcmp(json_string_value(json_object_get(copy, "to")), "h") == 0;
            double rate = json_number_value(json_object_get(copy, "bandwidth_bytes_per_s"));
            cr_expect_eq(rate, second ? 2e9 : 3e9);
            cr_expect_str_eq(json_string_value(json_object_get(copy, "bus")), shared ? "pcie" : "");
            bytes += json_number_value(json_object_get(copy, "bytes"));
            time_us += json_number_value(json_object_get(copy, "time_us"));
        }
        json_decref(plan);
        snprintf(text, sizeof(text), two, "explain --no-what-if", shared ? "pcie" : "other");
        json_t *explained = berth_run_json(text);
        const json_t *buses = json_object_get(explained, "buses");
        cr_assert_eq(json_array_size(buses), shared ? 1u : 0u);
        const json_t *bus = json_array_get(buses, 0);
        if (shared) {
            cr_expect_eq(json_integer_value(json_object_get(bus, "copies")), (json_int_t)count);
            cr_expect_eq(json_number_value(json_object_get(bus, "bytes")), bytes);
            cr_expect_float_eq(json_number_value(json_object_get(bus, "time_ms")), time_us / 1e3,
                               1e-9);
        }
        json_decref(explained);
    }
}
