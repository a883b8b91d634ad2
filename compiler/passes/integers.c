#include "compiler/passes/integers.h"

#include <math.h>

static berth_op op_at(const berth_rewriter *r, berth_op_id id) {
    return berth_graph_get(r->module, r->function)->ops.data[id];
}

static const berth_type *type_of(const berth_rewriter *r, berth_value_id value) {
    return berth_type_get(r->module,
                          berth_graph_get(r->module, r->function)->values.data[value].type);
}

static bool is_8_bit(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_I8 || dtype == BERTH_DTYPE_U8;
}

bool berth_quantized_get(berth_rewriter *r, berth_value_id value, berth_quantized *out) {
    const berth_op *op = berth_rewriter_def(r, value);
    if (!op || op->kind != BERTH_OP_DEQUANTIZE_LINEAR) return false;
    bool has_zero = op->input_count > 2 && op->inputs[2] != BERTH_NONE;
    int rank = type_of(r, op->outputs[0])->rank;
    *out = (berth_quantized){
        .value = berth_rewriter_resolve(r, op->inputs[0]),
        .scale_value = op->inputs[1],
        .zero_value = has_zero ? op->inputs[2] : BERTH_NONE,
        .scale = berth_rewriter_constant(r, op->inputs[1]),
        .zero = has_zero ? berth_rewriter_constant(r, op->inputs[2]) : NULL,
        .axis = (int)berth_attrs_int(r->module, &op->attrs, "axis", 1),
    };
    if (out->axis < 0) out->axis += rank;
    if (!out->scale || out->scale->dtype != BERTH_DTYPE_F32 || (has_zero && !out->zero))
        return false;
    if (!is_8_bit(type_of(r, out->value)->dtype) || out->scale->rank > 1) return false;
    return berth_attrs_int(r->module, &op->attrs, "block_size", 0) == 0;
}

bool berth_quantized_is_uniform(const berth_quantized *q) {
    if (berth_tensor_element_count(q->scale) != 1) return false;
    if (q->zero && berth_tensor_element_count(q->zero) != 1) return false;
    double scale = berth_tensor_get_f64(q->scale, 0);
    return isfinite(scale) && scale > 0;
}

// ---- i8 to u8 -----------------------------------------------------------------------------------

static bool same_constant(const berth_tensor *a, const berth_tensor *b) {
    return berth_tensor_element_count(a) == 1 && berth_tensor_element_count(b) == 1 &&
           a->dtype == b->dtype && berth_tensor_get_f64(a, 0) == berth_tensor_get_f64(b, 0);
}

// Per value: uses as what a dequantize_linear of one zero point reads.
static uint32_t *count_dequantized(berth_rewriter *r, const berth_op_id *ops, uint32_t count) {
    uint32_t values = berth_graph_get(r->module, r->function)->values.count;
    uint32_t *uses = berth_arena_new_array(r->module->arena, uint32_t, values + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_op op = op_at(r, ops[i]);
        berth_quantized q;
        if (op.kind != BERTH_OP_DEQUANTIZE_LINEAR || !berth_quantized_get(r, op.outputs[0], &q) ||
            !berth_quantized_is_uniform(&q))
            continue;
        const berth_op *made = berth_rewriter_def(r, q.value);
        if (!made || made->kind != BERTH_OP_QUANTIZE_LINEAR || made->input_count < 3) continue;
        const berth_tensor *zero = berth_rewriter_constant(r, made->inputs[2]);
        if (q.zero && zero && same_constant(q.zero, zero)) uses[q.value]++;
    }
    return uses;
}

static berth_value_id raised_zero(berth_rewriter *r, berth_op_id id, const berth_tensor *zero) {
    berth_tensor raised = berth_tensor_create(r->module->arena, BERTH_DTYPE_U8, 0, NULL);
    berth_tensor_set_i64(&raised, 0, berth_tensor_get_i64(zero, 0) + 128);
    return berth_rewriter_insert_constant(r, id, &raised, op_at(r, id).loc);
}

