// berth calibrate, and plans that predict by what it wrote.
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

// `text` with FOLDER in place of each '@'.
static const char *command(const char *text, const char *folder) {
    static char out[1024];
    size_t length = 0;
    for (; *text && length + 64 < sizeof(out); ++text)
        length +=
            (size_t)snprintf(out + length, sizeof(out) - length, "%.*s",
                             *text == '@' ? (int)strlen(folder) : 1, *text == '@' ? folder : text);
    return out;
}

static void shell(const char *text, const char *folder) {
    cr_assert_eq(system(command(text, folder)), 0, "%s", text);
}

static const char *temporary_folder(void) {
    static char folder[] = "/tmp/berth-calibrate-XXXXXX";
    strcpy(folder, "/tmp/berth-calibrate-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

// Operations by the kind of their figure.
static int count_costs(const json_t *plan, const char *kind) {
    int count = 0;
    size_t i = 0;
    json_t *operation = NULL;
    json_array_foreach(json_object_get(plan, "operations"), i, operation) {
        const char *cost = json_string_value(json_object_get(operation, "cost"));
        cr_assert_not_null(cost);
        count += strcmp(cost, kind) == 0;
        if (strcmp(cost, "none") == 0)
            cr_assert_eq(json_number_value(json_object_get(operation, "time_us")), 0);
    }
    return count;
}

// A calibrated model's own kernels are measured ones; another machine's are not touched by that.
Test(calibrate_command, plans_say_where_times_come_from) {
    const char *folder = temporary_folder();
    json_t *report = berth_run_json(command("calibrate " DIGITS " --target cpu --duration 50ms -q "
                                            "-o @/c.jsonl --format=json",
                                            folder));
    cr_assert_gt(json_integer_value(json_object_get(report, "records")), 0);
    cr_assert_eq(json_integer_value(json_object_get(report, "kept")), 0);
    json_decref(report);
    json_t *plan = berth_run_json(
        command("plan " DIGITS " --target cpu --costs @/c.jsonl -q --format=json", folder));
    cr_expect_gt(count_costs(plan, "measured"), 0);
    cr_expect_eq(count_costs(plan, "interpolated") + count_costs(plan, "analytic"), 0);
    json_decref(plan);
    plan = berth_run_json(
        command("plan " DIGITS " --target arm/rasp4b --costs @/c.jsonl -q --format=json", folder));
    cr_expect_eq(count_costs(plan, "measured") + count_costs(plan, "interpolated"), 0);
    cr_expect_gt(count_costs(plan, "analytic"), 0);
    json_decref(plan);
    plan = berth_run_json("plan " DIGITS " --target cpu --costs none -q --format=json");
    cr_expect_eq(count_costs(plan, "measured"), 0);
    json_decref(plan);
    shell("rm -r @", folder);
}

// The sizes that were measured of copies from one kind of device to another, and the smallest and the
// largest.
static int copies_in(const char *path, const char *from, const char *to, double *out_least,
                     double *out_most) {
    char line[8192];
    int count = 0;
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file)) {
        json_t *record = json_loads(line, 0, NULL);
        cr_assert_not_null(record);
        json_t *source = json_object_get(record, "from");
        const char *target =
            json_string_value(json_object_get(json_object_get(record, "target"), "kind"));
        double bytes = json_number_value(json_object_get(record, "bytes"));
        if (source && strcmp(json_string_value(json_object_get(source, "kind")), from) == 0 &&
            strcmp(target, to) == 0) {
            *out_least = count ? fmin(*out_least, bytes) : bytes;
            *out_most = count ? fmax(*out_most, bytes) : bytes;
            count++;
        }
        json_decref(record);
    }
    fclose(file);
    return count;
}

