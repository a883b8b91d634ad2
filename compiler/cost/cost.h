// The compiler's cost model: how long an operation takes on a device of the target. Measured times
// (table.h) where there are some, else those interpolated from similar work, else a roofline of the
// target's figures (roofline.h). The times are those of the kernels that the compiler
// would make (kernel_groups.h); each belongs to the operation with most of its work, and what is
// fused to that takes none.
#ifndef BERTH_COMPILER_COST_COST_H_
#define BERTH_COMPILER_COST_COST_H_

#include "compiler/compile.h"
#include "compiler/cost/roofline.h"
#include "compiler/cost/work.h"
#include "planner/planner.h"

// The cost model of the compiler for a target: which operations it can lower, and how long they
// take. `options` (borrowed): what decides on kernels, and measured costs; NULL = operations one by
// one, from the target's figures. Made in `arena`, which outlives it, inside berth_arena_try;
// thread-compatible.
berth_cost_model berth_cost_model_create(berth_arena *arena, const berth_multi_target *target,
                                         const berth_compile_options *options);

// Time of some work on a device of the target, from what the table (NULL = none) or else the target
// knows.
double berth_cost_work_ns(const berth_multi_target *target, struct berth_cost_table *table,
                          uint32_t device, const berth_work *work, berth_cost_constants constants,
                          berth_cost_figure *out_figure);

// Between devices that work in one memory, from the end of the one's work to the beginning of the
// other's: what the table has of it, else a usual figure. Cores fetch from other cores' caches what
// these hold: that, too, for a value of size_bytes.
double berth_cost_hand_over_ns(const berth_multi_target *target, struct berth_cost_table *table,
                               uint32_t from, uint32_t to, uint64_t size_bytes);

// How much longer a copy between two devices takes where kernels are at both of its ends, than from the
// caller of a run or back to it, which is how copies are measured: threads of the host's cores are woken
// beside the caller's. 0 unless the one is the host's processor and the other a driver on cores.
double berth_cost_between_kernels_ns(const berth_multi_target *target, uint32_t from, uint32_t to);

#endif  // BERTH_COMPILER_COST_COST_H_
