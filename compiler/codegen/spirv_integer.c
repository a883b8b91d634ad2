// Integers, and the conversions between them, floats and halves. Integers of 8 and 16 bits are held
// in 32, extended as their type says.
#include <math.h>

#include "compiler/codegen/spirv_calc.h"
#include "compiler/codegen/spirv_math.h"

typedef uint32_t id;

typedef struct int_calc {
    berth_spirv *m;
    berth_spirv_type type;  // U32 or U64
    berth_dtype dtype;
    bool is_signed;
} int_calc;

static int_calc calc_of(berth_spirv *m, berth_dtype dtype) {
    bool wide = berth_dtype_size_bytes(dtype) == 8;
    return (int_calc){m, wide ? SPIRV_TYPE_U64 : SPIRV_TYPE_U32, dtype,
                      berth_dtype_is_signed(dtype)};
}

static id op2(const int_calc *c, berth_spirv_opcode op, id a, id b) {
    return berth_spirv_binary(c->m, op, c->type, a, b);
}
static id test(const int_calc *c, berth_spirv_opcode op, id a, id b) {
    return berth_spirv_binary(c->m, op, SPIRV_TYPE_BOOL, a, b);
}
static id constant(const int_calc *c, int64_t value) {
    return berth_spirv_int(c->m, c->type, (uint64_t)value);
}
static id choose_int(const int_calc *c, id condition, id a, id b) {
    return berth_spirv_select(c->m, c->type, condition, a, b);
}

uint32_t berth_spirv_wrap(berth_spirv *m, berth_dtype dtype, uint32_t a) {
    uint32_t bytes = (uint32_t)berth_dtype_size_bytes(dtype);
    if (bytes > 2 || dtype == BERTH_DTYPE_BOOL) return a;
    if (!berth_dtype_is_signed(dtype))
        return berth_spirv_binary(m, SPIRV_BitwiseAnd, SPIRV_TYPE_U32, a,
                                  berth_spirv_int(m, SPIRV_TYPE_U32, bytes == 1 ? 0xff : 0xffff));
    id shift = berth_spirv_int(m, SPIRV_TYPE_U32, 32 - 8 * bytes);
    a = berth_spirv_binary(m, SPIRV_ShiftLeftLogical, SPIRV_TYPE_U32, a, shift);
    return berth_spirv_binary(m, SPIRV_ShiftRightArithmetic, SPIRV_TYPE_U32, a, shift);
}

// What divides may not be 0, nor -1 under the least number.
static id divide(const int_calc *c, bool modulo, id a, id b) {
    id zero = constant(c, 0), one = constant(c, 1);
    id is_zero = test(c, SPIRV_IEqual, b, zero);
    if (!c->is_signed) {
        id q = op2(c, modulo ? SPIRV_UMod : SPIRV_UDiv, a, choose_int(c, is_zero, one, b));
        return choose_int(c, is_zero, zero, q);
    }
    id minus = test(c, SPIRV_IEqual, b, constant(c, -1));
    id safe = choose_int(
        c, berth_spirv_binary(c->m, SPIRV_LogicalOr, SPIRV_TYPE_BOOL, is_zero, minus), one, b);
    // The remainder from the quotient: OpSRem of negative numbers may be anything in Vulkan.
    id q = op2(c, SPIRV_SDiv, a, safe);
    if (modulo) {
        id r = op2(c, SPIRV_ISub, a, op2(c, SPIRV_IMul, q, safe));
        return choose_int(c, minus, zero, choose_int(c, is_zero, zero, r));
    }
    q = choose_int(c, minus, berth_spirv_unary(c->m, SPIRV_SNegate, c->type, a), q);
    return choose_int(c, is_zero, zero, q);
}

static id shift(const int_calc *c, bool left, id a, id b) {
    int64_t width = (int64_t)berth_dtype_size_bytes(c->dtype) * 8;
    id inside = test(c, SPIRV_ULessThan, b, constant(c, width));
    id safe = choose_int(c, inside, b, constant(c, left ? 0 : width - 1));
    if (left) return choose_int(c, inside, op2(c, SPIRV_ShiftLeftLogical, a, safe), constant(c, 0));
    if (c->is_signed) return op2(c, SPIRV_ShiftRightArithmetic, a, safe);
    return choose_int(c, inside, op2(c, SPIRV_ShiftRightLogical, a, safe), constant(c, 0));
}

