// berth explain: why a plan is as it is, and what another machine would make of it.
#include <berth/plan.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"
#include "tools/explain_summary.h"
#include "tools/plan_memory.h"
#include "tools/plan_report.h"

typedef struct explain_command {
    berth_cli_model cli;
    const char *pattern;  // NULL = all operations
    bool no_what_if;
    int64_t what_if_ns;
    berth_compiler *compiler;
    berth_plan_info *plan;
    berth_what_if_info *changes;
} explain_command;

enum { key_op = 0x800, key_no_what_if, key_what_if_time };

static const struct argp_option options[] = {
    {"op", key_op, "PATTERN", 0,
     "Only operations whose node matches PATTERN (or op:PATTERN, their operator), as in --pin", 0},
    {"no-what-if", key_no_what_if, NULL, 0, "Do not plan for changed machines", 0},
    {"what-if-time", key_what_if_time, "TIME", 0,
     "Begin no further plan for a changed machine after TIME (default: 30s)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    explain_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &command->cli;
        command->cli.takes_bounds = true;
        return 0;
    case key_op: command->pattern = arg; return 0;
    case key_no_what_if: command->no_what_if = true; return 0;
    case key_what_if_time:
        if (!berth_parse_time(arg, &command->what_if_ns))
            berth_cli_wrong_usage(
                state, "--what-if-time takes a time such as 500ms, 10s or 2m, not \"%s\"", arg);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// ---- operations ---------------------------------------------------------------------------------

static bool part_matches(const explain_command *command, const char *node, const char *op) {
    const char *pattern = command->pattern;
    if (strncmp(pattern, "op:", 3) == 0) return berth_glob_match(pattern + 3, op);
    return berth_glob_match(pattern, node);
}

// As pins match: what was made of several nodes ("conv1+bn1") by any of them, or as a whole.
static bool matches(const explain_command *command, const berth_planned_operation *p) {
    berth_arena *arena = command->cli.arena;
    if (!command->pattern || part_matches(command, p->node, p->op)) return true;
    const char *node = p->node, *op = p->op;
    while (strchr(node, '+') || strchr(op, '+')) {
        size_t node_length = strcspn(node, "+"), op_length = strcspn(op, "+");
        if (part_matches(command, berth_arena_strndup(arena, node, node_length),
                         berth_arena_strndup(arena, op, op_length)))
            return true;
        node += node_length + (node[node_length] == '+');
        op += op_length + (op[op_length] == '+');
    }
    return part_matches(command, node, op);
}

// Indices of the plan's entries that are shown.
static berth_status select_operations(const explain_command *command, uint32_t **out_shown,
                                      uint32_t *out_count) {
    uint32_t count = berth_plan_info_operation_count(command->plan);
    *out_shown = berth_arena_new_array(command->cli.arena, uint32_t, count + 1);
    *out_count = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (matches(command, berth_plan_info_operation(command->plan, i)))
            (*out_shown)[(*out_count)++] = i;
    if (*out_count || !command->pattern) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND,
                             "--op %s matches no operation of the plan; `berth plan` lists them",
                             command->pattern);
}

static void print_operation(const berth_planned_operation *o) {
    berth_cli_print("\n");
    berth_cli_print("%s\n", o->name);
    if (o->has_time)
        berth_cli_print("  on %s, memory %s; %.1f us (%s), from %.1f us on\n", o->device, o->memory,
                        o->time_ns / 1e3, o->cost, o->start_ns / 1e3);
    else
        berth_cli_print("  on %s, memory %s; no time of its own\n", o->device, o->memory);
    berth_plan_print_buffers(o, 2);
    for (uint32_t i = 0; i < o->chain_count; ++i)
        berth_cli_print("  %s %s\n", i == 0 ? "because:" : "        ", o->chain[i]);
    for (uint32_t i = 0; i < o->rejection_count; ++i)
        berth_cli_print("  not %s: %s\n", o->rejections[i].device, o->rejections[i].reason);
}

// ---- what if ------------------------------------------------------------------------------------

static void show_progress(void *user, const char *what, uint32_t done, uint32_t total) {
    const explain_command *command = user;
    if (!command->cli.quiet)
        berth_cli_message("note", berth_arena_printf(command->cli.arena, "what if %u of %u: %s",
                                                     done + 1, total, what));
}

// Less than that is said to be no effect.
static const double small_gain = 0.001;

// "12.0 % faster", "155 times as long".
static const char *change_text(berth_arena *arena, const char *unit, double gain) {
    bool time = strcmp(unit, "ns") == 0;
    if (gain > 0)
        return berth_arena_printf(arena, "%.1f %% %s", gain * 100, time ? "faster" : "less");
    if (gain > -1)
        return berth_arena_printf(arena, "%.1f %% %s", -gain * 100, time ? "slower" : "more");
    return berth_arena_printf(arena, "%.3g times as %s", 1 - gain, time ? "long" : "much");
}

static void print_what_if(const explain_command *command) {
    berth_arena *arena = command->cli.arena;
    const berth_what_if_info *changes = command->changes;
    const berth_plan_facts *facts = berth_plan_info_facts(command->plan);
    berth_strbuf nothing = berth_strbuf_make(arena);
    const char *unit = NULL;
    const double before = berth_what_if_info_before(changes, &unit);
    const char *shown = berth_plan_shown_unit(unit);
    berth_cli_print("what if (now %.4g %s)\n", berth_plan_shown(unit, before), shown);
    for (uint32_t i = 0; i < berth_what_if_info_change_count(changes); ++i) {
        const berth_what_if_change *change = berth_what_if_info_change(changes, i);
        if (change->problem)
            berth_cli_print("  %-48s no plan: %s\n", change->what, change->problem);
        else if (fabs(change->gain) >= small_gain)
            berth_cli_print("  %-48s %s (%.4g %s)\n", change->what,
                            change_text(arena, unit, change->gain),
                            berth_plan_shown(unit, change->value), shown);
        else
            berth_strbuf_addf(&nothing, "%s%s", nothing.length ? "; " : "", change->what);
    }
    if (nothing.length) berth_cli_print("  no effect: %s\n", berth_strbuf_text(&nothing));
    if (facts->is_valued && strcmp(facts->strategy, "default") != 0 && facts->gap > small_gain)
        berth_cli_print(
            "  the search left a gap of %.3g %%: smaller differences may be its doing, and "
            "not the machine's (--nodes searches more)\n",
            facts->gap * 100);
    if (berth_what_if_info_left_out(changes))
        berth_cli_print("  not tried, for want of time (--what-if-time): %u more\n",
                        berth_what_if_info_left_out(changes));
}

static json_t *what_if_json(const berth_what_if_info *changes) {
    const char *unit = NULL;
    const double before = berth_what_if_info_before(changes, &unit);
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_what_if_info_change_count(changes); ++i) {
        const berth_what_if_change *change = berth_what_if_info_change(changes, i);
        json_t *json = json_pack("{s:o}", "what", berth_cli_json_text(change->what));
        if (change->problem) {
            json_object_set_new(json, "problem", berth_cli_json_text(change->problem));
        } else {
            json_object_set_new(json, "value", json_real(berth_plan_shown(unit, change->value)));
            json_object_set_new(json, "gain", json_real(change->gain));
        }
        json_array_append_new(list, json);
    }
    return json_pack("{s:f, s:s, s:o, s:i}", "before", berth_plan_shown(unit, before), "unit",
                     berth_plan_shown_unit(unit), "changes", list, "left_out",
                     (int)berth_what_if_info_left_out(changes));
}

