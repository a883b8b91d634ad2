// The berth command as a user runs it: exit status, messages, JSON.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"

Test(command, usage) {
    berth_run_fails("", 2, "Usage: berth COMMAND");
    berth_run_fails("rnu model.onnx", 2, "did you mean \"run\"?");
    berth_run_fails("run", 2, "which model?");
    berth_run_fails("run a b", 2, "only one model");
    berth_run_fails("run " DIGITS " --repeat 0", 2, "--repeat takes a number");
    berth_run_fails("run " DIGITS " --format=xml", 2, "--format takes text or json");
    berth_run_fails("plan " DIGITS " --format=xml", 2, "--format takes text, json, dot or svg");
    berth_run_fails("verify " DIGITS, 2, "Give --data DIR");
    berth_run_fails("run " DIGITS " --no-such-option", 2, "there is no option --no-such-option");
    berth_run_fails("run " DIGITS " --dim batch=-1", 2, "a number from 0");
    berth_run_fails("run " DIGITS " --dim batch", 2, "NAME=EXTENT");
    berth_run_fails("run " DIGITS " --input image=", 2, "NAME=FILE");
    berth_run_fails("verify " DIGITS " --data x --threads 0", 2, "--threads takes a number");
    // Options are spelt in full: a slip is no other option.
    berth_run_fails("plan " DIGITS " --batch=8", 2, "fixed with --dim batch=8");
    berth_run_fails("plan " DIGITS " --di=batch=8", 2, "did you mean --dim?");
    berth_run_fails("plan " DIGITS " --targ cpu", 2, "did you mean --target?");
    berth_run_fails("plan " DIGITS " -dim batch=8", 2, "did you mean --dim?");
    berth_run_fails("plan " DIGITS " -x", 2, "there is no option -x");
    berth_run_fails("plan " DIGITS " --target --no-such", 1,
                    "--no-such");  // a value, not an option
    berth_run_fails("help rnu", 2, "did you mean \"run\"?");
    berth_run_fails("memory check x.csv --nodes 3", 2, "check takes");
    berth_run_fails("memory plot x.csv --format=json", 2, "no --format");
    berth_run_fails("memory plot " DIGITS " --format=json", 2, "no --format");
    berth_run_fails("memory solve " DIGITS, 1, "digits.onnx:1:");
    berth_run_fails("target list 'no/such*'", 1, "no tag matches 'no/such*'");
    cr_assert(strstr(berth_run("run -h")->out, "Usage: berth run "));
    cr_assert(strstr(berth_run("help run")->out, "Usage: berth run "));
    cr_assert_eq(berth_run("run --version")->exit_status, 0);
    cr_assert(strstr(berth_run("opt --help")->out, "plan-scopes"));
    cr_assert_eq(berth_run("--help")->exit_status, 0);
    cr_assert_eq(berth_run("--version")->exit_status, 0);
    static const char *const commands[] = {"run",     "verify", "plan",    "build",
                                           "inspect", "opt",    "devices", "target",
                                           "cache",   "memory", "place",   "bench"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i) {
        char arguments[64];
        snprintf(arguments, sizeof(arguments), "%s --help", commands[i]);
        const result *r = berth_run(arguments);
        cr_assert_eq(r->exit_status, 0, "%s", arguments);
        cr_assert(strstr(r->out, "Usage: berth "), "%s: %s", arguments, r->out);
    }
}

Test(command, bad_models) {
    berth_run_fails("inspect no-such-file.onnx", 1, "no-such-file.onnx");
    berth_run_fails("inspect /", 1, "not a regular file");
    berth_run_fails("inspect README.md", 1, "README.md");
    berth_run_fails("inspect /dev/null", 1, "/dev/null");
    char folder[] = "/tmp/berth-test-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char arguments[128];
    snprintf(arguments, sizeof(arguments), "%s/pipe", folder);
    cr_assert_eq(mkfifo(arguments, 0600), 0);
    snprintf(arguments, sizeof(arguments), "run %s/pipe", folder);  // must not wait for a writer
    berth_run_fails(arguments, 1, "not a regular file");
    snprintf(arguments, sizeof(arguments), "opt %s/pipe", folder);
    berth_run_fails(arguments, 1, "not a regular file");
    remove(arguments + strlen("opt "));
    remove(folder);
}

