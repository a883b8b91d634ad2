// Finds operations that only put values beside each other in memory, or take them apart: a
// concatenation, split or slice along the outermost dimension of more than one element (or block of
// the layout). The packager (compiler/package_views.c) can let parts and whole be the same bytes
// and leave the operation out.
#ifndef BERTH_COMPILER_PASSES_CONCAT_H_
#define BERTH_COMPILER_PASSES_CONCAT_H_

#include "ir/graph/graph.h"

// Attributes of a call of @main whose primitive function is one such operation: where in the whole
// each part begins, in bytes.
#define BERTH_ATTR_PARTS_AT "parts_at"    // concatenation: a number per operand, the result whole
#define BERTH_ATTR_SLICES_AT "slices_at"  // split, slice: a number per result, operand 0 whole

// Whether a concatenation could do without a step: operands beside each other in memory, each an
// intermediate value that occurs once. The fuser leaves it by itself then: what follows costs a
// kernel either way. Inside berth_arena_try of `scratch`.
bool berth_concat_is_free(const berth_module *module, const berth_graph *graph, const berth_op *op,
                          berth_arena *scratch);

// Marks the calls. After fuse and before lower (it reads the primitive functions). Inside
// berth_arena_try of the module's arena.
BERTH_MUST_USE berth_status berth_pass_find_parts(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_CONCAT_H_
