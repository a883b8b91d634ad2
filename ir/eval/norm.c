// Normalisations, softmax and its relatives.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

berth_status berth_eval__batch_normalization(berth_eval_context *ctx) {
    static const char *const names[5] = {"x", "scale", "B", "input_mean", "input_var"};
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 1, BERTH_MAX_RANK));
    int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    const double *p[5];
    for (int i = 1; i < 5; ++i)
        BERTH_TRY(berth_eval__need_count(&ctx->inputs[i], names[i], channels));
    for (int i = 0; i < 5; ++i) p[i] = berth_eval__load_f64(ctx, &ctx->inputs[i]);
    double epsilon = berth_eval__float(ctx, "epsilon", 1e-5);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    int64_t inner = berth_eval__product(x->dims, 2, x->rank);
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        int64_t c = i / inner % channels;
        berth_eval__set_f64(&ctx->outputs[0], i,
                            (p[0][i] - p[3][c]) / sqrt(p[4][c] + epsilon) * p[1][c] + p[2][c]);
    }
    return BERTH_OK;
}

// Mean and 1 / sqrt(variance + epsilon) of values[0, count).
static void moments(const double *values, int64_t count, double epsilon, double *out_mean,
                    double *out_inverse) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) sum += values[i];
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; ++i) squares += (values[i] - mean) * (values[i] - mean);
    *out_mean = mean;
    *out_inverse = 1 / sqrt(squares / (double)count + epsilon);
}

// Groups of `group_channels` channels with their spatial elements, then scale and bias; `per_group`
// = one scale per group.
static berth_status channel_groups(berth_eval_context *ctx, int64_t group_channels,
                                   bool per_group) {
    const berth_tensor *x = &ctx->inputs[0];
    const double *values = berth_eval__load_f64(ctx, x);
    const double *scale = berth_eval__load_f64(ctx, &ctx->inputs[1]);
    const double *bias = berth_eval__load_f64(ctx, &ctx->inputs[2]);
    double epsilon = berth_eval__float(ctx, "epsilon", 1e-5), mean = 0, inverse = 0;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    int64_t inner = berth_eval__product(x->dims, 2, x->rank), size = group_channels * inner;
    int64_t count = berth_tensor_element_count(x);
    for (int64_t base = 0; base < count; base += size) {
        moments(values + base, size, epsilon, &mean, &inverse);
        for (int64_t i = base; i < base + size; ++i) {
            int64_t c = i / inner % x->dims[1];
            if (per_group) c /= group_channels;
            berth_eval__set_f64(&ctx->outputs[0], i,
                                (values[i] - mean) * inverse * scale[c] + bias[c]);
        }
    }
    return BERTH_OK;
}

berth_status berth_eval__instance_normalization(berth_eval_context *ctx) {
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    int64_t channels = ctx->inputs[0].dims[1];
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[1], "scale", channels));
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[2], "B", channels));
    return channel_groups(ctx, 1, false);
}

berth_status berth_eval__group_normalization(berth_eval_context *ctx) {
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    int64_t channels = ctx->inputs[0].dims[1], groups = berth_eval__int(ctx, "num_groups", 0);
    if (groups <= 0 || channels % groups != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "num_groups = %lld does not divide %lld channels",
                                 (long long)groups, (long long)channels);
    // Operator version 18 has a scale per group, version 21 one per channel.
    bool per_group = berth_tensor_element_count(&ctx->inputs[1]) != channels;
    int64_t expected = per_group ? groups : channels;
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[1], "scale", expected));
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[2], "bias", expected));
    return channel_groups(ctx, channels / groups, per_group);
}

berth_status berth_eval__layer_normalization(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *bias = berth_eval__optional(ctx, 2);
    int axis = 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__axis(ctx, -1, x->rank, &axis));
    double epsilon = berth_eval__float(ctx, "epsilon", 1e-5), mean = 0, inverse = 0;
    for (int i = 0; i < x->rank; ++i) dims[i] = i < axis ? x->dims[i] : 1;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_F32, x->rank, dims));
    BERTH_TRY(berth_eval__output(ctx, 2, BERTH_DTYPE_F32, x->rank, dims));
    berth_tensor wide;
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[1], x->rank - axis, x->dims + axis, &wide));
    const double *scale = berth_eval__load_f64(ctx, &wide), *shift = NULL;
    if (bias) {
        BERTH_TRY(berth_eval__expand(ctx, bias, x->rank - axis, x->dims + axis, &wide));
        shift = berth_eval__load_f64(ctx, &wide);
    }
    const double *values = berth_eval__load_f64(ctx, x);
    int64_t size = berth_eval__product(x->dims, axis, x->rank);
    int64_t rows = berth_eval__product(x->dims, 0, axis);
    for (int64_t r = 0; r < rows; ++r) {
        moments(values + r * size, size, epsilon, &mean, &inverse);
        if (berth_eval__has_output(ctx, 1)) berth_tensor_set_f64(&ctx->outputs[1], r, mean);
        if (berth_eval__has_output(ctx, 2)) berth_tensor_set_f64(&ctx->outputs[2], r, inverse);
        for (int64_t i = 0; i < size; ++i)
            berth_eval__set_f64(&ctx->outputs[0], r * size + i,
                                (values[r * size + i] - mean) * inverse * scale[i] +
                                    (shift ? shift[i] : 0));
    }
    return BERTH_OK;
}

