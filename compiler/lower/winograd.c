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

// Begins, then ends, of rows and columns; NULL (and a failure) when there are not four.
static const int64_t *pads_of(berth_lower *c, const berth_op *op) {
    static const int64_t none[4] = {0};
    uint32_t count = 0;
    const int64_t *pads = berth_attrs_ints(c->module, &op->attrs, "pads", &count);
    if (!pads) return none;
    if (count == 4) return pads;
    berth_lower__fail(c, op, "pads has %u entries, expected 4", count);
    return NULL;
}

// Where the points of a tile lie, of the input or of the output: [point, tile, channel].
typedef struct points {
    berth_buf buf;  // 0 = an operand or result of the operation
    berth_expr tile;
    berth_expr channel;
} points;

// The points of the tile of `x` whose window begins at row ty * m and column tx * m, minus pads.
static void store_points(berth_lower *c, const berth_op *op, const int64_t *pads, int64_t m,
                         berth_expr n, berth_expr ty, berth_expr tx, const points *to) {
    const berth_type *x = in_type(c, op, 0);
    const matrix *left = m == 2 ? &input_2 : &input_4;
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf tile = table(c, "tile", t, left->rows, left->rows);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->rows; ++j) {
            berth_expr y = x_addi(c, x_muli(c, ty, m), i - pads[0]);
            berth_expr z = x_addi(c, x_muli(c, tx, m), j - pads[1]);
            berth_expr inside = x_and(c, x_ge(c, y, ix(c, 0)), x_lt(c, y, ix(c, x->dims[2])));
            inside =
                x_and(c, inside, x_and(c, x_ge(c, z, ix(c, 0)), x_lt(c, z, ix(c, x->dims[3]))));
            berth_expr at[4] = {n, to->channel, y, z};
            set_entry(c, tile, i, j, x_select(c, inside, in_at(c, op, 0, at), num(c, t, 0)));
        }
    berth_buf half = transform_rows(c, left, tile, t);
    for (int i = 0; i < left->rows; ++i)
        for (int j = 0; j < left->rows; ++j) {
            berth_expr at[3] = {ix(c, i * left->rows + j), to->tile, to->channel};
            berth_expr value = transform_column(c, left, half, i, j);
            if (to->buf)
                berth_lower__put(c, to->buf, at, value);
            else
                berth_lower__store(c, op, 0, at, value);
        }
}

// x [n, c, h, w] -> [(m+2)^2, tiles, c], tiles in the order n, row, column
void berth_lower__winograd_input(berth_lower *c, const berth_op *op) {
    const berth_type *x = in_type(c, op, 0);
    int64_t m = tile_of(c, op);
    const int64_t *pads = pads_of(c, op);
    if (c->failure) return;
    int64_t rows = (x->dims[2] + pads[0] + pads[2] - 2 + m - 1) / m;
    int64_t columns = (x->dims[3] + pads[1] + pads[3] - 2 + m - 1) / m;
    berth_expr n = berth_lower__loop(c, "n", x->dims[0], BERTH_LOOP_PARALLEL);
    berth_expr ty = berth_lower__loop(c, "ty", rows, BERTH_LOOP_PARALLEL);
    berth_expr tx = berth_lower__loop(c, "tx", columns, BERTH_LOOP_PARALLEL);
    points to = {.channel = berth_lower__loop(c, "ic", x->dims[1], BERTH_LOOP_SIMD)};
    to.tile = x_add(c, x_muli(c, x_add(c, x_muli(c, n, rows), ty), columns), tx);
    store_points(c, op, pads, m, n, ty, tx, &to);
    berth_lower__end_loops(c, 4);
}

typedef struct output_tile {
    const matrix *left;
    int64_t m;
    int64_t rows;
    int64_t columns;
    points from;
    uint32_t bias;  // operand
    berth_expr n, channel, ty, tx;
} output_tile;

