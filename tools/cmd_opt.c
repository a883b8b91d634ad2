// berth opt: runs compiler passes and prints the module.
#include <berth/module.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct opt_command {
    berth_cli_model cli;
    const char *passes;       // comma-separated; NULL = none
    const char *machine;      // (optional) whose part is printed
    const char *print_after;  // a pass's name, or "all"
    uint32_t instances;       // --instances
    bool places;              // --places
    bool timing;
    bool json;
    bool emit_json, c;     // --emit
    const char *function;  // --function
    bool keep;             // --keep-program
    berth_compiler *compiler;
    berth_module_info *module;
    berth_status failed;  // of writing the module after a pass
} opt_command;

enum {
    key_passes = 0x200,
    key_machine,
    key_print_after,
    key_instances,
    key_places,
    key_timing,
    key_emit,
    key_function,
    key_keep
};

static const struct argp_option options[] = {
    {"machine", key_machine, "NAME", 0,
     "After the passes, leave only what this machine of the target does, with send and receive in "
     "place of copies to and from others (needs inline-calls)",
     0},
    {"passes", key_passes, "LIST", 0, "Passes to run, separated by commas, or all", 0},
    {"print-after", key_print_after, "PASS", 0, "Also print the module after this pass (or all)",
     0},
    {"instances", key_instances, "N", 0,
     "Instances of a function that planning may make, at most 8 (default: 1)", 0},
    {"places", key_places, NULL, 0,
     "In place of the module, print where plan-devices put everything, and why", 0},
    {"keep-program", key_keep, NULL, 0,
     "With --passes all: compile, and keep the program in the module, which then runs without a "
     "compiler",
     0},
    {"emit", key_emit, "FORM", 0,
     "Print the module as text, json or c: C that rebuilds it with builder calls (default: text)",
     0},
    {"function", key_function, "NAME", 0,
     "With --emit=c: the C function's name (default: build_ and the module's name)", 0},
    {"timing", key_timing, NULL, 0, "Print the time of every pass on standard error", 0},
    {0},
};

// The passes after the options' help, from the pipeline itself.
static char *list_passes(int key, const char *text, void *input) {
    (void)input;
    union {
        const char *given;
        char *kept;
    } same = {.given = text};
    if (key != ARGP_KEY_HELP_POST_DOC) return same.kept;
    char *list = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&list, &length);
    if (!out) return NULL;
    fputs("The passes, in the order of the pipeline:\n", out);
    const char *name = NULL, *description = NULL;
    int is_named = 0, was_named = 0;
    for (uint32_t i = 0; berth_compiler_pass_at(i, &name, &description, &is_named); ++i) {
        if (is_named && !was_named)
            fputs("\nPasses that run only where they are named (after inline-calls):\n", out);
        was_named = is_named;
        fprintf(out, "  %-15s %s\n", name, description);
    }
    fclose(out);
    return list;
}

static bool runs_planner(const opt_command *command) {
    return command->passes &&
           (strcmp(command->passes, "all") == 0 || strstr(command->passes, "plan-devices") != NULL);
}

static void check_formats(opt_command *command, struct argp_state *state) {
    command->json = command->emit_json || berth_cli_wants_json(&command->cli);
    if (command->keep && (!command->passes || strcmp(command->passes, "all") != 0))
        berth_cli_wrong_usage(state, "--keep-program needs all passes: add --passes all");
    if (command->function && !command->c)
        berth_cli_wrong_usage(state,
                              "--function names the function of --emit=c, which is not given");
    if (command->c && command->json)
        berth_cli_wrong_usage(state, "--emit=c and --format=json are two forms; choose one");
    if (command->c && (command->places || command->print_after))
        berth_cli_wrong_usage(state,
                              "--emit=c prints C alone: leave --places and --print-after out");
    if (command->places && (command->json || !runs_planner(command)))
        berth_cli_wrong_usage(
            state, "--places prints text about plan-devices: add it to --passes, and leave "
                   "--format=json out (its member \"plan\" says the same)");
    if (command->json && command->print_after)
        berth_cli_wrong_usage(state, "--print-after prints text; leave --format=json out");
}

static bool runs_all(const opt_command *command) {
    return command->passes && strcmp(command->passes, "all") == 0;
}

