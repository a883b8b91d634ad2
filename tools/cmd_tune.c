// berth tune: faster decisions for the kernels of a model, found by measuring on this machine.
#include <berth/tune.h>
#include <string.h>

#include "base/file.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct tune_command {
    berth_cli_model cli;
    berth_cli_strings files;  // a model; with --merge: files of tuned kernels
    const char *output;
    int64_t duration_ns;
    uint64_t trials;
    uint64_t seed;
    bool merge;
    berth_compiler *compiler;
    berth_tuned *tuned;
} tune_command;

enum { key_output = 'o', key_merge = 0x600, key_budget, key_trials, key_seed };

static const struct argp_option options[] = {
    {"output", key_output, "FILE", 0,
     "Write the tuned kernels here (default: tuned.jsonl in the folder of compiled kernels, where "
     "compilations look for it). What a file holds already is kept unless something better is "
     "found",
     0},
    {"merge", key_merge, NULL, 0,
     "Measure nothing: the arguments are files of tuned kernels, which become one (-o): of every "
     "kernel and device the record that gains most",
     0},
    {"budget", key_budget, "TIME", 0, "Take about so long (default: 60s)", 0},
    {"trials", key_trials, "N", 0, "Try N programs, however long it takes", 0},
    {"seed", key_seed, "N", 0, "Of random inputs and of the search (default: 1)", 0},
    {0},
};

static error_t end_options(tune_command *command, struct argp_state *state) {
    if (command->merge && !command->output) berth_cli_wrong_usage(state, "--merge needs -o FILE");
    if (!command->merge && command->files.count > 1)
        berth_cli_wrong_usage(state, "one MODEL at a time");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    tune_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->seed = 1;
        return 0;
    case key_output: command->output = arg; return 0;
    case key_merge: command->merge = true; return 0;
    case key_budget:
        if (!berth_cli_parse_time(arg, &command->duration_ns) || command->duration_ns <= 0)
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
    case ARGP_KEY_ARG:
        berth_cli_push(&command->cli, &command->files, arg);
        command->cli.model = arg;  // which the options of a model are for
        return 0;
    case ARGP_KEY_NO_ARGS:
        berth_cli_wrong_usage(state, command->merge ? "--merge takes files of tuned kernels"
                                                    : "a MODEL is missing");
        return 0;
    case ARGP_KEY_END: return end_options(command, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void show_progress(void *user, const char *what) {
    const tune_command *command = user;
    if (!command->cli.quiet) berth_cli_message("note", what);
}

static berth_status measure(tune_command *command) {
    const berth_tune_settings settings = {.size_bytes = sizeof(settings),
                                          .duration_ns = command->duration_ns,
                                          .seed = command->seed,
                                          .on_progress = show_progress,
                                          .user = command,
                                          .trials = (uint32_t)command->trials};
    BERTH_TRY(berth_cli_compiler(&command->cli, false, &command->compiler));
    return berth_compiler_tune(command->compiler, command->files.data[0], &settings,
                               command->tuned);
}

static berth_status read_all(const tune_command *command) {
    for (uint32_t i = 0; i < command->files.count; ++i)
        BERTH_TRY(berth_tuned_read(command->tuned, command->files.data[i]));
    return BERTH_OK;
}

static berth_status run(void *state) {
    tune_command *command = state;
    berth_arena *arena = command->cli.arena;
    bool json = berth_cli_wants_json(&command->cli);
    bool fallback = !command->output;
    const char *path = fallback ? berth_cli_default_tuned(&command->cli) : command->output;
    if (!path)
        return berth_status_make(BERTH_NOT_FOUND, "no cache folder: HOME is not set; give -o FILE");
    if (!command->cli.tuned) command->cli.tuned = "none";  // the policies are what is compared with
    BERTH_TRY(berth_tuned_create(&command->tuned));
    BERTH_TRY(command->merge ? read_all(command) : measure(command));
    uint32_t found = berth_tuned_count(command->tuned);
    if (!command->merge && berth_file_exists(path))
        BERTH_TRY(berth_tuned_read(command->tuned, path));
    if (fallback)
        BERTH_TRY(berth_file_make_folders(
            berth_arena_strndup(arena, path, (size_t)(strrchr(path, '/') - path))));
    BERTH_TRY(berth_tuned_save(command->tuned, path));
    uint32_t count = berth_tuned_count(command->tuned);
    if (json)
        berth_cli_print_json(json_pack("{s:o, s:i, s:i}", "file", berth_cli_json_text(path),
                                       "records", (int)count, "found", (int)found));
    else
        berth_cli_print("%s: %u tuned kernels, %u found now\n", path, count, found);
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
