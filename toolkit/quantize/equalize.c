// Cross-layer equalisation (Nagel et al., arXiv 1906.04721, section 4.1): for two layers with nothing
// between them but functions with f(s x) = s f(x), s > 0, channel by channel, the first one's results
// may be divided by s and the second one's weights multiplied by it. With s = sqrt(r1 / r2), r the
// largest weight of the channel on either side, no channel is left with a few of the 256 steps. That
// helps where one scale serves all channels: those of weights, and those of the value between the two,
// above all with depthwise convolutions.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

enum { MOST_ROUNDS = 10 };

typedef struct pair {
    berth_onnx_node *nodes[2];
    berth_quantize__affine parts[2];
    int64_t group;  // of the second one
} pair;

// Equal for scaled channels, and of one input.
static bool is_homogeneous(const berth_onnx_node *node) {
    static const char *const names[] = {"Relu",        "LeakyRelu",         "MaxPool",
                                        "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        if (berth_onnx_node_is(node, names[i])) return node->outputs.count == 1;
    return false;
}

static berth_status find_pair(const berth_quantize__graph *graph, berth_onnx_node *node,
                              bool *out_found, pair *out) {
    BERTH_TRY(berth_quantize__read_affine(graph, node, out_found, &out->parts[0]));
    if (!*out_found) return BERTH_OK;
    out->nodes[0] = node;
    berth_onnx_node *next = berth_quantize__only_user(graph, node), *last = node;
    while (next && is_homogeneous(next)) {
        last = next;
        next = berth_quantize__only_user(graph, next);
    }
    *out_found = false;
    if (!next || strcmp(next->op_type, node->op_type) != 0 || next->inputs.count == 0 ||
        strcmp(next->inputs.data[0], last->outputs.data[0]) != 0)
        return BERTH_OK;
    out->nodes[1] = next;
    BERTH_TRY(berth_quantize__read_affine(graph, next, out_found, &out->parts[1]));
    if (!*out_found) return BERTH_OK;
    const berth_quantize__affine *b = &out->parts[1];
    out->group = berth_onnx_node_int(next, "group", 1);
    bool plain = !berth_onnx_node_is(next, "Conv");
    int64_t inputs = plain ? b->weight->dims[1 - b->axis] : b->weight->dims[1] * out->group;
    *out_found =
        out->group > 0 && inputs == out->parts[0].channels && b->channels % out->group == 0;
    return BERTH_OK;
}

static int64_t inner_of(const berth_tensor *tensor, int axis) {
    int64_t inner = 1;
    for (int d = axis + 1; d < tensor->rank; ++d) inner *= tensor->dims[d];
    return inner;
}

// The channel of the value between the two that an element of either's weights belongs to.
static int64_t channel_of(const pair *p, int side, int64_t at) {
    const berth_quantize__affine *a = &p->parts[side];
    if (side == 0) return at / inner_of(a->weight, a->axis) % a->channels;
    if (!berth_onnx_node_is(p->nodes[1], "Conv"))
        return at / inner_of(a->weight, 1 - a->axis) % a->weight->dims[1 - a->axis];
    int64_t per_group = a->weight->dims[1], output = at / inner_of(a->weight, 0);
    return output / (a->channels / p->group) * per_group + at / inner_of(a->weight, 1) % per_group;
}

static void find_reach(const pair *p, int side, double *reach) {
    const float *data = p->parts[side].weight->data;
    int64_t count = berth_tensor_element_count(p->parts[side].weight);
    for (int64_t i = 0; i < count; ++i) {
        int64_t c = channel_of(p, side, i);
        reach[c] = fmax(reach[c], fabs((double)data[i]));
    }
}

static berth_tensor scaled(berth_arena *arena, const pair *p, int side, const double *factor) {
    const berth_tensor *weight = p->parts[side].weight;
    berth_tensor out =
        berth_tensor_create_unset(arena, BERTH_DTYPE_F32, weight->rank, weight->dims);
    const float *from = weight->data;
    float *to = out.data;
    int64_t count = berth_tensor_element_count(weight);
    for (int64_t i = 0; i < count; ++i) {
        double f = factor[channel_of(p, side, i)];
        to[i] = (float)(side ? (double)from[i] * f : (double)from[i] / f);
    }
    return out;
}

static void apply(const berth_quantize__graph *graph, const pair *p, const berth_tensor weights[2],
                  const double *factor) {
    berth_arena *arena = graph->model->arena;
    for (int side = 0; side < 2; ++side) {
        const char *name =
            berth_quantize__new_name(graph, berth_quantize__node_name(p->nodes[side]), "equalized");
        berth_onnx_edit_add_constant(graph->model, name, &weights[side]);
        berth_quantize__set_input(arena, p->nodes[side], 1, name);
    }
    if (!p->parts[0].bias) return;
    int64_t channels = p->parts[0].channels;
    bool one = berth_tensor_element_count(p->parts[0].bias) == 1;
    berth_tensor bias = berth_tensor_create(arena, BERTH_DTYPE_F32, 1, &channels);
    for (int64_t c = 0; c < channels; ++c)
        ((float *)bias.data)[c] =
            (float)(berth_tensor_get_f64(p->parts[0].bias, one ? 0 : c) / factor[c]);
    const char *name =
        berth_quantize__new_name(graph, berth_quantize__node_name(p->nodes[0]), "equalized_bias");
    berth_onnx_edit_add_constant(graph->model, name, &bias);
    berth_quantize__set_input(arena, p->nodes[0], 2, name);
}

// Whether it changed something.
static bool equalize(berth_quantize__state *state, const berth_quantize__graph *graph,
                     const pair *p) {
    enum { LIMIT = 256 };  // of a factor
    berth_arena *arena = state->arena;
    int64_t channels = p->parts[0].channels;
    double *factor = berth_arena_new_array(arena, double, channels);
    double *reach = berth_arena_new_array(arena, double, 2 * channels);
    bool differs = false;
    find_reach(p, 0, reach);
    find_reach(p, 1, reach + channels);
    for (int64_t c = 0; c < channels; ++c) {
        double f = sqrt(reach[c] / reach[channels + c]);
        factor[c] = !(reach[c] > 0) || !(reach[channels + c] > 0) ? 1
                    : f < 1.0 / LIMIT                             ? 1.0 / LIMIT
                    : f > LIMIT                                   ? LIMIT
                                                                  : f;
        differs |= fabs(factor[c] - 1) > 0.02;
    }
    if (!differs) return false;
    berth_tensor weights[2] = {scaled(arena, p, 0, factor), scaled(arena, p, 1, factor)};
    apply(graph, p, weights, factor);
    return true;
}

// Names of the layers' results that were scaled, once each.
static void remember(berth_quantize__state *state, const pair *p, berth_onnx_names *done) {
    const char *name = p->nodes[0]->outputs.data[0];
    for (uint32_t i = 0; i < done->count; ++i)
        if (strcmp(done->data[i], name) == 0) return;
    berth_vec_push(state->arena, done, name);
}

berth_status berth_quantize__equalize(berth_quantize__state *state) {
    berth_onnx_names done = {0};
    bool changed = true;
    for (int round = 0; round < MOST_ROUNDS && changed; ++round) {
        berth_arena *scratch = berth_arena_create_child(state->arena);
        berth_status status = BERTH_OK;
        changed = false;
        for (uint32_t i = 0; i < state->model->nodes.count && !status; ++i) {
            // New constants are read through an index that knows them.
            berth_quantize__graph graph = berth_quantize__graph_make(scratch, state->model);
            pair p;
            bool found = false;
            status = find_pair(&graph, state->model->nodes.data[i], &found, &p);
            if (status || !found || !equalize(state, &graph, &p)) continue;
            remember(state, &p, &done);
            changed = true;
        }
        berth_arena_destroy(scratch);
        BERTH_TRY(status);
    }
    state->equalized_count = done.count;
    return BERTH_OK;
}
