// Window arithmetic: ONNX operators Conv, ConvTranspose, MaxPool, AveragePool, LpPool, MaxUnpool;
// padding of auto_pad = SAME_* and of conv_transpose's output_shape as the operator texts have it.
#include "ir/graph/op_params.h"

#include <math.h>
#include <string.h>

#include "base/divisor.h"

#define MAX_EXTENT ((int64_t)1 << 31)  // bounds every factor below, so that no product overflows

typedef enum auto_pad { PAD_EXPLICIT, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } auto_pad;

static bool is_transposed(berth_op_kind kind) {
    return kind == BERTH_OP_CONV_TRANSPOSE || kind == BERTH_OP_MAX_UNPOOL;
}

// Reads attribute `name` of exactly `count` entries within [low, high] into `out`; absent =
// fallback.
static berth_status read_ints(const berth_module *module, const berth_op *op, const char *name,
                              int count, int64_t low, int64_t fallback, int64_t *out) {
    uint32_t given = 0;
    const int64_t *values = berth_attrs_ints(module, &op->attrs, name, &given);
    for (int i = 0; i < count; ++i) out[i] = fallback;
    if (!values) return BERTH_OK;
    if (given != (uint32_t)count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute %s has %u entries, expected %d",
                                 name, given, count);
    for (int i = 0; i < count; ++i) {
        if (values[i] < low || values[i] > MAX_EXTENT)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "attribute %s[%d] is %lld, expected at least %lld", name, i,
                                     (long long)values[i], (long long)low);
        out[i] = values[i];
    }
    return BERTH_OK;
}

static berth_status read_auto_pad(const berth_module *module, const berth_op *op,
                                  auto_pad *out_mode) {
    static const struct {
        const char *name;
        auto_pad mode;
    } modes[] = {{"NOTSET", PAD_EXPLICIT},
                 {"", PAD_EXPLICIT},
                 {"SAME_UPPER", PAD_SAME_UPPER},
                 {"SAME_LOWER", PAD_SAME_LOWER},
                 {"VALID", PAD_VALID}};
    const char *text = berth_attrs_string(module, &op->attrs, "auto_pad", "NOTSET");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); ++i) {
        if (strcmp(text, modes[i].name) == 0) {
            *out_mode = modes[i].mode;
            return BERTH_OK;
        }
    }
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "attribute auto_pad is \"%s\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", text);
}

// Kernel extents from the weights, from the attribute, or from both when they agree.
static berth_status read_kernel(const berth_module *module, const berth_op *op,
                                const int64_t *kernel_dims, berth_window *window) {
    uint32_t given = 0;
    bool has_attribute = berth_attrs_ints(module, &op->attrs, "kernel_shape", &given) != NULL;
    if (!has_attribute && !kernel_dims)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute kernel_shape is missing");
    if (has_attribute)
        BERTH_TRY(read_ints(module, op, "kernel_shape", window->spatial, 1, 1, window->kernel));
    for (int i = 0; kernel_dims && i < window->spatial; ++i) {
        if (has_attribute && kernel_dims[i] >= 0 && kernel_dims[i] != window->kernel[i])
            return berth_status_make(
                BERTH_INVALID_ARGUMENT,
                "attribute kernel_shape[%d] is %lld, but the weights have %lld", i,
                (long long)window->kernel[i], (long long)kernel_dims[i]);
        if (!has_attribute) window->kernel[i] = kernel_dims[i];
        if (!has_attribute && (kernel_dims[i] == 0 || kernel_dims[i] > MAX_EXTENT))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the weights have extent %lld in spatial dimension %d",
                                     (long long)kernel_dims[i], i);
    }
    return BERTH_OK;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Convolutions and pools, one spatial dimension. The last window of ceil_mode must start inside the
