// What a model says about itself, checked once its types are known (fold.h calls both checks).
#ifndef BERTH_COMPILER_PASSES_CHECK_H_
#define BERTH_COMPILER_PASSES_CHECK_H_

#include "base/log.h"
#include "ir/graph/graph.h"

// Constant indices of gather and scatter operations lie in the dimension that they pick from
// (negative ones count from its end). Errors: INVALID_ARGUMENT with the node, the index and the
// extent. O(indices).
BERTH_MUST_USE berth_status berth_check_indices(const berth_module *module,
                                                const berth_graph *graph, berth_op_id op);

// UNSUPPORTED for an `if` or a `loop` that is left once what is known before the run is folded,
// with its location and what to do.
BERTH_MUST_USE berth_status berth_refuse_control_flow(const berth_module *module,
                                                      const berth_op *op);

// The same for strings, and for what only the interpreter computes: in inputs, outputs and operations of
// the root region.
BERTH_MUST_USE berth_status berth_refuse_strings(const berth_module *module,
                                                 const berth_graph *graph);

// What a model declares of results' shapes: { index of the result, rank, extents... } of each after the other, an
// extent of -1 being symbolic or not declared. Import leaves these with the operation that makes them, those of all its
// results in one call, as a call copies what is there already.
void berth_declare_shapes(berth_module *module, berth_op *op, const int64_t *entries,
                          uint32_t count);

// The same of element types: { index of the result, berth_dtype } of each.
void berth_declare_types(berth_module *module, berth_op *op, const int64_t *entries,
                         uint32_t count);

// Takes off what import left with an operation whose types are inferred. A declaration that is
// wrong harms nothing, so it is a warning, with the node and both shapes or types. Returns the number of
// wrong ones. `seen` is how many there were before: from BERTH_DECLARED_WARNINGS on they are only
// counted.
enum { BERTH_DECLARED_WARNINGS = 5 };
uint32_t berth_check_declared(berth_module *module, berth_graph *graph, berth_op_id op,
                              uint32_t seen, berth_log log);

#endif  // BERTH_COMPILER_PASSES_CHECK_H_
