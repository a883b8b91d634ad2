// berth plan: where every operation would run and why, copies, memory, predicted time.
#include <berth/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli_compiler.h"
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
    berth_compiler *compiler;
    berth_plan_info *plan;
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
    {"format", BERTH_CLI_KEY_FORMAT, "text|json|dot|svg", 0, "Output (default: text)", 4},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    plan_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
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

static void print_rejected(const berth_planned_operation *operation) {
    for (uint32_t i = 0; i < operation->rejection_count; ++i)
        berth_cli_print("%12s not %s: %s\n", "", operation->rejections[i].device,
                        operation->rejections[i].reason);
}

// Which library computes the operation; with --why, what all of them were compared by.
static void print_libraries(const berth_planned_operation *operation, bool why) {
    for (uint32_t i = 0; i < operation->library_count; ++i) {
        const berth_planned_library *l = &operation->libraries[i];
        if (l->is_chosen || why)
            berth_cli_print("%12s %s %s: %s, %s\n", "", l->is_chosen ? "computed by" : "not by",
                            l->name, l->computes, l->reason);
    }
}

static void print_operation(const berth_planned_operation *operation, bool why) {
    // Where a time comes from stands beside it; nothing where none is taken.
    berth_cli_print("%-12s %-24s %-40s %9.1f us %-13s %s\n", operation->device, operation->op,
                    operation->node, operation->time_ns / 1e3,
                    operation->has_time ? operation->cost : "", operation->reason);
    berth_plan_print_buffers(operation, 13);
    print_libraries(operation, why);
    if (why) print_rejected(operation);
}

static void print_text(const plan_command *command, const berth_plan_info *plan) {
    const berth_plan_facts *facts = berth_plan_info_facts(plan);
    berth_cli_print("model %s on %s, strategy %s\n", facts->model, facts->devices, facts->strategy);
    for (uint32_t i = 0; i < berth_plan_info_operation_count(plan); ++i)
        print_operation(berth_plan_info_operation(plan, i), command->why);
    for (uint32_t i = 0; i < berth_plan_info_copy_count(plan); ++i) {
        const berth_planned_copy *copy = berth_plan_info_copy(plan, i);
        char bytes[32];
        berth_format_bytes(copy->size_bytes, bytes);
        berth_cli_print("copy         %s > %s: %s%s, %.1f us", copy->from, copy->to, bytes,
                        copy->size_bytes ? "" : " (the devices share the memory)",
                        copy->time_ns / 1e3);
        berth_plan_print_copy_way(copy);
        berth_cli_print("\n");
    }
    if (command->why) berth_plan_print_kernels(plan);
    berth_plan_memory_print(plan);
    berth_plan_print_value(plan);
}

static json_t *transfers_json(const berth_plan_info *plan) {
    json_t *transfers = json_array();
    for (uint32_t i = 0; i < berth_plan_info_transfer_count(plan); ++i) {
        const berth_planned_transfer *t = berth_plan_info_transfer(plan, i);
        json_array_append_new(transfers, json_pack("{s:o, s:s, s:b, s:f, s:f}", "value",
                                                   berth_cli_json_text(t->value), "device",
                                                   t->device, "to_host", t->is_to_host, "start_us",
                                                   t->start_ns / 1e3, "time_us", t->time_ns / 1e3));
    }
    return transfers;
}

static json_t *plan_json(const berth_plan_info *plan) {
    const berth_plan_facts *facts = berth_plan_info_facts(plan);
    json_t *operations = json_array();
    for (uint32_t i = 0; i < berth_plan_info_operation_count(plan); ++i)
        json_array_append_new(operations, berth_plan_operation_json(plan, i));
    json_error_t error;
    json_t *json = json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:f}", "model", berth_cli_json_text(facts->model), "strategy",
        facts->strategy, "operations", operations, "copies", berth_plan_copies_json(plan), "memory",
        berth_plan_memory_json(plan), "predicted_ms", facts->predicted_ns / 1e6);
    json_object_set_new(json, "transfers", transfers_json(plan));
    json_object_set_new(json, "kernels", berth_plan_kernels_json(plan));
    json_object_set_new(json, "objective", berth_plan_objective_json(plan));
    json_object_set_new(json, "streamed", berth_plan_streamed_json(plan));
    json_object_set_new(json, "memory_sharing", berth_plan_sharing_json(plan));
    json_object_set_new(json, "shapes", berth_plan_shapes_json(plan));
    json_object_set_new(json, "target", json_loads(facts->target, 0, &error));
    return json;
}