Test(command, parts_that_are_not_there) {
    berth_run_fails("run " DIGITS " --dim batch=1 --runtime bare", 1, "executor \"aot\"");
    berth_run_fails("run " DIGITS " --dim batch=1 --strategy none", 2, "--strategy takes");
    berth_run_fails("opt " DIGITS " --print-after nothing", 2, "no pass \"nothing\"");
    berth_run_fails("opt " DIGITS " --emit=java", 2, "--emit takes text, json or c");
    berth_run_fails("opt " DIGITS " --emit=c --function 1st", 2, "an identifier of C");
    berth_run_fails("opt " DIGITS " --function f", 2, "--emit=c, which is not given");
    berth_run_fails("opt " DIGITS " --passes nothing", 2, "no pass \"nothing\"");
    berth_run_fails("opt " DIGITS " --passes simplify,fusse", 2, "did you mean \"fuse\"?");
    berth_run_fails("verify " DIGITS " --data . --against cpu", 2, "--per-op");
    berth_run_fails("verify " DIGITS " --data no-such-folder", 1, "no-such-folder");
}

Test(command, no_compiler) {
    setenv("PATH", "/nonexistent", 1);
    berth_run_fails("run " DIGITS " --dim batch=1 --no-cache", 1, "no C compiler");
}

// Results that do not fit on the disk are a failure, in both forms.
Test(command, full_output) {
    static const char *const commands[] = {"inspect " DIGITS, "inspect " DIGITS " --format=json",
                                           "plan " DIGITS " --dim batch=1", "target list"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i) {
        char command[1024];
        snprintf(command, sizeof(command), "%s %s >/dev/full 2>/dev/null", BERTH_COMMAND,
                 commands[i]);
        int status = system(command);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s", commands[i]);
    }
}

// Both forms of the module, read back, print as the same bytes.
Test(command, opt_reads_what_it_prints) {
    char folder[] = "/tmp/berth-test-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char command[2048];
    snprintf(command, sizeof(command),
             "cd %s && B=%s && $B opt $OLDPWD/" DIGITS
             " --passes keep-names,fold-constants,simplify >a && "
             "$B opt a >b && cmp a b && $B opt a --format=json >c && $B opt c >d && cmp a d && "
             "test -s a && rm -f a b c d",
             folder, BERTH_COMMAND);
    int status = system(command);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "see %s", folder);
    remove(folder);
}

Test(command, bad_targets_and_pins) {
    berth_run_fails("plan " DIGITS " --dim batch=1 --target nowhere/board", 1, "nowhere/board");
    berth_run_fails("plan " DIGITS " --dim batch=1 --pin nothing=cpu:0", 1, "matches no operation");
    berth_run_fails("plan " DIGITS " --dim batch=1 --set devices[0].target.cores=1", 1,
                    "a target of one device takes its fields alone");
    berth_run_fails("plan \"$(printf '/no\\033[31mwhere')\"", 1, "/no\\x1b[31mwhere");
    berth_run_fails("plan " DIGITS " --dim batch=1 --pin 'conv*=opencl:0'", 1, "opencl:0");
    berth_run_fails("plan " DIGITS
                    " --dim batch=1 --target cpu,opencl --pin 'conv*=cpu:0' --pin op:Conv=opencl:0",
                    1, "pin 1 of those given");
    berth_run_fails(
        "opt " DIGITS " --passes all", 1,
        "\"image\" f32[batch,1,8,8]; give the inputs, or their extents, as in --dim batch=1\n");
    const result *r = berth_run("plan " DIGITS);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->err, "note: dimension batch of the inputs is taken as 1"), "%s", r->err);
    r = berth_run("run " DIGITS " --input image=examples/digits/test_images.npy");
    cr_assert(strstr(r->err, "is taken as 1") == NULL, "%s", r->err);
    berth_run_fails("plan " DIGITS " --dim image.0=2 --dim batch=3", 1,
                    "given twice, as 2 and as 3");
    berth_run_fails("plan " DIGITS " --dim batch=2 --dim batch=3", 1, "given twice, as 2 and as 3");
    berth_run_fails("run " DIGITS " --dim batch=2 --dim batch=3", 1, "given twice, as 2 and as 3");
    berth_run_fails("run " DIGITS " --input image=examples/digits/test_images.npy "
                    "--input image=examples/digits/test_images.npy",
                    1, "given twice");
    berth_run_fails("run " DIGITS " --dim batch=1 --require opencl:0", 1, "which is required");
    berth_run_fails("run " DIGITS " --dim batch=1 --input image=no-such.npy", 1, "no-such.npy");
    berth_run_fails("run " DIGITS " --dim batch=1 --input picture=examples/digits/test_images.npy",
                    1, "picture");
}

