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

// i32 sum of (x - x_zero) * (w - w_zero); what lies in the padding is x_zero and adds nothing.
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
    x = x_select(c, condition, x, num(c, t, 0));
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

// Output position o gets input i where o = i * stride + k * dilation - pad: for every k, i exists
// when the rest divides.
static berth_expr source_position(berth_lower *c, const berth_window *w, int i, berth_expr o,
                                  berth_expr k, berth_expr *condition) {
    berth_expr moved = x_sub(c, x_addi(c, o, w->pads_begin[i]), x_muli(c, k, w->dilations[i]));
    int64_t stride = w->strides[i];
    int64_t low = w->pads_begin[i] - (w->kernel[i] - 1) * w->dilations[i];
    int64_t high = w->output[i] - 1 + w->pads_begin[i];
    berth_expr at = x_div(c, moved, ix(c, stride));
    if (stride > 1)
        *condition = x_and(c, *condition, x_eq(c, x_mod(c, moved, ix(c, stride)), ix(c, 0)));
    if (low < 0) *condition = x_and(c, *condition, x_ge(c, moved, ix(c, 0)));
    if (high / stride >= w->input[i])
        *condition = x_and(c, *condition, x_lt(c, at, ix(c, w->input[i])));
    return at;
}

void berth_lower__conv_transpose(berth_lower *c, const berth_op *op) {
    convolution v;
    berth_lower_grid grid;
    if (!describe(c, op, 0, 1, &v)) return;
    const berth_window *w = &v.w;
    open_grid(c, op, &v, &grid);
    berth_dtype t = out_dtype(c, op, 0);
    berth_expr x_at[BERTH_MAX_RANK];
    berth_expr w_at[BERTH_MAX_RANK];
    berth_expr condition = 0;
    berth_buf acc = berth_lower__register(c, "acc", t);
    berth_lower__set(c, acc, num(c, t, 0));
    berth_expr ic = berth_lower__loop(c, "ic", v.in_per_group, BERTH_LOOP_SERIAL);
    x_at[0] = grid.at[0];
    x_at[1] = input_channel(c, &v, &grid, ic);
    w_at[0] = x_at[1];
    w_at[1] = v.depthwise ? ix(c, 0) : grid.at[1];
    if (w->group > 1 && !v.depthwise)
        w_at[1] = x_sub(c, grid.at[1], x_muli(c, grid.group, v.out_per_group));
    for (int i = 0; i < w->spatial; ++i) {
        w_at[2 + i] =
            berth_lower__loop(c, kernel_names[w->spatial][i], w->kernel[i], BERTH_LOOP_SERIAL);
        x_at[2 + i] = source_position(c, w, i, grid.at[2 + i], w_at[2 + i], &condition);
    }
    berth_expr x = x_select(c, condition, in_at(c, op, 0, x_at), num(c, t, 0));
    berth_lower__set(c, acc, x_fma(c, x, in_at(c, op, 1, w_at), berth_lower__get(c, acc)));
    berth_lower__end_loops(c, 1 + w->spatial);
    berth_expr value = berth_lower__get(c, acc);
    if (has_in(op, 2)) value = x_add(c, value, in_at(c, op, 2, &grid.at[1]));
    berth_lower__store(c, op, 0, grid.at, value);
    berth_lower__grid_end(c, &grid);
}
