#include "compiler/onnx/compose.h"
#include "compiler/passes/index_checks.h"

#include <stdarg.h>
#include <stdio.h>

onnx_compose onnx_compose_begin(onnx_call *call, uint32_t least, uint32_t most) {
    onnx_compose c = {.call = call};
    for (uint32_t i = 0; i < least; ++i)
        if (!onnx_call_has(call, i)) {
            c.status = onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
            return c;
        }
    if (call->input_count > most)
        c.status = onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "%u inputs, expected at most %u",
                                  call->input_count, most);
    return c;
}

berth_value_id onnx_compose_input(const onnx_compose *c, uint32_t index) {
    return onnx_call_has(c->call, index) ? c->call->inputs[index] : BERTH_NONE;
}

bool onnx_compose_wants(const onnx_compose *c, uint32_t output) {
    return output < c->call->output_count && *c->call->node->outputs.data[output];
}

void onnx_compose_output(onnx_compose *c, uint32_t output, berth_value_id value) {
    if (!c->status && output < c->call->output_count) c->call->outputs[output] = value;
}

void onnx_compose_fail(onnx_compose *c, berth_code code, const char *format, ...) {
    if (c->status) return;
    va_list arguments;
    va_start(arguments, format);
    char text[512];
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    c->status = onnx_call_fail(c->call, code, "%s", text);
}

// ---- what is known of values ----

berth_dtype onnx_compose_dtype(const onnx_compose *c, berth_value_id value) {
    return onnx_call_type(c->call, value).dtype;
}

int onnx_compose_rank(onnx_compose *c, berth_value_id value) {
    if (c->status) return 0;
    int rank = onnx_call_type(c->call, value).rank;
    if (rank >= 0) return rank;
    onnx_compose_fail(c, BERTH_UNSUPPORTED, "an input of unknown rank");
    return 0;
}

int onnx_compose_want_rank(onnx_compose *c, berth_value_id value, const char *what, int low,
                           int high) {
    int rank = onnx_compose_rank(c, value);
    if (!c->status && (rank < low || rank > high)) {
        if (low == high)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%s has %d dimensions, expected %d", what,
                              rank, low);
        else
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%s has %d dimensions, expected %d to %d",
                              what, rank, low, high);
    }
    return c->status ? 0 : rank;
}

int64_t onnx_compose_extent(const onnx_compose *c, berth_value_id value, int axis) {
    berth_type type = onnx_call_type(c->call, value);
    if (axis < 0) axis += type.rank;
    return axis >= 0 && axis < type.rank && type.dims[axis] >= 0 ? type.dims[axis]
                                                                 : BERTH_DIM_UNKNOWN;
}

int64_t onnx_compose_known_extent(onnx_compose *c, berth_value_id value, const char *what,
                                  int axis) {
    if (c->status) return 1;
    int64_t extent = onnx_compose_extent(c, value, axis);
    if (extent >= 0) return extent;
    onnx_compose_fail(c, BERTH_UNSUPPORTED, "dimension %d of %s must be known", axis, what);
    return 1;
}

// ---- operations ----

onnx_made onnx_start(onnx_compose *c, berth_op_kind kind, const berth_value_id *inputs,
                     uint32_t count, uint32_t outputs) {
    onnx_made made = {.c = c, .op = BERTH_NONE};
    if (!c->status) made.op = onnx_call_op(c->call, kind, inputs, count, outputs);
    return made;
}

static berth_attrs *attrs_of(onnx_made made) {
    return onnx_call_op_attrs(made.c->call, made.op);
}

void onnx_set_int(onnx_made made, const char *name, int64_t value) {
    if (!made.c->status) berth_attrs_set_int(made.c->call->im->module, attrs_of(made), name, value);
}

void onnx_set_float(onnx_made made, const char *name, double value) {
    if (!made.c->status)
        berth_attrs_set_float(made.c->call->im->module, attrs_of(made), name, value);
}

void onnx_set_string(onnx_made made, const char *name, const char *value) {
    if (!made.c->status)
        berth_attrs_set_string(made.c->call->im->module, attrs_of(made), name, value);
}

void onnx_set_ints(onnx_made made, const char *name, const int64_t *values, uint32_t count) {
    if (!made.c->status)
        berth_attrs_set_ints(made.c->call->im->module, attrs_of(made), name, values, count);
}

