// berth verify: results on a target against expected ones.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "toolkit/verify.h"
#include "toolkit/vm_session.h"
#include "tools/cli_model.h"
#include "tools/commands.h"

typedef struct verify_command {
    berth_cli_model cli;
    berth_cli_strings folders;
    const char *require;
    double rtol, atol;
    uint32_t threads;
    const char *against;  // reference target of --per-op
    bool per_op;
    berth_vm_session *vm_session;  // kept from folder to folder
} verify_command;

enum {
    key_data = 'd',
    key_require = 0x200,
    key_rtol,
    key_atol,
    key_threads,
    key_against,
    key_per_op
};

static const struct argp_option options[] = {
    {"data", key_data, "DIR", 0,
     "Folder with input_i.pb and output_i.pb (ONNX test data); may be repeated", 0},
    {"require", key_require, "DEVICE,...", 0,
     "Fail when any operation runs elsewhere, or nothing on one of them", 0},
    {"rtol", key_rtol, "R", 0, "Relative tolerance (default 1e-3)", 0},
    {"atol", key_atol, "A", 0, "Absolute tolerance (default 1e-5 of the largest expected value)",
     0},
    {"against", key_against, "T", 0, "With --per-op: the target to compare with (default: cpu)", 0},
    {"per-op", key_per_op, NULL, 0,
     "Find the first operation whose result on the target differs from the one on --against", 0},
    {"threads", key_threads, "N", 0, "CPU threads (default: all cores)", 0},
    {0},
};

static double parse_tolerance(struct argp_state *state, const char *option, const char *text) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0))
        berth_cli_wrong_usage(state, "%s takes a number >= 0, not \"%s\"", option, text);
    return value;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    verify_command *command = state->input;
    uint64_t number = 0;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_data: berth_cli_push(&command->cli, &command->folders, arg); return 0;
    case key_require: command->require = arg; return 0;
    case key_against: command->against = arg; return 0;
    case key_per_op: command->per_op = true; return 0;
    case key_rtol: command->rtol = parse_tolerance(state, "--rtol", arg); return 0;
    case key_atol: command->atol = parse_tolerance(state, "--atol", arg); return 0;
    case key_threads:
        if (!berth_cli_parse_u64(arg, &number) || number == 0 || number > 1024)
            berth_cli_wrong_usage(state, "--threads takes a number from 1 to 1024, not \"%s\"",
                                  arg);
        command->threads = (uint32_t)number;
        return 0;
    case ARGP_KEY_ARG:
        if (!command->cli.model) return ARGP_ERR_UNKNOWN;
        berth_cli_push(&command->cli, &command->folders, arg);  // --data DIR DIR...
        return 0;
    case ARGP_KEY_END:
        if (command->folders.count == 0)
            berth_cli_wrong_usage(state, "which expected results? Give --data DIR");
        if (command->against && !command->per_op)
            berth_cli_wrong_usage(state, "--against only means something with --per-op");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// JSON has no infinity and no NaN: null.
static json_t *number_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *result_json(const berth_verify_result *result) {
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const berth_comparison *c = &result->outputs[i].comparison;
        json_array_append_new(
            outputs,
            json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:I, s:I}", "name",
                      berth_cli_json_text(result->outputs[i].name), "pass", c->pass,
                      "max_absolute_error", number_json(c->max_absolute_error),
                      "max_relative_error", number_json(c->max_relative_error), "rtol",
                      number_json(c->rtol), "atol", number_json(c->atol), "elements",
                      (json_int_t)c->element_count, "mismatches", (json_int_t)c->mismatch_count));
    }
    json_t *known = json_array();
    for (uint32_t i = 0; i < result->known_input_count; ++i)
        json_array_append_new(known, berth_cli_json_text(result->known_inputs[i]));
    return json_pack("{s:o, s:b, s:s, s:o, s:I, s:I, s:o}", "data",
                     berth_cli_json_text(result->folder), "pass", result->pass, "executor",
                     result->by_vm ? "vm" : "graph", "compiled_in", known, "kernels",
                     (json_int_t)result->kernel_count, "host_operations",
                     (json_int_t)result->host_operations, "outputs", outputs);
}

