// rnn, gru, lstm by the equations of the operators' texts. Per direction two kernels: the products of
// all inputs with their weights at once, and then the steps in order (Appleyard, Kocisky and Blunsom
// 2016, "Optimizing performance of recurrent neural networks on GPUs", section 3.2), which work on a
// few rows of the batch together, states and sums in private storage, groups of rows in parallel.
#include "compiler/lower/families.h"

#include <string.h>
#include <strings.h>

#include "ir/layout.h"

enum { max_functions = 3, max_rows = 8 };  // rows of the batch that share the weights as they pass

typedef enum activation_kind {
    RELU,
    TANH,
    SIGMOID,
    AFFINE,
    LEAKY_RELU,
    THRESHOLDED_RELU,
    SCALED_TANH,
    HARD_SIGMOID,
    ELU,
    SOFTSIGN,
    SOFTPLUS,
    ACTIVATION_COUNT
} activation_kind;

// Whether alpha and beta are taken from the attribute lists, and their defaults.
typedef struct activation {
    activation_kind kind;
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} activation;

static const activation activations[ACTIVATION_COUNT] = {
    {RELU, "Relu", false, false, 0, 0},
    {TANH, "Tanh", false, false, 0, 0},
    {SIGMOID, "Sigmoid", false, false, 0, 0},
    {AFFINE, "Affine", true, true, 1, 0},
    {LEAKY_RELU, "LeakyRelu", true, false, 0.01, 0},
    {THRESHOLDED_RELU, "ThresholdedRelu", true, false, 1, 0},
    {SCALED_TANH, "ScaledTanh", true, true, 1, 1},
    {HARD_SIGMOID, "HardSigmoid", true, true, 0.2, 0.5},
    {ELU, "Elu", true, false, 1, 0},
    {SOFTSIGN, "Softsign", false, false, 0, 0},
    {SOFTPLUS, "Softplus", false, false, 0, 0},
};

typedef struct cell {
    const berth_op *op;
    berth_dtype dtype;
    int gates, functions, directions;
    int64_t steps, batch, width, hidden;
    bool batch_major, linear_before_reset, input_forget;
    double clip;
    activation f[2 * max_functions];
    int64_t rows;        // of the batch that a kernel's iteration works on
    int d;               // direction being built
    berth_expr row;      // in the group
    berth_expr n;        // of the batch
    berth_expr t;        // of row n: the input of this step
    berth_expr running;  // 0 = always
    berth_buf h, c;      // states [row][hidden]
    berth_buf wx;        // sums of the inputs [., ., gate * hidden], in the order of the input
    berth_buf rh;        // sums of the states [row][gate * hidden]
    berth_buf next;      // gru: [row][hidden]
    bool integer;     // lstm_integer: the state as integers, and what their product is corrected by
    berth_dtype sum;  // of products of states
    berth_buf quantised;            // [row][hidden]
    berth_buf scale, shift, terms;  // [row]; the sum of (quantised - shift)
} cell;

static berth_expr activate(berth_lower *c, const activation *f, berth_expr x) {
    berth_dtype t = dtype_of(c, x);
    berth_expr zero = num(c, t, 0);
    berth_expr one = num(c, t, 1);
    berth_expr alpha = num(c, t, f->alpha);
    berth_expr beta = num(c, t, f->beta);
    berth_expr size = x_unary(c, BERTH_UNARY_ABS, x);
    switch (f->kind) {
    case RELU: return x_max(c, x, zero);
    case TANH: return x_unary(c, BERTH_UNARY_TANH, x);
    case SIGMOID: return x_unary(c, BERTH_UNARY_SIGMOID, x);
    case AFFINE: return x_add(c, x_mul(c, alpha, x), beta);
    case LEAKY_RELU: return x_select(c, x_lt(c, x, zero), x_mul(c, alpha, x), x);
    case THRESHOLDED_RELU: return x_select(c, x_ge(c, x, alpha), x, zero);
    case SCALED_TANH: return x_mul(c, alpha, x_unary(c, BERTH_UNARY_TANH, x_mul(c, beta, x)));
    case HARD_SIGMOID: return x_min(c, one, x_max(c, zero, x_add(c, x_mul(c, alpha, x), beta)));
    case ELU: {
        berth_expr below = x_sub(c, x_unary(c, BERTH_UNARY_EXP, x), one);
        return x_select(c, x_lt(c, x, zero), x_mul(c, alpha, below), x);
    }
    case SOFTSIGN: return x_div(c, x, x_add(c, one, size));
    default: {
        berth_expr small = x_unary(c, BERTH_UNARY_EXP, x_unary(c, BERTH_UNARY_NEG, size));
        return x_add(c, x_max(c, x, zero), x_unary(c, BERTH_UNARY_LOG, x_add(c, one, small)));
    }
    }
}