// By squaring; a negative exponent leaves 1, -1 or 0.
static id power_body(const int_calc *c, id a, id b) {
    berth_spirv *m = c->m;
    id type = berth_spirv_type_id(m, c->type), one = constant(c, 1), zero = constant(c, 0);
    id result = berth_spirv_local(m, type), square = berth_spirv_local(m, type);
    berth_spirv_plain(m, SPIRV_Store, (id[]){result, one}, 2);
    berth_spirv_plain(m, SPIRV_Store, (id[]){square, a}, 2);
    int64_t width = c->type == SPIRV_TYPE_U64 ? 64 : 32;
    berth_spirv_loop loop = berth_spirv_open_loop(m, c->type, constant(c, width));
    id bit = op2(c, SPIRV_BitwiseAnd, op2(c, SPIRV_ShiftRightLogical, b, loop.counter), one);
    id r = berth_spirv_unary(m, SPIRV_Load, c->type, result);
    id s = berth_spirv_unary(m, SPIRV_Load, c->type, square);
    id set = test(c, SPIRV_INotEqual, bit, zero);
    id next = choose_int(c, set, op2(c, SPIRV_IMul, r, s), r);
    berth_spirv_plain(m, SPIRV_Store, (id[]){result, next}, 2);
    berth_spirv_plain(m, SPIRV_Store, (id[]){square, op2(c, SPIRV_IMul, s, s)}, 2);
    berth_spirv_close_loop(m, &loop);
    r = berth_spirv_unary(m, SPIRV_Load, c->type, result);
    if (!c->is_signed) return r;
    id odd = test(c, SPIRV_INotEqual, op2(c, SPIRV_BitwiseAnd, b, one), zero);
    id minus = constant(c, -1);
    id below = choose_int(c, test(c, SPIRV_IEqual, a, minus), choose_int(c, odd, minus, one), zero);
    below = choose_int(c, test(c, SPIRV_IEqual, a, one), one, below);
    return choose_int(c, test(c, SPIRV_SLessThan, b, zero), below, r);
}

static id power(const int_calc *c, id a, id b) {
    id function = 0, parameters[2] = {0, 0};
    berth_spirv_type types[2] = {c->type, c->type};
    const char *name =
        berth_arena_printf(berth_spirv_arena(c->m), "berth_pow_%s", berth_dtype_name(c->dtype));
    if (berth_spirv_open_function(c->m, name, c->type, types, 2, &function, parameters))
        berth_spirv_close_function(c->m, power_body(c, parameters[0], parameters[1]));
    return berth_spirv_call(c->m, function, c->type, (id[]){a, b}, 2);
}

uint32_t berth_spirv_int_binary(berth_spirv *m, berth_dtype dtype, berth_binary op, uint32_t a,
                                uint32_t b) {
    int_calc calc = calc_of(m, dtype), *c = &calc;
    id y = 0;
    switch (op) {
    case BERTH_BINARY_ADD: y = op2(c, SPIRV_IAdd, a, b); break;
    case BERTH_BINARY_SUB: y = op2(c, SPIRV_ISub, a, b); break;
    case BERTH_BINARY_MUL: y = op2(c, SPIRV_IMul, a, b); break;
    case BERTH_BINARY_DIV: y = divide(c, false, a, b); break;
    case BERTH_BINARY_MOD: y = divide(c, true, a, b); break;
    case BERTH_BINARY_BIT_AND: return op2(c, SPIRV_BitwiseAnd, a, b);
    case BERTH_BINARY_BIT_OR: return op2(c, SPIRV_BitwiseOr, a, b);
    case BERTH_BINARY_BIT_XOR: return op2(c, SPIRV_BitwiseXor, a, b);
    case BERTH_BINARY_SHL: y = shift(c, true, a, b); break;
    case BERTH_BINARY_SHR: return shift(c, false, a, b);
    case BERTH_BINARY_POW: y = power(c, a, b); break;
    case BERTH_BINARY_MIN:
    case BERTH_BINARY_MAX: {
        id below = test(c, c->is_signed ? SPIRV_SLessThan : SPIRV_ULessThan, a, b);
        return op == BERTH_BINARY_MIN ? choose_int(c, below, a, b) : choose_int(c, below, b, a);
    }
    default: return 0;
    }
    return berth_spirv_wrap(m, dtype, y);
}

