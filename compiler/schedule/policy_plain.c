// How loops are arranged for small cores without vectors, in C that any compiler takes: as they were
// lowered.
#include "compiler/schedule/schedule.h"

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    (void)fn, (void)target;
    return BERTH_OK;
}

const berth_schedule_policy berth_schedule_policy_plain = {.kind = "cpu", .apply = apply};
