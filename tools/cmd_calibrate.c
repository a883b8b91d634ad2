// berth calibrate: measures kernels and copies on this machine, for plans to predict by.
#include <berth/calibrate.h>

#include "tools/commands.h"
#include "tools/measured_file.h"

typedef struct calibrate_command {
    berth_cli_model cli;
    berth_cli_measured file;
    int64_t duration_ns;
    berth_cli_words device_words;
    bool by_model;
    berth_compiler *compiler;
    berth_costs *costs;
} calibrate_command;

enum { key_duration = 0x600, key_by_model, key_device_options };

static const struct argp_option options[] = {
    {"output", BERTH_CLI_KEY_OUTPUT, "FILE", 0,
     "Write the costs here (default: costs.jsonl in the folder of compiled kernels, where plans "
     "look "
     "for it). What a file holds already of other work is kept",
     0},
    {"merge", BERTH_CLI_KEY_MERGE, NULL, 0,
     "Measure nothing: the arguments are files of costs, which become one (-o). Means, weighted by "
     "runs, where several have the same work",
     0},
    {"by-model", key_by_model, NULL, 0,
     "Run nothing: of devices whose plug-in has a timing model (vta), what it says of the compiled "
     "MODELs, for a machine that is not here. Other devices are left out",
     0},
    {"device-options", key_device_options, "DEVICE=WORDS", 0, BERTH_CLI_DEVICE_OPTIONS, 0},
    {"duration", key_duration, "TIME", 0,
     "Runs of each program on each device take about so long (default: 2s)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    calibrate_command *command = state->input;
    bool is_file = berth_cli_measured_take(&command->file, state, key, arg, "files of costs");
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->file.cli = &command->cli;
        return 0;
    case key_device_options:
        berth_cli_take_device_options(state, &command->cli, &command->device_words, arg);
        return 0;
    case key_by_model: command->by_model = true; return 0;
    case key_duration:
        if (!berth_parse_time(arg, &command->duration_ns))
            berth_cli_wrong_usage(
                state, "--duration takes a time such as 500ms, 10s or 2m, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_NO_ARGS: command->cli.model = ""; return 0;
    case ARGP_KEY_END:
        if (command->by_model && command->file.files.count == 0)
            berth_cli_wrong_usage(state, "--by-model needs a MODEL");
        return 0;
    default: return is_file ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static void show_progress(void *user, const char *what) {
    const calibrate_command *command = user;
    if (!command->cli.quiet)
        berth_cli_message("note", berth_arena_printf(command->cli.arena, "measuring %s", what));
}

static berth_status measure(void *user) {
    calibrate_command *command = user;
    const berth_cli_strings *models = &command->file.files;
    const berth_calibrate_settings settings = {.size_bytes = sizeof(settings),
                                               .duration_ns = command->duration_ns,
                                               .seed = 1,
                                               .by_model = command->by_model,
                                               .device_words = command->device_words.data,
                                               .device_word_count = command->device_words.count,
                                               .on_begin = show_progress,
                                               .user = command};
    BERTH_TRY(berth_cli_compiler(&command->cli, false, &command->compiler));
    if (models->count == 0)
        return berth_compiler_calibrate(command->compiler, NULL, &settings, command->costs);
    for (uint32_t i = 0; i < models->count; ++i)
        BERTH_TRY(berth_status_prefix(
            berth_compiler_calibrate(command->compiler, models->data[i], &settings, command->costs),
            "%s", models->data[i]));
    return BERTH_OK;
}

static berth_status read_costs(void *user, const char *path) {
    const calibrate_command *command = user;
    return berth_costs_read(command->costs, path);
}

static berth_status keep_older(void *user, const char *path) {
    const calibrate_command *command = user;
    berth_costs *older = NULL;
    BERTH_TRY(berth_costs_create(&older));
    berth_status status = berth_costs_read(older, path);
    if (!status) status = berth_costs_add_missing(command->costs, older);
    berth_costs_destroy(older);
    return status;
}

static uint32_t count_costs(const void *user) {
    const calibrate_command *command = user;
    return berth_costs_count(command->costs);
}

static berth_status save_costs(const void *user, const char *path) {
    const calibrate_command *command = user;
    return berth_costs_save(command->costs, path);
}

static berth_status run(void *state) {
    calibrate_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    const berth_cli_records records = {.default_path = berth_cli_default_costs(&command->cli),
                                       .measure = measure,
                                       .read = read_costs,
                                       .keep = keep_older,
                                       .count = count_costs,
                                       .save = save_costs,
                                       .user = command};
    berth_cli_measured_result result;
    BERTH_TRY(berth_costs_create(&command->costs));
    BERTH_TRY(berth_cli_measured_write(&command->file, &records, &result));
    uint32_t kept = result.count - result.measured;
    if (json)
        berth_cli_print_measured(&result, "kept", kept);
    else
        berth_cli_print("%s: %u costs, %u of them kept from before\n", result.path, result.count,
                        kept);
    return BERTH_OK;
}

static void end(void *state) {
    calibrate_command *command = state;
    berth_costs_destroy(command->costs);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_calibrate(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp =
            {options, parse, "[MODEL...]",
             "Measures how long the kernels of the MODELs, and the copies between devices, take "
             "on each device of the target that computes, and writes them as JSON lines. "
             "Without MODEL: a built-in set of convolutions, products and what else models "
             "are made of.\vPlans then predict by what was measured, and from similar work "
             "where it was not (docs/costs.md). Nothing else should be running.",
             children, NULL, NULL},
        .run = run,
        .end = end};
    calibrate_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