// (x - mean) / (standard deviation + 1e-9) over `axes`, as the ONNX function body has it.
berth_status berth_eval__mean_variance_normalization(berth_eval_context *ctx) {
    static const int64_t usual[] = {0, 2, 3};
    const berth_tensor *x = &ctx->inputs[0];
    uint32_t axis_count = 0;
    const int64_t *axes = berth_attrs_ints(ctx->module, &ctx->op->attrs, "axes", &axis_count);
    if (!axes) axes = usual, axis_count = 3;
    int64_t strides[BERTH_MAX_RANK], groups = 1, index[BERTH_MAX_RANK] = {0};
    bool reduced[BERTH_MAX_RANK] = {false};
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    for (uint32_t i = 0; i < axis_count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_axis_resolve(axes[i], x->rank, "axes", &axis));
        reduced[axis] = true;
    }
    for (int d = x->rank - 1; d >= 0; --d) {
        strides[d] = reduced[d] ? 0 : groups;
        if (!reduced[d]) groups *= x->dims[d];
    }
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    const double *values = berth_eval__load_f64(ctx, x);
    double *mean = berth_eval__doubles(ctx, groups), *square = berth_eval__doubles(ctx, groups);
    int64_t *place = berth_eval__indices(ctx, count);
    double size = (double)(groups ? count / groups : 1);
    for (int64_t i = 0; i < count; ++i, berth_eval__next(index, x->dims, x->rank))
        for (int d = 0; d < x->rank; ++d) place[i] += index[d] * strides[d];
    for (int64_t i = 0; i < count; ++i) mean[place[i]] += values[i] / size;
    for (int64_t i = 0; i < count; ++i) {
        double distance = values[i] - mean[place[i]];
        square[place[i]] += distance * distance / size;
    }
    for (int64_t i = 0; i < count; ++i)
        berth_eval__set_f64(&ctx->outputs[0], i,
                            (values[i] - mean[place[i]]) / (sqrt(square[place[i]]) + 1e-9));
    return BERTH_OK;
}

// ---- along one axis

// The lines of `x` along an axis: element k of line i is at base(i) + k * inner.
typedef struct lines {
    int64_t count, extent, inner;
} lines;

static berth_status find_lines(const berth_eval_context *ctx, const berth_tensor *x, lines *out) {
    int axis = 0;
    BERTH_TRY(berth_eval__axis(ctx, -1, x->rank, &axis));
    out->extent = x->dims[axis];
    out->inner = berth_eval__product(x->dims, axis + 1, x->rank);
    out->count = berth_eval__product(x->dims, 0, axis) * out->inner;
    return BERTH_OK;
}

static int64_t line_base(const lines *l, int64_t i) {
    return i / l->inner * l->inner * l->extent + i % l->inner;
}

berth_status berth_eval__softmax(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    bool logarithm = ctx->op->kind == BERTH_OP_LOG_SOFTMAX;
    lines l;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(find_lines(ctx, x, &l));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; i < l.count; ++i) {
        const double *line = values + line_base(&l, i);
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < l.extent; ++k) top = fmax(top, line[k * l.inner]);
        for (int64_t k = 0; k < l.extent; ++k) sum += exp(line[k * l.inner] - top);
        for (int64_t k = 0; k < l.extent; ++k) {
            double shifted = line[k * l.inner] - top;
            berth_eval__set_f64(&ctx->outputs[0], line_base(&l, i) + k * l.inner,
                                logarithm ? shifted - log(sum) : exp(shifted) / sum);
        }
    }
    return BERTH_OK;
}

berth_status berth_eval__hardmax(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    lines l;
    BERTH_TRY(find_lines(ctx, x, &l));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; l.extent > 0 && i < l.count; ++i) {
        int64_t base = line_base(&l, i), best = 0;
        for (int64_t k = 1; k < l.extent; ++k)
            if (values[base + k * l.inner] > values[base + best * l.inner] ||
                (isnan(values[base + best * l.inner]) && !isnan(values[base + k * l.inner])))
                best = k;  // NaN never wins, as in arg_max
        berth_eval__set_f64(&ctx->outputs[0], base + best * l.inner, 1);
    }
    return BERTH_OK;
}

berth_status berth_eval__lp_normalization(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t p = berth_eval__int(ctx, "p", 2);
    lines l;
    if (p != 1 && p != 2)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "p = %lld; 1 or 2 is expected",
                                 (long long)p);
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(find_lines(ctx, x, &l));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; i < l.count; ++i) {
        int64_t base = line_base(&l, i);
        double sum = 0;
        for (int64_t k = 0; k < l.extent; ++k) {
            double value = values[base + k * l.inner];
            sum += p == 1 ? fabs(value) : value * value;
        }
        double norm = p == 1 ? sum : sqrt(sum);
        for (int64_t k = 0; k < l.extent; ++k)
            berth_eval__set_f64(&ctx->outputs[0], base + k * l.inner,
                                norm == 0 ? 0 : values[base + k * l.inner] / norm);
    }
    return BERTH_OK;
}

berth_status berth_eval__lrn(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t size = berth_eval__int(ctx, "size", 0);
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    if (size < 1 || size > INT32_MAX)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "size is %lld", (long long)size);
    double alpha = berth_eval__float(ctx, "alpha", 1e-4);
    double beta = berth_eval__float(ctx, "beta", 0.75), bias = berth_eval__float(ctx, "bias", 1);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    const double *values = berth_eval__load_f64(ctx, x);
    int64_t channels = x->dims[1], inner = berth_eval__product(x->dims, 2, x->rank);
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        int64_t c = i / inner % channels;
        int64_t first = c - (size - 1) / 2, last = c + size / 2;
        double sum = 0;
        if (first < 0) first = 0;
        if (last > channels - 1) last = channels - 1;
        for (int64_t k = first; k <= last; ++k) {
            double value = values[i + (k - c) * inner];
            sum += value * value;
        }
        berth_eval__set_f64(&ctx->outputs[0], i,
                            values[i] / pow(bias + alpha / (double)size * sum, beta));
    }
    return BERTH_OK;
}
