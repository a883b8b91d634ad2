// berth target: tags, canonical JSON, diagnostics by field.
#include <berth/target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"
#include "tools/target_detect.h"

typedef struct target_command {
    berth_cli_model cli;
    const char *action;
    berth_cli_strings arguments;  // after the action
    const char *tag_folder;
    berth_cli_detection detection;
    berth_compiler *compiler;  // which holds host, overrides, ...
    berth_tag_list *tags;
    berth_target_info *target;  // of show
} target_command;

enum {
    key_tags = 0x200,
    key_set,
    key_host,
    key_executor,
    key_runtime,
    key_pin,
    key_name,
    key_topology,
    key_no_measure
};

static const struct argp_option options[] = {
    {"format", BERTH_CLI_KEY_FORMAT, "text|json|svg", 0,
     "Output (default: text); svg, a picture of the machine, only of show", 0},
    {"output", 'o', "FILE", 0,
     "Write the result of detect or show --format=svg here, not to stdout", 0},
    {"name", key_name, "N", 0, "detect: name of the target", 0},
    {"topology", key_topology, "FILE.xml", 0,
     "detect: another machine, from an XML export of hwloc", 0},
    {"no-measure", key_no_measure, 0, 0, "detect: measure nothing", 0},
    {"quiet", 'q', 0, 0, "detect: do not say what is measured", 0},
    {"tags", key_tags, "DIR", 0, "Folder of your own tags, VENDOR/NAME.json (default: $BERTH_TAGS)",
     0},
    {"set", key_set, "PATH=VALUE", 0, "Override a field: cores=2, devices[0].target.cores=2", 0},
    {"host", key_host, "T", 0, "Target of the host", 0},
    {"executor", key_executor, "auto|graph|vm|aot", 0, "What runs programs", 0},
    {"runtime", key_runtime, "hosted|bare", 0, "Runtime", 0},
    {"pin", key_pin, "PATTERN=DEVICE", 0, "A pin; may be repeated", 0},
    {0},
};

static void take_argument(target_command *command, char *arg, struct argp_state *state) {
    if (command->action) {
        berth_cli_push(&command->cli, &command->arguments, arg);
        return;
    }
    if (strcmp(arg, "list") != 0 && strcmp(arg, "show") != 0 && strcmp(arg, "validate") != 0 &&
        strcmp(arg, "detect") != 0)
        berth_cli_wrong_usage(state, "the actions are list, show, validate and detect, not \"%s\"",
                              arg);
    command->action = arg;
}

static void check_arguments(const target_command *command, struct argp_state *state) {
    if (!command->action) berth_cli_wrong_usage(state, "list, show, validate or detect?");
    uint32_t count = command->arguments.count;
    if (strcmp(command->action, "list") == 0 && count > 1)
        berth_cli_wrong_usage(state, "list takes at most one pattern");
    if (strcmp(command->action, "show") == 0 && count != 1)
        berth_cli_wrong_usage(state, "show takes one target");
    if (strcmp(command->action, "validate") == 0 && count == 0)
        berth_cli_wrong_usage(state, "validate takes one or more targets");
    bool detect = strcmp(command->action, "detect") == 0;
    const berth_cli_detection *d = &command->detection;
    if (detect && count > 0) berth_cli_wrong_usage(state, "detect takes no argument");
    if (!detect && (d->name || d->topology || d->no_measure))
        berth_cli_wrong_usage(state, "--name, --topology and --no-measure are for detect");
    bool svg = command->cli.format && strcmp(command->cli.format, "svg") == 0;
    if (svg && strcmp(command->action, "show") != 0)
        berth_cli_wrong_usage(state, "--format=svg is for show");
    if (d->output && !detect && !svg)
        berth_cli_wrong_usage(state, "--output is for detect and show --format=svg");
}

