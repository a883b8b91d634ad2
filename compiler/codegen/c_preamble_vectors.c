// Vectors of the C printer: types of every number of lanes, and their functions. Those that some registers have an
// instruction for begin with it.
#include <string.h>

#include "compiler/codegen/c_preamble.h"

// clang-format off
// Functions of vectors that some registers have an instruction for: text with the #if in front of it, for vectors of that
// many lanes; what follows it there, behind #else, and for all others is the macro's.
typedef struct special {
    const char *macro;
    int lanes;
    const char *text;
} special;

#define BERTH_PAIR(N, LOWER, UPPER) \
    "BERTH_FN berth_f32x" N " berth_lower_f32x" N "(berth_f32x" N " a, berth_f32x" N " b) { return " LOWER "; }\n" \
    "BERTH_FN berth_f32x" N " berth_upper_f32x" N "(berth_f32x" N " a, berth_f32x" N " b) { return " UPPER "; }\n"
#define BERTH_WITH_NAN(N, MIN, MAX) \
    "BERTH_FN berth_f32x" N " berth_min_f32x" N "(berth_f32x" N " a, berth_f32x" N " b) { return " MIN "; }\n" \
    "BERTH_FN berth_f32x" N " berth_max_f32x" N "(berth_f32x" N " a, berth_f32x" N " b) { return " MAX "; }\n"
#define BERTH_BLEND(OP) "__builtin_ia32_blendvps256(__builtin_ia32_" OP "ps256(a, b), a, (berth_f32x8)(a != a))"
#define BERTH_MASKED(OP) \
    "__builtin_ia32_" OP "ps512_mask(a, b, a, (uint16_t)__builtin_ia32_cmpps512_mask(a, a, 7, (uint16_t)-1, 4), 4)"

