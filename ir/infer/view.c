// Views and other rearrangements of whole dimensions: reshape, flatten, squeeze, unsqueeze,
// transpose, expand, tile, concat, split, depth/space.
#include "ir/dim.h"
#include "ir/infer/internal.h"

berth_status berth_infer__identity(berth_infer *x) {
    int rank = berth_infer__in(x, 0).rank;
    int axis = 0;
    if (rank > 0 && berth_attrs_find(x->module, &x->op->attrs, "axis"))
        BERTH_TRY(berth_infer__axis(x, "axis", 0, rank, &axis));
    berth_infer__set_type(x, 0, x->graph->values.data[x->op->inputs[0]].type);
    return BERTH_OK;
}

// ---- reshape ----

// Removes from both lists the symbols they share: a dimension divided by itself.
static void cancel_symbols(int64_t *a, int *a_count, int64_t *b, int *b_count) {
    for (int i = 0; i < *a_count;) {
        int j = 0;
        while (j < *b_count &&
               !(berth_dim_is_symbol(a[i]) && a[i] != BERTH_DIM_UNKNOWN && a[i] == b[j]))
            j++;
        if (j == *b_count) {
            i++;
            continue;
        }
        a[i] = a[--*a_count];
        b[j] = b[--*b_count];
    }
}

// The extent that -1 stands for: product(in) / product(known), as far as it is known.
static berth_status deduce_extent(const berth_infer *x, const berth_type *in, const int64_t *known,
                                  int known_count, int64_t *out_extent) {
    int64_t left[BERTH_MAX_RANK];
    int64_t right[BERTH_MAX_RANK];
    int left_count = in->rank;
    int right_count = known_count;
    int64_t total = 0;
    int64_t divisor = 0;
    for (int i = 0; i < in->rank; ++i) left[i] = in->dims[i];
    for (int i = 0; i < known_count; ++i) right[i] = known[i];
    cancel_symbols(left, &left_count, right, &right_count);
    BERTH_TRY(berth_infer__product(x, left, left_count, &total));
    BERTH_TRY(berth_infer__product(x, right, right_count, &divisor));
    *out_extent = BERTH_DIM_UNKNOWN;
    if (divisor >= 0 && total >= 0) {
        if (divisor == 0 ? total != 0 : total % divisor != 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "%lld elements do not divide into groups of %lld",
                                     (long long)total, (long long)divisor);
        *out_extent = divisor == 0 ? 0 : total / divisor;
        return BERTH_OK;
    }
    *out_extent = berth_dim_combine(x->module, BERTH_DIM_FLOORDIV, total, divisor);
    return BERTH_OK;
}

static berth_status check_same_count(const berth_infer *x, const berth_type *in,
                                     const int64_t *dims, int rank) {
    int64_t given = 0;
    int64_t wanted = 0;
    BERTH_TRY(berth_infer__product(x, in->dims, in->rank, &given));
    BERTH_TRY(berth_infer__product(x, dims, rank, &wanted));
    if (given >= 0 && wanted >= 0 && given != wanted)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "%lld elements cannot take a shape of %lld elements",
                                 (long long)given, (long long)wanted);
    return BERTH_OK;
}

berth_status berth_infer__reshape(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints shape;
    bool allow_zero = berth_infer__int(x, "allowzero", 0) != 0;
    BERTH_TRY(berth_infer__want_rank(x, 1, 1, 1));
    BERTH_TRY(berth_infer__extents(x, 1, &shape));
    if (!shape.known) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    if (shape.count > BERTH_MAX_RANK)
        return berth_infer__fail(x, BERTH_UNSUPPORTED, "a shape of %d dimensions (at most %d)",
                                 shape.count, BERTH_MAX_RANK);
    int64_t dims[BERTH_MAX_RANK];
    int64_t known[BERTH_MAX_RANK];
    int known_count = 0;
    int deduced = -1;
    for (int i = 0; i < shape.count; ++i) {
        dims[i] = shape.values[i];
        if (dims[i] == 0 && !allow_zero) {
            if (in.rank >= 0 && i >= in.rank)
                return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                         "extent %d is 0 (copied), but the input has rank %d", i,
                                         in.rank);
            dims[i] = in.rank >= 0 ? in.dims[i] : BERTH_DIM_UNKNOWN;
        }
        if (dims[i] == -1) {
            if (deduced >= 0)
                return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "two extents are -1");
            deduced = i;
        } else {
            known[known_count++] = dims[i];
        }
    }
    if (deduced >= 0) dims[deduced] = BERTH_DIM_UNKNOWN;
    if (deduced >= 0 && in.rank >= 0)
        BERTH_TRY(deduce_extent(x, &in, known, known_count, &dims[deduced]));
    if (in.rank >= 0) BERTH_TRY(check_same_count(x, &in, dims, shape.count));
    berth_infer__set(x, 0, in.dtype, shape.count, dims);
    return BERTH_OK;
}

