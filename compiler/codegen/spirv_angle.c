// x is a 32-bit number M times a power of two, and 1/(2 pi) a long binary fraction. Of the product
// only what lies below whole turns counts: M times the three words of the fraction that the exponent
// brings to the point. All in integers of 32 bits.
#include "compiler/codegen/spirv_angle.h"

typedef uint32_t id;

// 1/(2 pi), 32 bits each, after the point.
static const uint32_t turn[] = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770,
                                0x36d8a566, 0x4f10e410, 0x7f9458ea};

static id shifted(spirv_calc *c, berth_spirv_opcode shift, id a, uint32_t count) {
    return bits_op(c, shift, a, bits_of(c, count));
}

static id masked(spirv_calc *c, id a, uint32_t mask) {
    return bits_op(c, SPIRV_BitwiseAnd, a, bits_of(c, mask));
}

static id plus(spirv_calc *c, id a, id b) {
    return bits_op(c, SPIRV_IAdd, a, b);
}

// The upper half of a product, by halves of 16 bits.
static id high_product(spirv_calc *c, id a, id b) {
    id a0 = masked(c, a, 0xffff), a1 = shifted(c, SPIRV_ShiftRightLogical, a, 16);
    id b0 = masked(c, b, 0xffff), b1 = shifted(c, SPIRV_ShiftRightLogical, b, 16);
    id low = bits_op(c, SPIRV_IMul, a0, b0), left = bits_op(c, SPIRV_IMul, a1, b0);
    id right = bits_op(c, SPIRV_IMul, a0, b1), high = bits_op(c, SPIRV_IMul, a1, b1);
    id carry = plus(c, shifted(c, SPIRV_ShiftRightLogical, low, 16),
                    plus(c, masked(c, left, 0xffff), masked(c, right, 0xffff)));
    id middle = plus(c, shifted(c, SPIRV_ShiftRightLogical, left, 16),
                     shifted(c, SPIRV_ShiftRightLogical, right, 16));
    return plus(c, plus(c, high, middle), shifted(c, SPIRV_ShiftRightLogical, carry, 16));
}

// turn[index + offset], the index being 0 to 4; 0 before the first.
static id word_at(spirv_calc *c, id index, int offset) {
    id word = bits_of(c, offset < 0 ? 0 : turn[offset]);
    for (int i = 1; i <= 4; ++i) {
        id here =
            berth_spirv_binary(c->m, SPIRV_IEqual, SPIRV_TYPE_BOOL, index, bits_of(c, (uint64_t)i));
        word = berth_spirv_select(c->m, c->bits, here, bits_of(c, turn[i + offset]), word);
    }
    return word;
}

// The first 32 of 64 bits after `count` (below 32) of them.
static id window(spirv_calc *c, id high, id low, id count) {
    id rest = bits_op(c, SPIRV_ISub, bits_of(c, 31), count);
    id from_low =
        bits_op(c, SPIRV_ShiftRightLogical, shifted(c, SPIRV_ShiftRightLogical, low, 1), rest);
    return bits_op(c, SPIRV_BitwiseOr, bits_op(c, SPIRV_ShiftLeftLogical, high, count), from_low);
}

void berth_spirv_large_angle(spirv_calc *c, id x, id *out_quarter, id *out_rest) {
    id bits = as_bits(c, magnitude(c, x));
    id exponent = bits_op(c, SPIRV_ISub, shifted(c, SPIRV_ShiftRightLogical, bits, 23),
                          bits_of(c, 126));  // |x| = 0.M times two to this
    id m = bits_op(c, SPIRV_BitwiseOr, shifted(c, SPIRV_ShiftLeftLogical, bits, 8),
                   bits_of(c, 0x80000000u));
    id index = shifted(c, SPIRV_ShiftRightLogical, exponent, 5), count = masked(c, exponent, 31);
    id words[4], windows[3];
    for (int i = 0; i < 4; ++i) words[i] = word_at(c, index, i - 1);
    for (int i = 0; i < 3; ++i) windows[i] = window(c, words[i], words[i + 1], count);
    // Turns as 64 bits after the point: high and low.
    id product = bits_op(c, SPIRV_IMul, m, windows[1]);
    id low = plus(c, product, high_product(c, m, windows[2]));
    id over = berth_spirv_binary(c->m, SPIRV_ULessThan, SPIRV_TYPE_BOOL, low, product);
    id carry = berth_spirv_select(c->m, c->bits, over, bits_of(c, 1), bits_of(c, 0));
    id high = plus(
        c, plus(c, bits_op(c, SPIRV_IMul, m, windows[0]), high_product(c, m, windows[1])), carry);
    // The nearest quarter, and what is left: 30 bits with a sign, and 32 more.
    id quarter = shifted(c, SPIRV_ShiftRightLogical, plus(c, high, bits_of(c, 0x20000000u)), 30);
    id left =
        shifted(c, SPIRV_ShiftRightArithmetic, shifted(c, SPIRV_ShiftLeftLogical, high, 2), 2);
    id part =
        add(c, berth_spirv_unary(c->m, SPIRV_ConvertSToF, c->type, left),
            mul(c, berth_spirv_unary(c->m, SPIRV_ConvertUToF, c->type, low), number(c, 0x1p-32)));
    id rest = mul(c, part, number(c, 1.5707963267948966 * 0x1p-30));
    id negative = less(c, x, number(c, 0));
    id back = masked(c, bits_op(c, SPIRV_ISub, bits_of(c, 4), quarter), 3);
    quarter = berth_spirv_select(c->m, c->bits, negative, back, quarter);
    *out_quarter = berth_spirv_unary(c->m, SPIRV_ConvertUToF, c->type, quarter);
    *out_rest = choose(c, negative, negate(c, rest), rest);
}
