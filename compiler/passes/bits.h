// Weights of few bits.
//
// keep_bits finds products with constant weights that the importer wrote as dequantize_linear in blocks along the sum
// (compiler/onnx/ops_quantize.c), and makes them matmul_bits: numbers of 4 bits where all are, else of 8.
//
//   matmul(x, f32(i32(w) - gather(i32(zero), range(0, k, 1) / block)) * gather(scale, range(0, k, 1) / block))
//
// unpack_bits, for devices that multiply them no faster so: matmul_bits with constant weights becomes a
// matmul with the f32 weights that they stand for, as wide as the sums. Processor cores unpack them on the way
// (lower/matmul.c): there they stay as the model has them.
#ifndef BERTH_COMPILER_PASSES_BITS_H_
#define BERTH_COMPILER_PASSES_BITS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Before constants are folded, which would make floats of them; only where some device of the target unpacks on the
// way. O(operations + weights that are kept).
BERTH_MUST_USE berth_status berth_pass_keep_bits(berth_module *module, berth_func_id main,
                                                 const berth_multi_target *target);

// After placement; O(operations + weights that are unpacked).
BERTH_MUST_USE berth_status berth_pass_unpack_bits(berth_module *module, berth_func_id main,
                                                   const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_BITS_H_