static bool read_activations(berth_lower *c, cell *m) {
    static const activation_kind usual[max_functions] = {SIGMOID, TANH, TANH};
    const berth_attr *names = berth_attrs_find(c->module, &m->op->attrs, "activations");
    const berth_attr *alphas = berth_attrs_find(c->module, &m->op->attrs, "activation_alpha");
    const berth_attr *betas = berth_attrs_find(c->module, &m->op->attrs, "activation_beta");
    uint32_t next_alpha = 0;
    uint32_t next_beta = 0;
    for (int i = 0; i < m->functions * m->directions; ++i) {
        int kind = m->functions == 1 ? TANH : (int)usual[i % m->functions];
        if (names && names->kind == BERTH_ATTR_STRINGS && (uint32_t)i < names->count) {
            const char *name = berth_module_str(c->module, names->strings[i]);
            for (kind = 0;
                 kind < ACTIVATION_COUNT && strcasecmp(name, activations[kind].name) != 0;)
                ++kind;
            if (kind == ACTIVATION_COUNT) {
                berth_lower__fail(c, m->op, "activation %s", name);
                return false;
            }
        }
        m->f[i] = activations[kind];
        if (m->f[i].has_alpha && alphas && alphas->kind == BERTH_ATTR_FLOATS &&
            next_alpha < alphas->count)
            m->f[i].alpha = alphas->floats[next_alpha++];
        if (m->f[i].has_beta && betas && betas->kind == BERTH_ATTR_FLOATS &&
            next_beta < betas->count)
            m->f[i].beta = betas->floats[next_beta++];
    }
    return true;
}

static bool describe(berth_lower *c, const berth_op *op, cell *m) {
    const berth_type *x = in_type(c, op, 0);
    const berth_type *r = in_type(c, op, 2);
    *m = (cell){.op = op, .dtype = in_dtype(c, op, 0)};
    m->integer = op->kind == BERTH_OP_LSTM_INTEGER;
    m->sum = !m->integer || r->dtype == BERTH_DTYPE_F32 ? m->dtype : BERTH_DTYPE_I32;
    m->gates = op->kind == BERTH_OP_RNN ? 1 : op->kind == BERTH_OP_GRU ? 3 : 4;
    m->functions = op->kind == BERTH_OP_RNN ? 1 : op->kind == BERTH_OP_GRU ? 2 : 3;
    m->batch_major = attr_int(c, op, "layout", 0) != 0;
    m->linear_before_reset = attr_int(c, op, "linear_before_reset", 0) != 0;
    m->input_forget = attr_int(c, op, "input_forget", 0) != 0;
    m->clip = attr_float(c, op, "clip", 0);
    m->directions = strcmp(attr_str(c, op, "direction", "forward"), "bidirectional") == 0 ? 2 : 1;
    if (x->rank != 3 || r->rank != 3 || r->dims[0] != m->directions ||
        r->dims[1] != m->gates * r->dims[2]) {
        berth_lower__fail(c, op, "operands X, W and R do not fit the gates and directions");
        return false;
    }
    m->steps = x->dims[m->batch_major];
    m->batch = x->dims[!m->batch_major];
    m->width = x->dims[2];
    m->hidden = r->dims[2];
    for (m->rows = max_rows; m->rows > 1 && m->batch % m->rows;) m->rows--;
    return read_activations(c, m);
}

// ---- elements -----------------------------------------------------------------------------------

static berth_expr held(berth_lower *c, const cell *m, berth_buf buf, berth_expr i) {
    return berth_tfn_load(c->fn, buf, (berth_expr[]){m->row, i}, 2);
}

