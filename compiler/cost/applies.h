// Whether measured times are of the devices of a target: said once per plan, so that a file of another
// machine, or of other options, is not taken for one of this.
#ifndef BERTH_COMPILER_COST_APPLIES_H_
#define BERTH_COMPILER_COST_APPLIES_H_

#include "compiler/cost/table.h"

// Logs (BERTH_LOG_INFO) how many records there are, of which file, and for each kind of device of the
// target that has none of them what the nearest device with some differs in:
//   "costs: 812 of costs.jsonl; none is of cpu:0 (the nearest device: cores: 2, not 1)"
// Inside berth_arena_try of the table's arena. Time: records and, for devices without any, kinds of
// devices in the table.
//   errors: OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_cost_table_say(const berth_cost_table *table, const char *path,
                                                 const berth_multi_target *target, berth_log log);

#endif  // BERTH_COMPILER_COST_APPLIES_H_
