#include "tools/cli.h"

#include <berth/compile.h>
#include <berth/device.h>
#include <berth/program.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "tools/cli_describe.h"
#include "tools/cli_inputs.h"

enum {
    key_target = 't',
    key_quiet = 'q',
    key_host = 0x100,
    key_limits,
    key_driver,
    key_plugin,
    key_executor,
    key_runtime,
    key_memory,
    key_pin,
    key_set,
    key_dim,
    key_shape,
    key_input,
    key_layout,
    key_mean,
    key_std,
    key_strategy,
    key_parallel,
    key_costs,
    key_tuned,
    key_objective,
    key_patches,
    key_nodes,
    key_time_budget,
    key_cache_dir,
    key_cache_limit,
    key_compiler_time_limit,
    key_no_cache,
    key_no_fusion,
    key_no_layouts,
    key_no_winograd,
    key_jobs,
};

static const struct argp_option file_options[] = {
    {"dim", key_dim, "NAME=EXTENT", 0,
     "Fix a dimension of the model, by its name or as INPUT.AXIS (from 0); may be repeated. "
     "NAME=LEAST..MOST: for all extents within these bounds, and for no others. "
     "NAME=EXPRESSION, as in total=past+1: it follows from other dimensions; or, as in "
     "height=32*a, from a symbol of your own, of which --dim a=1..32 gives the bounds",
     2},
    {"shape", key_shape, "[NAME=]SHAPE", 0,
     "Fix all dimensions of an input, as in image=1x3x640x640; NAME= may be left out where there "
     "is but one; may be repeated",
     2},
    {"limits", key_limits, "LIMITS", 0,
     "Read no more of a file than bytes=64MiB,items=10000 (operations),depth=50,time=5s, or some "
     "of these; time is that of compiling, too (default: docs/limits.md)",
     4},
    {"quiet", key_quiet, NULL, 0, "No progress on standard error", 4},
    {0},
};

static const struct argp_option format_options[] = {
    {"format", BERTH_CLI_KEY_FORMAT, "text|json", 0, "Output (default: text)", 4}, {0}};

static const struct argp_option driver_options[] = {
    {"driver", key_driver, "FILE", 0,
     "Load a driver from a shared library, in place of the one built in for its kind of device; "
     "may be repeated",
     1},
    {"plugin", key_plugin, "FILE", 0,
     "Load a plug-in of the compiler (operations, passes, schedules, ...) from a shared library; "
     "may "
     "be repeated",
     1},
    {0},
};