static void hold(berth_lower *c, const cell *m, berth_buf buf, berth_expr i, berth_expr value) {
    berth_lower__put(c, buf, (berth_expr[]){m->row, i}, value);
}

static berth_expr parameter(berth_lower *c, const cell *m, uint32_t operand, berth_expr row) {
    berth_expr at[2] = {ix(c, m->d), row};
    return in_at(c, m->op, operand, at);
}

static berth_expr clipped(berth_lower *c, const cell *m, berth_expr x) {
    if (!(m->clip > 0)) return x;
    return x_max(c, num(c, m->dtype, -m->clip), x_min(c, num(c, m->dtype, m->clip), x));
}

// Step and row of the batch in the order of the input.
static void input_order(const cell *m, berth_expr t, berth_expr n, berth_expr *at) {
    at[0] = m->batch_major ? n : t;
    at[1] = m->batch_major ? t : n;
}

static berth_expr gate(berth_lower *c, const cell *m, int number, berth_expr i) {
    berth_expr at[3];
    input_order(m, m->t, m->n, at);
    at[2] = x_addi(c, i, number * m->hidden);
    berth_expr from_state = held(c, m, m->rh, at[2]);
    if (!m->integer) return x_add(c, berth_tfn_load(c->fn, m->wx, at, 3), from_state);
    at[2] = x_addi(c, at[2], m->d * m->gates * m->hidden);
    return x_add(c, in_at(c, m->op, 0, at), from_state);
}

// ---- products -----------------------------------------------------------------------------------

// wx = x W^T + b of all steps and rows, in the order of the input.
static void input_products(berth_lower *c, cell *m) {
    const berth_type *x = in_type(c, m->op, 0);
    int64_t dims[3] = {x->dims[0], x->dims[1], m->gates * m->hidden};
    m->wx = berth_tfn_buffer(c->fn, "wx", m->dtype, 3, dims, BERTH_SCOPE_WORKSPACE);
    berth_expr at[3] = {
        berth_lower__loop(c, m->batch_major ? "n" : "t", dims[0], BERTH_LOOP_PARALLEL),
        berth_lower__loop(c, m->batch_major ? "t" : "n", dims[1], BERTH_LOOP_PARALLEL),
        berth_lower__loop(c, "gate", dims[2], BERTH_LOOP_SERIAL)};
    berth_buf acc = berth_lower__register(c, "acc", m->dtype);
    berth_lower__set(c, acc, num(c, m->dtype, 0));
    berth_expr k = berth_lower__loop(c, "k", m->width, BERTH_LOOP_SERIAL);
    berth_expr w = in_at(c, m->op, 1, (berth_expr[]){ix(c, m->d), at[2], k});
    berth_expr value = in_at(c, m->op, 0, (berth_expr[]){at[0], at[1], k});
    berth_lower__set(c, acc, x_fma(c, w, value, berth_lower__get(c, acc)));
    berth_lower__end(c);
    berth_expr sum = berth_lower__get(c, acc);
    if (has_in(m->op, 3)) sum = x_add(c, sum, parameter(c, m, 3, at[2]));
    berth_lower__put(c, m->wx, at, sum);
    berth_lower__end_loops(c, 3);
}

// Rows [first, first + count) of R times the vector that `state` holds, plus their bias, to `to`
// from element `at` on; of all rows of the batch's group.
static void state_products(berth_lower *c, cell *m, int64_t first, int64_t count, berth_buf state,
                           berth_buf to, int64_t at) {
    m->row = berth_lower__loop(c, "row", m->rows, BERTH_LOOP_SERIAL);
    berth_expr gate_row = berth_lower__loop(c, "gate", count, BERTH_LOOP_SERIAL);
    berth_expr weight_row = x_addi(c, gate_row, first);
    berth_buf acc = berth_lower__register(c, "acc", m->dtype);
    berth_lower__set(c, acc, num(c, m->dtype, 0));
    berth_expr k = berth_lower__loop(c, "k", m->hidden, BERTH_LOOP_SERIAL);
    berth_expr w = in_at(c, m->op, 2, (berth_expr[]){ix(c, m->d), weight_row, k});
    berth_expr sum = x_fma(c, w, held(c, m, state, k), berth_lower__get(c, acc));
    berth_lower__set(c, acc, sum);
    berth_lower__end(c);
    sum = berth_lower__get(c, acc);
    if (has_in(m->op, 3))
        sum = x_add(c, sum, parameter(c, m, 3, x_addi(c, weight_row, m->gates * m->hidden)));
    hold(c, m, to, x_addi(c, gate_row, at), sum);
    berth_lower__end_loops(c, 2);
}

