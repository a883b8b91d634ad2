// Operations that pick, place or generate elements: slice, pad, gather, scatter,
// one_hot, eye_like, resize, grid_sample, shape_of, size_of, constant_of_shape, range.
#include <math.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/infer/internal.h"

// ---- slice ----

typedef struct slice_lists {
    berth_infer_ints starts;
    berth_infer_ints ends;
    berth_infer_ints axes;
    berth_infer_ints steps;
    int count;  // entries of the lists that are known; -1 = none is
} slice_lists;

static berth_status read_slice(const berth_infer *x, slice_lists *lists) {
    BERTH_TRY(berth_infer__ints(x, 1, &lists->starts));
    BERTH_TRY(berth_infer__ints(x, 2, &lists->ends));
    BERTH_TRY(berth_infer__ints(x, 3, &lists->axes));
    BERTH_TRY(berth_infer__ints(x, 4, &lists->steps));
    const berth_infer_ints *all[] = {&lists->starts, &lists->ends, &lists->axes, &lists->steps};
    int count = -1;
    for (int i = 0; i < 4; ++i) {
        if (!all[i]->known) continue;
        if (count >= 0 && all[i]->count != count)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "starts, ends, axes and steps differ in length");
        count = all[i]->count;
    }
    if (count > BERTH_MAX_RANK)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "more axes than dimensions");
    lists->count = count;
    return BERTH_OK;
}

// Elements of a slice of a symbolic extent N. Numbers from 0 count from the start, others from the
// end; an end beyond all is N.
static int64_t sliced_symbol(const berth_infer *x, int64_t dim, int64_t start, int64_t end,
                             int64_t step) {
    berth_module *m = x->module;
    bool to_end = end >= INT32_MAX,
         far = start > INT32_MAX || start < -INT32_MAX || end < -INT32_MAX;
    int64_t count = BERTH_DIM_UNKNOWN;
    if (far) return BERTH_DIM_UNKNOWN;
    if (start >= 0 && to_end)  // all but the first
        count = berth_dim_combine(m, BERTH_DIM_MAX, berth_dim_scale(m, dim, 1, -start), 0);
    else if (start >= 0 && end < 0)  // all but the first and the last
        count = berth_dim_combine(m, BERTH_DIM_MAX, berth_dim_scale(m, dim, 1, end - start), 0);
    else if (start < 0 && to_end)  // the last
        count = berth_dim_combine(m, BERTH_DIM_MIN, dim, -start);
    else if (start == 0)  // the first
        count = berth_dim_combine(m, BERTH_DIM_MIN, dim, end);
    return step == 1 ? count : berth_dim_combine(m, BERTH_DIM_CEILDIV, count, step);
}

