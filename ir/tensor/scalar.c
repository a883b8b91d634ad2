// Scalar arithmetic of tensor functions, lane by lane, as the interpreter computes it.
#include "ir/tensor/scalar.h"

#include <limits.h>
#include <math.h>

double berth_ir__round(berth_dtype dtype, double x) {
    switch (dtype) {
    case BERTH_DTYPE_F32: return (double)(float)x;
    case BERTH_DTYPE_F16: return (double)berth_f16_to_f32(berth_f32_to_f16((float)x));
    case BERTH_DTYPE_BF16: return (double)berth_bf16_to_f32(berth_f32_to_bf16((float)x));
    default: return x;
    }
}

int64_t berth_ir__wrap(berth_dtype dtype, uint64_t x) {
    switch (dtype) {
    case BERTH_DTYPE_I8: return (int8_t)x;
    case BERTH_DTYPE_I16: return (int16_t)x;
    case BERTH_DTYPE_I32: return (int32_t)x;
    case BERTH_DTYPE_U8: return (uint8_t)x;
    case BERTH_DTYPE_U16: return (uint16_t)x;
    case BERTH_DTYPE_U32: return (uint32_t)x;
    case BERTH_DTYPE_BOOL: return x != 0;
    default: return (int64_t)x;
    }
}

static double unary_float(berth_unary op, double x) {
    switch (op) {
    case BERTH_UNARY_NEG: return -x;
    case BERTH_UNARY_ABS: return fabs(x);
    case BERTH_UNARY_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case BERTH_UNARY_FLOOR: return floor(x);
    case BERTH_UNARY_CEIL: return ceil(x);
    case BERTH_UNARY_ROUND: return nearbyint(x);
    case BERTH_UNARY_TRUNC: return trunc(x);
    case BERTH_UNARY_SQRT: return sqrt(x);
    case BERTH_UNARY_RSQRT: return 1 / sqrt(x);
    case BERTH_UNARY_EXP: return exp(x);
    case BERTH_UNARY_LOG: return log(x);
    case BERTH_UNARY_SIN: return sin(x);
    case BERTH_UNARY_COS: return cos(x);
    case BERTH_UNARY_TAN: return tan(x);
    case BERTH_UNARY_ASIN: return asin(x);
    case BERTH_UNARY_ACOS: return acos(x);
    case BERTH_UNARY_ATAN: return atan(x);
    case BERTH_UNARY_SINH: return sinh(x);
    case BERTH_UNARY_COSH: return cosh(x);
    case BERTH_UNARY_TANH: return tanh(x);
    case BERTH_UNARY_ASINH: return asinh(x);
    case BERTH_UNARY_ACOSH: return acosh(x);
    case BERTH_UNARY_ATANH: return atanh(x);
    case BERTH_UNARY_ERF: return erf(x);
    case BERTH_UNARY_SIGMOID: return 1 / (1 + exp(-x));
    default: return NAN;
    }
}

static int64_t unary_int(berth_unary op, int64_t x) {
    switch (op) {
    case BERTH_UNARY_NEG: return (int64_t)(0 - (uint64_t)x);
    case BERTH_UNARY_NOT: return !x;
    case BERTH_UNARY_BIT_NOT: return ~x;
    case BERTH_UNARY_ABS: return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case BERTH_UNARY_SIGN: return (x > 0) - (x < 0);
    default: return x;  // floor, ceil, round, trunc
    }
}

berth_status berth_ir__eval_unary(const berth_expr_node *node, berth_dtype from,
                                  const berth_lanes *a, berth_lanes *out) {
    out->lanes = a->lanes;
    for (int l = 0; l < a->lanes; ++l) {
        if (berth_dtype_is_float(from)) {
            if (node->op == BERTH_UNARY_IS_NAN)
                out->at[l].i = isnan(a->at[l].f) != 0;
            else if (node->op == BERTH_UNARY_IS_INF)
                out->at[l].i = isinf(a->at[l].f) != 0;
            else
                out->at[l].f = berth_ir__round((berth_dtype)node->dtype,
                                               unary_float((berth_unary)node->op, a->at[l].f));
        } else {
            uint64_t bits = (uint64_t)unary_int((berth_unary)node->op, a->at[l].i);
            out->at[l].i = berth_ir__wrap((berth_dtype)node->dtype, bits);
        }
    }
    return BERTH_OK;
}

