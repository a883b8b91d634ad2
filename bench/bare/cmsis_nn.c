// The convolutional networks of MLPerf Tiny as calls of CMSIS-NN: the peer of docs/bare.md, which
// scripts/bare_peers.sh compiles for a Cortex-M with CMSIS-NN's sources (not part of this project).
// Weights are zero: no path of the code depends on values. NHWC, int8, a scale per channel, as the
// library wants them. Prints what the layers need besides weights and how many instructions the calls
// take; tests/bare/board counts them.
//
//   -DNETWORK=resnet8_layers -DKINDS=0x3d      KINDS: bits of the kinds of layers in it, so that others
//                                              are not linked
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "arm_nnfunctions.h"

#define HAS(kind) ((KINDS) >> (kind)&1)

enum { CONV, DEPTHWISE, DENSE, POOL, ADD, SOFTMAX };

// Slots are thirds of the arena that values take turns in.
typedef struct layer {
    uint8_t kind, kh, kw, stride, pad_h, pad_w;
    uint8_t in_h, in_w, out_h, out_w;
    uint16_t in_c, out_c;
    uint8_t from, to;
} layer;

#define SEPARABLE(h, c, s, oh, oc)                                                                 \
    {DEPTHWISE, 3, 3, s, (s) == 1, (s) == 1, h, h, oh, oh, c, c, 0, 1}, {                          \
        CONV, 1, 1, 1, 0, 0, oh, oh, oh, oh, c, oc, 1, 0                                           \
    }
#define RESIDUAL(h, c)                                                                             \
    { ADD, 0, 0, 0, 0, 0, h, h, h, h, c, c, 0, 0 }

static const layer resnet8_layers[] = {
    {CONV, 3, 3, 1, 1, 1, 32, 32, 32, 32, 3, 16, 1, 0},
    {CONV, 3, 3, 1, 1, 1, 32, 32, 32, 32, 16, 16, 0, 1},
    {CONV, 3, 3, 1, 1, 1, 32, 32, 32, 32, 16, 16, 1, 2},
    RESIDUAL(32, 16),
    {CONV, 3, 3, 2, 0, 0, 32, 32, 16, 16, 16, 32, 0, 1},
    {CONV, 1, 1, 2, 0, 0, 32, 32, 16, 16, 16, 32, 0, 2},
    {CONV, 3, 3, 1, 1, 1, 16, 16, 16, 16, 32, 32, 1, 0},
    RESIDUAL(16, 32),
    {CONV, 3, 3, 2, 0, 0, 16, 16, 8, 8, 32, 64, 0, 1},
    {CONV, 1, 1, 2, 0, 0, 16, 16, 8, 8, 32, 64, 0, 2},
    {CONV, 3, 3, 1, 1, 1, 8, 8, 8, 8, 64, 64, 1, 0},
    RESIDUAL(8, 64),
    {POOL, 8, 8, 8, 0, 0, 8, 8, 1, 1, 64, 64, 0, 1},
    {DENSE, 1, 1, 1, 0, 0, 1, 1, 1, 1, 64, 10, 1, 0},
    {SOFTMAX, 0, 0, 0, 0, 0, 1, 1, 1, 1, 10, 10, 0, 1},
};

#define DSCNN_BLOCK                                                                                \
    {DEPTHWISE, 3, 3, 1, 1, 1, 25, 5, 25, 5, 64, 64, 0, 1}, {                                      \
        CONV, 1, 1, 1, 0, 0, 25, 5, 25, 5, 64, 64, 1, 0                                            \
    }
static const layer dscnn_layers[] = {
    {CONV, 10, 4, 2, 4, 1, 49, 10, 25, 5, 1, 64, 1, 0},
    DSCNN_BLOCK,
    DSCNN_BLOCK,
    DSCNN_BLOCK,
    DSCNN_BLOCK,
    {POOL, 24, 5, 24, 0, 0, 25, 5, 1, 1, 64, 64, 0, 1},
    {DENSE, 1, 1, 1, 0, 0, 1, 1, 1, 1, 64, 12, 1, 0},
    {SOFTMAX, 0, 0, 0, 0, 0, 1, 1, 1, 1, 12, 12, 0, 1},
};

static const layer mobilenetv1_layers[] = {
    {CONV, 3, 3, 2, 0, 0, 96, 96, 48, 48, 3, 8, 1, 0},
    SEPARABLE(48, 8, 1, 48, 16),
    SEPARABLE(48, 16, 2, 24, 32),
    SEPARABLE(24, 32, 1, 24, 32),
    SEPARABLE(24, 32, 2, 12, 64),
    SEPARABLE(12, 64, 1, 12, 64),
    SEPARABLE(12, 64, 2, 6, 128),
    SEPARABLE(6, 128, 1, 6, 128),
    SEPARABLE(6, 128, 1, 6, 128),
    SEPARABLE(6, 128, 1, 6, 128),
    SEPARABLE(6, 128, 1, 6, 128),
    SEPARABLE(6, 128, 1, 6, 128),
    SEPARABLE(6, 128, 2, 3, 256),
    SEPARABLE(3, 256, 1, 3, 256),
    {POOL, 3, 3, 3, 0, 0, 3, 3, 1, 1, 256, 256, 0, 1},
    {DENSE, 1, 1, 1, 0, 0, 1, 1, 1, 1, 256, 2, 1, 0},
    {SOFTMAX, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 0, 1},
};

#define DENSE_LAYER(in, out, from)                                                                 \
    { DENSE, 1, 1, 1, 0, 0, 1, 1, 1, 1, in, out, from, !(from) }
