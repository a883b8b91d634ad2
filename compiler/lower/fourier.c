// dft and stft in stages (fourier.h): first the signal in rows of real, then of imaginary parts,
// windowed and filled up with zeros; then a nest per stage, each a product with small matrices.
// A convolution multiplies before, between and after two such transforms.
// Where an operation has no tables (passes/fourier.c), their elements are computed as they are used.
#include "compiler/lower/fourier.h"

#include <string.h>

#include "compiler/lower/families.h"

typedef struct transform {
    const berth_op *op;
    berth_dtype t;
    berth_fourier f;
    int axis;      // of a dft
    int64_t step;  // from frame to frame of an stft
    int64_t bins;
    int64_t result_parts;
    int line_rank;  // transforms: every dimension of the result but the axis and the parts
    int64_t line_dims[BERTH_MAX_RANK];
    int64_t lines;
    berth_buf state;  // [line][part][n][k of the stages so far]
    int64_t done;     // k of the stages so far
    bool padded;      // the rest of the signal of a convolution is zeros, and not there
} transform;

// ---- signal -------------------------------------------------------------------------------------

// Element n of the signal of a line; `part` an index. 0 after its end.
static berth_expr dft_element(berth_lower *c, const transform *f, const berth_expr *line,
                              berth_expr part, berth_expr n) {
    const berth_type *x = in_type(c, f->op, 0);
    berth_expr at[BERTH_MAX_RANK];
    berth_expr from = n;
    berth_expr mirrored = 0;
    if (f->f.hermitian) {  // x[length - n] conjugated, from the middle on
        mirrored = x_gt(c, n, ix(c, f->f.length / 2));
        from = x_select(c, mirrored, x_sub(c, ix(c, f->f.length), n), n);
    }
    for (int d = 0, next = 0; d + 1 < x->rank; ++d) at[d] = d == f->axis ? from : line[next++];
    at[x->rank - 1] = part;
    berth_expr zero = num(c, f->t, 0);
    int64_t extent = x->dims[f->axis];
    int64_t last = f->f.hermitian ? f->f.length / 2 : f->f.length - 1;
    berth_expr inside = last < extent ? 0 : x_lt(c, from, ix(c, extent));
    berth_expr value = x_select(c, inside, in_at(c, f->op, 0, at), zero);
    if (!mirrored) return value;
    berth_expr conjugated = x_select(c, x_eq(c, part, ix(c, 1)), x_sub(c, zero, value), value);
    return x_select(c, mirrored, conjugated, value);
}

static berth_expr stft_element(berth_lower *c, const transform *f, const berth_expr *line,
                               berth_expr part, berth_expr n) {
    berth_expr at[3] = {line[0], x_add(c, x_muli(c, line[1], f->step), n), part};
    berth_expr value = in_at(c, f->op, 0, at);
    return has_in(f->op, 2) ? x_mul(c, value, in_at(c, f->op, 2, &n)) : value;
}

static int open_lines(berth_lower *c, const transform *f, berth_expr *line) {
    return berth_lower__outer(c, f->line_rank, f->line_dims, 0, line);
}

static berth_buf workspace(berth_lower *c, const transform *f, const char *name, int64_t parts,
                           int64_t rows, int64_t columns) {
    const int64_t dims[4] = {f->lines, parts, rows, columns};
    return berth_tfn_buffer(c->fn, name, f->t, 4, dims, BERTH_SCOPE_WORKSPACE);
}

static berth_expr element(berth_lower *c, const transform *f, const berth_expr *line,
                          berth_expr part, berth_expr n) {
    bool framed = f->op->kind == BERTH_OP_STFT;
    return framed ? stft_element(c, f, line, part, n) : dft_element(c, f, line, part, n);
}

