// berth opt: runs compiler passes and prints the module.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/decompose/decompose.h"
#include "compiler/package/kept_program.h"
#include "ir/emit_c.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "toolkit/module_file.h"
#include "tools/cli_model.h"
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
    for (const berth_pass *const *pass = berth_compile_passes(); *pass; ++pass)
        fprintf(out, "  %-15s %s\n", (*pass)->name, (*pass)->description);
    fputs("\nPasses that run only where they are named (after inline-calls):\n", out);
    for (const berth_pass *const *pass = berth_decompose_passes(); *pass; ++pass)
        fprintf(out, "  %-15s %s\n", (*pass)->name, (*pass)->description);
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

static void check_pass(const char *option, const char *name, struct argp_state *state) {
    enum { most = 64 };
    const char *names[most] = {NULL};
    uint32_t count = 0;
    const berth_pass *const *const lists[] = {berth_compile_passes(), berth_decompose_passes()};
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); ++l) {
        for (const berth_pass *const *pass = lists[l]; *pass && count + 1 < most; ++pass) {
            names[count++] = (*pass)->name;
            if (strcmp((*pass)->name, name) == 0) return;
        }
    }
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
    uint64_t number = 0;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
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
        for (const char *const *name = pass_names(command); *name; ++name)
            check_pass("--passes", *name, state);
        if (command->print_after && strcmp(command->print_after, "all") != 0)
            check_pass("--print-after", command->print_after, state);
        check_formats(command, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static berth_status write_module(void *user) {
    const berth_module *module = user;
    berth_strbuf text = berth_strbuf_make(module->arena);
    berth_module_print(module, &text);
    fputs(berth_strbuf_text(&text), stdout);
    return BERTH_OK;
}

typedef struct c_writer {
    const berth_module *module;
    const char *function;
} c_writer;

static berth_status write_c(void *user) {
    const c_writer *w = user;
    berth_strbuf text = berth_strbuf_make(w->module->arena);
    BERTH_TRY(berth_module_to_c(w->module, w->function, &text));
    fputs(berth_strbuf_text(&text), stdout);
    return BERTH_OK;
}

static json_t *place_json(const berth_module *module, const berth_plan_place *place) {
    static const char *const kinds[] = {"parameter", "operation", "copy", "result"};
    json_t *json = json_pack("{s:o, s:s, s:I}", "function",
                             berth_cli_json_text(berth_module_str(
                                 module, berth_module_function(module, place->function)->name)),
                             "kind", kinds[place->kind], "index", (json_int_t)place->index);
    if (place->operation)
        json_object_set_new(json, "operation", berth_cli_json_text(place->operation));
    if (*place->value) json_object_set_new(json, "value", berth_cli_json_text(place->value));
    if (place->device)
        json_object_set_new(
            json, "device",
            berth_cli_json_text(berth_virtual_device_print(module->devices, place->device)));
    if (place->kind == BERTH_PLAN_COPY) {
        json_object_set_new(
            json, "from",
            berth_cli_json_text(berth_virtual_device_print(module->devices, place->from)));
        json_object_set_new(json, "bytes", json_integer((json_int_t)place->size_bytes));
    }
    json_object_set_new(json, "reason", berth_cli_json_text(place->reason));
    if (place->loc)
        json_object_set_new(
            json, "location",
            berth_cli_json_text(berth_loc_describe(module, place->loc, module->arena)));
    return json;
}

typedef struct plan_writer {
    const berth_module *module;
    const berth_plan *plan;
    const char *text;
} plan_writer;

// ",\n  "plan": {...}", in lines that stand as deep as the module's.
static berth_status write_plan(void *user) {
    plan_writer *w = user;
    json_t *places = json_array();
    for (uint32_t i = 0; i < w->plan->place_count; ++i)
        json_array_append_new(places, place_json(w->module, &w->plan->places[i]));
    json_t *json = json_pack("{s:s, s:o}", "strategy", w->plan->strategy, "places", places);
    char *lines = json_dumps(json, JSON_INDENT(2));
    json_decref(json);
    if (!lines) return berth_status_oom();
    berth_strbuf text = berth_strbuf_make(w->module->arena);
    berth_strbuf_add(&text, ",\n  \"plan\": ");
    for (const char *at = lines; *at; ++at)
        berth_strbuf_addf(&text, *at == '\n' ? "%c  " : "%c", *at);
    free(lines);
    w->text = berth_strbuf_text(&text);
    return BERTH_OK;
}

// ---- places as text -----------------------------------------------------------------------------

// "opencl:0@s1", without the target.
static const char *short_device(const berth_module *module, berth_device_id id) {
    if (!id) return "anywhere";
    berth_virtual_device device = berth_virtual_device_get(module->devices, id);
    device.has_target = false;
    return berth_virtual_device_name(module->arena, device);
}

static void print_place(const berth_module *module, const berth_plan_place *place) {
    static const char *const kinds[] = {"parameter", "", "copy", "result"};
    const char *what = place->kind == BERTH_PLAN_OP ? place->operation : kinds[place->kind];
    const char *where = short_device(module, place->device);
    if (place->kind == BERTH_PLAN_COPY)
        where =
            berth_arena_printf(module->arena, "%s > %s", short_device(module, place->from), where);
    berth_cli_print("  %-10s %%%-4s %-19s %s", what, place->value, where, place->reason);
    if (place->kind == BERTH_PLAN_COPY && place->size_bytes)
        berth_cli_print("; %llu bytes", (unsigned long long)place->size_bytes);
    if (place->kind == BERTH_PLAN_COPY && !place->size_bytes)
        berth_cli_print("; the memory is shared");
    berth_cli_print("\n");
}

static berth_status print_places(void *user) {
    const plan_writer *w = user;
    for (uint32_t i = 0; i < w->plan->place_count; ++i) {
        const berth_plan_place *place = &w->plan->places[i];
        if (!i || place->function != place[-1].function)
            berth_cli_print(
                "@%s\n", berth_module_str(w->module,
                                          berth_module_function(w->module, place->function)->name));
        print_place(w->module, place);
    }
    return BERTH_OK;
}

// The plan's reasons are one more member of the module, which readers of modules skip.
static berth_status print_module(const opt_command *command, berth_module *module,
                                 const berth_plan *plan) {
    plan_writer writer = {.module = module, .plan = plan};
    if (command->places && plan) return berth_arena_try(module->arena, print_places, &writer);
    c_writer c = {module, command->function};
    if (command->c) return berth_arena_try(module->arena, write_c, &c);
    if (!command->json) return berth_arena_try(module->arena, write_module, module);
    const char *text = NULL;
    BERTH_TRY(berth_module_to_json_text(command->cli.arena, module, 2, &text));
    if (plan) BERTH_TRY(berth_arena_try(module->arena, write_plan, &writer));
    if (plan)
        text = berth_arena_printf(command->cli.arena, "%.*s%s\n}",
                                  (int)(strrchr(text, '}') - text - 1), text, writer.text);
    berth_cli_put_json(text);
    putchar('\n');
    return BERTH_OK;
}

static void after_pass(void *user, const berth_pass *pass, const berth_module *module,
                       int64_t elapsed_ns) {
    const opt_command *command = user;
    if (command->timing) fprintf(stderr, "%-16s %10.3f ms\n", pass->name, (double)elapsed_ns / 1e6);
    if (!command->print_after) return;
    if (strcmp(command->print_after, "all") != 0 && strcmp(command->print_after, pass->name) != 0)
        return;
    berth_strbuf text = berth_strbuf_make(command->cli.arena);
    berth_module_print(module, &text);
    berth_cli_print("// after %s\n", pass->name);
    fputs(berth_strbuf_text(&text), stdout);
}

static berth_status parse_target(berth_arena *arena, const char *text, berth_target_options *wanted,
                                 berth_multi_target **out_target) {
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_for(arena, text, &facts));
    wanted->machine = &facts;
    berth_status status = berth_target_parse(arena, text, wanted, out_target);
    wanted->machine = NULL;
    return status;
}

