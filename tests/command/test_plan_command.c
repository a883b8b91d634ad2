// berth plan: the predicted schedule, as JSON and as a picture.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

static double number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

// Whether two of the items overlap that are on the same device.
static bool overlap(const json_t *items) {
    size_t i = 0, j = 0;
    const json_t *a = NULL, *b = NULL;
    json_array_foreach(items, i, a) {
        json_array_foreach(items, j, b) {
            bool same =
                i != j && json_equal(json_object_get(a, "device"), json_object_get(b, "device"));
            double start = fmax(number(a, "start_us"), number(b, "start_us"));
            double end = fmin(number(a, "start_us") + number(a, "time_us"),
                              number(b, "start_us") + number(b, "time_us"));
            if (same && end - start > 1e-6) return true;
        }
    }
    return false;
}

static double last_end(const json_t *items) {
    double most = 0;
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(items, i, item) most =
        fmax(most, number(item, "start_us") + number(item, "time_us"));
    return most;
}

static const json_t *find(const json_t *items, const char *key, const char *value) {
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(items, i, item) if (strcmp(json_string_value(json_object_get(item, key)),
                                                  value) == 0) return item;
    return NULL;
}

// A machine whose figures make times that are known: 1 us for a start, a link of 1 GB/s.
#define GPU_AND_CPU                                                                                \
    " --target 'opencl -arch=x -dispatch_ns=1000 -link_bandwidth_bytes_per_s=1e9,cpu "             \
    "-arch=x86_64' "                                                                               \
    "--pin op:Conv=opencl:0 --pin op:MaxPool=cpu:0 --pin op:Relu=cpu:0 --pin op:Gemm=cpu:0 "       \
    "--pin op:Softmax=cpu:0 --dim batch=64 "

Test(plan_command, the_schedule_is_one) {
    json_t *plan = berth_run_json("plan " DIGITS GPU_AND_CPU "--format=json");
    const json_t *operations = json_object_get(plan, "operations");
    const json_t *transfers = json_object_get(plan, "transfers");
    cr_assert_gt(json_array_size(transfers), 2);
    cr_expect_not(overlap(operations), "a device computes two operations at once");
    cr_expect_not(overlap(transfers), "a link carries two values at once");
    double end_us = fmax(last_end(operations), last_end(transfers));
    cr_expect_float_eq(end_us, number(plan, "predicted_ms") * 1e3, 1e-6 * end_us);
    // The picture's copy first: 64 x 1 x 8 x 8 floats at 1 GB/s, then conv1 at once.
    const json_t *image = find(transfers, "value", "image");
    const json_t *conv = find(operations, "node", "conv1");
    cr_assert(image && conv);
    cr_expect_eq(number(image, "start_us"), 0);
    cr_expect_geq(number(image, "time_us"), 16384e-3);
    cr_expect_float_eq(number(conv, "start_us"), number(image, "time_us"), 1e-9);
    json_decref(plan);
}

// Every box of the picture, by its title; the last ends where the prediction does.
// Bytes of the workspace that the plan gives a memory.
static double workspace_bytes(const json_t *plan, const char *device) {
    size_t i = 0;
    const json_t *pool = NULL;
    json_array_foreach(json_object_get(plan, "memory"), i, pool) {
        if (strcmp(json_string_value(json_object_get(pool, "device")), device) == 0 &&
            strcmp(json_string_value(json_object_get(pool, "usage")), "workspace") == 0)
            return number(pool, "peak_bytes");
    }
    return 0;
}

// What the picture says beside a memory's row, in bytes.
static double peak_bytes(const char *svg, const char *row) {
    double figure = 0;
    char unit[8] = "";
    const char *at = strstr(svg, row);
    at = at ? strstr(at, ">peak ") : NULL;
    if (!at || sscanf(at, ">peak %lf %7s", &figure, unit) != 2) return -1;
    return figure * (*unit == 'K' ? 1024 : *unit == 'M' ? 1 << 20 : 1);
}

