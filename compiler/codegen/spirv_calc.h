// Arithmetic of one type of float while a helper function is written (private to the SPIR-V
// generator): short names, so that formulas can be read.
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_CALC_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_CALC_H_

#include "compiler/codegen/spirv_builder.h"
#include "ir/tensor/function.h"

typedef struct spirv_calc {
    berth_spirv *m;
    berth_spirv_type type;  // F16, F32 or F64
    berth_spirv_type bits;  // the integer of its size
} spirv_calc;

static inline spirv_calc spirv_calc_of(berth_spirv *m, berth_spirv_type type) {
    berth_spirv_type bits = type == SPIRV_TYPE_F64   ? SPIRV_TYPE_U64
                            : type == SPIRV_TYPE_F16 ? SPIRV_TYPE_U16
                                                     : SPIRV_TYPE_U32;
    return (spirv_calc){m, type, bits};
}

#define FLOAT_OP(name, op)                                                                         \
    static inline uint32_t name(spirv_calc *c, uint32_t a, uint32_t b) {                           \
        return berth_spirv_binary(c->m, SPIRV_##op, c->type, a, b);                                \
    }
FLOAT_OP(add, FAdd)
FLOAT_OP(sub, FSub)
FLOAT_OP(mul, FMul)
FLOAT_OP(div_by, FDiv)
#undef FLOAT_OP
#define TEST_OP(name, op)                                                                          \
    static inline uint32_t name(spirv_calc *c, uint32_t a, uint32_t b) {                           \
        return berth_spirv_binary(c->m, SPIRV_##op, SPIRV_TYPE_BOOL, a, b);                        \
    }
TEST_OP(less, FOrdLessThan)
TEST_OP(equal, FOrdEqual)
TEST_OP(either, LogicalOr)
TEST_OP(both_of, LogicalAnd)
#undef TEST_OP

static inline uint32_t number(spirv_calc *c, double x) {
    return berth_spirv_float(c->m, c->type, x);
}
static inline uint32_t choose(spirv_calc *c, uint32_t condition, uint32_t a, uint32_t b) {
    return berth_spirv_select(c->m, c->type, condition, a, b);
}
static inline uint32_t negate(spirv_calc *c, uint32_t a) {
    return berth_spirv_unary(c->m, SPIRV_FNegate, c->type, a);
}
static inline uint32_t magnitude(spirv_calc *c, uint32_t a) {
    return berth_spirv_glsl(c->m, SPIRV_GLSL_FABS, c->type, &a, 1);
}
static inline uint32_t root(spirv_calc *c, uint32_t a) {
    return berth_spirv_glsl(c->m, SPIRV_GLSL_SQRT, c->type, &a, 1);
}
static inline uint32_t round_even(spirv_calc *c, uint32_t a) {
    return berth_spirv_glsl(c->m, SPIRV_GLSL_ROUND_EVEN, c->type, &a, 1);
}
static inline uint32_t as_bits(spirv_calc *c, uint32_t a) {
    return berth_spirv_unary(c->m, SPIRV_Bitcast, c->bits, a);
}
static inline uint32_t as_float(spirv_calc *c, uint32_t a) {
    return berth_spirv_unary(c->m, SPIRV_Bitcast, c->type, a);
}
static inline uint32_t bits_of(spirv_calc *c, uint64_t value) {
    return berth_spirv_int(c->m, c->bits, value);
}
static inline uint32_t bits_op(spirv_calc *c, berth_spirv_opcode op, uint32_t a, uint32_t b) {
    return berth_spirv_binary(c->m, op, c->bits, a, b);
}
static inline uint64_t spirv_sign_mask(const spirv_calc *c) {
    if (c->type == SPIRV_TYPE_F16) return 0x8000;
    return c->type == SPIRV_TYPE_F64 ? 0x8000000000000000u : 0x80000000u;
}
static inline uint32_t is_nan(spirv_calc *c, uint32_t x) {
    uint64_t infinity = c->type == SPIRV_TYPE_F64   ? 0x7ff0000000000000u
                        : c->type == SPIRV_TYPE_F16 ? 0x7c00
                                                    : 0x7f800000u;
    uint32_t bits = bits_op(c, SPIRV_BitwiseAnd, as_bits(c, x), bits_of(c, spirv_sign_mask(c) - 1));
    return berth_spirv_binary(c->m, SPIRV_UGreaterThan, SPIRV_TYPE_BOOL, bits,
                              bits_of(c, infinity));
}
// |a| with the sign of x.
static inline uint32_t with_sign(spirv_calc *c, uint32_t a, uint32_t x) {
    uint64_t mask = spirv_sign_mask(c);
    uint32_t sign = bits_op(c, SPIRV_BitwiseAnd, as_bits(c, x), bits_of(c, mask));
    uint32_t rest = bits_op(c, SPIRV_BitwiseAnd, as_bits(c, a), bits_of(c, mask - 1));
    return as_float(c, bits_op(c, SPIRV_BitwiseOr, sign, rest));
}
static inline uint32_t at_least(spirv_calc *c, uint32_t a, double bound) {
    return choose(c, less(c, a, number(c, bound)), number(c, bound), a);
}
static inline uint32_t at_most(spirv_calc *c, uint32_t a, double bound) {
    return choose(c, less(c, number(c, bound), a), number(c, bound), a);
}
// Horner's rule, the highest coefficient first.
static inline uint32_t polynomial(spirv_calc *c, uint32_t x, const double *coefficients,
                                  int count) {
    uint32_t p = number(c, coefficients[0]);
    for (int i = 1; i < count; ++i) p = add(c, mul(c, p, x), number(c, coefficients[i]));
    return p;
}

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_CALC_H_
