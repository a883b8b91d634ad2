// Models with control flow, as a user runs them.
#include <berth/tensor_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

Test(vm_command, a_comparison_by_operations_says_what_it_needs) {
    if (access("../shared/models/control_flow/loop_nested/model.onnx", R_OK) != 0)
        cr_skip_test("no ../shared/models");
    berth_run_fails("verify ../shared/models/control_flow/loop_nested/model.onnx --per-op --data "
                    "../shared/models/control_flow/loop_nested/test_data_set_0",
                    1, "operations are compared one by one in programs of the graph executor: ");
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
    berth_run_fails(with(&f, "build", "--executor graph -o /tmp/berth-never.berth"), 1,
                    "runs no control flow");
    berth_run_fails(with(&f, "run", "--memory cpu=1MiB"), 1,
                    "keeps no budget of memory \"host\": leave it out");
    clean(&f);
}

// As where nothing is said: the machine where the model needs it, the graph executor elsewhere.
Test(vm_command, the_executor_is_chosen_by_itself_where_auto_is_asked_for) {
    static const char *const forms[] = {"--executor auto", "--target \"cpu -executor=auto\""};
    for (int i = 0; i < 2; ++i) {
        folder f;
        write_model(&f, doubling);
        char arguments[128];
        snprintf(arguments, sizeof(arguments), "%s --seed 5", forms[i]);
        const result *r = berth_run(with(&f, "run", arguments));
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        cr_expect_not_null(strstr(r->out, "executor vm"), "%s", r->out);
        snprintf(arguments, sizeof(arguments), "run " DIGITS " %s", forms[i]);
        r = berth_run(arguments);
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        cr_expect_null(strstr(r->out, "executor vm"), "%s", r->out);
        clean(&f);
    }
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

// Two parts that are planned apart, the loop's body and what stands after it, each with a node that is pinned.
static const char pinned[] = "module \"m\"\n"
                             "graph @main(%x: f32[4], %n: i64[]) {\n"
                             "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[4]) {\n"
                             "    %d = add(%c, %c) #1\n    return %go, %d\n  }\n"
                             "  %z = tanh(%y) #2\n  return %z\n}\n"
                             "locations {\n  #1 = \"m.onnx\" node \"inner\" op \"Add\"\n"
                             "  #2 = \"m.onnx\" node \"after\" op \"Tanh\"\n}\n";

Test(vm_command, pins_are_looked_up_in_the_whole_model) {
    folder f;
    write_model(&f, pinned);
    const result *r =
        berth_run(with(&f, "run", "--target cpu,opencl --pin inner=cpu:0 --pin after=opencl:0"));
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_null(strstr(r->err, "matches"), "%s", r->err);
    berth_run_fails(with(&f, "run", "--target cpu,opencl --pin nothing=cpu:0"), 1,
                    "\"nothing\" matches no operation of the model");
    clean(&f);
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

// ---- program files ------------------------------------------------------------------------------

// Grows with every iteration.
static const char growing[] = "module \"m\"\n"
                              "graph @main(%x: f32[N], %n: i64[]) {\n"
                              "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[?]) {\n"
                              "    %d = concat(%c, %x) {axis = 0}\n    return %go, %d\n  }\n"
                              "  %k = neg(%y)\n  return %k\n}\n";

typedef struct built {
    folder f;
    char file[96];
    char command[320];
} built;

static const result *build(built *b, const char *text, const char *options) {
    char all[160];
    write_model(&b->f, text);
    snprintf(b->file, sizeof(b->file), "%s/m.berth", b->f.path);
    snprintf(all, sizeof(all), "-o %s %s", b->file, options);
    return berth_run(with(&b->f, "build", all));
}

static const char *of_file(built *b, const char *command, const char *more) {
    snprintf(b->command, sizeof(b->command), "%s %s %s", command, b->file, more);
    return b->command;
}

static void clean_built(built *b) {
    unlink(b->file);
    clean(&b->f);
}

static void write_npy(const built *b, const char *name, const char *type, const char *shape,
                      const void *data, size_t size_bytes) {
    char path[96], header[119];
    snprintf(path, sizeof(path), "%s/%s.npy", b->f.path, name);
    int length = snprintf(header, sizeof(header),
                          "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(header + length, ' ', sizeof(header) - (size_t)length);
    header[sizeof(header) - 2] = '\n';
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, 118, file);
    fwrite(data, 1, size_bytes, file);
    cr_assert_eq(fclose(file), 0);
}

static const char *of_npy(built *b, const char *command, const char *more) {
    snprintf(b->command, sizeof(b->command), "%s %s --input x=%s/x.npy --input n=%s/n.npy %s",
             command, b->file, b->f.path, b->f.path, more);
    return b->command;
}

static void clean_npy(const built *b) {
    char path[96];
    snprintf(path, sizeof(path), "%s/x.npy", b->f.path);
    unlink(path);
    snprintf(path, sizeof(path), "%s/n.npy", b->f.path);
    unlink(path);
}

// What a program file gives is what the model gives that is compiled as it runs.
Test(vm_command, a_program_file_gives_the_same) {
    built b;
    const result *r = build(&b, until, "");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_t *model = berth_run_json(with(&b.f, "run", "--format=json"));
    json_t *program = berth_run_json(of_file(&b, "run", "--format=json"));
    cr_assert(json_equal(json_object_get(model, "outputs"), json_object_get(program, "outputs")));
    cr_assert_str_eq(json_string_value(json_object_get(program, "executor")), "vm");
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(program, "vm"), "compiled")),
                 0);
    json_decref(model);
    json_decref(program);
    r = berth_run(of_file(&b, "inspect --bytecode", ""));
    cr_assert_not_null(strstr(r->out, "run s0 (abs+add+reduce_sum+less)"), "%s", r->out);
    r = berth_run(of_file(&b, "inspect", ""));
    cr_assert_not_null(strstr(r->out, "executor vm"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "input x f32[4]"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "code of s0 (abs+add+reduce_sum+less) for f32[4]"), "%s",
                       r->out);
    r = berth_run(of_file(&b, "bench", "--count 2"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "2 runs of 1 stream"), "%s", r->out);
    berth_run_fails(of_file(&b, "run", "--require opencl"), 1, "opencl");
    clean_built(&b);
}

