// berth quantize: a float model becomes one with 8-bit weights and activations, in QDQ form.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "toolkit/quantize/quantize.h"
#include "tools/cli_model.h"
#include "tools/commands.h"

typedef struct quantize_command {
    berth_cli_model cli;
    berth_quantize_options options;
    const char *output;
    const char *report;
    const char *scales;  // as given; NULL = as the target wants
} quantize_command;

enum {
    key_output = 'o',
    key_calibrate = 0x700,
    key_scales,
    key_per_channel,
    key_method,
    key_percentile,
    key_equalize,
    key_no_bias_correction,
    key_keep_worst,
    key_max_drop,
    key_labels,
    key_values,
    key_report,
    key_threads,
};

static const struct argp_option options[] = {
    {"calibrate", key_calibrate, "DIR", 0,
     "Inputs that are as those the model is for: each .npy or .pb file in DIR (models with one "
     "input), or each folder with input_0.pb, input_1.pb, ..., is a data set. A single file is one",
     0},
    {"output", key_output, "FILE", 0, "Write the quantised model here", 0},
    {"scales", key_scales, "KIND", 0,
     "float (default), or power-of-two: results need only be shifted (default for a target with a "
     "VTA)",
     0},
    {"per-channel", key_per_channel, NULL, 0,
     "A scale for each output channel of the weights, not one for all", 0},
    {"method", key_method, "NAME", 0,
     "How ranges of values are found: mse (default: least squared error), minmax, percentile, "
     "entropy",
     0},
    {"percentile", key_percentile, "P", 0,
     "With --method percentile: share of the values within the range (default 99.99%)", 0},
    {"equalize", key_equalize, "WHEN", 0,
     "Scale channels of neighbouring layers alike: auto (default: where outputs are more "
     "exact), on, off",
     0},
    {"no-bias-correction", key_no_bias_correction, NULL, 0,
     "Leave biases as they are, not less each channel's mean error", 0},
    {"keep-worst", key_keep_worst, "N", 0, "Keep the N layers that lose most in float", 0},
    {"max-drop", key_max_drop, "P", 0,
     "Keep as few layers in float as a loss of at most P needs: 1%, 0.01", 0},
    {"labels", key_labels, "FILE", 0,
     "The right classes, one integer per row of the data sets: .npy, or text. Without: those of "
     "the float model",
     0},
    {"compare-values", key_values, NULL, 0,
     "The loss is the outputs' noise over their signal, also where outputs look like classes", 0},
    {"report", key_report, "FILE", 0, "Write the report: .json, .txt or .svg", 0},
    {"threads", key_threads, "N", 0, "CPU threads (default: all cores)", 0},
    {0},
};

// "1%" or "0.01", from 0 to 1.
static double parse_share(struct argp_state *state, const char *option, const char *arg) {
    char *end = NULL;
    double value = strtod(arg, &end);
    if (end != arg && strcmp(end, "%") == 0) {
        value /= 100;
        ++end;
    }
    if (end == arg || *end || !(value >= 0 && value <= 1))
        berth_cli_wrong_usage(state, "%s takes a share such as 1%% or 0.01, not \"%s\"", option,
                              arg);
    return value;
}

static void parse_report(quantize_command *command, char *arg, struct argp_state *state) {
    const char *dot = strrchr(arg, '.');
    if (!dot || (strcmp(dot, ".json") != 0 && strcmp(dot, ".txt") != 0 && strcmp(dot, ".svg") != 0))
        berth_cli_wrong_usage(state,
                              "--report takes a file that ends in .json, .txt or .svg, not "
                              "\"%s\"",
                              arg);
    command->report = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    static const char *const scales[] = {"float", "power-of-two", NULL};
    static const char *const methods[] = {"mse", "minmax", "percentile", "entropy", NULL};
    static const char *const equalize[] = {"auto", "on", "off", NULL};
    quantize_command *command = state->input;
    berth_quantize_options *o = &command->options;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_output: command->output = arg; return 0;
    case key_calibrate: o->calibrate = arg; return 0;
    case key_scales:
        o->power_of_two = berth_cli_choose(state, "--scales", arg, scales) == 1;
        command->scales = arg;
        return 0;
    case key_per_channel: o->per_channel = true; return 0;
    case key_method:
        o->method = (berth_quantize_method)berth_cli_choose(state, "--method", arg, methods);
        return 0;
    case key_percentile: o->percentile = parse_share(state, "--percentile", arg); return 0;
    case key_equalize:
        o->equalize = (berth_quantize_equalize)berth_cli_choose(state, "--equalize", arg, equalize);
        return 0;
    case key_no_bias_correction: o->no_bias_correction = true; return 0;
    case key_keep_worst:
        o->keep_worst = (uint32_t)berth_cli_number(state, "--keep-worst", arg, 0, 1000000);
        return 0;
    case key_max_drop: o->max_drop = parse_share(state, "--max-drop", arg); return 0;
    case key_labels: o->labels = arg; return 0;
    case key_values: o->compare_values = true; return 0;
    case key_report: parse_report(command, arg, state); return 0;
    case key_threads:
        o->thread_count = (uint32_t)berth_cli_number(state, "--threads", arg, 1, 1024);
        return 0;
    case ARGP_KEY_END:
        if (!o->calibrate) berth_cli_wrong_usage(state, "--calibrate DIR is missing");
        if (!command->output) berth_cli_wrong_usage(state, "-o FILE is missing");
        if (command->cli.inputs.count || command->cli.pins.count)
            berth_cli_wrong_usage(state, "inputs are those of --calibrate, and nothing is placed: "
                                         "leave --input and --pin out");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// On a terminal a line that counts, elsewhere one per pass.
static void show_progress(void *user, const char *what, uint32_t done, uint32_t total) {
    const quantize_command *command = user;
    if (command->cli.quiet) return;
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\rberth: %s: %u of %u%s", what, done, total, done == total ? "\n" : "");
        fflush(stderr);
    } else if (done == total) {
        berth_cli_message(
            "note", berth_arena_printf(command->cli.arena, "%s: %u of %u", what, done, total));
    }
}

