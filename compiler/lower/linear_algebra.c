// einsum and det.
#include "compiler/lower/families.h"

#include <string.h>

#include "ir/graph/einsum.h"

// Product of all operands, summed over the labels that the result lacks.
void berth_lower__einsum(berth_lower *c, const berth_op *op) {
    const char *equation = attr_str(c, op, "equation", "");
    berth_einsum *e = berth_arena_new(c->scratch, berth_einsum);
    int operands = (int)op->input_count;
    int ranks[BERTH_EINSUM_MAX_OPERANDS];
    const int64_t *dims[BERTH_EINSUM_MAX_OPERANDS];
    int64_t extents[BERTH_EINSUM_MAX_LABELS];
    for (int k = 0; k < operands && k < BERTH_EINSUM_MAX_OPERANDS; ++k) {
        ranks[k] = in_type(c, op, (uint32_t)k)->rank;
        dims[k] = in_type(c, op, (uint32_t)k)->dims;
    }
    if (!berth_einsum_parse(equation, operands, ranks, e) ||
        !berth_einsum_extents(e, dims, extents)) {
        berth_lower__fail(c, op, "equation \"%s\"", equation);
        return;
    }
    berth_expr index[BERTH_EINSUM_MAX_LABELS] = {0};
    berth_lower_grid grid;
    berth_lower__grid(c, op, 0, &(berth_lower_grid_options){0}, &grid);
    for (int i = 0; i < e->ranks[operands]; ++i) index[e->terms[operands][i]] = grid.at[i];
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    int loops = 0;
    for (int label = 0; label < BERTH_EINSUM_MAX_LABELS; ++label) {
        if (extents[label] < 0 || index[label]) continue;
        index[label] = berth_lower__loop(c, "k", extents[label], BERTH_LOOP_SERIAL);
        loops++;
    }
    berth_expr product = 0;
    berth_expr last = 0;
    for (int k = 0; k < operands; ++k) {
        berth_expr at[BERTH_MAX_RANK];
        for (int i = 0; i < e->ranks[k]; ++i)
            at[i] = in_type(c, op, (uint32_t)k)->dims[i] == 1 ? ix(c, 0) : index[e->terms[k][i]];
        if (last) product = product ? x_mul(c, product, last) : last;
        last = in_at(c, op, (uint32_t)k, at);
    }
    berth_expr old = berth_lower__get(c, acc);
    berth_lower__set(c, acc, product ? x_fma(c, product, last, old) : x_add(c, old, last));
    berth_lower__end_loops(c, loops);
    berth_lower__store(c, op, 0, grid.at, berth_lower__get(c, acc));
    berth_lower__grid_end(c, &grid);
}

// ---- det ----------------------------------------------------------------------------------------

static berth_expr element(berth_lower *c, berth_buf a, berth_expr row, berth_expr column) {
    berth_expr at[2] = {row, column};
    return berth_lower__load(c, a, at);
}

static void set_element(berth_lower *c, berth_buf a, berth_expr row, berth_expr column,
                        berth_expr value) {
    berth_expr at[2] = {row, column};
    berth_lower__put(c, a, at, value);
}

// The row at or below k with the largest element of column k is swapped with row k; the sign
// follows.
static void pivot(berth_lower *c, berth_buf a, berth_buf best, berth_buf where, berth_buf det,
                  berth_expr k, int64_t n) {
    berth_dtype t = c->fn->bufs.data[a].dtype;
    berth_dtype w = BERTH_DTYPE_I64;
    berth_lower__set(c, best, num(c, t, -1));
    berth_lower__set(c, where, berth_tfn_from_index(c->fn, w, k));
    berth_expr i = berth_lower__loop(c, "i", n, BERTH_LOOP_SERIAL);
    berth_expr size = x_unary(c, BERTH_UNARY_ABS, element(c, a, i, k));
    berth_lower__if(c, x_and(c, x_ge(c, i, k), x_gt(c, size, berth_lower__get(c, best))));
    berth_lower__set(c, best, size);
    berth_lower__set(c, where, berth_tfn_from_index(c->fn, w, i));
    berth_lower__end_loops(c, 2);
    berth_expr chosen = berth_tfn_to_index(c->fn, berth_lower__get(c, where));
    chosen = x_max(c, ix(c, 0), x_min(c, chosen, ix(c, n - 1)));
    berth_lower__if(c, x_ne(c, chosen, k));
    berth_lower__set(c, det, x_unary(c, BERTH_UNARY_NEG, berth_lower__get(c, det)));
    berth_expr j = berth_lower__loop(c, "j", n, BERTH_LOOP_SERIAL);
    berth_lower__set(c, best, element(c, a, k, j));
    set_element(c, a, k, j, element(c, a, chosen, j));
    set_element(c, a, chosen, j, berth_lower__get(c, best));
    berth_lower__end_loops(c, 2);
}

// Gaussian elimination with partial pivoting in private storage; O(n^3) per matrix.
void berth_lower__det(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    int batch = x->rank - 2;
    if (batch < 0 || x->dims[batch] != x->dims[batch + 1] || !berth_dtype_is_float(x->dtype)) {
        berth_lower__fail(c, op, "square matrices of floats are needed");
        return;
    }
    int64_t n = x->dims[batch];
    berth_dtype t = in_dtype(c, op, 0);
    berth_expr at[BERTH_MAX_RANK];
    int loops = berth_lower__outer(c, batch, x->dims, 0, at);
    int64_t dims[2] = {n, n};
    berth_buf a = berth_lower__private(c, "a", t, 2, dims);
    berth_buf det = berth_lower__register(c, "det", t);
    berth_buf best = berth_lower__register(c, "best", t);
    berth_buf where = berth_lower__register(c, "where", BERTH_DTYPE_I64);
    berth_lower__set(c, det, num(c, t, 1));
    berth_expr i = berth_lower__loop(c, "i", n, BERTH_LOOP_SERIAL);
    berth_expr j = berth_lower__loop(c, "j", n, BERTH_LOOP_SERIAL);
    at[batch] = i;
    at[batch + 1] = j;
    set_element(c, a, i, j, in_at(c, op, 0, at));
    berth_lower__end_loops(c, 2);
    berth_expr k = berth_lower__loop(c, "k", n, BERTH_LOOP_SERIAL);
    pivot(c, a, best, where, det, k, n);
    berth_lower__set(c, det, x_mul(c, berth_lower__get(c, det), element(c, a, k, k)));
    i = berth_lower__loop(c, "i", n, BERTH_LOOP_SERIAL);
    berth_lower__if(c, x_and(c, x_gt(c, i, k), x_ne(c, element(c, a, k, k), num(c, t, 0))));
    berth_lower__set(c, best, x_div(c, element(c, a, i, k), element(c, a, k, k)));
    j = berth_lower__loop(c, "j", n, BERTH_LOOP_SERIAL);
    berth_expr taken = x_mul(c, berth_lower__get(c, best), element(c, a, k, j));
    set_element(c, a, i, j, x_sub(c, element(c, a, i, j), taken));
    berth_lower__end_loops(c, 4);
    berth_lower__store(c, op, 0, at, berth_lower__get(c, det));
    berth_lower__end_loops(c, loops);
}