// Of byte code, code and sources come out by variants: of those that have some.
Test(vm_command, code_of_variants_is_extracted) {
    built b;
    char command[200], path[160];
    const result *r = build(&b, doubling, "--keep-source");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), "--extract %s/code", b.f.path);
    r = berth_run(of_file(&b, "inspect", command));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    uint32_t code_count = 0;
    for (uint32_t i = 0; i < 64; ++i) {
        char line[64];
        snprintf(line, sizeof(line), "variant %u: code of", i);
        const bool has_code = strstr(r->out, line) != NULL;
        code_count += has_code;
        snprintf(path, sizeof(path), "%s/code/variant/%u/image/0.so", b.f.path, i);
        FILE *file = fopen(path, "rb");
        cr_assert_eq(file != NULL, has_code, "%s", path);
        if (!file) continue;
        char magic[4] = {0};
        cr_assert_eq(fread(magic, 1, 4, file), 4);
        cr_assert_eq(memcmp(magic, "\177ELF", 4), 0, "a shared library");
        fclose(file);
        snprintf(path, sizeof(path), "attachment variant/%u/source/0/u0.c", i);
        cr_assert_not_null(strstr(r->out, path), "%s", r->out);
    }
    cr_assert_geq(code_count, 1, "the addition: %s", r->out);
    snprintf(command, sizeof(command), "rm -r %s/code", b.f.path);
    cr_assert_eq(system(command), 0);
    clean_built(&b);
}

