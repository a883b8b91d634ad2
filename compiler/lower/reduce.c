#include "compiler/lower/families.h"

// ---- reduce_* -----------------------------------------------------------------------------------

// What one reduction does: start, contribution of an element, how two combine.
static berth_expr start_value(berth_lower *c, berth_op_kind kind, berth_dtype t) {
    if (kind == BERTH_OP_REDUCE_MAX) return berth_lower__lowest(c, t);
    if (kind == BERTH_OP_REDUCE_MIN) return berth_lower__highest(c, t);
    return num(c, t, kind == BERTH_OP_REDUCE_PROD ? 1 : 0);
}

static berth_expr combine(berth_lower *c, berth_op_kind kind, berth_expr acc, berth_expr x) {
    switch (kind) {
    case BERTH_OP_REDUCE_MAX: return x_max(c, acc, x);
    case BERTH_OP_REDUCE_MIN: return x_min(c, acc, x);
    case BERTH_OP_REDUCE_PROD: return x_mul(c, acc, x);
    case BERTH_OP_REDUCE_L1: return x_add(c, acc, x_unary(c, BERTH_UNARY_ABS, x));
    case BERTH_OP_REDUCE_L2:
    case BERTH_OP_REDUCE_SUM_SQUARE: return x_fma(c, x, x, acc);
    default: return x_add(c, acc, x);
    }
}

static berth_expr finish(berth_lower *c, berth_op_kind kind, berth_expr acc, int64_t count,
                         berth_dtype to) {
    berth_dtype t = dtype_of(c, acc);
    if (kind == BERTH_OP_REDUCE_MEAN && count > 0)
        acc = x_div(c, acc,
                    berth_dtype_is_float(t) ? num(c, t, (double)count)
                                            : berth_tfn_int(c->fn, t, count));
    bool root = kind == BERTH_OP_REDUCE_L2;
    bool log = kind == BERTH_OP_REDUCE_LOG_SUM;
    if (!root && !log) return x_cast(c, to, acc);
    berth_expr real = berth_dtype_is_float(t) ? acc : x_cast(c, BERTH_DTYPE_F64, acc);
    return x_cast(c, to, x_unary(c, root ? BERTH_UNARY_SQRT : BERTH_UNARY_LOG, real));
}

typedef struct reduction {
    uint32_t mask;  // reduced dimensions
    int64_t count;  // elements per result
    bool keepdims;
} reduction;

static reduction describe(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    bool given = false;
    reduction r = {.keepdims = attr_int(c, op, "keepdims", 1) != 0, .count = 1};
    r.mask = berth_lower__axes(c, op, 1, "axes", x->rank, &given);
    if (r.mask == 0 && !attr_int(c, op, "noop_with_empty_axes", 0)) r.mask = (1u << x->rank) - 1;
    for (int d = 0; d < x->rank; ++d)
        if (r.mask >> d & 1u) r.count *= x->dims[d];
    return r;
}

// Indices of the input from those of the output; reduced ones stay unset.
static void input_indices(const reduction *r, int rank, const berth_expr *at, berth_expr *x_at) {
    int next = 0;
    for (int d = 0; d < rank; ++d) {
        bool reduced = r->mask >> d & 1u;
        if (!reduced) x_at[d] = at[next];
        if (!reduced || r->keepdims) next++;
    }
}

