// The float model as quantisation wants it: what is constant is a constant, what follows a convolution
// or product per channel is a part of it. Results stay the same but for rounding.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/tensor_proto.h"
#include "toolkit/quantize/state.h"

void berth_quantize__note(berth_quantize__state *state, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const char *note = berth_arena_strdup(state->arena, text);
    berth_vec_push(state->arena, &state->notes, note);
}

int berth_quantize__rank_of(const berth_quantize__state *state, const char *name) {
    for (uint32_t i = 0; i < state->ranks.count; ++i)
        if (strcmp(state->ranks.data[i].name, name) == 0) return state->ranks.data[i].rank;
    return -1;
}

// ---- constants ----------------------------------------------------------------------------------

// Constant nodes with f32 tensors become initializers.
static berth_status read_constant_nodes(berth_quantize__state *state) {
    berth_onnx_edit *model = state->model;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->nodes.count; ++i) {
        berth_onnx_node *node = model->nodes.data[i];
        berth_onnx_bytes proto;
        model->nodes.data[kept++] = node;
        if (!berth_onnx_node_is(node, "Constant") || node->outputs.count != 1 ||
            !berth_onnx_node_tensor(node, "value", &proto))
            continue;
        berth_tensor_proto tensor;
        berth_wire wire = berth_wire_make(proto.data, proto.size_bytes);
        BERTH_TRY(berth_status_prefix(berth_tensor_proto_parse(state->arena, wire, true, &tensor),
                                      "node \"%s\" in \"%s\"", berth_quantize__node_name(node),
                                      model->path));
        if (tensor.external || tensor.element != berth_dtype_to_onnx(BERTH_DTYPE_F32)) continue;
        berth_tensor aligned = berth_tensor_align(state->arena, &tensor.tensor);
        berth_onnx_edit_add_constant(model, node->outputs.data[0], &aligned);
        --kept;
    }
    model->nodes.count = kept;
    return BERTH_OK;
}

static bool is_softmax(const berth_onnx_node *node) {
    return berth_onnx_node_is(node, "Softmax") || berth_onnx_node_is(node, "LogSoftmax") ||
           berth_onnx_node_is(node, "Hardmax");
}

static bool is_random(const berth_onnx_node *node) {
    return strncmp(node->op_type, "Random", 6) == 0 || strcmp(node->op_type, "Bernoulli") == 0 ||
           strcmp(node->op_type, "Multinomial") == 0;
}

// Nodes that compute with constants only. Nodes stand in order.
static bool *find_computed(berth_arena *arena, const berth_quantize__graph *graph) {
    const berth_onnx_edit *model = graph->model;
    bool *computed = berth_arena_new_array(arena, bool, model->nodes.count + 1);
    for (uint32_t i = 0; i < model->nodes.count; ++i) {
        const berth_onnx_node *node = model->nodes.data[i];
        computed[i] =
            !node->has_graphs && !is_random(node) && !berth_onnx_node_is(node, "DequantizeLinear");
        for (uint32_t k = 0; k < node->inputs.count && computed[i]; ++k) {
            const berth_quantize__value *value = berth_quantize__input(graph, node, k);
            bool made = value->producer < i && computed[value->producer];
            computed[i] = value->constant || made || !*node->inputs.data[k];
        }
    }
    return computed;
}

// A value of which the first run tells the content (constants) or the rank.
typedef struct wanted_value {
    const char *name;
    bool content;
    uint32_t output;
} wanted_value;

typedef struct first_run {
    berth_quantize__state *state;
    berth_quantize__runner *runner;
    BERTH_VEC(wanted_value) wanted;
} first_run;

static void want(first_run *run, const char *name, bool content) {
    for (uint32_t i = 0; i < run->wanted.count; ++i)
        if (strcmp(run->wanted.data[i].name, name) == 0) return;
    berth_vec_push(run->state->arena, &run->wanted,
                   (wanted_value){.name = name, .content = content});
}

