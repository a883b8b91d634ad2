// Reductions over axes, arg_max and arg_min, running sums.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

// The axes to reduce and the output's shape.
typedef struct reduction {
    bool reduced[BERTH_MAX_RANK];
    int64_t strides[BERTH_MAX_RANK];  // of the output, per input dimension; 0 when reduced
    int64_t count;                    // input elements per output element
    int64_t dims[BERTH_MAX_RANK];     // output
    int rank;
} reduction;

static berth_status read_axes(const berth_eval_context *ctx, const berth_tensor *x,
                              reduction *out) {
    const berth_tensor *axes = berth_eval__optional(ctx, 1);
    int64_t list[BERTH_MAX_RANK];
    int count = 0;
    if (axes) BERTH_TRY(berth_eval__vector(axes, "axes", list, &count));
    bool all = count == 0 && berth_eval__int(ctx, "noop_with_empty_axes", 0) == 0;
    for (int i = 0; i < x->rank; ++i) out->reduced[i] = all;
    for (int i = 0; i < count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_axis_resolve(list[i], x->rank, "axes", &axis));
        out->reduced[axis] = true;
    }
    return BERTH_OK;
}

static void shape_reduction(const berth_tensor *x, bool keep, reduction *r) {
    int64_t stride = 1;
    r->count = 1;
    r->rank = 0;
    for (int i = x->rank - 1; i >= 0; --i) {
        r->strides[i] = r->reduced[i] ? 0 : stride;
        if (r->reduced[i])
            r->count *= x->dims[i];
        else
            stride *= x->dims[i];
    }
    for (int i = 0; i < x->rank; ++i)
        if (!r->reduced[i] || keep) r->dims[r->rank++] = r->reduced[i] ? 1 : x->dims[i];
}

// Calls for every input element: out[place of i] is what element i contributes to.
static int64_t *places(berth_eval_context *ctx, const berth_tensor *x, const reduction *r) {
    int64_t count = berth_tensor_element_count(x), index[BERTH_MAX_RANK] = {0}, place = 0;
    int64_t *out = berth_eval__indices(ctx, count);
    for (int64_t i = 0; i < count; ++i) {
        out[i] = place;
        for (int d = x->rank - 1; d >= 0; --d) {
            place += r->strides[d];
            if (++index[d] < x->dims[d]) break;
            place -= r->strides[d] * x->dims[d];
            index[d] = 0;
        }
    }
    return out;
}

static double start_f64(berth_op_kind kind) {
    switch (kind) {
    case BERTH_OP_REDUCE_MAX:
    case BERTH_OP_REDUCE_LOG_SUM_EXP: return -INFINITY;
    case BERTH_OP_REDUCE_MIN: return INFINITY;
    case BERTH_OP_REDUCE_PROD: return 1;
    default: return 0;
    }
}

static double step_f64(berth_op_kind kind, double sum, double x) {
    switch (kind) {
    case BERTH_OP_REDUCE_MAX:
    case BERTH_OP_REDUCE_LOG_SUM_EXP: return isnan(x) || x > sum ? x : sum;
    case BERTH_OP_REDUCE_MIN: return isnan(x) || x < sum ? x : sum;
    case BERTH_OP_REDUCE_PROD: return sum * x;
    case BERTH_OP_REDUCE_L1: return sum + fabs(x);
    case BERTH_OP_REDUCE_L2:
    case BERTH_OP_REDUCE_SUM_SQUARE: return sum + x * x;
    default: return sum + x;
    }
}

static double finish_f64(berth_op_kind kind, double sum, int64_t count) {
    switch (kind) {
    case BERTH_OP_REDUCE_MEAN: return sum / (double)count;
    case BERTH_OP_REDUCE_L2: return sqrt(sum);
    case BERTH_OP_REDUCE_LOG_SUM: return log(sum);
    default: return sum;
    }
}

