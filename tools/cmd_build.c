// berth build: compiles a model into one program file.
#include <berth/signing.h>
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/cmd_build_shared.h"
#include "tools/commands.h"

// A target of --fallback, and what is for it alone.
typedef struct fallback_options {
    const char *target;
    const char *memory;
    berth_cli_strings pins;
} fallback_options;

typedef struct build_command {
    berth_cli_model cli;
    const char *output;
    const char *sign;
    const char *name;
    const char *optimise;
    bool keep_source;
    bool shares;  // the workspace of several models
    berth_cli_strings models;
    BERTH_VEC(fallback_options) fallbacks;
    berth_cli_strings specialisations;
    const char *folder;  // of several models, each by `name`
    bool makes_sources;  // the last program
    berth_compiler *compiler;
    berth_program *program;  // all of it
} build_command;

enum {
    key_sign = 0x200,
    key_keep_source,
    key_name,
    key_optimise,
    key_fallback,
    key_fallback_pin,
    key_fallback_memory,
    key_specialise,
    key_state,
    key_share
};

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
    {"fallback-pin", key_fallback_pin, "PATTERN=DEVICE", 0,
     "As --pin, for the --fallback before it; may be repeated", 0},
    {"fallback-memory", key_fallback_memory, "NAME=BYTES,...", 0,
     "As --memory, for the --fallback before it", 0},
    {"specialise", key_specialise, "NAME=NUMBER,...", 0,
     "For models with open dimensions or control flow: have code for these values of dimensions "
     "(by "
     "name or as INPUT.AXIS) and of inputs that are one integer; a name that comes again begins "
     "another set, as in N=1,N=128; may be repeated; N=1..128 is all values within bounds",
     0},
    {"state", key_state, "INPUT=OUTPUT", 0, BERTH_CLI_STATE, 0},
    {"sign", key_sign, "KEY", 0, "Sign it with the secret key in this file (`berth key`)", 0},
    {"optimise", key_optimise, "FOR", 0,
     "With --executor aot: speed (few instructions, the default) or size (few bytes of code)", 0},
    {"share-workspace", key_share, NULL, 0,
     "Several models, each into a program file of its name in the folder of -o, which `berth run "
     "--share-workspace` runs with one workspace of the largest one's size; with --executor aot C "
     "sources, each in a folder of its name, whose static memory is one array of that size",
     0},
    {0},
};