static const struct argp_option options[] = {
    {"target", key_target, "T", 0,
     "Target: a tag, a short form (\"opencl -host=cpu\"), a JSON file, or local (default: cpu)", 1},
    {"host", key_host, "T", 0, "Target of the host", 1},
    // Without "auto|": of options that leave no room for text in their line, argp (glibc 2.36) puts margins into the wrong
    // line where its buffer is full there.
    {"executor", key_executor, "graph|vm|aot", 0,
     "What runs programs: graph, vm (control flow, any shape), or aot (`berth build`: C sources); "
     "auto, the default, is vm where it is needed",
     1},
    {"runtime", key_runtime, "hosted|bare", 0, "Runtime; bare only with executor aot", 1},
    {"memory", key_memory, "NAME=BYTES,...", 0,
     "Budgets of memories, by their names or those of devices (cpu=64MiB,opencl:0=32MiB), which no "
     "run exceeds: what does not fit is read again and again from the program's file or the host's "
     "memory, ahead of its use",
     1},
    {"pin", key_pin, "PATTERN=DEVICE", 0,
     "Run nodes whose name matches PATTERN (or op:PATTERN, their operator) on DEVICE; * and ? "
     "stand "
     "for any text and any character; may be repeated",
     1},
    {"set", key_set, "PATH=VALUE", 0,
     "Override a field of the target: cores=2 where it is one device, devices[0].target.cores=2 "
     "where there are several",
     1},
    {"input", key_input, "[NAME=]FILE", 0,
     "Value of an input, or without NAME= of the first, second, ... one: ONNX TensorProto (.pb), "
     "NumPy (.npy, .npz), a picture (PNG, JPEG, TIFF, WebP) or bytes as they are (.raw, "
     ".bin); u8 becomes f32 where the input takes that; may be repeated",
     2},
    {"layout", key_layout, "NCHW|NHWC|CHW|HWC|HW", 0,
     "Dimensions of pictures, and which of u8 is channels (default: NCHW)", 2},
    {"mean", key_mean, "M,...", 0,
     "Pictures and u8 for f32: subtract this from values of 0 to 255; one number, or one for each "
     "channel (default 0)",
     2},
    {"std", key_std, "S,...", 0, "Then divide by this (default 1)", 2},
    {"strategy", key_strategy, "NAME", 0,
     "Placement strategy (default: default); \"list\" shows them", 2},
    {"costs", key_costs, "FILE", 0,
     "Measured costs, as `berth calibrate` writes them (default: costs.jsonl in the folder of "
     "compiled kernels, where it is there; none: the target's figures alone)",
     2},
    {"tuned", key_tuned, "FILE", 0,
     "Tuned kernels, as `berth tune` writes them (default: tuned.jsonl in the folder of compiled "
     "kernels, where it is there; none: schedules by the compiler's own policies)",
     2},
    {"objective", key_objective, "latency|throughput|memory", 0,
     "What placement minimises: latency (of one request; the default), throughput (the largest "
     "load of a device), memory (the largest share of constants)",
     2},
    {"patches", key_patches, "WHICH", 0,
     "Stages of the model that run in bands of rows or in tiles, so that their large values never "
     "exist whole: auto (where a memory or a budget is too small otherwise; the default), never, "
     "least (those with the least memory), [AFTER..]NODE=N[xM]: the stages up to this node in N "
     "bands of rows, or N x M tiles, from the first stage on or after another node; or rolling: "
     "row "
     "by row, with a few rows of the values in between (executor aot)",
     2},
    {"parallel", key_parallel, "tensor|pipeline|auto|none", 0,
     "One model on several devices of a kind: tensor (each holds its part of the weights and does "
     "its part of every product), pipeline (each has operations of its own: --strategy auto), auto "
     "(the fastest of these that fits, as predicted), none (default)",
     2},
    {"nodes", key_nodes, "N", 0,
     "Search nodes of the placement: the same plan every time (default: 300000)", 2},
    {"time-budget", key_time_budget, "TIME", 0,
     "Time of the placement's search instead, such as 500ms, 10s: plans may differ", 2},
    {"cache-dir", key_cache_dir, "DIR", 0,
     "Folder of compiled kernels (default: $BERTH_CACHE_DIR or ~/.cache/berth)", 3},
    {"cache-limit", key_cache_limit, "BYTES", 0,
     "Size above which the least recently used kernels leave that folder (default: 1GiB)", 3},
    {"compiler-time-limit", key_compiler_time_limit, "TIME", 0,
     "Stop a compiler of kernels that takes longer (default: 10m)", 3},
    {"no-cache", key_no_cache, NULL, 0, "Compile every kernel anew", 3},
    {"no-fusion", key_no_fusion, NULL, 0, "One kernel per operation", 3},
    {"no-layouts", key_no_layouts, NULL, 0, "Keep every tensor row-major", 3},
    {"no-winograd", key_no_winograd, NULL, 0, "Direct convolutions only", 3},
    {"jobs", key_jobs, "N", 0, "Compilers at once (default: as many as cores)", 3},
    {0},
};

void berth_cli_push(berth_cli_model *cli, berth_cli_strings *list, const char *item) {
    list->data = berth_arena_grow(cli->arena, list->data, list->count * sizeof(*list->data),
                                  (list->count + 2) * sizeof(*list->data));
    list->data[list->count++] = item;
}

