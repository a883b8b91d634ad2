// Recurrent and spectral operations.
#include "ir/dim.h"
#include "ir/infer/internal.h"

// A constant times an extent that may be a symbol.
static int64_t times(const berth_infer *x, int64_t factor, int64_t extent) {
    return factor < 0 ? BERTH_DIM_UNKNOWN : berth_dim_scale(x->module, extent, factor, 0);
}

// Operand `index`, where it is given, has these extents.
static berth_status want_shape(const berth_infer *x, uint32_t index, const char *what, int rank,
                               const int64_t *dims) {
    if (!berth_infer__has(x, index)) return BERTH_OK;
    BERTH_TRY(berth_infer__want_rank(x, index, rank, rank));
    berth_type type = berth_infer__in(x, index);
    for (int d = 0; d < rank && type.rank == rank; ++d) {
        int64_t merged = 0;
        BERTH_TRY(berth_infer__merge_dim(x, what, type.dims[d], dims[d], &merged));
    }
    return BERTH_OK;
}

typedef struct rnn_extents {
    int64_t batch, width, directions, hidden, gates;
    bool batch_first;
} rnn_extents;

// W, R, B, sequence lengths, first states and peepholes fit each other.
static berth_status check_rnn(const berth_infer *x, const rnn_extents *e) {
    int64_t rows = times(x, e->gates, e->hidden);
    int64_t first = e->batch_first ? e->batch : e->directions;
    int64_t second = e->batch_first ? e->directions : e->batch;
    const struct {
        const char *what;
        int rank;
        int64_t dims[3];
    } wanted[] = {{"input weights W", 3, {e->directions, rows, e->width}},
                  {"recurrence weights R", 3, {e->directions, rows, e->hidden}},
                  {"bias B", 2, {e->directions, times(x, 2, rows)}},
                  {"sequence lengths", 1, {e->batch}},
                  {"initial hidden state", 3, {first, second, e->hidden}},
                  {"initial cell state", 3, {first, second, e->hidden}},
                  {"peepholes P", 2, {e->directions, times(x, 3, e->hidden)}}};
    if (berth_infer__has(x, 4)) BERTH_TRY(berth_infer__want_dtype(x, 4, BERTH_DTYPE_I32));
    for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
        if (i + 1 != 4 && berth_infer__has(x, i + 1))
            BERTH_TRY(berth_infer__want_same_dtype(x, 0, i + 1));
        BERTH_TRY(want_shape(x, i + 1, wanted[i].what, wanted[i].rank, wanted[i].dims));
    }
    return BERTH_OK;
}

// X (sequence, batch, input), W (directions, gates * hidden, input); with attribute layout = 1
// batch comes first.
berth_status berth_infer__rnn(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_type weights = berth_infer__in(x, 1);
    berth_type recurrence = berth_infer__in(x, 2);
    bool batch_first = berth_infer__int(x, "layout", 0) != 0;
    for (uint32_t i = 0; i < 3; ++i) {
        BERTH_TRY(berth_infer__want_rank(x, i, 3, 3));
        BERTH_TRY(berth_infer__want_same_dtype(x, 0, i));
    }
    int64_t sequence = in.rank == 3 ? in.dims[batch_first ? 1 : 0] : BERTH_DIM_UNKNOWN;
    int64_t batch = in.rank == 3 ? in.dims[batch_first ? 0 : 1] : BERTH_DIM_UNKNOWN;
    int64_t directions = weights.rank == 3 ? weights.dims[0] : BERTH_DIM_UNKNOWN;
    int64_t hidden = recurrence.rank == 3 ? recurrence.dims[2] : BERTH_DIM_UNKNOWN;
    int64_t given = berth_infer__int(x, "hidden_size", 0);
    if (given > 0) BERTH_TRY(berth_infer__merge_dim(x, "hidden size", hidden, given, &hidden));
    rnn_extents extents = {.batch = batch,
                           .width = in.rank == 3 ? in.dims[2] : BERTH_DIM_UNKNOWN,
                           .directions = directions,
                           .hidden = hidden,
                           .gates = x->op->kind == BERTH_OP_RNN   ? 1
                                    : x->op->kind == BERTH_OP_GRU ? 3
                                                                  : 4,
                           .batch_first = batch_first};
    BERTH_TRY(check_rnn(x, &extents));
    int64_t all[4] = {sequence, directions, batch, hidden};
    int64_t all_batch_first[4] = {batch, sequence, directions, hidden};
    int64_t last[3] = {directions, batch, hidden};
    int64_t last_batch_first[3] = {batch, directions, hidden};
    berth_infer__set(x, 0, in.dtype, 4, batch_first ? all_batch_first : all);
    for (uint32_t i = 1; i < 3; ++i)
        berth_infer__set(x, i, in.dtype, 3, batch_first ? last_batch_first : last);
    return BERTH_OK;
}

