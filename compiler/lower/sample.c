// Sampling at computed places: grid_sample, roi_align, max_roi_pool.
#include "compiler/lower/families.h"

#include <string.h>

// ---- grid_sample --------------------------------------------------------------------------------

typedef struct sampler {
    int spatial;
    const int64_t *extents;
    char mode;     // 'l'inear, 'n'earest, 'c'ubic
    char padding;  // 'z'eros, 'b'order, 'r'eflection
    bool align_corners;
    berth_dtype t;
} sampler;

static berth_expr clamp(berth_lower *c, berth_expr x, double low, double high) {
    berth_dtype t = dtype_of(c, x);
    return x_max(c, num(c, t, low), x_min(c, x, num(c, t, high)));
}

static double border_low(const sampler *s) {
    return s->align_corners ? 0 : -0.5;
}

static double border_high(const sampler *s, int d) {
    return (double)s->extents[d] - (s->align_corners ? 1 : 0.5);
}

// x mirrored at the borders until it lies between them.
static berth_expr reflect(berth_lower *c, const sampler *s, int d, berth_expr x) {
    double low = border_low(s);
    double high = border_high(s, d);
    berth_expr bottom = num(c, s->t, low);
    berth_expr top = num(c, s->t, high);
    if (high <= low) return bottom;
    berth_expr range = num(c, s->t, high - low);
    berth_expr below = x_lt(c, x, bottom);
    berth_expr inside = x_and(c, x_ge(c, x, bottom), x_le(c, x, top));
    berth_expr distance = x_select(c, below, x_sub(c, bottom, x), x_sub(c, x, top));
    berth_expr turns = x_unary(c, BERTH_UNARY_FLOOR, x_div(c, distance, range));
    berth_expr rest = x_sub(c, distance, x_mul(c, turns, range));
    berth_expr even = x_eq(c, x_mod(c, turns, num(c, s->t, 2)), num(c, s->t, 0));
    berth_expr from_low = x_add(c, bottom, rest);
    berth_expr from_high = x_sub(c, top, rest);
    return x_select(c, inside, x, x_select(c, x_eq(c, below, even), from_low, from_high));
}

// A cubic kernel beside a border lies where its centre is: its pixels are clamped, one by one.
static berth_expr coordinate(berth_lower *c, const sampler *s, int d, berth_expr given) {
    double extent = (double)s->extents[d];
    berth_expr one = num(c, s->t, 1);
    berth_expr x = x_add(c, given, one);
    if (s->align_corners)
        x = x_mul(c, x_mul(c, x, num(c, s->t, 0.5)), num(c, s->t, extent - 1));
    else
        x = x_mul(c, x_sub(c, x_mul(c, x, num(c, s->t, extent)), one), num(c, s->t, 0.5));
    if (s->mode == 'n') x = x_unary(c, BERTH_UNARY_ROUND, x);
    if (s->padding == 'z' || (s->padding == 'b' && s->mode == 'c')) return x;
    if (s->padding == 'r') return reflect(c, s, d, x);
    berth_expr inside = x_and(c, x_ge(c, x, num(c, s->t, border_low(s))),
                              x_le(c, x, num(c, s->t, border_high(s, d))));
    return x_select(c, inside, x, clamp(c, x, 0, extent - 1));
}

static berth_expr cubic(berth_lower *c, berth_expr distance) {
    const double a = -0.75;  // Keys 1981, as the operator's text has it
    berth_dtype t = dtype_of(c, distance);
    berth_expr x = x_unary(c, BERTH_UNARY_ABS, distance);
    berth_expr near = x_sub(c, x_mul(c, num(c, t, a + 2), x), num(c, t, a + 3));
    near = x_add(c, x_mul(c, x_mul(c, near, x), x), num(c, t, 1));
    berth_expr far = x_add(c, x_mul(c, x_sub(c, x_mul(c, num(c, t, a), x), num(c, t, 5 * a)), x),
                           num(c, t, 8 * a));
    far = x_sub(c, x_mul(c, far, x), num(c, t, 4 * a));
    return x_select(c, x_le(c, x, num(c, t, 1)), near, far);
}