void berth_cli_add_strategy(berth_cli_strategies *list, const char *name, const char *doc) {
    uint32_t at = 0;
    while (at < list->count && strcmp(list->items[at].name, name) != 0) ++at;
    if (at == BERTH_CLI_MOST_NAMES) return;
    if (at == list->count) list->items[list->count++].name = name;
    berth_cli_strategy *item = &list->items[at];
    if (item->doc_count < sizeof(item->docs) / sizeof(item->docs[0]))
        item->docs[item->doc_count++] = doc;
}

static json_t *strategy_json(const berth_cli_strategy *item) {
    json_t *docs = json_array();
    for (uint32_t d = 0; d < item->doc_count; ++d)
        json_array_append_new(docs, json_string(item->docs[d]));
    return json_pack("{s:s, s:o}", "name", item->name, "descriptions", docs);
}

static _Noreturn void list_strategies(const berth_cli_model *cli) {
    const char *name = NULL, *doc = NULL;
    berth_cli_strategies all = {.count = 0};
    for (uint32_t i = 0; berth_compiler_strategy_at(i, &name, &doc); ++i)
        berth_cli_add_strategy(&all, name, doc);
    json_t *list = berth_cli_wants_json(cli) ? json_array() : NULL;
    for (uint32_t i = 0; i < all.count; ++i) {
        const berth_cli_strategy *item = &all.items[i];
        if (list) json_array_append_new(list, strategy_json(item));
        for (uint32_t d = 0; !list && d < item->doc_count; ++d)
            berth_cli_print("%-12s %s\n", d ? "" : item->name, item->docs[d]);
    }
    if (list) berth_cli_print_json(list);
    exit(0);
}

static void take_strategy(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    const char *names[BERTH_CLI_MOST_NAMES] = {"list"}, *name = NULL, *doc = NULL;
    for (uint32_t i = 0; berth_compiler_strategy_at(i, &name, &doc); ++i)
        berth_cli_add_name(names, name);
    cli->lists_strategies = berth_cli_choose(state, "--strategy", arg, names) == 0;
    cli->strategy = arg;
}

// "NODE=N", "NODE=NxM"; what the node is, the compiler looks up.
static bool is_patch_choice(const char *arg) {
    const char *equals = strrchr(arg, '='), *end = NULL;
    char rows[16] = "";
    uint64_t counts[2] = {0, 1};
    if (!equals || equals == arg) return false;
    const char *columns = strchr(equals, 'x');
    end = columns ? columns : equals + strlen(equals);
    if ((size_t)(end - equals) > sizeof(rows)) return false;
    memcpy(rows, equals + 1, (size_t)(end - equals - 1));
    return berth_cli_parse_u64(rows, &counts[0]) &&
           (!columns || berth_cli_parse_u64(columns + 1, &counts[1])) && counts[0] < 1000000000 &&
           counts[1] < 1000000000 && counts[0] * counts[1] >= 2;
}

static void take_patches(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    static const char *const words[] = {"auto", "never", "least", "rolling"};
    bool known = is_patch_choice(arg);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
        known |= strcmp(arg, words[i]) == 0;
    if (!known)
        berth_cli_wrong_usage(
            state,
            "--patches takes auto, never, least, rolling, [AFTER..]NODE=N (N from 2) or "
            "[AFTER..]NODE=NxM, not \"%s\"",
            arg);
    cli->patches = arg;
}