static void print_known(const berth_verify_result *result) {
    if (result->by_vm) berth_cli_print("%s: run by the virtual machine\n", result->folder);
    if (result->host_operations)
        berth_cli_print("%s: %llu operations on data computed on the host by the reference "
                        "interpreter\n",
                        result->folder, (unsigned long long)result->host_operations);
    if (result->known_input_count) {
        printf("%s: compiled in, as shapes or branches depend on them: the values of",
               result->folder);
        for (uint32_t i = 0; i < result->known_input_count; ++i)
            printf("%s %s", i ? "," : "", result->known_inputs[i]);
        putchar('\n');
    }
    if (result->computed_before)
        printf("%s: nothing runs: all results are computed before the run\n", result->folder);
}

static void print_result(const berth_verify_result *result) {
    print_known(result);
    for (uint32_t i = 0; i < result->output_count; ++i) {
        const berth_comparison *c = &result->outputs[i].comparison;
        berth_cli_print(
            "%s: output %s: largest error %.3g absolute, %.3g relative (rtol %g, atol %.3g): %s\n",
            result->folder, result->outputs[i].name, c->max_absolute_error, c->max_relative_error,
            c->rtol, c->atol, c->pass ? "PASS" : "FAIL");
        if (!c->pass)
            berth_cli_print(
                "  %lld of %lld elements differ; the worst is element %lld: %g, expected %g\n",
                (long long)c->mismatch_count, (long long)c->element_count,
                (long long)c->worst_index, c->worst_got, c->worst_expected);
    }
}

static berth_status per_op(verify_command *command, const char *folder,
                           const berth_verify_options *verify, bool *out_pass, json_t *results) {
    const char *against = command->against ? command->against : "cpu";
    berth_verify_result result;
    uint32_t compared = 0;
    BERTH_TRY(berth_verify_per_op(command->cli.arena, command->cli.model, folder, against, verify,
                                  &result, &compared));
    *out_pass &= result.pass;
    if (results) {
        json_t *json = result_json(&result);
        json_object_set_new(json, "against", berth_cli_json_text(against));
        json_object_set_new(json, "compared", json_integer(compared));
        json_array_append_new(results, json);
        return BERTH_OK;
    }
    if (result.pass)
        berth_cli_print("%s: %u results agree with %s\n", folder, compared, against);
    else
        berth_cli_print("%s: %u results agree with %s, then the first that differs:\n", folder,
                        compared - 1, against);
    print_result(&result);
    return BERTH_OK;
}

static berth_status verify_all(verify_command *command, bool *out_pass, json_t *results) {
    berth_verify_options verify = {.compare = {.rtol = command->rtol, .atol = command->atol},
                                   .thread_count = command->threads,
                                   .require_device = command->require};
    verify.vm_session = &command->vm_session;
    BERTH_TRY(berth_cli_model_options(&command->cli, false, &verify.model));
    *out_pass = true;
    for (uint32_t i = 0; i < command->folders.count; ++i) {
        if (command->per_op) {
            BERTH_TRY(per_op(command, command->folders.data[i], &verify, out_pass, results));
            continue;
        }
        berth_verify_result result;
        BERTH_TRY(berth_verify_folder(command->cli.arena, command->cli.model,
                                      command->folders.data[i], &verify, &result));
        *out_pass &= result.pass;
        if (results)
            json_array_append_new(results, result_json(&result));
        else
            print_result(&result);
    }
    return BERTH_OK;
}

static berth_status run(void *state) {
    verify_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    json_t *results = json ? json_array() : NULL;
    bool pass = false;
    berth_status status = verify_all(command, &pass, results);
    if (!status && json)
        berth_cli_print_json(json_pack("{s:b, s:O}", "pass", pass, "results", results));
    else if (!status)
        puts(pass ? "PASS" : "FAIL");
    json_decref(results);
    if (!pass) command->cli.exit_status = 1;
    return status;
}

static void end(void *state) {
    berth_vm_session_close(((verify_command *)state)->vm_session);
}

int berth_cmd_verify(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL --data DIR...",
                 "Runs MODEL on the inputs of each DIR and compares its outputs with the expected "
                 "ones.\vPASS means |got - expected| <= atol + rtol * |expected| for every "
                 "element.",
                 children, NULL, NULL},
        .run = run,
        .end = end};
    verify_command state = {.rtol = -1, .atol = -1};
    return berth_cli_run(&command, &state, argc, argv);
}
