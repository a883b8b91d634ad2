// What a VTA runs, why not, how long it takes, and in which layouts.
#include <math.h>
#include <string.h>

#include "drivers/vta/compiler/compiler.h"
#include "ir/graph/op_params.h"

typedef berth_rules_question question;

static const berth_tensor *constant_of(const question *q, uint32_t operand) {
    const berth_op *op = berth_rules_op(q);
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    if (operand >= op->input_count || op->inputs[operand] == BERTH_NONE) return NULL;
    return berth_graph_constant_of(q->module, graph, op->inputs[operand]);
}

static bool is_i8(const question *q, berth_value_id value) {
    return berth_rules_type(q, value)->dtype == BERTH_DTYPE_I8 &&
           berth_type_is_static(berth_rules_type(q, value));
}

// The number that a parameter is for all elements. False: no constant, or several.
static bool number_of(const question *q, uint32_t operand, double *out) {
    const berth_tensor *tensor = constant_of(q, operand);
    if (!tensor) return false;
    *out = berth_tensor_get_f64(tensor, 0);
    for (int64_t i = 1; i < berth_tensor_element_count(tensor); ++i)
        if (berth_tensor_get_f64(tensor, i) != *out) return false;
    return true;
}

static const char *check_zeros(const question *q, const uint32_t *operands, int count) {
    for (int i = 0; i < count; ++i) {
        double zero = 1;
        if (!constant_of(q, operands[i])) return "its zero points are no constants";
        if (!number_of(q, operands[i], &zero) || zero != 0) return "its zero points are not 0";
    }
    return NULL;
}

static const char *message(const question *q, berth_status status) {
    const char *why = berth_arena_printf(q->arena, "%s", berth_status_message(status));
    berth_status_free(status);
    return why;
}

// ---- what an operation is as a nest -------------------------------------------------------------

// log2(x_scale * w_scale / y_scale), if that is whole and one for all outputs. NULL: it is.
static const char *read_shift(const question *q, berth_vta_nest *n) {
    double x = 0, w = 0, y = 0;
    if (!constant_of(q, 1) || !constant_of(q, 4) || !constant_of(q, 6) || !number_of(q, 1, &x) ||
        !number_of(q, 6, &y))
        return "its scales are no constants";
    if (!number_of(q, 4, &w))
        return "its weights have scales per channel: one shift serves all results";
    double factor = x * w / y;
    int exponent = 0;
    if (!(factor > 0) || frexp(factor, &exponent) != 0.5)
        return berth_arena_printf(q->arena,
                                  "its scales (%g * %g / %g) give no power of two: results would "
                                  "need a multiplication, and there are only shifts",
                                  x, w, y);
    if (exponent <= 1 && exponent >= -13 &&
        berth_vta_nest_scale(n, (double[2]){factor, 1}, (double[2]){1, 1}, 1))
        return NULL;
    return berth_arena_printf(q->arena, "its scales ask for a shift by %d, 0 to 14 can be done",
                              1 - exponent);
}

// Sums, their bias and what rounds them must stay within 32 bits.
static const char *check_sums(const question *q, double depth) {
    const berth_tensor *bias = constant_of(q, 8);
    double most = 0;
    if (berth_rules_op(q)->input_count > 8 && berth_rules_op(q)->inputs[8] != BERTH_NONE && !bias)
        return "its bias is no constant";
    for (int64_t i = 0; bias && i < berth_tensor_element_count(bias); ++i)
        most = fmax(most, fabs(berth_tensor_get_f64(bias, i)));
    return depth * 128 * 128 + most + 65536 < 2147483648.0 ? NULL : "its sums may not fit 32 bits";
}

// The fewest groups side by side whose channels fill blocks; all of them where no fewer do.
static int64_t merged_groups(int64_t groups, int64_t inputs, int64_t outputs, int64_t block) {
    for (int64_t times = 1; times < groups; ++times)
        if (groups % times == 0 && inputs / groups * times % block == 0 &&
            outputs / groups * times % block == 0)
            return groups / times;
    return 1;
}

