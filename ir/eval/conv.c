// Convolutions. One direct loop in double serves all element types: products of 8-bit integers and
// their sums are exact in it.
#include "ir/eval/conv.h"

#include <string.h>

#include "ir/graph/op_params.h"

// The window as three spatial dimensions (leading ones of extent 1).
typedef struct window3 {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
} window3;

static window3 widen(const berth_window *w) {
    window3 v;
    for (int i = 0; i < 3; ++i) {
        int s = i - (3 - w->spatial);
        v.in[i] = s < 0 ? 1 : w->input[s];
        v.out[i] = s < 0 ? 1 : w->output[s];
        v.kernel[i] = s < 0 ? 1 : w->kernel[s];
        v.stride[i] = s < 0 ? 1 : w->strides[s];
        v.dilation[i] = s < 0 ? 1 : w->dilations[s];
        v.pad[i] = s < 0 ? 0 : w->pads_begin[s];
    }
    bool pointwise = true;
    for (int i = 0; i < 3; ++i)
        pointwise = pointwise && v.kernel[i] == 1 && v.stride[i] == 1 && v.pad[i] == 0 &&
                    v.in[i] == v.out[i];
    if (pointwise) {  // one long row
        v.in[2] = v.out[2] = v.in[0] * v.in[1] * v.in[2];
        v.in[0] = v.in[1] = v.out[0] = v.out[1] = 1;
    }
    return v;
}

// First and one past the last output position whose tap k lies in the input.
static void valid_range(const window3 *v, int i, int64_t k, int64_t *out_first, int64_t *out_end) {
    int64_t shift = k * v->dilation[i] - v->pad[i];  // input = output * stride + shift
    int64_t first = shift >= 0 ? 0 : (-shift + v->stride[i] - 1) / v->stride[i];
    int64_t end = v->in[i] - shift <= 0 ? 0 : (v->in[i] - shift + v->stride[i] - 1) / v->stride[i];
    *out_first = first;
    *out_end = end < v->out[i] ? end : v->out[i];
}

// sum += one input plane * one kernel plane.
static void add_plane(const window3 *v, const double *x, const double *w, double *sum) {
    int64_t first[3], end[3];
    for (int64_t kd = 0; kd < v->kernel[0]; ++kd) {
        valid_range(v, 0, kd, &first[0], &end[0]);
        for (int64_t kh = 0; kh < v->kernel[1]; ++kh) {
            valid_range(v, 1, kh, &first[1], &end[1]);
            for (int64_t kw = 0; kw < v->kernel[2]; ++kw) {
                valid_range(v, 2, kw, &first[2], &end[2]);
                double weight = *w++;
                for (int64_t d = first[0]; d < end[0]; ++d) {
                    for (int64_t h = first[1]; h < end[1]; ++h) {
                        int64_t id = d * v->stride[0] + kd * v->dilation[0] - v->pad[0];
                        int64_t ih = h * v->stride[1] + kh * v->dilation[1] - v->pad[1];
                        int64_t base =
                            (id * v->in[1] + ih) * v->in[2] + kw * v->dilation[2] - v->pad[2];
                        double *row = sum + (d * v->out[1] + h) * v->out[2];
                        for (int64_t c = first[2]; c < end[2]; ++c)
                            row[c] += weight * x[base + c * v->stride[2]];
                    }
                }
            }
        }
    }
}

// The transposed form: sum[place of (input, tap)] += x * w.
static void scatter_plane(const window3 *v, const double *x, const double *w, double *sum) {
    int64_t at[6] = {0};
    int64_t extents[6] = {v->kernel[0], v->kernel[1], v->kernel[2], v->in[0], v->in[1], v->in[2]};
    int64_t plane = v->in[0] * v->in[1] * v->in[2], i = 0;
    if (plane == 0) return;
    do {
        int64_t place[3];
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
            place[d] = at[3 + d] * v->stride[d] + at[d] * v->dilation[d] - v->pad[d];
            inside = inside && place[d] >= 0 && place[d] < v->out[d];
        }
        if (inside)
            sum[(place[0] * v->out[1] + place[1]) * v->out[2] + place[2]] +=
                x[i % plane] * w[i / plane];
        ++i;
    } while (berth_eval__next(at, extents, 6));
}

