// Operators that map to one operation, and those whose attributes became operands.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"
#include "ir/extend.h"

static berth_op_kind kind_of(const onnx_node *node) {
    const char *op_type = node->op_type;
    if (*node->domain && berth_op_for_onnx(node->domain, op_type) != BERTH_OP_COUNT)
        return berth_op_for_onnx(node->domain, op_type);
    for (int i = 0; i < BERTH_OP_COUNT; ++i)
        if (strcmp(berth_op_facts_get((berth_op_kind)i)->onnx, op_type) == 0)
            return (berth_op_kind)i;
    return BERTH_OP_COUNT;
}

static berth_status finish_as_named(onnx_call *call, const berth_value_id *inputs,
                                    uint32_t input_count) {
    berth_op_kind kind = kind_of(call->node);
    if (kind == BERTH_OP_COUNT)  // registered operations come after it
        return onnx_call_fail(call, BERTH_INTERNAL, "no operation stands for this operator");
    const berth_op_facts *facts = berth_op_facts_get(kind);
    for (int i = 0; i < facts->min_inputs; ++i)
        if (i >= (int)input_count || inputs[i] == BERTH_NONE)
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %d is missing", i);
    return onnx_call_finish(call, kind, inputs, input_count);
}

berth_status onnx_build_plain(onnx_call *call) {
    return finish_as_named(call, call->inputs, call->input_count);
}

berth_status onnx_build_scatter(onnx_call *call) {
    return onnx_call_finish(call, BERTH_OP_SCATTER_ELEMENTS, call->inputs, call->input_count);
}

// A condition that is constant (from the model, or bound) selects elements that are known: a
// gather. Otherwise the result's shape depends on values.
berth_status onnx_build_compress(onnx_call *call) {
    if (!onnx_call_has(call, 0) || !onnx_call_has(call, 1))
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "two inputs are needed");
    const berth_tensor *condition = onnx_call_constant(call, call->inputs[1]);
    if (!condition || condition->rank != 1) return onnx_build_plain(call);
    int64_t count = condition->dims[0];
    int64_t *places = berth_arena_new_array(call->im->scratch, int64_t, count + 1);
    uint32_t kept = 0;
    for (int64_t i = 0; i < count; ++i)
        if (berth_tensor_get_i64(condition, i)) places[kept++] = i;
    const onnx_attr *axis = onnx_call_attr(call, "axis");
    berth_value_id inputs[2] = {call->inputs[0], BERTH_NONE};
    if (!axis) {
        int64_t all = -1;
        inputs[1] = onnx_call_ints(call, &all, 1);
        BERTH_TRY(onnx_call_op1(call, BERTH_OP_RESHAPE, inputs, 2, &inputs[0]));
    }
    berth_type in = onnx_call_type(call, inputs[0]);
    int64_t along = axis ? axis->i : 0;
    if (along < 0) along += in.rank;
    bool known = along >= 0 && along < in.rank && in.dims[along] >= 0;  // a wrong axis: gather says
    if (known && kept && places[kept - 1] >= in.dims[along])
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "the condition keeps element %lld of an axis of %lld",
                              (long long)places[kept - 1], (long long)in.dims[along]);
    inputs[1] = onnx_call_ints(call, places, kept);
    berth_op_id op = onnx_call_op(call, BERTH_OP_GATHER, inputs, 2, 1);
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, op), "axis", axis ? axis->i : 0);
    if (call->output_count) call->outputs[0] = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

// ---- arithmetic: broadcast by attributes before opset 7 ----

// Dimensions that `value` needs after its own, so that it lies at `axis` of a tensor of `rank`
// dimensions.
static berth_status align(onnx_call *call, berth_value_id value, int64_t axis, int rank,
                          berth_value_id *out_value) {
    int own = onnx_call_type(call, value).rank;
    int64_t axes[BERTH_MAX_RANK];
    *out_value = value;
    if (rank < 0 || own < 0)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "broadcasting at an axis needs operands of known rank");
    if (axis < 0) axis += rank;
    int64_t behind = rank - axis - own;
    if (axis < 0 || axis > rank || behind < 0)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "attribute axis does not place the second operand");
    if (behind == 0 || own == 0) return BERTH_OK;
    for (int64_t i = 0; i < behind; ++i) axes[i] = own + i;
    berth_value_id inputs[2] = {value, onnx_call_ints(call, axes, (uint32_t)behind)};
    return onnx_call_op1(call, BERTH_OP_UNSQUEEZE, inputs, 2, out_value);
}

