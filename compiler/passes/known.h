// Inputs whose values are known before compiling, because the program runs on them only: where
// something must be known before the run (the operand of a Reshape, the condition of an If, what
// NonZero counts), it is computed from these values, and only there. The inputs stay inputs of all
// other operations.
#ifndef BERTH_COMPILER_PASSES_KNOWN_H_
#define BERTH_COMPILER_PASSES_KNOWN_H_

#include "ir/graph/graph.h"

// Why an input's value is compiled in.
typedef struct berth_known_use {
    const char *input;
    const char *reason;  // "node "NonZero_3" (NonZero) in m.onnx"
} berth_known_use;

typedef struct berth_known_inputs {
    const struct berth_input_binding *inputs;  // compiler/onnx/import.h
    uint32_t input_count;
    BERTH_VEC(berth_known_use) used;  // out, in the module's arena: one entry per input
} berth_known_inputs;

// For a function whose types are inferred (fold.h). Gives the operations of the root region that
// decide a shape or a branch, and those that they are computed from, constants instead of
// parameters; *out_changed: folding again will find more. Leaves alone what takes more than 10^8
// operations to compute. Inside berth_arena_try of the module's arena. O(operations).
void berth_pass_use_known_inputs(berth_module *module, berth_func_id function,
                                 berth_known_inputs *known, bool *out_changed);

#endif  // BERTH_COMPILER_PASSES_KNOWN_H_
