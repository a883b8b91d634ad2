// Weights of few bits for devices that multiply them no faster so: matmul_bits with constant weights becomes a
// matmul with the f32 weights that they stand for, as wide as the sums. Processor cores unpack them on the way
// (lower/matmul.c): there they stay as the model has them.
#ifndef BERTH_COMPILER_PASSES_BITS_H_
#define BERTH_COMPILER_PASSES_BITS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// After placement; O(operations + weights that are unpacked).
BERTH_MUST_USE berth_status berth_pass_unpack_bits(berth_module *module, berth_func_id main,
                                                   const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_BITS_H_