Test(command, inspect_json) {
    const result *r = berth_run("inspect " DIGITS " --format=json");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_error_t error;
    json_t *json = json_loads(r->out, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(json, "operators"), "Conv")),
                 2);
    cr_assert_eq(json_integer_value(json_object_get(json, "weight_bytes")),
                 6090 * 4);  // see examples/digits/README.md
    json_t *input = json_array_get(json_object_get(json, "inputs"), 0);
    cr_assert_str_eq(json_string_value(json_object_get(input, "name")), "image");
    json_t *nodes = json_object_get(json, "nodes");
    cr_assert_eq(json_array_size(nodes), 9);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(nodes, 0), "name")), "conv1");
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(nodes, 0), "op")), "Conv");
    cr_assert(strstr(berth_run("inspect " DIGITS)->out, "\nnode Conv                     conv1\n"));
    cr_assert_str_eq(json_string_value(json_array_get(json_object_get(input, "shape"), 0)),
                     "batch");
    json_decref(json);
}

Test(command, plan_json_says_where_and_why) {
    const result *r = berth_run(
        "plan " DIGITS " --target cpu,opencl --pin op:Conv=opencl:0 --dim batch=4 --format=json");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_error_t error;
    json_t *json = json_loads(r->out, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    json_t *operations = json_object_get(json, "operations");
    size_t on_opencl = 0;
    size_t index;
    json_t *operation;
    json_array_foreach(operations, index, operation) {
        bool conv = strcmp(json_string_value(json_object_get(operation, "op")), "Conv") == 0;
        bool opencl =
            strcmp(json_string_value(json_object_get(operation, "device")), "opencl:0") == 0;
        cr_assert_eq(conv, opencl);
        cr_assert(strlen(json_string_value(json_object_get(operation, "reason"))) > 0);
        on_opencl += opencl;
    }
    cr_assert_eq(on_opencl, 2);
    cr_assert_eq(json_array_size(json_object_get(json, "copies")), 4,
                 "image and pool1 there, c1 and c2 back");
    json_decref(json);
}

#define FAST                                                                                       \
    " --dim batch=4 --target \"opencl -peak_flops.f32=1e14 -memory_bandwidth_bytes_per_s=1e12 "    \
    "-dispatch_ns=1 -link_bandwidth_bytes_per_s=1e12,cpu -arch=x86_64 -peak_flops.f32=1e9\" "

static size_t count_on(const json_t *plan, const char *device) {
    size_t count = 0, index;
    json_t *operation;
    json_array_foreach(json_object_get(plan, "operations"), index, operation) {
        count += strcmp(json_string_value(json_object_get(operation, "device")), device) == 0;
        json_t *rejected = json_object_get(operation, "rejected");
        cr_assert_eq(json_array_size(rejected), 1);
        const json_t *first = json_array_get(rejected, 0);
        cr_assert(strlen(json_string_value(json_object_get(first, "reason"))) > 0);
    }
    return count;
}

static json_t *plan_json(const char *arguments) {
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_error_t error;
    json_t *json = json_loads(r->out, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    const json_t *objective = json_object_get(json, "objective");
    double value = json_real_value(json_object_get(objective, "value"));
    double bound = json_real_value(json_object_get(objective, "lower_bound"));
    cr_assert(bound > 0 && bound <= value);
    cr_assert(json_is_true(json_object_get(objective, "reproducible")));
    return json;
}

// A device that is a hundred thousand times faster takes everything, unless its memory is too small
// for that: then by the rules its constants are read in each run, and a search takes what fits.
Test(command, plan_strategies) {
    json_t *fast = plan_json("plan " DIGITS FAST "--strategy auto --format=json");
    size_t operations = json_array_size(json_object_get(fast, "operations"));
    cr_assert_eq(count_on(fast, "opencl:0"), operations);
    cr_assert(json_is_true(json_object_get(json_object_get(fast, "objective"), "proven")));
    json_decref(fast);
#define SMALL "--set 'budgets={\"opencl:0\":\"44KiB\"}' --format=json"
    json_t *rules = berth_run_json("plan " DIGITS FAST SMALL);
    cr_assert_eq(count_on(rules, "opencl:0"), operations);
    cr_assert_eq(json_array_size(json_object_get(rules, "streamed")), 1);
    json_decref(rules);
    berth_run_fails("plan " DIGITS FAST "--set 'budgets={\"opencl:0\":\"4KiB\"}'", 1,
                    "no smaller one would do");
    json_t *small = plan_json("plan " DIGITS FAST "--strategy auto " SMALL);
    cr_assert(count_on(small, "cpu:0") > 0);
    json_decref(small);
    // Two devices of one memory: nothing is copied, and both may bind it.
    json_t *shared = plan_json("plan " DIGITS " --dim batch=1 --target cpu,cpu --pin op:Conv=cpu:1 "
                               "--format=json");
    cr_assert_eq(count_on(shared, "cpu:1"), 2);
    json_decref(shared);
    const result *r = berth_run("plan --strategy list");
    cr_assert_eq(r->exit_status, 0);
    cr_assert(strstr(r->out, "default ") && strstr(r->out, "auto ") && strstr(r->out, "greedy "));
    r = berth_run("plan --strategy list --format=json");
    json_error_t error;
    json_t *list = json_loads(r->out, 0, &error);
    cr_assert(json_array_size(list) > 2, "%s", error.text);
    size_t i = 0, k = 0;
    const json_t *a = NULL, *b = NULL;
    json_array_foreach(list, i, a) {
        cr_expect_gt(json_array_size(json_object_get(a, "descriptions")), 0);
        json_array_foreach(list, k, b) cr_expect(
            i == k || !json_equal(json_object_get(a, "name"), json_object_get(b, "name")));
    }
    json_decref(list);
    r = berth_run("plan " DIGITS " --target cpu --dim batch=1 --strategy auto --why");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->out, "latency of one request: "));
    berth_run_fails("plan " DIGITS " --dim batch=1 --strategy gready", 2,
                    "did you mean \"greedy\"?");
    berth_run_fails("plan " DIGITS " --dim batch=1 --patches some", 2, "NODE=N");
    berth_run_fails("plan " DIGITS " --dim batch=1 --patches nothing=2", 1, "they can end at");
    berth_run_fails("plan " DIGITS " --dim batch=1 --objective speed", 2,
                    "latency, throughput or memory");
    berth_run_fails("plan " DIGITS " --nodes 0", 2, "--nodes takes a number");
}