// Products (sequence, batch, directions * 4 * hidden), integer recurrence weights R (directions, 4 * hidden, hidden).
berth_status berth_infer__lstm_integer(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_type recurrence = berth_infer__in(x, 2);
    BERTH_TRY(berth_infer__want_rank(x, 0, 3, 3));
    BERTH_TRY(berth_infer__want_rank(x, 2, 3, 3));
    bool known = recurrence.rank == 3;
    int64_t sequence = in.rank == 3 ? in.dims[0] : BERTH_DIM_UNKNOWN;
    int64_t batch = in.rank == 3 ? in.dims[1] : BERTH_DIM_UNKNOWN;
    int64_t directions = known ? recurrence.dims[0] : BERTH_DIM_UNKNOWN;
    int64_t hidden = known ? recurrence.dims[2] : BERTH_DIM_UNKNOWN;
    int64_t rows = times(x, 4, hidden);
    const struct {
        const char *what;
        uint32_t operand;
        berth_dtype dtype;
        int rank;
        int64_t dims[3];
    } wanted[] = {
        {"scales of R", 1, in.dtype, 2, {directions, rows}},
        {"recurrence weights R", 2, recurrence.dtype, 3, {directions, rows, hidden}},
        {"sums of R's rows", 3, BERTH_DTYPE_I32, 2, {directions, rows}},
        {"sequence lengths", 4, BERTH_DTYPE_I32, 1, {batch}},
        {"initial hidden state", 5, in.dtype, 3, {directions, batch, hidden}},
        {"initial cell state", 6, in.dtype, 3, {directions, batch, hidden}},
        {"peepholes P", 7, in.dtype, 2, {directions, times(x, 3, hidden)}},
        {"zero points of R", 8, BERTH_DTYPE_I32, 2, {directions, rows}},
    };
    for (uint32_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
        if (!berth_infer__has(x, wanted[i].operand)) continue;
        BERTH_TRY(berth_infer__want_dtype(x, wanted[i].operand, wanted[i].dtype));
        BERTH_TRY(want_shape(x, wanted[i].operand, wanted[i].what, wanted[i].rank, wanted[i].dims));
    }
    int64_t all[4] = {sequence, directions, batch, hidden};
    int64_t last[3] = {directions, batch, hidden};
    berth_infer__set(x, 0, in.dtype, 4, all);
    for (uint32_t i = 1; i < 3; ++i) berth_infer__set(x, i, in.dtype, 3, last);
    return BERTH_OK;
}

// One number given by a constant operand, or `fallback`.
static berth_status number(const berth_infer *x, uint32_t operand, int64_t fallback,
                           int64_t *out_number) {
    berth_infer_ints list;
    *out_number = fallback;
    if (!berth_infer__has(x, operand)) return BERTH_OK;
    BERTH_TRY(berth_infer__ints(x, operand, &list));
    *out_number = BERTH_DIM_UNKNOWN;
    if (!list.known) return BERTH_OK;
    if (list.count != 1 || list.values[0] < 0 || list.values[0] > INT32_MAX)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "operand %u is not one number from 0 to 2147483647", operand);
    *out_number = list.values[0];
    return BERTH_OK;
}