// What a profile's rows say of the operator.
static double in_profile(const json_t *json, const char *op, const char *key) {
    json_t *row = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "profile"), i,
                       row) if (strstr(json_string_value(json_object_get(row, "op")),
                                       op)) return json_number_value(json_object_get(row, key));
    return -1;
}

static void check_profile(const json_t *json) {
    json_t *row = NULL;
    size_t i = 0;
    double busy_ms = 0, runtime_ms = json_number_value(
                            json_object_get(json_object_get(json, "vm"), "runtime_ms_per_run"));
    cr_assert_eq(in_profile(json, "add", "count"), 3, "an addition a round");
    json_array_foreach(json_object_get(json, "profile"), i, row) {
        busy_ms += json_number_value(json_object_get(row, "ms"));
        if (i) cr_assert_geq(json_number_value(json_object_get(row, "wait_ms")), 0);
        cr_assert_str_eq(json_string_value(json_object_get(row, "device")), "cpu:0");
    }
    cr_assert_gt(busy_ms, 0);
    cr_assert_geq(runtime_ms, 0, "steps of one device, one after another, are within the run");
}

// A slice for each time that a step ran in the last run, within each other's order.
static void check_trace(const char *path, size_t wanted) {
    json_t *json = json_load_file(path, 0, NULL), *event = NULL;
    size_t i = 0, found = 0;
    double before_us = -1;
    cr_assert_not_null(json);
    json_array_foreach(json_object_get(json, "traceEvents"), i, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        double start_us = json_number_value(json_object_get(event, "ts"));
        cr_assert_geq(start_us, before_us);
        before_us = start_us + json_number_value(json_object_get(event, "dur"));
        ++found;
    }
    cr_assert_eq(found, wanted);
    json_decref(json);
}

// Of the session that compiles, and of a program file: the loop's kernel comes once per round.
Test(vm_command, rounds_of_a_loop_are_profiled) {
    built b;
    char more[160], trace[96];
    const result *r = build(&b, doubling, "");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    write_npy(&b, "x", "<f4", "(4,)", (const float[]){1, -2, 3, 4}, 4 * sizeof(float));
    write_npy(&b, "n", "<i8", "()", (const int64_t[]){3}, sizeof(int64_t));
    snprintf(trace, sizeof(trace), "%s/t.json", b.f.path);
    for (int of_model = 0; of_model < 2; ++of_model) {
        snprintf(more, sizeof(more), "--profile --trace %s --repeat 5 --format=json", trace);
        char command[512];
        snprintf(command, sizeof(command), "run %s%s %s --input x=%s/x.npy --input n=%s/n.npy %s",
                 of_model ? b.f.path : b.file, of_model ? "/m.txt" : "",
                 of_model ? "--executor vm" : "", b.f.path, b.f.path, more);
        json_t *json = berth_run_json(command);
        double steps = 0;
        json_t *row = NULL;
        size_t i = 0;
        json_array_foreach(json_object_get(json, "profile"), i, row) steps +=
            json_number_value(json_object_get(row, "count"));
        check_profile(json);
        check_trace(trace, (size_t)steps);
        json_decref(json);
    }
    unlink(trace);
    clean_npy(&b);
    clean_built(&b);
}

