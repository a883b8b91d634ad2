// Depthwise convolutions and what is in front of them, some channels after others, where the memory has
// no room for all channels at once: what a network with inverted residuals (MobileNetV2) has most of.
//
//   y = depthwise(expand(x))   ->   y = concat(depthwise0(expand0(x)), depthwise1(expand1(x)), ...)
//
// expand is a convolution of group 1 with elementwise operations behind it, each with constants alone
// beside the value. Every channel of what is between depends on the weights of that channel alone, so that
// nothing is computed twice and there is no halo, as there is where the first stages run in patches of
// the image (MCUNetV2, arXiv 2110.15352, section 3). The parts of the result are bytes in a row: nothing is
// copied; and slices are equal functions, of which the code has one.
#ifndef BERTH_COMPILER_PASSES_SLICE_CHANNELS_H_
#define BERTH_COMPILER_PASSES_SLICE_CHANNELS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// For programs that are sources (executor aot), after plan-devices and before layouts: slices are as few
// as leave room, in the budget of the device's memory, for x, a slice, y and the model's inputs and outputs. A
// budget counts as `least_budget_bytes` where it is less, and as what no plan needs less than.
// *out_slices, in the module's arena, says what runs in how many slices: of one module, equal texts are equal slices, and ""
// is none. Errors: those of shape inference. Inside berth_arena_try. O(operations^2 + bytes of weights).
BERTH_MUST_USE berth_status berth_pass_slice_channels(berth_module *module, berth_func_id main,
                                                      const berth_multi_target *target,
                                                      uint64_t least_budget_bytes,
                                                      const char **out_slices);

#endif  // BERTH_COMPILER_PASSES_SLICE_CHANNELS_H_