berth_status berth_infer__slice(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    slice_lists l;
    BERTH_TRY(read_slice(x, &l));
    if (in.rank < 0 || (berth_infer__has(x, 3) && !l.axes.known)) {
        berth_infer__set_unknown(x, 0, in.dtype, in.rank);
        return BERTH_OK;
    }
    int count = l.count >= 0 ? l.count : in.rank;
    bool stepped = berth_infer__has(x, 4);
    if (count > in.rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "more axes than dimensions");
    for (int i = 0; i < count; ++i) {
        int axis = i;
        if (l.axes.known)
            BERTH_TRY(berth_infer__at(
                x, berth_axis_resolve(l.axes.values[i], in.rank, "an axis", &axis)));
        int64_t step = stepped ? (l.steps.known ? l.steps.values[i] : 0) : 1;
        if (l.steps.known && step == 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "step %d is 0", i);
        bool whole = l.starts.known && l.ends.known && l.starts.values[i] == 0 && step == 1 &&
                     l.ends.values[i] >= INT32_MAX;
        if (whole) continue;  // keeps a symbol
        bool fixed = l.starts.known && l.ends.known && step != 0;
        bool known = in.dims[axis] >= 0 && fixed;
        int64_t first = 0;
        if (in.dims[axis] < 0 && fixed && step > 0) {
            in.dims[axis] =
                sliced_symbol(x, in.dims[axis], l.starts.values[i], l.ends.values[i], step);
            continue;
        }
        in.dims[axis] = known ? berth_slice_axis(in.dims[axis], l.starts.values[i],
                                                 l.ends.values[i], step, &first)
                              : BERTH_DIM_UNKNOWN;
    }
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

// ---- pad ----

berth_status berth_infer__pad(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints pads;
    berth_infer_ints axes;
    BERTH_TRY(berth_infer__ints(x, 1, &pads));
    BERTH_TRY(berth_infer__ints(x, 3, &axes));
    if (berth_infer__has(x, 2)) BERTH_TRY(berth_infer__want_same_dtype(x, 0, 2));
    if (in.rank < 0 || !pads.known || (berth_infer__has(x, 3) && !axes.known)) {
        berth_infer__set_unknown(x, 0, in.dtype, in.rank);
        return BERTH_OK;
    }
    int count = axes.known ? axes.count : in.rank;
    if (pads.count != 2 * count)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%d pads for %d dimensions", pads.count,
                                 count);
    for (int i = 0; i < count; ++i) {
        int axis = i;
        if (axes.known)
            BERTH_TRY(
                berth_infer__at(x, berth_axis_resolve(axes.values[i], in.rank, "an axis", &axis)));
        int64_t begin = pads.values[i];
        int64_t end = pads.values[count + i];
        if (begin == 0 && end == 0) continue;
        if (in.dims[axis] < 0) {
            in.dims[axis] = berth_dim_scale(x->module, in.dims[axis], 1, begin + end);
            continue;
        }
        if (__builtin_add_overflow(in.dims[axis], begin, &in.dims[axis]) ||
            __builtin_add_overflow(in.dims[axis], end, &in.dims[axis]) || in.dims[axis] < 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "the pads of dimension %d leave a negative extent", axis);
    }
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

// ---- gather ----

static berth_status want_index_dtype(const berth_infer *x, uint32_t operand) {
    berth_dtype dtype = berth_infer__in(x, operand).dtype;
    if (dtype == BERTH_DTYPE_NONE || berth_dtype_is_integer(dtype)) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u is %s, expected integers",
                             operand, berth_dtype_name(dtype));
}

static berth_status too_many_dims(const berth_infer *x, int rank) {
    return berth_infer__fail(x, BERTH_UNSUPPORTED, "the result has %d dimensions (at most %d)",
                             rank, BERTH_MAX_RANK);
}

berth_status berth_infer__gather(berth_infer *x) {
    berth_type data = berth_infer__in(x, 0);
    berth_type indices = berth_infer__in(x, 1);
    int axis = 0;
    BERTH_TRY(want_index_dtype(x, 1));
    if (data.rank < 0 || indices.rank < 0) {
        berth_infer__set_unknown(x, 0, data.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__axis(x, "axis", 0, data.rank, &axis));
    int rank = data.rank - 1 + indices.rank;
    int64_t dims[2 * BERTH_MAX_RANK];
    int at = 0;
    if (rank > BERTH_MAX_RANK) return too_many_dims(x, rank);
    for (int i = 0; i < axis; ++i) dims[at++] = data.dims[i];
    for (int i = 0; i < indices.rank; ++i) dims[at++] = indices.dims[i];
    for (int i = axis + 1; i < data.rank; ++i) dims[at++] = data.dims[i];
    berth_infer__set(x, 0, data.dtype, rank, dims);
    return BERTH_OK;
}

// Along dimension i, which is not the one that indices choose along, there are no more of them than of the data.
static berth_status want_inside(const berth_infer *x, const berth_type *data,
                                const berth_type *indices, int i, int axis) {
    bool fits = i == axis || data->dims[i] < 0 || indices->dims[i] <= data->dims[i];
    return fits ? BERTH_OK
                : berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                    "%lld indices along dimension %d, of which the data has %lld",
                                    (long long)indices->dims[i], i, (long long)data->dims[i]);
}

