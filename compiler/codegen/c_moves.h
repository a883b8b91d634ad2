// Elements that are moved, not computed: blocks that are transposed, printed as calls of functions that go
// through registers, whatever the type of the elements.
#ifndef BERTH_COMPILER_CODEGEN_C_MOVES_H_
#define BERTH_COMPILER_CODEGEN_C_MOVES_H_

#include "compiler/codegen/c_family.h"
#include "compiler/codegen/transpose_block.h"

// berth_c_language.print_loop: two loops in each other, both BERTH_LOOP_UNROLL, over a block whose
// elements lie next to each other along the outer one where they go and along the inner one where
// they come from (berth_transpose_block_serves). Looks only at where the accesses lie.
bool berth_c_print_moves(berth_c_printer *p, const berth_stmt_node *loop);

// The same: a loop, BERTH_LOOP_SIMD, over a short row that ends within a register and is only moved.
bool berth_c_print_row(berth_c_printer *p, const berth_stmt_node *loop);

// Prints a store to a buffer of halves whose value is an element of another one: its bits, not converted.
// False where it is another store.
bool berth_c_store_bits(berth_c_printer *p, berth_stmt store);

extern const char berth_c_preamble_moves[];  // the functions
extern const char berth_c_preamble_rows[];

#endif  // BERTH_COMPILER_CODEGEN_C_MOVES_H_