enum { max_spatial = 3 };

typedef struct sample_taps {
    int count;
    berth_expr index[4];
    berth_expr weight[4];  // 0 where outside with zero padding
} sample_taps;

static void find_taps(berth_lower *c, const sampler *s, int d, berth_expr x, sample_taps *out) {
    int first = s->mode == 'c' ? -1 : 0;
    out->count = s->mode == 'n' ? 1 : s->mode == 'c' ? 4 : 2;
    berth_expr low = x_unary(c, s->mode == 'n' ? BERTH_UNARY_ROUND : BERTH_UNARY_FLOOR, x);
    for (int k = 0; k < out->count; ++k) {
        berth_expr place = x_add(c, low, num(c, s->t, first + k));
        berth_expr distance = x_sub(c, x, place);
        berth_expr one = num(c, s->t, 1);
        berth_expr weight = s->mode == 'n'   ? one
                            : s->mode == 'c' ? cubic(c, distance)
                                             : x_sub(c, one, x_unary(c, BERTH_UNARY_ABS, distance));
        berth_expr last = num(c, s->t, (double)(s->extents[d] - 1));
        berth_expr inside = x_and(c, x_ge(c, place, num(c, s->t, 0)), x_le(c, place, last));
        if (s->padding == 'z') weight = x_select(c, inside, weight, num(c, s->t, 0));
        if (s->padding == 'r') place = x_select(c, inside, place, reflect(c, s, d, place));
        berth_expr index =
            berth_tfn_to_index(c->fn, clamp(c, place, 0, (double)(s->extents[d] - 1)));
        out->index[k] = x_max(c, ix(c, 0), x_min(c, index, ix(c, s->extents[d] - 1)));
        out->weight[k] = weight;
    }
}

static berth_expr weighted_sum(berth_lower *c, const berth_op *op, const sampler *s,
                               const sample_taps *taps, int d, berth_expr *at) {
    if (d == s->spatial || d == max_spatial) return x_cast(c, s->t, in_at(c, op, 0, at));
    berth_expr sum = 0;
    for (int k = 0; k < taps[d].count; ++k) {
        at[2 + d] = taps[d].index[k];
        berth_expr value = x_mul(c, taps[d].weight[k], weighted_sum(c, op, s, taps, d + 1, at));
        sum = sum ? x_add(c, sum, value) : value;
    }
    return sum;
}

berth_expr berth_lower__grid_sample(berth_lower *c, const berth_op *op, uint32_t output,
                                    const berth_expr *at) {
    const berth_type *x = in_type(c, op, 0);
    const char *mode = attr_str(c, op, "mode", "linear");
    sampler s = {.spatial = x->rank - 2,
                 .extents = x->dims + 2,
                 .mode = mode[0] == 'b' ? mode[2] : mode[0],  // bilinear, bicubic: older names
                 .padding = attr_str(c, op, "padding_mode", "zeros")[0],
                 .align_corners = attr_int(c, op, "align_corners", 0) != 0,
                 .t = in_dtype(c, op, 1)};
    bool known = s.mode && s.padding && strchr("lnc", s.mode) && strchr("zbr", s.padding);
    if (s.spatial < 1 || s.spatial > max_spatial || !known || !berth_dtype_is_float(s.t)) {
        berth_lower__fail(c, op, "mode %s over %d dimensions", mode, s.spatial);
        return num(c, out_dtype(c, op, output), 0);
    }
    sample_taps taps[max_spatial];
    berth_expr grid_at[BERTH_MAX_RANK] = {at[0]};
    for (int d = 0; d < s.spatial; ++d) grid_at[1 + d] = at[2 + d];
    for (int d = 0; d < s.spatial; ++d) {
        grid_at[1 + s.spatial] = ix(c, s.spatial - 1 - d);  // x, y, z: innermost first
        find_taps(c, &s, d, coordinate(c, &s, d, in_at(c, op, 1, grid_at)), &taps[d]);
    }
    berth_expr mapped[BERTH_MAX_RANK] = {at[0], at[1]};
    return x_cast(c, out_dtype(c, op, output), weighted_sum(c, op, &s, taps, 0, mapped));
}

