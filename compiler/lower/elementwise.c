#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

// ---- one operand --------------------------------------------------------------------------------

static bool unary_op(berth_op_kind kind, berth_unary *out_op) {
    static const struct {
        berth_op_kind kind;
        berth_unary op;
    } map[] = {
        {BERTH_OP_ABS, BERTH_UNARY_ABS},       {BERTH_OP_NEG, BERTH_UNARY_NEG},
        {BERTH_OP_SIGN, BERTH_UNARY_SIGN},     {BERTH_OP_CEIL, BERTH_UNARY_CEIL},
        {BERTH_OP_FLOOR, BERTH_UNARY_FLOOR},   {BERTH_OP_ROUND, BERTH_UNARY_ROUND},
        {BERTH_OP_SQRT, BERTH_UNARY_SQRT},     {BERTH_OP_EXP, BERTH_UNARY_EXP},
        {BERTH_OP_LOG, BERTH_UNARY_LOG},       {BERTH_OP_ERF, BERTH_UNARY_ERF},
        {BERTH_OP_SIN, BERTH_UNARY_SIN},       {BERTH_OP_COS, BERTH_UNARY_COS},
        {BERTH_OP_TAN, BERTH_UNARY_TAN},       {BERTH_OP_ASIN, BERTH_UNARY_ASIN},
        {BERTH_OP_ACOS, BERTH_UNARY_ACOS},     {BERTH_OP_ATAN, BERTH_UNARY_ATAN},
        {BERTH_OP_SINH, BERTH_UNARY_SINH},     {BERTH_OP_COSH, BERTH_UNARY_COSH},
        {BERTH_OP_TANH, BERTH_UNARY_TANH},     {BERTH_OP_ASINH, BERTH_UNARY_ASINH},
        {BERTH_OP_ACOSH, BERTH_UNARY_ACOSH},   {BERTH_OP_ATANH, BERTH_UNARY_ATANH},
        {BERTH_OP_NOT, BERTH_UNARY_NOT},       {BERTH_OP_BITWISE_NOT, BERTH_UNARY_BIT_NOT},
        {BERTH_OP_IS_NAN, BERTH_UNARY_IS_NAN}, {BERTH_OP_SIGMOID, BERTH_UNARY_SIGMOID},
    };
    for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); ++i) {
        if (map[i].kind != kind) continue;
        *out_op = map[i].op;
        return true;
    }
    return false;
}

berth_expr berth_lower__unary(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    (void)output;
    berth_unary which = BERTH_UNARY_NEG;
    berth_expr x = in_at(c, op, 0, at);
    if (op->kind == BERTH_OP_RECIPROCAL) return x_div(c, num(c, dtype_of(c, x), 1), x);
    if (!unary_op(op->kind, &which)) berth_lower__fail(c, op, "not a unary operation");
    return x_unary(c, which, x);
}

// log(1 + exp(x)) without overflow
static berth_expr softplus(berth_lower *c, berth_expr x) {
    berth_dtype t = dtype_of(c, x);
    berth_expr small =
        x_unary(c, BERTH_UNARY_EXP, x_unary(c, BERTH_UNARY_NEG, x_unary(c, BERTH_UNARY_ABS, x)));
    berth_expr log = x_unary(c, BERTH_UNARY_LOG, x_add(c, num(c, t, 1), small));
    return x_add(c, x_max(c, x, num(c, t, 0)), log);
}

// x tanh(log(1 + e)) with e = exp(x), and tanh(log u) = (u^2 - 1) / (u^2 + 1): nothing cancels. From
// 20 on the factor is 1 in f64, too.
static berth_expr mish(berth_lower *c, berth_expr x) {
    berth_dtype t = dtype_of(c, x);
    berth_expr two = num(c, t, 2);
    berth_expr e = x_unary(c, BERTH_UNARY_EXP, x_min(c, x, num(c, t, 20)));
    berth_expr n = x_mul(c, e, x_add(c, e, two));
    return x_mul(c, x, x_div(c, n, x_add(c, n, two)));
}

static berth_expr clamp01(berth_lower *c, berth_expr x) {
    berth_dtype t = dtype_of(c, x);
    return x_max(c, num(c, t, 0), x_min(c, num(c, t, 1), x));
}

static berth_expr exp_minus_one(berth_lower *c, berth_expr x) {
    return x_sub(c, x_unary(c, BERTH_UNARY_EXP, x), num(c, dtype_of(c, x), 1));
}