static const char *read_window(const question *q, const int64_t *kernel, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    const berth_type *x = berth_rules_type(q, op->inputs[0]),
                     *y = berth_rules_type(q, op->outputs[0]);
    berth_window w = {0};
    berth_status status = berth_window_resolve(q->module, op, x->dims, x->rank, kernel, &w);
    if (status) return message(q, status);
    n->groups = w.group > 0 ? w.group : 1;
    n->kernel_h = w.kernel[0];
    n->kernel_w = w.kernel[1];
    n->dilation_h = w.dilations[0];
    n->dilation_w = w.dilations[1];
    n->stride_h = w.strides[0];
    n->stride_w = w.strides[1];
    n->pad_h = w.pads_begin[0];
    n->pad_w = w.pads_begin[1];
    for (int i = 0; i < 2 && op->kind == BERTH_OP_QLINEAR_AVERAGE_POOL; ++i) {
        int64_t padding = w.pads_begin[i] + w.pads_end[i];
        int64_t counted = x->dims[2 + i] + (w.count_include_pad ? padding : 0);
        if ((w.pads_begin[i] && !w.count_include_pad) ||
            (y->dims[2 + i] - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 > counted)
            return "its averages at a border are over fewer elements, and there is one divisor";
    }
    return NULL;
}

static const char *read_conv(const question *q, berth_vta_nest *n) {
    static const uint32_t zeros[] = {2, 5, 7};
    const berth_op *op = berth_rules_op(q);
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    const berth_type *w = berth_rules_type(q, op->inputs[3]);
    if (!is_i8(q, op->inputs[3])) return "its weights are not i8 of known shape";
    if (w->rank != 4 || !berth_graph_raw_constant_of(q->module, graph, op->inputs[3]))
        return "it is no convolution of two dimensions with constant weights";
    const char *why = read_shift(q, n);
    if (!why) why = check_zeros(q, zeros, 3);
    if (!why) why = check_sums(q, (double)(w->dims[1] * w->dims[2] * w->dims[3]));
    if (!why) why = read_window(q, w->dims + 2, n);
    if (why) return why;
    n->form = BERTH_VTA_PRODUCTS;
    n->bias = constant_of(q, 8) ? 0 : BERTH_NONE;
    n->groups = merged_groups(n->groups, n->in_channels, n->out_channels,
                              (int64_t)1 << berth_vta_config_of(q->target).log_block);
    return NULL;
}

// Whether integers mean what f32 computes with scales: where they are powers of two, nothing is rounded
// on the way.
static bool powers_of_two(const double *scales, int count) {
    for (int i = 0; i < count; ++i) {
        int exponent = 0;
        if (!(scales[i] > 0) || frexp(scales[i], &exponent) != 0.5) return false;
    }
    return true;
}

static const char *read_add(const question *q, berth_vta_nest *n) {
    static const uint32_t zeros[] = {2, 5, 7};
    const berth_op *op = berth_rules_op(q);
    const berth_type *a = berth_rules_type(q, op->inputs[0]),
                     *b = berth_rules_type(q, op->inputs[3]);
    double up[2] = {0}, down[2] = {0};
    const char *why = check_zeros(q, zeros, 3);
    if (why) return why;
    if (!is_i8(q, op->inputs[3])) return "its second operand is not i8 of known shape";
    for (int d = 0; d < 4; ++d)
        if (b->rank != 4 || a->dims[d] != b->dims[d]) return "its operands differ in shape";
    if (!number_of(q, 1, &up[0]) || !number_of(q, 4, &up[1]) || !number_of(q, 6, &down[0]))
        return "its scales are no constants";
    const double scales[] = {up[0], up[1], down[0]};
    down[1] = down[0];
    n->second = 0;
    return powers_of_two(scales, 3) && berth_vta_nest_scale(n, up, down, 2)
               ? NULL
               : berth_arena_printf(q->arena, "its scales (%g and %g by %g) are no powers of two",
                                    up[0], up[1], down[0]);
}

static const char *read_average(const question *q, berth_vta_nest *n) {
    static const uint32_t zeros[] = {2, 4};
    double up[2] = {0, 1}, down[2] = {0, 1};
    const char *why = check_zeros(q, zeros, 2);
    if (!why) why = read_window(q, NULL, n);
    if (why) return why;
    if (!number_of(q, 1, &up[0]) || !number_of(q, 3, &down[0]))
        return "its scales are no constants";
    const double scales[] = {up[0], down[0]};
    down[0] *= (double)(n->kernel_h * n->kernel_w);
    return powers_of_two(scales, 2) && berth_vta_nest_scale(n, up, down, 1)
               ? NULL
               : berth_arena_printf(q->arena, "its scales (%g by %g) are no powers of two", up[0],
                                    scales[1]);
}

static const char *read_maximum(const question *q, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    n->form = BERTH_VTA_MAXIMA;
    if (op->output_count > 1 && op->outputs[1] != BERTH_NONE) return "its indices are wanted, too";
    if (op->kind == BERTH_OP_MAX_POOL) return read_window(q, NULL, n);
    n->kernel_h = n->height;
    n->kernel_w = n->width;
    return NULL;
}

static const char *read_concat(const question *q, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    const berth_type *y = berth_rules_type(q, op->outputs[0]);
    int64_t axis = berth_attrs_int(q->module, &op->attrs, "axis", 0);
    if (axis != 1 && axis != 1 - y->rank) return "it joins along another axis than channels";
    n->in_channels = n->out_channels;
    if (op->input_count > BERTH_VTA_MOST_PARTS) return "it joins more than 8 tensors";
    for (uint32_t i = 0; i < op->input_count; ++i) {
        if (!is_i8(q, op->inputs[i])) return "its tensors are not i8 of known shape";
        n->part_channels[n->part_count++] = berth_rules_type(q, op->inputs[i])->dims[1];
    }
    return NULL;
}

static const char *read_pad(const question *q, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    const berth_tensor *pads = constant_of(q, 1), *axes = constant_of(q, 3);
    double fill = 0;
    if (strcmp(berth_attrs_string(q->module, &op->attrs, "mode", "constant"), "constant") != 0)
        return "it fills up with something else than zeros";
    if (op->input_count > 2 && op->inputs[2] != BERTH_NONE &&
        (!number_of(q, 2, &fill) || fill != 0))
        return "it fills up with something else than zeros";
    if (!pads || axes || berth_tensor_element_count(pads) != 8) return "its padding is not known";
    for (int64_t i = 0; i < 8; ++i) {
        int64_t amount = berth_tensor_get_i64(pads, i);
        if (amount < 0 || (amount > 0 && i % 4 < 2)) return "it pads more than rows and columns";
    }
    n->pad_h = berth_tensor_get_i64(pads, 2);
    n->pad_w = berth_tensor_get_i64(pads, 3);
    return NULL;
}

// Of channels: where other dimensions stay as they are, steps of 1 begin at their first.
static const char *read_slice(const question *q, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    const berth_type *x = berth_rules_type(q, op->inputs[0]);
    const berth_type *y = berth_rules_type(q, op->outputs[0]);
    const berth_tensor *starts = constant_of(q, 1), *axes = constant_of(q, 3);
    double step = 1;
    if (!starts || (op->input_count > 3 && op->inputs[3] != BERTH_NONE && !axes))
        return "its bounds are no constants";
    if (op->input_count > 4 && op->inputs[4] != BERTH_NONE &&
        (!number_of(q, 4, &step) || step != 1))
        return "its steps are not 1";
    if (x->dims[0] != y->dims[0] || x->dims[2] != y->dims[2] || x->dims[3] != y->dims[3])
        return "it takes apart other dimensions than channels";
    for (int64_t i = 0; i < berth_tensor_element_count(starts); ++i) {
        int64_t axis = axes ? berth_tensor_get_i64(axes, i) : i;
        int64_t start = berth_tensor_get_i64(starts, i);
        if (axis == 1 || axis == -3) n->first_channel = start < 0 ? start + x->dims[1] : start;
    }
    if (n->first_channel < 0) n->first_channel = 0;
    return NULL;
}

static bool is_work(berth_op_kind kind) {
    return kind == BERTH_OP_SLICE || kind == BERTH_OP_PAD || kind == BERTH_OP_CONCAT ||
           kind == BERTH_OP_QLINEAR_CONV || kind == BERTH_OP_QLINEAR_ADD ||
           kind == BERTH_OP_QLINEAR_AVERAGE_POOL || kind == BERTH_OP_MAX_POOL ||
           kind == BERTH_OP_GLOBAL_MAX_POOL;
}

// The nest that an operation becomes (compiler/lower), or why it is none for a VTA.
static const char *read_nest(const question *q, berth_vta_nest *n) {
    const berth_op *op = berth_rules_op(q);
    if (!is_i8(q, op->inputs[0]) || !is_i8(q, op->outputs[0]))
        return "its tensors are not i8 of known shape: the matrix unit has signed 8-bit lanes";
    const berth_type *x = berth_rules_type(q, op->inputs[0]),
                     *y = berth_rules_type(q, op->outputs[0]);
    if (x->rank != 4) return "its tensors are no images with channels";
    *n = (berth_vta_nest){.form = BERTH_VTA_SUMS,
                          .second = BERTH_NONE,
                          .bias = BERTH_NONE,
                          .images = x->dims[0],
                          .in_channels = x->dims[1],
                          .out_channels = y->dims[1],
                          .groups = 1,
                          .height = x->dims[2],
                          .width = x->dims[3],
                          .out_height = y->dims[2],
                          .out_width = y->dims[3],
                          .kernel_h = 1,
                          .kernel_w = 1,
                          .dilation_h = 1,
                          .dilation_w = 1,
                          .stride_h = 1,
                          .stride_w = 1,
                          .factors = {1, 1},
                          .divisor = 1,
                          .low = -128,
                          .high = 127};
    switch (op->kind) {
    case BERTH_OP_QLINEAR_CONV: return read_conv(q, n);
    case BERTH_OP_QLINEAR_ADD: return read_add(q, n);
    case BERTH_OP_QLINEAR_AVERAGE_POOL: return read_average(q, n);
    case BERTH_OP_CONCAT: return read_concat(q, n);
    case BERTH_OP_PAD: return read_pad(q, n);
    case BERTH_OP_SLICE: return read_slice(q, n);
    default: return read_maximum(q, n);
    }
}

// The operation as the emitter has it, and its tiles; or why there are none.
static const char *plan_conv(const question *q, berth_vta_conv *out_conv,
                             berth_vta_conv_tiles *out_tiles) {
    berth_vta_config config = berth_vta_config_of(q->target);
    if (config.log_inp_width != 3 || config.log_wgt_width != 3 || config.log_acc_width != 5 ||
        config.log_batch != 0)
        return "code is made for 8-bit inputs and weights, 32-bit sums and log_batch=0 only";
    if (berth_vta_intrinsic_of(BERTH_VTA_DO_GEMM, (int64_t)1 << config.log_block) ==
        BERTH_INTRINSIC_COUNT)
        return "code is made for a log_block of 1 to 7 only";
    berth_vta_nest nest;
    const char *why = read_nest(q, &nest);
    if (why) return why;
    berth_vta_timing timing = berth_vta_timing_default();
    berth_status status = berth_vta_conv_of(&nest, &config, out_conv);
    if (status) return message(q, status);
    status = berth_vta_conv_plan(&config, out_conv, &timing, out_tiles);
    if (!status) return NULL;
    bool full = berth_status_code(status) == BERTH_UNSUPPORTED;
    const char *planned = message(q, status);
    why = full ? berth_vta_conv_misfit(q->arena, &config, out_conv) : NULL;
    return why ? why : planned;
}

static const char *plan_of(const question *q, berth_vta_conv_tiles *out_tiles) {
    berth_vta_conv conv;
    return plan_conv(q, &conv, out_tiles);
}

// ---- the rules ----------------------------------------------------------------------------------

static uint32_t block_of(const question *q) {
    return 1u << berth_vta_config_of(q->target).log_block;
}

// Whether blocks of channels lie as plain rows do: pixels have no neighbours and blocks are full.
static bool blocks_are_plain(const question *q, berth_value_id value) {
    const berth_type *type = berth_rules_type(q, value);
    if (!berth_type_is_static(type) || type->rank < 2 || type->dims[1] % block_of(q)) return false;
    for (int d = 2; d < type->rank; ++d)
        if (type->dims[d] != 1) return false;
    return true;
}

// The work that a relu bounds; BERTH_NONE: none.
static berth_op_id bounded_work(const question *q) {
    const berth_op *op = berth_rules_op(q);
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    berth_op_id before = graph->values.data[op->inputs[0]].op;
    bool work = op->kind == BERTH_OP_RELU && is_i8(q, op->inputs[0]) && before != BERTH_NONE &&
                is_work(graph->ops.data[before].kind);
    return work ? before : BERTH_NONE;
}

static const char *unsupported(const question *q) {
    const berth_op *op = berth_rules_op(q);
    berth_vta_conv_tiles tiles;
    if (is_work(op->kind)) return plan_of(q, &tiles);
    if (op->kind == BERTH_OP_RELU) {
        question inner = *q;
        inner.op = bounded_work(q);
        return inner.op == BERTH_NONE ? "a relu of its own is no work for a VTA"
                                      : plan_of(&inner, &tiles);
    }
    if (op->kind == BERTH_OP_CONSTANT) return NULL;
    if (berth_op_has(op->kind, BERTH_TRAIT_VIEW))
        return blocks_are_plain(q, op->inputs[0]) && blocks_are_plain(q, op->outputs[0])
                   ? NULL
                   : "channels in blocks cannot be reshaped";
    return berth_vta_no_work(q);
}

static double time_ns(const question *q) {
    const berth_op *op = berth_rules_op(q);
    berth_vta_conv_tiles tiles;
    if (op->kind == BERTH_OP_RELU || berth_op_has(op->kind, BERTH_TRAIT_VIEW)) return 0;
    if (!is_work(op->kind) || plan_of(q, &tiles)) return -1;
    return tiles.cycles * 1e9 / (double)q->target->clock_hz + (double)q->target->dispatch_ns;
}

static void layouts(const question *q, berth_rules_layouts *out) {
    const berth_op *op = berth_rules_op(q);
    unsigned block = block_of(q);
    const char *map = berth_arena_printf(q->arena, "aBcd%ub", block);
    berth_vta_nest nest;
    if (!is_work(op->kind) && op->kind != BERTH_OP_RELU) return;
    if (!blocks_are_plain(q, op->inputs[0])) out->operands[0] = map;
    if (!blocks_are_plain(q, op->outputs[0])) out->result = map;
    if (op->kind == BERTH_OP_QLINEAR_ADD && !blocks_are_plain(q, op->inputs[3]))
        out->operands[3] = map;
    for (uint32_t i = 0; op->kind == BERTH_OP_CONCAT && i < op->input_count; ++i)
        if (!blocks_are_plain(q, op->inputs[i])) out->operands[i] = map;
    if (op->kind != BERTH_OP_QLINEAR_CONV || read_nest(q, &nest)) return;
    out->groups = nest.groups;
    out->weights = 3;
    out->operands[3] = berth_arena_printf(q->arena, "ABcd%ua%ub", block, block);
    if (op->input_count > 8 && op->inputs[8] != BERTH_NONE)
        out->operands[8] = berth_arena_printf(q->arena, "A%ua", block);
}

static bool follows(const question *q, berth_op_id previous) {
    return berth_rules_op(q)->kind == BERTH_OP_RELU && bounded_work(q) == previous;
}

static uint32_t buffers(const question *q, berth_rules_buffer *out) {
    berth_vta_config config = berth_vta_config_of(q->target);
    berth_vta_conv conv;
    berth_vta_conv_tiles tiles;
    if (!is_work(berth_rules_op(q)->kind) || plan_conv(q, &conv, &tiles)) return 0;
    return berth_vta_conv_buffers(&config, &conv, &tiles, out);
}

const berth_kind_rules berth_vta_rules = {.kind = "vta",
                                          .whole_quantized = true,
                                          .unsupported = unsupported,
                                          .time_ns = time_ns,
                                          .layouts = layouts,
                                          .follows = follows,
                                          .only_after = follows,
                                          .buffers = buffers,
                                          .modelled_ns = berth_vta_modelled_ns};
