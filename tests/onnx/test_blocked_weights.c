// Products with weights that are dequantised in blocks along the sum keep their bits where some device unpacks them on the
// way, and are floats elsewhere, or where the blocks lie along another axis.
#include "compiler/compile.h"
#include "ir/eval.h"
#include "tests/check.h"
#include "tests/onnx/imported.h"

enum { type_float = 1, type_u8 = 2, type_i8 = 3 };

static void initializer(pb *graph, const char *name, int type, const int64_t dims[2],
                        const void *data, size_t size) {
    pb tensor = {.size = 0};
    pb_int(&tensor, 1, dims[0]);
    pb_int(&tensor, 1, dims[1]);
    pb_int(&tensor, 2, type);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, data, size);
    pb_message(graph, 5, &tensor);
}

// y = x times four rows of two numbers, in blocks of two along `axis`.
static pb product(int type, const int8_t numbers[8], bool has_zero, int64_t axis) {
    static const int64_t x_dims[2] = {1, 4}, y_dims[2] = {1, 2}, dims[2] = {4, 2};
    const int64_t block_dims[2] = {axis == 0 ? 2 : 4, axis == 0 ? 2 : 1};
    static const float scales[4] = {.5f, 2, 1, .25f};
    static const int8_t zeros[4] = {1, 2, 3, 0};
    static const char *const inputs[] = {"w", "s", "z", NULL}, *const two[] = {"w", "s", NULL};
    static const char *const floats[] = {"d", NULL};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, x_dims);
    graph_output(&graph, "y", 2, y_dims);
    initializer(&graph, "w", type, dims, numbers, 8);
    initializer(&graph, "s", type_float, block_dims, scales, sizeof(scales));
    initializer(&graph, "z", type, block_dims, zeros, sizeof(zeros));
    pb attributes[2] = {attr_int("axis", axis), attr_int("block_size", 2)};
    graph_node(&graph, "DequantizeLinear", "dequantize", has_zero ? inputs : two, floats,
               attributes, 2);
    graph_node1(&graph, "MatMul", "product", "x", "d", "y");
    return model_of(&graph, 21);
}

static imported folded(const pb *model, berth_executor_kind executor) {
    imported i = import_with(model, NULL);
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(i.status);
    assert_ok(berth_target_parse(i.arena, "cpu", NULL, &target));
    target->executor = executor;
    berth_compile_options options = {
        .target = target, .stop_after = "fold-constants", .verify = true};
    assert_ok(berth_compile(i.module, &options, &result));
    i.graph = berth_graph_get(i.module, berth_module_find_function(i.module, "main"));
    return i;
}

// The product, of either kind.
static const berth_op *product_of(const imported *i) {
    for (uint32_t k = 0; k < i->graph->regions.data[0].ops.count; ++k) {
        const berth_op *op = &i->graph->ops.data[i->graph->regions.data[0].ops.data[k]];
        if (op->kind == BERTH_OP_MATMUL || op->kind == BERTH_OP_MATMUL_BITS) return op;
    }
    return NULL;
}

static void expect_bytes(const imported *i, const berth_op *op, uint32_t input, int count,
                         const uint8_t *expected) {
    const berth_tensor *held = berth_graph_constant_of(i->module, i->graph, op->inputs[input]);
    cr_assert(held && berth_tensor_element_count(held) == count);
    for (int k = 0; k < count; ++k)
        cr_expect_eq(berth_tensor_get_i64(held, k), expected[k], "%d of input %u", k, input);
}

Test(blocked_weights, numbers_of_4_bits_lie_two_in_a_byte) {
    static const int8_t numbers[8] = {1, 2, 15, 0, 7, 8, 9, 3};
    static const uint8_t bytes[4] = {1 | 15 << 4, 2 | 0 << 4, 7 | 9 << 4, 8 | 3 << 4};
    static const uint8_t zeros[4] = {1, 2, 3, 0}, none[4] = {0, 0, 0, 0};
    for (int has_zero = 0; has_zero < 2; ++has_zero) {
        pb model = product(type_u8, numbers, has_zero, 0);
        imported i = folded(&model, BERTH_EXECUTOR_GRAPH);
        const berth_op *op = product_of(&i);
        cr_assert(op && op->kind == BERTH_OP_MATMUL_BITS);
        cr_expect_eq(berth_attrs_int(i.module, &op->attrs, "bits", 0), 4);
        cr_expect_eq(berth_attrs_int(i.module, &op->attrs, "block_size", 0), 2);
        expect_bytes(&i, op, 1, 4, bytes);
        expect_bytes(&i, op, 3, 4, has_zero ? zeros : none);
        finish(&i);
    }
}

// Moved up by half their range, with their zero points; without any, the middle of the range is meant.
Test(blocked_weights, signed_numbers) {
    static const int8_t small[8] = {-8, 7, 0, -1, 3, 2, 1, -5};
    static const int8_t large[8] = {-128, 127, 0, -1, 3, 2, 1, -5};
    static const uint8_t of_small[4] = {0 | 8 << 4, 15 | 7 << 4, 11 | 9 << 4, 10 | 3 << 4};
    static const uint8_t of_large[8] = {0, 255, 128, 127, 131, 130, 129, 123};
    static const uint8_t zeros[4] = {129, 130, 131, 128};
    pb model = product(type_i8, small, false, 0);
    imported i = folded(&model, BERTH_EXECUTOR_GRAPH);
    const berth_op *op = product_of(&i);
    cr_assert(op && op->kind == BERTH_OP_MATMUL_BITS);
    cr_expect_eq(berth_attrs_int(i.module, &op->attrs, "bits", 0), 4);
    cr_expect_eq(op->input_count, 3);
    expect_bytes(&i, op, 1, 4, of_small);
    finish(&i);
    model = product(type_i8, large, true, 0);
    i = folded(&model, BERTH_EXECUTOR_GRAPH);
    op = product_of(&i);
    cr_assert(op && op->kind == BERTH_OP_MATMUL_BITS);
    cr_expect_eq(berth_attrs_int(i.module, &op->attrs, "bits", 0), 8);
    expect_bytes(&i, op, 1, 8, of_large);
    expect_bytes(&i, op, 3, 4, zeros);
    finish(&i);
}

Test(blocked_weights, others_are_floats) {
    static const int8_t numbers[8] = {1, 2, 15, 0, 7, 8, 9, 3};
    // (number - zero) * scale, for zeros 1, 2, 3, 0 and scales .5, 2, 1, .25 of rows
    static const double by_row[8] = {0, .5, 26, -4, 4, 5, 2.25, .75};
    pb model = product(type_u8, numbers, true, 1);
    imported i = folded(&model, BERTH_EXECUTOR_GRAPH);
    const berth_op *op = product_of(&i);
    cr_assert(op && op->kind == BERTH_OP_MATMUL);
    const berth_tensor *held = berth_graph_constant_of(i.module, i.graph, op->inputs[1]);
    cr_assert_not_null(held);
    for (int k = 0; k < 8; ++k) cr_expect_eq(berth_tensor_get_f64(held, k), by_row[k], "%d", k);
    finish(&i);
    model = product(type_u8, numbers, true, 0);
    i = folded(&model, BERTH_EXECUTOR_AOT);  // no kernel of it unpacks on the way
    op = product_of(&i);
    cr_expect(op && op->kind == BERTH_OP_MATMUL);
    finish(&i);
}