static berth_expr gelu(berth_lower *c, const berth_op *op, berth_expr x) {
    berth_dtype t = dtype_of(c, x);
    berth_expr inner;
    if (strcmp(attr_str(c, op, "approximate", "none"), "tanh") == 0) {
        berth_expr cube = x_mul(c, x, x_mul(c, x, x));
        berth_expr sum = x_add(c, x, x_mul(c, num(c, t, 0.044715), cube));
        inner = x_unary(c, BERTH_UNARY_TANH,
                        x_mul(c, num(c, t, sqrt(2.0 / 3.14159265358979323846)), sum));
    } else {
        inner = x_unary(c, BERTH_UNARY_ERF, x_mul(c, x, num(c, t, sqrt(0.5))));
    }
    return x_mul(c, x_mul(c, num(c, t, 0.5), x), x_add(c, num(c, t, 1), inner));
}

// Integers too: the bias need not be one, so they are computed as floats.
static berth_expr shrink(berth_lower *c, const berth_op *op, berth_expr given) {
    berth_dtype own = dtype_of(c, given);
    bool wide = berth_dtype_size_bytes(own) > 2;  // more digits than a float has
    berth_dtype t = berth_dtype_is_float(own) ? own : wide ? BERTH_DTYPE_F64 : BERTH_DTYPE_F32;
    berth_expr x = x_cast(c, t, given);
    berth_expr lambda = num(c, t, attr_float(c, op, "lambd", 0.5));
    berth_expr bias = num(c, t, attr_float(c, op, "bias", 0));
    berth_expr low = x_lt(c, x, x_unary(c, BERTH_UNARY_NEG, lambda));
    berth_expr high = x_select(c, x_gt(c, x, lambda), x_sub(c, x, bias), num(c, t, 0));
    return x_cast(c, own, x_select(c, low, x_add(c, x, bias), high));
}

// Activations with attributes; defaults of the operators' texts.
berth_expr berth_lower__activation(berth_lower *c, const berth_op *op, uint32_t output,
                                   const berth_expr *at) {
    (void)output;
    berth_expr x = in_at(c, op, 0, at);
    berth_dtype t = dtype_of(c, x);
    berth_expr zero = num(c, t, 0);
    berth_expr one = num(c, t, 1);
    double alpha = attr_float(c, op, "alpha", 1);
    switch (op->kind) {
    case BERTH_OP_RELU: return x_max(c, x, zero);
    case BERTH_OP_LEAKY_RELU:
        return x_select(c, x_lt(c, x, zero),
                        x_mul(c, x, num(c, t, attr_float(c, op, "alpha", 0.01))), x);
    case BERTH_OP_THRESHOLDED_RELU: return x_select(c, x_gt(c, x, num(c, t, alpha)), x, zero);
    case BERTH_OP_ELU:
        return x_select(c, x_lt(c, x, zero), x_mul(c, num(c, t, alpha), exp_minus_one(c, x)), x);
    case BERTH_OP_SELU: {
        berth_expr gamma = num(c, t, attr_float(c, op, "gamma", 1.0507009873554804934193349852946));
        berth_expr a = num(c, t, attr_float(c, op, "alpha", 1.6732632423543772848170429916717));
        return x_mul(c, gamma, x_select(c, x_gt(c, x, zero), x, x_mul(c, a, exp_minus_one(c, x))));
    }
    case BERTH_OP_CELU: {
        berth_expr below =
            x_mul(c, num(c, t, alpha), exp_minus_one(c, x_div(c, x, num(c, t, alpha))));
        return x_add(c, x_max(c, x, zero), x_min(c, zero, below));
    }
    case BERTH_OP_HARD_SIGMOID: {
        berth_expr slope = num(c, t, attr_float(c, op, "alpha", 0.2));
        return clamp01(c, x_add(c, x_mul(c, slope, x), num(c, t, attr_float(c, op, "beta", 0.5))));
    }
    case BERTH_OP_HARD_SWISH:
        return x_mul(c, x, clamp01(c, x_add(c, x_mul(c, x, num(c, t, 1.0 / 6)), num(c, t, 0.5))));
    case BERTH_OP_SOFTPLUS: return softplus(c, x);
    case BERTH_OP_SOFTSIGN: return x_div(c, x, x_add(c, one, x_unary(c, BERTH_UNARY_ABS, x)));
    case BERTH_OP_SHRINK: return shrink(c, op, x);
    case BERTH_OP_GELU: return gelu(c, op, x);
    case BERTH_OP_MISH: return mish(c, x);
    default: berth_lower__fail(c, op, "not an activation"); return x;
    }
}

