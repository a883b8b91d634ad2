// An einsum of three operands or more as a chain of einsums of two, in the order that multiplies least:
//   ij, jk, kl -> il   becomes   jk, kl -> jl (or ij, jk -> ik), then the other
// The order is the best of all (dynamic programming over sets of operands) up to eight of them, else the cheapest pair is
// next each time (Pfeifer, Haegeman, Verstraete: Faster identification of optimal contraction sequences for tensor networks,
// 2014; Smith and Gray: opt_einsum, 2018). A rule of passes/simplify.h, private to compiler/passes.
#ifndef BERTH_COMPILER_PASSES_EINSUM_ORDER_H_
#define BERTH_COMPILER_PASSES_EINSUM_ORDER_H_

#include "compiler/passes/rewrite.h"

// Stays as it is where all at once takes at most twice the multiplications (elementwise products), where extents are
// not known, or where a value between would have too many dimensions.
BERTH_MUST_USE berth_status berth_order_einsum(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_EINSUM_ORDER_H_
