// Verifier hooks of tensor and external functions (private to ir/). Inside berth_arena_try.
#ifndef BERTH_IR_TENSOR_VERIFY_H_
#define BERTH_IR_TENSOR_VERIFY_H_

#include "ir/module.h"

// Buffers and variables in scope, as many indices as dimensions, operand types, one store target
// that may be written, kinds of loops.
BERTH_MUST_USE berth_status berth_verify__tfn(const berth_module *module, berth_func_id function);
BERTH_MUST_USE berth_status berth_verify__external(const berth_module *module,
                                                   berth_func_id function);

#endif  // BERTH_IR_TENSOR_VERIFY_H_