// Values of a run: what they need is said, and more than is allowed is refused, and says what was.
Test(vm_command, memory_of_values_is_shown_and_limited) {
    built b;
    const result *r = build(&b, doubling, "");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    write_npy(&b, "x", "<f4", "(4,)", (const float[]){1, -2, 3, 4}, 4 * sizeof(float));
    write_npy(&b, "n", "<i8", "()", (const int64_t[]){3}, sizeof(int64_t));
    char command[512];
    snprintf(command, sizeof(command), "run %s --input x=%s/x.npy --input n=%s/n.npy", b.file,
             b.f.path, b.f.path);
    char more[640];
    snprintf(more, sizeof(more), "%s --profile --repeat 5 --value-memory 1MiB --format=json",
             command);
    json_t *json = berth_run_json(more);
    const json_t *values = json_object_get(json_object_get(json, "vm"), "values");
    cr_assert_eq(json_integer_value(json_object_get(values, "limit_bytes")), 1 << 20);
    // A round makes at least the next value and the next count.
    cr_assert_geq(json_number_value(json_object_get(values, "blocks_per_run")), 2 * 3);
    const json_int_t live = json_integer_value(json_object_get(values, "most_live_bytes"));
    cr_assert_gt(live, (json_int_t)(4 * sizeof(float)));
    cr_assert_leq(live, json_integer_value(json_object_get(values, "most_reserved_bytes")));
    json_decref(json);
    snprintf(more, sizeof(more), "%s --profile", command);
    r = berth_run(more);
    cr_assert_not_null(strstr(r->out, "profile: values had at most"), "%s", r->out);
    snprintf(more, sizeof(more), "%s --value-memory 2K", command);
    berth_run_fails(more, 1, "need more memory than their limit of 2048 bytes");
    snprintf(more, sizeof(more), "%s --value-memory none", command);
    berth_run_fails(more, 2, "--value-memory");
    clean_npy(&b);
    clean_built(&b);
}

// What the host computes stands in a profile, too; and what no program can be made of is measured as it runs.
Test(vm_command, what_only_a_session_runs_is_profiled_and_measured) {
    folder f;
    write_model(&f, counting);
    json_t *json = berth_run_json(with(&f, "run", "--profile --repeat 4 --format=json"));
    cr_assert_eq(in_profile(json, "non_zero", "count"), 1);
    cr_assert_gt(in_profile(json, "non_zero", "ms"), 0);
    cr_assert_gt(in_profile(json, "greater", "ms"), 0);
    json_decref(json);
    json = berth_run_json(with(&f, "bench", "--count 7 --streams 2 --format=json"));
    cr_assert_eq(json_integer_value(json_object_get(json, "runs")), 14);
    cr_assert(json_is_null(json_object_get(json, "predicted_ms")));
    json_decref(json);
    berth_run_fails(with(&f, "bench", "--count 7 --share"), 1, "--share is of sessions");
    berth_run_fails(with(&f, "bench", "--count 7 --executor graph"), 1, "executor vm");
    const result *r = berth_run(with(&f, "run", "--profile"));
    cr_assert_not_null(strstr(r->out, " host "), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "ms compiling"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "ms the runtime, per run of 2 steps"), "%s", r->out);
    clean(&f);
}

// Without a C compiler anywhere.
Test(vm_command, a_program_file_needs_no_compiler) {
    built b;
    const result *r = build(&b, growing, "--specialise N=3,n=2,N=5,n=0");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_eq(setenv("PATH", "/nowhere", 1), 0);
    write_npy(&b, "x", "<f4", "(3,)", (const float[]){1, -2, 3}, 3 * sizeof(float));
    write_npy(&b, "n", "<i8", "()", (const int64_t[]){2}, sizeof(int64_t));
    json_t *json = berth_run_json(of_npy(&b, "run", "--format=json"));
    const json_t *y = output(json, 0);
    cr_assert_eq(json_integer_value(json_array_get(json_object_get(y, "shape"), 0)), 9);
    cr_assert_eq(json_number_value(json_object_get(y, "max")), 2);
    cr_assert_eq(json_number_value(json_object_get(y, "min")), -3);
    json_decref(json);
    // Three iterations give a shape that there is no code for.
    write_npy(&b, "n", "<i8", "()", (const int64_t[]){3}, sizeof(int64_t));
    berth_run_fails(
        of_npy(&b, "run", ""), 1,
        "(concat): the program has no code for f32[9] and f32[3]; it has some for "
        "f32[3] and f32[3]; f32[6] and f32[3]. Build it again with a specialisation for these, "
        "too");
    clean_npy(&b);
    clean_built(&b);
}

