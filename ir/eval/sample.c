// Sampling at computed places: grid_sample, roi_align, max_roi_pool.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

#define MAX_SAMPLE_DIMS 3

// ---- grid_sample

typedef struct sampler {
    int spatial;
    int64_t extents[MAX_SAMPLE_DIMS];
    char mode;     // 'l'inear, 'n'earest, 'c'ubic
    char padding;  // 'z'eros, 'b'order, 'r'eflection
    bool align_corners;
    bool single;  // coordinates are held as f32: where the nearest pixel changes depends on it
} sampler;

static double held(const sampler *s, double x) {
    return s->single ? (double)(float)x : x;
}

// x mirrored at low and high until it lies between them.
static double reflect(double x, double low, double high) {
    double range = high - low;
    if (range <= 0) return low;
    double distance = x < low ? low - x : x > high ? x - high : 0;
    if (distance == 0) return x;
    double turns = floor(distance / range), rest = distance - turns * range;
    bool even = fmod(turns, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

// Pixels of a cubic kernel are clamped one by one; others are by the coordinate, which is cheaper.
static double coordinate(const sampler *s, int d, double normalised) {
    double extent = (double)s->extents[d];
    double x = held(s, normalised + 1);
    x = s->align_corners ? held(s, x / 2 * (extent - 1)) : held(s, held(s, x * extent) - 1) / 2;
    double low = s->align_corners ? 0 : -0.5;
    double high = s->align_corners ? extent - 1 : extent - 0.5;
    if (s->mode == 'n') x = nearbyint(x);
    if (x >= low && x <= high) return x;
    if (s->padding == 'b') return s->mode == 'c' ? x : fmax(0, fmin(x, extent - 1));
    return s->padding == 'r' ? reflect(x, low, high) : x;
}

// Index of a pixel after padding, or -1 for zero.
static int64_t pixel(const sampler *s, int d, double place) {
    double extent = (double)s->extents[d];
    if (place >= 0 && place < extent) return (int64_t)place;
    if (s->padding == 'z' || isnan(place)) return -1;
    if (s->padding == 'b') return place < 0 ? 0 : s->extents[d] - 1;
    double low = s->align_corners ? 0 : -0.5;
    double high = s->align_corners ? extent - 1 : extent - 0.5;
    return (int64_t)fmax(0, fmin(extent - 1, reflect(place, low, high)));
}

static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Taps of dimension d around x: pixel indices and weights; returns how many.
static int find_taps(const sampler *s, int d, double x, int64_t *pixels, double *weights) {
    if (s->mode == 'n') {
        pixels[0] = pixel(s, d, nearbyint(x));
        weights[0] = 1;
        return 1;
    }
    double low = floor(x);
    int first = s->mode == 'c' ? -1 : 0, count = s->mode == 'c' ? 4 : 2;
    for (int k = 0; k < count; ++k) {
        double distance = x - (low + first + k);
        pixels[k] = pixel(s, d, low + first + k);
        weights[k] = s->mode == 'c' ? cubic(distance) : 1 - fabs(distance);
    }
    return count;
}

static double sample(const sampler *s, const double *plane, const double *grid) {
    int64_t pixels[MAX_SAMPLE_DIMS][4], counts[MAX_SAMPLE_DIMS], at[MAX_SAMPLE_DIMS] = {0};
    double weights[MAX_SAMPLE_DIMS][4], sum = 0;
    for (int d = 0; d < s->spatial; ++d)
        counts[d] =
            find_taps(s, d, coordinate(s, d, grid[s->spatial - 1 - d]), pixels[d], weights[d]);
    do {
        int64_t offset = 0;
        double weight = 1;
        for (int d = 0; d < s->spatial; ++d) {
            int64_t place = pixels[d][at[d]];
            offset = place < 0 || offset < 0 ? -1 : offset * s->extents[d] + place;
            weight *= weights[d][at[d]];
        }
        if (offset >= 0) sum += weight * plane[offset];
    } while (berth_eval__next(at, counts, s->spatial));
    return sum;
}

berth_status berth_eval__grid_sample(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *grid = &ctx->inputs[1];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 2 + MAX_SAMPLE_DIMS));
    BERTH_TRY(berth_eval__need_float(ctx, 1));
    const char *mode = berth_eval__string(ctx, "mode", "linear");
    sampler s = {.spatial = x->rank - 2,
                 .mode = mode[0] == 'b' ? mode[2] : mode[0],  // bilinear, bicubic: older names
                 .padding = berth_eval__string(ctx, "padding_mode", "zeros")[0],
                 .align_corners = berth_eval__int(ctx, "align_corners", 0) != 0,
                 .single = grid->dtype == BERTH_DTYPE_F32};
    if (!strchr("lnc", s.mode) || !strchr("zbr", s.padding))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "mode or padding_mode is not known");
    if (grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != s.spatial)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the grid does not fit the input");
    int64_t dims[BERTH_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int d = 0; d < s.spatial; ++d) {
        s.extents[d] = x->dims[2 + d];
        dims[2 + d] = grid->dims[1 + d];
        if (s.extents[d] < 1)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "the input is empty");
    }
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    const double *values = berth_eval__load_f64(ctx, x), *places = berth_eval__load_f64(ctx, grid);
    int64_t in_plane = berth_eval__product(x->dims, 2, x->rank);
    int64_t out_plane = berth_eval__product(dims, 2, x->rank);
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i) {
        int64_t plane = i / out_plane, n = plane / x->dims[1];
        const double *place = places + (n * out_plane + i % out_plane) * s.spatial;
        berth_eval__set_f64(&ctx->outputs[0], i, sample(&s, values + plane * in_plane, place));
    }
    return BERTH_OK;
}

