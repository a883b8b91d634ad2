// Elementary functions of floats. f32: the polynomials of c_preamble.c, and Taylor series on reduced
// arguments; f64: series of as many terms as its precision needs.
#include "compiler/codegen/spirv_math.h"

#include <math.h>

#include "compiler/codegen/spirv_angle.h"
#include "compiler/codegen/spirv_calc.h"

typedef uint32_t id;

static id call(spirv_calc *c, berth_unary op, id a);

static bool is_wide(const spirv_calc *c) {
    return c->type == SPIRV_TYPE_F64;
}

// ---- exp and log --------------------------------------------------------------------------------

// 2^k as a float, for k in the range of normal numbers.
static id power_of_two(spirv_calc *c, id k) {
    if (is_wide(c)) {
        id wide = berth_spirv_unary(c->m, SPIRV_SConvert, SPIRV_TYPE_U64, k);
        id biased = berth_spirv_binary(c->m, SPIRV_IAdd, SPIRV_TYPE_U64, wide, bits_of(c, 1023));
        return as_float(c, bits_op(c, SPIRV_ShiftLeftLogical, biased, bits_of(c, 52)));
    }
    id biased = bits_op(c, SPIRV_IAdd, k, bits_of(c, 127));
    return as_float(c, bits_op(c, SPIRV_ShiftLeftLogical, biased, bits_of(c, 23)));
}

// e^x = 2^n e^r, |r| <= ln 2 / 2 (Cody and Waite's reduction).
static id exp_body(spirv_calc *c, id x) {
    static const double narrow[] = {1.394121796e-3, 8.363235072e-3, 4.166637408e-2, 1.666657665e-1,
                                    5.000000027e-1};
    bool wide = is_wide(c);
    id t = at_least(c, x, wide ? -746 : -104);
    t = at_most(c, t, wide ? 710 : 89);
    id n = round_even(c, mul(c, t, number(c, 1.4426950408889634)));
    double high = wide ? 6.93147180369123816490e-01 : 0.693145752;
    double low = wide ? 1.90821492927058770002e-10 : 1.42860677e-6;
    id r = sub(c, sub(c, t, mul(c, n, number(c, high))), mul(c, n, number(c, low)));
    id p;
    if (wide) {
        double coefficients[13], factorial = 1;
        for (int i = 0; i < 13; ++i) coefficients[12 - i] = 1 / (factorial *= i + 1);
        // 1 + r (1 + r/2 + ...): coefficient k of r^k is 1/k!.
        p = add(c, mul(c, polynomial(c, r, coefficients, 13), r), number(c, 1));
    } else {
        p = polynomial(c, r, narrow, 5);
        p = add(c, add(c, mul(c, p, mul(c, r, r)), r), number(c, 1));
    }
    id k = berth_spirv_unary(c->m, SPIRV_ConvertFToS, SPIRV_TYPE_U32, n);
    id one = berth_spirv_int(c->m, SPIRV_TYPE_U32, 1);
    id half = berth_spirv_binary(c->m, SPIRV_ShiftRightArithmetic, SPIRV_TYPE_U32, k, one);
    id rest = berth_spirv_binary(c->m, SPIRV_ISub, SPIRV_TYPE_U32, k, half);
    id y = mul(c, mul(c, p, power_of_two(c, half)), power_of_two(c, rest));
    return choose(c, is_nan(c, x), x, y);
}

// x = 2^n m with m in [sqrt(1/2), sqrt(2)).
static void split(spirv_calc *c, id x, id *out_n, id *out_m) {
    bool wide = is_wide(c);
    id tiny = less(c, x, number(c, wide ? 2.2250738585072014e-308 : 1.17549435e-38));
    id scaled = choose(c, tiny, mul(c, x, number(c, wide ? 0x1p54 : 0x1p23)), x);
    uint64_t root = wide ? 0x3fe6a09e667f3bcdu : 0x3f3504f3u;
    uint64_t mantissa = wide ? 0xfffffffffffffu : 0x7fffffu;
    id bits = bits_op(c, SPIRV_ISub, as_bits(c, scaled), bits_of(c, root));
    id exponent = bits_op(c, SPIRV_ShiftRightArithmetic, bits, bits_of(c, wide ? 52 : 23));
    id n = berth_spirv_unary(c->m, SPIRV_ConvertSToF, c->type, exponent);
    *out_n = sub(c, n, choose(c, tiny, number(c, wide ? 54 : 23), number(c, 0)));
    id low = bits_op(c, SPIRV_BitwiseAnd, bits, bits_of(c, mantissa));
    *out_m = as_float(c, bits_op(c, SPIRV_IAdd, low, bits_of(c, root)));
}