berth_status berth_infer__gather_elements(berth_infer *x) {
    berth_type data = berth_infer__in(x, 0);
    berth_type indices = berth_infer__in(x, 1);
    int axis = 0;
    BERTH_TRY(want_index_dtype(x, 1));
    if (data.rank >= 0) {
        BERTH_TRY(berth_infer__axis(x, "axis", 0, data.rank, &axis));
        BERTH_TRY(berth_infer__want_rank(x, 1, data.rank, data.rank));
    }
    for (int i = 0; i < data.rank && indices.rank >= 0; ++i)
        BERTH_TRY(want_inside(x, &data, &indices, i, axis));
    berth_infer__set(x, 0, data.dtype, indices.rank, indices.dims);
    return BERTH_OK;
}

berth_status berth_infer__gather_nd(berth_infer *x) {
    berth_type data = berth_infer__in(x, 0);
    berth_type indices = berth_infer__in(x, 1);
    int64_t batch = berth_infer__int(x, "batch_dims", 0);
    BERTH_TRY(want_index_dtype(x, 1));
    if (data.rank < 0 || indices.rank < 0 ||
        (indices.rank > 0 && indices.dims[indices.rank - 1] < 0)) {
        berth_infer__set_unknown(x, 0, data.dtype, -1);
        return BERTH_OK;
    }
    if (indices.rank < 1 || data.rank < 1)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "data and indices need at least one dimension");
    int64_t depth = indices.dims[indices.rank - 1];
    if (batch < 0 || batch >= indices.rank || batch >= data.rank || depth < 1 ||
        depth > data.rank - batch)
        return berth_infer__fail(
            x, BERTH_INVALID_ARGUMENT,
            "indices of %lld entries with %lld batch dimensions into a tensor of rank %d",
            (long long)depth, (long long)batch, data.rank);
    for (int i = 0; i < batch; ++i) {
        int64_t ignored = 0;
        BERTH_TRY(
            berth_infer__merge_dim(x, "batch dimensions", data.dims[i], indices.dims[i], &ignored));
    }
    int64_t dims[2 * BERTH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < indices.rank - 1; ++i) dims[rank++] = indices.dims[i];
    for (int i = (int)(batch + depth); i < data.rank; ++i) dims[rank++] = data.dims[i];
    if (rank > BERTH_MAX_RANK) return too_many_dims(x, rank);
    berth_infer__set(x, 0, data.dtype, rank, dims);
    return BERTH_OK;
}

// A length for each sequence of the batch.
berth_status berth_infer__reverse_sequence(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0), lengths = berth_infer__in(x, 1);
    int batch = 1;
    int64_t ignored = 0;
    BERTH_TRY(want_index_dtype(x, 1));
    BERTH_TRY(berth_infer__want_rank(x, 1, 1, 1));
    if (in.rank >= 0) BERTH_TRY(berth_infer__axis(x, "batch_axis", 1, in.rank, &batch));
    if (in.rank >= 0 && lengths.rank == 1)
        BERTH_TRY(berth_infer__merge_dim(x, "lengths", in.dims[batch], lengths.dims[0], &ignored));
    return berth_infer__identity(x);
}

// ---- scatter: the result is like the data ----

// As many updates as indices; none of these may lie beside the data along the other axes.
berth_status berth_infer__scatter_elements(berth_infer *x) {
    berth_type data = berth_infer__in(x, 0);
    berth_type indices = berth_infer__in(x, 1);
    berth_type updates = berth_infer__in(x, 2);
    int axis = 0;
    BERTH_TRY(want_index_dtype(x, 1));
    BERTH_TRY(berth_infer__identity(x));
    if (data.rank < 0) return BERTH_OK;
    BERTH_TRY(berth_infer__axis(x, "axis", 0, data.rank, &axis));
    BERTH_TRY(berth_infer__want_rank(x, 1, data.rank, data.rank));
    BERTH_TRY(berth_infer__want_rank(x, 2, data.rank, data.rank));
    for (int i = 0; i < data.rank; ++i) {
        int64_t ignored = 0;
        if (indices.rank >= 0 && updates.rank >= 0)
            BERTH_TRY(berth_infer__merge_dim(x, "indices and updates", indices.dims[i],
                                             updates.dims[i], &ignored));
        if (indices.rank >= 0) BERTH_TRY(want_inside(x, &data, &indices, i, axis));
    }
    return BERTH_OK;
}