static const special specials[] = {
    {"BERTH_EXTREMES", 4, "#if defined(__SSE__)\n"
     BERTH_PAIR("4", "__builtin_ia32_minps(a, b)", "__builtin_ia32_maxps(a, b)")},
    {"BERTH_EXTREMES", 8, "#if defined(__AVX__)\n"
     BERTH_PAIR("8", "__builtin_ia32_minps256(a, b)", "__builtin_ia32_maxps256(a, b)")},
    {"BERTH_EXTREMES", 16, "#if defined(__AVX512F__) && defined(__clang__)\n"
     BERTH_PAIR("16", "__builtin_ia32_minps512(a, b, 4)", "__builtin_ia32_maxps512(a, b, 4)")
     "#elif defined(__AVX512F__)\n"
     BERTH_PAIR("16", "__builtin_ia32_minps512_mask(a, b, a, (uint16_t)-1, 4)",
                "__builtin_ia32_maxps512_mask(a, b, a, (uint16_t)-1, 4)")},
    {"BERTH_NAN_EXTREMES", 8, "#if defined(__AVX__)\n"
     BERTH_WITH_NAN("8", BERTH_BLEND("min"), BERTH_BLEND("max"))},
    {"BERTH_NAN_EXTREMES", 16, "#if defined(__AVX512F__) && !defined(__clang__)\n"
     BERTH_WITH_NAN("16", BERTH_MASKED("min"), BERTH_MASKED("max"))},
    {"BERTH_F16", 16,
     "#if defined(__AVX512F__)\n"
     "typedef int16_t berth_halves __attribute__((vector_size(32)));\n"
     "typedef int16_t berth_halves_u __attribute__((vector_size(32), aligned(2), may_alias));\n"
     "BERTH_FN berth_f32x16 berth_of_halves(berth_halves h) {\n"
     "    return __builtin_ia32_vcvtph2ps512_mask(h, (berth_f32x16){0}, (uint16_t)-1, 4); }\n"
     "BERTH_FN berth_halves berth_to_halves(berth_f32x16 x) {\n"
     "    return (berth_halves)__builtin_ia32_vcvtps2ph512_mask(x, 0, (berth_halves){0}, (uint16_t)-1); }\n"
     "BERTH_FN berth_f32x16 berth_load_f16x16(const uint16_t *from) {\n"
     "    return berth_of_halves(*(const berth_halves_u *)from); }\n"
     "BERTH_FN void berth_store_f16x16(uint16_t *to, berth_f32x16 x) {\n"
     "    *(berth_halves_u *)to = berth_to_halves(x); }\n"
     "BERTH_FN berth_f32x16 berth_round_f16_f32x16(berth_f32x16 x) { return berth_of_halves(berth_to_halves(x)); }\n"},
    {"BERTH_F16", 8,
     "#if defined(__F16C__)\n"
     "typedef int16_t berth_halves8 __attribute__((vector_size(16)));\n"
     "typedef int16_t berth_halves8_u __attribute__((vector_size(16), aligned(2), may_alias));\n"
     "BERTH_FN berth_f32x8 berth_load_f16x8(const uint16_t *from) {\n"
     "    return __builtin_ia32_vcvtph2ps256(*(const berth_halves8_u *)from); }\n"
     "BERTH_FN void berth_store_f16x8(uint16_t *to, berth_f32x8 x) {\n"
     "    *(berth_halves8_u *)to = (berth_halves8)__builtin_ia32_vcvtps2ph256(x, 0); }\n"
     "BERTH_FN berth_f32x8 berth_round_f16_f32x8(berth_f32x8 x) {\n"
     "    return __builtin_ia32_vcvtph2ps256((berth_halves8)__builtin_ia32_vcvtps2ph256(x, 0)); }\n"},
    {"BERTH_F16", 4,
     "#if defined(__F16C__)\n"
     "typedef int16_t berth_halves4 __attribute__((vector_size(16)));\n"
     "BERTH_FN berth_f32x4 berth_load_f16x4(const uint16_t *from) {\n"
     "    berth_halves4 h = {0};\n"
     "    __builtin_memcpy(&h, from, 8);\n"
     "    return __builtin_ia32_vcvtph2ps(h); }\n"
     "BERTH_FN void berth_store_f16x4(uint16_t *to, berth_f32x4 x) {\n"
     "    const berth_halves4 h = (berth_halves4)__builtin_ia32_vcvtps2ph(x, 0);\n"
     "    __builtin_memcpy(to, &h, 8); }\n"
     "BERTH_FN berth_f32x4 berth_round_f16_f32x4(berth_f32x4 x) {\n"
     "    return __builtin_ia32_vcvtph2ps((berth_halves4)__builtin_ia32_vcvtps2ph(x, 0)); }\n"},
    {"BERTH_EXP_PARTS", 16,
     "#if defined(__AVX512F__)\n"
     "/* VSCALEFPS multiplies by 2^n, gradual underflow included; a reciprocal by one step of Newton's. */\n"
     "BERTH_FN berth_f32x16 berth_split_f32x16(berth_f32x16 x) {\n"
     "    return __builtin_ia32_rndscaleps_mask(x * 1.44269504f, 8, x, (uint16_t)-1, 4); }\n"
     "BERTH_FN berth_f32x16 berth_scale_f32x16(berth_f32x16 p, berth_f32x16 n) {\n"
     "    return __builtin_ia32_scalefps512_mask(p, n, p, (uint16_t)-1, 4); }\n"
     "BERTH_FN berth_f32x16 berth_power_f32x16(berth_f32x16 n) {\n"
     "    return berth_scale_f32x16((berth_f32x16){0} + 1.0f, n); }\n"
     "BERTH_FN berth_f32x16 berth_over_f32x16(berth_f32x16 a, berth_f32x16 b) {\n"
     "    berth_f32x16 q = __builtin_ia32_rcp14ps512_mask(b, b, (uint16_t)-1);\n"
     "    return a * (q + q * (1.0f - b * q)); }\n"},
};

