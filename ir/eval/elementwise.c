// Elementwise operations. Floats are computed in double and rounded once; integers in 64 bits with
// wrap-around.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/eval/strings.h"

// ---- one operand

typedef struct unary_params {
    double alpha, beta;
    bool flag;
} unary_params;

static double f_sign(double x) {
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static double f_softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double f_sigmoid(double x) {
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

static double f_gelu(double x, bool tanh_form) {
    if (tanh_form) return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1 + erf(x * M_SQRT1_2));
}

static double f_hard_sigmoid(double x, double alpha, double beta) {
    return isnan(x) ? x : fmax(0, fmin(1, alpha * x + beta));
}

static double f_elu(double x, double alpha) {
    return x < 0 ? alpha * expm1(x) : x;
}

static double f_elu_scaled(double x, double alpha) {
    return alpha * expm1(x / alpha);
}

static double f_shrink(double x, double bias, double lambda) {
    return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

static double unary_f64(berth_op_kind kind, double x, const unary_params *p) {
    switch (kind) {
    case BERTH_OP_ABS: return fabs(x);
    case BERTH_OP_NEG: return -x;
    case BERTH_OP_SIGN: return f_sign(x);
    case BERTH_OP_CEIL: return ceil(x);
    case BERTH_OP_FLOOR: return floor(x);
    case BERTH_OP_ROUND: return nearbyint(x);
    case BERTH_OP_SQRT: return sqrt(x);
    case BERTH_OP_RECIPROCAL: return 1 / x;
    case BERTH_OP_EXP: return exp(x);
    case BERTH_OP_LOG: return log(x);
    case BERTH_OP_ERF: return erf(x);
    case BERTH_OP_SIN: return sin(x);
    case BERTH_OP_COS: return cos(x);
    case BERTH_OP_TAN: return tan(x);
    case BERTH_OP_ASIN: return asin(x);
    case BERTH_OP_ACOS: return acos(x);
    case BERTH_OP_ATAN: return atan(x);
    case BERTH_OP_SINH: return sinh(x);
    case BERTH_OP_COSH: return cosh(x);
    case BERTH_OP_TANH: return tanh(x);
    case BERTH_OP_ASINH: return asinh(x);
    case BERTH_OP_ACOSH: return acosh(x);
    case BERTH_OP_ATANH: return atanh(x);
    case BERTH_OP_RELU: return x < 0 ? 0 : x;
    case BERTH_OP_LEAKY_RELU: return x < 0 ? p->alpha * x : x;
    case BERTH_OP_THRESHOLDED_RELU: return x > p->alpha ? x : 0;
    case BERTH_OP_ELU: return f_elu(x, p->alpha);
    case BERTH_OP_SELU: return x > 0 ? p->beta * x : p->beta * p->alpha * expm1(x);
    case BERTH_OP_CELU: return isnan(x) ? x : fmax(0, x) + fmin(0, f_elu_scaled(x, p->alpha));
    case BERTH_OP_SIGMOID: return f_sigmoid(x);
    case BERTH_OP_HARD_SIGMOID: return f_hard_sigmoid(x, p->alpha, p->beta);
    case BERTH_OP_HARD_SWISH: return x * f_hard_sigmoid(x, 1.0 / 6, 0.5);
    case BERTH_OP_SOFTPLUS: return f_softplus(x);
    case BERTH_OP_SOFTSIGN: return x / (1 + fabs(x));
    case BERTH_OP_SHRINK: return f_shrink(x, p->alpha, p->beta);
    case BERTH_OP_GELU: return f_gelu(x, p->flag);
    case BERTH_OP_MISH: return x * tanh(f_softplus(x));
    default: return NAN;
    }
}

// Parameters by kind, with ONNX's defaults.
static unary_params read_params(const berth_eval_context *ctx) {
    static const struct {
        berth_op_kind kind;
        const char *alpha_name, *beta_name;
        double alpha, beta;
    } rows[] = {
        {BERTH_OP_LEAKY_RELU, "alpha", "", 0.01, 0},
        {BERTH_OP_THRESHOLDED_RELU, "alpha", "", 1, 0},
        {BERTH_OP_ELU, "alpha", "", 1, 0},
        {BERTH_OP_SELU, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
        {BERTH_OP_CELU, "alpha", "", 1, 0},
        {BERTH_OP_HARD_SIGMOID, "alpha", "beta", 0.2, 0.5},
        {BERTH_OP_SHRINK, "bias", "lambd", 0, 0.5},
    };
    unary_params params = {.flag =
                               strcmp(berth_eval__string(ctx, "approximate", "none"), "tanh") == 0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (rows[i].kind != ctx->op->kind) continue;
        params.alpha = berth_eval__float(ctx, rows[i].alpha_name, rows[i].alpha);
        params.beta = berth_eval__float(ctx, rows[i].beta_name, rows[i].beta);
        if (ctx->inputs[0].dtype != BERTH_DTYPE_F32) continue;
        params.alpha = (double)(float)params.alpha;  // as kernels hold them
        params.beta = (double)(float)params.beta;
    }
    return params;
}

// False when the kind has no meaning for integers.
static bool unary_i64(berth_op_kind kind, int64_t x, bool is_unsigned, int64_t *out) {
    switch (kind) {
    case BERTH_OP_ABS: *out = x < 0 && !is_unsigned ? (int64_t)(0 - (uint64_t)x) : x; return true;
    case BERTH_OP_NEG: *out = (int64_t)(0 - (uint64_t)x); return true;
    case BERTH_OP_SIGN: *out = is_unsigned ? x != 0 : (x > 0) - (x < 0); return true;
    case BERTH_OP_RELU: *out = x < 0 && !is_unsigned ? 0 : x; return true;
    case BERTH_OP_NOT: *out = !x; return true;
    case BERTH_OP_BITWISE_NOT: *out = ~x; return true;
    case BERTH_OP_CEIL:
    case BERTH_OP_FLOOR:
    case BERTH_OP_ROUND: *out = x; return true;
    default: return false;
    }
}

static berth_status eval_unary_integer(berth_eval_context *ctx, const berth_tensor *x) {
    const int64_t *values = berth_eval__load_i64(ctx, x);
    int64_t count = berth_tensor_element_count(x), result = 0;
    bool is_unsigned = !berth_dtype_is_signed(x->dtype);
    if (!unary_i64(ctx->op->kind, 0, is_unsigned, &result))
        return berth_status_make(BERTH_UNSUPPORTED, "not defined for %s",
                                 berth_dtype_name(x->dtype));
    for (int64_t i = 0; i < count; ++i) {
        unary_i64(ctx->op->kind, values[i], is_unsigned, &result);
        berth_tensor_set_i64(&ctx->outputs[0], i, result);
    }
    return BERTH_OK;
}

berth_status berth_eval__unary(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_op_kind kind = ctx->op->kind;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    if (!berth_dtype_is_float(x->dtype) && kind != BERTH_OP_SHRINK)
        return eval_unary_integer(ctx, x);
    if (kind == BERTH_OP_NOT || kind == BERTH_OP_BITWISE_NOT)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "not defined for floats");
    const double *values = berth_eval__load_f64(ctx, x);
    unary_params params = read_params(ctx);
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i)
        berth_eval__set_f64(&ctx->outputs[0], i, unary_f64(kind, values[i], &params));
    return BERTH_OK;
}

berth_status berth_eval__is_nan(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_BOOL, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_i64(&ctx->outputs[0], i, isnan(berth_tensor_get_f64(x, i)) != 0);
    return BERTH_OK;
}

berth_status berth_eval__is_inf(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    bool positive = berth_eval__int(ctx, "detect_positive", 1) != 0;
    bool negative = berth_eval__int(ctx, "detect_negative", 1) != 0;
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_BOOL, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    for (int64_t i = 0; i < count; ++i) {
        double value = berth_tensor_get_f64(x, i);
        berth_tensor_set_i64(&ctx->outputs[0], i,
                             isinf(value) && (value > 0 ? positive : negative));
    }
    return BERTH_OK;
}

berth_status berth_eval__cast(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_dtype to = berth_eval__dtype(ctx, "to", BERTH_DTYPE_NONE);
    if (!to) return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute to is missing");
    if (to == BERTH_DTYPE_STRING || x->dtype == BERTH_DTYPE_STRING)
        return berth_eval__cast_strings(ctx, to);
    BERTH_TRY(berth_eval__output(ctx, 0, to, x->rank, x->dims));
    int64_t count = berth_tensor_element_count(x);
    bool through_float = berth_dtype_is_float(x->dtype) || berth_dtype_is_float(to);
    for (int64_t i = 0; i < count; ++i) {
        if (to == BERTH_DTYPE_BOOL)
            berth_tensor_set_i64(&ctx->outputs[0], i, berth_tensor_get_f64(x, i) != 0);
        else if (through_float)
            berth_eval__set_f64(&ctx->outputs[0], i, berth_tensor_get_f64(x, i));
        else
            berth_tensor_set_i64(&ctx->outputs[0], i, berth_tensor_get_i64(x, i));
    }
    return BERTH_OK;
}

// ---- two operands

typedef struct binary_params {
    bool fmod;         // mod: sign of the dividend
    bool shift_left;   // bit_shift
    bool is_unsigned;  // integers
    unsigned bits;     // of the integer type
} binary_params;

static double mod_f64(double a, double b, bool truncated) {
    double rest = fmod(a, b);
    if (truncated || isnan(rest) || isnan(b)) return rest;
    if (rest == 0) return copysign(rest, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double binary_f64(berth_op_kind kind, double a, double b, const binary_params *p) {
    switch (kind) {
    case BERTH_OP_ADD:
    case BERTH_OP_SUM:
    case BERTH_OP_MEAN: return a + b;
    case BERTH_OP_SUB: return a - b;
    case BERTH_OP_MUL: return a * b;
    case BERTH_OP_DIV: return a / b;
    case BERTH_OP_MOD: return mod_f64(a, b, p->fmod);
    case BERTH_OP_PRELU: return a < 0 ? a * b : a;
    case BERTH_OP_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case BERTH_OP_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case BERTH_OP_EQUAL: return a == b;
    case BERTH_OP_GREATER: return a > b;
    case BERTH_OP_GREATER_OR_EQUAL: return a >= b;
    case BERTH_OP_LESS: return a < b;
    case BERTH_OP_LESS_OR_EQUAL: return a <= b;
    default: return NAN;
    }
}

static bool less_i64(int64_t a, int64_t b, bool is_unsigned) {
    return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

// Towards zero; the caller has refused b = 0. INT64_MIN / -1 wraps.
static int64_t div_i64(int64_t a, int64_t b, bool is_unsigned) {
    if (is_unsigned) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t mod_i64(int64_t a, int64_t b, const binary_params *p) {
    if (p->is_unsigned) return (int64_t)((uint64_t)a % (uint64_t)b);
    int64_t rest = b == -1 ? 0 : a % b;
    if (!p->fmod && rest != 0 && (rest < 0) != (b < 0)) rest += b;
    return rest;
}

static int64_t shift_i64(int64_t a, int64_t b, const binary_params *p) {
    bool beyond = (uint64_t)b >= p->bits;  // a negative b, too
    if (!p->shift_left && !p->is_unsigned) return a >> (beyond ? 63 : b);
    if (beyond) return 0;
    return (int64_t)(p->shift_left ? (uint64_t)a << b : (uint64_t)a >> b);
}

static int64_t binary_i64(berth_op_kind kind, int64_t a, int64_t b, const binary_params *p) {
    switch (kind) {
    case BERTH_OP_ADD:
    case BERTH_OP_SUM:
    case BERTH_OP_MEAN: return (int64_t)((uint64_t)a + (uint64_t)b);
    case BERTH_OP_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case BERTH_OP_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case BERTH_OP_DIV: return div_i64(a, b, p->is_unsigned);
    case BERTH_OP_MOD: return mod_i64(a, b, p);
    case BERTH_OP_BIT_SHIFT: return shift_i64(a, b, p);
    case BERTH_OP_BITWISE_AND: return a & b;
    case BERTH_OP_BITWISE_OR: return a | b;
    case BERTH_OP_BITWISE_XOR: return a ^ b;
    case BERTH_OP_AND: return a && b;
    case BERTH_OP_OR: return a || b;
    case BERTH_OP_XOR: return !a != !b;
    case BERTH_OP_PRELU: return a < 0 && !p->is_unsigned ? (int64_t)((uint64_t)a * (uint64_t)b) : a;
    case BERTH_OP_MIN: return less_i64(b, a, p->is_unsigned) ? b : a;
    case BERTH_OP_MAX: return less_i64(a, b, p->is_unsigned) ? b : a;
    case BERTH_OP_EQUAL: return a == b;
    case BERTH_OP_GREATER: return less_i64(b, a, p->is_unsigned);
    case BERTH_OP_GREATER_OR_EQUAL: return !less_i64(a, b, p->is_unsigned);
    case BERTH_OP_LESS: return less_i64(a, b, p->is_unsigned);
    case BERTH_OP_LESS_OR_EQUAL: return !less_i64(b, a, p->is_unsigned);
    default: return 0;
    }
}

static bool is_comparison(berth_op_kind kind) {
    return kind == BERTH_OP_EQUAL || kind == BERTH_OP_GREATER ||
           kind == BERTH_OP_GREATER_OR_EQUAL || kind == BERTH_OP_LESS ||
           kind == BERTH_OP_LESS_OR_EQUAL;
}

static bool is_bitwise(berth_op_kind kind) {
    return kind == BERTH_OP_BIT_SHIFT || kind == BERTH_OP_BITWISE_AND ||
           kind == BERTH_OP_BITWISE_OR || kind == BERTH_OP_BITWISE_XOR || kind == BERTH_OP_AND ||
           kind == BERTH_OP_OR || kind == BERTH_OP_XOR;
}

static berth_status check_same_dtype(const berth_eval_context *ctx) {
    for (uint32_t i = 0; i < ctx->op->input_count; ++i)
        if (ctx->inputs[i].dtype != ctx->inputs[0].dtype)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "operands are %s and %s",
                                     berth_dtype_name(ctx->inputs[0].dtype),
                                     berth_dtype_name(ctx->inputs[i].dtype));
    return BERTH_OK;
}

static binary_params read_binary_params(const berth_eval_context *ctx) {
    berth_dtype dtype = ctx->inputs[0].dtype;
    return (binary_params){.fmod = berth_eval__int(ctx, "fmod", 0) != 0,
                           .shift_left =
                               strcmp(berth_eval__string(ctx, "direction", "LEFT"), "LEFT") == 0,
                           .is_unsigned = !berth_dtype_is_signed(dtype),
                           .bits = (unsigned)berth_dtype_size_bytes(dtype) * 8};
}

static berth_status check_divisors(const int64_t *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (values[i] == 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "integer division by zero");
    return BERTH_OK;
}

berth_status berth_eval__binary(berth_eval_context *ctx) {
    berth_op_kind kind = ctx->op->kind;
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    BERTH_TRY(check_same_dtype(ctx));
    if (ctx->inputs[0].dtype == BERTH_DTYPE_STRING) return berth_eval__equal_strings(ctx);
    BERTH_TRY(berth_eval__broadcast_shape(ctx, 0, 2, dims, &rank));
    berth_dtype dtype = ctx->inputs[0].dtype;
    bool logical = kind == BERTH_OP_AND || kind == BERTH_OP_OR || kind == BERTH_OP_XOR;
    BERTH_TRY(berth_eval__output(ctx, 0, is_comparison(kind) || logical ? BERTH_DTYPE_BOOL : dtype,
                                 rank, dims));
    berth_tensor a, b, *out = &ctx->outputs[0];
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[0], rank, dims, &a));
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[1], rank, dims, &b));
    binary_params params = read_binary_params(ctx);
    int64_t count = berth_tensor_element_count(out);
    if (berth_dtype_is_float(dtype)) {
        if (is_bitwise(kind))
            return berth_status_make(BERTH_INVALID_ARGUMENT, "not defined for floats");
        const double *x = berth_eval__load_f64(ctx, &a), *y = berth_eval__load_f64(ctx, &b);
        for (int64_t i = 0; i < count; ++i)
            berth_eval__set_f64(out, i, binary_f64(kind, x[i], y[i], &params));
        return BERTH_OK;
    }
    const int64_t *x = berth_eval__load_i64(ctx, &a), *y = berth_eval__load_i64(ctx, &b);
    if (kind == BERTH_OP_DIV || kind == BERTH_OP_MOD) BERTH_TRY(check_divisors(y, count));
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_i64(out, i, binary_i64(kind, x[i], y[i], &params));
    return BERTH_OK;
}

