// berth memory: static memory allocation problems in CSV, without a model.
#include <berth/allocation.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "tools/cli.h"
#include "tools/commands.h"
#include "tools/memory_plot.h"

typedef struct memory_command {
    berth_cli_model cli;
    const char *action;
    const char *file;
    berth_cli_strings capacities;  // BYTES or POOL=BYTES
    bool minimize;
    int64_t time_budget_ns;
    uint64_t node_budget;
    const char *output;

    berth_allocation_problem *problem;
} memory_command;

enum { key_time = 0x300, key_nodes, key_limits };

static const struct argp_option options[] = {
    {"capacity", 'c', "BYTES", 0,
     "Fit into this many bytes (also 512K, 1MiB; POOL=BYTES for one pool; may be repeated)", 0},
    {"minimize", 'm', NULL, 0, "Find the least capacity (the default without --capacity)", 0},
    {"time-budget", key_time, "TIME", 0,
     "Stop searching after this time, such as 500ms, 60s, 2m (default: 60s)", 0},
    {"nodes", key_nodes, "N", 0, "Stop searching after this many nodes: the same answer every time",
     0},
    {"limits", key_limits, "LIMITS", 0,
     "Read no more of the file than bytes=64MiB,items=10000 (buffers),time=5s, or some of these",
     0},
    {"output", 'o', "FILE", 0,
     "solve: the rows with an offset column (CSV); plot: the picture (SVG). - is stdout", 0},
    {"format", BERTH_CLI_KEY_FORMAT, "text|json", 0, "Output (default: text)", 0},
    {0},
};

static void take_argument(memory_command *command, const char *arg, struct argp_state *state) {
    if (command->file) berth_cli_wrong_usage(state, "only one file");
    if (command->action) {
        command->file = arg;
        return;
    }
    if (strcmp(arg, "solve") != 0 && strcmp(arg, "plot") != 0 && strcmp(arg, "check") != 0)
        berth_cli_wrong_usage(state, "the actions are solve, plot and check, not \"%s\"", arg);
    command->action = arg;
}

