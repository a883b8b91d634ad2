// Types of operations that the host interprets: on strings, vocabularies and pictures.
#include <string.h>

#include "ir/infer/internal.h"

static berth_status want_strings(const berth_infer *x, uint32_t operand) {
    return berth_infer__want_dtype(x, operand, BERTH_DTYPE_STRING);
}

// The part of a map: one vector, of any element type.
berth_status berth_infer__map_part(berth_infer *x) {
    berth_infer__set_unknown(x, 0, BERTH_DTYPE_NONE, 1);
    return BERTH_OK;
}

// Stop words are left out: [C] or [1, C], of which the extent C is open.
berth_status berth_infer__string_normalizer(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(want_strings(x, 0));
    BERTH_TRY(berth_infer__want_rank(x, 0, 1, 2));
    if (in.rank == 2 && in.dims[0] >= 0 && in.dims[0] != 1)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the operand has %lld rows; [C] or [1,C] is expected",
                                 (long long)in.dims[0]);
    if (in.rank > 0) in.dims[in.rank - 1] = BERTH_DIM_UNKNOWN;
    if (in.rank == 2) in.dims[0] = 1;
    berth_infer__set(x, 0, BERTH_DTYPE_STRING, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__string_concat(berth_infer *x) {
    berth_type a = berth_infer__in(x, 0), b = berth_infer__in(x, 1);
    int64_t dims[BERTH_MAX_RANK];
    int rank = -1;
    BERTH_TRY(want_strings(x, 0));
    BERTH_TRY(want_strings(x, 1));
    if (a.rank >= 0 && b.rank >= 0)
        BERTH_TRY(
            berth_infer__at(x, berth_broadcast_dims(a.dims, a.rank, b.dims, b.rank, dims, &rank)));
    berth_infer__set(x, 0, BERTH_DTYPE_STRING, rank, dims);
    return BERTH_OK;
}

// As many parts as the longest list has, in a dimension of their own; and how many each string has.
berth_status berth_infer__string_split(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(want_strings(x, 0));
    BERTH_TRY(berth_infer__want_rank(x, 0, 0, BERTH_MAX_RANK - 1));
    berth_infer__set(x, 1, BERTH_DTYPE_I64, in.rank, in.dims);
    if (in.rank >= 0) in.dims[in.rank++] = BERTH_DIM_UNKNOWN;
    berth_infer__set(x, 0, BERTH_DTYPE_STRING, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__regex_full_match(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    BERTH_TRY(want_strings(x, 0));
    berth_infer__set(x, 0, BERTH_DTYPE_BOOL, in.rank, in.dims);
    return BERTH_OK;
}

// [C] or [N, C] to one column per n-gram index.
berth_status berth_infer__tf_idf_vectorizer(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    uint32_t count = 0;
    int64_t most = -1;
    const int64_t *columns = berth_attrs_ints(x->module, &x->op->attrs, "ngram_indexes", &count);
    BERTH_TRY(berth_infer__want_rank(x, 0, 0, 2));
    for (uint32_t i = 0; i < count; ++i) {
        if (columns[i] < 0)
            return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "ngram_indexes[%u] is negative", i);
        if (columns[i] > most) most = columns[i];
    }
    if (most == INT64_MAX)
        return berth_infer__fail(x, BERTH_OUT_OF_RANGE, "ngram_indexes are too large");
    int64_t dims[2] = {in.rank == 2 ? in.dims[0] : most + 1, most + 1};
    berth_infer__set(x, 0, BERTH_DTYPE_F32, in.rank < 0 ? -1 : in.rank == 2 ? 2 : 1, dims);
    return BERTH_OK;
}

berth_status berth_infer__lookup(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_dtype dtype = berth_infer__in(x, 2).dtype;
    BERTH_TRY(berth_infer__want_dtype(x, 1, in.dtype));
    BERTH_TRY(berth_infer__want_dtype(x, 3, dtype));
    BERTH_TRY(berth_infer__want_rank(x, 1, 1, 1));
    BERTH_TRY(berth_infer__want_rank(x, 2, 1, 1));
    berth_infer__set(x, 0, dtype, in.rank, in.dims);
    return BERTH_OK;
}

// Bytes of a file; height and width are in them.
berth_status berth_infer__image_decoder(berth_infer *x) {
    const char *format = berth_attrs_string(x->module, &x->op->attrs, "pixel_format", "RGB");
    int64_t dims[3] = {BERTH_DIM_UNKNOWN, BERTH_DIM_UNKNOWN,
                       strcmp(format, "Grayscale") == 0 ? 1 : 3};
    BERTH_TRY(berth_infer__want_dtype(x, 0, BERTH_DTYPE_U8));
    BERTH_TRY(berth_infer__want_rank(x, 0, 1, 1));
    berth_infer__set(x, 0, BERTH_DTYPE_U8, 3, dims);
    return BERTH_OK;
}
