// A stream in the making (private to emit/): instructions, relocations, constants and micro-ops, and
// how a window operation lies in the buffers.
#ifndef BERTH_DRIVERS_VTA_EMIT_EMITTER_H_
#define BERTH_DRIVERS_VTA_EMIT_EMITTER_H_

#include "drivers/vta/emit/conv.h"

// What a tile needs.
typedef struct berth_vta_conv_fit {
    uint64_t tile;                       // results
    uint32_t input_rows, input_columns;  // padding included
    // Where a window is one row, rows between windows are not loaded: of so many, one.
    uint32_t row_step;
    uint64_t input, weights;                 // elements of a step
    uint32_t groups, in_blocks, out_blocks;  // blocks: of a group
    uint32_t inp_half, wgt_half, acc_half;
    // Micro-ops of a reduction: boards want three results between two uses of one, and where a tile has
    // fewer, accumulators that nobody reads fill up.
    uint32_t set;
    uint32_t steps;  // loads of a tile that have a token each
    uint32_t
        digits;  // sums: GEMMs of a step, each with a digit of the factor, 128 times the next one
    // Where biases, the numbers of steps that must be loaded, what fills up a set, and the copy of a tile's results
    // (maxima: the tile's inputs) are among accumulators.
    uint32_t bias, added, spare, copy;
    uint32_t micro_ops;  // at most
    const berth_vta_steps *work;
    bool fits;
} berth_vta_conv_fit;

// Rows and columns of the input from one position of the kernel to the next, and those from its first
// to its last.
uint32_t berth_vta__conv_dilation_h(const berth_vta_conv *conv);
uint32_t berth_vta__conv_dilation_w(const berth_vta_conv *conv);
uint32_t berth_vta__conv_window_h(const berth_vta_conv *conv);
uint32_t berth_vta__conv_window_w(const berth_vta_conv *conv);

BERTH_MUST_USE berth_status berth_vta__conv_check(const berth_vta_shape *shape,
                                                  const berth_vta_conv *conv);
// The largest that a sum of the window can be, by its amount.
int64_t berth_vta__conv_largest_sum(const berth_vta_shape *shape, const berth_vta_conv *conv);
// `work`: berth_vta_conv_find_steps of it; stays referenced.
berth_vta_conv_fit berth_vta__conv_fit(const berth_vta_shape *shape, const berth_vta_conv *conv,
                                       const berth_vta_steps *work,
                                       const berth_vta_conv_tiles *tiles);

// Micro-ops that follow each other: an element per block of the tile.
typedef struct berth_vta_run_of_micro_ops {
    uint32_t dst, src, src_step, wgt;
    uint32_t count, first;
} berth_vta_run_of_micro_ops;

typedef struct berth_vta_emitter {
    berth_arena *arena;
    const berth_vta_conv *conv;
    const berth_vta_conv_tiles *tiles;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_vta_conv_fit fit;
    uint32_t out_height, out_width;
    BERTH_VEC(berth_vta_instruction) list;
    BERTH_VEC(berth_vta_relocation) relocations;
    BERTH_VEC(uint8_t) data;  // weights and accumulators of the kernel's own
    BERTH_VEC(uint32_t) micro_ops;
    BERTH_VEC(berth_vta_run_of_micro_ops) runs;
    berth_status failed;              // the first micro-op that does not fit
    uint64_t tile_count, step_count;  // in all
    uint64_t tile, step;              // at hand
} berth_vta_emitter;

// Where a tile lies in the output: the last ones end where the output does, and may overlap others.
typedef struct berth_vta_place {
    uint32_t image;      // of BATCH images each
    uint32_t out_block;  // the first
    uint32_t y, x;
} berth_vta_place;

// The part of [begin, begin + size) that lies in [0, extent).
typedef struct berth_vta_span {
    uint32_t begin, size, before, after;
} berth_vta_span;
berth_vta_span berth_vta__clip(int64_t begin, int64_t size, int64_t extent);

// emitter.c
void berth_vta__add(berth_vta_emitter *e, berth_vta_instruction instruction);
// A LOAD or STORE of element `element` of a buffer on.
void berth_vta__add_transfer(berth_vta_emitter *e, berth_vta_instruction i, uint32_t buffer,
                             uint64_t element);
void berth_vta__add_micro_op(berth_vta_emitter *e, uint64_t dst, uint64_t src, uint64_t wgt);
// The first of `count` micro-ops whose results are a map of the tile apart; made where there are none
// like it yet.
uint32_t berth_vta__run(berth_vta_emitter *e, uint32_t count, uint32_t dst, uint32_t src,
                        uint32_t src_step, uint32_t wgt);
// Weights that multiply each lane by itself, one element per factor, into the weight buffer from 0 on.
void berth_vta__load_diagonals(berth_vta_emitter *e, const uint32_t *factors, uint32_t count);
// `value` in every lane of accumulator `at`.
void berth_vta__load_constant(berth_vta_emitter *e, uint32_t at, int32_t value);
void berth_vta__store_tile(berth_vta_emitter *e, const berth_vta_place *p, uint32_t buffer);

// maxima.c
void berth_vta__emit_maxima(berth_vta_emitter *e, const berth_vta_place *p);

#endif  // BERTH_DRIVERS_VTA_EMIT_EMITTER_H_
