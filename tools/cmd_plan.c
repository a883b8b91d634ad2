// berth plan: where every operation would run and why, copies, memory, predicted time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/file.h"
#include "toolkit/memory_sweep.h"
#include "toolkit/plan_picture.h"
#include "tools/cli_model.h"
#include "tools/commands.h"
#include "tools/plan_compare.h"
#include "tools/plan_memory.h"
#include "tools/plan_report.h"

typedef struct plan_command {
    berth_cli_model cli;
    bool why;
    bool compare;
    const char *other;  // the second plan to compare
    bool sweeps;
    const char *swept;  // memory or device; NULL = the default device's
    berth_model *model;
} plan_command;

enum { key_why = 0x500, key_compare, key_sweep };

static const struct argp_option plan_options[] = {
    {"why", key_why, NULL, 0,
     "For every operation also the devices it is not on: the reason, and what the plan would lose; "
     "the libraries of the target that could compute it, with what was measured of them; "
     "and for every kernel what was decided of its loops, by whom, and what else there would be "
     "(in --format=json always)",
     0},
    {"compare", key_compare, NULL, 0,
     "Show what differs between two plans, files that --format=json wrote", 0},
    {"memory-sweep", key_sweep, "NAME", OPTION_ARG_OPTIONAL,
     "In place of one plan, plans for less and less of a memory (by its name or that of a device; "
     "default: the default device's), down to the smallest budget that does: predicted time and "
     "bytes read in each run; --format=svg draws them",
     0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    static const char *const formats[] = {"text", "json", "dot", "svg", NULL};
    plan_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_why: command->why = true; return 0;
    case key_compare: command->compare = true; return 0;
    case key_sweep:
        command->sweeps = true;
        command->swept = arg;
        return 0;
    case ARGP_KEY_ARG:  // options come first, wherever they stand
        if (!command->compare || !command->cli.model) return ARGP_ERR_UNKNOWN;
        if (command->other) berth_cli_wrong_usage(state, "--compare takes two plans");
        command->other = arg;
        return 0;
    case ARGP_KEY_END:
        if (command->cli.format) berth_cli_choose(state, "--format", command->cli.format, formats);
        if (command->compare && !command->other)
            berth_cli_wrong_usage(state, "--compare takes two plans");
        if (command->compare && command->sweeps)
            berth_cli_wrong_usage(state,
                                  "--compare has files, and plans nothing: no --memory-sweep");
        if (command->sweeps && command->cli.format && strcmp(command->cli.format, "dot") == 0)
            berth_cli_wrong_usage(state, "--memory-sweep has --format text, json and svg");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_rejected(const berth_multi_target *target, const berth_plan_entry *entry) {
    for (uint32_t i = 0; i < entry->rejected_count; ++i)
        berth_cli_print("%12s not %s: %s\n", "", target->devices[entry->rejected[i].device].name,
                        entry->rejected[i].reason);
}

// Which library computes the operation; with --why, what all of them were compared by.
static void print_libraries(const berth_plan_entry *entry, bool why) {
    for (uint32_t i = 0; i < entry->library_count; ++i) {
        const berth_plan_library *l = &entry->libraries[i];
        if (l->chosen || why)
            berth_cli_print("%12s %s %s: %s, %s\n", "", l->chosen ? "computed by" : "not by",
                            l->name, l->computes, l->reason);
    }
}

// Where a time comes from, beside it; nothing where none is taken.
static const char *shown_figure(berth_cost_figure figure) {
    return figure == BERTH_COST_NONE ? "" : berth_cost_figure_name(figure);
}

static void print_text(const plan_command *command, const berth_model *model) {
    berth_arena *arena = command->cli.arena;
    const berth_program *program = berth_model_program(model);
    const berth_plan *plan = berth_model_plan(model);
    const berth_multi_target *target = berth_model_target(model);
    berth_cli_print("model %s on %s, strategy %s\n", program->name,
                    berth_target_print_short(arena, target), plan->strategy);
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *p = &program->placements[i];
        berth_cli_print("%-12s %-24s %-40s %9.1f us %-13s %s\n", program->devices[p->device].name,
                        p->op, p->node, plan->entries[i].time_ns / 1e3,
                        shown_figure(plan->entries[i].figure), p->reason);
        berth_plan_print_buffers(target, &plan->entries[i], 13);
        print_libraries(&plan->entries[i], command->why);
        if (command->why) print_rejected(target, &plan->entries[i]);
    }
    for (uint32_t i = 0; i < plan->copy_count; ++i) {
        char bytes[32];
        berth_format_bytes(plan->copies[i].size_bytes, bytes);
        berth_cli_print("copy         %s > %s: %s%s, %.1f us\n",
                        target->devices[plan->copies[i].from].name,
                        target->devices[plan->copies[i].to].name, bytes,
                        plan->copies[i].size_bytes ? "" : " (the devices share the memory)",
                        plan->copies[i].time_ns / 1e3);
    }
    if (command->why) berth_plan_print_kernels(arena, model);
    berth_plan_memory_print(model);
    berth_plan_print_value(arena, plan);
}

static json_t *plan_json(berth_arena *arena, const berth_model *model) {
    const berth_program *program = berth_model_program(model);
    const berth_plan *plan = berth_model_plan(model);
    const berth_multi_target *target = berth_model_target(model);
    json_t *operations = json_array();
    for (uint32_t i = 0; i < program->placement_count; ++i)
        json_array_append_new(operations, berth_plan_operation_json(model, i));
    json_t *transfers = json_array();
    for (uint32_t i = 0; i < plan->transfer_count; ++i) {
        const berth_plan_transfer *t = &plan->transfers[i];
        json_array_append_new(transfers, json_pack("{s:o, s:s, s:b, s:f, s:f}", "value",
                                                   berth_cli_json_text(t->value), "device",
                                                   target->devices[t->device].name, "to_host",
                                                   (int)t->to_host, "start_us", t->start_ns / 1e3,
                                                   "time_us", t->time_ns / 1e3));
    }
    json_error_t error;
    json_t *json = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:f}", "model", berth_cli_json_text(program->name), "strategy",
        plan->strategy, "operations", operations, "copies", berth_plan_copies_json(model), "memory",
        berth_plan_memory_json(model), "predicted_ms", plan->predicted_ns / 1e6);
    json_object_set_new(json, "transfers", transfers);
    json_object_set_new(json, "kernels", berth_plan_kernels_json(arena, model));
    json_object_set_new(json, "objective", berth_plan_objective_json(plan));
    json_object_set_new(json, "streamed", berth_plan_streamed_json(model));
    json_object_set_new(json, "memory_sharing", berth_plan_sharing_json(model));
    json_object_set_new(json, "target", json_loads(target->canonical, 0, &error));
    return json;
}

