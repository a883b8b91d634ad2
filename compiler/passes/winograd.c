#include "compiler/passes/winograd.h"

#include <string.h>

#define BLOCK 16
#define USUAL_L2_BYTES 524288.0  // where the target does not say

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

int64_t berth_winograd_band(const berth_winograd_map *map, int64_t l2_bytes, int64_t cores) {
    double points = (double)((map->m + 2) * (map->m + 2)) * sizeof(float);
    double row_bytes = points * (double)(map->columns * (map->inputs + map->outputs));
    double weight_bytes = points * (double)(map->inputs * map->outputs);
    double whole_bytes = row_bytes * (double)(map->rows * map->batch);
    double cache = l2_bytes ? (double)l2_bytes : USUAL_L2_BYTES;
    if (whole_bytes <= cache / 2) return 0;
    for (int64_t band = map->rows; band > 0; --band) {
        int64_t bands = map->rows / band * map->batch;
        if (map->rows % band || bands < cores) continue;
        if (band > 1 && row_bytes * (double)band > cache / 2) continue;
        // Points are written and read once each; one row of them may still be more than the cache.
        bool stays = row_bytes * (double)band <= cache;
        return stays && (double)bands * weight_bytes <= 2 * whole_bytes ? band : 0;
    }
    return 0;
}

// The kernels of a block of outputs for one input: (m + 2)^2 points, each of BLOCK neighbours,
// written `stride` floats apart.
static void transform(const float (*g)[3], int size, float (*kernel)[BLOCK], float *out,
                      int64_t stride) {
    float half[6][3][BLOCK];
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < 3; ++j)
            for (int o = 0; o < BLOCK; ++o)
                half[i][j][o] = g[i][0] * kernel[j][o] + g[i][1] * kernel[3 + j][o] +
                                g[i][2] * kernel[6 + j][o];
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j) {
            float *at = out + (i * size + j) * stride;
            for (int o = 0; o < BLOCK; ++o)
                at[o] = half[i][0][o] * g[j][0] + half[i][1][o] * g[j][1] + half[i][2][o] * g[j][2];
        }
}

int64_t berth_winograd_block_count(const berth_tensor *weights) {
    return (weights->dims[0] + BLOCK - 1) / BLOCK;
}

size_t berth_winograd_size_bytes(const berth_tensor *weights, int64_t m) {
    int64_t outputs = berth_winograd_block_count(weights) * BLOCK;
    return (size_t)((m + 2) * (m + 2) * outputs * weights->dims[1]) * sizeof(float);
}

void berth_winograd_pack(const berth_tensor *weights, int64_t m, float *packed, int64_t first_block,
                         int64_t block_count) {
    int64_t inputs = weights->dims[1];
    int64_t stride = berth_winograd_block_count(weights) * BLOCK * inputs;
    const unsigned char *data = weights->data;
    for (int64_t b = first_block; b < first_block + block_count; ++b) {
        int64_t left = weights->dims[0] - b * BLOCK;
        int64_t outputs = left < BLOCK ? left : BLOCK;
        for (int64_t i = 0; i < inputs; ++i) {
            float kernel[9][BLOCK] = {0};
            for (int64_t o = 0; o < outputs; ++o) {
                float one[9];
                memcpy(one, data + ((b * BLOCK + o) * inputs + i) * (int64_t)sizeof(one),
                       sizeof(one));
                for (int k = 0; k < 9; ++k) kernel[k][o] = one[k];
            }
            float *at = packed + (b * inputs + i) * BLOCK;
            transform(m == 2 ? g2 : g4, (int)m + 2, kernel, at, stride);
            for (int64_t p = 0; outputs < BLOCK && p < (m + 2) * (m + 2); ++p)
                memset(at + p * stride + outputs, 0, (size_t)(BLOCK - outputs) * sizeof(float));
        }
    }
}
