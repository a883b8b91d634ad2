// berth place: device placement problems in JSON, without a model.
#include <berth/placement.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct place_command {
    berth_cli_model cli;
    const char *file;
    const char *check;
    const char *output;
    berth_placement_settings solve;

    berth_placement_problem *problem;
    double seconds;
    int64_t told_ns;  // last line of progress; 0 = none
} place_command;

enum {
    key_contiguous = 0x300,
    key_model,
    key_strategy,
    key_time,
    key_nodes,
    key_check,
    key_quiet,
    key_limits
};

static const struct argp_option options[] = {
    {"objective", 'O', "throughput|latency|memory", 0,
     "What is to be small: throughput (the default), the largest load of a device per sample; "
     "latency, the time until one sample is done; memory, the largest sum of sizes on a device",
     0},
    {"contiguous", key_contiguous, NULL, 0,
     "throughput: only placements whose devices can be put in an order that the forward edges "
     "follow",
     0},
    {"model", key_model, "subgraph|list", 0,
     "latency: subgraph (the default), the published model, where an accelerator runs one "
     "subgraph; "
     "or list, the planner's, where a device runs one node at a time",
     0},
    {"strategy", key_strategy, "NAME", 0, "How to search (default: auto); listed below", 0},
    {"time-budget", key_time, "TIME", 0,
     "Stop after this time, reading included, such as 500ms, 10s, 2m (default: no limit but "
     "--nodes)",
     0},
    {"nodes", key_nodes, "N", 0,
     "Stop searching after this many nodes, each about a microsecond's work: the same answer every "
     "time (default: 8000000, without --time-budget)",
     0},
    {"check", key_check, "ANSWER.json", 0,
     "Do not search; check this answer (as --format json writes it) and value it", 0},
    {"limits", key_limits, "LIMITS", 0,
     "Read no more of the file than bytes=64MiB,items=10000 (nodes and edges),depth=10,time=5s, or "
     "some of these",
     0},
    {"output", 'o', "FILE", 0, "Write the result here, not to stdout", 0},
    {"format", BERTH_CLI_KEY_FORMAT, "text|json|svg", 0, "Output (default: text); svg is a picture",
     0},
    {"quiet", key_quiet, NULL, 0, "No progress on stderr", 0},
    {0},
};

static void take_strategy(place_command *command, const char *arg, struct argp_state *state) {
    const char *names[BERTH_CLI_MOST_NAMES] = {"auto"};
    const char *name = NULL, *text = NULL;
    for (uint32_t i = 0; berth_placement_strategy_at(i, &name, &text); ++i)
        berth_cli_add_name(names, name);
    berth_cli_choose(state, "--strategy", arg, names);
    command->solve.strategy = arg;
}

