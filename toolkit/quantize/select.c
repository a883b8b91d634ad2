// Which nodes compute with quantised values, and which values are these.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

static bool is_one_of(const berth_onnx_node *node, const char *const *names) {
    for (; *names; ++names)
        if (berth_onnx_node_is(node, *names)) return true;
    return false;
}

bool berth_quantize__passes(const berth_onnx_node *node) {
    static const char *const names[] = {"MaxPool",   "Reshape",   "Flatten",      "Squeeze",
                                        "Unsqueeze", "Transpose", "DepthToSpace", "SpaceToDepth",
                                        "Identity",  NULL};
    return node->outputs.count == 1 && is_one_of(node, names);
}

// Between layers worth being quantised: they have integer forms.
static bool is_between(const berth_quantize__graph *graph, const berth_onnx_node *node) {
    static const char *const names[] = {"Add", "Concat", "AveragePool", "GlobalAveragePool", NULL};
    if (node->outputs.count != 1 || node->inputs.count == 0 || !is_one_of(node, names))
        return false;
    for (uint32_t i = 0; i < node->inputs.count; ++i) {
        const berth_quantize__value *value = berth_quantize__input(graph, node, i);
        if (value->constant || !*value->name) return false;
    }
    return true;
}

static bool is_activation(const berth_onnx_node *node) {
    return berth_onnx_node_is(node, "Relu") || berth_onnx_node_is(node, "Clip");
}

static uint32_t id_of(const berth_quantize__graph *graph, const char *name) {
    return (uint32_t)(berth_quantize__value_of(graph, name) - graph->values.data);
}

// The node's result, behind an activation function that is its only user.
static uint32_t result_of(const berth_quantize__graph *graph, const berth_onnx_node *node) {
    const berth_onnx_node *next = berth_quantize__only_user(graph, node);
    bool fused = next && is_activation(next) && next->outputs.count == 1 &&
                 strcmp(next->inputs.data[0], node->outputs.data[0]) == 0;
    return id_of(graph, (fused ? next : node)->outputs.data[0]);
}

static bool is_selected(const berth_quantize__state *state, const berth_onnx_node *node) {
    const berth_quantize__layer *layer = berth_quantize__layer_of(state, node);
    return layer && !layer->kept;
}

// Values that come from quantised nodes; at first all between them are taken to be.
static void find_produced(const berth_quantize__state *state, const berth_quantize__graph *graph,
                          berth_quantize__selection *s, bool first) {
    for (uint32_t i = 0; i < graph->model->nodes.count; ++i) {
        const berth_onnx_node *node = graph->model->nodes.data[i];
        if (node->outputs.count == 0) continue;
        bool from = false;
        for (uint32_t k = 0; k < node->inputs.count; ++k)
            from |= s->produced[id_of(graph, node->inputs.data[k])];
        bool *to = &s->produced[id_of(graph, node->outputs.data[0])];
        if (is_selected(state, node))
            *to = true;
        else if (is_between(graph, node))
            *to = from && (first || s->nodes[i]);
        else if (berth_quantize__passes(node))
            *to = s->produced[id_of(graph, node->inputs.data[0])];
        else if (is_activation(node))
            *to = s->produced[id_of(graph, node->inputs.data[0])] &&
                  berth_quantize__input(graph, node, 0)->use_count == 1;
    }
}