// All of a workspace holds something where it is fullest: without views and parts of wholes, the packager's
// own figure and the one that follows the bytes through the schedule are the same.
Test(plan_command, the_picture_has_what_memories_hold) {
    json_t *plan = berth_run_json("plan " DIGITS GPU_AND_CPU "--format=json");
    const char *svg = berth_run("plan " DIGITS GPU_AND_CPU "--format=svg")->out;
    cr_expect(strstr(svg, ">intermediate values</text>") && strstr(svg, ">their peak</text>"));
    cr_expect_gt(workspace_bytes(plan, "cpu:0"), 0);
    cr_expect_float_eq(peak_bytes(svg, ">memory host</text>"), workspace_bytes(plan, "cpu:0"), 64);
    cr_expect_float_eq(peak_bytes(svg, ">memory opencl:0</text>"),
                       workspace_bytes(plan, "opencl:0"), 64);
    json_decref(plan);
}

Test(plan_command, the_picture_is_the_schedule) {
    json_t *plan = berth_run_json("plan " DIGITS GPU_AND_CPU "--format=json");
    double predicted_ms = number(plan, "predicted_ms");
    const char *svg = berth_run("plan " DIGITS GPU_AND_CPU "--format=svg")->out;
    static const char *const parts[] = {"<svg ",
                                        "digits.onnx: latency of one request: ",
                                        ">opencl:0</text>",
                                        ">cpu:0</text>",
                                        ">opencl:0 copies</text>",
                                        "<title>conv1 (Conv): ",
                                        ">Conv</text>",
                                        ">copies</text>",
                                        "<title>copy of image to opencl:0: ",
                                        " operations</text>",
                                        "</svg>\n"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
        cr_expect(strstr(svg, parts[i]), "no %s in\n%s", parts[i], svg);
    double most_ms = 0, start = 0, end = 0;
    for (const char *at = svg; (at = strstr(at, ", from ")); ++at)
        if (sscanf(at, ", from %lf to %lf", &start, &end) == 2) most_ms = fmax(most_ms, end);
    cr_expect_float_eq(most_ms, predicted_ms, 1e-5 * predicted_ms, "%g, %g", most_ms, predicted_ms);
    // What is proven is the search's value: the end of the schedule is a prediction, and where the two
    // differ, the title has both.
    cr_expect(strstr(svg, ">predicted ") && !strstr(svg, ">optimal "));
    double value_ms = number(json_object_get(plan, "objective"), "value");
    bool apart = fabs(value_ms - predicted_ms) > 1e-3 * value_ms;
    cr_expect_eq(strstr(svg, "; by the kernels that are made ") != NULL, apart, "%g, %g", value_ms,
                 predicted_ms);
    json_decref(plan);
}

// Whether a note says so.
static bool noted(const json_t *plan, const char *part) {
    size_t i = 0;
    const json_t *note = NULL;
    json_array_foreach(json_object_get(json_object_get(plan, "objective"), "notes"), i,
                       note) if (strstr(json_string_value(note), part)) return true;
    return false;
}

static size_t operations_on(const json_t *plan, const char *device) {
    size_t count = 0, i = 0;
    const json_t *operation = NULL;
    json_array_foreach(json_object_get(plan, "operations"), i, operation) count +=
        strncmp(json_string_value(json_object_get(operation, "device")), device, strlen(device)) ==
        0;
    return count;
}

// Every GPU is planned for with kernels of its own; where nothing can be planned the plan says that,
// whoever makes it and for what.
Test(plan_command, devices_without_a_code_generator) {
    static const char *const ways[] = {"", "--strategy auto", "--objective throughput",
                                       "--strategy auto --objective throughput",
                                       "--strategy auto --objective memory"};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
        char arguments[512];
        snprintf(arguments, sizeof(arguments),
                 "plan " DIGITS " --dim batch=64 --target aws/g4dn.12xlarge %s --format=json",
                 ways[i]);
        json_t *plan = berth_run_json(arguments);
        cr_expect_not(noted(plan, "makes no code"), "%s", arguments);
        cr_expect_gt(operations_on(plan, "gpu"), 0, "%s", arguments);
        cr_expect_eq(noted(plan, "one request after the other"),
                     strstr(ways[i], "throughput") != NULL);
        json_decref(plan);
        snprintf(arguments, sizeof(arguments),
                 "plan " DIGITS " --dim batch=64 --target vta,cpu %s --format=json", ways[i]);
        plan = berth_run_json(arguments);
        cr_expect(noted(plan, "vta:0 (vta) yet: nothing runs there"), "%s", arguments);
        cr_expect_eq(operations_on(plan, "vta"), 0);
        json_decref(plan);
    }
}

