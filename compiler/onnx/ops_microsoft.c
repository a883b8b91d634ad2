// Operators of com.microsoft, which ONNX Runtime's optimiser and quantisation tools write: fused
// activations and normalisations, quantised arithmetic, weights of a few bits.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// ---- activations ----

static berth_value_id gelu(onnx_compose *c, berth_value_id x, bool tanh) {
    onnx_made made = onnx_start(c, BERTH_OP_GELU, &x, 1, 1);
    if (tanh) onnx_set_string(made, "approximate", "tanh");
    return onnx_finish(made);
}

// Gelu, BiasGelu, FastGelu: of the sum of their inputs.
berth_status onnx_build_ms_gelu(onnx_call *call) {
    bool biased = strcmp(call->node->op_type, "BiasGelu") == 0;
    bool fast = strcmp(call->node->op_type, "FastGelu") == 0;
    onnx_compose c = onnx_compose_begin(call, biased ? 2 : 1, biased || fast ? 2 : 1);
    berth_value_id x = onnx_compose_input(&c, 0), bias = onnx_compose_input(&c, 1);
    if (bias != BERTH_NONE) x = onnx_add(&c, x, bias);
    onnx_compose_output(&c, 0, gelu(&c, x, fast));
    return c.status;
}

berth_status onnx_build_ms_quick_gelu(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    double alpha = onnx_call_float(call, "alpha", 1.702);
    onnx_compose_output(&c, 0, onnx_swished(&c, onnx_compose_input(&c, 0), alpha));
    return c.status;
}

static double activation_param(const onnx_call *call, const char *name, uint32_t index,
                               double fallback) {
    const onnx_attr *list = onnx_call_attr(call, "activation_params");
    if (list && index < list->floats.count) return list->floats.data[index];
    return onnx_call_float(call, name, fallback);
}

// The activation of FusedConv (activation_params) and FusedGemm (activation_alpha, ...).
static berth_value_id activated(onnx_compose *c, berth_value_id x) {
    static const struct {
        const char *name;
        berth_op_kind kind;
        double alpha, beta;
    } known[] = {{"Relu", BERTH_OP_RELU, 0, 0},
                 {"Tanh", BERTH_OP_TANH, 0, 0},
                 {"Sigmoid", BERTH_OP_SIGMOID, 0, 0},
                 {"LeakyRelu", BERTH_OP_LEAKY_RELU, 0.01, 0},
                 {"HardSigmoid", BERTH_OP_HARD_SIGMOID, 0.2, 0.5},
                 {"Elu", BERTH_OP_ELU, 1, 0},
                 {"ThresholdedRelu", BERTH_OP_THRESHOLDED_RELU, 1, 0},
                 {"Softplus", BERTH_OP_SOFTPLUS, 0, 0},
                 {"Softsign", BERTH_OP_SOFTSIGN, 0, 0},
                 {"Selu", BERTH_OP_SELU, 1.67326319217681884765625, 0}};
    const char *name = onnx_call_string(c->call, "activation", "");
    if (!*name) return x;
    double first = activation_param(c->call, "activation_alpha", 0, 0);
    if (strcmp(name, "Clip") == 0)
        return onnx_make3(c, BERTH_OP_CLIP, x, onnx_like(c, x, first),
                          onnx_like(c, x, activation_param(c->call, "activation_beta", 1, 0)));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (strcmp(name, known[i].name) != 0) continue;
        onnx_made made = onnx_start(c, known[i].kind, &x, 1, 1);
        if (known[i].alpha != 0)
            onnx_set_float(made, "alpha",
                           activation_param(c->call, "activation_alpha", 0, known[i].alpha));
        if (known[i].beta != 0)
            onnx_set_float(made, "beta",
                           activation_param(c->call, "activation_beta", 1, known[i].beta));
        if (known[i].kind == BERTH_OP_SELU)
            onnx_set_float(made, "gamma",
                           onnx_call_float(c->call, "activation_gamma", 1.05070102214813232421875));
        return onnx_finish(made);
    }
    onnx_compose_fail(c, BERTH_UNSUPPORTED, "activation \"%.32s\"", name);
    return BERTH_NONE;
}