static void check_arguments(place_command *command, struct argp_state *state) {
    if (!command->file) berth_cli_wrong_usage(state, "which problem? (a JSON file)");
    if (command->solve.contiguous && command->solve.objective != BERTH_PLACEMENT_THROUGHPUT)
        berth_cli_wrong_usage(state, "--contiguous is for the objective throughput");
    if (command->solve.one_node_at_a_time && command->solve.objective != BERTH_PLACEMENT_LATENCY)
        berth_cli_wrong_usage(state, "--model list is for the objective latency");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    place_command *command = state->input;
    switch (key) {
    case 'O':
        command->solve.objective =
            (berth_placement_objective)berth_cli_choose_value(state, key, arg);
        return 0;
    case 'o': command->output = arg; return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
    case key_contiguous: command->solve.contiguous = 1; return 0;
    case key_model:
        command->solve.one_node_at_a_time = berth_cli_choose_value(state, key, arg) == 1;
        return 0;
    case key_strategy: take_strategy(command, arg, state); return 0;
    case key_check: command->check = arg; return 0;
    case key_limits:
        berth_cli_check_limits(state, arg);
        command->cli.limits = arg;
        return 0;
    case key_quiet: command->cli.quiet = true; return 0;
    case key_time:
        if (!berth_parse_time(arg, &command->solve.time_budget_ns))
            berth_cli_wrong_usage(
                state, "--time-budget takes a time such as 500ms, 10s or 2m, not \"%s\"", arg);
        return 0;
    case key_nodes:
        if (!berth_cli_parse_u64(arg, &command->solve.node_budget) ||
            command->solve.node_budget == 0)
            berth_cli_wrong_usage(state, "--nodes takes a number from 1, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (command->file) berth_cli_wrong_usage(state, "only one problem");
        command->file = arg;
        return 0;
    case ARGP_KEY_END: check_arguments(command, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ------------------------------------------------------------------------------------------------
// results

static const char *objective_name(const place_command *command) {
    static const char *const names[] = {"throughput", "latency", "memory"};
    return names[command->solve.objective];
}

static const berth_placement_answer *answer_of(const place_command *command) {
    return berth_placement_problem_answer(command->problem);
}

static const char *unit_of(const place_command *command) {
    if (command->solve.objective != BERTH_PLACEMENT_MEMORY) return "ms";
    return answer_of(command)->is_share ? "of the capacity" : "bytes";
}

static void add_device_text(const place_command *command, const berth_placement_device *device,
                            berth_strbuf *out) {
    if (device->node_count == 0) return;
    char size[32];
    char load[48];
    char capacity[32];
    berth_format_bytes_f64(device->size_bytes, size);
    snprintf(load, sizeof(load), "%.5g ms", device->load);
    bool limited = device->capacity_bytes < INFINITY;
    if (limited) berth_format_bytes_f64(device->capacity_bytes, capacity);
    berth_strbuf_addf(out, "  %-8s %-14s %10s%s%s %8u node%s\n", device->name,
                      command->solve.objective == BERTH_PLACEMENT_MEMORY ? "" : load, size,
                      limited ? " of " : "", limited ? capacity : "", device->node_count,
                      device->node_count == 1 ? "" : "s");
}

static void add_text(const place_command *command, berth_strbuf *out) {
    const berth_placement_answer *answer = answer_of(command);
    const berth_placement_problem *problem = command->problem;
    berth_strbuf_addf(out, "%s %.8g %s", objective_name(command), answer->value, unit_of(command));
    if (command->check)
        berth_strbuf_add(out, ", all limits are kept\n");
    else if (answer->proven)
        berth_strbuf_addf(out, ", proven optimal; found by %s\n", answer->strategy);
    else
        berth_strbuf_addf(out, ", lower bound %.8g, gap %.3g %%; found by %s\n",
                          answer->lower_bound, answer->gap * 100, answer->strategy);
    uint32_t unused = 0;
    for (uint32_t d = 0; d < berth_placement_problem_device_count(problem); ++d) {
        const berth_placement_device *device = berth_placement_problem_device(problem, d);
        add_device_text(command, device, out);
        unused += device->node_count == 0;
    }
    if (unused) berth_strbuf_addf(out, "  %u unused\n", unused);
    berth_strbuf_addf(
        out, "%u nodes in %u groups, %u edges", berth_placement_problem_node_count(problem),
        berth_placement_problem_group_count(problem), berth_placement_problem_edge_count(problem));
    if (!command->check)
        berth_strbuf_addf(out, "; %llu search nodes, %.3f s%s",
                          (unsigned long long)answer->node_count, command->seconds,
                          answer->reproducible ? "" : " (may differ next time: time ran out)");
    berth_strbuf_add(out, "\n");
}

static json_t *devices_json(const place_command *command) {
    json_t *devices = json_array();
    for (uint32_t d = 0; d < berth_placement_problem_device_count(command->problem); ++d) {
        const berth_placement_device *row = berth_placement_problem_device(command->problem, d);
        json_array_append_new(devices, json_pack("{s:s, s:f, s:f, s:i}", "device", row->name,
                                                 "load", row->load, "bytes", row->size_bytes,
                                                 "nodes", (int)row->node_count));
    }
    return devices;
}

static json_t *answer_json(const place_command *command) {
    const berth_placement_answer *answer = answer_of(command);
    const berth_placement_problem *problem = command->problem;
    json_t *assignment = json_object();
    for (uint32_t v = 0; v < berth_placement_problem_node_count(problem); ++v) {
        const berth_placement_node *node = berth_placement_problem_node(problem, v);
        json_object_set_new(
            assignment, node->name,
            json_string(berth_placement_problem_device(problem, node->device)->name));
    }
    json_t *json =
        json_pack("{s:s, s:f, s:o, s:o}", "objective", objective_name(command), "value",
                  answer->value, "devices", devices_json(command), "assignment", assignment);
    if (command->solve.contiguous) json_object_set_new(json, "contiguous", json_true());
    if (command->check) return json;
    json_t *search =
        json_pack("{s:f, s:f, s:b, s:f, s:s, s:b, s:I}", "lower_bound", answer->lower_bound, "gap",
                  answer->gap, "proven", answer->proven, "seconds", command->seconds, "strategy",
                  answer->strategy, "reproducible", answer->reproducible, "nodes",
                  (json_int_t)answer->node_count);
    json_object_update(json, search);
    json_decref(search);
    return json;
}

static berth_status write_json(const place_command *command) {
    json_t *json = answer_json(command);
    if (!command->output || strcmp(command->output, "-") == 0) {
        berth_cli_print_json(json);
        return BERTH_OK;
    }
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS);
    json_decref(json);
    if (!text) return berth_status_oom();
    berth_strbuf out = berth_strbuf_make(command->cli.arena);
    berth_strbuf_addf(&out, "%s\n", text);
    free(text);
    return berth_file_write(command->output, out.data, out.length);
}

static berth_status write_result(const place_command *command) {
    const char *format = command->cli.format ? command->cli.format : "text";
    if (strcmp(format, "json") == 0) return write_json(command);
    berth_strbuf out = berth_strbuf_make(command->cli.arena);
    if (strcmp(format, "svg") == 0) {
        const char *slash = strrchr(command->file, '/');
        const char *title = berth_arena_printf(
            command->cli.arena, "%s: %s %.6g %s", slash ? slash + 1 : command->file,
            objective_name(command), answer_of(command)->value, unit_of(command));
        const char *svg = NULL;
        BERTH_TRY(berth_placement_problem_draw(command->problem, title, &svg));
        berth_strbuf_add(&out, svg);
    } else {
        add_text(command, &out);
    }
    return berth_file_write(command->output ? command->output : "-", out.data, out.length);
}

// ------------------------------------------------------------------------------------------------
// work

static void show_progress(void *user, const berth_placement_progress *progress) {
    place_command *command = user;
    int64_t now_ns = berth_clock_ns();
    if (now_ns - command->told_ns < 200000000) return;
    command->told_ns = now_ns;
    if (progress->value < INFINITY)
        fprintf(stderr, "\rberth: %s: value %.6g, bound %.6g\033[K", progress->strategy,
                progress->value, progress->lower_bound);
    else
        fprintf(stderr, "\rberth: %s: nothing found yet\033[K", progress->strategy);
    fflush(stderr);
}

static berth_status search(place_command *command) {
    int64_t start_ns = berth_clock_ns();
    bool show = berth_cli_shows_progress(&command->cli);
    if (show) {
        command->solve.progress = show_progress;
        command->solve.progress_user = command;
        command->told_ns = start_ns;
    }
    berth_status status = berth_placement_problem_solve(command->problem, &command->solve);
    command->seconds = (double)(berth_clock_ns() - start_ns) * 1e-9;
    if (show && command->told_ns != start_ns) fputs("\r\033[K", stderr);
    return status;
}

// The budget is for all of the command: what reading took is gone, and the rest begins with what is quick.
static void leave_time(place_command *command, int64_t taken_ns) {
    int64_t *budget_ns = &command->solve.time_budget_ns;
    if (*budget_ns > 0) *budget_ns = *budget_ns > taken_ns ? *budget_ns - taken_ns : 1;
}

static berth_status run_body(void *user) {
    place_command *command = user;
    int64_t start_ns = berth_clock_ns();
    BERTH_TRY(berth_placement_problem_read_limited(command->file, command->cli.limits,
                                                   &command->problem));
    leave_time(command, berth_clock_ns() - start_ns);
    BERTH_TRY(command->check
                  ? berth_placement_problem_check(command->problem, command->check, &command->solve)
                  : search(command));
    return write_result(command);
}

static void end(void *state) {
    berth_placement_problem_destroy(((place_command *)state)->problem);
}

// The end of --help: the strategies that there are.
static char *help_filter(int key, const char *text, void *input) {
    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA) return (char *)(uintptr_t)text;
    berth_cli_strategies all = {.count = 0};
    const char *name = NULL, *line = NULL;
    for (uint32_t i = 0; berth_placement_strategy_at(i, &name, &line); ++i)
        berth_cli_add_strategy(&all, name, line);
    char *list = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&list, &length);
    if (!out) return NULL;
    fputs("Strategies: auto runs those that apply.\n", out);
    for (uint32_t i = 0; i < all.count; ++i)
        for (uint32_t d = 0; d < all.items[i].doc_count; ++d)
            fprintf(out, "  %-10s %s\n", d ? "" : all.items[i].name, all.items[i].docs[d]);
    fclose(out);
    return list;
}

int berth_cmd_place(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp =
            {options, parse, "PROBLEM.json",
             "Places the nodes of a graph on devices.\v"
             "PROBLEM.json is in the format of Tarnawski et al. (NeurIPS 2020): maxSizePerFPGA, "
             "maxFPGAs, maxCPUs, nodes and edges; times are milliseconds. The answer has the "
             "value, a "
             "proven lower bound (no placement is below it), the gap between them, and what runs "
             "where: "
             "accelerators are acc0, acc1, ...; CPUs cpu0, cpu1, ... docs/placement.md says what "
             "is "
             "computed.\n\n"
             "Exit status: 0 done, 1 no placement keeps the limits (or none was found, or the "
             "answer "
             "checked breaks one) or it could not be done, 2 wrong usage.",
             NULL, help_filter, NULL},
        .run = run_body,
        .end = end};
    place_command state = {.solve = {.size_bytes = sizeof(state.solve)}};
    return berth_cli_run(&command, &state, argc, argv);
}
