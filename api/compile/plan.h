// A plan behind <berth/plan.h> (private to api/compile).
#ifndef BERTH_API_COMPILE_PLAN_H_
#define BERTH_API_COMPILE_PLAN_H_

#include <berth/plan.h>

#include "toolkit/model.h"

struct berth_plan_info {
    berth_arena *arena;  // of this struct
    berth_model *model;
    const char *path;  // NULL = a model from memory
    berth_placement *placements;
    const char *svg, *dot;
    berth_plan_facts facts;
    berth_planned_device *devices;
    berth_planned_memory *memories;
    berth_planned_operation *operations;
    berth_planned_copy *copies;
    berth_planned_transfer *transfers;
    berth_planned_pool *pools;
    berth_planned_stream *streams;
    berth_planned_kernel *kernels;
    berth_planned_sharing sharing;
    berth_planned_workspace *workspaces;
    uint32_t device_count, memory_count, operation_count, copy_count, transfer_count, pool_count,
        stream_count, kernel_count, workspace_count;
};

// Fill in the records of a plan from its model, in its arena. Inside berth_arena_try.
void berth_api__plan_operations(berth_plan_info *info);  // facts, devices, operations, copies
void berth_api__plan_memory(berth_plan_info *info);      // memories, pools, streams, sharing
void berth_api__plan_kernels(berth_plan_info *info);
// Workspaces, of a program for all shapes within bounds. The texts are copies.
void berth_api__plan_shapes(berth_plan_info *info, const berth_program *program);

#endif  // BERTH_API_COMPILE_PLAN_H_