static void print_plan(const plan_command *command) {
    const char *format = command->cli.format ? command->cli.format : "text";
    if (strcmp(format, "json") == 0) {
        berth_cli_print_json(plan_json(command->cli.arena, command->model));
        return;
    }
    if (strcmp(format, "text") == 0) {
        print_text(command, command->model);
        return;
    }
    berth_strbuf text = berth_strbuf_make(command->cli.arena);
    if (strcmp(format, "dot") == 0)
        berth_plan_picture_dot(command->model, &text);
    else
        berth_plan_picture_svg(command->model, &text);
    fputs(berth_strbuf_text(&text), stdout);
}

static json_t *sweep_json(const berth_memory_sweep *sweep) {
    json_t *points = json_array();
    for (uint32_t i = 0; i < sweep->point_count; ++i) {
        const berth_memory_sweep_point *p = &sweep->points[i];
        json_array_append_new(
            points, json_pack("{s:I, s:I, s:I, s:f}", "budget_bytes", (json_int_t)p->budget_bytes,
                              "planned_bytes", (json_int_t)p->planned_bytes, "read_bytes",
                              (json_int_t)p->read_bytes, "predicted_ms", p->predicted_ns / 1e6));
    }
    return json_pack("{s:o, s:o, s:I, s:o}", "model", berth_cli_json_text(sweep->model), "memory",
                     berth_cli_json_text(sweep->memory), "least_bytes",
                     (json_int_t)sweep->least_bytes, "points", points);
}

static void print_sweep(const plan_command *command, const berth_memory_sweep *sweep) {
    const char *format = command->cli.format ? command->cli.format : "text";
    char bytes[3][32];
    if (strcmp(format, "json") == 0) {
        berth_cli_print_json(sweep_json(sweep));
        return;
    }
    if (strcmp(format, "svg") == 0) {
        berth_strbuf text = berth_strbuf_make(command->cli.arena);
        berth_memory_sweep_draw(sweep, &text);
        fputs(berth_strbuf_text(&text), stdout);
        return;
    }
    berth_cli_print("model %s, memory %s: budget, planned use, constants read in each run, "
                    "predicted time\n",
                    sweep->model, sweep->memory);
    for (uint32_t i = 0; i < sweep->point_count; ++i) {
        const berth_memory_sweep_point *p = &sweep->points[i];
        berth_format_bytes(p->budget_bytes, bytes[0]);
        berth_format_bytes(p->planned_bytes, bytes[1]);
        berth_format_bytes(p->read_bytes, bytes[2]);
        berth_cli_print("%12s %12s %12s %12.3f ms\n", bytes[0], bytes[1], bytes[2],
                        p->predicted_ns / 1e6);
    }
    berth_format_bytes(sweep->least_bytes, bytes[0]);
    berth_cli_print("the smallest budget that does: %s (%llu bytes)\n", bytes[0],
                    (unsigned long long)sweep->least_bytes);
}

static berth_status sweep_memory(const plan_command *command, const berth_model_options *options) {
    enum { budgets = 13 };
    berth_memory_sweep sweep;
    BERTH_TRY(berth_memory_sweep_make(command->cli.arena, command->cli.model, options,
                                      command->swept, budgets, &sweep));
    print_sweep(command, &sweep);
    return BERTH_OK;
}

static berth_status plan(void *state) {
    plan_command *command = state;
    berth_model_options model_options;
    if (command->compare)
        return berth_plan_compare(command->cli.arena, command->cli.model, command->other,
                                  berth_cli_wants_json(&command->cli));
    BERTH_TRY(berth_cli_model_options(&command->cli, true, &model_options));
    model_options.only_these_inputs = true;  // as `berth run` would
    model_options.compile.plan_only = true;
    model_options.compile.explain_kernels =
        command->why || (command->cli.format && strcmp(command->cli.format, "json") == 0);
    if (berth_program_is_file(command->cli.model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, planned already; `berth inspect` "
                                 "shows it",
                                 command->cli.model);
    if (command->sweeps) return sweep_memory(command, &model_options);
    BERTH_TRY(berth_model_load(command->cli.model, &model_options, &command->model));
    print_plan(command);
    return BERTH_OK;
}

static void end(void *state) {
    berth_model_destroy(((plan_command *)state)->model);
}

int berth_cmd_plan(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {plan_options, parse, "MODEL\n--compare A.json B.json",
                 "Shows on which device every operation of MODEL would run and why, the copies "
                 "between devices, the memory per device and scope, and the predicted "
                 "time.\v--format=dot is for Graphviz, --format=svg draws the predicted "
                 "schedule: what each device and its link do and what memories hold, against time.",
                 children, NULL, NULL},
        .run = plan,
        .end = end};
    plan_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