// input or its front padding.
static berth_status resolve_forward(berth_window *w, int i, auto_pad mode, bool is_pool) {
    int64_t in = w->input[i];
    int64_t span = (w->kernel[i] - 1) * w->dilations[i] + 1;
    bool same = mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER;
    if (in < 0 || w->kernel[i] < 0) {
        bool keeps = w->kernel[i] >= 0 && w->strides[i] == 1 &&
                     (same || w->pads_begin[i] + w->pads_end[i] == span - 1);
        w->output[i] = keeps ? in : BERTH_DIM_UNKNOWN;
        return BERTH_OK;
    }
    if (same) {
        int64_t out = ceil_div(in, w->strides[i]);
        int64_t total = (out - 1) * w->strides[i] + span - in;
        if (total < 0 || in == 0) total = 0;
        int64_t small = total / 2;
        w->pads_begin[i] = mode == PAD_SAME_UPPER ? small : total - small;
        w->pads_end[i] = total - w->pads_begin[i];
        w->output[i] = out;
        return BERTH_OK;
    }
    int64_t room = in + w->pads_begin[i] + w->pads_end[i] - span;
    if (room < 0 && is_pool) {
        // Peers divide towards zero: one window over what there is, where less than a stride lacks.
        w->output[i] = in > 0 && room > -w->strides[i];
        return BERTH_OK;
    }
    if (room < 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the window (%lld wide with dilation) is larger than the padded "
                                 "input (%lld) in spatial dimension %d",
                                 (long long)span, (long long)(room + span), i);
    w->output[i] = (w->ceil_mode ? ceil_div(room, w->strides[i]) : room / w->strides[i]) + 1;
    if (w->ceil_mode && (w->output[i] - 1) * w->strides[i] >= in + w->pads_begin[i]) w->output[i]--;
    return BERTH_OK;
}

// conv_transpose and max_unpool, one spatial dimension; `wanted` = output_shape entry or -1.
static berth_status resolve_transposed(berth_window *w, int i, auto_pad mode, int64_t wanted) {
    int64_t in = w->input[i];
    if (in < 0 || w->kernel[i] < 0) {
        w->output[i] = wanted >= 0 ? wanted : BERTH_DIM_UNKNOWN;
        return BERTH_OK;
    }
    int64_t span = (w->kernel[i] - 1) * w->dilations[i] + 1;
    int64_t full = in == 0 ? 0 : w->strides[i] * (in - 1) + w->output_padding[i] + span;
    bool same = mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER;
    if (wanted < 0 && same) wanted = in * w->strides[i];
    if (wanted >= 0) {
        int64_t total = full > wanted ? full - wanted : 0;
        int64_t small = total / 2;
        w->pads_begin[i] = mode == PAD_SAME_UPPER ? small : total - small;
        w->pads_end[i] = total - w->pads_begin[i];
        w->output[i] = wanted;
        return BERTH_OK;
    }
    w->output[i] = full - w->pads_begin[i] - w->pads_end[i];
    if (w->output[i] < 0)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "the pads are larger than the output (%lld) in spatial dimension %d", (long long)full,
            i);
    return BERTH_OK;
}

// Attribute output_shape of conv_transpose: spatial extents, or all extents in older models; -1 =
// not given.
static berth_status read_output_shape(const berth_module *module, const berth_op *op, int spatial,
                                      int64_t *wanted) {
    uint32_t count = 0;
    const int64_t *values = berth_attrs_ints(module, &op->attrs, "output_shape", &count);
    for (int i = 0; i < spatial; ++i) wanted[i] = -1;
    if (!values || op->kind != BERTH_OP_CONV_TRANSPOSE) return BERTH_OK;
    if (count != (uint32_t)spatial && count != (uint32_t)spatial + 2)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "attribute output_shape has %u entries, expected %d", count,
                                 spatial);
    for (int i = 0; i < spatial; ++i) {
        wanted[i] = values[count - (uint32_t)spatial + (uint32_t)i];
        if (wanted[i] < 0 || wanted[i] > MAX_EXTENT)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute output_shape[%d] is %lld",
                                     i, (long long)wanted[i]);
    }
    return BERTH_OK;
}

static berth_status read_attributes(const berth_module *module, const berth_op *op,
                                    const int64_t *kernel_dims, auto_pad *out_mode,
                                    berth_window *w) {
    int64_t pads[2 * BERTH_MAX_SPATIAL];
    BERTH_TRY(read_auto_pad(module, op, out_mode));
    BERTH_TRY(read_kernel(module, op, kernel_dims, w));
    BERTH_TRY(read_ints(module, op, "strides", w->spatial, 1, 1, w->strides));
    BERTH_TRY(read_ints(module, op, "dilations", w->spatial, 1, 1, w->dilations));
    BERTH_TRY(read_ints(module, op, "pads", 2 * w->spatial, 0, 0, pads));
    BERTH_TRY(read_ints(module, op, "output_padding", w->spatial, 0, 0, w->output_padding));
    for (int i = 0; *out_mode == PAD_EXPLICIT && i < w->spatial; ++i) {
        w->pads_begin[i] = pads[i];
        w->pads_end[i] = pads[w->spatial + i];
    }
    w->group = berth_attrs_int(module, &op->attrs, "group", 1);
    w->ceil_mode = berth_attrs_int(module, &op->attrs, "ceil_mode", 0) != 0;
    w->count_include_pad = berth_attrs_int(module, &op->attrs, "count_include_pad", 0) != 0;
    if (w->group < 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "attribute group is %lld, expected at least 1",
                                 (long long)w->group);
    return BERTH_OK;
}

