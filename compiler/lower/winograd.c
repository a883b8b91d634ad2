// Winograd convolution F(m×m, 3×3), m = 2 or 4 (Lavin and Gray 2016, section 4): the transforms,
// unrolled with their matrices' zeros left out. Points are numbered row by row, p = i * (m + 2) +
// j.
#include "compiler/lower/families.h"

enum { max_tile = 6 };

typedef struct matrix {
    int rows;
    int columns;
    double at[max_tile][max_tile];
} matrix;

static const matrix input_2 = {4, 4, {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
static const matrix output_2 = {2, 4, {{1, 1, 1, 0}, {0, 1, -1, -1}}};
static const matrix weights_2 = {4, 3, {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
static const matrix input_4 = {6,
                               6,
                               {{4, 0, -5, 0, 1, 0},
                                {0, -4, -4, 1, 1, 0},
                                {0, 4, -4, -1, 1, 0},
                                {0, -2, -1, 2, 1, 0},
                                {0, 2, -1, -2, 1, 0},
                                {0, 4, 0, -5, 0, 1}}};
static const matrix output_4 = {
    4, 6, {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};
static const matrix weights_4 = {6,
                                 3,
                                 {{1.0 / 4, 0, 0},
                                  {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                  {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                  {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                  {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                  {0, 0, 1}}};

static int64_t tile_of(berth_lower *c, const berth_op *op) {
    int64_t m = attr_int(c, op, "tile", 0);
    if (m != 2 && m != 4) berth_lower__fail(c, op, "tile %lld, expected 2 or 4", (long long)m);
    return m;
}

// Sum of coefficient * value, without the terms that are zero.
static berth_expr combine(berth_lower *c, const double *coefficients, const berth_expr *values,
                          int count) {
    berth_expr sum = 0;
    for (int i = 0; i < count; ++i) {
        double k = coefficients[i];
        if (k == 0) continue;
        berth_dtype t = dtype_of(c, values[i]);
        if (!sum) {
            sum = k == 1 ? values[i] : x_mul(c, values[i], num(c, t, k));
        } else if (k == 1) {
            sum = x_add(c, sum, values[i]);
        } else if (k == -1) {
            sum = x_sub(c, sum, values[i]);
        } else {
            sum = berth_tfn_fma(c->fn, values[i], num(c, t, k), sum);
        }
    }
    return sum;
}

static berth_buf table(berth_lower *c, const char *name, berth_dtype t, int rows, int columns) {
    int64_t dims[2] = {rows, columns};
    berth_buf buf = berth_tfn_buffer(c->fn, name, t, 2, dims, BERTH_SCOPE_REGISTER);
    berth_lower__emit(c, berth_tfn_alloc(c->fn, buf));
    return buf;
}

static berth_expr entry(berth_lower *c, berth_buf buf, int i, int j) {
    berth_expr at[2] = {ix(c, i), ix(c, j)};
    return berth_tfn_load(c->fn, buf, at, 2);
}

static void set_entry(berth_lower *c, berth_buf buf, int i, int j, berth_expr value) {
    berth_expr at[2] = {ix(c, i), ix(c, j)};
    berth_lower__put(c, buf, at, value);
}

// half [left->rows, left->columns] = left x tile
static berth_buf transform_rows(berth_lower *c, const matrix *left, berth_buf tile, berth_dtype t) {
    berth_buf half = table(c, "half", t, left->rows, left->columns);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->columns; ++j) {
            berth_expr column[max_tile];
            for (int k = 0; k < left->columns; ++k) column[k] = entry(c, tile, k, j);
            set_entry(c, half, i, j, combine(c, left->at[i], column, left->columns));
        }
    return half;
}

// Element (i, j) of half x left^T
static berth_expr transform_column(berth_lower *c, const matrix *left, berth_buf half, int i,
                                   int j) {
    berth_expr row[max_tile];
    for (int k = 0; k < left->columns; ++k) row[k] = entry(c, half, i, k);
    return combine(c, left->at[j], row, left->columns);
}

// [o, i, 3, 3] -> [(m+2)^2, i, o]
void berth_lower__winograd_weights(berth_lower *c, const berth_op *op) {
    const berth_type *w = in_type(c, op, 0);
    int64_t m = tile_of(c, op);
    if (c->failure) return;
    const matrix *left = m == 2 ? &weights_2 : &weights_4;
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr ic = berth_lower__loop(c, "ic", w->dims[1], BERTH_LOOP_PARALLEL);
    berth_expr oc = berth_lower__loop(c, "oc", w->dims[0], BERTH_LOOP_SERIAL);
    berth_buf tile = table(c, "tile", t, 3, 3);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            berth_expr at[4] = {oc, ic, ix(c, i), ix(c, j)};
            set_entry(c, tile, i, j, in_at(c, op, 0, at));
        }
    berth_buf half = transform_rows(c, left, tile, t);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->rows; ++j) {
            berth_expr at[3] = {ix(c, i * left->rows + j), ic, oc};
            berth_lower__store(c, op, 0, at, transform_column(c, left, half, i, j));
        }
    berth_lower__end_loops(c, 2);
}

// x [n, c, h, w] -> [(m+2)^2, tiles, c], tiles in the order n, row, column
void berth_lower__winograd_input(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    static const int64_t no_pads[4] = {0};
    uint32_t pad_count = 0;
    int64_t m = tile_of(c, op);
    const int64_t *pads = berth_attrs_ints(c->module, &op->attrs, "pads", &pad_count);
    if (!pads)
        pads = no_pads;
    else if (pad_count != 4)
        berth_lower__fail(c, op, "pads has %u entries, expected 4", pad_count);
    if (c->failure) return;
    const matrix *left = m == 2 ? &input_2 : &input_4;
    berth_dtype t = out_dtype(c, op, 0);
    int64_t rows = (x->dims[2] + pads[0] + pads[2] - 2 + m - 1) / m;
    int64_t columns = (x->dims[3] + pads[1] + pads[3] - 2 + m - 1) / m;
    berth_expr n = berth_lower__loop(c, "n", x->dims[0], BERTH_LOOP_PARALLEL);
    berth_expr ty = berth_lower__loop(c, "ty", rows, BERTH_LOOP_PARALLEL);
    berth_expr tx = berth_lower__loop(c, "tx", columns, BERTH_LOOP_PARALLEL);
    berth_expr channel = berth_lower__loop(c, "ic", x->dims[1], BERTH_LOOP_SERIAL);
    berth_buf tile = table(c, "tile", t, left->rows, left->rows);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->rows; ++j) {
            berth_expr y = x_addi(c, x_muli(c, ty, m), i - pads[0]);
            berth_expr z = x_addi(c, x_muli(c, tx, m), j - pads[1]);
            berth_expr inside = x_and(c, x_ge(c, y, ix(c, 0)), x_lt(c, y, ix(c, x->dims[2])));
            inside =
                x_and(c, inside, x_and(c, x_ge(c, z, ix(c, 0)), x_lt(c, z, ix(c, x->dims[3]))));
            berth_expr at[4] = {n, channel, y, z};
            set_entry(c, tile, i, j, x_select(c, inside, in_at(c, op, 0, at), num(c, t, 0)));
        }
    berth_buf half = transform_rows(c, left, tile, t);
    berth_expr number = x_add(c, x_muli(c, x_add(c, x_muli(c, n, rows), ty), columns), tx);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->rows; ++j) {
            berth_expr at[3] = {ix(c, i * left->rows + j), number, channel};
            berth_lower__store(c, op, 0, at, transform_column(c, left, half, i, j));
        }
    berth_lower__end_loops(c, 4);
}

typedef struct output_tile {
    const matrix *left;
    int64_t m;
    int64_t rows;
    int64_t columns;
    berth_expr n, channel, ty, tx;
} output_tile;

static void store_tile(berth_lower *c, const berth_op *op, const output_tile *o) {
    const berth_type *y = out_type(c, op, 0);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr number =
        x_add(c, x_muli(c, x_add(c, x_muli(c, o->n, o->rows), o->ty), o->columns), o->tx);
    berth_buf tile = table(c, "tile", t, o->left->columns, o->left->columns);
    for (int i = 0; i < o->left->columns; ++i)
        for (int j = 0; j < o->left->columns; ++j) {
            berth_expr at[3] = {ix(c, i * o->left->columns + j), number, o->channel};
            set_entry(c, tile, i, j, in_at(c, op, 0, at));
        }
    berth_buf half = transform_rows(c, o->left, tile, t);
    for (int i = 0; i < o->m; ++i)
        for (int j = 0; j < o->m; ++j) {
            berth_expr at[4] = {o->n, o->channel, x_addi(c, x_muli(c, o->ty, o->m), i),
                                x_addi(c, x_muli(c, o->tx, o->m), j)};
            berth_expr inside = 0;
            if (y->dims[2] % o->m != 0 && i >= y->dims[2] % o->m)
                inside = x_lt(c, at[2], ix(c, y->dims[2]));
            if (y->dims[3] % o->m != 0 && j >= y->dims[3] % o->m)
                inside = x_and(c, inside, x_lt(c, at[3], ix(c, y->dims[3])));
            berth_lower__if(c, inside);
            berth_expr value = transform_column(c, o->left, half, i, j);
            if (has_in(op, 1)) value = x_add(c, value, in_at(c, op, 1, &o->channel));
            berth_lower__store(c, op, 0, at, value);
            berth_lower__end(c);
        }
}

// [(m+2)^2, tiles, o], bias [o] -> y [n, o, h, w]; channels innermost, in the blocks of y's layout
void berth_lower__winograd_output(berth_lower *c, const berth_op *op) {
    const berth_type *y = out_type(c, op, 0);
    const berth_buf_info info = c->fn->bufs.data[berth_lower__buffer(c, 0)];
    output_tile o = {.m = tile_of(c, op)};
    berth_layout layout;
    berth_status status = berth_layout_parse(berth_module_str(c->module, info.layout), 4, &layout);
    if (!berth_lower__check(c, op, status) || c->failure) return;
    o.left = o.m == 2 ? &output_2 : &output_4;
    o.rows = (y->dims[2] + o.m - 1) / o.m;
    o.columns = (y->dims[3] + o.m - 1) / o.m;
    int64_t block = layout.total_block[1];
    bool blocked = block > 1;
    int64_t outer = blocked ? (y->dims[1] + block - 1) / block : 1;
    o.n = berth_lower__loop(c, "n", y->dims[0], BERTH_LOOP_PARALLEL);
    berth_expr oc_o = berth_lower__loop(c, "oc_o", outer, BERTH_LOOP_PARALLEL);
    o.ty = berth_lower__loop(c, "ty", o.rows, BERTH_LOOP_PARALLEL);
    o.tx = berth_lower__loop(c, "tx", o.columns, BERTH_LOOP_PARALLEL);
    int64_t inner = blocked ? block : y->dims[1];
    berth_expr oc_i = berth_lower__loop(c, blocked ? "oc_i" : "oc", inner, BERTH_LOOP_SERIAL);
    o.channel = x_add(c, x_muli(c, oc_o, inner), oc_i);
    if (blocked && y->dims[1] % block != 0)
        berth_lower__padded_lane(c, oc_o, oc_i, o.channel, y->dims[1]);
    store_tile(c, op, &o);
    berth_lower__end_loops(c, 5);
    berth_lower__end_lanes(c);
}
