// Lowering: a primitive graph function → a tensor function in its plain definition, the same for
// every target.
//
// A *primitive* function (attribute "primitive" = 1, made by passes/fuse.c) is what becomes one
// tensor function: at most one operation with the reduction trait (the anchor), with elementwise
// and injective operations before and after it; a product whose elements a product of one column reads
// is no anchor but computed where it is read, as are the operations of an attention
// (compiler/lower/attention.h). Its parameters and results become the tensor function's buffers, in order, with their layouts; operations inside are inlined: the value of an
// inner operation at an index is an expression of values of its operands at other indices.
#ifndef BERTH_COMPILER_LOWER_LOWER_H_
#define BERTH_COMPILER_LOWER_LOWER_H_

#include "ir/graph/graph.h"
#include "ir/tensor/function.h"

// Errors: UNSUPPORTED naming the operation, its location and what is missing (operation, type,
// data-dependent shape).
BERTH_MUST_USE berth_status berth_lower_function(berth_module *module, berth_func_id primitive,
                                                 berth_func_id *out_tensor_fn);

// Whether `op` reads every element of its first operand once, which may then be computed on the way: most
// reductions, global pools, products of one column (the product before it, too: of a vector's many sums only the
// one that is read next exists). O(rank).
bool berth_lower_reads_once(const berth_module *module, const berth_graph *graph,
                            const berth_op *op);
// Whether one element of `op`, a reduction, can be computed where it is read.
bool berth_lower_has_sum(const berth_op *op);

// NULL when this operation, with its types and attributes, can be lowered; else the reason, in
// `arena`, within whose berth_arena_try this is called. Used by the planner for operator support
// and by the tables in docs/.
const char *berth_lower_check(const berth_module *module, berth_func_id function, berth_op_id op,
                              berth_arena *arena);

#endif  // BERTH_COMPILER_LOWER_LOWER_H_
