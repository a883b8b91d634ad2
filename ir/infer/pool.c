// Pooling, regions of interest, layer_normalization.
#include <string.h>

#include "ir/dim.h"
#include "ir/infer/internal.h"

static int64_t transposed_extent(const berth_infer *x, const berth_window *w, int i, int64_t span,
                                 bool same) {
    if (same) return berth_dim_scale(x->module, w->input[i], w->strides[i], 0);
    return berth_dim_scale(x->module, w->input[i], w->strides[i],
                           w->output_padding[i] + span - w->strides[i] - w->pads_begin[i] -
                               w->pads_end[i]);
}

int64_t berth_infer__window_extent(const berth_infer *x, const berth_window *w, int i) {
    berth_module *m = x->module;
    int64_t in = w->input[i], stride = w->strides[i];
    if (w->output[i] != BERTH_DIM_UNKNOWN || !berth_dim_is_symbol(in) || w->kernel[i] < 0)
        return w->output[i];
    int64_t span = (w->kernel[i] - 1) * w->dilations[i] + 1;
    bool same = strncmp(berth_attrs_string(m, &x->op->attrs, "auto_pad", "NOTSET"), "SAME", 4) == 0;
    if (x->op->kind == BERTH_OP_CONV_TRANSPOSE || x->op->kind == BERTH_OP_MAX_UNPOOL)
        return transposed_extent(x, w, i, span, same);
    if (same) return berth_dim_combine(m, BERTH_DIM_CEILDIV, in, stride);
    int64_t room = berth_dim_scale(m, in, 1, w->pads_begin[i] + w->pads_end[i] - span);
    berth_dim_op rounded = w->ceil_mode ? BERTH_DIM_CEILDIV : BERTH_DIM_FLOORDIV;
    int64_t count = berth_dim_scale(m, berth_dim_combine(m, rounded, room, stride), 1, 1);
    if (!w->ceil_mode) return count;
    // No window begins behind the input; one at most would.
    if (w->pads_end[i] > span) return BERTH_DIM_UNKNOWN;
    int64_t most = berth_dim_combine(m, BERTH_DIM_CEILDIV,
                                     berth_dim_scale(m, in, 1, w->pads_begin[i]), stride);
    return berth_dim_combine(m, BERTH_DIM_MIN, count, most);
}

