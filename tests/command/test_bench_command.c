// berth bench, and berth run --profile: figures that must agree with each other and with the plan.
#include <math.h>
#include <stdio.h>
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

static void check_order(const json_t *json) {
    static const char *const keys[] = {"min", "p50", "p90", "p99", "max"};
    for (size_t i = 0; i + 1 < sizeof(keys) / sizeof(keys[0]); ++i)
        cr_assert_leq(latency(json, keys[i]), latency(json, keys[i + 1]), "%s", keys[i]);
    cr_assert_gt(latency(json, "min"), 0);
    cr_assert_geq(latency(json, "mean"), latency(json, "min"));
    cr_assert_leq(latency(json, "mean"), latency(json, "max"));
    double seconds = number(json, "wall_ms") / 1e3;
    cr_assert_float_eq(number(json, "throughput_per_s") * seconds, number(json, "runs"), 1e-3);
}

Test(bench_command, counts_and_streams) {
    json_t *one = berth_run_json("bench " DIGITS " --count 20 --format=json");
    cr_assert_eq(number(one, "runs"), 20);
    cr_assert_eq(number(one, "streams"), 1);
    check_order(one);
    // One stream runs one after another: the sum of its latencies is the time that it takes.
    cr_assert_leq(latency(one, "mean") * 20, number(one, "wall_ms") * 1.001);
    json_decref(one);
    json_t *three = berth_run_json("bench " DIGITS
                                   " --count 20 --streams 3 --threads 1 --warmup 0 --format=json");
    cr_assert_eq(number(three, "runs"), 60);
    cr_assert_eq(number(three, "warmup"), 0);
    cr_assert_eq(number(three, "threads"), 1);
    cr_assert(json_is_false(json_object_get(three, "shared")));
    check_order(three);
    json_decref(three);
    json_t *shared =
        berth_run_json("bench " DIGITS " --count 20 --streams 3 --share --threads 1 --format=json");
    cr_assert_eq(number(shared, "runs"), 60);
    cr_assert(json_is_true(json_object_get(shared, "shared")));
    check_order(shared);
    json_decref(shared);
}

Test(bench_command, duration) {
    json_t *json = berth_run_json("bench " DIGITS " --duration 200ms --format=json");
    cr_assert_geq(number(json, "wall_ms"), 200);
    cr_assert_gt(number(json, "runs"), 1);
    check_order(json);
    json_decref(json);
}

// The prediction is the plan's, kept by a program too.
Test(bench_command, prediction) {
    json_t *plan = berth_run_json("plan " DIGITS " --format=json");
    json_t *measured = berth_run_json("bench " DIGITS " --count 3 --format=json");
    double predicted_ms = number(plan, "predicted_ms");
    cr_assert_float_eq(number(measured, "predicted_ms"), predicted_ms, 1e-9);
    cr_assert_float_eq(number(measured, "measured_over_predicted") * predicted_ms,
                       latency(measured, "p50"), 1e-9);
    json_decref(plan);
    json_decref(measured);
    const result *r = berth_run("bench " DIGITS " --count 3 --quiet");
    cr_assert_eq(r->exit_status, 0);
    cr_assert(strstr(r->out, "latency: p50 ") && strstr(r->out, "throughput: ") &&
                  strstr(r->out, "3 runs of 1 stream ") && strstr(r->out, "predicted: "),
              "%s", r->out);
    cr_expect_null(strstr(r->out, "target's cores"));
    r = berth_run("bench " DIGITS " --count 3 --quiet --threads 1");
    cr_expect(strstr(r->out, " ms on the target's cores; p50 on 1 thread is "), "%s", r->out);
}

// What takes less than a microsecond is printed with three digits, too.
Test(bench_command, short_latencies) {
    char path[64], command[128];
    snprintf(path, sizeof(path), "/tmp/berth-bench-short-%d.txt", (int)getpid());
    snprintf(command, sizeof(command), "bench %s --count 100", path);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("module \"short\"\ngraph @main(%x: f32[8]) {\n  %y = add(%x, %x)\n  return %y\n}\n",
          file);
    fclose(file);
    const result *r = berth_run(command);
    remove(path);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    const char *at = strstr(r->out, "p50 ");
    cr_assert_not_null(at);
    int digits = 0;
    for (at += strlen("p50 "); *at != ' '; ++at)
        if (strchr("123456789", *at) || (*at == '0' && digits)) ++digits;
    cr_assert_geq(digits, 3, "%s", r->out);
}