// log(sum(exp(x))) around the maximum of each group, which is in `largest`.
static void log_sum_exp(berth_eval_context *ctx, const double *values, const int64_t *place,
                        int64_t count, double *largest, int64_t out_count) {
    double *sum = berth_eval__doubles(ctx, out_count);
    for (int64_t i = 0; i < count; ++i) {
        double top = largest[place[i]];
        sum[place[i]] += isinf(top) ? values[i] == top : exp(values[i] - top);
    }
    for (int64_t i = 0; i < out_count; ++i) largest[i] += log(sum[i]);
}

static void reduce_f64(berth_eval_context *ctx, const berth_tensor *x, const reduction *r) {
    berth_op_kind kind = ctx->op->kind;
    const double *values = berth_eval__load_f64(ctx, x);
    const int64_t *place = places(ctx, x, r);
    int64_t count = berth_tensor_element_count(x);
    int64_t out_count = berth_tensor_element_count(&ctx->outputs[0]);
    double *sum = berth_eval__doubles(ctx, out_count);
    for (int64_t i = 0; i < out_count; ++i) sum[i] = start_f64(kind);
    for (int64_t i = 0; i < count; ++i) sum[place[i]] = step_f64(kind, sum[place[i]], values[i]);
    if (kind == BERTH_OP_REDUCE_LOG_SUM_EXP) log_sum_exp(ctx, values, place, count, sum, out_count);
    for (int64_t i = 0; i < out_count; ++i) sum[i] = finish_f64(kind, sum[i], r->count);
    berth_eval__store_f64(&ctx->outputs[0], sum);
}

static int64_t step_i64(berth_op_kind kind, int64_t sum, int64_t x, bool is_unsigned) {
    bool less = is_unsigned ? (uint64_t)x < (uint64_t)sum : x < sum;
    switch (kind) {
    case BERTH_OP_REDUCE_MAX: return less ? sum : x;
    case BERTH_OP_REDUCE_MIN: return less ? x : sum;
    case BERTH_OP_REDUCE_PROD: return (int64_t)((uint64_t)sum * (uint64_t)x);
    case BERTH_OP_REDUCE_L1:
        return (int64_t)((uint64_t)sum + (x < 0 && !is_unsigned ? 0 - (uint64_t)x : (uint64_t)x));
    case BERTH_OP_REDUCE_SUM_SQUARE: return (int64_t)((uint64_t)sum + (uint64_t)x * (uint64_t)x);
    default: return (int64_t)((uint64_t)sum + (uint64_t)x);
    }
}

static berth_status reduce_i64(berth_eval_context *ctx, const berth_tensor *x, const reduction *r) {
    berth_op_kind kind = ctx->op->kind;
    bool extremum = kind == BERTH_OP_REDUCE_MAX || kind == BERTH_OP_REDUCE_MIN;
    const int64_t *values = berth_eval__load_i64(ctx, x), *place = places(ctx, x, r);
    int64_t count = berth_tensor_element_count(x);
    int64_t out_count = berth_tensor_element_count(&ctx->outputs[0]);
    bool is_unsigned = !berth_dtype_is_signed(x->dtype);
    if (count == 0 && out_count > 0 && (extremum || kind == BERTH_OP_REDUCE_MEAN))
        return berth_status_make(BERTH_UNSUPPORTED, "an empty set of integers has no result");
    int64_t *sum = berth_eval__indices(ctx, out_count);
    for (int64_t i = 0; i < out_count; ++i) sum[i] = kind == BERTH_OP_REDUCE_PROD;
    for (int64_t i = 0; extremum && i < count; ++i) sum[place[i]] = values[i];
    for (int64_t i = 0; i < count; ++i)
        sum[place[i]] = step_i64(kind, sum[place[i]], values[i], is_unsigned);
    for (int64_t i = 0; kind == BERTH_OP_REDUCE_MEAN && i < out_count; ++i) sum[i] /= r->count;
    berth_eval__store_i64(&ctx->outputs[0], sum);
    return BERTH_OK;
}