static void gather_signal(berth_lower *c, transform *f) {
    berth_expr line[BERTH_MAX_RANK];
    f->state = workspace(c, f, "signal", f->f.parts, f->f.length, 1);
    f->done = 1;
    int loops = open_lines(c, f, line);
    berth_expr part = berth_lower__loop(c, "part", f->f.parts, BERTH_LOOP_PARALLEL);
    berth_expr n = berth_lower__loop(c, "n", f->f.length, BERTH_LOOP_PARALLEL);
    berth_expr value = element(c, f, line, part, n);
    berth_expr at[4] = {berth_lower__linearise(c, f->line_rank, f->line_dims, line), part, n,
                        ix(c, 0)};
    berth_lower__put(c, f->state, at, value);
    berth_lower__end_loops(c, loops + 2);
}

// ---- stages -------------------------------------------------------------------------------------

// What a result of a stage is: transform, part, k' of the stage, k of the stages before, and r.
typedef struct place {
    berth_expr line;  // all dimensions as one
    berth_expr part;
    berth_expr k;
    berth_expr done;
    berth_expr rest;
} place;

static berth_expr table_element(berth_lower *c, const transform *f, int stage, const place *at,
                                berth_expr part, berth_expr n) {
    uint32_t operand = f->f.first_table + (uint32_t)stage;
    berth_expr first[5] = {at->rest, part, n, at->part, at->k};
    berth_expr later[5] = {at->rest, at->part, at->k, part, n};
    if (has_in(f->op, operand)) return in_at(c, f->op, operand, stage == 0 ? first : later);
    const double pi = 3.14159265358979323846;
    bool inverse = f->f.inverse && !f->f.convolution;
    int64_t rest = berth_fourier_rest(&f->f, stage);
    int64_t length = rest * f->f.factors[stage];
    berth_expr turn = x_mul(c, at->k, x_add(c, x_muli(c, n, rest), at->rest));
    berth_expr angle = berth_tfn_from_index(c->fn, f->t, x_mod(c, turn, ix(c, length)));
    angle = x_mul(c, angle, num(c, f->t, (inverse ? 2 : -2) * pi / (double)length));
    berth_expr sine = x_unary(c, BERTH_UNARY_SIN, angle);
    sine = x_select(c, x_lt(c, at->part, part), x_sub(c, num(c, f->t, 0), sine), sine);
    return x_select(c, x_eq(c, at->part, part), x_unary(c, BERTH_UNARY_COS, angle), sine);
}

// The sum over parts and n' of a stage.
static berth_expr stage_sum(berth_lower *c, const transform *f, int stage, const place *at) {
    int64_t rest = berth_fourier_rest(&f->f, stage);
    int64_t parts = stage == 0 && !f->f.convolution ? f->f.parts : 2;
    int64_t terms = f->padded ? berth_fourier_terms(&f->f, stage) : f->f.factors[stage];
    berth_buf acc = berth_lower__register(c, "acc", f->t);
    berth_lower__set(c, acc, num(c, f->t, 0));
    berth_expr part = berth_lower__loop(c, "part", parts, BERTH_LOOP_SERIAL);
    berth_expr n = berth_lower__loop(c, "n", terms, BERTH_LOOP_SERIAL);
    berth_expr from[4] = {at->line, part, x_add(c, x_muli(c, n, rest), at->rest), at->done};
    berth_expr value = berth_tfn_load(c->fn, f->state, from, 4);
    berth_expr table = table_element(c, f, stage, at, part, n);
    berth_lower__set(c, acc, x_fma(c, value, table, berth_lower__get(c, acc)));
    berth_lower__end_loops(c, 2);
    return berth_lower__get(c, acc);
}

