// Types of the results of graph operations (shape functions), one function per row of
// graph_ops.def's last column, in ir/infer/. Operands whose values are known (constants) are read;
// symbols are propagated where extents are not known.
#ifndef BERTH_IR_INFER_H_
#define BERTH_IR_INFER_H_

#include "ir/graph/graph.h"

// Sets the types of op's outputs from its operands and attributes. What cannot be known becomes the
// unknown dimension
// "?" (or rank -1). An operation in a branch of an `if` may not run: where it does not fit its
// operands, its results are of unknown type and that is no error (berth_graph_excuse).
// Errors: INVALID_ARGUMENT with the op's location, expected and given shapes.
BERTH_MUST_USE berth_status berth_infer_op(berth_module *module, berth_func_id function,
                                           berth_op_id op);

// Runs over a whole function in order (regions included).
BERTH_MUST_USE berth_status berth_infer_function(berth_module *module, berth_func_id function);

#endif  // BERTH_IR_INFER_H_
