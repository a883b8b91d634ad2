// Operators on images that are written as several: crops, grids, deformable convolution, columns to
// images.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// ---- CenterCropPad ----

// Zeros around what is too small, then the middle of what is too large; the odd element is at the
// end in both.
berth_status onnx_build_center_crop_pad(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id wanted = onnx_cast_to(&c, onnx_compose_input(&c, 1), BERTH_DTYPE_I64);
    const onnx_attr *given = onnx_call_attr(call, "axes");
    int rank = onnx_compose_rank(&c, x);
    int64_t all[BERTH_MAX_RANK];
    uint32_t count = given ? given->ints.count : (uint32_t)rank;
    if (count > (uint32_t)rank)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "%u axes of %d dimensions", count, rank);
    for (uint32_t i = 0; !c.status && i < count; ++i) {
        all[i] = given ? given->ints.data[i] : (int64_t)i;
        if (all[i] < 0) all[i] += rank;
        if (all[i] < 0 || all[i] >= rank)
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "axes[%u] is none of %d dimensions", i,
                              rank);
        for (uint32_t k = 0; !c.status && k < i; ++k)
            if (all[k] == all[i])
                onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "axes names dimension %lld twice",
                                  (long long)all[i]);
    }
    if (c.status) return c.status;
    berth_value_id axes = onnx_int_list(&c, all, count), two = onnx_int_list(&c, &(int64_t){2}, 1);
    berth_value_id own = onnx_gathered(&c, onnx_shape_of(&c, x), axes, 0);
    berth_value_id padded = onnx_make2(&c, BERTH_OP_MAX, own, wanted);
    berth_value_id more = onnx_sub(&c, padded, own), before = onnx_div(&c, more, two);
    berth_value_id sides[2] = {before, onnx_sub(&c, more, before)};
    berth_value_id pads[4] = {x, onnx_concatenated(&c, sides, 2, 0), BERTH_NONE, axes};
    x = onnx_make(&c, BERTH_OP_PAD, pads, 4);
    berth_value_id start = onnx_div(&c, onnx_sub(&c, padded, wanted), two);
    berth_value_id crop[4] = {x, start, onnx_add(&c, start, wanted), axes};
    onnx_compose_output(&c, 0, onnx_make(&c, BERTH_OP_SLICE, crop, 4));
    return c.status;
}

// ---- AffineGrid ----

// Places of the `axis`-th extent of `size` between -1 and 1, shaped to lie at dimension `at` of
// `rank`; one place alone is 0.
static berth_value_id places(onnx_compose *c, berth_value_id size, int64_t axis, bool corners,
                             berth_dtype dtype, int at, int rank) {
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < rank; ++i) dims[i] = 1;
    dims[at] = -1;
    berth_value_id one = onnx_scalar(c, BERTH_DTYPE_I64, 1);
    berth_value_id count = onnx_gathered(c, size, onnx_scalar(c, BERTH_DTYPE_I64, (double)axis), 0);
    berth_value_id steps = onnx_counting(c, count);
    berth_value_id least = onnx_sub(c, count, one);
    berth_value_id twice = onnx_mul(c, steps, onnx_scalar(c, BERTH_DTYPE_I64, 2));
    berth_value_id over = corners ? onnx_make2(c, BERTH_OP_MAX, least, one) : count;
    berth_value_id place = onnx_div(c, onnx_cast_to(c, onnx_sub(c, twice, least), dtype),
                                    onnx_cast_to(c, over, dtype));
    return onnx_reshaped(c, place, dims, (uint32_t)rank);
}

// Column `k` of the matrices, (batch, 1, ..., 1, spatial).
static berth_value_id column(onnx_compose *c, berth_value_id theta, int64_t k, int spatial) {
    int64_t dims[BERTH_MAX_RANK] = {0};
    for (int i = 1; i <= spatial; ++i) dims[i] = 1;
    dims[spatial + 1] = spatial;
    return onnx_reshaped(c, onnx_sliced(c, theta, 2, k, k + 1, 1), dims, (uint32_t)spatial + 2);
}

