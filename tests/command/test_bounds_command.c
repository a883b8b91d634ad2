// Dimensions with bounds (--dim NAME=LEAST..MOST) in the commands that run, plan and measure.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

#define DIGITS "examples/digits/digits.onnx"

Test(bounds_command, a_model_runs_at_the_most_of_its_bounds) {
    const result *r = berth_run("run " DIGITS " --dim batch=2..5");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "probabilities f32[5,10]"), "%s", r->out);
    cr_assert_not_null(strstr(r->err, "run with the most of its bounds"), "%s", r->err);
}

Test(bounds_command, extents_outside_are_refused) {
    berth_run_fails("run " DIGITS " --dim batch=2..5 --shape 6x1x8x8", 1,
                    "dimension batch is 6, outside its bounds 2..5");
    berth_run_fails("run " DIGITS " --dim batch=2..5 --dim image.0=1", 1,
                    "dimension batch is 1, outside its bounds 2..5");
    berth_run_fails("run " DIGITS " --dim bach=2..5", 1, "its symbols are: batch");
    berth_run_fails("tune " DIGITS " --dim batch=2..5", 2, "bounds are for run, build");
}

Test(bounds_command, measured_at_the_most) {
    json_t *json = berth_run_json("bench " DIGITS " --dim batch=2..4 --count 3 --format=json");
    cr_assert_eq(json_integer_value(json_object_get(json, "runs")), 3);
    json_decref(json);
}

Test(bounds_command, a_module_keeps_its_bounds) {
    char file[] = "/tmp/berth-bounds-XXXXXX", command[256];
    close(mkstemp(file));
    const result *r = berth_run("opt " DIGITS " --dim batch=2..5");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    FILE *written = fopen(file, "w");
    cr_assert(written && fputs(r->out, written) >= 0 && fclose(written) == 0);
    snprintf(command, sizeof(command), "run %s --executor vm", file);
    r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "probabilities f32[5,10]"), "%s", r->out);
    unlink(file);
}

// ---- plans --------------------------------------------------------------------------------------

// "4096*v0 + 128", where v0 is `v`; `*at` goes behind it.
static long long sum_at(const char **at, long long v) {
    long long sum = 0;
    for (;;) {
        long long product = 1;
        for (;;) {
            while (**at == ' ') ++*at;
            if (strncmp(*at, "v0", 2) == 0) {
                product *= v;
                *at += 2;
            } else {
                char *end = NULL;
                product *= strtoll(*at, &end, 10);
                cr_assert(end != *at, "no number at \"%s\"", *at);
                *at = end;
            }
            if (**at != '*') break;
            ++*at;
        }
        sum += product;
        if (strncmp(*at, " + ", 3) != 0) return sum;
        *at += 3;
    }
}

static long long value_of(const char *text, long long v) {
    if (strncmp(text, "max(", 4) != 0) return sum_at(&text, v);
    long long most = 0;
    text += 3;
    do {
        ++text;
        long long value = sum_at(&text, v);
        if (value > most) most = value;
    } while (*text == ',');
    return most;
}

// The expression gives what is said of the ends, and, at the most, what a plan for that batch alone allocates.
Test(bounds_command, a_plan_says_the_workspace_of_all_shapes) {
    json_t *json = berth_run_json("plan " DIGITS " --dim batch=1..62 --format=json"), *row = NULL;
    bool has_most = false, has_expression = false;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "shapes"), i, row) {
        const char *shapes = json_string_value(json_object_get(row, "shapes"));
        const char *text = json_string_value(json_object_get(row, "expression"));
        const char *bounds = strrchr(shapes, ',');
        long long least = 0, most = 0;
        if (!text || sscanf(bounds, ", %lld..%lld", &least, &most) != 2) continue;
        has_expression = true;
        cr_assert_lt(least, most);
        cr_assert_eq(value_of(text, least), json_integer_value(json_object_get(row, "least_bytes")),
                     "%s", text);
        cr_assert_eq(value_of(text, most), json_integer_value(json_object_get(row, "most_bytes")),
                     "%s", text);
        has_most |= most == 62;
    }
    cr_assert(has_expression);
    cr_assert(has_most, "no program serves the largest batch and others");
    json_decref(json);
}

Test(bounds_command, a_built_program_says_its_bounds) {
    char file[] = "/tmp/berth-bounds-XXXXXX", command[256];
    close(mkstemp(file));
    snprintf(command, sizeof(command), "build " DIGITS " --dim batch=9..13 -o %s", file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), "inspect %s", file);
    r = berth_run(command);
    cr_assert_not_null(strstr(r->out, "f32[batch,1,8,8], dimension 0 within 9..13"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "workspace of cpu:0: "), "%s", r->out);
    unlink(file);
}
