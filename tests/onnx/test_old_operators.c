// Operators as older opsets have them, and forms of today's that become others.
#include <string.h>

#include "tests/onnx/imported.h"

Test(import_operators, attributes_become_operands) {
    const char *inputs[] = {"x", NULL};
    const char *outputs[] = {"y", NULL};
    const int64_t axes[2] = {0, 2};
    const int64_t dims[3] = {1, 4, 1};
    pb graph = {.size = 0};
    pb attr = attr_ints("axes", axes, 2);
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 3, dims);
    graph_node(&graph, "Unsqueeze", "u", inputs, outputs, &attr, 1);
    pb model = model_of(&graph, 11);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_UNSQUEEZE), 1);
    cr_expect_eq(output_type(&i, 0)->rank, 3);
    cr_expect_eq(output_type(&i, 0)->dims[1], 4);
    finish(&i);
    model = model_of(&graph, 13);  // from 13 on the attribute is gone and the axes are missing
    i = import_with(&model, NULL);
    cr_expect_eq(berth_status_code(i.status), BERTH_INVALID_ARGUMENT);
    finish(&i);
}

// Softmax before opset 13 runs over all dimensions from the axis on: as a matrix, unless the rest
// are ones.
Test(import_operators, old_softmax_is_over_a_matrix) {
    const int64_t dims[3] = {2, 3, 4};
    const int64_t thin[3] = {2, 3, 1};
    const char *inputs[] = {"x", NULL};
    const char *outputs[] = {"y", NULL};
    for (int k = 0; k < 3; ++k) {
        pb graph = {.size = 0};
        graph_input(&graph, "x", 3, k == 1 ? thin : dims);
        graph_output(&graph, "y", 3, k == 1 ? thin : dims);
        graph_node(&graph, "Softmax", "s", inputs, outputs, NULL, 0);
        pb model = model_of(&graph, k == 2 ? 13 : 11);
        imported i = import_with(&model, NULL);
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        cr_expect_eq(count_kind(&i, BERTH_OP_SOFTMAX), 1);
        cr_expect_eq(count_kind(&i, BERTH_OP_FLATTEN), k == 0);
        cr_expect_eq(count_kind(&i, BERTH_OP_RESHAPE), k == 0);
        finish(&i);
    }
}

static const berth_op *find_kind(const imported *i, berth_op_kind kind, uint32_t skip) {
    for (uint32_t k = 0; k < i->graph->regions.data[0].ops.count; ++k) {
        const berth_op *op = &i->graph->ops.data[i->graph->regions.data[0].ops.data[k]];
        if (op->kind == kind && skip-- == 0) return op;
    }
    return NULL;
}

// Resize of opset 10 takes the next element where an axis shrinks, the one before where it grows
// (ONNX 1.5's test data for both); one operation has one nearest_mode, so a model with both becomes
// two.
Test(import_operators, old_nearest_resize_rounds_by_direction) {
    static const float scales[3][3] = {{1, 2, 0.5f}, {1, 1, 0.6f}, {1, 3, 1}};
    static const char *const wanted[3][2] = {{"floor", "ceil"}, {"ceil", NULL}, {"floor", NULL}};
    const int64_t dims[3] = {1, 4, 4};
    const char *inputs[] = {"x", "scales", NULL};
    const char *outputs[] = {"y", NULL};
    const char *none[] = {NULL};
    const char *constant[] = {"scales", NULL};
    for (int k = 0; k < 3; ++k) {
        pb graph = {.size = 0};
        pb value = attr_floats("value_floats", scales[k], 3);
        graph_input(&graph, "x", 3, dims);
        graph_output(&graph, "y", 3,
                     (const int64_t[3]){1,
                                        k == 0   ? 8
                                        : k == 1 ? 4
                                                 : 12,
                                        k == 0   ? 2
                                        : k == 1 ? 2
                                                 : 4});
        graph_node(&graph, "Constant", "c", none, constant, &value, 1);
        graph_node(&graph, "Resize", "r", inputs, outputs, NULL, 0);
        pb model = model_of(&graph, 10);
        imported i = import_with(&model, NULL);
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        cr_assert_eq(count_kind(&i, BERTH_OP_RESIZE), wanted[k][1] ? 2 : 1);
        for (uint32_t n = 0; n < 2 && wanted[k][n]; ++n)
            cr_expect_str_eq(berth_attrs_string(i.module, &find_kind(&i, BERTH_OP_RESIZE, n)->attrs,
                                                "nearest_mode", ""),
                             wanted[k][n]);
        finish(&i);
    }
}

