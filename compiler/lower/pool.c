#include "compiler/lower/families.h"

#include <math.h>

static const char *const output_names[4][5] = {
    {0}, {"n", "oc", "ow"}, {"n", "oc", "oh", "ow"}, {"n", "oc", "od", "oh", "ow"}};
static const char *const kernel_names[4][3] = {{0}, {"kw"}, {"kh", "kw"}, {"kd", "kh", "kw"}};

berth_expr berth_lower__lowest(berth_lower *c, berth_dtype dtype) {
    if (berth_dtype_is_float(dtype)) return berth_tfn_float(c->fn, dtype, (double)-INFINITY);
    int bits = (int)berth_dtype_size_bytes(dtype) * 8;
    if (!berth_dtype_is_signed(dtype)) return berth_tfn_int(c->fn, dtype, 0);
    return berth_tfn_int(c->fn, dtype, bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)));
}

berth_expr berth_lower__highest(berth_lower *c, berth_dtype dtype) {
    if (berth_dtype_is_float(dtype)) return berth_tfn_float(c->fn, dtype, (double)INFINITY);
    if (dtype == BERTH_DTYPE_BOOL) return berth_tfn_int(c->fn, dtype, 1);
    int bits = (int)berth_dtype_size_bytes(dtype) * 8;
    if (berth_dtype_is_signed(dtype)) bits -= 1;
    return berth_tfn_int(c->fn, dtype,
                         bits == 64   ? -1
                         : bits == 63 ? INT64_MAX
                                      : ((int64_t)1 << bits) - 1);
}

static bool describe(berth_lower *c, const berth_op *op, berth_window *w) {
    const berth_type *x = in_type(c, op, 0);
    return berth_lower__check(c, op,
                              berth_window_resolve(c->module, op, x->dims, x->rank, NULL, w));
}

// Serial loops over the window; indices of the input and the condition that it is inside.
static void open_window(berth_lower *c, const berth_window *w, const berth_expr *at,
                        berth_expr *x_at, berth_expr *condition) {
    x_at[0] = at[0];
    x_at[1] = at[1];
    *condition = 0;
    for (int i = 0; i < w->spatial; ++i) {
        berth_expr k =
            berth_lower__loop(c, kernel_names[w->spatial][i], w->kernel[i], BERTH_LOOP_SERIAL);
        berth_expr p = x_add(c, x_muli(c, at[2 + i], w->strides[i]), x_muli(c, k, w->dilations[i]));
        p = x_addi(c, p, -w->pads_begin[i]);
        int64_t last = (w->output[i] - 1) * w->strides[i] + (w->kernel[i] - 1) * w->dilations[i] -
                       w->pads_begin[i];
        if (w->pads_begin[i] > 0) *condition = x_and(c, *condition, x_ge(c, p, ix(c, 0)));
        if (last >= w->input[i]) *condition = x_and(c, *condition, x_lt(c, p, ix(c, w->input[i])));
        x_at[2 + i] = p;
    }
}

// Flat position of x_at in the input tensor; storage_order = 1 counts the last two spatial
// dimensions column by column.
static berth_expr flat_index(berth_lower *c, const berth_op *op, const berth_window *w,
                             const berth_expr *x_at) {
    const berth_type *x = in_type(c, op, 0);
    if (!attr_int(c, op, "storage_order", 0) || w->spatial < 2)
        return berth_lower__linearise(c, x->rank, x->dims, x_at);
    int64_t dims[BERTH_MAX_RANK];
    berth_expr at[BERTH_MAX_RANK];
    for (int d = 0; d < x->rank; ++d) {
        int from = d < 2 ? d : x->rank + 1 - d;  // spatial dimensions in reverse
        dims[d] = x->dims[from];
        at[d] = x_at[from];
    }
    return berth_lower__linearise(c, x->rank, dims, at);
}

// The lowest value in place of NaN, which the maxima of windows skip, as peers do; a window of
// nothing else gives that value.
static berth_expr skip_nan(berth_lower *c, berth_expr value) {
    berth_dtype t = dtype_of(c, value);
    if (!berth_dtype_is_float(t)) return value;
    return x_select(c, x_unary(c, BERTH_UNARY_IS_NAN, value), berth_lower__lowest(c, t), value);
}

