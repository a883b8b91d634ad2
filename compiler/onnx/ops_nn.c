// Normalisation, softmax, dropout, resizing and other operators whose older versions mean something
// else.
#include <string.h>

#include "compiler/onnx/ops.h"

static berth_status need_input(onnx_call *call) {
    if (onnx_call_has(call, 0)) return BERTH_OK;
    return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input 0 is missing");
}

static void set_output(onnx_call *call, uint32_t index, berth_value_id value) {
    if (index < call->output_count) call->outputs[index] = value;
}

// ---- softmax, log_softmax, hardmax: over all dimensions from `axis` on before opset 13 ----

static berth_status along(onnx_call *call, berth_op_kind kind, berth_value_id in, int64_t axis,
                          berth_value_id *out) {
    berth_op_id op = onnx_call_op(call, kind, &in, 1, 1);
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, op), "axis", axis);
    *out = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

static berth_op_kind softmax_kind(const char *op_type) {
    if (strcmp(op_type, "Softmax") == 0) return BERTH_OP_SOFTMAX;
    return strcmp(op_type, "Hardmax") == 0 ? BERTH_OP_HARDMAX : BERTH_OP_LOG_SOFTMAX;
}

// The shape of `like` as an operand: a constant where it is static.
static berth_status shape_operand(onnx_call *call, berth_value_id like, berth_value_id *out_shape) {
    berth_type type = onnx_call_type(call, like);
    if (berth_type_is_static(&type)) {
        *out_shape = onnx_call_ints(call, type.dims, (uint32_t)type.rank);
        return BERTH_OK;
    }
    return onnx_call_op1(call, BERTH_OP_SHAPE_OF, &like, 1, out_shape);
}

berth_status onnx_build_softmax(onnx_call *call) {
    berth_op_kind kind = softmax_kind(call->node->op_type);
    bool flattens = call->im->opset < 13;
    int64_t axis = onnx_call_int(call, "axis", flattens ? 1 : -1);
    berth_value_id out = BERTH_NONE;
    BERTH_TRY(need_input(call));
    berth_type in = onnx_call_type(call, call->inputs[0]);
    int64_t from = axis < 0 ? axis + in.rank : axis;
    bool rest_is_one = in.rank >= 0 && from >= 0 && from < in.rank;
    for (int64_t i = in.rank - 1; rest_is_one && i > from; --i) rest_is_one = in.dims[i] == 1;
    if (!flattens || rest_is_one) {
        BERTH_TRY(along(call, kind, call->inputs[0], axis, &out));
        set_output(call, 0, out);
        return BERTH_OK;
    }
    berth_op_id flat = onnx_call_op(call, BERTH_OP_FLATTEN, call->inputs, 1, 1);
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, flat), "axis", axis);
    BERTH_TRY(onnx_call_infer(call, flat));
    BERTH_TRY(along(call, kind, onnx_call_result(call, flat, 0), -1, &out));
    berth_value_id inputs[2] = {out, BERTH_NONE};
    BERTH_TRY(shape_operand(call, call->inputs[0], &inputs[1]));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_RESHAPE, inputs, 2, &out));
    set_output(call, 0, out);
    return BERTH_OK;
}

// ---- dropout: nothing at inference; the mask is all true ----

// Whether the training mode is off, or nothing is dropped in it.
static bool drops_nothing(onnx_call *call) {
    if (call->im->opset < 12 || !onnx_call_has(call, 2)) return true;
    const berth_tensor *training = onnx_call_constant(call, call->inputs[2]);
    const berth_tensor *ratio =
        onnx_call_has(call, 1) ? onnx_call_constant(call, call->inputs[1]) : NULL;
    if (ratio && berth_tensor_element_count(ratio) == 1 && berth_tensor_get_f64(ratio, 0) == 0)
        return true;
    return training && berth_tensor_element_count(training) == 1 &&
           berth_tensor_get_f64(training, 0) == 0;
}

berth_status onnx_build_dropout(onnx_call *call) {
    berth_value_id out = BERTH_NONE;
    BERTH_TRY(need_input(call));
    if (!drops_nothing(call)) return onnx_build_dropout_training(call);
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_IDENTITY, call->inputs, 1, &out));
    set_output(call, 0, out);
    if (call->output_count < 2) return BERTH_OK;
    berth_dtype dtype = call->im->opset < 10 ? onnx_call_type(call, out).dtype : BERTH_DTYPE_BOOL;
    berth_value_id inputs[2] = {onnx_call_number(call, dtype ? dtype : BERTH_DTYPE_F32, 1),
                                BERTH_NONE};
    BERTH_TRY(shape_operand(call, out, &inputs[1]));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_EXPAND, inputs, 2, &call->outputs[1]));
    return BERTH_OK;
}

// ---- normalisation ----