// The plan is that of the dimension's own name, and inputs are counted.
Test(bench_command, batch) {
    json_t *plan = berth_run_json("plan " DIGITS " --dim batch=16 --format=json");
    json_t *one = berth_run_json("plan " DIGITS " --dim batch=1 --format=json");
    json_t *measured = berth_run_json("bench " DIGITS " --batch 16 --count 3 --format=json");
    cr_assert_float_eq(number(measured, "predicted_ms"), number(plan, "predicted_ms"), 1e-9);
    cr_assert_gt(number(plan, "predicted_ms"), number(one, "predicted_ms"));
    cr_assert_eq(json_integer_value(json_object_get(measured, "batch")), 16);
    double runs_per_s = number(measured, "throughput_per_s");
    cr_assert_float_eq(number(measured, "inputs_per_s"), 16 * runs_per_s, runs_per_s * 1e-6);
    json_decref(plan);
    json_decref(one);
    json_decref(measured);
    berth_run_fails("bench " DIGITS " --batch 16 --dim batch=4", 1,
                    "dimension batch is given twice, as 4 and as 16");
    berth_run_fails(
        "bench examples/compiler/conv.txt --batch 2", 1,
        "--batch 2: no input of examples/compiler/conv.txt has an open first dimension");
}

Test(bench_command, wrong_usage) {
    berth_run_fails("bench " DIGITS " --batch 0", 2, "--batch takes a number");
    berth_run_fails("bench", 2, "which model?");
    berth_run_fails("bench " DIGITS " --count 0", 2, "--count takes a number");
    berth_run_fails("bench " DIGITS " --streams 1000", 2, "--streams takes a number");
    berth_run_fails("bench " DIGITS " --duration soon", 2, "--duration takes a time");
    berth_run_fails("bench " DIGITS " --format=csv", 2, "--format takes text, json or svg");
    berth_run_fails("bench no-such.onnx", 1, "no-such.onnx");
}

// Steps of one queue do not overlap: their times add up to no more than the runs'.
// A processor alone has the threads that its target has cores, unless others are asked for.
Test(bench_command, cores_of_the_target) {
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) cr_skip_test("one processor");
    static const char run[] = "run " DIGITS " --profile --quiet --costs none --target ";
    const long all = sysconf(_SC_NPROCESSORS_ONLN);
    static const struct {
        const char *target;
        bool one;
    } cases[] = {{"'cpu -cores=1'", true},
                 {"'cpu -cores=1' --threads 2", false},
                 {"cpu --threads 1", false},
                 {"cpu", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[256], one[32];
        snprintf(text, sizeof(text), "%s%s", run, cases[i].target);
        snprintf(one, sizeof(one), "(1 of %ld cores)", all);
        const result *r = berth_run(text);
        cr_expect_eq(strstr(r->out, one) != NULL, cases[i].one, "%s: %s", text, r->out);
    }
}

Test(bench_command, profile) {
    json_t *json = berth_run_json("run " DIGITS " --repeat 20 --warmup 2 --profile --format=json");
    json_t *rows = json_object_get(json, "profile"), *row = NULL;
    json_t *device = json_object_get(json_object_get(json, "devices"), "cpu:0");
    cr_assert_eq(json_array_size(rows),
                 (size_t)(number(device, "kernels") + number(device, "copies")));
    double share = 0, before_ms = INFINITY;
    double busy_ms = 0, wait_ms = 0, run_ms = 0;
    bool has_convolution = false;
    for (size_t i = 0; i < json_array_size(rows); ++i) {
        row = json_array_get(rows, i);
        share += number(row, "share");
        cr_assert_leq(number(row, "ms"), before_ms, "longest first");
        before_ms = number(row, "ms");
        busy_ms += number(row, "ms");
        wait_ms += number(row, "wait_ms");
        if (i == 0) run_ms = number(row, "ms") / number(row, "share");
        cr_assert_str_eq(json_string_value(json_object_get(row, "device")), "cpu:0");
        has_convolution |= strstr(json_string_value(json_object_get(row, "step")), "conv1") != NULL;
    }
    cr_assert(has_convolution);
    cr_assert_gt(share, 0);
    cr_assert_leq(share, 1);
    cr_assert_geq(wait_ms, 0);
    cr_assert_leq(busy_ms + wait_ms, run_ms * 1.0001,
                  "a device works or waits, from the first step's wait to the last one's end");
    json_decref(json);
    json = berth_run_json("run " DIGITS " --format=json");
    cr_assert_null(json_object_get(json, "profile"));
    json_decref(json);
}

// What one device makes, and how near it comes to a peak that is known: that of its target.
Test(bench_command, profile_shapes_and_peaks) {
    json_t *json = berth_run_json("run " DIGITS " --repeat 5 --profile --format=json --dim batch=3 "
                                  "--target 'cpu -peak_flops.f32=5e10'");
    json_t *row = NULL;
    size_t i = 0;
    int seen = 0;
    json_array_foreach(json_object_get(json, "profile"), i, row) {
        const char *op = json_string_value(json_object_get(row, "op"));
        json_t *shape = json_object_get(row, "shape"), *of_peak = json_object_get(row, "of_peak");
        cr_assert_eq(json_integer_value(json_array_get(shape, 0)), 3);
        if (strcmp(op, "Gemm") == 0) {
            cr_assert_eq(json_array_size(shape), 2);
            cr_assert_eq(json_integer_value(json_array_get(shape, 1)), 10);
            ++seen;
        }
        if (number(row, "flops") > 0 && number(row, "ms") > 0) {
            double expected = number(row, "flops") / (number(row, "ms") / 1e3) / 5e10;
            cr_assert_float_eq(json_number_value(of_peak), expected, 1e-3 * expected);
            ++seen;
        } else {
            cr_assert(json_is_null(of_peak));
        }
    }
    cr_assert_geq(seen, 3);
    json_decref(json);
    const char *text = berth_run("run " DIGITS " --profile --quiet --dim batch=3")->out;
    cr_assert(strstr(text, "waited of peak   GFLOP/s"), "%s", text);
    cr_assert(strstr(text, "f32[3,10]"), "%s", text);
}

