// Linear algebra and convolutions.
#include "ir/graph/einsum.h"
#include "ir/graph/op_params.h"
#include "ir/infer/internal.h"

// ---- matmul ----

// numpy.matmul: vectors become matrices and lose the added dimension again; leading dimensions
// broadcast.
static berth_status matmul_types(berth_infer *x, uint32_t left, uint32_t right, berth_dtype dtype) {
    berth_type a = berth_infer__in(x, left);
    berth_type b = berth_infer__in(x, right);
    if (a.rank < 0 || b.rank < 0) {
        berth_infer__set_unknown(x, 0, dtype, -1);
        return BERTH_OK;
    }
    if (a.rank == 0 || b.rank == 0)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "a scalar has no matrix product");
    int64_t k_a = a.dims[a.rank - 1];
    int64_t k_b = b.rank == 1 ? b.dims[0] : b.dims[b.rank - 2];
    int64_t dims[BERTH_MAX_RANK];
    int64_t ignored = 0;
    int rank = 0;
    BERTH_TRY(berth_infer__merge_dim(x, "inner dimensions", k_a, k_b, &ignored));
    int a_batch = a.rank > 2 ? a.rank - 2 : 0;
    int b_batch = b.rank > 2 ? b.rank - 2 : 0;
    BERTH_TRY(
        berth_infer__at(x, berth_broadcast_dims(a.dims, a_batch, b.dims, b_batch, dims, &rank)));
    if (a.rank > 1) dims[rank++] = a.dims[a.rank - 2];
    if (b.rank > 1) dims[rank++] = b.dims[b.rank - 1];
    berth_infer__set(x, 0, dtype, rank, dims);
    return BERTH_OK;
}

// Scales and zero points of the rows of A or the columns of B, in operand `of`: one for all, or one
// for each ([M], [..., M, 1], [N], [..., 1, N]).
static berth_status want_lines(const berth_infer *x, uint32_t operand, uint32_t of, bool rows) {
    berth_type lines = berth_infer__in(x, operand), factor = berth_infer__in(x, of);
    int64_t line = 1, ignored = 0;
    if (!berth_infer__has(x, operand) || factor.rank < 0) return BERTH_OK;
    if (factor.rank > 1) line = factor.dims[factor.rank - (rows ? 2 : 1)];
    for (int d = 0; d < lines.rank; ++d) {
        int from_end = lines.rank - d, at = factor.rank - from_end;
        int64_t want = from_end <= 2 ? line : at >= 0 ? factor.dims[at] : 1;
        if (lines.dims[d] != 1)
            BERTH_TRY(berth_infer__merge_dim(
                x, rows ? "scales or zero points of rows" : "scales or zero points of columns",
                want, lines.dims[d], &ignored));
    }
    return BERTH_OK;
}

berth_status berth_infer__matmul(berth_infer *x) {
    if (x->op->kind == BERTH_OP_MATMUL_INTEGER) {
        BERTH_TRY(want_lines(x, 2, 0, true));
        BERTH_TRY(want_lines(x, 3, 1, false));
        return matmul_types(x, 0, 1, BERTH_DTYPE_I32);
    }
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    return matmul_types(x, 0, 1, berth_infer__in(x, 0).dtype);
}

berth_status berth_infer__qlinear_matmul(berth_infer *x) {
    static const uint32_t of_rows[] = {1, 2, 6, 7}, of_columns[] = {4, 5};
    for (int i = 0; i < 4; ++i) BERTH_TRY(want_lines(x, of_rows[i], 0, true));
    for (int i = 0; i < 2; ++i) BERTH_TRY(want_lines(x, of_columns[i], 3, false));
    return matmul_types(x, 0, 3, berth_infer__in(x, 7).dtype);
}

