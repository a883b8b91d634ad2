// resize: every axis by itself. A source coordinate is affine in the output's index; where it is a
// fraction with a small denominator, positions and weights are exact integer arithmetic. Cubic
// kernel: Keys, "Cubic convolution interpolation for digital image processing", 1981.
#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

enum { max_denominator = 8192, max_taps = 256 };

typedef struct axis {
    berth_resize_axis place;
    bool active;
    double shift;  // source coordinate = (i + shift) * numerator / denominator + offset
    double numerator;
    double denominator;
    double offset;
    bool crop;  // tf_crop_and_resize
} axis;

typedef struct resize {
    const berth_op *op;
    int rank;
    axis axes[BERTH_MAX_RANK];
    char mode;  // 'n'earest, 'l'inear, 'c'ubic
    const char *nearest;
    bool exclude_outside;
    bool antialias;
    double cubic_a;
    const berth_expr *at;  // of the output
} resize;

// ---- operands -----------------------------------------------------------------------------------

static const berth_tensor *filled(berth_lower *c, const berth_op *op, uint32_t operand) {
    if (!has_in(op, operand)) return NULL;
    const berth_tensor *tensor = berth_lower__constant(c, op, operand);
    return tensor && berth_tensor_element_count(tensor) > 0 ? tensor : NULL;
}

static int listed_axes(berth_lower *c, const berth_op *op, int rank, int *axes) {
    uint32_t given = 0;
    const int64_t *list = berth_attrs_ints(c->module, &op->attrs, "axes", &given);
    int count = list ? (int)given : rank;
    for (int i = 0; i < count && i < BERTH_MAX_RANK; ++i) {
        axes[i] = i;
        if (list) berth_lower__check(c, op, berth_axis_resolve(list[i], rank, "axes", &axes[i]));
    }
    return count;
}

// sizes that keep the aspect ratio share one scale
static void scales_from_sizes(berth_lower *c, resize *r, const berth_tensor *sizes, const int *axes,
                              int count) {
    const char *policy = attr_str(c, r->op, "keep_aspect_ratio_policy", "stretch");
    bool larger = strcmp(policy, "not_smaller") == 0;
    double common = 0;
    for (int i = 0; i < count; ++i) {
        axis *a = &r->axes[axes[i]];
        a->place.scale = berth_tensor_get_f64(sizes, i) / (double)a->place.in;
        if (i == 0 || (larger ? a->place.scale > common : a->place.scale < common))
            common = a->place.scale;
    }
    for (int i = 0; strcmp(policy, "stretch") != 0 && i < count; ++i)
        r->axes[axes[i]].place.scale = common;
}

// The affine map of one axis. In align_corners the length before rounding (in * scale) takes part,
// as in ONNX's test data; elsewhere the extent does.
static bool place_axis(const char *how, axis *a) {
    double in = (double)a->place.in;
    double length = in * a->place.scale;
    a->shift = 0.5;
    a->numerator = 1;
    a->denominator = a->place.scale;
    a->offset = -0.5;
    if (strcmp(how, "half_pixel") == 0) return true;
    if (strcmp(how, "pytorch_half_pixel") == 0) {
        if (a->place.out <= 1) a->numerator = a->offset = 0;
    } else if (strcmp(how, "asymmetric") == 0) {
        a->shift = a->offset = 0;
    } else if (strcmp(how, "tf_half_pixel_for_nn") == 0) {
        a->offset = 0;
    } else if (strcmp(how, "align_corners") == 0) {
        a->shift = a->offset = 0;
        a->numerator = a->place.out == 1 ? 0 : in - 1;
        a->denominator = a->place.out == 1 ? 1 : length - 1;
    } else if (strcmp(how, "half_pixel_symmetric") == 0) {
        a->offset = in / 2 * (1 - (double)a->place.out / length) - 0.5;
    } else if (strcmp(how, "tf_crop_and_resize") == 0) {
        a->crop = true;
        bool line = a->place.out > 1;
        a->shift = 0;
        a->numerator = line ? (a->place.roi_end - a->place.roi_start) * (in - 1) : 0;
        a->denominator = line ? (double)(a->place.out - 1) : 1;
        a->offset = line ? a->place.roi_start * (in - 1)
                         : 0.5 * (a->place.roi_start + a->place.roi_end) * (in - 1);
    } else {
        return false;
    }
    return true;
}

