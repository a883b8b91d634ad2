// quantize_linear and what is in front of it: bounds that saturation implies vanish, and factors in
// front of it are divided by its scale, so that nothing is left to divide at run time.
#include <math.h>

#include "compiler/passes/integers.h"

#define MAX_DEPTH 8  // operations between a quantize_linear and the factors

typedef struct quantizer {
    berth_rewriter *r;
    berth_op_id id;
    berth_op op;
    const berth_tensor *scale;
    const berth_tensor *zero;  // NULL = 0
    berth_dtype dtype;
} quantizer;

static berth_op *def_of(const quantizer *t, berth_value_id value) {
    const berth_op *op = berth_rewriter_def(t->r, value);
    return op ? berth_arena_copy(t->r->module->arena, op, sizeof(*op)) : NULL;
}

static bool one_use(const quantizer *t, berth_value_id value) {
    return berth_rewriter_uses(t->r, berth_rewriter_resolve(t->r, value)) == 1;
}

static const berth_tensor *real_constant(const quantizer *t, berth_value_id value) {
    const berth_tensor *tensor = berth_rewriter_raw_constant(t->r, value);
    if (!tensor || tensor->dtype != BERTH_DTYPE_F32) return NULL;
    return berth_rewriter_constant(t->r, value);
}

// ---- bounds -------------------------------------------------------------------------------------

// What the quantised type makes of a real number, before it saturates.
static double step_of(const quantizer *t, double value) {
    double zero = t->zero ? berth_tensor_get_f64(t->zero, 0) : 0;
    return (double)nearbyintf((float)value / (float)berth_tensor_get_f64(t->scale, 0)) + zero;
}

// Bounds of a relu or clip with constant ones.
static bool read_bounds(const quantizer *t, const berth_op *op, double *low, double *high) {
    *low = op->kind == BERTH_OP_RELU ? 0 : -INFINITY;
    *high = INFINITY;
    if (op->kind == BERTH_OP_RELU) return true;
    if (op->kind != BERTH_OP_CLIP) return false;
    for (uint32_t i = 1; i < op->input_count; ++i) {
        if (op->inputs[i] == BERTH_NONE) continue;
        const berth_tensor *bound = real_constant(t, op->inputs[i]);
        if (!bound || berth_tensor_element_count(bound) != 1) return false;
        *(i == 1 ? low : high) = berth_tensor_get_f64(bound, 0);
    }
    return *low <= *high;
}

// Rounding and saturation keep the order of numbers: a bound at or after the end of the type
// changes nothing.
static bool saturation_implies(const quantizer *t, double low, double high) {
    bool is_signed = t->dtype == BERTH_DTYPE_I8;
    return step_of(t, low) <= (is_signed ? -128 : 0) && step_of(t, high) >= (is_signed ? 127 : 255);
}

// ---- factors ------------------------------------------------------------------------------------

// Whether value / scale can be had by dividing constants; what is computed again has one use.
static bool divides(const quantizer *t, berth_value_id value, int depth) {
    const berth_op *op = def_of(t, value);
    berth_quantized q;
    double low = 0;
    double high = 0;
    if (!op || depth == MAX_DEPTH) return false;
    if (op->kind == BERTH_OP_DEQUANTIZE_LINEAR) return berth_quantized_get(t->r, value, &q);
    if (real_constant(t, value)) return true;
    if (!one_use(t, value)) return false;
    switch (op->kind) {
    case BERTH_OP_MUL: return real_constant(t, op->inputs[0]) || real_constant(t, op->inputs[1]);
    case BERTH_OP_ADD:
    case BERTH_OP_SUB:
        return divides(t, op->inputs[0], depth + 1) && divides(t, op->inputs[1], depth + 1);
    case BERTH_OP_RELU:
    case BERTH_OP_CLIP:
        return read_bounds(t, op, &low, &high) && divides(t, op->inputs[0], depth + 1);
    case BERTH_OP_AVERAGE_POOL:
    case BERTH_OP_GLOBAL_AVERAGE_POOL: return divides(t, op->inputs[0], depth + 1);
    default: return false;
    }
}