// spatial = 0: statistics for every element of a sample, not for every channel. Inputs: the data,
// scale, bias, mean, variance.
static berth_status normalize_per_element(onnx_call *call) {
    berth_dtype dtype = onnx_call_type(call, call->inputs[0]).dtype;
    berth_value_id *in = call->inputs;
    berth_value_id epsilon = onnx_call_number(call, dtype ? dtype : BERTH_DTYPE_F32,
                                              onnx_call_float(call, "epsilon", 1e-5));
    berth_value_id deviation = BERTH_NONE;
    berth_value_id out = BERTH_NONE;
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_ADD, (berth_value_id[]){in[4], epsilon}, 2, &deviation));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SQRT, &deviation, 1, &deviation));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SUB, (berth_value_id[]){in[0], in[3]}, 2, &out));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_DIV, (berth_value_id[]){out, deviation}, 2, &out));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_MUL, (berth_value_id[]){out, in[1]}, 2, &out));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_ADD, (berth_value_id[]){out, in[2]}, 2, &out));
    set_output(call, 0, out);
    return BERTH_OK;
}

berth_status onnx_build_batch_normalization(onnx_call *call) {
    bool training = call->im->opset >= 14 ? onnx_call_int(call, "training_mode", 0) != 0
                                          : call->output_count > 1;
    if (call->im->opset < 7 && !onnx_call_int(call, "is_test", 0))
        training = call->output_count > 1;
    if (training) return onnx_build_batch_norm_training(call);
    if (call->output_count > 1)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "statistics are outputs of training only");
    if (onnx_call_int(call, "spatial", 1)) return onnx_build_plain(call);
    for (int i = 0; i < 5; ++i)
        if (!onnx_call_has(call, (uint32_t)i))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %d is missing", i);
    int scales = onnx_call_type(call, call->inputs[1]).rank;
    if (scales < 0)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "spatial = 0 with statistics of unknown rank");
    // Exporters that wrote spatial = 0 on statistics per channel (MXNet's) meant those.
    return scales == 1 ? onnx_build_plain(call) : normalize_per_element(call);
}

// Channels per group after the number of groups, as a shape operand; a constant where it is known.
static berth_status group_shape(onnx_call *call, const berth_type *in, int64_t groups,
                                berth_value_id *out_shape) {
    if (in->rank >= 2 && in->dims[1] >= 0) {
        int64_t wide[2] = {groups, in->dims[1] / groups};
        *out_shape = onnx_call_ints(call, wide, 2);
        return BERTH_OK;
    }
    int64_t slice[3] = {1, 2, groups};
    berth_value_id parts[3] = {BERTH_NONE, onnx_call_ints(call, &slice[0], 1),
                               onnx_call_ints(call, &slice[1], 1)};
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SHAPE_OF, call->inputs, 1, &parts[0]));
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_SLICE, parts, 3, &parts[0]));
    parts[1] = onnx_call_ints(call, &slice[2], 1);
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_DIV, parts, 2, &parts[1]));
    parts[0] = onnx_call_ints(call, &groups, 1);
    berth_op_id op = onnx_call_op(call, BERTH_OP_CONCAT, parts, 2, 1);
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, op), "axis", 0);
    *out_shape = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

// Scale and bias are per group before opset 21, per channel from then on.
static berth_status per_channel(onnx_call *call, berth_value_id value, int64_t groups,
                                berth_value_id shape, berth_value_id *out_value) {
    int64_t column[2] = {groups, 1};
    int64_t all = -1;
    berth_value_id inputs[2] = {value, onnx_call_ints(call, column, 2)};
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_RESHAPE, inputs, 2, &inputs[0]));
    inputs[1] = shape;
    BERTH_TRY(onnx_call_op1(call, BERTH_OP_EXPAND, inputs, 2, &inputs[0]));
    inputs[1] = onnx_call_ints(call, &all, 1);
    return onnx_call_op1(call, BERTH_OP_RESHAPE, inputs, 2, out_value);
}

berth_status onnx_build_group_normalization(onnx_call *call) {
    if (call->im->opset >= 21) return onnx_build_plain(call);
    if (!onnx_call_has(call, 0) || !onnx_call_has(call, 1) || !onnx_call_has(call, 2))
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "three inputs are needed");
    berth_type in = onnx_call_type(call, call->inputs[0]);
    int64_t groups = onnx_call_int(call, "num_groups", 0);
    berth_value_id shape = BERTH_NONE;
    if (groups < 1)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "num_groups is missing or below 1");
    if (in.rank >= 2 && in.dims[1] >= 0 && in.dims[1] % groups)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "%lld channels do not divide into %lld groups", (long long)in.dims[1],
                              (long long)groups);
    BERTH_TRY(group_shape(call, &in, groups, &shape));
    for (int i = 1; i < 3; ++i)
        BERTH_TRY(per_channel(call, call->inputs[i], groups, shape, &call->inputs[i]));
    return onnx_build_plain(call);
}

// ---- resizing ----

static void set_string(onnx_call *call, berth_op_id op, const char *name, const char *value) {
    berth_attrs_set_string(call->im->module, onnx_call_op_attrs(call, op), name, value);
}