// quantize_linear to i8 whose result is only dequantised: to u8.
static berth_status raise_types(berth_rewriter *r, const berth_op_id *ops, uint32_t count) {
    const uint32_t *dequantized = count_dequantized(r, ops, count);
    for (uint32_t i = 0; i < count; ++i) {
        berth_op op = op_at(r, ops[i]);
        bool quantizes = op.kind == BERTH_OP_QUANTIZE_LINEAR;
        if (!quantizes && op.kind != BERTH_OP_DEQUANTIZE_LINEAR) continue;
        berth_value_id value = quantizes ? op.outputs[0] : op.inputs[0];
        if (dequantized[value] == 0 || type_of(r, value)->dtype != BERTH_DTYPE_I8) continue;
        if (quantizes ? dequantized[value] != berth_rewriter_uses(r, value)
                      : berth_rewriter_resolve(r, value) == value)
            continue;
        const berth_tensor *zero = berth_rewriter_constant(r, op.inputs[2]);
        berth_value_id inputs[3] = {op.inputs[0], op.inputs[1], raised_zero(r, ops[i], zero)};
        if (!quantizes) inputs[0] = berth_rewriter_resolve(r, value);
        berth_value_id result = BERTH_NONE;
        BERTH_TRY(berth_rewriter_insert(r, ops[i], op.kind, inputs, 3, &op.attrs, op.loc, &result));
        berth_rewriter_replace(r, op.outputs[0], result);
    }
    return BERTH_OK;
}

// ---- moves --------------------------------------------------------------------------------------

static bool only_moves(const berth_op *op) {
    switch (op->kind) {
    case BERTH_OP_RESHAPE:
    case BERTH_OP_FLATTEN:
    case BERTH_OP_SQUEEZE:
    case BERTH_OP_UNSQUEEZE:
    case BERTH_OP_TRANSPOSE:
    case BERTH_OP_SLICE:
    case BERTH_OP_GLOBAL_MAX_POOL: return true;
    case BERTH_OP_MAX_POOL: return op->output_count < 2 || op->outputs[1] == BERTH_NONE;
    default: return false;
    }
}

