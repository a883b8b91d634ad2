// A call while a tensor function is interpreted (private to ir/tensor).
#ifndef BERTH_IR_TENSOR_INTERPRETER_CALL_H_
#define BERTH_IR_TENSOR_INTERPRETER_CALL_H_

#include "ir/tensor/function.h"

// A region, where it begins now, and the memory of its buffer.
typedef struct berth_interpreted_region {
    const berth_tfn_region *is;
    int64_t starts[BERTH_MAX_RANK];
    unsigned char *storage;
    const berth_layout *layout;
} berth_interpreted_region;

// Runs the callee on copies of the regions; what it writes goes back where it came from.
// Errors: OUT_OF_RANGE a region outside its buffer; UNSUPPORTED an external function; the callee's own.
BERTH_MUST_USE berth_status berth_tfn__interpret_call(const berth_tfn *fn,
                                                      const berth_stmt_node *call,
                                                      const berth_interpreted_region *regions,
                                                      berth_arena *scratch);

#endif  // BERTH_IR_TENSOR_INTERPRETER_CALL_H_
