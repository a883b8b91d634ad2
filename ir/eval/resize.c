// resize: every axis by itself, as weighted taps (Keys, "Cubic convolution interpolation for
// digital image processing", 1981, for the cubic kernel; antialiasing stretches the kernel).
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/op_params.h"

typedef struct resize_axis {
    int64_t in, out;
    double scale;  // out / in, or as given
    double roi_start, roi_end;
    bool active;
} resize_axis;

typedef struct resize {
    resize_axis axes[BERTH_MAX_RANK];
    const char *mode, *coordinates, *nearest;
    bool exclude_outside, antialias, crop;
    double cubic_a, extrapolation;
} resize;

// As in ONNX's reference and its test data, align_corners uses the length before rounding
// (in * scale), which differs from `out` when the scale is given. The others use `out`, as their
// texts say and as other implementations do.
static double source_coordinate(const resize *r, const resize_axis *a, int64_t i) {
    double x = (double)i, in = (double)a->in, length = in * a->scale;
    const char *how = r->coordinates;
    if (strcmp(how, "align_corners") == 0) return i == 0 ? 0 : x * (in - 1) / (length - 1);
    if (strcmp(how, "asymmetric") == 0) return x / a->scale;
    if (strcmp(how, "tf_half_pixel_for_nn") == 0) return (x + 0.5) / a->scale;
    if (strcmp(how, "pytorch_half_pixel") == 0 && a->out <= 1) return 0;
    if (strcmp(how, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - (double)a->out / length) + (x + 0.5) / a->scale - 0.5;
    if (r->crop) return berth_resize_crop_place(a->roi_start, a->roi_end, a->in, a->out, i);
    return (x + 0.5) / a->scale - 0.5;
}

// The coordinate for choosing the nearest element. Scales are floats: 1.5 / 0.6f is below 2.5, but
// 2.5 when rounded to a float, as it was meant. So every step of the simple formulas is a float's.
static double nearest_coordinate(const resize *r, const resize_axis *a, int64_t i) {
    bool corners = strcmp(r->coordinates, "align_corners") == 0;
    bool half = strcmp(r->coordinates, "half_pixel") == 0 ||
                (strcmp(r->coordinates, "pytorch_half_pixel") == 0 && a->out > 1);
    bool plain = strcmp(r->coordinates, "asymmetric") == 0;
    if (corners || (!half && !plain)) return source_coordinate(r, a, i);
    float shift = half ? 0.5f : 0.0f;
    float scaled = ((float)i + shift) / (float)a->scale;
    return (double)(scaled - shift);
}

static int64_t nearest_index(const resize *r, const resize_axis *a, int64_t i) {
    double x = nearest_coordinate(r, a, i), rounded = ceil(x - 0.5);
    if (strcmp(r->nearest, "round_prefer_ceil") == 0) rounded = floor(x + 0.5);
    if (strcmp(r->nearest, "floor") == 0) rounded = floor(x);
    if (strcmp(r->nearest, "ceil") == 0) rounded = ceil(x);
    return (int64_t)fmax(0, fmin((double)(a->in - 1), rounded));
}

static double kernel_weight(const resize *r, double distance) {
    double x = fabs(distance), a = r->cubic_a;
    if (r->mode[0] == 'l') return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Taps around output i: *out_first and the normalised weights; returns how many.
static int64_t find_taps(const resize *r, const resize_axis *a, int64_t i, double *weights,
                         int64_t *out_first) {
    double x = source_coordinate(r, a, i), low = floor(x), total = 0;
    double stretch = r->antialias && a->scale < 1 ? a->scale : 1;
    double radius = r->mode[0] == 'l' ? 1 : 2;
    int64_t start = (int64_t)floor(-radius / stretch) + 1, count = 2 - 2 * start;
    *out_first = (int64_t)low + start;
    for (int64_t k = 0; k < count; ++k) {
        int64_t place = *out_first + k;
        bool outside = place < 0 || place >= a->in;
        weights[k] = r->exclude_outside && outside
                         ? 0
                         : kernel_weight(r, ((double)(start + k) - (x - low)) * stretch);
        total += weights[k];
    }
    for (int64_t k = 0; k < count && total != 0; ++k) weights[k] /= total;
    return count;
}

// Resizes axis `axis` of values with extents dims (replaced by the new extent).
static const double *resize_one(berth_eval_context *ctx, const resize *r, int axis,
                                const double *values, int64_t *dims, int rank) {
    const resize_axis *a = &r->axes[axis];
    int64_t outer = berth_eval__product(dims, 0, axis);
    int64_t inner = berth_eval__product(dims, axis + 1, rank);
    double *result = berth_eval__doubles(ctx, outer * a->out * inner);
    double span = ceil(2 / (a->scale < 1 ? a->scale : 1));
    double *weights = berth_eval__doubles(ctx, 2 * (int64_t)span + 4);
    for (int64_t i = 0; i < a->out; ++i) {
        int64_t first = 0, count = find_taps(r, a, i, weights, &first);
        for (int64_t k = 0; k < count; ++k) {
            int64_t place = first + k;
            place = place < 0 ? 0 : place >= a->in ? a->in - 1 : place;
            for (int64_t o = 0; o < outer; ++o)
                for (int64_t j = 0; j < inner; ++j)
                    result[(o * a->out + i) * inner + j] +=
                        weights[k] * values[(o * a->in + place) * inner + j];
        }
    }
    dims[axis] = a->out;
    return result;
}

static void resize_nearest(berth_eval_context *ctx, const resize *r) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_tensor *out = &ctx->outputs[0];
    int64_t *places[BERTH_MAX_RANK], strides[BERTH_MAX_RANK], index[BERTH_MAX_RANK] = {0};
    berth_eval__strides(x, strides);
    for (int d = 0; d < x->rank; ++d) {
        places[d] = berth_eval__indices(ctx, r->axes[d].out);
        for (int64_t i = 0; i < r->axes[d].out; ++i)
            places[d][i] = (r->axes[d].active ? nearest_index(r, &r->axes[d], i) : i) * strides[d];
    }
    int64_t count = berth_tensor_element_count(out);
    for (int64_t i = 0; i < count; ++i, berth_eval__next(index, out->dims, out->rank)) {
        int64_t from = 0;
        for (int d = 0; d < x->rank; ++d) from += places[d][index[d]];
        berth_eval__copy_element(out->data, i, x->data, from, berth_dtype_size_bytes(x->dtype));
    }
}

// tf_crop_and_resize: elements whose source lies outside get the extrapolation value.
static void extrapolate(berth_eval_context *ctx, const resize *r) {
    berth_tensor *out = &ctx->outputs[0];
    int64_t index[BERTH_MAX_RANK] = {0}, count = berth_tensor_element_count(out);
    for (int64_t i = 0; i < count; ++i, berth_eval__next(index, out->dims, out->rank)) {
        bool outside = false;
        for (int d = 0; d < out->rank && !outside; ++d) {
            if (!r->axes[d].active) continue;
            double x = source_coordinate(r, &r->axes[d], index[d]);
            outside = x < 0 || x > (double)(r->axes[d].in - 1);
        }
        if (outside) berth_eval__set_f64(out, i, r->extrapolation);
    }
}

// ---- operands

static const berth_tensor *non_empty(const berth_eval_context *ctx, uint32_t index) {
    const berth_tensor *tensor = berth_eval__optional(ctx, index);
    return tensor && berth_tensor_element_count(tensor) > 0 ? tensor : NULL;
}

static berth_status apply_sizes(const berth_eval_context *ctx, const berth_tensor *sizes,
                                const int *axes, int count, resize *r) {
    const char *policy = berth_eval__string(ctx, "keep_aspect_ratio_policy", "stretch");
    bool stretch = strcmp(policy, "stretch") == 0, larger = strcmp(policy, "not_smaller") == 0;
    double common = 0;
    BERTH_TRY(berth_eval__need_count(sizes, "sizes", count));
    for (int i = 0; i < count; ++i) {
        resize_axis *a = &r->axes[axes[i]];
        a->out = berth_tensor_get_i64(sizes, i);
        a->scale = (double)a->out / (double)a->in;
        if (i == 0 || (larger ? a->scale > common : a->scale < common)) common = a->scale;
    }
    for (int i = 0; !stretch && i < count; ++i) {
        resize_axis *a = &r->axes[axes[i]];
        a->scale = common;
        a->out = (int64_t)floor(common * (double)a->in + 0.5);
    }
    return BERTH_OK;
}

static berth_status read_axes(const berth_eval_context *ctx, resize *r) {
    const berth_tensor *x = &ctx->inputs[0], *roi = non_empty(ctx, 1);
    const berth_tensor *scales = non_empty(ctx, 2), *sizes = non_empty(ctx, 3);
    uint32_t given = 0;
    const int64_t *list = berth_attrs_ints(ctx->module, &ctx->op->attrs, "axes", &given);
    int axes[BERTH_MAX_RANK], count = list ? (int)given : x->rank;
    if (count > BERTH_MAX_RANK || (!scales && !sizes))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "neither scales nor sizes are given");
    for (int d = 0; d < x->rank; ++d)
        r->axes[d] = (resize_axis){.in = x->dims[d], .out = x->dims[d], .scale = 1, .roi_end = 1};
    for (int i = 0; i < count; ++i) {
        axes[i] = i;
        if (list) BERTH_TRY(berth_axis_resolve(list[i], x->rank, "axes", &axes[i]));
        r->axes[axes[i]].active = true;
    }
    if (r->crop && !roi) return berth_status_make(BERTH_INVALID_ARGUMENT, "roi is missing");
    if (r->crop) BERTH_TRY(berth_eval__need_count(roi, "roi", 2 * (int64_t)count));
    if (!sizes) BERTH_TRY(berth_eval__need_count(scales, "scales", count));
    if (sizes) BERTH_TRY(apply_sizes(ctx, sizes, axes, count, r));
    for (int i = 0; i < count; ++i) {
        resize_axis *a = &r->axes[axes[i]];
        if (!sizes) {
            a->scale = berth_tensor_get_f64(scales, i);
            double extent = floor((double)a->in * a->scale);
            a->out = extent < 0x1p40 ? (int64_t)extent : -1;
        }
        if (!(a->scale > 0) || a->in < 1 || a->out < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "dimension %d of extent %lld cannot be scaled by %g", axes[i],
                                     (long long)a->in, a->scale);
        if (r->crop) {
            a->roi_start = berth_tensor_get_f64(roi, i);
            a->roi_end = berth_tensor_get_f64(roi, i + count);
        }
        if (a->scale == 1 && a->in == a->out && !r->crop) a->active = false;
    }
    return BERTH_OK;
}