static id log_special(spirv_calc *c, id x, id y) {
    y = choose(c, equal(c, x, number(c, 0)), number(c, -INFINITY), y);
    y = choose(c, less(c, x, number(c, 0)), number(c, NAN), y);
    id keep = either(c, equal(c, x, number(c, INFINITY)), is_nan(c, x));
    return choose(c, keep, x, y);
}

static id log_body(spirv_calc *c, id x) {
    static const double narrow[] = {-7.859611511e-2, 1.288164749e-1,  -1.312875480e-1,
                                    1.418119194e-1,  -1.662455404e-1, 2.000228627e-1,
                                    -2.500081041e-1, 3.333331673e-1};
    id n, m1;
    split(c, x, &n, &m1);
    id m = sub(c, m1, number(c, 1)), y;
    if (is_wide(c)) {  // 2 artanh(m / (2 + m))
        double coefficients[12];
        for (int i = 0; i < 12; ++i) coefficients[11 - i] = 2.0 / (2 * i + 3);
        id t = div_by(c, m, add(c, number(c, 2), m));
        id s = mul(c, t, t);
        id tail = mul(c, mul(c, t, s), polynomial(c, s, coefficients, 12));
        y = add(c, mul(c, n, number(c, 1.90821492927058770002e-10)), tail);
        y = add(c, y, mul(c, number(c, 2), t));
        y = add(c, mul(c, n, number(c, 6.93147180369123816490e-01)), y);
    } else {
        id s = mul(c, m, m);
        id p = mul(c, mul(c, m, s), polynomial(c, m, narrow, 8));
        y = add(c, mul(c, n, number(c, 1.42860677e-6)), sub(c, p, mul(c, number(c, 0.5), s)));
        y = add(c, mul(c, n, number(c, 0.693145752)), add(c, m, y));
    }
    return log_special(c, x, y);
}

// log(1 + x) where 1 + x rounds: the error of the sum is undone (W. Kahan).
static id log1p_of(spirv_calc *c, id x) {
    id u = add(c, x, number(c, 1));
    id d = sub(c, u, number(c, 1));
    id y = div_by(c, mul(c, call(c, BERTH_UNARY_LOG, u), x), d);
    id plain = either(c, equal(c, d, number(c, 0)), equal(c, u, number(c, INFINITY)));
    return choose(c, plain, x, y);
}

// ---- hyperbolic functions, erf ------------------------------------------------------------------

static id sigmoid_body(spirv_calc *c, id x) {
    id e = call(c, BERTH_UNARY_EXP, negate(c, x));
    return div_by(c, number(c, 1), add(c, number(c, 1), e));
}

static id tanh_body(spirv_calc *c, id x) {
    static const double narrow[] = {-5.763204657e-3, 2.069691402e-2, -5.375982419e-2,
                                    1.333172511e-1, -3.333329495e-1};
    id s = mul(c, x, x), small;
    if (is_wide(c)) {  // Lambert's continued fraction
        id f = number(c, 27);
        for (int k = 25; k >= 1; k -= 2) f = add(c, number(c, k), div_by(c, s, f));
        small = div_by(c, x, f);
    } else
        small = add(c, mul(c, mul(c, x, s), polynomial(c, s, narrow, 5)), x);
    id a = magnitude(c, x);
    id e = call(c, BERTH_UNARY_EXP, add(c, a, a));
    id big = sub(c, number(c, 1), div_by(c, number(c, 2), add(c, e, number(c, 1))));
    return choose(c, less(c, a, number(c, 0.625)), small, with_sign(c, big, x));
}

