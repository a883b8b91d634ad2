#include "tools/memory_plot.h"

#include <berth/plan.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "tools/cli_compiler.h"

typedef struct plot_command {
    berth_cli_model cli;
    const char *output;
    berth_compiler *compiler;
    berth_plan_info *plan;
} plot_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The picture (SVG; default: stdout)", 0}, {0}};

// A file that is there, without "lower" in its first line: not lifetimes in CSV (memory/problem.h).
static bool is_other_file(const char *path) {
    char line[4096] = "";
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[length] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return length > 0 && !strstr(line, "lower");
}

bool berth_memory_plots_model(int argc, char **argv) {
    if (argc < 3 || strcmp(argv[1], "plot") != 0) return false;
    for (int i = 2; i < argc; ++i) {
        if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0)
            ++i;
        else if (argv[i][0] != '-' && is_other_file(argv[i]))
            return true;
    }
    return false;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    plot_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case 'o': command->output = arg; return 0;
    case ARGP_KEY_END:
        if (command->cli.format) berth_cli_wrong_usage(state, "plot draws SVG: it has no --format");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static berth_status plot(void *state) {
    plot_command *command = state;
    const char *svg = NULL;
    if (berth_program_file_is(command->cli.model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, which no longer says why its values "
                                 "lie where they do; plot the model that it was built from, with "
                                 "the same options",
                                 command->cli.model);
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    BERTH_TRY(berth_compiler_plan_file(command->compiler, command->cli.model, &command->plan));
    BERTH_TRY(berth_plan_info_draw_memory(command->plan, &svg));
    return berth_file_write(command->output ? command->output : "-", svg, strlen(svg));
}

static void end(void *state) {
    plot_command *command = state;
    berth_plan_info_free(command->plan);
    berth_compiler_destroy(command->compiler);
}

int berth_memory_plot_model(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Draws where the intermediate values of MODEL's plan lie: a panel for each pool, "
                 "steps to the right, bytes upwards, the step marked at which most is live.",
                 children, NULL, NULL},
        .run = plot,
        .end = end};
    plot_command state = {0};
    argv[1] = argv[0];  // in place of "plot"
    return berth_cli_run(&command, &state, argc - 1, argv + 1);
}