// For the target that is asked for, whose devices' names the module may use, or for its own.
static berth_status load_for_target(const opt_command *command, berth_model_options *wanted,
                                    berth_module **out_module, berth_multi_target **out_target) {
    const berth_cli_model *cli = &command->cli;
    *out_target = NULL;
    if (cli->target)
        BERTH_TRY(parse_target(cli->arena, cli->target, &wanted->target_options, out_target));
    BERTH_TRY(berth_module_load(cli->arena, cli->model, &wanted->import, *out_target, out_module));
    if (*out_target) return BERTH_OK;
    const char *own = berth_module_target(*out_module);
    return parse_target(cli->arena, own ? own : "cpu", &wanted->target_options, out_target);
}

typedef struct keeper {
    berth_module *module;
    const berth_program *program;
} keeper;

static berth_status keep_program(void *user) {
    const keeper *k = user;
    return berth_module_keep_program(k->module, k->program);
}

static berth_status machine_named(const berth_multi_target *target, const char *name,
                                  berth_arena *arena, uint32_t *out_machine) {
    berth_strbuf names = berth_strbuf_make(arena);
    for (*out_machine = 0; *out_machine < target->machine_count; ++*out_machine) {
        const char *own = target->machines[*out_machine].name;
        if (strcmp(own, name) == 0) return BERTH_OK;
        berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", own);
    }
    return berth_status_make(BERTH_NOT_FOUND, "--machine %s: %s%s", name,
                             target->machine_count > 1 ? "the target's machines are "
                                                       : "the target is one machine",
                             berth_strbuf_text(&names));
}

