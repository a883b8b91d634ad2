#include "compiler/passes/quantized.h"

#include "compiler/passes/rewrite.h"
#include "compiler/rules.h"

typedef struct splitter {
    berth_rewriter rewriter;
    berth_op_id at;  // the operation that is taken apart
    berth_op op;
} splitter;

static berth_graph *graph_of(const splitter *s) {
    return berth_graph_get(s->rewriter.module, s->rewriter.function);
}

static const berth_tensor *constant(splitter *s, uint32_t i) {
    return i < s->op.input_count && s->op.inputs[i] != BERTH_NONE
               ? berth_rewriter_constant(&s->rewriter, s->op.inputs[i])
               : NULL;
}

static bool is_scalar(const berth_tensor *tensor) {
    return tensor && berth_tensor_element_count(tensor) == 1;
}

static berth_status add(splitter *s, berth_op_kind kind, const berth_value_id *inputs,
                        uint32_t count, const berth_attrs *attrs, berth_value_id *out) {
    BERTH_TRY(
        berth_rewriter_insert(&s->rewriter, s->at, kind, inputs, count, attrs, s->op.loc, out));
    berth_graph *graph = graph_of(s);
    graph->values.data[*out].device = graph->values.data[s->op.outputs[0]].device;
    return BERTH_OK;
}

static berth_value_id add_constant(splitter *s, const berth_tensor *tensor) {
    berth_value_id value = berth_rewriter_insert_constant(&s->rewriter, s->at, tensor, s->op.loc);
    berth_graph *graph = graph_of(s);
    graph->values.data[value].device = graph->values.data[s->op.outputs[0]].device;
    return value;
}

// Scale of x times the scales of w, along dimension `dim` of a result of `rank` dimensions.
static berth_value_id scales(splitter *s, int dim, int rank) {
    const berth_tensor *x = constant(s, 1);
    const berth_tensor *w = constant(s, 4);
    int64_t count = berth_tensor_element_count(w);
    int64_t dims[BERTH_MAX_RANK];
    for (int d = 0; d < rank; ++d) dims[d] = d == dim ? count : 1;
    berth_tensor product = berth_tensor_create(s->rewriter.module->arena, BERTH_DTYPE_F32,
                                               count == 1 ? 0 : rank, dims);
    float scale = (float)berth_tensor_get_f64(x, 0);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_f64(&product, i, (double)(scale * (float)berth_tensor_get_f64(w, i)));
    return add_constant(s, &product);
}

// The bias of a convolution along dimension 1.
static berth_status add_bias(splitter *s, int rank, berth_value_id *sum) {
    const berth_tensor *bias = constant(s, 8);
    if (!bias) return BERTH_OK;
    berth_tensor shaped = *bias;
    shaped.rank = rank;
    for (int d = 0; d < rank; ++d) shaped.dims[d] = d == 1 ? bias->dims[0] : 1;
    berth_value_id inputs[2] = {*sum, add_constant(s, &shaped)};
    return add(s, BERTH_OP_ADD, inputs, 2, NULL, sum);
}

static bool splits(splitter *s, int rank, int64_t columns) {
    const berth_tensor *w_scale = constant(s, 4);
    bool has_bias = s->op.input_count > 8 && s->op.inputs[8] != BERTH_NONE;
    const berth_tensor *bias = constant(s, 8);
    if (rank < 2 || !is_scalar(constant(s, 1)) || !is_scalar(constant(s, 2)) || !w_scale)
        return false;
    if (has_bias && (!bias || bias->rank != 1 || bias->dtype != BERTH_DTYPE_I32)) return false;
    if (!is_scalar(constant(s, 6)) || !is_scalar(constant(s, 7))) return false;
    int64_t count = berth_tensor_element_count(w_scale);
    bool conv = s->op.kind == BERTH_OP_QLINEAR_CONV;
    if (conv && !constant(s, 3)) return false;
    return count == 1 || (w_scale->rank == 1 && count == columns);
}