static const char part_vectors[] =
    "#define BERTH_VECTORS(N) \\\n"
    "typedef float berth_f32x##N __attribute__((vector_size(4 * N))); \\\n"
    "typedef int32_t berth_i32x##N __attribute__((vector_size(4 * N))); \\\n"
    "typedef float berth_f32x##N##_u __attribute__((vector_size(4 * N), aligned(4), may_alias)); \\\n"
    "typedef int32_t berth_i32x##N##_u __attribute__((vector_size(4 * N), aligned(4), may_alias)); \\\n"
    "BERTH_FN berth_f32x##N berth_select_f32x##N(berth_i32x##N m, berth_f32x##N a, berth_f32x##N b) { \\\n"
    "    return (berth_f32x##N)((m & (berth_i32x##N)a) | (~m & (berth_i32x##N)b)); } \\\n"
    "BERTH_FN berth_i32x##N berth_select_i32x##N(berth_i32x##N m, berth_i32x##N a, berth_i32x##N b) { \\\n"
    "    return (m & a) | (~m & b); }\n"
    "#define BERTH_EXTREMES(N) \\\n"
    "BERTH_FN berth_f32x##N berth_lower_f32x##N(berth_f32x##N a, berth_f32x##N b) { return berth_select_f32x##N(a < b, a, b); } \\\n"
    "BERTH_FN berth_f32x##N berth_upper_f32x##N(berth_f32x##N a, berth_f32x##N b) { return berth_select_f32x##N(a > b, a, b); }\n"
    "/* The extreme of two, NaN if one is: the instructions give the second operand then. */\n"
    "#define BERTH_NAN_EXTREMES(N) \\\n"
    "BERTH_FN berth_f32x##N berth_min_f32x##N(berth_f32x##N a, berth_f32x##N b) { \\\n"
    "    return berth_select_f32x##N(a != a, a, berth_lower_f32x##N(a, b)); } \\\n"
    "BERTH_FN berth_f32x##N berth_max_f32x##N(berth_f32x##N a, berth_f32x##N b) { \\\n"
    "    return berth_select_f32x##N(a != a, a, berth_upper_f32x##N(a, b)); }\n"
    "#define BERTH_EACH(OP, N) \\\n"
    "BERTH_FN berth_f32x##N berth_##OP##_f32x##N(berth_f32x##N x) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = x}; \\\n"
    "    for (int i = 0; i < N; ++i) u.at[i] = berth_##OP##_f32(u.at[i]); \\\n"
    "    return u.v; }\n"
    "#define BERTH_EACH2(OP, N) \\\n"
    "BERTH_FN berth_f32x##N berth_##OP##_f32x##N(berth_f32x##N x, berth_f32x##N y) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = x}, w = {.v = y}; \\\n"
    "    for (int i = 0; i < N; ++i) u.at[i] = berth_##OP##_f32(u.at[i], w.at[i]); \\\n"
    "    return u.v; }\n"
    "#define BERTH_HALF(H, N) \\\n"
    "BERTH_FN berth_f32x##N berth_load_##H##x##N(const uint16_t *from) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u; \\\n"
    "    for (int i = 0; i < N; ++i) u.at[i] = berth_##H##_to_f32(from[i]); \\\n"
    "    return u.v; } \\\n"
    "BERTH_FN void berth_store_##H##x##N(uint16_t *to, berth_f32x##N x) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = x}; \\\n"
    "    for (int i = 0; i < N; ++i) to[i] = berth_f32_to_##H(u.at[i]); } \\\n"
    "BERTH_FN berth_f32x##N berth_round_##H##_f32x##N(berth_f32x##N x) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = x}; \\\n"
    "    for (int i = 0; i < N; ++i) u.at[i] = berth_round_##H(u.at[i]); \\\n"
    "    return u.v; }\n"
    "#define BERTH_F16(N) BERTH_HALF(f16, N)\n";

static const char part_functions[] =
    "#define BERTH_VECTOR_FUNCTIONS(N) \\\n"
    "BERTH_FN berth_f32x##N berth_max_const_f32x##N(berth_f32x##N a, berth_f32x##N c) { return berth_upper_f32x##N(c, a); } \\\n"
    "BERTH_FN berth_f32x##N berth_min_const_f32x##N(berth_f32x##N a, berth_f32x##N c) { return berth_lower_f32x##N(c, a); } \\\n"
    "BERTH_FN berth_i32x##N berth_max_i32x##N(berth_i32x##N a, berth_i32x##N b) { \\\n"
    "    return berth_select_i32x##N(a > b, a, b); } \\\n"
    "BERTH_FN berth_i32x##N berth_min_i32x##N(berth_i32x##N a, berth_i32x##N b) { \\\n"
    "    return berth_select_i32x##N(a < b, a, b); } \\\n"
    "BERTH_FN berth_f32x##N berth_fma_f32x##N(berth_f32x##N a, berth_f32x##N b, berth_f32x##N c) { return a * b + c; } \\\n"
    "BERTH_FN berth_f32x##N berth_cast_f32_i32x##N(berth_i32x##N a) { return __builtin_convertvector(a, berth_f32x##N); } \\\n"
    "BERTH_FN berth_i32x##N berth_cast_i32_f32x##N(berth_f32x##N a) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = a}; \\\n"
    "    union { berth_i32x##N v; int32_t at[N]; } w; \\\n"
    "    for (int i = 0; i < N; ++i) w.at[i] = berth_cast_f32_i32(u.at[i]); \\\n"
    "    return w.v; } \\\n"
    "BERTH_FN float berth_reduce_add_f32x##N(berth_f32x##N a) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u = {.v = a}; \\\n"
    "    for (int w = N / 2; w > 0; w /= 2) \\\n"
    "        for (int i = 0; i < w; ++i) u.at[i] += u.at[i + w]; \\\n"
    "    return u.at[0]; } \\\n"
    "BERTH_FN int32_t berth_reduce_add_i32x##N(berth_i32x##N a) { \\\n"
    "    int32_t sum = 0; \\\n"
    "    for (int i = 0; i < N; ++i) sum += a[i]; \\\n"
    "    return sum; } \\\n"
    "BERTH_FN berth_i32x##N berth_is_nan_f32x##N(berth_f32x##N a) { return a != a; } \\\n"
    "BERTH_HALF(bf16, N) \\\n"
    "BERTH_EACH(abs, N) BERTH_EACH(sign, N) BERTH_EACH(floor, N) BERTH_EACH(ceil, N) BERTH_EACH(round, N) \\\n"
    "BERTH_EACH(trunc, N) BERTH_EACH(sqrt, N) BERTH_EACH(rsqrt, N) BERTH_EACH(log, N) \\\n"
    "BERTH_EACH(atan, N) BERTH_EACH(asin, N) BERTH_EACH(acos, N) BERTH_EACH(sinh, N) BERTH_EACH(cosh, N) \\\n"
    "BERTH_EACH(asinh, N) BERTH_EACH(acosh, N) BERTH_EACH(atanh, N) \\\n"
    "BERTH_EXP_AND(N) BERTH_TURN(sin, N) BERTH_TURN(cos, N) BERTH_TURN(tan, N) BERTH_EACH2(pow, N)\n";