// ---- products of integers ----------------------------------------------------------------------

// The smallest or largest of 0 and the row's state.
static berth_buf extreme(berth_lower *c, cell *m, const char *name,
                         berth_expr (*combine)(berth_lower *, berth_expr, berth_expr)) {
    berth_buf acc = berth_lower__register(c, name, m->dtype);
    berth_lower__set(c, acc, num(c, m->dtype, 0));
    berth_expr k = berth_lower__loop(c, "k", m->hidden, BERTH_LOOP_SERIAL);
    berth_lower__set(c, acc, combine(c, berth_lower__get(c, acc), held(c, m, m->h, k)));
    berth_lower__end(c);
    return acc;
}

// Each row's state as dynamic_quantize_linear has it, by its own range.
static void quantise_states(berth_lower *c, cell *m) {
    berth_dtype t = m->dtype, stored = c->fn->bufs.data[m->quantised].dtype;
    berth_expr zero = num(c, t, 0), most = num(c, t, 255);
    m->row = berth_lower__loop(c, "row", m->rows, BERTH_LOOP_SERIAL);
    berth_buf low = extreme(c, m, "low", x_min), high = extreme(c, m, "high", x_max);
    berth_expr width =
        x_div(c, x_sub(c, berth_lower__get(c, high), berth_lower__get(c, low)), most);
    berth_buf scale = berth_lower__register(c, "own_scale", t);
    berth_buf shift = berth_lower__register(c, "own_shift", t);
    berth_lower__set(c, scale, x_select(c, x_eq(c, width, zero), num(c, t, 1), width));
    berth_expr offset = x_div(c, berth_lower__get(c, low), berth_lower__get(c, scale));
    offset = x_unary(c, BERTH_UNARY_ROUND, x_sub(c, zero, offset));
    berth_lower__set(c, shift, x_max(c, zero, x_min(c, most, offset)));
    berth_lower__put(c, m->scale, &m->row, berth_lower__get(c, scale));
    berth_lower__put(c, m->shift, &m->row, x_cast(c, m->sum, berth_lower__get(c, shift)));
    berth_expr k = berth_lower__loop(c, "k", m->hidden, BERTH_LOOP_SERIAL);
    berth_expr value = x_div(c, held(c, m, m->h, k), berth_lower__get(c, scale));
    value = x_add(c, x_unary(c, BERTH_UNARY_ROUND, value), berth_lower__get(c, shift));
    hold(c, m, m->quantised, k, x_cast(c, stored, x_max(c, zero, x_min(c, most, value))));
    berth_lower__end(c);
    if (has_in(m->op, 8)) {
        berth_buf terms = berth_lower__register(c, "sum", m->sum);
        berth_lower__set(c, terms, num(c, m->sum, 0));
        k = berth_lower__loop(c, "k", m->hidden, BERTH_LOOP_SERIAL);
        value = x_cast(c, m->sum, held(c, m, m->quantised, k));
        berth_lower__set(c, terms, x_add(c, berth_lower__get(c, terms), value));
        berth_lower__end(c);
        berth_expr shifts = x_mul(c, num(c, m->sum, (double)m->hidden),
                                  berth_tfn_load(c->fn, m->shift, &m->row, 1));
        berth_lower__put(c, m->terms, &m->row, x_sub(c, berth_lower__get(c, terms), shifts));
    }
    berth_lower__end(c);
}

