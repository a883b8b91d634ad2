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

// A parameter of which the caller keeps the last rows alone: index i of dimension `dim` is (i + shift) modulo `extent`.
typedef struct berth_tfn_ring {
    int dim;
    int64_t extent;  // 0 = all of it is kept
    int64_t shift;   // a multiple of `extent`, so that no index is negative
} berth_tfn_ring;

typedef struct berth_tfn_graft {
    berth_tfn *to;
    const berth_tfn *from;
    const berth_tfn_region *regions;  // of `to`, per parameter of `from`
    const berth_tfn_ring *rings;      // per parameter of `from`
    berth_var var;                    // of `from`, which becomes an expression of `to`
    berth_expr value;
} berth_tfn_graft;

// A statement of `from`, inside a loop of `to`. It has no calls, and nothing but `var` is free in it. Inside
// berth_arena_try of the module's arena.
berth_stmt berth_tfn_graft_stmt(const berth_tfn_graft *graft, berth_stmt stmt);

#endif  // BERTH_COMPILER_PASSES_INLINE_TENSOR_H_
