#include "compiler/passes/winograd.h"

#define BLOCK 16

static const float g2[4][3] = {{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}};
static const float g4[6][3] = {{1.0F / 4, 0, 0},
                               {-1.0F / 6, -1.0F / 6, -1.0F / 6},
                               {-1.0F / 6, 1.0F / 6, -1.0F / 6},
                               {1.0F / 24, 1.0F / 12, 1.0F / 6},
                               {1.0F / 24, -1.0F / 12, 1.0F / 6},
                               {0, 0, 1}};

// Operations of the products of F(m x m), and what a core could do while memory delivers the
// weights and the cache the points, which are written and read once each.
static double cost_of(const berth_window *w, int64_t inputs, int64_t outputs, int64_t lanes,
                      int64_t m) {
    static const double flops_per_byte_and_lane = 0.625;  // 100 Gflop/s of 8 lanes, 20 GB/s
    static const double cache_over_memory = 4;
    double balance = flops_per_byte_and_lane * (double)lanes;
    double points = (double)((m + 2) * (m + 2));
    double tiles = (double)((w->output[0] + m - 1) / m * ((w->output[1] + m - 1) / m));
    double weights = points * (double)(inputs * outputs);
    double moved = points * tiles * (double)(inputs + outputs) * 2;
    double bytes = weights + moved / cache_over_memory;
    return 2 * weights * tiles + balance * (double)sizeof(float) * bytes;
}

int64_t berth_winograd_choose(const berth_window *w, int64_t inputs, int64_t outputs,
                              int64_t lanes) {
    bool fits = w->spatial == 2 && w->group == 1;
    for (int i = 0; fits && i < 2; ++i)
        fits = w->kernel[i] == 3 && w->strides[i] == 1 && w->dilations[i] == 1;
    if (!fits || inputs < 32 || outputs < 32 || inputs % 8 || outputs % 8) return 0;
    int64_t least = w->output[0] < w->output[1] ? w->output[0] : w->output[1];
    if (least < 12) return 0;
    double four = cost_of(w, inputs, outputs, lanes, 4);
    return cost_of(w, inputs, outputs, lanes, 2) < four ? 2 : 4;
}

// One kernel: (m + 2)^2 points, written `stride` floats apart.
static void transform(const float (*g)[3], int size, const float *kernel, float *out,
                      int64_t stride) {
    float half[6][3];
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < 3; ++j)
            half[i][j] = g[i][0] * kernel[j] + g[i][1] * kernel[3 + j] + g[i][2] * kernel[6 + j];
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j)
            out[(i * size + j) * stride] =
                half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
}

float *berth_winograd_weights(const berth_tensor *weights, int64_t m, berth_arena *arena) {
    int64_t outputs = weights->dims[0];
    int64_t inputs = weights->dims[1];
    int64_t points = (m + 2) * (m + 2);
    int64_t padded = (outputs + BLOCK - 1) / BLOCK * BLOCK;
    int64_t stride = padded * inputs;
    float *packed = berth_arena_alloc_aligned(
        arena, (size_t)(points * stride) * sizeof(float) + sizeof(float), 128);
    const float *values = weights->data;
    for (int64_t o = 0; o < outputs; ++o)
        for (int64_t i = 0; i < inputs; ++i) {
            float *at = packed + (o / BLOCK * inputs + i) * BLOCK + o % BLOCK;
            transform(m == 2 ? g2 : g4, (int)m + 2, values + (o * inputs + i) * 9, at, stride);
        }
    return packed;
}
