// Convolutions and products of dequantised operands as sums of integers.
#include <math.h>
#include <string.h>

#include "compiler/passes/integers.h"

#define MAX_SUM 2147483647.0
#define MAX_INPUT 255.0   // |x - zero| of 8-bit types
#define MAX_WEIGHT 255.0  // |w - zero|

typedef struct sum {
    berth_rewriter *r;
    berth_op_id id;
    berth_op op;
    berth_quantized x, w;
    bool conv;
    bool transposed;  // the weights of a gemm, [outputs, depth]
    int rank;         // of the result
    int64_t outputs;
    int64_t depth;  // terms of a sum
    double factor;  // gemm's alpha
    const berth_tensor *bias;
    double bias_factor;  // gemm's beta
} sum;

static berth_type type_of(const sum *s, berth_value_id value) {
    berth_graph *graph = berth_graph_get(s->r->module, s->r->function);
    return *berth_type_get(s->r->module, graph->values.data[value].type);
}

static bool one_or(const berth_tensor *tensor, int64_t count) {
    return !tensor || berth_tensor_element_count(tensor) == 1 ||
           (tensor->rank == 1 && tensor->dims[0] == count);
}

// Parameters of the weights: positive scales, along the outputs where there are several.
static bool understands_weights(const sum *s) {
    bool several = berth_tensor_element_count(s->w.scale) > 1 ||
                   (s->w.zero && berth_tensor_element_count(s->w.zero) > 1);
    int axis = s->conv || s->transposed ? 0 : 1;
    if (several && s->w.axis != axis) return false;
    if (!one_or(s->w.scale, s->outputs) || !one_or(s->w.zero, s->outputs)) return false;
    for (int64_t i = 0; i < berth_tensor_element_count(s->w.scale); ++i) {
        double scale = berth_tensor_get_f64(s->w.scale, i);
        if (!isfinite(scale) || scale <= 0) return false;
    }
    return true;
}

// A bias is a constant: one per output, or one for all.
static bool read_bias(sum *s) {
    bool has =
        s->op.kind != BERTH_OP_MATMUL && s->op.input_count > 2 && s->op.inputs[2] != BERTH_NONE;
    if (!has) return true;
    s->bias = berth_rewriter_constant(s->r, s->op.inputs[2]);
    if (!s->bias || s->bias->dtype != BERTH_DTYPE_F32) return false;
    int64_t count = berth_tensor_element_count(s->bias);
    if (count == 1) return true;
    return count == s->outputs && s->bias->dims[s->bias->rank - 1] == s->outputs;
}

static bool describe(sum *s) {
    const berth_attrs *attrs = &s->op.attrs;
    berth_module *module = s->r->module;
    if (!berth_quantized_get(s->r, s->op.inputs[0], &s->x) ||
        !berth_quantized_get(s->r, s->op.inputs[1], &s->w) || !berth_quantized_is_uniform(&s->x))
        return false;
    const berth_tensor *w = berth_rewriter_raw_constant(s->r, s->w.value);
    berth_type out = type_of(s, s->op.outputs[0]);
    if (!w || berth_rewriter_raw_constant(s->r, s->x.value) || out.dtype != BERTH_DTYPE_F32)
        return false;
    s->conv = s->op.kind == BERTH_OP_CONV;
    s->factor = s->bias_factor = 1;
    s->rank = out.rank;
    if (!s->conv && (w->rank != 2 || out.rank < 2 || out.rank != type_of(s, s->x.value).rank))
        return false;
    if (s->op.kind == BERTH_OP_GEMM) {
        if (berth_attrs_int(module, attrs, "transA", 0)) return false;
        s->transposed = berth_attrs_int(module, attrs, "transB", 0) != 0;
        s->factor = berth_attrs_float(module, attrs, "alpha", 1);
        s->bias_factor = berth_attrs_float(module, attrs, "beta", 1);
    }
    s->outputs = w->dims[s->conv || s->transposed ? 0 : 1];
    s->depth = s->outputs ? berth_tensor_element_count(w) / s->outputs : 0;
    bool fits = (double)s->depth * MAX_INPUT * MAX_WEIGHT < MAX_SUM;
    return fits && s->outputs > 0 && s->factor > 0 && read_bias(s) && understands_weights(s);
}

// x_scale * w_scale of one output, in floats as the operators of ONNX multiply them.
static float scale_of(const sum *s, int64_t output) {
    bool one = berth_tensor_element_count(s->w.scale) == 1;
    float scale = (float)berth_tensor_get_f64(s->x.scale, 0) *
                  (float)berth_tensor_get_f64(s->w.scale, one ? 0 : output);
    return scale * (float)s->factor;
}