// As state_products, of integers: (q - shift) (r - zero) = q r - shift sum(r) - zero sum(q - shift).
static void integer_products(berth_lower *c, cell *m) {
    quantise_states(c, m);
    m->row = berth_lower__loop(c, "row", m->rows, BERTH_LOOP_SERIAL);
    berth_expr gate_row = berth_lower__loop(c, "gate", m->gates * m->hidden, BERTH_LOOP_SERIAL);
    berth_buf acc = berth_lower__register(c, "acc", m->sum);
    berth_lower__set(c, acc, num(c, m->sum, 0));
    berth_expr k = berth_lower__loop(c, "k", m->hidden, BERTH_LOOP_SERIAL);
    berth_expr w = x_cast(c, m->sum, in_at(c, m->op, 2, (berth_expr[]){ix(c, m->d), gate_row, k}));
    berth_expr state = x_cast(c, m->sum, held(c, m, m->quantised, k));
    berth_lower__set(c, acc, x_fma(c, state, w, berth_lower__get(c, acc)));
    berth_lower__end(c);
    berth_expr shift = berth_tfn_load(c->fn, m->shift, &m->row, 1);
    berth_expr off = x_mul(c, shift, x_cast(c, m->sum, parameter(c, m, 3, gate_row)));
    if (has_in(m->op, 8)) {
        berth_expr terms = berth_tfn_load(c->fn, m->terms, &m->row, 1);
        berth_expr zero = x_cast(c, m->sum, parameter(c, m, 8, gate_row));
        off = x_add(c, off, x_mul(c, terms, zero));
    }
    berth_expr sum = x_cast(c, m->dtype, x_sub(c, berth_lower__get(c, acc), off));
    berth_expr scale =
        x_mul(c, berth_tfn_load(c->fn, m->scale, &m->row, 1), parameter(c, m, 1, gate_row));
    hold(c, m, m->rh, gate_row, x_mul(c, sum, scale));
    berth_lower__end_loops(c, 2);
}

// ---- one step -----------------------------------------------------------------------------------

// Opens loops over the rows of the group and over the elements of their state. Sets row, n, t and
// running.
static berth_expr open_states(berth_lower *c, cell *m, berth_expr group, berth_expr s,
                              bool reverse) {
    m->row = berth_lower__loop(c, "row", m->rows, BERTH_LOOP_SERIAL);
    m->n = x_add(c, x_muli(c, group, m->rows), m->row);
    m->t = s;
    m->running = 0;
    if (s) {
        berth_expr length = ix(c, m->steps);
        if (has_in(m->op, 4)) {  // shorter sequences; the rest of the output is zero
            berth_expr given = berth_tfn_to_index(c->fn, in_at(c, m->op, 4, &m->n));
            length = x_max(c, ix(c, 0), x_min(c, given, length));
            m->running = x_lt(c, s, length);
        }
        if (reverse) m->t = x_sub(c, x_addi(c, length, -1), s);
        if (reverse && m->running) m->t = x_max(c, ix(c, 0), m->t);
    }
    return berth_lower__loop(c, "i", m->hidden, BERTH_LOOP_SERIAL);
}

// A state that has ended keeps its value.
static void set_state(berth_lower *c, const cell *m, berth_buf buf, berth_expr i,
                      berth_expr value) {
    hold(c, m, buf, i, x_select(c, m->running, value, held(c, m, buf, i)));
}

typedef struct step {
    berth_expr group;
    berth_expr s;
    bool reverse;
} step;

static berth_expr open_step(berth_lower *c, cell *m, const step *at) {
    return open_states(c, m, at->group, at->s, at->reverse);
}

static void rnn_step(berth_lower *c, cell *m, const step *at) {
    state_products(c, m, 0, m->hidden, m->h, m->rh, 0);
    berth_expr i = open_step(c, m, at);
    berth_expr value = activate(c, &m->f[m->d], clipped(c, m, gate(c, m, 0, i)));
    set_state(c, m, m->h, i, value);
    berth_lower__end_loops(c, 2);
}

// The first row of R's block that `row` lies in: products go block by block from there, where a block that
// begins in the middle would be read element by element.
static int64_t block_start(berth_lower *c, const cell *m, int64_t row) {
    const berth_type *r = in_type(c, m->op, 2);
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(c->module, r->layout), r->rank, &layout);
    int64_t block = status ? 1 : layout.total_block[1];
    berth_status_ignore(status);
    return row - row % block;
}

