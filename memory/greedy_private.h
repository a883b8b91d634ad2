// Shared by memory/greedy.c and memory/skyline.c.
#ifndef BERTH_MEMORY_GREEDY_PRIVATE_H_
#define BERTH_MEMORY_GREEDY_PRIVATE_H_

#include "base/arena.h"
#include "memory/interval.h"

typedef enum greedy_measure {
    GREEDY_SIZE,
    GREEDY_CONFLICTS,
    GREEDY_AREA,
    GREEDY_DURATION
} greedy_measure;

// Places into the lowest part of the skyline the interval of the greatest measure that is live only
// there.
uint64_t berth_memory__skyline(berth_arena *scratch, const berth_memory_interval *intervals,
                               uint32_t count, const double *measure, uint64_t *out_offsets);

#endif  // BERTH_MEMORY_GREEDY_PRIVATE_H_
