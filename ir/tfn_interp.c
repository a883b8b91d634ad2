#include "ir/tfn_interp.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define MAX_LANES BERTH_TFN_INTERP_MAX_LANES

// Every lane is kept as an int64 (integers, bools, indices) or a double (floats), by the node's
// dtype.
typedef union lane {
    int64_t i;
    double f;
} lane;

typedef struct value {
    uint16_t lanes;  // 0 = unset
    lane at[MAX_LANES];
} value;

// What a work-item owns: variables and the storage of buffers. Without LOCAL loops there is one
// item.
typedef struct item {
    value *vars;
    unsigned char **storage;  // by buffer
} item;

typedef struct interp {
    const berth_tfn *fn;
    berth_arena *arena;
    berth_layout *layouts;    // by buffer
    int64_t *element_counts;  // by buffer, in elements of `lanes` scalars
    uint8_t *has_barrier;     // by statement: 0 unknown, 1 no, 2 yes
    value **memo;             // by expression: value in `memo_epoch[id]`
    uint64_t *memo_epoch;
    uint64_t epoch;
} interp;

static berth_status eval(interp *in, item *me, berth_expr id, value *out);

static const char *buffer_name(const interp *in, berth_buf buf) {
    return berth_module_str(in->fn->module, in->fn->bufs.data[buf].name);
}

// ---- storage
// --------------------------------------------------------------------------------------------------------

static lane read_lane(berth_dtype dtype, const unsigned char *at) {
    berth_tensor scalar = {.dtype = dtype, .rank = 0};
    unsigned char bytes[8];
    memcpy(bytes, at, berth_dtype_size_bytes(dtype));
    scalar.data = bytes;
    lane result;
    if (berth_dtype_is_float(dtype))
        result.f = berth_tensor_get_f64(&scalar, 0);
    else
        result.i = berth_tensor_get_i64(&scalar, 0);
    return result;
}

static void write_lane(berth_dtype dtype, unsigned char *at, lane what) {
    unsigned char bytes[8];
    berth_tensor scalar = {.dtype = dtype, .rank = 0, .data = bytes};
    if (berth_dtype_is_float(dtype))
        berth_tensor_set_f64(&scalar, 0, what.f);
    else
        berth_tensor_set_i64(&scalar, 0, what.i);
    memcpy(at, bytes, berth_dtype_size_bytes(dtype));
}

static berth_status locate(interp *in, berth_buf buf, const value *indices, int count, int which,
                           int64_t *out_offset) {
    const berth_buf_info *info = &in->fn->bufs.data[buf];
    if (count != info->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s has %d dimensions, accessed with %d indices",
                                 buffer_name(in, buf), info->rank, count);
    int64_t at[BERTH_MAX_RANK];
    for (int d = 0; d < count; ++d) {
        at[d] = indices[d].at[indices[d].lanes > 1 ? which : 0].i;
        int64_t block = in->layouts[buf].total_block[d];
        int64_t limit = (info->dims[d] + block - 1) / block * block;
        if (at[d] < 0 || at[d] >= limit)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%s: index %lld of dimension %d is outside [0, %lld)",
                                     buffer_name(in, buf), (long long)at[d], d, (long long)limit);
    }
    *out_offset = berth_layout_offset(&in->layouts[buf], info->dims, at);
    return BERTH_OK;
}

// Evaluates the indices of an access; gives the number of positions (1, or the lanes of a ramp).
static berth_status eval_indices(interp *in, item *me, const berth_expr *ids, int count,
                                 value *indices, int *out_positions) {
    *out_positions = 1;
    for (int d = 0; d < count; ++d) {
        BERTH_TRY(eval(in, me, ids[d], &indices[d]));
        if (indices[d].lanes > 1) *out_positions = indices[d].lanes;
    }
    return BERTH_OK;
}

static berth_status storage_of(interp *in, const item *me, berth_buf buf,
                               unsigned char **out_data) {
    *out_data = me->storage[buf];
    if (*out_data || in->element_counts[buf] == 0) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s is used where it is not allocated",
                             buffer_name(in, buf));
}

