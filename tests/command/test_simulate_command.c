// berth simulate: figures that must agree with each other.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

static double number(const json_t *json, const char *key) {
    json_t *value = json_object_get(json, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

static double latency(const json_t *json, const char *key) {
    return number(json_object_get(json, "latency_ms"), key);
}

// On one device nothing overlaps: the sum of its steps is the time, which is the busy time.
Test(simulate_command, one_device_adds_up) {
    json_t *json = berth_run_json("simulate " DIGITS " --target cpu --costs none --format=json");
    double sum_us = 0;
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(json_object_get(json, "events"), i, event) sum_us +=
        number(event, "end_us") - number(event, "start_us");
    cr_expect_float_eq(sum_us / 1e3, number(json, "total_ms"), 1e-9);
    cr_expect_float_eq(latency(json, "p50"), number(json, "total_ms"), 1e-12);
    json_t *busy = json_array_get(json_object_get(json, "resources"), 0);
    cr_expect_float_eq(number(busy, "utilisation"), 1, 1e-9);
    json_decref(json);
}

// Copies take as long as in the plan: those from and to kernels longer than that of the input.
Test(simulate_command, copies_are_those_of_the_plan) {
#define SPLIT DIGITS " --target cpu,opencl --costs none --pin op:Conv=opencl:0 --format=json"
    json_t *json = berth_run_json("simulate " SPLIT), *plan = berth_run_json("plan " SPLIT);
    double simulated_us = 0, planned_us = 0;
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(json, "events"), i, item) {
        if (json_is_true(json_object_get(item, "copy")))
            simulated_us += number(item, "end_us") - number(item, "start_us");
    }
    json_array_foreach(json_object_get(plan, "transfers"), i, item) planned_us +=
        number(item, "time_us");
    cr_expect_eq(i, 4);
    cr_expect_float_eq(simulated_us, planned_us, 1e-6);
    json_decref(json);
    json_decref(plan);
}

// Requests that come slower than they are served do not wait; twice as fast, the queue grows.
Test(simulate_command, rate) {
    json_t *one = berth_run_json("simulate " DIGITS " --target cpu --costs none --format=json");
    double ms = number(one, "total_ms");
    json_decref(one);
    char text[256];
    snprintf(text, sizeof(text),
             "simulate " DIGITS
             " --target cpu --costs none --requests 10 --rate %.9g --format=json",
             1e3 / (2 * ms));
    json_t *slow = berth_run_json(text);
    cr_expect_float_eq(latency(slow, "p99"), ms, 1e-6);
    json_decref(slow);
    snprintf(text, sizeof(text),
             "simulate " DIGITS
             " --target cpu --costs none --requests 10 --rate %.9g --format=json",
             1e3 / (ms / 2));
    json_t *fast = berth_run_json(text);
    // The k-th has waited for k services less k arrivals: ms + 9 * (ms - ms / 2) for the last.
    cr_expect_float_eq(latency(fast, "p99"), 5.5 * ms, 1e-6);
    cr_expect_float_eq(number(fast, "throughput_per_s") * ms / 1e3, 1, 1e-6);
    json_decref(fast);
}

// What is in use at most on one device is what the memory plan says lives there at most; all of it is in
// the pools.
Test(simulate_command, memory_over_time) {
    json_t *json = berth_run_json("simulate " DIGITS " --target cpu --costs none --format=json");
    json_t *plan = berth_run_json("plan " DIGITS " --target cpu --costs none --format=json");
    const json_t *memory = json_array_get(json_object_get(json, "memories"), 0);
    double peak = number(memory, "peak_bytes"), at_ms = number(memory, "peak_ms");
    cr_expect_gt(peak, 0);
    cr_expect_leq(number(memory, "fixed_bytes") + peak, number(memory, "bytes"));
    cr_expect(at_ms >= 0 && at_ms < number(json, "total_ms"));
    size_t i = 0, workspaces = 0;
    const json_t *pool = NULL;
    json_array_foreach(json_object_get(plan, "memory"), i, pool) {
        if (strcmp(json_string_value(json_object_get(pool, "usage")), "workspace") != 0) continue;
        cr_expect_eq(number(pool, "live_bytes"), peak);
        ++workspaces;
    }
    cr_expect_eq(workspaces, 1);
    json_decref(plan);
    json_decref(json);
    // Again for every request; not known where several run at a time.
    json =
        berth_run_json("simulate " DIGITS " --target cpu --costs none --requests 3 --format=json");
    memory = json_array_get(json_object_get(json, "memories"), 0);
    cr_expect_eq(number(memory, "peak_bytes"), peak);
    cr_expect_float_eq(number(memory, "peak_ms"), at_ms, 1e-9);
    json_decref(json);
    json = berth_run_json("simulate " DIGITS
                          " --target cpu --costs none --requests 3 --streams 2 --format=json");
    memory = json_array_get(json_object_get(json, "memories"), 0);
    cr_expect_null(json_object_get(memory, "peak_bytes"));
    json_decref(json);
}

// Constants in a slow memory of their own: so much longer as their bytes take from there, where nothing
// else is the limit.
Test(simulate_command, constants_come_from_their_own_memory) {
    static const char target[] =
        "simulate " DIGITS " --costs none --format=json --target "
        "'{\"devices\":[{\"name\":\"c\",\"target\":{\"kind\":\"cpu\",\"arch\":\"x86_64\","
        "\"dispatch_ns\":0,\"peak_flops\":{\"f32\":1e18}}}],\"memories\":["
        "{\"name\":\"ram\",\"capacity_bytes\":\"1GiB\",\"bandwidth_bytes_per_s\":1e18,"
        "\"reached_by\":[\"c\"]},{\"name\":\"flash\",\"capacity_bytes\":\"1GiB\","
        "\"bandwidth_bytes_per_s\":%s,\"holds\":\"constants\",\"reached_by\":[\"c\"]}]}'";
    double ms[2];
    for (int i = 0; i < 2; ++i) {
        char text[1024];
        snprintf(text, sizeof(text), target, i ? "1e6" : "1e18");
        json_t *json = berth_run_json(text);
        ms[i] = number(json, "total_ms");
        if (i) {
            const json_t *flash = json_array_get(json_object_get(json, "memories"), 1);
            // Pools are aligned and packed, so their bytes are a little more.
            double most_ms = number(flash, "bytes") / 1e6 * 1e3;
            cr_expect_gt(ms[1], 0.5 * most_ms);
            cr_expect_leq(ms[1], most_ms * (1 + 1e-6));
        }
        json_decref(json);
    }
    cr_expect_lt(ms[0], ms[1] * 1e-3);
}

// A machine that is not here, and devices on the same cores: two streams are no faster than one.
Test(simulate_command, machines_of_a_description) {
    json_t *tag = berth_run_json("simulate " DIGITS " --target nvidia/jetson-nano --format=json");
    cr_expect_gt(number(tag, "total_ms"), 0);
    json_decref(tag);
    const char *shared = "simulate " DIGITS " --costs none --requests 4 --streams 2 --format=json "
                         "--target 'opencl -resource=host,cpu' --pin 'op:Gemm=cpu:0'";
    const char *apart = "simulate " DIGITS " --costs none --requests 4 --streams 2 --format=json "
                        "--target 'opencl -resource=gpu,cpu' --pin 'op:Gemm=cpu:0'";
    json_t *both = berth_run_json(shared), *each = berth_run_json(apart);
    size_t rows = json_array_size(json_object_get(both, "resources"));
    cr_expect_eq(json_array_size(json_object_get(each, "resources")), rows + 1);
    cr_expect_gt(number(both, "total_ms"), number(each, "total_ms"));
    json_decref(both);
    json_decref(each);
}

// Devices of PoCL in one pool of threads take turns; those with threads of their own do not. What the machine's own
// description says of them decides it.
Test(simulate_command, devices_of_one_pool) {
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) cr_skip_test("one processor: devices share it anyway");
    const char *command =  // kernels take longer than copies
        "simulate " DIGITS " --costs none --requests 8 --streams 2 --format=json "
        "--target cpu,opencl,opencl --pin op:Conv=opencl:0 --pin op:Gemm=opencl:1 "
        "--set devices[1].target.dispatch_ns=200000 --set devices[2].target.dispatch_ns=200000";
    setenv("POCL_MAX_PTHREAD_COUNT", "1", 1);
    setenv("POCL_DEVICES", "pthread pthread", 1);
    json_t *pool = berth_run_json(command);
    setenv("POCL_DEVICES", "basic pthread", 1);
    json_t *apart = berth_run_json(command);
    size_t rows = json_array_size(json_object_get(pool, "resources"));
    cr_expect_eq(json_array_size(json_object_get(apart, "resources")), rows + 1);
    cr_expect_gt(number(pool, "total_ms"), number(apart, "total_ms"));
    json_decref(pool);
    json_decref(apart);
}

Test(simulate_command, files_and_mistakes) {
    const result *r =
        berth_run("simulate " DIGITS " --target cpu --trace /tmp/berth-simulate.json -o "
                  "/tmp/berth-simulate.svg");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "latency: p50"));
    json_error_t error;
    json_t *trace = json_load_file("/tmp/berth-simulate.json", 0, &error);
    cr_assert_not_null(trace, "%s", error.text);
    cr_expect_gt(json_array_size(json_object_get(trace, "traceEvents")), 2);
    json_decref(trace);
    cr_expect_eq(system("grep -q '<svg' /tmp/berth-simulate.svg && "
                        "grep -q 'memory host' /tmp/berth-simulate.svg && "
                        "grep -q '<circle' /tmp/berth-simulate.svg && "
                        "rm /tmp/berth-simulate.svg /tmp/berth-simulate.json"),
                 0);
    berth_run_fails("simulate " DIGITS " --rate 0", 2, "--rate takes requests per second");
    berth_run_fails("simulate " DIGITS " --streams 0", 2, "--streams takes a number");
    berth_run_fails("simulate /nowhere.onnx", 1, "/nowhere.onnx");
}
