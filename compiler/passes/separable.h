// Interpolation along several axes, one axis after the other: a result of k x k taps then takes k + k
// products. A rule of passes/simplify.h, private to compiler/passes.
#ifndef BERTH_COMPILER_PASSES_SEPARABLE_H_
#define BERTH_COMPILER_PASSES_SEPARABLE_H_

#include "compiler/passes/rewrite.h"

// Of a resize of floats (linear or cubic) along two or more axes: a resize of each, in the order
// that leaves the least to compute, where that saves more than the values between cost.
BERTH_MUST_USE berth_status berth_split_resize(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_SEPARABLE_H_