static berth_status eval_load(interp *in, item *me, const berth_expr_node *node,
                              const berth_expr *ids, value *out) {
    const berth_buf_info *info = &in->fn->bufs.data[node->load.buf];
    value indices[BERTH_MAX_RANK];
    int positions = 1;
    unsigned char *data = NULL;
    BERTH_TRY(eval_indices(in, me, ids, node->index_count, indices, &positions));
    BERTH_TRY(storage_of(in, me, node->load.buf, &data));
    int width = info->lanes > 1 ? info->lanes : 1;
    if (positions * width > MAX_LANES)
        return berth_status_make(BERTH_UNSUPPORTED, "a load of too many lanes");
    size_t size = berth_dtype_size_bytes(info->dtype);
    out->lanes = (uint16_t)(positions * width);
    for (int p = 0; p < positions; ++p) {
        int64_t offset = 0;
        BERTH_TRY(locate(in, node->load.buf, indices, node->index_count, p, &offset));
        for (int l = 0; l < width; ++l)
            out->at[p * width + l] =
                read_lane(info->dtype, data + (size_t)(offset * width + l) * size);
    }
    return BERTH_OK;
}

static berth_status exec_store(interp *in, item *me, const berth_stmt_node *node,
                               const berth_expr *ids) {
    const berth_buf_info *info = &in->fn->bufs.data[node->buf];
    value indices[BERTH_MAX_RANK];
    value what;
    int positions = 1;
    unsigned char *data = NULL;
    BERTH_TRY(eval_indices(in, me, ids, node->index_count, indices, &positions));
    BERTH_TRY(eval(in, me, node->value, &what));
    BERTH_TRY(storage_of(in, me, node->buf, &data));
    int width = info->lanes > 1 ? info->lanes : 1;
    if (what.lanes != 1 && what.lanes != positions * width)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: a value of %d lanes stored to %d",
                                 buffer_name(in, node->buf), what.lanes, positions * width);
    size_t size = berth_dtype_size_bytes(info->dtype);
    for (int p = 0; p < positions; ++p) {
        int64_t offset = 0;
        BERTH_TRY(locate(in, node->buf, indices, node->index_count, p, &offset));
        for (int l = 0; l < width; ++l)
            write_lane(info->dtype, data + (size_t)(offset * width + l) * size,
                       what.at[what.lanes == 1 ? 0 : p * width + l]);
    }
    return BERTH_OK;
}

// ---- arithmetic
// -----------------------------------------------------------------------------------------------------

static double round_to(berth_dtype dtype, double x) {
    switch (dtype) {
    case BERTH_DTYPE_F32: return (double)(float)x;
    case BERTH_DTYPE_F16: return (double)berth_f16_to_f32(berth_f32_to_f16((float)x));
    case BERTH_DTYPE_BF16: return (double)berth_bf16_to_f32(berth_f32_to_bf16((float)x));
    default: return x;
    }
}

