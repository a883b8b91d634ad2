// Quantised models as integers. Models in QDQ form say with pairs of quantize_linear and
// dequantize_linear where values have 8 bits, and compute everything between them in floats. Here
//
//   conv(dequantize(x), dequantize(w), b)
//
// with constant 8-bit weights becomes the sum of integers that it stands for,
//
//   cast(conv_integer(x, w) + round(b / (x_scale * w_scale))) * (x_scale * w_scale)
//
// and products (matmul, gemm) the same: sums in i32, zero points taken off both operands, a scale
// per output or one for all. The weights stay as the model has them. What only moves values or
// takes the largest (reshapes, transposes, max_pool) works on the integers; a relu or clip that the
// saturation of the following quantize_linear implies vanishes; and factors in front of a
// quantize_linear take its scale in, so that it only rounds: half to even, then the zero point,
// then saturation.
//
// Activations of i8 between quantize_linear and dequantize_linear become u8 (zero point + 128): the
// same numbers, in the type that dot products of x86 want.
//
// Results differ from the float form by what floats round: at most one step of a quantize_linear.
// In a sum that must not overflow i32 for any operands; others stay floats.
#ifndef BERTH_COMPILER_PASSES_INTEGERS_H_
#define BERTH_COMPILER_PASSES_INTEGERS_H_

#include "compiler/passes/rewrite.h"

// Rewrites `main` in place, after a fold that kept quantised weights (fold.h); what still
// dequantises constants is left for the next one. Inside berth_arena_try of the module's arena.
// O(operations + bytes of weights).
// `whole`: what is between quantize_linear and dequantize_linear becomes qlinear_conv, qlinear_add
// or qlinear_average_pool where there is one for it, and activations keep their type: for devices that run such operations
// as one (compiler/rules.h).
BERTH_MUST_USE berth_status berth_pass_find_integers(berth_module *module, berth_func_id main,
                                                     bool whole);

// ---- parts of the pass --------------------------------------------------------------------------

// A value of 8 bits with what makes it a real one.
typedef struct berth_quantized {
    berth_value_id value;  // integers
    berth_value_id scale_value;
    berth_value_id zero_value;  // BERTH_NONE = 0
    const berth_tensor *scale;
    const berth_tensor *zero;  // NULL = 0
    int axis;                  // of scales that are more than one
} berth_quantized;

// Whether `value` is dequantize_linear(...) with constant parameters, one for all or one along an
// axis.
bool berth_quantized_get(berth_rewriter *r, berth_value_id value, berth_quantized *out);
// One scale, which is positive and finite, and one zero point for all elements.
bool berth_quantized_is_uniform(const berth_quantized *q);
// The parameters of a quantize_linear to 8 bits, which are uniform; out->value is what it reads.
bool berth_quantize_get(berth_rewriter *r, berth_op_id id, berth_quantized *out);
// integers_whole.c: quantize_linear with what is in front of it as one operation.
BERTH_MUST_USE berth_status berth_integers__whole(berth_rewriter *r, berth_op_id id);
// integers_sum.c: for it, a convolution or product as a convolution of integers. `at` and `y` are the
// quantize_linear; BERTH_NONE where it is none.
BERTH_MUST_USE berth_status berth_integers__whole_sum(berth_rewriter *r, berth_op_id id,
                                                      berth_op_id at, const berth_quantized *y,
                                                      berth_value_id *out_result);
// integers_sum.c: a convolution, product or gemm of two of them.
BERTH_MUST_USE berth_status berth_integers__sum(berth_rewriter *r, berth_op_id id);
// integers_scale.c: quantize_linear and what is in front of it.
BERTH_MUST_USE berth_status berth_integers__quantize(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_INTEGERS_H_