// "NAME=LEAST..MOST"
static void take_bounds(berth_cli_model *cli, const char *arg, const char *dots,
                        struct argp_state *state) {
    const char *equals = strrchr(arg, '=');
    const char *text = berth_arena_strndup(cli->arena, equals + 1, (size_t)(dots - equals - 1));
    uint64_t least = 0, most = 0;
    if (!cli->takes_bounds)
        berth_cli_wrong_usage(
            state,
            "--dim %s: bounds are for run, build, plan, explain, verify, bench and "
            "opt; here --dim takes NAME=EXTENT",
            arg);
    if (!berth_cli_parse_u64(text, &least) || !berth_cli_parse_u64(dots + 2, &most) ||
        least > most || most > INT32_MAX)
        berth_cli_wrong_usage(state, "--dim %s: bounds are two numbers from 0 to %d, as in 1..512",
                              arg, INT32_MAX);
    berth_cli_push(cli, &cli->bounds, arg);
}

static bool names_something(const char *expression) {
    bool named = false;
    for (const char *at = expression; *at; ++at) named |= isalpha((unsigned char)*at) || *at == '_';
    return named;
}

// "NAME=EXTENT", "NAME=EXPRESSION"
static void take_dim(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    const char *equals = strrchr(arg, '=');
    uint64_t extent = 0;
    if (!equals || equals == arg)
        berth_cli_wrong_usage(state, "--dim takes NAME=EXTENT, not \"%s\"", arg);
    const char *dots = strstr(equals, "..");
    if (dots) {
        take_bounds(cli, arg, dots, state);
        return;
    }
    if (names_something(equals + 1)) {
        berth_cli_push(cli, &cli->relations, arg);
        return;
    }
    if (!berth_cli_parse_u64(equals + 1, &extent) || extent > INT32_MAX)
        berth_cli_wrong_usage(state, "--dim %s: the extent must be a number from 0 to %d", arg,
                              INT32_MAX);
    berth_cli_push(cli, &cli->dims, arg);
}

