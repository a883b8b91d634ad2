// Quantisation and the integer operators. Scaling is done in float like ONNX Runtime and the
// generated kernels do it, so that ties round the same way; rounding is half to even, then
// saturation.
#include <math.h>
#include <string.h>

#include "ir/eval/conv.h"
#include "ir/eval/internal.h"
#include "ir/eval/matmul.h"
#include "ir/graph/op_params.h"

static void set_quantized(berth_tensor *out, int64_t index, float scaled, double zero_point) {
    double value = (double)nearbyintf(scaled) + zero_point;
    berth_tensor_set_i64(out, index, (int64_t)berth_eval__saturate(out->dtype, value));
}

// ---- quantize_linear, dequantize_linear

// Where the scale and zero point of element i are: one for all, one per slice of an axis, or one
// per block of `block` elements of it.
typedef struct scale_map {
    int64_t extent, inner, block, blocks;
    bool per_tensor;
} scale_map;

static berth_status map_scales(const berth_eval_context *ctx, const berth_tensor *x,
                               const berth_tensor *scale, const berth_tensor *zero,
                               scale_map *out) {
    int axis = 0;
    int64_t count = berth_tensor_element_count(scale);
    int64_t block = berth_eval__int(ctx, "block_size", 0);
    *out = (scale_map){.per_tensor = scale->rank == 0 || (count == 1 && block == 0)};
    if (zero) BERTH_TRY(berth_eval__need_count(zero, "the zero point", count));
    if (out->per_tensor) return berth_eval__need_count(scale, "the scale", 1);
    BERTH_TRY(berth_eval__axis(ctx, 1, x->rank, &axis));
    out->extent = x->dims[axis];
    out->inner = berth_eval__product(x->dims, axis + 1, x->rank);
    out->block = block > 0 ? block : 1;
    out->blocks = block > 0 ? (out->extent + block - 1) / block : out->extent;
    if (block <= 0) return berth_eval__need_count(scale, "the scale", out->extent);
    int64_t outer = berth_eval__product(x->dims, 0, axis);
    return berth_eval__need_count(scale, "the scale", outer * out->blocks * out->inner);
}

static int64_t scale_index(const scale_map *m, int64_t i, bool blocked) {
    if (m->per_tensor) return 0;
    int64_t place = i / m->inner % m->extent;
    if (!blocked) return place;
    int64_t outer = i / (m->inner * m->extent);
    return (outer * m->blocks + place / m->block) * m->inner + i % m->inner;
}

berth_status berth_eval__quantize_linear(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *scale = &ctx->inputs[1];
    const berth_tensor *zero = berth_eval__optional(ctx, 2);
    scale_map map;
    berth_dtype dtype = zero ? zero->dtype : berth_eval__dtype(ctx, "output_dtype", BERTH_DTYPE_U8);
    bool blocked = berth_eval__int(ctx, "block_size", 0) > 0;
    if (!berth_dtype_is_integer(dtype))
        return berth_status_make(BERTH_UNSUPPORTED, "quantising to %s", berth_dtype_name(dtype));
    BERTH_TRY(map_scales(ctx, x, scale, zero, &map));
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        int64_t s = scale_index(&map, i, blocked);
        float value = (float)berth_tensor_get_f64(x, i) / (float)berth_tensor_get_f64(scale, s);
        set_quantized(&ctx->outputs[0], i, value, zero ? berth_tensor_get_f64(zero, s) : 0);
    }
    return BERTH_OK;
}