// Starts that are an input, steps that are constant, no axes: the lists' length is that of the
// steps.
Test(import_operators, slice_with_only_its_steps_known) {
    const int64_t dims[3] = {6, 4, 2};
    const int64_t one[1] = {1};
    const int64_t steps[1] = {2};
    const char *inputs[] = {"x", "starts", "ends", "", "steps", NULL};
    const char *outputs[] = {"y", NULL};
    const char *none[] = {NULL};
    const char *constant[] = {"steps", NULL};
    pb graph = {.size = 0};
    pb value = attr_ints("value_ints", steps, 1);
    graph_input(&graph, "x", 3, dims);
    graph_value(&graph, 11, "starts", 7, 1, one);
    graph_value(&graph, 11, "ends", 7, 1, one);
    graph_output(&graph, "y", 3, (const int64_t[3]){SYMBOL(1), 4, 2});
    graph_node(&graph, "Constant", "c", none, constant, &value, 1);
    graph_node(&graph, "Slice", "s", inputs, outputs, NULL, 0);
    pb model = model_of(&graph, 13);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_assert_eq(output_type(&i, 0)->rank, 3);
    cr_expect(output_type(&i, 0)->dims[0] < 0);  // not known
    cr_expect_eq(output_type(&i, 0)->dims[1], 4);
    cr_expect_eq(output_type(&i, 0)->dims[2], 2);
    finish(&i);
}

// BatchNormalization of opsets 7 and 8 with spatial = 0: statistics per element of a sample become
// elementwise operations; statistics per channel are read as such.
Test(import_operators, batch_normalization_per_element) {
    const int64_t dims[3] = {2, 3, 4};
    const int64_t element[2] = {3, 4};
    const int64_t channel[1] = {3};
    const char *inputs[] = {"x", "s", "b", "m", "v", NULL};
    const char *outputs[] = {"y", NULL};
    for (int k = 0; k < 2; ++k) {
        pb graph = {.size = 0};
        pb spatial = attr_int("spatial", 0);
        graph_input(&graph, "x", 3, dims);
        for (int i = 1; i < 5; ++i) graph_input(&graph, inputs[i], 2 - k, k ? channel : element);
        graph_output(&graph, "y", 3, dims);
        graph_node(&graph, "BatchNormalization", "n", inputs, outputs, &spatial, 1);
        pb model = model_of(&graph, 7);
        imported i = import_with(&model, NULL);
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        cr_expect_eq(count_kind(&i, BERTH_OP_BATCH_NORMALIZATION), (uint32_t)k);
        cr_expect_eq(count_kind(&i, BERTH_OP_SQRT), (uint32_t)!k);
        finish(&i);
    }
}

// A slope of one dimension that fits the channels and not the last dimension is one per channel.
Test(import_operators, prelu_slope_per_channel) {
    const int64_t dims[3] = {2, 3, 4};
    const int64_t square[3] = {2, 3, 3};
    const int64_t slope[1] = {3};
    for (int k = 0; k < 3; ++k) {
        pb graph = {.size = 0};
        graph_input(&graph, "x", 3, k == 1 ? square : dims);
        graph_input(&graph, "slope", 1, slope);
        graph_output(&graph, "y", 3, k == 1 ? square : dims);
        graph_node1(&graph, "PRelu", "n", "x", "slope", "y");
        pb model = model_of(&graph, k == 2 ? 6 : 9);
        imported i = import_with(&model, NULL);
        cr_assert(!i.status, "%s", berth_status_message(i.status));
        cr_expect_eq(count_kind(&i, BERTH_OP_UNSQUEEZE), k == 1 ? 0 : 1);
        finish(&i);
    }
}

