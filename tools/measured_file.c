#include "tools/measured_file.h"

#include <string.h>

#include "base/file.h"

bool berth_cli_measured_take(berth_cli_measured *measured, struct argp_state *state, int key,
                             char *arg, const char *kind) {
    switch (key) {
    case BERTH_CLI_KEY_OUTPUT: measured->output = arg; return true;
    case BERTH_CLI_KEY_MERGE: measured->merge = true; return true;
    case ARGP_KEY_ARG:
        berth_cli_push(measured->cli, &measured->files, arg);
        measured->cli->model = arg;  // which the options of a model are for
        return true;
    case ARGP_KEY_NO_ARGS:
        if (measured->merge) berth_cli_wrong_usage(state, "--merge takes %s", kind);
        return true;
    case ARGP_KEY_END:
        if (measured->merge && !measured->output)
            berth_cli_wrong_usage(state, "--merge needs -o FILE");
        return true;
    default: return false;
    }
}

static berth_status read_all(const berth_cli_measured *measured, const berth_cli_records *records) {
    for (uint32_t i = 0; i < measured->files.count; ++i)
        BERTH_TRY(records->read(records->user, measured->files.data[i]));
    return BERTH_OK;
}

static berth_status make_folder(berth_arena *arena, const char *path) {
    size_t length = (size_t)(strrchr(path, '/') - path);
    return berth_file_make_folders(berth_arena_strndup(arena, path, length));
}

berth_status berth_cli_measured_write(const berth_cli_measured *measured,
                                      const berth_cli_records *records,
                                      berth_cli_measured_result *out) {
    const char *path = measured->output ? measured->output : records->default_path;
    void *user = records->user;
    if (!path)
        return berth_status_make(BERTH_NOT_FOUND, "no cache folder: HOME is not set; give -o FILE");
    BERTH_TRY(measured->merge ? read_all(measured, records) : records->measure(user));
    *out = (berth_cli_measured_result){.path = path, .measured = records->count(user)};
    if (!measured->merge && berth_file_exists(path)) BERTH_TRY(records->keep(user, path));
    if (!measured->output) BERTH_TRY(make_folder(measured->cli->arena, path));
    BERTH_TRY(records->save(user, path));
    out->count = records->count(user);
    return BERTH_OK;
}

void berth_cli_print_measured(const berth_cli_measured_result *result, const char *name,
                              uint32_t number) {
    berth_cli_print_json(json_pack("{s:o, s:i, s:i}", "file", berth_cli_json_text(result->path),
                                   "records", (int)result->count, name, (int)number));
}
