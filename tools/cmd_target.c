// berth target: tags, canonical JSON, diagnostics by field.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "toolkit/machine_picture.h"
#include "tools/cli_model.h"
#include "tools/commands.h"
#include "tools/target_detect.h"

typedef struct target_command {
    berth_cli_model cli;
    const char *action;
    berth_cli_strings arguments;  // after the action
    const char *tag_folder;
    berth_cli_detection detection;
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
    {"format", 'f', "FORMAT", 0, "Output: text or json; of show also svg, a picture of the machine",
     0},
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
    {"executor", key_executor, "KIND", 0, "Executor: graph, vm or aot", 0},
    {"runtime", key_runtime, "KIND", 0, "Runtime: hosted or bare", 0},
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
    case 'f': cli->format = arg; return 0;
    case 'o': command->detection.output = arg; return 0;
    case 'q': cli->quiet = true; return 0;
    case key_name: command->detection.name = arg; return 0;
    case key_topology: command->detection.topology = arg; return 0;
    case key_no_measure: command->detection.no_measure = true; return 0;
    case key_tags: command->tag_folder = arg; return 0;
    case key_set: berth_cli_push(cli, &cli->overrides, arg); return 0;
    case key_host: cli->host = arg; return 0;
    case key_executor: cli->executor = arg; return 0;
    case key_runtime: cli->runtime = arg; return 0;
    case key_pin: berth_cli_push(cli, &cli->pins, arg); return 0;
    case ARGP_KEY_ARG: take_argument(command, arg, state); return 0;
    case ARGP_KEY_END: check_arguments(command, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ------------------------------------------------------------------------------------------------
// list

static berth_status list_tags(target_command *command, bool json) {
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_target_list_tags(command->cli.arena, command->tag_folder, &tags, &count));
    const char *pattern = command->arguments.count ? command->arguments.data[0] : "*";
    json_t *array = json ? json_array() : NULL;
    int width = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (berth_glob_match(pattern, tags[i].name) && (int)strlen(tags[i].name) > width)
            width = (int)strlen(tags[i].name);
    for (uint32_t i = 0; i < count; ++i) {
        if (!berth_glob_match(pattern, tags[i].name)) continue;
        if (json)
            json_array_append_new(
                array, json_pack("{s:o, s:o, s:o, s:b}", "name", berth_cli_json_text(tags[i].name),
                                 "description", berth_cli_json_text(tags[i].description), "sources",
                                 berth_cli_json_text(tags[i].sources), "user", tags[i].user));
        else
            berth_cli_print("%-*s  %s%s\n", width, tags[i].name, tags[i].description,
                            tags[i].user ? " (yours)" : "");
    }
    if (json) berth_cli_print_json(array);
    if (width > 0) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND,
                             "no tag matches '%s'; * and ? stand for any text and any character",
                             pattern);
}

// ------------------------------------------------------------------------------------------------
// show

static void show_device(const berth_multi_target *target, uint32_t index) {
    const berth_target_device *device = &target->devices[index];
    const berth_target *t = device->target;
    berth_cli_print("  %-12s %-7s", device->name, berth_device_kind_name(t->kind));
    if (*t->arch) berth_cli_print(" %s", t->arch);
    if (*t->cpu) berth_cli_print(" %s", t->cpu);
    if (t->cores) berth_cli_print(", %lld cores", (long long)t->cores);
    if (t->compute_units) berth_cli_print(", %lld units", (long long)t->compute_units);
    berth_cli_print(", %.3g GHz, %.4g GFLOP/s f32", (double)t->clock_hz / 1e9,
                    t->peak_flops[BERTH_DTYPE_F32] / 1e9);
    berth_cli_print(", memory %s", target->memories[device->own_memory].name);
    if (device->constant_memory != device->own_memory)
        berth_cli_print(", constants in %s", target->memories[device->constant_memory].name);
    if (index == target->default_device) berth_cli_print(" [default]");
    if (index == target->host) berth_cli_print(" [host%s]", device->host_only ? " only" : "");
    berth_cli_print("\n");
}

static void show_memories(const berth_multi_target *target) {
    puts("memories:");
    for (uint32_t i = 0; i < target->memory_count; ++i) {
        const berth_target_memory *m = &target->memories[i];
        char capacity[32];
        berth_format_bytes(m->capacity_bytes, capacity);
        berth_cli_print("  %-12s %s, %s, %.4g GB/s, %llu ns, reached by", m->name, m->scope,
                        capacity, m->bandwidth_bytes_per_s / 1e9,
                        (unsigned long long)m->latency_ns);
        for (uint32_t d = 0; d < target->device_count; ++d)
            if (m->reached_by >> d & 1) berth_cli_print(" %s", target->devices[d].name);
        berth_cli_print("%s%s\n", m->holds_constants ? ", holds constants" : "",
                        m->implied ? " (implied)" : "");
    }
    if (target->link_count) puts("links:");
    for (uint32_t i = 0; i < target->link_count; ++i) {
        const berth_target_link *l = &target->links[i];
        berth_cli_print("  %s %s %s: %.4g GB/s, %llu ns, bus %s\n", target->memories[l->from].name,
                        l->duplex ? "<=>" : "<->", target->memories[l->to].name,
                        l->bandwidth_bytes_per_s / 1e9, (unsigned long long)l->latency_ns, l->bus);
    }
}

