// Pooling by windows and over whole planes, and its inverses.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

typedef struct pool {
    berth_window window;
    int64_t dims[BERTH_MAX_RANK];  // output
    int64_t planes;                // n * c
    int64_t in_plane, out_plane;   // elements
} pool;

static berth_status resolve_pool(berth_eval_context *ctx, pool *p) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 3, 2 + BERTH_MAX_SPATIAL));
    BERTH_TRY(berth_window_resolve(ctx->module, ctx->op, x->dims, x->rank, NULL, &p->window));
    p->dims[0] = x->dims[0];
    p->dims[1] = x->dims[1];
    for (int i = 0; i < p->window.spatial; ++i) p->dims[2 + i] = p->window.output[i];
    p->planes = x->dims[0] * x->dims[1];
    p->in_plane = berth_eval__product(x->dims, 2, x->rank);
    BERTH_TRY(berth_shape_size_bytes(BERTH_DTYPE_F64, x->rank, p->dims, NULL, NULL));
    p->out_plane = berth_eval__product(p->dims, 2, x->rank);
    return BERTH_OK;
}

// The taps of the window at output position `at` that lie in the input: offsets in the plane (row
// and column major), and how many taps lie in the padded input.
typedef struct taps {
    int64_t *offsets, *column_offsets;
    int64_t count, padded_count;
} taps;

static void find_taps(const berth_window *w, const int64_t *at, taps *out) {
    int64_t k[BERTH_MAX_SPATIAL] = {0};
    out->count = out->padded_count = 0;
    do {
        bool inside = true, padded = true;
        int64_t offset = 0, column_offset = 0, column_stride = 1;
        for (int d = 0; d < w->spatial; ++d) {
            int64_t place = at[d] * w->strides[d] + k[d] * w->dilations[d] - w->pads_begin[d];
            inside = inside && place >= 0 && place < w->input[d];
            padded = padded && place < w->input[d] + w->pads_end[d];
            offset = offset * w->input[d] + place;
            column_offset += place * column_stride;
            column_stride *= w->input[d];
        }
        out->padded_count += padded;
        if (inside) {
            out->offsets[out->count] = offset;
            out->column_offsets[out->count++] = column_offset;
        }
    } while (berth_eval__next(k, w->kernel, w->spatial));
}

static berth_status make_taps(berth_eval_context *ctx, const pool *p, taps *out) {
    int64_t size = 0;
    BERTH_TRY(
        berth_shape_size_bytes(BERTH_DTYPE_I64, p->window.spatial, p->window.kernel, &size, NULL));
    out->offsets = berth_eval__indices(ctx, size);
    out->column_offsets = berth_eval__indices(ctx, size);
    return BERTH_OK;
}

static void max_at(berth_eval_context *ctx, const pool *p, const taps *t, int64_t plane,
                   int64_t place, bool columns) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t base = plane * p->in_plane, to = plane * p->out_plane + place, best = 0;
    double top = -INFINITY;
    for (int64_t i = 0; i < t->count; ++i) {
        double value = berth_tensor_get_f64(x, base + t->offsets[i]);
        if (value > top) top = value, best = i;  // never NaN, which is skipped
    }
    if (isinf(top) && top < 0)  // nothing, or nothing above it
        berth_eval__set_f64(&ctx->outputs[0], to, -INFINITY);
    else
        berth_eval__copy_element(ctx->outputs[0].data, to, x->data, base + t->offsets[best],
                                 berth_dtype_size_bytes(x->dtype));
    if (t->count > 0 && berth_eval__has_output(ctx, 1))
        berth_tensor_set_i64(&ctx->outputs[1], to,
                             base + (columns ? t->column_offsets : t->offsets)[best]);
}

