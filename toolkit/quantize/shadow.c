// The error of each layer alone: beside every layer stands a second one, with the same input, rounded,
// and 8-bit weights; one model gives both results. The mean of what differs, per channel, is taken off
// the bias (Nagel et al., arXiv 1906.04721, section 4.2, from data), where it is more than chance.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

enum { LEAST_SAMPLES = 64 };  // of a channel, for a correction

typedef struct shadow {
    berth_quantize__layer *layer;
    uint32_t outputs[2];  // the layer's, the second one's
    int64_t channels;     // 0 = there is no bias to correct
    int axis_from_right;  // of the channels in results; -1: axis 1
    double signal, noise;
    double count;  // per channel
    double *sums;  // of differences, per channel
    double *squares;
} shadow;

typedef struct shadows {
    berth_quantize__state *state;
    berth_quantize__runner *runner;
    BERTH_VEC(shadow) items;
} shadows;

static void add(shadow *s, const berth_tensor *exact, const berth_tensor *rounded) {
    int axis = s->axis_from_right < 0 ? 1 : exact->rank - s->axis_from_right;
    int64_t count = berth_tensor_element_count(exact), inner = 1;
    const float *a = exact->data, *b = rounded->data;
    bool channels =
        s->channels > 0 && axis >= 0 && axis < exact->rank && exact->dims[axis] == s->channels;
    for (int d = axis + 1; d < exact->rank; ++d) inner *= exact->dims[d];
    for (int64_t i = 0; i < count; ++i) {
        double error = (double)a[i] - (double)b[i];
        s->signal += (double)a[i] * (double)a[i];
        s->noise += error * error;
        s->layer->max_error = fmax(s->layer->max_error, fabs(error));
        if (!channels) continue;
        int64_t c = i / inner % s->channels;
        s->sums[c] += error;
        s->squares[c] += error * error;
    }
    if (channels) s->count += (double)(count / s->channels);
}

static berth_status compare_set(void *user, berth_arena *scratch, uint32_t set) {
    (void)scratch, (void)set;
    shadows *all = user;
    for (uint32_t i = 0; i < all->items.count; ++i) {
        shadow *s = &all->items.data[i];
        const berth_tensor *exact = berth_quantize__runner_output(all->runner, s->outputs[0]);
        const berth_tensor *rounded = berth_quantize__runner_output(all->runner, s->outputs[1]);
        if (!exact || !rounded || exact->dtype != BERTH_DTYPE_F32 ||
            !berth_tensor_same_shape(exact, rounded))
            return berth_status_make(BERTH_INTERNAL, "results of \"%s\" cannot be compared",
                                     s->layer->name);
        add(s, exact, rounded);
    }
    return BERTH_OK;
}

// Where the mean is more than twice its standard error.
static void correct(berth_quantize__state *state, shadow *s) {
    if (s->channels == 0 || s->count < LEAST_SAMPLES || state->options->no_bias_correction) return;
    float *correction = berth_arena_new_array(state->arena, float, s->channels);
    bool any = false;
    for (int64_t c = 0; c < s->channels; ++c) {
        double mean = s->sums[c] / s->count;
        double variance = fmax(0, s->squares[c] / s->count - mean * mean);
        if (mean * mean <= 4 * variance / s->count) continue;
        correction[c] = (float)mean;
        s->noise -= s->count * mean * mean;
        any = true;
    }
    if (any) s->layer->correction = correction;
}

static const char *rounded_input(const berth_quantize__state *state,
                                 const berth_quantize__graph *graph, const char *name) {
    const berth_quantize__tensor *tensor = berth_quantize__tensor_of(state, name);
    return berth_quantize__emit_pair(graph, name, NULL, &tensor->scale);
}

// A second node with rounded operands, at the end of the graph.
static void add_shadow(shadows *all, const berth_quantize__graph *graph,
                       berth_quantize__layer *layer, const berth_onnx_node *node) {
    berth_quantize__state *state = all->state;
    berth_onnx_edit *model = graph->model;
    bool maps = strncmp(layer->op, "Conv", 4) == 0;
    shadow s = {.layer = layer, .axis_from_right = maps ? -1 : 1};
    berth_onnx_node *second = berth_arena_copy(model->arena, node, sizeof(*node));
    second->inputs.data = berth_arena_copy(model->arena, node->inputs.data,
                                           node->inputs.count * sizeof(node->inputs.data[0]));
    second->inputs.capacity = second->inputs.count;
    second->name = berth_quantize__new_name(graph, layer->output, "shadow");
    second->inputs.data[0] = rounded_input(state, graph, layer->input);
    if (layer->second) {
        second->inputs.data[1] = rounded_input(state, graph, layer->second);
    } else {
        float scale = berth_quantize__tensor_of(state, layer->input)->scale.scale;
        berth_quantize__emit_weights(graph, layer, scale, second);
        bool has_bias = strcmp(layer->op, "MatMul") != 0;
        s.channels = has_bias ? layer->channels : 0;
    }
    second->outputs = (berth_onnx_names){0};
    berth_vec_push(model->arena, &second->outputs, second->name);
    berth_vec_push(model->arena, &model->nodes, second);
    s.outputs[0] = berth_onnx_edit_output(model, layer->output);
    s.outputs[1] = berth_onnx_edit_output(model, second->name);
    s.sums = berth_arena_new_array(state->arena, double, s.channels + 1);
    s.squares = berth_arena_new_array(state->arena, double, s.channels + 1);
    berth_vec_push(state->arena, &all->items, s);
}

berth_status berth_quantize__measure_layers(berth_quantize__state *state) {
    berth_arena *scratch = berth_arena_create_child(state->arena);
    berth_onnx_edit *model = berth_onnx_edit_copy(scratch, state->model);
    berth_quantize__graph graph = berth_quantize__graph_make(scratch, model);
    shadows all = {.state = state};
    uint32_t node_count = model->nodes.count;
    for (uint32_t i = 0; i < node_count; ++i) {
        berth_quantize__layer *layer = berth_quantize__layer_of(state, model->nodes.data[i]);
        if (layer && !layer->kept) add_shadow(&all, &graph, layer, model->nodes.data[i]);
    }
    berth_status status = berth_quantize__runner_open(scratch, model, state->options, &all.runner);
    if (!status)
        status =
            berth_quantize__run_all(state->arena, &state->data, state->options, "errors of layers",
                                    &all.runner, 1, state->data.set_count, compare_set, &all);
    for (uint32_t i = 0; i < all.items.count && !status; ++i) {
        shadow *s = &all.items.data[i];
        correct(state, s);
        s->layer->sqnr = berth_quantize__decibels(s->signal, fmax(s->noise, 0));
    }
    berth_arena_destroy(scratch);
    return status;
}