static id sinh_body(spirv_calc *c, id x) {
    double coefficients[8], factorial = 1;
    int count = is_wide(c) ? 8 : 4;
    for (int i = 0; i < count; ++i)
        coefficients[count - 1 - i] = 1 / (factorial *= (2 * i + 2) * (2 * i + 3));
    id s = mul(c, x, x), a = magnitude(c, x);
    id small = add(c, x, mul(c, mul(c, x, s), polynomial(c, s, coefficients, count)));
    id h = call(c, BERTH_UNARY_EXP, mul(c, a, number(c, 0.5)));
    id big =
        sub(c, mul(c, mul(c, number(c, 0.5), h), h), div_by(c, div_by(c, number(c, 0.5), h), h));
    return choose(c, less(c, a, number(c, 1)), small, with_sign(c, big, x));
}

static id cosh_body(spirv_calc *c, id x) {
    id h = call(c, BERTH_UNARY_EXP, mul(c, magnitude(c, x), number(c, 0.5)));
    return add(c, mul(c, mul(c, number(c, 0.5), h), h), div_by(c, div_by(c, number(c, 0.5), h), h));
}

static id asinh_body(spirv_calc *c, id x) {
    id a = magnitude(c, x), s = mul(c, a, a);
    id t = add(c, a, div_by(c, s, add(c, number(c, 1), root(c, add(c, s, number(c, 1))))));
    id big = add(c, call(c, BERTH_UNARY_LOG, a), number(c, 0.6931471805599453));
    id y = choose(c, less(c, number(c, 1e9), a), big, log1p_of(c, t));
    return choose(c, is_nan(c, x), x, with_sign(c, y, x));
}

static id acosh_body(spirv_calc *c, id x) {
    id t = sub(c, x, number(c, 1));
    id y = log1p_of(c, add(c, t, root(c, mul(c, t, add(c, x, number(c, 1))))));
    id big = add(c, call(c, BERTH_UNARY_LOG, x), number(c, 0.6931471805599453));
    y = choose(c, less(c, number(c, 1e9), x), big, y);
    return choose(c, less(c, x, number(c, 1)), number(c, NAN), y);
}

static id atanh_body(spirv_calc *c, id x) {
    id a = magnitude(c, x);
    id y = log1p_of(c, div_by(c, add(c, a, a), sub(c, number(c, 1), a)));
    y = with_sign(c, mul(c, y, number(c, 0.5)), x);
    return choose(c, less(c, number(c, 1), a), number(c, NAN), y);
}

// f64: e^(-x^2) 2x/sqrt(pi) times the sum of (2x^2)^n / (1*3*...*(2n+1)) below 3, Laplace's
// continued fraction of erfc beyond.
static id erf_wide(spirv_calc *c, id x) {
    id a = at_most(c, magnitude(c, x), 6), s = mul(c, a, a), two_s = add(c, s, s);
    id e = call(c, BERTH_UNARY_EXP, negate(c, s));
    id sum = number(c, 1);
    for (int n = 70; n >= 1; --n)  // 1 + q/3 (1 + q/5 (1 + ...))
        sum = add(c, number(c, 1), mul(c, mul(c, two_s, number(c, 1.0 / (2 * n + 1))), sum));
    id small = mul(c, mul(c, mul(c, a, number(c, 1.1283791670955126)), e), sum);
    id f = a;
    for (int k = 50; k >= 1; --k) f = add(c, a, div_by(c, number(c, 0.5 * k), f));
    id tail = mul(c, div_by(c, e, f), number(c, 0.5641895835477563));
    id y = choose(c, less(c, a, number(c, 3)), small, sub(c, number(c, 1), tail));
    return choose(c, is_nan(c, x), x, with_sign(c, y, x));
}