// move(dequantize(x)) = dequantize(move(x)), as scales are positive.
static berth_status move_integers(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_quantized q;
    if (!berth_quantized_get(r, op.inputs[0], &q) || !berth_quantized_is_uniform(&q) ||
        berth_rewriter_raw_constant(r, q.value))
        return BERTH_OK;
    berth_op from = *berth_rewriter_def(r, op.inputs[0]);
    berth_value_id *inputs =
        berth_arena_copy(r->module->arena, op.inputs, op.input_count * sizeof(*inputs));
    inputs[0] = q.value;
    berth_value_id moved = BERTH_NONE;
    BERTH_TRY(
        berth_rewriter_insert(r, id, op.kind, inputs, op.input_count, &op.attrs, op.loc, &moved));
    berth_value_id back[3] = {moved, q.scale_value, q.zero_value};
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_DEQUANTIZE_LINEAR, back, from.input_count, NULL,
                                    from.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// concat(dequantize(a), dequantize(b)) = dequantize(concat(a, b)) where they share parameters.
static berth_status concat_integers(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_quantized first = {0}, q;
    berth_value_id *inputs =
        berth_arena_copy(r->module->arena, op.inputs, op.input_count * sizeof(*inputs));
    for (uint32_t i = 0; i < op.input_count; ++i) {
        if (!berth_quantized_get(r, op.inputs[i], &q) || !berth_quantized_is_uniform(&q) ||
            q.zero_value == BERTH_NONE)
            return BERTH_OK;
        if (i == 0) first = q;
        if (!same_constant(q.scale, first.scale) || !same_constant(q.zero, first.zero))
            return BERTH_OK;
        inputs[i] = q.value;
    }
    berth_value_id joined = BERTH_NONE, result = BERTH_NONE;
    BERTH_TRY(
        berth_rewriter_insert(r, id, op.kind, inputs, op.input_count, &op.attrs, op.loc, &joined));
    berth_value_id back[3] = {joined, first.scale_value, first.zero_value};
    BERTH_TRY(
        berth_rewriter_insert(r, id, BERTH_OP_DEQUANTIZE_LINEAR, back, 3, NULL, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// pad(dequantize(x), 0) = dequantize(pad(x, zero point)).
static berth_status pad_integers(berth_rewriter *r, berth_op_id id) {
    berth_op op = op_at(r, id);
    berth_quantized q;
    berth_value_id result = BERTH_NONE;
    bool filled = op.input_count > 2 && op.inputs[2] != BERTH_NONE;
    const berth_tensor *fill = filled ? berth_rewriter_constant(r, op.inputs[2]) : NULL;
    if (!berth_quantized_get(r, op.inputs[0], &q) || !berth_quantized_is_uniform(&q) ||
        q.zero_value == BERTH_NONE || berth_rewriter_raw_constant(r, q.value) ||
        (filled &&
         (!fill || berth_tensor_element_count(fill) != 1 || berth_tensor_get_f64(fill, 0) != 0)))
        return BERTH_OK;
    berth_value_id inputs[4] = {q.value, op.inputs[1], q.zero_value,
                                op.input_count > 3 ? op.inputs[3] : BERTH_NONE};
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_PAD, inputs, op.input_count > 3 ? 4 : 3,
                                    &op.attrs, op.loc, &result));
    berth_value_id back[3] = {result, q.scale_value, q.zero_value};
    BERTH_TRY(
        berth_rewriter_insert(r, id, BERTH_OP_DEQUANTIZE_LINEAR, back, 3, NULL, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}

// ---- pass ---------------------------------------------------------------------------------------

static berth_status visit(berth_rewriter *r, berth_op_id id, bool whole) {
    berth_op op = op_at(r, id);
    if (only_moves(&op)) return move_integers(r, id);
    if (whole && op.kind == BERTH_OP_CONCAT) return concat_integers(r, id);
    if (whole && op.kind == BERTH_OP_PAD && op.input_count > 1) return pad_integers(r, id);
    if (whole) return op.kind == BERTH_OP_QUANTIZE_LINEAR ? berth_integers__whole(r, id) : BERTH_OK;
    if (op.kind == BERTH_OP_CONV || op.kind == BERTH_OP_MATMUL || op.kind == BERTH_OP_GEMM)
        return berth_integers__sum(r, id);
    if (op.kind == BERTH_OP_QUANTIZE_LINEAR) return berth_integers__quantize(r, id);
    return BERTH_OK;
}

typedef enum sweep_kind { sweep_types, sweep_whole, sweep_sums } sweep_kind;

static berth_status sweep(berth_module *module, berth_func_id main, sweep_kind kind) {
    berth_rewriter r;
    berth_rewriter_begin(&r, module, main);
    const berth_graph *graph = berth_graph_get(module, main);
    uint32_t count = graph->regions.data[0].ops.count;
    berth_op_id *ops = berth_arena_copy(module->arena, graph->regions.data[0].ops.data,
                                        count * sizeof(berth_op_id));
    if (kind == sweep_types) BERTH_TRY(raise_types(&r, ops, count));
    for (uint32_t i = 0; i < count && kind != sweep_types; ++i)
        BERTH_TRY(visit(&r, ops[i], kind == sweep_whole));
    berth_rewriter_finish(&r);
    return BERTH_OK;
}

berth_status berth_pass_find_integers(berth_module *module, berth_func_id main, bool whole) {
    BERTH_TRY(sweep(module, main, whole ? sweep_whole : sweep_types));
    return sweep(module, main, sweep_sums);
}