static int64_t half_spectrum(const berth_infer *x, int64_t length) {
    return berth_dim_scale(x->module, berth_dim_combine(x->module, BERTH_DIM_FLOORDIV, length, 2),
                           1, 1);
}

berth_status berth_infer__dft(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    int axis = 0;
    if (in.rank < 0) {
        berth_infer__set_unknown(x, 0, in.dtype, -1);
        return BERTH_OK;
    }
    BERTH_TRY(berth_infer__want_rank(x, 0, 2, BERTH_MAX_RANK));
    BERTH_TRY(berth_infer__axis(x, "axis", 1, in.rank, &axis));
    if (axis == in.rank - 1)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "the axis is that of real and imaginary parts");
    bool onesided = berth_infer__int(x, "onesided", 0) != 0;
    bool to_real = onesided && berth_infer__int(x, "inverse", 0) != 0;  // from half a spectrum
    int64_t extent = in.dims[axis];
    if (to_real) extent = extent < 1 ? BERTH_DIM_UNKNOWN : times(x, 2, extent - 1);
    BERTH_TRY(number(x, 1, extent, &in.dims[axis]));
    if (onesided && !to_real) in.dims[axis] = half_spectrum(x, in.dims[axis]);
    in.dims[in.rank - 1] = to_real ? 1 : 2;
    berth_infer__set(x, 0, in.dtype, in.rank, in.dims);
    return BERTH_OK;
}

berth_status berth_infer__stft(berth_infer *x) {
    berth_type in = berth_infer__in(x, 0);
    berth_type window = berth_infer__in(x, 2);
    int64_t step = 0;
    int64_t length = 0;
    BERTH_TRY(berth_infer__want_rank(x, 0, 2, 3));
    BERTH_TRY(number(x, 1, BERTH_DIM_UNKNOWN, &step));
    BERTH_TRY(number(x, 3, window.rank == 1 ? window.dims[0] : BERTH_DIM_UNKNOWN, &length));
    int64_t dims[4] = {in.rank > 0 ? in.dims[0] : BERTH_DIM_UNKNOWN, BERTH_DIM_UNKNOWN, length, 2};
    int64_t samples = in.rank > 1 ? in.dims[1] : BERTH_DIM_UNKNOWN;
    if (step == 0) return berth_infer__fail(x, BERTH_INVALID_ARGUMENT, "the frame step is 0");
    if (samples >= 0 && length >= 0 && length > samples)
        return berth_infer__fail(x, BERTH_INVALID_ARGUMENT,
                                 "a frame (%lld) is longer than the signal (%lld)",
                                 (long long)length, (long long)samples);
    if (samples >= 0 && step > 0 && length >= 0)
        dims[1] = (samples - length) / step + 1;
    else if (step > 0 && length >= 0)
        dims[1] = berth_dim_scale(x->module,
                                  berth_dim_combine(x->module, BERTH_DIM_FLOORDIV,
                                                    berth_dim_scale(x->module, samples, 1, -length),
                                                    step),
                                  1, 1);
    if (berth_infer__int(x, "onesided", 1)) dims[2] = half_spectrum(x, length);
    berth_infer__set(x, 0, in.dtype, 4, dims);
    return BERTH_OK;
}

berth_status berth_infer__mel_weight_matrix(berth_infer *x) {
    int64_t bins = 0;
    int64_t length = 0;
    BERTH_TRY(number(x, 0, 0, &bins));
    BERTH_TRY(number(x, 1, 0, &length));
    int64_t dims[2] = {half_spectrum(x, length), bins};
    berth_infer__set(x, 0, berth_infer__dtype(x, "output_datatype", BERTH_DTYPE_F32), 2, dims);
    return BERTH_OK;
}

berth_status berth_infer__window(berth_infer *x) {
    int64_t size = 0;
    BERTH_TRY(number(x, 0, 0, &size));
    berth_infer__set(x, 0, berth_infer__dtype(x, "output_datatype", BERTH_DTYPE_F32), 1, &size);
    return BERTH_OK;
}
