// Machines of more than 64 devices, from the description to the run.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

static char machine[] = "/tmp/berth-many-XXXXXX";
static char model[] = "/tmp/berth-many-model-XXXXXX";
static char arguments[512];

static FILE *open_new(char *path) {
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    return fdopen(fd, "w");
}

static void tear_down(void) {
    unlink(machine);
    unlink(model);
}

TestSuite(many_devices_command, .fini = tear_down);

// Devices d0, d1, ...: all are alike, but for one.
static void write_machine(int count, const char *usual, int other, const char *others,
                          const char *rest) {
    FILE *file = open_new(machine);
    fprintf(file, "{\"kind\": \"multi\", \"devices\": [");
    for (int i = 0; i < count; ++i)
        fprintf(file, "%s{\"name\": \"d%d\", \"target\": \"%s\"}", i ? ", " : "", i,
                i == other ? others : usual);
    fprintf(file, "]%s}", rest);
    fclose(file);
}

static void write_model(const char *text) {
    FILE *file = open_new(model);
    fputs(text, file);
    fclose(file);
}

// All operations of a plan are there.
static void expect_all_on(const json_t *plan, const char *device, const char *strategy) {
    size_t i = 0;
    const json_t *operation = NULL;
    json_array_foreach(json_object_get(plan, "operations"), i, operation) cr_expect_str_eq(
        json_string_value(json_object_get(operation, "device")), device, "%s", strategy);
    cr_expect_gt(i, 0);
}

// Only one device of 100 has 64-bit floats.
Test(many_devices_command, an_operation_goes_where_it_can_run) {
    write_machine(100, "opencl -lacks_f64=true", 90, "opencl", ", \"host\": {\"kind\": \"cpu\"}");
    write_model("module \"f64\"\ngraph @main(%x: f64[8]) {\n  %l = relu(%x)\n  %s = neg(%l)\n"
                "  return %s\n}\n");
    static const char *const strategies[] = {"default", "auto", "search", "heft"};
    for (size_t i = 0; i < sizeof(strategies) / sizeof(strategies[0]); ++i) {
        snprintf(arguments, sizeof(arguments),
                 "plan %s --target %s --costs none --strategy %s --format=json", model, machine,
                 strategies[i]);
        json_t *plan = berth_run_json(arguments);
        expect_all_on(plan, "d90", strategies[i]);
        json_decref(plan);
    }
    snprintf(arguments, sizeof(arguments), "simulate %s --target %s --costs none", model, machine);
    const result *r = berth_run(arguments);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->out, "d90"));
    snprintf(arguments, sizeof(arguments), "plan %s --target %s --costs none --pin '*=d89'", model,
             machine);
    cr_expect_eq(berth_run(arguments)->exit_status, 1, "d89 has no 64-bit floats");
}

// One of 100 devices starts kernels much faster: who weighs times takes that one.
Test(many_devices_command, the_fastest_is_found) {
    write_machine(100, "opencl -dispatch_ns=1000000", 77, "opencl -dispatch_ns=100",
                  ", \"host\": {\"kind\": \"cpu\"}");
    snprintf(arguments, sizeof(arguments),
             "plan " DIGITS " --dim batch=64 --target %s --costs none --strategy auto", machine);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->out, "\nd77          Conv "), "%s", r->out);
    cr_expect(!strstr(r->out, "\nd0           Conv "));
}

// 100 nodes of 1 ms on 100 devices: each has one, at 1 ms, and no placement is better.
Test(many_devices_command, a_placement_uses_all_devices) {
    FILE *file = open_new(model);
    fprintf(file, "{\"maxSizePerFPGA\": 1000, \"maxFPGAs\": 100, \"maxCPUs\": 0, \"nodes\": [");
    for (int i = 0; i < 100; ++i)
        fprintf(file, "%s{\"id\": %d, \"cpuLatency\": 5, \"fpgaLatency\": 1, \"size\": 1}",
                i ? ", " : "", i);
    fprintf(file, "], \"edges\": []}");
    fclose(file);
    snprintf(arguments, sizeof(arguments), "place %s --format=json", model);
    json_t *answer = berth_run_json(arguments);
    cr_expect_float_eq(json_number_value(json_object_get(answer, "value")), 1, 1e-9);
    cr_expect(json_is_true(json_object_get(answer, "proven")));
    json_decref(answer);
}

// A program of 70 devices whose kernels are on device 68, which shares the host's memory, is built, read
// and run.
Test(many_devices_command, a_program_runs, .timeout = 300) {
    write_machine(70, "cpu -cores=1", 0, "cpu -cores=1",
                  ", \"host\": \"d0\", \"pins\": [{\"match\": \"*\", \"device\": \"d68\"}]");
    static char program[] = "/tmp/berth-many-program-XXXXXX";
    fclose(open_new(program));
    json_t *alone = berth_run_json("run " DIGITS " --format=json");
    snprintf(arguments, sizeof(arguments), "build " DIGITS " --target %s -o %s", machine, program);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(arguments, sizeof(arguments), "run %s --format=json", program);
    json_t *run = berth_run_json(arguments);
    const json_t *outputs[] = {json_object_get(run, "outputs"), json_object_get(alone, "outputs")};
    const json_t *best[2];
    for (int i = 0; i < 2; ++i)
        best[i] = json_array_get(json_object_get(json_array_get(outputs[i], 0), "top"), 0);
    cr_expect(json_equal(json_object_get(best[0], "index"), json_object_get(best[1], "index")));
    cr_expect_float_eq(json_number_value(json_object_get(best[0], "value")),
                       json_number_value(json_object_get(best[1], "value")), 1e-5);
    const char *name = NULL;
    json_t *device = NULL;
    json_t *devices = json_object_get(run, "devices");
    json_object_foreach(devices, name, device) {
        bool busy = json_integer_value(json_object_get(device, "kernels")) > 0;
        cr_expect_eq(busy, strcmp(name, "d68") == 0, "%s", name);
    }
    cr_expect_eq(json_object_size(devices), 70u);
    json_decref(run);
    json_decref(alone);
    unlink(program);
}

