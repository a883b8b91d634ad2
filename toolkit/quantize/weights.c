// 8-bit weights: one scale for all, or one per output channel.
#include <math.h>
#include <string.h>

#include "toolkit/quantize/state.h"

// The weights of channel `c`, or (c < 0) all.
static berth_quantize__slice slice_of(const berth_tensor *weight, int axis, int64_t c) {
    const float *data = weight->data;
    int64_t count = berth_tensor_element_count(weight), inner = 1, outer = 1;
    if (c < 0) return (berth_quantize__slice){data, 1, 0, count};
    for (int d = 0; d < axis; ++d) outer *= weight->dims[d];
    for (int d = axis + 1; d < weight->rank; ++d) inner *= weight->dims[d];
    return (berth_quantize__slice){data + c * inner, outer, inner * weight->dims[axis], inner};
}

static void add_noise(const berth_quantize__slice *slice, float scale, bool power_of_two,
                      double *signal, double *noise) {
    for (int64_t o = 0; o < slice->outer; ++o)
        for (int64_t i = 0; i < slice->inner; ++i) {
            float value = slice->data[o * slice->outer_stride + i];
            double rounded =
                (double)scale * berth_quantize__weight_round(value, scale, power_of_two);
            *signal += (double)value * (double)value;
            *noise += ((double)value - rounded) * ((double)value - rounded);
        }
}

// A bias in steps of x_scale * scale must fit 32 bits, beside the sum: the least scale with which it
// takes 29.
static float least_scale(const berth_quantize__layer *layer, float input_scale, int64_t channel) {
    double most = 0;
    const float *bias = layer->bias ? layer->bias->data : NULL;
    for (int64_t c = 0; bias && c < layer->channels; ++c)
        if (channel < 0 || c == channel) most = fmax(most, fabs((double)bias[c]));
    return (float)(most / ((double)input_scale * 0x1p29));
}

static void quantize_layer(berth_quantize__state *state, berth_quantize__layer *layer) {
    const berth_quantize_options *options = state->options;
    const berth_tensor *weight = layer->weight;
    bool two = options->power_of_two;
    layer->scale_count = options->per_channel ? (uint32_t)layer->channels : 1;
    float *scales = berth_arena_new_array(state->arena, float, layer->scale_count);
    berth_tensor *quantized = berth_arena_new(state->arena, berth_tensor);
    *quantized =
        berth_tensor_create_unset(state->arena, BERTH_DTYPE_I8, weight->rank, weight->dims);
    int8_t *to = quantized->data;
    const float *from = weight->data;
    double signal = 0, noise = 0;
    float input_scale = berth_quantize__tensor_of(state, layer->input)->scale.scale;
    for (uint32_t c = 0; c < layer->scale_count; ++c) {
        int64_t channel = options->per_channel ? (int64_t)c : -1;
        berth_quantize__slice slice = slice_of(weight, layer->channel_axis, channel);
        float least = least_scale(layer, input_scale, channel);
        scales[c] = berth_quantize__weight_scale(&slice, options);
        while (two && scales[c] < least) scales[c] *= 2;
        if (scales[c] < least) scales[c] = least;
        add_noise(&slice, scales[c], two, &signal, &noise);
        for (int64_t o = 0; o < slice.outer; ++o)
            for (int64_t i = 0; i < slice.inner; ++i) {
                int64_t at = slice.data - from + o * slice.outer_stride + i;
                to[at] = berth_quantize__weight_round(from[at], scales[c], two);
            }
    }
    layer->quantized = quantized;
    layer->scales = scales;
    layer->weight_sqnr = berth_quantize__decibels(signal, noise);
}

berth_status berth_quantize__quantize_weights(berth_quantize__state *state) {
    for (uint32_t i = 0; i < state->layers.count; ++i)
        if (!state->layers.data[i].kept && state->layers.data[i].weight)
            quantize_layer(state, &state->layers.data[i]);
    return BERTH_OK;
}