berth_status berth_infer__matmul_bits(berth_infer *x) {
    berth_type a = berth_infer__in(x, 0), bytes = berth_infer__in(x, 1);
    int64_t dims[BERTH_MAX_RANK], ignored = 0, columns = BERTH_DIM_UNKNOWN;
    berth_bits_shape shape;
    BERTH_TRY(berth_infer__want_rank(x, 0, 1, BERTH_MAX_RANK));
    BERTH_TRY(berth_infer__want_dtype(x, 0, BERTH_DTYPE_F32));
    BERTH_TRY(berth_infer__want_dtype(x, 1, BERTH_DTYPE_U8));
    for (uint32_t i = 1; i < 4; ++i) BERTH_TRY(berth_infer__want_rank(x, i, 2, 2));
    int64_t depth = a.rank > 0 ? a.dims[a.rank - 1] : BERTH_DIM_UNKNOWN;
    BERTH_TRY(berth_infer__at(x, berth_bits_resolve(x->module, x->op, depth, &shape)));
    if (bytes.rank == 2) {
        columns = bytes.dims[1];
        BERTH_TRY(berth_infer__merge_dim(x, "rows of bytes", bytes.dims[0], shape.rows, &ignored));
    }
    for (uint32_t i = 2; i < 4; ++i) {
        berth_type type = berth_infer__in(x, i);
        if (!berth_infer__has(x, i) || type.rank != 2) continue;
        BERTH_TRY(berth_infer__merge_dim(x, "blocks", type.dims[0], shape.blocks, &ignored));
        BERTH_TRY(berth_infer__merge_dim(x, "columns", type.dims[1], columns, &columns));
    }
    if (a.rank < 0) {
        berth_infer__set_unknown(x, 0, BERTH_DTYPE_F32, -1);
        return BERTH_OK;
    }
    for (int d = 0; d + 1 < a.rank; ++d) dims[d] = a.dims[d];
    dims[a.rank - 1] = columns;
    berth_infer__set(x, 0, BERTH_DTYPE_F32, a.rank, dims);
    return BERTH_OK;
}

berth_status berth_infer__gemm(berth_infer *x) {
    berth_type a = berth_infer__in(x, 0);
    berth_type b = berth_infer__in(x, 1);
    berth_type c = berth_infer__in(x, 2);
    int64_t dims[2] = {BERTH_DIM_UNKNOWN, BERTH_DIM_UNKNOWN};
    BERTH_TRY(berth_infer__want_rank(x, 0, 2, 2));
    BERTH_TRY(berth_infer__want_rank(x, 1, 2, 2));
    BERTH_TRY(berth_infer__want_rank(x, 2, 0, 2));
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    if (berth_infer__has(x, 2)) BERTH_TRY(berth_infer__want_same_dtype(x, 0, 2));
    int trans_a = berth_infer__int(x, "transA", 0) != 0;
    int trans_b = berth_infer__int(x, "transB", 0) != 0;
    if (a.rank == 2) dims[0] = a.dims[trans_a];
    if (b.rank == 2) dims[1] = b.dims[!trans_b];
    int64_t ignored = 0;
    if (a.rank == 2 && b.rank == 2)
        BERTH_TRY(berth_infer__merge_dim(x, "inner dimensions", a.dims[!trans_a], b.dims[trans_b],
                                         &ignored));
    for (int i = 1; i <= c.rank; ++i) {
        int64_t extent = c.dims[c.rank - i];
        if (extent >= 0 && extent != 1 && dims[2 - i] >= 0 && extent != dims[2 - i])
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "C has extent %lld where the product has %lld",
                                     (long long)extent, (long long)dims[2 - i]);
    }
    berth_infer__set(x, 0, a.dtype, 2, dims);
    return BERTH_OK;
}

// ---- convolution ----

// Operands of a convolution: where input, weights and bias are.
typedef struct conv_operands {
    uint32_t input;
    uint32_t weights;
    uint32_t bias;
} conv_operands;