// The ICD loader finds no platform.
Test(plan_command, devices_that_are_not_here) {
    cr_assert_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
    const result *r = berth_run("plan " DIGITS " --dim batch=64 --target opencl --quiet");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->err, "warning: opencl:0 is not on this machine"), "%s", r->err);
    cr_expect(strstr(r->out, "\nnote         opencl:0 is not on this machine"), "%s", r->out);
    r = berth_run("plan " DIGITS " --dim batch=64 --target amd/mi300x --quiet");
    cr_expect_str_empty(r->err, "a described machine need not be here");
}

// An architecture or a feature of a GPU that no kernel knows is said, by every command that plans, and once; what tags, older GPUs
// and processor cores behind Vulkan say of themselves is not.
Test(plan_command, words_of_gpus_that_nothing_knows) {
    static const struct {
        const char *target, *warning;
    } rows[] = {
        {"cuda -arch=sm90",
         "warning: arch \"sm90\" of device \"cuda:0\" is none that kernels know"},
        {"cuda -arch=sm_80x", "warning: arch \"sm_80x\" of device \"cuda:0\" is none"},
        {"cuda -arch=sm_80 -features=tf23,tf32", "warning: feature \"tf23\" of device \"cuda:0\""},
        {"vulkan -model=x -features=float16,float61", "warning: feature \"float61\" of device"},
        {"cuda -arch=sm_60", NULL},
        {"cuda -arch=sm_75", NULL},
        {"cuda -arch=sm_121 -features=tf32", NULL},
        {"vulkan -model=x "
         "-features=float16,float16_denormals,subgroup_arithmetic,cooperative_matrix_f16,"
         "cooperative_u8_i8_k32",
         NULL},
        {"nvidia/dgx-h100", NULL},
        {"opencl,cpu", NULL},
        {"vulkan,cpu", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char command[256];
        for (int vm = 0; vm < 2; ++vm) {
            if (vm && !rows[i].warning) continue;
            snprintf(command, sizeof(command), "%s " DIGITS " --dim batch=64 --target \"%s\"",
                     vm ? "run --executor vm" : "plan --quiet", rows[i].target);
            const char *said = strstr(berth_run(command)->err, "is none that kernels");
            cr_expect_eq(said != NULL, rows[i].warning != NULL, "%s: %s", command,
                         berth_run(command)->err);
            if (!said) continue;
            cr_expect(strstr(berth_run(command)->err, rows[i].warning), "%s", command);
            cr_expect_null(strstr(said + 1, "is none that kernels"), "%s: twice", command);
        }
    }
}

#define BOARD(holds)                                                                               \
    "--target '{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "      \
    "\"armv7e-m\"}}], \"memories\": [{\"name\": \"ram\", \"capacity_bytes\": \"16KiB\", "          \
    "\"reached_by\": [\"mcu\"]}, {\"name\": \"flash\", " holds "\"capacity_bytes\": \"64KiB\", "   \
    "\"bandwidth_bytes_per_s\": 1e6, \"reached_by\": [\"mcu\"]}]}' "
#define FLASH BOARD("\"holds\": \"constants\", ")

// The digits' 26 KiB of weights do not fit 16 KiB of RAM, but the flash beside it.
Test(plan_command, constants_go_to_the_memory_that_holds_them) {
    static const char *const strategies[] = {"", "--strategy auto ",
                                             "--strategy auto --objective memory "};
    berth_run_fails("plan " DIGITS " --dim batch=1 " BOARD(""), 1, "memory \"ram\" needs 3");
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); ++i) {
        char arguments[1024];
        snprintf(arguments, sizeof(arguments),
                 "plan " DIGITS " --dim batch=1 " FLASH "%s--format=json", strategies[i]);
        json_t *plan = berth_run_json(arguments);
        size_t index = 0, constants = 0;
        const json_t *pool = NULL;
        json_array_foreach(json_object_get(plan, "memory"), index, pool) {
            bool constant =
                strcmp(json_string_value(json_object_get(pool, "usage")), "constants") == 0;
            cr_expect_str_eq(json_string_value(json_object_get(pool, "memory")),
                             constant ? "flash" : "ram");
            constants += constant;
        }
        cr_expect_eq(constants, 1);
        // 24,360 bytes of weights at 1 MB/s.
        cr_expect_gt(number(plan, "predicted_ms"), 24.3);
        json_decref(plan);
    }
    berth_run_fails("plan " DIGITS " --dim batch=1 " FLASH "--set 'budgets={\"flash\": \"20KiB\"}'",
                    1, "memory \"flash\", which holds the constants of \"mcu\", needs 2");
    // The smallest budget that an error names is one.
    const result *r =
        berth_run("plan " DIGITS " --dim batch=1 " FLASH "--set 'budgets={\"ram\": \"2KiB\"}'");
    cr_assert_eq(r->exit_status, 1);
    const char *needs = strstr(r->err, "memory \"ram\" needs "), *bytes = NULL;
    cr_assert(needs && (bytes = strchr(needs, '(')), "%s", r->err);
    long least = strtol(bytes + 1, NULL, 10);
    char budget[1024];
    snprintf(budget, sizeof(budget),
             "plan " DIGITS " --dim batch=1 " FLASH "--set 'budgets={\"ram\": %ld}'", least);
    r = berth_run(budget);
    cr_expect_eq(r->exit_status, 0, "%ld bytes: %s", least, r->err);
    snprintf(budget, sizeof(budget),
             "plan " DIGITS " --dim batch=1 " FLASH "--set 'budgets={\"ram\": %ld}'", least - 1);
    berth_run_fails(budget, 1, "memory \"ram\" needs ");
    r = berth_run("plan " DIGITS
                  " --dim batch=1 " BOARD("") "--set memories[0].capacity_bytes=64KiB");
    cr_expect(strstr(r->out, "note         nothing is kept in the memory flash"), "%s%s", r->out,
              r->err);
}