// Copies have times of their own in both directions, whatever sizes the model copies.
Test(calibrate_command, copies_to_and_from_a_device) {
    const char *folder = temporary_folder();
    bool there = berth_run("run " DIGITS " --target opencl,cpu -q")->exit_status == 0;
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    if (!there && !(required && strstr(required, "opencl"))) cr_skip("skipped: this needs OpenCL");
    json_decref(berth_run_json(command("calibrate " DIGITS " --target opencl,cpu --duration 50ms "
                                       "-q -o @/c.jsonl --format=json",
                                       folder)));
    const char *path = command("@/c.jsonl", folder);
    double least = 0, most = 0;
    cr_expect_geq(copies_in(path, "cpu", "opencl", &least, &most), 4);
    cr_expect(least <= 64 && most >= 4e6, "%g to %g bytes", least, most);
    cr_expect_geq(copies_in(path, "opencl", "cpu", &least, &most), 4);
    cr_expect(least <= 64 && most >= 4e6, "%g to %g bytes", least, most);
    shell("rm -r @", folder);
}

// A file merged with itself is the same; measuring again replaces what is there of this work.
// What goes from one device to another of the same memory is no copy, but a thread must be woken: that takes longer than a call,
// also where the caller happens to be on the other device's core.
Test(calibrate_command, handing_over_to_a_device) {
    cpu_set_t all;
    int here[2], count = 0;
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int i = 0; i < CPU_SETSIZE && count < 2; ++i)
        if (CPU_ISSET((size_t)i, &all)) here[count++] = i;
    if (count < 2) cr_skip_test("one processor");
    const char *folder = temporary_folder();
    char text[256], line[4096];
    snprintf(text, sizeof(text),
             "calibrate " DIGITS " --target 'cpu -cores=1 -cpuset=%d,cpu -cores=1 -cpuset=%d' "
             "--duration 1ms -q -o @/c.jsonl --format=json",
             here[0], here[1]);
    json_decref(berth_run_json(command(text, folder)));
    FILE *file = fopen(command("@/c.jsonl", folder), "r");
    cr_assert_not_null(file);
    int found = 0;
    while (fgets(line, sizeof(line), file)) {
        json_t *record = json_loads(line, 0, NULL);
        if (json_object_get(record, "from")) {
            ++found;
            cr_expect_eq(json_number_value(json_object_get(record, "bytes")), 0);
            cr_expect_gt(json_number_value(json_object_get(record, "ns")), 2000, "%s", line);
        }
        json_decref(record);
    }
    fclose(file);
    cr_expect_eq(found, 1, "%d", found);
    shell("rm -r @", folder);
}

Test(calibrate_command, merging) {
    const char *folder = temporary_folder();
    const char *measure =
        "calibrate " DIGITS " --target cpu --duration 10ms -q -o @/a.jsonl --format=json";
    json_decref(berth_run_json(command(measure, folder)));
    json_t *report = berth_run_json(command(measure, folder));
    cr_expect_eq(json_integer_value(json_object_get(report, "kept")), 0);
    json_decref(report);
    const char *merge = command("calibrate --merge @/a.jsonl @/a.jsonl -o @/b.jsonl", folder);
    cr_assert_eq(berth_run(merge)->exit_status, 0);
    shell("cmp -s @/a.jsonl @/b.jsonl", folder);
    shell("rm -r @", folder);
}

// Without -o it is the file beside the kernels, which plans then read by themselves.
Test(calibrate_command, default_file) {
    const char *folder = temporary_folder();
    const result *made = berth_run(
        command("calibrate " DIGITS " --target cpu --duration 10ms -q --cache-dir @", folder));
    cr_assert_eq(made->exit_status, 0, "%s", made->err);
    json_t *plan = berth_run_json(
        command("plan " DIGITS " --target cpu -q --format=json --cache-dir @", folder));
    cr_expect_gt(count_costs(plan, "measured"), 0);
    json_decref(plan);
    shell("rm -r @", folder);
}

Test(calibrate_command, what_is_wrong_is_said) {
    const char *folder = temporary_folder();
    berth_run_fails("calibrate --merge -o /tmp/x", 2, "--merge takes files of costs");
    berth_run_fails("calibrate --merge a.jsonl", 2, "--merge needs -o");
    berth_run_fails("plan " DIGITS " --costs /nowhere.jsonl", 1, "/nowhere.jsonl");
    shell("echo nonsense > @/c.jsonl", folder);
    berth_run_fails(command("plan " DIGITS " --costs @/c.jsonl", folder), 1, "c.jsonl:1:");
    shell("rm -r @", folder);
}
