// Cooperative matrices in SPIR-V (SPV_KHR_cooperative_matrix): matrix units of devices by way of Vulkan. Private to
// compiler/codegen.
//
// A tensor function says what each of 32 work-items has of the operands and of the sum (intrinsics.def). A device keeps a matrix
// in the registers of a subgroup as it likes. So:
//   operands  are loaded whole from the memory of the group, from where those of the first work-item begin;
//   sums      are variables, and come to the work-items through memory of the group, a fragment of each subgroup at a time.
// Which work-items are a subgroup is the device's choice, too: matrices are those of the warp whose number the subgroup has, and
// barriers are around what is handed over. There have to be as many subgroups as warps: the driver asks for whole ones of 32.
//   See the Vulkan memory model (SPIR-V specification 1.5, section 2.18) for what such modules say at barriers and accesses.
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_MATRIX_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_MATRIX_H_

#include "compiler/codegen/spirv_printer.h"

// Sets p->matrices for the nest, and writes what comes first in the kernel. O(statements).
void berth_spirv_matrix_open(berth_spirv_printer *p, berth_stmt nest);

// Writes a statement about matrices; false: it is another. The nest has matrices.
bool berth_spirv_matrix_stmt(berth_spirv_printer *p, berth_stmt id);

// Whether a buffer of this type in the memory of the group holds operands of the nest's matrices: elements of their own type.
bool berth_spirv_matrix_is_operand(const berth_spirv_printer *p, berth_dtype dtype);

// Whether a buffer is sums of matrices; and what a work-item has of such a fragment, lane by lane.
bool berth_spirv_matrix_has_sums(const berth_spirv_printer *p, berth_buf buf);
const uint32_t *berth_spirv_matrix_sums(berth_spirv_printer *p, const berth_expr_node *load,
                                        const berth_expr *indices);

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_MATRIX_H_