// One file for two batches of a model without control flow, with the weights once.
Test(vm_command, one_file_serves_several_batches) {
    char one[] = "/tmp/berth-one-XXXXXX", both[] = "/tmp/berth-both-XXXXXX", command[256];
    struct stat small, large;
    close(mkstemp(one));
    close(mkstemp(both));
    snprintf(command, sizeof(command), "build " DIGITS " --specialise batch=1 -o %s", one);
    cr_assert_eq(berth_run(command)->exit_status, 0);
    snprintf(command, sizeof(command), "build " DIGITS " --specialise batch=1,batch=5 -o %s", both);
    cr_assert_eq(berth_run(command)->exit_status, 0);
    snprintf(command, sizeof(command), "run %s --input image=examples/digits/test_images.npy", one);
    berth_run_fails(command, 1, "no code for f32[");
    snprintf(command, sizeof(command), "run %s --format=json", both);
    json_t *program = berth_run_json(command);
    json_t *model = berth_run_json("run " DIGITS " --format=json");
    cr_assert(json_equal(json_object_get(model, "outputs"), json_object_get(program, "outputs")));
    json_decref(model);
    json_decref(program);
    cr_assert_eq(stat(one, &small), 0);
    cr_assert_eq(stat(both, &large), 0);
    cr_assert_gt(large.st_size, small.st_size);
    // What no specialisation names and looks like a batch is one, as in `berth run`.
    snprintf(command, sizeof(command), "build " DIGITS " --executor vm -o %s", one);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->err, "dimension batch of the inputs is taken as 1"), "%s", r->err);
    unlink(one);
    unlink(both);
}

// One program for all batches within bounds, without a compiler when it runs: what the model itself gives.
Test(vm_command, one_program_serves_all_batches_within_bounds) {
    built b;
    char file[] = "/tmp/berth-many-XXXXXX", command[256];
    write_model(&b.f, "module \"m\"\n");
    close(mkstemp(file));
    snprintf(command, sizeof(command), "build " DIGITS " --dim batch=1..24 -o %s", file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), "inspect --bytecode %s", file);
    r = berth_run(command);
    cr_assert_not_null(strstr(r->out, "shapes in all: v0 = dimension 0 of input 0"), "%s", r->out);
    for (int batch = 1; batch <= 25; batch += batch < 8 ? 1 : 5) {
        char shape[32];
        float values[25 * 64];
        for (int i = 0; i < batch * 64; ++i) values[i] = (float)((i * 37) % 101) / 50 - 1;
        snprintf(shape, sizeof(shape), "(%d, 1, 8, 8)", batch == 23 ? 25 : batch);
        write_npy(&b, "image", "<f4", shape, values,
                  (size_t)(batch == 23 ? 25 : batch) * 64 * sizeof(float));
        snprintf(command, sizeof(command), "run %s --input image=%s/image.npy --format=json", file,
                 b.f.path);
        if (batch == 23) {
            berth_run_fails(command, 1, "dimension 0 is 25, outside its bounds 1..24");
            break;
        }
        json_t *program = berth_run_json(command);
        snprintf(command, sizeof(command),
                 "run " DIGITS " --input image=%s/image.npy --format=json", b.f.path);
        json_t *model = berth_run_json(command);
        static const char *const facts[] = {"min", "max"};
        for (int k = 0; k < 2; ++k)
            cr_assert_float_eq(json_number_value(json_object_get(output(program, 0), facts[k])),
                               json_number_value(json_object_get(output(model, 0), facts[k])), 1e-6,
                               "batch %d", batch);
        cr_assert(json_equal(json_object_get(output(program, 0), "shape"),
                             json_object_get(output(model, 0), "shape")));
        json_decref(model);
        json_decref(program);
    }
    snprintf(command, sizeof(command), "%s/image.npy", b.f.path);
    unlink(command);
    unlink(file);
    clean(&b.f);
}

