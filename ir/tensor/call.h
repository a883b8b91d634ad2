// Calls in tensor functions (BERTH_STMT_CALL): a function, or external code, on regions of the caller's
// buffers. The callee sees each region as a buffer of its own, with the type of its parameter.
//
//   parallel %i in 16 {
//     call @scale_row(%x[%i, 0 for 64], %y[%i, 0 for 64])
//   }
//
// What the verifier asks of a call: as many regions as parameters (of an external function: operands, then
// results); equal element types, extents, layouts and memory scopes; regions that lie in their buffers
// for every iteration, whose part that is written may be written, and overlaps no other; no function
// that comes to call itself.
#ifndef BERTH_IR_TENSOR_CALL_H_
#define BERTH_IR_TENSOR_CALL_H_

#include "ir/tensor/function.h"
#include "ir/tensor/range.h"

// Calls nest at most so deep: the interpreter and the hash follow them by recursion.
#define BERTH_TFN_MAX_CALL_DEPTH 32

// The parameters of a tensor or external function, in the order of a call's regions; an external
// function's have no name, and symbols where its type has. False: it is neither, or has other types than
// tensors of known rank.
bool berth_tfn_callee_params(const berth_module *module, berth_func_id callee, berth_arena *arena,
                             const berth_buf_info **out_params, uint32_t *out_count);

// Why the call cannot be made; NULL = it can. Its buffers, and what its starts consist of, are
// checked. `ranges`: of the function's loops.
const char *berth_tfn_call_problem(const berth_tfn *fn, const berth_stmt_node *call,
                                   const berth_ranges *ranges, berth_arena *arena);

// INVALID_ARGUMENT where a tensor function comes to call itself, or calls nest too deep. O(statements).
BERTH_MUST_USE berth_status berth_tfn_check_call_nesting(const berth_module *module);

#endif  // BERTH_IR_TENSOR_CALL_H_
