#include "toolkit/external_files.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ir/external.h"

#define MAX_CODE_BYTES ((size_t)256 << 20)

static const char *folder_of(berth_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ".";
    return slash == path ? "/" : berth_arena_strndup(arena, path, (size_t)(slash - path));
}

// A library is loaded by name where the program runs; one beside the module, by its place.
static berth_status find_library(berth_module *module, berth_external *external,
                                 const char *folder) {
    const char *name = berth_module_str(module, external->file), *path = NULL;
    if (!strchr(name, '/') || name[0] == '/') return BERTH_OK;
    if (name[0] == '.' && name[1] == '/') name += 2;
    BERTH_TRY(berth_file_below(module->arena, folder, name, "library", &path));
    char whole[PATH_MAX];
    if (!realpath(path, whole))
        return berth_status_make(BERTH_NOT_FOUND, "library \"%s\" is not there", name);
    external->file = berth_module_intern(module, whole);
    return BERTH_OK;
}

static berth_status read_code(berth_module *module, berth_external *external, const char *folder) {
    const char *path = NULL;
    char *data = NULL;
    size_t size_bytes = 0;
    BERTH_TRY(berth_file_below(module->arena, folder, berth_module_str(module, external->file),
                               "file", &path));
    BERTH_TRY(berth_file_read(module->arena, path, MAX_CODE_BYTES, &data, &size_bytes));
    external->file = 0;
    external->code = (const uint8_t *)data;
    external->code_size_bytes = size_bytes;
    external->is_text = !memchr(data, 0, size_bytes);
    return BERTH_OK;
}

berth_status berth_external_files_read(berth_module *module, const char *path) {
    const char *folder = folder_of(module->arena, path);
    for (berth_func_id i = 0; i < module->functions.count; ++i) {
        berth_external *external = berth_external_get(module, i);
        if (!external || !external->file) continue;
        bool library = strcmp(berth_module_str(module, external->language), "library") == 0;
        berth_status status =
            library ? find_library(module, external, folder) : read_code(module, external, folder);
        BERTH_TRY(
            berth_status_prefix(status, "external function @%s",
                                berth_module_str(module, berth_module_function(module, i)->name)));
    }
    return BERTH_OK;
}
