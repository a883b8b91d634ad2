// berth tune: faster decisions for the kernels of a model, found by measuring on this machine.
#include <berth/tune.h>

#include "tools/commands.h"
#include "tools/measured_file.h"

typedef struct tune_command {
    berth_cli_model cli;
    berth_cli_measured file;
    int64_t duration_ns;
    uint64_t trials;
    uint64_t seed;
    berth_compiler *compiler;
    berth_tuned *tuned;
} tune_command;

enum { key_budget = 0x600, key_trials, key_seed };

static const struct argp_option options[] = {
    {"output", BERTH_CLI_KEY_OUTPUT, "FILE", 0,
     "Write the tuned kernels here (default: tuned.jsonl in the folder of compiled kernels, where "
     "compilations look for it). What a file holds already is kept unless something better is "
     "found",
     0},
    {"merge", BERTH_CLI_KEY_MERGE, NULL, 0,
     "Measure nothing: the arguments are files of tuned kernels, which become one (-o): of every "
     "kernel and device the record that gains most",
     0},
    {"budget", key_budget, "TIME", 0, "Take about so long (default: 60s)", 0},
    {"trials", key_trials, "N", 0, "Try N programs, however long it takes", 0},
    {"seed", key_seed, "N", 0, "Of random inputs and of the search (default: 1)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    tune_command *command = state->input;
    bool is_file =
        berth_cli_measured_take(&command->file, state, key, arg, "files of tuned kernels");
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->file.cli = &command->cli;
        command->seed = 1;
        return 0;
    case key_budget:
        if (!berth_parse_time(arg, &command->duration_ns) || command->duration_ns <= 0)
            berth_cli_wrong_usage(
                state, "--budget takes a time such as 30s, 2m or 1500ms, not \"%s\"", arg);
        return 0;
    case key_trials:
        if (!berth_cli_parse_u64(arg, &command->trials) || command->trials == 0 ||
            command->trials > UINT32_MAX)
            berth_cli_wrong_usage(state, "--trials takes a number from 1 on, not \"%s\"", arg);
        return 0;
    case key_seed:
        if (!berth_cli_parse_u64(arg, &command->seed))
            berth_cli_wrong_usage(state, "--seed takes a number, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_NO_ARGS: berth_cli_wrong_usage(state, "a MODEL is missing"); return 0;
    case ARGP_KEY_END:
        if (!command->file.merge && command->file.files.count > 1)
            berth_cli_wrong_usage(state, "one MODEL at a time");
        return 0;
    default: return is_file ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static void show_progress(void *user, const char *what) {
    const tune_command *command = user;
    if (!command->cli.quiet) berth_cli_message("note", what);
}

static berth_status measure(void *user) {
    tune_command *command = user;
    const berth_tune_settings settings = {.size_bytes = sizeof(settings),
                                          .duration_ns = command->duration_ns,
                                          .seed = command->seed,
                                          .on_progress = show_progress,
                                          .user = command,
                                          .trials = (uint32_t)command->trials};
    BERTH_TRY(berth_cli_compiler(&command->cli, false, &command->compiler));
    return berth_compiler_tune(command->compiler, command->file.files.data[0], &settings,
                               command->tuned);
}

static berth_status read_tuned(void *user, const char *path) {
    const tune_command *command = user;
    return berth_tuned_read(command->tuned, path);
}

static uint32_t count_tuned(const void *user) {
    const tune_command *command = user;
    return berth_tuned_count(command->tuned);
}

static berth_status save_tuned(const void *user, const char *path) {
    const tune_command *command = user;
    return berth_tuned_save(command->tuned, path);
}

static berth_status run(void *state) {
    tune_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    // Of a kernel in several files the best stays, so keeping is reading.
    const berth_cli_records records = {.default_path = berth_cli_default_tuned(&command->cli),
                                       .measure = measure,
                                       .read = read_tuned,
                                       .keep = read_tuned,
                                       .count = count_tuned,
                                       .save = save_tuned,
                                       .user = command};
    berth_cli_measured_result result;
    if (!command->cli.tuned) command->cli.tuned = "none";  // the policies are what is compared with
    BERTH_TRY(berth_tuned_create(&command->tuned));
    BERTH_TRY(berth_cli_measured_write(&command->file, &records, &result));
    if (json)
        berth_cli_print_measured(&result, "found", result.measured);
    else
        berth_cli_print("%s: %u tuned kernels, %u found now\n", result.path, result.count,
                        result.measured);
    return BERTH_OK;
}

static void end(void *state) {
    tune_command *command = state;
    berth_tuned_destroy(command->tuned);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_tune(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp =
            {options, parse, "MODEL",
             "Searches for faster tile sizes, orders and chunks of the MODEL's heaviest kernels "
             "by running them on this machine, and writes those that gain as JSON lines.\v"
             "Compilations for such a device take them from then on (--tuned FILE). Nothing else "
             "should be running; docs/tuning.md says how it works.",
             children, NULL, NULL},
        .run = run,
        .end = end};
    tune_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