berth_status berth_eval__dequantize_linear(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *scale = &ctx->inputs[1];
    const berth_tensor *zero = berth_eval__optional(ctx, 2);
    scale_map map;
    bool blocked = berth_eval__int(ctx, "block_size", 0) > 0;
    BERTH_TRY(berth_eval__need_float(ctx, 1));
    BERTH_TRY(map_scales(ctx, x, scale, zero, &map));
    BERTH_TRY(berth_eval__output(ctx, 0, scale->dtype, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        int64_t s = scale_index(&map, i, blocked);
        double shift = zero ? berth_tensor_get_f64(zero, s) : 0;
        berth_eval__set_f64(&ctx->outputs[0], i,
                            (berth_tensor_get_f64(x, i) - shift) * berth_tensor_get_f64(scale, s));
    }
    return BERTH_OK;
}

// The operator text's function, step by step in float.
berth_status berth_eval__dynamic_quantize_linear(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_U8, x->rank, x->dims));
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_F32, 0, NULL));
    BERTH_TRY(berth_eval__output(ctx, 2, BERTH_DTYPE_U8, 0, NULL));
    float low = 0, high = 0;
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        float value = (float)berth_tensor_get_f64(x, i);
        low = fminf(low, value);
        high = fmaxf(high, value);
    }
    float scale = (high - low) / 255;
    if (scale == 0) scale = 1;
    double zero = berth_eval__saturate(BERTH_DTYPE_U8, (double)nearbyintf(0 - low / scale));
    berth_tensor_set_f64(&ctx->outputs[1], 0, (double)scale);
    berth_tensor_set_i64(&ctx->outputs[2], 0, (int64_t)zero);
    for (int64_t i = 0; i < count; ++i)
        set_quantized(&ctx->outputs[0], i, (float)berth_tensor_get_f64(x, i) / scale, zero);
    return BERTH_OK;
}

// ---- integer products

// Elements minus their zero point, which is one for all or broadcasts to them by ONNX's rules once a vector
// has `inner` dimensions of 1 behind its own: one per row of matrices or per channel of weights.
static berth_status load_shifted(berth_eval_context *ctx, const berth_tensor *x,
                                 const berth_tensor *zero, int inner, const double **out) {
    int64_t count = berth_tensor_element_count(x);
    if (!berth_dtype_is_integer(x->dtype))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "operand is %s, not a quantised type",
                                 berth_dtype_name(x->dtype));
    const double *values = berth_eval__load_f64(ctx, x);
    double *shifted = berth_eval__doubles(ctx, count);
    const bool several = zero && berth_tensor_element_count(zero) != 1;
    berth_tensor shaped = several ? *zero : (berth_tensor){0}, zeros = {0};
    while (several && zero->rank == 1 && shaped.rank < 1 + inner) shaped.dims[shaped.rank++] = 1;
    if (several)
        BERTH_TRY(berth_status_prefix(berth_eval__expand(ctx, &shaped, x->rank, x->dims, &zeros),
                                      "the zero point"));
    for (int64_t i = 0; i < count; ++i)
        shifted[i] = values[i] - (several ? berth_tensor_get_f64(&zeros, i)
                                  : zero  ? berth_tensor_get_f64(zero, 0)
                                          : 0);
    *out = shifted;
    return BERTH_OK;
}

static void store_wrapped(berth_tensor *out, const double *sums) {
    int64_t count = berth_tensor_element_count(out);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(out, i, (int64_t)sums[i]);
}

// Zero points: of A one per row, of B one per column, also of each matrix by itself.
static berth_status matmul_sums(berth_eval_context *ctx, const berth_tensor *a,
                                const berth_tensor *b, const berth_tensor *a_zero,
                                const berth_tensor *b_zero, berth_matmul_shape *shape,
                                const double **out) {
    const double *left = NULL, *right = NULL;
    BERTH_TRY(berth_eval__matmul_shape(ctx, a, b, shape));
    BERTH_TRY(load_shifted(ctx, a, a_zero, 1, &left));
    BERTH_TRY(load_shifted(ctx, b, b_zero, 0, &right));
    *out = berth_eval__matmul_sums(ctx, shape, left, right);
    return BERTH_OK;
}

berth_status berth_eval__matmul_integer(berth_eval_context *ctx) {
    berth_matmul_shape shape;
    const double *sums = NULL;
    BERTH_TRY(matmul_sums(ctx, &ctx->inputs[0], &ctx->inputs[1], berth_eval__optional(ctx, 2),
                          berth_eval__optional(ctx, 3), &shape, &sums));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I32, shape.rank, shape.dims));
    store_wrapped(&ctx->outputs[0], sums);
    return BERTH_OK;
}