static bool compare(berth_binary op, int order, bool unordered, bool *out_result) {
    switch (op) {
    case BERTH_BINARY_EQ: *out_result = !unordered && order == 0; return true;
    case BERTH_BINARY_NE: *out_result = unordered || order != 0; return true;
    case BERTH_BINARY_LT: *out_result = !unordered && order < 0; return true;
    case BERTH_BINARY_LE: *out_result = !unordered && order <= 0; return true;
    case BERTH_BINARY_GT: *out_result = !unordered && order > 0; return true;
    case BERTH_BINARY_GE: *out_result = !unordered && order >= 0; return true;
    default: return false;
    }
}

static double binary_float(berth_binary op, double a, double b) {
    switch (op) {
    case BERTH_BINARY_ADD: return a + b;
    case BERTH_BINARY_SUB: return a - b;
    case BERTH_BINARY_MUL: return a * b;
    case BERTH_BINARY_DIV: return a / b;
    case BERTH_BINARY_MOD: return fmod(a, b);
    case BERTH_BINARY_MIN: return isnan(a) || a < b ? a : b;
    case BERTH_BINARY_MAX: return isnan(a) || a > b ? a : b;
    case BERTH_BINARY_POW: return pow(a, b);
    case BERTH_BINARY_ATAN2: return atan2(a, b);
    default: return NAN;
    }
}

static int64_t power_int(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (uint64_t square = (uint64_t)base; exponent; exponent >>= 1, square *= square)
        if (exponent & 1) result *= square;
    return (int64_t)result;
}

static berth_status divide_int(bool modulo, bool is_index, bool is_unsigned, int64_t a, int64_t b,
                               int64_t *out) {
    if (b == 0 && is_index) return berth_status_make(BERTH_INVALID_ARGUMENT, "division by zero");
    if (b == 0) {
        *out = 0;
        return BERTH_OK;
    }
    if (is_unsigned) {
        *out = (int64_t)(modulo ? (uint64_t)a % (uint64_t)b : (uint64_t)a / (uint64_t)b);
        return BERTH_OK;
    }
    if (b == -1) {
        *out = modulo ? 0 : (int64_t)(0 - (uint64_t)a);
        return BERTH_OK;
    }
    int64_t quotient = a / b;
    int64_t remainder = a % b;
    if (is_index && remainder != 0 && (remainder < 0) != (b < 0)) {
        quotient -= 1;
        remainder += b;
    }
    *out = modulo ? remainder : quotient;
    return BERTH_OK;
}

static berth_status binary_int(const berth_expr_node *node, berth_dtype type, int64_t a, int64_t b,
                               int64_t *out) {
    bool is_unsigned = berth_dtype_is_integer(type) && !berth_dtype_is_signed(type);
    uint64_t ua = (uint64_t)a;
    uint64_t ub = (uint64_t)b;
    int64_t bits = (int64_t)berth_dtype_size_bytes(type) * 8;
    bool less = is_unsigned ? ua < ub : a < b;
    switch ((berth_binary)node->op) {
    case BERTH_BINARY_ADD: *out = (int64_t)(ua + ub); break;
    case BERTH_BINARY_SUB: *out = (int64_t)(ua - ub); break;
    case BERTH_BINARY_MUL: *out = (int64_t)(ua * ub); break;
    case BERTH_BINARY_DIV:
        BERTH_TRY(divide_int(false, node->is_index, is_unsigned, a, b, out));
        break;
    case BERTH_BINARY_MOD:
        BERTH_TRY(divide_int(true, node->is_index, is_unsigned, a, b, out));
        break;
    case BERTH_BINARY_MIN: *out = less ? a : b; break;
    case BERTH_BINARY_MAX: *out = less ? b : a; break;
    case BERTH_BINARY_POW: *out = power_int(a, b); break;
    case BERTH_BINARY_AND: *out = a && b; break;
    case BERTH_BINARY_OR: *out = a || b; break;
    case BERTH_BINARY_XOR: *out = !a != !b; break;
    case BERTH_BINARY_BIT_AND: *out = (int64_t)(ua & ub); break;
    case BERTH_BINARY_BIT_OR: *out = (int64_t)(ua | ub); break;
    case BERTH_BINARY_BIT_XOR: *out = (int64_t)(ua ^ ub); break;
    case BERTH_BINARY_SHL: *out = b < 0 || b >= bits ? 0 : (int64_t)(ua << ub); break;
    case BERTH_BINARY_SHR:
        if (is_unsigned)
            *out = b < 0 || b >= bits ? 0 : (int64_t)(ua >> ub);
        else  // the sign fills the bits
            *out = a >> (b < 0 || b >= bits ? 63 : b);
        break;
    default:
        return berth_status_make(BERTH_INVALID_ARGUMENT, "an operator that integers do not have");
    }
    *out = berth_ir__wrap((berth_dtype)node->dtype, (uint64_t)*out);
    return BERTH_OK;
}