// The number of channels need not be known for scales per group.
Test(import_operators, group_normalization_with_symbolic_channels) {
    const int64_t dims[3] = {2, SYMBOL(0), 4};
    const int64_t groups[1] = {3};
    const char *inputs[] = {"x", "s", "b", NULL};
    const char *outputs[] = {"y", NULL};
    pb graph = {.size = 0};
    pb count = attr_int("num_groups", 3);
    graph_input(&graph, "x", 3, dims);
    graph_input(&graph, "s", 1, groups);
    graph_input(&graph, "b", 1, groups);
    graph_output(&graph, "y", 3, dims);
    graph_node(&graph, "GroupNormalization", "n", inputs, outputs, &count, 1);
    pb model = model_of(&graph, 18);
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_GROUP_NORMALIZATION), 1);
    finish(&i);
    berth_dim_binding odd = {"N0", 7};  // 7 channels in 3 groups
    i = import_with(&model, &(berth_import_options){.dims = &odd, .dim_count = 1});
    cr_expect(i.status);
    finish(&i);
}

// A condition that is known selects known elements; without an axis, of the flattened tensor.
Test(import_operators, compress_by_a_known_condition_gathers) {
    const int64_t dims[2] = {3, 2};
    const int64_t three[1] = {3};
    const int64_t wanted[1] = {2};
    uint8_t flags[3] = {0, 1, 1};
    const char *inputs[] = {"x", "c", NULL};
    const char *outputs[] = {"y", NULL};
    pb graph = {.size = 0};
    graph_input(&graph, "x", 2, dims);
    graph_value(&graph, 11, "c", 9, 1, three);
    graph_output(&graph, "y", 1, wanted);
    graph_node(&graph, "Compress", "n", inputs, outputs, NULL, 0);
    pb model = model_of(&graph, 11);
    berth_input_binding c = {
        .name = "c",
        .tensor = {.dtype = BERTH_DTYPE_BOOL, .rank = 1, .dims = {3}, .data = flags},
        .as_constant = true};
    imported i = import_with(&model, &(berth_import_options){.inputs = &c, .input_count = 1});
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_COMPRESS), 0);
    const berth_op *gather = find_kind(&i, BERTH_OP_GATHER, 0);
    cr_assert(gather);
    const berth_tensor *places = berth_graph_constant_of(i.module, i.graph, gather->inputs[1]);
    cr_assert(places && berth_tensor_element_count(places) == 2);
    cr_expect_eq(berth_tensor_get_i64(places, 0), 1);
    cr_expect_eq(berth_tensor_get_i64(places, 1), 2);
    cr_expect_eq(output_type(&i, 0)->rank, 1);
    finish(&i);
}

static imported import_with_attrs(const char *op_type, int64_t opset, const pb *attrs, int count,
                                  int rank, const char *more) {
    const int64_t dims[4] = {2, 4, 3, 3};
    const char *inputs[] = {"x", more, NULL};
    const char *outputs[] = {"y", NULL};
    pb graph = {.size = 0};
    pb result = {.size = 0};
    graph_input(&graph, "x", rank, dims);
    if (more) graph_input(&graph, more, rank, dims);
    pb_text(&result, 1, "y");  // of no declared type
    pb_message(&graph, 12, &result);
    graph_node(&graph, op_type, "n", inputs, outputs, attrs, count);
    pb model = model_of(&graph, opset);
    return import_with(&model, NULL);
}

// A node of an opset before 6 with one attribute beside consumed_inputs.
static imported import_old(const char *op_type, int64_t opset, const pb *attr, int rank,
                           const char *more) {
    const int64_t consumed = 0;
    pb attrs[2] = {attr_ints("consumed_inputs", &consumed, 1)};
    if (attr) attrs[1] = *attr;
    return import_with_attrs(op_type, opset, attrs, attr ? 2 : 1, rank, more);
}