// ---- roi_align

// He et al., "Mask R-CNN", 2017; borders as in the ONNX operator text. In mode max the largest of
// the four weighted neighbours counts, not their sum (ONNX's reference and its test data).
static double bilinear(const double *plane, int64_t h, int64_t w, double y, double x,
                       bool use_max) {
    if (!(y >= -1 && y <= (double)h && x >= -1 && x <= (double)w)) return 0;
    y = fmin(fmax(y, 0), (double)(h - 1));
    x = fmin(fmax(x, 0), (double)(w - 1));
    int64_t y0 = (int64_t)y, x0 = (int64_t)x;
    int64_t y1 = y0 + 1 < h ? y0 + 1 : y0, x1 = x0 + 1 < w ? x0 + 1 : x0;
    double fy = y - (double)y0, fx = x - (double)x0;
    double a = (1 - fy) * (1 - fx) * plane[y0 * w + x0], b = (1 - fy) * fx * plane[y0 * w + x1];
    double c = fy * (1 - fx) * plane[y1 * w + x0], d = fy * fx * plane[y1 * w + x1];
    return use_max ? fmax(fmax(a, b), fmax(c, d)) : a + b + c + d;
}

typedef struct roi_grid {
    double start[2], bin[2];  // y, x
    int64_t samples[2];
    bool use_max;
} roi_grid;

// The samples of one direction of a bin that lie within two elements of the input: [*out_first,
// *out_first + result). All others count as zero, and there may be any number of them.
static int64_t samples_inside(const roi_grid *g, int d, int64_t extent, int64_t bin,
                              int64_t *out_first) {
    double step = g->bin[d] / (double)g->samples[d];
    double begin = g->start[d] + (double)bin * g->bin[d];
    double low = (-2 - begin) / step, high = ((double)extent + 2 - begin) / step;
    double first = floor(step < 0 ? high : low), end = ceil(step < 0 ? low : high);
    *out_first = first > 0 ? first < (double)g->samples[d] ? (int64_t)first : g->samples[d] : 0;
    int64_t last = end > 0 ? end < (double)g->samples[d] ? (int64_t)end : g->samples[d] : 0;
    return last > *out_first ? last - *out_first : 0;
}

static double align_bin(const roi_grid *g, const double *plane, const int64_t *extents, int64_t row,
                        int64_t column) {
    double sum = 0, top = -INFINITY;
    int64_t first[2], bin[2] = {row, column}, count[2];
    if (g->samples[0] == 0 || g->samples[1] == 0) return 0;
    for (int d = 0; d < 2; ++d) count[d] = samples_inside(g, d, extents[d], bin[d], &first[d]);
    for (int64_t k = 0; k < count[0] * count[1]; ++k) {
        double fy = ((double)(first[0] + k / count[1]) + 0.5) / (double)g->samples[0];
        double fx = ((double)(first[1] + k % count[1]) + 0.5) / (double)g->samples[1];
        double value =
            bilinear(plane, extents[0], extents[1], g->start[0] + ((double)row + fy) * g->bin[0],
                     g->start[1] + ((double)column + fx) * g->bin[1], g->use_max);
        sum += value;
        top = fmax(top, value);
    }
    if (count[0] < g->samples[0] || count[1] < g->samples[1]) top = fmax(top, 0);
    return g->use_max ? top : sum / ((double)g->samples[0] * (double)g->samples[1]);
}

typedef struct roi_params {
    int64_t dims[4];  // output
    double scale;
    bool half_pixel, use_max;
    int64_t ratio;
} roi_params;

static roi_grid place_roi(const roi_params *p, const double *roi) {
    roi_grid g = {.use_max = p->use_max};
    double shift = p->half_pixel ? 0.5 : 0;
    for (int d = 0; d < 2; ++d) {  // rois are x1, y1, x2, y2
        g.start[d] = roi[1 - d] * p->scale - shift;
        double size = roi[3 - d] * p->scale - shift - g.start[d];
        if (!p->half_pixel) size = fmax(size, 1);
        g.bin[d] = size / (double)p->dims[2 + d];
        double samples = p->ratio > 0 ? (double)p->ratio : ceil(g.bin[d]);
        if (samples > 0) g.samples[d] = samples < 0x1p62 ? (int64_t)samples : INT64_C(1) << 62;
    }
    return g;
}