static const struct argp_child children[] = {{&berth_cli_driver_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
    target_command *command = state->input;
    berth_cli_model *cli = &command->cli;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = cli; return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(cli, arg, state); return 0;
    case 'o': command->detection.output = arg; return 0;
    case 'q': cli->quiet = true; return 0;
    case key_name: command->detection.name = arg; return 0;
    case key_topology: command->detection.topology = arg; return 0;
    case key_no_measure: command->detection.no_measure = true; return 0;
    case key_tags: command->tag_folder = arg; return 0;
    case key_set: berth_cli_push(cli, &cli->overrides, arg); return 0;
    case key_host: cli->host = arg; return 0;
    case key_executor:
        berth_cli_choose_value(state, key, arg);
        cli->executor = strcmp(arg, "auto") == 0 ? NULL : arg;
        return 0;
    case key_runtime:
        berth_cli_choose_value(state, key, arg);
        cli->runtime = arg;
        return 0;
    case key_pin: berth_cli_push(cli, &cli->pins, arg); return 0;
    case ARGP_KEY_ARG: take_argument(command, arg, state); return 0;
    case ARGP_KEY_END: check_arguments(command, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ------------------------------------------------------------------------------------------------
// list

static berth_status list_tags(target_command *command, bool json) {
    BERTH_TRY(berth_tag_list_create(command->tag_folder, &command->tags));
    const berth_tag_list *tags = command->tags;
    const uint32_t count = berth_tag_list_count(tags);
    const char *pattern = command->arguments.count ? command->arguments.data[0] : "*";
    json_t *array = json ? json_array() : NULL;
    int width = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const char *name = berth_tag_list_at(tags, i)->name;
        if (berth_glob_match(pattern, name) && (int)strlen(name) > width) width = (int)strlen(name);
    }
    for (uint32_t i = 0; i < count; ++i) {
        const berth_tag_facts *tag = berth_tag_list_at(tags, i);
        if (!berth_glob_match(pattern, tag->name)) continue;
        if (json)
            json_array_append_new(
                array, json_pack("{s:o, s:o, s:o, s:b}", "name", berth_cli_json_text(tag->name),
                                 "description", berth_cli_json_text(tag->description), "sources",
                                 berth_cli_json_text(tag->sources), "user", tag->is_users));
        else
            berth_cli_print("%-*s  %s%s\n", width, tag->name, tag->description,
                            tag->is_users ? " (yours)" : "");
    }
    if (json) berth_cli_print_json(array);
    if (width > 0) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND,
                             "no tag matches '%s'; * and ? stand for any text and any character",
                             pattern);
}

// ------------------------------------------------------------------------------------------------
// show

static void show_device(const berth_target_info *target, uint32_t index) {
    const berth_target_facts *facts = berth_target_info_facts(target);
    const berth_target_device_facts *t = berth_target_info_device(target, index);
    berth_cli_print("  %-12s %-7s", t->name, t->kind);
    if (*t->arch) berth_cli_print(" %s", t->arch);
    if (*t->cpu) berth_cli_print(" %s", t->cpu);
    if (t->cores) berth_cli_print(", %lld cores", (long long)t->cores);
    if (t->compute_units) berth_cli_print(", %lld units", (long long)t->compute_units);
    berth_cli_print(", %.3g GHz, %.4g GFLOP/s f32", (double)t->clock_hz / 1e9, t->f32_flops / 1e9);
    berth_cli_print(", memory %s", berth_target_info_memory(target, t->memory)->name);
    if (t->constant_memory != t->memory)
        berth_cli_print(", constants in %s",
                        berth_target_info_memory(target, t->constant_memory)->name);
    if (index == facts->default_device) berth_cli_print(" [default]");
    if (index == facts->host) berth_cli_print(" [host%s]", t->host_only ? " only" : "");
    berth_cli_print("\n");
}

static void show_memories(const berth_target_info *target) {
    puts("memories:");
    for (uint32_t i = 0; i < berth_target_info_memory_count(target); ++i) {
        const berth_target_memory_facts *m = berth_target_info_memory(target, i);
        char capacity[32];
        berth_format_bytes(m->capacity_bytes, capacity);
        berth_cli_print("  %-12s %s, %s, %.4g GB/s, %llu ns, reached by", m->name, m->scope,
                        capacity, m->bandwidth_bytes_per_s / 1e9,
                        (unsigned long long)m->latency_ns);
        for (uint32_t d = 0; d < berth_target_info_device_count(target); ++d)
            if (berth_target_info_reaches(target, i, d))
                berth_cli_print(" %s", berth_target_info_device(target, d)->name);
        berth_cli_print("%s%s\n", m->holds_constants ? ", holds constants" : "",
                        m->is_implied ? " (implied)" : "");
    }
    if (berth_target_info_link_count(target)) puts("links:");
    for (uint32_t i = 0; i < berth_target_info_link_count(target); ++i) {
        const berth_target_link_facts *l = berth_target_info_link(target, i);
        berth_cli_print("  %s %s %s: %.4g GB/s, %llu ns, bus %s\n",
                        berth_target_info_memory(target, l->from)->name,
                        l->is_duplex ? "<=>" : "<->", berth_target_info_memory(target, l->to)->name,
                        l->bandwidth_bytes_per_s / 1e9, (unsigned long long)l->latency_ns, l->bus);
    }
}

// Numbers that bound and predict kernels, as a target gives them: "-vector_bits=512". Text, lists, and
// what is no number for a device are in the JSON.
static void show_attributes(berth_arena *arena, const berth_target_info *target) {
    json_t *root = json_loads(berth_target_info_json(target), 0, NULL);
    json_t *devices = json_object_get(root, "devices"), *device = NULL, *value = NULL;
    size_t i = 0;
    const char *name = NULL;
    puts("attributes:");
    json_array_foreach(devices, i, device) {
        const char *label = json_string_value(json_object_get(device, "name"));
        berth_cli_print("  %-12s", label ? label : "");
        int column = 14;
        json_object_foreach(json_object_get(device, "target"), name, value) {
            if (!json_is_number(value)) continue;
            char *number = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
            const char *text = berth_arena_printf(arena, "-%s=%s", name, number ? number : "");
            free(number);
            if (column + (int)strlen(text) >= 100) {
                printf("\n%14s", "");
                column = 14;
            }
            berth_cli_print(" %s", text);
            column += 1 + (int)strlen(text);
        }
        berth_cli_print("\n");
    }
    json_decref(root);
}

// The description of a tag, without selector and overrides; a file's path is none.
static void show_tag(target_command *command) {
    const char *text = command->arguments.data[0];
    const char *name = berth_arena_strndup(command->cli.arena, text, strcspn(text, ":{ "));
    if (!strchr(name, '/')) return;
    berth_status_ignore(berth_tag_list_create(command->tag_folder, &command->tags));
    for (uint32_t i = 0; command->tags && i < berth_tag_list_count(command->tags); ++i) {
        const berth_tag_facts *tag = berth_tag_list_at(command->tags, i);
        if (strcmp(tag->name, name) != 0) continue;
        berth_cli_print("%s: %s\n", tag->name, tag->description);
        berth_cli_print("sources: %s\n", tag->sources);
    }
}

static void show_text(target_command *command, const berth_target_info *target) {
    const berth_target_facts *facts = berth_target_info_facts(target);
    show_tag(command);
    berth_cli_print("hash: %s\n", facts->hash);
    berth_cli_print("executor: %s, runtime: %s\n", facts->executor, facts->runtime);
    berth_cli_print("devices:\n");
    for (uint32_t i = 0; i < berth_target_info_device_count(target); ++i) show_device(target, i);
    show_memories(target);
    show_attributes(command->cli.arena, target);
    for (uint32_t i = 0; i < berth_target_info_pin_count(target); ++i) {
        const berth_target_pin_facts *pin = berth_target_info_pin(target, i);
        berth_cli_print("pin: %s on %s\n", pin->match,
                        berth_target_info_device(target, pin->device)->name);
    }
}

static berth_status show_picture(const target_command *command) {
    const char *svg = berth_target_info_svg(command->target);
    const char *file = command->detection.output;
    if (file && strcmp(file, "-") != 0) return berth_file_write(file, svg, strlen(svg));
    fputs(svg, stdout);
    return BERTH_OK;
}

static berth_status show(target_command *command, bool json) {
    BERTH_TRY(berth_compiler_read_target(command->compiler, command->arguments.data[0],
                                         &command->target));
    if (command->cli.format && strcmp(command->cli.format, "svg") == 0)
        return show_picture(command);
    if (json)
        berth_cli_put_json(berth_arena_printf(command->cli.arena, "%s\n",
                                              berth_target_info_json(command->target)));
    else
        show_text(command, command->target);
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// validate

// What was found out of one text.
typedef struct validation {
    const char *text, *hash;
    bool valid;
    const berth_target_info *info;  // its problems; NULL:
    const char *message;            // what is not about the text, as a file that is not there
} validation;

static void report_text(const validation *v) {
    if (v->valid) berth_cli_print("%s: valid, hash %s\n", v->text, v->hash);
    if (v->message) berth_cli_print("%s: %s\n", v->text, v->message);
    for (uint32_t i = 0; v->info && i < berth_target_info_problem_count(v->info); ++i) {
        const berth_target_problem *p = berth_target_info_problem(v->info, i);
        berth_cli_print("%s: %s%s%s\n", v->text, p->path, *p->path ? ": " : "", p->message);
    }
}

static json_t *problem_json(const char *path, const char *message) {
    return json_pack("{s:o, s:o}", "path", berth_cli_json_text(path), "message",
                     berth_cli_json_text(message));
}

static json_t *report_json(const validation *v) {
    json_t *list = json_array();
    if (v->message) json_array_append_new(list, problem_json("", v->message));
    for (uint32_t i = 0; v->info && i < berth_target_info_problem_count(v->info); ++i) {
        const berth_target_problem *p = berth_target_info_problem(v->info, i);
        json_array_append_new(list, problem_json(p->path, p->message));
    }
    return json_pack("{s:o, s:b, s:s, s:o}", "target", berth_cli_json_text(v->text), "valid",
                     v->valid, "hash", v->hash, "diagnostics", list);
}

// What is not about the text (no such file or tag, no device facts) is one diagnostic more, so that
// the other targets get their turn. Only out-of-memory ends it all.
static berth_status validate_one(const target_command *command, const char *text, json_t *reports,
                                 bool *out_invalid) {
    berth_target_info *info = NULL;
    berth_status status = berth_compiler_check_target(command->compiler, text, &info);
    if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    const berth_target_facts *facts = info ? berth_target_info_facts(info) : NULL;
    const validation found = {.text = text,
                              .hash = facts ? facts->hash : "",
                              .valid = facts != NULL,
                              .info = info,
                              .message = status ? berth_status_message(status) : NULL};
    *out_invalid |= !found.valid;
    if (reports)
        json_array_append_new(reports, report_json(&found));
    else
        report_text(&found);
    berth_status_free(status);
    berth_target_info_free(info);
    return BERTH_OK;
}

// *out_invalid: whether any was.
static berth_status validate(target_command *command, bool json, bool *out_invalid) {
    json_t *reports = json ? json_array() : NULL;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; !status && i < command->arguments.count; ++i)
        status = validate_one(command, command->arguments.data[i], reports, out_invalid);
    if (!status && json) berth_cli_print_json(json_incref(reports));
    json_decref(reports);
    return status;
}

// ------------------------------------------------------------------------------------------------
// command

static berth_status run(void *state) {
    target_command *command = state;
    bool svg = command->cli.format && strcmp(command->cli.format, "svg") == 0;
    bool json = !svg && berth_cli_wants_json(&command->cli);
    if (strcmp(command->action, "detect") == 0)
        return berth_cli_detect(&command->cli, &command->detection);
    if (strcmp(command->action, "list") == 0) return list_tags(command, json);
    BERTH_TRY(berth_cli_target_compiler(&command->cli, &command->compiler));
    BERTH_TRY(berth_compiler_set(command->compiler, "tag_folder", command->tag_folder));
    if (strcmp(command->action, "show") == 0) return show(command, json);
    bool invalid = false;
    berth_status status = validate(command, json, &invalid);
    command->cli.exit_status = invalid ? 1 : 0;
    return status;
}

static void end(void *state) {
    target_command *command = state;
    berth_target_info_free(command->target);
    berth_tag_list_free(command->tags);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_target(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse, "list [PATTERN]\nshow T\nvalidate T...\ndetect",
                 "Targets: what machine a program is for."
                 "\vlist names the built-in tags and yours. show prints a target with all defaults "
                 "filled in; with --format=json, its canonical JSON, which is a target file again. "
                 "validate lists everything that is wrong with a target, by field. detect writes "
                 "this machine as a target file: what hwloc and the drivers say of it and what is "
                 "measured here, and which figure is which.\n\n"
                 "T is a tag (nvidia/jetson-nano:cuda), a short form (\"opencl -host=cpu\"), JSON, "
                 "a JSON file, an XML export of hwloc, or local; kinds, tags and files of one "
                 "device may be listed, with "
                 "commas between them.\n\nExit status: 0 done and valid, 1 not, 2 wrong usage.",
                 children, NULL, NULL},
        .run = run,
        .end = end};
    target_command state = {.tag_folder = getenv("BERTH_TAGS")};
    return berth_cli_run(&command, &state, argc, argv);
}
