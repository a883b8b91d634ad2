// Linear algebra and convolutions.
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

berth_status berth_infer__matmul(berth_infer *x) {
    if (x->op->kind == BERTH_OP_MATMUL_INTEGER) return matmul_types(x, 0, 1, BERTH_DTYPE_I32);
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    return matmul_types(x, 0, 1, berth_infer__in(x, 0).dtype);
}

berth_status berth_infer__qlinear_matmul(berth_infer *x) {
    return matmul_types(x, 0, 3, berth_infer__in(x, 7).dtype);
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

berth_status berth_infer__conv(berth_infer *x) {
    if (x->op->kind == BERTH_OP_CONV_INTEGER)
        return conv_types(x, (conv_operands){0, 1, 0}, BERTH_DTYPE_I32);
    BERTH_TRY(berth_infer__want_same_dtype(x, 0, 1));
    if (berth_infer__has(x, 2)) BERTH_TRY(berth_infer__want_same_dtype(x, 0, 2));
    return conv_types(x, (conv_operands){0, 1, 2}, berth_infer__in(x, 0).dtype);
}

berth_status berth_infer__qlinear_conv(berth_infer *x) {
    BERTH_TRY(berth_infer__want_dtype(x, 8, BERTH_DTYPE_I32));
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

// Extents of the letters of an equation; "..." dimensions broadcast.
typedef struct einsum_state {
    const berth_infer *x;
    int64_t extents[128];  // per letter; 0 with !seen
    bool seen[128];
    int uses[128];
    int64_t ellipsis[BERTH_MAX_RANK];
    int ellipsis_rank;
} einsum_state;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static berth_status bad_equation(const berth_infer *x) {
    return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                             "attribute equation does not fit the operands");
}

// One operand's term, from `text` up to ',' or "->" or the end; returns after it.
static berth_status einsum_term(einsum_state *s, const char *text, const berth_type *in,
                                const char **out_end) {
    int letters = 0;
    const char *end = text;
    for (; *end && *end != ',' && !(end[0] == '-' && end[1] == '>'); ++end)
        letters += is_letter(*end);
    *out_end = end;
    int dim = 0;
    for (const char *at = text; at < end; ++at) {
        if (*at == ' ') continue;
        if (*at == '.') {
            if (at + 2 >= end || at[1] != '.' || at[2] != '.') return bad_equation(s->x);
            int count = in->rank - letters;
            int64_t joined[BERTH_MAX_RANK];
            if (count < 0) return bad_equation(s->x);
            BERTH_TRY(berth_infer__at(s->x, berth_broadcast_dims(s->ellipsis, s->ellipsis_rank,
                                                                 in->dims + dim, count, joined,
                                                                 &s->ellipsis_rank)));
            for (int i = 0; i < s->ellipsis_rank; ++i) s->ellipsis[i] = joined[i];
            dim += count;
            at += 2;
            continue;
        }
        unsigned char letter = (unsigned char)*at;
        if (!is_letter(*at) || dim >= in->rank) return bad_equation(s->x);
        int64_t extent = in->dims[dim++];
        s->uses[letter]++;
        if (s->seen[letter] && s->extents[letter] != 1 && extent != 1)
            BERTH_TRY(berth_infer__merge_dim(s->x, "equation", s->extents[letter], extent,
                                             &s->extents[letter]));
        else if (!s->seen[letter] || s->extents[letter] == 1)
            s->extents[letter] = extent;
        s->seen[letter] = true;
    }
    return dim == in->rank ? BERTH_OK : bad_equation(s->x);
}

static berth_status einsum_result(einsum_state *s, const char *text, int64_t *dims, int *out_rank) {
    int rank = 0;
    for (const char *at = text; *at; ++at) {
        if (*at == ' ') continue;
        if (*at == '.') {
            if (at[1] != '.' || at[2] != '.' || rank + s->ellipsis_rank > BERTH_MAX_RANK)
                return bad_equation(s->x);
            for (int i = 0; i < s->ellipsis_rank; ++i) dims[rank++] = s->ellipsis[i];
            at += 2;
            continue;
        }
        if (!is_letter(*at) || !s->seen[(unsigned char)*at] || rank >= BERTH_MAX_RANK)
            return bad_equation(s->x);
        dims[rank++] = s->extents[(unsigned char)*at];
    }
    *out_rank = rank;
    return BERTH_OK;
}

berth_status berth_infer__einsum(berth_infer *x) {
    const char *equation = berth_attrs_string(x->module, &x->op->attrs, "equation", "");
    berth_dtype dtype = berth_infer__in(x, 0).dtype;
    einsum_state s = {.x = x};
    const char *at = equation;
    for (uint32_t i = 0; i < x->op->input_count; ++i) {
        berth_type in = berth_infer__in(x, i);
        BERTH_TRY(berth_infer__want_dtype(x, i, dtype));
        if (in.rank < 0) {
            berth_infer__set_unknown(x, 0, dtype, -1);
            return BERTH_OK;
        }
        BERTH_TRY(einsum_term(&s, at, &in, &at));
        if (i + 1 < x->op->input_count && *at++ != ',') return bad_equation(x);
    }
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    if (*at == '-') {
        BERTH_TRY(einsum_result(&s, at + 2, dims, &rank));
    } else {  // implicit: "..." and then the letters used once, in alphabetical order
        char implicit[3 + 128 + 1];
        int length = 0;
        if (*at) return bad_equation(x);
        for (int i = 0; s.ellipsis_rank && i < 3; ++i) implicit[length++] = '.';
        for (int c = 0; c < 128; ++c)
            if (s.uses[c] == 1) implicit[length++] = (char)c;
        implicit[length] = '\0';
        BERTH_TRY(einsum_result(&s, implicit, dims, &rank));
    }
    berth_infer__set(x, 0, dtype, rank, dims);
    return BERTH_OK;
}