static berth_status check_conv(const berth_infer *x, const berth_type *in,
                               const berth_type *weights, const conv_operands *at, int64_t group) {
    bool transposed = x->op->kind == BERTH_OP_CONV_TRANSPOSE;
    int64_t channels = in->dims[1];
    int64_t first = weights->dims[0];
    int64_t second = weights->dims[1];
    int64_t outputs = first;
    if (transposed) {
        if (second >= 0 && __builtin_mul_overflow(second, group, &outputs))
            return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "too many channels");
        if (second < 0) outputs = BERTH_DIM_UNKNOWN;
        if (channels >= 0 && first >= 0 && (channels != first || channels % group != 0))
            return berth_infer__fail(
                x, BERTH_INVALID_ARGUMENT,
                "the input has %lld channels, the weights %lld, in %lld groups",
                (long long)channels, (long long)first, (long long)group);
    } else {
        if (channels >= 0 && second >= 0 && (channels % group != 0 || channels / group != second))
            return berth_infer__fail(
                x, BERTH_INVALID_ARGUMENT,
                "the input has %lld channels, the weights %lld, in %lld groups",
                (long long)channels, (long long)second, (long long)group);
        if (first >= 0 && first % group != 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                     "%lld output channels do not divide into %lld groups",
                                     (long long)first, (long long)group);
    }
    if (at->bias && berth_infer__has(x, at->bias)) {
        berth_type bias = berth_infer__in(x, at->bias);
        int64_t ignored = 0;
        BERTH_TRY(berth_infer__want_rank(x, at->bias, 1, 1));
        if (bias.rank == 1)
            BERTH_TRY(berth_infer__merge_dim(x, "bias", outputs, bias.dims[0], &ignored));
    }
    return BERTH_OK;
}

static berth_status conv_types(berth_infer *x, conv_operands at, berth_dtype dtype) {
    berth_type in = berth_infer__in(x, at.input);
    berth_type weights = berth_infer__in(x, at.weights);
    bool transposed = x->op->kind == BERTH_OP_CONV_TRANSPOSE;
    if (in.rank < 0 || weights.rank < 0) {
        berth_infer__set_unknown(x, 0, dtype, in.rank >= 0 ? in.rank : weights.rank);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__want_rank(x, at.weights, in.rank, in.rank));
    berth_window window;
    BERTH_TRY(berth_infer__at(
        x, berth_window_resolve(x->module, x->op, in.dims, in.rank, weights.dims + 2, &window)));
    BERTH_TRY(check_conv(x, &in, &weights, &at, window.group));
    int64_t dims[BERTH_MAX_RANK] = {in.dims[0], weights.dims[0]};
    if (transposed)
        dims[1] = weights.dims[1] >= 0 ? weights.dims[1] * window.group : BERTH_DIM_UNKNOWN;
    for (int i = 0; i < window.spatial; ++i)
        dims[2 + i] = berth_infer__window_extent(x, &window, i);
    berth_infer__set(x, 0, dtype, in.rank, dims);
    return BERTH_OK;
}

// Scales and zero points of weights (operand `of`): one, or one for each channel of the result.
static berth_status want_channels(const berth_infer *x, uint32_t operand, uint32_t of) {
    berth_type given = berth_infer__in(x, operand), weights = berth_infer__in(x, of);
    int64_t channels = weights.rank > 0 ? weights.dims[0] : BERTH_DIM_UNKNOWN;
    for (int d = 0; d < given.rank; ++d) {
        int64_t ignored = 0;
        if (given.dims[d] != 1)
            BERTH_TRY(berth_infer__merge_dim(x, "scales or zero points", channels, given.dims[d],
                                             &ignored));
    }
    return BERTH_OK;
}

berth_status berth_infer__conv(berth_infer *x) {
    if (x->op->kind == BERTH_OP_CONV_INTEGER) {
        BERTH_TRY(berth_infer__want_single(x, 2));
        BERTH_TRY(want_channels(x, 3, 1));
        return conv_types(x, (conv_operands){0, 1, 0}, BERTH_DTYPE_I32);
    }
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    if (berth_infer__has(x, 2)) BERTH_TRY(berth_infer__want_same_dtype(x, 0, 2));
    return conv_types(x, (conv_operands){0, 1, 2}, berth_infer__in(x, 0).dtype);
}

