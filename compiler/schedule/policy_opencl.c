// Policy for opencl devices: parallel loops become work-items (the printer's flat grid).
#include "compiler/schedule/schedule.h"

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    (void)fn;
    (void)target;
    return BERTH_OK;
}

const berth_schedule_policy berth_schedule_policy_opencl = {.kind = "opencl", .apply = apply};
