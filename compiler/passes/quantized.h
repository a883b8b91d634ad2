// Quantised convolutions and products in parts: qlinear_conv(x, w) becomes
//
//   quantize_linear(cast(conv_integer(x, w) + bias) * (x_scale * w_scale), y_scale, y_zero)
//
// and qlinear_matmul the same with matmul_integer, so that the sum gets the fast form that
// integer sums have (layout.h) and the rest is fused after it. The numbers stay the same: the sum
// is exact, and the operations after it are those of the whole in the same order.
#ifndef BERTH_COMPILER_PASSES_QUANTIZED_H_
#define BERTH_COMPILER_PASSES_QUANTIZED_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Operations whose scales are not constants stay whole, and so do convolutions whose weights are not,
// and those on devices of `target` that want them whole (compiler/rules.h). After placement: the parts run where the whole was to run.
// O(operations).
BERTH_MUST_USE berth_status berth_pass_split_quantized(berth_module *module, berth_func_id main,
                                                       const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_QUANTIZED_H_