// One value per output, or one for all, that broadcasts against the result.
static berth_tensor per_output(const sum *s, berth_dtype dtype, int64_t count) {
    int64_t dims[BERTH_MAX_RANK];
    int at = s->conv ? 1 : s->rank - 1;
    for (int d = 0; d < s->rank; ++d) dims[d] = d == at ? count : 1;
    return berth_tensor_create(s->r->module->arena, dtype, count == 1 ? 0 : s->rank, dims);
}

static berth_value_id add_constant(sum *s, const berth_tensor *tensor) {
    return berth_rewriter_insert_constant(s->r, s->id, tensor, s->op.loc);
}

// The bias in units of the sum. False: some of it is too large for that.
static bool fill_bias(const sum *s, berth_tensor *whole) {
    double left = MAX_SUM - (double)s->depth * MAX_INPUT * MAX_WEIGHT;
    bool one = berth_tensor_element_count(s->bias) == 1;
    for (int64_t i = 0; i < s->outputs; ++i) {
        double value = berth_tensor_get_f64(s->bias, one ? 0 : i) * s->bias_factor;
        value = nearbyint(value / (double)scale_of(s, i));
        if (!(fabs(value) < left)) return false;
        berth_tensor_set_i64(whole, i, (int64_t)value);
    }
    return true;
}

static berth_status add_bias(sum *s, berth_value_id *total, bool *out_added) {
    berth_tensor whole = per_output(s, BERTH_DTYPE_I32, s->outputs);
    *out_added = fill_bias(s, &whole);
    if (!*out_added) return BERTH_OK;
    berth_value_id both[2] = {*total, add_constant(s, &whole)};
    return berth_rewriter_insert(s->r, s->id, BERTH_OP_ADD, both, 2, NULL, s->op.loc, total);
}

// The same in floats, after the scale.
static berth_status add_real_bias(sum *s, berth_value_id *total) {
    bool one = berth_tensor_element_count(s->bias) == 1;
    berth_tensor real = per_output(s, BERTH_DTYPE_F32, s->outputs);
    for (int64_t i = 0; i < s->outputs; ++i)
        berth_tensor_set_f64(&real, i, berth_tensor_get_f64(s->bias, one ? 0 : i) * s->bias_factor);
    berth_value_id both[2] = {*total, add_constant(s, &real)};
    return berth_rewriter_insert(s->r, s->id, BERTH_OP_ADD, both, 2, NULL, s->op.loc, total);
}

// The weights of a gemm as those of a product.
static berth_value_id weights_of(sum *s) {
    if (!s->transposed) return s->w.value;
    const berth_tensor *w = berth_rewriter_constant(s->r, s->w.value);
    int64_t dims[2] = {w->dims[1], w->dims[0]};
    berth_tensor turned = berth_tensor_create(s->r->module->arena, w->dtype, 2, dims);
    for (int64_t i = 0; i < dims[0]; ++i)
        for (int64_t j = 0; j < dims[1]; ++j)
            berth_tensor_set_i64(&turned, i * dims[1] + j,
                                 berth_tensor_get_i64(w, j * dims[0] + i));
    return add_constant(s, &turned);
}

static berth_status real_of(sum *s, berth_value_id *total) {
    berth_attrs to = {0};
    berth_attrs_set(s->r->module, &to, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = BERTH_DTYPE_F32});
    BERTH_TRY(berth_rewriter_insert(s->r, s->id, BERTH_OP_CAST, total, 1, &to, s->op.loc, total));
    int64_t scales = berth_tensor_element_count(s->w.scale);
    berth_tensor scale = per_output(s, BERTH_DTYPE_F32, scales);
    for (int64_t i = 0; i < scales; ++i) berth_tensor_set_f64(&scale, i, (double)scale_of(s, i));
    berth_value_id both[2] = {*total, add_constant(s, &scale)};
    return berth_rewriter_insert(s->r, s->id, BERTH_OP_MUL, both, 2, NULL, s->op.loc, total);
}

berth_status berth_integers__sum(berth_rewriter *r, berth_op_id id) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    sum s = {.r = r, .id = id, .op = graph->ops.data[id]};
    if (!describe(&s)) return BERTH_OK;
    berth_value_id inputs[4] = {s.x.value, weights_of(&s), s.x.zero_value, s.w.zero_value};
    berth_value_id total = BERTH_NONE;
    berth_op_kind kind = s.conv ? BERTH_OP_CONV_INTEGER : BERTH_OP_MATMUL_INTEGER;
    const berth_attrs *attrs = s.conv ? &s.op.attrs : NULL;
    BERTH_TRY(berth_rewriter_insert(r, id, kind, inputs, 4, attrs, s.op.loc, &total));
    bool added = !s.bias;
    if (s.bias) BERTH_TRY(add_bias(&s, &total, &added));
    BERTH_TRY(real_of(&s, &total));
    if (!added) BERTH_TRY(add_real_bias(&s, &total));
    berth_rewriter_replace(r, s.op.outputs[0], total);
    return BERTH_OK;
}