static berth_value_id divided_constant(const quantizer *t, const berth_tensor *tensor) {
    float scale = (float)berth_tensor_get_f64(t->scale, 0);
    berth_tensor made =
        berth_tensor_create(t->r->module->arena, BERTH_DTYPE_F32, tensor->rank, tensor->dims);
    for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i)
        berth_tensor_set_f64(&made, i, (double)((float)berth_tensor_get_f64(tensor, i) / scale));
    return berth_rewriter_insert_constant(t->r, t->id, &made, t->op.loc);
}

static berth_status divide(quantizer *t, berth_value_id value, berth_value_id *out);

// The operation again, on operands that are divided where `which` has their bit.
static berth_status remake(quantizer *t, const berth_op *op, uint32_t which, berth_value_id *out) {
    berth_value_id *inputs =
        berth_arena_copy(t->r->module->arena, op->inputs, op->input_count * sizeof(berth_value_id));
    for (uint32_t i = 0; i < op->input_count; ++i) {
        inputs[i] = berth_rewriter_resolve(t->r, inputs[i]);
        if (inputs[i] != BERTH_NONE && (which >> i & 1))
            BERTH_TRY(divide(t, inputs[i], &inputs[i]));
    }
    return berth_rewriter_insert(t->r, t->id, op->kind, inputs, op->input_count, &op->attrs,
                                 op->loc, out);
}

static berth_status divide(quantizer *t, berth_value_id value, berth_value_id *out) {
    const berth_tensor *constant = real_constant(t, value);
    const berth_op *op = def_of(t, value);
    if (constant) {
        *out = divided_constant(t, constant);
        return BERTH_OK;
    }
    switch (op->kind) {
    case BERTH_OP_DEQUANTIZE_LINEAR: return remake(t, op, 2, out);
    case BERTH_OP_MUL: return remake(t, op, real_constant(t, op->inputs[1]) ? 2 : 1, out);
    case BERTH_OP_ADD:
    case BERTH_OP_SUB: return remake(t, op, 3, out);
    case BERTH_OP_CLIP: return remake(t, op, 7, out);
    default: return remake(t, op, 1, out);
    }
}

// ---- entry --------------------------------------------------------------------------------------

bool berth_quantize_get(berth_rewriter *r, berth_op_id id, berth_quantized *out) {
    const berth_graph *graph = berth_graph_get(r->module, r->function);
    const berth_op *op = &graph->ops.data[id];
    bool has_zero = op->input_count > 2 && op->inputs[2] != BERTH_NONE;
    *out = (berth_quantized){.value = berth_rewriter_resolve(r, op->inputs[0]),
                             .scale_value = op->inputs[1],
                             .zero_value = has_zero ? op->inputs[2] : BERTH_NONE,
                             .zero = has_zero ? berth_rewriter_constant(r, op->inputs[2]) : NULL};
    const berth_tensor *raw = berth_rewriter_raw_constant(r, op->inputs[1]);
    if (!raw || raw->dtype != BERTH_DTYPE_F32 || (has_zero && !out->zero)) return false;
    out->scale = berth_rewriter_constant(r, op->inputs[1]);
    berth_dtype dtype = berth_type_get(r->module, graph->values.data[op->outputs[0]].type)->dtype;
    return (dtype == BERTH_DTYPE_I8 || dtype == BERTH_DTYPE_U8) && out->scale &&
           berth_quantized_is_uniform(out);
}

static bool describe(quantizer *t) {
    berth_quantized q;
    if (!berth_quantize_get(t->r, t->id, &q)) return false;
    t->scale = q.scale;
    t->zero = q.zero;
    const berth_graph *graph = berth_graph_get(t->r->module, t->r->function);
    t->dtype = berth_type_get(t->r->module, graph->values.data[t->op.outputs[0]].type)->dtype;
    return true;
}

