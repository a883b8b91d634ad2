// Operators that address by data or make values from nothing.
#include "compiler/lower/families.h"

#include <math.h>
#include <string.h>

berth_expr berth_lower__gather(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    const berth_type *x = in_type(c, op, 0);
    int index_rank = in_type(c, op, 1)->rank;
    int axis = berth_lower__axis(c, op, 0, x->rank);
    berth_expr mapped[BERTH_MAX_RANK];
    if (c->failure) return num(c, out_dtype(c, op, output), 0);
    for (int d = 0; d < x->rank; ++d)
        mapped[d] = d < axis ? at[d] : d > axis ? at[d - 1 + index_rank] : 0;
    mapped[axis] = berth_lower__data_index(c, in_at(c, op, 1, at + axis), x->dims[axis]);
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__gather_elements(berth_lower *c, const berth_op *op, uint32_t output,
                                        const berth_expr *at) {
    const berth_type *x = in_type(c, op, 0);
    int axis = berth_lower__axis(c, op, 0, x->rank);
    berth_expr mapped[BERTH_MAX_RANK];
    if (c->failure) return num(c, out_dtype(c, op, output), 0);
    memcpy(mapped, at, (size_t)x->rank * sizeof(*at));
    mapped[axis] = berth_lower__data_index(c, in_at(c, op, 1, at), x->dims[axis]);
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__gather_nd(berth_lower *c, const berth_op *op, uint32_t output,
                                  const berth_expr *at) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *indices = in_type(c, op, 1);
    int batch = (int)attr_int(c, op, "batch_dims", 0);
    int width = (int)indices->dims[indices->rank - 1];
    if (batch < 0 || batch >= indices->rank || batch + width > x->rank) {
        berth_lower__fail(c, op, "batch_dims %d with index tuples of %d entries for rank %d", batch,
                          width, x->rank);
        return num(c, out_dtype(c, op, output), 0);
    }
    berth_expr index_at[BERTH_MAX_RANK];
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d + 1 < indices->rank; ++d) index_at[d] = at[d];
    for (int d = 0; d < batch; ++d) mapped[d] = at[d];
    for (int k = 0; k < width; ++k) {
        index_at[indices->rank - 1] = ix(c, k);
        mapped[batch + k] =
            berth_lower__data_index(c, in_at(c, op, 1, index_at), x->dims[batch + k]);
    }
    for (int d = batch + width; d < x->rank; ++d)
        mapped[d] = at[indices->rank - 1 + d - batch - width];
    return in_at(c, op, 0, mapped);
}

berth_expr berth_lower__one_hot(berth_lower *c, const berth_op *op, uint32_t output,
                                const berth_expr *at) {
    int rank = out_type(c, op, output)->rank;
    int axis = berth_lower__axis(c, op, -1, rank);
    berth_dtype t = BERTH_DTYPE_I64;
    berth_expr index_at[BERTH_MAX_RANK];
    if (c->failure) return num(c, out_dtype(c, op, output), 0);
    for (int d = 0; d + 1 < rank; ++d) index_at[d] = d < axis ? at[d] : at[d + 1];
    berth_expr hot = x_cast(c, t, in_at(c, op, 0, index_at));
    berth_expr depth = berth_tfn_int(c->fn, t, out_type(c, op, output)->dims[axis]);
    hot = x_select(c, x_lt(c, hot, berth_tfn_int(c->fn, t, 0)), x_add(c, hot, depth), hot);
    berth_expr zero = ix(c, 0);
    berth_expr one = ix(c, 1);
    berth_expr off = in_at(c, op, 2, &zero);
    return x_select(c, x_eq(c, hot, berth_tfn_from_index(c->fn, t, at[axis])),
                    in_at(c, op, 2, &one), off);
}

berth_expr berth_lower__constant_of_shape(berth_lower *c, const berth_op *op, uint32_t output,
                                          const berth_expr *at) {
    (void)at;
    berth_dtype t = out_dtype(c, op, output);
    const berth_attr *value = berth_attrs_find(c->module, &op->attrs, "value");
    if (!value || value->kind != BERTH_ATTR_TENSOR) return num(c, t, 0);
    if (berth_dtype_is_float(t))
        return berth_tfn_float(c->fn, t, berth_tensor_get_f64(value->tensor, 0));
    return berth_tfn_int(c->fn, t, berth_tensor_get_i64(value->tensor, 0));
}

berth_expr berth_lower__range(berth_lower *c, const berth_op *op, uint32_t output,
                              const berth_expr *at) {
    berth_dtype t = out_dtype(c, op, output);
    berth_expr start = in_at(c, op, 0, at);
    berth_expr step = in_at(c, op, 2, at);
    return x_add(c, start, x_mul(c, berth_tfn_from_index(c->fn, t, at[0]), step));
}