static void store_tile(berth_lower *c, const berth_op *op, const output_tile *o) {
    const berth_type *y = out_type(c, op, 0);
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf tile = table(c, "tile", t, o->left->columns, o->left->columns);
    for (int i = 0; i < o->left->columns; ++i)
        for (int j = 0; j < o->left->columns; ++j) {
            berth_expr at[3] = {ix(c, i * o->left->columns + j), o->from.tile, o->channel};
            berth_expr point =
                o->from.buf ? berth_lower__load(c, o->from.buf, at) : in_at(c, op, 0, at);
            set_entry(c, tile, i, j, point);
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
            if (has_in(op, o->bias)) value = x_add(c, value, in_at(c, op, o->bias, &o->channel));
            berth_lower__store(c, op, 0, at, value);
            berth_lower__end(c);
        }
}

// The output's tiles, without where their points are.
static output_tile output_of(berth_lower *c, const berth_op *op) {
    const berth_type *y = out_type(c, op, 0);
    output_tile o = {.m = tile_of(c, op)};
    if (c->failure) return o;
    o.left = o.m == 2 ? &output_2 : &output_4;
    o.rows = (y->dims[2] + o.m - 1) / o.m;
    o.columns = (y->dims[3] + o.m - 1) / o.m;
    return o;
}

// Channels of the result in the blocks of its layout: the outer loop here, the inner one by
// open_lanes once the loops of tiles are there.
typedef struct channels {
    int64_t block;  // 0 = not in blocks
    int64_t extent;
    berth_expr outer;
} channels;

static channels open_channels(berth_lower *c, const berth_op *op, berth_loop_kind kind) {
    const berth_buf_info info = c->fn->bufs.data[berth_lower__buffer(c, 0)];
    channels v = {.extent = out_type(c, op, 0)->dims[1]};
    berth_layout layout = {0};
    berth_status status = berth_layout_parse(berth_module_str(c->module, info.layout), 4, &layout);
    if (berth_lower__check(c, op, status) && layout.total_block[1] > 1)
        v.block = layout.total_block[1];
    int64_t outer = v.block ? (v.extent + v.block - 1) / v.block : 1;
    v.outer = berth_lower__loop(c, "oc_o", outer, kind);
    return v;
}

static berth_expr open_lanes(berth_lower *c, const channels *v) {
    int64_t inner = v->block ? v->block : v->extent;
    berth_expr lane = berth_lower__loop(c, v->block ? "oc_i" : "oc", inner, BERTH_LOOP_SERIAL);
    berth_expr channel = x_add(c, x_muli(c, v->outer, inner), lane);
    if (v->block && v->extent % v->block != 0)
        berth_lower__padded_lane(c, v->outer, lane, channel, v->extent);
    return channel;
}

// [(m+2)^2, tiles, o], bias [o] -> y [n, o, h, w]; channels innermost, in the blocks of y's layout
void berth_lower__winograd_output(berth_lower *c, const berth_op *op) {
    output_tile o = output_of(c, op);
    if (c->failure) return;
    o.bias = 1;
    o.n = berth_lower__loop(c, "n", out_type(c, op, 0)->dims[0], BERTH_LOOP_PARALLEL);
    channels v = open_channels(c, op, BERTH_LOOP_PARALLEL);
    o.ty = berth_lower__loop(c, "ty", o.rows, BERTH_LOOP_PARALLEL);
    o.tx = berth_lower__loop(c, "tx", o.columns, BERTH_LOOP_PARALLEL);
    o.channel = open_lanes(c, &v);
    o.from.tile = x_add(c, x_muli(c, x_add(c, x_muli(c, o.n, o.rows), o.ty), o.columns), o.tx);
    store_tile(c, op, &o);
    berth_lower__end_loops(c, 5);
    berth_lower__end_lanes(c);
}

// ---- a band of tiles at a time ------------------------------------------------------------------

// [(m+2)^2, tiles of a band, channels], private. Points a multiple of 4 KiB apart would share the
// sets of the caches: then there is one tile more between them.
static berth_buf band_points(berth_lower *c, const char *name, berth_dtype t, int64_t m,
                             int64_t tiles, int64_t channel_count) {
    bool collide = tiles * channel_count % 1024 == 0;
    return berth_lower__private(c, name, t, 3,
                                (int64_t[]){(m + 2) * (m + 2), tiles + collide, channel_count});
}