berth_status berth_window_resolve(const berth_module *module, const berth_op *op,
                                  const int64_t *input_dims, int rank, const int64_t *kernel_dims,
                                  berth_window *out_window) {
    berth_window w = {.spatial = rank - 2};
    auto_pad mode = PAD_EXPLICIT;
    int64_t wanted[BERTH_MAX_SPATIAL];
    *out_window = (berth_window){0};
    if (rank < 3)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "the input has rank %d, expected batch, channels and spatial dimensions", rank);
    if (w.spatial > BERTH_MAX_SPATIAL)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "windows over %d spatial dimensions (at most %d)", w.spatial,
                                 BERTH_MAX_SPATIAL);
    BERTH_TRY(read_attributes(module, op, kernel_dims, &mode, &w));
    BERTH_TRY(read_output_shape(module, op, w.spatial, wanted));
    for (int i = 0; i < w.spatial; ++i) {
        w.input[i] = input_dims[2 + i];
        if (w.input[i] > MAX_EXTENT)
            return berth_status_make(BERTH_OUT_OF_RANGE, "the input's spatial dimension %d is %lld",
                                     i, (long long)w.input[i]);
        if (is_transposed(op->kind))
            BERTH_TRY(resolve_transposed(&w, i, mode, wanted[i]));
        else
            BERTH_TRY(resolve_forward(&w, i, mode, !kernel_dims));
    }
    *out_window = w;
    return BERTH_OK;
}

berth_window_phase berth_window_phase_of(const berth_window *w, int i, int64_t residue) {
    int64_t stride = w->strides[i];
    int64_t dilation = w->dilations[i];
    int64_t common = berth_greatest_divisor(stride, dilation);
    int64_t at = residue + w->pads_begin[i];
    berth_window_phase phase = {.tap_step = stride / common, .input_step = dilation / common};
    if (w->output[i] > residue) phase.count = (w->output[i] - residue - 1) / stride + 1;
    if (at % common) return phase;
    while ((at - phase.first_tap * dilation) % stride) phase.first_tap++;
    phase.shift = (at - phase.first_tap * dilation) / stride;
    if (phase.first_tap < w->kernel[i])
        phase.taps = (w->kernel[i] - 1 - phase.first_tap) / phase.tap_step + 1;
    return phase;
}

berth_status berth_axis_resolve(int64_t axis, int rank, const char *what, int *out_axis) {
    *out_axis = 0;
    if (axis < -(int64_t)rank || axis >= rank)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%s is %lld, outside [-%d, %d)", what,
                                 (long long)axis, rank, rank);
    *out_axis = (int)(axis < 0 ? axis + rank : axis);
    return BERTH_OK;
}

int64_t berth_slice_axis(int64_t extent, int64_t start, int64_t end, int64_t step,
                         int64_t *out_start) {
    *out_start = 0;
    if (extent == 0) return 0;
    if (start < 0) start += extent;  // cannot overflow: extent > 0
    if (end < 0) end += extent;
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? extent : extent - 1;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    int64_t span = step > 0 ? end - start : start - end;
    if (span <= 0) return 0;
    *out_start = start;
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return (int64_t)((uint64_t)(span - 1) / size) + 1;
}

// A symbol beside an extent other than 1 must equal that extent (or be 1), so the result is the
// extent.
static bool broadcast_dim(int64_t a, int64_t b, int64_t *out) {
    if (a == b || b == 1) {
        *out = a;
    } else if (a == 1) {
        *out = b;
    } else if (berth_dim_is_symbol(a)) {
        *out = berth_dim_is_symbol(b) ? BERTH_DIM_UNKNOWN : b;
    } else if (berth_dim_is_symbol(b)) {
        *out = a;
    } else {
        return false;
    }
    return true;
}

berth_status berth_broadcast_dims(const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                                  int64_t out_dims[BERTH_MAX_RANK], int *out_rank) {
    int rank = a_rank > b_rank ? a_rank : b_rank;
    *out_rank = rank;
    for (int i = 1; i <= rank; ++i) {  // from the last dimension
        int64_t left = i <= a_rank ? a[a_rank - i] : 1;
        int64_t right = i <= b_rank ? b[b_rank - i] : 1;
        if (!broadcast_dim(left, right, &out_dims[rank - i]))
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "extents %lld and %lld cannot be broadcast (dimension %d)",
                                     (long long)left, (long long)right, rank - i);
    }
    return BERTH_OK;
}

