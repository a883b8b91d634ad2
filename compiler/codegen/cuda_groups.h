// Instructions of four warps of CUDA devices (wgmma of sm_90a), which read their operands where they lie in
// shared memory, by descriptors. Private to compiler/codegen.
//
// A buffer that is such an operand is placed as "128-byte swizzle" wants: in lines of 128 bytes, whose 16-byte pieces
// stand at their number exclusive-or that of the line, both modulo 8. Its tensor function does not see that: every access
// goes by berth_cuda_groups_place. One whose lines are 16 bytes alone, beside each other (a panel, matrix_panel.c),
// lies as "no swizzle" wants already. What is printed around a barrier: products that go on are waited for, then copies;
// stores become visible to the units; behind it, sums may be given to them again.
//   See PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" (wgmma.fence, Shared Memory Matrix
//   Layout, Matrix Descriptor Format).
#ifndef BERTH_COMPILER_CODEGEN_CUDA_GROUPS_H_
#define BERTH_COMPILER_CODEGEN_CUDA_GROUPS_H_

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/codegen.h"

// Sets p->is_swizzled and p->is_panel for the nest.
void berth_cuda_groups_open(berth_c_printer *p);
// Whether its units read the buffer where it lies.
bool berth_cuda_groups_reads(const berth_c_printer *p, berth_buf buf);

const char *berth_cuda_groups_place(berth_c_printer *p, berth_buf buf, const char *offset);
void berth_cuda_groups_before_barrier(berth_c_printer *p, int products);
void berth_cuda_groups_after_barrier(berth_c_printer *p);

// Text of a load as a descriptor; `warp`: the loop over the 32 work-items of a warp. NULL: its elements are not
// those that the instruction takes.
const char *berth_cuda_group_operand(berth_c_printer *p, const berth_expr_node *load,
                                     const berth_expr *indices, berth_var warp);

// Helper functions, and the instructions that the texts of a job use; nothing where they use none.
void berth_cuda_groups_preamble(berth_strbuf *out, const berth_codegen_job *job);

#endif  // BERTH_COMPILER_CODEGEN_CUDA_GROUPS_H_