// A plan for a board with two memories for values names both, with what is in each.
Test(plan_command, values_are_in_each_memory_of_a_board) {
    json_t *plan = berth_run_json("plan " DIGITS " --dim batch=1 --target 'cpu -arch=cortex-m4' "
                                  "--runtime bare --memory sram=64KiB,dtcm=1KiB --format=json");
    size_t index = 0;
    const json_t *pool = NULL;
    json_int_t bytes = 0;
    json_array_foreach(json_object_get(plan, "memory"), index, pool) {
        if (strcmp(json_string_value(json_object_get(pool, "memory")), "dtcm") != 0) continue;
        cr_expect_str_eq(json_string_value(json_object_get(pool, "usage")), "workspace");
        bytes += json_integer_value(json_object_get(pool, "peak_bytes"));
    }
    cr_expect(bytes > 0 && bytes <= 1024, "%d bytes in dtcm", (int)bytes);
    json_decref(plan);
}

// Constants in a store: the plan says where they are, and that kernels wait for them.
Test(plan_command, constants_of_a_board_are_in_its_store) {
    static const char command[] =
        "plan " DIGITS " --dim batch=1 --target 'cpu -arch=cortex-m4' --runtime bare "
        "--memory sram=32KiB,flash=8KiB,store=1MiB";
    char as_json[512];
    snprintf(as_json, sizeof(as_json), "%s --format=json", command);
    json_t *plan = berth_run_json(as_json);
    size_t index = 0;
    const json_t *pool = NULL;
    double stored = 0;
    json_array_foreach(json_object_get(plan, "memory"), index, pool) {
        bool in_store = strcmp(json_string_value(json_object_get(pool, "memory")), "store") == 0;
        bool is_store = strcmp(json_string_value(json_object_get(pool, "usage")), "store") == 0;
        cr_expect_eq(in_store, is_store);
        if (in_store) stored += number(pool, "peak_bytes");
    }
    const json_t *streamed = json_array_get(json_object_get(plan, "streamed"), 0);
    cr_expect_gt(stored, 0);
    cr_expect_eq(stored, number(streamed, "loaded_bytes"));
    json_decref(plan);
    const result *r = berth_run(command);
    cr_expect(strstr(r->out, " ms, for which kernels wait; the run takes "), "%s", r->out);
}

