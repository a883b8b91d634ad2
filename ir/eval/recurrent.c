// rnn, gru, lstm: the equations of the ONNX operator texts.
#include <math.h>
#include <string.h>
#include <strings.h>

#include "ir/eval/internal.h"

#define MAX_GATES 4
#define MAX_ACTIVATIONS 3

typedef enum activation_kind {
    ACT_RELU,
    ACT_TANH,
    ACT_SIGMOID,
    ACT_AFFINE,
    ACT_LEAKY_RELU,
    ACT_THRESHOLDED_RELU,
    ACT_SCALED_TANH,
    ACT_HARD_SIGMOID,
    ACT_ELU,
    ACT_SOFTSIGN,
    ACT_SOFTPLUS,
    ACT_COUNT
} activation_kind;

// Names, whether alpha and beta are consumed from the attribute lists, and their defaults.
static const struct {
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} activation_rows[ACT_COUNT] = {
    [ACT_RELU] = {"Relu", false, false, 0, 0},
    [ACT_TANH] = {"Tanh", false, false, 0, 0},
    [ACT_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [ACT_AFFINE] = {"Affine", true, true, 1, 0},
    [ACT_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01, 0},
    [ACT_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
    [ACT_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [ACT_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2, 0.5},
    [ACT_ELU] = {"Elu", true, false, 1, 0},
    [ACT_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [ACT_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

typedef struct activation {
    activation_kind kind;
    double alpha, beta;
} activation;

static double activate(const activation *f, double x) {
    switch (f->kind) {
    case ACT_RELU: return x > 0 ? x : 0;
    case ACT_TANH: return tanh(x);
    case ACT_SIGMOID: return 1 / (1 + exp(-x));
    case ACT_AFFINE: return f->alpha * x + f->beta;
    case ACT_LEAKY_RELU: return x < 0 ? f->alpha * x : x;
    case ACT_THRESHOLDED_RELU: return x >= f->alpha ? x : 0;
    case ACT_SCALED_TANH: return f->alpha * tanh(f->beta * x);
    case ACT_HARD_SIGMOID: return fmin(1, fmax(0, f->alpha * x + f->beta));
    case ACT_ELU: return x < 0 ? f->alpha * expm1(x) : x;
    case ACT_SOFTSIGN: return x / (1 + fabs(x));
    case ACT_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    default: return NAN;
    }
}

typedef struct recurrent {
    berth_op_kind kind;
    int gates, functions;
    int64_t steps, batch, width, hidden, directions;
    bool reverse_first, batch_major, linear_before_reset, input_forget;
    double clip;                                // 0 = none
    activation f[2 * MAX_ACTIVATIONS];          // per direction
    const double *x, *w, *r, *b, *h0, *c0, *p;  // b, h0, c0, p may be NULL
    const berth_tensor *lengths;                // may be NULL
    double *sums[2];                            // [gates * hidden] from the input, from the state
    double *reset;                              // [hidden]
    const double *scale, *row_sums, *zero;      // lstm_integer: per row of R; zero may be NULL
    double *quantised;                          // [hidden]
} recurrent;

static berth_status read_activations(const berth_eval_context *ctx, recurrent *m) {
    static const activation_kind usual[MAX_ACTIVATIONS] = {ACT_SIGMOID, ACT_TANH, ACT_TANH};
    uint32_t alpha_count = 0, beta_count = 0, next_alpha = 0, next_beta = 0;
    const double *alphas = berth_eval__floats(ctx, "activation_alpha", &alpha_count);
    const double *betas = berth_eval__floats(ctx, "activation_beta", &beta_count);
    for (int i = 0; i < m->functions * (int)m->directions; ++i) {
        const char *name = berth_eval__string_at(ctx, "activations", (uint32_t)i);
        int kind = m->functions == 1 ? ACT_TANH : (int)usual[i % m->functions];
        if (name) {
            kind = 0;
            while (kind < ACT_COUNT && strcasecmp(name, activation_rows[kind].name) != 0) ++kind;
            if (kind == ACT_COUNT)
                return berth_status_make(BERTH_UNSUPPORTED, "activation %s is not known", name);
        }
        m->f[i] = (activation){.kind = (activation_kind)kind,
                               .alpha = activation_rows[kind].alpha,
                               .beta = activation_rows[kind].beta};
        if (activation_rows[kind].has_alpha && next_alpha < alpha_count)
            m->f[i].alpha = alphas[next_alpha++];
        if (activation_rows[kind].has_beta && next_beta < beta_count)
            m->f[i].beta = betas[next_beta++];
    }
    return BERTH_OK;
}

static berth_status load_optional(berth_eval_context *ctx, uint32_t index, const char *what,
                                  int64_t count, const double **out) {
    const berth_tensor *given = berth_eval__optional(ctx, index);
    *out = NULL;
    if (!given) return BERTH_OK;
    BERTH_TRY(berth_eval__need_count(given, what, count));
    *out = berth_eval__load_f64(ctx, given);
    return BERTH_OK;
}

// Weights and biases, which lstm_integer has in part in its products.
static berth_status read_weights(berth_eval_context *ctx, recurrent *m) {
    const berth_tensor *x = &ctx->inputs[0], *w = &ctx->inputs[1], *r = &ctx->inputs[2];
    int64_t rows = m->gates * m->hidden;
    bool integer = m->kind == BERTH_OP_LSTM_INTEGER;
    bool fits = integer ? m->width == m->directions * rows
                        : w->rank == 3 && w->dims[0] == m->directions && w->dims[1] == rows &&
                              w->dims[2] == m->width;
    if (integer && (!berth_eval__optional(ctx, 1) || !berth_eval__optional(ctx, 3))) fits = false;
    if (!fits || r->dims[0] != m->directions || r->dims[1] != rows)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "W and R do not fit the input, the gates and the directions");
    m->x = berth_eval__load_f64(ctx, x);
    m->r = berth_eval__load_f64(ctx, r);
    if (!integer) {
        m->w = berth_eval__load_f64(ctx, w);
        return load_optional(ctx, 3, "B", m->directions * 2 * rows, &m->b);
    }
    m->quantised = berth_eval__doubles(ctx, m->hidden);
    BERTH_TRY(load_optional(ctx, 1, "the scales", m->directions * rows, &m->scale));
    BERTH_TRY(load_optional(ctx, 3, "the sums of R's rows", m->directions * rows, &m->row_sums));
    return load_optional(ctx, 8, "the zero points", m->directions * rows, &m->zero);
}

static berth_status read_shapes(berth_eval_context *ctx, recurrent *m) {
    const berth_tensor *x = &ctx->inputs[0], *r = &ctx->inputs[2];
    const char *direction = berth_eval__string(ctx, "direction", "forward");
    bool integer = m->kind == BERTH_OP_LSTM_INTEGER;
    for (uint32_t i = 0; i < 3; ++i) {
        if (integer && i == 1) continue;
        BERTH_TRY(berth_eval__need_rank(ctx, i, 3, 3));
        if (!integer || i == 0) BERTH_TRY(berth_eval__need_float(ctx, i));
    }
    m->batch_major = berth_eval__int(ctx, "layout", 0) != 0;
    m->steps = x->dims[m->batch_major];
    m->batch = x->dims[!m->batch_major];
    m->width = x->dims[2];
    m->hidden = r->dims[2];
    m->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    m->reverse_first = strcmp(direction, "reverse") == 0;
    int64_t rows = m->gates * m->hidden;
    BERTH_TRY(read_weights(ctx, m));
    int64_t states = m->directions * m->batch * m->hidden;
    BERTH_TRY(load_optional(ctx, 5, "initial_h", states, &m->h0));
    BERTH_TRY(load_optional(ctx, 6, "initial_c", states, &m->c0));
    BERTH_TRY(load_optional(ctx, 7, "P", m->directions * 3 * m->hidden, &m->p));
    m->lengths = berth_eval__optional(ctx, 4);
    if (m->lengths) BERTH_TRY(berth_eval__need_count(m->lengths, "sequence_lens", m->batch));
    for (int64_t n = 0; m->lengths && n < m->batch; ++n) {
        int64_t length = berth_tensor_get_i64(m->lengths, n);
        if (length < 0 || length > m->steps)
            return berth_status_make(BERTH_OUT_OF_RANGE, "sequence_lens has %lld of %lld",
                                     (long long)length, (long long)m->steps);
    }
    m->sums[0] = berth_eval__doubles(ctx, rows);
    m->sums[1] = berth_eval__doubles(ctx, rows);
    m->reset = berth_eval__doubles(ctx, m->hidden);
    return BERTH_OK;
}

// row [columns] of `matrix` times `vector`.
static double row_product(const double *matrix, int64_t row, int64_t columns,
                          const double *vector) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += matrix[row * columns + i] * vector[i];
    return sum;
}

static double clipped(const recurrent *m, double x) {
    return m->clip > 0 ? fmax(-m->clip, fmin(m->clip, x)) : x;
}

// sums[0] = the products given, sums[1] = R h, where h is quantised in float by its own range.
static void integer_sums(const recurrent *m, int64_t d, const double *x, const double *h) {
    int64_t rows = m->gates * m->hidden;
    float low = 0, high = 0;
    for (int64_t k = 0; k < m->hidden; ++k) {
        low = fminf(low, (float)h[k]);
        high = fmaxf(high, (float)h[k]);
    }
    float scale = (high - low) / 255;
    if (scale == 0) scale = 1;
    double shift = fmax(0, fmin(255, (double)nearbyintf(0 - low / scale)));
    double terms = 0;
    for (int64_t k = 0; k < m->hidden; ++k) {
        double level = (double)nearbyintf((float)h[k] / scale) + shift;
        m->quantised[k] = fmax(0, fmin(255, level));
        terms += m->quantised[k] - shift;
    }
    for (int64_t i = 0; i < rows; ++i) {
        int64_t row = d * rows + i;
        double sum = row_product(m->r, row, m->hidden, m->quantised) - shift * m->row_sums[row];
        if (m->zero) sum -= m->zero[row] * terms;
        m->sums[0][i] = x[row];
        m->sums[1][i] = sum * (double)(scale * (float)m->scale[row]);
    }
}

// sums[0] = W x + Wb, sums[1] = R h + Rb for all gates of direction d.
static void gate_sums(const recurrent *m, int64_t d, const double *x, const double *h) {
    int64_t rows = m->gates * m->hidden;
    for (int64_t i = 0; i < rows; ++i) {
        const double *b = m->b ? m->b + d * 2 * rows : NULL;
        m->sums[0][i] = row_product(m->w, d * rows + i, m->width, x) + (b ? b[i] : 0);
        m->sums[1][i] = row_product(m->r, d * rows + i, m->hidden, h) + (b ? b[rows + i] : 0);
    }
}

static void rnn_step(const recurrent *m, const activation *f, double *h) {
    for (int64_t i = 0; i < m->hidden; ++i)
        h[i] = activate(f, clipped(m, m->sums[0][i] + m->sums[1][i]));
}

// Gates z, r, h.
static void gru_step(const recurrent *m, int64_t d, const activation *f, double *h) {
    int64_t n = m->hidden, rows = 3 * n;
    const double *wx = m->sums[0], *rh = m->sums[1];
    const double *state_bias = m->b ? m->b + d * 2 * rows + rows + 2 * n : NULL;
    for (int64_t i = 0; i < n; ++i)
        m->reset[i] = activate(&f[0], clipped(m, wx[n + i] + rh[n + i])) *
                      (m->linear_before_reset ? rh[2 * n + i] : h[i]);
    double *next = m->sums[1] + 2 * n;  // its place is free once reset is known
    for (int64_t i = 0; i < n; ++i) {
        double state = m->reset[i];
        if (!m->linear_before_reset)
            state = row_product(m->r, d * rows + 2 * n + i, n, m->reset) +
                    (state_bias ? state_bias[i] : 0);
        next[i] = activate(&f[1], clipped(m, wx[2 * n + i] + state));
    }
    for (int64_t i = 0; i < n; ++i) {
        double z = activate(&f[0], clipped(m, wx[i] + rh[i]));
        h[i] = (1 - z) * next[i] + z * h[i];
    }
}

// Gates i, o, f, c; peepholes i, o, f.
static void lstm_step(const recurrent *m, int64_t d, const activation *f, double *h, double *c) {
    int64_t n = m->hidden;
    const double *p = m->p ? m->p + d * 3 * n : NULL;
    for (int64_t i = 0; i < n; ++i) {
        double sum[MAX_GATES];
        for (int g = 0; g < MAX_GATES; ++g) sum[g] = m->sums[0][g * n + i] + m->sums[1][g * n + i];
        double in = activate(&f[0], clipped(m, sum[0] + (p ? p[i] * c[i] : 0)));
        double forget = activate(&f[0], clipped(m, sum[2] + (p ? p[2 * n + i] * c[i] : 0)));
        if (m->input_forget) forget = 1 - in;
        c[i] = forget * c[i] + in * activate(&f[1], clipped(m, sum[3]));
        double out = activate(&f[0], clipped(m, sum[1] + (p ? p[n + i] * c[i] : 0)));
        h[i] = out * activate(&f[2], c[i]);
    }
}

// Index of state (direction, batch) in initial_h, Y_h and the like.
static int64_t state_index(const recurrent *m, int64_t d, int64_t n) {
    return (m->batch_major ? n * m->directions + d : d * m->batch + n) * m->hidden;
}

// One sequence in one direction; `state` has room for h and c.
static void run_sequence(berth_eval_context *ctx, const recurrent *m, int64_t d, int64_t n,
                         double *state) {
    double *h = state, *c = state + m->hidden;
    const activation *f = &m->f[d * m->functions];
    int64_t first = state_index(m, d, n);
    int64_t length = m->lengths ? berth_tensor_get_i64(m->lengths, n) : m->steps;
    for (int64_t i = 0; i < m->hidden; ++i) {
        h[i] = m->h0 ? m->h0[first + i] : 0;
        c[i] = m->c0 ? m->c0[first + i] : 0;
    }
    for (int64_t s = 0; s < length; ++s) {
        int64_t t = m->reverse_first || d == 1 ? length - 1 - s : s;
        int64_t at = m->batch_major ? n * m->steps + t : t * m->batch + n;
        if (m->kind == BERTH_OP_LSTM_INTEGER)
            integer_sums(m, d, m->x + at * m->width, h);
        else
            gate_sums(m, d, m->x + at * m->width, h);
        if (m->kind == BERTH_OP_RNN) rnn_step(m, f, h);
        if (m->kind == BERTH_OP_GRU) gru_step(m, d, f, h);
        if (m->gates == MAX_GATES) lstm_step(m, d, f, h, c);
        int64_t y = m->batch_major ? (at * m->directions + d) * m->hidden
                                   : ((t * m->directions + d) * m->batch + n) * m->hidden;
        for (int64_t i = 0; berth_eval__has_output(ctx, 0) && i < m->hidden; ++i)
            berth_eval__set_f64(&ctx->outputs[0], y + i, h[i]);
    }
    for (int64_t i = 0; i < m->hidden; ++i) {
        if (berth_eval__has_output(ctx, 1)) berth_eval__set_f64(&ctx->outputs[1], first + i, h[i]);
        if (berth_eval__has_output(ctx, 2)) berth_eval__set_f64(&ctx->outputs[2], first + i, c[i]);
    }
}

berth_status berth_eval__recurrent(berth_eval_context *ctx) {
    berth_op_kind kind = ctx->op->kind;
    berth_dtype dtype = ctx->inputs[0].dtype;
    recurrent m = {.kind = kind,
                   .gates = kind == BERTH_OP_RNN   ? 1
                            : kind == BERTH_OP_GRU ? 3
                                                   : 4,
                   .functions = kind == BERTH_OP_RNN   ? 1
                                : kind == BERTH_OP_GRU ? 2
                                                       : 3,
                   .clip = berth_eval__float(ctx, "clip", 0),
                   .linear_before_reset = berth_eval__int(ctx, "linear_before_reset", 0) != 0,
                   .input_forget = berth_eval__int(ctx, "input_forget", 0) != 0};
    BERTH_TRY(read_shapes(ctx, &m));
    BERTH_TRY(read_activations(ctx, &m));
    int64_t forward[4] = {m.steps, m.directions, m.batch, m.hidden};
    int64_t batched[4] = {m.batch, m.steps, m.directions, m.hidden};
    int64_t state[3] = {m.directions, m.batch, m.hidden};
    int64_t batched_state[3] = {m.batch, m.directions, m.hidden};
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, 4, m.batch_major ? batched : forward));
    BERTH_TRY(berth_eval__output(ctx, 1, dtype, 3, m.batch_major ? batched_state : state));
    BERTH_TRY(berth_eval__output(ctx, 2, dtype, 3, m.batch_major ? batched_state : state));
    double *held = berth_eval__doubles(ctx, 2 * m.hidden);
    for (int64_t d = 0; d < m.directions; ++d)
        for (int64_t n = 0; n < m.batch; ++n) run_sequence(ctx, &m, d, n, held);
    return BERTH_OK;
}