// hann_window, hamming_window, blackman_window
berth_expr berth_lower__window(berth_lower *c, const berth_op *op, uint32_t output,
                               const berth_expr *at) {
    const double pi = 3.14159265358979323846;
    berth_dtype t = out_dtype(c, op, output);
    int64_t size = out_type(c, op, output)->dims[0];
    if (!berth_dtype_is_float(t)) {
        berth_lower__fail(c, op, "elements of type %s", berth_dtype_name(t));
        return num(c, t, 0);
    }
    int64_t period = attr_int(c, op, "periodic", 1) ? size : size - 1;
    berth_expr phase = num(c, t, pi);  // a symmetric window of one element
    if (period > 0)
        phase = x_mul(c, berth_tfn_from_index(c->fn, t, at[0]), num(c, t, 2 * pi / (double)period));
    double a[3] = {0.5, 0.5, 0};
    if (op->kind == BERTH_OP_HAMMING_WINDOW) a[0] = 25.0 / 46, a[1] = 21.0 / 46;
    if (op->kind == BERTH_OP_BLACKMAN_WINDOW) a[0] = 0.42, a[1] = 0.5, a[2] = 0.08;
    berth_expr value =
        x_sub(c, num(c, t, a[0]), x_mul(c, num(c, t, a[1]), x_unary(c, BERTH_UNARY_COS, phase)));
    if (a[2] == 0) return value;
    berth_expr twice = x_unary(c, BERTH_UNARY_COS, x_mul(c, num(c, t, 2), phase));
    return x_add(c, value, x_mul(c, num(c, t, a[2]), twice));
}

// ---- scatter ------------------------------------------------------------------------------------

static void copy_operand(berth_lower *c, const berth_op *op, berth_buf out) {
    const berth_type *x = in_type(c, op, 0);
    berth_expr at[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, x->rank, x->dims, 0, at);
    berth_lower__put(c, out, at, in_at(c, op, 0, at));
    berth_lower__end_loops(c, loops);
    berth_lower__next_nest(c);
}

static void update(berth_lower *c, const berth_op *op, berth_buf out, const berth_expr *at,
                   berth_expr value) {
    const char *how = attr_str(c, op, "reduction", "none");
    berth_expr old = berth_lower__load(c, out, at);
    if (strcmp(how, "add") == 0)
        value = x_add(c, old, value);
    else if (strcmp(how, "mul") == 0)
        value = x_mul(c, old, value);
    else if (strcmp(how, "min") == 0)
        value = x_min(c, old, value);
    else if (strcmp(how, "max") == 0)
        value = x_max(c, old, value);
    else if (strcmp(how, "none") != 0)
        berth_lower__fail(c, op, "reduction \"%s\"", how);
    berth_lower__put(c, out, at, value);
}

// A copy, then the updates: lines along the axis are independent, within one they run in order
// (indices may repeat).
void berth_lower__scatter_elements(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *indices = in_type(c, op, 1);
    int axis = berth_lower__axis(c, op, 0, x->rank);
    berth_buf out = berth_lower__buffer(c, 0);
    if (c->failure) return;
    copy_operand(c, op, out);
    berth_expr at[BERTH_MAX_RANK];
    berth_expr to[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, indices->rank, indices->dims, 1u << axis, at);
    at[axis] = berth_lower__loop(c, "r", indices->dims[axis], BERTH_LOOP_SERIAL);
    memcpy(to, at, (size_t)x->rank * sizeof(*at));
    to[axis] = berth_lower__data_index(c, in_at(c, op, 1, at), x->dims[axis]);
    update(c, op, out, to, in_at(c, op, 2, at));
    berth_lower__end_loops(c, loops + 1);
}

// A copy, then the updates: the dimensions of a slice are independent, tuples run in order.
void berth_lower__scatter_nd(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *indices = in_type(c, op, 1);
    int tuple_rank = indices->rank - 1;
    int width = (int)indices->dims[tuple_rank];
    int slice_rank = x->rank - width;
    berth_buf out = berth_lower__buffer(c, 0);
    if (slice_rank < 0 || in_type(c, op, 2)->rank != tuple_rank + slice_rank) {
        berth_lower__fail(c, op, "index tuples of %d entries with updates of rank %d", width,
                          in_type(c, op, 2)->rank);
        return;
    }
    copy_operand(c, op, out);
    berth_expr to[BERTH_MAX_RANK];
    berth_expr index_at[BERTH_MAX_RANK];
    berth_expr update_at[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, slice_rank, x->dims + width, 0, update_at + tuple_rank);
    loops += berth_lower__inner(c, tuple_rank, indices->dims, ~0u, update_at);
    memcpy(index_at, update_at, (size_t)tuple_rank * sizeof(*index_at));
    for (int k = 0; k < width; ++k) {
        index_at[tuple_rank] = ix(c, k);
        to[k] = berth_lower__data_index(c, in_at(c, op, 1, index_at), x->dims[k]);
    }
    for (int d = 0; d < slice_rank; ++d) to[width + d] = update_at[tuple_rank + d];
    update(c, op, out, to, in_at(c, op, 2, update_at));
    berth_lower__end_loops(c, loops);
}