// From the results on: what needs its operands quantised.
static void find_needed(const berth_quantize__state *state, const berth_quantize__graph *graph,
                        berth_quantize__selection *s) {
    bool whole = state->options->whole;
    for (uint32_t i = graph->model->nodes.count; i-- > 0;) {
        const berth_onnx_node *node = graph->model->nodes.data[i];
        if (node->outputs.count == 0 || node->inputs.count == 0) continue;
        const berth_quantize__layer *layer = berth_quantize__layer_of(state, node);
        uint32_t result = result_of(graph, node);
        if (layer && !layer->kept) {
            s->nodes[i] = s->needed[id_of(graph, layer->input)] = true;
            if (layer->second) s->needed[id_of(graph, layer->second)] = true;
            if (whole) s->needed[result] = true;
        } else if (is_between(graph, node)) {
            if (!s->produced[result] || !(s->needed[result])) continue;
            s->nodes[i] = true;
            for (uint32_t k = 0; k < node->inputs.count; ++k)
                s->needed[id_of(graph, node->inputs.data[k])] = true;
        } else if (berth_quantize__passes(node) && s->needed[result] &&
                   !berth_quantize__input(graph, node, 0)->constant) {
            s->nodes[i] = s->needed[id_of(graph, node->inputs.data[0])] = true;
        }
    }
}

berth_quantize__selection berth_quantize__select(berth_arena *arena,
                                                 const berth_quantize__state *state,
                                                 const berth_quantize__graph *graph) {
    berth_quantize__selection s = {
        .needed = berth_arena_new_array(arena, bool, graph->values.count + 1),
        .produced = berth_arena_new_array(arena, bool, graph->values.count + 1),
        .nodes = berth_arena_new_array(arena, bool, graph->model->nodes.count + 1)};
    find_produced(state, graph, &s, true);
    find_needed(state, graph, &s);
    memset(s.produced, 0, graph->values.count);
    find_produced(state, graph, &s, false);
    return s;
}

// ---- layers and tensors -------------------------------------------------------------------------

berth_quantize__tensor *berth_quantize__tensor_of(const berth_quantize__state *state,
                                                  const char *name) {
    for (uint32_t i = 0; i < state->tensors.count; ++i)
        if (strcmp(state->tensors.data[i].name, name) == 0) return &state->tensors.data[i];
    return NULL;
}

berth_quantize__layer *berth_quantize__layer_of(const berth_quantize__state *state,
                                                const berth_onnx_node *node) {
    for (uint32_t i = 0; i < state->layers.count && node->outputs.count; ++i)
        if (*state->layers.data[i].output &&
            strcmp(state->layers.data[i].output, node->outputs.data[0]) == 0)
            return &state->layers.data[i];
    return NULL;
}

static bool is_dequantized(const berth_quantize__graph *graph, const berth_quantize__value *value) {
    return value->producer != BERTH_QUANTIZE__NONE &&
           berth_onnx_node_is(graph->model->nodes.data[value->producer], "DequantizeLinear");
}

static berth_status read_matmul(const berth_quantize__graph *graph, const berth_onnx_node *node,
                                berth_quantize__layer *layer) {
    const berth_tensor *weight = NULL;
    if (berth_quantize__input(graph, node, 0)->constant) {
        layer->kept = "its first operand is a constant";
        return BERTH_OK;
    }
    BERTH_TRY(berth_quantize__constant(graph, node, 1, &weight));
    if (!berth_quantize__input(graph, node, 1)->constant) {
        layer->second = node->inputs.data[1];
    } else if (!weight || weight->rank != 2) {
        layer->kept = "its weights are no matrix of f32";
    } else {
        layer->weight = weight;
        layer->channel_axis = 1;
        layer->channels = weight->dims[1];
    }
    return BERTH_OK;
}

