// berth quantize: a float model becomes one with 8-bit weights and activations, in QDQ form.
#include <berth/quantize.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct quantize_command {
    berth_cli_model cli;
    berth_quantize_settings settings;
    const char *output;
    const char *report;
    berth_compiler *compiler;
    berth_quantized *result;
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
    {"scales", key_scales, "float|power-of-two", 0,
     "power-of-two: results need only be shifted (default for a target with a VTA, else float)", 0},
    {"per-channel", key_per_channel, NULL, 0,
     "A scale for each output channel of the weights, not one for all", 0},
    {"method", key_method, "mse|minmax|percentile|entropy", 0,
     "How ranges of values are found (default: mse, the least squared error)", 0},
    {"percentile", key_percentile, "P", 0,
     "With --method percentile: share of the values within the range (default 99.99%)", 0},
    {"equalize", key_equalize, "auto|on|off", 0,
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
    quantize_command *command = state->input;
    berth_quantize_settings *o = &command->settings;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_output: command->output = arg; return 0;
    case key_calibrate: o->calibration = arg; return 0;
    case key_scales:
        o->scales = berth_cli_choose_value(state, key, arg) == 1 ? BERTH_SCALES_POWER_OF_TWO
                                                                 : BERTH_SCALES_FLOAT;
        return 0;
    case key_per_channel: o->per_channel = 1; return 0;
    case key_method:
        o->range = (berth_quantize_range)berth_cli_choose_value(state, key, arg);
        return 0;
    case key_percentile: o->percentile = parse_share(state, "--percentile", arg); return 0;
    case key_equalize:
        o->equalization = (berth_quantize_equalization)berth_cli_choose_value(state, key, arg);
        return 0;
    case key_no_bias_correction: o->no_bias_correction = 1; return 0;
    case key_keep_worst:
        o->keep_worst = (uint32_t)berth_cli_number(state, "--keep-worst", arg, 0, 1000000);
        return 0;
    case key_max_drop:
        o->max_drop = parse_share(state, "--max-drop", arg);
        o->has_max_drop = 1;
        return 0;
    case key_labels: o->labels = arg; return 0;
    case key_values: o->compare_values = 1; return 0;
    case key_report: parse_report(command, arg, state); return 0;
    case key_threads:
        o->thread_count = (uint32_t)berth_cli_number(state, "--threads", arg, 1, 1024);
        return 0;
    case ARGP_KEY_END:
        if (!o->calibration) berth_cli_wrong_usage(state, "--calibrate DIR is missing");
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

static berth_status write_report(const quantize_command *command) {
    if (!command->report) return BERTH_OK;
    const char *dot = strrchr(command->report, '.'), *text = NULL;
    BERTH_TRY(berth_quantized_report(command->result,
                                     strcmp(dot, ".json") == 0  ? BERTH_REPORT_JSON
                                     : strcmp(dot, ".svg") == 0 ? BERTH_REPORT_SVG
                                                                : BERTH_REPORT_TEXT,
                                     &text));
    return berth_file_write(command->report, text, strlen(text));
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
    bool json = berth_cli_wants_json(&command->cli);
    const char *text = NULL;
    command->settings.progress = show_progress;
    command->settings.progress_user = command;
    BERTH_TRY(berth_cli_compiler(&command->cli, false, &command->compiler));
    BERTH_TRY(berth_compiler_quantize_file(command->compiler, command->cli.model,
                                           &command->settings, &command->result));
    berth_interrupt interrupt = berth_cli_interrupt(&command->cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status = berth_quantized_save(command->result, command->output);
    if (!status) status = write_report(command);
    berth_interrupt_defer(interrupt, false);
    BERTH_TRY(status);
    BERTH_TRY(berth_quantized_report(command->result, json ? BERTH_REPORT_JSON : BERTH_REPORT_TEXT,
                                     &text));
    if (json)
        berth_cli_put_json(text);
    else
        print_text(text);
    return BERTH_OK;
}

static void end(void *state) {
    quantize_command *command = state;
    berth_quantized_free(command->result);
    berth_compiler_destroy(command->compiler);
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
        .run = run,
        .end = end};
    quantize_command state = {.settings = {.size_bytes = sizeof(state.settings)}};
    return berth_cli_run(&command, &state, argc, argv);
}
