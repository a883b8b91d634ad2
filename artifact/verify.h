// The checks of a program (verify.c), inside of this folder.
#ifndef BERTH_ARTIFACT_VERIFY_H_
#define BERTH_ARTIFACT_VERIFY_H_

#include "artifact/program.h"
#include "target/virtual_device.h"

#define BERTH_ARTIFACT__BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

// Bytes of a pool.
typedef struct berth_artifact__range {
    uint32_t pool;
    uint32_t record;  // in its list
    uint32_t tensor;
    bool is_output;
    uint64_t begin;
    uint64_t end;
} berth_artifact__range;

static inline bool berth_artifact__is_host(const berth_program *program, uint32_t device) {
    return berth_device_kind_is_host(berth_device_kind_from_name(program->devices[device].kind));
}

static inline const berth_program_pool *berth_artifact__pool_of(const berth_program *program,
                                                                uint32_t tensor) {
    return &program->pools[program->tensors[tensor].pool];
}

static inline bool berth_artifact__holds_constants(const berth_program_pool *pool) {
    return pool->usage == BERTH_POOL_CONSTANT || pool->usage == BERTH_POOL_STORE;
}

static inline bool berth_artifact__is_first_queue(const berth_program *program, uint32_t queue) {
    for (uint32_t q = 0; q < queue; ++q)
        if (program->queues[q].device == program->queues[queue].device) return false;
    return true;
}

static inline berth_artifact__range berth_artifact__range_of(const berth_program *program,
                                                             uint32_t tensor, uint32_t record) {
    const berth_program_tensor *t = &program->tensors[tensor];
    return (berth_artifact__range){t->pool, record,          tensor,
                                   false,   t->offset_bytes, t->offset_bytes + t->size_bytes};
}

// By pool, begin, end and record.
void berth_artifact__sort_ranges(berth_artifact__range *ranges, size_t count);

// Executables and kernels, then all steps. `ranges` has room for the bindings of any kernel.
berth_status berth_artifact__check_code(const berth_program *program,
                                        berth_artifact__range *ranges);

#endif