static error_t parse_file(int key, char *arg, struct argp_state *state) {
    berth_cli_model *cli = state->input;
    switch (key) {
    case key_dim: take_dim(cli, arg, state); return 0;
    case key_shape: berth_cli_take_shape(cli, arg, state); return 0;
    case key_limits:
        berth_cli_check_limits(state, arg);
        cli->limits = arg;
        return 0;
    case key_quiet: cli->quiet = true; return 0;
    case ARGP_KEY_ARG:
        if (cli->model) berth_cli_wrong_usage(state, "only one model");
        cli->model = arg;
        return 0;
    case ARGP_KEY_END:
        if (cli->lists_strategies) list_strategies(cli);
        if (!cli->model) berth_cli_wrong_usage(state, "which model?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

// At once, since what it adds may be named in other options. A failure ends the command later.
static void load_plugin(berth_cli_model *cli, const char *path) {
    const char *name = NULL, *version = NULL;
    if (cli->failure) return;
    cli->failure = berth_compiler_load_plugin(path, &name, &version);
    if (!cli->failure)
        berth_cli_push(cli, &cli->plugins,
                       berth_arena_printf(cli->arena, "plug-in %s %s of %s", name, version, path));
}

static error_t parse_driver(int key, char *arg, struct argp_state *state) {
    berth_cli_model *cli = state->input;
    switch (key) {
    case key_driver: berth_cli_push(cli, &cli->drivers, arg); return 0;
    case key_plugin: load_plugin(cli, arg); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp berth_cli_driver_argp = {.options = driver_options, .parser = parse_driver};

static error_t parse_format(int key, char *arg, struct argp_state *state) {
    berth_cli_model *cli = state->input;
    if (key != BERTH_CLI_KEY_FORMAT) return ARGP_ERR_UNKNOWN;
    berth_cli_take_format(cli, arg, state);
    return 0;
}

const struct argp berth_cli_format_argp = {.options = format_options, .parser = parse_format};

const struct argp berth_cli_file_argp = {.options = file_options, .parser = parse_file};

static error_t parse_model(int key, char *arg, struct argp_state *state) {
    berth_cli_model *cli = state->input;
    uint64_t number = 0;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = state->child_inputs[1] = cli; return 0;
    case key_target: cli->target = arg; return 0;
    case key_host: cli->host = arg; return 0;
    case key_executor:
        cli->executor = strcmp(arg, "auto") == 0 ? NULL : arg;
        if (cli->executor) berth_cli_choose_value(state, key, arg);
        return 0;
    case key_runtime:
        berth_cli_choose_value(state, key, arg);
        cli->runtime = arg;
        return 0;
    case key_memory:
        berth_cli_check_budgets(arg, state);
        cli->memory = arg;
        return 0;
    case key_pin: berth_cli_push(cli, &cli->pins, arg); return 0;
    case key_set: berth_cli_push(cli, &cli->overrides, arg); return 0;
    case key_input: berth_cli_take_input(cli, arg, state); return 0;
    case key_layout: berth_cli_take_layout(cli, key, arg, state); return 0;
    case key_mean: berth_cli_take_numbers(&cli->mean, "--mean", arg, state); return 0;
    case key_std: berth_cli_take_divisors(&cli->deviation, "--std", arg, state); return 0;
    case key_costs: cli->costs = arg; return 0;
    case key_tuned: cli->tuned = arg; return 0;
    case key_strategy: take_strategy(cli, arg, state); return 0;
    case key_objective:
        berth_cli_choose_value(state, key, arg);
        cli->objective = arg;
        return 0;
    case key_patches: take_patches(cli, arg, state); return 0;
    case key_parallel:
        berth_cli_choose_value(state, key, arg);
        cli->parallel = arg;
        return 0;
    case key_nodes:
        if (!berth_cli_parse_u64(arg, &cli->node_budget) || cli->node_budget == 0)
            berth_cli_wrong_usage(state, "--nodes takes a number from 1, not \"%s\"", arg);
        return 0;
    case key_time_budget:
        if (!berth_parse_time(arg, &cli->time_budget_ns))
            berth_cli_wrong_usage(
                state, "--time-budget takes a time such as 500ms, 10s or 2m, not \"%s\"", arg);
        return 0;
    case key_cache_dir: cli->cache_folder = arg; return 0;
    case key_cache_limit:
        if (!berth_parse_bytes(arg, &cli->cache_limit_bytes) || cli->cache_limit_bytes == 0)
            berth_cli_wrong_usage(
                state, "--cache-limit takes bytes such as 500M or 2GiB, not \"%s\"", arg);
        return 0;
    case key_compiler_time_limit:
        if (!berth_parse_time(arg, &cli->compiler_time_limit_ns))
            berth_cli_wrong_usage(
                state, "--compiler-time-limit takes a time such as 500ms, 10s or 2m, not \"%s\"",
                arg);
        return 0;
    case key_no_cache: cli->no_cache = true; return 0;
    case key_no_fusion: cli->no_fusion = true; return 0;
    case key_no_layouts: cli->no_layouts = true; return 0;
    case key_no_winograd: cli->no_winograd = true; return 0;
    case key_jobs:
        if (!berth_cli_parse_u64(arg, &number) || number == 0 || number > 1024)
            berth_cli_wrong_usage(state, "--jobs takes a number from 1 to 1024, not \"%s\"", arg);
        cli->jobs = (uint32_t)number;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    if (key == ARGP_KEY_INIT) state->child_inputs[2] = state->input;
    return parse_model(key, arg, state);
}

static const struct argp_child no_format_children[] = {
    {&berth_cli_file_argp, 0, NULL, 0}, {&berth_cli_driver_argp, 0, NULL, 0}, {0}};
static const struct argp_child children[] = {{&berth_cli_file_argp, 0, NULL, 0},
                                             {&berth_cli_driver_argp, 0, NULL, 0},
                                             {&berth_cli_format_argp, 0, NULL, 0},
                                             {0}};
const struct argp berth_cli_model_argp = {
    .options = options, .parser = parse, .children = children};
const struct argp berth_cli_model_argp_no_format = {
    .options = options, .parser = parse_model, .children = no_format_children};

bool berth_cli_names_file(const char *text) {
    const char *equals = strchr(text, '=');
    return equals && equals != text && equals[1];
}

// ---- running ------------------------------------------------------------------------------------

typedef struct job {
    const berth_cli_command *command;
    void *state;
    int argc;
    char **argv;
} job;

// Whose code runs is said.
static berth_status load_drivers(const berth_cli_model *cli) {
    for (uint32_t i = 0; i < cli->drivers.count; ++i) {
        const char *kind = NULL;
        BERTH_TRY(berth_driver_load(cli->drivers.data[i], &kind));
        if (!cli->quiet)
            berth_cli_message("note", berth_arena_printf(cli->arena, "%s devices: the driver of %s",
                                                         kind, cli->drivers.data[i]));
    }
    return BERTH_OK;
}

static void name_plugins(const berth_cli_model *cli) {
    for (uint32_t i = 0; i < cli->plugins.count && !cli->quiet; ++i)
        berth_cli_message("note", cli->plugins.data[i]);
}

static berth_status run_job(void *user) {
    job *j = user;
    if (berth_cli_describe(&j->command->argp, j->argc, j->argv)) return BERTH_OK;
    bool help = berth_cli_check_arguments(&j->command->argp, j->argc, j->argv);
    argp_err_exit_status = 2;
    argp_program_version = "berth " BERTH_VERSION;
    char name[64];
    snprintf(name, sizeof(name), "berth %s", j->argv[0]);
    j->argv[0] = name;  // shown by usage messages; argp_parse keeps no reference beyond this call
    if (help) berth_cli_give_help(&j->command->argp, j->argc, j->argv, j->state);
    berth_cli_model *cli = j->state;
    // Wrong usage ends the process there.
    if (argp_parse(&j->command->argp, j->argc, j->argv, 0, NULL, j->state) != 0)
        return berth_status_oom();
    BERTH_TRY(cli->failure);
    BERTH_TRY(load_drivers(j->state));
    name_plugins(j->state);
    return j->command->run(j->state);
}

int berth_cli_run(const berth_cli_command *command, void *state, int argc, char **argv) {
    berth_cli_model *cli = state;
    job j = {command, state, argc, argv};
    berth_status status = berth_arena_create(berth_allocator_system(), &cli->arena);
    if (!status) status = berth_arena_try(cli->arena, run_job, &j);
    if (status) {
        berth_cli_error(status);
        cli->exit_status = 1;
    }
    berth_status_free(status);
    if (command->end) command->end(state);
    berth_arena_destroy(cli->arena);
    return cli->exit_status;
}

bool berth_cli_parse_u64(const char *text, uint64_t *out_value) {
    if (*text < '0' || *text > '9') return false;
    char *end = NULL;
    errno = 0;
    *out_value = strtoull(text, &end, 10);
    return errno == 0 && *end == 0;
}

uint64_t berth_cli_number(struct argp_state *state, const char *option, const char *text,
                          uint64_t least, uint64_t most) {
    uint64_t value = 0;
    if (!berth_cli_parse_u64(text, &value) || value < least || value > most)
        berth_cli_wrong_usage(state, "%s takes a number from %llu to %llu, not \"%s\"", option,
                              (unsigned long long)least, (unsigned long long)most, text);
    return value;
}

void berth_cli_check_limits(struct argp_state *state, const char *text) {
    berth_limits limits;
    berth_status status = berth_limits_parse(text, &limits);
    if (status) berth_cli_wrong_usage(state, "--limits: %s", berth_status_message(status));
}

static const char *beside_kernels(berth_cli_model *cli, const char *name) {
    const char *folder = cli->cache_folder ? cli->cache_folder : berth_cli_cache_folder(cli->arena);
    return folder ? berth_arena_printf(cli->arena, "%s/%s", folder, name) : NULL;
}

// What an option says; by itself the default file, where it is there.
static const char *chosen_file(const char *given, const char *path) {
    if (given) return strcmp(given, "none") == 0 ? NULL : given;
    return path && berth_file_exists(path) ? path : NULL;
}

const char *berth_cli_default_costs(berth_cli_model *cli) {
    return beside_kernels(cli, "costs.jsonl");
}

const char *berth_cli_costs(berth_cli_model *cli) {
    return chosen_file(cli->costs, berth_cli_default_costs(cli));
}

const char *berth_cli_default_tuned(berth_cli_model *cli) {
    return beside_kernels(cli, "tuned.jsonl");
}

const char *berth_cli_tuned(berth_cli_model *cli) {
    return chosen_file(cli->tuned, berth_cli_default_tuned(cli));
}

const char *berth_cli_driver_cache(const berth_cli_model *cli) {
    if (cli->no_cache) return NULL;
    return cli->cache_folder ? cli->cache_folder : berth_cli_cache_folder(cli->arena);
}

const char *berth_cli_cache_folder(berth_arena *arena) {
    const char *own = getenv("BERTH_CACHE_DIR");
    if (own && *own) return own;
    const char *xdg = getenv("XDG_CACHE_HOME");
    if (xdg && *xdg == '/') return berth_arena_printf(arena, "%s/berth", xdg);
    const char *home = getenv("HOME");
    return home && *home ? berth_arena_printf(arena, "%s/.cache/berth", home) : NULL;
}

bool berth_cli_wants_json(const berth_cli_model *cli) {
    return cli->format && strcmp(cli->format, "json") == 0;
}

bool berth_cli_shows_progress(const berth_cli_model *cli) {
    return !cli->quiet && isatty(STDERR_FILENO);
}

void berth_cli_show_progress(void *user, const char *what, uint32_t done, uint32_t total) {
    (void)user;
    if (total == 0) return;
    fprintf(stderr, "\rberth: %s: %u of %u%s", what, done, total, done == total ? "\n" : "");
    fflush(stderr);
}

// What is decided when a program is built cannot be changed when it runs. A target is compared as a
// whole, pins and all.
void berth_cli_refuse_with_program(const berth_cli_model *cli) {
    if (!berth_program_file_is(cli->model)) return;
    const struct {
        bool given;
        const char *option;
    } all[] = {
        {cli->dims.count > 0 || cli->bounds.count > 0 || cli->relations.count > 0, "--dim"},
        {cli->shapes.count > 0, "--shape"},
        {cli->batch > 0, "--batch"},
        {cli->strategy, "--strategy"},
        {cli->costs, "--costs"},
        {cli->tuned, "--tuned"},
        {cli->objective, "--objective"},
        {cli->patches, "--patches"},
        {cli->parallel, "--parallel"},
        {cli->node_budget > 0, "--nodes"},
        {cli->time_budget_ns > 0, "--time-budget"},
        {cli->no_fusion, "--no-fusion"},
        {cli->no_layouts, "--no-layouts"},
        {cli->no_winograd, "--no-winograd"},
        {cli->jobs > 0, "--jobs"},
        {cli->cache_folder, "--cache-dir"},
        {cli->cache_limit_bytes > 0, "--cache-limit"},
        {cli->no_cache, "--no-cache"},
        {cli->compiler_time_limit_ns > 0, "--compiler-time-limit"},
        {cli->memory && !cli->target, "--memory"},
        {cli->pins.count > 0 && !cli->target, "--pin"},
        {cli->overrides.count > 0 && !cli->target, "--set"},
        {cli->host && !cli->target, "--host"},
        {cli->executor && !cli->target, "--executor"},
        {cli->runtime && !cli->target, "--runtime"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        if (!all[i].given) continue;
        berth_cli_message(
            "error", berth_arena_printf(cli->arena,
                                        "\"%s\" is a built program: %s has no effect on it any "
                                        "more; build it again with that option",
                                        cli->model, all[i].option));
        exit(2);
    }
}