berth_status onnx_build_ms_fused_conv(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 4);
    berth_value_id inputs[3], z = onnx_compose_input(&c, 3);
    for (uint32_t i = 0; i < 3; ++i) inputs[i] = onnx_compose_input(&c, i);
    onnx_made conv = onnx_start(&c, BERTH_OP_CONV, inputs, 3, 1);
    onnx_set_copied(conv);
    berth_value_id y = onnx_finish(conv);
    if (z != BERTH_NONE) y = onnx_add(&c, y, z);
    onnx_compose_output(&c, 0, activated(&c, y));
    return c.status;
}

berth_status onnx_build_ms_fused_gemm(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    onnx_made gemm = onnx_start(&c, BERTH_OP_GEMM, call->inputs, call->input_count, 1);
    onnx_set_copied(gemm);
    onnx_compose_output(&c, 0, activated(&c, onnx_finish(gemm)));
    return c.status;
}

// The last two dimensions exchanged.
static berth_value_id turned(onnx_compose *c, berth_value_id x) {
    int rank = onnx_compose_want_rank(c, x, "a matrix", 2, BERTH_MAX_RANK);
    int64_t order[BERTH_MAX_RANK];
    for (int i = 0; i < rank; ++i) order[i] = i;
    if (c->status) return BERTH_NONE;
    order[rank - 2] = rank - 1;
    order[rank - 1] = rank - 2;
    return onnx_transposed(c, x, order, (uint32_t)rank);
}

// The first dimension behind those of the batch: (rows, batch..., columns) to (batch..., rows, columns).
static berth_value_id batch_first(onnx_compose *c, berth_value_id x) {
    int rank = onnx_compose_want_rank(c, x, "a matrix", 2, BERTH_MAX_RANK);
    int64_t order[BERTH_MAX_RANK];
    if (c->status) return BERTH_NONE;
    for (int i = 0; i + 2 < rank; ++i) order[i] = i + 1;
    order[rank - 2] = 0;
    order[rank - 1] = rank - 1;
    return onnx_transposed(c, x, order, (uint32_t)rank);
}

berth_status onnx_build_ms_fused_matmul(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id a = onnx_compose_input(&c, 0), b = onnx_compose_input(&c, 1);
    double alpha = onnx_call_float(call, "alpha", 1);
    if (onnx_call_int(call, "transBatchA", 0)) a = batch_first(&c, a);
    if (onnx_call_int(call, "transBatchB", 0)) b = batch_first(&c, b);
    if (onnx_call_int(call, "transA", 0)) a = turned(&c, a);
    if (onnx_call_int(call, "transB", 0)) b = turned(&c, b);
    berth_value_id y = onnx_make2(&c, BERTH_OP_MATMUL, a, b);
    onnx_compose_output(&c, 0, alpha == 1 ? y : onnx_mul(&c, y, onnx_like(&c, y, alpha)));
    return c.status;
}

// ---- normalisation ----

static berth_value_id layer_norm(onnx_compose *c, berth_value_id x, berth_value_id scale,
                                 berth_value_id bias, double epsilon) {
    onnx_made made =
        onnx_start(c, BERTH_OP_LAYER_NORMALIZATION, (berth_value_id[]){x, scale, bias}, 3, 1);
    onnx_set_int(made, "axis", -1);
    onnx_set_float(made, "epsilon", epsilon);
    return onnx_finish(made);
}

static void refuse_statistics(onnx_compose *c, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i)
        if (onnx_compose_wants(c, i))
            onnx_compose_fail(c, BERTH_UNSUPPORTED, "output %u (statistics)", i);
}