berth_status onnx_build_affine_grid(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id theta = onnx_compose_input(&c, 0);
    berth_value_id size = onnx_cast_to(&c, onnx_compose_input(&c, 1), BERTH_DTYPE_I64);
    bool corners = onnx_call_int(call, "align_corners", 0) != 0;
    onnx_compose_want_rank(&c, theta, "theta", 3, 3);
    int64_t spatial = onnx_compose_known_extent(&c, theta, "theta", 1);
    int64_t columns = onnx_compose_known_extent(&c, theta, "theta", 2);
    if (!c.status && (spatial < 2 || spatial > 3 || columns != spatial + 1))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "matrices of %lld x %lld, expected 2 x 3 or 3 x 4", (long long)spatial,
                          (long long)columns);
    if (c.status) return c.status;
    berth_dtype dtype = onnx_compose_dtype(&c, theta);
    int n = (int)spatial, rank = n + 2;
    berth_value_id grid = column(&c, theta, spatial, n);
    for (int k = 0; k < n; ++k) {  // x is along the last extent
        berth_value_id place = places(&c, size, 1 + n - k, corners, dtype, n - k, rank);
        grid = onnx_add(&c, grid, onnx_mul(&c, place, column(&c, theta, k, n)));
    }
    onnx_compose_output(&c, 0, grid);
    return c.status;
}

// ---- DeformConv ----

// An extent: known, or a value of the run.
typedef struct size {
    int64_t known;  // BERTH_DIM_UNKNOWN: `value`
    berth_value_id value;
} size;

static size size_of(onnx_compose *c, berth_value_id value, int axis) {
    int64_t known = onnx_compose_extent(c, value, axis);
    return (size){known, known < 0 ? onnx_extent_of(c, value, axis) : BERTH_NONE};
}

static size fixed(int64_t extent) {
    return (size){extent, BERTH_NONE};
}

// As an i64 scalar.
static berth_value_id size_value(onnx_compose *c, size a) {
    return a.known < 0 ? a.value : onnx_scalar(c, BERTH_DTYPE_I64, (double)a.known);
}

static size times(onnx_compose *c, size a, size b) {
    if (a.known >= 0 && b.known >= 0) return fixed(a.known * b.known);
    return (size){BERTH_DIM_UNKNOWN, onnx_mul(c, size_value(c, a), size_value(c, b))};
}

static berth_value_id shaped(onnx_compose *c, berth_value_id value, const size *sizes,
                             uint32_t rank) {
    int64_t dims[BERTH_MAX_RANK];
    berth_value_id parts[BERTH_MAX_RANK];
    bool all = true;
    for (uint32_t i = 0; i < rank; ++i) all = (dims[i] = sizes[i].known) >= 0 && all;
    if (all) return onnx_reshaped(c, value, dims, rank);
    for (uint32_t i = 0; i < rank; ++i) parts[i] = onnx_unsqueezed(c, size_value(c, sizes[i]), 0);
    return onnx_make2(c, BERTH_OP_RESHAPE, value, onnx_concatenated(c, parts, rank, 0));
}

typedef struct deform {
    size batch, extent[2], out[2];
    int64_t channels, outputs, kernel[2];
    int64_t stride[2], dilation[2], pad[2], group, offset_group;
} deform;

static int64_t entry(onnx_compose *c, const char *name, uint32_t index, uint32_t count,
                     int64_t fallback) {
    const onnx_attr *attr = onnx_call_attr(c->call, name);
    if (!attr || !attr->ints.count) return fallback;
    if (attr->ints.count == count) return attr->ints.data[index];
    onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "attribute %s has %u entries, expected %u", name,
                      attr->ints.count, count);
    return fallback;
}