// Maximum first, so that no exponential overflows.
static berth_expr log_sum_exp(berth_lower *c, const berth_op *op, const reduction *r,
                              berth_expr *x_at) {
    const berth_type *x = in_type(c, op, 0);
    berth_dtype to = out_dtype(c, op, 0);
    berth_dtype t = berth_dtype_is_float(to) ? to : BERTH_DTYPE_F64;
    berth_buf top = berth_lower__register(c, "top", t);
    berth_buf sum = berth_lower__register(c, "acc", t);
    berth_lower__set(c, top, berth_lower__lowest(c, t));
    berth_lower__set(c, sum, num(c, t, 0));
    int loops = berth_lower__inner(c, x->rank, x->dims, r->mask, x_at);
    berth_lower__set(c, top,
                     x_max(c, berth_lower__get(c, top), x_cast(c, t, in_at(c, op, 0, x_at))));
    berth_lower__end_loops(c, loops);
    berth_expr infinite = x_unary(c, BERTH_UNARY_IS_INF, berth_lower__get(c, top));
    berth_lower__set(c, top, x_select(c, infinite, num(c, t, 0), berth_lower__get(c, top)));
    loops = berth_lower__inner(c, x->rank, x->dims, r->mask, x_at);
    berth_expr shifted = x_sub(c, x_cast(c, t, in_at(c, op, 0, x_at)), berth_lower__get(c, top));
    berth_lower__set(c, sum,
                     x_add(c, berth_lower__get(c, sum), x_unary(c, BERTH_UNARY_EXP, shifted)));
    berth_lower__end_loops(c, loops);
    berth_expr log = x_unary(c, BERTH_UNARY_LOG, berth_lower__get(c, sum));
    return x_cast(c, to, x_add(c, log, berth_lower__get(c, top)));
}

// Integers are reduced in i64, and sums of up to 32 bits in 32: they wrap as those of the type itself do.
static berth_dtype accumulator(berth_op_kind kind, berth_dtype t) {
    if (berth_dtype_is_float(t) || kind == BERTH_OP_REDUCE_MAX || kind == BERTH_OP_REDUCE_MIN)
        return t;
    if (kind == BERTH_OP_REDUCE_SUM && berth_dtype_size_bytes(t) <= sizeof(int32_t))
        return t == BERTH_DTYPE_U32 ? t : BERTH_DTYPE_I32;
    return t == BERTH_DTYPE_U64 ? t : BERTH_DTYPE_I64;
}

void berth_lower__reduce(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    reduction r = describe(c, op);
    if (c->failure) return;
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){0}, &grid);
    berth_dtype t = accumulator(op->kind, out_dtype(c, op, 0));
    berth_expr x_at[BERTH_MAX_RANK];
    input_indices(&r, x->rank, grid.at, x_at);
    berth_expr result;
    if (op->kind == BERTH_OP_REDUCE_LOG_SUM_EXP) {
        result = log_sum_exp(c, op, &r, x_at);
    } else {
        berth_buf acc = berth_lower__register(c, "acc", t);
        berth_lower__set(c, acc, start_value(c, op->kind, t));
        int loops = berth_lower__inner(c, x->rank, x->dims, r.mask, x_at);
        berth_expr value = x_cast(c, t, in_at(c, op, 0, x_at));
        berth_lower__set(c, acc, combine(c, op->kind, berth_lower__get(c, acc), value));
        berth_lower__end_loops(c, loops);
        result = finish(c, op->kind, berth_lower__get(c, acc), r.count, out_dtype(c, op, 0));
    }
    berth_lower__store(c, op, 0, grid.at, result);
    berth_lower__grid_end(c, &grid);
}

// ---- lines beside each other --------------------------------------------------------------------

enum { most_sums = 64, least_sums = 16 };  // that are kept at once

// Sums (or maxima) beside each other in the last dimension, where the axis is another one: so memory
// is read in the order in which it lies, and they are vectors. `parts` of them, from `first` on.
typedef struct strips {
    int64_t first;
    int64_t parts;
    int64_t sums;
} strips;

// Returns how many there are: one where a divisor of that dimension is wide enough, else a second
// for its rest.
static int strips_along(const berth_type *x, int axis, strips *out) {
    int64_t extent = x->dims[x->rank - 1];
    int64_t sums = extent < most_sums ? extent : most_sums;
    int64_t divisor = sums;
    out[0] = (strips){.parts = 1, .sums = 1};
    if (axis == x->rank - 1 || extent < 1) return 1;
    while (extent % divisor) divisor--;
    if (divisor < least_sums) divisor = extent <= 2 * most_sums ? extent : sums;
    out[0] = (strips){.parts = extent / divisor, .sums = divisor};
    out[1] = (strips){.first = extent / divisor * divisor, .parts = 1, .sums = extent % divisor};
    return out[1].sums ? 2 : 1;
}

