// Text of the helper functions of generated C. The polynomials are minimax fits made for this
// project.
#include "compiler/codegen/c_preamble.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/codegen/c_helpers.h"
#include "compiler/codegen/c_lookup.h"
#include "compiler/codegen/c_moves.h"
#include "compiler/codegen/template.h"

#define MAX_LANES_LOG2 11  // of the longest vectors

// clang-format off
// In front of all code.
static const char head[] =
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    "/* Values carried from one iteration to the next push accumulators out of registers. */\n"
    "#pragma GCC optimize(\"no-predictive-commoning\")\n"
    "#ifdef __AVX__\n"
    "/* GCC 12.2 reads under a condition with masks, and where it numbers values takes one masked load\n"
    "   for another of the same place: i < 2 ? x[i] : x[i - 2] gave zeros in short loops, and so did\n"
    "   i < 18 ? tile[r][i] + bias[i] : 0 in all rows but the first, or in later tiles. */\n"
    "#pragma GCC optimize(\"no-tree-pre\", \"no-tree-fre\", \"no-tree-dominator-opts\")\n"
    "#endif\n"
    "#endif\n"
    "#if defined(__AVX__) && !defined(__clang__)\n"
    "/* i < 6 ? x[i][k] : y[i - 6][k] gave zeros, too, where the loop over k was short enough to be unrolled; and of\n"
    "   i < 9 ? x[i][0] : 0 beside i < 9 ? x[i][1] : 0 all registers of a turn are loaded with the mask of the first. */\n"
    "#define BERTH_NO_MASKS __attribute__((optimize(\"no-tree-loop-if-convert\")))\n"
    "#else\n"
    "#define BERTH_NO_MASKS\n"
    "#endif\n"
    "#define BERTH_MASKS_0\n"
    "#define BERTH_MASKS_1 BERTH_NO_MASKS\n"
    "#define BERTH_MASKS_" BERTH_TEMPLATE_HINT " BERTH_NO_MASKS\n"
    "#if defined(__AVX512F__) && !defined(__clang__)\n"
    "/* Generic tuning has no gathers: 30,000 elements at loaded places took 20 us, with them 7. */\n"
    "#define BERTH_GATHERS __attribute__((target(\"tune=skylake-avx512\")))\n"
    "#else\n"
    "#define BERTH_GATHERS\n"
    "#endif\n"
    "#include <stdint.h>\n"
    "#if defined(__clang__)\n"
    "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
    "#define BERTH_SIMD _Pragma(\"clang loop vectorize(assume_safety)\")\n"
    "#define BERTH_PRAGMA(x) _Pragma(#x)\n"
    "#define BERTH_UNROLL(n) BERTH_PRAGMA(clang loop unroll_count(n))\n"
    "#else\n"
    "#pragma GCC diagnostic ignored \"-Wpsabi\"\n"
    "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
    "#define BERTH_SIMD _Pragma(\"GCC ivdep\")\n"
    "#define BERTH_PRAGMA(x) _Pragma(#x)\n"
    "#define BERTH_UNROLL(n) BERTH_PRAGMA(GCC unroll n)\n"
    "#endif\n"
    "#define BERTH_FN static inline __attribute__((always_inline, unused))\n"
    "/* gcc folds vector loads into every use; an empty asm keeps them in a register. */\n"
    "#define BERTH_KEEP_2(v) ((void)0)\n"
    "#define BERTH_KEEP_4(v) ((void)0)\n"
    "#define BERTH_KEEP_8(v) ((void)0)\n"
    "#define BERTH_KEEP_16(v) ((void)0)\n"
    "#define BERTH_KEEP_32(v) ((void)0)\n"
    "#define BERTH_KEEP_64(v) ((void)0)\n"
    "#define BERTH_KEEP_128(v) ((void)0)\n"
    "#define BERTH_KEEP_256(v) ((void)0)\n"
    "#if !defined(__clang__) && defined(__AVX512VL__)\n"
    "#undef BERTH_KEEP_32\n"
    "#undef BERTH_KEEP_64\n"
    "#define BERTH_KEEP_32(v) __asm__(\"\" : \"+v\"(v))\n"
    "#define BERTH_KEEP_64(v) __asm__(\"\" : \"+v\"(v))\n"
    "#elif !defined(__clang__) && defined(__AVX__)\n"
    "#undef BERTH_KEEP_32\n"
    "#define BERTH_KEEP_32(v) __asm__(\"\" : \"+x\"(v))\n"
    "#endif\n"
    "#define BERTH_INF_F32 __builtin_inff()\n"
    "#define BERTH_INF_F64 __builtin_inf()\n"
    "#define BERTH_NAN_F32 __builtin_nanf(\"\")\n"
    "#define BERTH_NAN_F64 __builtin_nan(\"\")\n";

