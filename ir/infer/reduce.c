// Reductions, order and selection.
#include "ir/infer/internal.h"

// Axes as a bit set: the operand's, or all. `open` = not known before the run.
static berth_status reduced_axes(const berth_infer *x, int rank, uint32_t *out_set,
                                 bool *out_open) {
    berth_infer_ints axes;
    BERTH_TRY(berth_infer__ints(x, 1, &axes));
    *out_set = 0;
    *out_open = berth_infer__has(x, 1) && !axes.known;
    if (*out_open) return BERTH_OK;
    if (axes.count == 0) {
        bool keep_all = berth_infer__int(x, "noop_with_empty_axes", 0) != 0;
        *out_set = keep_all ? 0 : ((uint32_t)1 << rank) - 1;
        return BERTH_OK;
    }
    for (int i = 0; i < axes.count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_infer__at(x, berth_axis_resolve(axes.values[i], rank, "an axis", &axis)));
        *out_set |= (uint32_t)1 << axis;
    }
    return BERTH_OK;
}

static void set_reduced(berth_infer *x, const berth_type *in, berth_dtype dtype, uint32_t set,
                        bool keep) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in->rank; ++i) {
        if (!(set >> i & 1))
            dims[rank++] = in->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    berth_infer__set(x, 0, dtype, rank, dims);
}

berth_status berth_infer__reduce(berth_infer *x) {
    BERTH_TRY(berth_infer__want_axes_operand(x));
    berth_type in = berth_infer__in(x, 0);
    bool keep = berth_infer__int(x, "keepdims", 1) != 0;
    uint32_t set = 0;
    bool open = false;
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(reduced_axes(x, in.rank, &set, &open));
    if (open) {
        berth_infer__set_unknown(x, 0, in.dtype, keep ? in.rank : -1);
        return BERTH_OK;
    }
    set_reduced(x, &in, in.dtype, set, keep);
    return BERTH_OK;
}

berth_status berth_infer__arg_reduce(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int axis = 0;
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, BERTH_DTYPE_I64, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__axis(x, "axis", 0, in.rank, &axis));
    set_reduced(x, &in, BERTH_DTYPE_I64, (uint32_t)1 << axis,
                berth_infer__int(x, "keepdims", 1) != 0);
    return BERTH_OK;
}

berth_status berth_infer__top_k(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints k;
    BERTH_TRY(berth_infer__ints(x, 1, &k));
    if (k.known && (k.count != 1 || k.values[0] < 0))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "k is not one number of at least 0");
    if (in.rank >= 0) {
        int axis = 0;
        BERTH_TRY(berth_infer__axis(x, "axis", -1, in.rank, &axis));
        if (k.known && in.dims[axis] >= 0 && k.values[0] > in.dims[axis])
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "k is %lld of only %lld elements",
                                     (long long)k.values[0], (long long)in.dims[axis]);
        in.dims[axis] = k.known ? k.values[0] : BERTH_DIM_UNKNOWN;
    }
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    berth_infer__set(x, 1, BERTH_DTYPE_I64, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__non_zero(berth_infer *x) {
    int rank = berth_infer__in(x, 0).rank;
    int64_t dims[2] = {rank < 0 ? BERTH_DIM_UNKNOWN : rank, BERTH_DIM_UNKNOWN};
    if (rank == 0) dims[0] = 1;  // a scalar counts as a vector of one
    berth_infer__set(x, 0, BERTH_DTYPE_I64, 2, dims);
    return BERTH_OK;
}

// Type whose extent along attribute `axis` is unknown; without the attribute the input is
// flattened.
static berth_status selected(berth_infer *x, berth_type *in, int *out_axis) {
    *out_axis = -1;
    if (!berth_attrs_find(x->module, &x->op->attrs, "axis")) {
        in->rank = 1;
        in->dims[0] = BERTH_DIM_UNKNOWN;
    } else if (in->rank >= 0) {
        BERTH_TRY(berth_infer__axis(x, "axis", 0, in->rank, out_axis));
        in->dims[*out_axis] = BERTH_DIM_UNKNOWN;
    }
    berth_infer__set(x, 0, in->dtype, in->rank, in->dims);
    return BERTH_OK;
}

berth_status berth_infer__compress(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int axis = 0;
    BERTH_TRY(berth_infer__want_dtype(x, 1, BERTH_DTYPE_BOOL));
    BERTH_TRY(berth_infer__want_rank(x, 1, 1, 1));
    return selected(x, &in, &axis);
}

berth_status berth_infer__unique(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_type given = in;
    int axis = 0;
    int64_t unknown = BERTH_DIM_UNKNOWN;
    BERTH_TRY(selected(x, &in, &axis));
    int64_t inverse = axis >= 0 ? given.dims[axis] : BERTH_DIM_UNKNOWN;
    if (axis < 0 && given.rank >= 0)
        BERTH_TRY(berth_infer__product(x, given.dims, given.rank, &inverse));
    berth_infer__set(x, 1, BERTH_DTYPE_I64, 1, &unknown);
    berth_infer__set(x, 2, BERTH_DTYPE_I64, 1, &inverse);
    berth_infer__set(x, 3, BERTH_DTYPE_I64, 1, &unknown);
    return BERTH_OK;
}

berth_status berth_infer__non_max_suppression(berth_infer *x) {
    int64_t dims[2] = {BERTH_DIM_UNKNOWN, 3};
    BERTH_TRY(berth_infer__want_rank(x, 0, 3, 3));
    BERTH_TRY(berth_infer__want_rank(x, 1, 3, 3));
    berth_infer__set(x, 0, BERTH_DTYPE_I64, 2, dims);
    return BERTH_OK;
}