berth_expr berth_lower__cast(berth_lower *c, const berth_op *op, uint32_t output,
                             const berth_expr *at) {
    berth_expr x = in_at(c, op, 0, at);
    berth_dtype to = out_type(c, op, output)->dtype;
    berth_dtype from = dtype_of(c, x);
    if (to == BERTH_DTYPE_BOOL) return from == BERTH_DTYPE_BOOL ? x : x_ne(c, x, num(c, from, 0));
    return x_cast(c, berth_lower_compute_dtype(to), x_cast(c, to, x));  // rounds to 16-bit floats
}

berth_expr berth_lower__is_inf(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    (void)output;
    berth_expr x = in_at(c, op, 0, at);
    berth_expr zero = num(c, dtype_of(c, x), 0);
    berth_expr infinite = x_unary(c, BERTH_UNARY_IS_INF, x);
    bool negative = attr_int(c, op, "detect_negative", 1) != 0;
    bool positive = attr_int(c, op, "detect_positive", 1) != 0;
    if (negative && positive) return infinite;
    if (!negative && !positive) return berth_tfn_int(c->fn, BERTH_DTYPE_BOOL, 0);
    return x_and(c, infinite, negative ? x_lt(c, x, zero) : x_gt(c, x, zero));
}

// ---- two operands -------------------------------------------------------------------------------

static int out_rank(const berth_lower *c, const berth_op *op) {
    return out_type(c, op, 0)->rank;
}

static berth_binary binary_op(berth_lower *c, const berth_op *op) {
    switch (op->kind) {
    case BERTH_OP_ADD: return BERTH_BINARY_ADD;
    case BERTH_OP_SUB: return BERTH_BINARY_SUB;
    case BERTH_OP_MUL: return BERTH_BINARY_MUL;
    case BERTH_OP_DIV: return BERTH_BINARY_DIV;
    case BERTH_OP_BITWISE_AND: return BERTH_BINARY_BIT_AND;
    case BERTH_OP_BITWISE_OR: return BERTH_BINARY_BIT_OR;
    case BERTH_OP_BITWISE_XOR: return BERTH_BINARY_BIT_XOR;
    case BERTH_OP_AND: return BERTH_BINARY_AND;
    case BERTH_OP_OR: return BERTH_BINARY_OR;
    case BERTH_OP_XOR: return BERTH_BINARY_XOR;
    case BERTH_OP_EQUAL: return BERTH_BINARY_EQ;
    case BERTH_OP_GREATER: return BERTH_BINARY_GT;
    case BERTH_OP_GREATER_OR_EQUAL: return BERTH_BINARY_GE;
    case BERTH_OP_LESS: return BERTH_BINARY_LT;
    case BERTH_OP_LESS_OR_EQUAL: return BERTH_BINARY_LE;
    case BERTH_OP_BIT_SHIFT:
        return strcmp(attr_str(c, op, "direction", "LEFT"), "RIGHT") == 0 ? BERTH_BINARY_SHR
                                                                          : BERTH_BINARY_SHL;
    default: berth_lower__fail(c, op, "not a binary operation"); return BERTH_BINARY_ADD;
    }
}

berth_expr berth_lower__binary(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr a = berth_lower__in_broadcast(c, op, 0, rank, at);
    berth_expr b = berth_lower__in_broadcast(c, op, 1, rank, at);
    return berth_tfn_binary(c->fn, binary_op(c, op), a, b);
}

static bool is_one(const berth_type *type) {
    for (int d = 0; d < type->rank; ++d)
        if (type->dims[d] != 1) return false;
    return true;
}

// An exponent that only the run knows is most often 2 or 3: a product, then. It is the same for all
// elements, so that compilers ask once, before the loop.
static berth_expr small_powers(berth_lower *c, berth_expr x, berth_expr exponent,
                               berth_expr power) {
    berth_dtype t = dtype_of(c, exponent);
    berth_expr square = x_mul(c, x, x);
    berth_expr cube = x_select(c, x_eq(c, exponent, num(c, t, 3)), x_mul(c, square, x), power);
    return x_select(c, x_eq(c, exponent, num(c, t, 2)), square, cube);
}