// SkipLayerNormalization and SkipSimplifiedLayerNormalization: of the sum, which is output 3.
berth_status onnx_build_ms_skip_norm(onnx_call *call) {
    bool simple = strcmp(call->node->op_type, "SkipSimplifiedLayerNormalization") == 0;
    onnx_compose c = onnx_compose_begin(call, 3, simple ? 4 : 5);
    berth_value_id beta = simple ? BERTH_NONE : onnx_compose_input(&c, 3);
    berth_value_id bias = onnx_compose_input(&c, simple ? 3 : 4);
    double epsilon = onnx_call_float(call, "epsilon", simple ? 1e-6 : 1e-12);
    refuse_statistics(&c, 1, 3);
    berth_value_id sum = onnx_add(&c, onnx_compose_input(&c, 0), onnx_compose_input(&c, 1));
    if (bias != BERTH_NONE) sum = onnx_add(&c, sum, bias);
    berth_value_id scale = onnx_compose_input(&c, 2), y;
    if (simple) {
        y = onnx_rms_normalized(&c, sum, -1, epsilon, BERTH_DTYPE_F32);
        y = onnx_mul(&c, onnx_cast_to(&c, y, onnx_compose_dtype(&c, sum)), scale);
    } else {
        y = layer_norm(&c, sum, scale, beta, epsilon);
    }
    onnx_compose_output(&c, 0, y);
    onnx_compose_output(&c, 3, sum);
    return c.status;
}

berth_status onnx_build_ms_simplified_norm(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id x = onnx_compose_input(&c, 0);
    refuse_statistics(&c, 1, 2);
    berth_value_id y = onnx_rms_normalized(&c, x, onnx_call_int(call, "axis", -1),
                                           onnx_call_float(call, "epsilon", 1e-5), BERTH_DTYPE_F32);
    y = onnx_cast_to(&c, y, onnx_compose_dtype(&c, x));
    onnx_compose_output(&c, 0, onnx_mul(&c, y, onnx_compose_input(&c, 1)));
    return c.status;
}

// Words, places and segments.
berth_status onnx_build_ms_embed_norm(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 9);
    for (uint32_t i = 2; i < 7; ++i)
        if (i != 4 && onnx_compose_input(&c, i) == BERTH_NONE)
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "input %u is missing", i);
    berth_value_id ids = onnx_compose_input(&c, 0), segments = onnx_compose_input(&c, 1);
    berth_value_id mask = onnx_compose_input(&c, 7), given = onnx_compose_input(&c, 8);
    onnx_compose_want_rank(&c, ids, "input_ids", 2, 2);
    if ((segments == BERTH_NONE) != (onnx_compose_input(&c, 4) == BERTH_NONE))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "segment_ids and segment_embedding must be given together");
    berth_value_id places = given;
    if (given == BERTH_NONE) places = onnx_counting(&c, onnx_extent_of(&c, ids, 1));
    berth_value_id sum = onnx_picked(&c, onnx_compose_input(&c, 2), ids, 0);
    sum = onnx_add(&c, sum, onnx_picked(&c, onnx_compose_input(&c, 3), places, 0));
    if (segments != BERTH_NONE)
        sum = onnx_add(&c, sum, onnx_picked(&c, onnx_compose_input(&c, 4), segments, 0));
    onnx_compose_output(&c, 0,
                        layer_norm(&c, sum, onnx_compose_input(&c, 5), onnx_compose_input(&c, 6),
                                   onnx_call_float(call, "epsilon", 1e-12)));
    if (onnx_compose_wants(&c, 1)) {
        berth_value_id valid = mask != BERTH_NONE ? mask : onnx_mul(&c, ids, onnx_like(&c, ids, 0));
        valid = onnx_reduced(&c, BERTH_OP_REDUCE_SUM, valid, (int64_t[]){1}, 1, false);
        onnx_compose_output(&c, 1, onnx_cast_to(&c, valid, BERTH_DTYPE_I32));
    }
    onnx_compose_output(&c, 2, sum);
    return c.status;
}

// ---- quantised arithmetic ----

// The real numbers of inputs first, first + 1 (scale) and first + 2 (zero point).
static berth_value_id real(onnx_compose *c, uint32_t first) {
    berth_value_id inputs[3];
    for (uint32_t i = 0; i < 3; ++i) inputs[i] = onnx_compose_input(c, first + i);
    return onnx_make(c, BERTH_OP_DEQUANTIZE_LINEAR, inputs, 3);
}

