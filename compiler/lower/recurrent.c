// rnn, gru, lstm by the equations of the operators' texts: one kernel per direction, parallel over
// the batch, the steps in order inside, states and gate sums in private storage.
#include "compiler/lower/families.h"

#include <string.h>
#include <strings.h>

enum { max_functions = 3 };

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
    berth_dtype t;
    int gates, functions, directions;
    int64_t steps, batch, width, hidden;
    bool batch_major, linear_before_reset, input_forget;
    double clip;
    activation f[2 * max_functions];
    int d;             // direction being built
    berth_expr n;      // batch index
    berth_buf h, c;    // states
    berth_buf wx, rh;  // gate sums from the input and from the state
    berth_buf next;
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
    *m = (cell){.op = op, .t = in_dtype(c, op, 0)};
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
    return read_activations(c, m);
}

// ---- elements -----------------------------------------------------------------------------------

static berth_expr held(berth_lower *c, berth_buf buf, berth_expr i) {
    return berth_tfn_load(c->fn, buf, &i, 1);
}

static berth_expr parameter(berth_lower *c, const cell *m, uint32_t operand, berth_expr row) {
    berth_expr at[2] = {ix(c, m->d), row};
    return in_at(c, m->op, operand, at);
}

static berth_expr clipped(berth_lower *c, const cell *m, berth_expr x) {
    if (!(m->clip > 0)) return x;
    return x_max(c, num(c, m->t, -m->clip), x_min(c, num(c, m->t, m->clip), x));
}

static void state_at(berth_lower *c, const cell *m, berth_expr i, berth_expr *at) {
    at[0] = m->batch_major ? m->n : ix(c, m->d);
    at[1] = m->batch_major ? ix(c, m->d) : m->n;
    at[2] = i;
}

static berth_expr loop_hidden(berth_lower *c, const cell *m) {
    return berth_lower__loop(c, "i", m->hidden, BERTH_LOOP_SERIAL);
}

// Row of operand `weights` times the vector that `vector` holds (or of x at time t), in a register.
static berth_buf row_product(berth_lower *c, const cell *m, uint32_t weights, berth_expr row,
                             berth_buf vector, berth_expr t) {
    bool of_input = weights == 1;
    berth_buf acc = berth_lower__register(c, "acc", m->t);
    berth_lower__set(c, acc, num(c, m->t, 0));
    berth_expr k = berth_lower__loop(c, "k", of_input ? m->width : m->hidden, BERTH_LOOP_SERIAL);
    berth_expr w_at[3] = {ix(c, m->d), row, k};
    berth_expr x_at[3] = {m->batch_major ? m->n : t, m->batch_major ? t : m->n, k};
    berth_expr x = of_input ? in_at(c, m->op, 0, x_at) : held(c, vector, k);
    berth_lower__set(c, acc, x_fma(c, in_at(c, m->op, weights, w_at), x, berth_lower__get(c, acc)));
    berth_lower__end(c);
    return acc;
}

static void gate_sums(berth_lower *c, const cell *m, berth_expr t) {
    int64_t rows = m->gates * m->hidden;
    berth_expr row = berth_lower__loop(c, "row", rows, BERTH_LOOP_SERIAL);
    berth_expr wx = berth_lower__get(c, row_product(c, m, 1, row, 0, t));
    if (has_in(m->op, 3)) wx = x_add(c, wx, parameter(c, m, 3, row));
    berth_lower__put(c, m->wx, &row, wx);
    berth_expr rh = berth_lower__get(c, row_product(c, m, 2, row, m->h, t));
    if (has_in(m->op, 3)) rh = x_add(c, rh, parameter(c, m, 3, x_addi(c, row, rows)));
    berth_lower__put(c, m->rh, &row, rh);
    berth_lower__end(c);
}

static berth_expr gate(berth_lower *c, const cell *m, int number, berth_expr i) {
    berth_expr row = x_addi(c, i, number * m->hidden);
    return x_add(c, held(c, m->wx, row), held(c, m->rh, row));
}

// ---- one step -----------------------------------------------------------------------------------

static void rnn_step(berth_lower *c, const cell *m) {
    berth_expr i = loop_hidden(c, m);
    berth_lower__put(c, m->h, &i, activate(c, &m->f[m->d], clipped(c, m, gate(c, m, 0, i))));
    berth_lower__end(c);
}

// Gates z, r, h. The new value waits in `wx` of gate h until all of them are known.
static void gru_step(berth_lower *c, const cell *m) {
    const activation *f = &m->f[m->d * 2];
    int64_t n = m->hidden;
    berth_expr i = loop_hidden(c, m);
    berth_expr reset = activate(c, &f[0], clipped(c, m, gate(c, m, 1, i)));
    berth_expr base =
        m->linear_before_reset ? held(c, m->rh, x_addi(c, i, 2 * n)) : held(c, m->h, i);
    berth_lower__put(c, m->next, &i, x_mul(c, reset, base));
    berth_lower__end(c);
    i = loop_hidden(c, m);
    berth_expr row = x_addi(c, i, 2 * n);
    berth_expr state = held(c, m->next, i);
    if (!m->linear_before_reset) {
        state = berth_lower__get(c, row_product(c, m, 2, row, m->next, 0));
        if (has_in(m->op, 3)) state = x_add(c, state, parameter(c, m, 3, x_addi(c, row, 3 * n)));
    }
    berth_expr candidate = activate(c, &f[1], clipped(c, m, x_add(c, held(c, m->wx, row), state)));
    berth_lower__put(c, m->wx, &row, candidate);
    berth_lower__end(c);
    i = loop_hidden(c, m);
    berth_expr z = activate(c, &f[0], clipped(c, m, gate(c, m, 0, i)));
    berth_expr keep = x_mul(c, z, held(c, m->h, i));
    berth_expr fresh = x_mul(c, x_sub(c, num(c, m->t, 1), z), held(c, m->wx, x_addi(c, i, 2 * n)));
    berth_lower__put(c, m->h, &i, x_add(c, fresh, keep));
    berth_lower__end(c);
}

