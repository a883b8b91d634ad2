// Parts of a plan as text and as JSON: what `berth plan` and `berth explain` both show.
#ifndef BERTH_TOOLS_PLAN_REPORT_H_
#define BERTH_TOOLS_PLAN_REPORT_H_

#include <berth/plan.h>
#include <jansson.h>

// Predicted time, notes, objective, bound and gap.
void berth_plan_print_value(const berth_plan_info *plan);

// A value of the plan in the unit of words: times in ms.
double berth_plan_shown(const char *unit, double value);
const char *berth_plan_shown_unit(const char *unit);

// What the operation takes of the memories on its device's chip; nothing where it takes none.
void berth_plan_print_buffers(const berth_planned_operation *operation, int indent);
json_t *berth_plan_operation_json(const berth_plan_info *plan, uint32_t index);
// What was decided of each kernel's loops, who decided it, and (where it was asked for) what else there
// would be.
void berth_plan_print_kernels(const berth_plan_info *plan);
json_t *berth_plan_kernels_json(const berth_plan_info *plan);
// How fast a copy's way is at most, and the bus that it shares: ", 12 GB/s at most, bus pcie"; nothing
// where nothing moves.
void berth_plan_print_copy_way(const berth_planned_copy *copy);
json_t *berth_plan_copies_json(const berth_plan_info *plan);
json_t *berth_plan_objective_json(const berth_plan_info *plan);

#endif  // BERTH_TOOLS_PLAN_REPORT_H_