// An update for each index: the indices' extents but the last, then those of the data that an index
// leaves.
berth_status berth_infer__scatter_nd(berth_infer *x) {
    berth_type data = berth_infer__in(x, 0);
    berth_type indices = berth_infer__in(x, 1);
    berth_type updates = berth_infer__in(x, 2);
    BERTH_TRY(want_index_dtype(x, 1));
    BERTH_TRY(berth_infer__identity(x));
    if (data.rank < 0 || indices.rank < 0) return BERTH_OK;
    int64_t depth = indices.rank > 0 ? indices.dims[indices.rank - 1] : 0;
    if (indices.rank < 1 || (depth >= 0 && depth > data.rank))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "indices of %lld entries into a tensor of rank %d",
                                 (long long)depth, data.rank);
    if (depth < 0 || updates.rank < 0) return BERTH_OK;
    int many = indices.rank - 1, rank = many + data.rank - (int)depth;
    BERTH_TRY(berth_infer__want_rank(x, 2, rank, rank));
    for (int i = 0; i < rank; ++i) {
        int64_t want = i < many ? indices.dims[i] : data.dims[depth + i - many], ignored = 0;
        BERTH_TRY(berth_infer__merge_dim(x, "updates", want, updates.dims[i], &ignored));
    }
    return BERTH_OK;
}

berth_status berth_infer__one_hot(berth_infer *x) {
    berth_type indices = berth_infer__in(x, 0);
    const berth_tensor *depth = berth_infer__literal(x, 1);
    berth_dtype dtype = berth_infer__in(x, 2).dtype;
    int axis = 0;
    int64_t two = 2;
    if (indices.rank < 0) {
        berth_infer__set_unknown(x, 0, dtype, -1);
        return BERTH_OK;
    }
    if (indices.rank == BERTH_MAX_RANK) return too_many_dims(x, indices.rank + 1);
    BERTH_TRY(berth_infer__want_rank(x, 2, 1, 1));
    if (berth_infer__in(x, 2).rank == 1)
        BERTH_TRY(berth_infer__merge_dim(x, "values", 2, berth_infer__in(x, 2).dims[0], &two));
    BERTH_TRY(berth_infer__axis(x, "axis", -1, indices.rank + 1, &axis));
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < indices.rank; ++i) dims[i < axis ? i : i + 1] = indices.dims[i];
    dims[axis] = BERTH_DIM_UNKNOWN;
    if (depth) {
        if (berth_tensor_element_count(depth) != 1 || !(berth_tensor_get_f64(depth, 0) >= 0) ||
            berth_tensor_get_f64(depth, 0) > (double)INT32_MAX)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "the depth is not one number from 0 to 2147483647");
        dims[axis] = berth_tensor_get_i64(depth, 0);
    }
    berth_infer__set(x, 0, dtype, indices.rank + 1, dims);
    return BERTH_OK;
}

berth_status berth_infer__eye_like(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(berth_infer__want_rank(x, 0, 2, 2));
    berth_infer__set(x, 0, berth_infer__dtype(x, "dtype", in.dtype), in.rank, in.dims);
    return BERTH_OK;
}

// ---- resize ----