Test(vm_command, bounds_are_checked) {
    berth_run_fails("build " DIGITS " -o /tmp/berth-never.berth --dim batch=9..1", 2,
                    "bounds are two numbers");
    berth_run_fails("build " DIGITS " -o /tmp/berth-never.berth --dim batch=1..99999", 1,
                    "the bounds hold more than 4096 shapes");
    berth_run_fails("run " DIGITS " --dim batch=9..1", 2, "bounds are two numbers");
    berth_run_fails("build " DIGITS
                    " -o /tmp/berth-never.berth --dim batch=1..8 --specialise batch=9",
                    1, "outside its bounds 1..8");
}

static void write_numbers(const char *path, const char *kind, const void *numbers,
                          size_t size_bytes) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fprintf(file, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, kind);
    fwrite(numbers, size_bytes, 1, file);
    fclose(file);
}

static void write_counts(const char *path, int32_t first, int32_t second) {
    write_numbers(path, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
                  (int32_t[]){first, second}, 2 * sizeof(int32_t));
}

// OneHotEncoder of 1, 2 and 3 whose zeros = 0 says that there are no others.
Test(vm_command, categories_that_are_unknown_are_an_error) {
    static const int64_t numbers[2][3] = {{3, 1, 2}, {2, 9, 1}};
    char path[] = "/tmp/berth-numbers-XXXXXX.npy", command[256];
    int handle = mkstemps(path, 4);
    cr_assert_geq(handle, 0);
    close(handle);
    snprintf(command, sizeof(command),
             "run tests/models/domains/one_hot_encoder_known/model.onnx --input x0=%s", path);
    for (int i = 0; i < 2; ++i) {
        write_numbers(path, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", numbers[i],
                      sizeof(numbers[i]));
        if (i)
            berth_run_fails(command, 1, "element 1 of its indices is 1");
        else
            cr_assert_eq(berth_run(command)->exit_status, 0);
    }
    unlink(path);
}

// A model of GroupQueryAttention, with its set's inputs but for counts of keys, less 1. `message`: NULL = it runs.
static void run_with_counts(const char *model, int input_count, int32_t first, int32_t second,
                            const char *message) {
    char path[] = "/tmp/berth-counts-XXXXXX.npy", command[2048];
    int handle = mkstemps(path, 4);
    cr_assert_geq(handle, 0);
    close(handle);
    write_counts(path, first, second);
    size_t used =
        (size_t)snprintf(command, sizeof(command),
                         "run tests/models/domains/%s/model.onnx --input x5=%s", model, path);
    for (int n = 0; n < input_count; ++n)
        if (n != 5)
            used += (size_t)snprintf(
                command + used, sizeof(command) - used,
                " --input x%d=tests/models/domains/%s/test_data_set_0/input_%d.pb", n, model, n);
    if (message)
        berth_run_fails(command, 1, message);
    else
        cr_assert_eq(berth_run(command)->exit_status, 0);
    unlink(path);
}

// Both rows of the batch have 5 keys before the new one: rows whose past is shorter than the others' would get other rows'
// keys.
Test(vm_command, counts_of_keys_that_are_not_the_past_are_an_error) {
    run_with_counts("group_query_smooth", 7, 5, 5, NULL);
    run_with_counts("group_query_smooth", 7, 5, 3, "element 1 of its indices is 4");
    run_with_counts("group_query_smooth", 7, 4, 4, "element 0");
}

// A buffer of 7 keys, in which rows of the batch fill what they like.
Test(vm_command, keys_that_a_buffer_has_no_room_for_are_an_error) {
    run_with_counts("group_query_buffer_given", 9, 6, 0, NULL);
    run_with_counts("group_query_buffer_given", 9, 2, 7, "element 1 of its indices is 1");
    run_with_counts("group_query_buffer_given", 9, -3, 6, "element 0 of its indices is 3");
}

