// Operands of the matrix units of CUDA devices: what a work-item reads of a tile in group memory for
// an intrinsic that a warp computes together, two rows or two columns, is a *fragment*. In CUDA C it is
// a struct of registers that all 32 work-items of the warp load together (ldmatrix). Private to
// compiler/codegen. Of intrinsics with one operand (sums of a warp) that is a pointer to its 32 elements.
//
//   let %a = %row_tile[%row + %lane / 4 + ramp(0, 32) / 16 * 8, %k * 16 + ramp(0, 32) % 16]
//   ->  const auto a = berth_rows_of<uint16_t, 40>(b7 + ...);
#ifndef BERTH_COMPILER_CODEGEN_CUDA_FRAGMENTS_H_
#define BERTH_COMPILER_CODEGEN_CUDA_FRAGMENTS_H_

#include "compiler/codegen/c_family.h"

// Text of a vector load as a fragment. NULL: the load is none. What looks like one and lies where not
// all work-items of a group come by makes the printer fail.
const char *berth_cuda_fragment(berth_c_printer *p, berth_expr load);

// Helper functions: fragments, the instructions of matrix units, copies that go on by themselves.
void berth_cuda_fragments_preamble(berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_CUDA_FRAGMENTS_H_