berth_status berth_eval__conv_integer(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *w = &ctx->inputs[1];
    const double *values = NULL, *weights = NULL;
    berth_conv_shape shape;
    BERTH_TRY(berth_eval__conv_shape(ctx, x, w, &shape));
    BERTH_TRY(load_shifted(ctx, x, berth_eval__optional(ctx, 2), 0, &values));
    BERTH_TRY(load_shifted(ctx, w, berth_eval__optional(ctx, 3), w->rank - 1, &weights));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I32, x->rank, shape.dims));
    // Around what is summed up lies 0: the padding comes off everything, its sum with all weights back.
    double padding = (double)berth_eval__int(ctx, BERTH_CONV_PAD_VALUE, 0);
    int64_t count = berth_tensor_element_count(x), all = berth_tensor_element_count(w);
    int64_t each = shape.out_channels ? all / shape.out_channels : 1;
    double *inside = berth_eval__doubles(ctx, count);
    double *whole = berth_eval__doubles(ctx, shape.out_channels);
    for (int64_t i = 0; i < count; ++i) inside[i] = values[i] - padding;
    for (int64_t i = 0; i < all; ++i) whole[i / each] += padding * weights[i];
    const double *sums = berth_eval__conv_sums(ctx, &shape, x, inside, weights, false);
    int64_t plane = berth_eval__product(shape.dims, 2, x->rank);
    count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_i64(&ctx->outputs[0], i,
                             (int64_t)(sums[i] + whole[i / plane % shape.out_channels]));
    return BERTH_OK;
}

berth_status berth_eval_unpack_bits(const berth_module *module, const berth_op *op,
                                    const berth_tensor *const operands[3], int64_t depth,
                                    berth_arena *arena, berth_tensor *out) {
    const berth_tensor *bytes = operands[0], *scale = operands[1], *zero = operands[2];
    berth_bits_shape s;
    BERTH_TRY(berth_bits_resolve(module, op, depth, &s));
    if (bytes->dtype != BERTH_DTYPE_U8 || bytes->rank != 2 || bytes->dims[0] != s.rows)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the weights are no %lld rows of bytes",
                                 (long long)s.rows);
    int64_t columns = bytes->dims[1];
    BERTH_TRY(berth_eval__need_count(scale, "the scale", s.blocks * columns));
    if (zero) BERTH_TRY(berth_eval__need_count(zero, "the zero point", s.blocks * columns));
    *out = berth_tensor_create(arena, BERTH_DTYPE_F32, 2, (int64_t[]){depth, columns});
    for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < columns; ++j) {
            int64_t of_block = k / s.block * columns + j;
            int64_t byte = berth_tensor_get_i64(bytes, k / s.per_byte * columns + j);
            int64_t number = byte >> (k % s.per_byte * s.bits) & ((1 << s.bits) - 1);
            double origin = zero ? berth_tensor_get_f64(zero, of_block) : 1 << (s.bits - 1);
            berth_tensor_set_f64(out, k * columns + j,
                                 ((double)number - origin) * berth_tensor_get_f64(scale, of_block));
        }
    return BERTH_OK;
}

berth_status berth_eval__matmul_bits(berth_eval_context *ctx) {
    const berth_tensor *a = &ctx->inputs[0];
    const berth_tensor *packed[3] = {&ctx->inputs[1], &ctx->inputs[2],
                                     berth_eval__optional(ctx, 3)};
    berth_tensor weights;
    berth_matmul_shape shape;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 1, BERTH_MAX_RANK));
    BERTH_TRY(berth_eval_unpack_bits(ctx->module, ctx->op, packed, a->dims[a->rank - 1],
                                     ctx->scratch, &weights));
    BERTH_TRY(berth_eval__matmul_shape(ctx, a, &weights, &shape));
    BERTH_TRY(berth_eval__output(ctx, 0, a->dtype, shape.rank, shape.dims));
    const double *sums = berth_eval__matmul_sums(ctx, &shape, berth_eval__load_f64(ctx, a),
                                                 berth_eval__load_f64(ctx, &weights));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i) berth_eval__set_f64(&ctx->outputs[0], i, sums[i]);
    return BERTH_OK;
}

// One scale, or one per slice.
static berth_status check_scale(const berth_tensor *scale, const char *what, int64_t extent) {
    if (!berth_dtype_is_float(scale->dtype))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s is %s", what,
                                 berth_dtype_name(scale->dtype));
    if (berth_tensor_element_count(scale) == 1) return BERTH_OK;
    return berth_eval__need_count(scale, what, extent);
}

static float scale_at(const berth_tensor *scale, int64_t slice) {
    return (float)berth_tensor_get_f64(scale, berth_tensor_element_count(scale) == 1 ? 0 : slice);
}

