// quantize_linear and the operations in front of it as one quantised operation.
#include "compiler/passes/integers.h"

typedef struct finder {
    berth_rewriter *r;
    berth_op_id id;
    berth_op op;        // the quantize_linear
    berth_quantized y;  // its parameters
    berth_dtype dtype;
} finder;

static berth_op_id op_before(const finder *f, berth_value_id value) {
    value = berth_rewriter_resolve(f->r, value);
    const berth_graph *graph = berth_graph_get(f->r->module, f->r->function);
    return berth_rewriter_uses(f->r, value) == 1 ? graph->values.data[value].op : BERTH_NONE;
}

static const berth_type *type_of(const finder *f, berth_value_id value) {
    const berth_graph *graph = berth_graph_get(f->r->module, f->r->function);
    return berth_type_get(f->r->module, graph->values.data[value].type);
}

static bool same_dims(const berth_type *a, const berth_type *b) {
    bool same = a->rank == b->rank && berth_type_is_static(a) && berth_type_is_static(b);
    for (int d = 0; same && d < a->rank; ++d) same = a->dims[d] == b->dims[d];
    return same;
}

static berth_status add(finder *f, const berth_op *sum, berth_value_id *out) {
    berth_quantized a, b;
    *out = BERTH_NONE;
    if (!berth_quantized_get(f->r, sum->inputs[0], &a) ||
        !berth_quantized_get(f->r, sum->inputs[1], &b) || !berth_quantized_is_uniform(&a) ||
        !berth_quantized_is_uniform(&b) || a.zero_value == BERTH_NONE ||
        b.zero_value == BERTH_NONE || !same_dims(type_of(f, a.value), type_of(f, b.value)))
        return BERTH_OK;
    berth_value_id inputs[8] = {a.value,       a.scale_value, a.zero_value,     b.value,
                                b.scale_value, b.zero_value,  f->y.scale_value, f->y.zero_value};
    return berth_rewriter_insert(f->r, f->id, BERTH_OP_QLINEAR_ADD, inputs, 8, NULL, sum->loc, out);
}

// The attributes of an average over whole maps as those of one over windows.
static berth_attrs whole_window(finder *f, const berth_type *x) {
    berth_attrs attrs = {0};
    berth_attrs_set_ints(f->r->module, &attrs, "kernel_shape", x->dims + 2, (uint32_t)x->rank - 2);
    return attrs;
}

static berth_status average(finder *f, const berth_op *op, berth_value_id *out) {
    berth_quantized x;
    *out = BERTH_NONE;
    if (!berth_quantized_get(f->r, op->inputs[0], &x) || !berth_quantized_is_uniform(&x) ||
        x.zero_value == BERTH_NONE)
        return BERTH_OK;
    const berth_type type = *type_of(f, x.value);
    if (!berth_type_is_static(&type) || type.rank < 3) return BERTH_OK;
    berth_attrs attrs = op->kind == BERTH_OP_AVERAGE_POOL ? op->attrs : whole_window(f, &type);
    berth_value_id inputs[5] = {x.value, x.scale_value, x.zero_value, f->y.scale_value,
                                f->y.zero_value};
    return berth_rewriter_insert(f->r, f->id, BERTH_OP_QLINEAR_AVERAGE_POOL, inputs, 5, &attrs,
                                 op->loc, out);
}

// A relu of real numbers as one of their integers; where the type saturates at 0 there is none.
static berth_status bounded(finder *f, berth_loc_id loc, berth_value_id *value) {
    double zero = berth_tensor_get_f64(f->y.zero, 0);
    if (zero == (f->dtype == BERTH_DTYPE_I8 ? -128 : 0)) return BERTH_OK;
    berth_value_id inputs[2] = {*value, f->y.zero_value};
    return berth_rewriter_insert(f->r, f->id, zero == 0 ? BERTH_OP_RELU : BERTH_OP_MAX, inputs,
                                 zero == 0 ? 1 : 2, NULL, loc, value);
}

// A value of integers that mean what those of the quantize_linear do.
static bool is_same(const finder *f, berth_value_id value, berth_quantized *out) {
    return berth_quantized_get(f->r, value, out) && berth_quantized_is_uniform(out) && out->zero &&
           type_of(f, out->value)->dtype == f->dtype &&
           berth_tensor_get_f64(out->scale, 0) == berth_tensor_get_f64(f->y.scale, 0) &&
           berth_tensor_get_f64(out->zero, 0) == berth_tensor_get_f64(f->y.zero, 0);
}

berth_status berth_integers__whole(berth_rewriter *r, berth_op_id id) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    finder f = {.r = r, .id = id, .op = graph->ops.data[id]};
    berth_quantized same;
    if (!berth_quantize_get(r, id, &f.y) || !f.y.zero) return BERTH_OK;
    f.dtype = type_of(&f, f.op.outputs[0])->dtype;
    if (berth_quantized_get(r, f.y.value, &same))
        return berth_integers__quantize(r, id);  // the same integers, or other ones
    berth_op_id before = op_before(&f, f.y.value), relu = BERTH_NONE;
    if (before != BERTH_NONE && graph->ops.data[before].kind == BERTH_OP_RELU) {
        relu = before;
        if (is_same(&f, graph->ops.data[relu].inputs[0], &same)) {
            berth_value_id value = same.value;
            BERTH_TRY(bounded(&f, graph->ops.data[relu].loc, &value));
            berth_rewriter_replace(r, f.op.outputs[0], value);
            return BERTH_OK;
        }
        before = op_before(&f, graph->ops.data[relu].inputs[0]);
    }
    if (before == BERTH_NONE) return BERTH_OK;
    berth_op op = graph->ops.data[before];
    berth_loc_id relu_loc = relu == BERTH_NONE ? op.loc : graph->ops.data[relu].loc;
    berth_value_id result = BERTH_NONE;
    if (op.kind == BERTH_OP_ADD) BERTH_TRY(add(&f, &op, &result));
    if (op.kind == BERTH_OP_AVERAGE_POOL || op.kind == BERTH_OP_GLOBAL_AVERAGE_POOL)
        BERTH_TRY(average(&f, &op, &result));
    if (op.kind == BERTH_OP_CONV || op.kind == BERTH_OP_MATMUL || op.kind == BERTH_OP_GEMM)
        BERTH_TRY(berth_integers__whole_sum(r, before, id, &f.y, &result));
    if (result == BERTH_NONE) return BERTH_OK;
    if (relu != BERTH_NONE) BERTH_TRY(bounded(&f, relu_loc, &result));
    berth_rewriter_replace(r, f.op.outputs[0], result);
    return BERTH_OK;
}
