// berth cache: the folder of compiled kernels.
#include <berth/kernel_cache.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "tools/cli.h"
#include "tools/commands.h"

typedef struct cache_command {
    berth_cli_model cli;
    const char *action;
    berth_kernel_cache *cache;  // of list
} cache_command;

static const struct argp_option options[] = {
    {"cache-dir", 'd', "DIR", 0, "The folder (default: $BERTH_CACHE_DIR or ~/.cache/berth)", 0},
    {"format", BERTH_CLI_KEY_FORMAT, "text|json", 0, "Output (default: text)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    cache_command *command = state->input;
    switch (key) {
    case 'd': command->cli.cache_folder = arg; return 0;
    case BERTH_CLI_KEY_FORMAT: berth_cli_take_format(&command->cli, arg, state); return 0;
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

// "12 s", "3 min", "5 h", "17 days".
static const char *age_text(berth_arena *arena, int64_t seconds) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    if (seconds < 0) seconds = 0;
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(units[0]) && seconds < 2 * units[i].seconds) ++i;
    return berth_arena_printf(arena, "%lld %s", (long long)(seconds / units[i].seconds),
                              units[i].unit);
}

static void print_entries(berth_arena *arena, const berth_kernel_cache *cache) {
    int64_t now_s = (int64_t)time(NULL);
    for (uint32_t i = 0; i < berth_kernel_cache_count(cache); ++i) {
        const berth_kernel_cache_entry *e = berth_kernel_cache_at(cache, i);
        char bytes[32];
        berth_format_bytes(e->size_bytes, bytes);
        berth_cli_print("%-35s %10s  used %s ago, %s%s%s%s%s\n", e->name, bytes,
                        age_text(arena, now_s - e->used_s), e->what, *e->machine ? ", " : "",
                        e->machine, e->fault ? "; will be removed: " : "",
                        e->fault ? e->fault : "");
    }
}

static json_t *entries_json(const berth_kernel_cache *cache) {
    int64_t now_s = (int64_t)time(NULL);
    json_t *list = json_array();
    for (uint32_t i = 0; cache && i < berth_kernel_cache_count(cache); ++i) {
        const berth_kernel_cache_entry *e = berth_kernel_cache_at(cache, i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "name", e->name,
                                              "what", e->what, "machine", e->machine, "size_bytes",
                                              (json_int_t)e->size_bytes, "age_s",
                                              (json_int_t)(now_s - e->used_s), "fault",
                                              berth_cli_json_text(e->fault)));
    }
    return list;
}

typedef struct totals {
    uint32_t count;
    uint64_t size_bytes;
} totals;

static void print_totals(const cache_command *command, const char *folder, totals all, bool json) {
    bool clear = strcmp(command->action, "clear") == 0;
    char bytes[32], limit[32];
    berth_format_bytes(all.size_bytes, bytes);
    berth_format_bytes(berth_kernel_cache_default_limit_bytes(), limit);
    if (json)
        berth_cli_print_json(json_pack("{s:o, s:i, s:I, s:I, s:b, s:o}", "folder",
                                       berth_cli_json_text(folder), "count", (int)all.count,
                                       "size_bytes", (json_int_t)all.size_bytes, "limit_bytes",
                                       (json_int_t)berth_kernel_cache_default_limit_bytes(),
                                       "cleared", clear, "entries", entries_json(command->cache)));
    else
        berth_cli_print("%s: %u entries, %s%s%s\n", folder, all.count, bytes,
                        clear ? ", removed" : " of at most ", clear ? "" : limit);
}

static berth_status run(void *state) {
    cache_command *command = state;
    berth_arena *arena = command->cli.arena;
    bool json = berth_cli_wants_json(&command->cli);
    const char *folder =
        command->cli.cache_folder ? command->cli.cache_folder : berth_cli_cache_folder(arena);
    if (!folder)
        return berth_status_make(BERTH_NOT_FOUND,
                                 "no cache folder: HOME is not set; give --cache-dir");
    totals all = {0, 0};
    if (strcmp(command->action, "clear") == 0) {
        BERTH_TRY(berth_kernel_cache_clear(folder, &all.count, &all.size_bytes));
    } else {
        BERTH_TRY(berth_kernel_cache_read(folder, &command->cache));
        all.count = berth_kernel_cache_count(command->cache);
        for (uint32_t i = 0; i < all.count; ++i)
            all.size_bytes += berth_kernel_cache_at(command->cache, i)->size_bytes;
        if (!json) print_entries(arena, command->cache);
    }
    print_totals(command, folder, all, json);
    return BERTH_OK;
}

static void end(void *state) {
    berth_kernel_cache_free(((cache_command *)state)->cache);
}

int berth_cmd_cache(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp =
            {options, parse, "list|clear",
             "Shows or clears the cache of compiled kernels. The least recently used kernels go "
             "by themselves when it exceeds 1 GiB.",
             NULL, NULL, NULL},
        .run = run,
        .end = end};
    cache_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