static void read_deform(onnx_compose *c, deform *d) {
    berth_value_id x = onnx_compose_input(c, 0), w = onnx_compose_input(c, 1);
    berth_value_id offset = onnx_compose_input(c, 2);
    if (onnx_compose_rank(c, x) != 4 || onnx_compose_rank(c, w) != 4 ||
        onnx_compose_rank(c, offset) != 4)
        onnx_compose_fail(c, BERTH_UNSUPPORTED,
                          "a deformable convolution of other than two spatial dimensions");
    d->batch = size_of(c, x, 0);
    d->outputs = onnx_compose_known_extent(c, w, "W", 0);
    d->group = onnx_call_int(c->call, "group", 1);
    d->offset_group = onnx_call_int(c->call, "offset_group", 1);
    int64_t taps = 1;
    for (int i = 0; i < 2; ++i) {
        d->extent[i] = size_of(c, x, 2 + i);
        d->kernel[i] = onnx_compose_known_extent(c, w, "W", 2 + i);
        d->out[i] = size_of(c, offset, 2 + i);
        d->stride[i] = entry(c, "strides", (uint32_t)i, 2, 1);
        d->dilation[i] = entry(c, "dilations", (uint32_t)i, 2, 1);
        d->pad[i] = entry(c, "pads", (uint32_t)i, 4, 0);
        if (entry(c, "kernel_shape", (uint32_t)i, 2, d->kernel[i]) != d->kernel[i])
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "kernel_shape is not that of W");
        taps = taps <= INT32_MAX && d->kernel[i] <= INT32_MAX ? taps * d->kernel[i] : INT64_MAX;
    }
    int64_t depth = onnx_compose_known_extent(c, w, "W", 1);
    int64_t given = onnx_compose_extent(c, offset, 1), own = onnx_compose_extent(c, x, 1);
    if (c->status) return;
    bool counts = d->group >= 1 && d->offset_group >= 1 && taps >= 1 && taps <= INT32_MAX &&
                  d->offset_group <= INT32_MAX && depth <= INT32_MAX && d->group <= INT32_MAX;
    if (counts) d->channels = depth * d->group;
    int64_t offsets = counts ? 2 * taps * d->offset_group : 0;
    if (!counts || (own >= 0 && own != d->channels) || d->channels % d->offset_group ||
        d->outputs % d->group || (given >= 0 && given != offsets) || !d->extent[0].known ||
        !d->extent[1].known)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "the shapes of X, W and offset do not fit group %lld and offset_group "
                          "%lld",
                          (long long)d->group, (long long)d->offset_group);
}

// first + k * step for each k < count, as (count at dimension `at`, 1 in the other three).
static berth_value_id steps(onnx_compose *c, berth_dtype dtype, int64_t count, double first,
                            int64_t step, int at) {
    if (c->status) return BERTH_NONE;
    int64_t dims[4] = {1, 1, 1, 1};
    dims[at] = count;
    berth_tensor tensor = berth_tensor_create(c->call->im->arena, dtype, 4, dims);
    for (int64_t k = 0; k < count; ++k)
        berth_tensor_set_f64(&tensor, k, first + (double)k * (double)step);
    return onnx_call_literal(c->call, &tensor);
}

// Where the taps lie without offsets in dimension i, for (kernel y, kernel x, out y, out x).
static berth_value_id tap_places(onnx_compose *c, const deform *d, int i, berth_dtype dtype) {
    if (c->status) return BERTH_NONE;
    if (d->out[i].known < 0) {
        int64_t dims[4] = {1, 1, 1, 1};
        dims[2 + i] = -1;
        berth_value_id out = onnx_cast_to(c, onnx_counting(c, d->out[i].value), dtype);
        out = onnx_mul(c, out, onnx_scalar(c, dtype, (double)d->stride[i]));
        return onnx_add(c, onnx_reshaped(c, out, dims, 4),
                        steps(c, dtype, d->kernel[i], -(double)d->pad[i], d->dilation[i], i));
    }
    int64_t dims[4] = {1, 1, 1, 1}, count = d->out[i].known;
    dims[i] = d->kernel[i];
    dims[2 + i] = count;
    berth_tensor tensor = berth_tensor_create(c->call->im->arena, dtype, 4, dims);
    for (int64_t k = 0; k < d->kernel[i]; ++k)
        for (int64_t o = 0; o < count; ++o)
            berth_tensor_set_f64(&tensor, k * count + o,
                                 (double)o * (double)d->stride[i] +
                                     (double)k * (double)d->dilation[i] - (double)d->pad[i]);
    return onnx_call_literal(c->call, &tensor);
}

static berth_value_id real_size(onnx_compose *c, size a, berth_dtype dtype) {
    return a.known < 0 ? onnx_cast_to(c, a.value, dtype) : onnx_scalar(c, dtype, (double)a.known);
}