static double source_coordinate(const axis *a, int64_t i) {
    if (a->crop) return berth_resize_place(&a->place, i);
    return ((double)i + a->shift) * a->numerator / a->denominator + a->offset;
}

// Coordinates that indices and the sums of them hold, exactly.
static bool coordinates_fit(const axis *a) {
    const double most = 0x1p40;
    return fabs(source_coordinate(a, 0)) <= most &&
           fabs(source_coordinate(a, a->place.out - 1)) <= most;
}

static bool describe(berth_lower *c, const berth_op *op, resize *r) {
    const berth_type *x = in_type(c, op, 0);
    const char *how = attr_str(c, op, "coordinate_transformation_mode", "half_pixel");
    const berth_tensor *roi = filled(c, op, 1);
    const berth_tensor *scales = filled(c, op, 2);
    const berth_tensor *sizes = filled(c, op, 3);
    bool crop = strcmp(how, "tf_crop_and_resize") == 0;
    int axes[BERTH_MAX_RANK] = {0};
    *r = (resize){.op = op, .rank = x->rank, .mode = attr_str(c, op, "mode", "nearest")[0]};
    r->nearest = attr_str(c, op, "nearest_mode", "round_prefer_floor");
    r->exclude_outside = attr_int(c, op, "exclude_outside", 0) != 0;
    r->antialias = attr_int(c, op, "antialias", 0) != 0;
    r->cubic_a = attr_float(c, op, "cubic_coeff_a", -0.75);
    for (int d = 0; d < x->rank; ++d)
        r->axes[d] = (axis){.place = {how, x->dims[d], out_type(c, op, 0)->dims[d], 1, 0, 1}};
    int count = listed_axes(c, op, x->rank, axes);
    const berth_tensor *given = sizes ? sizes : scales;
    if (c->failure) return false;
    if (!given || berth_tensor_element_count(given) != count || (crop && !roi)) {
        berth_lower__fail(c, op, "operands scales, sizes and roi do not fit");
        return false;
    }
    if (sizes) scales_from_sizes(c, r, sizes, axes, count);
    for (int i = 0; i < count; ++i) {
        axis *a = &r->axes[axes[i]];
        if (!sizes) a->place.scale = berth_tensor_get_f64(scales, i);
        if (crop) a->place.roi_start = berth_tensor_get_f64(roi, i);
        if (crop) a->place.roi_end = berth_tensor_get_f64(roi, i + count);
        a->active = crop || a->place.scale != 1 || a->place.in != a->place.out;
        if (!(a->place.scale > 0) || !place_axis(how, a)) {
            berth_lower__fail(c, op, "scale %g with coordinate_transformation_mode %s",
                              a->place.scale, how);
            return false;
        }
        if (a->place.out == 0) a->active = false;  // nothing is computed
        if (a->active && !coordinates_fit(a)) {
            berth_lower__fail(c, op, "coordinates of dimension %d reach %g", axes[i],
                              source_coordinate(a, a->place.out - 1));
            return false;
        }
    }
    return true;
}

// ---- nearest ------------------------------------------------------------------------------------

// Finds q with clamp(floor((p * i + q) / r)) = nearest index for every i. O(out).
static bool fit_quotient(const resize *r, const axis *a, int64_t p, int64_t den, int64_t *out_q) {
    int64_t low = INT64_MIN;
    int64_t high = INT64_MAX;
    for (int64_t i = 0; i < a->place.out; ++i) {
        int64_t wanted = berth_resize_nearest(&a->place, r->nearest, i);
        int64_t least = wanted * den - p * i;
        if (wanted > 0 && least > low) low = least;
        if (wanted < a->place.in - 1 && least + den - 1 < high) high = least + den - 1;
        if (low > high) return false;
    }
    *out_q = low > INT64_MIN ? low : high < INT64_MAX ? high : 0;
    if (low < 0 && high >= 0) *out_q = 0;
    return true;
}

static berth_expr clamp_index(berth_lower *c, berth_expr index, int64_t extent) {
    return x_max(c, ix(c, 0), x_min(c, index, ix(c, extent - 1)));
}

