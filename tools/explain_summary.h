// What `berth explain` says first: where the time of a plan goes.
#ifndef BERTH_TOOLS_EXPLAIN_SUMMARY_H_
#define BERTH_TOOLS_EXPLAIN_SUMMARY_H_

#include <berth/plan.h>
#include <jansson.h>

#include "base/arena.h"

// Devices, copies between them in sum, the longest operations, memories, bound and gap.
void berth_explain_print_summary(berth_arena *arena, const berth_plan_info *plan);
// Every copy and what causes it.
void berth_explain_print_copies(const berth_plan_info *plan);
// "model", "target", "strategy", "predicted_ms", "objective", "devices", "traffic".
json_t *berth_explain_summary_json(berth_arena *arena, const berth_plan_info *plan);

#endif  // BERTH_TOOLS_EXPLAIN_SUMMARY_H_
