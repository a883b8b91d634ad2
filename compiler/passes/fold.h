// Type inference and constant folding in one forward pass: each operation is inferred with what is
// known by then, and evaluated (ir/eval) when all its operands are constants, so that shape
// arithmetic disappears and shapes after it become static. Shapes of static types are constants;
// an `if` with a constant condition becomes its branch. What is dead afterwards is removed.
#ifndef BERTH_COMPILER_PASSES_FOLD_H_
#define BERTH_COMPILER_PASSES_FOLD_H_

#include "base/log.h"
#include "ir/graph/graph.h"

typedef struct berth_fold_options {
    uint64_t max_result_bytes;  // larger results stay computed, unless the operands were larger; 0
        // = 64 MiB. So do results above 1 MiB and 8 times their operands, where
        // no shape depends on values and which are no weights
    bool keep_dead;       // leave unused operations
    bool keep_quantized;  // leave 8-bit weights (of two dimensions or more) as they are, and
                          // what dequantises them
    berth_log log;        // warnings: declared shapes that are not the computed ones
} berth_fold_options;

// Rewrites `function` (a graph function) in place; ids of values that remain stay. options may be
// NULL. Inside berth_arena_try of the module's arena. O(operations + work of what is folded).
// Errors: INVALID_ARGUMENT with the operation's location (types, shapes or constant operands that
// do not fit).
BERTH_MUST_USE berth_status berth_pass_fold(berth_module *module, berth_func_id function,
                                            const berth_fold_options *options);

#endif  // BERTH_COMPILER_PASSES_FOLD_H_