berth_status berth_infer__flatten(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, 2);
        return BERTH_OK;
    }
    int64_t axis = berth_infer__int(x, "axis", 1);
    int64_t dims[2];
    if (axis < -in.rank || axis > in.rank)
        return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "axis is %lld, outside [-%d, %d]",
                                 (long long)axis, in.rank, in.rank);
    if (axis < 0) axis += in.rank;
    for (int part = 0; part < 2; ++part) {
        const int64_t *first = part ? in.dims + axis : in.dims;
        int count = part ? in.rank - (int)axis : (int)axis;
        BERTH_TRY(berth_infer__product(x, first, count, &dims[part]));
    }
    berth_infer__set(x, 0, in.dtype, 2, dims);
    return BERTH_OK;
}

// ---- squeeze, unsqueeze ----

// Axes as a bit set over [0, rank). Errors: out of range, given twice.
static berth_status axis_set(const berth_infer *x, const berth_infer_ints *axes, int rank,
                             uint32_t *out_set) {
    *out_set = 0;
    for (int i = 0; i < axes->count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_infer__at(x, berth_axis_resolve(axes->values[i], rank, "an axis", &axis)));
        if (*out_set >> axis & 1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "axis %d is given twice", axis);
        *out_set |= (uint32_t)1 << axis;
    }
    return BERTH_OK;
}

