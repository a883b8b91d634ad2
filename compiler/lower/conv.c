// Convolutions in their plain form: for every output element, sums over input channels and the
// window. Padding is a condition around the load.
#include "compiler/lower/families.h"

static const char *const output_names[4][5] = {
    {0}, {"n", "oc", "ow"}, {"n", "oc", "oh", "ow"}, {"n", "oc", "od", "oh", "ow"}};
static const char *const kernel_names[4][3] = {{0}, {"kw"}, {"kh", "kw"}, {"kd", "kh", "kw"}};

typedef struct convolution {
    berth_window w;
    uint32_t x;  // operand numbers
    uint32_t weights;
    int64_t in_per_group;
    int64_t out_per_group;
    bool depthwise;
} convolution;

static bool describe(berth_lower *c, const berth_op *op, uint32_t x, uint32_t weights,
                     convolution *out) {
    const berth_type *input = in_type(c, op, x);
    const berth_type *kernel = in_type(c, op, weights);
    *out = (convolution){.x = x, .weights = weights};
    if (input->rank < 3 || kernel->rank != input->rank) {
        berth_lower__fail(c, op, "input of rank %d with weights of rank %d", input->rank,
                          kernel->rank);
        return false;
    }
    berth_status status =
        berth_window_resolve(c->module, op, input->dims, input->rank, kernel->dims + 2, &out->w);
    if (!berth_lower__check(c, op, status)) return false;
    bool transposed = op->kind == BERTH_OP_CONV_TRANSPOSE;
    int64_t outputs = transposed ? kernel->dims[1] * out->w.group : kernel->dims[0];
    out->in_per_group = transposed ? kernel->dims[0] / out->w.group : kernel->dims[1];
    out->out_per_group = outputs / out->w.group;
    out->depthwise = out->w.group > 1 && out->in_per_group == 1 && out->out_per_group == 1;
    if (input->dims[1] != out->in_per_group * out->w.group || outputs % out->w.group != 0) {
        berth_lower__fail(c, op, "%lld input channels do not fit %lld groups of weights for %lld",
                          (long long)input->dims[1], (long long)out->w.group,
                          (long long)out->in_per_group);
        return false;
    }
    return true;
}

static void open_grid(berth_lower *c, const berth_op *op, const convolution *v,
                      berth_lower_grid *grid) {
    berth_lower_grid_options options = {.names = output_names[v->w.spatial],
                                        .groups = v->depthwise ? 1 : v->w.group};
    berth_lower__grid(c, op, 0, &options, grid);
}

static berth_expr input_channel(berth_lower *c, const convolution *v, const berth_lower_grid *grid,
                                berth_expr ic) {
    if (v->depthwise) return grid->at[1];
    if (v->w.group == 1) return ic;
    return x_add(c, x_muli(c, grid->group, v->in_per_group), ic);
}

// Position in the input of one spatial dimension, and the condition that it is inside.
static berth_expr input_position(berth_lower *c, const berth_window *w, int i, berth_expr o,
                                 berth_expr k, berth_expr *condition) {
    berth_expr at = x_add(c, x_muli(c, o, w->strides[i]), x_muli(c, k, w->dilations[i]));
    at = x_addi(c, at, -w->pads_begin[i]);
    int64_t last = (w->output[i] - 1) * w->strides[i] + (w->kernel[i] - 1) * w->dilations[i] -
                   w->pads_begin[i];
    if (w->pads_begin[i] > 0) *condition = x_and(c, *condition, x_ge(c, at, ix(c, 0)));
    if (last >= w->input[i]) *condition = x_and(c, *condition, x_lt(c, at, ix(c, w->input[i])));
    return at;
}

// Loops over channels and window; sets the indices of input and weights. Returns the loops to end.
static int open_window(berth_lower *c, const convolution *v, const berth_lower_grid *grid,
                       berth_expr *x_at, berth_expr *w_at, berth_expr *condition) {
    const berth_window *w = &v->w;
    berth_expr ic = berth_lower__loop(c, "ic", v->in_per_group, BERTH_LOOP_SERIAL);
    x_at[0] = grid->at[0];
    x_at[1] = input_channel(c, v, grid, ic);
    w_at[0] = grid->at[1];
    w_at[1] = ic;
    *condition = 0;
    for (int i = 0; i < w->spatial; ++i) {
        w_at[2 + i] =
            berth_lower__loop(c, kernel_names[w->spatial][i], w->kernel[i], BERTH_LOOP_SERIAL);
        x_at[2 + i] = input_position(c, w, i, grid->at[2 + i], w_at[2 + i], condition);
    }
    return 1 + w->spatial;
}