Test(vm_command, what_cannot_be_in_a_file_is_refused) {
    built b;
    build(&b, counting, "--specialise N=3");
    berth_run_fails(with(&b.f, "build", "-o /tmp/berth-never.berth --specialise N=20000"), 1,
                    "how many of 80000 elements there are");
    berth_run_fails(with(&b.f, "build", "-o /tmp/berth-never.berth --specialise M=3,N=1"), 1,
                    "specialisation M=3: the inputs have no open dimension of this name");
    berth_run_fails(with(&b.f, "build", "-o /tmp/berth-never.berth --specialise N=x"), 1,
                    "a specialisation is NAME=NUMBER,... or NAME=LEAST..MOST,..., not \"N=x\"");
    berth_run_fails(with(&b.f, "build", "-o /tmp/berth-never.berth --specialise N"), 2,
                    "--specialise takes NAME=NUMBER");
    berth_run_fails(with(&b.f, "build", "-o /tmp/n.berth --executor aot --specialise N=1"), 1,
                    "--specialise is of programs of the executor vm");
    clean(&b.f);
    folder f;
    write_model(&f, "module \"m\"\n"
                    "graph @main(%boxes: f32[1,9,4], %scores: f32[1,1,9]) {\n"
                    "  %most = constant() {value = i64[1] (3)}\n"
                    "  %found = non_max_suppression(%boxes, %scores, %most)\n  return %found\n}\n");
    berth_run_fails(with(&f, "build", "-o /tmp/berth-never.berth"), 1,
                    "(non_max_suppression): the shape of what it gives depends on data");
    clean(&f);
    write_model(&f, "module \"m\"\ngraph @main(%x: f32[4,N]) {\n  %y = relu(%x)\n  return %y\n}\n");
    berth_run_fails(with(&f, "build", "-o /tmp/berth-never.berth --executor vm"), 1,
                    "say for which values of N the program is to have code (specialisations, "
                    "\"N=1,N=8\"), or fix it, as in --dim N=1");
    clean(&f);
}

// ---- state --------------------------------------------------------------------------------------

// A cache of rows that grows, what is made of it with a mask as long, and a number that is replaced.
static const char remembering[] =
    "module \"m\"\n"
    "graph @main(%past: f32[past,2], %row: f32[1,2], %mask: f32[past+1], %count: f32[]) {\n"
    "  %present = concat(%past, %row) {axis = 0}\n"
    "  %axes = constant() {value = i64[1] (1)}\n"
    "  %sums = reduce_sum(%present, %axes) {keepdims = 0}\n  %masked = mul(%sums, %mask)\n"
    "  %one = constant() {value = f32[] (1)}\n  %next = add(%count, %one)\n"
    "  %seen = neg(%next)\n  return %masked, %present, %next, %seen\n}\n";
#define STATES "--state past=present --state 'coun*=nex*'"

// What the last run saw: as many rows as runs since the state was empty, and that number.
static void check_seen(const char *command, int64_t wanted) {
    json_t *json = berth_run_json(command);
    const json_t *rows = json_object_get(output(json, 0), "shape");
    cr_expect_eq(json_integer_value(json_array_get(rows, 0)), wanted, "%s", command);
    cr_expect_eq(json_number_value(json_object_get(output(json, 3), "min")), (double)-wanted, "%s",
                 command);
    cr_expect_str_eq(json_string_value(json_object_get(output(json, 1), "kind")), "state");
    cr_expect_str_eq(json_string_value(json_object_get(output(json, 1), "input")), "past");
    json_decref(json);
}

