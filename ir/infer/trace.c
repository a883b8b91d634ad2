// Extents given by an operand: shape arithmetic is followed backwards from the operand to constants
// and shape_of, so that symbolic dimensions survive it (batch → shape_of → gather → concat →
// reshape).
#include "ir/dim.h"
#include "ir/infer/internal.h"

#define MAX_STEPS 256  // per question: shared subexpressions are visited once per use

typedef struct tracer {
    const berth_infer *x;
    int steps_left;
} tracer;

static void trace(tracer *t, berth_value_id value, berth_infer_ints *out);

// `count` elements of which nothing is known but their number.
static void unknown_of(const tracer *t, berth_value_id value, berth_infer_ints *out) {
    const berth_type *type = berth_type_get(t->x->module, t->x->graph->values.data[value].type);
    *out = (berth_infer_ints){0};
    if (type->kind != BERTH_TYPE_TENSOR || type->rank < 0 || type->rank > 1) return;
    int64_t count = type->rank == 0 ? 1 : type->dims[0];
    if (count < 0 || count > BERTH_INFER_MAX_INTS) return;
    out->known = true;
    out->count = (int)count;
    for (int i = 0; i < out->count; ++i) out->values[i] = BERTH_DIM_UNKNOWN;
}

static bool from_constant(const tracer *t, berth_value_id value, berth_infer_ints *out) {
    const berth_tensor *tensor = berth_graph_constant_of(t->x->module, t->x->graph, value);
    if (!tensor || tensor->rank > 1 || !berth_dtype_is_integer(tensor->dtype)) return false;
    int64_t count = berth_tensor_element_count(tensor);
    if (count > BERTH_INFER_MAX_INTS) return false;
    *out = (berth_infer_ints){.known = true, .count = (int)count};
    for (int i = 0; i < out->count; ++i) {
        int64_t entry = berth_tensor_get_i64(tensor, i);
        out->values[i] = entry < -1 ? BERTH_DIM_UNKNOWN : entry;  // below -1 lie the symbols
    }
    return true;
}

static void from_shape_of(const tracer *t, const berth_op *op, berth_infer_ints *out) {
    const berth_type *type =
        berth_type_get(t->x->module, t->x->graph->values.data[op->inputs[0]].type);
    if (type->kind != BERTH_TYPE_TENSOR || type->rank < 0) return;
    int64_t start = berth_attrs_int(t->x->module, &op->attrs, "start", 0);
    int64_t end = berth_attrs_int(t->x->module, &op->attrs, "end", type->rank);
    if (start < 0) start += type->rank;
    if (end < 0) end += type->rank;
    if (start < 0) start = 0;
    if (end > type->rank) end = type->rank;
    *out = (berth_infer_ints){.known = true};
    for (int64_t i = start; i < end; ++i) out->values[out->count++] = type->dims[i];
}

static void from_concat(tracer *t, const berth_op *op, berth_infer_ints *out) {
    berth_infer_ints joined = {.known = true};
    for (uint32_t i = 0; i < op->input_count; ++i) {
        berth_infer_ints part;
        trace(t, op->inputs[i], &part);
        if (!part.known || joined.count + part.count > BERTH_INFER_MAX_INTS) return;
        for (int k = 0; k < part.count; ++k) joined.values[joined.count++] = part.values[k];
    }
    *out = joined;
}

static void from_gather(tracer *t, const berth_op *op, berth_infer_ints *out) {
    const berth_tensor *indices = berth_graph_constant_of(t->x->module, t->x->graph, op->inputs[1]);
    berth_infer_ints data;
    if (!indices || indices->rank > 1 || berth_tensor_element_count(indices) > BERTH_INFER_MAX_INTS)
        return;
    trace(t, op->inputs[0], &data);
    if (!data.known) return;
    *out = (berth_infer_ints){.known = true, .count = (int)berth_tensor_element_count(indices)};
    for (int i = 0; i < out->count; ++i) {
        int64_t index = berth_tensor_get_i64(indices, i);
        if (index < 0) index += data.count;
        out->values[i] = index >= 0 && index < data.count ? data.values[index] : BERTH_DIM_UNKNOWN;
    }
}

