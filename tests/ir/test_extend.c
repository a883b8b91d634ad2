// Operations, dialects and kinds of opaque values from outside the tree.
#include <criterion/criterion.h>
#include <string.h>

#include "ir/extend.h"
#include "ir/infer.h"
#include "ir/pass.h"
#include "ir/text.h"

static berth_status infer_twice(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

static berth_status eval_twice(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; i < berth_tensor_element_count(x); ++i)
        berth_eval__set_f64(&ctx->outputs[0], i, 2 * values[i]);
    return BERTH_OK;
}

static berth_op_definition twice(void) {
    return (berth_op_definition){.facts = {.name = "test.twice",
                                           .onnx = "Twice",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .min_outputs = 1,
                                           .max_outputs = 1,
                                           .traits = BERTH_TRAIT_ELEMENTWISE},
                                 .onnx_domain = "test",
                                 .onnx_attrs = "",
                                 .infer = infer_twice,
                                 .eval = eval_twice};
}

static void refuse_op(berth_op_definition definition, berth_code code, const char *part) {
    berth_op_kind kind;
    berth_status status = berth_op_register(&definition, &kind);
    cr_expect_eq(berth_status_code(status), code, "%s", part);
    cr_expect(strstr(berth_status_message(status), part), "%s", berth_status_message(status));
    berth_status_free(status);
}

Test(extend, an_operation_is_read_inferred_and_evaluated) {
    static berth_op_definition definition;
    definition = twice();
    berth_op_kind kind = BERTH_OP_CONSTANT, found = BERTH_OP_CONSTANT;
    cr_assert_null(berth_op_register(&definition, &kind));
    cr_expect_gt(kind, BERTH_OP_COUNT);
    cr_expect(berth_op_kind_from_name("test.twice", &found) && found == kind);
    cr_expect_eq(berth_op_for_onnx("test", "Twice"), kind);
    cr_expect_eq(berth_op_for_onnx("other", "Twice"), BERTH_OP_COUNT);
    cr_expect_str_eq(berth_op_facts_get(kind)->name, "test.twice");

    static const char text[] = "module \"m\"\n"
                               "graph @main() {\n"
                               "  %x = constant() {value = f32[3] (1.0, 2.5, -3.0)}\n"
                               "  %y = test.twice(%x)\n"
                               "  return %y\n"
                               "}\n";
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_null(berth_module_parse(arena, text, strlen(text), "t", &module));
    berth_func_id main = berth_module_find_function(module, "main");
    cr_assert_null(berth_infer_function(module, main));
    cr_assert_null(berth_module_verify(module));
    berth_tensor out;
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_tensor *in = berth_graph_constant_of(module, graph, graph->ops.data[1].inputs[0]);
    cr_assert_null(berth_eval_op(module, main, 1, in, &out, arena));
    const float *values = out.data;
    cr_expect(values[0] == 2.0f && values[1] == 5.0f && values[2] == -6.0f);
    berth_arena_destroy(arena);
}

Test(extend, operations_that_are_refused) {
    static berth_op_definition definition;
    definition = twice();
    berth_op_kind kind;
    cr_assert_null(berth_op_register(&definition, &kind));
    refuse_op(twice(), BERTH_ALREADY_EXISTS, "test.twice");
    berth_op_definition other = twice();
    other.facts.name = "relu";
    refuse_op(other, BERTH_ALREADY_EXISTS, "relu");
    other.facts.name = "test.other";
    refuse_op(other, BERTH_ALREADY_EXISTS, "test.Twice");
    other.facts.onnx = "Other";
    other.infer = NULL;
    refuse_op(other, BERTH_INVALID_ARGUMENT, "lacks infer");
    other.facts.name = "Bad name";
    refuse_op(other, BERTH_INVALID_ARGUMENT, "no name");
}

static berth_status parse_note(berth_arena *arena, const char *text, size_t length,
                               void **out_value) {
    *out_value = berth_arena_strndup(arena, text, length);
    return BERTH_OK;
}

Test(extend, dialects_and_opaque_values) {
    static const berth_dialect dialect = {.name = "test_dialect"};
    static const berth_dialect graph_again = {.name = "graph"};
    static const berth_opaque_ops note = {.kind = "note", .parse = parse_note};
    cr_assert_null(berth_dialect_register(&dialect));
    cr_expect_eq(berth_dialect_find(NULL, "test_dialect"), &dialect);
    berth_status status = berth_dialect_register(&graph_again);
    cr_expect_eq(berth_status_code(status), BERTH_ALREADY_EXISTS);
    berth_status_free(status);

    static const char text[] = "module \"m\" {n = opaque(\"note\", meta(m1))}\n"
                               "meta { m1 = text \"hello\" }\n";
    cr_assert_null(berth_opaque_register(&note));
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cr_assert_null(berth_module_parse(arena, text, strlen(text), "t", &module));
    const berth_attr *held = berth_attrs_find(module, &module->attrs, "n");
    cr_assert(held && held->kind == BERTH_ATTR_OPAQUE);
    cr_expect_eq(held->opaque.ops, &note);
    cr_expect_str_eq(held->opaque.value, "hello");
    berth_arena_destroy(arena);
}
