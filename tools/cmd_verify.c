// berth verify: results on a target against expected ones.
#include <berth/verify.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct verify_command {
    berth_cli_model cli;
    berth_cli_strings folders;
    berth_verify_settings settings;
    const char *against;  // reference target of --per-op
    bool per_op;
    berth_compiler *compiler;
    berth_verifier *verifier;
} verify_command;

enum {
    key_data = 'd',
    key_require = 0x200,
    key_rtol,
    key_atol,
    key_threads,
    key_against,
    key_per_op,
    key_state
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
    {"state", key_state, "INPUT=OUTPUT", 0,
     BERTH_CLI_STATE ". What a DIR does not give is what the DIR before it left", 0},
    {"threads", key_threads, "N", 0, "CPU threads (default: the target's cores)", 0},
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
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case key_data: berth_cli_push(&command->cli, &command->folders, arg); return 0;
    case key_require: command->settings.require = arg; return 0;
    case key_state: berth_cli_take_state(state, &command->cli, arg); return 0;
    case key_against: command->against = arg; return 0;
    case key_per_op: command->per_op = true; return 0;
    case key_rtol:
        command->settings.rtol = parse_tolerance(state, "--rtol", arg);
        command->settings.has_rtol = 1;
        return 0;
    case key_atol:
        command->settings.atol = parse_tolerance(state, "--atol", arg);
        command->settings.has_atol = 1;
        return 0;
    case key_threads:
        if (!berth_cli_parse_u64(arg, &number) || number == 0 || number > 1024)
            berth_cli_wrong_usage(state, "--threads takes a number from 1 to 1024, not \"%s\"",
                                  arg);
        command->settings.thread_count = (uint32_t)number;
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

static json_t *result_json(const berth_verification *result) {
    const berth_verification_facts *facts = berth_verification_facts_of(result);
    json_t *outputs = json_array();
    for (uint32_t i = 0; i < berth_verification_output_count(result); ++i) {
        const berth_verification_output *o = berth_verification_output_at(result, i);
        json_array_append_new(outputs,
                              json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:I, s:I}", "name",
                                        berth_cli_json_text(o->name), "pass", o->pass,
                                        "max_absolute_error", number_json(o->max_absolute_error),
                                        "max_relative_error", number_json(o->max_relative_error),
                                        "rtol", number_json(o->rtol), "atol", number_json(o->atol),
                                        "elements", (json_int_t)o->element_count, "mismatches",
                                        (json_int_t)o->mismatch_count));
    }
    json_t *known = json_array();
    for (uint32_t i = 0; i < berth_verification_known_input_count(result); ++i)
        json_array_append_new(known,
                              berth_cli_json_text(berth_verification_known_input(result, i)));
    return json_pack("{s:o, s:b, s:s, s:o, s:I, s:I, s:o}", "data",
                     berth_cli_json_text(facts->folder), "pass", facts->pass, "executor",
                     facts->by_vm ? "vm" : "graph", "compiled_in", known, "kernels",
                     (json_int_t)facts->kernel_count, "host_operations",
                     (json_int_t)facts->host_operations, "outputs", outputs);
}

static void print_known(const berth_verification *result) {
    const berth_verification_facts *facts = berth_verification_facts_of(result);
    if (facts->by_vm) berth_cli_print("%s: run by the virtual machine\n", facts->folder);
    if (facts->host_operations)
        berth_cli_print("%s: %llu operations on data computed on the host by the reference "
                        "interpreter\n",
                        facts->folder, (unsigned long long)facts->host_operations);
    if (berth_verification_known_input_count(result)) {
        printf("%s: compiled in, as shapes or branches depend on them: the values of",
               facts->folder);
        for (uint32_t i = 0; i < berth_verification_known_input_count(result); ++i)
            printf("%s %s", i ? "," : "", berth_verification_known_input(result, i));
        putchar('\n');
    }
    if (facts->computed_before)
        printf("%s: nothing runs: all results are computed before the run\n", facts->folder);
}

static void print_result(const berth_verification *result) {
    const char *folder = berth_verification_facts_of(result)->folder;
    print_known(result);
    for (uint32_t i = 0; i < berth_verification_output_count(result); ++i) {
        const berth_verification_output *o = berth_verification_output_at(result, i);
        berth_cli_print(
            "%s: output %s: largest error %.3g absolute, %.3g relative (rtol %g, atol %.3g): %s\n",
            folder, o->name, o->max_absolute_error, o->max_relative_error, o->rtol, o->atol,
            o->pass ? "PASS" : "FAIL");
        if (!o->pass)
            berth_cli_print(
                "  %lld of %lld elements differ; the worst is element %lld: %g, expected %g\n",
                (long long)o->mismatch_count, (long long)o->element_count,
                (long long)o->worst_index, o->worst_got, o->worst_expected);
    }
}

static void print_per_op(const berth_verification *result, const char *against) {
    const berth_verification_facts *facts = berth_verification_facts_of(result);
    if (facts->pass)
        berth_cli_print("%s: %u results agree with %s\n", facts->folder, facts->compared_count,
                        against);
    else
        berth_cli_print("%s: %u results agree with %s, then the first that differs:\n",
                        facts->folder, facts->compared_count - 1, against);
    print_result(result);
}

static void show(const verify_command *command, const berth_verification *result, json_t *results) {
    const char *against = command->against ? command->against : "cpu";
    if (!results && command->per_op) {
        print_per_op(result, against);
    } else if (!results) {
        print_result(result);
    } else {
        json_t *json = result_json(result);
        if (command->per_op) {
            const berth_verification_facts *facts = berth_verification_facts_of(result);
            json_object_set_new(json, "against", berth_cli_json_text(against));
            json_object_set_new(json, "compared", json_integer(facts->compared_count));
        }
        json_array_append_new(results, json);
    }
}

static berth_status verify_all(verify_command *command, bool *out_pass, json_t *results) {
    const char *against = command->against ? command->against : "cpu";
    BERTH_TRY(berth_cli_compiler(&command->cli, false, &command->compiler));
    BERTH_TRY(berth_verifier_create(command->compiler, command->cli.model, &command->settings,
                                    &command->verifier));
    *out_pass = true;
    for (uint32_t i = 0; i < command->folders.count; ++i) {
        const char *folder = command->folders.data[i];
        berth_verification *result = NULL;
        BERTH_TRY(command->per_op
                      ? berth_verifier_run_per_op(command->verifier, folder, against, &result)
                      : berth_verifier_run(command->verifier, folder, &result));
        *out_pass &= berth_verification_facts_of(result)->pass != 0;
        show(command, result, results);
        berth_verification_free(result);
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
    verify_command *command = state;
    berth_verifier_destroy(command->verifier);
    berth_compiler_destroy(command->compiler);
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
    verify_command state = {.settings = {.size_bytes = sizeof(state.settings)}};
    return berth_cli_run(&command, &state, argc, argv);
}
