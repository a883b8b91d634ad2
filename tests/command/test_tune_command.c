// berth tune; decisions that a module or a file gives take the place of the policies'.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

#define DIGITS "examples/digits/digits.onnx"
#define TARGET " --target 'cpu -vector_bits=256' "

static char folder[64];

static void make_folder(void) {
    strcpy(folder, "/tmp/berth-tune-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void) {
    char text[96];
    snprintf(text, sizeof(text), "rm -r %s", folder);
    cr_assert_eq(system(text), 0);
}

TestSuite(tune_command, .init = make_folder, .fini = remove_folder);

// `text` with the folder in place of each '@'.
static const char *in_folder(const char *text) {
    static char out[1024];
    size_t length = 0;
    for (; *text && length + 64 < sizeof(out); ++text)
        length +=
            (size_t)snprintf(out + length, sizeof(out) - length, "%.*s",
                             *text == '@' ? (int)strlen(folder) : 1, *text == '@' ? folder : text);
    return out;
}

static void shell(const char *text) {
    cr_assert_eq(system(in_folder(text)), 0, "%s", text);
}

// ---- modules ------------------------------------------------------------------------------------

#define UNTIL_SCHEDULE                                                                             \
    "keep-names,fold-constants,find-integers,simplify,plan-devices,inline-calls,layout,fuse,"      \
    "find-parts,lower,plan-scopes"
#define GIVE(decisions)                                                                            \
    "sed 's/^\\(.*out)\\) flops 576.0/\\1 flops 576.0 {decisions = [\"" decisions                  \
    "\"]}/' @/lowered.txt >@/given.txt"

static void lower(void) {
    shell(BERTH_COMMAND " opt examples/compiler/conv.txt" TARGET "--passes " UNTIL_SCHEDULE
                        " >@/lowered.txt");
}

Test(tune_command, a_module_gives_decisions) {
    lower();
    shell(GIVE("rows=3 columns=1"));
    shell("grep -q 'rows=3' @/given.txt");
    const result *r = berth_run(in_folder("opt @/given.txt --passes schedule"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->out, "lanes=8 columns=1 rows=3"));
    cr_expect(strstr(r->out, "%acc: f32x8[3]"));
    r = berth_run(in_folder("opt @/lowered.txt --passes schedule"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not(strstr(r->out, "rows=3"));
}

Test(tune_command, decisions_of_a_module_that_are_not_possible) {
    lower();
    shell(GIVE("rows=99"));
    berth_run_fails(in_folder("opt @/given.txt --passes schedule"), 1,
                    "scheduling k1_conv_relu.1 for cpu: nest 0: rows=99 is not possible: 1 to 4");
    shell(GIVE("rowz=9"));
    berth_run_fails(in_folder("opt @/given.txt --passes schedule"), 1,
                    "nest 0: decisions \"rowz=9\", column 1: there is no decision of this name");
    shell(GIVE("rows=2\", \"rows=2"));
    berth_run_fails(in_folder("opt @/given.txt --passes schedule"), 1,
                    "the attribute \"decisions\" has 2 entries, and the function 1 nests");
}

// ---- files --------------------------------------------------------------------------------------

// The first kernel of a plan whose decisions contain `text`.
static json_t *find_kernel(const json_t *plan, const char *text) {
    size_t i = 0;
    json_t *kernel = NULL;
    json_array_foreach(json_object_get(plan, "kernels"), i, kernel) {
        const json_t *nest = json_array_get(json_object_get(kernel, "nests"), 0);
        if (strstr(json_string_value(json_object_get(nest, "decisions")), text)) return kernel;
    }
    return NULL;
}

// A record for the first register tile of the digits' kernels that is higher than one row.
static void write_record(const char *decisions) {
    json_t *plan = berth_run_json("plan " DIGITS TARGET "--tuned none -q --format=json");
    json_t *kernel = find_kernel(plan, " rows=");
    cr_assert_not_null(kernel);
    FILE *file = fopen(in_folder("@/t.jsonl"), "w");
    cr_assert_not_null(file);
    // The culled target is what a calibration writes.
    shell(BERTH_COMMAND " calibrate " DIGITS TARGET "--duration 1ms -q -o @/c.jsonl >/dev/null");
    FILE *costs = fopen(in_folder("@/c.jsonl"), "r");
    cr_assert_not_null(costs);
    json_error_t error;
    json_t *line = json_loadf(costs, JSON_DISABLE_EOF_CHECK, &error);
    fclose(costs);
    cr_assert_not_null(line, "%s", error.text);
    json_t *record =
        json_pack("{s:O, s:O, s:[s], s:f, s:f, s:i}", "target", json_object_get(line, "target"),
                  "function", json_object_get(kernel, "function"), "decisions", decisions, "ns",
                  1.0, "policy_ns", 2.0, "runs", 1);
    cr_assert_not_null(record);
    cr_assert_eq(json_dumpf(record, file, JSON_COMPACT), 0);
    fclose(file);
    json_decref(record);
    json_decref(line);
    json_decref(plan);
}

// Of the probabilities that both programs compute.
static double largest_difference(void) {
    float values[2][10];
    for (int i = 0; i < 2; ++i) {
        char text[256];
        const char *name = i ? "tuned" : "policy";
        snprintf(text, sizeof(text), "run @/%s.berth -q --seed 3 -o probabilities=@/%s.npy", name,
                 name);
        const result *r = berth_run(in_folder(text));
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        snprintf(text, sizeof(text), "@/%s.npy", name);
        FILE *file = fopen(in_folder(text), "rb");
        cr_assert_not_null(file);
        cr_assert_eq(fseek(file, -(long)sizeof(values[i]), SEEK_END), 0);
        cr_assert_eq(fread(values[i], sizeof(float), 10, file), 10);
        fclose(file);
    }
    double largest = 0, sum = 0;
    for (int i = 0; i < 10; ++i) {
        double difference = (double)values[0][i] - (double)values[1][i];
        if (difference < 0) difference = -difference;
        if (!(difference <= largest)) largest = difference;
        sum += (double)values[0][i];
    }
    cr_expect(sum > 0.999 && sum < 1.001, "%g", sum);
    return largest;
}

Test(tune_command, a_file_gives_decisions) {
    write_record("rows=2 columns=1");
    json_t *plan =
        berth_run_json(in_folder("plan " DIGITS TARGET "--tuned @/t.jsonl -q --format=json"));
    json_t *kernel = find_kernel(plan, "columns=1 rows=2");
    cr_assert_not_null(kernel);
    cr_expect_str_eq(json_string_value(json_object_get(kernel, "by")), "tuned");
    json_decref(plan);
    const result *r = berth_run(in_folder("plan " DIGITS TARGET "--tuned @/t.jsonl --why"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect(strstr(r->out, "decided by: tuned"));
    cr_expect(strstr(r->out, "decided by: policy"));
    cr_expect(strstr(r->err, "tuned: 1 of "));
    // Other code, the same results.
    shell(BERTH_COMMAND " build " DIGITS TARGET "--tuned none -q -o @/policy.berth >/dev/null");
    shell(BERTH_COMMAND " build " DIGITS TARGET "--tuned @/t.jsonl -q -o @/tuned.berth >/dev/null");
    shell("! cmp -s @/policy.berth @/tuned.berth");
    cr_expect_lt(largest_difference(), 1e-5);
    r = berth_run(in_folder("plan " DIGITS TARGET "--tuned none --why"));
    cr_expect_not(strstr(r->out, "decided by: tuned"));
}

Test(tune_command, decisions_of_a_file_are_checked) {
    write_record("rows=1000");
    berth_run_fails(in_folder("plan " DIGITS TARGET "--tuned @/t.jsonl"), 1,
                    "rows=1000 is not possible");
    write_record("nothing");
    berth_run_fails(in_folder("plan " DIGITS TARGET "--tuned @/t.jsonl"), 1,
                    "column 1: a decision is NAME=VALUE");
    berth_run_fails(in_folder("plan " DIGITS TARGET "--tuned @/none.jsonl"), 1, "none.jsonl");
}

// Records are of kernels that gain; what they say is what compilations take.
Test(tune_command, searches_and_writes) {
    json_t *report = berth_run_json(
        in_folder("tune " DIGITS " --target cpu --trials 4 -q -o @/found.jsonl --format=json"));
    json_int_t records = json_integer_value(json_object_get(report, "records"));
    cr_expect_eq(records, json_integer_value(json_object_get(report, "found")));
    json_decref(report);
    FILE *file = fopen(in_folder("@/found.jsonl"), "r");
    cr_assert_not_null(file);
    json_error_t error;
    json_t *line = NULL;
    for (; (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, &error)); --records) {
        double ns = json_number_value(json_object_get(line, "ns"));
        double policy_ns = json_number_value(json_object_get(line, "policy_ns"));
        cr_expect(ns > 0 && ns < policy_ns, "%g, %g", ns, policy_ns);
        json_decref(line);
    }
    fclose(file);
    cr_expect_eq(records, 0);
    const result *r =
        berth_run(in_folder("tune --merge @/found.jsonl @/found.jsonl -o @/merged.jsonl"));
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    shell("cmp @/found.jsonl @/merged.jsonl");
    r = berth_run(in_folder("run " DIGITS " --target cpu -q --tuned @/found.jsonl"));
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
}

Test(tune_command, wrong_usage) {
    berth_run_fails("tune", 2, "a MODEL is missing");
    berth_run_fails("tune --merge a.jsonl", 2, "--merge needs -o FILE");
    berth_run_fails("tune a.onnx b.onnx", 2, "one MODEL at a time");
    berth_run_fails("tune " DIGITS " --budget soon", 2, "--budget takes a time");
    berth_run_fails("tune " DIGITS " --trials 0", 2, "--trials takes a number");
    berth_run_fails("tune no-such.onnx", 1, "no-such.onnx");
    berth_run_fails(in_folder("tune --merge @/none -o @/o"), 1, "none");
}