berth_expr berth_lower__pow(berth_lower *c, const berth_op *op, uint32_t output,
                            const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr base = berth_lower__in_broadcast(c, op, 0, rank, at);
    berth_expr exponent = berth_lower__in_broadcast(c, op, 1, rank, at);
    berth_dtype t = dtype_of(c, base);
    const berth_expr_node *node = berth_tfn_expr(c->fn, exponent);
    bool known = node->kind == BERTH_EXPR_INT || node->kind == BERTH_EXPR_FLOAT;
    double value = node->kind == BERTH_EXPR_INT ? (double)node->i : node->f;
    if (known && value == 1) return base;
    if (known && value == 2) return x_mul(c, base, base);
    if (known && value == 0.5 && berth_dtype_is_float(t)) return x_unary(c, BERTH_UNARY_SQRT, base);
    if (berth_dtype_is_float(t) || !berth_dtype_is_float(dtype_of(c, exponent))) {
        berth_expr power = x_pow(c, base, x_cast(c, t, exponent));
        bool one = !known && berth_dtype_is_float(t) && is_one(in_type(c, op, 1));
        return one ? small_powers(c, base, exponent, power) : power;
    }
    berth_dtype wide = dtype_of(c, exponent);  // integer base, float exponent
    return x_cast(c, t, x_pow(c, x_cast(c, wide, base), exponent));
}

berth_expr berth_lower__mod(berth_lower *c, const berth_op *op, uint32_t output,
                            const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr a = berth_lower__in_broadcast(c, op, 0, rank, at);
    berth_expr b = berth_lower__in_broadcast(c, op, 1, rank, at);
    berth_dtype t = dtype_of(c, a);
    berth_expr truncated = x_mod(c, a, b);
    if (attr_int(c, op, "fmod", 0) || (berth_dtype_is_integer(t) && !berth_dtype_is_signed(t)))
        return truncated;
    berth_expr zero = num(c, t, 0);  // the sign of the divisor
    berth_expr signs = x_ne(c, x_lt(c, truncated, zero), x_lt(c, b, zero));
    berth_expr shift = x_and(c, x_ne(c, truncated, zero), signs);
    return x_select(c, shift, x_add(c, truncated, b), truncated);
}

berth_expr berth_lower__prelu(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr x = berth_lower__in_broadcast(c, op, 0, rank, at);
    berth_expr slope = berth_lower__in_broadcast(c, op, 1, rank, at);
    return x_select(c, x_lt(c, x, num(c, dtype_of(c, x), 0)), x_mul(c, slope, x), x);
}

// min, max, sum, mean
berth_expr berth_lower__variadic(berth_lower *c, const berth_op *op, uint32_t output,
                                 const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr value = berth_lower__in_broadcast(c, op, 0, rank, at);
    for (uint32_t i = 1; i < op->input_count; ++i) {
        berth_expr next = berth_lower__in_broadcast(c, op, i, rank, at);
        if (op->kind == BERTH_OP_MIN)
            value = x_min(c, value, next);
        else if (op->kind == BERTH_OP_MAX)
            value = x_max(c, value, next);
        else
            value = x_add(c, value, next);
    }
    if (op->kind == BERTH_OP_MEAN && op->input_count > 1)
        value = x_div(c, value, num(c, dtype_of(c, value), op->input_count));
    return value;
}

berth_expr berth_lower__clip(berth_lower *c, const berth_op *op, uint32_t output,
                             const berth_expr *at) {
    (void)output;
    berth_expr value = in_at(c, op, 0, at);
    berth_expr zero[BERTH_MAX_RANK];
    for (int i = 0; i < BERTH_MAX_RANK; ++i) zero[i] = ix(c, 0);
    if (has_in(op, 1)) value = x_max(c, value, in_at(c, op, 1, zero));
    if (has_in(op, 2)) value = x_min(c, value, in_at(c, op, 2, zero));
    return value;
}

berth_expr berth_lower__where(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    (void)output;
    int rank = out_rank(c, op);
    berth_expr condition = berth_lower__in_broadcast(c, op, 0, rank, at);
    berth_expr a = berth_lower__in_broadcast(c, op, 1, rank, at);
    return x_select(c, condition, a, berth_lower__in_broadcast(c, op, 2, rank, at));
}

// ---- quantisation -------------------------------------------------------------------------------

// Element of a scale or zero point: one, or one per index of `axis`.
static berth_expr quant_param(berth_lower *c, const berth_op *op, uint32_t i, int axis,
                              const berth_expr *at) {
    const berth_type *type = in_type(c, op, i);
    berth_expr mapped[BERTH_MAX_RANK];
    bool per_axis = type->rank == 1 && type->dims[0] > 1;
    if (type->rank > 1) berth_lower__fail(c, op, "blocked quantisation");
    for (int d = 0; d < type->rank; ++d) mapped[d] = per_axis ? at[axis] : ix(c, 0);
    return in_at(c, op, i, mapped);
}