void berth_lower__max_pool(berth_lower *c, const berth_op *op) {
    berth_window w;
    berth_lower_grid grid;
    if (!describe(c, op, &w)) return;
    bool wants_value = berth_lower__wanted(c, 0);
    bool wants_index = op->output_count > 1 && berth_lower__wanted(c, 1);
    berth_lower__grid(c, op, wants_value ? 0 : 1,
                      &(berth_lower_grid_options){.names = output_names[w.spatial]}, &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, berth_lower__lowest(c, t));
    berth_buf index = 0;
    if (wants_index) {
        index = berth_lower__register(c, "index", BERTH_DTYPE_I64);
        berth_lower__set(c, index, berth_tfn_int(c->fn, BERTH_DTYPE_I64, -1));
    }
    open_window(c, &w, grid.at, x_at, &condition);
    if (wants_index) {
        berth_lower__if(c, condition);
        berth_expr x = skip_nan(c, in_at(c, op, 0, x_at));
        berth_expr none =
            x_lt(c, berth_lower__get(c, index), berth_tfn_int(c->fn, BERTH_DTYPE_I64, 0));
        berth_lower__if(c, x_or(c, none, x_gt(c, x, berth_lower__get(c, acc))));
        berth_lower__set(c, acc, x);
        berth_expr flat = flat_index(c, op, &w, x_at);
        berth_lower__set(c, index, berth_tfn_from_index(c->fn, BERTH_DTYPE_I64, flat));
        berth_lower__end_loops(c, 2);
    } else {
        berth_expr x = skip_nan(c, in_at(c, op, 0, x_at));
        x = x_select(c, condition, x, berth_lower__lowest(c, t));
        berth_lower__set(c, acc, x_max(c, berth_lower__get(c, acc), x));
    }
    berth_lower__end_loops(c, w.spatial);
    if (wants_value) berth_lower__store(c, op, 0, grid.at, berth_lower__get(c, acc));
    if (wants_index) berth_lower__store(c, op, 1, grid.at, berth_lower__get(c, index));
    berth_lower__grid_end(c, &grid);
}

// How many of the window's positions in one dimension lie in [low, high): k with low <= o * stride
// - pad + k * dilation.
static berth_expr count_inside(berth_lower *c, const berth_window *w, int i, berth_expr o,
                               int64_t low, int64_t high) {
    berth_expr start = x_addi(c, x_muli(c, o, w->strides[i]), -w->pads_begin[i]);
    berth_expr dilation = ix(c, w->dilations[i]);
    int64_t round = w->dilations[i] - 1;
    berth_expr first = x_div(c, x_addi(c, x_sub(c, ix(c, low), start), round), dilation);
    berth_expr end = x_div(c, x_addi(c, x_sub(c, ix(c, high), start), round), dilation);
    first = x_max(c, first, ix(c, 0));
    end = x_min(c, end, ix(c, w->kernel[i]));
    return x_sub(c, end, first);
}

// How many elements a mean has: one number where every window lies where they count.
static berth_expr count_elements(berth_lower *c, const berth_window *w, const berth_expr *at) {
    berth_expr count = ix(c, 1);
    for (int i = 0; i < w->spatial; ++i) {
        int64_t low = w->count_include_pad ? -w->pads_begin[i] : 0;
        int64_t high = w->input[i] + (w->count_include_pad ? w->pads_end[i] : 0);
        int64_t end = (w->output[i] - 1) * w->strides[i] - w->pads_begin[i] +
                      (w->kernel[i] - 1) * w->dilations[i] + 1;
        bool whole = low <= -w->pads_begin[i] && end <= high;
        count = x_mul(c, count,
                      whole ? ix(c, w->kernel[i]) : count_inside(c, w, i, at[2 + i], low, high));
    }
    return x_max(c, count, ix(c, 1));
}

// A parameter of one element.
static berth_expr parameter(berth_lower *c, const berth_op *op, uint32_t i) {
    const berth_expr zeros[BERTH_MAX_RANK] = {ix(c, 0), ix(c, 0), ix(c, 0), ix(c, 0),
                                              ix(c, 0), ix(c, 0), ix(c, 0), ix(c, 0)};
    return in_at(c, op, i, zeros);
}

// The sum of the window, of values without their zero point where operand `zero` is one (0 = none).
static berth_expr window_sum(berth_lower *c, const berth_op *op, const berth_window *w,
                             berth_dtype t, uint32_t zero, const berth_expr *at) {
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    open_window(c, w, at, x_at, &condition);
    berth_expr x = x_cast(c, t, in_at(c, op, 0, x_at));
    if (zero) x = x_sub(c, x, x_cast(c, t, parameter(c, op, zero)));
    x = x_select(c, condition, x, num(c, t, 0));
    berth_lower__set(c, acc, x_add(c, berth_lower__get(c, acc), x));
    berth_lower__end_loops(c, w->spatial);
    return berth_lower__get(c, acc);
}

void berth_lower__average_pool(berth_lower *c, const berth_op *op) {
    berth_window w;
    berth_lower_grid grid;
    if (!describe(c, op, &w)) return;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = output_names[w.spatial]},
                      &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr sum = window_sum(c, op, &w, t, 0, grid.at);
    berth_expr divisor = berth_tfn_from_index(c->fn, t, count_elements(c, &w, grid.at));
    berth_lower__store(c, op, 0, grid.at, x_div(c, sum, divisor));
    berth_lower__grid_end(c, &grid);
}

// Operands x, x_scale, x_zero, y_scale, y_zero: a sum of integers, then as the average of reals.
void berth_lower__qlinear_average_pool(berth_lower *c, const berth_op *op) {
    berth_window w;
    berth_lower_grid grid;
    berth_dtype t = BERTH_DTYPE_F32;
    if (!describe(c, op, &w)) return;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = output_names[w.spatial]},
                      &grid);
    berth_expr sum = window_sum(c, op, &w, BERTH_DTYPE_I32, 2, grid.at);
    berth_expr mean = x_mul(c, x_cast(c, t, sum), x_cast(c, t, parameter(c, op, 1)));
    mean = x_div(c, mean, berth_tfn_from_index(c->fn, t, count_elements(c, &w, grid.at)));
    berth_lower__store(c, op, 0, grid.at,
                       berth_lower__saturate(c, mean, x_cast(c, t, parameter(c, op, 3)),
                                             parameter(c, op, 4), out_type(c, op, 0)->dtype));
    berth_lower__grid_end(c, &grid);
}

