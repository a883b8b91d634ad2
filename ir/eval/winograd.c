// Winograd convolution F(m x m, 3 x 3), m = 2 or 4, as three operations around a batched matrix
// product, or as one: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016,
// sections 4.1 to 4.3.
#include <string.h>

#include "ir/eval/internal.h"

#define MAX_TILE 6  // m + 2

typedef struct winograd {
    int64_t m, size;          // outputs and inputs of a tile, per dimension
    const double *b, *g, *a;  // B^T [size, size], G [size, 3], A^T [m, size]
} winograd;

static const double b2[] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
static const double g2[] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
static const double a2[] = {1, 1, 1, 0, 0, 1, -1, -1};
static const double b4[] = {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                            0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1};
static const double g4[] = {1.0 / 4,  0,         0,        -1.0 / 6, -1.0 / 6, -1.0 / 6,
                            -1.0 / 6, 1.0 / 6,   -1.0 / 6, 1.0 / 24, 1.0 / 12, 1.0 / 6,
                            1.0 / 24, -1.0 / 12, 1.0 / 6,  0,        0,        1};
static const double a4[] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0,
                            0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1};

static berth_status read_tile(const berth_eval_context *ctx, winograd *out) {
    int64_t m = berth_eval__int(ctx, "tile", 0);
    if (m != 2 && m != 4)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "tile = %lld; 2 or 4 is expected",
                                 (long long)m);
    *out = (winograd){
        .m = m, .size = m + 2, .b = m == 2 ? b2 : b4, .g = m == 2 ? g2 : g4, .a = m == 2 ? a2 : a4};
    return BERTH_OK;
}

// out [rows, rows] = left [rows, n] * x [n, n] * left^T.
static void sandwich(const double *left, int64_t rows, int64_t n, const double *x, double *out) {
    double half[MAX_TILE * MAX_TILE];
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += left[i * n + k] * x[k * n + j];
            half[i * n + j] = sum;
        }
    }
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < n; ++k) sum += half[i * n + k] * left[j * n + k];
            out[i * rows + j] = sum;
        }
    }
}

// [o, i, 3, 3] -> [(m+2)^2, i, o]
berth_status berth_eval__winograd_weights(berth_eval_context *ctx) {
    const berth_tensor *w = &ctx->inputs[0];
    winograd t = {0};
    BERTH_TRY(read_tile(ctx, &t));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 4));
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    if (w->dims[2] != 3 || w->dims[3] != 3)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the kernel is not 3 x 3");
    int64_t points = t.size * t.size, outs = w->dims[0], ins = w->dims[1];
    BERTH_TRY(berth_eval__output(ctx, 0, w->dtype, 3, (int64_t[]){points, ins, outs}));
    const double *values = berth_eval__load_f64(ctx, w);
    double tile[MAX_TILE * MAX_TILE];
    for (int64_t k = 0; k < outs * ins; ++k) {
        sandwich(t.g, t.size, 3, values + k * 9, tile);
        for (int64_t p = 0; p < points; ++p)
            berth_eval__set_f64(&ctx->outputs[0], (p * ins + k % ins) * outs + k / ins, tile[p]);
    }
    return BERTH_OK;
}

