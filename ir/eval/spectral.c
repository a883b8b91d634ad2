// Fourier transforms by their definition (O(n^2)), windows, mel filters.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

// One transform of `length` complex numbers: out[k] = sum in[j] * exp(sign * 2 pi i j k / length),
// k < bins.
typedef struct transform {
    int64_t length, bins;
    double *cosines, *sines;  // of 2 pi j / length
    double *in, *out;         // pairs
    bool inverse;
} transform;

static transform make_transform(berth_eval_context *ctx, int64_t length, int64_t bins,
                                bool inverse) {
    transform t = {.length = length,
                   .bins = bins,
                   .cosines = berth_eval__doubles(ctx, length),
                   .sines = berth_eval__doubles(ctx, length),
                   .in = berth_eval__doubles(ctx, 2 * length),
                   .out = berth_eval__doubles(ctx, 2 * bins),
                   .inverse = inverse};
    for (int64_t j = 0; j < length; ++j) {
        double angle = 2 * M_PI * (double)j / (double)length;
        t.cosines[j] = cos(angle);
        t.sines[j] = inverse ? sin(angle) : -sin(angle);
    }
    return t;
}

static void run_transform(transform *t) {
    double scale = t->inverse ? 1 / (double)t->length : 1;
    for (int64_t k = 0; k < t->bins; ++k) {
        double real = 0, imaginary = 0;
        for (int64_t j = 0, turn = 0; j < t->length; ++j, turn = (turn + k) % t->length) {
            double c = t->cosines[turn], s = t->sines[turn];
            real += t->in[2 * j] * c - t->in[2 * j + 1] * s;
            imaginary += t->in[2 * j] * s + t->in[2 * j + 1] * c;
        }
        t->out[2 * k] = real * scale;
        t->out[2 * k + 1] = imaginary * scale;
    }
}

static berth_status optional_length(const berth_eval_context *ctx, uint32_t index, const char *what,
                                    int64_t fallback, int64_t *out) {
    const berth_tensor *given = berth_eval__optional(ctx, index);
    *out = fallback;
    if (given) {
        BERTH_TRY(berth_eval__need_count(given, what, 1));
        *out = berth_tensor_get_i64(given, 0);
    }
    if (*out >= 1 && *out <= INT32_MAX) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE, "%s is %lld", what, (long long)*out);
}

berth_status berth_eval__dft(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int axis = 0;
    int64_t length = 0, dims[BERTH_MAX_RANK];
    bool inverse = berth_eval__int(ctx, "inverse", 0) != 0;
    bool onesided = berth_eval__int(ctx, "onesided", 0) != 0;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    BERTH_TRY(berth_eval__axis(ctx, 1, x->rank, &axis));
    int64_t parts = x->dims[x->rank - 1];
    if (axis == x->rank - 1 || (parts != 1 && parts != 2))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the last dimension must be 1 (real) or 2 (complex)");
    bool to_real = onesided && inverse;
    if (onesided && parts != (inverse ? 2 : 1))
        return berth_status_make(BERTH_UNSUPPORTED, "onesided needs %s",
                                 inverse ? "half a complex spectrum" : "a real signal");
    int64_t extent = x->dims[axis];
    BERTH_TRY(optional_length(ctx, 1, "dft_length", to_real ? 2 * (extent - 1) : extent, &length));
    memcpy(dims, x->dims, sizeof(dims));
    dims[axis] = onesided && !inverse ? length / 2 + 1 : length;
    int64_t out_parts = dims[x->rank - 1] = to_real ? 1 : 2;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    const double *values = berth_eval__load_f64(ctx, x);
    transform t = make_transform(ctx, length, dims[axis], inverse);
    int64_t inner = berth_eval__product(x->dims, axis + 1, x->rank - 1);
    int64_t lines = berth_eval__product(x->dims, 0, axis) * inner;
    int64_t given = to_real ? length / 2 + 1 : length;
    for (int64_t i = 0; i < lines; ++i) {
        int64_t from = i / inner * inner * extent + i % inner;
        int64_t to = i / inner * inner * t.bins + i % inner;
        for (int64_t j = 0; j < given && j < extent; ++j)
            for (int64_t p = 0; p < parts; ++p)
                t.in[2 * j + p] = values[(from + j * inner) * parts + p];
        for (int64_t j = given; j < length; ++j) {  // the other half is the conjugate
            t.in[2 * j] = t.in[2 * (length - j)];
            t.in[2 * j + 1] = -t.in[2 * (length - j) + 1];
        }
        run_transform(&t);
        for (int64_t k = 0; k < t.bins; ++k)
            for (int64_t p = 0; p < out_parts; ++p)
                berth_eval__set_f64(&ctx->outputs[0], (to + k * inner) * out_parts + p,
                                    t.out[2 * k + p]);
    }
    return BERTH_OK;
}