static const layer autoencoder_layers[] = {
    DENSE_LAYER(640, 128, 0), DENSE_LAYER(128, 128, 1), DENSE_LAYER(128, 128, 0),
    DENSE_LAYER(128, 128, 1), DENSE_LAYER(128, 8, 0),   DENSE_LAYER(8, 128, 1),
    DENSE_LAYER(128, 128, 0), DENSE_LAYER(128, 128, 1), DENSE_LAYER(128, 128, 0),
    DENSE_LAYER(128, 640, 1),
};

enum { LAYERS = sizeof(NETWORK) / sizeof(NETWORK[0]), SLOT = 40960 };

static int8_t arena[3][SLOT];
static int32_t scratch[4096];  // the library asks for what it needs below
static const int8_t weights[73728];
static const int32_t biases[640];
static int32_t multipliers[640], shifts[640];
static int32_t scratch_bytes, live_bytes;

static void need(int32_t size) {
    if (size > scratch_bytes) scratch_bytes = size;
    if (size > (int32_t)sizeof(scratch)) printf("scratch of %d bytes\n", (int)size);
}

static int run_layer(const layer *l, int only_sizes) {
    cmsis_nn_context context = {scratch, sizeof(scratch)};
    cmsis_nn_dims in = {1, l->in_h, l->in_w, l->in_c}, out = {1, l->out_h, l->out_w, l->out_c};
    cmsis_nn_dims filter = {l->out_c, l->kh, l->kw, l->in_c}, bias = {1, 1, 1, l->out_c};
    cmsis_nn_per_channel_quant_params quant = {multipliers, shifts};
    cmsis_nn_tile stride = {l->stride, l->stride}, pad = {l->pad_w, l->pad_h}, one = {1, 1};
    cmsis_nn_activation range = {-128, 127};
    const int8_t *x = arena[l->from];
    int8_t *y = arena[l->to];
    int32_t values = l->in_h * l->in_w * l->in_c + l->out_h * l->out_w * l->out_c;
    if (l->kind == ADD) values = 2 * l->in_h * l->in_w * l->in_c;
    if (only_sizes && values > live_bytes) live_bytes = values;
    if (!HAS(l->kind)) return 2;
    switch (l->kind) {
    case CONV: {
        if (!HAS(CONV)) break;
        cmsis_nn_conv_params params = {128, -128, stride, pad, one, range};
        if (only_sizes) {
            need(arm_convolve_wrapper_s8_get_buffer_size(&params, &in, &filter, &out));
            return 0;
        }
        return arm_convolve_wrapper_s8(&context, &params, &quant, &in, x, &filter, weights, &bias,
                                       biases, &out, y);
    }
    case DEPTHWISE: {
        if (!HAS(DEPTHWISE)) break;
        cmsis_nn_dw_conv_params params = {128, -128, 1, stride, pad, one, range};
        filter = (cmsis_nn_dims){1, l->kh, l->kw, l->out_c};
        if (only_sizes) {
            need(arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &in, &filter, &out));
            return 0;
        }
        return arm_depthwise_conv_wrapper_s8(&context, &params, &quant, &in, x, &filter, weights,
                                             &bias, biases, &out, y);
    }
    case DENSE: {
        if (!HAS(DENSE)) break;
        cmsis_nn_fc_params params = {128, 0, -128, range};
        cmsis_nn_quant_params each = {multipliers, shifts, 1};
        cmsis_nn_dims flat = {1, 1, 1, l->in_c}, matrix = {l->in_c, 1, 1, l->out_c};
        if (only_sizes) {
            need(arm_fully_connected_s8_get_buffer_size(&matrix));
            return 0;
        }
        return arm_fully_connected_wrapper_s8(&context, &params, &each, &flat, x, &matrix, weights,
                                              &bias, biases, &out, y);
    }
    case POOL: {
        if (!HAS(POOL)) break;
        cmsis_nn_pool_params params = {stride, pad, range};
        cmsis_nn_dims window = {1, l->kh, l->kw, 1};
        if (only_sizes) {
            need(arm_avgpool_s8_get_buffer_size(l->out_w, l->in_c));
            return 0;
        }
        return arm_avgpool_s8(&context, &params, &in, x, &window, &out, y);
    }
    case ADD:
        if (only_sizes || !HAS(ADD)) return 0;
        return arm_elementwise_add_s8(x, arena[2], 128, 1 << 30, 0, 128, 1 << 30, 0, 20, y, -128,
                                      1 << 30, -19, -128, 127, l->in_h * l->in_w * l->in_c);
    default:
        if (!only_sizes && HAS(SOFTMAX)) arm_softmax_s8(x, 1, l->in_c, 1 << 30, 20, -100, y);
        return 0;
    }
    return 2;
}

// Stands in front of network_run and counts (tests/bare/board/measure.c).
int measured_run(const void *inputs, void *outputs);
int network_run(const void *inputs, void *outputs);
int network_run(const void *inputs, void *outputs) {
    (void)inputs, (void)outputs;
    for (int i = 0; i < LAYERS; ++i)
        if (run_layer(&NETWORK[i], 0)) return 1;
    return 0;
}

int main(void) {
    for (int i = 0; i < 640; ++i) multipliers[i] = 1 << 30, shifts[i] = -8;
    for (int i = 0; i < LAYERS; ++i) run_layer(&NETWORK[i], 1);
    int failed = measured_run(arena, arena);
    printf("live %d scratch %d failed %d\n", (int)live_bytes, (int)scratch_bytes, failed);
    return failed;
}