// ---- roi_align ----------------------------------------------------------------------------------

// He et al., "Mask R-CNN", 2017; borders as in the operator's text.
typedef struct roi {
    const berth_op *op;
    berth_dtype t;
    const int64_t *extents;  // h, w
    berth_expr number;       // of the roi
    berth_expr batch;
    berth_expr channel;
    berth_expr start[2];
    berth_expr bin[2];
    berth_expr samples[2];  // float
    bool adaptive;          // about one sample per element of the input; else `ratio`
    int64_t ratio;
} roi;

// More samples than this per bin and direction are refused: the work grows with their square.
enum { max_sampling_ratio = 1024 };

static berth_expr roi_entry(berth_lower *c, const roi *r, int64_t column) {
    berth_expr at[2] = {r->number, ix(c, column)};
    return x_cast(c, r->t, in_at(c, r->op, 1, at));
}

static void place_roi(berth_lower *c, roi *r, const int64_t *bins) {
    const char *how = attr_str(c, r->op, "coordinate_transformation_mode", "half_pixel");
    bool half = strcmp(how, "half_pixel") == 0;
    int64_t ratio = attr_int(c, r->op, "sampling_ratio", 0);
    if (ratio > max_sampling_ratio)
        berth_lower__fail(c, r->op, "sampling_ratio %lld (at most %d)", (long long)ratio,
                          max_sampling_ratio);
    r->adaptive = ratio <= 0;
    r->ratio = ratio;
    berth_expr scale = num(c, r->t, attr_float(c, r->op, "spatial_scale", 1));
    berth_expr shift = num(c, r->t, half ? 0.5 : 0);
    for (int d = 0; d < 2; ++d) {  // rois are x1, y1, x2, y2
        r->start[d] = x_sub(c, x_mul(c, roi_entry(c, r, 1 - d), scale), shift);
        berth_expr end = x_sub(c, x_mul(c, roi_entry(c, r, 3 - d), scale), shift);
        berth_expr size = x_sub(c, end, r->start[d]);
        if (!half) size = x_max(c, size, num(c, r->t, 1));
        r->bin[d] = x_div(c, size, num(c, r->t, (double)bins[d]));
        berth_expr adaptive = x_max(c, num(c, r->t, 0), x_unary(c, BERTH_UNARY_CEIL, r->bin[d]));
        r->samples[d] = r->adaptive ? adaptive : num(c, r->t, (double)ratio);
    }
}

// Opens the loop over the samples of dimension `d` of bin `bin` and gives the place of each. The
// coordinates of a region are data and may span any distance. Samples outside the input count as
// zero, and adaptive ones lie at most one element apart, so those that matter are few: the loop
// runs over them only. *out_skipped: whether it leaves some out.
static berth_expr sample_loop(berth_lower *c, const roi *r, int d, berth_expr bin,
                              berth_expr *out_skipped) {
    berth_expr all = r->adaptive ? berth_tfn_to_index(c->fn, r->samples[d]) : ix(c, r->ratio);
    berth_expr first = ix(c, 0);
    berth_expr count = all;
    berth_expr half = num(c, r->t, 0.5);
    berth_expr bin_number = berth_tfn_from_index(c->fn, r->t, bin);
    if (r->adaptive) {
        berth_expr begin = x_add(c, r->start[d], x_mul(c, bin_number, r->bin[d]));
        berth_expr step = x_div(c, r->bin[d], r->samples[d]);
        berth_expr before = x_div(c, x_sub(c, num(c, r->t, -2), begin), step);
        first = berth_tfn_to_index(c->fn, x_unary(c, BERTH_UNARY_FLOOR, before));
        first = x_max(c, ix(c, 0), x_min(c, first, all));
        count = x_min(c, x_sub(c, all, first), ix(c, 2 * r->extents[d] + 8));
    }
    *out_skipped = x_lt(c, count, all);
    berth_expr k = x_add(c, first, berth_lower__loop_to(c, d ? "sx" : "sy", count));
    berth_expr part = x_add(c, berth_tfn_from_index(c->fn, r->t, k), half);
    part = x_add(c, bin_number, x_div(c, part, r->samples[d]));
    return x_add(c, r->start[d], x_mul(c, part, r->bin[d]));
}

