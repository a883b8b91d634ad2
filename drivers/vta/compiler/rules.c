// What a VTA runs, why not, how long it takes, and in which layouts.
#include <math.h>
#include <string.h>

#include "drivers/vta/compiler/compiler.h"
#include "ir/op_params.h"

typedef berth_rules_question question;

static const berth_op *op_of(const question *q) {
    return &berth_graph_get(q->module, q->function)->ops.data[q->op];
}

static const berth_type *type_of(const question *q, berth_value_id value) {
    return berth_type_get(q->module,
                          berth_graph_get(q->module, q->function)->values.data[value].type);
}

static const berth_tensor *constant_of(const question *q, uint32_t operand) {
    const berth_op *op = op_of(q);
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    if (operand >= op->input_count || op->inputs[operand] == BERTH_NONE) return NULL;
    return berth_graph_constant_of(q->module, graph, op->inputs[operand]);
}

static bool is_i8(const question *q, berth_value_id value) {
    return type_of(q, value)->dtype == BERTH_DTYPE_I8 && berth_type_is_static(type_of(q, value));
}

// ---- convolutions -------------------------------------------------------------------------------

// log2(x_scale * w_scale / y_scale), if that is whole and one for all outputs. NULL: it is.
static const char *read_shift(const question *q, int *out_shift) {
    const berth_tensor *x = constant_of(q, 1), *w = constant_of(q, 4), *y = constant_of(q, 6);
    if (!x || !w || !y || berth_tensor_element_count(x) != 1 || berth_tensor_element_count(y) != 1)
        return "its scales are no constants";
    double first = berth_tensor_get_f64(w, 0);
    for (int64_t i = 1; i < berth_tensor_element_count(w); ++i)
        if (berth_tensor_get_f64(w, i) != first)
            return "its weights have scales per channel: one shift serves all results";
    double factor = berth_tensor_get_f64(x, 0) * first / berth_tensor_get_f64(y, 0);
    int exponent = 0;
    if (!(factor > 0) || frexp(factor, &exponent) != 0.5)
        return berth_arena_printf(q->arena,
                                  "its scales (%g * %g / %g) give no power of two: results would "
                                  "need a multiplication, and there are only shifts",
                                  berth_tensor_get_f64(x, 0), first, berth_tensor_get_f64(y, 0));
    *out_shift = 1 - exponent;
    if (*out_shift >= 0 && *out_shift <= 14) return NULL;
    return berth_arena_printf(q->arena, "its scales ask for a shift by %d, 0 to 14 can be done",
                              *out_shift);
}

static const char *check_zeros(const question *q) {
    const uint32_t operands[] = {2, 5, 7};
    for (int i = 0; i < 3; ++i) {
        const berth_tensor *zero = constant_of(q, operands[i]);
        if (!zero) return "its zero points are no constants";
        for (int64_t k = 0; k < berth_tensor_element_count(zero); ++k)
            if (berth_tensor_get_i64(zero, k) != 0) return "its zero points are not 0";
    }
    return NULL;
}

// Sums, their bias and what rounds them must stay within 32 bits.
static const char *check_sums(const question *q, double depth) {
    const berth_tensor *bias = constant_of(q, 8);
    double most = 0;
    if (op_of(q)->input_count > 8 && op_of(q)->inputs[8] != BERTH_NONE && !bias)
        return "its bias is no constant";
    for (int64_t i = 0; bias && i < berth_tensor_element_count(bias); ++i)
        most = fmax(most, fabs(berth_tensor_get_f64(bias, i)));
    return depth * 128 * 128 + most + 65536 < 2147483648.0 ? NULL : "its sums may not fit 32 bits";
}

// The convolution and its tiles; or why there are none.
static const char *read_conv(const question *q, berth_vta_conv *out_conv,
                             berth_vta_conv_tiles *out_tiles) {
    const berth_op *op = op_of(q);
    berth_vta_config config = berth_vta_config_of(q->target);
    if (config.log_inp_width != 3 || config.log_wgt_width != 3 || config.log_acc_width != 5 ||
        config.log_batch != 0)
        return "code is made for 8-bit inputs and weights, 32-bit sums and log_batch=0 only";
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    if (!is_i8(q, op->inputs[0]) || !is_i8(q, op->outputs[0]) || !is_i8(q, op->inputs[3]))
        return "its tensors are not i8 of known shape: the matrix unit has signed 8-bit lanes";
    const berth_type *x = type_of(q, op->inputs[0]), *w = type_of(q, op->inputs[3]),
                     *y = type_of(q, op->outputs[0]);
    if (x->rank != 4 || !berth_graph_raw_constant_of(q->module, graph, op->inputs[3]))
        return "it is no convolution of two dimensions with constant weights";
    int shift = 0;
    const char *why = read_shift(q, &shift);
    if (!why) why = check_zeros(q);
    if (!why) why = check_sums(q, (double)(w->dims[1] * w->dims[2] * w->dims[3]));
    if (why) return why;
    berth_window window;
    berth_status status =
        berth_window_resolve(q->module, op, x->dims, x->rank, w->dims + 2, &window);
    bool simple =
        !status && window.group == 1 && window.dilations[0] == 1 && window.dilations[1] == 1;
    berth_status_ignore(status);
    if (!simple) return "it has groups or dilations";
    berth_vta_nest nest = {.bias = constant_of(q, 8) ? 0 : BERTH_NONE,
                           .images = x->dims[0],
                           .in_channels = x->dims[1],
                           .out_channels = y->dims[1],
                           .height = x->dims[2],
                           .width = x->dims[3],
                           .out_height = y->dims[2],
                           .out_width = y->dims[3],
                           .kernel_h = window.kernel[0],
                           .kernel_w = window.kernel[1],
                           .stride_h = window.strides[0],
                           .stride_w = window.strides[1],
                           .pad_h = window.pads_begin[0],
                           .pad_w = window.pads_begin[1],
                           .shift = shift,
                           .low = -128,
                           .high = 127};
    berth_vta_timing timing = berth_vta_timing_default();
    status = berth_vta_conv_of(&nest, &config, out_conv);
    if (!status) status = berth_vta_conv_plan(&config, out_conv, &timing, out_tiles);
    if (!status) return NULL;
    why = berth_arena_printf(q->arena, "%s", berth_status_message(status));
    berth_status_free(status);
    return why;
}