// The innermost loop is the one whose elements lie beside each other in the table or in the state,
// the one around it the one for which they stay. Results k' < k_count.
static void inner_stage(berth_lower *c, transform *f, int stage, int64_t k_count) {
    int64_t rest = berth_fourier_rest(&f->f, stage);
    berth_buf next = workspace(c, f, "state", 2, rest, f->done * k_count);
    place at = {.rest = berth_lower__loop(c, "r", rest, BERTH_LOOP_PARALLEL), .done = ix(c, 0)};
    int loops = 4;
    if (stage == 0) {
        at.part = berth_lower__loop(c, "re_im", 2, BERTH_LOOP_PARALLEL);
        at.line = berth_lower__loop(c, "line", f->lines, BERTH_LOOP_PARALLEL);
        at.k = berth_lower__loop(c, "k", k_count, BERTH_LOOP_SERIAL);
    } else {
        at.line = berth_lower__loop(c, "line", f->lines, BERTH_LOOP_PARALLEL);
        at.part = berth_lower__loop(c, "re_im", 2, BERTH_LOOP_PARALLEL);
        at.k = berth_lower__loop(c, "k", k_count, BERTH_LOOP_PARALLEL);
        at.done = berth_lower__loop(c, "done", f->done, BERTH_LOOP_SERIAL);
        loops++;
    }
    berth_expr sum = stage_sum(c, f, stage, &at);
    berth_expr to[4] = {at.line, at.part, at.rest, x_add(c, x_muli(c, at.k, f->done), at.done)};
    berth_lower__put(c, next, to, sum);
    berth_lower__end_loops(c, loops);
    f->state = next;
    f->done *= k_count;
}

static void store_bin(berth_lower *c, const transform *f, const berth_expr *line, berth_expr part,
                      berth_expr bin, berth_expr value) {
    berth_expr at[BERTH_MAX_RANK];
    int rank = out_type(c, f->op, 0)->rank;
    int axis = f->op->kind == BERTH_OP_STFT ? 2 : f->axis;
    for (int d = 0, next = 0; d + 1 < rank; ++d) at[d] = d == axis ? bin : line[next++];
    at[rank - 1] = part;
    berth_lower__store(c, f->op, 0, at, value);
}

// Results first_k <= k' < first_k + k_count of the last stage, for the first `done` of the k
// before.
static void last_stage(berth_lower *c, const transform *f, int64_t first_k, int64_t k_count,
                       int64_t done) {
    int stage = f->f.stages - 1;
    berth_expr line[BERTH_MAX_RANK];
    place at = {.rest = ix(c, 0)};
    at.part = berth_lower__loop(c, "re_im", f->result_parts, BERTH_LOOP_PARALLEL);
    int loops = 3 + open_lines(c, f, line);
    at.line = berth_lower__linearise(c, f->line_rank, f->line_dims, line);
    berth_loop_kind kind = stage == 0 ? BERTH_LOOP_SERIAL : BERTH_LOOP_PARALLEL;
    at.k = x_addi(c, berth_lower__loop(c, "k", k_count, kind), first_k);
    at.done = berth_lower__loop(c, "done", done, BERTH_LOOP_SERIAL);
    berth_expr value = stage_sum(c, f, stage, &at);
    if (f->f.inverse) value = x_mul(c, value, num(c, f->t, 1.0 / (double)f->f.length));
    berth_expr bin = x_add(c, x_muli(c, at.k, f->done), at.done);
    store_bin(c, f, line, at.part, bin, value);
    berth_lower__end_loops(c, loops);
}

// ---- convolution --------------------------------------------------------------------------------

// Stores the product of value[2] and element n of table `index` of two parts, its imaginary part
// times `sign`, at to[0], to[2], to[3].
static void multiply(berth_lower *c, const transform *f, uint32_t index, berth_expr n,
                     const berth_expr *value, int sign, berth_buf buf, const berth_expr *to) {
    uint32_t operand = f->f.first_table + (uint32_t)f->f.stages + index;
    berth_expr zero = num(c, f->t, 0);
    berth_expr table[2];
    for (int part = 0; part < 2; ++part) {
        const berth_expr at[2] = {ix(c, part), n};
        table[part] = in_at(c, f->op, operand, at);
    }
    for (int part = 0; part < 2; ++part) {
        const berth_expr at[4] = {to[0], ix(c, part), to[2], to[3]};
        berth_expr product = x_mul(c, value[0], table[part]);
        if (value[1]) {
            berth_expr other = x_mul(c, value[1], table[1 - part]);
            product = part ? x_add(c, product, other) : x_sub(c, product, other);
        }
        berth_lower__put(c, buf, at, part && sign < 0 ? x_sub(c, zero, product) : product);
    }
}

