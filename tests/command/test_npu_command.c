// Devices that attributes describe: planned, simulated, and refused where code is asked for.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

static char folder[] = "/tmp/berth_npu_XXXXXX";

static const char *make(const char *name) {
    static char path[64];
    char text[256];
    if (strstr(folder, "XXXXXX")) cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.onnx", folder);
    snprintf(text, sizeof(text), "python3 tests/vta/make_models.py %s %s", name, path);
    cr_assert_eq(system(text), 0);
    return path;
}

static json_t *ask(const char *command, const char *name, const char *target) {
    char text[1024];
    snprintf(text, sizeof(text), "%s %s --target '%s' --format=json -q --costs none", command,
             make(name), target);
    return berth_run_json(text);
}

static const char *text_of(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

// Each operation of the plan with its device, and how many there are of the device.
static uint32_t count_on(const json_t *plan, const char *op, const char *device) {
    uint32_t count = 0;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(plan, "operations"), i, item) count +=
        strcmp(text_of(item, "op"), op) == 0 && strcmp(text_of(item, "device"), device) == 0;
    return count;
}

#define ETHOS "arm/corstone-300-ethos-u55-256"
#define SYSTOLIC "npu -mac_inputs=32 -mac_outputs=32 -sram_bytes=524288 -clock_hz=1000000000,cpu"

// Convolutions, dense layers and sums go to the unit; what it does not take stays on the host, with
// the reason. Each operation there states what it takes of the memory inside.
Test(npu_command, plans) {
    json_t *plan = ask("plan", "residual_small", ETHOS);
    cr_expect_eq(count_on(plan, "Conv", "m55"), 0);
    cr_expect_eq(count_on(plan, "Conv", "npu"), 6);
    cr_expect_eq(count_on(plan, "Add", "npu"), 2);
    cr_expect_eq(count_on(plan, "GlobalAveragePool", "npu"), 1);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(plan, "operations"), i, item) {
        json_t *buffer = json_array_get(json_object_get(item, "buffers"), 0);
        bool works = strcmp(text_of(item, "op"), "Conv") == 0;
        if (works) cr_assert_not_null(buffer, "%s", text_of(item, "node"));
        if (!buffer) continue;
        cr_expect_str_eq(text_of(buffer, "scope"), "npu.sram");
        cr_expect_str_eq(text_of(buffer, "memory"), "npu.sram");
        cr_expect_eq(json_integer_value(json_object_get(buffer, "capacity_bytes")), 49152);
        cr_expect_leq(json_integer_value(json_object_get(buffer, "used_bytes")), 49152);
        cr_expect_gt(json_integer_value(json_object_get(buffer, "used_bytes")), 0);
    }
    json_decref(plan);
    char text[256];
    snprintf(text, sizeof(text), "plan %s --target " ETHOS, make("residual_small"));
    const result *r = berth_run(text);
    cr_expect(strstr(r->out, "of 48.0 KiB"), "%s", r->out);
    snprintf(text, sizeof(text),
             "plan %s --target 'npu -operators=qlinear_conv,qlinear_add -sram_bytes=65536,cpu'",
             make("residual_small"));
    r = berth_run(text);
    cr_expect(strstr(r->out, "npu:0 cannot: qlinear_average_pool is not among its operators"), "%s",
              r->out);
    snprintf(text, sizeof(text), "rm -rf %s", folder);
    cr_expect_eq(system(text), 0);
}

static double end_of(const json_t *simulated, const char *step) {
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(simulated, "events"), i, event) {
        if (strncmp(text_of(event, "step"), step, strlen(step)) == 0)
            return json_number_value(json_object_get(event, "end_us")) -
                   json_number_value(json_object_get(event, "start_us"));
    }
    cr_assert_fail("no step %s", step);
    return 0;
}

// A simulated step takes as long as the plan says of its operation, and no less than its products at
// the unit's peak: 16 x 32 x 9 x 144 at 256 and at 1024 in a cycle.
Test(npu_command, simulates) {
    static const struct {
        const char *target;
        double least_us;
    } rows[] = {{ETHOS, 16.0 * 32 * 9 * 144 / 256 / 500},
                {SYSTOLIC, 16.0 * 32 * 9 * 144 / 1024 / 1000}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); ++k) {
        json_t *plan = ask("plan", "conv", rows[k].target);
        json_t *simulated = ask("simulate", "conv", rows[k].target);
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(plan, "operations"), i, item) {
            if (strcmp(text_of(item, "op"), "Conv") != 0) continue;
            double us = json_number_value(json_object_get(item, "time_us"));
            cr_expect_float_eq(end_of(simulated, text_of(item, "node")), us, 1e-6);
            cr_expect_geq(us, rows[k].least_us);
        }
        json_decref(plan);
        json_decref(simulated);
    }
    char text[64];
    snprintf(text, sizeof(text), "rm -rf %s", folder);
    cr_expect_eq(system(text), 0);
}

// What does not fit names the operation, the memory and the bytes; no code is made.
Test(npu_command, refuses) {
    char text[512];
    snprintf(text, sizeof(text), "plan %s --target 'npu -sram_bytes=512,cpu'", make("conv"));
    const result *r = berth_run(text);
    cr_expect(strstr(r->out, "does not fit npu.sram: the smallest tile") &&
                  strstr(r->out, "and there are 512"),
              "%s", r->out);
    snprintf(text, sizeof(text), "build %s --target " ETHOS " -o %s/m.berth", make("conv"), folder);
    berth_run_fails(text, 1, "there is no code generator for devices of kind npu (npu)");
    snprintf(text, sizeof(text), "run %s --target npu,cpu", make("conv"));
    berth_run_fails(text, 1, "there is no code generator for devices of kind npu (npu:0)");
    // What else helps is worded by the command.
    berth_run_fails(text, 1, "; `berth plan` plans without code; `berth simulate`");
    snprintf(text, sizeof(text), "rm -rf %s", folder);
    cr_expect_eq(system(text), 0);
}
