// Functions of f64 and divisions of integers in generated C.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

enum { count = 65536, most_lanes = 8 };

static long double sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}

// Units in the last place of the f64 next to `exact` between it and `got`.
static double ulps(long double exact, double got) {
    int exponent = 0;
    frexp((double)exact, &exponent);
    long double unit = ldexpl(1, exponent < -1021 ? -1074 : exponent - 53);
    return (double)(fabsl((long double)got - exact) / unit);
}

static void check(const char *name, long double (*exact)(long double), double most, int lanes,
                  const double *values) {
    char text[512];
    snprintf(
        text, sizeof(text),
        "module \"m\"\n"
        "tensor @f(%%x: f64[%d] in, %%y: f64[%d] out) {\n"
        "  parallel %%n in %d { simd %%i in %d { %%y[%%n * %d + %%i] = %s(%%x[%%n * %d + %%i]) "
        "} }\n}\n",
        count, count, count / lanes, lanes, lanes, name, lanes);
    bench_case c = support_case_parse(text);
    if (lanes <= most_lanes) {  // explicit vectors
        berth_nest nest;
        cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
        berth_status vectors = berth_schedule_vectorize_wide(c.fn, &nest);
        cr_assert(!vectors, "%s: %s", name, berth_status_message(vectors));
        berth_stmt stmt = berth_nest_emit(c.fn, &nest);
        c.fn->body = berth_tfn_seq(c.fn, &stmt, 1);
    }
    memcpy(c.buffers[0], values, sizeof(double) * count);
    berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: %s", name, berth_status_message(status));
    const double *y = c.buffers[1];
    for (int i = 0; i < count; ++i) {
        long double wanted = exact((long double)values[i]);
        bool ends = isnan(wanted) || isinf((double)wanted);
        bool same = isnan(wanted) ? isnan(y[i]) : (double)wanted == y[i];
        // 1 + e^-x, of which sigmoid is the reciprocal, is infinite in f64 where the result is denormal.
        bool tiny = wanted < (long double)DBL_MIN && exact == sigmoid;
        bool good = ends ? same : tiny ? y[i] >= 0 && y[i] < DBL_MIN : ulps(wanted, y[i]) <= most;
        if (wanted == 0) good = good && signbit(y[i]) == signbit((double)wanted);
        cr_expect(good, "%s(%a) = %a, exactly %La", name, values[i], y[i], wanted);
    }
    support_case_destroy(&c);
}

// Against libm in long double, whose error is below 2^-10 of a double's last place where that has 64
// bits: all exponents, signs, NaN and infinity, and densely where the functions change.
Test(codegen_f64, functions_are_exact_to_three_units) {
    static const struct {
        const char *name;
        long double (*exact)(long double);
        double most;
        int lanes;
    } functions[] = {{"exp", expl, 1.1, count},    {"log", logl, 1, count},
                     {"tanh", tanhl, 3, count},    {"sigmoid", sigmoid, 2.5, count},
                     {"sin", sinl, 1, count},      {"cos", cosl, 1, count},
                     {"sin", sinl, 1, most_lanes}, {"cos", cosl, 1, most_lanes}};
    static double values[count];
    if (LDBL_MANT_DIG < 64) cr_skip("long double is no wider than double");
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); ++f) {
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t bits = i * 281474976710597U;
            memcpy(&values[i], &bits, sizeof(bits));
        }
        check(functions[f].name, functions[f].exact, functions[f].most, functions[f].lanes, values);
        // Doubles next to multiples of pi/2, of which little is left.
        for (int i = 0; i < count; ++i) values[i] = (double)((i - count / 2) * (acosl(-1) / 2));
        check(functions[f].name, functions[f].exact, functions[f].most, functions[f].lanes, values);
        const double ranges[] = {32800, 750, 22, 1.5};
        for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); ++r) {
            for (int i = 0; i < count; ++i) values[i] = (i - count / 2) * (ranges[r] / (count / 2));
            check(functions[f].name, functions[f].exact, functions[f].most, functions[f].lanes,
                  values);
        }
    }
}

// Quotients next to an integer, extremes, zero and -1, in every width: what C computes, but where it is
// not defined (berth_binary: 0 for a divisor of 0; the lowest number by -1 is itself).
static int64_t wanted_of(bool divides, int64_t a, int64_t b) {
    if (b == 0) return 0;
    return divides ? a / b : a % b;
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 32;
}

// A pair of numbers in [low, high]; most of them such that a is a multiple of b, or one more or less.
static void choose_pair(uint64_t *state, int64_t low, int64_t high, int64_t *a, int64_t *b) {
    const int64_t ends[] = {low, low + 1, -1, 0, 1, high - 1, high};
    int shift = (int)(next(state) % 31);
    *b = (int32_t)next(state) >> shift;
    *a = (int32_t)next(state) >> (next(state) % 31);
    if (next(state) % 8 == 0) *b = ends[next(state) % 7];
    if (next(state) % 8 == 0) *a = ends[next(state) % 7];
    if (*b < low || *b > high) *b = high;
    if (*b && next(state) % 4) {
        int64_t most = high / (*b < 0 ? -*b : *b);
        *a = *b * (most ? (int64_t)(next(state) % (uint64_t)(most + 1)) : 0) +
             (int64_t)(next(state) % 3) - 1;
        if (low < 0 && next(state) % 2) *a = -*a;
    }
    if (*a < low || *a > high) *a = low;
}

static void check_integers(const char *type, int size_bytes, int64_t low, int64_t high,
                           bool divides) {
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%a: %s[%d] in, %%b: %s[%d] in, %%y: %s[%d] out) {\n"
             "  simd %%i in %d { %%y[%%i] = %%a[%%i] %s %%b[%%i] }\n}\n",
             type, count, type, count, type, count, count, divides ? "/" : "%");
    bench_case c = support_case_parse(text);
    static int64_t a[count], b[count];
    uint64_t state = 1;
    for (int i = 0; i < count; ++i) {  // numbers are stored with their low byte first
        choose_pair(&state, low, high, &a[i], &b[i]);
        memcpy((char *)c.buffers[0] + i * size_bytes, &a[i], (size_t)size_bytes);
        memcpy((char *)c.buffers[1] + i * size_bytes, &b[i], (size_t)size_bytes);
    }
    berth_status status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: %s", type, berth_status_message(status));
    for (int i = 0; i < count; ++i) {
        int64_t wanted = wanted_of(divides, a[i], b[i]);
        int same = memcmp((char *)c.buffers[2] + i * size_bytes, &wanted, (size_t)size_bytes);
        cr_expect(same == 0, "%s: %lld %s %lld", type, (long long)a[i], divides ? "/" : "%",
                  (long long)b[i]);
    }
    support_case_destroy(&c);
}

Test(codegen_f64, divisions_of_integers_are_exact) {
    static const struct {
        const char *type;
        int size_bytes;
        int64_t low, high;
    } types[] = {{"i8", 1, INT8_MIN, INT8_MAX},    {"u8", 1, 0, UINT8_MAX},
                 {"i16", 2, INT16_MIN, INT16_MAX}, {"u16", 2, 0, UINT16_MAX},
                 {"i32", 4, INT32_MIN, INT32_MAX}, {"u32", 4, 0, UINT32_MAX}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i)
        for (int divides = 0; divides < 2; ++divides)
            check_integers(types[i].type, types[i].size_bytes, types[i].low, types[i].high,
                           divides);
}