// The names in --passes; none for all.
static berth_cli_strings pass_names(opt_command *command) {
    berth_cli_strings names = {0};
    if (!command->passes || runs_all(command)) return names;
    char *rest = berth_arena_strdup(command->cli.arena, command->passes);
    char *saved = NULL;
    for (char *name = strtok_r(rest, ",", &saved); name; name = strtok_r(NULL, ",", &saved))
        berth_cli_push(&command->cli, &names, name);
    return names;
}

static void check_pass(const char *option, const char *name, struct argp_state *state) {
    enum { most = 64 };
    const char *names[most] = {NULL}, *description = NULL;
    uint32_t count = 0;
    while (count + 1 < most && berth_compiler_pass_at(count, &names[count], &description, NULL))
        if (strcmp(names[count++], name) == 0) return;
    names[count] = NULL;
    const char *closest = berth_closest(name, names);
    berth_cli_wrong_usage(state, "%s: there is no pass \"%s\"%s%s%s", option, name,
                          closest ? "; did you mean \"" : "", closest ? closest : "",
                          closest ? "\"?" : "");
}

static bool is_identifier(const char *text) {
    static const char letters[] = "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return strspn(text, letters) > 0 && !text[strspn(text, "_abcdefghijklmnopqrstuvwxyz"
                                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")];
}