static bool has_npu(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].target->kind == BERTH_DEVICE_VTA) return true;
    return false;
}

// Conventions of the target that the model is for; it runs on the processor here.
static berth_status take_target(quantize_command *command) {
    berth_quantize_options *o = &command->options;
    if (!command->cli.target) return BERTH_OK;
    berth_machine_facts facts;
    berth_multi_target *target = NULL;
    berth_target_options target_options = o->model.target_options;
    BERTH_TRY(berth_machine_facts_for(command->cli.arena, command->cli.target, &facts));
    target_options.machine = &facts;
    BERTH_TRY(
        berth_target_parse(command->cli.arena, command->cli.target, &target_options, &target));
    if (!has_npu(target)) return BERTH_OK;
    if ((command->scales && !o->power_of_two) || o->per_channel)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a VTA shifts results, all channels alike: with %s no layer would "
                                 "run there, all would run elsewhere; leave that out, or give "
                                 "another target",
                                 o->per_channel ? "a scale per channel" : "float scales");
    o->power_of_two = o->whole = true;
    return BERTH_OK;
}

static berth_status write_report(const quantize_command *command,
                                 const berth_quantize_result *result) {
    if (!command->report) return BERTH_OK;
    const char *dot = strrchr(command->report, '.');
    berth_strbuf out = berth_strbuf_make(command->cli.arena);
    berth_quantize_report(result,
                          strcmp(dot, ".json") == 0  ? BERTH_QUANTIZE_JSON
                          : strcmp(dot, ".svg") == 0 ? BERTH_QUANTIZE_SVG
                                                     : BERTH_QUANTIZE_TEXT,
                          &out);
    return berth_file_write(command->report, out.data, out.length);
}

static void print_text(const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        berth_cli_print("%.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static berth_status run(void *state) {
    quantize_command *command = state;
    berth_quantize_options *o = &command->options;
    berth_quantize_result result;
    bool json = berth_cli_wants_json(&command->cli);
    BERTH_TRY(berth_cli_model_options(&command->cli, false, &o->model));
    BERTH_TRY(take_target(command));
    o->model.target = "cpu";
    o->model.target_options = (berth_target_options){
        .log = o->model.target_options.log, .tag_folder = o->model.target_options.tag_folder};
    o->model.compile.progress = NULL;
    o->model.import.default_batch = 0;
    o->progress = show_progress;
    o->progress_user = command;
    BERTH_TRY(berth_quantize(command->cli.arena, command->cli.model, o, &result));
    berth_interrupt interrupt = berth_cli_interrupt(&command->cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status = berth_file_write(command->output, result.model, result.model_bytes);
    if (!status) status = write_report(command, &result);
    berth_interrupt_defer(interrupt, false);
    BERTH_TRY(status);
    berth_strbuf out = berth_strbuf_make(command->cli.arena);
    berth_quantize_report(&result, json ? BERTH_QUANTIZE_JSON : BERTH_QUANTIZE_TEXT, &out);
    if (json)
        berth_cli_put_json(berth_strbuf_text(&out));
    else
        print_text(berth_strbuf_text(&out));
    return BERTH_OK;
}

int berth_cmd_quantize(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL --calibrate DIR -o FILE",
                 "Makes a float ONNX model one with 8-bit weights and activations, in QDQ form, "
                 "which ONNX Runtime runs, too.\vThe model runs on this machine's processor over "
                 "the data sets; --target says what it is for. Shown for each layer, in dB of "
                 "signal over noise: what its weights lose, what it loses alone, and what its "
                 "result has lost in the whole model. See docs/quantize.md.",
                 children, NULL, NULL},
        .run = run};
    quantize_command state = {.options = {.max_drop = -1}};
    return berth_cli_run(&command, &state, argc, argv);
}