void berth_lower__conv(berth_lower *c, const berth_op *op) {
    convolution v;
    berth_lower_grid grid;
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr w_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    if (!describe(c, op, 0, 1, &v)) return;
    open_grid(c, op, &v, &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    int loops = open_window(c, &v, &grid, x_at, w_at, &condition);
    berth_expr x = x_select(c, condition, in_at(c, op, 0, x_at), num(c, t, 0));
    berth_lower__set(c, acc, x_fma(c, x, in_at(c, op, 1, w_at), berth_lower__get(c, acc)));
    berth_lower__end_loops(c, loops);
    berth_expr value = berth_lower__get(c, acc);
    if (has_in(op, 2)) value = x_add(c, value, in_at(c, op, 2, &grid.at[1]));
    berth_lower__store(c, op, 0, grid.at, value);
    berth_lower__grid_end(c, &grid);
}

// Element of a parameter that is a scalar or one per output channel.
static berth_expr per_channel(berth_lower *c, const berth_op *op, uint32_t i, berth_expr channel) {
    const berth_type *type = in_type(c, op, i);
    berth_expr mapped[BERTH_MAX_RANK];
    for (int d = 0; d < type->rank; ++d) mapped[d] = type->dims[d] == 1 ? ix(c, 0) : channel;
    return in_at(c, op, i, mapped);
}

// i32 sum of (x - x_zero) * (w - w_zero); what lies in the padding is x_zero and adds nothing, unless
// BERTH_CONV_PAD_VALUE says otherwise.
static berth_buf integer_sum(berth_lower *c, const berth_op *op, const convolution *v,
                             uint32_t x_zero, uint32_t w_zero, const berth_lower_grid *grid) {
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr w_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_dtype t = BERTH_DTYPE_I32;
    berth_expr zx = has_in(op, x_zero) ? x_cast(c, t, per_channel(c, op, x_zero, grid->at[1])) : 0;
    berth_expr zw = has_in(op, w_zero) ? x_cast(c, t, per_channel(c, op, w_zero, grid->at[1])) : 0;
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    int loops = open_window(c, v, grid, x_at, w_at, &condition);
    berth_expr x = x_cast(c, t, in_at(c, op, v->x, x_at));
    berth_expr w = x_cast(c, t, in_at(c, op, v->weights, w_at));
    if (zx) x = x_sub(c, x, zx);
    if (zw) w = x_sub(c, w, zw);
    double padding = (double)berth_attrs_int(c->module, &op->attrs, BERTH_CONV_PAD_VALUE, 0);
    x = x_select(c, condition, x, num(c, t, padding));
    berth_lower__set(c, acc, x_fma(c, x, w, berth_lower__get(c, acc)));
    berth_lower__end_loops(c, loops);
    return acc;
}

void berth_lower__conv_integer(berth_lower *c, const berth_op *op) {
    convolution v;
    berth_lower_grid grid;
    if (!describe(c, op, 0, 1, &v)) return;
    open_grid(c, op, &v, &grid);
    berth_buf acc = integer_sum(c, op, &v, 2, 3, &grid);
    berth_lower__store(c, op, 0, grid.at, berth_lower__get(c, acc));
    berth_lower__grid_end(c, &grid);
}

// Operands x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (i32).
void berth_lower__qlinear_conv(berth_lower *c, const berth_op *op) {
    convolution v;
    berth_lower_grid grid;
    if (!describe(c, op, 0, 3, &v)) return;
    open_grid(c, op, &v, &grid);
    berth_buf acc = integer_sum(c, op, &v, 2, 5, &grid);
    berth_expr sum = berth_lower__get(c, acc);
    if (has_in(op, 8)) sum = x_add(c, sum, in_at(c, op, 8, &grid.at[1]));
    berth_dtype t = BERTH_DTYPE_F32;
    berth_expr scale = x_mul(c, x_cast(c, t, per_channel(c, op, 1, grid.at[1])),
                             x_cast(c, t, per_channel(c, op, 4, grid.at[1])));
    berth_expr zero = x_cast(c, BERTH_DTYPE_I32, per_channel(c, op, 7, grid.at[1]));
    berth_expr y_scale = x_cast(c, t, per_channel(c, op, 6, grid.at[1]));
    berth_expr value = berth_lower__saturate(c, x_mul(c, x_cast(c, t, sum), scale), y_scale, zero,
                                             out_type(c, op, 0)->dtype);
    berth_lower__store(c, op, 0, grid.at, value);
    berth_lower__grid_end(c, &grid);
}

// ---- transposed ---------------------------------------------------------------------------------

// Output elements whose residues modulo the stride see the window alike, in one dimension: the
// residues first + r for r in [0, run), with kernel elements phase.first_tap + r + ...
typedef struct phase_run {
    berth_window_phase phase;
    int64_t first;
    int64_t run;
} phase_run;

static bool continues(const phase_run *run, const berth_window_phase *next) {
    const berth_window_phase *phase = &run->phase;
    return phase->first_tap + run->run == next->first_tap && phase->count == next->count &&
           phase->taps == next->taps && phase->shift == next->shift;
}

static int phase_runs(berth_lower *c, const berth_window *w, int i, phase_run **out_runs) {
    int count = 0;
    *out_runs = berth_arena_new_array(c->scratch, phase_run, w->strides[i] + 1);
    for (int64_t residue = 0; residue < w->strides[i] && residue < w->output[i]; ++residue) {
        berth_window_phase phase = berth_window_phase_of(w, i, residue);
        if (count > 0 && continues(&(*out_runs)[count - 1], &phase))
            (*out_runs)[count - 1].run++;
        else
            (*out_runs)[count++] = (phase_run){phase, residue, 1};
    }
    return count;
}

// Loops over channels and the taps of a phase; adds the products to `acc`. Returns the loops to
// end.
static int open_taps(berth_lower *c, const berth_op *op, const convolution *v,
                     const phase_run *const *runs, const berth_lower_grid *grid, berth_buf acc) {
    const berth_window *w = &v->w;
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr w_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr ic = berth_lower__loop(c, "ic", v->in_per_group, BERTH_LOOP_SERIAL);
    x_at[0] = grid->at[0];
    x_at[1] = input_channel(c, v, grid, ic);
    w_at[0] = x_at[1];
    w_at[1] = v->depthwise ? ix(c, 0) : grid->at[1];
    if (w->group > 1 && !v->depthwise)
        w_at[1] = x_sub(c, grid->at[1], x_muli(c, grid->group, v->out_per_group));
    for (int i = 0; i < w->spatial; ++i) {
        const berth_window_phase *phase = &runs[i]->phase;
        berth_expr tap =
            berth_lower__loop(c, kernel_names[w->spatial][i], phase->taps, BERTH_LOOP_SERIAL);
        w_at[2 + i] = x_add(c, x_muli(c, tap, phase->tap_step), grid->remainder[2 + i]);
        w_at[2 + i] = x_addi(c, w_at[2 + i], phase->first_tap);
        berth_expr at = x_addi(c, grid->quotient[2 + i], phase->shift);
        x_at[2 + i] = at = x_sub(c, at, x_muli(c, tap, phase->input_step));
        if (phase->shift < (phase->taps - 1) * phase->input_step)
            condition = x_and(c, condition, x_ge(c, at, ix(c, 0)));
        if (phase->count - 1 + phase->shift >= w->input[i])
            condition = x_and(c, condition, x_lt(c, at, ix(c, w->input[i])));
    }
    berth_expr x = x_select(c, condition, in_at(c, op, 0, x_at), num(c, t, 0));
    berth_lower__set(c, acc, x_fma(c, x, in_at(c, op, 1, w_at), berth_lower__get(c, acc)));
    return 1 + w->spatial;
}

// One nest: the output elements of one run per dimension, an ordinary convolution of stride 1.
static void phase_nest(berth_lower *c, const berth_op *op, const convolution *v,
                       const phase_run *const *runs) {
    const berth_window *w = &v->w;
    berth_lower_grid grid;
    berth_lower_grid_part parts[BERTH_MAX_RANK] = {0};
    bool reached = true;
    for (int i = 0; i < w->spatial; ++i) {
        parts[2 + i] = (berth_lower_grid_part){w->strides[i], runs[i]->first, runs[i]->phase.count,
                                               runs[i]->run};
        reached &= runs[i]->phase.taps > 0;
    }
    berth_lower_grid_options options = {
        .names = output_names[w->spatial], .groups = v->depthwise ? 1 : w->group, .parts = parts};
    berth_lower__grid(c, op, 0, &options, &grid);
    berth_expr value = num(c, out_dtype(c, op, 0), 0);
    if (reached) {
        berth_buf acc = berth_lower__register(c, "acc", out_dtype(c, op, 0));
        berth_lower__set(c, acc, value);
        berth_lower__end_loops(c, open_taps(c, op, v, runs, &grid, acc));
        value = berth_lower__get(c, acc);
    }
    if (has_in(op, 2)) value = x_add(c, value, in_at(c, op, 2, &grid.at[1]));
    berth_lower__store(c, op, 0, grid.at, value);
    berth_lower__grid_end(c, &grid);
}

// As a gather: one nest per kind of residues of the output's indices modulo the strides (Dumoulin
// and Visin 2016, "A guide to convolution arithmetic", section 4, put apart by residues so that no
// multiplication by an inserted zero is left).
void berth_lower__conv_transpose(berth_lower *c, const berth_op *op) {
    convolution v;
    if (!describe(c, op, 0, 1, &v)) return;
    phase_run *runs[BERTH_MAX_SPATIAL];
    int counts[BERTH_MAX_SPATIAL];
    int64_t total = 1;
    for (int i = 0; i < v.w.spatial; ++i) {
        counts[i] = phase_runs(c, &v.w, i, &runs[i]);
        total *= counts[i];
    }
    for (int64_t nest = 0; nest < total && !c->failure; ++nest) {
        const phase_run *chosen[BERTH_MAX_SPATIAL];
        int64_t rest = nest;
        for (int i = v.w.spatial - 1; i >= 0; --i) {
            chosen[i] = &runs[i][rest % counts[i]];
            rest /= counts[i];
        }
        if (nest > 0) berth_lower__next_nest(c);
        phase_nest(c, op, &v, chosen);
    }
}
