// berth cache: the folder of compiled kernels.
#include <stdio.h>
#include <string.h>

#include "compiler/toolchain.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct cache_command {
    berth_cli_model cli;
    const char *action;
} cache_command;

static const struct argp_option options[] = {
    {"cache-dir", 'd', "DIR", 0, "The folder (default: $BERTH_CACHE_DIR or ~/.cache/berth)", 0},
    {"format", 'f', "FORMAT", 0, "Output: text or json", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    cache_command *command = state->input;
    switch (key) {
    case 'd': command->cli.cache_folder = arg; return 0;
    case 'f': command->cli.format = arg; return 0;
    case ARGP_KEY_ARG:
        if (command->action) berth_cli_wrong_usage(state, "only one action");
        if (strcmp(arg, "list") != 0 && strcmp(arg, "clear") != 0)
            berth_cli_wrong_usage(state, "the actions are list and clear, not \"%s\"", arg);
        command->action = arg;
        return 0;
    case ARGP_KEY_END:
        if (!command->action) berth_cli_wrong_usage(state, "list or clear?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static berth_status run(void *state) {
    cache_command *command = state;
    bool json = berth_cli_wants_json(&command->cli);
    const char *folder = command->cli.cache_folder ? command->cli.cache_folder
                                                   : berth_cli_cache_folder(command->cli.arena);
    berth_cache_stats stats = {0};
    bool clear = strcmp(command->action, "clear") == 0;
    if (!folder)
        return berth_status_make(BERTH_NOT_FOUND,
                                 "no cache folder: HOME is not set; give --cache-dir");
    BERTH_TRY(clear ? berth_toolchain_cache_clear(folder, &stats)
                    : berth_toolchain_cache_stats(folder, &stats));
    char bytes[32];
    berth_format_bytes(stats.size_bytes, bytes);
    if (json)
        berth_cli_print_json(
            json_pack("{s:o, s:i, s:I, s:I, s:b}", "folder", berth_cli_json_text(folder), "entries",
                      (int)stats.entry_count, "size_bytes", (json_int_t)stats.size_bytes,
                      "limit_bytes", (json_int_t)BERTH_CACHE_LIMIT_BYTES, "cleared", clear));
    else
        berth_cli_print("%s: %u kernels, %s%s\n", folder, stats.entry_count, bytes,
                        clear ? ", removed" : " of at most 1 GiB");
    return BERTH_OK;
}

int berth_cmd_cache(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp =
            {options, parse, "list|clear",
             "Shows or clears the cache of compiled kernels. The least recently used kernels go "
             "by themselves when it exceeds 1 GiB.",
             NULL, NULL, NULL},
        .run = run};
    cache_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