// A result by inputs scale and scale + 1 (zero point); without a zero point it has `fallback`'s type.
static berth_value_id quantized(onnx_compose *c, berth_value_id value, uint32_t scale,
                                berth_value_id fallback) {
    berth_value_id inputs[3] = {value, onnx_compose_input(c, scale),
                                onnx_compose_input(c, scale + 1)};
    onnx_made made = onnx_start(c, BERTH_OP_QUANTIZE_LINEAR, inputs, 3, 1);
    if (inputs[2] == BERTH_NONE && !c->status)
        onnx_set_dtype(made, "output_dtype", onnx_compose_dtype(c, fallback));
    return onnx_finish(made);
}

static void need_inputs(onnx_compose *c, const uint32_t *indices, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (onnx_compose_input(c, indices[i]) == BERTH_NONE)
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "input %u is missing", indices[i]);
}

berth_status onnx_build_ms_qlinear_binary(onnx_call *call) {
    bool product = strcmp(call->node->op_type, "QLinearMul") == 0;
    onnx_compose c = onnx_compose_begin(call, 2, 8);
    need_inputs(&c, (uint32_t[]){0, 1, 3, 4, 6}, 5);
    berth_value_id a = real(&c, 0), b = real(&c, 3);
    berth_value_id y = product ? onnx_mul(&c, a, b) : onnx_add(&c, a, b);
    onnx_compose_output(&c, 0, quantized(&c, y, 6, onnx_compose_input(&c, 0)));
    return c.status;
}

// QLinearSigmoid, QLinearLeakyRelu, QLinearGlobalAveragePool, QLinearAveragePool, QLinearSoftmax: X, its
// scale and zero point, those of Y.
// (batch, ..., channels) to (batch, channels, ...), or back.
static berth_value_id with_channels(onnx_compose *c, berth_value_id x, bool last) {
    int rank = onnx_compose_want_rank(c, x, "the input", 3, BERTH_MAX_RANK);
    int64_t order[BERTH_MAX_RANK] = {0};
    if (c->status) return BERTH_NONE;
    for (int i = 1; i < rank; ++i) order[i] = last ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1;
    return onnx_transposed(c, x, order, (uint32_t)rank);
}

berth_status onnx_build_ms_qlinear_unary(onnx_call *call) {
    static const struct {
        const char *name;
        berth_op_kind kind;
    } known[] = {{"QLinearAveragePool", BERTH_OP_AVERAGE_POOL},
                 {"QLinearGlobalAveragePool", BERTH_OP_GLOBAL_AVERAGE_POOL},
                 {"QLinearLeakyRelu", BERTH_OP_LEAKY_RELU},
                 {"QLinearSigmoid", BERTH_OP_SIGMOID},
                 {"QLinearSoftmax", BERTH_OP_SOFTMAX}};
    onnx_compose c = onnx_compose_begin(call, 2, 5);
    need_inputs(&c, (uint32_t[]){0, 1, 3}, 3);
    const bool last = onnx_call_int(call, "channels_last", 0) != 0;
    berth_value_id x = real(&c, 0);
    if (last) x = with_channels(&c, x, false);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (strcmp(known[i].name, call->node->op_type) != 0) continue;
        onnx_made made = onnx_start(&c, known[i].kind, &x, 1, 1);
        onnx_set_copied(made);
        x = onnx_finish(made);
        break;
    }
    if (last) x = with_channels(&c, x, true);
    onnx_compose_output(&c, 0, quantized(&c, x, 3, onnx_compose_input(&c, 0)));
    return c.status;
}

berth_status onnx_build_ms_qlinear_concat(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 5, UINT32_MAX);
    uint32_t count = call->input_count < 2 ? 0 : (call->input_count - 2 + 2) / 3;
    berth_value_id *parts = berth_arena_new_array(call->im->scratch, berth_value_id, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        need_inputs(&c, (uint32_t[]){2 + 3 * i, 3 + 3 * i}, 2);
        parts[i] = real(&c, 2 + 3 * i);
    }
    berth_value_id y = onnx_concatenated(&c, parts, count, onnx_call_int(call, "axis", 0));
    onnx_compose_output(&c, 0, quantized(&c, y, 0, onnx_compose_input(&c, 2)));
    return c.status;
}