// erf x = x + x P(x^2) near 0; 1 - exp(x Q(x)) beyond, with Q fitted to log(erfc(x)) / x.
static id erf_body(spirv_calc *c, id x) {
    static const double near[] = {8.215426495e-5, -8.105965872e-4, 5.197797243e-3, -2.685810432e-2,
                                  1.128367255e-1, -3.761263229e-1, 1.283791665e-1};
    static const double far[] = {-5.150814379e-6, 4.820153684e-5,  3.606780242e-5,  -2.892308071e-3,
                                 2.261201999e-2,  -1.052029205e-1, -6.356565195e-1, -1.128544901};
    if (is_wide(c)) return erf_wide(c, x);
    id small = add(c, mul(c, x, polynomial(c, mul(c, x, x), near, 7)), x);
    id a = magnitude(c, x), t = at_most(c, a, 4);
    id e = call(c, BERTH_UNARY_EXP, mul(c, t, polynomial(c, t, far, 8)));
    id big = with_sign(c, sub(c, number(c, 1), e), x);
    id y = choose(c, less(c, a, number(c, 0.9375)), small, big);
    return choose(c, is_nan(c, x), x, y);
}

// ---- circular functions -------------------------------------------------------------------------

// sin and cos of x - n pi/2, |.| <= pi/4, by Taylor series; pi/2 in three parts of few digits, so
// that n times the first two is exact (to |x| of about 1e4 in f32, 1e9 in f64). Larger ones of f32 are
// reduced in integers.
static void reduced(spirv_calc *c, id x, id *out_n, id *out_sin, id *out_cos) {
    static const double narrow[] = {1.5703125, 4.837512969970703125e-4, 7.5497899548918821e-8};
    static const double wide_parts[] = {1.57079632673412561417, 6.07710050630396597660e-11,
                                        2.02226624879595063154e-21};
    const double *parts = is_wide(c) ? wide_parts : narrow;
    int terms = is_wide(c) ? 9 : 5;
    double sines[9], cosines[9], factorial = 1;
    for (int i = 0; i < terms; ++i) {
        double sign = i % 2 ? 1 : -1;
        cosines[terms - 1 - i] = sign / (factorial *= (2 * i + 1) * (2 * i + 2));
        sines[terms - 1 - i] = cosines[terms - 1 - i] / (2 * i + 3);
    }
    id n = round_even(c, mul(c, x, number(c, 0.6366197723675814))), r = x;
    for (int i = 0; i < 3; ++i) r = sub(c, r, mul(c, n, number(c, parts[i])));
    id large = 0, large_n = 0, large_r = 0;
    if (!is_wide(c)) {
        id ax = magnitude(c, x);
        berth_spirv_large_angle(c, x, &large_n, &large_r);
        large = both_of(c, less(c, number(c, 8192), ax), less(c, ax, number(c, INFINITY)));
        r = choose(c, large, large_r, r);
    }
    id s = mul(c, r, r);
    *out_sin = add(c, r, mul(c, mul(c, r, s), polynomial(c, s, sines, terms)));
    *out_cos = add(c, number(c, 1), mul(c, s, polynomial(c, s, cosines, terms)));
    // n modulo 4 without leaving the floats: n may be beyond 32 bits.
    id quarter =
        berth_spirv_glsl(c->m, SPIRV_GLSL_FLOOR, c->type, (id[]){mul(c, n, number(c, 0.25))}, 1);
    *out_n = sub(c, n, mul(c, quarter, number(c, 4)));
    if (large) *out_n = choose(c, large, large_n, *out_n);
}

static id one_of(spirv_calc *c, id a, double x, double y) {
    return either(c, equal(c, a, number(c, x)), equal(c, a, number(c, y)));
}

static id sin_body(spirv_calc *c, id x) {
    id n, s, o;
    reduced(c, x, &n, &s, &o);
    id y = choose(c, one_of(c, n, 1, 3), o, s);
    return choose(c, one_of(c, n, 2, 3), negate(c, y), y);
}

static id cos_body(spirv_calc *c, id x) {
    id n, s, o;
    reduced(c, x, &n, &s, &o);
    id y = choose(c, one_of(c, n, 1, 3), s, o);
    return choose(c, one_of(c, n, 1, 2), negate(c, y), y);
}