uint32_t berth_spirv_int_unary(berth_spirv *m, berth_dtype dtype, berth_unary op, uint32_t a) {
    int_calc calc = calc_of(m, dtype), *c = &calc;
    id zero = constant(c, 0);
    switch (op) {
    case BERTH_UNARY_NEG:
        return berth_spirv_wrap(m, dtype, berth_spirv_unary(m, SPIRV_SNegate, c->type, a));
    case BERTH_UNARY_BIT_NOT:
        return berth_spirv_wrap(m, dtype, berth_spirv_unary(m, SPIRV_Not, c->type, a));
    case BERTH_UNARY_ABS: {
        if (!c->is_signed) return a;
        id negative = test(c, SPIRV_SLessThan, a, zero);
        id y = choose_int(c, negative, berth_spirv_unary(m, SPIRV_SNegate, c->type, a), a);
        return berth_spirv_wrap(m, dtype, y);
    }
    case BERTH_UNARY_SIGN: {
        id y = choose_int(c, test(c, SPIRV_IEqual, a, zero), zero, constant(c, 1));
        if (!c->is_signed) return y;
        return choose_int(c, test(c, SPIRV_SLessThan, a, zero), constant(c, -1), y);
    }
    case BERTH_UNARY_FLOOR:
    case BERTH_UNARY_CEIL:
    case BERTH_UNARY_ROUND:
    case BERTH_UNARY_TRUNC: return a;
    case BERTH_UNARY_IS_NAN:
    case BERTH_UNARY_IS_INF: return berth_spirv_bool(m, false);
    default: return 0;
    }
}

uint32_t berth_spirv_float_to_int(berth_spirv *m, berth_spirv_type from, berth_dtype to,
                                  uint32_t a) {
    int_calc i = calc_of(m, to);
    spirv_calc calc = spirv_calc_of(m, from), *c = &calc;
    int bits = (int)berth_dtype_size_bytes(to) * 8 - (i.is_signed ? 1 : 0);
    double limit = ldexp(1, bits);  // the first number beyond
    int64_t highest = bits == 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1);
    int64_t lowest = i.is_signed ? -highest - 1 : 0;
    id over =
        berth_spirv_binary(m, SPIRV_FOrdGreaterThanEqual, SPIRV_TYPE_BOOL, a, number(c, limit));
    id under = berth_spirv_binary(m, SPIRV_FOrdLessThanEqual, SPIRV_TYPE_BOOL, a,
                                  number(c, i.is_signed ? -limit : 0));
    id nan = is_nan(c, a);
    id safe = choose(c, either(c, either(c, over, under), nan), number(c, 0), a);
    id y = berth_spirv_unary(m, i.is_signed ? SPIRV_ConvertFToS : SPIRV_ConvertFToU, i.type, safe);
    y = choose_int(&i, under, constant(&i, lowest), y);
    y = choose_int(&i, over, constant(&i, highest), y);
    return choose_int(&i, nan, constant(&i, 0), y);
}

// ---- halves -------------------------------------------------------------------------------------

static id word(berth_spirv *m, uint32_t value) {
    return berth_spirv_int(m, SPIRV_TYPE_U32, value);
}

static id word_op(berth_spirv *m, berth_spirv_opcode op, id a, uint32_t b) {
    return berth_spirv_binary(m, op, SPIRV_TYPE_U32, a, word(m, b));
}

static id f16_to_f32(spirv_calc *c, id h) {
    berth_spirv *m = c->m;
    id sign = word_op(m, SPIRV_ShiftLeftLogical, word_op(m, SPIRV_BitwiseAnd, h, 0x8000), 16);
    id low = word_op(m, SPIRV_BitwiseAnd, h, 0x7fff);
    id rest = word_op(m, SPIRV_ShiftLeftLogical, low, 13);
    id exponent = word_op(m, SPIRV_BitwiseAnd, h, 0x7c00);
    id small =
        mul(c, berth_spirv_unary(m, SPIRV_ConvertUToF, SPIRV_TYPE_F32, low), number(c, 0x1p-24));
    id special = berth_spirv_binary(m, SPIRV_IEqual, SPIRV_TYPE_BOOL, exponent, word(m, 0x7c00));
    id denormal = berth_spirv_binary(m, SPIRV_IEqual, SPIRV_TYPE_BOOL, exponent, word(m, 0));
    id bits = berth_spirv_select(m, SPIRV_TYPE_U32, special,
                                 word_op(m, SPIRV_BitwiseOr, rest, 0x7f800000),
                                 word_op(m, SPIRV_IAdd, rest, 0x38000000));
    bits = berth_spirv_select(m, SPIRV_TYPE_U32, denormal, as_bits(c, small), bits);
    return as_float(c, bits_op(c, SPIRV_BitwiseOr, sign, bits));
}