// Condition, then each operand with its scale and zero point, then those of the result.
berth_status onnx_build_ms_qlinear_where(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 8, 9);
    berth_value_id y = onnx_where(&c, onnx_compose_input(&c, 0), real(&c, 1), real(&c, 4));
    onnx_compose_output(&c, 0, quantized(&c, y, 7, onnx_compose_input(&c, 1)));
    return c.status;
}

// A and B with their scales and zero points, of B one or one per column; C of i32 in units of both
// scales; scale and zero point of Y, which is real without them. alpha is for the product and C.
berth_status onnx_build_ms_qgemm(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 6, 9);
    bool across = onnx_call_int(call, "transB", 0) != 0;
    double alpha = onnx_call_float(call, "alpha", 1);
    berth_value_id b[3], bias = onnx_compose_input(&c, 6);
    for (uint32_t i = 0; i < 3; ++i) b[i] = onnx_compose_input(&c, 3 + i);
    onnx_made made = onnx_start(&c, BERTH_OP_DEQUANTIZE_LINEAR, b, 3, 1);
    onnx_set_int(made, "axis", across ? 0 : 1);
    berth_value_id operands[3] = {real(&c, 0), onnx_finish(made)};
    if (bias != BERTH_NONE) {
        berth_value_id unit = onnx_mul(&c, onnx_compose_input(&c, 1), b[1]);
        operands[2] = onnx_mul(&c, onnx_cast_to(&c, bias, onnx_compose_dtype(&c, unit)), unit);
    }
    onnx_made gemm = onnx_start(&c, BERTH_OP_GEMM, operands, bias == BERTH_NONE ? 2 : 3, 1);
    onnx_set_int(gemm, "transA", onnx_call_int(call, "transA", 0));
    onnx_set_int(gemm, "transB", across);
    onnx_set_float(gemm, "alpha", alpha);
    onnx_set_float(gemm, "beta", alpha);
    berth_value_id y = onnx_finish(gemm);
    bool real_result = onnx_compose_input(&c, 7) == BERTH_NONE;
    onnx_compose_output(&c, 0, real_result ? y : quantized(&c, y, 7, onnx_compose_input(&c, 0)));
    return c.status;
}

// The product of integers as real numbers: (a - a_zero)(b - b_zero) scale + bias. `scale` is one, or
// one per column.
static berth_value_id integer_product(onnx_compose *c, const berth_value_id operands[4],
                                      berth_value_id scale, berth_value_id bias) {
    berth_value_id y = onnx_make(c, BERTH_OP_MATMUL_INTEGER, operands, 4);
    y = onnx_mul(c, onnx_cast_to(c, y, onnx_compose_dtype(c, scale)), scale);
    return bias == BERTH_NONE ? y : onnx_add(c, y, bias);
}

// A, B, the scale of B, its zero point, the bias: A is quantised as DynamicQuantizeLinear does.
berth_status onnx_build_ms_dynamic_matmul(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 5);
    berth_value_id a = onnx_compose_input(&c, 0);
    onnx_made made = onnx_start(&c, BERTH_OP_DYNAMIC_QUANTIZE_LINEAR, &a, 1, 3);
    onnx_finish(made);
    berth_value_id operands[4] = {onnx_result(made, 0), onnx_compose_input(&c, 1),
                                  onnx_result(made, 2), onnx_compose_input(&c, 3)};
    berth_value_id scale = onnx_mul(&c, onnx_result(made, 1), onnx_compose_input(&c, 2));
    onnx_compose_output(&c, 0, integer_product(&c, operands, scale, onnx_compose_input(&c, 4)));
    return c.status;
}

