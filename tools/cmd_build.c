// berth build: compiles a model into one program file.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "artifact/file.h"
#include "artifact/sign.h"
#include "compiler/bare/bare.h"
#include "tools/cli_model.h"
#include "tools/commands.h"

typedef struct build_command {
    berth_cli_model cli;
    const char *output;
    const char *sign;
    const char *name;
    const char *optimise;
    bool keep_source;
    berth_cli_strings fallbacks;    // targets
    berth_model **fallback_models;  // as many
    berth_compile_options compile;  // as the model was compiled
    berth_model *model;
} build_command;

enum { key_sign = 0x200, key_keep_source, key_name, key_optimise, key_fallback };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0,
     "The program file to write (required); with --executor aot the folder for the C sources", 0},
    {"name", key_name, "NAME", 0,
     "With --executor aot: of the sources and their functions (default: the model's file)", 0},
    {"keep-source", key_keep_source, NULL, 0,
     "Keep the kernels' source in the program (`berth inspect --extract` writes it to files)", 0},
    {"fallback", key_fallback, "TARGET", 0,
     "Keep a plan for TARGET, too, which runs where a device of --target is not there or lost; may "
     "be "
     "repeated: the first that can run is taken. --pin, --host, --memory and --set are not for it",
     0},
    {"sign", key_sign, "KEY", 0, "Sign it with the secret key in this file (`berth key`)", 0},
    {"optimise", key_optimise, "FOR", 0,
     "With --executor aot: speed (few instructions, the default) or size (few bytes of code)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    build_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case 'o': command->output = arg; return 0;
    case key_keep_source: command->keep_source = true; return 0;
    case key_sign: command->sign = arg; return 0;
    case key_fallback: berth_cli_push(&command->cli, &command->fallbacks, arg); return 0;
    case key_name: command->name = arg; return 0;
    case key_optimise:
        command->optimise = arg;
        if (strcmp(arg, "size") != 0 && strcmp(arg, "speed") != 0)
            berth_cli_wrong_usage(state, "--optimise is for size or speed, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_END:
        if (!command->output || !*command->output)
            berth_cli_wrong_usage(state, "where to? Give -o FILE");
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

static uint64_t constant_bytes(const berth_program *program) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->constant_count; ++i)
        total += program->tensors[program->constants[i].tensor].size_bytes;
    return total;
}

static void print_fallbacks(const berth_program *program) {
    for (uint32_t i = 0; i < program->fallback_count; ++i) {
        const berth_program *fallback = program->fallbacks[i];
        berth_cli_print("fallback %u on", i + 1);
        for (uint32_t d = 0; d < fallback->device_count; ++d)
            berth_cli_print(" %s", fallback->devices[d].name);
        berth_cli_print(": %u kernels, %u steps\n", fallback->kernel_count, fallback->step_count);
    }
}

static void print_result(const build_command *command, const berth_program *program) {
    char bytes[32];
    berth_format_bytes(constant_bytes(program), bytes);
    if (berth_cli_wants_json(&command->cli))
        berth_cli_print_json(json_pack(
            "{s:o, s:i, s:i, s:i, s:I}", "file", berth_cli_json_text(command->output), "kernels",
            (int)program->kernel_count, "steps", (int)program->step_count, "fallbacks",
            (int)program->fallback_count, "constant_bytes", (json_int_t)constant_bytes(program)));
    else
        berth_cli_print("%s: %u kernels, %u steps, constants %s\n", command->output,
                        program->kernel_count, program->step_count, bytes);
    if (!berth_cli_wants_json(&command->cli)) print_fallbacks(program);
}

static berth_status write_program(const build_command *command, const berth_program *program) {
    if (!command->sign) return berth_program_write(program, command->output);
    berth_secret_key key;
    BERTH_TRY(berth_secret_key_read(command->sign, &key));
    berth_status status = berth_program_write_signed(program, command->output, &key);
    berth_secret_key_forget(&key);
    return status;
}