berth_status berth_eval__conv_shape(const berth_eval_context *ctx, const berth_tensor *x,
                                    const berth_tensor *w, berth_conv_shape *out) {
    bool transposed = ctx->op->kind == BERTH_OP_CONV_TRANSPOSE;
    if (x->rank < 3 || x->rank > 2 + BERTH_MAX_SPATIAL || w->rank != x->rank)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "input of rank %d with weights of rank %d; both 3 to %d", x->rank,
                                 w->rank, 2 + BERTH_MAX_SPATIAL);
    BERTH_TRY(
        berth_window_resolve(ctx->module, ctx->op, x->dims, x->rank, w->dims + 2, &out->window));
    int64_t group = out->window.group;
    int64_t in_channels = transposed ? w->dims[0] : w->dims[1] * group;
    if (group < 1 || in_channels != x->dims[1] || w->dims[0] % group != 0)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "%lld channels do not fit weights [%lld, %lld] in %lld groups",
            (long long)x->dims[1], (long long)w->dims[0], (long long)w->dims[1], (long long)group);
    out->out_channels = transposed ? w->dims[1] * group : w->dims[0];
    out->dims[0] = x->dims[0];
    out->dims[1] = out->out_channels;
    for (int i = 0; i < out->window.spatial; ++i) out->dims[2 + i] = out->window.output[i];
    return berth_shape_size_bytes(BERTH_DTYPE_F64, x->rank, out->dims, NULL, NULL);
}

// O(outputs * kernel * input channels per group).
const double *berth_eval__conv_sums(berth_eval_context *ctx, const berth_conv_shape *shape,
                                    const berth_tensor *input, const double *x, const double *w,
                                    bool transposed) {
    window3 v = widen(&shape->window);
    int64_t group = shape->window.group;
    int64_t in_plane = v.in[0] * v.in[1] * v.in[2], out_plane = v.out[0] * v.out[1] * v.out[2];
    int64_t taps = v.kernel[0] * v.kernel[1] * v.kernel[2];
    int64_t in_per = input->dims[1] / group, out_per = shape->out_channels / group;
    double *sums = berth_eval__doubles(ctx, input->dims[0] * shape->out_channels * out_plane);
    double *sum = sums;
    for (int64_t n = 0; n < input->dims[0]; ++n) {
        for (int64_t o = 0; o < shape->out_channels; ++o, sum += out_plane) {
            int64_t first = o / out_per * in_per;
            for (int64_t c = 0; c < in_per; ++c) {
                const double *plane = x + (n * input->dims[1] + first + c) * in_plane;
                if (transposed)
                    scatter_plane(&v, plane, w + ((first + c) * out_per + o % out_per) * taps, sum);
                else
                    add_plane(&v, plane, w + (o * in_per + c) * taps, sum);
            }
        }
    }
    return sums;
}

static berth_status float_conv(berth_eval_context *ctx, bool transposed) {
    const berth_tensor *x = &ctx->inputs[0], *w = &ctx->inputs[1];
    const berth_tensor *bias = berth_eval__optional(ctx, 2);
    berth_conv_shape shape;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__conv_shape(ctx, x, w, &shape));
    if (bias) BERTH_TRY(berth_eval__need_count(bias, "B", shape.out_channels));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, shape.dims));
    const double *sums = berth_eval__conv_sums(ctx, &shape, x, berth_eval__load_f64(ctx, x),
                                               berth_eval__load_f64(ctx, w), transposed);
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    int64_t plane = berth_eval__product(shape.dims, 2, x->rank);
    for (int64_t i = 0; i < count; ++i) {
        double shift = bias ? berth_tensor_get_f64(bias, i / plane % shape.out_channels) : 0;
        berth_eval__set_f64(&ctx->outputs[0], i, sums[i] + shift);
    }
    return BERTH_OK;
}

berth_status berth_eval__conv(berth_eval_context *ctx) {
    return float_conv(ctx, false);
}

berth_status berth_eval__conv_transpose(berth_eval_context *ctx) {
    return float_conv(ctx, true);
}
