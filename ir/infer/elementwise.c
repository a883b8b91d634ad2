// Elementwise operations: unary, broadcasting, comparisons, selection, casts, quantisation.
#include "ir/infer/internal.h"

// What the operand's element type must be, per operation; operations not listed take any number.
typedef enum dtype_class { ANY_NUMBER, ONLY_FLOAT, ONLY_INTEGER, ONLY_BOOL, ANYTHING } dtype_class;

static dtype_class class_of(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_ABS:
    case BERTH_OP_NEG:
    case BERTH_OP_SIGN:
    case BERTH_OP_RELU:
    case BERTH_OP_CLIP: return ANY_NUMBER;
    case BERTH_OP_NOT: return ONLY_BOOL;
    case BERTH_OP_AND:
    case BERTH_OP_OR:
    case BERTH_OP_XOR: return ONLY_BOOL;
    case BERTH_OP_BITWISE_NOT:
    case BERTH_OP_BITWISE_AND:
    case BERTH_OP_BITWISE_OR:
    case BERTH_OP_BITWISE_XOR:
    case BERTH_OP_BIT_SHIFT: return ONLY_INTEGER;
    case BERTH_OP_EQUAL: return ANYTHING;
    case BERTH_OP_SHRINK: return ANY_NUMBER;
    default: return berth_op_facts_get(kind)->max_inputs == 1 ? ONLY_FLOAT : ANY_NUMBER;
    }
}

static berth_status want_class(const berth_infer *x, uint32_t operand) {
    berth_dtype dtype = berth_infer__in(x, operand).dtype;
    bool is_float = berth_dtype_is_float(dtype);
    bool is_integer = berth_dtype_is_integer(dtype);
    bool ok = true;
    switch (class_of(x->op->kind)) {
    case ANY_NUMBER: ok = is_float || is_integer; break;
    case ONLY_FLOAT: ok = is_float; break;
    case ONLY_INTEGER: ok = is_integer; break;
    case ONLY_BOOL: ok = dtype == BERTH_DTYPE_BOOL; break;
    case ANYTHING: break;
    }
    if (ok || dtype == BERTH_DTYPE_NONE) return BERTH_OK;
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "operand %u is %s, which %s does not take",
                             operand, berth_dtype_name(dtype),
                             berth_op_facts_get(x->op->kind)->name);
}

// Vectors behind the input: an entry per channel, or per group where there are any.
static berth_status check_channels(const berth_infer *x, const berth_type *in, int64_t groups) {
    for (uint32_t i = 1; i < x->op->input_count; ++i) {
        berth_type vector = berth_infer__in(x, i);
        int64_t ignored = 0;
        BERTH_TRY(berth_infer__want_rank(x, i, 1, 1));
        bool per_group = groups > 0 && vector.rank == 1 && vector.dims[0] == groups;
        if (vector.rank == 1 && in->rank >= 2 && !per_group)
            BERTH_TRY(berth_infer__merge_dim(x, "channels", in->dims[1], vector.dims[0], &ignored));
    }
    return BERTH_OK;
}

