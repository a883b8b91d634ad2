// Convolutions as VTA streams: tiles that fit the buffers twice, so that load, compute and store
// overlap (tokens hand the halves round), and a requantisation to 8 bits.
//
//   berth_vta_conv conv = {.height = 56, .width = 56, ...};
//   BERTH_TRY(berth_vta_conv_plan(&config, &conv, &timing, &tiles));
//   BERTH_TRY(berth_vta_emit_conv(arena, &config, &conv, &tiles, &kernel));
//
// Tensors, with B = BLOCK and N = BATCH of the configuration, each element contiguous:
//   0 input    [images/N][in_channels/B][height][width][N][B]                     inp lanes
//   1 weights  [out_channels/B][in_channels/B][kernel_h][kernel_w][B out][B in]   wgt lanes
//   2 bias     [out_channels/B][N][B]                                             acc lanes
//   3 output   [images/N][out_channels/B][out_height][out_width][N][B]            as wide as inputs
// output = clip((sum + bias) >> shift, low, high); what rounds is in the bias (2^(shift - 1)). With
// `to_even` it is the nearest integer instead, the even one of two, which takes five more ALU
// operations per result and a third set of accumulators:
//   (t + 3 * 2^(shift - 1) - 1 >> shift + 1) + (t + 2^(shift - 1) >> shift + 1)
// The first part counts the steps up to odd integers, which begin behind a half, the second those up
// to even ones, which begin at it.
// A dense layer is a convolution of maps of one pixel.
#ifndef BERTH_DRIVERS_VTA_EMIT_CONV_H_
#define BERTH_DRIVERS_VTA_EMIT_CONV_H_

#include "drivers/vta/image.h"

typedef struct berth_vta_conv {
    uint32_t images;                     // a multiple of BATCH
    uint32_t height, width;              // of the input
    uint32_t in_channels, out_channels;  // multiples of BLOCK
    uint32_t kernel_h, kernel_w, stride, pad;
    uint32_t shift;     // 0 to 15; to_even: to 14
    int32_t low, high;  // -32768 to 32767
    bool to_even;
    bool no_bias;  // there is no buffer 2: the output is buffer 2
} berth_vta_conv;

// What is computed between a reset of accumulators and a store.
typedef struct berth_vta_conv_tiles {
    uint32_t out_blocks;     // divides out_channels / BLOCK
    uint32_t rows, columns;  // of the output
    uint32_t
        in_blocks;  // that a step loads; divides in_channels / BLOCK; 1 unless the kernel is 1 x 1
    double cycles;  // estimate
} berth_vta_conv_tiles;

uint32_t berth_vta_conv_out_height(const berth_vta_conv *conv);
uint32_t berth_vta_conv_out_width(const berth_vta_conv *conv);

// The tiles that take the fewest cycles by an estimate: the larger of what compute and the memory
// port have to do per tile. Tries every tile that fits: O(height * width * divisors).
//   errors: INVALID_ARGUMENT a shape that is none of the above; UNSUPPORTED no tile fits
BERTH_MUST_USE berth_status berth_vta_conv_plan(const berth_vta_config *config,
                                                const berth_vta_conv *conv,
                                                const berth_vta_timing *timing,
                                                berth_vta_conv_tiles *out_tiles);

// The kernel "conv", in the arena; buffers 0 to 3 as above. Inside berth_arena_try of the arena.
//   errors: those of the plan; OUT_OF_RANGE more instructions than a stream has
BERTH_MUST_USE berth_status berth_vta_emit_conv(berth_arena *arena, const berth_vta_config *config,
                                                const berth_vta_conv *conv,
                                                const berth_vta_conv_tiles *tiles,
                                                berth_vta_kernel *out_kernel);

#endif  // BERTH_DRIVERS_VTA_EMIT_CONV_H_