// Integers of 8 and 16 bits: masks and casts go through vectors of i32. gcc takes conversions that
// change the size of elements by four apart; BERTH_FAST_<to>_<from>_<lanes> names what to use there.
static const char part_narrow_types[] =
    "#define BERTH_SECOND_(a, b, ...) b\n"
    "#define BERTH_SECOND(...) BERTH_SECOND_(__VA_ARGS__, ~)\n"
    "#define BERTH_PLAIN(T, a) __builtin_convertvector(a, T)\n"
    "#if defined(__x86_64__) && !defined(__clang__)\n"
    "typedef char berth_bytes __attribute__((vector_size(16)));\n"
    "typedef int64_t berth_words __attribute__((vector_size(16)));\n"
    "#define BERTH_LOW(a) ((berth_bytes)(berth_words){(int64_t)(a), 0})\n"
    "#if defined(__AVX2__)\n"
    "#define BERTH_FAST_i16_i8_16 ~, BERTH_SXBW\n"
    "#define BERTH_FAST_i16_u8_16 ~, BERTH_ZXBW\n"
    "#define BERTH_SXBW(T, a) (T)__builtin_ia32_pmovsxbw256((berth_bytes)(a))\n"
    "#define BERTH_ZXBW(T, a) (T)__builtin_ia32_pmovzxbw256((berth_bytes)(a))\n"
    "#define BERTH_FAST_i32_i8_8 ~, BERTH_SXBD_8\n"
    "#define BERTH_FAST_i32_u8_8 ~, BERTH_ZXBD_8\n"
    "#define BERTH_SXBD_8(T, a) (T)__builtin_ia32_pmovsxbd256(BERTH_LOW(a))\n"
    "#define BERTH_ZXBD_8(T, a) (T)__builtin_ia32_pmovzxbd256(BERTH_LOW(a))\n"
    "#define BERTH_FAST_i8_i32_8 ~, BERTH_DB_8\n"
    "#define BERTH_FAST_u8_i32_8 ~, BERTH_DB_8\n"
    "#define BERTH_DB_8(T, a) (T)berth_low_bytes_8((berth_ints)(a))\n"
    "typedef int32_t berth_ints __attribute__((vector_size(32)));\n"
    "BERTH_FN int64_t berth_low_bytes_8(berth_ints a) {\n"
    "    typedef char bytes __attribute__((vector_size(32)));\n"
    "    bytes first = {0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,\n"
    "                   0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};\n"
    "    berth_ints packed = (berth_ints)__builtin_ia32_pshufb256((bytes)a, first);\n"
    "    union { int32_t half[2]; int64_t whole; } u = {.half = {packed[0], packed[4]}};\n"
    "    return u.whole; }\n"
    "#endif\n"
    "#if defined(__AVX512F__)\n"
    "#define BERTH_FAST_i32_i8_16 ~, BERTH_SXBD_16\n"
    "#define BERTH_FAST_i32_u8_16 ~, BERTH_ZXBD_16\n"
    "#define BERTH_FAST_i32_i16_16 ~, BERTH_SXWD_16\n"
    "#define BERTH_FAST_i32_u16_16 ~, BERTH_ZXWD_16\n"
    "#define BERTH_FAST_i8_i32_16 ~, BERTH_DB_16\n"
    "#define BERTH_FAST_u8_i32_16 ~, BERTH_DB_16\n"
    "#define BERTH_FAST_i16_i32_16 ~, BERTH_DW_16\n"
    "#define BERTH_FAST_u16_i32_16 ~, BERTH_DW_16\n"
    "#define BERTH_DB_16(T, a) (T)__builtin_ia32_pmovdb512_mask(a, (berth_bytes){0}, (uint16_t)-1)\n"
    "#define BERTH_DW_16(T, a) (T)__builtin_ia32_pmovdw512_mask(a, (berth_i16x16){0}, (uint16_t)-1)\n"
    "#define BERTH_SXBD_16(T, a) (T)__builtin_ia32_pmovsxbd512_mask((berth_bytes)(a), (T){0}, (uint16_t)-1)\n"
    "#define BERTH_ZXBD_16(T, a) (T)__builtin_ia32_pmovzxbd512_mask((berth_bytes)(a), (T){0}, (uint16_t)-1)\n"
    "#define BERTH_SXWD_16(T, a) (T)__builtin_ia32_pmovsxwd512_mask((berth_i16x16)(a), (T){0}, (uint16_t)-1)\n"
    "#define BERTH_ZXWD_16(T, a) (T)__builtin_ia32_pmovzxwd512_mask((berth_i16x16)(a), (T){0}, (uint16_t)-1)\n"
    "#endif\n"
    "#endif\n"
    "#define BERTH_NARROW_TYPE(S, T, N) \\\n"
    "typedef T berth_##S##x##N __attribute__((vector_size(sizeof(T) * N))); \\\n"
    "typedef T berth_##S##x##N##_u __attribute__((vector_size(sizeof(T) * N), aligned(sizeof(T)), may_alias));\n"
    "#define BERTH_NARROW_TYPES(N) \\\n"
    "BERTH_NARROW_TYPE(i8, int8_t, N) BERTH_NARROW_TYPE(u8, uint8_t, N) \\\n"
    "BERTH_NARROW_TYPE(i16, int16_t, N) BERTH_NARROW_TYPE(u16, uint16_t, N)\n"
    "#define BERTH_NARROW_CAST(TO, FROM, N) \\\n"
    "BERTH_FN berth_##TO##x##N berth_cast_##TO##_##FROM##x##N(berth_##FROM##x##N a) { \\\n"
    "    return BERTH_SECOND(BERTH_FAST_##TO##_##FROM##_##N, BERTH_PLAIN)(berth_##TO##x##N, a); }\n";

