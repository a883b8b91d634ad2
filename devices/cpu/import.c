// Shared libraries that kernels call (artifact/kernel_abi.h, imports): loaded with the kernels.
#include <string.h>

#include "devices/cpu/cpu.h"

static berth_status import_one(berth_kernel_import *import, const char *note,
                               berth_dynlib **out_library) {
    const char *const names[] = {import->library, NULL};
    berth_status status = berth_dynlib_open(names, out_library);
    if (status) {
        berth_status result = berth_status_make(
            BERTH_UNAVAILABLE, "the code needs \"%s\" of the shared library \"%s\": %s%s%s",
            import->symbol, import->library, berth_status_message(status), *note ? "; " : "", note);
        berth_status_free(status);
        return result;
    }
    import->address = berth_dynlib_symbol(*out_library, import->symbol);
    if (import->address) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND, "the shared library \"%s\" has no symbol \"%s\"%s%s",
                             import->library, import->symbol, *note ? "; " : "", note);
}

// What the code makes of the libraries once, for all runs.
static berth_status open_code(const cpu_executable *executable, const char *note) {
    void *symbol = berth_dynlib_symbol(executable->library, BERTH_OPEN_SYMBOL);
    berth_open_function open = NULL;
    if (!symbol) return BERTH_OK;
    memcpy(&open, &symbol, sizeof(symbol));  // POSIX: the same representation
    const char *why = open();
    if (!why) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "%s%s%s", why, *note ? "; " : "", note);
}

berth_status berth_cpu__import(cpu_executable *executable, berth_allocator allocator) {
    berth_kernel_import *imports = berth_dynlib_symbol(executable->library, BERTH_IMPORTS_SYMBOL);
    const char *note = berth_dynlib_symbol(executable->library, BERTH_IMPORTS_NOTE_SYMBOL);
    uint32_t count = 0;
    while (imports && imports[count].library) count++;
    if (count == 0) return BERTH_OK;
    executable->imported = berth_calloc(allocator, count, sizeof(*executable->imported));
    if (!executable->imported) return berth_status_oom();
    executable->imported_count = count;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count && !status; ++i)
        status = import_one(&imports[i], note ? note : "", &executable->imported[i]);
    if (!status) status = open_code(executable, note ? note : "");
    if (status) berth_cpu__import_end(executable, allocator);
    return status;
}

// Vendors' libraries have threads and exit handlers of their own: they stay loaded.
void berth_cpu__import_end(cpu_executable *executable, berth_allocator allocator) {
    for (uint32_t i = 0; i < executable->imported_count; ++i)
        berth_dynlib_abandon(executable->imported[i]);
    berth_free(allocator, executable->imported,
               executable->imported_count * sizeof(*executable->imported));
    executable->imported = NULL;
    executable->imported_count = 0;
}