// A, B, their scales, their zero points, the bias.
berth_status onnx_build_ms_integer_to_float(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 4, 7);
    berth_value_id operands[4] = {onnx_compose_input(&c, 0), onnx_compose_input(&c, 1),
                                  onnx_compose_input(&c, 4), onnx_compose_input(&c, 5)};
    berth_value_id scale = onnx_mul(&c, onnx_compose_input(&c, 2), onnx_compose_input(&c, 3));
    onnx_compose_output(&c, 0, integer_product(&c, operands, scale, onnx_compose_input(&c, 6)));
    return c.status;
}

// ---- DynamicQuantizeLSTM ----

// A scale or zero point by direction, or by direction and gate: (directions, gates).
static berth_value_id spread(onnx_compose *c, berth_value_id value, const int64_t dims[2]) {
    if (onnx_compose_rank(c, value) == 1) value = onnx_unsqueezed(c, value, 1);
    return onnx_make2(c, BERTH_OP_EXPAND, value, onnx_int_list(c, dims, 2));
}

typedef struct lstm_weights {
    berth_value_id integers;  // (directions, inputs, gates)
    berth_value_id scale;     // (directions, gates)
    berth_value_id zero;      // of the type of integers; BERTH_NONE: none that is not 0
} lstm_weights;

static bool is_zero(const berth_tensor *known) {
    int64_t count = known ? berth_tensor_element_count(known) : 0;
    for (int64_t i = 0; i < count; ++i)
        if (berth_tensor_get_i64(known, i) != 0) return false;
    return known != NULL;
}

static lstm_weights read_lstm_weights(onnx_compose *c, uint32_t weights, uint32_t scale,
                                      const int64_t dims[2]) {
    berth_value_id zero = onnx_compose_input(c, scale + 1);
    if (zero != BERTH_NONE && is_zero(onnx_call_constant(c->call, zero))) zero = BERTH_NONE;
    return (lstm_weights){
        .integers = onnx_compose_input(c, weights),
        .scale = spread(c, onnx_compose_input(c, scale), dims),
        .zero = zero == BERTH_NONE ? zero : spread(c, zero, dims),
    };
}

// x W + both biases of all steps: (sequence, batch, directions * gates). x is quantised as
// DynamicQuantizeLinear does.
static berth_value_id lstm_products(onnx_compose *c, const lstm_weights *w, const int64_t dims[2]) {
    int64_t columns = dims[0] * dims[1];
    berth_value_id x = onnx_compose_input(c, 0), bias = onnx_compose_input(c, 3);
    onnx_made made = onnx_start(c, BERTH_OP_DYNAMIC_QUANTIZE_LINEAR, &x, 1, 3);
    onnx_finish(made);
    berth_value_id weights = onnx_transposed(c, w->integers, (int64_t[]){1, 0, 2}, 3);
    berth_value_id operands[4] = {onnx_result(made, 0),
                                  onnx_reshaped(c, weights, (int64_t[]){0, columns}, 2),
                                  onnx_result(made, 2), w->zero};
    if (w->zero != BERTH_NONE) operands[3] = onnx_reshaped(c, w->zero, &columns, 1);
    berth_value_id scale = onnx_reshaped(c, w->scale, &columns, 1);
    if (bias != BERTH_NONE)
        bias = onnx_reshaped(c,
                             onnx_add(c, onnx_sliced(c, bias, 1, 0, dims[1], 1),
                                      onnx_sliced(c, bias, 1, dims[1], INT64_MAX, 1)),
                             &columns, 1);
    return integer_product(c, operands, onnx_mul(c, onnx_result(made, 1), scale), bias);
}

