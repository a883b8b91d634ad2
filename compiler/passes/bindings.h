// How many buffers a kernel of some operations binds: what limits of devices are about (`max_bindings`
// of a target). Operands that become literals of the code bind nothing. Private to compiler/.
#ifndef BERTH_COMPILER_PASSES_BINDINGS_H_
#define BERTH_COMPILER_PASSES_BINDINGS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// Whether a constant operand becomes a literal of the function's body: host operands and single
// elements do; what is packed never does.
bool berth_bindings_literal(const berth_module *module, const berth_op *op, uint32_t operand,
                            const berth_value *value, const berth_tensor *constant);

// Whether one function that computes these operations of a graph, in their order, has at most so many buffers:
// different operands from outside, and results of the last one. `most` is at most BERTH_TARGET_MAX_BINDINGS.
// O(operands); allocates nothing.
bool berth_bindings_suffice(const berth_module *module, const berth_graph *graph,
                            const berth_op_id *ops, uint32_t count, uint32_t most);

// How many those of one operation are. O(n log n).
uint32_t berth_bindings_of(const berth_module *module, const berth_graph *graph, berth_op_id id,
                           berth_arena *arena);

// The least limit of the target's devices that compute; NULL: what every program may bind.
uint32_t berth_bindings_least(const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_BINDINGS_H_