static int64_t wrap_to(berth_dtype dtype, uint64_t x) {
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

static berth_status eval_unary(const berth_expr_node *node, berth_dtype from, const value *a,
                               value *out) {
    out->lanes = a->lanes;
    for (int l = 0; l < a->lanes; ++l) {
        if (berth_dtype_is_float(from)) {
            if (node->op == BERTH_UNARY_IS_NAN)
                out->at[l].i = isnan(a->at[l].f) != 0;
            else if (node->op == BERTH_UNARY_IS_INF)
                out->at[l].i = isinf(a->at[l].f) != 0;
            else
                out->at[l].f = round_to((berth_dtype)node->dtype,
                                        unary_float((berth_unary)node->op, a->at[l].f));
        } else {
            uint64_t bits = (uint64_t)unary_int((berth_unary)node->op, a->at[l].i);
            out->at[l].i = wrap_to((berth_dtype)node->dtype, bits);
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
    if (b == 0) return berth_status_make(BERTH_INVALID_ARGUMENT, "division by zero");
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
        *out = b < 0 || b >= bits ? 0 : is_unsigned ? (int64_t)(ua >> ub) : a >> b;
        break;
    default:
        return berth_status_make(BERTH_INVALID_ARGUMENT, "an operator that integers do not have");
    }
    *out = wrap_to((berth_dtype)node->dtype, (uint64_t)*out);
    return BERTH_OK;
}

static berth_status eval_binary(const berth_expr_node *node, berth_dtype from, const value *a,
                                const value *b, value *out) {
    out->lanes = a->lanes > b->lanes ? a->lanes : b->lanes;
    bool is_float = berth_dtype_is_float(from);
    bool is_unsigned = berth_dtype_is_integer(from) && !berth_dtype_is_signed(from);
    for (int l = 0; l < out->lanes; ++l) {
        lane x = a->at[a->lanes > 1 ? l : 0];
        lane y = b->at[b->lanes > 1 ? l : 0];
        bool unordered = is_float && (isnan(x.f) || isnan(y.f));
        int order = is_float ? (x.f > y.f) - (x.f < y.f)
                    : is_unsigned
                        ? ((uint64_t)x.i > (uint64_t)y.i) - ((uint64_t)x.i < (uint64_t)y.i)
                        : (x.i > y.i) - (x.i < y.i);
        bool result = false;
        if (compare((berth_binary)node->op, order, unordered, &result))
            out->at[l].i = result;
        else if (is_float)
            out->at[l].f =
                round_to((berth_dtype)node->dtype, binary_float((berth_binary)node->op, x.f, y.f));
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

static void eval_cast(berth_dtype from, berth_dtype to, const value *a, value *out) {
    out->lanes = a->lanes;
    for (int l = 0; l < a->lanes; ++l) {
        lane x = a->at[l];
        bool from_float = berth_dtype_is_float(from);
        if (berth_dtype_is_float(to)) {
            double exact = from_float                ? x.f
                           : from == BERTH_DTYPE_U64 ? (double)(uint64_t)x.i
                                                     : (double)x.i;
            if (!from_float && to == BERTH_DTYPE_F32)
                exact = from == BERTH_DTYPE_U64 ? (double)(float)(uint64_t)x.i : (double)(float)x.i;
            out->at[l].f = round_to(to, exact);
        } else
            out->at[l].i = from_float ? saturate(to, x.f) : wrap_to(to, (uint64_t)x.i);
    }
}

// ---- expressions
// ----------------------------------------------------------------------------------------------------

static berth_status eval_select(interp *in, item *me, const berth_expr_node *node, value *out) {
    value condition;
    BERTH_TRY(eval(in, me, node->a, &condition));
    bool any_true = false;
    bool any_false = false;
    for (int l = 0; l < condition.lanes; ++l) *(condition.at[l].i ? &any_true : &any_false) = true;
    value if_true = {0};
    value if_false = {0};
    if (any_true) BERTH_TRY(eval(in, me, node->b, &if_true));
    if (any_false) BERTH_TRY(eval(in, me, node->c, &if_false));
    out->lanes = node->lanes ? node->lanes : 1;
    for (int l = 0; l < out->lanes; ++l) {
        const value *side = condition.at[condition.lanes > 1 ? l : 0].i ? &if_true : &if_false;
        out->at[l] = side->at[side->lanes > 1 ? l : 0];
    }
    return BERTH_OK;
}

static void eval_fma(berth_dtype dtype, const value *a, const value *b, const value *c,
                     value *out) {
    out->lanes = a->lanes > b->lanes ? a->lanes : b->lanes;
    if (c->lanes > out->lanes) out->lanes = c->lanes;
    for (int l = 0; l < out->lanes; ++l) {
        lane x = a->at[a->lanes > 1 ? l : 0];
        lane y = b->at[b->lanes > 1 ? l : 0];
        lane z = c->at[c->lanes > 1 ? l : 0];
        if (dtype == BERTH_DTYPE_F32)
            out->at[l].f = (double)fmaf((float)x.f, (float)y.f, (float)z.f);
        else if (berth_dtype_is_float(dtype))
            out->at[l].f = round_to(dtype, fma(x.f, y.f, z.f));
        else
            out->at[l].i = wrap_to(dtype, (uint64_t)x.i * (uint64_t)y.i + (uint64_t)z.i);
    }
}

static void eval_reduce_add(const berth_expr_node *node, const value *a, value *out) {
    out->lanes = 1;
    bool is_float = berth_dtype_is_float((berth_dtype)node->dtype);
    lane sum = a->at[0];
    for (int l = 1; l < a->lanes; ++l) {
        if (is_float)
            sum.f = round_to((berth_dtype)node->dtype, sum.f + a->at[l].f);
        else
            sum.i = wrap_to((berth_dtype)node->dtype, (uint64_t)sum.i + (uint64_t)a->at[l].i);
    }
    out->at[0] = sum;
}

static berth_status eval_widen(const berth_expr_node *node, const value *a, value *out) {
    if (node->lanes > MAX_LANES)
        return berth_status_make(BERTH_UNSUPPORTED, "vectors of more than %d lanes", MAX_LANES);
    out->lanes = node->lanes;
    for (int l = 0; l < node->lanes; ++l) {
        out->at[l] = a->at[0];
        if (node->kind == BERTH_EXPR_RAMP) out->at[l].i += l;
    }
    return BERTH_OK;
}

static berth_status eval_node(interp *in, item *me, berth_expr id, value *out) {
    const berth_tfn *fn = in->fn;
    const berth_expr_node *node = berth_tfn_expr(fn, id);
    value a;
    value b;
    value c;
    out->lanes = 1;
    switch ((berth_expr_kind)node->kind) {
    case BERTH_EXPR_INT: out->at[0].i = node->i; return BERTH_OK;
    case BERTH_EXPR_FLOAT:
        out->at[0].f = round_to((berth_dtype)node->dtype, node->f);
        return BERTH_OK;
    case BERTH_EXPR_VAR:
        if (!me->vars[node->var].lanes)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "variable %s is used outside its scope",
                                     berth_module_str(fn->module, fn->vars.data[node->var].name));
        *out = me->vars[node->var];
        return BERTH_OK;
    case BERTH_EXPR_LOAD: return eval_load(in, me, node, berth_tfn_load_indices(fn, id), out);
    case BERTH_EXPR_SELECT: return eval_select(in, me, node, out);
    case BERTH_EXPR_UNARY:
        BERTH_TRY(eval(in, me, node->a, &a));
        return eval_unary(node, (berth_dtype)berth_tfn_expr(fn, node->a)->dtype, &a, out);
    case BERTH_EXPR_BINARY: {
        BERTH_TRY(eval(in, me, node->a, &a));
        bool decides = node->lanes <= 1 && ((node->op == BERTH_BINARY_AND && !a.at[0].i) ||
                                            (node->op == BERTH_BINARY_OR && a.at[0].i));
        if (decides && !berth_dtype_is_float((berth_dtype)berth_tfn_expr(fn, node->a)->dtype)) {
            out->at[0].i = a.at[0].i != 0;
            return BERTH_OK;
        }
        BERTH_TRY(eval(in, me, node->b, &b));
        return eval_binary(node, (berth_dtype)berth_tfn_expr(fn, node->a)->dtype, &a, &b, out);
    }
    case BERTH_EXPR_FMA:
        BERTH_TRY(eval(in, me, node->a, &a));
        BERTH_TRY(eval(in, me, node->b, &b));
        BERTH_TRY(eval(in, me, node->c, &c));
        eval_fma((berth_dtype)node->dtype, &a, &b, &c, out);
        return BERTH_OK;
    case BERTH_EXPR_CAST:
        BERTH_TRY(eval(in, me, node->a, &a));
        eval_cast((berth_dtype)berth_tfn_expr(fn, node->a)->dtype, (berth_dtype)node->dtype, &a,
                  out);
        return BERTH_OK;
    case BERTH_EXPR_BROADCAST:
    case BERTH_EXPR_RAMP: BERTH_TRY(eval(in, me, node->a, &a)); return eval_widen(node, &a, out);
    case BERTH_EXPR_REDUCE_ADD:
        BERTH_TRY(eval(in, me, node->a, &a));
        eval_reduce_add(node, &a, out);
        return BERTH_OK;
    case BERTH_EXPR_NONE: break;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "expression %u is missing", id);
}

// Nodes are shared: each is computed once per statement.
static berth_status eval(interp *in, item *me, berth_expr id, value *out) {
    if (id >= in->fn->exprs.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "expression %u does not exist", id);
    if (in->memo_epoch[id] != in->epoch) {
        value result;
        BERTH_TRY(eval_node(in, me, id, &result));
        if (!in->memo[id])
            in->memo[id] =
                berth_arena_alloc(in->arena, offsetof(value, at) + sizeof(lane) * MAX_LANES);
        memcpy(in->memo[id], &result, offsetof(value, at) + sizeof(lane) * result.lanes);
        in->memo_epoch[id] = in->epoch;
    }
    memcpy(out, in->memo[id], offsetof(value, at) + sizeof(lane) * in->memo[id]->lanes);
    return BERTH_OK;
}

// ---- statements
// -----------------------------------------------------------------------------------------------------

static bool has_barrier(interp *in, berth_stmt id) {
    if (!id) return false;
    if (in->has_barrier[id]) return in->has_barrier[id] == 2;
    const berth_stmt_node *node = berth_tfn_stmt(in->fn, id);
    bool found = node->kind == BERTH_STMT_BARRIER;
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            found = has_barrier(in, in->fn->lists.data[node->first + i]) || found;
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF)
        found = has_barrier(in, node->body) || has_barrier(in, node->other) || found;
    in->has_barrier[id] = found ? 2 : 1;
    return found;
}

static berth_status exec(interp *in, item *items, uint32_t count, berth_stmt id);

static berth_status eval_scalar(interp *in, item *me, berth_expr id, int64_t *out) {
    value result;
    in->epoch++;
    BERTH_TRY(eval(in, me, id, &result));
    *out = result.at[0].i;
    return BERTH_OK;
}

static void set_index(item *me, berth_var var, int64_t i) {
    me->vars[var].lanes = 1;
    me->vars[var].at[0].i = i;
}

static item copy_item(interp *in, const item *from) {
    item copy;
    copy.vars = berth_arena_copy(in->arena, from->vars, in->fn->vars.count * sizeof(value) + 1);
    copy.storage =
        berth_arena_copy(in->arena, from->storage, in->fn->bufs.count * sizeof(void *) + 1);
    return copy;
}

// A loop over work-items: its iterations become items that run in step.
static berth_status exec_local(interp *in, item *items, uint32_t count, const berth_stmt_node *node,
                               int64_t extent) {
    if (extent > 4096) return berth_status_make(BERTH_UNSUPPORTED, "more than 4096 work-items");
    item *wider = berth_arena_new_array(in->arena, item, (size_t)count * (size_t)extent + 1);
    uint32_t total = 0;
    for (uint32_t i = 0; i < count; ++i)
        for (int64_t w = 0; w < extent; ++w) {
            wider[total] = copy_item(in, &items[i]);
            set_index(&wider[total++], node->var, w);
        }
    return exec(in, wider, total, node->body);
}

static berth_status exec_for(interp *in, item *items, uint32_t count, const berth_stmt_node *node) {
    int64_t extent = 0;
    BERTH_TRY(eval_scalar(in, &items[0], node->value, &extent));
    bool local = node->loop_kind >= BERTH_LOOP_LOCAL_X && node->loop_kind <= BERTH_LOOP_LOCAL_Z;
    if (local && has_barrier(in, node->body)) return exec_local(in, items, count, node, extent);
    for (int64_t i = 0; i < extent; ++i) {
        for (uint32_t k = 0; k < count; ++k) set_index(&items[k], node->var, i);
        BERTH_TRY(exec(in, items, count, node->body));
    }
    for (uint32_t k = 0; k < count; ++k) items[k].vars[node->var].lanes = 0;
    return BERTH_OK;
}

// A fresh buffer, filled with NaN (all bits set); work-items of a group share LOCAL ones.
static void exec_alloc(interp *in, item *items, uint32_t count, berth_buf buf) {
    const berth_buf_info *info = &in->fn->bufs.data[buf];
    size_t bytes = (size_t)in->element_counts[buf] * (info->lanes > 1 ? info->lanes : 1) *
                   berth_dtype_size_bytes(info->dtype);
    bool shared = info->scope == BERTH_SCOPE_LOCAL;
    for (uint32_t k = 0; k < count; ++k) {
        if (shared && k)
            items[k].storage[buf] = items[0].storage[buf];
        else if (!items[k].storage[buf])
            items[k].storage[buf] = berth_arena_alloc(in->arena, bytes + 1);
        memset(items[k].storage[buf], 0xff, bytes);
    }
}

static berth_status exec_single(interp *in, item *me, const berth_stmt_node *node, berth_stmt id) {
    in->epoch++;
    if (node->kind == BERTH_STMT_STORE)
        return exec_store(in, me, node, berth_tfn_store_indices(in->fn, id));
    if (node->kind == BERTH_STMT_LET) {
        value result;
        BERTH_TRY(eval(in, me, node->value, &result));
        me->vars[node->var] = result;
        return BERTH_OK;
    }
    int64_t condition = 0;
    BERTH_TRY(eval_scalar(in, me, node->value, &condition));
    berth_stmt branch = condition ? node->body : node->other;
    return branch ? exec(in, me, 1, branch) : BERTH_OK;
}

// Statements with barriers inside run for all items together (their control flow must be uniform);
// others run for one item after the other.
static berth_status exec(interp *in, item *items, uint32_t count, berth_stmt id) {
    if (id == 0 || id >= in->fn->stmts.count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "statement %u does not exist", id);
    const berth_stmt_node *node = berth_tfn_stmt(in->fn, id);
    bool alone = count == 1 || has_barrier(in, id) || node->kind == BERTH_STMT_ALLOC;
    if (!alone) {
        for (uint32_t k = 0; k < count; ++k) BERTH_TRY(exec(in, &items[k], 1, id));
        return BERTH_OK;
    }
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            BERTH_TRY(exec(in, items, count, in->fn->lists.data[node->first + i]));
        return BERTH_OK;
    case BERTH_STMT_FOR: return exec_for(in, items, count, node);
    case BERTH_STMT_ALLOC: exec_alloc(in, items, count, node->buf); return BERTH_OK;
    case BERTH_STMT_BARRIER: return BERTH_OK;
    case BERTH_STMT_STORE:
    case BERTH_STMT_LET: return exec_single(in, &items[0], node, id);
    case BERTH_STMT_IF:
        if (count == 1) return exec_single(in, &items[0], node, id);
        {
            int64_t condition = 0;
            BERTH_TRY(eval_scalar(in, &items[0], node->value, &condition));
            berth_stmt branch = condition ? node->body : node->other;
            return branch ? exec(in, items, count, branch) : BERTH_OK;
        }
    case BERTH_STMT_NONE: break;
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "statement %u is missing", id);
}

// ---- entry
// ----------------------------------------------------------------------------------------------------------

static berth_status prepare_buffers(interp *in, item *root, void *const *buffers) {
    const berth_tfn *fn = in->fn;
    for (uint32_t b = 0; b < fn->bufs.count; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        for (int d = 0; d < info->rank; ++d)
            if (info->dims[d] < 0)
                return berth_status_make(BERTH_UNSUPPORTED, "%s has a symbolic dimension",
                                         buffer_name(in, b));
        BERTH_TRY(berth_layout_parse(berth_module_str(fn->module, info->layout), info->rank,
                                     &in->layouts[b]));
        in->element_counts[b] = berth_layout_element_count(&in->layouts[b], info->dims);
        if (b < fn->param_count)
            root->storage[b] = buffers[b];
        else if (info->scope == BERTH_SCOPE_WORKSPACE)
            exec_alloc(in, root, 1, b);
    }
    return BERTH_OK;
}

typedef struct call {
    const berth_tfn *fn;
    void *const *buffers;
    berth_arena *arena;
} call;

static berth_status interpret(void *user) {
    call *c = user;
    const berth_tfn *fn = c->fn;
    berth_arena *scratch = berth_arena_create_child(c->arena);
    interp in = {.fn = fn, .arena = scratch};
    in.layouts = berth_arena_new_array(scratch, berth_layout, fn->bufs.count + 1);
    in.element_counts = berth_arena_new_array(scratch, int64_t, fn->bufs.count + 1);
    in.has_barrier = berth_arena_new_array(scratch, uint8_t, fn->stmts.count + 1);
    in.memo = berth_arena_new_array(scratch, value *, fn->exprs.count + 1);
    in.memo_epoch = berth_arena_new_array(scratch, uint64_t, fn->exprs.count + 1);
    item root;
    root.vars = berth_arena_new_array(scratch, value, fn->vars.count + 1);
    root.storage = berth_arena_new_array(scratch, unsigned char *, fn->bufs.count + 1);
    berth_status status = prepare_buffers(&in, &root, c->buffers);
    if (!status && fn->body) status = exec(&in, &root, 1, fn->body);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_tfn_interpret(const berth_tfn *fn, void *const *buffers, berth_arena *arena) {
    call c = {fn, buffers, arena};
    return berth_arena_try(arena, interpret, &c);
}