static double top_value(const char *text) {
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    json_t *top = json_object_get(json_array_get(json_object_get(json, "outputs"), 0), "top");
    double value = json_real_value(json_object_get(json_array_get(top, 0), "value"));
    json_t *latency = json_object_get(json, "latency_ms");
    cr_assert(json_real_value(json_object_get(latency, "median")) > 0);
    cr_assert(json_object_get(json_object_get(json_object_get(json, "devices"), "cpu:0"),
                              "memory_bytes"));
    json_decref(json);
    return value;
}

static void expect_program_json(const char *folder) {
    char arguments[512];
    snprintf(arguments, sizeof(arguments), "inspect %s/digits.berth --format=json", folder);
    json_error_t error;
    json_t *json = json_loads(berth_run(arguments)->out, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    json_t *wanted = json_pack("[{s:s, s:s, s:[i, i]}]", "name", "probabilities", "dtype", "f32",
                               "shape", 4, 10);
    cr_assert(json_equal(json_object_get(json, "outputs"), wanted));
    cr_assert(json_is_object(json_object_get(json, "target")));
    json_decref(wanted);
    json_decref(json);
}

// A built program gives what the model gives, without a compiler (none is on PATH; test no_compiler
// shows that this keeps models from running).
Test(command, build_then_run_without_a_compiler) {
    char folder[] = "/tmp/berth-test-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char arguments[512];
    snprintf(arguments, sizeof(arguments),
             "build " DIGITS " --dim batch=4 --target cpu -o %s/digits.berth", folder);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    r = berth_run("run " DIGITS " --dim batch=4 --target cpu --format=json");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    double expected = top_value(r->out);
    snprintf(arguments, sizeof(arguments), "run %s/digits.berth --format=json --repeat 3", folder);
    setenv("PATH", "/nonexistent", 1);
    r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_float_eq(top_value(r->out), expected, 1e-6);
    static const char *const decided[] = {
        "--dim batch=2",    "--pin op:Conv=cpu:0", "--strategy auto",  "--set devices=1",
        "--no-cache",       "--no-fusion",         "--no-layouts",     "--no-winograd",
        "--jobs 1",         "--cache-dir x",       "--cache-limit 1M", "--objective memory",
        "--nodes 5",        "--time-budget 1s",    "--host cpu",       "--executor graph",
        "--runtime hosted", "--patches least",     "--tuned x",        "--compiler-time-limit 3s"};
    for (size_t i = 0; i < sizeof(decided) / sizeof(decided[0]); ++i) {
        snprintf(arguments, sizeof(arguments), "run %s/digits.berth %s", folder, decided[i]);
        berth_run_fails(arguments, 2, "build it again");
    }
    snprintf(arguments, sizeof(arguments), "run %s/digits.berth --target 'cpu -clock_hz=1234567'",
             folder);
    berth_run_fails(arguments, 1, "devices[0].target.clock_hz: ");
    berth_run_fails(arguments, 1, ", not 1234567");
    snprintf(arguments, sizeof(arguments), "inspect %s/digits.berth", folder);
    r = berth_run(arguments);
    cr_assert(strstr(r->out, "\ninput image f32[4,1,8,8]\noutput probabilities f32[4,10]\n"), "%s",
              r->out);
    expect_program_json(folder);
    snprintf(arguments, sizeof(arguments), "verify %s/digits.berth --per-op --data %s", folder,
             folder);
    berth_run_fails(arguments, 1, "give the model");
    snprintf(arguments, sizeof(arguments), "%s/digits.berth", folder);
    remove(arguments);
    remove(folder);
}

// Slices of a track follow or hold each other: what a viewer of Chrome traces needs to draw them.
static void expect_nested(const json_t *events, json_int_t track) {
    double open_until[16];
    int depth = 0;
    double last = 0;
    size_t index;
    const json_t *event;
    json_array_foreach(events, index, event) {
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0 ||
            json_integer_value(json_object_get(event, "tid")) != track)
            continue;
        double start = json_number_value(json_object_get(event, "ts"));
        double end = start + json_number_value(json_object_get(event, "dur"));
        cr_assert(start >= last, "track %d is not sorted", (int)track);
        last = start;
        while (depth > 0 && open_until[depth - 1] <= start + 1e-3) depth--;
        cr_assert(depth == 0 || end <= open_until[depth - 1] + 1e-3, "slices of track %d overlap",
                  (int)track);
        cr_assert_lt(depth, 16);
        open_until[depth++] = end;
    }
}

