// Calls at the boundary (private to ir/): what is given and taken against what the callee says.
#ifndef BERTH_IR_VERIFY_CALL_H_
#define BERTH_IR_VERIFY_CALL_H_

#include "ir/graph/graph.h"

// NULL when the call fits its callee: numbers of arguments and results, element types, ranks,
// extents and layouts. Symbols of the callee stand for whatever the arguments have, one extent for
// one symbol; what the call does not know is not compared. Else what does not fit, in `arena`.
const char *berth_verify__call(const berth_module *module, const berth_graph *graph,
                               const berth_op *call, berth_arena *arena);

#endif  // BERTH_IR_VERIFY_CALL_H_