static const char part_bits[] =
    "BERTH_FN float berth_float_of_bits(uint32_t bits) { float x; __builtin_memcpy(&x, &bits, 4); return x; }\n"
    "BERTH_FN uint32_t berth_bits_of_float(float x) { uint32_t bits; __builtin_memcpy(&bits, &x, 4); return bits; }\n";

static const char part3[] =
    "#define BERTH_LIBRARY(OP, S, T, F) BERTH_FN T berth_##OP##_##S(T a) { return __builtin_##OP##F(a); }\n"
    "#define BERTH_CIRCLE(S, T, F) \\\n"
    "BERTH_LIBRARY(tan, S, T, F) BERTH_LIBRARY(asin, S, T, F) BERTH_LIBRARY(acos, S, T, F) BERTH_LIBRARY(atan, S, T, F) \\\n"
    "BERTH_LIBRARY(sinh, S, T, F) BERTH_LIBRARY(cosh, S, T, F) BERTH_LIBRARY(asinh, S, T, F) BERTH_LIBRARY(acosh, S, T, F) \\\n"
    "BERTH_LIBRARY(atanh, S, T, F)\n"
    "#define BERTH_FLOAT(S, T, F) \\\n"
    "BERTH_FN T berth_min_##S(T a, T b) { T m = a < b ? a : b; return a != a ? a : m; } \\\n"
    "BERTH_FN T berth_max_##S(T a, T b) { T m = a > b ? a : b; return a != a ? a : m; } \\\n"
    "BERTH_FN T berth_min_const_##S(T a, T c) { return c < a ? c : a; } \\\n"
    "BERTH_FN T berth_max_const_##S(T a, T c) { return c > a ? c : a; } \\\n"
    "BERTH_FN T berth_abs_##S(T a) { return __builtin_fabs##F(a); } \\\n"
    "BERTH_FN T berth_sign_##S(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; } \\\n"
    "BERTH_FN T berth_floor_##S(T a) { return __builtin_floor##F(a); } \\\n"
    "BERTH_FN T berth_ceil_##S(T a) { return __builtin_ceil##F(a); } \\\n"
    "BERTH_FN T berth_round_##S(T a) { return __builtin_rint##F(a); } \\\n"
    "BERTH_FN T berth_trunc_##S(T a) { return __builtin_trunc##F(a); } \\\n"
    "BERTH_FN T berth_sqrt_##S(T a) { return __builtin_sqrt##F(a); } \\\n"
    "BERTH_FN T berth_rsqrt_##S(T a) { return (T)1 / __builtin_sqrt##F(a); } \\\n"
    "BERTH_FN T berth_pow_##S(T a, T b) { return __builtin_pow##F(a, b); } \\\n"
    "BERTH_FN T berth_mod_##S(T a, T b) { return __builtin_fmod##F(a, b); } \\\n"
    "BERTH_FN T berth_atan2_##S(T a, T b) { return __builtin_atan2##F(a, b); } \\\n"
    "BERTH_FN int berth_is_nan_##S(T a) { return a != a; } \\\n"
    "BERTH_FN int berth_is_inf_##S(T a) { return __builtin_fabs##F(a) == (T)BERTH_INF_F32; }\n"
    "BERTH_FLOAT(f32, float, f)\n"
    "#ifndef BERTH_OWN_CIRCLE\n"
    "BERTH_CIRCLE(f32, float, f)\n"
    "BERTH_FN float berth_sin_f32(float a) { return __builtin_sinf(a); }\n"
    "BERTH_FN float berth_cos_f32(float a) { return __builtin_cosf(a); }\n"
    "#endif\n"
    "#ifdef BERTH_HAS_F64\n"
    "BERTH_FLOAT(f64, double, )\n"
    "BERTH_CIRCLE(f64, double, )\n"
    "#ifndef BERTH_OWN_F64\n"
    "BERTH_FN double berth_sin_f64(double a) { return __builtin_sin(a); }\n"
    "BERTH_FN double berth_cos_f64(double a) { return __builtin_cos(a); }\n"
    "#endif\n"
    "#endif\n";