berth_status berth_ir__eval_binary(const berth_expr_node *node, berth_dtype from,
                                   const berth_lanes *a, const berth_lanes *b, berth_lanes *out) {
    out->lanes = a->lanes > b->lanes ? a->lanes : b->lanes;
    bool is_float = berth_dtype_is_float(from);
    bool is_unsigned = berth_dtype_is_integer(from) && !berth_dtype_is_signed(from);
    for (int l = 0; l < out->lanes; ++l) {
        berth_lane x = a->at[a->lanes > 1 ? l : 0];
        berth_lane y = b->at[b->lanes > 1 ? l : 0];
        bool unordered = is_float && (isnan(x.f) || isnan(y.f));
        int order = is_float ? (x.f > y.f) - (x.f < y.f)
                    : is_unsigned
                        ? ((uint64_t)x.i > (uint64_t)y.i) - ((uint64_t)x.i < (uint64_t)y.i)
                        : (x.i > y.i) - (x.i < y.i);
        bool result = false;
        if (compare((berth_binary)node->op, order, unordered, &result))
            out->at[l].i = result;
        else if (is_float)
            out->at[l].f = berth_ir__round((berth_dtype)node->dtype,
                                           binary_float((berth_binary)node->op, x.f, y.f));
        else
            BERTH_TRY(binary_int(node, from, x.i, y.i, &out->at[l].i));
    }
    return BERTH_OK;
}

static int64_t saturate(berth_dtype to, double x) {
    if (isnan(x)) return 0;
    if (to == BERTH_DTYPE_BOOL) return x != 0;
    int bits = (int)berth_dtype_size_bytes(to) * 8;
    bool is_signed = berth_dtype_is_signed(to);
    double high = ldexp(1, is_signed ? bits - 1 : bits);
    double low = is_signed ? -high : 0;
    x = trunc(x);
    if (x <= low) return is_signed ? (bits == 64 ? INT64_MIN : (int64_t)low) : 0;
    if (x >= high)
        return is_signed    ? (int64_t)((UINT64_C(1) << (bits - 1)) - 1)
               : bits == 64 ? -1
                            : (int64_t)(high - 1);
    return is_signed ? (int64_t)x : (int64_t)(uint64_t)x;
}

void berth_ir__eval_cast(berth_dtype from, berth_dtype to, const berth_lanes *a, berth_lanes *out) {
    out->lanes = a->lanes;
    for (int l = 0; l < a->lanes; ++l) {
        berth_lane x = a->at[l];
        bool from_float = berth_dtype_is_float(from);
        if (berth_dtype_is_float(to)) {
            double exact = from_float                ? x.f
                           : from == BERTH_DTYPE_U64 ? (double)(uint64_t)x.i
                                                     : (double)x.i;
            if (!from_float && to == BERTH_DTYPE_F32)
                exact = from == BERTH_DTYPE_U64 ? (double)(float)(uint64_t)x.i : (double)(float)x.i;
            out->at[l].f = berth_ir__round(to, exact);
        } else
            out->at[l].i = from_float ? saturate(to, x.f) : berth_ir__wrap(to, (uint64_t)x.i);
    }
}