static berth_status leave_machine(const opt_command *command, berth_module *module,
                                  const berth_multi_target *target) {
    uint32_t machine = 0;
    berth_multi_target *own = NULL;
    if (!command->machine) return BERTH_OK;
    BERTH_TRY(machine_named(target, command->machine, command->cli.arena, &machine));
    berth_func_id main = berth_module_find_function(module, "main");
    if (!berth_module_has_run(module, "inline-calls") || berth_module_has_run(module, "layout"))
        return berth_status_make(BERTH_FAILED_PRECONDITION,
                                 "--machine takes a planned module apart: let the passes end with "
                                 "plan-devices,inline-calls");
    BERTH_TRY(berth_decompose_machine(module, main, target, machine, &own));
    return berth_module_verify(module);
}

static berth_status optimise(void *state) {
    opt_command *command = state;
    berth_model_options model_options;
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    model_options.import.default_batch = 0;  // modules may have symbols
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    BERTH_TRY(load_for_target(command, &model_options, &module, &target));
    berth_pass_instrument instrument = {after_pass, command};
    berth_compile_options compile = model_options.compile;
    compile.target = target;
    compile.max_instances = command->instances;
    compile.verify = true;
    compile.instruments = &instrument;
    compile.instrument_count = 1;
    compile.plan_only = !command->keep;
    compile.resume = command->passes && strcmp(command->passes, "all") == 0;
    berth_compile_result result;
    BERTH_TRY(berth_compile_run_passes(module, pass_names(command), &compile, &result));
    BERTH_TRY(leave_machine(command, module, target));
    keeper keeping = {module, result.program};
    if (command->keep) BERTH_TRY(berth_arena_try(module->arena, keep_program, &keeping));
    return print_module(command, module, result.plan);
}

int berth_cmd_opt(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Reads MODEL (an ONNX file, or a module as text or JSON, as this command prints "
                 "it), runs compiler passes and prints the module.\v ",
                 children, list_passes, NULL},
        .run = optimise};
    opt_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
