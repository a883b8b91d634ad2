// build --fallback and run: a program for a device that may not be there, as a user has it, with a
// driver that has faults (tests/faults/flaky_driver.c).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

#define DIGITS "examples/digits/digits.onnx --dim batch=2"
#define BUILD "build " DIGITS " --target cpu,opencl --pin op:Conv=opencl:0 "

static char path[64];

static void setup(void) {
    snprintf(path, sizeof(path), "/tmp/berth-fallback-%d.berth", (int)getpid());
}

static void teardown(void) {
    unlink(path);
}

TestSuite(fallback_command, .init = setup, .fini = teardown, .timeout = 300);

static const char *line(const char *before, const char *after) {
    static char text[4096];
    snprintf(text, sizeof(text), "%s %s %s", before, path, after);
    return text;
}

static bool has_opencl(void) {
    json_t *report = berth_run_json("devices --format=json"), *driver = NULL;
    size_t index = 0;
    bool found = false;
    json_array_foreach(json_object_get(report, "drivers"), index, driver) found |=
        strcmp(json_string_value(json_object_get(driver, "kind")), "opencl") == 0 &&
        json_array_size(json_object_get(driver, "devices")) > 0;
    json_decref(report);
    return found;
}

static void build(void) {
    json_t *built = berth_run_json(line(BUILD "--fallback cpu --format=json -o", ""));
    cr_assert_eq(json_integer_value(json_object_get(built, "fallbacks")), 1);
    json_decref(built);
}

// The largest output of what ran, and what the report says of the plan.
static double top(const char *options, const char **out_reason) {
    static char reason[1024];
    const result *r = berth_run(line("run", options));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_t *report = json_loads(r->out, 0, NULL), *fallback = json_object_get(report, "fallback");
    const char *text = json_string_value(json_object_get(fallback, "reason"));
    snprintf(reason, sizeof(reason), "%s", text ? text : "");
    *out_reason = reason;
    // Who reads the terminal knows it, too; --quiet or not.
    cr_assert_eq(strstr(r->err, "warning: fallback 1 of the program (cpu:0)") != NULL, text != NULL,
                 "%s", r->err);
    json_t *output = json_array_get(json_object_get(report, "outputs"), 0);
    double value = json_number_value(json_object_get(output, "max"));
    json_decref(report);
    return value;
}

Test(fallback_command, runs_where_the_devices_are_not) {
    const char *reason = NULL, *faults = "--format=json --quiet --driver " FLAKY_OPENCL;
    build();
    setenv("FLAKY_ABSENT", "1", 1);
    double absent = top(faults, &reason);
    cr_assert(strstr(reason, "a fault of the test: no device"), "%s", reason);
    berth_run_fails(line("run", "--driver " FLAKY_OPENCL " --require opencl:0"), 1, "opencl:0");
    berth_run_fails(line("bench", "--count 1 --driver " FLAKY_OPENCL), 1, "no device");
    unsetenv("FLAKY_ABSENT");
    if (!has_opencl()) cr_skip("no opencl device");
    double first = top("--format=json", &reason);
    cr_assert_str_eq(reason, "");
    cr_assert(first > 0 && absent > first * 0.9999 && absent < first * 1.0001);
}

Test(fallback_command, goes_on_when_the_device_is_lost) {
    const char *reason = NULL;
    if (!has_opencl()) cr_skip("no opencl device");
    build();
    double first = top("--format=json", &reason);
    setenv("FLAKY_LOSE_AFTER", "5", 1);
    double lost = top("--format=json --profile --repeat 20 --driver " FLAKY_OPENCL, &reason);
    cr_assert(strstr(reason, "device lost"), "%s", reason);
    cr_assert(lost > first * 0.9999 && lost < first * 1.0001);
    // What the devices must do, they must do to the end.
    berth_run_fails(line("run", "--repeat 20 --driver " FLAKY_OPENCL " --require opencl:0"), 1,
                    "opencl:0");
    unsetenv("FLAKY_LOSE_AFTER");
}

Test(fallback_command, inspect_lists_the_plans) {
    build();
    json_t *facts = berth_run_json(line("inspect", "--format=json"));
    json_t *fallbacks = json_object_get(facts, "fallbacks"), *target = NULL;
    cr_assert_eq(json_array_size(fallbacks), 1);
    target = json_object_get(json_array_get(fallbacks, 0), "target");
    cr_assert_eq(json_array_size(json_object_get(target, "devices")), 1);
    json_decref(facts);
    const result *r = berth_run(line("inspect", ""));
    cr_assert(strstr(r->out, "fallback 1: "), "%s", r->out);
}

Test(fallback_command, wrong_ones_are_refused) {
    berth_run_fails(line(BUILD "--fallback no/such -o", ""), 1, "fallback \"no/such\"");
    cr_assert_neq(access(path, F_OK), 0);
    berth_run_fails(line("build " DIGITS " --target cpu --executor aot --fallback cpu -o", ""), 1,
                    "--fallback is of program files");
}

// Pins and budgets of a fallback are its own: they are taken, and the first target's are not.
Test(fallback_command, pins_and_budgets_of_a_fallback) {
    berth_run_fails(line(BUILD "--fallback cpu --fallback-pin op:Conv=opencl:0 -o", ""), 1,
                    "fallback \"cpu\": ");
    berth_run_fails(line(BUILD "--fallback cpu --fallback-memory cpu=1KiB -o", ""), 1,
                    "fallback \"cpu\": ");
    berth_run_fails(line(BUILD "--fallback-pin op:Conv=cpu:0 --fallback cpu -o", ""), 2,
                    "--fallback-pin is for the --fallback before it");
    berth_run_fails(line(BUILD "--fallback cpu --fallback-memory cpu=much -o", ""), 1, "much");
    json_t *built = berth_run_json(
        line(BUILD "--memory opencl:0=1MiB --fallback cpu --fallback-memory cpu=1MiB --fallback "
                   "cpu --fallback-pin op:Conv=cpu:0 --format=json -o",
             ""));
    cr_assert_eq(json_integer_value(json_object_get(built, "fallbacks")), 2);
    json_decref(built);
    json_t *shown = berth_run_json(line("inspect", "--format=json"));
    const json_t *first = json_array_get(json_object_get(shown, "fallbacks"), 0);
    char *target = json_dumps(json_object_get(first, "target"), 0);
    cr_assert(strstr(target, "1048576"), "%s", target);
    free(target);
    json_decref(shown);
}