static berth_status read_layer(const berth_quantize__state *state,
                               const berth_quantize__graph *graph, const berth_onnx_node *node,
                               berth_quantize__layer *layer) {
    berth_quantize__affine a;
    bool found = false;
    *layer = (berth_quantize__layer){.name = berth_quantize__node_name(node),
                                     .op = node->op_type,
                                     .output = node->outputs.data[0],
                                     .input = node->inputs.data[0],
                                     .weight_operand = 1,
                                     .weight_sqnr = NAN};
    if (is_dequantized(graph, berth_quantize__input(graph, node, 0)) ||
        is_dequantized(graph, berth_quantize__input(graph, node, 1))) {
        layer->kept = "it is quantised already";
        return BERTH_OK;
    }
    if (berth_onnx_node_is(node, "MatMul")) return read_matmul(graph, node, layer);
    bool transposed = berth_onnx_node_is(node, "ConvTranspose");
    if (transposed && state->options->whole) {
        layer->kept = "the target has no integers for it";
        return BERTH_OK;
    }
    if (transposed && berth_onnx_node_int(node, "group", 1) != 1) {
        layer->kept =
            "it has groups: a scale per channel of its weights would be one of all groups";
        return BERTH_OK;
    }
    BERTH_TRY(berth_quantize__read_affine(graph, node, &found, &a));
    if (!found || berth_quantize__input(graph, node, 0)->constant) {
        layer->kept = "its weights and bias are no constants of f32 in the usual form";
        return BERTH_OK;
    }
    if (!berth_tensor_element_count(a.weight)) layer->kept = "it has no weights";
    layer->weight = a.weight;
    layer->bias = a.bias;
    layer->channel_axis = a.axis;
    layer->channels = a.channels;
    return BERTH_OK;
}

bool berth_quantize__is_layer_type(const char *op_type, const char *domain) {
    static const char *const names[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    if (*domain && strcmp(domain, "ai.onnx") != 0) return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (strcmp(op_type, names[i]) == 0) return true;
    return false;
}

static bool is_layer(const berth_onnx_node *node) {
    return berth_quantize__is_layer_type(node->op_type, node->domain) && node->outputs.count == 1 &&
           node->inputs.count >= 2;
}

// Values that share a scale with what they are a rearrangement of.
static void share_scales(berth_quantize__state *state, const berth_quantize__graph *graph,
                         const berth_quantize__selection *s) {
    for (uint32_t i = 0; i < graph->model->nodes.count; ++i) {
        const berth_onnx_node *node = graph->model->nodes.data[i];
        if (!s->nodes[i] || !berth_quantize__passes(node)) continue;
        const berth_quantize__tensor *from = berth_quantize__tensor_of(state, node->inputs.data[0]);
        berth_quantize__tensor *to = berth_quantize__tensor_of(state, node->outputs.data[0]);
        if (from && to) to->same_as = from->same_as;
    }
}

berth_status berth_quantize__find_layers(berth_quantize__state *state) {
    berth_arena *scratch = berth_arena_create_child(state->arena);
    berth_quantize__graph graph = berth_quantize__graph_make(scratch, state->model);
    berth_status status = BERTH_OK;
    uint32_t open = 0;
    for (uint32_t i = 0; i < state->model->nodes.count && !status; ++i) {
        berth_quantize__layer layer;
        berth_quantize__find_inside(state, state->model->nodes.data[i]);
        if (!is_layer(state->model->nodes.data[i])) continue;
        status = read_layer(state, &graph, state->model->nodes.data[i], &layer);
        open += !layer.kept;
        berth_vec_push(state->arena, &state->layers, layer);
    }
    if (!status && open == 0)
        status = berth_status_make(
            BERTH_UNSUPPORTED, "\"%s\" has nothing to quantise: %s", state->model->path,
            state->layers.count
                ? berth_arena_printf(scratch, "node \"%s\" (%s): %s", state->layers.data[0].name,
                                     state->layers.data[0].op, state->layers.data[0].kept)
                : "no Conv, ConvTranspose, Gemm or MatMul of f32 in its main graph");
    if (!status) {
        berth_quantize__selection s = berth_quantize__select(scratch, state, &graph);
        for (uint32_t v = 0; v < graph.values.count; ++v) {
            berth_quantize__tensor tensor = {.name = graph.values.data[v].name,
                                             .same_as = state->tensors.count};
            if (s.needed[v]) berth_vec_push(state->arena, &state->tensors, tensor);
        }
        share_scales(state, &graph, &s);
    }
    berth_arena_destroy(scratch);
    return status;
}
