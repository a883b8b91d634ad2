// Interpreter of tensor functions: what a function means, without a compiler. Tests run it before
// and after every transformation of a schedule, and beside code generators. Slow by design: one
// tree walk per statement.
//
//   void *buffers[] = {x, y};  // in parameter order, physical layouts, static shapes
//   BERTH_TRY(berth_tfn_interpret(fn, buffers, arena));
#ifndef BERTH_IR_TENSOR_INTERPRETER_H_
#define BERTH_IR_TENSOR_INTERPRETER_H_

#include "ir/tensor/function.h"

// Runs the whole function. Workspace and local buffers live in `arena` and start as NaN (integers:
// all bits set), so that reading what was never written shows. Work-items of a group run in step
// between barriers; other parallel loops run in order. f32 arithmetic rounds after every operation;
// f16 and bf16 are computed in f32 and rounded.
//   buffers: param_count pointers, each of berth_layout_element_count elements; a padded block may
//            be accessed
//   errors:  OUT_OF_RANGE naming the buffer and index of an access outside; UNSUPPORTED symbolic
//            shapes, vectors of more than BERTH_TFN_INTERP_MAX_LANES; INVALID_ARGUMENT a malformed
//            function (unset variable, ...)
//   threads: thread-safe for different arenas
BERTH_MUST_USE berth_status berth_tfn_interpret(const berth_tfn *fn, void *const *buffers,
                                                berth_arena *arena);

#define BERTH_TFN_INTERP_MAX_LANES 256

#endif  // BERTH_IR_TENSOR_INTERPRETER_H_