static berth_status read_first(void *user, berth_arena *scratch, uint32_t set) {
    (void)scratch, (void)set;
    first_run *run = user;
    berth_onnx_edit *model = run->state->model;
    for (uint32_t i = 0; i < run->wanted.count; ++i) {
        wanted_value *wanted = &run->wanted.data[i];
        const berth_tensor *tensor = berth_quantize__runner_output(run->runner, wanted->output);
        if (!tensor) continue;
        berth_vec_push(model->arena, &run->state->ranks,
                       (berth_quantize__rank){wanted->name, tensor->rank});
        if (!wanted->content || tensor->dtype != BERTH_DTYPE_F32) continue;
        berth_tensor copy = *tensor;
        if (tensor->data)
            copy.data =
                berth_arena_copy(model->arena, tensor->data, berth_tensor_size_bytes(tensor));
        berth_onnx_edit_add_constant(model, wanted->name, &copy);
        for (uint32_t n = 0; n < model->nodes.count; ++n)  // which made it
            for (uint32_t k = 0; k < model->nodes.data[n]->outputs.count; ++k)
                if (strcmp(model->nodes.data[n]->outputs.data[k], wanted->name) == 0)
                    model->nodes.data[n]->outputs.data[k] =
                        model->nodes.data[n]->outputs.count == 1
                            ? berth_arena_printf(model->arena, "%s_unused", wanted->name)
                            : "";
    }
    return BERTH_OK;
}

// Runs the model once: constants that nodes compute become initializers, and the ranks of what MatMul
// reads are known.
static berth_status run_first(berth_quantize__state *state, first_run *run) {
    berth_arena *scratch = berth_arena_create_child(state->arena);
    berth_quantize__graph graph = berth_quantize__graph_make(scratch, state->model);
    const bool *computed = find_computed(scratch, &graph);
    berth_onnx_edit *model = state->model;
    for (uint32_t i = 0; i < model->nodes.count; ++i) {
        const berth_onnx_node *node = model->nodes.data[i];
        if (computed[i]) continue;
        for (uint32_t k = 0; k < node->inputs.count; ++k) {
            const berth_quantize__value *value = berth_quantize__input(&graph, node, k);
            if (value->producer < i && computed[value->producer] && !value->is_pinned)
                want(run, value->name, true);
        }
        if (node->outputs.count == 1 && (berth_onnx_node_is(node, "MatMul") || is_softmax(node)))
            want(run, node->outputs.data[0], false);
    }
    berth_onnx_edit *copy = berth_onnx_edit_copy(scratch, model);
    for (uint32_t i = 0; i < run->wanted.count; ++i)
        run->wanted.data[i].output = berth_onnx_edit_output(copy, run->wanted.data[i].name);
    berth_status status = berth_quantize__runner_open(scratch, copy, state->options, &run->runner);
    if (!status)
        status =
            berth_quantize__run_all(state->arena, &state->data, state->options,
                                    "looking at the model", &run->runner, 1, 1, read_first, run);
    berth_arena_destroy(scratch);
    return status;
}

// ---- rewriting ----------------------------------------------------------------------------------

static void remove_node(berth_onnx_edit *model, const berth_onnx_node *node) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->nodes.count; ++i)
        if (model->nodes.data[i] != node) model->nodes.data[kept++] = model->nodes.data[i];
    model->nodes.count = kept;
}

static void rename_uses(berth_onnx_edit *model, const char *from, const char *to) {
    for (uint32_t i = 0; i < model->nodes.count; ++i)
        for (uint32_t k = 0; k < model->nodes.data[i]->inputs.count; ++k)
            if (strcmp(model->nodes.data[i]->inputs.data[k], from) == 0)
                model->nodes.data[i]->inputs.data[k] = to;
}

// Dropout and Identity.
static bool drop(const berth_quantize__graph *graph, berth_onnx_node *node) {
    bool dropout = berth_onnx_node_is(node, "Dropout");
    if ((!dropout && !berth_onnx_node_is(node, "Identity")) || node->inputs.count == 0)
        return false;
    if (dropout && *berth_quantize__input(graph, node, 2)->name) return false;  // training_mode
    for (uint32_t i = 0; i < node->outputs.count; ++i) {
        const berth_quantize__value *value = berth_quantize__value_of(graph, node->outputs.data[i]);
        if (value->is_pinned || (i > 0 && value->use_count > 0)) return false;
    }
    if (berth_quantize__value_of(graph, node->inputs.data[0])->constant) return false;
    rename_uses(graph->model, node->outputs.data[0], node->inputs.data[0]);
    remove_node(graph->model, node);
    return true;
}

void berth_quantize__set_input(berth_arena *arena, berth_onnx_node *node, uint32_t index,
                               const char *name) {
    while (node->inputs.count <= index) berth_vec_push(arena, &node->inputs, "");
    node->inputs.data[index] = name;
}

static const char *add_f32(const berth_quantize__graph *graph, const char *stem, const char *suffix,
                           const berth_tensor *tensor) {
    const char *name = berth_quantize__new_name(graph, stem, suffix);
    berth_onnx_edit_add_constant(graph->model, name, tensor);
    return name;
}