berth_status berth_infer__unary(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(want_class(x, 0));
    if (x->op->kind == BERTH_OP_CLIP) {
        for (uint32_t i = 1; i < x->op->input_count; ++i)
            BERTH_TRY(berth_infer__want_same_dtype(x, 0, i));
    } else if (x->op->kind == BERTH_OP_BATCH_NORMALIZATION) {
        BERTH_TRY(check_channels(x, &in, 0));
    }
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__channel_normalization(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(check_channels(x, &in, berth_infer__int(x, "num_groups", 0)));
    return berth_infer__identity(x);
}

berth_status berth_infer__unary_bool(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(want_class(x, 0));
    berth_infer__set(x, 0, BERTH_DTYPE_BOOL, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__cast(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_dtype to = berth_infer__dtype(x, "to", BERTH_DTYPE_NONE);
    if (to == BERTH_DTYPE_NONE)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute to is missing");
    berth_infer__set(x, 0, to, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__bit_cast(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_dtype to = berth_infer__dtype(x, "to", BERTH_DTYPE_NONE);
    if (to == BERTH_DTYPE_NONE)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "attribute to is missing");
    if (in.dtype != BERTH_DTYPE_NONE &&
        berth_dtype_size_bytes(in.dtype) != berth_dtype_size_bytes(to))
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "%s has another size than %s",
                                 berth_dtype_name(to), berth_dtype_name(in.dtype));
    berth_infer__set(x, 0, to, in.rank, in.dims);
    return BERTH_OK;
}

// Broadcasts all operands from `first` on into dims; rank -1 when one is unknown.
static berth_status broadcast_operands(const berth_infer *x, uint32_t first, int64_t *dims,
                                       int *out_rank) {
    int rank = 0;
    for (uint32_t i = first; i < x->op->input_count; ++i) {
        berth_type in = berth_infer__in(x, i);
        if (in.rank < 0) {
            *out_rank = -1;
            return BERTH_OK;
        }
        int64_t joined[BERTH_MAX_RANK];
        BERTH_TRY(
            berth_infer__at(x, berth_broadcast_dims(dims, rank, in.dims, in.rank, joined, &rank)));
        for (int d = 0; d < rank; ++d) dims[d] = joined[d];
    }
    *out_rank = rank;
    return BERTH_OK;
}

static berth_status broadcast_to(berth_infer *x, berth_dtype dtype) {
    int64_t dims[BERTH_MAX_RANK] = {0};
    int rank = 0;
    BERTH_TRY(broadcast_operands(x, 0, dims, &rank));
    berth_infer__set(x, 0, dtype, rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__broadcast(berth_infer *x) {
    berth_dtype dtype = BERTH_DTYPE_NONE;
    bool free_second = x->op->kind == BERTH_OP_POW;  // the exponent may have another type
    for (uint32_t i = 0; i < x->op->input_count; ++i) {
        BERTH_TRY(want_class(x, i));
        if (dtype == BERTH_DTYPE_NONE) dtype = berth_infer__in(x, i).dtype;
        if (!(free_second && i == 1)) BERTH_TRY(berth_infer__want_dtype(x, i, dtype));
    }
    BERTH_TRY(broadcast_to(x, dtype));
    if (x->op->kind != BERTH_OP_PRELU) return BERTH_OK;
    berth_type in =
        berth_infer__in(x, 0);  // unidirectional: the result has the first operand's shape
    berth_type out = *berth_type_get(x->module, x->graph->values.data[x->op->outputs[0]].type);
    if (in.rank >= 0 && out.rank > in.rank)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the slope has more dimensions than the input");
    for (int i = 0; i < in.rank && out.rank == in.rank; ++i)
        if (in.dims[i] >= 0 && out.dims[i] >= 0 && in.dims[i] != out.dims[i])
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "the slope does not broadcast to the input");
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__compare(berth_infer *x) {
    BERTH_TRY(want_class(x, 0));
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    return broadcast_to(x, BERTH_DTYPE_BOOL);
}

berth_status berth_infer__where(berth_infer *x) {
    BERTH_TRY(berth_infer__want_dtype(x, 0, BERTH_DTYPE_BOOL));
    BERTH_TRY(berth_infer__want_same_dtype(x, 1, 2));
    berth_dtype dtype = berth_infer__in(x, 1).dtype;
    if (dtype == BERTH_DTYPE_NONE) dtype = berth_infer__in(x, 2).dtype;
    return broadcast_to(x, dtype);
}

// Scale and zero point: scalars, or vectors along `axis`.
static berth_status check_scales(const berth_infer *x, const berth_type *in) {
    for (uint32_t i = 1; i < x->op->input_count; ++i) {
        berth_type scale = berth_infer__in(x, i);
        if (!berth_infer__has(x, i) || scale.rank < 0 || in->rank < 0) continue;
        if (scale.rank > 1)
            return berth_infer__fail(x, BERTH_UNSUPPORTED,
                                     "operand %u has rank %d: blocked quantisation", i, scale.rank);
        if (scale.rank == 0 || scale.dims[0] == 1) continue;
        int axis = 0;
        int64_t ignored = 0;
        BERTH_TRY(berth_infer__axis(x, "axis", 1, in->rank, &axis));
        BERTH_TRY(berth_infer__merge_dim(x, "scale or zero point", in->dims[axis], scale.dims[0],
                                         &ignored));
    }
    return BERTH_OK;
}

berth_status berth_infer__quantize(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(check_scales(x, &in));
    berth_dtype dtype = berth_infer__dtype(x, "output_dtype", BERTH_DTYPE_U8);
    if (berth_infer__has(x, 2)) dtype = berth_infer__in(x, 2).dtype;
    berth_infer__set(x, 0, dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__qlinear_add(berth_infer *x) {
    berth_type a = berth_infer__in(x, 0), b = berth_infer__in(x, 3);
    int rank = a.rank >= 0 ? a.rank : b.rank;
    int64_t dims[BERTH_MAX_RANK];
    for (uint32_t i = 0; i < 8; ++i)
        if (i % 3) BERTH_TRY(berth_infer__want_single(x, i));  // all but the addends
    BERTH_TRY(berth_infer__want_single(x, 6));
    if (rank >= 0) BERTH_TRY(berth_infer__want_rank(x, 0, rank, rank));
    if (rank >= 0) BERTH_TRY(berth_infer__want_rank(x, 3, rank, rank));
    if (a.rank < 0 || b.rank < 0) {
        berth_infer__set_unknown(x, 0, berth_infer__in(x, 7).dtype, rank);
        return BERTH_OK;
    }
    for (int d = 0; d < rank; ++d)
        BERTH_TRY(berth_infer__merge_dim(x, "addends", a.dims[d], b.dims[d], &dims[d]));
    berth_infer__set(x, 0, berth_infer__in(x, 7).dtype, rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__dequantize(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(check_scales(x, &in));
    if (berth_infer__has(x, 2)) BERTH_TRY(berth_infer__want_same_dtype(x, 0, 2));
    berth_infer__set(x, 0, berth_infer__in(x, 1).dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__dynamic_quantize(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(berth_infer__want_dtype(x, 0, BERTH_DTYPE_F32));
    berth_infer__set(x, 0, BERTH_DTYPE_U8, in.rank, in.dims);
    berth_infer__set(x, 1, BERTH_DTYPE_F32, 0, NULL);
    berth_infer__set(x, 2, BERTH_DTYPE_U8, 0, NULL);
    return BERTH_OK;
}