static pb attr_float(const char *name, float value) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    pb_varint(&attr, 2 << 3 | 5);
    for (int i = 0; i < 4; ++i) attr.data[attr.size++] = ((const uint8_t *)&value)[i];
    pb_int(&attr, 20, 1);
    return attr;
}

static pb attr_text(const char *name, const char *value) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    pb_text(&attr, 4, value);
    pb_int(&attr, 20, 3);
    return attr;
}

Test(import_operators, forms_of_opsets_1_to_5) {
    const int64_t pads[8] = {0, 1, 0, 0, 0, 0, 0, 2}, shape[2] = {-1, 6};
    pb cast = attr_text("to", "INT32"), padded = attr_ints("paddings", pads, 8);
    pb reshaped = attr_ints("shape", shape, 2);
    imported i =
        import_old("Relu", 1, NULL, 4, NULL);  // consumed_inputs says nothing of the result
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_RELU), 1);
    finish(&i);
    i = import_old("Relu", 6, NULL, 4, NULL);  // from 6 on there is no such attribute
    cr_expect_eq(berth_status_code(i.status), BERTH_INVALID_ARGUMENT);
    finish(&i);
    i = import_old("Cast", 5, &cast, 4, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dtype, BERTH_DTYPE_I32);
    finish(&i);
    i = import_old("Pad", 1, &padded, 4, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[1], 5);
    cr_expect_eq(output_type(&i, 0)->dims[3], 5);
    finish(&i);
    i = import_old("Reshape", 4, &reshaped, 4, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[0], 12);
    finish(&i);
    i = import_old("Concat", 3, NULL, 4, "z");  // along axis 1, if none is given
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[1], 8);
    finish(&i);
    pb scales[2] = {attr_float("height_scale", 2), attr_float("width_scale", 3)};
    i = import_with_attrs("Upsample", 1, scales, 2, 4, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(output_type(&i, 0)->dims[2], 6);
    cr_expect_eq(output_type(&i, 0)->dims[3], 9);
    finish(&i);
    i = import_old("Selu", 1, NULL, 4, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    const berth_op *selu = find_kind(&i, BERTH_OP_SELU, 0);
    cr_expect_float_eq(berth_attrs_float(i.module, &selu->attrs, "gamma", 0), 1.0507, 1e-9);
    finish(&i);
}

static void add_function(pb *model, const char *overload, const char *op_type) {
    pb function = {.size = 0};
    pb body = {.size = 0};
    const char *inputs[] = {"a", NULL};
    const char *outputs[] = {"b", NULL};
    pb_text(&function, 1, "Act");
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "b");
    graph_node(&body, op_type, "inner", inputs, outputs, NULL, 0);
    pb_bytes(&function, 7, body.data + 2, body.size - 2);  // the same message as a graph's node
    pb_text(&function, 10, "own");
    if (overload) pb_text(&function, 13, overload);
    pb_message(model, 25, &function);
}

// Functions of one name are told apart by their overloads.
Test(import_operators, the_overload_that_a_node_names) {
    pb graph = {.size = 0};
    pb node = {.size = 0};
    pb opset = {.size = 0};
    graph_input(&graph, "x", 1, four);
    graph_output(&graph, "y", 1, four);
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "y");
    pb_text(&node, 4, "Act");
    pb_text(&node, 7, "own");
    pb_text(&node, 8, "second");
    pb_message(&graph, 1, &node);
    pb_text(&opset, 1, "own");
    pb_int(&opset, 2, 1);
    pb model = model_of(&graph, 13);
    pb_message(&model, 8, &opset);
    add_function(&model, NULL, "Neg");
    add_function(&model, "first", "Exp");
    add_function(&model, "second", "Tanh");
    imported i = import_with(&model, NULL);
    cr_assert(!i.status, "%s", berth_status_message(i.status));
    cr_expect_eq(count_kind(&i, BERTH_OP_TANH), 1);
    cr_expect_eq(i.graph->regions.data[0].ops.count, 1);
    finish(&i);
}
