// Part of the pass lower: tensor functions that tensor functions call become part of their callers,
// so that schedules and code generators see one function. Calls of external code stay.
#ifndef BERTH_COMPILER_PASSES_INLINE_TENSOR_H_
#define BERTH_COMPILER_PASSES_INLINE_TENSOR_H_

#include "ir/tensor/function.h"

#define BERTH_INLINE_MAX_STATEMENTS 100000

// Of every tensor function in the module. Where a call is a statement of its own at the top, the
// callee's nests become kernels of the caller, its workspaces the caller's; inside a loop they are part
// of that kernel, and workspaces are private to an iteration.
// Errors: UNSUPPORTED a callee with loops over work-groups or work-items, called inside a loop; too
// many statements.
BERTH_MUST_USE berth_status berth_pass_inline_tensor_calls(berth_module *module);

#endif  // BERTH_COMPILER_PASSES_INLINE_TENSOR_H_