berth_status berth_quantize__read_affine(const berth_quantize__graph *graph,
                                         const berth_onnx_node *node, bool *out_found,
                                         berth_quantize__affine *out) {
    bool gemm = berth_onnx_node_is(node, "Gemm");
    bool transposed = berth_onnx_node_is(node, "ConvTranspose");
    bool conv = transposed || berth_onnx_node_is(node, "Conv");
    *out_found = false;
    if ((!conv && !gemm) || (transposed && berth_onnx_node_int(node, "group", 1) != 1))
        return BERTH_OK;
    *out = (berth_quantize__affine){0};
    BERTH_TRY(berth_quantize__constant(graph, node, 1, &out->weight));
    BERTH_TRY(berth_quantize__constant(graph, node, 2, &out->bias));
    bool has_bias = *berth_quantize__input(graph, node, 2)->name;
    if (!out->weight || (has_bias && !out->bias)) return BERTH_OK;
    if (gemm && (out->weight->rank != 2 || berth_onnx_node_int(node, "transA", 0))) return BERTH_OK;
    if (conv && out->weight->rank < 3) return BERTH_OK;
    out->axis = transposed || (gemm && !berth_onnx_node_int(node, "transB", 0)) ? 1 : 0;
    out->channels = out->weight->dims[out->axis];
    out->result_rank = out->weight->rank;
    int64_t bias_count = out->bias ? berth_tensor_element_count(out->bias) : out->channels;
    if (bias_count != out->channels && !(gemm && bias_count == 1)) return BERTH_OK;
    if (out->bias && out->bias->rank > 0 && bias_count > 1 &&
        out->bias->dims[out->bias->rank - 1] != out->channels)
        return BERTH_OK;
    *out_found = true;
    return BERTH_OK;
}

// Weights and bias times `scale`, plus `shift`, per channel; as new constants of the node.
static void scale_affine(const berth_quantize__graph *graph, berth_onnx_node *node,
                         const berth_quantize__affine *a, const double *scale,
                         const double *shift) {
    berth_arena *arena = graph->model->arena;
    const char *stem = berth_quantize__node_name(node);
    berth_tensor weight =
        berth_tensor_create_unset(arena, BERTH_DTYPE_F32, a->weight->rank, a->weight->dims);
    berth_tensor bias = berth_tensor_create(arena, BERTH_DTYPE_F32, 1, &a->channels);
    int64_t inner = 1, count = berth_tensor_element_count(&weight);
    for (int d = a->axis + 1; d < weight.rank; ++d) inner *= weight.dims[d];
    const float *from = a->weight->data;
    float *to = weight.data, *b = bias.data;
    for (int64_t i = 0; i < count; ++i)
        to[i] = (float)((double)from[i] * scale[i / inner % a->channels]);
    const float *old = a->bias ? a->bias->data : NULL;
    bool one = old && berth_tensor_element_count(a->bias) == 1;
    for (int64_t c = 0; c < a->channels; ++c)
        b[c] = (float)((old ? (double)old[one ? 0 : c] * scale[c] : 0) + shift[c]);
    berth_quantize__set_input(arena, node, 1, add_f32(graph, stem, "weight", &weight));
    berth_quantize__set_input(arena, node, 2, add_f32(graph, stem, "bias", &bias));
}

// Gemm with factors, or a bias of another shape than its channels: into the constants.
static berth_status normalise_gemm(const berth_quantize__graph *graph, berth_onnx_node *node,
                                   bool *out_changed) {
    berth_quantize__affine a;
    bool found = false;
    if (!berth_onnx_node_is(node, "Gemm")) return BERTH_OK;
    BERTH_TRY(berth_quantize__read_affine(graph, node, &found, &a));
    double alpha = berth_onnx_node_float(node, "alpha", 1);
    double beta = berth_onnx_node_float(node, "beta", 1);
    bool flat = !a.bias || (a.bias->rank == 1 && a.bias->dims[0] == a.channels);
    if (!found || (alpha == 1 && (beta == 1 || !a.bias) && flat)) return BERTH_OK;
    berth_arena *arena = graph->model->arena;
    double *scale = berth_arena_new_array(arena, double, a.channels);
    double *shift = berth_arena_new_array(arena, double, a.channels);
    for (int64_t c = 0; c < a.channels; ++c) {
        bool one = a.bias && berth_tensor_element_count(a.bias) == 1;
        double bias = a.bias ? berth_tensor_get_f64(a.bias, one ? 0 : c) : 0;
        scale[c] = alpha;
        shift[c] = bias * (beta - alpha);
    }
    scale_affine(graph, node, &a, scale, shift);
    berth_onnx_node_remove(node, "alpha");
    berth_onnx_node_remove(node, "beta");
    *out_changed = true;
    return BERTH_OK;
}