static berth_expr power_of(berth_lower *c, berth_expr x, int64_t p) {
    if (p == 2) return x_mul(c, x, x);
    berth_expr absolute = x_unary(c, BERTH_UNARY_ABS, x);
    return p == 1 ? absolute : x_pow(c, absolute, num(c, dtype_of(c, x), (double)p));
}

static berth_expr root_of(berth_lower *c, berth_expr x, int64_t p) {
    if (p == 1) return x;
    if (p == 2) return x_unary(c, BERTH_UNARY_SQRT, x);
    return x_pow(c, x, num(c, dtype_of(c, x), 1.0 / (double)p));
}

void berth_lower__lp_pool(berth_lower *c, const berth_op *op) {
    berth_window w;
    berth_lower_grid grid;
    if (!describe(c, op, &w)) return;
    int64_t p = attr_int(c, op, "p", 2);
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = output_names[w.spatial]},
                      &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    open_window(c, &w, grid.at, x_at, &condition);
    berth_expr x = x_select(c, condition, in_at(c, op, 0, x_at), num(c, t, 0));
    berth_lower__set(c, acc, x_add(c, berth_lower__get(c, acc), power_of(c, x, p)));
    berth_lower__end_loops(c, w.spatial);
    berth_lower__store(c, op, 0, grid.at, root_of(c, berth_lower__get(c, acc), p));
    berth_lower__grid_end(c, &grid);
}

// global_max_pool, global_average_pool, global_lp_pool
void berth_lower__global_pool(berth_lower *c, const berth_op *op) {
    static const char *const names[BERTH_MAX_RANK] = {"n",  "oc", "o2", "o3",
                                                      "o4", "o5", "o6", "o7"};
    const berth_type *x = in_type(c, op, 0);
    berth_lower_grid grid;
    int64_t p = attr_int(c, op, "p", 2);
    bool maximum = op->kind == BERTH_OP_GLOBAL_MAX_POOL;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, maximum ? berth_lower__lowest(c, t) : num(c, t, 0));
    berth_expr x_at[BERTH_MAX_RANK] = {grid.at[0], grid.at[1]};
    int loops = berth_lower__inner(c, x->rank, x->dims, ~3u, x_at);
    berth_expr value = in_at(c, op, 0, x_at);
    if (op->kind == BERTH_OP_GLOBAL_LP_POOL) value = power_of(c, value, p);
    if (maximum) value = skip_nan(c, value);
    berth_expr old = berth_lower__get(c, acc);
    berth_lower__set(c, acc, maximum ? x_max(c, old, value) : x_add(c, old, value));
    berth_lower__end_loops(c, loops);
    berth_expr result = berth_lower__get(c, acc);
    int64_t count = 1;
    for (int d = 2; d < x->rank; ++d) count *= x->dims[d];
    if (op->kind == BERTH_OP_GLOBAL_AVERAGE_POOL)
        result = x_div(c, result, num(c, t, (double)count));
    if (op->kind == BERTH_OP_GLOBAL_LP_POOL) result = root_of(c, result, p);
    berth_lower__store(c, op, 0, grid.at, result);
    berth_lower__grid_end(c, &grid);
}

// Zeros, then every element to its place. Indices count in the shape that the window gives, which
// operand output_shape may exceed. They may repeat: one loop after the other.
void berth_lower__max_unpool(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *y = out_type(c, op, 0);
    berth_buf out = berth_lower__buffer(c, 0);
    berth_expr at[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, y->rank, y->dims, 0, at);
    berth_lower__put(c, out, at, num(c, out_dtype(c, op, 0), 0));
    berth_lower__end_loops(c, loops);
    berth_lower__next_nest(c);
    berth_window w;
    if (!describe(c, op, &w)) return;
    int64_t dims[BERTH_MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 0; i < w.spatial; ++i) dims[2 + i] = w.output[i];
    int64_t count = 1;
    for (int d = 0; d < x->rank; ++d) count *= dims[d];
    loops = berth_lower__inner(c, x->rank, x->dims, ~0u, at);
    berth_expr flat = berth_lower__data_index(c, in_at(c, op, 1, at), count);
    berth_expr to[BERTH_MAX_RANK];
    berth_expr inside = 0;
    berth_lower__delinearise(c, x->rank, dims, flat, to);
    for (int d = 0; d < x->rank; ++d)
        if (dims[d] > y->dims[d]) inside = x_and(c, inside, x_lt(c, to[d], ix(c, y->dims[d])));
    berth_lower__if(c, inside);
    berth_lower__put(c, out, to, in_at(c, op, 0, at));
    berth_lower__end_loops(c, loops + 1);
}