static const char part4[] =
    "#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)\n"
    "BERTH_FN float berth_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }\n"
    "#else\n"
    "BERTH_FN float berth_fma_f32(float a, float b, float c) { return a * b + c; }\n"
    "#endif\n"
    "#ifdef BERTH_HAS_F64\n"
    "#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)\n"
    "BERTH_FN double berth_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }\n"
    "#else\n"
    "BERTH_FN double berth_fma_f64(double a, double b, double c) { return a * b + c; }\n"
    "#endif\n"
    "BERTH_FN double berth_erf_f64(double a) { return __builtin_erf(a); }\n"
    "#ifndef BERTH_OWN_F64\n"
    "BERTH_FN double berth_exp_f64(double a) { return __builtin_exp(a); }\n"
    "BERTH_FN double berth_log_f64(double a) { return __builtin_log(a); }\n"
    "BERTH_FN double berth_tanh_f64(double a) { return __builtin_tanh(a); }\n"
    "BERTH_FN double berth_sigmoid_f64(double a) { return 1.0 / (1.0 + __builtin_exp(-a)); }\n"
    "#endif\n"
    "#endif\n"
    "BERTH_FN float berth_f16_to_f32(uint16_t h) {\n"
    "    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;\n"
    "    float small = (float)(h & 0x7fffu) * 0x1p-24f;\n"
    "    uint32_t bits = (h & 0x7c00u) == 0x7c00u ? rest | 0x7f800000u : rest + 0x38000000u;\n"
    "    if ((h & 0x7c00u) == 0) bits = berth_bits_of_float(small);\n"
    "    return berth_float_of_bits(sign | bits); }\n"
    "BERTH_FN uint16_t berth_f32_to_f16(float x) {\n"
    "    uint32_t bits = berth_bits_of_float(x), sign = bits >> 16 & 0x8000u;\n"
    "    bits &= 0x7fffffffu;\n"
    "    uint32_t huge = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
    "    uint32_t small = berth_bits_of_float(berth_float_of_bits(bits) + 0.5f) - 0x3f000000u;\n"
    "    uint32_t usual = (bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13;\n"
    "    uint32_t most = bits < 0x38800000u ? small : usual;\n"
    "    return (uint16_t)(sign | (bits >= 0x477ff000u ? huge : most)); }\n"
    "BERTH_FN float berth_bf16_to_f32(uint16_t h) { return berth_float_of_bits((uint32_t)h << 16); }\n"
    "BERTH_FN uint16_t berth_f32_to_bf16(float x) {\n"
    "    uint32_t bits = berth_bits_of_float(x);\n"
    "    uint32_t usual = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;\n"
    "    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : usual); }\n"
    "BERTH_FN int32_t berth_near_f32(float x) {\n"
    "    return (int32_t)(berth_bits_of_float(x + 12582912.0f) - 0x4b400000u); }\n"
    "/* round(x) + z, saturated, for z that the type holds: in its bounds, adding 1.5 * 2^23 rounds (Cody and Waite)\n"
    "   and leaves the number in the low bits. NaN gives 0, in unsigned types by way of the lower bound. */\n"
    "#define BERTH_NEAREST(S, T, LOW, HIGH) \\\n"
    "BERTH_FN T berth_nearest_##S##_f32(float x, int z) { \\\n"
    "    float low = (float)(LOW - z), high = (float)(HIGH - z); \\\n"
    "    if (LOW < 0) x = x != x ? (float)-z : x; \\\n"
    "    x = x > low ? x : low; \\\n"
    "    x = x < high ? x : high; \\\n"
    "    return (T)(berth_bits_of_float(x + 12582912.0f) + (uint32_t)z); }\n"
    "BERTH_NEAREST(i8, int8_t, -128, 127) BERTH_NEAREST(u8, uint8_t, 0, 255)\n"
    "BERTH_NEAREST(i16, int16_t, -32768, 32767) BERTH_NEAREST(u16, uint16_t, 0, 65535)\n"
    "BERTH_FN float berth_round_f16(float x) { return berth_f16_to_f32(berth_f32_to_f16(x)); }\n"
    "BERTH_FN float berth_round_bf16(float x) { return berth_bf16_to_f32(berth_f32_to_bf16(x)); }\n";

