// Large constants of matrix products, in parts, where a memory's budget has no room for all constants.
#ifndef BERTH_COMPILER_PASSES_SPLIT_H_
#define BERTH_COMPILER_PASSES_SPLIT_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// x * W = concat(x * W0, x * W1, ...) with W's columns in parts, for products of a device whose
// constants exceed the budget of its memory (package_stream.h reads them again in each run: a constant
// must fit whole). Products of one row, whose parts are bytes in a row, are split from 8 MiB on; others,
// where putting the parts together is a copy, only when they are larger than a quarter of the budget.
// What is computed stays the same sum for every element, taken in the same order
// (BERTH_ATTR_WHOLE_RESULTS, schedule/work_groups.h). After plan-devices. Errors: those of shape
// inference.
BERTH_MUST_USE berth_status berth_pass_split_constants(berth_module *module, berth_func_id function,
                                                       const berth_multi_target *target);

#endif  // BERTH_COMPILER_PASSES_SPLIT_H_