berth_status berth_infer__squeeze(berth_infer *x) {
    BERTH_TRY(berth_infer__want_axes_operand(x));
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints axes;
    BERTH_TRY(berth_infer__ints(x, 1, &axes));
    bool all = !berth_infer__has(x, 1);
    bool open = all && !berth_type_is_static(&in);  // which extents are 1 is not known
    if (in.rank < 0 || (!all && !axes.known) || open) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    uint32_t set = 0;
    if (!all) BERTH_TRY(axis_set(x, &axes, in.rank, &set));
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in.rank; ++i) {
        bool drop = all ? in.dims[i] == 1 : (set >> i & 1);
        if (drop && !all && in.dims[i] != 1 && in.dims[i] >= 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "dimension %d has extent %lld, not 1", i,
                                     (long long)in.dims[i]);
        if (!drop) dims[rank++] = in.dims[i];
    }
    berth_infer__set(x, 0, in.dtype, rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__unsqueeze(berth_infer *x) {
    BERTH_TRY(berth_infer__want_axes_operand(x));
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints axes;
    BERTH_TRY(berth_infer__ints(x, 1, &axes));
    if (in.rank < 0 || !axes.known) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    int rank = in.rank + axes.count;
    if (rank > BERTH_MAX_RANK)
        return berth_infer__fail(x, BERTH_UNSUPPORTED, "%d dimensions (at most %d)", rank,
                                 BERTH_MAX_RANK);
    uint32_t set = 0;
    BERTH_TRY(axis_set(x, &axes, rank, &set));
    int64_t dims[BERTH_MAX_RANK];
    int from = 0;
    for (int i = 0; i < rank; ++i) dims[i] = set >> i & 1 ? 1 : in.dims[from++];
    berth_infer__set(x, 0, in.dtype, rank, dims);
    return BERTH_OK;
}

// ---- transpose, expand, tile ----

berth_status berth_infer__transpose(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    uint32_t count = 0;
    const int64_t *perm = berth_attrs_ints(x->module, &x->op->attrs, "perm", &count);
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, perm && count <= BERTH_MAX_RANK ? (int)count : -1);
        return BERTH_OK;
    }
    int64_t dims[BERTH_MAX_RANK];
    uint32_t seen = 0;
    if (perm && count != (uint32_t)in.rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "attribute perm has %u entries, the input rank %d", count,
                                 in.rank);
    for (int i = 0; i < in.rank; ++i) {
        int64_t from = perm ? perm[i] : in.rank - 1 - i;
        if (from < 0 || from >= in.rank || (seen >> from & 1))
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "attribute perm is not a permutation");
        seen |= (uint32_t)1 << from;
        dims[i] = in.dims[from];
    }
    berth_infer__set(x, 0, in.dtype, in.rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__expand(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints shape;
    BERTH_TRY(berth_infer__extents(x, 1, &shape));
    if (in.rank < 0 || !shape.known) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    if (shape.count > BERTH_MAX_RANK)
        return berth_infer__fail(x, BERTH_UNSUPPORTED, "a shape of %d dimensions (at most %d)",
                                 shape.count, BERTH_MAX_RANK);
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < shape.count; ++i)
        if (shape.values[i] == -1) shape.values[i] = 1;  // exporters write -1 for "keep"
    BERTH_TRY(berth_infer__at(
        x, berth_broadcast_dims(in.dims, in.rank, shape.values, shape.count, dims, &rank)));
    berth_infer__set(x, 0, in.dtype, rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__tile(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_infer_ints repeats;
    BERTH_TRY(berth_infer__extents(x, 1, &repeats));
    if (in.rank < 0 || !repeats.known) {
        berth_infer__set_unknown(x, 0, in.dtype, in.rank);
        return BERTH_OK;
    }
    if (repeats.count != in.rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%d repeats for %d dimensions",
                                 repeats.count, in.rank);
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < in.rank; ++i) {
        int64_t pair[2] = {in.dims[i], repeats.values[i]};
        if (pair[1] == -1)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "repeats[%d] is negative", i);
        if (pair[1] == 1)
            dims[i] = pair[0];
        else
            BERTH_TRY(berth_infer__product(x, pair, 2, &dims[i]));
    }
    berth_infer__set(x, 0, in.dtype, in.rank, dims);
    return BERTH_OK;
}

// ---- concat, split ----

berth_status berth_infer__concat(berth_infer *x) {
    berth_type first = berth_infer__in(x, 0);
    int axis = 0;
    if (first.rank < 0) {
        berth_infer__set_unknown(x, 0, first.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__axis(x, "axis", 0, first.rank, &axis));
    int64_t dims[BERTH_MAX_RANK];
    for (int d = 0; d < first.rank; ++d) dims[d] = first.dims[d];
    for (uint32_t i = 1; i < x->op->input_count; ++i) {
        berth_type in = berth_infer__in(x, i);
        BERTH_TRY(berth_infer__want_dtype(x, i, first.dtype));
        BERTH_TRY(berth_infer__want_rank(x, i, first.rank, first.rank));
        for (int d = 0; d < first.rank; ++d) {
            int64_t extent = in.rank < 0 ? BERTH_DIM_UNKNOWN : in.dims[d];
            if (d != axis) {
                BERTH_TRY(
                    berth_infer__merge_dim(x, "concatenated tensors", dims[d], extent, &dims[d]));
            } else if (dims[d] < 0 || extent < 0) {
                dims[d] = berth_dim_combine(x->module, BERTH_DIM_ADD, dims[d], extent);
            } else if (__builtin_add_overflow(dims[d], extent, &dims[d])) {
                return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "the result is too long");
            }
        }
    }
    berth_infer__set(x, 0, first.dtype, first.rank, dims);
    return BERTH_OK;
}

// With one operand, what the cache has before it is not seen: its type was inferred with two.
berth_status berth_infer__append(berth_infer *x) {
    if (x->op->input_count == 2) return berth_infer__concat(x);
    berth_infer__set_type(x, 0, x->graph->values.data[x->op->outputs[0]].type);
    return BERTH_OK;
}

