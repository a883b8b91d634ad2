#include <string.h>

#include "compiler/onnx/importer.h"
#include "ir/infer.h"

static berth_graph *graph_of(const onnx_call *call) {
    return berth_graph_get(call->im->module, call->im->function);
}

berth_status onnx_call_fail(const onnx_call *call, berth_code code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    berth_status status = berth_status_make_at_v(code, __FILE__, __LINE__, format, arguments);
    va_end(arguments);
    if (code == BERTH_UNSUPPORTED) call->im->refused = call->node;
    return berth_status_prefix(status, "%s",
                               berth_loc_describe(call->im->module, call->loc, call->im->scratch));
}

bool onnx_call_has(const onnx_call *call, uint32_t input) {
    return input < call->input_count && call->inputs[input] != BERTH_NONE;
}

berth_type onnx_call_type(const onnx_call *call, berth_value_id value) {
    berth_type unknown = {.kind = BERTH_TYPE_TENSOR, .rank = -1};
    if (value == BERTH_NONE) return unknown;
    const berth_type *type =
        berth_type_get(call->im->module, graph_of(call)->values.data[value].type);
    return type->kind == BERTH_TYPE_TENSOR ? *type : unknown;
}

const berth_tensor *onnx_call_constant(const onnx_call *call, berth_value_id value) {
    return value == BERTH_NONE ? NULL
                               : berth_graph_constant_of(call->im->module, graph_of(call), value);
}

// ---- attributes ----

const onnx_attr *onnx_call_attr(const onnx_call *call, const char *name) {
    return onnx_attr_find(call->node, name);
}

int64_t onnx_call_int(const onnx_call *call, const char *name, int64_t fallback) {
    const onnx_attr *attr = onnx_call_attr(call, name);
    return attr && attr->type == ONNX_ATTR_INT ? attr->i : fallback;
}

double onnx_call_float(const onnx_call *call, const char *name, double fallback) {
    const onnx_attr *attr = onnx_call_attr(call, name);
    return attr && attr->type == ONNX_ATTR_FLOAT ? attr->f : fallback;
}

const char *onnx_call_string(const onnx_call *call, const char *name, const char *fallback) {
    const onnx_attr *attr = onnx_call_attr(call, name);
    return attr && attr->type == ONNX_ATTR_STRING ? attr->s : fallback;
}

// ---- operations ----

berth_op_id onnx_call_op(onnx_call *call, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t input_count, uint32_t output_count) {
    while (input_count && inputs[input_count - 1] == BERTH_NONE) input_count--;
    return berth_graph_add_op(call->im->module, call->im->function, call->im->region, kind, inputs,
                              input_count, output_count, call->loc);
}

berth_attrs *onnx_call_op_attrs(const onnx_call *call, berth_op_id op) {
    return &graph_of(call)->ops.data[op].attrs;
}

static void copy_strings(onnx_call *call, const onnx_attr *from, berth_attr *to) {
    berth_str_id *strings =
        berth_arena_new_array(call->im->arena, berth_str_id, from->strings.count);
    for (uint32_t i = 0; i < from->strings.count; ++i)
        strings[i] = berth_module_intern(call->im->module, from->strings.data[i]);
    to->strings = strings;
    to->count = from->strings.count;
}

// `kind` is the letter in the row; the node's types were checked before.
static berth_status copy_attr(onnx_call *call, berth_op_id op, const onnx_attr *from, char kind) {
    berth_attr to = {0};
    berth_arena *arena = call->im->arena;
    switch (kind) {
    case 'i': to.kind = BERTH_ATTR_INT, to.i = from->i; break;
    case 'f': to.kind = BERTH_ATTR_FLOAT, to.f = from->f; break;
    case 's':
        to.kind = BERTH_ATTR_STRING, to.s = berth_module_intern(call->im->module, from->s);
        break;
    case 'd':
        to.kind = BERTH_ATTR_DTYPE;
        to.dtype = berth_dtype_from_onnx(from->i);
        if (to.dtype == BERTH_DTYPE_NONE)
            return onnx_call_fail(call, BERTH_UNSUPPORTED,
                                  "attribute %s is element type %lld of ONNX (%s)", from->name,
                                  (long long)from->i, onnx_element_name(from->i));
        break;
    case 'I':
        to.kind = BERTH_ATTR_INTS, to.count = from->ints.count;
        to.ints = berth_arena_copy(arena, from->ints.data, from->ints.count * sizeof(int64_t));
        break;
    case 'F':
        to.kind = BERTH_ATTR_FLOATS, to.count = from->floats.count;
        to.floats = berth_arena_copy(arena, from->floats.data, from->floats.count * sizeof(double));
        break;
    case 'S':
        to.kind = BERTH_ATTR_STRINGS;
        copy_strings(call, from, &to);
        break;
    case 't': {
        berth_tensor *tensor = berth_arena_new(arena, berth_tensor);
        berth_status status = onnx_read_tensor(call->im, &from->tensor, tensor, NULL);
        if (status)
            return berth_status_prefix(
                status, "%s: attribute %s",
                berth_loc_describe(call->im->module, call->loc, call->im->scratch), from->name);
        to.kind = BERTH_ATTR_TENSOR, to.tensor = tensor;
        break;
    }
    default:
        return onnx_call_fail(call, BERTH_INTERNAL, "the row of %s has a bad attribute kind",
                              call->row->op_type);
    }
    berth_attrs_set(call->im->module, onnx_call_op_attrs(call, op), from->name, to);
    return BERTH_OK;
}

