// Shared libraries that kernels call (artifact/kernel_abi.h, imports): loaded with the kernels.
#include "devices/cpu/cpu.h"

static berth_status import_one(berth_kernel_import *import, berth_dynlib **out_library) {
    const char *const names[] = {import->library, NULL};
    berth_status status = berth_dynlib_open(names, out_library);
    if (status) {
        berth_status result = berth_status_make(
            BERTH_UNAVAILABLE, "the code needs \"%s\" of the shared library \"%s\": %s",
            import->symbol, import->library, berth_status_message(status));
        berth_status_free(status);
        return result;
    }
    import->address = berth_dynlib_symbol(*out_library, import->symbol);
    if (import->address) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND, "the shared library \"%s\" has no symbol \"%s\"",
                             import->library, import->symbol);
}

berth_status berth_cpu__import(cpu_executable *executable, berth_allocator allocator) {
    berth_kernel_import *imports = berth_dynlib_symbol(executable->library, BERTH_IMPORTS_SYMBOL);
    uint32_t count = 0;
    while (imports && imports[count].library) count++;
    if (count == 0) return BERTH_OK;
    executable->imported = berth_calloc(allocator, count, sizeof(*executable->imported));
    if (!executable->imported) return berth_status_oom();
    executable->imported_count = count;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count && !status; ++i)
        status = import_one(&imports[i], &executable->imported[i]);
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
