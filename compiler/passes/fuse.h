// Fusion: groups operations that become one tensor function each, and moves every group into a
// primitive function of its own (compiler/lower/lower.h), so that main is left with calls,
// constants, views and device copies.
//
// Rules, for operation X and the group G that makes its operand v, when v has no other use and both
// are on one device:
//
// - epilogue: X is elementwise and v has X's shape and layout; X runs on the value before it is
//   stored.
//
// - producer: X is a reduction that reads every element once (reduce_*, global pools; for the executor
//   aot other pools, too, whose windows do not overlap) and G is elementwise; G is computed as X reads
//   it. For the executor aot such an X takes a dequantize_linear from the group that makes its integers.
//
// - sums inside sums: X is a product of one column and G a product, with what follows it: every sum of G is
//   computed as X reads it. For small code of the executor aot, because tiles of sums are faster.
//
// - operand: X is a convolution, a matrix product or a Winograd transform, v its first operand, G
// is
//   elementwise, and computing G inside X costs less than the memory traffic of v
//   (passes/producer.h).
//
// - movement: X moves data (transpose, slice, pad, ...) and G has no reduction; X reads through G.
//
// - border: X pads v in space with a constant and G has one convolution: G stores inside the
//   border, and what X adds is filled around it. The value exists once, nothing copies it.
//
// A group never binds more buffers than its device's kernels take (`max_bindings` of the target).
//
// Views (reshape, squeeze, ...) are never grouped: they cost nothing as they are; nor is anything
// after a concatenation that will need no copy (passes/concat.h).
#ifndef BERTH_COMPILER_PASSES_FUSE_H_
#define BERTH_COMPILER_PASSES_FUSE_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Rewrites @main in place. With `fuse` false every operation gets a primitive function of its own;
// without a target (NULL) no operand is fused, because what it costs is not known. small: for small code. Inside
// berth_arena_try of the module's arena. O(operations × operands).
BERTH_MUST_USE berth_status berth_fuse(berth_module *module, berth_func_id main,
                                       const berth_multi_target *target, bool fuse, bool small);

#endif  // BERTH_COMPILER_PASSES_FUSE_H_