// Index of a sum in the last dimension.
static berth_expr along_strips(berth_lower *c, const strips *s, berth_expr part, berth_expr lane) {
    return x_addi(c, x_add(c, x_muli(c, part, s->sums), lane), s->first);
}

// ---- arg_max, arg_min ---------------------------------------------------------------------------

berth_expr berth_lower__wins(berth_lower *c, berth_expr value, berth_expr old, bool maximum,
                             bool last) {
    berth_expr beats = last ? (maximum ? x_ge(c, value, old) : x_le(c, value, old))
                            : (maximum ? x_gt(c, value, old) : x_lt(c, value, old));
    if (!berth_dtype_is_float(dtype_of(c, value))) return beats;
    berth_expr number = x_unary(c, BERTH_UNARY_NOT, x_unary(c, BERTH_UNARY_IS_NAN, value));
    return x_and(c, number, x_or(c, beats, x_unary(c, BERTH_UNARY_IS_NAN, old)));
}

// Lines along another axis than the last, as many at once as `s` says: their best values and indices
// in tables.
static void arg_reduce_lanes(berth_lower *c, const berth_op *op, int axis, const strips *s) {
    int64_t lanes = s->sums;
    const berth_type *x = in_type(c, op, 0);
    berth_dtype t = in_dtype(c, op, 0);
    bool keepdims = attr_int(c, op, "keepdims", 1) != 0;
    bool last = attr_int(c, op, "select_last_index", 0) != 0;
    int along = x->rank - 1;
    berth_expr at[BERTH_MAX_RANK];
    berth_expr to[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, x->rank, x->dims, 1u << axis | 1u << along, at);
    berth_expr part = berth_lower__loop(c, "part", s->parts, BERTH_LOOP_PARALLEL);
    berth_buf best = berth_lower__private(c, "best", t, 1, &lanes);
    berth_buf index = berth_lower__private(c, "index", BERTH_DTYPE_I32, 1, &lanes);
    berth_expr lane = berth_lower__loop(c, "k", lanes, BERTH_LOOP_SIMD);
    at[along] = along_strips(c, s, part, lane);
    at[axis] = ix(c, 0);
    berth_lower__put(c, best, &lane, in_at(c, op, 0, at));
    berth_lower__put(c, index, &lane, num(c, BERTH_DTYPE_I32, 0));
    berth_lower__end(c);
    berth_expr i = berth_lower__loop(c, "r", x->dims[axis], BERTH_LOOP_SERIAL);
    lane = berth_lower__loop(c, "k", lanes, BERTH_LOOP_SIMD);
    at[along] = along_strips(c, s, part, lane);
    at[axis] = i;
    berth_expr value = in_at(c, op, 0, at);
    berth_expr old = berth_tfn_load(c->fn, best, &lane, 1);
    berth_expr wins = berth_lower__wins(c, value, old, op->kind == BERTH_OP_ARG_MAX, last);
    berth_expr here = berth_tfn_from_index(c->fn, BERTH_DTYPE_I32, i);
    berth_lower__put(c, index, &lane,
                     x_select(c, wins, here, berth_tfn_load(c->fn, index, &lane, 1)));
    berth_lower__put(c, best, &lane, x_select(c, wins, value, old));
    berth_lower__end_loops(c, 2);
    lane = berth_lower__loop(c, "k", lanes, BERTH_LOOP_SIMD);
    at[along] = along_strips(c, s, part, lane);
    int rank = 0;
    for (int d = 0; d < x->rank; ++d) {
        if (d == axis && !keepdims) continue;
        to[rank++] = d == axis ? ix(c, 0) : at[d];
    }
    berth_expr found = berth_tfn_load(c->fn, index, &lane, 1);
    berth_lower__store(c, op, 0, to, x_cast(c, BERTH_DTYPE_I64, found));
    berth_lower__end_loops(c, loops + 2);
}