void onnx_set_tensor(onnx_made made, const char *name, const berth_tensor *tensor) {
    if (made.c->status) return;
    berth_arena *arena = made.c->call->im->arena;
    berth_attr attr = {.kind = BERTH_ATTR_TENSOR,
                       .tensor = berth_arena_copy(arena, tensor, sizeof(*tensor))};
    berth_attrs_set(made.c->call->im->module, attrs_of(made), name, attr);
}

void onnx_set_dtype(onnx_made made, const char *name, berth_dtype dtype) {
    if (!made.c->status)
        berth_attrs_set(made.c->call->im->module, attrs_of(made), name,
                        (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = dtype});
}

void onnx_set_copied(onnx_made made) {
    if (!made.c->status) made.c->status = onnx_call_copy_attrs(made.c->call, made.op);
}

berth_value_id onnx_finish(onnx_made made) {
    if (!made.c->status) made.c->status = onnx_call_infer(made.c->call, made.op);
    return onnx_result(made, 0);
}

berth_value_id onnx_result(onnx_made made, uint32_t index) {
    return made.c->status ? BERTH_NONE : onnx_call_result(made.c->call, made.op, index);
}

berth_value_id onnx_make(onnx_compose *c, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t count) {
    return onnx_finish(onnx_start(c, kind, inputs, count, 1));
}

berth_value_id onnx_make1(onnx_compose *c, berth_op_kind kind, berth_value_id a) {
    return onnx_make(c, kind, &a, 1);
}

berth_value_id onnx_make2(onnx_compose *c, berth_op_kind kind, berth_value_id a, berth_value_id b) {
    return onnx_make(c, kind, (berth_value_id[]){a, b}, 2);
}

berth_value_id onnx_make3(onnx_compose *c, berth_op_kind kind, berth_value_id a, berth_value_id b,
                          berth_value_id d) {
    return onnx_make(c, kind, (berth_value_id[]){a, b, d}, 3);
}

berth_value_id onnx_add(onnx_compose *c, berth_value_id a, berth_value_id b) {
    return onnx_make2(c, BERTH_OP_ADD, a, b);
}

berth_value_id onnx_sub(onnx_compose *c, berth_value_id a, berth_value_id b) {
    return onnx_make2(c, BERTH_OP_SUB, a, b);
}

berth_value_id onnx_mul(onnx_compose *c, berth_value_id a, berth_value_id b) {
    return onnx_make2(c, BERTH_OP_MUL, a, b);
}

berth_value_id onnx_div(onnx_compose *c, berth_value_id a, berth_value_id b) {
    return onnx_make2(c, BERTH_OP_DIV, a, b);
}

berth_value_id onnx_where(onnx_compose *c, berth_value_id condition, berth_value_id yes,
                          berth_value_id no) {
    return onnx_make3(c, BERTH_OP_WHERE, condition, yes, no);
}

// ---- common ones ----

berth_value_id onnx_cast_to(onnx_compose *c, berth_value_id value, berth_dtype dtype) {
    if (c->status || onnx_compose_dtype(c, value) == dtype) return value;
    onnx_made made = onnx_start(c, BERTH_OP_CAST, &value, 1, 1);
    onnx_set_dtype(made, "to", dtype);
    return onnx_finish(made);
}

berth_value_id onnx_scalar(onnx_compose *c, berth_dtype dtype, double value) {
    return c->status ? BERTH_NONE : onnx_call_number(c->call, dtype, value);
}

berth_value_id onnx_like(onnx_compose *c, berth_value_id like, double value) {
    if (c->status) return BERTH_NONE;
    berth_dtype dtype = onnx_compose_dtype(c, like);
    if (dtype == BERTH_DTYPE_NONE)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "an input of unknown element type");
    return onnx_scalar(c, dtype, value);
}

berth_value_id onnx_string_list(onnx_compose *c, const onnx_attr *attr) {
    if (c->status) return BERTH_NONE;
    int64_t count = attr->strings.count;
    berth_arena *arena = c->call->im->arena;
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_STRING, 1, &count);
    for (int64_t i = 0; i < count; ++i)
        ((berth_string *)tensor.data)[i] =
            berth_string_copy(arena, berth_string_of(attr->strings.data[i]));
    return onnx_call_literal(c->call, &tensor);
}

berth_value_id onnx_int_list(onnx_compose *c, const int64_t *values, uint32_t count) {
    return c->status ? BERTH_NONE : onnx_call_ints(c->call, values, count);
}