// Gates z, r, h. Without linear_before_reset the product of gate h waits for the reset state, which
// `next` holds; sums of gate r, which is done then, may be overwritten.
static void gru_step(berth_lower *c, cell *m, const step *at) {
    const activation *f = &m->f[m->d * 2];
    int64_t hidden = m->hidden;
    bool late = !m->linear_before_reset;
    state_products(c, m, 0, (late ? 2 : 3) * hidden, m->h, m->rh, 0);
    if (late) {
        berth_expr i = open_step(c, m, at);
        berth_expr reset = activate(c, &f[0], clipped(c, m, gate(c, m, 1, i)));
        hold(c, m, m->next, i, x_mul(c, reset, held(c, m, m->h, i)));
        berth_lower__end_loops(c, 2);
        int64_t first = block_start(c, m, 2 * hidden);
        if (first < hidden) first = 2 * hidden;
        state_products(c, m, first, 3 * hidden - first, m->next, m->rh, first);
    }
    berth_expr i = open_step(c, m, at);
    berth_expr sum = gate(c, m, 2, i);
    if (!late) {
        berth_expr reset = activate(c, &f[0], clipped(c, m, gate(c, m, 1, i)));
        berth_expr wx_at[3];
        input_order(m, m->t, m->n, wx_at);
        wx_at[2] = x_addi(c, i, 2 * hidden);
        sum = x_add(c, berth_tfn_load(c->fn, m->wx, wx_at, 3),
                    x_mul(c, reset, held(c, m, m->rh, wx_at[2])));
    }
    berth_expr candidate = activate(c, &f[1], clipped(c, m, sum));
    berth_expr z = activate(c, &f[0], clipped(c, m, gate(c, m, 0, i)));
    berth_expr keep = x_mul(c, z, held(c, m, m->h, i));
    berth_expr fresh = x_mul(c, x_sub(c, num(c, m->dtype, 1), z), candidate);
    set_state(c, m, m->h, i, x_add(c, fresh, keep));
    berth_lower__end_loops(c, 2);
}

static berth_expr peephole(berth_lower *c, const cell *m, int number, berth_expr i,
                           berth_expr sum) {
    if (!has_in(m->op, 7)) return sum;
    berth_expr weight = parameter(c, m, 7, x_addi(c, i, number * m->hidden));
    return x_add(c, sum, x_mul(c, weight, held(c, m, m->c, i)));
}

// Gates i, o, f, c; peepholes i, o, f.
static void lstm_step(berth_lower *c, cell *m, const step *at) {
    const activation *f = &m->f[m->d * 3];
    if (m->integer)
        integer_products(c, m);
    else
        state_products(c, m, 0, 4 * m->hidden, m->h, m->rh, 0);
    berth_expr i = open_step(c, m, at);
    berth_expr in = activate(c, &f[0], clipped(c, m, peephole(c, m, 0, i, gate(c, m, 0, i))));
    berth_expr forget =
        m->input_forget ? x_sub(c, num(c, m->dtype, 1), in)
                        : activate(c, &f[0], clipped(c, m, peephole(c, m, 2, i, gate(c, m, 2, i))));
    berth_expr fresh = x_mul(c, in, activate(c, &f[1], clipped(c, m, gate(c, m, 3, i))));
    set_state(c, m, m->c, i, x_add(c, x_mul(c, forget, held(c, m, m->c, i)), fresh));
    berth_expr out = activate(c, &f[0], clipped(c, m, peephole(c, m, 1, i, gate(c, m, 1, i))));
    set_state(c, m, m->h, i, x_mul(c, out, activate(c, &f[2], held(c, m, m->c, i))));
    berth_lower__end_loops(c, 2);
}

// ---- one direction ------------------------------------------------------------------------------

static void state_at(berth_lower *c, const cell *m, berth_expr i, berth_expr *at) {
    at[0] = m->batch_major ? m->n : ix(c, m->d);
    at[1] = m->batch_major ? ix(c, m->d) : m->n;
    at[2] = i;
}