// Every tap is sampled where its offset puts it (grid_sample, with zeros outside); what follows is a
// product with the weights.
berth_status onnx_build_deform_conv(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 5);
    deform d = {0};
    berth_value_id x = onnx_compose_input(&c, 0), w = onnx_compose_input(&c, 1);
    berth_value_id bias = onnx_compose_input(&c, 3), mask = onnx_compose_input(&c, 4);
    if (!c.status) read_deform(&c, &d);
    if (c.status) return c.status;
    berth_dtype dtype = onnx_compose_dtype(&c, x);
    int64_t tap_count = d.kernel[0] * d.kernel[1];
    size taps = fixed(tap_count), places_out = times(&c, d.out[0], d.out[1]);
    size sampled = times(&c, d.batch, fixed(d.offset_group)), one = fixed(1);
    berth_value_id offset =
        shaped(&c, onnx_compose_input(&c, 2), (size[]){sampled, taps, fixed(2), places_out}, 4);
    berth_value_id along[2];
    for (int i = 0; i < 2; ++i) {
        berth_value_id part = onnx_sliced(&c, offset, 2, i, i + 1, 1);
        size apart[5] = {sampled, fixed(d.kernel[0]), fixed(d.kernel[1]), d.out[0], d.out[1]};
        part = shaped(&c, part, apart, 5);
        part = onnx_add(&c, part, tap_places(&c, &d, i, dtype));
        // -1 and 1 are the outer edges: (2 p + 1) / extent - 1
        part = onnx_add(&c, onnx_mul(&c, part, onnx_like(&c, x, 2)), onnx_like(&c, x, 1));
        part = onnx_div(&c, part, real_size(&c, d.extent[i], dtype));
        part = onnx_sub(&c, part, onnx_like(&c, x, 1));
        along[i] = shaped(&c, part, (size[]){sampled, taps, places_out, one}, 4);
    }
    berth_value_id grid = onnx_concatenated(&c, (berth_value_id[]){along[1], along[0]}, 2, 3);
    size image_sizes[4] = {sampled, fixed(d.channels / d.offset_group), d.extent[0], d.extent[1]};
    berth_value_id image = shaped(&c, x, image_sizes, 4);
    onnx_made sample = onnx_start(&c, BERTH_OP_GRID_SAMPLE, (berth_value_id[]){image, grid}, 2, 1);
    onnx_set_string(sample, "mode", "linear");
    berth_value_id columns = onnx_finish(sample);  // (sampled, of, taps, places)
    if (mask != BERTH_NONE)
        columns =
            onnx_mul(&c, columns, shaped(&c, mask, (size[]){sampled, one, taps, places_out}, 4));
    int64_t depth = d.channels / d.group * tap_count;
    size grouped[4] = {d.batch, fixed(d.group), fixed(depth), places_out};
    columns = shaped(&c, columns, grouped, 4);
    w = onnx_reshaped(&c, w, (int64_t[]){d.group, d.outputs / d.group, depth}, 3);
    berth_value_id y = onnx_make2(&c, BERTH_OP_MATMUL, w, columns);
    y = shaped(&c, y, (size[]){d.batch, fixed(d.outputs), d.out[0], d.out[1]}, 4);
    if (bias != BERTH_NONE)
        y = onnx_add(&c, y, onnx_reshaped(&c, bias, (int64_t[]){1, -1, 1, 1}, 4));
    onnx_compose_output(&c, 0, y);
    return c.status;
}

// ---- Col2Im ----

typedef struct window {
    int64_t stride, dilation, before, after;
} window;

static window read_window(onnx_compose *c, uint32_t i, uint32_t n) {
    window w = {entry(c, "strides", i, n, 1), entry(c, "dilations", i, n, 1),
                entry(c, "pads", i, 2 * n, 0), entry(c, "pads", n + i, 2 * n, 0)};
    bool fits = w.stride >= 1 && w.dilation >= 1 && w.before >= 0 && w.after >= 0 &&
                w.stride <= INT32_MAX && w.dilation <= INT32_MAX && w.before <= INT32_MAX &&
                w.after <= INT32_MAX;
    if (!fits)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "dimension %u has stride %lld, dilation %lld and pads %lld and %lld", i,
                          (long long)w.stride, (long long)w.dilation, (long long)w.before,
                          (long long)w.after);
    return w;
}

// a * scale + more, of i64.
static berth_value_id scaled(onnx_compose *c, berth_value_id a, int64_t scale, int64_t more) {
    if (scale != 1) a = onnx_mul(c, a, onnx_scalar(c, BERTH_DTYPE_I64, (double)scale));
    return more ? onnx_add(c, a, onnx_scalar(c, BERTH_DTYPE_I64, (double)more)) : a;
}