static id f32_to_f16(spirv_calc *c, id x) {
    berth_spirv *m = c->m;
    id all = as_bits(c, x);
    id sign = word_op(m, SPIRV_BitwiseAnd, word_op(m, SPIRV_ShiftRightLogical, all, 16), 0x8000);
    id bits = word_op(m, SPIRV_BitwiseAnd, all, 0x7fffffff);
    id nan = berth_spirv_binary(m, SPIRV_UGreaterThan, SPIRV_TYPE_BOOL, bits, word(m, 0x7f800000));
    id huge = berth_spirv_select(m, SPIRV_TYPE_U32, nan, word(m, 0x7e00), word(m, 0x7c00));
    // Adding 0.5 rounds to the last bit of a denormal half.
    id small =
        word_op(m, SPIRV_ISub, as_bits(c, add(c, as_float(c, bits), number(c, 0.5))), 0x3f000000);
    id even = word_op(m, SPIRV_BitwiseAnd, word_op(m, SPIRV_ShiftRightLogical, bits, 13), 1);
    id usual = word_op(m, SPIRV_IAdd, bits_op(c, SPIRV_IAdd, bits, even), 0xfff - 0x38000000u);
    usual = word_op(m, SPIRV_ShiftRightLogical, usual, 13);
    id is_small =
        berth_spirv_binary(m, SPIRV_ULessThan, SPIRV_TYPE_BOOL, bits, word(m, 0x38800000));
    id is_huge =
        berth_spirv_binary(m, SPIRV_UGreaterThanEqual, SPIRV_TYPE_BOOL, bits, word(m, 0x477ff000));
    id y = berth_spirv_select(m, SPIRV_TYPE_U32, is_small, small, usual);
    y = berth_spirv_select(m, SPIRV_TYPE_U32, is_huge, huge, y);
    return bits_op(c, SPIRV_BitwiseOr, sign, y);
}

static id f32_to_bf16(spirv_calc *c, id x) {
    berth_spirv *m = c->m;
    id bits = as_bits(c, x), high = word_op(m, SPIRV_ShiftRightLogical, bits, 16);
    id even = word_op(m, SPIRV_BitwiseAnd, high, 1);
    id usual = word_op(m, SPIRV_IAdd, bits_op(c, SPIRV_IAdd, bits, even), 0x7fff);
    usual = word_op(m, SPIRV_ShiftRightLogical, usual, 16);
    return berth_spirv_select(m, SPIRV_TYPE_U32, is_nan(c, x),
                              word_op(m, SPIRV_BitwiseOr, high, 0x40), usual);
}

uint32_t berth_spirv_half_to_float(berth_spirv *m, berth_dtype dtype, uint32_t bits) {
    spirv_calc c = spirv_calc_of(m, SPIRV_TYPE_F32);
    if (dtype == BERTH_DTYPE_BF16)
        return as_float(&c, word_op(m, SPIRV_ShiftLeftLogical, bits, 16));
    id function = 0, parameter = 0;
    berth_spirv_type type = SPIRV_TYPE_U32;
    if (berth_spirv_open_function(m, "berth_f16_to_f32", SPIRV_TYPE_F32, &type, 1, &function,
                                  &parameter))
        berth_spirv_close_function(m, f16_to_f32(&c, parameter));
    return berth_spirv_call(m, function, SPIRV_TYPE_F32, &bits, 1);
}

uint32_t berth_spirv_float_to_half(berth_spirv *m, berth_dtype dtype, uint32_t x) {
    spirv_calc c = spirv_calc_of(m, SPIRV_TYPE_F32);
    if (dtype == BERTH_DTYPE_BF16) return f32_to_bf16(&c, x);
    id function = 0, parameter = 0;
    berth_spirv_type type = SPIRV_TYPE_F32;
    if (berth_spirv_open_function(m, "berth_f32_to_f16", SPIRV_TYPE_U32, &type, 1, &function,
                                  &parameter))
        berth_spirv_close_function(m, f32_to_f16(&c, parameter));
    return berth_spirv_call(m, function, SPIRV_TYPE_U32, &x, 1);
}
