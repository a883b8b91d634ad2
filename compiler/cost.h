// The analytic cost model: a roofline per device (operations over peak, bytes over bandwidth) plus
// the cost of a dispatch. An estimate for placement; measured costs replace it where there are
// some.
#ifndef BERTH_COMPILER_COST_H_
#define BERTH_COMPILER_COST_H_

#include "planner/planner.h"

// Floating-point (or integer) operations and bytes that one execution of an operation takes at
// least.
typedef struct berth_op_work {
    double flops;
    double bytes;
} berth_op_work;
berth_op_work berth_op_work_of(const berth_module *module, berth_func_id function, berth_op_id op);

// The cost model of the compiler for a target: which operations it can lower, and how long they
// take. Made in `arena`, which outlives it, inside berth_arena_try; thread-compatible.
berth_cost_model berth_cost_model_analytic(berth_arena *arena, const berth_multi_target *target);

#endif  // BERTH_COMPILER_COST_H_