Test(command, run_writes_a_chrome_trace) {
    char folder[] = "/tmp/berth-test-XXXXXX";
    char arguments[512];
    char path[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/trace.json", folder);
    snprintf(arguments, sizeof(arguments),
             "run " DIGITS " --dim batch=2 --target cpu --quiet --trace %s", path);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    json_t *trace = json_load_file(path, 0, NULL);
    remove(path);
    remove(folder);
    json_t *events = json_object_get(trace, "traceEvents"), *event;
    cr_assert(json_is_array(events));
    json_int_t tracks = 0;
    int slices = 0;
    size_t index;
    json_array_foreach(events, index, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        cr_assert(phase && (strcmp(phase, "X") == 0 || strcmp(phase, "M") == 0));
        cr_assert(json_is_string(json_object_get(event, "name")));
        cr_assert(json_is_integer(json_object_get(event, "pid")));
        cr_assert(json_is_integer(json_object_get(event, "tid")));
        json_int_t track = json_integer_value(json_object_get(event, "tid"));
        if (track > tracks) tracks = track;
        if (*phase == 'M') continue;
        slices++;
        cr_assert(json_is_string(json_object_get(event, "cat")));
        cr_assert(json_is_number(json_object_get(event, "ts")));
        cr_assert(json_is_number(json_object_get(event, "dur")));
        cr_assert_geq(json_number_value(json_object_get(event, "ts")), 0);
        cr_assert_geq(json_number_value(json_object_get(event, "dur")), 0);
    }
    cr_assert_geq(slices, 3, "a network of several steps, and the run");
    for (json_int_t t = 1; t <= tracks; ++t) expect_nested(events, t);
    json_decref(trace);
}