// ---- the rules ----------------------------------------------------------------------------------

static uint32_t block_of(const question *q) {
    return 1u << berth_vta_config_of(q->target).log_block;
}

// Whether blocks of channels lie as plain rows do: pixels have no neighbours and blocks are full.
static bool blocks_are_plain(const question *q, berth_value_id value) {
    const berth_type *type = type_of(q, value);
    if (!berth_type_is_static(type) || type->rank < 2 || type->dims[1] % block_of(q)) return false;
    for (int d = 2; d < type->rank; ++d)
        if (type->dims[d] != 1) return false;
    return true;
}

static const char *unsupported(const question *q) {
    const berth_op *op = op_of(q);
    berth_vta_conv conv;
    berth_vta_conv_tiles tiles;
    if (op->kind == BERTH_OP_QLINEAR_CONV) return read_conv(q, &conv, &tiles);
    if (op->kind == BERTH_OP_RELU) {
        const berth_graph *graph = berth_graph_get(q->module, q->function);
        berth_op_id before = graph->values.data[op->inputs[0]].op;
        question inner = *q;
        inner.op = before;
        bool after = is_i8(q, op->inputs[0]) && before != BERTH_NONE &&
                     graph->ops.data[before].kind == BERTH_OP_QLINEAR_CONV;
        if (!after) return "a relu of its own is no work for a VTA";
        return read_conv(&inner, &conv, &tiles);
    }
    if (op->kind == BERTH_OP_CONSTANT) return NULL;
    if (berth_op_has(op->kind, BERTH_TRAIT_VIEW))
        return blocks_are_plain(q, op->inputs[0]) && blocks_are_plain(q, op->outputs[0])
                   ? NULL
                   : "channels in blocks cannot be reshaped";
    return berth_arena_printf(q->arena,
                              "%s of %s is no work for a VTA: it runs 8-bit convolutions and dense "
                              "layers between quantize_linear and dequantize_linear",
                              berth_op_facts_get(op->kind)->name,
                              op->output_count ? berth_dtype_name(type_of(q, op->outputs[0])->dtype)
                                               : "nothing");
}

static double time_ns(const question *q) {
    const berth_op *op = op_of(q);
    berth_vta_conv conv;
    berth_vta_conv_tiles tiles;
    if (op->kind == BERTH_OP_RELU || berth_op_has(op->kind, BERTH_TRAIT_VIEW)) return 0;
    if (op->kind != BERTH_OP_QLINEAR_CONV || read_conv(q, &conv, &tiles)) return -1;
    return tiles.cycles * 1e9 / (double)q->target->clock_hz + (double)q->target->dispatch_ns;
}

static void layouts(const question *q, berth_rules_layouts *out) {
    const berth_op *op = op_of(q);
    unsigned block = block_of(q);
    const char *map = berth_arena_printf(q->arena, "aBcd%ub", block);
    if (op->kind != BERTH_OP_QLINEAR_CONV && op->kind != BERTH_OP_RELU) return;
    if (!blocks_are_plain(q, op->inputs[0])) out->operands[0] = map;
    if (!blocks_are_plain(q, op->outputs[0])) out->result = map;
    if (op->kind != BERTH_OP_QLINEAR_CONV) return;
    out->operands[3] = berth_arena_printf(q->arena, "ABcd%ua%ub", block, block);
    if (op->input_count > 8 && op->inputs[8] != BERTH_NONE)
        out->operands[8] = berth_arena_printf(q->arena, "A%ua", block);
}

static bool follows(const question *q, berth_op_id previous) {
    const berth_graph *graph = berth_graph_get(q->module, q->function);
    return op_of(q)->kind == BERTH_OP_RELU &&
           graph->ops.data[previous].kind == BERTH_OP_QLINEAR_CONV;
}

const berth_kind_rules berth_vta_rules = {.kind = "vta",
                                          .whole_quantized = true,
                                          .unsupported = unsupported,
                                          .time_ns = time_ns,
                                          .layouts = layouts,
                                          .follows = follows};