// Square and multiply, with wrap-around; negative exponents truncate towards zero like the
// division.
static int64_t pow_i64(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1) result *= square;
    return (int64_t)result;
}

berth_status berth_eval__pow(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    BERTH_TRY(berth_eval__broadcast_shape(ctx, 0, 2, dims, &rank));
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, rank, dims));
    berth_tensor a, b, *out = &ctx->outputs[0];
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[0], rank, dims, &a));
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[1], rank, dims, &b));
    bool integers = !berth_dtype_is_float(a.dtype) && !berth_dtype_is_float(b.dtype);
    int64_t count = berth_tensor_element_count(out);
    for (int64_t i = 0; i < count; ++i) {
        if (integers)
            berth_tensor_set_i64(out, i,
                                 pow_i64(berth_tensor_get_i64(&a, i), berth_tensor_get_i64(&b, i)));
        else
            berth_eval__set_f64(out, i,
                                pow(berth_tensor_get_f64(&a, i), berth_tensor_get_f64(&b, i)));
    }
    return BERTH_OK;
}

// ---- any number of operands

static berth_status variadic_f64(berth_eval_context *ctx, int rank, const int64_t *dims,
                                 int64_t count) {
    double *sum = berth_eval__doubles(ctx, count);
    binary_params params = {0};
    for (uint32_t k = 0; k < ctx->op->input_count; ++k) {
        berth_tensor x;
        BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[k], rank, dims, &x));
        const double *values = berth_eval__load_f64(ctx, &x);
        for (int64_t i = 0; i < count; ++i)
            sum[i] = k == 0 ? values[i] : binary_f64(ctx->op->kind, sum[i], values[i], &params);
    }
    if (ctx->op->kind == BERTH_OP_MEAN)
        for (int64_t i = 0; i < count; ++i) sum[i] /= (double)ctx->op->input_count;
    berth_eval__store_f64(&ctx->outputs[0], sum);
    return BERTH_OK;
}

