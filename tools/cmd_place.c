// berth place: device placement problems in JSON, without a model.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "planner/solve/problem_file.h"
#include "planner/solve/solve.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct place_command {
    berth_cli_model cli;
    const char *file;
    const char *check;
    const char *output;
    berth_place_options solve;
    int64_t time_budget_ns;

    berth_place_problem *problem;
} place_command;

enum { key_contiguous = 0x300, key_strategy, key_time, key_nodes, key_check };

static const struct argp_option options[] = {
    {"objective", 'O', "WHAT", 0,
     "throughput (the default): smallest largest load; latency: of one sample; memory: smallest "
     "largest sum of sizes",
     0},
    {"contiguous", key_contiguous, NULL, 0,
     "throughput: only placements whose devices form a pipeline", 0},
    {"strategy", key_strategy, "NAME", 0, "How to search (default: auto)", 0},
    {"time-budget", key_time, "TIME", 0, "Stop searching after this time, such as 500ms, 10s, 2m",
     0},
    {"nodes", key_nodes, "N", 0,
     "Stop searching after this many nodes: the same answer every time (the default: 8000000)", 0},
    {"check", key_check, "ANSWER.json", 0, "Evaluate this answer instead of searching", 0},
    {"output", 'o', "FILE", 0, "Write the result here instead of stdout", 0},
    {"format", 'f', "FORMAT", 0, "Output: text, json or svg", 0},
    {0},
};

static const char *const objective_names[] = {"throughput", "latency", "memory", NULL};

static bool parse_objective(const char *text, berth_place_objective *out) {
    for (int i = 0; objective_names[i]; ++i)
        if (strcmp(text, objective_names[i]) == 0) {
            *out = (berth_place_objective)i;
            return true;
        }
    return false;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    place_command *command = state->input;
    switch (key) {
    case 'O':
        if (!parse_objective(arg, &command->solve.objective))
            argp_error(state, "--objective takes throughput, latency or memory, not \"%s\"", arg);
        return 0;
    case 'o': command->output = arg; return 0;
    case 'f': command->cli.format = arg; return 0;
    case key_contiguous: command->solve.contiguous = true; return 0;
    case key_strategy: command->solve.strategy = arg; return 0;
    case key_check: command->check = arg; return 0;
    case key_time:
        if (!berth_cli_parse_time(arg, &command->time_budget_ns))
            argp_error(state, "--time-budget takes a time such as 500ms, 10s or 2m, not \"%s\"",
                       arg);
        return 0;
    case key_nodes:
        if (!berth_cli_parse_u64(arg, &command->solve.node_budget) ||
            command->solve.node_budget == 0)
            argp_error(state, "--nodes takes a number from 1, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_ARG:
        if (command->file) argp_error(state, "only one file");
        command->file = arg;
        return 0;
    case ARGP_KEY_END:
        if (!command->file) argp_error(state, "which file?");
        if (command->solve.contiguous && command->solve.objective != BERTH_PLACE_THROUGHPUT)
            argp_error(state, "--contiguous is for the objective throughput");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int print_json(const place_command *command, const berth_place_answer *answer,
                      double seconds) {
    const berth_place_problem *problem = command->problem;
    json_t *assignment = json_object();
    for (uint32_t v = 0; v < problem->node_count; ++v)
        json_object_set_new(assignment, problem->node_names[v],
                            json_string(berth_place_device_name(command->cli.arena, problem,
                                                                answer->assignment[v])));
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:b, s:b, s:I, s:o}", "objective",
                             objective_names[command->solve.objective], "value",
                             answer->value.value, "lower_bound", answer->lower_bound, "gap",
                             answer->gap, "seconds", seconds, "strategy", answer->strategy,
                             "proven", answer->proven, "reproducible", answer->reproducible,
                             "nodes", (json_int_t)answer->nodes, "assignment", assignment);
    return berth_cli_print_json(json);
}

static void print_text(const place_command *command, const berth_place_answer *answer,
                       double seconds) {
    printf("%s %g, lower bound %g%s, gap %.3g %%, found by %s; %llu nodes, %.3f s\n",
           objective_names[command->solve.objective], answer->value.value, answer->lower_bound,
           answer->proven ? " (optimal)" : "", answer->gap * 100, answer->strategy,
           (unsigned long long)answer->nodes, seconds);
}

typedef struct run_call {
    place_command *command;
    int exit_status;
} run_call;

static berth_status run_body(void *user) {
    run_call *call = user;
    place_command *command = call->command;
    berth_arena *arena = command->cli.arena;
    bool json = berth_cli_wants_json(&command->cli);
    BERTH_TRY(berth_place_problem_read(arena, command->file, &command->problem));
    int64_t start_ns = berth_clock_ns();
    if (command->time_budget_ns) command->solve.deadline_ns = start_ns + command->time_budget_ns;
    berth_place_answer answer;
    BERTH_TRY(berth_place_solve(arena, command->problem, &command->solve, &answer));
    double seconds = (double)(berth_clock_ns() - start_ns) * 1e-9;
    if (json)
        call->exit_status = print_json(command, &answer, seconds);
    else
        print_text(command, &answer, seconds);
    return BERTH_OK;
}

int berth_cmd_place(int argc, char **argv) {
    place_command command = {0};
    if (!berth_cli_begin(&command.cli)) return 1;
    static const struct argp argp = {
        options, parse, "PROBLEM.json", "Places the nodes of a graph on devices.", NULL,
        NULL,    NULL};
    berth_cli_parse(&argp, argc, argv, &command);
    run_call call = {&command, 0};
    berth_status status = berth_arena_try(command.cli.arena, run_body, &call);
    int exit_status = status ? berth_cli_finish(status) : call.exit_status;
    berth_cli_end(&command.cli);
    return exit_status;
}
