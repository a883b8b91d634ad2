// Type inference and constant folding in one forward pass: each operation's result types are
// inferred, and where all its operands are constants it is evaluated (ir/eval) and replaced by its
// result. shape_of and size_of of static types become constants; an `if` with a constant condition
// becomes its branch.
#ifndef BERTH_COMPILER_PASSES_FOLD_H_
#define BERTH_COMPILER_PASSES_FOLD_H_

#include "ir/graph.h"

typedef struct berth_fold_options {
    uint64_t size_limit_bytes;  // a result larger than this and than all its operands is left to
                                // run time; 0 = 64 MiB
} berth_fold_options;

// Errors: those of inference and evaluation, with the operation's location. Inside berth_arena_try.
// `options` NULL = defaults. O(operations), plus the evaluated work.
BERTH_MUST_USE berth_status berth_pass_fold(berth_module *module, berth_func_id function,
                                            const berth_fold_options *options);

#endif  // BERTH_COMPILER_PASSES_FOLD_H_