// quantize(dequantize(x)) with the same parameters is x.
static bool gives_back(const quantizer *t, berth_value_id value, berth_value_id *out) {
    berth_quantized q;
    const berth_graph *graph = berth_graph_get(t->r->module, t->r->function);
    if (!berth_quantized_get(t->r, value, &q) || !berth_quantized_is_uniform(&q)) return false;
    berth_dtype dtype = berth_type_get(t->r->module, graph->values.data[q.value].type)->dtype;
    double zeros[2] = {q.zero ? berth_tensor_get_f64(q.zero, 0) : 0,
                       t->zero ? berth_tensor_get_f64(t->zero, 0) : 0};
    *out = q.value;
    return dtype == t->dtype && zeros[0] == zeros[1] &&
           berth_tensor_get_f64(q.scale, 0) == berth_tensor_get_f64(t->scale, 0);
}

// quantize(concat(a, b)) = concat(quantize(a), quantize(b)): bytes are joined in place of floats, and a part that was
// quantised the same way before is taken as it is.
static berth_status quantize_parts(quantizer *t, const berth_op *concat) {
    berth_rewriter *r = t->r;
    const berth_op from = *concat;
    berth_value_id *parts =
        berth_arena_copy(r->module->arena, from.inputs, from.input_count * sizeof(*parts));
    for (uint32_t i = 0; i < from.input_count; ++i) {
        berth_value_id inputs[3] = {berth_rewriter_resolve(r, parts[i]), t->op.inputs[1],
                                    t->op.input_count > 2 ? t->op.inputs[2] : BERTH_NONE};
        berth_op_id made;
        BERTH_TRY(berth_rewriter_insert_op(r, t->id, BERTH_OP_QUANTIZE_LINEAR, inputs,
                                           t->op.input_count, 1, &t->op.attrs, t->op.loc, &made));
        parts[i] = berth_graph_get(r->module, r->function)->ops.data[made].outputs[0];
        BERTH_TRY(berth_integers__quantize(r, made));
        parts[i] = berth_rewriter_resolve(r, parts[i]);
    }
    berth_value_id joined = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, t->id, BERTH_OP_CONCAT, parts, from.input_count, &from.attrs,
                                    from.loc, &joined));
    berth_rewriter_replace(r, t->op.outputs[0], joined);
    return BERTH_OK;
}

berth_status berth_integers__quantize(berth_rewriter *r, berth_op_id id) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    quantizer t = {.r = r, .id = id, .op = graph->ops.data[id]};
    if (!describe(&t)) return BERTH_OK;
    berth_value_id value = berth_rewriter_resolve(r, t.op.inputs[0]);
    const berth_op *concat = def_of(&t, value);
    if (concat && concat->kind == BERTH_OP_CONCAT && one_use(&t, value))
        return quantize_parts(&t, concat);
    double low = 0;
    double high = 0;
    for (const berth_op *op = def_of(&t, value);
         op && read_bounds(&t, op, &low, &high) && saturation_implies(&t, low, high);
         op = def_of(&t, value))
        value = berth_rewriter_resolve(r, op->inputs[0]);
    berth_value_id same = BERTH_NONE;
    if (gives_back(&t, value, &same)) {
        berth_rewriter_replace(r, t.op.outputs[0], same);
        return BERTH_OK;
    }
    berth_value_id inputs[3] = {value, t.op.inputs[1],
                                t.op.input_count > 2 ? t.op.inputs[2] : BERTH_NONE};
    bool divided = berth_tensor_get_f64(t.scale, 0) != 1 && divides(&t, value, 0);
    if (!divided && value == berth_rewriter_resolve(r, t.op.inputs[0])) return BERTH_OK;
    if (divided) {
        berth_tensor one = berth_tensor_create(r->module->arena, BERTH_DTYPE_F32, 0, NULL);
        berth_tensor_set_f64(&one, 0, 1);
        inputs[1] = berth_rewriter_insert_constant(r, id, &one, t.op.loc);
        BERTH_TRY(divide(&t, value, &inputs[0]));
    }
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, BERTH_OP_QUANTIZE_LINEAR, inputs, t.op.input_count,
                                    &t.op.attrs, t.op.loc, &result));
    berth_rewriter_replace(r, t.op.outputs[0], result);
    return BERTH_OK;
}