berth_status onnx_build_arith(onnx_call *call) {
    const onnx_attr *axis = onnx_call_attr(call, "axis");
    if (call->im->opset < 7 && axis && onnx_call_int(call, "broadcast", 0) &&
        onnx_call_has(call, 0) && onnx_call_has(call, 1))
        BERTH_TRY(align(call, call->inputs[1], axis->i, onnx_call_type(call, call->inputs[0]).rank,
                        &call->inputs[1]));
    return finish_as_named(call, call->inputs, call->input_count);
}

// Whether a slope of one dimension is one per channel. Before opset 7 it always is. Since then it
// is broadcast from the last dimension, but exporters (MXNet's, for one) went on writing one per
// channel: read so where it does not fit the last dimension and fits the channels.
static bool slope_per_channel(const onnx_call *call, const berth_type *x, const berth_type *slope) {
    if (x->rank < 2 || slope->rank != 1) return false;
    if (call->im->opset < 7) return true;
    return slope->dims[0] > 1 && slope->dims[0] == x->dims[1] && x->dims[x->rank - 1] >= 0 &&
           slope->dims[0] != x->dims[x->rank - 1];
}

berth_status onnx_build_prelu(onnx_call *call) {
    if (onnx_call_has(call, 0) && onnx_call_has(call, 1)) {
        berth_type x = onnx_call_type(call, call->inputs[0]);
        berth_type slope = onnx_call_type(call, call->inputs[1]);
        if (slope_per_channel(call, &x, &slope))
            BERTH_TRY(align(call, call->inputs[1], 1, x.rank, &call->inputs[1]));
    }
    return finish_as_named(call, call->inputs, call->input_count);
}

// ---- attributes that became operands ----

// axes: attribute before `since`.
static berth_status with_axes(onnx_call *call, int64_t since) {
    berth_value_id inputs[2] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE, BERTH_NONE};
    if (call->im->opset < since)
        inputs[1] = onnx_call_attr_operand(call, "axes");
    else if (onnx_call_has(call, 1))
        inputs[1] = call->inputs[1];
    if (call->input_count > 2)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "%u inputs", call->input_count);
    return finish_as_named(call, inputs, 2);
}

berth_status onnx_build_reduce(onnx_call *call) {
    return with_axes(call, strcmp(call->node->op_type, "ReduceSum") == 0 ? 13 : 18);
}

berth_status onnx_build_squeeze(onnx_call *call) {
    return with_axes(call, 13);
}

// A small constant of any type as integers.
static berth_status whole_numbers(onnx_call *call, berth_value_id value,
                                  berth_value_id *out_value) {
    const berth_tensor *given = onnx_call_constant(call, value);
    int64_t numbers[64], count = given ? berth_tensor_element_count(given) : 0;
    if (!given || count > 64)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "an operand of this opset that is not a short constant");
    for (int64_t i = 0; i < count; ++i) numbers[i] = (int64_t)berth_tensor_get_f64(given, i);
    *out_value = onnx_call_ints(call, numbers, (uint32_t)count);
    return BERTH_OK;
}

// The shape is an attribute before opset 5.
berth_status onnx_build_reshape(onnx_call *call) {
    if (call->im->opset >= 5) return onnx_build_plain(call);
    berth_value_id inputs[2] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE,
                                onnx_call_attr_operand(call, "shape")};
    return finish_as_named(call, inputs, 2);
}

