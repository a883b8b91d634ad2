// Intrinsics that work-items of a group compute together (warps of CUDA, subgroups of OpenCL): where they may stand, and
// their operand in the memory of the group. Private to compiler/codegen.
#ifndef BERTH_COMPILER_CODEGEN_C_TOGETHER_H_
#define BERTH_COMPILER_CODEGEN_C_TOGETHER_H_

#include "compiler/codegen/c_family.h"

// Whether a statement has such intrinsics; `matrices`: those of matrix units alone. O(statements).
bool berth_c_has_together(const berth_tfn *fn, berth_stmt stmt, bool matrices);

// The loop over work-items of the nest that is printed, in whole warps, all of which come by each of its intrinsics
// equally often; false: it is otherwise, and the printer fails.
bool berth_c_all_come_by(berth_c_printer *p, berth_stmt *out_items);

// A load of the same 32 elements beside each other by all work-items, which `item` counts: where they begin. NULL: it
// is another one.
const char *berth_c_part(berth_c_printer *p, berth_expr load, berth_var item);

#endif  // BERTH_COMPILER_CODEGEN_C_TOGETHER_H_