static id tan_body(spirv_calc *c, id x) {
    id n, s, o;
    reduced(c, x, &n, &s, &o);
    id odd = one_of(c, n, 1, 3);
    return div_by(c, choose(c, odd, negate(c, o), s), choose(c, odd, s, o));
}

// |x| > tan(3 pi/8) by pi/2 - atan(1/x), > tan(pi/8) by pi/4 + atan((x-1)/(x+1)), then Taylor's series.
static id atan_body(spirv_calc *c, id x) {
    double coefficients[22];
    int terms = is_wide(c) ? 22 : 10;
    for (int i = 0; i < terms; ++i)
        coefficients[terms - 1 - i] = (i % 2 ? 1.0 : -1.0) / (2 * i + 3);
    id a = magnitude(c, x), one = number(c, 1);
    id large = less(c, number(c, 2.414213562373095), a);
    id middle = less(c, number(c, 0.4142135623730951), a);
    id t = choose(c, middle, div_by(c, sub(c, a, one), add(c, a, one)), a);
    t = choose(c, large, div_by(c, number(c, -1), a), t);
    id base = choose(c, middle, number(c, 0.7853981633974483), number(c, 0));
    base = choose(c, large, number(c, 1.5707963267948966), base);
    id s = mul(c, t, t);
    id y = add(c, t, mul(c, mul(c, t, s), polynomial(c, s, coefficients, terms)));
    y = with_sign(c, add(c, base, y), x);
    return choose(c, is_nan(c, x), x, y);
}

static id atan2_body(spirv_calc *c, id y, id x) {
    double pi = 3.141592653589793;
    id ax = magnitude(c, x), ay = magnitude(c, y), zero = number(c, 0), inf = number(c, INFINITY);
    id both = both_of(c, equal(c, ax, inf), equal(c, ay, inf));
    id q = choose(c, both, number(c, 1), div_by(c, ay, ax));
    q = choose(c, equal(c, ay, zero), zero, q);  // also 0 / 0
    id t = call(c, BERTH_UNARY_ATAN, q);
    id sign = bits_op(c, SPIRV_ShiftRightLogical, as_bits(c, x), bits_of(c, is_wide(c) ? 63 : 31));
    id negative = berth_spirv_binary(c->m, SPIRV_INotEqual, SPIRV_TYPE_BOOL, sign, bits_of(c, 0));
    t = choose(c, negative, sub(c, number(c, pi), t), t);
    t = with_sign(c, t, y);
    return choose(c, either(c, is_nan(c, x), is_nan(c, y)), number(c, NAN), t);
}

// sqrt(1 - x^2) without cancellation; NaN beyond 1.
static id other_leg(spirv_calc *c, id x) {
    id one = number(c, 1);
    id y = root(c, mul(c, sub(c, one, x), add(c, one, x)));
    return choose(c, less(c, one, magnitude(c, x)), number(c, NAN), y);
}

static id asin_body(spirv_calc *c, id x) {
    return berth_spirv_float_binary(c->m, c->type, BERTH_BINARY_ATAN2, x, other_leg(c, x));
}

static id acos_body(spirv_calc *c, id x) {
    return berth_spirv_float_binary(c->m, c->type, BERTH_BINARY_ATAN2, other_leg(c, x), x);
}

// ---- pow and fmod -------------------------------------------------------------------------------

// a * b = p + *error exactly (T. J. Dekker, 1971; the halves are made by their bits).
static id exact_product(spirv_calc *c, id a, id b, id *error) {
    id mask = bits_of(c, is_wide(c) ? 0xfffffffff8000000u : 0xfffff000u);
    id ah = as_float(c, bits_op(c, SPIRV_BitwiseAnd, as_bits(c, a), mask)), al = sub(c, a, ah);
    id bh = as_float(c, bits_op(c, SPIRV_BitwiseAnd, as_bits(c, b), mask)), bl = sub(c, b, bh);
    id p = mul(c, a, b);
    id e = sub(c, mul(c, ah, bh), p);
    e = add(c, add(c, e, mul(c, ah, bl)), mul(c, al, bh));
    *error = add(c, e, mul(c, al, bl));
    return p;
}