// The digits' 26 KiB of weights in less: what stays and what is read adds up, and the refusal of too
// little names a budget that does.
Test(plan_command, constants_that_exceed_a_budget_are_read_in_each_run) {
    json_t *plan = berth_run_json("plan " DIGITS " --memory cpu=28KiB --format=json");
    const json_t *streamed = json_array_get(json_object_get(plan, "streamed"), 0);
    const json_t *loads = json_object_get(streamed, "loads"), *load = NULL;
    cr_assert_eq(json_array_size(json_object_get(plan, "streamed")), 1);
    cr_expect_str_eq(json_string_value(json_object_get(streamed, "memory")), "host");
    cr_expect_eq(number(streamed, "budget_bytes"), 28 << 10);
    double bytes = 0;
    size_t index = 0;
    json_array_foreach(loads, index, load) bytes += number(load, "bytes");
    cr_expect_gt(bytes, 0);
    cr_expect_eq(bytes, number(streamed, "loaded_bytes"));
    cr_expect_eq(number(streamed, "constant_bytes"), bytes + number(streamed, "resident_bytes"));
    cr_expect_geq(number(streamed, "run_ms"), number(streamed, "unlimited_ms"));
    const json_t *pool = NULL;
    double planned = 0;
    json_array_foreach(json_object_get(plan, "memory"), index,
                       pool) if (strcmp(json_string_value(json_object_get(pool, "usage")),
                                        "store") != 0) planned += number(pool, "peak_bytes");
    cr_expect_leq(planned, 28 << 10);
    json_decref(plan);
    const result *r = berth_run("plan " DIGITS " -q --memory cpu=28KiB");
    cr_expect(strstr(r->out, "budget       host: 28.0 KiB; of constants of "), "%s", r->out);
    cr_expect(strstr(r->out, "  read       "), "%s", r->out);
    berth_run_fails("plan " DIGITS " --memory cpu=1KiB", 1, "no smaller one would do");
    berth_run_fails("plan " DIGITS " --memory cpu", 2, "--memory takes NAME=BYTES,...");
    berth_run_fails("plan " DIGITS " --memory cpu=1MiB,=2", 2, "--memory takes NAME=BYTES,...");
    berth_run_fails("plan " DIGITS " --memory cpu=1X", 1, "a number of bytes");
    berth_run_fails("plan " DIGITS " --memory gpu=1MiB", 1,
                    "there is no memory or device 'gpu'; there are host, cpu:0");
}

Test(plan_command, a_sweep_goes_down_to_the_smallest_budget) {
    json_t *sweep = berth_run_json("plan " DIGITS " --memory-sweep --format=json");
    const json_t *points = json_object_get(sweep, "points");
    size_t count = json_array_size(points);
    cr_assert_gt(count, 2);
    for (size_t i = 0; i < count; ++i) {
        const json_t *point = json_array_get(points, i);
        cr_expect_leq(number(point, "planned_bytes"), number(point, "budget_bytes"));
        cr_expect_geq(number(point, "predicted_ms"),
                      number(json_array_get(points, 0), "predicted_ms"));
        if (i > 0)
            cr_expect_lt(number(point, "budget_bytes"),
                         number(json_array_get(points, i - 1), "budget_bytes"));
    }
    cr_expect_eq(number(json_array_get(points, 0), "read_bytes"), 0);
    cr_expect_eq(number(json_array_get(points, count - 1), "budget_bytes"),
                 number(sweep, "least_bytes"));
    char less[128];
    snprintf(less, sizeof(less), "plan " DIGITS " --memory host=%d",
             (int)number(sweep, "least_bytes") - 1);
    berth_run_fails(less, 1, "no smaller one would do");
    json_decref(sweep);
    const result *r = berth_run("plan " DIGITS " --memory-sweep=cpu:0 --format=svg");
    size_t circles = 0;
    for (const char *at = r->out; (at = strstr(at, "<circle ")) != NULL; ++at) ++circles;
    cr_expect_eq(circles, count);
    cr_expect(strstr(r->out, "</svg>"), "%s", r->out);
    r = berth_run("plan " DIGITS " -q --memory-sweep");
    cr_expect(strstr(r->out, "the smallest budget that does: "), "%s", r->out);
    // A budget of the memory that is swept is one of those that the sweep sets itself.
    r = berth_run("plan " DIGITS " -q --memory cpu=64KiB --memory-sweep=cpu:0");
    cr_expect(r->exit_status == 0 && strstr(r->out, "the smallest budget that does"), "%s", r->err);
    berth_run_fails("plan " DIGITS " --memory-sweep --format=dot", 2, "--memory-sweep has");
    berth_run_fails("plan " DIGITS " --memory-sweep=gpu", 1, "no memory or device \"gpu\"");
}

