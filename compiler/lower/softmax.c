// Operators that work on one row (a line along an axis) at a time: one parallel iteration per row,
// serial inside.
#include "compiler/lower/families.h"

#include <math.h>

enum { max_private_row = 1024 };  // elements kept beside a row instead of being computed twice

typedef struct row {
    const berth_op *op;
    int rank;
    int axis;
    int64_t extent;
    berth_dtype t;
    berth_expr at[BERTH_MAX_RANK];
    int loops;
} row;

static bool open_row(berth_lower *c, const berth_op *op, int64_t default_axis, row *r) {
    const berth_type *x = in_type(c, op, 0);
    *r = (row){.op = op, .rank = x->rank, .t = in_dtype(c, op, 0)};
    r->axis = berth_lower__axis(c, op, default_axis, x->rank);
    if (c->failure) return false;
    r->extent = x->dims[r->axis];
    r->loops = berth_lower__outer(c, x->rank, x->dims, 1u << r->axis, r->at);
    return true;
}

static berth_expr loop_row(berth_lower *c, row *r) {
    r->at[r->axis] = berth_lower__loop(c, "r", r->extent, BERTH_LOOP_SERIAL);
    return r->at[r->axis];
}

// Without NaN: the exponential of one is NaN, and so is the sum, whatever is subtracted.
static berth_buf row_maximum(berth_lower *c, row *r) {
    berth_buf top = berth_lower__register(c, "top", r->t);
    berth_lower__set(c, top, berth_lower__lowest(c, r->t));
    loop_row(c, r);
    berth_expr x = in_at(c, r->op, 0, r->at);
    if (berth_dtype_is_float(dtype_of(c, x)))
        x = x_select(c, x_unary(c, BERTH_UNARY_IS_NAN, x), berth_lower__lowest(c, r->t), x);
    berth_lower__set(c, top, x_max(c, berth_lower__get(c, top), x));
    berth_lower__end(c);
    return top;
}

// softmax and log_softmax
void berth_lower__softmax(berth_lower *c, const berth_op *op) {
    row r;
    bool log = op->kind == BERTH_OP_LOG_SOFTMAX;
    if (!open_row(c, op, -1, &r)) return;
    berth_buf top = row_maximum(c, &r);
    berth_buf sum = berth_lower__register(c, "acc", r.t);
    berth_lower__set(c, sum, num(c, r.t, 0));
    bool keep = !log && r.extent <= max_private_row;
    berth_buf line = keep ? berth_lower__private(c, "row", r.t, 1, &r.extent) : 0;
    berth_expr i = loop_row(c, &r);
    berth_expr power =
        x_unary(c, BERTH_UNARY_EXP, x_sub(c, in_at(c, op, 0, r.at), berth_lower__get(c, top)));
    if (keep) {
        berth_lower__put(c, line, &i, power);
        power = berth_tfn_load(c->fn, line, &i, 1);
    }
    berth_lower__set(c, sum, x_add(c, berth_lower__get(c, sum), power));
    berth_lower__end(c);
    berth_expr whole = berth_lower__get(c, sum);  // a product per element, not a quotient
    berth_lower__set(c, sum,
                     log ? x_unary(c, BERTH_UNARY_LOG, whole) : x_div(c, num(c, r.t, 1), whole));
    i = loop_row(c, &r);
    berth_expr shifted = keep ? 0 : x_sub(c, in_at(c, op, 0, r.at), berth_lower__get(c, top));
    berth_expr total = berth_lower__get(c, sum);
    berth_expr value = log ? x_sub(c, shifted, total)
                           : x_mul(c,
                                   keep ? berth_tfn_load(c->fn, line, &i, 1)
                                        : x_unary(c, BERTH_UNARY_EXP, shifted),
                                   total);
    berth_lower__store(c, op, 0, r.at, value);
    berth_lower__end_loops(c, r.loops + 1);
}

// 1 at the first maximum, 0 elsewhere; NaN never wins, as in arg_max. The place is the least of those that have
// the maximum: neither loop has a condition on what the ones before it found.
void berth_lower__hardmax(berth_lower *c, const berth_op *op) {
    row r;
    if (!open_row(c, op, -1, &r)) return;
    berth_dtype t = r.extent < INT32_MAX ? BERTH_DTYPE_I32 : BERTH_DTYPE_I64;
    berth_expr past = berth_tfn_int(c->fn, t, r.extent);
    berth_buf top = row_maximum(c, &r);
    berth_buf index = berth_lower__register(c, "index", t);
    berth_lower__set(c, index, past);
    berth_expr i = loop_row(c, &r);
    berth_expr is_top = x_eq(c, in_at(c, op, 0, r.at), berth_lower__get(c, top));
    berth_expr place = x_select(c, is_top, berth_tfn_from_index(c->fn, t, i), past);
    berth_lower__set(c, index, x_min(c, berth_lower__get(c, index), place));
    berth_lower__end(c);
    berth_expr found = berth_lower__get(c, index);  // none: all of them are NaN
    berth_expr first = berth_tfn_int(c->fn, t, 0);
    berth_lower__set(c, index, x_select(c, x_lt(c, found, past), found, first));
    i = loop_row(c, &r);
    berth_expr hit = x_eq(c, berth_tfn_from_index(c->fn, t, i), berth_lower__get(c, index));
    berth_lower__store(c, op, 0, r.at, x_select(c, hit, num(c, r.t, 1), num(c, r.t, 0)));
    berth_lower__end_loops(c, r.loops + 1);
}

void berth_lower__lp_norm(berth_lower *c, const berth_op *op) {
    row r;
    if (!open_row(c, op, -1, &r)) return;
    bool first = attr_int(c, op, "p", 2) == 1;
    berth_buf sum = berth_lower__register(c, "acc", r.t);
    berth_lower__set(c, sum, num(c, r.t, 0));
    loop_row(c, &r);
    berth_expr x = in_at(c, op, 0, r.at);
    berth_expr old = berth_lower__get(c, sum);
    berth_lower__set(c, sum,
                     first ? x_add(c, old, x_unary(c, BERTH_UNARY_ABS, x)) : x_fma(c, x, x, old));
    berth_lower__end(c);
    if (!first) berth_lower__set(c, sum, x_unary(c, BERTH_UNARY_SQRT, berth_lower__get(c, sum)));
    loop_row(c, &r);
    berth_expr norm = berth_lower__get(c, sum);
    berth_expr zero = num(c, r.t, 0);
    berth_expr value =
        x_select(c, x_eq(c, norm, zero), zero, x_div(c, in_at(c, op, 0, r.at), norm));
    berth_lower__store(c, op, 0, r.at, value);
    berth_lower__end_loops(c, r.loops + 1);
}
