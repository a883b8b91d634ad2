// What a nest of a tensor function computes, in the terms of a VTA: its loops, loads and arithmetic
// are read back, so that an operation is lowered once for every device (compiler/lower) and nothing
// here knows operations.
//
// Sums of products are understood, over 8-bit tensors whose channels are in blocks (ir/layout.h), with
// loops of any order:
//
//   y[n,o,h,w] = narrow(sum over c,i,j of x[n,c,h*s+i-p,w*s+j-p] * w[o,c,i,j] + bias[o])
//
// narrow rounds t * 2^-shift half to even and saturates within [low, high]. Scales appear in the
// function as real numbers; others than powers of two are refused.
#ifndef BERTH_DRIVERS_VTA_COMPILER_NEST_H_
#define BERTH_DRIVERS_VTA_COMPILER_NEST_H_

#include "ir/tensor_fn.h"

typedef struct berth_vta_nest {
    berth_buf output, input;
    berth_buf weights, bias;                    // bias: BERTH_NONE = none
    int64_t images, in_channels, out_channels;  // as the tensors have them
    int64_t height, width, out_height, out_width;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;  // before the first
    int shift;                                                     // 0 to 30
    int32_t low, high;
} berth_vta_nest;

// Errors: UNSUPPORTED the nest is none (says what is in the way). Inside
// berth_arena_try.
BERTH_MUST_USE berth_status berth_vta_nest_read(const berth_tfn *fn, berth_stmt nest,
                                                berth_vta_nest *out_nest);

#endif  // BERTH_DRIVERS_VTA_COMPILER_NEST_H_