// log |x| as high + low: 2 artanh((m-1)/(m+1)) with the quotient to twice the precision.
static void log_pair(spirv_calc *c, id x, id *out_high, id *out_low) {
    double coefficients[14];
    int terms = is_wide(c) ? 14 : 6;
    for (int i = 0; i < terms; ++i) coefficients[terms - 1 - i] = 2.0 / (2 * i + 3);
    id n, m1, error;
    split(c, x, &n, &m1);
    id m = sub(c, m1, number(c, 1)), below = add(c, m1, number(c, 1));
    id below_error = sub(c, m1, sub(c, below, number(c, 1)));
    id t = div_by(c, m, below);
    id p = exact_product(c, t, below, &error);
    id rest = sub(c, sub(c, sub(c, m, p), error), mul(c, t, below_error));
    id low = mul(c, number(c, 2), div_by(c, rest, below));
    id s = mul(c, t, t);
    low = add(c, low, mul(c, mul(c, t, s), polynomial(c, s, coefficients, terms)));
    double ln2_high = is_wide(c) ? 6.93147180369123816490e-01 : 0.693145752;
    double ln2_low = is_wide(c) ? 1.90821492927058770002e-10 : 1.42860677e-6;
    id big = mul(c, n, number(c, ln2_high)), small = mul(c, number(c, 2), t);
    id sum = add(c, big, small);
    id back = sub(c, sum, big);
    id lost = add(c, sub(c, big, sub(c, sum, back)), sub(c, small, back));
    low = add(c, add(c, low, mul(c, n, number(c, ln2_low))), lost);
    *out_high = add(c, sum, low);
    *out_low = sub(c, low, sub(c, *out_high, sum));
}

static id pow_special(spirv_calc *c, id x, id y, id power) {
    id zero = number(c, 0), one = number(c, 1), inf = number(c, INFINITY);
    id ax = magnitude(c, x), ay = magnitude(c, y);
    id whole = equal(c, berth_spirv_glsl(c->m, SPIRV_GLSL_FLOOR, c->type, &y, 1), y);
    id half = mul(c, y, number(c, 0.5));
    id even = equal(c, berth_spirv_glsl(c->m, SPIRV_GLSL_FLOOR, c->type, &half, 1), half);
    id odd = both_of(c, whole, berth_spirv_unary(c->m, SPIRV_LogicalNot, SPIRV_TYPE_BOOL, even));
    id up = less(c, zero, y);
    // |x| = 0, infinity: 0 or infinity by the sign of y.
    power = choose(c, equal(c, ax, zero), choose(c, up, zero, inf), power);
    power = choose(c, equal(c, ax, inf), choose(c, up, inf, zero), power);
    id grows = berth_spirv_binary(c->m, SPIRV_LogicalEqual, SPIRV_TYPE_BOOL, up, less(c, one, ax));
    id at_end = choose(c, grows, inf, zero);
    power = choose(c, equal(c, ay, inf), choose(c, equal(c, ax, one), one, at_end), power);
    id signed_power = choose(c, odd, with_sign(c, power, x), power);
    id refused =
        both_of(c, less(c, x, zero),
                both_of(c, less(c, ax, inf),
                        berth_spirv_unary(c->m, SPIRV_LogicalNot, SPIRV_TYPE_BOOL, whole)));
    id result = choose(c, refused, number(c, NAN), signed_power);
    result = choose(c, either(c, is_nan(c, x), is_nan(c, y)), number(c, NAN), result);
    return choose(c, either(c, equal(c, y, zero), equal(c, x, one)), one, result);
}

static id pow_body(spirv_calc *c, id x, id y) {
    id high, low, error;
    log_pair(c, magnitude(c, x), &high, &low);
    id p = exact_product(c, high, y, &error);
    id correction = add(c, error, mul(c, low, y));
    double bound = is_wide(c) ? 800 : 120;
    id beyond = less(c, number(c, bound), magnitude(c, p));
    correction = choose(c, either(c, beyond, is_nan(c, correction)), number(c, 0), correction);
    id e = call(c, BERTH_UNARY_EXP, p);
    id power = add(c, e, mul(c, e, correction));
    power = choose(c, equal(c, e, number(c, INFINITY)), e, power);
    return pow_special(c, x, y, power);
}

