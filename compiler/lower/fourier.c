// dft and stft by their definition: O(length) per output number.
#include "compiler/lower/families.h"

typedef struct transform {
    const berth_op *op;
    berth_dtype t;
    int64_t length;
    int64_t parts;  // 1 real, 2 complex input
    bool inverse;
} transform;

// Adds in * exp(sign * 2 pi i j k / length) to the two sums. The angle is reduced in integers, so
// it stays exact.
static void add_term(berth_lower *c, const transform *f, berth_expr j, berth_expr k,
                     const berth_expr *in, const berth_buf *sums) {
    const double pi = 3.14159265358979323846;
    berth_expr turn = x_mod(c, x_mul(c, j, k), ix(c, f->length));
    berth_expr angle = berth_tfn_from_index(c->fn, f->t, turn);
    angle = x_mul(c, angle, num(c, f->t, (f->inverse ? 2 : -2) * pi / (double)f->length));
    berth_expr cosine = x_unary(c, BERTH_UNARY_COS, angle);
    berth_expr sine = x_unary(c, BERTH_UNARY_SIN, angle);
    berth_expr real = x_mul(c, in[0], cosine);
    berth_expr imaginary = x_mul(c, in[0], sine);
    if (f->parts == 2) {
        real = x_sub(c, real, x_mul(c, in[1], sine));
        imaginary = x_add(c, imaginary, x_mul(c, in[1], cosine));
    }
    berth_lower__set(c, sums[0], x_add(c, berth_lower__get(c, sums[0]), real));
    berth_lower__set(c, sums[1], x_add(c, berth_lower__get(c, sums[1]), imaginary));
}

static void open_sums(berth_lower *c, const transform *f, berth_buf *sums) {
    sums[0] = berth_lower__register(c, "re", f->t);
    sums[1] = berth_lower__register(c, "im", f->t);
    for (int p = 0; p < 2; ++p) berth_lower__set(c, sums[p], num(c, f->t, 0));
}

// Real and imaginary part to out_at[rank - 1] = 0 and 1.
static void store_sums(berth_lower *c, const transform *f, const berth_buf *sums,
                       berth_expr *out_at, int rank) {
    double scale = f->inverse ? 1.0 / (double)f->length : 1;
    for (int p = 0; p < 2; ++p) {
        berth_expr value = berth_lower__get(c, sums[p]);
        if (scale != 1) value = x_mul(c, value, num(c, f->t, scale));
        out_at[rank - 1] = ix(c, p);
        berth_lower__store(c, f->op, 0, out_at, value);
    }
}

void berth_lower__dft(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *y = out_type(c, op, 0);
    int axis = berth_lower__axis(c, op, 1, x->rank);
    transform f = {.op = op, .t = out_dtype(c, op, 0), .parts = x->dims[x->rank - 1]};
    f.inverse = attr_int(c, op, "inverse", 0) != 0;
    f.length = x->dims[axis];
    if (has_in(op, 1)) {
        const berth_tensor *given = berth_lower__constant(c, op, 1);
        if (given) f.length = berth_tensor_get_i64(given, 0);
    }
    if (c->failure) return;
    if (axis == x->rank - 1 || f.length < 1 || !berth_dtype_is_float(f.t)) {
        berth_lower__fail(c, op, "axis %d, length %lld", axis, (long long)f.length);
        return;
    }
    berth_expr out_at[BERTH_MAX_RANK];
    berth_expr at[BERTH_MAX_RANK];
    berth_buf sums[2];
    int loops = berth_lower__outer(c, x->rank, y->dims, 1u << (x->rank - 1), out_at);
    open_sums(c, &f, sums);
    int64_t used = f.length < x->dims[axis] ? f.length : x->dims[axis];  // the rest is zero
    berth_expr j = berth_lower__loop(c, "r", used, BERTH_LOOP_SERIAL);
    for (int d = 0; d + 1 < x->rank; ++d) at[d] = d == axis ? j : out_at[d];
    berth_expr in[2] = {0};
    for (int p = 0; p < f.parts && p < 2; ++p) {
        at[x->rank - 1] = ix(c, p);
        in[p] = in_at(c, op, 0, at);
    }
    add_term(c, &f, j, out_at[axis], in, sums);
    berth_lower__end(c);
    store_sums(c, &f, sums, out_at, x->rank);
    berth_lower__end_loops(c, loops);
}

// signal [batch, samples (, parts)] -> [batch, frames, bins, 2]
void berth_lower__stft(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_tensor *step = berth_lower__constant(c, op, 1);
    transform f = {.op = op, .t = out_dtype(c, op, 0), .parts = x->rank == 3 ? x->dims[2] : 1};
    f.length = has_in(op, 2) ? in_type(c, op, 2)->dims[0] : x->dims[1];
    if (has_in(op, 3)) {
        const berth_tensor *given = berth_lower__constant(c, op, 3);
        if (given) f.length = berth_tensor_get_i64(given, 0);
    }
    if (c->failure) return;
    if (f.length < 1 || !berth_dtype_is_float(f.t)) {
        berth_lower__fail(c, op, "frame length %lld", (long long)f.length);
        return;
    }
    berth_expr out_at[4];
    berth_buf sums[2];
    int loops = berth_lower__outer(c, 3, out_type(c, op, 0)->dims, 0, out_at);
    open_sums(c, &f, sums);
    berth_expr j = berth_lower__loop(c, "r", f.length, BERTH_LOOP_SERIAL);
    berth_expr start = x_muli(c, out_at[1], berth_tensor_get_i64(step, 0));
    berth_expr in[2] = {0};
    for (int p = 0; p < f.parts && p < 2; ++p) {
        berth_expr at[3] = {out_at[0], x_add(c, start, j), ix(c, p)};
        in[p] = in_at(c, op, 0, at);
        if (has_in(op, 2)) in[p] = x_mul(c, in[p], in_at(c, op, 2, &j));
    }
    add_term(c, &f, j, out_at[2], in, sums);
    berth_lower__end(c);
    store_sums(c, &f, sums, out_at, 4);
    berth_lower__end_loops(c, loops);
}