berth_status berth_eval__reduce(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_op_kind kind = ctx->op->kind;
    reduction r = {0};
    BERTH_TRY(read_axes(ctx, x, &r));
    shape_reduction(x, berth_eval__int(ctx, "keepdims", 1) != 0, &r);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, r.rank, r.dims));
    bool through_float = kind == BERTH_OP_REDUCE_L2 || kind == BERTH_OP_REDUCE_LOG_SUM ||
                         kind == BERTH_OP_REDUCE_LOG_SUM_EXP;
    if (!berth_dtype_is_float(x->dtype) && !through_float) return reduce_i64(ctx, x, &r);
    reduce_f64(ctx, x, &r);
    return BERTH_OK;
}

berth_status berth_eval__arg_reduce(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    bool last = berth_eval__int(ctx, "select_last_index", 0) != 0;
    bool largest = ctx->op->kind == BERTH_OP_ARG_MAX;
    int axis = 0;
    reduction r = {0};
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    r.reduced[axis] = true;
    shape_reduction(x, berth_eval__int(ctx, "keepdims", 1) != 0, &r);
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I64, r.rank, r.dims));
    int64_t extent = x->dims[axis], inner = berth_eval__product(x->dims, axis + 1, x->rank);
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    if (extent == 0 && count > 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "axis %d is empty", axis);
    bool exact = x->dtype == BERTH_DTYPE_I64 || x->dtype == BERTH_DTYPE_U64;
    uint64_t flip = x->dtype == BERTH_DTYPE_U64 ? (uint64_t)1 << 63 : 0;
    for (int64_t i = 0; i < count; ++i) {
        int64_t base = i / inner * inner * extent + i % inner, best = 0;
        for (int64_t k = 1; k < extent; ++k) {
            int64_t here = base + k * inner, held = base + best * inner;
            double a = berth_tensor_get_f64(x, here), b = berth_tensor_get_f64(x, held);
            int order = (a > b) - (a < b);
            if (isnan(a)) continue;  // NaN never wins
            if (isnan(b)) order = largest ? 1 : -1;
            if (exact) {
                int64_t m = (int64_t)((uint64_t)berth_tensor_get_i64(x, here) ^ flip);
                int64_t n = (int64_t)((uint64_t)berth_tensor_get_i64(x, held) ^ flip);
                order = (m > n) - (m < n);
            }
            if ((largest ? order > 0 : order < 0) || (order == 0 && last)) best = k;
        }
        berth_tensor_set_i64(&ctx->outputs[0], i, best);
    }
    return BERTH_OK;
}

// cum_sum, cum_prod
berth_status berth_eval__cumulative(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int axis = 0;
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[1], "axis", 1));
    BERTH_TRY(berth_axis_resolve(berth_tensor_get_i64(&ctx->inputs[1], 0), x->rank, "axis", &axis));
    bool exclusive = berth_eval__int(ctx, "exclusive", 0) != 0;
    bool reverse = berth_eval__int(ctx, "reverse", 0) != 0;
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    int64_t extent = x->dims[axis], inner = berth_eval__product(x->dims, axis + 1, x->rank);
    int64_t lines = extent ? berth_tensor_element_count(x) / extent : 0;
    bool is_float = berth_dtype_is_float(x->dtype), product = ctx->op->kind == BERTH_OP_CUM_PROD;
    for (int64_t i = 0; i < lines; ++i) {
        int64_t base = i / inner * inner * extent + i % inner;
        double sum = product;
        uint64_t integer_sum = product;
        for (int64_t k = 0; k < extent; ++k) {
            int64_t at = base + (reverse ? extent - 1 - k : k) * inner;
            double before = sum;
            uint64_t integer_before = integer_sum;
            if (is_float)
                sum =
                    product ? sum * berth_tensor_get_f64(x, at) : sum + berth_tensor_get_f64(x, at);
            else if (product)
                integer_sum *= (uint64_t)berth_tensor_get_i64(x, at);
            else
                integer_sum += (uint64_t)berth_tensor_get_i64(x, at);
            if (is_float)
                berth_eval__set_f64(&ctx->outputs[0], at, exclusive ? before : sum);
            else
                berth_tensor_set_i64(&ctx->outputs[0], at,
                                     (int64_t)(exclusive ? integer_before : integer_sum));
        }
    }
    return BERTH_OK;
}