berth_status berth_infer__qlinear_conv(berth_infer *x) {
    static const uint32_t single[] = {1, 2, 6, 7};
    BERTH_TRY(berth_infer__want_dtype(x, 8, BERTH_DTYPE_I32));
    for (int i = 0; i < 4; ++i) BERTH_TRY(berth_infer__want_single(x, single[i]));
    BERTH_TRY(want_channels(x, 4, 3));
    BERTH_TRY(want_channels(x, 5, 3));
    return conv_types(x, (conv_operands){0, 3, 8}, berth_infer__in(x, 7).dtype);
}

berth_status berth_infer__conv_transpose(berth_infer *x) {
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    return conv_types(x, (conv_operands){0, 1, 2}, berth_infer__in(x, 0).dtype);
}

berth_status berth_infer__det(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__want_rank(x, 0, 2, BERTH_MAX_RANK));
    int64_t ignored = 0;
    BERTH_TRY(berth_infer__merge_dim(x, "square matrix", in.dims[in.rank - 2], in.dims[in.rank - 1],
                                     &ignored));
    berth_infer__set(x, 0, in.dtype, in.rank - 2, in.dims);
    return BERTH_OK;
}

// ---- einsum ----

static berth_status bad_equation(const berth_infer *x) {
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                             "attribute equation does not fit the operands");
}

// Extents of the labels, 0 where there is none yet; those of "..." broadcast, others are 1 or agree.
static berth_status einsum_extents(const berth_infer *x, const berth_einsum *e, int64_t *extents) {
    bool seen[BERTH_EINSUM_MAX_LABELS] = {false};
    for (int k = 0; k < e->operands; ++k)
        for (int i = 0; i < e->ranks[k]; ++i) {
            int label = e->terms[k][i];
            int64_t *had = &extents[label];
            int64_t extent = berth_infer__in(x, (uint32_t)k).dims[i];
            int rank = 1;
            if (!seen[label])
                *had = extent;
            else if (label >= BERTH_EINSUM_DOTS)
                BERTH_TRY(berth_infer__at(x, berth_broadcast_dims(had, 1, &extent, 1, had, &rank)));
            else if (*had == 1)
                *had = extent;
            else if (extent != 1)
                BERTH_TRY(berth_infer__merge_dim(x, "equation", *had, extent, had));
            seen[label] = true;
        }
    return BERTH_OK;
}

berth_status berth_infer__einsum(berth_infer *x) {
    const char *equation = berth_attrs_string(x->module, &x->op->attrs, "equation", "");
    berth_dtype dtype = berth_infer__in(x, 0).dtype;
    int ranks[BERTH_EINSUM_MAX_OPERANDS];
    if (x->op->input_count > BERTH_EINSUM_MAX_OPERANDS)
        return berth_infer__fail(x, BERTH_UNSUPPORTED, "%u operands are more than %d",
                                 x->op->input_count, BERTH_EINSUM_MAX_OPERANDS);
    for (uint32_t i = 0; i < x->op->input_count; ++i) {
        BERTH_TRY(berth_infer__want_dtype(x, i, dtype));
        ranks[i] = berth_infer__in(x, i).rank;
        if (ranks[i] < 0) {
            berth_infer__set_unknown(x, 0, dtype, -1);
            return BERTH_OK;
        }
    }
    berth_einsum e;
    int64_t extents[BERTH_EINSUM_MAX_LABELS] = {0};
    int64_t dims[BERTH_MAX_RANK];
    int operands = (int)x->op->input_count;
    if (!berth_einsum_parse(equation, operands, ranks, &e)) return bad_equation(x);
    BERTH_TRY(einsum_extents(x, &e, extents));
    for (int i = 0; i < e.ranks[operands]; ++i) dims[i] = extents[e.terms[operands][i]];
    berth_infer__set(x, 0, dtype, e.ranks[operands], dims);
    return BERTH_OK;
}