static void from_slice(tracer *t, const berth_op *op, berth_infer_ints *out) {
    const berth_module *module = t->x->module;
    const berth_tensor *starts = berth_graph_constant_of(module, t->x->graph, op->inputs[1]);
    const berth_tensor *ends = berth_graph_constant_of(module, t->x->graph, op->inputs[2]);
    berth_infer_ints data;
    int64_t step = 1;
    if (!starts || !ends || berth_tensor_element_count(starts) != 1 ||
        berth_tensor_element_count(ends) != 1)
        return;
    if (op->input_count > 4 && op->inputs[4] != BERTH_NONE) {
        const berth_tensor *steps = berth_graph_constant_of(module, t->x->graph, op->inputs[4]);
        if (!steps || berth_tensor_element_count(steps) != 1) return;
        step = berth_tensor_get_i64(steps, 0);
    }
    trace(t, op->inputs[0], &data);
    if (!data.known || step < 1) return;
    int64_t start = berth_tensor_get_i64(starts, 0);
    int64_t end = berth_tensor_get_i64(ends, 0);
    if (start < 0) start += data.count;
    if (end < 0) end += data.count;
    if (start < 0) start = 0;
    if (end > data.count) end = data.count;
    *out = (berth_infer_ints){.known = true};
    for (int64_t i = start; i < end; i += step < data.count ? step : data.count + 1)
        out->values[out->count++] = data.values[i];
}

// Entries are extents, symbols, or the number -1, which is the only one below 0 that there is.
static int64_t combine(const tracer *t, berth_op_kind kind, int64_t a, int64_t b) {
    berth_module *m = t->x->module;
    if (a == BERTH_DIM_UNKNOWN || b == BERTH_DIM_UNKNOWN) return BERTH_DIM_UNKNOWN;
    if (a == -1 || b == -1) {
        if (kind == BERTH_OP_ADD && a != b) return berth_dim_scale(m, a == -1 ? b : a, 1, -1);
        if (kind == BERTH_OP_SUB && a != b && b == -1) return berth_dim_scale(m, a, 1, 1);
        return (kind == BERTH_OP_MUL || kind == BERTH_OP_DIV) && b == 1 ? a : BERTH_DIM_UNKNOWN;
    }
    switch (kind) {
    case BERTH_OP_ADD: return berth_dim_combine(m, BERTH_DIM_ADD, a, b);
    case BERTH_OP_SUB: return berth_dim_combine(m, BERTH_DIM_SUB, a, b);
    case BERTH_OP_MUL: return berth_dim_combine(m, BERTH_DIM_MUL, a, b);
    default: return berth_dim_combine(m, BERTH_DIM_FLOORDIV, a, b);
    }
}

static void from_arithmetic(tracer *t, const berth_op *op, berth_infer_ints *out) {
    berth_infer_ints a;
    berth_infer_ints b;
    trace(t, op->inputs[0], &a);
    trace(t, op->inputs[1], &b);
    if (!a.known || !b.known || (a.count != b.count && a.count != 1 && b.count != 1)) return;
    *out = (berth_infer_ints){.known = true, .count = a.count == 1 ? b.count : a.count};
    for (int i = 0; i < out->count; ++i)
        out->values[i] =
            combine(t, op->kind, a.values[a.count == 1 ? 0 : i], b.values[b.count == 1 ? 0 : i]);
}

static void trace(tracer *t, berth_value_id value, berth_infer_ints *out) {
    *out = (berth_infer_ints){0};
    if (value == BERTH_NONE || t->steps_left-- <= 0) return;
    unknown_of(t, value, out);
    berth_op_id def = t->x->graph->values.data[value].op;
    if (def == BERTH_NONE || from_constant(t, value, out)) return;
    const berth_op *op = &t->x->graph->ops.data[def];
    switch (op->kind) {
    case BERTH_OP_SHAPE_OF: from_shape_of(t, op, out); break;
    case BERTH_OP_CONCAT: from_concat(t, op, out); break;
    case BERTH_OP_GATHER: from_gather(t, op, out); break;
    case BERTH_OP_SLICE: from_slice(t, op, out); break;
    case BERTH_OP_IDENTITY:
    case BERTH_OP_CAST:
    case BERTH_OP_SQUEEZE:
    case BERTH_OP_UNSQUEEZE:
    case BERTH_OP_RESHAPE: {
        berth_infer_ints same;
        trace(t, op->inputs[0], &same);
        if (same.known && (!out->known || same.count == out->count)) *out = same;
        break;
    }
    case BERTH_OP_ADD:
    case BERTH_OP_SUB:
    case BERTH_OP_MUL:
    case BERTH_OP_DIV: from_arithmetic(t, op, out); break;
    default: break;
    }
}

berth_status berth_infer__extents(const berth_infer *x, uint32_t operand,
                                  berth_infer_ints *out_ints) {
    tracer t = {.x = x, .steps_left = MAX_STEPS};
    *out_ints = (berth_infer_ints){0};
    if (!berth_infer__has(x, operand)) return BERTH_OK;
    if (berth_infer__literal(x, operand)) {
        BERTH_TRY(berth_infer__ints(x, operand, out_ints));
        for (int i = 0; i < out_ints->count; ++i)
            if (out_ints->values[i] < -1)
                return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u: extent %d is %lld",
                                         operand, i, (long long)out_ints->values[i]);
        return BERTH_OK;
    }
    trace(&t, x->op->inputs[operand], out_ints);
    return BERTH_OK;
}
