// berth build: compiles a model into one program file.
#include <stdio.h>
#include <sys/stat.h>

#include "artifact/file.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct build_command {
    berth_cli_model cli;
    const char *output;
} build_command;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The program file to write (required)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    build_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case 'o': command->output = arg; return 0;
    case ARGP_KEY_END:
        if (!command->output || !*command->output) argp_error(state, "where to? Give -o FILE");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// Writing over the model, by whatever name, would lose it.
static berth_status check_output(const build_command *command) {
    struct stat model, output;
    if (stat(command->cli.model, &model) != 0 || stat(command->output, &output) != 0)
        return BERTH_OK;
    if (model.st_dev != output.st_dev || model.st_ino != output.st_ino) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "\"%s\" is the model itself; give -o another file", command->output);
}

static berth_status build(build_command *command, berth_model **out_model) {
    berth_model_options model_options;
    BERTH_TRY(check_output(command));
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    BERTH_TRY(berth_model_load(command->cli.model, &model_options, out_model));
    berth_interrupt interrupt = berth_cli_interrupt(&command->cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status = berth_program_write(berth_model_program(*out_model), command->output);
    berth_interrupt_defer(interrupt, false);
    return status;
}

static uint64_t constant_bytes(const berth_program *program) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->constant_count; ++i)
        total += program->tensors[program->constants[i].tensor].size_bytes;
    return total;
}

int berth_cmd_build(int argc, char **argv) {
    build_command command = {0};
    if (!berth_cli_begin(&command.cli)) return 1;
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "MODEL -o FILE",
        "Compiles MODEL for a target into one file that `berth run` and `berth verify` take in "
        "place of the model. Running it needs no compiler.",
        children,
        NULL,
        NULL};
    berth_cli_parse(&argp, argc, argv, &command);
    bool json = berth_cli_wants_json(&command.cli);
    berth_model *model = NULL;
    int exit_status = berth_cli_finish(build(&command, &model));
    if (exit_status == 0) {
        const berth_program *program = berth_model_program(model);
        char bytes[32];
        berth_format_bytes(constant_bytes(program), bytes);
        if (json)
            exit_status = berth_cli_print_json(
                json_pack("{s:o, s:i, s:i, s:I}", "file", berth_cli_json_text(command.output),
                          "kernels", (int)program->kernel_count, "steps", (int)program->step_count,
                          "constant_bytes", (json_int_t)constant_bytes(program)));
        else
            printf("%s: %u kernels, %u steps, constants %s\n", command.output,
                   program->kernel_count, program->step_count, bytes);
    }
    berth_model_destroy(model);
    berth_cli_end(&command.cli);
    return exit_status;
}