berth_status berth_eval__max_pool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    pool p;
    taps t;
    BERTH_TRY(resolve_pool(ctx, &p));
    BERTH_TRY(make_taps(ctx, &p, &t));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, p.dims));
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_I64, x->rank, p.dims));
    bool columns = berth_eval__int(ctx, "storage_order", 0) != 0;
    int64_t at[BERTH_MAX_SPATIAL] = {0};
    for (int64_t i = 0; i < p.out_plane; ++i) {
        find_taps(&p.window, at, &t);
        for (int64_t plane = 0; plane < p.planes; ++plane) max_at(ctx, &p, &t, plane, i, columns);
        berth_eval__next(at, p.window.output, p.window.spatial);
    }
    return BERTH_OK;
}

// Scales and zero points of a qlinear_average_pool: rounded in float, like the average_pool between
// dequantize_linear and quantize_linear that it stands for.
typedef struct quantized_mean {
    float x_scale, y_scale;
    double x_zero, y_zero;
} quantized_mean;

static berth_status read_quantized(berth_eval_context *ctx, quantized_mean *out) {
    const berth_tensor *in = ctx->inputs;
    for (int i = 1; i < 5; ++i)
        BERTH_TRY(berth_eval__need_count(&in[i], "a scale or zero point", 1));
    BERTH_TRY(berth_eval__need_float(ctx, 1));
    BERTH_TRY(berth_eval__need_float(ctx, 3));
    *out = (quantized_mean){(float)berth_tensor_get_f64(&in[1], 0),
                            (float)berth_tensor_get_f64(&in[3], 0), berth_tensor_get_f64(&in[2], 0),
                            berth_tensor_get_f64(&in[4], 0)};
    return BERTH_OK;
}

static void set_mean(berth_eval_context *ctx, const quantized_mean *q, int64_t at, double sum,
                     int64_t count, int64_t added) {
    berth_tensor *out = &ctx->outputs[0];
    if (ctx->op->kind == BERTH_OP_AVERAGE_POOL) {
        berth_eval__set_f64(out, at, count > 0 ? sum / (double)count : 0);
        return;
    }
    float mean = (float)(sum - q->x_zero * (double)added) * q->x_scale;
    mean = mean / (float)(count > 0 ? count : 1);
    double value = (double)nearbyintf(mean / q->y_scale) + q->y_zero;
    berth_tensor_set_i64(out, at, (int64_t)berth_eval__saturate(out->dtype, value));
}

// average_pool, qlinear_average_pool
berth_status berth_eval__average_pool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    bool quantized = ctx->op->kind == BERTH_OP_QLINEAR_AVERAGE_POOL;
    quantized_mean q = {0};
    pool p;
    taps t;
    BERTH_TRY(quantized ? read_quantized(ctx, &q) : berth_eval__need_float(ctx, 0));
    BERTH_TRY(resolve_pool(ctx, &p));
    BERTH_TRY(make_taps(ctx, &p, &t));
    berth_dtype dtype = quantized ? ctx->inputs[4].dtype : x->dtype;
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, x->rank, p.dims));
    const double *values = berth_eval__load_f64(ctx, x);
    int64_t at[BERTH_MAX_SPATIAL] = {0};
    for (int64_t i = 0; i < p.out_plane; ++i) {
        find_taps(&p.window, at, &t);
        int64_t count = p.window.count_include_pad ? t.padded_count : t.count;
        for (int64_t plane = 0; plane < p.planes; ++plane) {
            double sum = 0;
            for (int64_t k = 0; k < t.count; ++k) sum += values[plane * p.in_plane + t.offsets[k]];
            set_mean(ctx, &q, plane * p.out_plane + i, sum, count, t.count);
        }
        berth_eval__next(at, p.window.output, p.window.spatial);
    }
    return BERTH_OK;
}

