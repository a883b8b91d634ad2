// The memory part of `berth plan`.
#ifndef BERTH_TOOLS_PLAN_MEMORY_H_
#define BERTH_TOOLS_PLAN_MEMORY_H_

#include <jansson.h>

#include "toolkit/model.h"

// [memory_count of the target] What the pools take of each memory.
void berth_plan_memory_use(const berth_model *model, uint64_t *out_bytes);
void berth_plan_memory_print(const berth_model *model);
json_t *berth_plan_memory_json(const berth_model *model);    // "memory": an array of pools
json_t *berth_plan_streamed_json(const berth_model *model);  // "streamed": an array of memories
json_t *berth_plan_sharing_json(const berth_model *model);   // "memory_sharing": an object

#endif  // BERTH_TOOLS_PLAN_MEMORY_H_