berth_status berth_eval__roi_align(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *rois = &ctx->inputs[1], *batch = &ctx->inputs[2];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 4));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 2, 2));
    BERTH_TRY(berth_eval__need_count(batch, "batch_indices", rois->dims[0]));
    BERTH_TRY(berth_eval__need_count(rois, "rois", rois->dims[0] * 4));
    roi_params p = {.dims = {rois->dims[0], x->dims[1], berth_eval__int(ctx, "output_height", 1),
                             berth_eval__int(ctx, "output_width", 1)},
                    .scale = berth_eval__float(ctx, "spatial_scale", 1),
                    .half_pixel = strcmp(berth_eval__string(ctx, "coordinate_transformation_mode",
                                                            "half_pixel"),
                                         "half_pixel") == 0,
                    .use_max = strcmp(berth_eval__string(ctx, "mode", "avg"), "max") == 0,
                    .ratio = berth_eval__int(ctx, "sampling_ratio", 0)};
    if (p.ratio > 1024)  // the work grows with its square
        return berth_status_make(BERTH_INVALID_ARGUMENT, "sampling_ratio %lld (at most 1024)",
                                 (long long)p.ratio);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 4, p.dims));
    const double *values = berth_eval__load_f64(ctx, x), *boxes = berth_eval__load_f64(ctx, rois);
    int64_t plane = x->dims[2] * x->dims[3], bins = p.dims[2] * p.dims[3];
    for (int64_t r = 0; plane && r < rois->dims[0]; ++r) {
        roi_grid grid = place_roi(&p, boxes + r * 4);
        int64_t n = 0;
        BERTH_TRY(berth_eval__wrap_index(berth_tensor_get_i64(batch, r), x->dims[0], &n));
        for (int64_t k = 0; k < x->dims[1] * bins; ++k) {
            const double *from = values + (n * x->dims[1] + k / bins) * plane;
            berth_eval__set_f64(
                &ctx->outputs[0], r * x->dims[1] * bins + k,
                align_bin(&grid, from, x->dims + 2, k % bins / p.dims[3], k % p.dims[3]));
        }
    }
    return BERTH_OK;
}

// ---- max_roi_pool

// Girshick, "Fast R-CNN", 2015, section 2.1. The part [begin, end) of the input for bin k of
// `bins`.
static void pool_range(double first, double last, int64_t k, int64_t bins, int64_t extent,
                       int64_t *out_begin, int64_t *out_end) {
    double size = fmax(last - first + 1, 1), bin = size / (double)bins;
    double begin = floor((double)k * bin) + first, end = ceil((double)(k + 1) * bin) + first;
    *out_begin = (int64_t)fmin(fmax(begin, 0), (double)extent);
    *out_end = (int64_t)fmin(fmax(end, 0), (double)extent);
}

berth_status berth_eval__max_roi_pool(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *rois = &ctx->inputs[1];
    uint32_t count = 0;
    const int64_t *pooled = berth_attrs_ints(ctx->module, &ctx->op->attrs, "pooled_shape", &count);
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 4));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 2, 2));
    BERTH_TRY(berth_eval__need_count(rois, "rois", rois->dims[0] * 5));
    if (!pooled || count != 2)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "pooled_shape must have 2 entries");
    double scale = berth_eval__float(ctx, "spatial_scale", 1);
    int64_t dims[4] = {rois->dims[0], x->dims[1], pooled[0], pooled[1]};
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 4, dims));
    const double *values = berth_eval__load_f64(ctx, x), *boxes = berth_eval__load_f64(ctx, rois);
    int64_t h = x->dims[2], w = x->dims[3], total = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < total; ++i) {
        int64_t column = i % dims[3], row = i / dims[3] % dims[2];
        int64_t channel = i / (dims[2] * dims[3]) % dims[1], n = 0;
        const double *roi = boxes + i / (dims[1] * dims[2] * dims[3]) * 5;
        if (!(fabs(roi[0]) < 0x1p40))
            return berth_status_make(BERTH_OUT_OF_RANGE, "a roi names no batch");
        BERTH_TRY(berth_eval__wrap_index((int64_t)roi[0], x->dims[0], &n));
        int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
        pool_range(round(roi[2] * scale), round(roi[4] * scale), row, dims[2], h, &y0, &y1);
        pool_range(round(roi[1] * scale), round(roi[3] * scale), column, dims[3], w, &x0, &x1);
        double top = y0 < y1 && x0 < x1 ? -INFINITY : 0;
        for (int64_t y = y0; y < y1; ++y)
            for (int64_t z = x0; z < x1; ++z)
                top = fmax(top, values[((n * dims[1] + channel) * h + y) * w + z]);
        berth_eval__set_f64(&ctx->outputs[0], i, top);
    }
    return BERTH_OK;
}
