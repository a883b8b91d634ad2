// Loops to instructions: a reduction step that computes what an intrinsic's reference computes
// (ir/tensor/intrinsic.h) becomes that intrinsic.
//
//   for k in 4: acc[i] = acc[i] + i32(x[.., k]) * i32(w[i, .., k])    for i in 16
//   ->  acc = dot_u8i8_x16(acc, x[.., 0:4], w[0:16, .., 0:4])
//
// The reference's store is matched against the update, operand by operand; an operand is what the
// reference loads, or a narrower integer that widens to it without loss. Operands must lie in
// memory as the reference's region does, element after element.
#ifndef BERTH_COMPILER_SCHEDULE_TENSORIZE_H_
#define BERTH_COMPILER_SCHEDULE_TENSORIZE_H_

#include "compiler/schedule/nest.h"
#include "ir/tensor/intrinsic.h"
#include "target/target.h"

// Iterations of the loop inside the sum that the intrinsic takes at once.
int64_t berth_intrinsic_depth(berth_intrinsic id);

// Elements of what is multiplied by the weights from one of those iterations to the next.
int64_t berth_intrinsic_step(berth_intrinsic id);

// Whether a target's features include what an intrinsic needs, or its architecture is that; of opencl devices the
// features alone count, and OpenCL C must have it.
bool berth_intrinsic_serves(berth_intrinsic id, const berth_target *target);

// `update` (which reads the scalar register `acc`) for all iterations of `lane` and `depth` at
// once, both counting from 0 to the extents of the reference; `marker` stands for the vector of
// accumulators. *out 0: it is not what the intrinsic computes. O(nodes of update).
//   errors: those of berth_intrinsic_reference; INTERNAL the reference has another form
BERTH_MUST_USE berth_status berth_tensorize_update(berth_tfn *fn, berth_expr update, berth_var lane,
                                                   berth_var depth, berth_intrinsic id,
                                                   berth_buf acc, berth_expr marker,
                                                   berth_expr *out);

// The nest's last loop (the outputs of one instruction) and the innermost loop of the reduction in
// its body become an intrinsic: the nest loses the loop, its body accumulates a vector.
// Errors: FAILED_PRECONDITION what does not fit.
BERTH_MUST_USE berth_status berth_schedule_tensorize(berth_tfn *fn, berth_nest *nest,
                                                     berth_intrinsic id);

#endif  // BERTH_COMPILER_SCHEDULE_TENSORIZE_H_
