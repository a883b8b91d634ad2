// Operation → lowering. A row that is missing is an operation without lowering (berth_lower_check
// says so).
#include "compiler/extend.h"
#include "compiler/lower/families.h"
#include "ir/extend.h"

#define ELEMENT(kind, fn) [BERTH_OP_##kind] = {.element = berth_lower__##fn}
#define GRID(kind, fn) [BERTH_OP_##kind] = {.nest = berth_lower__##fn, .any_layout = true}
#define PRODUCT(kind, fn)                                                                          \
    [BERTH_OP_##                                                                                   \
        kind] = {.nest = berth_lower__##fn, .sum = berth_lower__##fn##_sum, .any_layout = true}
#define NEST(kind, fn) [BERTH_OP_##kind] = {.nest = berth_lower__##fn}
#define IN_BUFFER(kind, fn) [BERTH_OP_##kind] = {.nest = berth_lower__##fn, .in_buffer = true}

static const berth_lower_row rows[BERTH_OP_COUNT] = {
    ELEMENT(RELAYOUT, same),
    ELEMENT(ON_DEVICE, same),
    ELEMENT(DEVICE_COPY, same),
    ELEMENT(IDENTITY, same),
    // one operand
    ELEMENT(ABS, unary),
    ELEMENT(NEG, unary),
    ELEMENT(SIGN, unary),
    ELEMENT(CEIL, unary),
    ELEMENT(FLOOR, unary),
    ELEMENT(ROUND, unary),
    ELEMENT(SQRT, unary),
    ELEMENT(RECIPROCAL, unary),
    ELEMENT(EXP, unary),
    ELEMENT(LOG, unary),
    ELEMENT(ERF, unary),
    ELEMENT(SIN, unary),
    ELEMENT(COS, unary),
    ELEMENT(TAN, unary),
    ELEMENT(ASIN, unary),
    ELEMENT(ACOS, unary),
    ELEMENT(ATAN, unary),
    ELEMENT(SINH, unary),
    ELEMENT(COSH, unary),
    ELEMENT(TANH, unary),
    ELEMENT(ASINH, unary),
    ELEMENT(ACOSH, unary),
    ELEMENT(ATANH, unary),
    ELEMENT(SIGMOID, unary),
    ELEMENT(NOT, unary),
    ELEMENT(BITWISE_NOT, unary),
    ELEMENT(IS_NAN, unary),
    ELEMENT(IS_INF, is_inf),
    ELEMENT(CAST, cast),
    ELEMENT(RELU, activation),
    ELEMENT(LEAKY_RELU, activation),
    ELEMENT(THRESHOLDED_RELU, activation),
    ELEMENT(ELU, activation),
    ELEMENT(SELU, activation),
    ELEMENT(CELU, activation),
    ELEMENT(HARD_SIGMOID, activation),
    ELEMENT(HARD_SWISH, activation),
    ELEMENT(SOFTPLUS, activation),
    ELEMENT(SOFTSIGN, activation),
    ELEMENT(SHRINK, activation),
    ELEMENT(GELU, activation),
    ELEMENT(MISH, activation),
    // several operands
    ELEMENT(ADD, binary),
    ELEMENT(SUB, binary),
    ELEMENT(MUL, binary),
    ELEMENT(DIV, binary),
    ELEMENT(POW, pow),
    ELEMENT(MOD, mod),
    ELEMENT(BIT_SHIFT, binary),
    ELEMENT(BITWISE_AND, binary),
    ELEMENT(BITWISE_OR, binary),
    ELEMENT(BITWISE_XOR, binary),
    ELEMENT(AND, binary),
    ELEMENT(OR, binary),
    ELEMENT(XOR, binary),
    ELEMENT(PRELU, prelu),
    ELEMENT(EQUAL, binary),
    ELEMENT(GREATER, binary),
    ELEMENT(GREATER_OR_EQUAL, binary),
    ELEMENT(LESS, binary),
    ELEMENT(LESS_OR_EQUAL, binary),
    ELEMENT(MIN, variadic),
    ELEMENT(MAX, variadic),
    ELEMENT(SUM, variadic),
    ELEMENT(MEAN, variadic),
    ELEMENT(CLIP, clip),
    ELEMENT(WHERE, where),
    ELEMENT(QLINEAR_ADD, qlinear_add),
    ELEMENT(QUANTIZE_LINEAR, quantize),
    ELEMENT(DEQUANTIZE_LINEAR, dequantize),
    ELEMENT(BATCH_NORMALIZATION, batch_norm),
    // movement
    ELEMENT(RESHAPE, reshape),
    ELEMENT(FLATTEN, reshape),
    ELEMENT(SQUEEZE, reshape),
    ELEMENT(UNSQUEEZE, reshape),
    ELEMENT(TRANSPOSE, transpose),
    ELEMENT(EXPAND, expand),
    ELEMENT(TILE, tile),
    ELEMENT(CONCAT, concat),
    [BERTH_OP_APPEND] = {.nest = berth_lower__append, .any_layout = true, .in_buffer = true},
    ELEMENT(SPLIT, split),
    ELEMENT(SLICE, slice),
    ELEMENT(PAD, pad),
    ELEMENT(DEPTH_TO_SPACE, depth_to_space),
    ELEMENT(SPACE_TO_DEPTH, space_to_depth),
    ELEMENT(REVERSE_SEQUENCE, reverse_sequence),
    ELEMENT(TRILU, trilu),
    ELEMENT(EYE_LIKE, eye_like),
    ELEMENT(RESIZE, resize),
    // matrices, convolutions, pools
    PRODUCT(MATMUL, matmul),
    PRODUCT(GEMM, gemm),
    PRODUCT(MATMUL_INTEGER, matmul_integer),
    PRODUCT(MATMUL_BITS, matmul_bits),
    GRID(QLINEAR_MATMUL, qlinear_matmul),
    GRID(EINSUM, einsum),
    NEST(DET, det),
    GRID(CONV, conv),
    GRID(CONV_INTEGER, conv_integer),
    GRID(QLINEAR_CONV, qlinear_conv),
    GRID(CONV_TRANSPOSE, conv_transpose),
    GRID(MAX_POOL, max_pool),
    GRID(AVERAGE_POOL, average_pool),
    GRID(QLINEAR_AVERAGE_POOL, qlinear_average_pool),
    GRID(LP_POOL, lp_pool),
    GRID(GLOBAL_MAX_POOL, global_pool),
    GRID(GLOBAL_AVERAGE_POOL, global_pool),
    GRID(GLOBAL_LP_POOL, global_pool),
    IN_BUFFER(MAX_UNPOOL, max_unpool),
    // addressing by data, generated values
    ELEMENT(GATHER, gather),
    ELEMENT(GATHER_ELEMENTS, gather_elements),
    ELEMENT(GATHER_ND, gather_nd),
    ELEMENT(ONE_HOT, one_hot),
    ELEMENT(CONSTANT_OF_SHAPE, constant_of_shape),
    ELEMENT(RANGE, range),
    ELEMENT(HANN_WINDOW, window),
    ELEMENT(HAMMING_WINDOW, window),
    ELEMENT(BLACKMAN_WINDOW, window),
    IN_BUFFER(SCATTER_ELEMENTS, scatter_elements),
    IN_BUFFER(SCATTER_ND, scatter_nd),
    // normalisations
    GRID(LRN, lrn),
    NEST(INSTANCE_NORMALIZATION, instance_norm),
    NEST(LAYER_NORMALIZATION, layer_norm),
    NEST(GROUP_NORMALIZATION, group_norm),
    NEST(MEAN_VARIANCE_NORMALIZATION, mean_variance_norm),
    NEST(DYNAMIC_QUANTIZE_LINEAR, dynamic_quantize),
    // sampling, recurrent, spectral
    ELEMENT(GRID_SAMPLE, grid_sample),
    GRID(ROI_ALIGN, roi_align),
    GRID(MAX_ROI_POOL, max_roi_pool),
    NEST(RNN, recurrent),
    NEST(GRU, recurrent),
    NEST(LSTM, recurrent),
    NEST(LSTM_INTEGER, recurrent),
    NEST(DFT, dft),
    NEST(STFT, stft),
    // Winograd convolution
    NEST(WINOGRAD_WEIGHTS, winograd_weights),
    GRID(WINOGRAD_INPUT, winograd_input),
    GRID(WINOGRAD_MATMUL, matmul),
    GRID(WINOGRAD_OUTPUT, winograd_output),
    GRID(WINOGRAD_CONV, winograd_conv),
    // rows and reductions
    NEST(SOFTMAX, softmax),
    NEST(LOG_SOFTMAX, softmax),
    NEST(HARDMAX, hardmax),
    NEST(LP_NORMALIZATION, lp_norm),
    GRID(REDUCE_SUM, reduce),
    GRID(REDUCE_MEAN, reduce),
    GRID(REDUCE_MAX, reduce),
    GRID(REDUCE_MIN, reduce),
    GRID(REDUCE_PROD, reduce),
    GRID(REDUCE_L1, reduce),
    GRID(REDUCE_L2, reduce),
    GRID(REDUCE_LOG_SUM, reduce),
    GRID(REDUCE_LOG_SUM_EXP, reduce),
    GRID(REDUCE_SUM_SQUARE, reduce),
    GRID(ARG_MAX, arg_reduce),
    GRID(ARG_MIN, arg_reduce),
    NEST(CUM_SUM, cumulative),
    NEST(CUM_PROD, cumulative),
    NEST(TOP_K, top_k),
};

static struct {
    berth_op_kind kind;
    const berth_lower_row *row;
} registered[BERTH_EXTEND_MAX];
static uint32_t registered_count;

const berth_lower_row *berth_lower_registered(berth_op_kind kind) {
    for (uint32_t i = 0; i < registered_count; ++i)
        if (registered[i].kind == kind) return registered[i].row;
    return NULL;
}

berth_status berth_lower_register(berth_op_kind kind, const berth_lower_row *row) {
    const char *name = berth_op_facts_get(kind)->name;
    if (!berth_op_definition_get(kind) || berth_lower_registered(kind))
        return berth_status_make(BERTH_ALREADY_EXISTS, "operation %s has a lowering already", name);
    if (registered_count == BERTH_EXTEND_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d lowerings are registered",
                                 BERTH_EXTEND_MAX);
    registered[registered_count].kind = kind;
    registered[registered_count++].row = row;
    return BERTH_OK;
}

const berth_lower_row *berth_lower__row(berth_op_kind kind) {
    if (kind >= BERTH_OP_COUNT) return berth_lower_registered(kind);
    const berth_lower_row *row = &rows[kind];
    return row->element || row->nest ? row : NULL;
}