// The constant operand of an elementwise node as a value per channel of `a`. False: it is none.
static bool per_channel(const berth_tensor *constant, const berth_quantize__affine *a,
                        double *out) {
    int64_t count = berth_tensor_element_count(constant);
    if (constant->rank > a->result_rank) return false;
    if (count != 1) {
        int axis = constant->rank - (a->result_rank == 2 ? 1 : a->result_rank - 1);
        if (axis < 0 || count != a->channels || constant->dims[axis] != a->channels) return false;
    }
    for (int64_t c = 0; c < a->channels; ++c)
        out[c] = berth_tensor_get_f64(constant, count == 1 ? 0 : c);
    return true;
}

static berth_status batch_norm(const berth_quantize__graph *graph, const berth_onnx_node *node,
                               const berth_quantize__affine *a, double *scale, double *shift,
                               bool *out_found) {
    const berth_tensor *parts[4];
    *out_found = false;
    if (!berth_onnx_node_int(node, "spatial", 1) || berth_onnx_node_int(node, "training_mode", 0))
        return BERTH_OK;
    for (uint32_t i = 0; i < 4; ++i) {
        BERTH_TRY(berth_quantize__constant(graph, node, i + 1, &parts[i]));
        if (!parts[i] || berth_tensor_element_count(parts[i]) != a->channels) return BERTH_OK;
    }
    double epsilon = berth_onnx_node_float(node, "epsilon", 1e-5);
    for (int64_t c = 0; c < a->channels; ++c) {
        double deviation = sqrt(berth_tensor_get_f64(parts[3], c) + epsilon);
        scale[c] = berth_tensor_get_f64(parts[0], c) / deviation;
        shift[c] = berth_tensor_get_f64(parts[1], c) - berth_tensor_get_f64(parts[2], c) * scale[c];
    }
    *out_found = true;
    return BERTH_OK;
}

static berth_status elementwise(const berth_quantize__graph *graph, const berth_onnx_node *node,
                                const char *result, const berth_quantize__affine *a, double *scale,
                                double *shift, bool *out_found) {
    bool add = berth_onnx_node_is(node, "Add"), sub = berth_onnx_node_is(node, "Sub");
    bool mul = berth_onnx_node_is(node, "Mul"), div = berth_onnx_node_is(node, "Div");
    *out_found = false;
    if (!(add || sub || mul || div) || node->inputs.count != 2 ||
        berth_onnx_node_has(node, "broadcast"))
        return BERTH_OK;
    uint32_t other = strcmp(node->inputs.data[0], result) == 0 ? 1 : 0;
    if (other == 0 && (sub || div)) return BERTH_OK;
    const berth_tensor *constant = NULL;
    BERTH_TRY(berth_quantize__constant(graph, node, other, &constant));
    double *into = add || sub ? shift : scale;
    if (!constant || !per_channel(constant, a, into)) return BERTH_OK;
    for (int64_t c = 0; c < a->channels; ++c) {
        if (sub) shift[c] = -shift[c];
        if (div) scale[c] = 1 / scale[c];
        *(add || sub ? &scale[c] : &shift[c]) = add || sub ? 1 : 0;
    }
    *out_found = true;
    return BERTH_OK;
}

// BatchNormalization, Add, Mul, ... with constants after a layer: into the layer.
static berth_status fold_affine(const berth_quantize__graph *graph, berth_onnx_node *node,
                                bool *out_changed) {
    berth_quantize__affine a;
    bool found = false;
    berth_onnx_node *next = berth_quantize__only_user(graph, node);
    if (!next) return BERTH_OK;
    BERTH_TRY(berth_quantize__read_affine(graph, node, &found, &a));
    if (!found) return BERTH_OK;
    berth_arena *arena = graph->model->arena;
    double *scale = berth_arena_new_array(arena, double, a.channels);
    double *shift = berth_arena_new_array(arena, double, a.channels);
    if (berth_onnx_node_is(next, "BatchNormalization"))
        BERTH_TRY(batch_norm(graph, next, &a, scale, shift, &found));
    else
        BERTH_TRY(elementwise(graph, next, node->outputs.data[0], &a, scale, shift, &found));
    for (int64_t c = 0; c < a.channels && found; ++c)
        found = isfinite(scale[c]) && isfinite(shift[c]);
    if (!found) return BERTH_OK;
    scale_affine(graph, node, &a, scale, shift);
    node->outputs.data[0] = next->outputs.data[0];
    remove_node(graph->model, next);
    *out_changed = true;
    return BERTH_OK;
}

