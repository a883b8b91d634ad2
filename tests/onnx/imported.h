// What the importer makes of a model that a test writes (tests/onnx/model_writer.h).
#ifndef BERTH_TESTS_ONNX_IMPORTED_H_
#define BERTH_TESTS_ONNX_IMPORTED_H_

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "compiler/onnx/import.h"
#include "tests/onnx/model_writer.h"

#define SYMBOL(k) (INT64_MIN + (k))  // "Nk" (model_writer.h)

typedef struct imported {
    berth_arena *arena;
    berth_module *module;
    const berth_graph *graph;
    berth_status status;
} imported;

static inline imported import_with(const pb *model, const berth_import_options *options) {
    imported result = {.arena = NULL};
    cr_assert(!berth_arena_create(berth_allocator_system(), &result.arena));
    result.status = berth_onnx_import_memory(result.arena, model->data, model->size, "m.onnx", NULL,
                                             options, &result.module);
    if (!result.status)
        result.graph =
            berth_graph_get(result.module, berth_module_find_function(result.module, "main"));
    return result;
}

static inline void finish(imported *result) {
    berth_status_free(result->status);
    berth_arena_destroy(result->arena);
}

static inline const berth_type *output_type(const imported *i, uint32_t index) {
    return berth_type_get(
        i->module, i->graph->values.data[i->graph->regions.data[0].results.data[index]].type);
}

static inline uint32_t count_kind(const imported *i, berth_op_kind kind) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < i->graph->regions.data[0].ops.count; ++k)
        count += i->graph->ops.data[i->graph->regions.data[0].ops.data[k]].kind == kind;
    return count;
}

static const int64_t four[1] = {4};

#endif  // BERTH_TESTS_ONNX_IMPORTED_H_