static const char part5[] =
    "/* e^x = 2^n e^r, |r| <= ln 2 / 2, n by adding 1.5 * 2^23 (Cody and Waite's reduction); minimax polynomial of e^r. */\n"
    "BERTH_FN float berth_exp_f32(float x) {\n"
    "    float t = x < -104.0f ? -104.0f : x;\n"
    "    t = t > 89.0f ? 89.0f : t;\n"
    "    float shifted = t * 1.44269504f + 12582912.0f;\n"
    "    float n = shifted - 12582912.0f;\n"
    "    float r = (t - n * 0.693145752f) - n * 1.42860677e-6f;\n"
    "    float p = 1.394121796e-3f;\n"
    "    p = p * r + 8.363235072e-3f;\n"
    "    p = p * r + 4.166637408e-2f;\n"
    "    p = p * r + 1.666657665e-1f;\n"
    "    p = p * r + 5.000000027e-1f;\n"
    "    p = p * (r * r) + r + 1.0f;\n"
    "    uint32_t k = berth_bits_of_float(shifted) - 0x4b400000u;\n"
    "    uint32_t lower = (uint32_t)((int32_t)k >> 1);\n"
    "    float a = berth_float_of_bits((lower + 127u) << 23);\n"
    "    float b = berth_float_of_bits((k - lower + 127u) << 23);\n"
    "    return p * a * b; }\n"
    "/* log x = n ln 2 + log(1 + m), 1 + m in [sqrt(1/2), sqrt(2)); minimax polynomial. */\n"
    "BERTH_FN float berth_log_f32(float x) {\n"
    "    int tiny = x < 1.17549435e-38f;\n"
    "    float scaled = tiny ? x * 8388608.0f : x;\n"
    "    uint32_t bits = berth_bits_of_float(scaled) - 0x3f3504f3u;\n"
    "    float n = (float)((int32_t)bits >> 23) - (tiny ? 23.0f : 0.0f);\n"
    "    float m = berth_float_of_bits((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;\n"
    "    float p = -7.859611511e-2f;\n"
    "    p = p * m + 1.288164749e-1f;\n"
    "    p = p * m - 1.312875480e-1f;\n"
    "    p = p * m + 1.418119194e-1f;\n"
    "    p = p * m - 1.662455404e-1f;\n"
    "    p = p * m + 2.000228627e-1f;\n"
    "    p = p * m - 2.500081041e-1f;\n"
    "    p = p * m + 3.333331673e-1f;\n"
    "    float s = m * m;\n"
    "    float y = n * 1.42860677e-6f + (m * s * p - 0.5f * s);\n"
    "    y = n * 0.693145752f + (m + y);\n"
    "    y = x == 0.0f ? -BERTH_INF_F32 : y;\n"
    "    y = x < 0.0f ? BERTH_NAN_F32 : y;\n"
    "    return ((x == BERTH_INF_F32) | (x != x)) ? x : y; }\n"
    "/* e^x - 1 = 2^n (e^r - 1) + 2^n - 1 for |x| <= 88, which keeps the digits of a small x. */\n"
    "BERTH_FN float berth_grown_f32(float x) {\n"
    "    float shifted = x * 1.44269504f + 12582912.0f;\n"
    "    float n = shifted - 12582912.0f;\n"
    "    float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;\n"
    "    float p = 1.394121796e-3f;\n"
    "    p = p * r + 8.363235072e-3f;\n"
    "    p = p * r + 4.166637408e-2f;\n"
    "    p = p * r + 1.666657665e-1f;\n"
    "    p = p * r + 5.000000027e-1f;\n"
    "    p = p * (r * r) + r;\n"
    "    float scale = berth_float_of_bits((berth_bits_of_float(shifted) - 0x4b400000u + 127u) << 23);\n"
    "    return p * scale + (scale - 1.0f); }\n"
    "/* e / (e + 2), e = e^2x - 1. */\n"
    "BERTH_FN float berth_tanh_f32(float x) {\n"
    "    float t = x < -9.1f ? -9.1f : x;\n"
    "    t = t > 9.1f ? 9.1f : t;\n"
    "    float e = berth_grown_f32(t + t);\n"
    "    return e / (e + 2.0f); }\n"
    "BERTH_FN float berth_sigmoid_f32(float x) { return 1.0f / (1.0f + berth_exp_f32(-x)); }\n"
    "/* erf x = x + x P(x^2) near 0; 1 - exp(x Q(x)) beyond, with Q fitted to log(erfc(x)) / x. */\n"
    "BERTH_FN float berth_erf_f32(float x) {\n"
    "    float s = x * x;\n"
    "    float p = 8.215426495e-5f;\n"
    "    p = p * s - 8.105965872e-4f;\n"
    "    p = p * s + 5.197797243e-3f;\n"
    "    p = p * s - 2.685810432e-2f;\n"
    "    p = p * s + 1.128367255e-1f;\n"
    "    p = p * s - 3.761263229e-1f;\n"
    "    p = p * s + 1.283791665e-1f;\n"
    "    float small = x * p + x;\n"
    "    float a = __builtin_fabsf(x);\n"
    "    float t = a > 4.0f ? 4.0f : a;\n"
    "    float q = -5.150814379e-6f;\n"
    "    q = q * t + 4.820153684e-5f;\n"
    "    q = q * t + 3.606780242e-5f;\n"
    "    q = q * t - 2.892308071e-3f;\n"
    "    q = q * t + 2.261201999e-2f;\n"
    "    q = q * t - 1.052029205e-1f;\n"
    "    q = q * t - 6.356565195e-1f;\n"
    "    q = q * t - 1.128544901f;\n"
    "    float big = __builtin_copysignf(1.0f - berth_exp_f32(t * q), x);\n"
    "    float y = a < 0.9375f ? small : big;\n"
    "    return x != x ? x : y; }\n";

