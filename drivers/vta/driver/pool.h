// The device's memory, handed out in ranges: first fit in the order of addresses.
#ifndef BERTH_DRIVERS_VTA_DRIVER_POOL_H_
#define BERTH_DRIVERS_VTA_DRIVER_POOL_H_

#include <pthread.h>

#include "drivers/vta/model.h"

// A range in use: part of the object that has it. Zeroed = none.
typedef struct berth_vta_range {
    uint64_t offset;  // from the pool's first byte
    uint64_t size_bytes;
    struct berth_vta_range *next;
} berth_vta_range;

typedef struct berth_vta_pool {
    berth_vta_dram memory;
    pthread_mutex_t lock;
    berth_vta_range *first;  // in the order of offsets
} berth_vta_pool;

// Takes at least 1 byte, on pages of its own. O(ranges). Errors: OUT_OF_MEMORY. Thread-safe.
BERTH_MUST_USE berth_status berth_vta_pool_take(berth_vta_pool *pool, uint64_t size_bytes,
                                                berth_vta_range *range);
void berth_vta_pool_give(berth_vta_pool *pool,
                         berth_vta_range *range);  // one without a size: nothing

#endif  // BERTH_DRIVERS_VTA_DRIVER_POOL_H_
