// Transforms of lengths with large prime factors: how they are taken apart, and that the tables of
// the convolution give the transform as its definition does.
#include <criterion/criterion.h>
#include <math.h>

#include "compiler/lower/fourier.h"

static const double pi = 3.14159265358979323846;

static berth_fourier planned(int64_t length, int64_t parts, bool inverse) {
    berth_fourier f = {.length = length, .parts = parts, .inverse = inverse, .stages = 1};
    f.factors[0] = length;  // as one sum
    berth_fourier_convolve(BERTH_DTYPE_F32, &f);
    return f;
}

static int64_t terms_of(const berth_fourier *f) {
    int64_t terms = 0;
    for (int i = 0; i < f->stages; ++i) terms += f->factors[i];
    return terms;
}

Test(fourier, large_primes_are_convolutions_of_little_work) {
    static const int64_t primes[] = {509, 1009, 2677, 10007, 100003};
    for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); ++i) {
        berth_fourier f = planned(primes[i], 1, false);
        int64_t product = 1;
        for (int s = 0; s < f.stages; ++s) {
            cr_expect_leq(f.factors[s], 32, "%lld", (long long)primes[i]);
            product *= f.factors[s];
        }
        cr_expect_eq(product, f.convolution);
        cr_expect_geq(f.convolution, 2 * primes[i] - 1);
        cr_expect_lt(2 * f.convolution * terms_of(&f), primes[i] * primes[i] / 2);
    }
}

Test(fourier, short_sums_and_half_floats_stay_sums) {
    berth_fourier f = {.length = 1009, .parts = 2, .stages = 1, .factors = {1009}};
    cr_expect_eq(planned(37, 2, false).convolution, 0);
    berth_fourier_convolve(BERTH_DTYPE_F16, &f);
    cr_expect_eq(f.convolution, 0);
}

// x[n] = 1 at `at`, 0 elsewhere: its transform is one turning number, and by the tables it is
//   w[k] sum over j of (x w)[j] conj(w)[k - j]    where conj(w)[m] = M times the inverse transform
// of the spectrum, at m.
static void check_pulse(int64_t length, bool inverse, int64_t at, berth_arena *arena) {
    berth_fourier f = planned(length, 2, inverse);
    int64_t m = f.convolution;
    const double *w = berth_fourier_table(&f, (uint32_t)f.stages, arena);
    const double *spectrum = berth_fourier_table(&f, (uint32_t)f.stages + 1, arena);
    for (int64_t k = 0; k < length; k += 83) {
        double real = 0, imaginary = 0;
        for (int64_t j = 0; j < m; ++j) {  // conj(w) at k - at
            double angle = 2 * pi * (double)(j * ((k - at + m) % m) % m) / (double)m;
            real += spectrum[j] * cos(angle) - spectrum[m + j] * sin(angle);
            imaginary += spectrum[j] * sin(angle) + spectrum[m + j] * cos(angle);
        }
        double one = real * w[at] - imaginary * w[length + at];
        double other = real * w[length + at] + imaginary * w[at];
        double angle = (inverse ? 2 : -2) * pi * (double)(k * at % length) / (double)length;
        cr_expect_lt(fabs(one * w[k] - other * w[length + k] - cos(angle)), 1e-11);
        cr_expect_lt(fabs(one * w[length + k] + other * w[k] - sin(angle)), 1e-11);
    }
}

static berth_status check_pulses(void *user) {
    berth_arena *arena = user;
    check_pulse(509, false, 0, arena);
    check_pulse(509, false, 508, arena);
    check_pulse(1009, true, 77, arena);
    return BERTH_OK;
}

Test(fourier, the_tables_give_the_transform) {
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    cr_assert_null(status);
    status = berth_arena_try(arena, check_pulses, arena);
    cr_assert_null(status);
    berth_arena_destroy(arena);
}
