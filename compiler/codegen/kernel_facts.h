// What every code generator finds out about the nests of a tensor function before it prints them
// (private to compiler/codegen).
#ifndef BERTH_COMPILER_CODEGEN_KERNEL_FACTS_H_
#define BERTH_COMPILER_CODEGEN_KERNEL_FACTS_H_

#include "compiler/codegen/codegen.h"
#include "compiler/schedule/linear.h"

// A private copy of the function, which address arithmetic may add nodes to.
berth_tfn *berth_kernel_copy_fn(const berth_tfn *fn, berth_arena *arena);

// The nests that become kernels, in order. Errors: UNSUPPORTED when a dimension is a symbol.
BERTH_MUST_USE berth_status berth_kernel_nests(const berth_tfn *fn, berth_arena *arena,
                                               berth_stmt **out_nests, uint32_t *out_count);

// Fills buffers, written, bindings, flops and bytes of the kernel of a nest.
void berth_kernel_collect_facts(const berth_tfn *fn, berth_arena *arena, berth_stmt nest,
                                berth_kernel_source *kernel);

// The parallel loops that become the grid: from the outside as long as each holds nothing but the
// next. *out_groups is the product of their extents.
int berth_kernel_find_grid(const berth_tfn *fn, berth_stmt nest, berth_stmt grid[BERTH_MAX_RANK],
                           int64_t *out_groups);

int64_t berth_kernel_extent(const berth_tfn *fn, berth_stmt loop);  // 1 when it is no constant
int64_t berth_kernel_elements(const berth_tfn *fn, berth_buf buf);
// Whether the nest has loops over work-groups or work-items.
bool berth_kernel_has_group_loops(const berth_tfn *fn, berth_stmt nest);
// Sets an axis of the kernel's grid by a loop of kind GROUP_* or LOCAL_*. Errors: UNSUPPORTED where
// loops of one axis differ.
BERTH_MUST_USE berth_status berth_kernel_set_axis(berth_kernel_source *kernel,
                                                  const berth_stmt_node *loop, int64_t extent,
                                                  bool *out_local, int *out_axis);
// Whether var / by (or var % by: `op`) moves a place by `step` elements, and nothing else of `var` does.
bool berth_kernel_moves_by(const berth_tfn *fn, const berth_linear *at, berth_var var,
                           berth_binary op, int64_t by, int64_t step);
// Whether 32 bits hold every index into every buffer.
bool berth_kernel_fits_narrow(const berth_tfn *fn);

#endif  // BERTH_COMPILER_CODEGEN_KERNEL_FACTS_H_
