// What a model says about itself, checked once its types are known (fold.h calls both).
#ifndef BERTH_COMPILER_PASSES_CHECK_H_
#define BERTH_COMPILER_PASSES_CHECK_H_

#include "ir/graph.h"

// Constant indices of gather and scatter operations lie in the dimension that they pick from
// (negative ones count from its end). Errors: INVALID_ARGUMENT with the node, the index and the
// extent. O(indices).
BERTH_MUST_USE berth_status berth_check_indices(const berth_module *module,
                                                const berth_graph *graph, berth_op_id op);

// Attribute of @main that import leaves: per output its declared rank (-1 = not declared), then as
// many extents (-1 = symbolic or not declared).
#define BERTH_ATTR_OUTPUT_DIMS "output_dims"

// The declared shapes of the outputs are the ones inferred; takes the attribute off. Errors:
// INVALID_ARGUMENT with the output, the node that makes it and both shapes.
BERTH_MUST_USE berth_status berth_check_declared_outputs(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_CHECK_H_