// Eight products, each with weights of 256 KiB and 64 KiB in and out.
static void write_products(void) {
    FILE *file = open_new(model);
    fprintf(file, "module \"products\"\ngraph @main(%%r0: f32[64,256]) {\n");
    for (int i = 0; i < 8; ++i) {
        fprintf(file, "  %%w%d = constant() {value = f32[256,256] (%d", i, i + 1);
        for (int k = 1; k < 256 * 256; ++k) fprintf(file, ",%d", i + 1);
        fprintf(file, ")}\n  %%h%d = matmul(%%r%d, %%w%d)\n  %%r%d = relu(%%h%d)\n", i, i, i, i + 1,
                i);
    }
    fprintf(file, "  return %%r8\n}\n");
    fclose(file);
}

static json_t *on_eight_devices(const char *command, const char *parallel) {
    static const char budgets[] = "d0=448KiB,d1=448KiB,d2=448KiB,d3=448KiB,d4=448KiB,d5=448KiB,"
                                  "d6=448KiB,d7=448KiB";
    snprintf(arguments, sizeof(arguments),
             "%s %s --target %s --costs none --parallel %s --memory %s --format=json", command,
             model, machine, parallel, budgets);
    return berth_run_json(arguments);
}

static double predicted_ms(const char *parallel) {
    json_t *plan = on_eight_devices("plan", parallel);
    double ms = json_number_value(json_object_get(plan, "predicted_ms"));
    json_decref(plan);
    return ms;
}

// Each device has room for the weights of one product: `auto` spreads them over all, since that is less
// time than to read them again and again, and no device holds more than its budget.
Test(many_devices_command, auto_spreads_a_model_over_eight_devices, .timeout = 120) {
    write_machine(8, "opencl", 0, "opencl", ", \"host\": {\"kind\": \"cpu\"}");
    write_products();
    json_t *plan = on_eight_devices("plan", "auto");
    double ms = json_number_value(json_object_get(plan, "predicted_ms"));
    double pipeline_ms = predicted_ms("pipeline");
    cr_expect_lt(pipeline_ms, predicted_ms("none"));
    cr_expect_float_eq(ms, pipeline_ms, 1e-9);
    json_int_t held[8] = {0};
    size_t i = 0;
    const json_t *pool = NULL;
    json_array_foreach(json_object_get(plan, "memory"), i, pool) {
        const char *memory = json_string_value(json_object_get(pool, "memory"));
        if (memory[0] == 'd' && memory[1] >= '0' && memory[1] < '8')
            held[memory[1] - '0'] += json_integer_value(json_object_get(pool, "peak_bytes"));
    }
    for (int d = 0; d < 8; ++d)
        cr_expect(held[d] >= 256 * 1024 && held[d] <= 448 * 1024, "d%d: %" JSON_INTEGER_FORMAT, d,
                  held[d]);
    json_decref(plan);
    json_t *simulation = on_eight_devices("simulate", "auto");
    int kernels[8] = {0};
    const json_t *event = NULL;
    json_array_foreach(json_object_get(simulation, "events"), i, event) {
        const char *on = json_string_value(json_object_get(event, "on"));
        if (!json_is_true(json_object_get(event, "copy")) && on[0] == 'd') kernels[on[1] - '0']++;
    }
    for (int d = 0; d < 8; ++d) cr_expect_eq(kernels[d], 1, "d%d runs %d kernels", d, kernels[d]);
    json_decref(simulation);
}

Test(many_devices_command, hostile_counts_are_refused) {
    write_machine(5000, "cuda", 0, "cuda", "");
    snprintf(arguments, sizeof(arguments), "plan " DIGITS " --target %s", machine);
    berth_run_fails(arguments, 1, "at most 4095 devices are possible, not 5000");
    FILE *file = open_new(model);
    fprintf(file, "{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 5000, \"maxCPUs\": 0, \"nodes\": [], "
                  "\"edges\": []}");
    fclose(file);
    snprintf(arguments, sizeof(arguments), "place %s", model);
    berth_run_fails(arguments, 1, "5000 devices; the limit is 4096");
    file = fopen(model, "w");
    cr_assert_not_null(file);
    fprintf(file, "{\"maxSizePerFPGA\": 1, \"maxFPGAs\": 4096, \"maxCPUs\": 0, \"nodes\": [");
    for (int i = 0; i < 16385; ++i)
        fprintf(file, "%s{\"id\": %d, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"size\": 1}",
                i ? ", " : "", i);
    fprintf(file, "], \"edges\": []}");
    fclose(file);
    berth_run_fails(arguments, 1, "16385 nodes on 4096 devices are 67112960 pairs");
}