// Entries of `axes` (all dimensions when absent) in order.
static berth_status resize_axes(const berth_infer *x, int rank, int *axes, int *out_count) {
    uint32_t count = 0;
    const int64_t *given = berth_attrs_ints(x->module, &x->op->attrs, "axes", &count);
    *out_count = given ? (int)count : rank;
    if (given && count > (uint32_t)rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute axes has %u entries for %d dimensions", count, rank);
    for (int i = 0; i < *out_count; ++i) {
        axes[i] = i;
        if (given)
            BERTH_TRY(
                berth_infer__at(x, berth_axis_resolve(given[i], rank, "attribute axes", &axes[i])));
    }
    return BERTH_OK;
}

// floor(symbol * scale), where that is exact.
static int64_t scaled_symbol(const berth_infer *x, int64_t dim, double scale) {
    double inverse = 1 / scale;
    if (scale == floor(scale) && scale <= INT32_MAX)
        return berth_dim_scale(x->module, dim, (int64_t)scale, 0);
    if (inverse == floor(inverse) && inverse <= INT32_MAX && inverse * scale == 1)
        return berth_dim_combine(x->module, BERTH_DIM_FLOORDIV, dim, (int64_t)inverse);
    return BERTH_DIM_UNKNOWN;
}

// The region of tf_crop_and_resize takes no part: ONNX's reference, its shape inference and its
// test data scale the whole extent, though the operator's text multiplies by the region's length.
static berth_status resize_by_scales(const berth_infer *x, const berth_tensor *scales,
                                     const int *axes, int count, int64_t *dims) {
    if (!berth_dtype_is_float(scales->dtype) || berth_tensor_element_count(scales) != count)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%lld scales for %d dimensions",
                                 (long long)berth_tensor_element_count(scales), count);
    for (int i = 0; i < count; ++i) {
        double scale = berth_tensor_get_f64(scales, i);
        if (!(scale > 0))
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "scale %d is not positive", i);
        int64_t *dim = &dims[axes[i]];
        if (*dim < 0) {
            *dim = scaled_symbol(x, *dim, scale);
            continue;
        }
        double extent = berth_resize_extent(*dim, scale);
        if (!(extent >= 0 && extent <= (double)INT32_MAX))
            return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "scale %d makes an extent of %g", i,
                                     extent);
        *dim = (int64_t)extent;
    }
    return BERTH_OK;
}

static berth_status resize_by_sizes(const berth_infer *x, const berth_infer_ints *sizes,
                                    const int *axes, int count, int64_t *dims) {
    const char *policy =
        berth_attrs_string(x->module, &x->op->attrs, "keep_aspect_ratio_policy", "stretch");
    bool stretch = strcmp(policy, "stretch") == 0;
    bool larger = strcmp(policy, "not_smaller") == 0;
    double best = 0;
    if (sizes->count != count)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%d sizes for %d dimensions",
                                 sizes->count, count);
    for (int i = 0; i < count; ++i) {
        if (sizes->values[i] == -1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "size %d is negative", i);
        if (!stretch && (dims[axes[i]] <= 0 || sizes->values[i] < 0)) best = -1;
        if (stretch || best < 0) continue;
        double ratio = (double)sizes->values[i] / (double)dims[axes[i]];
        if (i == 0 || (larger ? ratio > best : ratio < best)) best = ratio;
    }
    for (int i = 0; i < count; ++i) {
        int64_t *dim = &dims[axes[i]];
        *dim = stretch    ? sizes->values[i]
               : best < 0 ? BERTH_DIM_UNKNOWN
                          : (int64_t)floor(best * (double)*dim + 0.5);
    }
    return BERTH_OK;
}

berth_status berth_infer__resize(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    const berth_tensor *scales = berth_infer__literal(x, 2);
    berth_infer_ints sizes;
    int axes[BERTH_MAX_RANK];
    int count = 0;
    BERTH_TRY(berth_infer__extents(x, 3, &sizes));
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(resize_axes(x, in.rank, axes, &count));
    bool sized = sizes.known && sizes.count > 0;
    if (sized) {
        BERTH_TRY(resize_by_sizes(x, &sizes, axes, count, in.dims));
    } else if (scales && berth_tensor_element_count(scales) > 0) {
        BERTH_TRY(resize_by_scales(x, scales, axes, count, in.dims));
    } else if (!berth_infer__has(x, 2) && !berth_infer__has(x, 3)) {
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "neither scales nor sizes are given");
    } else {
        for (int i = 0; i < count; ++i) in.dims[axes[i]] = BERTH_DIM_UNKNOWN;
    }
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__grid_sample(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_type grid = berth_infer__in(x, 1);
    if (in.rank < 0 || grid.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, in.rank >= 0 ? in.rank : grid.rank);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__want_rank(x, 0, 3, 5));
    BERTH_TRY(berth_infer__want_rank(x, 1, in.rank, in.rank));
    int64_t coordinates = 0;
    BERTH_TRY(berth_infer__merge_dim(x, "batch", in.dims[0], grid.dims[0], &in.dims[0]));
    BERTH_TRY(berth_infer__merge_dim(x, "coordinates of the grid", in.rank - 2,
                                     grid.dims[in.rank - 1], &coordinates));
    for (int i = 2; i < in.rank; ++i) in.dims[i] = grid.dims[i - 1];
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