// Sine and cosine.
static const char part_turn[] =
    "/* x = k pi/2 + r, |r| <= pi/4, in f64 with pi/2 in two parts of which the first has 25 bits (Cody and Waite): exact\n"
    "   enough for |x| < 2^28; beyond, the library. turn: 0 = sine, 1 = cosine. Minimax polynomials in r^2. */\n"
    "#define BERTH_IS_NEAR(x) (__builtin_fabsf(x) < 268435456.0f)\n"
    "BERTH_FN float berth_turn_f32(float x, int32_t turn) {\n"
    "    double shifted = (double)x * 0.63661977236758134 + 6755399441055744.0;\n"
    "    double k = shifted - 6755399441055744.0;\n"
    "    float r = (float)(((double)x - k * 1.57079631090164184570) - k * 1.58932547735281966916e-8);\n"
    "    int32_t q = (int32_t)(k < 4e8 && k > -4e8 ? k : 0.0) + turn;\n"
    "    float s = r * r;\n"
    "    float sine = (-1.951528282e-4f * s + 8.332160302e-3f) * s - 1.666665524e-1f;\n"
    "    sine = sine * s * r + r;\n"
    "    float cosine = (2.443316407e-5f * s - 1.388731645e-3f) * s + 4.166664556e-2f;\n"
    "    cosine = cosine * s * s - 0.5f * s + 1.0f;\n"
    "    uint32_t bits = berth_bits_of_float(q & 1 ? cosine : sine);\n"
    "    return berth_float_of_bits(bits ^ ((uint32_t)q & 2u) << 30); }\n"
    "BERTH_FN float berth_near_sin_f32(float x) { return berth_turn_f32(x, 0); }\n"
    "BERTH_FN float berth_near_cos_f32(float x) { return berth_turn_f32(x, 1); }\n"
    "#define BERTH_TURN_ONE(OP) \\\n"
    "BERTH_FN float berth_##OP##_f32(float x) { return BERTH_IS_NEAR(x) ? berth_near_##OP##_f32(x) : __builtin_##OP##f(x); }\n"
    "BERTH_TURN_ONE(sin) BERTH_TURN_ONE(cos)\n"
    "#define BERTH_TURN(OP, N) \\\n"
    "BERTH_FN berth_f32x##N berth_##OP##_f32x##N(berth_f32x##N x) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = x}, w; \\\n"
    "    int far = 0; \\\n"
    "    for (int i = 0; i < N; ++i) w.at[i] = berth_near_##OP##_f32(u.at[i]); \\\n"
    "    for (int i = 0; i < N; ++i) far |= !BERTH_IS_NEAR(u.at[i]); \\\n"
    "    if (__builtin_expect(far, 0)) \\\n"
    "        for (int i = 0; i < N; ++i) w.at[i] = BERTH_IS_NEAR(u.at[i]) ? w.at[i] : __builtin_##OP##f(u.at[i]); \\\n"
    "    return w.v; }\n";