// R as lstm_integer has it, (directions, gates, inputs) of i8, its rows' sums and zero points.
static void lstm_recurrence(onnx_compose *c, const lstm_weights *r, const int64_t dims[2],
                            berth_value_id operands[9]) {
    berth_value_id integers = onnx_transposed(c, r->integers, (int64_t[]){0, 2, 1}, 3);
    berth_value_id zero = r->zero;
    if (zero != BERTH_NONE) zero = onnx_cast_to(c, zero, BERTH_DTYPE_I32);
    berth_value_id wide = onnx_cast_to(c, integers, BERTH_DTYPE_I32);
    if (onnx_compose_dtype(c, r->integers) == BERTH_DTYPE_U8) {
        wide = onnx_sub(c, wide, onnx_like(c, wide, 128));
        integers = onnx_cast_to(c, wide, BERTH_DTYPE_I8);
        zero = zero == BERTH_NONE ? spread(c, onnx_scalar(c, BERTH_DTYPE_I32, -128), dims)
                                  : onnx_sub(c, zero, onnx_like(c, zero, 128));
    }
    operands[1] = r->scale;
    operands[2] = integers;
    operands[3] = onnx_reduced(c, BERTH_OP_REDUCE_SUM, wide, (int64_t[]){2}, 1, false);
    operands[8] = zero;
}

// LSTM's inputs, then scale and zero point of both weights. ONNX Runtime quantises the hidden states in
// each step by the range of all rows of the batch that one thread takes; here each row has its own.
berth_status onnx_build_ms_dynamic_lstm(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 12);
    if (onnx_compose_input(&c, 8) == BERTH_NONE || onnx_compose_input(&c, 10) == BERTH_NONE)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "the scales of its weights are missing");
    onnx_compose_want_rank(&c, onnx_compose_input(&c, 2), "R", 3, 3);
    const int64_t dims[2] = {onnx_compose_known_extent(&c, onnx_compose_input(&c, 2), "R", 0),
                             onnx_compose_known_extent(&c, onnx_compose_input(&c, 2), "R", 2)};
    if (c.status) return c.status;
    berth_value_id operands[9];
    lstm_weights w = read_lstm_weights(&c, 1, 8, dims), r = read_lstm_weights(&c, 2, 10, dims);
    operands[0] = lstm_products(&c, &w, dims);
    for (uint32_t i = 4; i < 8; ++i) operands[i] = onnx_compose_input(&c, i);
    lstm_recurrence(&c, &r, dims, operands);
    onnx_made made = onnx_start(&c, BERTH_OP_LSTM_INTEGER, operands, 9, 3);
    onnx_set_copied(made);
    onnx_finish(made);
    for (uint32_t i = 0; i < 3; ++i)
        if (onnx_compose_wants(&c, i)) onnx_compose_output(&c, i, onnx_result(made, i));
    return c.status;
}

// ---- MatMulNBits ----

// What lies row by row for each of n columns, as rows of columns.
static berth_value_id by_columns(onnx_compose *c, berth_value_id value, int64_t n, int64_t rows) {
    value = onnx_reshaped(c, value, (int64_t[]){n, rows}, 2);
    return onnx_transposed(c, value, (int64_t[]){1, 0}, 2);
}

// Zero points (n, groups), or BERTH_NONE: bytes hold several.
static berth_value_id zero_points(onnx_compose *c, berth_value_id zero, int64_t n, int64_t groups,
                                  int64_t bits) {
    if (zero == BERTH_NONE) return zero;
    if (onnx_compose_dtype(c, zero) != BERTH_DTYPE_U8)
        return onnx_reshaped(c, onnx_cast_to(c, zero, BERTH_DTYPE_F32), (int64_t[]){n, groups}, 2);
    zero = onnx_reshaped(c, zero, (int64_t[]){n, (groups * bits + 7) / 8}, 2);
    return onnx_sliced(c, onnx_unpacked(c, zero, bits), 1, 0, groups, 1);
}