static berth_expr nearest_at(berth_lower *c, const resize *r, int d) {
    const axis *a = &r->axes[d];
    double slope = a->numerator / a->denominator;
    for (int64_t den = 1; den <= max_denominator; ++den) {
        int64_t p = llround(slope * (double)den);
        int64_t q = 0;
        if (fabs((double)p - slope * (double)den) * (double)a->place.out > (double)den) continue;
        if (!fit_quotient(r, a, p, den, &q)) continue;
        berth_expr scaled = x_addi(c, x_muli(c, r->at[d], p), q);
        return clamp_index(c, x_div(c, scaled, ix(c, den)), a->place.in);
    }
    berth_lower__fail(c, r->op, "scale %g of dimension %d has no exact form", a->place.scale, d);
    return r->at[d];
}

static berth_expr nearest(berth_lower *c, const resize *r) {
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < r->rank; ++d)
        mapped[d] = r->axes[d].active ? nearest_at(c, r, d) : r->at[d];
    return in_at(c, r->op, 0, mapped);
}

// ---- linear and cubic ---------------------------------------------------------------------------

// Floor of the source coordinate as an index and the rest in [0, 1).
static void split_coordinate(berth_lower *c, const axis *a, berth_expr i, berth_dtype t,
                             berth_expr *out_low, berth_expr *out_rest) {
    double slope = a->numerator / a->denominator;
    double offset = slope * a->shift + a->offset;
    for (int64_t den = 1; den <= max_denominator; ++den) {
        double p = slope * (double)den;
        double q = offset * (double)den;
        if (fabs(p - round(p)) > 1e-9 * (double)den || fabs(q - round(q)) > 1e-9 * (double)den)
            continue;
        berth_expr scaled = x_addi(c, x_muli(c, i, llround(p)), llround(q));
        *out_low = x_div(c, scaled, ix(c, den));
        berth_expr rest = berth_tfn_from_index(c->fn, t, x_mod(c, scaled, ix(c, den)));
        *out_rest = x_mul(c, rest, num(c, t, 1.0 / (double)den));
        return;
    }
    berth_expr x = x_mul(c, berth_tfn_from_index(c->fn, t, i), num(c, t, slope));
    x = x_add(c, x, num(c, t, offset));
    berth_expr low = x_unary(c, BERTH_UNARY_FLOOR, x);
    *out_low = berth_tfn_to_index(c->fn, low);
    *out_rest = x_sub(c, x, low);
}

static berth_expr kernel_weight(berth_lower *c, const resize *r, berth_expr distance) {
    berth_dtype t = dtype_of(c, distance);
    berth_expr x = x_unary(c, BERTH_UNARY_ABS, distance);
    berth_expr zero = num(c, t, 0);
    if (r->mode == 'l') return x_max(c, zero, x_sub(c, num(c, t, 1), x));
    double a = r->cubic_a;
    berth_expr near = x_sub(c, x_mul(c, num(c, t, a + 2), x), num(c, t, a + 3));
    near = x_add(c, x_mul(c, x_mul(c, near, x), x), num(c, t, 1));
    berth_expr far = x_sub(c, x_mul(c, num(c, t, a), x), num(c, t, 5 * a));
    far = x_add(c, x_mul(c, far, x), num(c, t, 8 * a));
    far = x_sub(c, x_mul(c, far, x), num(c, t, 4 * a));
    return x_select(c, x_le(c, x, num(c, t, 1)), near,
                    x_select(c, x_lt(c, x, num(c, t, 2)), far, zero));
}

typedef struct taps {
    int count;
    berth_expr index[max_taps];
    berth_expr weight[max_taps];
} taps;