static void start_states(berth_lower *c, cell *m, berth_expr group) {
    berth_expr at[3];
    berth_expr i = open_states(c, m, group, 0, false);
    state_at(c, m, i, at);
    hold(c, m, m->h, i, has_in(m->op, 5) ? in_at(c, m->op, 5, at) : num(c, m->dtype, 0));
    if (m->gates == 4)
        hold(c, m, m->c, i, has_in(m->op, 6) ? in_at(c, m->op, 6, at) : num(c, m->dtype, 0));
    berth_lower__end_loops(c, 2);
}

static void store_output(berth_lower *c, cell *m, const step *now) {
    if (m->op->output_count == 0 || !berth_lower__wanted(c, 0)) return;
    berth_expr i = open_step(c, m, now);
    berth_expr t = x_select(c, m->running, m->t, now->s);
    berth_expr at[4] = {m->batch_major ? m->n : t, m->batch_major ? t : ix(c, m->d),
                        m->batch_major ? ix(c, m->d) : m->n, i};
    berth_expr value = x_select(c, m->running, held(c, m, m->h, i), num(c, m->dtype, 0));
    berth_lower__store(c, m->op, 0, at, value);
    berth_lower__end_loops(c, 2);
}

static void store_states(berth_lower *c, cell *m, berth_expr group) {
    berth_expr at[3];
    berth_expr i = open_states(c, m, group, 0, false);
    state_at(c, m, i, at);
    if (m->op->output_count > 1) berth_lower__store(c, m->op, 1, at, held(c, m, m->h, i));
    if (m->op->output_count > 2) berth_lower__store(c, m->op, 2, at, held(c, m, m->c, i));
    berth_lower__end_loops(c, 2);
}

// Integers of a byte where the weights lie in the blocks of an instruction for these.
static void quantised_buffers(berth_lower *c, cell *m) {
    int64_t state[2] = {m->rows, m->hidden};
    bool bytes = m->sum == BERTH_DTYPE_I32 && in_type(c, m->op, 2)->layout;
    m->quantised = berth_lower__private(c, "quantised", bytes ? BERTH_DTYPE_U8 : m->sum, 2, state);
    m->scale = berth_lower__private(c, "scale", m->dtype, 1, state);
    m->shift = berth_lower__private(c, "shift", m->sum, 1, state);
    if (has_in(m->op, 8)) m->terms = berth_lower__private(c, "terms", m->sum, 1, state);
}

static void build_direction(berth_lower *c, cell *m, bool reverse) {
    int64_t sums[2] = {m->rows, m->gates * m->hidden};
    int64_t state[2] = {m->rows, m->hidden};
    if (!m->integer) {
        input_products(c, m);
        berth_lower__next_nest(c);
    }
    berth_expr group = berth_lower__loop(c, "group", m->batch / m->rows, BERTH_LOOP_PARALLEL);
    m->h = berth_lower__private(c, "h", m->dtype, 2, state);
    if (m->gates == 4) m->c = berth_lower__private(c, "c", m->dtype, 2, state);
    m->rh = berth_lower__private(c, "rh", m->dtype, 2, sums);
    if (m->integer) quantised_buffers(c, m);
    if (m->op->kind == BERTH_OP_GRU && !m->linear_before_reset)
        m->next = berth_lower__private(c, "next", m->dtype, 2, state);
    start_states(c, m, group);
    berth_expr s = berth_lower__loop(c, "s", m->steps, BERTH_LOOP_SERIAL);
    step at = {group, s, reverse};
    if (m->op->kind == BERTH_OP_RNN) rnn_step(c, m, &at);
    if (m->op->kind == BERTH_OP_GRU) gru_step(c, m, &at);
    if (m->gates == 4) lstm_step(c, m, &at);
    store_output(c, m, &at);
    berth_lower__end(c);
    store_states(c, m, group);
    berth_lower__end(c);
}

void berth_lower__recurrent(berth_lower *c, const berth_op *op) {
    cell m;
    if (!describe(c, op, &m)) return;
    bool reverse = strcmp(attr_str(c, op, "direction", "forward"), "reverse") == 0;
    build_direction(c, &m, reverse);
    if (m.directions == 1) return;
    berth_lower__next_nest(c);
    m.d = 1;
    build_direction(c, &m, true);
}