// The sum of the four weighted neighbours, or in mode max the largest of them (as ONNX's reference
// has it).
static berth_expr bilinear(berth_lower *c, const roi *r, const berth_expr *place, bool use_max) {
    berth_expr inside = 0;
    berth_expr index[2][2];
    berth_expr part[2];
    for (int d = 0; d < 2; ++d) {
        double extent = (double)r->extents[d];
        inside = x_and(c, inside, x_ge(c, place[d], num(c, r->t, -1)));
        inside = x_and(c, inside, x_le(c, place[d], num(c, r->t, extent)));
        berth_expr at = clamp(c, place[d], 0, extent - 1);
        berth_expr last = ix(c, r->extents[d] - 1);
        index[d][0] = x_max(c, ix(c, 0), x_min(c, berth_tfn_to_index(c->fn, at), last));
        index[d][1] = x_min(c, x_addi(c, index[d][0], 1), last);
        part[d] = x_sub(c, at, x_unary(c, BERTH_UNARY_FLOOR, at));
    }
    berth_expr sum = 0;
    for (int k = 0; k < 4; ++k) {
        berth_expr at[4] = {r->batch, r->channel, index[0][k / 2], index[1][k % 2]};
        berth_expr one = num(c, r->t, 1);
        berth_expr weight = x_mul(c, k / 2 ? part[0] : x_sub(c, one, part[0]),
                                  k % 2 ? part[1] : x_sub(c, one, part[1]));
        berth_expr term = x_mul(c, weight, x_cast(c, r->t, in_at(c, r->op, 0, at)));
        sum = !sum ? term : use_max ? x_max(c, sum, term) : x_add(c, sum, term);
    }
    return x_select(c, inside, sum, num(c, r->t, 0));
}

void berth_lower__roi_align(berth_lower *c, const berth_op *op) {
    static const char *const names[BERTH_MAX_RANK] = {"roi", "oc", "oh", "ow"};
    const berth_type *x = in_type(c, op, 0);
    berth_lower_grid grid;
    bool use_max = strcmp(attr_str(c, op, "mode", "avg"), "max") == 0;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    roi r = {.op = op,
             .t = out_dtype(c, op, 0),
             .extents = x->dims + 2,
             .number = grid.at[0],
             .channel = grid.at[1]};
    r.batch = berth_lower__data_index(c, in_at(c, op, 2, &r.number), x->dims[0]);
    place_roi(c, &r, out_type(c, op, 0)->dims + 2);
    berth_buf acc = berth_lower__register(c, "acc", r.t);
    berth_lower__set(c, acc, use_max ? berth_lower__lowest(c, r.t) : num(c, r.t, 0));
    berth_expr place[2];
    berth_expr skipped[2];
    for (int d = 0; d < 2; ++d) place[d] = sample_loop(c, &r, d, grid.at[2 + d], &skipped[d]);
    berth_expr value = bilinear(c, &r, place, use_max);
    berth_expr old = berth_lower__get(c, acc);
    berth_lower__set(c, acc, use_max ? x_max(c, old, value) : x_add(c, old, value));
    berth_lower__end_loops(c, 2);
    berth_expr count = x_mul(c, r.samples[0], r.samples[1]);
    berth_expr zero = num(c, r.t, 0);
    berth_expr result = berth_lower__get(c, acc);
    if (use_max)
        result = x_select(c, x_or(c, skipped[0], skipped[1]), x_max(c, result, zero), result);
    else
        result = x_div(c, result, count);
    berth_lower__store(c, op, 0, grid.at, x_select(c, x_eq(c, count, zero), zero, result));
    berth_lower__grid_end(c, &grid);
}