berth_status onnx_call_copy_attrs(onnx_call *call, berth_op_id op) {
    for (const char *at = call->row->attrs; *at;) {
        size_t length = strcspn(at, " ");
        size_t skip = (at[0] == '-' || at[0] == '!') ? 1 : 0;
        const char *name = berth_arena_strndup(call->im->scratch, at + skip, length - skip - 2);
        const onnx_attr *attr = at[0] == '-' ? NULL : onnx_call_attr(call, name);
        if (attr) BERTH_TRY(copy_attr(call, op, attr, at[length - 1]));
        at += length;
        while (*at == ' ') at++;
    }
    return BERTH_OK;
}

berth_status onnx_call_infer(onnx_call *call, berth_op_id op) {
    return berth_infer_op(call->im->module, call->im->function, op);
}

berth_value_id onnx_call_result(const onnx_call *call, berth_op_id op, uint32_t index) {
    return graph_of(call)->ops.data[op].outputs[index];
}

berth_status onnx_call_op1(onnx_call *call, berth_op_kind kind, const berth_value_id *inputs,
                           uint32_t input_count, berth_value_id *out_value) {
    berth_op_id op = onnx_call_op(call, kind, inputs, input_count, 1);
    *out_value = onnx_call_result(call, op, 0);
    return onnx_call_infer(call, op);
}

berth_status onnx_call_finish(onnx_call *call, berth_op_kind kind, const berth_value_id *inputs,
                              uint32_t input_count) {
    const berth_op_facts *facts = berth_op_facts_get(kind);
    uint32_t outputs = call->output_count;
    if (outputs < (uint32_t)facts->min_outputs) outputs = (uint32_t)facts->min_outputs;
    if (facts->max_outputs >= 0 && outputs > (uint32_t)facts->max_outputs)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "%u outputs are used, at most %d are supported", outputs,
                              facts->max_outputs);
    berth_op_id op = onnx_call_op(call, kind, inputs, input_count, outputs);
    BERTH_TRY(onnx_call_copy_attrs(call, op));
    BERTH_TRY(onnx_call_infer(call, op));
    for (uint32_t i = 0; i < call->output_count; ++i)
        call->outputs[i] = onnx_call_result(call, op, i);
    return BERTH_OK;
}

// ---- literals ----

berth_value_id onnx_call_literal(onnx_call *call, const berth_tensor *tensor) {
    return berth_graph_constant(call->im->module, call->im->function, call->im->region, tensor,
                                call->loc);
}

berth_value_id onnx_call_ints(onnx_call *call, const int64_t *values, uint32_t count) {
    int64_t dims[1] = {count};
    berth_tensor tensor = berth_tensor_create(call->im->arena, BERTH_DTYPE_I64, 1, dims);
    if (count) memcpy(tensor.data, values, count * sizeof(*values));
    return onnx_call_literal(call, &tensor);
}

berth_value_id onnx_call_number(onnx_call *call, berth_dtype dtype, double value) {
    berth_tensor tensor = berth_tensor_create(call->im->arena, dtype, 0, NULL);
    berth_tensor_set_f64(&tensor, 0, value);
    return onnx_call_literal(call, &tensor);
}

berth_value_id onnx_call_attr_operand(onnx_call *call, const char *name) {
    const onnx_attr *attr = onnx_call_attr(call, name);
    return attr ? onnx_call_ints(call, attr->ints.data, attr->ints.count) : BERTH_NONE;
}