// Before opset 6: how often, and along which axis, both numbers of the data's type.
berth_status onnx_build_tile(onnx_call *call) {
    if (call->im->opset >= 6) return onnx_build_plain(call);
    const berth_tensor *given[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; ++i)
        given[i] =
            onnx_call_has(call, i + 1) ? onnx_call_constant(call, call->inputs[i + 1]) : NULL;
    int rank = onnx_call_has(call, 0) ? onnx_call_type(call, call->inputs[0]).rank : -1;
    if (rank < 0 || !given[0] || !given[1] || berth_tensor_element_count(given[0]) != 1 ||
        berth_tensor_element_count(given[1]) != 1)
        return onnx_call_fail(
            call, BERTH_UNSUPPORTED,
            "Tile of this opset needs data of known rank, and tiles and axis that "
            "are constants of one element");
    int64_t repeats[BERTH_MAX_RANK], axis = (int64_t)berth_tensor_get_f64(given[1], 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "the axis is not one of the data's");
    for (int i = 0; i < rank; ++i)
        repeats[i] = i == axis ? (int64_t)berth_tensor_get_f64(given[0], 0) : 1;
    berth_value_id inputs[2] = {call->inputs[0], onnx_call_ints(call, repeats, (uint32_t)rank)};
    return finish_as_named(call, inputs, 2);
}

berth_status onnx_build_split(onnx_call *call) {
    berth_value_id inputs[2] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE, BERTH_NONE};
    int64_t parts = onnx_call_int(call, "num_outputs", call->node->outputs.count);
    if (call->im->opset < 13 && !(call->im->opset < 2 && onnx_call_has(call, 1)))
        inputs[1] = onnx_call_attr_operand(call, "split");
    else if (onnx_call_has(call, 1))
        inputs[1] = call->inputs[1];
    if (call->im->opset < 2 && inputs[1] != BERTH_NONE)  // lengths of the data's type
        BERTH_TRY(whole_numbers(call, inputs[1], &inputs[1]));
    if (parts != call->node->outputs.count)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "attribute num_outputs is %lld, but there are %u outputs",
                              (long long)parts, call->node->outputs.count);
    call->output_count =
        call->node->outputs.count;  // the number of parts decides their size: none is trimmed
    return finish_as_named(call, inputs, 2);
}

berth_status onnx_build_slice(onnx_call *call) {
    if (call->im->opset >= 10) return onnx_build_plain(call);
    berth_value_id inputs[4] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE,
                                onnx_call_attr_operand(call, "starts"),
                                onnx_call_attr_operand(call, "ends"),
                                onnx_call_attr_operand(call, "axes")};
    return finish_as_named(call, inputs, 4);
}

berth_status onnx_build_pad(onnx_call *call) {
    if (call->im->opset >= 11) return onnx_build_plain(call);
    berth_dtype dtype =
        onnx_call_has(call, 0) ? onnx_call_type(call, call->inputs[0]).dtype : BERTH_DTYPE_NONE;
    berth_value_id inputs[3] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE,
                                onnx_call_attr_operand(call, "pads"), BERTH_NONE};
    if (dtype != BERTH_DTYPE_NONE && onnx_call_attr(call, "value"))
        inputs[2] = onnx_call_number(call, dtype, onnx_call_float(call, "value", 0));
    return finish_as_named(call, inputs, 3);
}

berth_status onnx_build_clip(onnx_call *call) {
    if (call->im->opset >= 11) return onnx_build_plain(call);
    berth_dtype dtype =
        onnx_call_has(call, 0) ? onnx_call_type(call, call->inputs[0]).dtype : BERTH_DTYPE_NONE;
    berth_value_id inputs[3] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE, BERTH_NONE,
                                BERTH_NONE};
    if (dtype == BERTH_DTYPE_NONE) dtype = BERTH_DTYPE_F32;
    if (onnx_call_attr(call, "min"))
        inputs[1] = onnx_call_number(call, dtype, onnx_call_float(call, "min", 0));
    if (onnx_call_attr(call, "max"))
        inputs[2] = onnx_call_number(call, dtype, onnx_call_float(call, "max", 0));
    return finish_as_named(call, inputs, 3);
}

berth_status onnx_build_top_k(onnx_call *call) {
    if (call->im->opset >= 10) return onnx_build_plain(call);
    int64_t k = onnx_call_int(call, "k", -1);
    berth_value_id inputs[2] = {onnx_call_has(call, 0) ? call->inputs[0] : BERTH_NONE,
                                onnx_call_ints(call, &k, 1)};
    if (k < 0)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "attribute k is missing or negative");
    call->output_count = 2;
    return finish_as_named(call, inputs, 2);
}