// The signal times the chirp, and zeros up to what the first stage reads.
static void chirped_signal(berth_lower *c, transform *f) {
    int64_t rows = berth_fourier_terms(&f->f, 0) * berth_fourier_rest(&f->f, 0);
    berth_expr line[BERTH_MAX_RANK];
    f->state = workspace(c, f, "signal", 2, rows, 1);
    f->done = 1;
    int loops = open_lines(c, f, line);
    berth_expr n = berth_lower__loop(c, "n", f->f.length, BERTH_LOOP_PARALLEL);
    berth_expr value[2] = {element(c, f, line, ix(c, 0), n), 0};
    if (f->f.parts == 2) value[1] = element(c, f, line, ix(c, 1), n);
    berth_expr to[4] = {berth_lower__linearise(c, f->line_rank, f->line_dims, line), 0, n,
                        ix(c, 0)};
    multiply(c, f, 0, n, value, 1, f->state, to);
    berth_lower__end_loops(c, loops + 1);
    if (rows == f->f.length) return;
    berth_lower__next_nest(c);
    to[0] = berth_lower__loop(c, "line", f->lines, BERTH_LOOP_PARALLEL);
    to[1] = berth_lower__loop(c, "part", 2, BERTH_LOOP_PARALLEL);
    to[2] = berth_lower__loop(c, "n", rows - f->f.length, BERTH_LOOP_PARALLEL);
    to[2] = x_addi(c, to[2], f->f.length);
    berth_lower__put(c, f->state, to, num(c, f->t, 0));
    berth_lower__end_loops(c, 3);
}

// The first `count` results of the stages at least, as one row.
static void whole_transform(berth_lower *c, transform *f, int64_t count) {
    for (int stage = 0; stage < f->f.stages; ++stage) {
        bool last = stage + 1 == f->f.stages;
        int64_t k_count = last ? (count + f->done - 1) / f->done : f->f.factors[stage];
        berth_lower__next_nest(c);
        inner_stage(c, f, stage, k_count);
    }
}

static void load_pair(berth_lower *c, const transform *f, berth_expr line, berth_expr k,
                      berth_expr *out) {
    for (int part = 0; part < 2; ++part) {
        const berth_expr at[4] = {line, ix(c, part), ix(c, 0), k};
        out[part] = berth_tfn_load(c->fn, f->state, at, 4);
    }
}

// The conjugated results times the chirp: (a - i b)(c + i d) = (a c + b d) + i (a d - b c).
static void chirped_bins(berth_lower *c, const transform *f) {
    uint32_t chirp = f->f.first_table + (uint32_t)f->f.stages;
    berth_expr line[BERTH_MAX_RANK];
    berth_expr value[2];
    int loops = open_lines(c, f, line);
    berth_expr k = berth_lower__loop(c, "k", f->bins, BERTH_LOOP_PARALLEL);
    load_pair(c, f, berth_lower__linearise(c, f->line_rank, f->line_dims, line), k, value);
    for (int part = 0; part < f->result_parts; ++part) {
        const berth_expr same[2] = {ix(c, part), k};
        const berth_expr other[2] = {ix(c, 1 - part), k};
        berth_expr product = x_mul(c, value[0], in_at(c, f->op, chirp, same));
        berth_expr beside = x_mul(c, value[1], in_at(c, f->op, chirp, other));
        product = part ? x_sub(c, product, beside) : x_add(c, product, beside);
        if (f->f.inverse) product = x_mul(c, product, num(c, f->t, 1.0 / (double)f->f.length));
        store_bin(c, f, line, ix(c, part), k, product);
    }
    berth_lower__end_loops(c, loops + 1);
}