// Casts of floats to integers saturate, so that nothing is left to do about the type's bounds.
berth_expr berth_lower__saturate(berth_lower *c, berth_expr value, berth_expr scale,
                                 berth_expr zero, berth_dtype dtype) {
    berth_dtype t = dtype_of(c, value);
    const berth_expr_node *divisor = &c->fn->exprs.data[scale];
    bool one = divisor->kind == BERTH_EXPR_FLOAT && divisor->f == 1;
    berth_expr rounded = x_unary(c, BERTH_UNARY_ROUND, one ? value : x_div(c, value, scale));
    const berth_expr_node shift = c->fn->exprs.data[zero];
    bool constant = shift.kind == BERTH_EXPR_INT;
    berth_expr moved = constant ? num(c, t, (double)shift.i) : zero ? x_cast(c, t, zero) : 0;
    if (moved && !(constant && shift.i == 0)) rounded = x_add(c, rounded, moved);
    return x_cast(c, dtype, rounded);
}

static int quant_axis(berth_lower *c, const berth_op *op, int rank) {
    int64_t axis = attr_int(c, op, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) axis = 0;  // a scalar scale on a short tensor: not used
    return (int)axis;
}

berth_expr berth_lower__quantize(berth_lower *c, const berth_op *op, uint32_t output,
                                 const berth_expr *at) {
    int axis = quant_axis(c, op, out_rank(c, op));
    berth_expr x = in_at(c, op, 0, at);
    berth_dtype t = berth_dtype_is_float(dtype_of(c, x)) ? dtype_of(c, x) : BERTH_DTYPE_F32;
    berth_expr scale = x_cast(c, t, quant_param(c, op, 1, axis, at));
    berth_expr zero = has_in(op, 2) ? quant_param(c, op, 2, axis, at) : 0;
    return berth_lower__saturate(c, x_cast(c, t, x), scale, zero, out_type(c, op, output)->dtype);
}

berth_expr berth_lower__dequantize(berth_lower *c, const berth_op *op, uint32_t output,
                                   const berth_expr *at) {
    int axis = quant_axis(c, op, out_rank(c, op));
    berth_expr x = x_cast(c, BERTH_DTYPE_I32, in_at(c, op, 0, at));
    berth_expr scale = quant_param(c, op, 1, axis, at);
    if (has_in(op, 2)) x = x_sub(c, x, x_cast(c, BERTH_DTYPE_I32, quant_param(c, op, 2, axis, at)));
    berth_dtype t = out_dtype(c, op, output);
    return x_mul(c, x_cast(c, t, x), x_cast(c, t, scale));
}

// Operand `i` of those that have scale and zero point behind them, as a real number.
static berth_expr dequantized(berth_lower *c, const berth_op *op, uint32_t i,
                              const berth_expr *at) {
    berth_dtype whole = BERTH_DTYPE_I32, real = BERTH_DTYPE_F32;
    berth_expr x = x_cast(c, whole, in_at(c, op, i, at));
    x = x_sub(c, x, x_cast(c, whole, quant_param(c, op, i + 2, 0, at)));
    return x_mul(c, x_cast(c, real, x), x_cast(c, real, quant_param(c, op, i + 1, 0, at)));
}

berth_expr berth_lower__qlinear_add(berth_lower *c, const berth_op *op, uint32_t output,
                                    const berth_expr *at) {
    berth_expr sum = x_add(c, dequantized(c, op, 0, at), dequantized(c, op, 3, at));
    berth_expr scale = x_cast(c, BERTH_DTYPE_F32, quant_param(c, op, 6, 0, at));
    return berth_lower__saturate(c, sum, scale, quant_param(c, op, 7, 0, at),
                                 out_type(c, op, output)->dtype);
}

berth_expr berth_lower__batch_norm(berth_lower *c, const berth_op *op, uint32_t output,
                                   const berth_expr *at) {
    (void)output;
    if (attr_int(c, op, "training_mode", 0)) berth_lower__fail(c, op, "training mode");
    berth_expr x = in_at(c, op, 0, at);
    berth_dtype t = dtype_of(c, x);
    berth_expr channel = in_type(c, op, 0)->rank > 1 ? at[1] : ix(c, 0);
    berth_expr scale = x_cast(c, t, in_at(c, op, 1, &channel));
    berth_expr bias = x_cast(c, t, in_at(c, op, 2, &channel));
    berth_expr mean = x_cast(c, t, in_at(c, op, 3, &channel));
    berth_expr variance = x_cast(c, t, in_at(c, op, 4, &channel));
    berth_expr epsilon = num(c, t, attr_float(c, op, "epsilon", 1e-5));
    berth_expr deviation = x_unary(c, BERTH_UNARY_SQRT, x_add(c, variance, epsilon));
    return x_add(c, x_mul(c, x_sub(c, x, mean), x_div(c, scale, deviation)), bias);
}
