// Building a program from planned, lowered and printed functions (private to compiler/). package.c
// makes storages, tensors and steps; package_memory.c gives them places and orders queues.
#ifndef BERTH_COMPILER_PACKAGE_H_
#define BERTH_COMPILER_PACKAGE_H_

#include "compiler/pipeline.h"

// Bytes that one or more tensors (views) live in.
typedef struct berth_storage {
    uint32_t owner;  // device whose memory it is in (the first device that owns that memory)
    berth_pool_usage usage;
    uint64_t size_bytes;
    uint32_t first_step, last_step;  // lifetime, inclusive (workspace)
    uint32_t pool;
    uint64_t offset_bytes;
} berth_storage;

typedef struct berth_packager {
    berth_module *module;
    berth_func_id main;
    berth_pipeline *pipeline;
    const berth_multi_target *target;
    berth_arena *arena;
    uint32_t *tensor_of;  // [value * device_count + device]: tensor, BERTH_NO_INDEX = none yet
    BERTH_VEC(berth_storage) storages;
    BERTH_VEC(uint32_t) storage_of;  // per tensor
    BERTH_VEC(berth_program_tensor) tensors;
    BERTH_VEC(berth_program_constant) constants;
    BERTH_VEC(berth_program_pool) pools;
    BERTH_VEC(berth_program_step) steps;
    BERTH_VEC(berth_program_kernel) kernels;
} berth_packager;

// Device that owns the memory in which `device` keeps its values.
uint32_t berth_packager__owner(const berth_packager *packager, uint32_t device);

// Sets pool and offset of every storage and tensor, makes the pools. Errors: OUT_OF_MEMORY when a
// memory's capacity or budget is exceeded (names the largest tensors live at the peak and the
// smallest capacity that would do).
berth_status berth_packager__plan_memory(berth_packager *packager);

// Sets the waits of every step: a step waits for steps of other queues that write what it reads, or
// use what it writes.
berth_status berth_packager__order_queues(berth_packager *packager);

#endif  // BERTH_COMPILER_PACKAGE_H_
