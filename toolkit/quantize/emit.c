// The model in QDQ form. A value that is needed quantised goes through QuantizeLinear and
// DequantizeLinear behind its producer; layers read what comes out, as does everything else where the
// producer is quantised as well: then the float value need not exist.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

static const char *add_scalar_f32(const berth_quantize__graph *graph, const char *stem,
                                  const float *values, uint32_t count, bool scalar) {
    berth_onnx_edit *model = graph->model;
    int64_t dims = count;
    berth_tensor tensor = berth_tensor_create(model->arena, BERTH_DTYPE_F32, scalar ? 0 : 1, &dims);
    memcpy(tensor.data, values, count * sizeof(float));
    const char *name = berth_quantize__new_name(graph, stem, "scale");
    berth_onnx_edit_add_constant(model, name, &tensor);
    return name;
}

static const char *add_zero(const berth_quantize__graph *graph, const char *stem, bool is_signed,
                            int zero, uint32_t count, bool scalar) {
    berth_onnx_edit *model = graph->model;
    int64_t dims = count;
    berth_tensor tensor = berth_tensor_create(
        model->arena, is_signed ? BERTH_DTYPE_I8 : BERTH_DTYPE_U8, scalar ? 0 : 1, &dims);
    for (uint32_t i = 0; i < count; ++i) berth_tensor_set_i64(&tensor, i, zero);
    const char *name = berth_quantize__new_name(graph, stem, "zero_point");
    berth_onnx_edit_add_constant(model, name, &tensor);
    return name;
}

static berth_onnx_node *add_node(const berth_quantize__graph *graph, const char *op,
                                 const char *name, const char *x, const char *scale,
                                 const char *zero, const char *out) {
    berth_arena *arena = graph->model->arena;
    berth_onnx_node *node = berth_onnx_edit_add(graph->model, op, name);
    berth_vec_push(arena, &node->inputs, x);
    berth_vec_push(arena, &node->inputs, scale);
    if (zero) berth_vec_push(arena, &node->inputs, zero);
    berth_vec_push(arena, &node->outputs, out);
    return node;
}

// `to` NULL: a new name. Returns what the pair makes.
const char *berth_quantize__emit_pair(const berth_quantize__graph *graph, const char *from,
                                      const char *to, const berth_quantize__scale *scale) {
    const char *stem = to ? to : from;
    const char *s = add_scalar_f32(graph, stem, &scale->scale, 1, true);
    const char *zero = add_zero(graph, stem, scale->is_signed, scale->zero, 1, true);
    const char *quantized = berth_quantize__new_name(graph, stem, "quantized");
    const char *out = to ? to : berth_quantize__new_name(graph, stem, "dequantized");
    add_node(graph, "QuantizeLinear", berth_quantize__new_name(graph, stem, "QuantizeLinear"), from,
             s, zero, quantized);
    add_node(graph, "DequantizeLinear", berth_quantize__new_name(graph, stem, "DequantizeLinear"),
             quantized, s, zero, out);
    return out;
}

static const char *emit_bias(const berth_quantize__graph *graph, const berth_quantize__layer *layer,
                             float input_scale, const char *stem) {
    berth_arena *arena = graph->model->arena;
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_I32, 1, &layer->channels);
    float *scales = berth_arena_new_array(arena, float, layer->scale_count);
    bool one = layer->scale_count == 1;
    bool same = layer->bias && berth_tensor_element_count(layer->bias) == 1;
    for (uint32_t c = 0; c < layer->scale_count; ++c) scales[c] = input_scale * layer->scales[c];
    for (int64_t c = 0; c < layer->channels; ++c) {
        double value = layer->bias ? berth_tensor_get_f64(layer->bias, same ? 0 : c) : 0;
        if (layer->correction) value += (double)layer->correction[c];
        double q = nearbyint(value / (double)scales[one ? 0 : c]);
        ((int32_t *)tensor.data)[c] = (int32_t)fmax(-0x1p30, fmin(0x1p30, q));
    }
    const char *name = berth_quantize__new_name(graph, stem, "bias_quantized");
    berth_onnx_edit_add_constant(graph->model, name, &tensor);
    const char *bias_stem = berth_arena_printf(arena, "%s_bias", stem);
    const char *s = add_scalar_f32(graph, bias_stem, scales, layer->scale_count, one);
    const char *out = berth_quantize__new_name(graph, bias_stem, "dequantized");
    berth_onnx_node *node = add_node(graph, "DequantizeLinear",
                                     berth_quantize__new_name(graph, bias_stem, "DequantizeLinear"),
                                     name, s, NULL, out);
    if (!one) berth_onnx_node_set_int(arena, node, "axis", 0);
    return out;
}