static void parse_emit(opt_command *command, const char *arg, struct argp_state *state) {
    command->c = strcmp(arg, "c") == 0;
    if (strcmp(arg, "json") == 0)
        command->emit_json = true;
    else if (!command->c && strcmp(arg, "text") != 0)
        berth_cli_wrong_usage(state, "--emit takes text, json or c, not \"%s\"", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    opt_command *command = state->input;
    berth_cli_strings names;
    uint64_t number = 0;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case key_passes: command->passes = arg; return 0;
    case key_machine: command->machine = arg; return 0;
    case key_print_after: command->print_after = arg; return 0;
    case key_instances:
        if (!berth_cli_parse_u64(arg, &number) || number == 0 || number > 8)
            berth_cli_wrong_usage(state, "--instances takes a number from 1 to 8, not \"%s\"", arg);
        command->instances = (uint32_t)number;
        return 0;
    case key_places: command->places = true; return 0;
    case key_timing: command->timing = true; return 0;
    case key_emit: parse_emit(command, arg, state); return 0;
    case key_keep: command->keep = true; return 0;
    case key_function:
        if (!is_identifier(arg))
            berth_cli_wrong_usage(state, "--function takes an identifier of C, not \"%s\"", arg);
        command->function = arg;
        return 0;
    case ARGP_KEY_END:
        if (command->cli.failure) return 0;  // a pass may be of the plug-in that did not load
        names = pass_names(command);
        for (uint32_t i = 0; i < names.count; ++i) check_pass("--passes", names.data[i], state);
        if (command->print_after && strcmp(command->print_after, "all") != 0)
            check_pass("--print-after", command->print_after, state);
        check_formats(command, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ---- places -------------------------------------------------------------------------------------

static json_t *place_json(const berth_module_place *place) {
    json_t *json = json_pack("{s:o, s:s, s:I}", "function", berth_cli_json_text(place->function),
                             "kind", place->kind, "index", (json_int_t)place->index);
    const struct {
        const char *key, *text;
    } texts[] = {{"operation", place->operation},
                 {"value", *place->value ? place->value : NULL},
                 {"device", place->device},
                 {"from", place->from}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
        if (texts[i].text)
            json_object_set_new(json, texts[i].key, berth_cli_json_text(texts[i].text));
    if (strcmp(place->kind, "copy") == 0)
        json_object_set_new(json, "bytes", json_integer((json_int_t)place->size_bytes));
    json_object_set_new(json, "reason", berth_cli_json_text(place->reason));
    if (place->location)
        json_object_set_new(json, "location", berth_cli_json_text(place->location));
    return json;
}

// ",\n  "plan": {...}", in lines that stand as deep as the module's.
static berth_status write_plan(const opt_command *command, const char **out_text) {
    const berth_module_info *module = command->module;
    json_t *places = json_array();
    for (uint32_t i = 0; i < berth_module_info_place_count(module); ++i)
        json_array_append_new(places, place_json(berth_module_info_place(module, i)));
    json_t *json =
        json_pack("{s:s, s:o}", "strategy", berth_module_info_strategy(module), "places", places);
    char *lines = json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    if (!lines) return berth_status_oom();
    berth_strbuf text = berth_strbuf_make(command->cli.arena);
    berth_strbuf_add(&text, ",\n  \"plan\": ");
    for (const char *at = lines; *at; ++at)
        berth_strbuf_addf(&text, *at == '\n' ? "%c  " : "%c", *at);
    free(lines);
    *out_text = berth_strbuf_text(&text);
    return BERTH_OK;
}

static const char *shown_device(const char *name) {
    return name ? name : "anywhere";
}

static void print_place(berth_arena *arena, const berth_module_place *place) {
    const bool copy = strcmp(place->kind, "copy") == 0;
    const char *what = strcmp(place->kind, "operation") == 0 ? place->operation : place->kind;
    const char *where = shown_device(place->device_name);
    if (copy) where = berth_arena_printf(arena, "%s > %s", shown_device(place->from_name), where);
    berth_cli_print("  %-10s %%%-4s %-19s %s", what, place->value, where, place->reason);
    if (copy && place->size_bytes)
        berth_cli_print("; %llu bytes", (unsigned long long)place->size_bytes);
    if (copy && !place->size_bytes) berth_cli_print("; the memory is shared");
    berth_cli_print("\n");
}

static void print_places(const opt_command *command) {
    const char *function = NULL;
    for (uint32_t i = 0; i < berth_module_info_place_count(command->module); ++i) {
        const berth_module_place *place = berth_module_info_place(command->module, i);
        if (!function || strcmp(function, place->function) != 0)
            berth_cli_print("@%s\n", place->function);
        function = place->function;
        print_place(command->cli.arena, place);
    }
}

// ---- the module ---------------------------------------------------------------------------------

// The plan's reasons are one more member of the module, which readers of modules skip.
static berth_status print_json(const opt_command *command) {
    const char *text = NULL, *plan = NULL;
    BERTH_TRY(berth_module_info_write(command->module, BERTH_MODULE_AS_JSON, NULL, &text));
    if (berth_module_info_strategy(command->module)) {
        BERTH_TRY(write_plan(command, &plan));
        text = berth_arena_printf(command->cli.arena, "%.*s%s\n}",
                                  (int)(strrchr(text, '}') - text - 1), text, plan);
    }
    berth_cli_put_json(text);
    putchar('\n');
    return BERTH_OK;
}

static berth_status print_module(const opt_command *command) {
    const char *text = NULL;
    if (command->places && berth_module_info_strategy(command->module)) {
        print_places(command);
        return BERTH_OK;
    }
    if (command->json) return print_json(command);
    BERTH_TRY(berth_module_info_write(command->module,
                                      command->c ? BERTH_MODULE_AS_C : BERTH_MODULE_AS_TEXT,
                                      command->function, &text));
    fputs(text, stdout);
    return BERTH_OK;
}

static void after_pass(void *user, berth_module_info *module, const char *pass,
                       int64_t elapsed_ns) {
    opt_command *command = user;
    const char *text = NULL;
    if (command->timing) fprintf(stderr, "%-16s %10.3f ms\n", pass, (double)elapsed_ns / 1e6);
    if (!command->print_after || command->failed) return;
    if (strcmp(command->print_after, "all") != 0 && strcmp(command->print_after, pass) != 0) return;
    command->failed = berth_module_info_write(module, BERTH_MODULE_AS_TEXT, NULL, &text);
    if (command->failed) return;
    berth_cli_print("// after %s\n", pass);
    fputs(text, stdout);
}

static berth_status optimise(void *state) {
    opt_command *command = state;
    const berth_cli_strings names = pass_names(command);
    static const char *const none[1] = {NULL};
    const berth_pass_settings settings = {.size_bytes = sizeof(settings),
                                          .passes = runs_all(command) ? NULL
                                                    : names.count     ? names.data
                                                                      : none,
                                          .pass_count = names.count,
                                          .instances = command->instances,
                                          .keep_program = command->keep,
                                          .on_pass = after_pass,
                                          .user = command};
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    BERTH_TRY(berth_compiler_read_module(command->compiler, command->cli.model, &command->module));
    BERTH_TRY(berth_compiler_run_passes(command->compiler, command->module, &settings));
    BERTH_TRY(command->failed);
    if (command->machine)
        BERTH_TRY(berth_module_info_leave_machine(command->module, command->machine));
    return print_module(command);
}

static void end(void *state) {
    opt_command *command = state;
    berth_module_info_free(command->module);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_opt(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Reads MODEL (an ONNX file, or a module as text or JSON, as this command prints "
                 "it), runs compiler passes and prints the module.\v ",
                 children, list_passes, NULL},
        .run = optimise,
        .end = end};
    opt_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