static bool has_format(const plan_command *command, const char *format) {
    return strcmp(command->cli.format ? command->cli.format : "text", format) == 0;
}

static void print_plan(const plan_command *command) {
    if (has_format(command, "json"))
        berth_cli_print_json(plan_json(command->plan));
    else if (has_format(command, "text"))
        print_text(command, command->plan);
    else if (has_format(command, "dot"))
        fputs(berth_plan_info_dot(command->plan), stdout);
    else
        fputs(berth_plan_info_svg(command->plan), stdout);
}

static json_t *sweep_json(const berth_memory_sweep_info *sweep) {
    json_t *points = json_array();
    for (uint32_t i = 0; i < berth_memory_sweep_info_point_count(sweep); ++i) {
        const berth_sweep_point *p = berth_memory_sweep_info_point(sweep, i);
        json_array_append_new(
            points, json_pack("{s:I, s:I, s:I, s:f}", "budget_bytes", (json_int_t)p->budget_bytes,
                              "planned_bytes", (json_int_t)p->planned_bytes, "read_bytes",
                              (json_int_t)p->read_bytes, "predicted_ms", p->predicted_ns / 1e6));
    }
    return json_pack("{s:o, s:o, s:I, s:o}", "model",
                     berth_cli_json_text(berth_memory_sweep_info_model(sweep)), "memory",
                     berth_cli_json_text(berth_memory_sweep_info_memory(sweep)), "least_bytes",
                     (json_int_t)berth_memory_sweep_info_least_bytes(sweep), "points", points);
}

static void print_sweep(const berth_memory_sweep_info *sweep) {
    const uint64_t least_bytes = berth_memory_sweep_info_least_bytes(sweep);
    char bytes[3][32];
    berth_cli_print("model %s, memory %s: budget, planned use, constants read in each run, "
                    "predicted time\n",
                    berth_memory_sweep_info_model(sweep), berth_memory_sweep_info_memory(sweep));
    for (uint32_t i = 0; i < berth_memory_sweep_info_point_count(sweep); ++i) {
        const berth_sweep_point *p = berth_memory_sweep_info_point(sweep, i);
        berth_format_bytes(p->budget_bytes, bytes[0]);
        berth_format_bytes(p->planned_bytes, bytes[1]);
        berth_format_bytes(p->read_bytes, bytes[2]);
        berth_cli_print("%12s %12s %12s %12.3f ms\n", bytes[0], bytes[1], bytes[2],
                        p->predicted_ns / 1e6);
    }
    berth_format_bytes(least_bytes, bytes[0]);
    berth_cli_print("the smallest budget that does: %s (%llu bytes)\n", bytes[0],
                    (unsigned long long)least_bytes);
}

static berth_status sweep_memory(const plan_command *command) {
    enum { budgets = 13 };
    berth_memory_sweep_info *sweep = NULL;
    BERTH_TRY(berth_compiler_sweep_memory_file(command->compiler, command->cli.model,
                                               command->swept, budgets, &sweep));
    if (has_format(command, "json"))
        berth_cli_print_json(sweep_json(sweep));
    else if (has_format(command, "svg"))
        fputs(berth_memory_sweep_info_svg(sweep), stdout);
    else
        print_sweep(sweep);
    berth_memory_sweep_info_free(sweep);
    return BERTH_OK;
}

static berth_status plan(void *state) {
    plan_command *command = state;
    if (command->compare)
        return berth_plan_compare(command->cli.arena, command->cli.model, command->other,
                                  berth_cli_wants_json(&command->cli));
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    BERTH_TRY(berth_compiler_set(command->compiler, "explain_kernels",
                                 command->why || has_format(command, "json") ? "on" : "off"));
    if (berth_program_file_is(command->cli.model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, planned already; `berth inspect` "
                                 "shows it",
                                 command->cli.model);
    if (command->sweeps) return sweep_memory(command);
    BERTH_TRY(berth_compiler_plan_file(command->compiler, command->cli.model, &command->plan));
    print_plan(command);
    return BERTH_OK;
}

static void end(void *state) {
    plan_command *command = state;
    berth_plan_info_free(command->plan);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_plan(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp_no_format, 0, NULL, 0},
                                                 {0}};
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