// Entry `index` of a vector of i64, as a scalar.
static berth_value_id vector_entry(onnx_compose *c, berth_value_id vector, int64_t index) {
    return onnx_gathered(c, vector, onnx_scalar(c, BERTH_DTYPE_I64, (double)index), 0);
}

// 0, step, 2 step, ... of `count`, at dimension `at` of `rank`.
static berth_value_id steps_along(onnx_compose *c, berth_value_id count, int64_t step, uint32_t at,
                                  uint32_t rank) {
    int64_t dims[BERTH_MAX_RANK];
    for (uint32_t i = 0; i < rank; ++i) dims[i] = i == at ? -1 : 1;
    return onnx_reshaped(c, scaled(c, onnx_counting(c, count), step, 0), dims, rank);
}

// Where each tap of each window lies in the padded image, as one number: (taps and windows, 1).
// padded: the extents.
static berth_value_id window_places(onnx_compose *c, const window *windows, uint32_t n,
                                    berth_value_id block, const berth_value_id *padded) {
    berth_value_id at = BERTH_NONE;
    for (uint32_t i = 0; i < n; ++i) {
        const window *w = &windows[i];
        berth_value_id taps = vector_entry(c, block, i);
        berth_value_id room = onnx_sub(c, padded[i], scaled(c, taps, w->dilation, -w->dilation));
        berth_value_id stride = onnx_scalar(c, BERTH_DTYPE_I64, (double)w->stride);
        berth_value_id count = scaled(c, onnx_div(c, scaled(c, room, 1, -1), stride), 1, 1);
        berth_value_id place = onnx_add(c, steps_along(c, taps, w->dilation, i, 2 * n),
                                        steps_along(c, count, w->stride, n + i, 2 * n));
        at = i ? onnx_add(c, onnx_mul(c, at, padded[i]), place) : place;
    }
    return onnx_reshaped(c, at, (int64_t[]){-1, 1}, 2);
}

// What is known of one dimension of the image and of its windows when the model is read. The padded
// image is units of `pixels`, the stride. `taps` neighbours reach different pixels of a unit, and are one
// term of the sum; those of the next term lie `step` units behind them.
typedef struct fold {
    int64_t image, kernel, windows;
    int64_t pixels, taps, terms, step, units;
} fold;

// Sums of more terms than this are made by ScatterND, which is one operation for any number.
enum { MOST_TERMS = 128 };

static fold fold_of(onnx_compose *c, const window *w, int64_t image, int64_t kernel, uint32_t i) {
    bool fits = image >= 1 && kernel >= 1 && image <= INT32_MAX && kernel <= INT32_MAX;
    int64_t room = fits ? image + w->before + w->after - w->dilation * (kernel - 1) - 1 : -1;
    if (room < 0) {
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "dimension %u: no window of %lld taps lies in an image of %lld", i,
                          (long long)kernel, (long long)image);
        return (fold){0};
    }
    fold f = {.image = image, .kernel = kernel, .windows = room / w->stride + 1};
    bool lined = w->dilation % w->stride == 0;  // all taps reach the first pixel of a unit
    f.pixels = w->stride;
    f.taps = lined ? 1 : w->stride;
    if (f.taps > kernel) f.taps = kernel;
    f.terms = (kernel + f.taps - 1) / f.taps;
    f.step = lined ? w->dilation / w->stride : 1;
    f.units = f.windows + (f.terms - 1) * f.step;
    int64_t needed = (w->before + image + f.pixels - 1) / f.pixels;
    if (f.units < needed) f.units = needed;
    return f;
}

// True where shapes are constants and few terms reach a pixel. Fails where the columns do not fit them.
static bool read_folds(onnx_compose *c, berth_value_id x, const window *windows, uint32_t n,
                       fold *folds) {
    const berth_tensor *image = onnx_call_constant(c->call, onnx_compose_input(c, 1));
    const berth_tensor *block = onnx_call_constant(c->call, onnx_compose_input(c, 2));
    if (c->status || !image || !block || 1 + 2 * n > BERTH_MAX_RANK) return false;
    int64_t terms = 1, taps = 1, places = 1;
    for (uint32_t i = 0; i < n; ++i) {
        folds[i] = fold_of(c, &windows[i], berth_tensor_get_i64(image, i),
                           berth_tensor_get_i64(block, i), i);
        bool lined = windows[i].dilation % windows[i].stride == 0;
        if (c->status || (windows[i].dilation > 1 && !lined)) return false;
        if (folds[i].kernel > INT32_MAX / taps || folds[i].windows > INT32_MAX / places)
            return false;
        taps *= folds[i].kernel;
        places *= folds[i].windows;
        terms *= folds[i].terms;
    }
    int64_t rows = onnx_compose_extent(c, x, 1), columns = onnx_compose_extent(c, x, 2);
    if ((rows >= 0 && rows % taps) || (columns >= 0 && columns != places))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "columns of %lld x %lld do not fit %lld taps and %lld windows",
                          (long long)rows, (long long)columns, (long long)taps, (long long)places);
    return !c->status && terms <= MOST_TERMS;
}