// The extreme of a line without NaN, which never wins.
static berth_buf line_extreme(berth_lower *c, const berth_op *op, bool maximum, berth_expr *x_at,
                              int axis) {
    berth_dtype t = in_dtype(c, op, 0);
    berth_expr worst = maximum ? berth_lower__lowest(c, t) : berth_lower__highest(c, t);
    berth_buf best = berth_lower__register(c, "best", t);
    berth_lower__set(c, best, worst);
    x_at[axis] = berth_lower__loop(c, "r", in_type(c, op, 0)->dims[axis], BERTH_LOOP_SERIAL);
    berth_expr value = in_at(c, op, 0, x_at);
    if (berth_dtype_is_float(t))
        value = x_select(c, x_unary(c, BERTH_UNARY_IS_NAN, value), worst, value);
    berth_expr old = berth_lower__get(c, best);
    berth_lower__set(c, best, maximum ? x_max(c, old, value) : x_min(c, old, value));
    berth_lower__end(c);
    return best;
}

// A line whose elements lie beside each other: its extreme first, then the least (or last) of the places that have it,
// neither of which asks for what the elements before it have left.
static berth_expr place_of_extreme(berth_lower *c, const berth_op *op, berth_expr *x_at, int axis) {
    const berth_dtype t = BERTH_DTYPE_I32;
    const bool last = attr_int(c, op, "select_last_index", 0) != 0;
    berth_expr none = berth_tfn_int(c->fn, t, last ? -1 : INT32_MAX);
    berth_buf best = line_extreme(c, op, op->kind == BERTH_OP_ARG_MAX, x_at, axis);
    berth_buf index = berth_lower__register(c, "index", t);
    berth_lower__set(c, index, none);
    berth_expr i = berth_lower__loop(c, "r", in_type(c, op, 0)->dims[axis], BERTH_LOOP_SERIAL);
    x_at[axis] = i;
    berth_expr is_best = x_eq(c, in_at(c, op, 0, x_at), berth_lower__get(c, best));
    berth_expr place = x_select(c, is_best, berth_tfn_from_index(c->fn, t, i), none);
    berth_expr old = berth_lower__get(c, index);
    berth_lower__set(c, index, last ? x_max(c, old, place) : x_min(c, old, place));
    berth_lower__end(c);
    berth_expr found = berth_lower__get(c, index);  // none: all of them are NaN
    berth_expr any = x_unary(c, BERTH_UNARY_NOT, x_eq(c, found, none));
    return x_cast(c, BERTH_DTYPE_I64, x_select(c, any, found, berth_tfn_int(c->fn, t, 0)));
}

// A line along another axis, or of f64, whose extremes C compilers find one by one: each element that wins says where it is.
static berth_expr place_by_places(berth_lower *c, const berth_op *op, berth_expr *x_at, int axis) {
    bool last = attr_int(c, op, "select_last_index", 0) != 0;
    berth_buf best = berth_lower__register(c, "best", in_dtype(c, op, 0));
    berth_buf index = berth_lower__register(c, "index", BERTH_DTYPE_I64);
    x_at[axis] = ix(c, 0);
    berth_lower__set(c, best, in_at(c, op, 0, x_at));
    berth_lower__set(c, index, berth_tfn_int(c->fn, BERTH_DTYPE_I64, 0));
    berth_expr i = berth_lower__loop(c, "r", in_type(c, op, 0)->dims[axis], BERTH_LOOP_SERIAL);
    x_at[axis] = i;
    berth_expr value = in_at(c, op, 0, x_at);
    berth_expr old = berth_lower__get(c, best);
    berth_lower__if(c, berth_lower__wins(c, value, old, op->kind == BERTH_OP_ARG_MAX, last));
    berth_lower__set(c, best, value);
    berth_lower__set(c, index, berth_tfn_from_index(c->fn, BERTH_DTYPE_I64, i));
    berth_lower__end_loops(c, 2);
    return berth_lower__get(c, index);
}

