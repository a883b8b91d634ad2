// What the stages of a Fourier transform multiply by (fourier.h), in double precision.
#include <math.h>

#include "compiler/lower/fourier.h"

#define MOST_FACTOR 64  // of a convolution's length

static const double pi = 3.14159265358979323846;

uint32_t berth_fourier_table_count(const berth_fourier *f) {
    return (uint32_t)f->stages + (f->convolution ? 2 : 0);
}

int berth_fourier_table_dims(const berth_fourier *f, uint32_t table, int64_t *out_dims) {
    if (table >= (uint32_t)f->stages) {
        out_dims[0] = 2;
        out_dims[1] = table == (uint32_t)f->stages ? f->length : f->convolution;
        return 2;
    }
    int64_t factor = f->factors[table];
    out_dims[0] = berth_fourier_rest(f, (int)table);
    out_dims[1] = table == 0 && !f->convolution ? f->parts : 2;
    out_dims[2] = out_dims[4] = factor;
    out_dims[3] = 2;
    return 5;
}

static void stage_table(const berth_fourier *f, uint32_t stage, double *out) {
    int64_t dims[5];
    berth_fourier_table_dims(f, stage, dims);
    int64_t length = dims[0] * dims[2];  // of the transform that the stage begins
    bool inverse = f->inverse && !f->convolution;
    double turn = (inverse ? 2 : -2) * pi / (double)length;
    int64_t index[5];
    int64_t count = dims[0] * dims[1] * dims[2] * dims[3] * dims[4];
    for (int64_t i = 0; i < count; ++i) {
        int64_t left = i;
        for (int d = 4; d >= 0; --d) {
            index[d] = left % dims[d];
            left /= dims[d];
        }
        int64_t n = stage == 0 ? index[2] : index[4];
        int64_t k = stage == 0 ? index[4] : index[2];
        int64_t part = stage == 0 ? index[1] : index[3];
        int64_t result = stage == 0 ? index[3] : index[1];
        // (k * (n * rest + r)) mod length, exactly
        double angle = turn * (double)(k * (n * dims[0] + index[0]) % length);
        out[i] = part == result ? cos(angle) : result ? sin(angle) : -sin(angle);
    }
}

// e^(-+ pi i n^2 / N); n^2 only matters modulo 2 N.
static void chirp(const berth_fourier *f, double *out) {
    int64_t length = f->length;
    for (int64_t n = 0; n < length; ++n) {
        double angle = (f->inverse ? pi : -pi) * (double)(n * n % (2 * length)) / (double)length;
        out[n] = cos(angle);
        out[length + n] = sin(angle);
    }
}

// A whole transform, of real parts and imaginary ones, as the cosines and sines of its turns.
typedef struct turns {
    int64_t length;
    double *cosines;
    double *sines;
} turns;

// out[0, length) is the transform of every step-th number of `in` (pairs of parts), by the smallest
// prime factor first, and so on: the depth is that of the factors.
static void transform(const turns *t, int64_t length, int64_t step, const double *in, double *out) {
    double from[2 * MOST_FACTOR];
    int64_t factor = 2;
    if (length == 1) {
        out[0] = in[0];
        out[1] = in[1];
        return;
    }
    while (length % factor) factor++;
    int64_t rest = length / factor;
    for (int64_t r = 0; r < factor; ++r)
        transform(t, rest, step * factor, in + 2 * r * step, out + 2 * r * rest);
    for (int64_t k = 0; k < rest; ++k) {
        for (int64_t r = 0; r < factor; ++r) {
            from[2 * r] = out[2 * (r * rest + k)];
            from[2 * r + 1] = out[2 * (r * rest + k) + 1];
        }
        for (int64_t q = 0; q < factor; ++q) {
            double *to = out + 2 * (q * rest + k);
            to[0] = to[1] = 0;
            for (int64_t r = 0; r < factor; ++r) {
                int64_t turn = r * (q * rest + k) % length * step;
                to[0] += from[2 * r] * t->cosines[turn] + from[2 * r + 1] * t->sines[turn];
                to[1] += from[2 * r + 1] * t->cosines[turn] - from[2 * r] * t->sines[turn];
            }
        }
    }
}

static void spectrum(const berth_fourier *f, berth_arena *arena, double *out) {
    int64_t count = f->convolution;
    turns t = {.length = count,
               .cosines = berth_arena_new_array(arena, double, (size_t)count),
               .sines = berth_arena_new_array(arena, double, (size_t)count)};
    double *wave = berth_arena_new_array(arena, double, 2 * (size_t)f->length);
    double *in = berth_arena_new_array(arena, double, 2 * (size_t)count);
    double *whole = berth_arena_new_array(arena, double, 2 * (size_t)count);
    chirp(f, wave);
    for (int64_t k = 0; k < count; ++k) {
        int64_t n = k < count - k ? k : count - k;
        t.cosines[k] = cos(2 * pi * (double)k / (double)count);
        t.sines[k] = sin(2 * pi * (double)k / (double)count);
        in[2 * k] = n < f->length ? wave[n] : 0;
        in[2 * k + 1] = n < f->length ? -wave[f->length + n] : 0;
    }
    transform(&t, count, 1, in, whole);
    for (int64_t k = 0; k < count; ++k) {
        out[k] = whole[2 * k] / (double)count;
        out[count + k] = whole[2 * k + 1] / (double)count;
    }
}

double *berth_fourier_table(const berth_fourier *f, uint32_t table, berth_arena *arena) {
    int64_t dims[5];
    int rank = berth_fourier_table_dims(f, table, dims);
    size_t count = 1;
    for (int d = 0; d < rank; ++d) count *= (size_t)dims[d];
    double *out = berth_arena_new_array(arena, double, count);
    if (table < (uint32_t)f->stages)
        stage_table(f, table, out);
    else if (table == (uint32_t)f->stages)
        chirp(f, out);
    else
        spectrum(f, arena, out);
    return out;
}
