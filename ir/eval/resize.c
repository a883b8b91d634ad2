// resize: every axis by itself, as weighted taps (Keys, "Cubic convolution interpolation for
// digital image processing", 1981, for the cubic kernel; antialiasing stretches the kernel).
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

typedef struct resize_axis {
    berth_resize_axis at;
    bool active;
} resize_axis;

typedef struct resize {
    resize_axis axes[BERTH_MAX_RANK];
    const char *mode, *coordinates, *nearest;
    bool exclude_outside, antialias, crop;
    double cubic_a, extrapolation;
} resize;

static double kernel_weight(const resize *r, double distance) {
    double x = fabs(distance), a = r->cubic_a;
    if (r->mode[0] == 'l') return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Taps around output i: *out_first and the normalised weights; returns how many.
static int64_t find_taps(const resize *r, const resize_axis *a, int64_t i, double *weights,
                         int64_t *out_first) {
    double x = berth_resize_place(&a->at, i), low = floor(x), total = 0;
    double stretch = r->antialias && a->at.scale < 1 ? a->at.scale : 1;
    double radius = r->mode[0] == 'l' ? 1 : 2;
    int64_t start = (int64_t)floor(-radius / stretch) + 1, count = 2 - 2 * start;
    *out_first = (int64_t)low + start;
    for (int64_t k = 0; k < count; ++k) {
        int64_t place = *out_first + k;
        bool outside = place < 0 || place >= a->at.in;
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
    double *result = berth_eval__doubles(ctx, outer * a->at.out * inner);
    double span = ceil(2 / (a->at.scale < 1 ? a->at.scale : 1));
    double *weights = berth_eval__doubles(ctx, 2 * (int64_t)span + 4);
    for (int64_t i = 0; i < a->at.out; ++i) {
        int64_t first = 0, count = find_taps(r, a, i, weights, &first);
        for (int64_t k = 0; k < count; ++k) {
            int64_t place = first + k;
            place = place < 0 ? 0 : place >= a->at.in ? a->at.in - 1 : place;
            for (int64_t o = 0; o < outer; ++o)
                for (int64_t j = 0; j < inner; ++j)
                    result[(o * a->at.out + i) * inner + j] +=
                        weights[k] * values[(o * a->at.in + place) * inner + j];
        }
    }
    dims[axis] = a->at.out;
    return result;
}

static void resize_nearest(berth_eval_context *ctx, const resize *r) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_tensor *out = &ctx->outputs[0];
    int64_t *places[BERTH_MAX_RANK], strides[BERTH_MAX_RANK], index[BERTH_MAX_RANK] = {0};
    berth_eval__strides(x, strides);
    for (int d = 0; d < x->rank; ++d) {
        places[d] = berth_eval__indices(ctx, r->axes[d].at.out);
        for (int64_t i = 0; i < r->axes[d].at.out; ++i)
            places[d][i] =
                (r->axes[d].active ? berth_resize_nearest(&r->axes[d].at, r->nearest, i) : i) *
                strides[d];
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
            double x = berth_resize_place(&r->axes[d].at, index[d]);
            outside = x < 0 || x > (double)(r->axes[d].at.in - 1);
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
        a->at.out = berth_tensor_get_i64(sizes, i);
        a->at.scale = (double)a->at.out / (double)a->at.in;
        if (i == 0 || (larger ? a->at.scale > common : a->at.scale < common)) common = a->at.scale;
    }
    for (int i = 0; !stretch && i < count; ++i) {
        resize_axis *a = &r->axes[axes[i]];
        a->at.scale = common;
        a->at.out = (int64_t)floor(common * (double)a->at.in + 0.5);
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
        r->axes[d] = (resize_axis){.at = {r->coordinates, x->dims[d], x->dims[d], 1, 0, 1}};
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
            a->at.scale = berth_tensor_get_f64(scales, i);
            double extent = berth_resize_extent(a->at.in, a->at.scale);
            a->at.out = extent < 0x1p40 ? (int64_t)extent : -1;
        }
        if (!(a->at.scale > 0) || a->at.in < 1 || a->at.out < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "dimension %d of extent %lld cannot be scaled by %g", axes[i],
                                     (long long)a->at.in, a->at.scale);
        if (r->crop) {
            a->at.roi_start = berth_tensor_get_f64(roi, i);
            a->at.roi_end = berth_tensor_get_f64(roi, i + count);
        }
        if (a->at.scale == 1 && a->at.in == a->at.out && !r->crop) a->active = false;
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
    for (int d = 0; d < x->rank; ++d) dims[d] = r.axes[d].at.out;
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
