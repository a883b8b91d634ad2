// What a nest of a tensor function computes, in the terms of a VTA: its loops, loads and arithmetic
// are read, so that an operation is lowered once for every device (compiler/lower) and nothing here
// knows operations. The schedule reads what a nest means and makes it of intrinsics (schedule.c);
// the code generator reads those, and no arithmetic.
//
// Understood are, over 8-bit tensors whose channels are in blocks (ir/layout.h), with loops of any
// order,
//
//   products  y[n,o,h,w] = narrow(sum over c,i,j of x[n,g*C+c,h*s+i*d-p,w*s+j*d-p] * w[o,c,i,j] + bias[o])
//             with the group g that o lies in, of C input channels
//   sums      y[n,c,h,w] = narrow(sum over i,j of x[n,c,h*s+i*d-p,w*s+j*d-p], or of two tensors' elements)
//   parts     y[n,c,h,w] = x0[n,c,h,w] where c < C0, else x1[n,c-C0,h,w] ...: a sum of one element
//   a slice   y[n,c,h,w] = x[n,c+first,h,w]: a sum of one element
//   maxima    y[n,c,h,w] = max over i,j of x[n,c,h*s+i*d-p,w*s+j*d-p]
//
// narrow multiplies with a scale, rounds half to even and saturates within [low, high]. Scales appear
// in the function as real numbers; others than powers of two, over whole numbers, are refused.
#ifndef BERTH_DRIVERS_VTA_COMPILER_NEST_H_
#define BERTH_DRIVERS_VTA_COMPILER_NEST_H_

#include "drivers/vta/emit/conv.h"
#include "ir/tensor/function.h"

typedef struct berth_vta_nest {
    berth_vta_form form;
    berth_buf output, input;
    berth_buf second;  // of a sum of two, BERTH_NONE = none
    // Tensors whose channels are side by side in place of `input`: 0 = none.
    uint32_t part_count;
    berth_buf parts[BERTH_VTA_MOST_PARTS];
    int64_t part_channels[BERTH_VTA_MOST_PARTS];
    berth_buf weights, bias;                    // BERTH_NONE = none
    int64_t images, in_channels, out_channels;  // as the tensors have them
    int64_t first_channel;                      // of the input that is read: slices
    int64_t groups;
    int64_t height, width, out_height, out_width;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;  // before the first
    int64_t dilation_h, dilation_w;
    // The scale of each input: factors[i] / divisor, without a common divisor. Products: one. Not of
    // nests of intrinsics.
    int64_t factors[2];
    int64_t divisor;
    int32_t low, high;
    // Of nests of intrinsics: what is done to the sums.
    bool has_steps;
    berth_vta_steps steps;
    // Of other nests that were read: what is added up or compared, integers of the function (products:
    // none), and where the result is not just filled up with 0 (0 = everywhere).
    berth_expr terms[2];
    int term_count;
    berth_expr within;
} berth_vta_nest;

// Factors and a divisor for scales, each a number over a whole number: numerators are powers of two,
// sums of two have divisors that are, too. False: there are none below 2^30.
bool berth_vta_nest_scale(berth_vta_nest *nest, const double numerators[2],
                          const double denominators[2], int count);

// What a nest means whose result is plain arithmetic (products: of a sum that the matrix unit makes).
// Errors: UNSUPPORTED the nest is none (says what is in the way). Inside
// berth_arena_try.
BERTH_MUST_USE berth_status berth_vta_nest_read(const berth_tfn *fn, berth_stmt nest,
                                                berth_vta_nest *out_nest);

// What the instructions of a scheduled nest are. Errors as above.
BERTH_MUST_USE berth_status berth_vta_nest_read_scheduled(const berth_tfn *fn, berth_stmt nest,
                                                          berth_vta_nest *out_nest);

#endif  // BERTH_DRIVERS_VTA_COMPILER_NEST_H_