berth_status berth_eval__variadic(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    BERTH_TRY(check_same_dtype(ctx));
    BERTH_TRY(berth_eval__broadcast_shape(ctx, 0, ctx->op->input_count, dims, &rank));
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, rank, dims));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    if (berth_dtype_is_float(ctx->inputs[0].dtype)) return variadic_f64(ctx, rank, dims, count);
    int64_t *sum = berth_eval__indices(ctx, count);
    binary_params params = read_binary_params(ctx);
    for (uint32_t k = 0; k < ctx->op->input_count; ++k) {
        berth_tensor x;
        BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[k], rank, dims, &x));
        for (int64_t i = 0; i < count; ++i) {
            int64_t value = berth_tensor_get_i64(&x, i);
            sum[i] = k == 0 ? value : binary_i64(ctx->op->kind, sum[i], value, &params);
        }
    }
    if (ctx->op->kind == BERTH_OP_MEAN)
        for (int64_t i = 0; i < count; ++i) sum[i] /= ctx->op->input_count;
    berth_eval__store_i64(&ctx->outputs[0], sum);
    return BERTH_OK;
}

berth_status berth_eval__clip(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    const berth_tensor *low = berth_eval__optional(ctx, 1), *high = berth_eval__optional(ctx, 2);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    if (low) BERTH_TRY(berth_eval__need_count(low, "min", 1));
    if (high) BERTH_TRY(berth_eval__need_count(high, "max", 1));
    int64_t count = berth_tensor_element_count(x);
    bool is_unsigned = !berth_dtype_is_signed(x->dtype);
    for (int64_t i = 0; i < count; ++i) {
        if (berth_dtype_is_float(x->dtype)) {
            double value = berth_tensor_get_f64(x, i);  // min(max(x, low), high), with their NaN
            if (low && !(value >= berth_tensor_get_f64(low, 0)) && !isnan(value))
                value = berth_tensor_get_f64(low, 0);
            if (high && !(value <= berth_tensor_get_f64(high, 0)) && !isnan(value))
                value = berth_tensor_get_f64(high, 0);
            berth_eval__set_f64(&ctx->outputs[0], i, value);
        } else {
            int64_t value = berth_tensor_get_i64(x, i);
            if (low && less_i64(value, berth_tensor_get_i64(low, 0), is_unsigned))
                value = berth_tensor_get_i64(low, 0);
            if (high && less_i64(berth_tensor_get_i64(high, 0), value, is_unsigned))
                value = berth_tensor_get_i64(high, 0);
            berth_tensor_set_i64(&ctx->outputs[0], i, value);
        }
    }
    return BERTH_OK;
}

berth_status berth_eval__where(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    berth_dtype dtype = ctx->inputs[1].dtype;
    if (ctx->inputs[2].dtype != dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "operands are %s and %s",
                                 berth_dtype_name(dtype), berth_dtype_name(ctx->inputs[2].dtype));
    BERTH_TRY(berth_eval__broadcast_shape(ctx, 0, 3, dims, &rank));
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, rank, dims));
    berth_tensor sides[3], *out = &ctx->outputs[0];
    for (int k = 0; k < 3; ++k)
        BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[k], rank, dims, &sides[k]));
    int64_t count = berth_tensor_element_count(out);
    size_t size = berth_dtype_size_bytes(dtype);
    for (int64_t i = 0; i < count; ++i)
        berth_eval__copy_element(out->data, i,
                                 sides[berth_tensor_get_i64(&sides[0], i) ? 1 : 2].data, i, size);
    return BERTH_OK;
}