// Weights (K, N) of f32 whose groups are not blocks: `groups_of` (K) says which scale and zero point each
// row has.
static berth_value_id weights_in_groups(onnx_compose *c, berth_value_id groups_of,
                                        berth_value_id zero, int64_t k, int64_t n, int64_t groups) {
    const int64_t bits = onnx_call_int(c->call, "bits", 4);
    const int64_t block = onnx_call_int(c->call, "block_size", 0);
    berth_value_id w =
        onnx_reshaped(c, onnx_compose_input(c, 1), (int64_t[]){n, groups * (block * bits / 8)}, 2);
    w = onnx_cast_to(c, onnx_sliced(c, onnx_unpacked(c, w, bits), 1, 0, k, 1), BERTH_DTYPE_F32);
    berth_value_id scale = onnx_cast_to(c, onnx_compose_input(c, 2), BERTH_DTYPE_F32);
    scale = onnx_picked(c, onnx_reshaped(c, scale, (int64_t[]){n, groups}, 2), groups_of, 1);
    if (zero != BERTH_NONE)
        zero = onnx_picked(c, onnx_cast_to(c, zero, BERTH_DTYPE_F32), groups_of, 1);
    else
        zero = onnx_like(c, w, (double)((int64_t)1 << (bits - 1)));
    w = onnx_mul(c, onnx_sub(c, w, zero), scale);
    return onnx_transposed(c, w, (int64_t[]){1, 0}, 2);
}

// The groups of the rows; BERTH_NONE where they are the blocks, one after the other.
static berth_value_id groups_of_rows(onnx_compose *c, int64_t k, int64_t block) {
    berth_value_id given = onnx_compose_input(c, 4);
    const berth_tensor *known = given == BERTH_NONE ? NULL : onnx_call_constant(c->call, given);
    if (!known || berth_tensor_element_count(known) != k) return given;
    for (int64_t i = 0; i < k; ++i)
        if (berth_tensor_get_i64(known, i) != i / block) return given;
    return BERTH_NONE;
}

// A times the transpose of weights (N, K), which are (B - zero) scale in blocks along K.
berth_status onnx_build_ms_matmul_nbits(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 6);
    int64_t k = onnx_call_int(call, "K", 0), n = onnx_call_int(call, "N", 0);
    int64_t bits = onnx_call_int(call, "bits", 4), block = onnx_call_int(call, "block_size", 0);
    berth_value_id a = onnx_compose_input(&c, 0), zero = onnx_compose_input(&c, 3);
    berth_value_id bias = onnx_compose_input(&c, 5);
    if (k < 1 || n < 1 || block < 1 || k > INT32_MAX || n > INT32_MAX || block > INT32_MAX ||
        (bits != 2 && bits != 4 && bits != 8) || block * bits % 8)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "K %lld, N %lld, %lld bits in blocks of %lld",
                          (long long)k, (long long)n, (long long)bits, (long long)block);
    if (c.status) return c.status;
    berth_dtype own = onnx_compose_dtype(&c, a);
    int64_t groups = (k + block - 1) / block;
    berth_value_id groups_of = groups_of_rows(&c, k, block), y;
    zero = zero_points(&c, zero, n, groups, bits);
    if (groups_of != BERTH_NONE) {
        y = onnx_make2(&c, BERTH_OP_MATMUL, onnx_cast_to(&c, a, BERTH_DTYPE_F32),
                       weights_in_groups(&c, groups_of, zero, k, n, groups));
        if (bias != BERTH_NONE) y = onnx_add(&c, y, onnx_cast_to(&c, bias, BERTH_DTYPE_F32));
        onnx_compose_output(&c, 0, onnx_cast_to(&c, y, own));
        return c.status;
    }
    berth_value_id inputs[4] = {onnx_cast_to(&c, a, BERTH_DTYPE_F32)};
    inputs[1] = by_columns(&c, onnx_compose_input(&c, 1), n, groups * (block * bits / 8));
    inputs[2] =
        by_columns(&c, onnx_cast_to(&c, onnx_compose_input(&c, 2), BERTH_DTYPE_F32), n, groups);
    if (zero != BERTH_NONE) inputs[3] = by_columns(&c, zero, n, groups);
    onnx_made made = onnx_start(&c, BERTH_OP_MATMUL_BITS, inputs, zero == BERTH_NONE ? 3 : 4, 1);
    onnx_set_int(made, "bits", bits);
    onnx_set_int(made, "block_size", block);
    y = onnx_finish(made);
    if (bias != BERTH_NONE) y = onnx_add(&c, y, onnx_cast_to(&c, bias, BERTH_DTYPE_F32));
    onnx_compose_output(&c, 0, onnx_cast_to(&c, y, own));
    return c.status;
}