berth_value_id onnx_transposed(onnx_compose *c, berth_value_id value, const int64_t *order,
                               uint32_t rank) {
    onnx_made made = onnx_start(c, BERTH_OP_TRANSPOSE, &value, 1, 1);
    onnx_set_ints(made, "perm", order, rank);
    return onnx_finish(made);
}

berth_value_id onnx_reshaped(onnx_compose *c, berth_value_id value, const int64_t *dims,
                             uint32_t rank) {
    return onnx_make2(c, BERTH_OP_RESHAPE, value, onnx_int_list(c, dims, rank));
}

berth_value_id onnx_unsqueezed(onnx_compose *c, berth_value_id value, int64_t axis) {
    return onnx_make2(c, BERTH_OP_UNSQUEEZE, value, onnx_int_list(c, &axis, 1));
}

berth_value_id onnx_squeezed(onnx_compose *c, berth_value_id value, int64_t axis) {
    return onnx_make2(c, BERTH_OP_SQUEEZE, value, onnx_int_list(c, &axis, 1));
}

berth_value_id onnx_concatenated(onnx_compose *c, const berth_value_id *values, uint32_t count,
                                 int64_t axis) {
    onnx_made made = onnx_start(c, BERTH_OP_CONCAT, values, count, 1);
    onnx_set_int(made, "axis", axis);
    return onnx_finish(made);
}

berth_value_id onnx_sliced(onnx_compose *c, berth_value_id value, int64_t axis, int64_t begin,
                           int64_t end, int64_t step) {
    berth_value_id inputs[5] = {value, onnx_int_list(c, &begin, 1), onnx_int_list(c, &end, 1),
                                onnx_int_list(c, &axis, 1), onnx_int_list(c, &step, 1)};
    return onnx_make(c, BERTH_OP_SLICE, inputs, 5);
}

static onnx_made start_gather(onnx_compose *c, berth_value_id value, berth_value_id indices,
                              int64_t axis) {
    onnx_made made = onnx_start(c, BERTH_OP_GATHER, (berth_value_id[]){value, indices}, 2, 1);
    onnx_set_int(made, "axis", axis);
    return made;
}

berth_value_id onnx_picked(onnx_compose *c, berth_value_id value, berth_value_id indices,
                           int64_t axis) {
    return onnx_finish(start_gather(c, value, indices, axis));
}

berth_value_id onnx_gathered(onnx_compose *c, berth_value_id value, berth_value_id indices,
                             int64_t axis) {
    onnx_made made = start_gather(c, value, indices, axis);
    onnx_set_int(made, BERTH_ATTR_IN_RANGE, 1);
    return onnx_finish(made);
}

berth_value_id onnx_reduced(onnx_compose *c, berth_op_kind kind, berth_value_id value,
                            const int64_t *axes, uint32_t count, bool keep) {
    berth_value_id inputs[2] = {value, axes ? onnx_int_list(c, axes, count) : BERTH_NONE};
    onnx_made made = onnx_start(c, kind, inputs, 2, 1);
    onnx_set_int(made, "keepdims", keep);
    return onnx_finish(made);
}

berth_value_id onnx_softmax_along(onnx_compose *c, berth_op_kind kind, berth_value_id value,
                                  int64_t axis) {
    onnx_made made = onnx_start(c, kind, &value, 1, 1);
    onnx_set_int(made, "axis", axis);
    return onnx_finish(made);
}

berth_value_id onnx_shape_of(onnx_compose *c, berth_value_id value) {
    if (c->status) return BERTH_NONE;
    berth_type type = onnx_call_type(c->call, value);
    if (berth_type_is_static(&type)) return onnx_int_list(c, type.dims, (uint32_t)type.rank);
    return onnx_make1(c, BERTH_OP_SHAPE_OF, value);
}

berth_value_id onnx_extent_of(onnx_compose *c, berth_value_id value, int axis) {
    int64_t known = onnx_compose_extent(c, value, axis);
    if (known >= 0) return onnx_scalar(c, BERTH_DTYPE_I64, (double)known);
    return onnx_gathered(c, onnx_make1(c, BERTH_OP_SHAPE_OF, value),
                         onnx_scalar(c, BERTH_DTYPE_I64, axis), 0);
}

berth_value_id onnx_counting(onnx_compose *c, berth_value_id count) {
    return onnx_make3(c, BERTH_OP_RANGE, onnx_scalar(c, BERTH_DTYPE_I64, 0), count,
                      onnx_scalar(c, BERTH_DTYPE_I64, 1));
}
