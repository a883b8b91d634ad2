// Sums (minima, maxima) of 32 elements of group memory by a subgroup, for the intrinsics warp_* of
// ir/tensor/intrinsics.def. Private to the SPIR-V generator.
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_SUBGROUP_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_SUBGROUP_H_

#include "compiler/codegen/spirv_printer.h"

// The value of such an intrinsic, for every invocation of the subgroup. 0: it is none, or its operand is
// not 32 elements beside each other. Needs the capability GroupNonUniformArithmetic.
uint32_t berth_spirv_subgroup(berth_spirv_printer *p, const berth_expr_node *node);

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_SUBGROUP_H_