// Long division: |x| loses |y| 2^k for falling k, every difference exact.
static id mod_body(spirv_calc *c, id x, id y) {
    bool wide = is_wide(c);
    id divisor = magnitude(c, y), shift = bits_of(c, wide ? 52 : 23), zero = number(c, 0);
    id rest = berth_spirv_local(c->m, berth_spirv_type_id(c->m, c->type));
    berth_spirv_plain(c->m, SPIRV_Store, (id[]){rest, magnitude(c, x)}, 2);
    id from = bits_op(c, SPIRV_ShiftRightLogical, as_bits(c, magnitude(c, x)), shift);
    id to = bits_op(c, SPIRV_ShiftRightLogical, as_bits(c, divisor), shift);
    id steps = bits_op(c, SPIRV_IAdd, bits_op(c, SPIRV_ISub, from, to), bits_of(c, 2));
    berth_spirv_loop loop = berth_spirv_open_loop(c->m, c->bits, steps);
    id r = berth_spirv_unary(c->m, SPIRV_Load, c->type, rest);
    // Two exponents are compared, so that what is subtracted is at most the rest and above half of it.
    id k = bits_op(c, SPIRV_ISub, bits_op(c, SPIRV_ShiftRightLogical, as_bits(c, r), shift), to);
    id scaled = as_float(c, bits_op(c, SPIRV_IAdd, as_bits(c, divisor),
                                    bits_op(c, SPIRV_ShiftLeftLogical, k, shift)));
    scaled = choose(c, less(c, r, scaled), mul(c, scaled, number(c, 0.5)), scaled);
    id done = less(c, r, divisor);
    berth_spirv_plain(c->m, SPIRV_Store, (id[]){rest, choose(c, done, r, sub(c, r, scaled))}, 2);
    berth_spirv_close_loop(c->m, &loop);
    r = with_sign(c, berth_spirv_unary(c->m, SPIRV_Load, c->type, rest), x);
    id inf = number(c, INFINITY), ax = magnitude(c, x);
    r = choose(c, both_of(c, equal(c, divisor, inf), less(c, ax, inf)), x, r);
    id bad = either(c, either(c, is_nan(c, x), is_nan(c, y)),
                    either(c, equal(c, ax, inf), equal(c, y, zero)));
    return choose(c, bad, number(c, NAN), r);
}

// ---- dispatch -----------------------------------------------------------------------------------

static id sign_of(spirv_calc *c, id x) {
    id zero = number(c, 0);
    id y = choose(c, less(c, x, zero), number(c, -1), x);
    return choose(c, less(c, zero, x), number(c, 1), y);
}

typedef id (*unary_body)(spirv_calc *, id);

static unary_body body_of(berth_unary op, const char **out_name) {
    switch (op) {
#define BODY(op, name)                                                                             \
    case BERTH_UNARY_##op: *out_name = #name; return name##_body;
        BODY(EXP, exp)
        BODY(LOG, log)
        BODY(SIN, sin)
        BODY(COS, cos)
        BODY(TAN, tan)
        BODY(ASIN, asin)
        BODY(ACOS, acos)
        BODY(ATAN, atan)
        BODY(SINH, sinh)
        BODY(COSH, cosh)
        BODY(TANH, tanh)
        BODY(ASINH, asinh)
        BODY(ACOSH, acosh)
        BODY(ATANH, atanh)
        BODY(ERF, erf)
        BODY(SIGMOID, sigmoid)
#undef BODY
    default: *out_name = NULL; return NULL;
    }
}

static const char *helper_name(const spirv_calc *c, const char *name) {
    return berth_arena_printf(berth_spirv_arena(c->m), "berth_%s_%s", name,
                              is_wide(c) ? "f64" : "f32");
}