// sums [p, t, o] = points [p, t, i] x weights [p, i, o]
static void multiply_band(berth_lower *c, const berth_op *op, berth_buf in, berth_buf sums,
                          int64_t tiles) {
    const berth_type *weights = in_type(c, op, 1);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr p = berth_lower__loop(c, "p", weights->dims[0], BERTH_LOOP_SERIAL);
    berth_expr tile = berth_lower__loop(c, "t", tiles, BERTH_LOOP_SERIAL);
    berth_expr o = berth_lower__loop(c, "o", weights->dims[2], BERTH_LOOP_SERIAL);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    berth_expr i = berth_lower__loop(c, "i", weights->dims[1], BERTH_LOOP_SERIAL);
    berth_expr x_at[3] = {p, tile, i}, w_at[3] = {p, i, o}, y_at[3] = {p, tile, o};
    berth_lower__set(
        c, acc,
        x_fma(c, berth_lower__load(c, in, x_at), in_at(c, op, 1, w_at), berth_lower__get(c, acc)));
    berth_lower__end(c);
    berth_lower__put(c, sums, y_at, berth_lower__get(c, acc));
    berth_lower__end_loops(c, 3);
}

// x, weights, bias -> y. All three steps for `band` rows of tiles, so that their points stay in the
// cache and no tensor holds those of the whole map; bands in parallel.
void berth_lower__winograd_conv(berth_lower *c, const berth_op *op) {
    const int64_t *pads = pads_of(c, op);
    output_tile o = output_of(c, op);
    int64_t band = attr_int(c, op, "band", 1);
    if (c->failure) return;
    if (band < 1 || o.rows % band != 0) {
        berth_lower__fail(c, op, "bands of %lld rows in %lld rows of tiles", (long long)band,
                          (long long)o.rows);
        return;
    }
    int64_t inputs = in_type(c, op, 0)->dims[1];
    berth_dtype t = out_dtype(c, op, 0);
    o.bias = 2;
    o.n = berth_lower__loop(c, "n", out_type(c, op, 0)->dims[0], BERTH_LOOP_PARALLEL);
    berth_expr first = berth_lower__loop(c, "band", o.rows / band, BERTH_LOOP_PARALLEL);
    int64_t tiles = band * o.columns;
    berth_buf in = band_points(c, "points", t, o.m, tiles, inputs);
    berth_buf sums = band_points(c, "sums", t, o.m, tiles, out_type(c, op, 0)->dims[1]);

    berth_expr row = berth_lower__loop(c, "ty", band, BERTH_LOOP_SERIAL);
    berth_expr tx = berth_lower__loop(c, "tx", o.columns, BERTH_LOOP_SERIAL);
    points to = {.buf = in, .channel = berth_lower__loop(c, "ic", inputs, BERTH_LOOP_SERIAL)};
    to.tile = x_add(c, x_muli(c, row, o.columns), tx);
    store_points(c, op, pads, o.m, o.n, x_add(c, x_muli(c, first, band), row), tx, &to);
    berth_lower__end_loops(c, 3);

    multiply_band(c, op, in, sums, tiles);

    channels v = open_channels(c, op, BERTH_LOOP_SERIAL);
    row = berth_lower__loop(c, "ty", band, BERTH_LOOP_SERIAL);
    o.tx = berth_lower__loop(c, "tx", o.columns, BERTH_LOOP_SERIAL);
    o.ty = x_add(c, x_muli(c, first, band), row);
    o.channel = open_lanes(c, &v);
    o.from = (points){.buf = sums, .tile = x_add(c, x_muli(c, row, o.columns), o.tx)};
    store_tile(c, op, &o);
    berth_lower__end_loops(c, 4);
    berth_lower__end_lanes(c);
    berth_lower__end_loops(c, 2);
}