// What contradicts, or means nothing for the action.
static void check_options(const memory_command *command, struct argp_state *state) {
    bool searches = command->minimize || command->node_budget || command->time_budget_ns;
    if (command->minimize && command->capacities.count)
        berth_cli_wrong_usage(state, "either --capacity or --minimize");
    if (command->node_budget && command->time_budget_ns)
        berth_cli_wrong_usage(state, "either --time-budget or --nodes");
    if (strcmp(command->action, "check") == 0 && (searches || command->output))
        berth_cli_wrong_usage(
            state, "check takes --capacity and --format: it searches and writes nothing");
    if (strcmp(command->action, "plot") == 0 && command->cli.format)
        berth_cli_wrong_usage(state, "plot draws SVG: it has no --format");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    memory_command *command = state->input;
    switch (key) {
    case 'c': berth_cli_push(&command->cli, &command->capacities, arg); return 0;
    case key_limits:
        berth_cli_check_limits(state, arg);
        command->cli.limits = arg;
        return 0;
    case 'm': command->minimize = true; return 0;
    case 'o': command->output = arg; return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
    case key_time:
        if (!berth_parse_time(arg, &command->time_budget_ns))
            berth_cli_wrong_usage(
                state, "--time-budget takes a time such as 500ms, 60s or 2m, not \"%s\"", arg);
        return 0;
    case key_nodes:
        if (!berth_cli_parse_u64(arg, &command->node_budget) || command->node_budget == 0)
            berth_cli_wrong_usage(state, "--nodes takes a number from 1, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_ARG: take_argument(command, arg, state); return 0;
    case ARGP_KEY_END:
        if (!command->action) berth_cli_wrong_usage(state, "solve, plot or check?");
        if (!command->file) berth_cli_wrong_usage(state, "%s takes a CSV file", command->action);
        check_options(command, state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// --capacity BYTES holds for all pools, POOL=BYTES for one.
static berth_status set_capacities(memory_command *command) {
    for (uint32_t i = 0; i < command->capacities.count; ++i) {
        const char *text = command->capacities.data[i];
        const char *equals = strrchr(text, '=');
        const char *pool =
            equals ? berth_arena_strndup(command->cli.arena, text, (size_t)(equals - text)) : NULL;
        uint64_t bytes = 0;
        if (!berth_parse_bytes(equals ? equals + 1 : text, &bytes) || bytes == 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "--capacity \"%s\": not a number of bytes from 1", text);
        berth_status status = berth_allocation_problem_set_capacity(command->problem, pool, bytes);
        if (berth_status_code(status) != BERTH_NOT_FOUND) {
            BERTH_TRY(status);
            continue;
        }
        berth_status_free(status);
        return berth_status_make(BERTH_NOT_FOUND, "--capacity \"%s\": the file has no such pool",
                                 text);
    }
    return BERTH_OK;
}

static const char *verdict_name(berth_allocation_verdict verdict) {
    return verdict == BERTH_ALLOCATION_FITS         ? "fits"
           : verdict == BERTH_ALLOCATION_CANNOT_FIT ? "cannot fit"
                                                    : "unknown";
}

typedef struct totals {
    uint64_t height_bytes, lower_bound_bytes;
    bool fits, proven;
} totals;

static totals sum_pools(const berth_allocation_problem *problem) {
    totals t = {0, 0, true, true};
    for (uint32_t p = 0; p < berth_allocation_problem_pool_count(problem); ++p) {
        const berth_allocation_pool *pool = berth_allocation_problem_pool(problem, p);
        t.height_bytes += pool->height_bytes;
        t.lower_bound_bytes += pool->lower_bound_bytes;
        t.fits &= pool->verdict == BERTH_ALLOCATION_FITS;
        t.proven &= pool->proven != 0;
    }
    return t;
}

static json_t *pool_json(const berth_allocation_pool *pool) {
    json_t *json = json_pack(
        "{s:o, s:s, s:I, s:I, s:b, s:s}", "pool", berth_cli_json_text(pool->name), "verdict",
        verdict_name(pool->verdict), "height", (json_int_t)pool->height_bytes, "lower_bound",
        (json_int_t)pool->lower_bound_bytes, "proven", pool->proven, "strategy", pool->strategy);
    if (json && pool->capacity_bytes)
        json_object_set_new(json, "capacity", json_integer((json_int_t)pool->capacity_bytes));
    return json;
}

static void print_json(const memory_command *command, double seconds) {
    const berth_allocation_problem *problem = command->problem;
    totals t = sum_pools(problem);
    json_t *pools = json_array();
    for (uint32_t p = 0; p < berth_allocation_problem_pool_count(problem); ++p)
        json_array_append_new(pools, pool_json(berth_allocation_problem_pool(problem, p)));
    json_t *json =
        json_pack("{s:b, s:I, s:I, s:b, s:f, s:I, s:i, s:o}", "fits", t.fits, "height",
                  (json_int_t)t.height_bytes, "lower_bound", (json_int_t)t.lower_bound_bytes,
                  "proven", t.proven, "seconds", seconds, "nodes",
                  (json_int_t)berth_allocation_problem_node_count(problem), "buffers",
                  (int)berth_allocation_problem_buffer_count(problem), "pools", pools);
    berth_cli_print_json(json);
}

static void print_text(const memory_command *command, double seconds) {
    const berth_allocation_problem *problem = command->problem;
    const uint32_t pool_count = berth_allocation_problem_pool_count(problem);
    for (uint32_t p = 0; p < pool_count; ++p) {
        const berth_allocation_pool *pool = berth_allocation_problem_pool(problem, p);
        if (pool_count > 1 || *pool->name) berth_cli_print("pool \"%s\": ", pool->name);
        if (pool->capacity_bytes)
            berth_cli_print(
                "%s %llu bytes%s; ",
                pool->verdict == BERTH_ALLOCATION_FITS ? "fits in"
                : pool->proven                         ? "cannot fit in"
                                                       : "not known to fit in",
                (unsigned long long)pool->capacity_bytes,
                pool->proven && pool->verdict == BERTH_ALLOCATION_CANNOT_FIT ? " (proven)" : "");
        berth_cli_print(
            "height %llu, lower bound %llu%s, found by %s\n",
            (unsigned long long)pool->height_bytes, (unsigned long long)pool->lower_bound_bytes,
            pool->height_bytes == pool->lower_bound_bytes ? " (optimal)" : "", pool->strategy);
    }
    berth_cli_print("%u buffers, %llu nodes, %.3f s\n",
                    berth_allocation_problem_buffer_count(problem),
                    (unsigned long long)berth_allocation_problem_node_count(problem), seconds);
}

static berth_status run_solver(memory_command *command, double *out_seconds) {
    int64_t start_ns = berth_clock_ns();
    int64_t budget_ns =
        command->time_budget_ns ? command->time_budget_ns : (int64_t)60 * 1000000000;
    BERTH_TRY(berth_allocation_problem_solve(command->problem, command->node_budget,
                                             command->node_budget ? 0 : budget_ns));
    *out_seconds = (double)(berth_clock_ns() - start_ns) * 1e-9;
    return BERTH_OK;
}

static berth_status solve(memory_command *command, bool json) {
    double seconds = 0;
    BERTH_TRY(run_solver(command, &seconds));
    bool fits = sum_pools(command->problem).fits;
    if (fits && command->output)
        BERTH_TRY(berth_allocation_problem_save(command->problem, command->output));
    command->cli.exit_status = fits ? 0 : 1;
    if (json)
        print_json(command, seconds);
    else
        print_text(command, seconds);
    return BERTH_OK;
}

static berth_status plot(memory_command *command) {
    double seconds = 0;
    const char *svg = NULL;
    if (!berth_allocation_problem_is_solved(command->problem))
        BERTH_TRY(run_solver(command, &seconds));
    BERTH_TRY(berth_allocation_problem_draw(command->problem, command->file, &svg));
    return berth_file_write(command->output ? command->output : "-", svg, strlen(svg));
}

static berth_status check(memory_command *command, bool json) {
    berth_allocation_problem *problem = command->problem;
    if (!berth_allocation_problem_is_solved(problem))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has no offset column", command->file);
    BERTH_TRY(berth_allocation_problem_check(problem));
    json_t *pools = json ? json_array() : NULL;
    for (uint32_t p = 0; p < berth_allocation_problem_pool_count(problem); ++p) {
        const berth_allocation_pool *pool = berth_allocation_problem_pool(problem, p);
        if (json)
            json_array_append_new(pools, json_pack("{s:o, s:I, s:I}", "pool",
                                                   berth_cli_json_text(pool->name), "height",
                                                   (json_int_t)pool->height_bytes, "lower_bound",
                                                   (json_int_t)pool->lower_bound_bytes));
        else
            berth_cli_print("pool \"%s\": valid, height %llu, lower bound %llu\n", pool->name,
                            (unsigned long long)pool->height_bytes,
                            (unsigned long long)pool->lower_bound_bytes);
    }
    if (json) berth_cli_print_json(json_pack("{s:b, s:o}", "valid", true, "pools", pools));
    return BERTH_OK;
}

static berth_status run_action(void *state) {
    memory_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    BERTH_TRY(berth_allocation_problem_read_limited(command->file, command->cli.limits,
                                                    &command->problem));
    BERTH_TRY(set_capacities(command));
    if (strcmp(command->action, "plot") == 0) return plot(command);
    if (strcmp(command->action, "check") == 0) return check(command, json);
    return solve(command, json);
}

static void end(void *state) {
    berth_allocation_problem_destroy(((memory_command *)state)->problem);
}

int berth_cmd_memory(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp =
            {options, parse, "solve|plot|check FILE.csv\nplot MODEL",
             "Places buffers with known lifetimes in memory.\v"
             "FILE.csv has a header with the columns id, lower, upper and size, and optionally "
             "alignment, pool and offset. A buffer is live from lower to just before upper. "
             "solve prints the height of a solution, a proven lower bound and whether the "
             "answer is proven; with several pools, the sums. plot draws the file's offsets, "
             "or those that solve finds. check verifies the file's offsets. plot MODEL draws where "
             "the intermediate values of a model's plan lie, a panel for each pool, and takes "
             "the options of `berth plan` but --format.\n\n"
             "Exit status: 0 done, 1 it does not fit (or not within the budget) or could not "
             "be done, 2 wrong usage.",
             NULL, NULL, NULL},
        .run = run_action,
        .end = end};
    memory_command state = {0};
    if (berth_memory_plots_model(argc, argv)) return berth_memory_plot_model(argc, argv);
    return berth_cli_run(&command, &state, argc, argv);
}