void berth_quantize__emit_weights(const berth_quantize__graph *graph,
                                  const berth_quantize__layer *layer, float input_scale,
                                  berth_onnx_node *node) {
    berth_arena *arena = graph->model->arena;
    const char *stem = berth_quantize__node_name(node);
    const char *weight_stem = berth_arena_printf(arena, "%s_weight", stem);
    const char *name = berth_quantize__new_name(graph, weight_stem, "quantized");
    bool one = layer->scale_count == 1;
    berth_onnx_edit_add_constant(graph->model, name, layer->quantized);
    const char *s = add_scalar_f32(graph, weight_stem, layer->scales, layer->scale_count, one);
    const char *zero = add_zero(graph, weight_stem, true, 0, layer->scale_count, one);
    const char *out = berth_quantize__new_name(graph, weight_stem, "dequantized");
    berth_onnx_node *dequantize = add_node(
        graph, "DequantizeLinear", berth_quantize__new_name(graph, weight_stem, "DequantizeLinear"),
        name, s, zero, out);
    if (!one) berth_onnx_node_set_int(arena, dequantize, "axis", layer->channel_axis);
    berth_quantize__set_input(arena, node, layer->weight_operand, out);
    if (layer->bias || layer->correction)
        berth_quantize__set_input(arena, node, layer->weight_operand + 1,
                                  emit_bias(graph, layer, input_scale, stem));
}

// ---- the whole model ----------------------------------------------------------------------------

typedef struct emitter {
    const berth_quantize__state *state;
    berth_quantize__graph graph;
    berth_quantize__selection selection;
    const char **quantized;  // per value: what the pair makes; NULL
    const char **raw;  // per value: what its producer makes, where that has another name; NULL
    uint32_t tensor_count;
} emitter;

static uint32_t id_of(const emitter *e, const char *name) {
    return (uint32_t)(berth_quantize__value_of(&e->graph, name) - e->graph.values.data);
}

static void emit_value(emitter *e, uint32_t id, const char *from, const char *to) {
    const berth_quantize__tensor *tensor =
        berth_quantize__tensor_of(e->state, e->graph.values.data[id].name);
    e->quantized[id] = berth_quantize__emit_pair(&e->graph, from, to, &tensor->scale);
    e->tensor_count++;
}

static void emit_node(emitter *e, berth_onnx_node *node, bool selected) {
    berth_onnx_edit *model = e->graph.model;
    const berth_quantize__layer *layer = berth_quantize__layer_of(e->state, node);
    uint32_t weight = layer && !layer->kept && layer->weight ? layer->weight_operand : UINT32_MAX;
    for (uint32_t k = 0; k < node->inputs.count; ++k) {
        uint32_t id = id_of(e, node->inputs.data[k]);
        bool reads = e->quantized[id] && (selected || e->selection.produced[id]);
        if (reads)
            node->inputs.data[k] = e->quantized[id];
        else if (e->raw[id])
            node->inputs.data[k] = e->raw[id];
    }
    if (weight != UINT32_MAX) {
        float scale = berth_quantize__tensor_of(e->state, layer->input)->scale.scale;
        berth_quantize__emit_weights(&e->graph, layer, scale, node);
    }
    berth_vec_push(model->arena, &model->nodes, node);
    for (uint32_t k = 0; k < node->outputs.count; ++k) {
        uint32_t id = id_of(e, node->outputs.data[k]);
        if (!e->selection.needed[id]) continue;
        const char *name = node->outputs.data[k];
        bool renamed = e->graph.values.data[id].is_pinned;
        if (renamed) {
            e->raw[id] = berth_quantize__new_name(&e->graph, name, "float");
            node->outputs.data[k] = e->raw[id];
        }
        emit_value(e, id, node->outputs.data[k], renamed ? name : NULL);
    }
}

// Constants that only the float model reads.
static void remove_unused_constants(berth_onnx_edit *model) {
    berth_arena *scratch = berth_arena_create_child(model->arena);
    berth_quantize__graph graph = berth_quantize__graph_make(scratch, model);
    for (uint32_t i = model->constants.count; i-- > 0;) {
        const berth_quantize__value *value =
            berth_quantize__value_of(&graph, model->constants.data[i]->name);
        if (value->use_count == 0 && !value->is_pinned)
            berth_onnx_edit_remove_constant(model, model->constants.data[i]->name);
    }
    berth_arena_destroy(scratch);
}

berth_onnx_edit *berth_quantize__emit(berth_arena *arena, const berth_quantize__state *state,
                                      uint32_t *out_tensor_count) {
    berth_onnx_edit *model = berth_onnx_edit_copy(arena, state->model);
    emitter e = {.state = state, .graph = berth_quantize__graph_make(arena, model)};
    e.selection = berth_quantize__select(arena, state, &e.graph);
    uint32_t count = e.graph.values.count, node_count = model->nodes.count;
    e.quantized = berth_arena_new_array(arena, const char *, count + 1);
    e.raw = berth_arena_new_array(arena, const char *, count + 1);
    berth_onnx_node **nodes =
        berth_arena_copy(arena, model->nodes.data, node_count * sizeof(nodes[0]));
    model->nodes.count = 0;
    for (uint32_t id = 0; id < count; ++id)
        if (e.selection.needed[id] && e.graph.values.data[id].producer == BERTH_QUANTIZE__NONE)
            emit_value(&e, id, e.graph.values.data[id].name, NULL);
    for (uint32_t i = 0; i < node_count; ++i) emit_node(&e, nodes[i], e.selection.nodes[i]);
    remove_unused_constants(model);
    *out_tensor_count = e.tensor_count;
    return model;
}