static const char part_narrow[] =
    "#define BERTH_NARROW_ONE(S, M, LOW, HIGH, N) \\\n"
    "BERTH_FN berth_i32x##N berth_mask_##S##x##N(berth_##M##x##N m) { return berth_cast_i32_##M##x##N(m); } \\\n"
    "BERTH_FN berth_##S##x##N berth_choose_##S##x##N(berth_##M##x##N m, berth_##S##x##N a, berth_##S##x##N b) { \\\n"
    "    return (berth_##S##x##N)((m & (berth_##M##x##N)a) | (~m & (berth_##M##x##N)b)); } \\\n"
    "BERTH_FN berth_##S##x##N berth_select_##S##x##N(berth_i32x##N m, berth_##S##x##N a, berth_##S##x##N b) { \\\n"
    "    return berth_choose_##S##x##N(berth_cast_##M##_i32x##N(m), a, b); } \\\n"
    "BERTH_FN berth_##S##x##N berth_max_##S##x##N(berth_##S##x##N a, berth_##S##x##N b) { \\\n"
    "    return berth_choose_##S##x##N(a > b, a, b); } \\\n"
    "BERTH_FN berth_##S##x##N berth_min_##S##x##N(berth_##S##x##N a, berth_##S##x##N b) { \\\n"
    "    return berth_choose_##S##x##N(a < b, a, b); } \\\n"
    "BERTH_FN berth_f32x##N berth_cast_f32_##S##x##N(berth_##S##x##N a) { \\\n"
    "    return berth_cast_f32_i32x##N(berth_cast_i32_##S##x##N(a)); } \\\n"
    "BERTH_FN berth_##S##x##N berth_cast_##S##_f32x##N(berth_f32x##N a) { \\\n"
    "    a = berth_select_f32x##N(a == a, a, (berth_f32x##N){0}); \\\n"
    "    a = berth_lower_f32x##N(berth_upper_f32x##N(a, (berth_f32x##N){0} + LOW), (berth_f32x##N){0} + HIGH); \\\n"
    "    return berth_cast_##S##_i32x##N(__builtin_convertvector(a, berth_i32x##N)); } \\\n"
    "BERTH_FN berth_##S##x##N berth_nearest_##S##_f32x##N(berth_f32x##N a, int z) { \\\n"
    "    if (LOW < 0) a = berth_select_f32x##N(a == a, a, (berth_f32x##N){0} - (float)z); \\\n"
    "    a = berth_upper_f32x##N(a, (berth_f32x##N){0} + (LOW - (float)z)); \\\n"
    "    a = berth_lower_f32x##N(a, (berth_f32x##N){0} + (HIGH - (float)z)); \\\n"
    "    return berth_cast_##S##_i32x##N((berth_i32x##N)(a + 12582912.0f) + z); }\n"
    "#define BERTH_NARROW(N) \\\n"
    "BERTH_NARROW_CAST(i32, i8, N) BERTH_NARROW_CAST(i32, u8, N) \\\n"
    "BERTH_NARROW_CAST(i32, i16, N) BERTH_NARROW_CAST(i32, u16, N) \\\n"
    "BERTH_NARROW_CAST(i8, i32, N) BERTH_NARROW_CAST(u8, i32, N) \\\n"
    "BERTH_NARROW_CAST(i16, i32, N) BERTH_NARROW_CAST(u16, i32, N) \\\n"
    "BERTH_NARROW_ONE(i8, i8, -128.0f, 127.0f, N) BERTH_NARROW_ONE(u8, i8, 0.0f, 255.0f, N) \\\n"
    "BERTH_NARROW_ONE(i16, i16, -32768.0f, 32767.0f, N) BERTH_NARROW_ONE(u16, i16, 0.0f, 65535.0f, N) \\\n"
    "BERTH_NARROW_CAST(i8, u8, N) BERTH_NARROW_CAST(i8, i16, N) BERTH_NARROW_CAST(i8, u16, N) \\\n"
    "BERTH_NARROW_CAST(u8, i8, N) BERTH_NARROW_CAST(u8, i16, N) BERTH_NARROW_CAST(u8, u16, N) \\\n"
    "BERTH_NARROW_CAST(i16, i8, N) BERTH_NARROW_CAST(i16, u8, N) BERTH_NARROW_CAST(i16, u16, N) \\\n"
    "BERTH_NARROW_CAST(u16, i8, N) BERTH_NARROW_CAST(u16, u8, N) BERTH_NARROW_CAST(u16, i16, N)\n";