// ---- the command --------------------------------------------------------------------------------

static void print_text(const explain_command *command, const uint32_t *shown, uint32_t count) {
    berth_explain_print_summary(command->cli.arena, command->plan);
    if (!command->no_what_if) print_what_if(command);
    berth_explain_print_copies(command->plan);
    for (uint32_t i = 0; i < count; ++i)
        print_operation(berth_plan_info_operation(command->plan, shown[i]));
}

static void print_json(const explain_command *command, const uint32_t *shown, uint32_t count) {
    const berth_plan_info *plan = command->plan;
    json_t *json = berth_explain_summary_json(command->cli.arena, plan);
    json_t *operations = json_array();
    for (uint32_t i = 0; i < count; ++i)
        json_array_append_new(operations, berth_plan_operation_json(plan, shown[i]));
    json_object_set_new(json, "operations", operations);
    json_object_set_new(json, "copies", berth_plan_copies_json(plan));
    json_object_set_new(json, "memory", berth_plan_memory_json(plan));
    if (!command->no_what_if) json_object_set_new(json, "what_if", what_if_json(command->changes));
    berth_cli_print_json(json);
}

static berth_status explain(void *state) {
    explain_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    uint32_t *shown = NULL, count = 0;
    BERTH_TRY(berth_cli_compiler(&command->cli, true, &command->compiler));
    if (berth_program_file_is(command->cli.model))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is a built program, planned already: give the model",
                                 command->cli.model);
    BERTH_TRY(berth_compiler_plan_file(command->compiler, command->cli.model, &command->plan));
    BERTH_TRY(select_operations(command, &shown, &count));
    const berth_what_if_settings what_if = {.size_bytes = sizeof(what_if),
                                            .time_limit_ns = command->what_if_ns,
                                            .on_plan = show_progress,
                                            .user = command};
    if (!command->no_what_if)
        BERTH_TRY(
            berth_compiler_what_if(command->compiler, command->plan, &what_if, &command->changes));
    if (json)
        print_json(command, shown, count);
    else
        print_text(command, shown, count);
    return BERTH_OK;
}

static void end(void *state) {
    explain_command *command = state;
    berth_what_if_info_free(command->changes);
    berth_plan_info_free(command->plan);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_explain(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_model_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp =
            {options, parse, "MODEL",
             "Explains the plan of MODEL: the time of each device, copies and what causes them, "
             "why every operation is where it is and what it would cost elsewhere; and what "
             "another machine would gain.\v"
             "The plan is made again for the target with one change at a time: a pin less, a "
             "device more or less, links and memories twice as fast, memories of half and twice "
             "the size. Measured costs are of devices as they are: what they know does not "
             "become faster with a memory's bandwidth.",
             children, NULL, NULL},
        .run = explain,
        .end = end};
    explain_command state = {.what_if_ns = (int64_t)30 * 1000000000};
    return berth_cli_run(&command, &state, argc, argv);
}