berth_status berth_eval__qlinear_matmul(berth_eval_context *ctx) {
    const berth_tensor *in = ctx->inputs, *y_zero = &in[7];
    berth_matmul_shape shape;
    const double *sums = NULL;
    BERTH_TRY(matmul_sums(ctx, &in[0], &in[3], &in[2], &in[5], &shape, &sums));
    BERTH_TRY(check_scale(&in[1], "a_scale", shape.rows));
    BERTH_TRY(check_scale(&in[4], "b_scale", shape.columns));
    BERTH_TRY(check_scale(&in[6], "y_scale", 1));
    BERTH_TRY(berth_eval__need_count(y_zero, "y_zero_point", 1));
    BERTH_TRY(berth_eval__output(ctx, 0, y_zero->dtype, shape.rank, shape.dims));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i) {
        float scale = scale_at(&in[1], i / shape.columns % shape.rows) *
                      scale_at(&in[4], i % shape.columns) / scale_at(&in[6], 0);
        set_quantized(&ctx->outputs[0], i, (float)sums[i] * scale, berth_tensor_get_f64(y_zero, 0));
    }
    return BERTH_OK;
}

// In floats like the dequantize_linear, add and quantize_linear that it stands for.
berth_status berth_eval__qlinear_add(berth_eval_context *ctx) {
    const berth_tensor *in = ctx->inputs, *a = &in[0], *b = &in[3];
    for (int i = 1; i < 8; ++i)
        if (i != 3) BERTH_TRY(berth_eval__need_count(&in[i], "a scale or zero point", 1));
    BERTH_TRY(check_scale(&in[1], "a_scale", 1));
    BERTH_TRY(check_scale(&in[4], "b_scale", 1));
    BERTH_TRY(check_scale(&in[6], "y_scale", 1));
    BERTH_TRY(berth_eval__output(ctx, 0, in[7].dtype, a->rank, a->dims));
    int64_t count = berth_tensor_element_count(a);
    BERTH_TRY(berth_eval__need_count(b, "b", count));
    double zeros[2] = {berth_tensor_get_f64(&in[2], 0), berth_tensor_get_f64(&in[5], 0)};
    for (int64_t i = 0; i < count; ++i) {
        float sum = (float)(berth_tensor_get_f64(a, i) - zeros[0]) * scale_at(&in[1], 0);
        sum += (float)(berth_tensor_get_f64(b, i) - zeros[1]) * scale_at(&in[4], 0);
        set_quantized(&ctx->outputs[0], i, sum / scale_at(&in[6], 0),
                      berth_tensor_get_f64(&in[7], 0));
    }
    return BERTH_OK;
}

berth_status berth_eval__qlinear_conv(berth_eval_context *ctx) {
    const berth_tensor *in = ctx->inputs, *x = &in[0], *w = &in[3], *y_zero = &in[7];
    const berth_tensor *bias = berth_eval__optional(ctx, 8);
    const double *values = NULL, *weights = NULL;
    berth_conv_shape shape;
    BERTH_TRY(berth_eval__conv_shape(ctx, x, w, &shape));
    BERTH_TRY(load_shifted(ctx, x, &in[2], 0, &values));
    BERTH_TRY(load_shifted(ctx, w, &in[5], w->rank - 1, &weights));
    BERTH_TRY(check_scale(&in[1], "x_scale", 1));
    BERTH_TRY(check_scale(&in[4], "w_scale", shape.out_channels));
    BERTH_TRY(check_scale(&in[6], "y_scale", 1));
    BERTH_TRY(berth_eval__need_count(y_zero, "y_zero_point", 1));
    if (bias) BERTH_TRY(berth_eval__need_count(bias, "B", shape.out_channels));
    BERTH_TRY(berth_eval__output(ctx, 0, y_zero->dtype, x->rank, shape.dims));
    const double *sums = berth_eval__conv_sums(ctx, &shape, x, values, weights, false);
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    int64_t plane = berth_eval__product(shape.dims, 2, x->rank);
    for (int64_t i = 0; i < count; ++i) {
        int64_t channel = i / plane % shape.out_channels;
        double sum = sums[i] + (bias ? berth_tensor_get_f64(bias, channel) : 0);
        float scale = scale_at(&in[1], 0) * scale_at(&in[4], channel) / scale_at(&in[6], 0);
        set_quantized(&ctx->outputs[0], i, (float)sum * scale, berth_tensor_get_f64(y_zero, 0));
    }
    return BERTH_OK;
}
