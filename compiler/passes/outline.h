// Operations of a function taken out into a function of their own (private to compiler/).
//
//   berth_outliner o = berth_outliner_make(module, main, scratch, clones);
//   berth_func_id made = berth_outline(&o, "k0_conv", loc, &part);
//   // o.operands: what a call of it is given, in the order of its parameters
#ifndef BERTH_COMPILER_PASSES_OUTLINE_H_
#define BERTH_COMPILER_PASSES_OUTLINE_H_

#include "ir/graph/graph.h"

// Whether a constant, operand `operand` of `op`, is made again inside; else it is a parameter.
typedef bool (*berth_outline_clones)(const berth_module *module, const berth_op *op,
                                     uint32_t operand, const berth_value *value,
                                     const berth_tensor *constant);

typedef struct berth_outliner {
    berth_module *module;
    berth_func_id from;
    berth_arena *scratch;
    berth_outline_clones clones;
    berth_func_id function;  // being made
    berth_value_id *inner;   // per value of `from`: its value there; BERTH_NONE = not there yet
    BERTH_VEC(berth_value_id) operands;
} berth_outliner;

// For values that `from` has now: those made later are not seen. O(values).
berth_outliner berth_outliner_make(berth_module *module, berth_func_id from, berth_arena *scratch,
                                   berth_outline_clones clones);

typedef struct berth_outlined {
    const berth_op_id *ops;  // in order
    uint32_t op_count;
    const berth_value_id *results;  // made by these, or operands of theirs
    uint32_t result_count;
} berth_outlined;

// Copies the operations with attributes, devices, types and names into a new function. `from` stays
// as it is: the caller puts the call in place. O(operations and operands).
berth_func_id berth_outline(berth_outliner *outliner, const char *name, berth_loc_id loc,
                            const berth_outlined *part);

#endif  // BERTH_COMPILER_PASSES_OUTLINE_H_
