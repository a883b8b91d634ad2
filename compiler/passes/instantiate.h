// Tensor functions over symbols, one copy for each set of extents that they are called with.
#ifndef BERTH_COMPILER_PASSES_INSTANTIATE_H_
#define BERTH_COMPILER_PASSES_INSTANTIATE_H_

#include "ir/graph/graph.h"

// In the root region of `main`, every call of a tensor function whose shapes have symbols (f32[N]) calls a copy in
// which these are the extents of the call's arguments and results; equal extents share one. Where some are not
// known, the call stays as it is. The functions stay in the module. O(calls * instances + copies). Inside
// berth_arena_try of the module's arena.
void berth_pass_instantiate(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_INSTANTIATE_H_