// x [n, c, h, w], pads (top, left, bottom, right) -> [(m+2)^2, tiles, c]
berth_status berth_eval__winograd_input(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    winograd t = {0};
    uint32_t pad_count = 0;
    const int64_t *pads = berth_attrs_ints(ctx->module, &ctx->op->attrs, "pads", &pad_count);
    static const int64_t none[4] = {0};
    BERTH_TRY(read_tile(ctx, &t));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 4));
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    if (pads && pad_count != 4)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "pads has %u entries, not 4", pad_count);
    if (!pads) pads = none;
    for (int i = 0; i < 4; ++i)
        if (pads[i] < 0 || pads[i] > INT32_MAX)
            return berth_status_make(BERTH_OUT_OF_RANGE, "pads[%d] is %lld", i, (long long)pads[i]);
    int64_t h = x->dims[2], w = x->dims[3], channels = x->dims[1];
    int64_t out_h = h + pads[0] + pads[2] - 2, out_w = w + pads[1] + pads[3] - 2;
    if (out_h < 1 || out_w < 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the output is empty");
    int64_t rows = (out_h + t.m - 1) / t.m, columns = (out_w + t.m - 1) / t.m;
    int64_t tiles = x->dims[0] * rows * columns, points = t.size * t.size;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 3, (int64_t[]){points, tiles, channels}));
    const double *values = berth_eval__load_f64(ctx, x);
    double in[MAX_TILE * MAX_TILE], out[MAX_TILE * MAX_TILE];
    for (int64_t k = 0; k < tiles * channels; ++k) {
        int64_t tile = k / channels, c = k % channels, n = tile / (rows * columns);
        const double *plane = values + (n * channels + c) * h * w;
        for (int64_t p = 0; p < points; ++p) {
            int64_t y = tile / columns % rows * t.m + p / t.size - pads[0];
            int64_t z = tile % columns * t.m + p % t.size - pads[1];
            in[p] = y >= 0 && y < h && z >= 0 && z < w ? plane[y * w + z] : 0;
        }
        sandwich(t.b, t.size, t.size, in, out);
        for (int64_t p = 0; p < points; ++p)
            berth_eval__set_f64(&ctx->outputs[0], (p * tiles + tile) * channels + c, out[p]);
    }
    return BERTH_OK;
}

// [p, t, c] x [p, c, o] -> [p, t, o]
berth_status berth_eval__winograd_matmul(berth_eval_context *ctx) {
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 3, 3));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 3, 3));
    return berth_eval__matmul(ctx);
}

// [p, tiles, o] (and bias [o]), output_shape [n, o, oh, ow] -> y
berth_status berth_eval__winograd_output(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *bias = berth_eval__optional(ctx, 1);
    winograd t = {0};
    uint32_t count = 0;
    const int64_t *shape = berth_attrs_ints(ctx->module, &ctx->op->attrs, "output_shape", &count);
    BERTH_TRY(read_tile(ctx, &t));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 3, 3));
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    if (!shape || count != 4)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "output_shape must have 4 entries");
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 4, shape));
    int64_t rows = (shape[2] + t.m - 1) / t.m, columns = (shape[3] + t.m - 1) / t.m;
    int64_t points = t.size * t.size, outs = shape[1], tiles = shape[0] * rows * columns;
    if (x->dims[0] != points || x->dims[1] != tiles || x->dims[2] != outs)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the operand does not fit output_shape");
    if (bias) BERTH_TRY(berth_eval__need_count(bias, "the bias", outs));
    const double *values = berth_eval__load_f64(ctx, x);
    double in[MAX_TILE * MAX_TILE], out[MAX_TILE * MAX_TILE];
    for (int64_t k = 0; k < tiles * outs; ++k) {
        int64_t tile = k / outs, o = k % outs, n = tile / (rows * columns);
        for (int64_t p = 0; p < points; ++p) in[p] = values[(p * tiles + tile) * outs + o];
        sandwich(t.a, t.m, t.size, in, out);
        double shift = bias ? berth_tensor_get_f64(bias, o) : 0;
        for (int64_t p = 0; p < t.m * t.m; ++p) {
            int64_t y = tile / columns % rows * t.m + p / t.m;
            int64_t z = tile % columns * t.m + p % t.m;
            if (y < shape[2] && z < shape[3])
                berth_eval__set_f64(&ctx->outputs[0],
                                    ((n * outs + o) * shape[2] + y) * shape[3] + z, out[p] + shift);
        }
    }
    return BERTH_OK;
}

typedef struct whole {
    winograd t;
    const double *x, *weights;
    const berth_tensor *bias;
    const int64_t *shape, *pads;  // of the output
    int64_t height, width, inputs;
    double *points;  // [inputs, (m+2)^2], of one tile
} whole;

