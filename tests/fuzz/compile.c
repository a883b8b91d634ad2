// libFuzzer entry of the compiler: any bytes as an ONNX model that is imported, planned for two
// devices and taken through every pass; kernels are printed, not compiled. A bug's own code
// (INTERNAL) and a module that does not verify after a pass are findings.
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "compiler/compile.h"
#include "compiler/onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static berth_status compile(berth_arena *arena, const uint8_t *data, size_t size) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    BERTH_TRY(berth_target_parse(arena, "cpu,opencl", NULL, &target));
    BERTH_TRY(berth_onnx_import_memory(arena, data, size, "fuzz.onnx", NULL, NULL, &module));
    const berth_compile_options options = {
        .target = target, .jobs = 1, .node_budget = 100, .plan_only = true, .verify = true};
    return berth_compile(module, &options, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status) status = compile(arena, data, size);
    if (berth_status_code(status) == BERTH_INTERNAL) {
        fprintf(stderr, "%s\n", berth_status_message(status));
        abort();
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
    return 0;
}
