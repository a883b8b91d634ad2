// Models with control flow, as a user runs them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

// Doubles x as often as n says; n = 3 makes 8 x.
static const char doubling[] =
    "module \"m\"\n"
    "graph @main(%x: f32[4], %n: i64[]) {\n"
    "  %y, %all = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[4]) {\n"
    "    %d = add(%c, %c)\n    return %go, %d, %d\n  }\n"
    "  return %y, %all\n}\n";
// Its condition is computed: no graph executor can run it.
static const char until[] =
    "module \"m\"\n"
    "graph @main(%x: f32[4]) {\n"
    "  %yes = constant() {value = bool[] (1)}\n  %limit = constant() {value = f32[] (100)}\n"
    "  %one = constant() {value = f32[] (1)}\n"
    "  %y = loop(_, %yes, %x) (%i: i64[], %go: bool[], %c: f32[4]) {\n"
    "    %d = abs(%c)\n    %e = add(%d, %one)\n    %s = reduce_sum(%e) {keepdims = 0}\n"
    "    %more = less(%s, %limit)\n    return %more, %e\n  }\n"
    "  return %y\n}\n";

typedef struct folder {
    char path[64];
    char command[512];
} folder;

static void write_model(folder *f, const char *text) {
    char path[96];
    snprintf(f->path, sizeof(f->path), "/tmp/berth-test-XXXXXX");
    cr_assert_not_null(mkdtemp(f->path));
    snprintf(path, sizeof(path), "%s/m.txt", f->path);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

static void clean(folder *f) {
    snprintf(f->command, sizeof(f->command), "%s/m.txt", f->path);
    unlink(f->command);
    rmdir(f->path);
}

// "COMMAND FOLDER/m.txt OPTIONS"
static const char *with(folder *f, const char *command, const char *more) {
    snprintf(f->command, sizeof(f->command), "%s %s/m.txt %s", command, f->path, more);
    return f->command;
}

static const json_t *output(const json_t *json, size_t index) {
    return json_array_get(json_object_get(json, "outputs"), index);
}

Test(vm_command, a_loop_runs_by_itself) {
    folder f;
    write_model(&f, until);
    json_t *json = berth_run_json(with(&f, "run", "--format=json"));
    cr_assert_str_eq(json_string_value(json_object_get(json, "executor")), "vm");
    // The sum passes 100 by at most 4 additions of 1: every element is below 100 / 4 + 1 + 1.
    const json_t *y = output(json, 0);
    cr_assert_gt(json_number_value(json_object_get(y, "min")), 20);
    cr_assert_lt(json_number_value(json_object_get(y, "max")), 27);
    cr_assert_gt(json_integer_value(json_object_get(json_object_get(json, "vm"), "segments")), 20);
    json_decref(json);
    berth_run_fails(with(&f, "run", "--executor graph"), 1,
                    "the graph executor runs no control flow (executor vm does)");
    berth_run_fails(with(&f, "build", "-o /tmp/berth-never.berth"), 1, "runs no control flow");
    berth_run_fails(with(&f, "run", "--memory cpu=1MiB"), 1,
                    "keeps no budget of memory \"host\": leave it out");
    clean(&f);
}

// The number of iterations is random (seeded): as many rows as iterations, the last one the result.
Test(vm_command, counts_of_iterations_come_with_the_run) {
    folder f;
    write_model(&f, doubling);
    json_t *json = berth_run_json(with(&f, "run", "--executor vm --seed 5 --format=json"));
    const json_t *rows = json_object_get(output(json, 1), "shape");
    json_int_t count = json_integer_value(json_array_get(rows, 0));
    cr_assert(count >= 0 && count < 8);
    cr_assert_eq(json_integer_value(json_array_get(rows, 1)), 4);
    json_decref(json);
    clean(&f);
}

Test(vm_command, a_static_model_gives_the_same) {
    json_t *graph = berth_run_json("run " DIGITS " --format=json");
    json_t *vm = berth_run_json("run " DIGITS " --executor vm --format=json");
    cr_assert(json_equal(json_object_get(graph, "outputs"), json_object_get(vm, "outputs")));
    json_decref(graph);
    json_decref(vm);
}

// Results keep the names that the model gives them: of values made under others, and twice of one.
static const char named[] =
    "module \"m\"\n"
    "graph @main(%x: f32[4]) {output_names = [\"first\", \"second\", \"x again\"]} {\n"
    "  %inner = abs(%x)\n  return %inner, %inner, %x\n}\n";

Test(vm_command, results_keep_their_names) {
    static const char *const names[] = {"first", "second", "x again"};
    folder f;
    write_model(&f, named);
    for (int vm = 0; vm < 2; ++vm) {
        json_t *json = berth_run_json(
            with(&f, "run", vm ? "--executor vm --format=json" : "--executor graph --format=json"));
        for (size_t i = 0; i < 3; ++i)
            cr_expect_str_eq(json_string_value(json_object_get(output(json, i), "name")), names[i]);
        json_decref(json);
    }
    clean(&f);
}

// Extents that only the run knows; expected values by ONNX Runtime (tests/models/make_domain_models.py).
Test(vm_command, a_deformable_convolution_of_any_size) {
    const char *model = "tests/models/domains/deform_conv_open";
    char command[256];
    snprintf(command, sizeof(command),
             "verify %s/model.onnx --data %s/test_data_set_0 --executor vm", model, model);
    const result *r = berth_run(command);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "PASS"), "%s", r->out);
}

// How many are not zero is for the run to find out, which the host does.
static const char counting[] =
    "module \"m\"\n"
    "graph @main(%x: f32[N,4]) {\n"
    "  %zero = constant() {value = f32[] (0)}\n  %p = greater(%x, %zero)\n"
    "  %places = non_zero(%p)\n  return %places\n}\n";

Test(vm_command, says_what_the_host_computes) {
    folder f;
    write_model(&f, counting);
    const result *r = berth_run(with(&f, "run", "--executor vm"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->err, "computed on the host, by the reference interpreter:"), "%s",
                       r->err);
    cr_assert_not_null(strstr(r->err, "non_zero at /tmp/"), "%s", r->err);
    cr_assert_not_null(strstr(r->err, "input \"x\" (f32[N,4]): run with a batch of 1"), "%s",
                       r->err);
    cr_assert_not_null(strstr(r->out, "1 operations on the host (1 of them on data)"), "%s",
                       r->out);
    clean(&f);
}

Test(vm_command, byte_code_is_shown) {
    folder f;
    write_model(&f, until);
    const result *r = berth_run(with(&f, "inspect --bytecode", ""));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "function @main: 1 parameters, 1 results"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "jump_unless"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "run s0 (abs+add+reduce_sum+less)"), "%s", r->out);
    clean(&f);
}
