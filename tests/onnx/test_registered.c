// Operators of other domains that a plug-in registered.
#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "compiler/onnx/import.h"
#include "ir/extend.h"
#include "tests/onnx/model_writer.h"

static berth_status infer_same(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

static const berth_op_definition scale = {.facts = {.name = "test.scale",
                                                    .onnx = "Scale",
                                                    .min_inputs = 1,
                                                    .max_inputs = 1,
                                                    .min_outputs = 1,
                                                    .max_outputs = 1,
                                                    .traits = BERTH_TRAIT_ELEMENTWISE},
                                          .onnx_domain = "com.test",
                                          .onnx_attrs = "factor:i",
                                          .infer = infer_same};

static pb model_with(const char *domain, const char *attribute) {
    static const int64_t four[1] = {4};
    pb graph = {.size = 0}, node = {.size = 0};
    pb attr = attr_int(attribute, 3);
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 1, four);
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "y");
    pb_text(&node, 3, "scaled");
    pb_text(&node, 4, "Scale");
    pb_message(&node, 5, &attr);
    pb_text(&node, 7, domain);
    pb_message(&graph, 1, &node);
    return model_of(&graph, 13);
}

static berth_status import(berth_arena *arena, const pb *model, berth_module **out_module) {
    return berth_onnx_import_memory(arena, model->data, model->size, "m.onnx", NULL, NULL,
                                    out_module);
}

static void expect_refused(berth_arena *arena, pb model, berth_code code, const char *part) {
    berth_module *module = NULL;
    berth_status status = import(arena, &model, &module);
    cr_expect_eq(berth_status_code(status), code, "%s", berth_status_message(status));
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(registered, operators_are_imported) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_op_kind kind;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    expect_refused(arena, model_with("com.test", "factor"), BERTH_UNSUPPORTED,
                   "not ONNX's own operator set");
    cr_assert_null(berth_op_register(&scale, &kind));
    pb model = model_with("com.test", "factor");
    berth_status status = import(arena, &model, &module);
    cr_assert_null(status, "%s", berth_status_message(status));
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    const berth_op *op = &graph->ops.data[graph->regions.data[0].ops.data[0]];
    cr_expect_eq(op->kind, kind);
    cr_expect_eq(berth_attrs_int(module, &op->attrs, "factor", 0), 3);
    expect_refused(arena, model_with("com.other", "factor"), BERTH_UNSUPPORTED,
                   "not ONNX's own operator set");
    expect_refused(arena, model_with("com.test", "zork"), BERTH_INVALID_ARGUMENT, "zork");
    berth_arena_destroy(arena);
}
