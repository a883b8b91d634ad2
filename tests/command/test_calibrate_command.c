// berth calibrate, and plans that predict by what it wrote.
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

// A file merged with itself is the same; measuring again replaces what is there of this work.
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