// MatMul of two dimensions, and the Add of a bias after it.
static berth_status matmul_to_gemm(const berth_quantize__state *state,
                                   const berth_quantize__graph *graph, berth_onnx_node *node,
                                   bool *out_changed) {
    const berth_tensor *weight = NULL, *bias = NULL;
    berth_onnx_node *next = berth_quantize__only_user(graph, node);
    if (!berth_onnx_node_is(node, "MatMul") || node->inputs.count != 2 || !next ||
        !berth_onnx_node_is(next, "Add") || next->inputs.count != 2)
        return BERTH_OK;
    int rank =
        berth_quantize__rank_of(state, node->outputs.data[0]);  // with such weights x's as well
    uint32_t other = strcmp(next->inputs.data[0], node->outputs.data[0]) == 0 ? 1 : 0;
    BERTH_TRY(berth_quantize__constant(graph, node, 1, &weight));
    BERTH_TRY(berth_quantize__constant(graph, next, other, &bias));
    if (rank != 2 || !weight || weight->rank != 2 || !bias || bias->rank > 2 ||
        berth_tensor_element_count(bias) != weight->dims[1] ||
        bias->dims[bias->rank - 1] != weight->dims[1])
        return BERTH_OK;
    node->op_type = "Gemm";
    berth_quantize__set_input(graph->model->arena, node, 2, next->inputs.data[other]);
    node->outputs.data[0] = next->outputs.data[0];
    remove_node(graph->model, next);
    *out_changed = true;
    return BERTH_OK;
}

static berth_status rewrite_node(const berth_quantize__state *state,
                                 const berth_quantize__graph *graph, berth_onnx_node *node,
                                 bool *out_changed) {
    *out_changed = drop(graph, node);
    if (*out_changed) return BERTH_OK;
    if (berth_onnx_node_is(node, "Sum") && node->inputs.count == 2) {
        node->op_type = "Add";
        *out_changed = true;
        return BERTH_OK;
    }
    BERTH_TRY(matmul_to_gemm(state, graph, node, out_changed));
    if (!*out_changed) BERTH_TRY(normalise_gemm(graph, node, out_changed));
    if (!*out_changed) BERTH_TRY(fold_affine(graph, node, out_changed));
    return BERTH_OK;
}

// What nobody reads any more: nodes, then constants.
static void remove_unused(berth_quantize__state *state) {
    berth_onnx_edit *model = state->model;
    for (bool changed = true; changed;) {
        berth_arena *scratch = berth_arena_create_child(state->arena);
        berth_quantize__graph graph = berth_quantize__graph_make(scratch, model);
        changed = false;
        for (uint32_t i = model->nodes.count; i-- > 0;) {
            const berth_onnx_node *node = model->nodes.data[i];
            bool used = false;
            for (uint32_t k = 0; k < node->outputs.count; ++k) {
                const berth_quantize__value *value =
                    berth_quantize__value_of(&graph, node->outputs.data[k]);
                used |= value->is_pinned || value->use_count > 0;
            }
            if (used) continue;
            remove_node(model, node);
            changed = true;
        }
        for (uint32_t i = model->constants.count; i-- > 0 && !changed;) {
            const berth_quantize__value *value =
                berth_quantize__value_of(&graph, model->constants.data[i]->name);
            if (value->use_count == 0 && !value->is_pinned)
                berth_onnx_edit_remove_constant(model, model->constants.data[i]->name);
        }
        berth_arena_destroy(scratch);
    }
}

berth_status berth_quantize__prepare(berth_quantize__state *state) {
    first_run run = {.state = state};
    uint32_t folded = 0;
    berth_onnx_edit *model = state->model;
    BERTH_TRY(read_constant_nodes(state));
    BERTH_TRY(run_first(state, &run));
    remove_unused(state);
    // The index of the graph is made anew after every change: O(changes * nodes).
    for (bool changed = true; changed;) {
        berth_arena *scratch = berth_arena_create_child(state->arena);
        berth_quantize__graph graph = berth_quantize__graph_make(scratch, model);
        berth_status status = BERTH_OK;
        changed = false;
        for (uint32_t i = 0; i < model->nodes.count && !changed && !status; ++i)
            status = rewrite_node(state, &graph, model->nodes.data[i], &changed);
        folded += changed;
        berth_arena_destroy(scratch);
        BERTH_TRY(status);
    }
    remove_unused(state);
    if (folded)
        berth_quantize__note(
            state, "%u operations became parts of others (batch norms, biases, dropout)", folded);
    return BERTH_OK;
}
