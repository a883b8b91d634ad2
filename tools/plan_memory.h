// The memory part of `berth plan`.
#ifndef BERTH_TOOLS_PLAN_MEMORY_H_
#define BERTH_TOOLS_PLAN_MEMORY_H_

#include <berth/plan.h>
#include <jansson.h>

void berth_plan_memory_print(const berth_plan_info *plan);
json_t *berth_plan_memory_json(const berth_plan_info *plan);    // "memory": an array of pools
json_t *berth_plan_streamed_json(const berth_plan_info *plan);  // "streamed": an array of memories
json_t *berth_plan_sharing_json(const berth_plan_info *plan);   // "memory_sharing": an object
json_t *berth_plan_shapes_json(const berth_plan_info *plan);    // "shapes": an array of workspaces

#endif  // BERTH_TOOLS_PLAN_MEMORY_H_