void berth_lower__arg_reduce(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    int axis = berth_lower__axis(c, op, 0, x->rank);
    reduction r = {.mask = 1u << axis, .keepdims = attr_int(c, op, "keepdims", 1) != 0};
    if (c->failure) return;
    strips s[2];
    int count = strips_along(x, axis, s);
    if (s[0].sums > 1 && x->dims[axis] > 0 && x->dims[axis] <= INT32_MAX) {
        for (int i = 0; i < count; ++i) {
            if (i > 0) berth_lower__next_nest(c);
            arg_reduce_lanes(c, op, axis, &s[i]);
        }
        return;
    }
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){0}, &grid);
    berth_expr x_at[BERTH_MAX_RANK];
    input_indices(&r, x->rank, grid.at, x_at);
    const bool beside =
        axis == x->rank - 1 && x->dims[axis] < INT32_MAX && in_dtype(c, op, 0) != BERTH_DTYPE_F64;
    berth_lower__store(c, op, 0, grid.at,
                       beside ? place_of_extreme(c, op, x_at, axis)
                              : place_by_places(c, op, x_at, axis));
    berth_lower__grid_end(c, &grid);
}

// ---- cum_sum, cum_prod ------------------------------------------------------------------------------------

// One step of the sums: acc[lane] and the element `at`.
static void add_to_sum(berth_lower *c, const berth_op *op, berth_buf acc, berth_expr lane,
                       const berth_expr *at) {
    bool exclusive = attr_int(c, op, "exclusive", 0) != 0;
    berth_expr before = berth_tfn_load(c->fn, acc, &lane, 1);
    berth_expr next = in_at(c, op, 0, at);
    bool product = op->kind == BERTH_OP_CUM_PROD;
    berth_expr sum = product ? x_mul(c, before, next) : x_add(c, before, next);
    if (exclusive) berth_lower__store(c, op, 0, at, before);
    berth_lower__put(c, acc, &lane, sum);
    if (!exclusive) berth_lower__store(c, op, 0, at, berth_tfn_load(c->fn, acc, &lane, 1));
}

static void sums_along(berth_lower *c, const berth_op *op, int axis, const strips *s) {
    const berth_type *x = in_type(c, op, 0);
    bool reverse = attr_int(c, op, "reverse", 0) != 0;
    int last = x->rank - 1;
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr at[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, x->rank, x->dims, 1u << axis | 1u << last, at);
    berth_expr part = berth_lower__loop(c, "part", s->parts, BERTH_LOOP_PARALLEL);
    berth_buf acc = berth_lower__private(c, "acc", t, 1, &s->sums);
    berth_expr lane = berth_lower__loop(c, "k", s->sums, BERTH_LOOP_SIMD);
    berth_lower__put(c, acc, &lane, num(c, t, op->kind == BERTH_OP_CUM_PROD));
    berth_lower__end(c);
    berth_expr i = berth_lower__loop(c, "r", x->dims[axis], BERTH_LOOP_SERIAL);
    lane = berth_lower__loop(c, "k", s->sums, BERTH_LOOP_SIMD);
    if (axis != last) at[last] = along_strips(c, s, part, lane);
    at[axis] = reverse ? x_sub(c, ix(c, x->dims[axis] - 1), i) : i;
    add_to_sum(c, op, acc, lane, at);
    berth_lower__end_loops(c, loops + 3);
}

void berth_lower__cumulative(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_tensor *given = berth_lower__constant(c, op, 1);
    int axis = 0;
    if (!given) return;
    if (!berth_lower__check(
            c, op, berth_axis_resolve(berth_tensor_get_i64(given, 0), x->rank, "axis", &axis)))
        return;
    strips s[2];
    int count = strips_along(x, axis, s);
    for (int i = 0; i < count; ++i) {
        if (i > 0) berth_lower__next_nest(c);
        sums_along(c, op, axis, &s[i]);
    }
}