static berth_status resize_at(onnx_call *call, const char *mode, const char *nearest_mode,
                              berth_value_id in, berth_value_id scales, berth_value_id *out) {
    berth_value_id inputs[3] = {in, BERTH_NONE, scales};
    berth_op_id op = onnx_call_op(call, BERTH_OP_RESIZE, inputs, 3, 1);
    set_string(call, op, "mode", mode);
    set_string(call, op, "coordinate_transformation_mode", "asymmetric");
    set_string(call, op, "nearest_mode", nearest_mode);
    *out = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

// The scales on one side of 1; the others become 1.
static berth_value_id scales_of(onnx_call *call, const berth_tensor *all, bool down) {
    berth_tensor part = berth_tensor_create(call->im->arena, all->dtype, all->rank, all->dims);
    for (int64_t i = 0; i < berth_tensor_element_count(all); ++i) {
        double scale = berth_tensor_get_f64(all, i);
        berth_tensor_set_f64(&part, i, (scale < 1) == down ? scale : 1);
    }
    return onnx_call_literal(call, &part);
}

// Versions before 11 sample at x / scale. The nearest element is the one before where an axis grows
// and the next one where it shrinks (ONNX 1.5's test data: [1,2,3,4] scaled by 0.6 is [1,3]); a
// model that does both becomes two operations.
static berth_status resize_asymmetric(onnx_call *call, const char *mode, berth_value_id scales) {
    const berth_tensor *known = onnx_call_constant(call, scales);
    berth_value_id out = call->inputs[0];
    bool grows = false;
    bool shrinks = false;
    if (strcmp(mode, "bilinear") == 0) mode = "linear";
    for (int64_t i = 0; known && i < berth_tensor_element_count(known); ++i) {
        grows |= berth_tensor_get_f64(known, i) > 1;
        shrinks |= berth_tensor_get_f64(known, i) < 1;
    }
    if (strcmp(mode, "nearest") == 0 && grows && shrinks) {
        BERTH_TRY(resize_at(call, mode, "floor", out, scales_of(call, known, false), &out));
        scales = scales_of(call, known, true);
    }
    BERTH_TRY(resize_at(call, mode, shrinks ? "ceil" : "floor", out, scales, &out));
    set_output(call, 0, out);
    return BERTH_OK;
}

berth_status onnx_build_upsample(onnx_call *call) {
    const onnx_attr *scales = onnx_call_attr(call, "scales");
    berth_value_id operand = BERTH_NONE;
    BERTH_TRY(need_input(call));
    if (call->im->opset >= 9) {
        if (!onnx_call_has(call, 1))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "the scales are missing");
        operand = call->inputs[1];
    } else {
        const onnx_attr *height = onnx_call_attr(call, "height_scale");
        const onnx_attr *width = onnx_call_attr(call, "width_scale");
        if (!scales && !(height && width))
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "attribute scales is missing");
        int64_t count = scales ? scales->floats.count : 4;
        berth_tensor tensor = berth_tensor_create(call->im->arena, BERTH_DTYPE_F32, 1, &count);
        for (int64_t i = 0; i < count; ++i)  // before opset 7: of the last two of four dimensions
            berth_tensor_set_f64(&tensor, i,
                                 scales  ? scales->floats.data[i]
                                 : i < 2 ? 1
                                 : i < 3 ? height->f
                                         : width->f);
        operand = onnx_call_literal(call, &tensor);
    }
    const char *mode = onnx_call_string(call, "mode", "nearest");
    return resize_asymmetric(call, strcmp(mode, "bilinear") == 0 ? "linear" : mode, operand);
}

berth_status onnx_build_resize(onnx_call *call) {
    if (call->im->opset >= 11) return onnx_build_plain(call);
    BERTH_TRY(need_input(call));
    if (!onnx_call_has(call, 1))
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "the scales are missing");
    return resize_asymmetric(call, onnx_call_string(call, "mode", "nearest"), call->inputs[1]);
}

// Opset 20 renamed the modes.
berth_status onnx_build_grid_sample(onnx_call *call) {
    const char *mode = onnx_call_string(call, "mode", "linear");
    if (call->input_count != 2)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "two inputs are needed");
    if (strcmp(mode, "bilinear") == 0) mode = "linear";
    if (strcmp(mode, "bicubic") == 0) mode = "cubic";
    berth_op_id op = onnx_call_op(call, BERTH_OP_GRID_SAMPLE, call->inputs, 2, 1);
    BERTH_TRY(onnx_call_copy_attrs(call, op));
    set_string(call, op, "mode", mode);
    set_output(call, 0, onnx_call_result(call, op, 0));
    return onnx_call_infer(call, op);
}

// Opset 16 added the coordinate transformation; until then it was what is now "output_half_pixel".
berth_status onnx_build_roi_align(onnx_call *call) {
    BERTH_TRY(onnx_build_plain(call));
    if (call->im->opset >= 16 || !call->output_count) return BERTH_OK;
    const berth_graph *graph = berth_graph_get(call->im->module, call->im->function);
    set_string(call, graph->values.data[call->outputs[0]].op, "coordinate_transformation_mode",
               "output_half_pixel");
    return BERTH_OK;
}
