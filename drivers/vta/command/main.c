// berth vta: what streams of the NPU do, say and cost, without a board.
#include <stdlib.h>
#include <string.h>

#include "artifact/file.h"
#include "base/file.h"
#include "drivers/vta/command/command.h"

enum { key_timing = 0x400, key_order, key_limit };

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "Output: text or json", 0},
    {"output", 'o', "FILE", 0, "profile: a picture of the three units over time (SVG); - is stdout",
     0},
    {"timing", key_timing, "NAME=CYCLES", 0,
     "profile: a figure of the timing model, such as dram_bytes_per_cycle=16; may be repeated "
     "(\"list\" shows them)",
     0},
    {"order", key_order, "ORDER", 0,
     "replay: in this order only, of those that queues and tokens allow: program, load-first, "
     "compute-first, store-first, random or time (default: all of them)",
     0},
    {"limit", key_limit, "N", 0, "Micro-ops that a program may execute (default: 1000000000)", 0},
    {0},
};

static void take_argument(vta_command *command, const char *arg, struct argp_state *state) {
    static const char *const actions[] = {"replay", "disasm", "profile", NULL};
    if (command->action)
        berth_cli_push(&command->cli, &command->files, arg);
    else
        command->action = actions[berth_cli_choose(state, "the action", arg, actions)];
}

static void list_timing(const berth_vta_timing *timing) {
#define TIMING(name, value, meaning)                                                               \
    berth_cli_print("%-24s %6u  %s\n", #name, timing->name, meaning);
#include "drivers/vta/timing.def"
    exit(0);
}

static void take_timing(vta_command *command, const char *arg, struct argp_state *state) {
    if (strcmp(arg, "list") == 0) list_timing(&command->timing);
    const char *equals = strchr(arg, '=');
    uint64_t value = 0;
    if (!equals || !berth_cli_parse_u64(equals + 1, &value))
        berth_cli_wrong_usage(state, "--timing takes NAME=CYCLES, not \"%s\"", arg);
    else {
        const char *name = berth_arena_strndup(command->cli.arena, arg, (size_t)(equals - arg));
        berth_status status = berth_vta_timing_set(
            &command->timing, name, value > UINT32_MAX ? UINT32_MAX : (uint32_t)value);
        if (status) berth_cli_wrong_usage(state, "--timing: %s", berth_status_message(status));
        berth_status_free(status);
    }
}

static void take_order(vta_command *command, const char *arg, struct argp_state *state) {
    const char *names[BERTH_VTA_ORDER_COUNT + 1] = {NULL};
    for (int i = 0; i < BERTH_VTA_ORDER_COUNT; ++i)
        names[i] = berth_vta_order_name((berth_vta_order)i);
    command->order = berth_cli_choose(state, "--order", arg, names);
}

// What is missing, contradicts, or means nothing for the action.
static void check_arguments(const vta_command *command, struct argp_state *state) {
    if (!command->action) berth_cli_wrong_usage(state, "replay, disasm or profile?");
    if (command->files.count == 0) berth_cli_wrong_usage(state, "%s which file?", command->action);
    bool profile = strcmp(command->action, "profile") == 0;
    if (command->output && !profile)
        berth_cli_wrong_usage(state, "--output goes with profile, not %s", command->action);
    if (command->output && command->files.count > 1)
        berth_cli_wrong_usage(state, "--output takes the picture of one file");
    if (command->output && strcmp(command->output, "-") == 0 && command->cli.format)
        berth_cli_wrong_usage(state, "--output - writes the picture alone: no --format");
    if (command->order >= 0 && strcmp(command->action, "replay") != 0)
        berth_cli_wrong_usage(state, "--order goes with replay, not %s", command->action);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
    vta_command *command = state->input;
    switch (key) {
    case 'f': command->cli.format = arg; return 0;
    case 'o': command->output = arg; return 0;
    case key_timing: take_timing(command, arg, state); return 0;
    case key_order: take_order(command, arg, state); return 0;
    case key_limit:
        if (!berth_cli_parse_u64(arg, &command->most_micro_ops) || command->most_micro_ops == 0)
            berth_cli_wrong_usage(state, "--limit takes a number from 1, not \"%s\"", arg);
        return 0;
    case ARGP_KEY_ARG: take_argument(command, arg, state); return 0;
    case ARGP_KEY_END: check_arguments(command, state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

berth_status vta_read_file(vta_command *command, const char *path, vta_file *out_file) {
    berth_arena *arena = command->cli.arena;
    char *data = NULL;
    size_t size_bytes = 0;
    memset(out_file, 0, sizeof(*out_file));
    if (berth_program_is_file(path))
        return berth_status_prefix(vta_read_program(command, path, out_file), "%s", path);
    BERTH_TRY(berth_file_read(arena, path, (size_t)1 << 28, &data, &size_bytes));
    out_file->is_image = size_bytes >= 4 && memcmp(data, "BVTA", 4) == 0;
    if (!out_file->is_image) {
        BERTH_TRY(berth_vta_trace_parse(arena, path, data, size_bytes, &out_file->trace));
        out_file->config = out_file->trace.config;
        return BERTH_OK;
    }
    return berth_status_prefix(vta_read_image(command, data, size_bytes, out_file), "%s", path);
}

static berth_status run(void *state) {
    vta_command *command = state;
    command->json = berth_cli_wants_json(&command->cli);
    if (strcmp(command->action, "replay") == 0) return vta_replay(command);
    if (strcmp(command->action, "disasm") == 0) return vta_disasm(command);
    return vta_profile(command);
}

int main(int argc, char **argv) {
    static const berth_cli_command description = {
        .argp = {options, parse, "replay FILE...\ndisasm FILE...\nprofile FILE...",
                 "Recorded programs of a VTA (*.vtag), and executables for it, also those of a "
                 "program that "
                 "`berth build` wrote.\n\n"
                 "replay runs recorded programs on the model, in several orders, and says of each "
                 "whether all "
                 "that was recorded is reproduced: exit status 0 only then. disasm prints "
                 "instructions as text. profile says what load, compute and store do over time, by "
                 "the timing model, and of a program how many cycles each step takes.",
                 NULL, NULL, NULL},
        .run = run};
    static char name[] = "vta";
    if (argc < 1 || !berth_cli_begin()) return 1;
    argv[0] = name;
    vta_command command = {
        .timing = berth_vta_timing_default(), .order = -1, .most_micro_ops = 1000000000};
    return berth_cli_run(&description, &command, argc, argv);
}