// clang-format on

void berth_c_preamble_bits(berth_strbuf *out) {
    berth_strbuf_add(out, part_bits);
}

void berth_c_preamble_shared(berth_strbuf *out) {
    const char *const parts[] = {berth_c_preamble_integers, berth_c_preamble_casts, part3, part4,
                                 part5};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) berth_strbuf_add(out, parts[i]);
}

static void add_library(const int *lanes, uint32_t count, berth_strbuf *out) {
    berth_c_preamble_bits(out);
    berth_c_preamble_shared(out);
    const char *const parts[] = {berth_c_preamble_f64, berth_c_preamble_turn_f64, part_turn,
                                 berth_c_preamble_circle, berth_c_preamble_hyperbola};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) berth_strbuf_add(out, parts[i]);
    berth_c_preamble_vectors(lanes, count, out);
    berth_strbuf_add(out, berth_c_preamble_moves);
    berth_strbuf_add(out, berth_c_preamble_rows);
    berth_strbuf_add(out, berth_c_preamble_narrow);
    berth_strbuf_add(out, berth_c_preamble_lookup);
}

// The numbers of lanes in the names that code has ("berth_f32x16"), ascending.
static uint32_t find_lanes(const char *code, int *out_lanes) {
    uint64_t seen = 0;
    uint32_t count = 0;
    for (const char *at = code; *at;) {
        size_t length = berth_c_word_length(at);
        bool is_ours = length && strncmp(at, "berth_", strlen("berth_")) == 0;
        for (size_t i = 1; is_ours && i + 1 < length; ++i) {
            long lanes = at[i] == 'x' ? strtol(at + i + 1, NULL, 10) : 0;
            for (int k = 1; k < MAX_LANES_LOG2; ++k) seen |= (uint64_t)(lanes == 1L << k) << k;
        }
        at += length ? length : 1;
    }
    for (int k = 1; k < MAX_LANES_LOG2; ++k)
        if (seen >> k & 1) out_lanes[count++] = 1 << k;
    return count;
}

const char *berth_c_complete(const char *code, berth_arena *arena) {
    static const char *const known[] = {"BERTH_HAS_F64", "BERTH_OWN_CIRCLE", "BERTH_OWN_F64",
                                        "BERTH_FLOAT_DIVISION", NULL};
    berth_arena *scratch = berth_arena_create_child(arena);
    int lanes[MAX_LANES_LOG2];
    berth_strbuf library = berth_strbuf_make(scratch), out = berth_strbuf_make(arena);
    add_library(lanes, find_lanes(code, lanes), &library);
    berth_c_helpers *helpers = berth_c_helpers_read(berth_strbuf_text(&library), known, scratch);
    berth_c_helpers_use(helpers, code);
    berth_strbuf_add(&out, head);
    berth_c_helpers_add(helpers, "\n", NULL, &out);
    berth_strbuf_add(&out, code);
    berth_arena_destroy(scratch);
    return berth_strbuf_text(&out);
}

berth_hash128 berth_c_library_hash(berth_arena *arena) {
    static const int lanes[] = {2, 4, 8, 16, 32, 64};
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, head);
    add_library(lanes, sizeof(lanes) / sizeof(lanes[0]), &text);
    return berth_hash128_of(text.data, text.length);
}