static berth_status pool(berth_infer *x, berth_dtype dtype) {
    berth_type in = berth_infer__in(x, 0);
    berth_window window;
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, dtype, -1);
        berth_infer__set_unknown(x, 1, BERTH_DTYPE_I64, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__at(
        x, berth_window_resolve(x->module, x->op, in.dims, in.rank, NULL, &window)));
    for (int i = 0; i < window.spatial; ++i)
        in.dims[2 + i] = berth_infer__window_extent(x, &window, i);
    berth_infer__set(x, 0, dtype, in.rank, in.dims);
    berth_infer__set(x, 1, BERTH_DTYPE_I64, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__pool(berth_infer *x) {
    return pool(x, berth_infer__in(x, 0).dtype);
}

// x, its scale and zero point, those of the result.
berth_status berth_infer__qlinear_pool(berth_infer *x) {
    for (uint32_t i = 1; i < 5; ++i) BERTH_TRY(berth_infer__want_single(x, i));
    return pool(x, berth_infer__in(x, 4).dtype);
}

berth_status berth_infer__global_pool(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    if (in.rank >= 0) BERTH_TRY(berth_infer__want_rank(x, 0, 2, BERTH_MAX_RANK));
    for (int i = 2; i < in.rank; ++i) in.dims[i] = 1;
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__max_unpool(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints shape;
    berth_window window;
    BERTH_TRY(berth_infer__want_dtype(x, 1, BERTH_DTYPE_I64));
    BERTH_TRY(berth_infer__extents(x, 2, &shape));
    if (in.rank < 0 || (berth_infer__has(x, 2) && !shape.known)) {
        berth_infer__set_unknown(x, 0, in.dtype, in.rank);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__want_rank(x, 1, in.rank, in.rank));
    for (int i = 0; i < in.rank && berth_infer__in(x, 1).rank >= 0; ++i) {
        int64_t ignored = 0;
        BERTH_TRY(berth_infer__merge_dim(x, "indices", in.dims[i], berth_infer__in(x, 1).dims[i],
                                         &ignored));
    }
    BERTH_TRY(berth_infer__at(
        x, berth_window_resolve(x->module, x->op, in.dims, in.rank, NULL, &window)));
    if (shape.known && shape.count != in.rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the output shape has %d extents, the input %d", shape.count,
                                 in.rank);
    for (int i = 0; i < in.rank && shape.known; ++i) {
        if (shape.values[i] == -1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "extent %d is negative", i);
        in.dims[i] = shape.values[i];
    }
    for (int i = 0; i < window.spatial && !shape.known; ++i)
        in.dims[2 + i] = berth_infer__window_extent(x, &window, i);
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

// Attribute that is an output extent.
static berth_status extent_attr(const berth_infer *x, const char *name, int64_t value,
                                int64_t *out_extent) {
    *out_extent = value;
    if (value >= 1 && value <= INT32_MAX) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute %s is %lld, expected at least 1",
                             name, (long long)value);
}

static berth_status roi_types(berth_infer *x, int64_t height, int64_t width, int64_t roi_entries) {
    berth_type in = berth_infer__in(x, 0);
    berth_type rois = berth_infer__in(x, 1);
    int64_t ignored = 0;
    int64_t dims[4] = {rois.rank == 2 ? rois.dims[0] : BERTH_DIM_UNKNOWN,
                       in.rank == 4 ? in.dims[1] : BERTH_DIM_UNKNOWN, height, width};
    BERTH_TRY(berth_infer__want_rank(x, 0, 4, 4));
    BERTH_TRY(berth_infer__want_rank(x, 1, 2, 2));
    if (rois.rank == 2)
        BERTH_TRY(berth_infer__merge_dim(x, "region", roi_entries, rois.dims[1], &ignored));
    berth_infer__set(x, 0, in.dtype, 4, dims);
    return BERTH_OK;
}

berth_status berth_infer__max_roi_pool(berth_infer *x) {
    uint32_t count = 0;
    int64_t extents[2];
    const int64_t *shape = berth_attrs_ints(x->module, &x->op->attrs, "pooled_shape", &count);
    if (!shape || count != 2)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute pooled_shape needs two extents");
    for (int i = 0; i < 2; ++i) BERTH_TRY(extent_attr(x, "pooled_shape", shape[i], &extents[i]));
    return roi_types(x, extents[0], extents[1], 5);
}

berth_status berth_infer__roi_align(berth_infer *x) {
    int64_t height = 0;
    int64_t width = 0;
    BERTH_TRY(extent_attr(x, "output_height", berth_infer__int(x, "output_height", 1), &height));
    BERTH_TRY(extent_attr(x, "output_width", berth_infer__int(x, "output_width", 1), &width));
    berth_type rois = berth_infer__in(x, 1), images = berth_infer__in(x, 2);
    int64_t ignored = 0;
    BERTH_TRY(berth_infer__want_rank(x, 2, 1, 1));
    if (rois.rank > 0 && images.rank == 1)
        BERTH_TRY(
            berth_infer__merge_dim(x, "batch indices", rois.dims[0], images.dims[0], &ignored));
    return roi_types(x, height, width, 4);
}

// Mean and inverse deviation keep the normalised dimensions as ones.
berth_status berth_infer__layer_normalization(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int axis = 0;
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    if (in.rank >= 0) BERTH_TRY(berth_infer__axis(x, "axis", -1, in.rank, &axis));
    for (uint32_t i = 1; i < x->op->input_count; ++i) {  // scale and bias broadcast to the input
        berth_type scale = berth_infer__in(x, i);
        int64_t dims[BERTH_MAX_RANK];
        int rank = 0;
        if (scale.rank < 0 || in.rank < 0) continue;
        BERTH_TRY(berth_infer__at(
            x, berth_broadcast_dims(in.dims, in.rank, scale.dims, scale.rank, dims, &rank)));
        if (rank > in.rank)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "operand %u has more dimensions than the input", i);
    }
    for (int i = axis; i < in.rank; ++i) in.dims[i] = 1;
    for (uint32_t i = 1; i < 3; ++i) berth_infer__set(x, i, BERTH_DTYPE_F32, in.rank, in.dims);
    return BERTH_OK;
}