berth_status berth_eval__stft(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *window = berth_eval__optional(ctx, 2);
    int64_t step = 0, length = 0;
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, 3));
    int64_t parts = x->rank == 3 ? x->dims[2] : 1, samples = x->dims[1];
    bool onesided = berth_eval__int(ctx, "onesided", 1) != 0;
    if (parts != 1 && parts != 2)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the last dimension must be 1 (real) or 2 (complex)");
    if (onesided && parts == 2)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "onesided needs a real signal");
    int64_t usual = window ? berth_tensor_element_count(window) : samples;
    BERTH_TRY(optional_length(ctx, 1, "frame_step", 0, &step));
    BERTH_TRY(optional_length(ctx, 3, "frame_length", usual, &length));
    if (window) BERTH_TRY(berth_eval__need_count(window, "window", length));
    if (length > samples)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the signal is shorter than a frame");
    int64_t frames = (samples - length) / step + 1, bins = onesided ? length / 2 + 1 : length;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, 4, (int64_t[]){x->dims[0], frames, bins, 2}));
    const double *values = berth_eval__load_f64(ctx, x);
    transform t = make_transform(ctx, length, bins, false);
    for (int64_t i = 0; i < x->dims[0] * frames; ++i) {
        int64_t from = i / frames * samples + i % frames * step;
        for (int64_t j = 0; j < length; ++j) {
            double weight = window ? berth_tensor_get_f64(window, j) : 1;
            for (int64_t p = 0; p < parts; ++p)
                t.in[2 * j + p] = weight * values[(from + j) * parts + p];
        }
        run_transform(&t);
        for (int64_t k = 0; k < 2 * bins; ++k)
            berth_eval__set_f64(&ctx->outputs[0], i * bins * 2 + k, t.out[k]);
    }
    return BERTH_OK;
}

berth_status berth_eval__window(berth_eval_context *ctx) {
    static const double hann[] = {0.5, 0.5, 0}, hamming[] = {25.0 / 46, 21.0 / 46, 0};
    static const double blackman[] = {0.42, 0.5, 0.08};
    const double *w = ctx->op->kind == BERTH_OP_HANN_WINDOW      ? hann
                      : ctx->op->kind == BERTH_OP_HAMMING_WINDOW ? hamming
                                                                 : blackman;
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[0], "size", 1));
    int64_t size = berth_tensor_get_i64(&ctx->inputs[0], 0);
    berth_dtype dtype = berth_eval__dtype(ctx, "output_datatype", BERTH_DTYPE_F32);
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, 1, &size));
    int64_t period = berth_eval__int(ctx, "periodic", 1) ? size : size - 1;
    for (int64_t i = 0; i < size; ++i) {
        double angle = period ? 2 * M_PI * (double)i / (double)period : M_PI;
        berth_eval__set_f64(&ctx->outputs[0], i, w[0] - w[1] * cos(angle) + w[2] * cos(2 * angle));
    }
    return BERTH_OK;
}

static double hertz_to_mel(double hertz) {
    return 2595 * log10(1 + hertz / 700);
}

berth_status berth_eval__mel_weight_matrix(berth_eval_context *ctx) {
    double v[5];
    for (uint32_t i = 0; i < 5; ++i) {
        BERTH_TRY(berth_eval__need_count(&ctx->inputs[i], "an operand", 1));
        v[i] = berth_tensor_get_f64(&ctx->inputs[i], 0);
        if (!(v[i] >= 0 && v[i] < 0x1p31))
            return berth_status_make(BERTH_OUT_OF_RANGE, "operand %u is %g", i, v[i]);
    }
    int64_t bins = (int64_t)v[0], rows = (int64_t)v[1] / 2 + 1;
    berth_dtype dtype = berth_eval__dtype(ctx, "output_datatype", BERTH_DTYPE_F32);
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, 2, (int64_t[]){rows, bins}));
    double low = hertz_to_mel(v[3]), step = (hertz_to_mel(v[4]) - low) / (double)(bins + 2);
    int64_t *edges = berth_eval__indices(ctx, bins + 2);
    for (int64_t i = 0; i < bins + 2; ++i) {
        double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
        double edge = floor((v[1] + 1) * hertz / v[2]);
        if (!(edge >= 0 && edge <= (double)rows))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the frequencies do not fit the sample rate");
        edges[i] = (int64_t)edge;
    }
    for (int64_t i = 0; i < bins; ++i) {
        int64_t first = edges[i], top = edges[i + 1], last = edges[i + 2];
        for (int64_t j = first; j <= top && j < rows; ++j)
            berth_eval__set_f64(&ctx->outputs[0], j * bins + i,
                                top == first ? 1 : (double)(j - first) / (double)(top - first));
        for (int64_t j = top; j < last && j < rows; ++j)
            berth_eval__set_f64(&ctx->outputs[0], j * bins + i,
                                (double)(last - j) / (double)(last - top));
    }
    return BERTH_OK;
}