static void convolve(berth_lower *c, transform *f) {
    berth_expr value[2];
    chirped_signal(c, f);
    f->padded = true;
    whole_transform(c, f, f->f.convolution);
    f->padded = false;

    berth_lower__next_nest(c);
    berth_buf next = workspace(c, f, "product", 2, f->f.convolution, 1);
    berth_expr to[4] = {berth_lower__loop(c, "line", f->lines, BERTH_LOOP_PARALLEL), 0,
                        berth_lower__loop(c, "k", f->f.convolution, BERTH_LOOP_PARALLEL), ix(c, 0)};
    load_pair(c, f, to[0], to[2], value);
    multiply(c, f, 1, to[2], value, -1, next, to);
    berth_lower__end_loops(c, 2);
    f->state = next;
    f->done = 1;
    whole_transform(c, f, f->bins);

    berth_lower__next_nest(c);
    chirped_bins(c, f);
}

static void transform_lines(berth_lower *c, transform *f) {
    f->lines = 1;
    for (int d = 0; d < f->line_rank; ++d) f->lines *= f->line_dims[d];
    if (f->f.convolution) {
        convolve(c, f);
        return;
    }
    gather_signal(c, f);
    for (int stage = 0; stage + 1 < f->f.stages; ++stage) {
        berth_lower__next_nest(c);
        inner_stage(c, f, stage, f->f.factors[stage]);
    }
    int64_t whole = f->bins / f->done;
    int64_t rest = f->bins % f->done;
    if (whole > 0) {
        berth_lower__next_nest(c);
        last_stage(c, f, 0, whole, f->done);
    }
    if (rest > 0) {
        berth_lower__next_nest(c);
        last_stage(c, f, whole, 1, rest);
    }
}

// Tables are of the extents that the stages read, or absent; those of a convolution are there.
static bool tables_fit(const berth_lower *c, const berth_op *op, const berth_fourier *f) {
    uint32_t count = berth_fourier_table_count(f);
    if (op->input_count > f->first_table + count) return false;
    for (uint32_t i = 0; i < count; ++i) {
        int64_t dims[5];
        uint32_t operand = f->first_table + i;
        if (!has_in(op, operand)) {
            if (i >= (uint32_t)f->stages) return false;
            continue;
        }
        int rank = berth_fourier_table_dims(f, i, dims);
        const berth_type *type = in_type(c, op, operand);
        if (type->rank != rank || memcmp(type->dims, dims, (size_t)rank * sizeof(*dims)) != 0)
            return false;
    }
    return true;
}

static bool describe(berth_lower *c, const berth_op *op, transform *out) {
    *out = (transform){.op = op, .t = out_dtype(c, op, 0)};
    if (!berth_dtype_is_float(out->t) ||
        !berth_fourier_describe(c->module, c->graph, op, &out->f)) {
        berth_lower__fail(c, op, "a transform of this type, axis or length (it must be known)");
        return false;
    }
    if (!tables_fit(c, op, &out->f)) {
        berth_lower__fail(c, op, "operands that are no tables of this transform");
        return false;
    }
    const berth_type *y = out_type(c, op, 0);
    out->result_parts = y->dims[y->rank - 1];
    return true;
}

void berth_lower__dft(berth_lower *c, const berth_op *op) {
    transform f;
    if (!describe(c, op, &f)) return;
    const berth_type *y = out_type(c, op, 0);
    f.axis = berth_lower__axis(c, op, 1, y->rank);
    f.bins = y->dims[f.axis];
    for (int d = 0; d + 1 < y->rank; ++d)
        if (d != f.axis) f.line_dims[f.line_rank++] = y->dims[d];
    transform_lines(c, &f);
}

// signal [batch, samples (, parts)] -> [batch, frames, bins, 2]
void berth_lower__stft(berth_lower *c, const berth_op *op) {
    transform f;
    const berth_tensor *step = berth_lower__constant(c, op, 1);
    if (!step || !describe(c, op, &f)) return;
    const berth_type *y = out_type(c, op, 0);
    f.step = berth_tensor_get_i64(step, 0);
    f.bins = y->dims[2];
    f.line_rank = 2;
    f.line_dims[0] = y->dims[0];
    f.line_dims[1] = y->dims[1];
    transform_lines(c, &f);
}