// A device that waits for another one: what it waits for a step is as long as the other's step before it, at least.
Test(bench_command, profile_waits) {
    if (strstr(berth_run("devices")->out, "opencl:0") == NULL)
        cr_skip("skipped: this needs OpenCL");
    json_t *json =
        berth_run_json("run " DIGITS " --repeat 5 --profile --format=json --dim batch=360 "
                       "--target cpu,opencl --pin 'op:Conv=opencl:0'");
    json_t *row = NULL;
    size_t i = 0;
    double before_ms = 0, waited_ms = 0;
    json_array_foreach(json_object_get(json, "profile"), i, row) {
        const char *device = json_string_value(json_object_get(row, "device"));
        const char *step = json_string_value(json_object_get(row, "step"));
        if (strcmp(device, "opencl:0") == 0 && strncmp(step, "conv1", 5) == 0)
            before_ms = number(row, "ms");
        if (strncmp(step, "relu1", 5) == 0) waited_ms = number(row, "wait_ms");
    }
    cr_assert_gt(before_ms, 0);
    cr_assert_geq(waited_ms, before_ms);
    json_decref(json);
}

// Where a label is: its baseline, and the edge that `anchor` names.
static void find_label(const char *svg, const char *text, double *out_x, double *out_y,
                       bool *out_end) {
    const char *at = strstr(svg, text);
    cr_assert_not_null(at, "%s", text);
    while (at > svg && strncmp(at, "<text ", 6) != 0) --at;
    char anchor[8] = "start";
    cr_assert_geq(
        sscanf(at, "<text x=\"%lf\" y=\"%lf\" text-anchor=\"%7[a-z]", out_x, out_y, anchor), 2);
    *out_end = strcmp(anchor, "end") == 0;
}

// Labels of runs that take about as long are one below the other, and none is cut at the left edge.
Test(bench_command, labels) {
    const result *r = berth_run("bench " DIGITS " --count 400 --warmup 2 --format=svg");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    static const char *const labels[] = {">p50 ", ">p90 ", ">p99 "};
    double x = 0, y[3] = {0};
    bool end = false;
    for (int i = 0; i < 3; ++i) {
        find_label(r->out, labels[i], &x, &y[i], &end);
        cr_assert(!end || x > 80 + 100, "%s at %g", labels[i], x);  // 100: a text of 18 letters
        cr_assert(y[i] > 50 && y[i] < 440, "%s at %g", labels[i], y[i]);
    }
    // The points of the curve rise from each to the next; baselines must not be nearer than a line is high.
    for (int i = 0; i + 1 < 3; ++i) cr_assert_geq(fabs(y[i + 1] - y[i]), 10, "%s", labels[i]);
}

// The curve rises from the fastest run at the left edge to the slowest at the right one, within the axes.
Test(bench_command, picture) {
    const result *r = berth_run("bench " DIGITS " --count 400 --warmup 2 --format=svg");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_eq(strncmp(r->out, "<svg", 4), 0);
    cr_assert(strstr(r->out, "latency of 400 runs, 1 stream:"), "%s", r->out);
    cr_assert(strstr(r->out, "predicted: ") && strstr(r->out, ">p50 ") && strstr(r->out, ">p99 "));
    const char *at = strstr(r->out, "points=\"");
    cr_assert_not_null(at);
    double x = 0, y = 0, last_x = 0, last_y = 1e9, first_y = 0;
    int used = 0, count = 0;
    for (at += strlen("points=\""); sscanf(at, "%lf,%lf %n", &x, &y, &used) == 2; at += used) {
        cr_assert(x >= last_x && y <= last_y, "point %d", count);
        cr_assert(x >= 80 && x <= 720 && y >= 56 && y <= 376, "point %d: %g, %g", count, x, y);
        if (count++ == 0) first_y = y;
        last_x = x;
        last_y = y;
    }
    cr_assert_eq(*at, '"');
    cr_assert(count > 100 && last_x == 720 && last_y < first_y);
    cr_assert(strstr(r->out, "</svg>\n"));
    berth_run_fails("bench " DIGITS " --count 1 --format=dot", 2,
                    "--format takes text, json or svg");
}