// Operands x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias. The operation itself
// becomes the last part.
static berth_status split(splitter *s) {
    bool conv = s->op.kind == BERTH_OP_QLINEAR_CONV;
    const berth_type type =
        *berth_type_get(s->rewriter.module, graph_of(s)->values.data[s->op.outputs[0]].type);
    if (!berth_type_is_static(&type) || type.rank < 2) return BERTH_OK;
    int dim = conv ? 1 : type.rank - 1;
    if (!splits(s, type.rank, type.dims[dim])) return BERTH_OK;
    berth_value_id inputs[4] = {s->op.inputs[0], s->op.inputs[3], s->op.inputs[2], s->op.inputs[5]};
    berth_value_id sum = BERTH_NONE;
    BERTH_TRY(add(s, conv ? BERTH_OP_CONV_INTEGER : BERTH_OP_MATMUL_INTEGER, inputs, 4,
                  &s->op.attrs, &sum));
    if (conv) BERTH_TRY(add_bias(s, type.rank, &sum));
    berth_attrs cast = {0};
    berth_attrs_set(s->rewriter.module, &cast, "to",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = BERTH_DTYPE_F32});
    BERTH_TRY(add(s, BERTH_OP_CAST, &sum, 1, &cast, &sum));
    berth_value_id factors[2] = {sum, scales(s, dim, type.rank)};
    BERTH_TRY(add(s, BERTH_OP_MUL, factors, 2, NULL, &sum));
    berth_op *self = &graph_of(s)->ops.data[s->at];
    self->kind = BERTH_OP_QUANTIZE_LINEAR;
    self->inputs[0] = sum;
    self->inputs[1] = s->op.inputs[6];
    self->inputs[2] = s->op.inputs[7];
    self->input_count = 3;
    self->attrs = (berth_attrs){0};
    return BERTH_OK;
}

// dequantize_linear, average_pool, quantize_linear: operands x, x_scale, x_zero, y_scale, y_zero.
static berth_status split_average(splitter *s) {
    berth_value_id x = BERTH_NONE;
    BERTH_TRY(add(s, BERTH_OP_DEQUANTIZE_LINEAR, s->op.inputs, 3, NULL, &x));
    BERTH_TRY(add(s, BERTH_OP_AVERAGE_POOL, &x, 1, &s->op.attrs, &x));
    berth_op *self = &graph_of(s)->ops.data[s->at];
    self->kind = BERTH_OP_QUANTIZE_LINEAR;
    self->inputs[0] = x;
    self->inputs[1] = s->op.inputs[3];
    self->inputs[2] = s->op.inputs[4];
    self->input_count = 3;
    self->attrs = (berth_attrs){0};
    return BERTH_OK;
}

static bool stays_whole(const splitter *s, const berth_multi_target *target) {
    berth_rules_question question;
    const berth_kind_rules *rules = berth_rules_of(s->rewriter.module, s->rewriter.function, s->at,
                                                   target, s->rewriter.module->arena, &question);
    return rules && rules->whole_quantized;
}

berth_status berth_pass_split_quantized(berth_module *module, berth_func_id main,
                                        const berth_multi_target *target) {
    splitter s = {0};
    const berth_graph *graph = berth_graph_get(module, main);
    uint32_t count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_new_array(module->arena, berth_op_id, count + 1);
    for (uint32_t i = 0; i < count; ++i) ops[i] = graph->regions.data[0].ops.data[i];
    berth_rewriter_begin(&s.rewriter, module, main);
    for (uint32_t i = 0; i < count; ++i) {
        s.at = ops[i];
        s.op = graph_of(&s)->ops.data[ops[i]];
        bool average = s.op.kind == BERTH_OP_QLINEAR_AVERAGE_POOL;
        if (!average && s.op.kind != BERTH_OP_QLINEAR_CONV && s.op.kind != BERTH_OP_QLINEAR_MATMUL)
            continue;
        if (!stays_whole(&s, target)) BERTH_TRY(average ? split_average(&s) : split(&s));
    }
    berth_rewriter_finish(&s.rewriter);
    return BERTH_OK;
}