// Term number `term` of the sum: the columns of its taps, moved to the pixels that these reach.
// columns: (images, taps..., windows...); the result: (images, taps..., units...).
static berth_value_id fold_term(onnx_compose *c, berth_value_id columns, const fold *folds,
                                uint32_t n, int64_t term) {
    int64_t begin[BERTH_MAX_RANK], end[BERTH_MAX_RANK], axes[BERTH_MAX_RANK];
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    uint32_t rank = 1 + 2 * n;
    bool padded = false;
    for (uint32_t i = n; i-- > 0;) {
        const fold *f = &folds[i];
        int64_t at = term % f->terms;
        term /= f->terms;
        axes[i] = 1 + i;
        begin[i] = at * f->taps;
        end[i] = begin[i] + f->taps < f->kernel ? begin[i] + f->taps : f->kernel;
        pads[rank + 1 + i] = f->taps - (end[i] - begin[i]);
        pads[1 + n + i] = at * f->step;
        pads[rank + 1 + n + i] = f->units - f->windows - at * f->step;
        padded |= f->taps > end[i] - begin[i] || f->units > f->windows;
    }
    berth_value_id slice[4] = {columns, onnx_int_list(c, begin, n), onnx_int_list(c, end, n),
                               onnx_int_list(c, axes, n)};
    berth_value_id part = onnx_make(c, BERTH_OP_SLICE, slice, 4);
    return padded ? onnx_make2(c, BERTH_OP_PAD, part, onnx_int_list(c, pads, 2 * rank)) : part;
}

// Shapes are known: the sum of the columns of each tap, padded to where they lie. With strides, taps
// that reach different pixels are one term, whose pixels are put in order after the sum. The order of the
// taps is that of the sums of ONNX Runtime.
static berth_value_id sum_of_folds(onnx_compose *c, berth_value_id x, const window *windows,
                                   const fold *folds, uint32_t n) {
    size batch = size_of(c, x, 0), rows = size_of(c, x, 1);
    size columns[BERTH_MAX_RANK], out[BERTH_MAX_RANK];
    int64_t order[BERTH_MAX_RANK] = {0}, terms = 1, taps = 1;
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    uint32_t rank = 1 + 2 * n;
    bool strided = false, between = false;
    for (uint32_t i = 0; i < n; ++i) {
        columns[1 + i] = fixed(folds[i].kernel);
        columns[1 + n + i] = fixed(folds[i].windows);
        order[1 + 2 * i] = 1 + n + i;
        order[2 + 2 * i] = 1 + i;
        out[2 + i] = fixed(folds[i].units * folds[i].pixels);
        pads[rank + 1 + i] = folds[i].pixels - folds[i].taps;
        between |= folds[i].pixels > folds[i].taps;
        strided |= folds[i].pixels > 1;
        terms *= folds[i].terms;
        taps *= folds[i].kernel;
    }
    size channels =
        rows.known >= 0
            ? fixed(rows.known / taps)
            : (size){BERTH_DIM_UNKNOWN,
                     onnx_div(c, rows.value, onnx_scalar(c, BERTH_DTYPE_I64, (double)taps))};
    out[0] = batch;
    out[1] = channels;
    columns[0] = times(c, batch, channels);
    x = shaped(c, x, columns, rank);
    berth_value_id sum = onnx_like(c, x, 0);  // 0 + -0 is 0
    for (int64_t t = 0; t < terms; ++t) sum = onnx_add(c, sum, fold_term(c, x, folds, n, t));
    if (between) sum = onnx_make2(c, BERTH_OP_PAD, sum, onnx_int_list(c, pads, 2 * rank));
    if (strided) sum = onnx_transposed(c, sum, order, rank);
    sum = shaped(c, sum, out, n + 2);
    for (uint32_t i = 0; i < n; ++i)
        if (windows[i].before || out[2 + i].known > folds[i].image)
            sum = onnx_sliced(c, sum, 2 + i, windows[i].before, windows[i].before + folds[i].image,
                              1);
    return sum;
}