// The --fallback that stands before this option.
static fallback_options *last_fallback(build_command *command, const char *option,
                                       struct argp_state *state) {
    if (!command->fallbacks.count)
        berth_cli_wrong_usage(state, "%s is for the --fallback before it, and there is none",
                              option);
    return &command->fallbacks.data[command->fallbacks.count - 1];
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    build_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case 'o': command->output = arg; return 0;
    case key_share: command->shares = true; return 0;
    case ARGP_KEY_ARG:
        berth_cli_push(&command->cli, &command->models, arg);
        return command->models.count > 1 ? 0 : ARGP_ERR_UNKNOWN;  // the first is taken as the model
    case key_keep_source: command->keep_source = true; return 0;
    case key_sign: command->sign = arg; return 0;
    case key_fallback:
        berth_vec_push(command->cli.arena, &command->fallbacks, (fallback_options){.target = arg});
        return 0;
    case key_fallback_pin:
        berth_cli_push(&command->cli, &last_fallback(command, "--fallback-pin", state)->pins, arg);
        return 0;
    case key_fallback_memory:
        berth_cli_check_budgets(arg, state);
        last_fallback(command, "--fallback-memory", state)->memory = arg;
        return 0;
    case key_specialise:
        if (!strchr(arg, '='))
            berth_cli_wrong_usage(state, "--specialise takes NAME=NUMBER,..., not \"%s\"", arg);
        berth_cli_push(&command->cli, &command->specialisations, arg);
        return 0;
    case key_state: berth_cli_take_state(state, &command->cli, arg); return 0;
    case key_name: command->name = arg; return 0;
    case key_optimise:
        command->optimise = arg;
        if (strcmp(arg, "size") != 0 && strcmp(arg, "speed") != 0)
            berth_cli_wrong_usage(state, "--optimise is for size or speed, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_END:
        if (!command->output || !*command->output)
            berth_cli_wrong_usage(state, "where to? Give -o FILE");
        if (command->models.count > 1 && !command->shares)
            berth_cli_wrong_usage(state, "only one model, or several with --share-workspace");
        if (command->models.count > 1 && command->name)
            berth_cli_wrong_usage(state, "--name is of one model, and there are several");
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

static berth_status print_fallbacks(const berth_program *program) {
    for (uint32_t i = 0; i < berth_program_fallback_count(program); ++i) {
        const berth_program *fallback = berth_program_fallback(program, i);
        berth_program_facts facts;
        BERTH_TRY(berth_program_get_facts(fallback, &facts, sizeof(facts)));
        berth_cli_print("fallback %u on", i + 1);
        for (uint32_t d = 0; d < berth_program_device_count(fallback); ++d)
            berth_cli_print(" %s", berth_program_device_name(fallback, d));
        berth_cli_print(": %u kernels, %u steps\n", facts.kernel_count, facts.step_count);
    }
    return BERTH_OK;
}

static void print_facts(const build_command *command, const berth_program_facts *facts,
                        uint32_t fallback_count) {
    char bytes[32];
    berth_format_bytes(facts->constant_bytes, bytes);
    if (berth_cli_wants_json(&command->cli))
        berth_cli_print_json(json_pack(
            "{s:o, s:i, s:i, s:i, s:I}", "file", berth_cli_json_text(command->output), "kernels",
            (int)facts->kernel_count, "steps", (int)facts->step_count, "fallbacks",
            (int)fallback_count, "constant_bytes", (json_int_t)facts->constant_bytes));
    else
        berth_cli_print("%s: %u kernels, %u steps, constants %s\n", command->output,
                        facts->kernel_count, facts->step_count, bytes);
}

static berth_status print_result(const build_command *command) {
    const berth_program *program = command->program;
    berth_program_facts facts;
    BERTH_TRY(berth_program_get_facts(program, &facts, sizeof(facts)));
    print_facts(command, &facts, berth_program_fallback_count(program));
    return berth_cli_wants_json(&command->cli) ? BERTH_OK : print_fallbacks(program);
}

static berth_status write_program(const build_command *command) {
    return command->sign
               ? berth_program_save_signed(command->program, command->output, command->sign)
               : berth_program_save(command->program, command->output);
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

static berth_status write_sources(const build_command *command) {
    const char *name = command->name ? command->name : stem(command->cli.arena, command->cli.model);
    return berth_compiler_save_sources(command->compiler, command->program, name, command->output);
}

// A wrong key is found before the work.
static berth_status check_key(const build_command *command) {
    return command->sign ? berth_signing_key_check(command->sign) : BERTH_OK;
}

// The model for a target of --fallback; pins and what else is of the first target are not for it.
static berth_status compile_fallback(const build_command *command, const fallback_options *wanted,
                                     berth_program **out_program) {
    berth_cli_model cli = command->cli;
    berth_compiler *compiler = NULL;
    cli.target = wanted->target;
    cli.host = NULL;
    cli.memory = wanted->memory;
    cli.pins = wanted->pins;
    cli.overrides = (berth_cli_strings){NULL, 0};
    berth_status status = berth_cli_compiler(&cli, true, &compiler);
    if (!status && command->keep_source) status = berth_compiler_set(compiler, "keep_source", "on");
    if (!status) status = berth_compiler_compile_file(compiler, cli.model, out_program);
    berth_compiler_destroy(compiler);
    return berth_status_prefix(status, "fallback \"%s\"", wanted->target);
}

// Makes the program one with fallbacks, which keeps references of all.
static berth_status add_fallbacks(build_command *command) {
    const uint32_t count = command->fallbacks.count;
    berth_program **list = berth_arena_array(command->cli.arena, count, sizeof(berth_program *));
    berth_program *whole = NULL;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; !status && i < count; ++i)
        status = compile_fallback(command, &command->fallbacks.data[i], &list[i]);
    if (!status)
        status = berth_program_with_fallbacks(command->program, (berth_program *const *)list, count,
                                              &whole);
    for (uint32_t i = 0; i < count; ++i) berth_program_release(list[i]);
    if (status) return status;
    berth_program_release(command->program);
    command->program = whole;
    return BERTH_OK;
}

static berth_status compile(build_command *command) {
    berth_compiler *compiler = NULL;
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    compiler = command->compiler;
    if (command->keep_source) BERTH_TRY(berth_compiler_set(compiler, "keep_source", "on"));
    if (command->optimise && strcmp(command->optimise, "size") == 0)
        BERTH_TRY(berth_compiler_set(compiler, "small_code", "on"));
    for (uint32_t i = 0; i < command->specialisations.count; ++i)
        BERTH_TRY(berth_compiler_add_specialisation(compiler, command->specialisations.data[i]));
    const char *executor = command->cli.executor;
    const char *why = command->specialisations.count ? "--specialise" : "--dim with bounds";
    bool by_vm = command->specialisations.count > 0 || command->cli.states.count > 0 ||
                 command->cli.bounds.count > 0;
    if (by_vm && executor && strcmp(executor, "vm") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s is of programs of the executor vm, not of \"%s\"", why,
                                 executor);
    if (by_vm) BERTH_TRY(berth_compiler_set(compiler, "executor", "vm"));
    berth_status status =
        berth_compiler_compile_file(compiler, command->cli.model, &command->program);
    if (!status || by_vm || executor || !berth_compiler_needs_dynamic(compiler)) return status;
    berth_status_free(status);
    BERTH_TRY(berth_compiler_set(compiler, "executor", "vm"));
    return berth_compiler_compile_file(compiler, command->cli.model, &command->program);
}

// Where one of several models goes.
static berth_status place_shared(build_command *command, const char *executor) {
    if (strcmp(executor, "vm") == 0)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "the virtual machine runs this model, whose workspace is its own: "
                                 "--share-workspace is of models of fixed shapes");
    command->output = berth_arena_printf(command->cli.arena, "%s/%s%s", command->folder,
                                         command->name, command->makes_sources ? "" : ".berth");
    return berth_file_make_folders(command->folder);
}

static berth_status build_one(build_command *command) {
    berth_program_facts facts;
    BERTH_TRY(check_output(command));
    BERTH_TRY(check_key(command));
    BERTH_TRY(compile(command));
    BERTH_TRY(berth_program_get_facts(command->program, &facts, sizeof(facts)));
    const bool sources = strcmp(facts.executor, "aot") == 0;
    command->makes_sources = sources;
    if (command->folder) BERTH_TRY(place_shared(command, facts.executor));
    if (sources) BERTH_TRY(check_sources(command));
    if (command->fallbacks.count) BERTH_TRY(add_fallbacks(command));
    berth_interrupt interrupt = berth_cli_interrupt(&command->cli);
    berth_interrupt_defer(interrupt, true);
    berth_status status = sources ? write_sources(command) : write_program(command);
    berth_interrupt_defer(interrupt, false);
    return status;
}

static void end(void *state);

// Whether models of these names would have the same one in C, or one that differs in case alone.
static bool alike(const char *a, const char *b) {
    for (; *a && *b; ++a, ++b) {
        int x = isalnum((unsigned char)*a) ? tolower((unsigned char)*a) : '_';
        int y = isalnum((unsigned char)*b) ? tolower((unsigned char)*b) : '_';
        if (x != y) return false;
    }
    return *a == *b;
}

static berth_status check_names(const build_command *command, const char **names) {
    for (uint32_t i = 0; i < command->models.count; ++i) {
        names[i] = stem(command->cli.arena, command->models.data[i]);
        for (uint32_t k = 0; k < i; ++k)
            if (alike(names[i], names[k]))
                return berth_status_make(
                    BERTH_INVALID_ARGUMENT, "\"%s\" and \"%s\" would both be called %s; rename one",
                    command->models.data[k], command->models.data[i], names[i]);
    }
    return BERTH_OK;
}

// What build_one has made of a model, after its program is gone.
typedef struct built_model {
    const char *name, *output;
    berth_program_facts facts;
} built_model;

static berth_status build_named(build_command *command, const char *folder, built_model *model) {
    command->folder = folder;
    command->name = model->name;
    BERTH_TRY(berth_status_prefix(build_one(command), "%s", command->cli.model));
    BERTH_TRY(berth_program_get_facts(command->program, &model->facts, sizeof(model->facts)));
    model->output = command->output;
    end(command);
    command->program = NULL;
    command->compiler = NULL;
    return BERTH_OK;
}

// Every model under its name, and beside sources the memory that they share.
static berth_status build_shared(build_command *command) {
    const char *folder = command->output;
    berth_arena *arena = command->cli.arena;
    const uint32_t count = command->models.count;
    const char **names = berth_arena_array(arena, count, sizeof(const char *));
    built_model *built = berth_arena_new_array(arena, built_model, count);
    bool sources = false;
    BERTH_TRY(check_names(command, names));
    for (uint32_t i = 0; i < count; ++i) {
        command->cli.model = command->models.data[i];
        built[i].name = names[i];
        BERTH_TRY(build_named(command, folder, &built[i]));
        sources = command->makes_sources;
    }
    if (sources) BERTH_TRY(berth_cli_write_workspace(arena, folder, names, count));
    for (uint32_t i = 0; i < count; ++i) {
        command->output = built[i].output;
        print_facts(command, &built[i].facts, 0);
    }
    return BERTH_OK;
}

static berth_status build(void *state) {
    build_command *command = state;
    berth_cli_wants_json(&command->cli);  // a wrong word is found before the work
    if (command->shares) return build_shared(command);
    BERTH_TRY(build_one(command));
    return print_result(command);
}

static void end(void *state) {
    build_command *command = state;
    berth_program_release(command->program);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_build(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL -o FILE\nMODEL... --share-workspace -o FOLDER",
                 "Compiles MODEL for a target into one file that `berth run` and `berth verify` "
                 "take in place of the model. Running it needs no compiler.",
                 children, NULL, NULL},
        .run = build,
        .end = end};
    build_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