// ---- as one operation ---------------------------------------------------------------------------

// Rows that are maps one after the other: the maps, of which a product is a convolution with windows as
// large as they are. False: they are none.
static bool maps_of(sum *s, int64_t rows, berth_value_id *out_x, int64_t dims[4]) {
    const berth_op *made = berth_rewriter_def(s->r, s->x.value);
    if (!made || (made->kind != BERTH_OP_FLATTEN && made->kind != BERTH_OP_RESHAPE)) return false;
    berth_value_id before = berth_rewriter_resolve(s->r, made->inputs[0]);
    berth_type x = type_of(s, before);
    if (!berth_type_is_static(&x) || x.rank != 4 || x.dims[0] != rows ||
        x.dims[1] * x.dims[2] * x.dims[3] != s->depth)
        return false;
    memcpy(dims, x.dims, 4 * sizeof(dims[0]));
    *out_x = before;
    return true;
}

// Weights of a product for maps of these dimensions, or as they are.
static berth_value_id whole_weights(sum *s, const int64_t maps[4]) {
    if (s->conv) return s->w.value;
    const berth_tensor *w = berth_rewriter_constant(s->r, s->w.value);
    int64_t dims[4] = {s->outputs, maps[1], maps[2], maps[3]};
    berth_tensor made = berth_tensor_create(s->r->module->arena, w->dtype, 4, dims);
    for (int64_t o = 0; o < s->outputs; ++o)
        for (int64_t k = 0; k < s->depth; ++k)
            berth_tensor_set_i64(
                &made, o * s->depth + k,
                berth_tensor_get_i64(w, s->transposed ? o * s->depth + k : k * s->outputs + o));
    return add_constant(s, &made);
}

// False: no bias of integers.
static bool whole_bias(sum *s, berth_value_id *out) {
    *out = BERTH_NONE;
    if (!s->bias) return true;
    berth_tensor whole = berth_tensor_create(s->r->module->arena, BERTH_DTYPE_I32, 1, &s->outputs);
    if (!fill_bias(s, &whole)) return false;
    *out = add_constant(s, &whole);
    return true;
}

static berth_value_id zero_of(sum *s, const berth_quantized *q) {
    if (q->zero_value != BERTH_NONE) return q->zero_value;
    berth_tensor zero =
        berth_tensor_create(s->r->module->arena, type_of(s, q->value).dtype, 0, NULL);
    return add_constant(s, &zero);
}

static berth_status reshaped(sum *s, int rank, const int64_t *dims, berth_value_id *value) {
    int64_t count = rank;
    berth_tensor shape = berth_tensor_create(s->r->module->arena, BERTH_DTYPE_I64, 1, &count);
    for (int d = 0; d < rank; ++d) berth_tensor_set_i64(&shape, d, dims[d]);
    berth_value_id inputs[2] = {*value, add_constant(s, &shape)};
    return berth_rewriter_insert(s->r, s->id, BERTH_OP_RESHAPE, inputs, 2, NULL, s->op.loc, value);
}

berth_status berth_integers__whole_sum(berth_rewriter *r, berth_op_id id, berth_op_id at,
                                       const berth_quantized *y, berth_value_id *out_result) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    sum s = {.r = r, .id = id, .op = graph->ops.data[id]};
    berth_value_id bias = BERTH_NONE, x = BERTH_NONE;
    *out_result = BERTH_NONE;
    if (!describe(&s)) return BERTH_OK;
    s.id = at;
    berth_type out = type_of(&s, s.op.outputs[0]);
    if (!s.conv && (s.rank != 2 || !berth_type_is_static(&out) || s.factor != 1)) return BERTH_OK;
    if (!whole_bias(&s, &bias)) return BERTH_OK;
    int64_t pixels[4] = {out.dims[0], s.depth, 1, 1};
    x = s.x.value;
    if (!s.conv && !maps_of(&s, out.dims[0], &x, pixels)) BERTH_TRY(reshaped(&s, 4, pixels, &x));
    berth_value_id inputs[9] = {x,
                                s.x.scale_value,
                                zero_of(&s, &s.x),
                                whole_weights(&s, pixels),
                                s.w.scale_value,
                                zero_of(&s, &s.w),
                                y->scale_value,
                                y->zero_value,
                                bias};
    BERTH_TRY(berth_rewriter_insert(r, at, BERTH_OP_QLINEAR_CONV, inputs,
                                    bias == BERTH_NONE ? 8 : 9, s.conv ? &s.op.attrs : NULL,
                                    s.op.loc, out_result));
    return s.conv ? BERTH_OK : reshaped(&s, 2, out.dims, out_result);
}
