// Device-neutral simplification of the graph, each rewrite keeping the origin nodes in its location:
//   identity                                          its operand
//   batch_normalization with constant parameters      folded into the convolution before it, else
//                                                     mul and add
//   conv, then mul or add by constants per channel    folded into the weights and the bias
//   gemm with a constant B                            matmul with B transposed and scaled, plus C
//   sum of two; min, max, mean of one; pow by 2, 3;   the simpler operation
//   div by a power of two
//   very many operands or results                     trees of smaller operations (wide.h)
//   einsum of three operands or more                 einsums of two (einsum_order.h)
//   transpose of a transpose, reshape of a reshape    one
//   transpose of dimensions of one element            reshape (executor aot)
//   product of a few rows with a repeated operand     product without the copies (repeat.h)
#ifndef BERTH_COMPILER_PASSES_SIMPLIFY_H_
#define BERTH_COMPILER_PASSES_SIMPLIFY_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Rewrites @main in place until nothing applies. Needs inferred types. Inside berth_arena_try.
//   target: (optional) operations that its pins put on different devices do not become one
BERTH_MUST_USE berth_status berth_simplify(berth_module *module, berth_func_id main,
                                           const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_SIMPLIFY_H_