#define M4 "plan " DIGITS " --dim batch=1 --target 'cpu -arch=cortex-m4' --runtime bare "

// The RAM of a board is swept from what is wanted, however large the chip's is, and so is its flash, beside a store.
Test(plan_command, a_sweep_of_a_board) {
    json_t *sweep = berth_run_json(M4 "--memory-sweep --format=json");
    const json_t *points = json_object_get(sweep, "points"), *point = NULL;
    int least = (int)number(sweep, "least_bytes");
    size_t index = 0;
    cr_expect_str_eq(json_string_value(json_object_get(sweep, "memory")), "sram");
    cr_expect_lt(number(json_array_get(points, 0), "planned_bytes"), 26 << 10, "with constants");
    json_decref(sweep);
    char command[256];
    snprintf(command, sizeof(command), M4 "-q --memory sram=%d", least);
    const result *r = berth_run(command);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), M4 "-q --memory sram=%d", least - least / 64 - 32);
    berth_run_fails(command, 1, "memory \"sram\" needs");
    sweep = berth_run_json(M4 "--memory sram=32KiB,store=1MiB --memory-sweep=flash --format=json");
    points = json_object_get(sweep, "points");
    cr_assert_gt(json_array_size(points), 2);
    double read = -1;
    json_array_foreach(points, index, point) {
        cr_expect_leq(number(point, "planned_bytes"), number(point, "budget_bytes"));
        cr_expect_geq(number(point, "read_bytes"), read);
        read = number(point, "read_bytes");
    }
    cr_expect_gt(read, 0);
    cr_expect_eq(number(json_array_get(points, 0), "read_bytes"), 0);
    json_decref(sweep);
}

// Of a model without control flow: as one static list, whose parts the executor vm compiles when it runs.
Test(plan_command, models_of_the_executor_vm) {
    const result *r = berth_run("plan " DIGITS " --dim batch=4 --target cpu --executor vm -q");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_eq(
        berth_run("explain " DIGITS " --dim batch=4 --target cpu --executor vm -q")->exit_status,
        0);
    berth_run_fails("tune " DIGITS
                    " --dim batch=4 --target cpu --executor vm --budget 1s -o no.jsonl",
                    1, "this needs one program of the whole");
}

// `berth memory plot` draws a plan as well as a file, with the options of `berth plan`.
Test(plan_command, memory_is_drawn) {
    const result *r = berth_run("memory plot " DIGITS GPU_AND_CPU);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_eq(strncmp(r->out, "<svg ", 5), 0);
    cr_assert(strstr(r->out, "pool \"opencl:0, "), "a panel for each device's workspace");
    cr_assert(strstr(r->out, ">peak: "));
    berth_run_fails("memory plot " DIGITS " --dim batch=1 --no-such", 2, "no-such");
    berth_run_fails("memory plot tests/fuzz/corpus/onnx_edit/old.onnx", 1,
                    "no memory plan to draw");
}

// Operations of text have no names: reports say where they are, and a pin takes that.
Test(plan_command, operations_of_text) {
    char path[64], command[160];
    snprintf(path, sizeof(path), "/tmp/berth-plan-text-%d.txt", (int)getpid());
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("module \"short\"\ngraph @main(%x: f32[16,64], %w: f32[64,64]) {\n  %y = matmul(%x, %w)\n"
          "  %z = softmax(%y) {axis = 1}\n  return %z\n}\n",
          file);
    fclose(file);
    snprintf(command, sizeof(command), "plan %s --target opencl,cpu --pin 4:3=cpu:0 --format=json",
             path);
    json_t *plan = berth_run_json(command);
    remove(path);
    const json_t *operations = json_object_get(plan, "operations");
    cr_assert_eq(json_array_size(operations), 2);
    static const char *const expected[][3] = {{"3:3", "matmul"}, {"4:3", "softmax"}};
    for (size_t i = 0; i < 2; ++i) {
        const json_t *operation = json_array_get(operations, i);
        cr_expect_str_eq(json_string_value(json_object_get(operation, "node")), expected[i][0]);
        cr_expect_str_eq(json_string_value(json_object_get(operation, "op")), expected[i][1]);
    }
    json_decref(plan);
}
