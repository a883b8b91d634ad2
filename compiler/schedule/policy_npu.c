// Devices that are only planned for: loops stay as they were lowered.
#include "compiler/schedule/schedule.h"

static berth_status as_it_is(berth_tfn *fn, const berth_target *target) {
    (void)fn;
    (void)target;
    return BERTH_OK;
}

const berth_schedule_policy berth_schedule_policy_npu = {.kind = "npu", .apply = as_it_is};