// ---- shapes and ranges ----

berth_status berth_infer__shape_of(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int64_t count = BERTH_DIM_UNKNOWN;
    if (in.rank >= 0) {
        int64_t start = berth_infer__int(x, "start", 0);
        int64_t end = berth_infer__int(x, "end", in.rank);
        if (start < 0) start += in.rank;
        if (end < 0) end += in.rank;
        start = start < 0 ? 0 : start > in.rank ? in.rank : start;
        end = end < 0 ? 0 : end > in.rank ? in.rank : end;
        count = end > start ? end - start : 0;
    }
    berth_infer__set(x, 0, BERTH_DTYPE_I64, 1, &count);
    return BERTH_OK;
}

berth_status berth_infer__size_of(berth_infer *x) {
    berth_infer__set(x, 0, BERTH_DTYPE_I64, 0, NULL);
    return BERTH_OK;
}

// The result has the shape that the operand holds.
static berth_status of_shape(berth_infer *x, berth_dtype dtype) {
    berth_infer_ints shape;
    BERTH_TRY(berth_infer__want_rank(x, 0, 1, 1));
    BERTH_TRY(berth_infer__extents(x, 0, &shape));
    if (!shape.known) {
        berth_infer__set_unknown(x, 0, dtype, -1);
        return BERTH_OK;
    }
    if (shape.count > BERTH_MAX_RANK) return too_many_dims(x, shape.count);
    for (int i = 0; i < shape.count; ++i)
        if (shape.values[i] == -1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "extent %d is negative", i);
    berth_infer__set(x, 0, dtype, shape.count, shape.values);
    return BERTH_OK;
}

berth_status berth_infer__constant_of_shape(berth_infer *x) {
    const berth_attr *value = berth_attrs_find(x->module, &x->op->attrs, "value");
    return of_shape(x, value && value->kind == BERTH_ATTR_TENSOR ? value->tensor->dtype
                                                                 : BERTH_DTYPE_F32);
}

berth_status berth_infer__random(berth_infer *x) {
    berth_dtype dtype = berth_infer__dtype(x, "dtype", BERTH_DTYPE_F32);
    if (!berth_dtype_is_float(dtype))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "random numbers of %s, expected a floating-point type",
                                 berth_dtype_name(dtype));
    return of_shape(x, dtype);
}

berth_status berth_infer__range(berth_infer *x) {
    const berth_tensor *bounds[3];
    int64_t count = BERTH_DIM_UNKNOWN;
    bool known = true;
    for (uint32_t i = 0; i < 3; ++i) {
        BERTH_TRY(berth_infer__want_same_dtype(x, 0, i));
        bounds[i] = berth_infer__literal(x, i);
        known &= bounds[i] != NULL;
        if (bounds[i] && berth_tensor_element_count(bounds[i]) != 1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u is not one number", i);
    }
    if (known) {
        double step = berth_tensor_get_f64(bounds[2], 0);
        double exact =
            ceil((berth_tensor_get_f64(bounds[1], 0) - berth_tensor_get_f64(bounds[0], 0)) / step);
        if (step == 0 || !(exact <= (double)INT32_MAX))
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "the range has no countable number of elements");
        count = exact > 0 ? (int64_t)exact : 0;
    }
    berth_infer__set(x, 0, berth_infer__in(x, 0).dtype, 1, &count);
    return BERTH_OK;
}