static berth_expr peephole(berth_lower *c, const cell *m, int number, berth_expr i,
                           berth_expr sum) {
    if (!has_in(m->op, 7)) return sum;
    berth_expr weight = parameter(c, m, 7, x_addi(c, i, number * m->hidden));
    return x_add(c, sum, x_mul(c, weight, held(c, m->c, i)));
}

// Gates i, o, f, c; peepholes i, o, f.
static void lstm_step(berth_lower *c, const cell *m) {
    const activation *f = &m->f[m->d * 3];
    berth_expr i = loop_hidden(c, m);
    berth_buf in = berth_lower__register(c, "in", m->t);
    berth_lower__set(c, in,
                     activate(c, &f[0], clipped(c, m, peephole(c, m, 0, i, gate(c, m, 0, i)))));
    berth_expr forget =
        m->input_forget ? x_sub(c, num(c, m->t, 1), berth_lower__get(c, in))
                        : activate(c, &f[0], clipped(c, m, peephole(c, m, 2, i, gate(c, m, 2, i))));
    berth_expr fresh =
        x_mul(c, berth_lower__get(c, in), activate(c, &f[1], clipped(c, m, gate(c, m, 3, i))));
    berth_lower__put(c, m->c, &i, x_add(c, x_mul(c, forget, held(c, m->c, i)), fresh));
    berth_expr out = activate(c, &f[0], clipped(c, m, peephole(c, m, 1, i, gate(c, m, 1, i))));
    berth_lower__put(c, m->h, &i, x_mul(c, out, activate(c, &f[2], held(c, m->c, i))));
    berth_lower__end(c);
}

// ---- one direction ------------------------------------------------------------------------------

static void start_states(berth_lower *c, const cell *m) {
    berth_expr at[3];
    berth_expr i = loop_hidden(c, m);
    state_at(c, m, i, at);
    berth_lower__put(c, m->h, &i, has_in(m->op, 5) ? in_at(c, m->op, 5, at) : num(c, m->t, 0));
    if (m->op->kind == BERTH_OP_LSTM)
        berth_lower__put(c, m->c, &i, has_in(m->op, 6) ? in_at(c, m->op, 6, at) : num(c, m->t, 0));
    berth_lower__end(c);
}

static void store_output(berth_lower *c, const cell *m, berth_expr t, bool zeros) {
    if (m->op->output_count == 0 || !berth_lower__wanted(c, 0)) return;
    berth_expr i = loop_hidden(c, m);
    berth_expr at[4] = {m->batch_major ? m->n : t, m->batch_major ? t : ix(c, m->d),
                        m->batch_major ? ix(c, m->d) : m->n, i};
    berth_lower__store(c, m->op, 0, at, zeros ? num(c, m->t, 0) : held(c, m->h, i));
    berth_lower__end(c);
}

static void store_states(berth_lower *c, const cell *m) {
    berth_expr at[3];
    berth_expr i = loop_hidden(c, m);
    state_at(c, m, i, at);
    if (m->op->output_count > 1) berth_lower__store(c, m->op, 1, at, held(c, m->h, i));
    if (m->op->output_count > 2) berth_lower__store(c, m->op, 2, at, held(c, m->c, i));
    berth_lower__end(c);
}

static void build_direction(berth_lower *c, cell *m, bool reverse) {
    int64_t rows = m->gates * m->hidden;
    m->n = berth_lower__loop(c, "n", m->batch, BERTH_LOOP_PARALLEL);
    m->h = berth_lower__private(c, "h", m->t, 1, &m->hidden);
    if (m->op->kind == BERTH_OP_LSTM) m->c = berth_lower__private(c, "c", m->t, 1, &m->hidden);
    m->wx = berth_lower__private(c, "wx", m->t, 1, &rows);
    m->rh = berth_lower__private(c, "rh", m->t, 1, &rows);
    if (m->op->kind == BERTH_OP_GRU) m->next = berth_lower__private(c, "next", m->t, 1, &m->hidden);
    start_states(c, m);
    berth_expr length = ix(c, m->steps);
    if (has_in(m->op, 4)) {  // shorter sequences; the rest of the output is zero
        berth_expr given = berth_tfn_to_index(c->fn, in_at(c, m->op, 4, &m->n));
        length = x_max(c, ix(c, 0), x_min(c, given, length));
    }
    berth_expr s = berth_lower__loop(c, "s", m->steps, BERTH_LOOP_SERIAL);
    berth_expr running = has_in(m->op, 4) ? x_lt(c, s, length) : 0;
    berth_expr last = x_addi(c, length, -1);
    berth_expr t = reverse ? x_max(c, ix(c, 0), x_sub(c, last, s)) : s;
    berth_lower__if(c, running);
    gate_sums(c, m, t);
    if (m->op->kind == BERTH_OP_RNN) rnn_step(c, m);
    if (m->op->kind == BERTH_OP_GRU) gru_step(c, m);
    if (m->op->kind == BERTH_OP_LSTM) lstm_step(c, m);
    store_output(c, m, t, false);
    berth_lower__end(c);
    if (running) {
        berth_lower__if(c, x_unary(c, BERTH_UNARY_NOT, running));
        store_output(c, m, s, true);
        berth_lower__end(c);
    }
    berth_lower__end(c);
    store_states(c, m);
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
