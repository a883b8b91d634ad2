// How long VTA takes: what one instruction costs, from figures that are stated (timing.def) and can
// be changed. When instructions run is run.h's.
#ifndef BERTH_DRIVERS_VTA_TIMING_H_
#define BERTH_DRIVERS_VTA_TIMING_H_

#include "drivers/vta/model.h"

typedef struct berth_vta_timing {
#define TIMING(name, value, meaning) uint32_t name;
#include "drivers/vta/timing.def"
} berth_vta_timing;

berth_vta_timing berth_vta_timing_default(void);

// Sets a figure by its name. Errors: NOT_FOUND, OUT_OF_RANGE (0 where something is divided by it,
// or more than 1000000).
BERTH_MUST_USE berth_status berth_vta_timing_set(berth_vta_timing *timing, const char *name,
                                                 uint32_t value);

typedef struct berth_vta_cost {
    uint64_t port;  // cycles of the memory port
    uint64_t own;   // cycles of the unit beside it: issue, micro-ops, clearing
} berth_vta_cost;

berth_vta_cost berth_vta_cost_of(const berth_vta_timing *timing,
                                 const berth_vta_instruction *instruction,
                                 const berth_vta_work *work, const berth_vta_shape *shape);

#endif  // BERTH_DRIVERS_VTA_TIMING_H_