// ---- max_roi_pool -------------------------------------------------------------------------------

static berth_expr half_away(berth_lower *c, berth_expr x) {  // round() of C
    berth_dtype t = dtype_of(c, x);
    berth_expr size =
        x_unary(c, BERTH_UNARY_FLOOR, x_add(c, x_unary(c, BERTH_UNARY_ABS, x), num(c, t, 0.5)));
    return x_mul(c, x_unary(c, BERTH_UNARY_SIGN, x), size);
}

// Girshick, "Fast R-CNN", 2015, section 2.1: the part [begin, end) of the input for bin k of
// `bins`.
static void pool_range(berth_lower *c, berth_expr first, berth_expr last, berth_expr k,
                       int64_t bins, int64_t extent, berth_expr *out_begin, berth_expr *out_end) {
    berth_dtype t = dtype_of(c, first);
    berth_expr one = num(c, t, 1);
    berth_expr bin =
        x_div(c, x_max(c, x_add(c, x_sub(c, last, first), one), one), num(c, t, (double)bins));
    berth_expr at = berth_tfn_from_index(c->fn, t, k);
    berth_expr begin = x_add(c, x_unary(c, BERTH_UNARY_FLOOR, x_mul(c, at, bin)), first);
    berth_expr end =
        x_add(c, x_unary(c, BERTH_UNARY_CEIL, x_mul(c, x_add(c, at, one), bin)), first);
    *out_begin = berth_tfn_to_index(c->fn, clamp(c, begin, 0, (double)extent));
    *out_end = berth_tfn_to_index(c->fn, clamp(c, end, 0, (double)extent));
}

void berth_lower__max_roi_pool(berth_lower *c, const berth_op *op) {
    static const char *const names[BERTH_MAX_RANK] = {"roi", "oc", "oh", "ow"};
    const berth_type *x = in_type(c, op, 0);
    const berth_type *y = out_type(c, op, 0);
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    roi r = {.op = op, .t = out_dtype(c, op, 0), .number = grid.at[0]};
    berth_expr batch =
        berth_lower__data_index(c, x_cast(c, BERTH_DTYPE_I64, roi_entry(c, &r, 0)), x->dims[0]);
    berth_expr scale = num(c, r.t, attr_float(c, op, "spatial_scale", 1));
    berth_expr at[4] = {batch, grid.at[1], 0, 0};
    berth_expr begin[2];
    berth_expr extent[2];
    berth_expr filled = 0;
    for (int d = 0; d < 2; ++d) {  // rois are batch, x1, y1, x2, y2
        berth_expr first = half_away(c, x_mul(c, roi_entry(c, &r, 2 - d), scale));
        berth_expr last = half_away(c, x_mul(c, roi_entry(c, &r, 4 - d), scale));
        berth_expr end = 0;
        pool_range(c, first, last, grid.at[2 + d], y->dims[2 + d], x->dims[2 + d], &begin[d], &end);
        extent[d] = x_max(c, ix(c, 0), x_sub(c, end, begin[d]));
        filled = x_and(c, filled, x_gt(c, extent[d], ix(c, 0)));
    }
    berth_buf acc = berth_lower__register(c, "acc", r.t);
    berth_lower__set(c, acc, x_select(c, filled, berth_lower__lowest(c, r.t), num(c, r.t, 0)));
    for (int d = 0; d < 2; ++d) {
        berth_expr k = berth_lower__loop_to(c, d ? "kw" : "kh", extent[d]);
        at[2 + d] = x_min(c, x_add(c, begin[d], k), ix(c, x->dims[2 + d] - 1));
    }
    berth_lower__set(c, acc, x_max(c, berth_lower__get(c, acc), in_at(c, op, 0, at)));
    berth_lower__end_loops(c, 2);
    berth_lower__store(c, op, 0, grid.at, berth_lower__get(c, acc));
    berth_lower__grid_end(c, &grid);
}
