// Parts of a plan as text and as JSON: what `berth plan` and `berth explain` both show.
#ifndef BERTH_TOOLS_PLAN_REPORT_H_
#define BERTH_TOOLS_PLAN_REPORT_H_

#include <jansson.h>

#include "toolkit/model.h"

// Predicted time, notes, objective, bound and gap.
void berth_plan_print_value(berth_arena *arena, const berth_plan *plan);

// A value of the plan in the unit of words: times in ms.
double berth_plan_shown(const char *unit, double value);
const char *berth_plan_shown_unit(const char *unit);

// "conv1 (Conv)"; of an operation without a node, where it is written. Inside berth_arena_try.
const char *berth_plan_operation_name(berth_arena *arena, const berth_model *model, uint32_t entry);
// The memory in which an operation's results are.
const char *berth_plan_memory_of(const berth_model *model, uint32_t entry);

// What the operation takes of the memories on its device's chip; nothing where it takes none.
void berth_plan_print_buffers(const berth_multi_target *target, const berth_plan_entry *entry,
                              int indent);
json_t *berth_plan_operation_json(const berth_model *model, uint32_t entry);
// What was decided of each kernel's loops, who decided it, and (where it was asked for) what else there
// would be. Inside berth_arena_try.
void berth_plan_print_kernels(berth_arena *arena, const berth_model *model);
json_t *berth_plan_kernels_json(berth_arena *arena, const berth_model *model);
json_t *berth_plan_copies_json(const berth_model *model);
json_t *berth_plan_objective_json(const berth_plan *plan);

#endif  // BERTH_TOOLS_PLAN_REPORT_H_