// Without sizes: equal parts, the last one smaller when the extent does not divide (Split-18).
static int64_t equal_part(int64_t extent, uint32_t parts, uint32_t index) {
    int64_t size = (extent + parts - 1) / parts;
    int64_t begin = size * index;
    return begin >= extent ? 0 : extent - begin < size ? extent - begin : size;
}

berth_status berth_infer__split(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    uint32_t parts = x->op->output_count;
    int axis = 0;
    if (in.rank < 0) {
        for (uint32_t i = 0; i < parts; ++i) berth_infer__set_unknown(x, i, in.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__axis(x, "axis", 0, in.rank, &axis));
    const berth_tensor *sizes = berth_infer__literal(x, 1);
    bool given = berth_infer__has(x, 1);
    int64_t total = 0;
    if (sizes &&
        (!berth_dtype_is_integer(sizes->dtype) || berth_tensor_element_count(sizes) != parts))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%lld sizes for %u results",
                                 (long long)berth_tensor_element_count(sizes), parts);
    int64_t extent = in.dims[axis];
    for (uint32_t i = 0; i < parts; ++i) {
        if (sizes) {
            in.dims[axis] = berth_tensor_get_i64(sizes, i);
            if (in.dims[axis] < 0 || __builtin_add_overflow(total, in.dims[axis], &total))
                return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "size %u is %lld", i,
                                         (long long)in.dims[axis]);
        } else {
            in.dims[axis] = given || extent < 0 ? BERTH_DIM_UNKNOWN : equal_part(extent, parts, i);
        }
        berth_infer__set(x, i, in.dtype, in.rank, in.dims);
    }
    if (sizes && extent >= 0 && total != extent)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the sizes add up to %lld, the extent is %lld", (long long)total,
                                 (long long)extent);
    return BERTH_OK;
}

// ---- depth and space ----

static berth_status block_size(const berth_infer *x, int64_t *out_size) {
    *out_size = berth_infer__int(x, "blocksize", 0);
    if (*out_size < 1 || *out_size > INT32_MAX)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute blocksize is %lld",
                                 (long long)*out_size);
    return berth_infer__want_rank(x, 0, 4, 4);
}

static int64_t scaled(const berth_infer *x, int64_t dim, int64_t factor, int64_t divisor) {
    int64_t product = 0;
    if (dim < 0)
        return berth_dim_combine(x->module, BERTH_DIM_FLOORDIV,
                                 berth_dim_scale(x->module, dim, factor, 0), divisor);
    return __builtin_mul_overflow(dim, factor, &product) ? INT64_MAX : product / divisor;
}

berth_status berth_infer__depth_to_space(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int64_t b = 1;
    BERTH_TRY(block_size(x, &b));
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, 4);
        return BERTH_OK;
    }
    if (in.dims[1] >= 0 && in.dims[1] % (b * b) != 0)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "%lld channels are not a multiple of %lld squared",
                                 (long long)in.dims[1], (long long)b);
    int64_t dims[4] = {in.dims[0], scaled(x, in.dims[1], 1, b * b), scaled(x, in.dims[2], b, 1),
                       scaled(x, in.dims[3], b, 1)};
    berth_infer__set(x, 0, in.dtype, 4, dims);
    return BERTH_OK;
}

berth_status berth_infer__space_to_depth(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int64_t b = 1;
    BERTH_TRY(block_size(x, &b));
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, 4);
        return BERTH_OK;
    }
    for (int i = 2; i < 4; ++i)
        if (in.dims[i] >= 0 && in.dims[i] % b != 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "extent %lld is not a multiple of the block size %lld",
                                     (long long)in.dims[i], (long long)b);
    int64_t dims[4] = {in.dims[0], scaled(x, in.dims[1], b * b, 1), scaled(x, in.dims[2], 1, b),
                       scaled(x, in.dims[3], 1, b)};
    berth_infer__set(x, 0, in.dtype, 4, dims);
    return BERTH_OK;
}