static void show_text(const target_command *command, const berth_multi_target *target) {
    char hash[33];
    berth_hash128_hex(target->hash, hash);
    size_t length = strcspn(command->arguments.data[0], ":{ ");
    const char *name = berth_arena_strndup(command->cli.arena, command->arguments.data[0], length);
    berth_target_tag tag = {0};
    if (strchr(name, '/'))  // only for its description; a file's path finds none
        berth_status_ignore(
            berth_target_find_tag(command->cli.arena, command->tag_folder, name, &tag));
    if (tag.name) berth_cli_print("%s: %s\n", tag.name, tag.description);
    if (tag.name) berth_cli_print("sources: %s\n", tag.sources);
    berth_cli_print("hash: %s\n", hash);
    berth_cli_print("executor: %s, runtime: %s\n", berth_executor_kind_name(target->executor),
                    berth_runtime_kind_name(target->runtime));
    berth_cli_print("devices:\n");
    for (uint32_t i = 0; i < target->device_count; ++i) show_device(target, i);
    show_memories(target);
    for (uint32_t i = 0; i < target->pin_count; ++i)
        berth_cli_print("pin: %s on %s\n", target->pins[i].match,
                        target->devices[target->pins[i].device].name);
}

static berth_status show_picture(const target_command *command, const berth_multi_target *target) {
    berth_strbuf out = berth_strbuf_make(command->cli.arena);
    const char *file = command->detection.output;
    berth_machine_picture_svg(target, &out);
    if (file && strcmp(file, "-") != 0) return berth_file_write(file, out.data, out.length);
    fputs(berth_strbuf_text(&out), stdout);
    return BERTH_OK;
}

static berth_status show(target_command *command, const berth_target_options *target_options,
                         bool json) {
    berth_multi_target *target = NULL;
    BERTH_TRY(berth_target_parse(command->cli.arena, command->arguments.data[0], target_options,
                                 &target));
    if (command->cli.format && strcmp(command->cli.format, "svg") == 0)
        return show_picture(command, target);
    if (json)
        berth_cli_put_json(berth_arena_printf(
            command->cli.arena, "%s\n", berth_target_print_json(command->cli.arena, target, 2)));
    else
        show_text(command, target);
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// validate

static void report_text(const char *text, berth_target_diagnostics diagnostics,
                        const berth_multi_target *target) {
    char hash[33] = "";
    if (target) berth_hash128_hex(target->hash, hash);
    if (target) berth_cli_print("%s: valid, hash %s\n", text, hash);
    for (uint32_t i = 0; i < diagnostics.count; ++i) {
        const berth_target_diagnostic *d = &diagnostics.data[i];
        berth_cli_print("%s: %s%s%s\n", text, d->path, *d->path ? ": " : "", d->message);
    }
}

static json_t *report_json(const char *text, berth_target_diagnostics diagnostics,
                           const berth_multi_target *target) {
    char hash[33] = "";
    if (target) berth_hash128_hex(target->hash, hash);
    json_t *list = json_array();
    for (uint32_t i = 0; i < diagnostics.count; ++i)
        json_array_append_new(
            list, json_pack("{s:o, s:o}", "path", berth_cli_json_text(diagnostics.data[i].path),
                            "message", berth_cli_json_text(diagnostics.data[i].message)));
    return json_pack("{s:o, s:b, s:s, s:o}", "target", berth_cli_json_text(text), "valid",
                     target != NULL, "hash", hash, "diagnostics", list);
}

// What is not about the text (no such file or tag, no device facts) is one diagnostic more, so that
// the other targets get their turn. Only out-of-memory ends it all.
static berth_status validate_one(target_command *command,
                                 const berth_target_options *target_options, const char *text,
                                 berth_target_diagnostics *out_diagnostics,
                                 berth_multi_target **out_target) {
    berth_status status = berth_target_validate(command->cli.arena, text, target_options,
                                                out_diagnostics, out_target);
    if (!status || berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_target_diagnostic *one = berth_arena_new(command->cli.arena, berth_target_diagnostic);
    one->path = "";
    one->message = berth_arena_strdup(command->cli.arena, berth_status_message(status));
    berth_status_free(status);
    *out_diagnostics = (berth_target_diagnostics){one, 1};
    return BERTH_OK;
}

// *out_invalid: whether any was.
static berth_status validate(target_command *command, const berth_target_options *target_options,
                             bool json, bool *out_invalid) {
    json_t *reports = json ? json_array() : NULL;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < command->arguments.count; ++i) {
        const char *text = command->arguments.data[i];
        berth_target_diagnostics diagnostics;
        berth_multi_target *target = NULL;
        BERTH_TRY_GOTO(status, validate_one(command, target_options, text, &diagnostics, &target));
        if (!target) *out_invalid = true;
        if (json)
            json_array_append_new(reports, report_json(text, diagnostics, target));
        else
            report_text(text, diagnostics, target);
    }
    if (json) berth_cli_print_json(json_incref(reports));
done:
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
    berth_machine_facts facts;
    berth_strbuf texts = berth_strbuf_make(command->cli.arena);  // one question for all targets
    for (uint32_t i = 0; i < command->arguments.count; ++i)
        if (*command->arguments.data[i] != '{')
            berth_strbuf_addf(&texts, "%s ", command->arguments.data[i]);
    BERTH_TRY(berth_machine_facts_for(command->cli.arena, berth_strbuf_text(&texts), &facts));
    berth_target_options target_options = {
        .tag_folder = command->tag_folder,
        .machine = &facts,
        .overrides = command->cli.overrides.data,
        .host = command->cli.host,
        .executor = command->cli.executor,
        .runtime = command->cli.runtime,
        .pins = command->cli.pins.data,
        .log = berth_cli_log(&command->cli),
    };
    if (strcmp(command->action, "show") == 0) return show(command, &target_options, json);
    bool invalid = false;
    berth_status status = validate(command, &target_options, json, &invalid);
    command->cli.exit_status = invalid ? 1 : 0;
    return status;
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
        .run = run};
    target_command state = {.tag_folder = getenv("BERTH_TAGS")};
    return berth_cli_run(&command, &state, argc, argv);
}