static double crop_place(const berth_resize_axis *a, int64_t i) {
    float first = (float)a->roi_start;
    float last = (float)a->roi_end;
    float reach = (float)(a->in - 1);
    if (a->out <= 1) return (double)(0.5f * (first + last) * reach);
    float offset = (float)i * (last - first) * reach / (float)(a->out - 1);
    return (double)(first * reach + offset);
}

// In half_pixel_symmetric the input's middle stays the middle, though `out` was rounded.
static double symmetric_offset(const berth_resize_axis *a) {
    double in = (double)a->in;
    return in / 2 * (1 - (double)a->out / (in * a->scale));
}

// As in ONNX's reference and its test data, align_corners uses the length before rounding
// (in * scale), which differs from `out` when the scale is given. The others use `out`, as their
// texts say and as other implementations do.
double berth_resize_extent(int64_t in, double scale) {
    float product = (float)in * (float)scale;
    return floor((double)product);
}

double berth_resize_place(const berth_resize_axis *a, int64_t i) {
    double x = (double)i;
    double in = (double)a->in;
    const char *how = a->how;
    if (strcmp(how, "align_corners") == 0) return i == 0 ? 0 : x * (in - 1) / (in * a->scale - 1);
    if (strcmp(how, "asymmetric") == 0) return x / a->scale;
    if (strcmp(how, "tf_half_pixel_for_nn") == 0) return (x + 0.5) / a->scale;
    if (strcmp(how, "pytorch_half_pixel") == 0 && a->out <= 1) return 0;
    if (strcmp(how, "tf_crop_and_resize") == 0) return crop_place(a, i);
    double offset = strcmp(how, "half_pixel_symmetric") == 0 ? symmetric_offset(a) : 0;
    return offset + (x + 0.5) / a->scale - 0.5;
}

// The coordinate for choosing the nearest element. Scales are floats: 1.5 / 0.6f is below 2.5, but
// 2.5 when rounded to a float, as it was meant. So where the coordinate is a quotient by the scale,
// every step is a float's.
static double nearest_place(const berth_resize_axis *a, int64_t i) {
    const char *how = a->how;
    bool corners = strcmp(how, "align_corners") == 0 || strcmp(how, "tf_crop_and_resize") == 0;
    if (corners || (strcmp(how, "pytorch_half_pixel") == 0 && a->out <= 1))
        return berth_resize_place(a, i);
    bool shifted = strcmp(how, "asymmetric") != 0;
    float scaled = ((float)i + (shifted ? 0.5f : 0.0f)) / (float)a->scale;
    float offset = shifted && strcmp(how, "tf_half_pixel_for_nn") != 0 ? -0.5f : 0.0f;
    if (strcmp(how, "half_pixel_symmetric") == 0) offset = (float)(symmetric_offset(a) - 0.5);
    return (double)(scaled + offset);
}

int64_t berth_resize_nearest(const berth_resize_axis *a, const char *rounding, int64_t i) {
    double x = nearest_place(a, i);
    double rounded = ceil(x - 0.5);
    if (strcmp(rounding, "round_prefer_ceil") == 0) rounded = floor(x + 0.5);
    if (strcmp(rounding, "floor") == 0) rounded = floor(x);
    if (strcmp(rounding, "ceil") == 0) rounded = ceil(x);
    return (int64_t)fmax(0, fmin((double)(a->in - 1), rounded));
}

int64_t berth_resize_taps(bool cubic, bool antialias, double scale) {
    double stretch = antialias && scale < 1 ? scale : 1;
    return 2 * (int64_t)fmin(ceil((cubic ? 2 : 1) / stretch), 0x1p40);
}

berth_status berth_bits_resolve(const berth_module *module, const berth_op *op, int64_t depth,
                                berth_bits_shape *out) {
    int64_t bits = berth_attrs_int(module, &op->attrs, "bits", 4);
    int64_t block = berth_attrs_int(module, &op->attrs, "block_size", 0);
    if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || block > INT32_MAX || block * bits % 8)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%lld bits in blocks of %lld: 2, 4 or 8 bits are known, and "
                                 "blocks of whole bytes",
                                 (long long)bits, (long long)block);
    *out = (berth_bits_shape){.bits = bits,
                              .block = block,
                              .per_byte = 8 / bits,
                              .blocks = BERTH_DIM_UNKNOWN,
                              .rows = BERTH_DIM_UNKNOWN};
    if (depth < 0) return BERTH_OK;
    out->blocks = depth / block + (depth % block != 0);
    out->rows = out->blocks * (block * bits / 8);
    return BERTH_OK;
}