// The points of all channels of the tile whose first output is (n, y, z).
static void transform_inputs(const whole *v, int64_t n, int64_t y, int64_t z) {
    double in[MAX_TILE * MAX_TILE];
    int64_t size = v->t.size;
    for (int64_t c = 0; c < v->inputs; ++c) {
        const double *plane = v->x + (n * v->inputs + c) * v->height * v->width;
        for (int64_t p = 0; p < size * size; ++p) {
            int64_t row = y + p / size - v->pads[0], column = z + p % size - v->pads[1];
            bool inside = row >= 0 && row < v->height && column >= 0 && column < v->width;
            in[p] = inside ? plane[row * v->width + column] : 0;
        }
        sandwich(v->t.b, size, size, in, v->points + c * size * size);
    }
}

// Output o of that tile.
static void store_output(berth_eval_context *ctx, const whole *v, int64_t n, int64_t o, int64_t y,
                         int64_t z) {
    double sums[MAX_TILE * MAX_TILE] = {0}, out[MAX_TILE * MAX_TILE];
    int64_t points = v->t.size * v->t.size, m = v->t.m, outputs = v->shape[1];
    for (int64_t c = 0; c < v->inputs; ++c)
        for (int64_t p = 0; p < points; ++p)
            sums[p] += v->points[c * points + p] * v->weights[(p * v->inputs + c) * outputs + o];
    sandwich(v->t.a, m, v->t.size, sums, out);
    double shift = v->bias ? berth_tensor_get_f64(v->bias, o) : 0;
    for (int64_t p = 0; p < m * m; ++p) {
        int64_t row = y + p / m, column = z + p % m;
        if (row >= v->shape[2] || column >= v->shape[3]) continue;
        int64_t at = ((n * outputs + o) * v->shape[2] + row) * v->shape[3] + column;
        berth_eval__set_f64(&ctx->outputs[0], at, out[p] + shift);
    }
}

// x [n, c, h, w], weights [(m+2)^2, c, o] (and bias [o]), pads, output_shape [n, o, oh, ow] -> y
berth_status berth_eval__winograd_conv(berth_eval_context *ctx) {
    static const int64_t none[4] = {0};
    uint32_t pad_count = 0, count = 0;
    whole v = {.bias = berth_eval__optional(ctx, 2),
               .pads = berth_attrs_ints(ctx->module, &ctx->op->attrs, "pads", &pad_count),
               .shape = berth_attrs_ints(ctx->module, &ctx->op->attrs, "output_shape", &count)};
    BERTH_TRY(read_tile(ctx, &v.t));
    for (uint32_t i = 0; i < 2; ++i) {
        BERTH_TRY(berth_eval__need_rank(ctx, i, i == 0 ? 4 : 3, i == 0 ? 4 : 3));
        BERTH_TRY(berth_eval__need_float(ctx, i));
    }
    if (!v.shape || count != 4 || (v.pads && pad_count != 4))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "output_shape and pads must have 4 entries");
    const berth_tensor *x = &ctx->inputs[0], *w = &ctx->inputs[1];
    if (!v.pads) v.pads = none;
    v.inputs = x->dims[1], v.height = x->dims[2], v.width = x->dims[3];
    int64_t points = v.t.size * v.t.size;
    if (w->dims[0] != points || w->dims[1] != v.inputs || w->dims[2] != v.shape[1] ||
        v.shape[0] != x->dims[0])
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the operands do not fit output_shape");
    if (v.bias) BERTH_TRY(berth_eval__need_count(v.bias, "the bias", v.shape[1]));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 4, v.shape));
    v.x = berth_eval__load_f64(ctx, x);
    v.weights = berth_eval__load_f64(ctx, w);
    v.points = berth_eval__doubles(ctx, v.inputs * points);
    for (int64_t n = 0; n < v.shape[0]; ++n)
        for (int64_t y = 0; y < v.shape[2]; y += v.t.m)
            for (int64_t z = 0; z < v.shape[3]; z += v.t.m) {
                transform_inputs(&v, n, y, z);
                for (int64_t o = 0; o < v.shape[1]; ++o) store_output(ctx, &v, n, o, y, z);
            }
    return BERTH_OK;
}
