#include "devices/host_code.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "target/target.h"

// ---- imports ------------------------------------------------------------------------------------

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
static berth_status open_code(const berth_host_code *code, const char *note) {
    void *symbol = berth_dynlib_symbol(code->library, BERTH_OPEN_SYMBOL);
    berth_open_function open = NULL;
    if (!symbol) return BERTH_OK;
    memcpy(&open, &symbol, sizeof(symbol));  // POSIX: the same representation
    const char *why = open();
    if (!why) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "%s%s%s", why, *note ? "; " : "", note);
}

berth_status berth_devices__import(berth_host_code *code, berth_allocator allocator) {
    berth_kernel_import *imports = berth_dynlib_symbol(code->library, BERTH_IMPORTS_SYMBOL);
    const char *note = berth_dynlib_symbol(code->library, BERTH_IMPORTS_NOTE_SYMBOL);
    uint32_t count = 0;
    while (imports && imports[count].library) count++;
    if (count == 0) return BERTH_OK;
    code->imported = berth_calloc(allocator, count, sizeof(*code->imported));
    if (!code->imported) return berth_status_oom();
    code->imported_count = count;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count && !status; ++i)
        status = import_one(&imports[i], note ? note : "", &code->imported[i]);
    if (!status) status = open_code(code, note ? note : "");
    if (status) berth_devices__import_end(code, allocator);
    return status;
}

// Vendors' libraries have threads and exit handlers of their own: they stay loaded.
void berth_devices__import_end(berth_host_code *code, berth_allocator allocator) {
    for (uint32_t i = 0; i < code->imported_count; ++i) berth_dynlib_abandon(code->imported[i]);
    berth_free(allocator, code->imported, code->imported_count * sizeof(*code->imported));
    code->imported = NULL;
    code->imported_count = 0;
}

// ---- kernels ------------------------------------------------------------------------------------

static berth_status check_declaration(const berth_host_code *code, berth_allocator allocator,
                                      const berth_program_kernel *kernel) {
    char name[256];
    int length = snprintf(name, sizeof(name), BERTH_DECLARATION_PREFIX "%s", kernel->entry);
    if (length < 0 || (size_t)length >= sizeof(name)) return BERTH_OK;  // no name of the compiler's
    const char *text = berth_dynlib_symbol(code->library, name);
    return berth_devices__check_declaration(allocator, kernel, text, text ? strlen(text) : 0);
}

berth_status berth_devices__find_function(const berth_host_code *code, const char *device_kind,
                                          berth_allocator allocator,
                                          const berth_program_kernel *kernel,
                                          berth_cpu_kernel *out_function) {
    void *symbol = berth_dynlib_symbol(code->library, kernel->entry);
    if (!symbol)
        return berth_status_make(BERTH_NOT_FOUND, "the %s executable has no kernel \"%s\"",
                                 device_kind, kernel->entry);
    memcpy(out_function, &symbol, sizeof(symbol));  // POSIX: the same representation
    return check_declaration(code, allocator, kernel);
}

// ---- instructions -------------------------------------------------------------------------------

static bool has_feature(const berth_machine_facts *facts, const char *name, size_t length) {
    for (uint32_t i = 0; i < facts->features.count; ++i)
        if (strlen(facts->features.data[i]) == length &&
            memcmp(facts->features.data[i], name, length) == 0)
            return true;
    return false;
}

// `needs`: an architecture, then features, separated by spaces.
static berth_status check(berth_arena *arena, const char *needs) {
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_host(arena, &facts));
    size_t arch_length = strcspn(needs, " ");
    if (strlen(facts.arch) != arch_length || memcmp(facts.arch, needs, arch_length) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "the kernels were compiled for %.*s processors, this is %s: build "
                                 "the program again for this machine",
                                 (int)arch_length, needs, facts.arch);
    char missing[256] = "";
    size_t used = 0;
    for (const char *at = needs + arch_length; *at;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " ");
        if (length && !has_feature(&facts, at, length) && used < sizeof(missing))
            used += (size_t)snprintf(missing + used, sizeof(missing) - used, "%s%.*s",
                                     used ? ", " : "", (int)length, at);
        at += length;
    }
    if (!used) return BERTH_OK;
    return berth_status_make(
        BERTH_INCOMPATIBLE,
        "the kernels need a processor with %s, which this one (%s) lacks, or the system does not "
        "give to this process: build the program again here",
        missing, facts.cpu_model);
}

berth_status berth_devices__check_needs(berth_allocator allocator, const char *needs) {
    berth_arena *arena = NULL;
    if (!needs || !*needs) return BERTH_OK;
    BERTH_TRY(berth_arena_create(allocator, &arena));
    berth_status status = check(arena, needs);
    berth_arena_destroy(arena);
    return status;
}