static bool find_taps(berth_lower *c, const resize *r, int d, berth_dtype t, taps *out) {
    const axis *a = &r->axes[d];
    double stretch = r->antialias && a->place.scale < 1 ? a->place.scale : 1;
    int64_t count = berth_resize_taps(r->mode == 'c', r->antialias, a->place.scale);
    int64_t start = 1 - count / 2;
    berth_expr low = 0;
    berth_expr rest = 0;
    berth_expr total = 0;
    if (count > max_taps) {
        berth_lower__fail(c, r->op, "antialiasing over %lld elements", (long long)count);
        return false;
    }
    split_coordinate(c, a, r->at[d], t, &low, &rest);
    out->count = (int)count;
    for (int k = 0; k < count; ++k) {
        berth_expr place = x_addi(c, low, start + k);
        berth_expr distance = x_sub(c, num(c, t, (double)(start + k)), rest);
        berth_expr weight = kernel_weight(c, r, x_mul(c, distance, num(c, t, stretch)));
        berth_expr inside = x_and(c, x_ge(c, place, ix(c, 0)), x_lt(c, place, ix(c, a->place.in)));
        if (r->exclude_outside) weight = x_select(c, inside, weight, num(c, t, 0));
        out->index[k] = clamp_index(c, place, a->place.in);
        out->weight[k] = weight;
        total = total ? x_add(c, total, weight) : weight;
    }
    bool sums_to_one = stretch == 1 && !r->exclude_outside;
    for (int k = 0; !sums_to_one && k < count; ++k)
        out->weight[k] = x_div(c, out->weight[k], total);
    return true;
}

// Weighted sum over the taps of dimensions d, d + 1, ...
static berth_expr interpolate(berth_lower *c, const resize *r, taps *const *all, int d,
                              berth_dtype t, berth_expr *mapped) {
    while (d < r->rank && !r->axes[d].active) {
        mapped[d] = r->at[d];
        d++;
    }
    if (d == r->rank) return x_cast(c, t, in_at(c, r->op, 0, mapped));
    berth_expr sum = 0;
    for (int k = 0; k < all[d]->count; ++k) {
        mapped[d] = all[d]->index[k];
        berth_expr value = interpolate(c, r, all, d + 1, t, mapped);
        sum = sum ? berth_tfn_fma(c->fn, all[d]->weight[k], value, sum)
                  : x_mul(c, all[d]->weight[k], value);
    }
    return sum;
}

// tf_crop_and_resize: what lies outside the input. The coordinate is monotonous, so it is a range
// of indices.
static berth_expr inside_crop(berth_lower *c, const resize *r) {
    berth_expr inside = 0;
    for (int d = 0; d < r->rank; ++d) {
        const axis *a = &r->axes[d];
        int64_t first = a->place.out;
        int64_t end = 0;
        for (int64_t i = 0; a->active && i < a->place.out; ++i) {
            double x = source_coordinate(a, i);
            if (x < 0 || x > (double)(a->place.in - 1)) continue;
            if (i < first) first = i;
            end = i + 1;
        }
        if (!a->active) continue;
        inside = x_and(c, inside,
                       x_and(c, x_ge(c, r->at[d], ix(c, first)), x_lt(c, r->at[d], ix(c, end))));
    }
    return inside;
}

berth_expr berth_lower__resize(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    berth_dtype to = out_dtype(c, op, output);
    berth_dtype t = berth_dtype_is_float(to) ? to : BERTH_DTYPE_F32;
    resize r;
    if (!describe(c, op, &r)) return num(c, to, 0);
    r.at = at;
    berth_expr value;
    if (r.mode == 'n') {
        value = nearest(c, &r);
    } else {
        taps *all[BERTH_MAX_RANK] = {NULL};
        int64_t products = 1;
        for (int d = 0; d < r.rank; ++d) {
            if (!r.axes[d].active) continue;
            all[d] = berth_arena_new(c->scratch, taps);
            if (!find_taps(c, &r, d, t, all[d])) return num(c, to, 0);
            products *= all[d]->count;
        }
        if (products > max_taps)
            berth_lower__fail(c, op, "%lld taps per element", (long long)products);
        if (c->failure) return num(c, to, 0);
        berth_expr mapped[BERTH_MAX_RANK];
        value = x_cast(c, to, interpolate(c, &r, all, 0, t, mapped));
    }
    const char *how = attr_str(c, op, "coordinate_transformation_mode", "half_pixel");
    if (strcmp(how, "tf_crop_and_resize") != 0) return value;
    return x_select(c, inside_crop(c, &r), value,
                    num(c, to, attr_float(c, op, "extrapolation_value", 0)));
}