// clang-format on

// Instances of a macro, behind what special registers have instead.
static void add_instance(const char *macro, int lanes, berth_strbuf *out) {
    const char *text = NULL;
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]) && !text; ++i)
        if (specials[i].lanes == lanes && strcmp(specials[i].macro, macro) == 0)
            text = specials[i].text;
    if (text) berth_strbuf_addf(out, "%s#else\n", text);
    berth_strbuf_addf(out, "%s(%d)\n", macro, lanes);
    if (text) berth_strbuf_add(out, "#endif\n");
}

void berth_c_preamble_vectors(const int *lanes, uint32_t count, berth_strbuf *out) {
    static const char *const macros[] = {
        "BERTH_VECTORS",      "BERTH_EXTREMES",  "BERTH_NAN_EXTREMES",
        "BERTH_F16",          "BERTH_EXP_PARTS", "BERTH_VECTOR_FUNCTIONS",
        "BERTH_NARROW_TYPES", "BERTH_NARROW",    "BERTH_WIDE"};
    berth_strbuf_add(out, berth_c_preamble_exp);
    berth_strbuf_add(out, part_vectors);
    berth_strbuf_add(out, part_functions);
    berth_strbuf_add(out, part_narrow_types);
    berth_strbuf_add(out, part_narrow);
    for (size_t m = 0; m < sizeof(macros) / sizeof(macros[0]); ++m)
        for (uint32_t i = 0; i < count; ++i) add_instance(macros[m], lanes[i], out);
}