// The file's name without folders and its last end: "models/mnist.onnx" is mnist.
static const char *stem(berth_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = berth_arena_strdup(arena, slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot != name) *dot = 0;
    return name;
}

static berth_status check_sources(const build_command *command) {
    const char *unfit = command->sign              ? "--sign"
                        : command->keep_source     ? "--keep-source"
                        : command->fallbacks.count ? "--fallback"
                                                   : NULL;
    if (!unfit) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s is of program files, and the executor \"aot\" makes C sources",
                             unfit);
}

static berth_status write_sources(const build_command *command, const berth_program *program) {
    const char *name = command->name ? command->name : stem(command->cli.arena, command->cli.model);
    berth_bare_options bare = {.name = name, .memory = berth_model_memory(command->model)};
    const berth_multi_target *target = berth_model_target(command->model);
    berth_toolchain_options toolchain =
        berth_codegen_toolchain(&command->compile, target->devices[0].target);
    if (target->runtime == BERTH_RUNTIME_HOSTED) bare.toolchain = &toolchain;
    return berth_bare_write(program, &bare, command->output);
}

// A wrong key is found before the work.
static berth_status check_key(const build_command *command) {
    if (!command->sign) return BERTH_OK;
    berth_secret_key key;
    BERTH_TRY(berth_secret_key_read(command->sign, &key));
    berth_secret_key_forget(&key);
    return BERTH_OK;
}

// The model for the targets of --fallback, beside that for its own.
static berth_status add_fallbacks(build_command *command, const berth_model_options *as_first,
                                  berth_program *program) {
    uint32_t count = command->fallbacks.count;
    const berth_program **list =
        berth_arena_array(command->cli.arena, count, sizeof(const berth_program *));
    command->fallback_models = berth_arena_new_array(command->cli.arena, berth_model *, count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_model_options other = *as_first;
        other.target = command->fallbacks.data[i];
        other.target_options.host = other.target_options.budgets = NULL;
        other.target_options.pins = other.target_options.overrides = NULL;
        berth_status status =
            berth_model_load(command->cli.model, &other, &command->fallback_models[i]);
        if (status)
            return berth_status_prefix(status, "fallback \"%s\"", command->fallbacks.data[i]);
        list[i] = berth_model_program(command->fallback_models[i]);
    }
    program->fallbacks = list;
    program->fallback_count = count;
    return BERTH_OK;
}

static berth_status build(void *state) {
    build_command *command = state;
    berth_model_options model_options;
    berth_cli_wants_json(&command->cli);  // a wrong word is found before the work
    BERTH_TRY(check_output(command));
    BERTH_TRY(check_key(command));
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    model_options.compile.keep_source = command->keep_source;
    model_options.compile.small_code = command->optimise && strcmp(command->optimise, "size") == 0;
    command->compile = model_options.compile;
    BERTH_TRY(berth_model_load(command->cli.model, &model_options, &command->model));
    berth_program whole = *berth_model_program(command->model);
    const berth_program *program = &whole;
    bool sources = strcmp(program->executor, "aot") == 0;
    if (sources) BERTH_TRY(check_sources(command));
    if (command->fallbacks.count) BERTH_TRY(add_fallbacks(command, &model_options, &whole));
    berth_interrupt interrupt = berth_cli_interrupt(&command->cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status =
        sources ? write_sources(command, program) : write_program(command, program);
    berth_interrupt_defer(interrupt, false);
    BERTH_TRY(status);
    print_result(command, program);
    return BERTH_OK;
}

static void end(void *state) {
    build_command *command = state;
    for (uint32_t i = 0; command->fallback_models && i < command->fallbacks.count; ++i)
        berth_model_destroy(command->fallback_models[i]);
    berth_model_destroy(command->model);
}

int berth_cmd_build(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL -o FILE",
                 "Compiles MODEL for a target into one file that `berth run` and `berth verify` "
                 "take in place of the model. Running it needs no compiler.",
                 children, NULL, NULL},
        .run = build,
        .end = end};
    build_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