static id call_unary(spirv_calc *c, const char *name, unary_body body, id a) {
    id function = 0, parameter = 0;
    if (berth_spirv_open_function(c->m, helper_name(c, name), c->type, &c->type, 1, &function,
                                  &parameter))
        berth_spirv_close_function(c->m, body(c, parameter));
    return berth_spirv_call(c->m, function, c->type, &a, 1);
}

static id call_binary(spirv_calc *c, const char *name, id (*body)(spirv_calc *, id, id), id a,
                      id b) {
    id function = 0, parameters[2] = {0, 0};
    berth_spirv_type types[2] = {c->type, c->type};
    if (berth_spirv_open_function(c->m, helper_name(c, name), c->type, types, 2, &function,
                                  parameters))
        berth_spirv_close_function(c->m, body(c, parameters[0], parameters[1]));
    return berth_spirv_call(c->m, function, c->type, (id[]){a, b}, 2);
}

static id call(spirv_calc *c, berth_unary op, id a) {
    return berth_spirv_float_unary(c->m, c->type, op, a);
}

uint32_t berth_spirv_float_unary(berth_spirv *m, berth_spirv_type type, berth_unary op,
                                 uint32_t a) {
    spirv_calc calc = spirv_calc_of(m, type), *c = &calc;
    switch (op) {
    case BERTH_UNARY_NEG: return negate(c, a);
    case BERTH_UNARY_ABS: return magnitude(c, a);
    case BERTH_UNARY_SIGN: return sign_of(c, a);
    case BERTH_UNARY_FLOOR: return berth_spirv_glsl(m, SPIRV_GLSL_FLOOR, type, &a, 1);
    case BERTH_UNARY_CEIL: return berth_spirv_glsl(m, SPIRV_GLSL_CEIL, type, &a, 1);
    case BERTH_UNARY_ROUND: return round_even(c, a);
    case BERTH_UNARY_TRUNC: return berth_spirv_glsl(m, SPIRV_GLSL_TRUNC, type, &a, 1);
    case BERTH_UNARY_SQRT: return root(c, a);
    case BERTH_UNARY_RSQRT: return div_by(c, number(c, 1), root(c, a));
    case BERTH_UNARY_IS_NAN: return is_nan(c, a);
    case BERTH_UNARY_IS_INF: return equal(c, magnitude(c, a), number(c, INFINITY));
    default: break;
    }
    const char *name = NULL;
    unary_body body = body_of(op, &name);
    return body ? call_unary(c, name, body, a) : 0;
}

uint32_t berth_spirv_float_binary(berth_spirv *m, berth_spirv_type type, berth_binary op,
                                  uint32_t a, uint32_t b) {
    spirv_calc calc = spirv_calc_of(m, type), *c = &calc;
    switch (op) {
    case BERTH_BINARY_ADD: return add(c, a, b);
    case BERTH_BINARY_SUB: return sub(c, a, b);
    case BERTH_BINARY_MUL: return mul(c, a, b);
    case BERTH_BINARY_DIV: return div_by(c, a, b);
    case BERTH_BINARY_MIN: return choose(c, either(c, less(c, a, b), is_nan(c, a)), a, b);
    case BERTH_BINARY_MAX: return choose(c, either(c, less(c, b, a), is_nan(c, a)), a, b);
    case BERTH_BINARY_MOD: return call_binary(c, "mod", mod_body, a, b);
    case BERTH_BINARY_POW: return call_binary(c, "pow", pow_body, a, b);
    case BERTH_BINARY_ATAN2: return call_binary(c, "atan2", atan2_body, a, b);
    default: return 0;
    }
}

uint32_t berth_spirv_fma(berth_spirv *m, berth_spirv_type type, uint32_t a, uint32_t b,
                         uint32_t c) {
    return berth_spirv_glsl(m, SPIRV_GLSL_FMA, type, (id[]){a, b, c}, 3);
}

uint32_t berth_spirv_is_nan(berth_spirv *m, berth_spirv_type type, uint32_t x) {
    spirv_calc c = spirv_calc_of(m, type);
    return is_nan(&c, x);
}
