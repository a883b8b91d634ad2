// Window operations as VTA streams: convolutions, sums and maxima of windows, and sums of two tensors.
// Tiles fit the buffers twice, so that load, compute and store overlap (tokens hand the halves round).
//
//   berth_vta_conv conv = {.height = 56, .width = 56, ...};
//   BERTH_TRY(berth_vta_conv_plan(&config, &conv, &timing, &tiles));
//   BERTH_TRY(berth_vta_emit_conv(arena, &config, &conv, &tiles, &kernel));
//
// Tensors, with B = BLOCK and N = BATCH of the configuration, each element contiguous:
//   inputs    [images/N][in_channels/B][height][width][N][B]                     inp lanes
//   weights   [out_channels/B][in_channels/groups/B][kernel_h][kernel_w][B out][B in]   wgt lanes
//   bias      [out_channels/B][N][B]                                             acc lanes
//   output    [images/N][out_channels/B][out_height][out_width][N][B]            as wide as inputs
//
// Products: buffers input, weights, bias (unless no_bias), output.
//   output = clip((sum + bias) >> shift, low, high); what rounds is in the bias (2^(shift - 1)). With
//   `to_even` it is the nearest integer instead, the even one of two (rounding.h). A dense layer is a
//   convolution of maps of one pixel. Of a depthwise convolution, as many channels as a block has make
//   a group, and weights between different channels are 0.
// Sums: buffers input, second input where `sources` is 2, output.
//   output = clip(nearest(sum over inputs and window of factor * x / divisor), low, high)
//   Inputs reach the accumulators through the matrix unit, by weights of the kernel's own (boards do
//   not load 8-bit lanes there): a diagonal of the factor. With `parts`, the input is several tensors
//   whose channels are side by side: a buffer each.
// Maxima: buffers input, output. What is outside of the input counts for nothing.
#ifndef BERTH_DRIVERS_VTA_EMIT_CONV_H_
#define BERTH_DRIVERS_VTA_EMIT_CONV_H_

#include "drivers/vta/emit/steps.h"
#include "drivers/vta/image.h"

enum { BERTH_VTA_MOST_PARTS = 8 };

typedef enum berth_vta_form {
    BERTH_VTA_PRODUCTS,  // sums of products with weights
    BERTH_VTA_SUMS,      // each channel by itself: sums over the window, of one input or of two
    BERTH_VTA_MAXIMA,    // each channel by itself: the largest of the window
} berth_vta_form;

typedef struct berth_vta_conv {
    uint32_t images;                     // a multiple of BATCH
    uint32_t height, width;              // of the input
    uint32_t in_channels, out_channels;  // multiples of BLOCK; equal but for products
    uint32_t kernel_h, kernel_w, stride_h, stride_w;
    uint32_t dilation_h, dilation_w;  // from one position of the kernel to the next; 0 = 1
    uint32_t pad_h, pad_w;            // before the first row and column: 0 to 15
    uint32_t out_height, out_width;   // 0: as many as fit with the same padding at the end
    uint32_t shift;                   // products: 0 to 15; to_even: to 14
    int32_t low, high;                // -32768 to 32767
    bool to_even;
    bool no_bias;
    berth_vta_form form;
    uint32_t groups;      // products: 0 = 1; a group's channels are multiples of BLOCK
    uint32_t sources;     // sums: 1 or 2 inputs
    uint32_t factors[2];  // sums: 1 to 127
    uint32_t divisor;     // sums: 1 to 32768; of two inputs a power of two
    // Sums of one input: how many tensors it is, 0 = one, and the blocks of channels of each.
    uint32_t parts, part_blocks[BERTH_VTA_MOST_PARTS];
    // Sums of one input: blocks of channels that its maps have, 0 = those that are read, and the first
    // of these.
    uint32_t map_blocks, first_block;
    // What is done to sums, where a function says it; NULL: what follows from shift, to_even, bounds,
    // factors and divisor.
    const berth_vta_steps *work;
} berth_vta_conv;

// What is computed between a reset of accumulators and a store.
typedef struct berth_vta_conv_tiles {
    uint32_t out_blocks;     // divides out_channels / groups / BLOCK
    uint32_t rows, columns;  // of the output
    uint32_t
        in_blocks;  // that a step loads; divides those of a group; 1 unless the kernel is 1 x 1
    double cycles;  // estimate
} berth_vta_conv_tiles;

uint32_t berth_vta_conv_out_height(const berth_vta_conv *conv);
uint32_t berth_vta_conv_out_width(const berth_vta_conv *conv);

// Where every channel is by itself and windows fill the rows of a map, maps lie below each other as
// rows of one: the same buffers and results, with larger tiles. Others stay as they are.
void berth_vta_conv_stack(const berth_vta_shape *shape, berth_vta_conv *conv);

// What is done to the sums: conv->work, or what computes its scale, rounding and bounds exactly for all
// sums that occur (rounding.h tries each where it is no theorem). Bounds that no result can leave are
// left out.
//   errors: UNSUPPORTED a divisor that integers of 32 bits cannot do exactly
BERTH_MUST_USE berth_status berth_vta_conv_find_steps(const berth_vta_shape *shape,
                                                      const berth_vta_conv *conv,
                                                      berth_vta_steps *out);

// The tiles that take the fewest cycles by an estimate: the larger of what compute and the memory
// port have to do per tile. Tries every tile that fits: O(height * width * divisors).
//   errors: INVALID_ARGUMENT a shape that is none of the above; UNSUPPORTED no tile fits, or a
//           divisor that integers of 32 bits cannot do exactly
BERTH_MUST_USE berth_status berth_vta_conv_plan(const berth_vta_config *config,
                                                const berth_vta_conv *conv,
                                                const berth_vta_timing *timing,
                                                berth_vta_conv_tiles *out_tiles);
// The same, the `most` best of them, the best first.
BERTH_MUST_USE berth_status berth_vta_conv_plans(const berth_vta_config *config,
                                                 const berth_vta_conv *conv,
                                                 const berth_vta_timing *timing, uint32_t most,
                                                 berth_vta_conv_tiles *out_tiles,
                                                 uint32_t *out_count);

// The kernel "conv", in the arena; buffers as above. Inside berth_arena_try of the arena.
//   errors: those of the plan; OUT_OF_RANGE more instructions than a stream has
BERTH_MUST_USE berth_status berth_vta_emit_conv(berth_arena *arena, const berth_vta_config *config,
                                                const berth_vta_conv *conv,
                                                const berth_vta_conv_tiles *tiles,
                                                berth_vta_kernel *out_kernel);

// Plans and emits: of the tiles that the estimate likes best, those whose stream takes the fewest cycles by
// the timing model. Inside berth_arena_try of the arena.
//   errors: those of the plan, and of the kernel where no such tile makes one
BERTH_MUST_USE berth_status berth_vta_emit_best_conv(
    berth_arena *arena, const berth_vta_config *config, const berth_vta_conv *conv,
    const berth_vta_timing *timing, berth_vta_conv_tiles *out_tiles, berth_vta_kernel *out_kernel);

#endif  // BERTH_DRIVERS_VTA_EMIT_CONV_H_
