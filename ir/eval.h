// The reference interpreter: plain loops in row-major order, no lowerings, no cleverness. It is the
// constant folder and the oracle that tests compare devices with. One file per operator family in
// ir/eval/.
#ifndef BERTH_IR_EVAL_H_
#define BERTH_IR_EVAL_H_

#include "ir/graph/graph.h"

// Computes one operation on host tensors. `inputs[i].dtype` is NONE for an operand left out.
// Outputs are allocated in `arena` (or share an input's data for views). Accumulates in double for
// floats, int64 for integers. Output shapes come from the data itself, so data-dependent shapes
// work here. Errors: INVALID_ARGUMENT / UNSUPPORTED with the op's location.
BERTH_MUST_USE berth_status berth_eval_op(const berth_module *module, berth_func_id function,
                                          berth_op_id op, const berth_tensor *inputs,
                                          berth_tensor *outputs, berth_arena *arena);

// The weights of a matmul_bits, (depth, columns), as f32. operands: bytes, scale, zero points or NULL.
// Errors: INVALID_ARGUMENT extents or attributes that do not fit.
BERTH_MUST_USE berth_status berth_eval_unpack_bits(const berth_module *module, const berth_op *op,
                                                   const berth_tensor *const operands[3],
                                                   int64_t depth, berth_arena *arena,
                                                   berth_tensor *out_weights);

// True when berth_eval_op knows this kind.
bool berth_eval_supports(berth_op_kind kind);

// A value of the interpreter: a tensor, or a tuple or function reference (in evaluated programs
// with them). Runs a whole graph function, with calls, if, loop, tuples and higher-order arguments;
// device annotations and copies are identities. `arguments` and `out_results` are tensors (flat
// functions); no recursion over program depth except for calls.
BERTH_MUST_USE berth_status berth_eval_function(const berth_module *module, berth_func_id function,
                                                const berth_tensor *arguments,
                                                uint32_t argument_count, berth_tensor *out_results,
                                                uint32_t result_count, berth_arena *arena);

// Ways to other machines, for the operations send and receive of a module that is one machine's part
// (compiler/decompose). receive waits for what the other end sends on that channel; its data stays
// where it is until the evaluation ends.
typedef struct berth_eval_channels {
    berth_status (*send)(void *user, int64_t channel, const berth_tensor *tensor);
    berth_status (*receive)(void *user, int64_t channel, berth_tensor *out_tensor);
    void *user;
} berth_eval_channels;

// As berth_eval_function. Errors: also those of the channels; UNSUPPORTED a send or receive without
// channels (NULL).
BERTH_MUST_USE berth_status berth_eval_function_with(
    const berth_module *module, berth_func_id function, const berth_eval_channels *channels,
    const berth_tensor *arguments, uint32_t argument_count, berth_tensor *out_results,
    uint32_t result_count, berth_arena *arena);

#endif  // BERTH_IR_EVAL_H_
