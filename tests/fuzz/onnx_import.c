// libFuzzer entry of the ONNX importer, with type inference, folding of small constants and the
// verifier after it.
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/fold.h"
#include "ir/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static berth_status after_import(void *user) {
    berth_module *module = user;
    berth_fold_options options = {.max_result_bytes = 1 << 16};
    BERTH_TRY(berth_module_verify(module));
    BERTH_TRY(berth_pass_fold(module, berth_module_find_function(module, "main"), &options));
    berth_status status = berth_module_verify(module);
    if (status) __builtin_trap();  // the importer or the folder made a broken module
    return BERTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status)
        status = berth_onnx_import_memory(arena, data, size, "fuzz.onnx", NULL, NULL, &module);
    if (!status) status = berth_arena_try(arena, after_import, module);
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