// The columns are added up where they lie in the padded image, of which the middle stays. Elements
// go with their batch and channel last, so that one index serves all of these.
static berth_value_id scattered_columns(onnx_compose *c, berth_value_id x, berth_value_id image,
                                        berth_value_id block, const window *windows, uint32_t n) {
    berth_value_id padded[BERTH_MAX_RANK], all = BERTH_NONE, taps = BERTH_NONE;
    for (uint32_t i = 0; i < n; ++i) {
        berth_value_id extent = vector_entry(c, image, i), kernel = vector_entry(c, block, i);
        padded[i] = scaled(c, extent, 1, windows[i].before + windows[i].after);
        all = i ? onnx_mul(c, all, padded[i]) : padded[i];
        taps = i ? onnx_mul(c, taps, kernel) : kernel;
    }
    size batch = size_of(c, x, 0);
    size channels = {BERTH_DIM_UNKNOWN, onnx_div(c, onnx_extent_of(c, x, 1), taps)};
    size per_channel = times(c, (size){BERTH_DIM_UNKNOWN, taps}, size_of(c, x, 2));
    berth_value_id columns = shaped(c, x, (size[]){batch, channels, per_channel}, 3);
    columns = onnx_transposed(c, columns, (int64_t[]){2, 0, 1}, 3);
    berth_value_id extents[3] = {onnx_unsqueezed(c, all, 0),
                                 onnx_unsqueezed(c, size_value(c, batch), 0),
                                 onnx_unsqueezed(c, channels.value, 0)};
    berth_value_id zeros =
        onnx_make2(c, BERTH_OP_EXPAND, onnx_like(c, x, 0), onnx_concatenated(c, extents, 3, 0));
    berth_value_id places = window_places(c, windows, n, block, padded);
    onnx_made sum =
        onnx_start(c, BERTH_OP_SCATTER_ND, (berth_value_id[]){zeros, places, columns}, 3, 1);
    onnx_set_string(sum, "reduction", "add");
    berth_value_id y = onnx_transposed(c, onnx_finish(sum), (int64_t[]){1, 2, 0}, 3);
    size apart[BERTH_MAX_RANK] = {batch, channels};
    for (uint32_t i = 0; i < n; ++i) apart[2 + i] = (size){BERTH_DIM_UNKNOWN, padded[i]};
    y = shaped(c, y, apart, n + 2);
    for (uint32_t i = 0; i < n; ++i) {
        if (!windows[i].before && !windows[i].after) continue;
        int64_t end = windows[i].after ? -windows[i].after : INT64_MAX;
        y = onnx_sliced(c, y, 2 + i, windows[i].before, end, 1);
    }
    return y;
}

berth_status onnx_build_col2im(onnx_call *call) {
    enum { most = BERTH_MAX_RANK / 2 };
    onnx_compose c = onnx_compose_begin(call, 3, 3);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id image = onnx_cast_to(&c, onnx_compose_input(&c, 1), BERTH_DTYPE_I64);
    berth_value_id block = onnx_cast_to(&c, onnx_compose_input(&c, 2), BERTH_DTYPE_I64);
    onnx_compose_want_rank(&c, x, "input", 3, 3);
    int64_t dims = onnx_compose_known_extent(&c, image, "image_shape", 0);
    if (!c.status && (dims < 1 || dims > most || dims + 2 > BERTH_MAX_RANK))
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "an image of %lld dimensions", (long long)dims);
    if (!c.status && onnx_compose_known_extent(&c, block, "block_shape", 0) != dims)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "block_shape has not %lld entries",
                          (long long)dims);
    if (c.status) return c.status;
    uint32_t n = (uint32_t)dims;
    window windows[most];
    fold folds[most];
    for (uint32_t i = 0; i < n; ++i) windows[i] = read_window(&c, i, n);
    berth_value_id y = read_folds(&c, x, windows, n, folds)
                           ? sum_of_folds(&c, x, windows, folds, n)
                           : scattered_columns(&c, x, image, block, windows, n);
    onnx_compose_output(&c, 0, y);
    return c.status;
}
