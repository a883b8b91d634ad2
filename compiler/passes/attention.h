// Whether an attention is one kernel on a device, or several: an estimate in bytes and operations.
//
// In one, scores are neither written nor read (two times each), and there are two dispatches less.
// The price is that a work-group reads keys and values for a few rows of queries, where tiles have
// 64 of them (from the cache, mostly), and that products are no work for matrix units.
#ifndef BERTH_COMPILER_PASSES_ATTENTION_H_
#define BERTH_COMPILER_PASSES_ATTENTION_H_

#include "compiler/lower/attention.h"
#include "target/target.h"

// False where the device has no work-groups, or no memory for a block of scores and sums. O(1).
bool berth_attention_pays(const berth_module *module, const berth_graph *graph,
                          const berth_multi_target *target, const berth_attention *attention);

#endif  // BERTH_COMPILER_PASSES_ATTENTION_H_