// From a module and from a program. Seven rows are more than the bounds allow: the next run begins anew.
Test(vm_command, state_goes_from_run_to_run) {
    built b;
    const result *r = build(&b, remembering, "--dim past=0..5 " STATES);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    for (int of_model = 0; of_model < 2; ++of_model) {
        char command[512], model[256];
        snprintf(model, sizeof(model), "%s%s %s " STATES, of_model ? b.f.path : b.file,
                 of_model ? "/m.txt" : "", of_model ? "--dim past=0..5" : "");
        for (int runs = 1; runs <= 8; ++runs) {
            snprintf(command, sizeof(command), "run %s --repeat %d --format=json", model, runs);
            check_seen(command, runs <= 6 ? runs : runs - 6);
        }
        snprintf(command, sizeof(command), "bench %s --count 20 --format=json", model);
        json_t *json = berth_run_json(command);
        cr_expect_eq(json_integer_value(json_object_get(json, "runs")), 20);
        json_decref(json);
        snprintf(command, sizeof(command), "run %s", model);
        r = berth_run(command);
        cr_expect_not_null(strstr(r->out, "output present: state, kept for input past"), "%s",
                           r->out);
    }
    berth_run_fails(of_file(&b, "run", "--state other=present"), 1, "has no such state");
    berth_run_fails(with(&b.f, "run", "--dim past=0..5 --executor graph " STATES), 1,
                    "--state is of programs of the executor vm");
    clean_built(&b);
}

static void write_pb(const built *b, const char *file, const char *name, int rank, int64_t rows,
                     int64_t columns, float *data) {
    char path[128];
    const berth_tensor tensor = {BERTH_DTYPE_F32, rank, {rows, columns}, data};
    snprintf(path, sizeof(path), "%s/%s.pb", b->f.path, file);
    cr_assert_null(berth_tensor_file_write(path, name, &tensor));
}

// Two tokens of a text: the second folder gives no state, and expects that of the first with a row more.
Test(vm_command, state_goes_from_folder_to_folder) {
    built b;
    const result *r = build(&b, remembering, "--dim past=0..5 " STATES);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    float rows[4] = {1, 2, 3, 4}, mask[2] = {10, 100}, count[1] = {7};
    const float masked[2][2] = {{30}, {30, 700}};
    char folders[2][96], command[512];
    for (int i = 0; i < 2; ++i) {
        float now[2] = {masked[i][0], masked[i][1]}, next[1] = {count[0] + 1};
        float seen[1] = {-next[0]};
        snprintf(folders[i], sizeof(folders[i]), "%s/%d", b.f.path, i);
        cr_assert_eq(mkdir(folders[i], 0700), 0);
        char file[4][24];
        for (int k = 0; k < 4; ++k) snprintf(file[k], sizeof(file[k]), "%d/input_%d", i, k);
        if (i == 0) write_pb(&b, file[0], "past", 2, 0, 2, rows);
        write_pb(&b, file[1], "row", 2, 1, 2, rows + 2 * i);
        write_pb(&b, file[2], "mask", 1, i + 1, 0, mask);
        if (i == 0) write_pb(&b, file[3], "count", 0, 0, 0, count);
        for (int k = 0; k < 4; ++k) snprintf(file[k], sizeof(file[k]), "%d/output_%d", i, k);
        write_pb(&b, file[0], "masked", 1, i + 1, 0, now);
        write_pb(&b, file[1], "present", 2, i + 1, 2, rows);
        write_pb(&b, file[2], "next", 0, 0, 0, next);
        write_pb(&b, file[3], "seen", 0, 0, 0, seen);
        count[0] = next[0];
    }
    snprintf(command, sizeof(command), "verify %s/m.txt --dim past=0..5 " STATES " --data %s %s",
             b.f.path, folders[0], folders[1]);
    r = berth_run(command);
    cr_expect_eq(r->exit_status, 0, "%s%s", r->out, r->err);
    cr_expect_not_null(strstr(r->out, "output present"), "%s", r->out);
    // Without what the first leaves, the second has no state of one row.
    snprintf(command, sizeof(command), "verify %s/m.txt --dim past=0..5 " STATES " --data %s",
             b.f.path, folders[1]);
    cr_expect_neq(berth_run(command)->exit_status, 0);
    snprintf(command, sizeof(command), "rm -r %s %s", folders[0], folders[1]);
    cr_expect_eq(system(command), 0);
    clean_built(&b);
}
