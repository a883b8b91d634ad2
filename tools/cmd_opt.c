// berth opt: runs compiler passes and prints the module.
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct opt_command {
    berth_cli_model cli;
    const char *model;
    const char *passes;       // comma-separated; NULL = none
    const char *print_after;  // a pass's name, or "all"
    bool timing;
} opt_command;

enum { key_passes = 0x200, key_print_after, key_timing };

static const struct argp_option options[] = {
    {"passes", key_passes, "LIST", 0, "Passes to run, separated by commas, or all", 0},
    {"print-after", key_print_after, "PASS", 0, "Also print the module after this pass (or all)",
     0},
    {"timing", key_timing, NULL, 0, "Print the time of every pass on standard error", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    opt_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_passes: command->passes = arg; return 0;
    case key_print_after: command->print_after = arg; return 0;
    case key_timing: command->timing = true; return 0;
    case ARGP_KEY_ARG:
        if (command->model) argp_error(state, "only one model");
        command->model = arg;
        return 0;
    case ARGP_KEY_END:
        if (!command->model) argp_error(state, "which model?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_module(const berth_module *module, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_module_print(module, &text);
    fputs(berth_strbuf_text(&text), stdout);
}

static void after_pass(void *user, const berth_pass *pass, const berth_module *module,
                       int64_t elapsed_ns) {
    const opt_command *command = user;
    if (command->timing) fprintf(stderr, "%-16s %10.3f ms\n", pass->name, (double)elapsed_ns / 1e6);
    if (!command->print_after) return;
    if (strcmp(command->print_after, "all") != 0 && strcmp(command->print_after, pass->name) != 0)
        return;
    printf("// after %s\n", pass->name);
    print_module(module, command->cli.arena);
}

// The names in --passes, NULL-terminated.
static const char *const *pass_names(opt_command *command) {
    berth_cli_strings names = {0};
    if (command->passes && strcmp(command->passes, "all") == 0) {
        for (const berth_pass *const *pass = berth_compile_passes(); *pass; ++pass)
            berth_cli_push(&command->cli, &names, (*pass)->name);
    } else if (command->passes) {
        char *rest = berth_arena_strdup(command->cli.arena, command->passes);
        char *saved = NULL;
        for (char *name = strtok_r(rest, ",", &saved); name; name = strtok_r(NULL, ",", &saved))
            berth_cli_push(&command->cli, &names, name);
    }
    if (!names.data) berth_cli_push(&command->cli, &names, NULL);
    return names.data;
}

static berth_status optimise(opt_command *command) {
    berth_model_options model_options;
    berth_arena *arena = command->cli.arena;
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_local(arena, &facts));
    model_options.target_options.machine = &facts;
    berth_multi_target *target = NULL;
    BERTH_TRY(berth_target_parse(arena, command->cli.target ? command->cli.target : "cpu",
                                 &model_options.target_options, &target));
    berth_module *module = NULL;
    BERTH_TRY(berth_onnx_import(arena, command->model, &model_options.import, &module));
    berth_pass_instrument instrument = {after_pass, command};
    berth_compile_options compile = model_options.compile;
    compile.target = target;
    compile.verify = true;
    compile.instruments = &instrument;
    compile.instrument_count = 1;
    compile.plan_only = true;
    berth_compile_result result;
    BERTH_TRY(berth_compile_run_passes(module, pass_names(command), &compile, &result));
    print_module(module, arena);
    return BERTH_OK;
}

int berth_cmd_opt(int argc, char **argv) {
    opt_command command = {0};
    if (!berth_cli_begin(&command.cli)) return 1;
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "MODEL",
        "Imports MODEL, runs compiler passes and prints the module.\vThe passes, in the order of "
        "the pipeline: keep-names, fold-constants, simplify, plan-devices, layout, fuse, lower, "
        "schedule, package.",
        children,
        NULL,
        NULL};
    berth_cli_parse(&argp, argc, argv, &command);
    int exit_status = berth_cli_finish(optimise(&command));
    berth_cli_end(&command.cli);
    return exit_status;
}