berth_status berth_eval__lp_pool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    pool p;
    taps t;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(resolve_pool(ctx, &p));
    BERTH_TRY(make_taps(ctx, &p, &t));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, p.dims));
    double power = berth_eval__float(ctx, "p", 2);
    const double *values = berth_eval__load_f64(ctx, x);
    int64_t at[BERTH_MAX_SPATIAL] = {0};
    for (int64_t i = 0; i < p.out_plane; ++i) {
        find_taps(&p.window, at, &t);
        for (int64_t plane = 0; plane < p.planes; ++plane) {
            double sum = 0;
            for (int64_t k = 0; k < t.count; ++k)
                sum += pow(fabs(values[plane * p.in_plane + t.offsets[k]]), power);
            berth_eval__set_f64(&ctx->outputs[0], plane * p.out_plane + i, pow(sum, 1 / power));
        }
        berth_eval__next(at, p.window.output, p.window.spatial);
    }
    return BERTH_OK;
}

berth_status berth_eval__global_pool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_op_kind kind = ctx->op->kind;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    for (int i = 0; i < x->rank; ++i) dims[i] = i < 2 ? x->dims[i] : 1;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    double power = berth_eval__float(ctx, "p", 2);
    int64_t plane = berth_eval__product(x->dims, 2, x->rank), planes = x->dims[0] * x->dims[1];
    const double *values = berth_eval__load_f64(ctx, x);
    for (int64_t i = 0; i < planes; ++i) {
        double sum = kind == BERTH_OP_GLOBAL_MAX_POOL ? -INFINITY : 0;
        for (int64_t k = 0; k < plane; ++k) {
            double value = values[i * plane + k];
            if (kind == BERTH_OP_GLOBAL_MAX_POOL)
                sum = value > sum ? value : sum;  // NaN is skipped, as in max_pool
            else
                sum += kind == BERTH_OP_GLOBAL_LP_POOL ? pow(fabs(value), power) : value;
        }
        if (kind == BERTH_OP_GLOBAL_AVERAGE_POOL) sum /= (double)plane;
        if (kind == BERTH_OP_GLOBAL_LP_POOL) sum = pow(sum, 1 / power);
        berth_eval__set_f64(&ctx->outputs[0], i, sum);
    }
    return BERTH_OK;
}

berth_status berth_eval__max_unpool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1];
    const berth_tensor *shape = berth_eval__optional(ctx, 2);
    int64_t dims[BERTH_MAX_RANK];
    int rank = x->rank;
    berth_window window;
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 3, 2 + BERTH_MAX_SPATIAL));
    BERTH_TRY(berth_window_resolve(ctx->module, ctx->op, x->dims, x->rank, NULL, &window));
    BERTH_TRY(berth_eval__need_count(indices, "I", berth_tensor_element_count(x)));
    int64_t implied[BERTH_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 0; i < window.spatial; ++i) implied[2 + i] = window.output[i];
    memcpy(dims, implied, sizeof(dims));
    if (shape) BERTH_TRY(berth_eval__vector(shape, "output_shape", dims, &rank));
    if (rank != x->rank || dims[0] != x->dims[0] || dims[1] != x->dims[1])
        return berth_status_make(BERTH_INVALID_ARGUMENT, "output_shape does not fit the input");
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, rank, dims));
    berth_tensor inner = {.rank = rank};  // the shape that the indices count in
    int64_t strides[BERTH_MAX_RANK], count = berth_tensor_element_count(x);
    memcpy(inner.dims, implied, sizeof(implied));
    berth_eval__strides(&ctx->outputs[0], strides);
    int64_t total = berth_tensor_element_count(&inner);
    for (int64_t i = 0; i < count; ++i) {
        int64_t index = berth_tensor_get_i64(indices, i), to = 0;
        if (index < 0 || index >= total)
            return berth_status_make(BERTH_OUT_OF_RANGE, "index %lld of %lld", (long long)index,
                                     (long long)total);
        for (int d = rank - 1; d >= 0; index /= implied[d--]) {
            int64_t place = index % implied[d];
            if (place >= dims[d])
                return berth_status_make(BERTH_OUT_OF_RANGE, "an index is outside output_shape");
            to += place * strides[d];
        }
        berth_eval__copy_element(ctx->outputs[0].data, to, x->data, i,
                                 berth_dtype_size_bytes(x->dtype));
    }
    return BERTH_OK;
}