// An axis that is computed: x becomes (before, extent, after, parts), is transformed along the second
// dimension, and gets the other extents back.
static berth_status build_dft_along(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 3);
    berth_value_id x = onnx_compose_input(&c, 0);
    int64_t rank = onnx_compose_want_rank(&c, x, "the input", 2, BERTH_MAX_RANK),
            places[BERTH_MAX_RANK];
    for (int64_t i = 0; i < rank; ++i) places[i] = i;
    if (c.status) return c.status;
    berth_value_id axis = onnx_cast_to(&c, onnx_compose_input(&c, 2), BERTH_DTYPE_I64);
    axis = onnx_reshaped(&c, axis, (int64_t[]){1}, 1);
    // Both look-ups fail where it is out of range: of all dimensions, and of those that are no parts.
    axis = onnx_picked(&c, onnx_int_list(&c, places, (uint32_t)rank), axis, 0);
    berth_value_id place = onnx_int_list(&c, places, (uint32_t)rank - 1);
    berth_value_id shape = onnx_shape_of(&c, x);
    berth_value_id dims = onnx_sliced(&c, shape, 0, 0, rank - 1, 1);
    berth_value_id one = onnx_scalar(&c, BERTH_DTYPE_I64, 1);
    berth_value_id parts[4] = {
        onnx_where(&c, onnx_make2(&c, BERTH_OP_LESS, place, axis), dims, one),
        onnx_picked(&c, dims, axis, 0),
        onnx_where(&c, onnx_make2(&c, BERTH_OP_GREATER, place, axis), dims, one),
        onnx_sliced(&c, shape, 0, rank - 1, rank, 1),
    };
    for (int i = 0; i < 3; i += 2)
        parts[i] = onnx_reduced(&c, BERTH_OP_REDUCE_PROD, parts[i], (int64_t[]){0}, 1, true);
    x = onnx_make2(&c, BERTH_OP_RESHAPE, x, onnx_concatenated(&c, parts, 4, 0));
    onnx_made dft = onnx_start(&c, BERTH_OP_DFT, (berth_value_id[]){x, onnx_compose_input(&c, 1)},
                               onnx_call_has(call, 1) ? 2 : 1, 1);
    onnx_set_copied(dft);
    onnx_set_int(dft, "axis", 1);
    berth_value_id y = onnx_finish(dft), made = onnx_shape_of(&c, y);
    berth_value_id is = onnx_make2(&c, BERTH_OP_EQUAL, place, axis);
    dims = onnx_where(&c, is, onnx_sliced(&c, made, 0, 1, 2, 1), dims);
    berth_value_id ends[2] = {dims, onnx_sliced(&c, made, 0, 3, 4, 1)};
    onnx_compose_output(&c, 0,
                        onnx_make2(&c, BERTH_OP_RESHAPE, y, onnx_concatenated(&c, ends, 2, 0)));
    return c.status;
}

// The axis became an operand in opset 20; here it is an attribute.
berth_status onnx_build_dft(onnx_call *call) {
    const berth_tensor *given =
        onnx_call_has(call, 2) ? onnx_call_constant(call, call->inputs[2]) : NULL;
    int64_t axis = onnx_call_int(call, "axis", call->im->opset >= 20 ? -2 : 1);
    if (onnx_call_has(call, 2) && !given) return build_dft_along(call);
    if (given) {
        if (berth_tensor_element_count(given) != 1)
            return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "the axis is not one number");
        axis = berth_tensor_get_i64(given, 0);
    }
    uint32_t count = call->input_count < 2 ? call->input_count : 2;
    while (count && call->inputs[count - 1] == BERTH_NONE) count--;
    if (!count) return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input 0 is missing");
    berth_op_id op = onnx_call_op(call, BERTH_OP_DFT, call->inputs, count, 1);
    BERTH_TRY(onnx_call_copy_attrs(call, op));
    berth_attrs_set_int(call->im->module, onnx_call_op_attrs(call, op), "axis", axis);
    if (call->output_count) call->outputs[0] = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}