static berth_status check_modes(const resize *r) {
    static const char *const known[] = {
        "half_pixel",    "half_pixel_symmetric", "asymmetric",        "pytorch_half_pixel",
        "align_corners", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    bool found = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i)
        found = found || strcmp(r->coordinates, known[i]) == 0;
    if (!found)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "coordinate_transformation_mode %s is not known", r->coordinates);
    if (strcmp(r->mode, "nearest") != 0 && strcmp(r->mode, "linear") != 0 &&
        strcmp(r->mode, "cubic") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "mode %s is not known", r->mode);
    return BERTH_OK;
}

berth_status berth_eval__resize(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    resize r = {.mode = berth_eval__string(ctx, "mode", "nearest"),
                .coordinates =
                    berth_eval__string(ctx, "coordinate_transformation_mode", "half_pixel"),
                .nearest = berth_eval__string(ctx, "nearest_mode", "round_prefer_floor"),
                .exclude_outside = berth_eval__int(ctx, "exclude_outside", 0) != 0,
                .antialias = berth_eval__int(ctx, "antialias", 0) != 0,
                .cubic_a = berth_eval__float(ctx, "cubic_coeff_a", -0.75),
                .extrapolation = berth_eval__float(ctx, "extrapolation_value", 0)};
    r.crop = strcmp(r.coordinates, "tf_crop_and_resize") == 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(check_modes(&r));
    BERTH_TRY(read_axes(ctx, &r));
    for (int d = 0; d < x->rank; ++d) dims[d] = r.axes[d].out;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    if (strcmp(r.mode, "nearest") == 0) {
        resize_nearest(ctx, &r);
    } else {
        const double *values = berth_eval__load_f64(ctx, x);
        memcpy(dims, x->dims, sizeof(dims));
        for (int d = 0; d < x->rank; ++d)
            if (r.axes[d].active) values = resize_one(ctx, &r, d, values, dims, x->rank);
        berth_eval__store_f64(&ctx->outputs[0], values);
    }
    if (r.crop) extrapolate(ctx, &r);
    return BERTH_OK;
}
