// Zero points that are zero, left out of sums of integers: what subtracts them would subtract them
// from every weight, for every product.
#ifndef BERTH_COMPILER_PASSES_ZERO_POINTS_H_
#define BERTH_COMPILER_PASSES_ZERO_POINTS_H_

#include "ir/graph/graph.h"

// Rewrites conv_integer and matmul_integer of `main` in place. Inside berth_arena_try of the module's
// arena. O(operations + elements of zero points).
void berth_pass_drop_zero_points(berth_module *module, berth_func_id main);

#endif  // BERTH_COMPILER_PASSES_ZERO_POINTS_H_
