// What the planner's stages hand to each other (private to planner/).
#ifndef BERTH_PLANNER_STAGES_H_
#define BERTH_PLANNER_STAGES_H_

#include "planner/planner.h"

typedef struct berth_planner_state {
    berth_module *module;
    berth_func_id function;
    const berth_plan_options *options;
    berth_arena *arena;
    uint32_t *device;      // per operation: device of the target, BERTH_NO_INDEX = free
    const char **reason;   // per operation
    bool *host_operation;  // per operation
    BERTH_VEC(const char *) warnings;
    BERTH_VEC(berth_plan_copy) copies;
} berth_planner_state;

// 1 pins (pins.c): fixes the devices of pinned operations; the first pin that matches decides.
berth_status berth_planner__pins(berth_planner_state *state);
// 3 placement (place.c): gives every free operation a device.
berth_status berth_planner__place(berth_planner_state *state);
// 4 copies (copies.c): inserts device_copy operations and records devices.
berth_status berth_planner__copies(berth_planner_state *state);

#endif  // BERTH_PLANNER_STAGES_H_
