#include "compiler/schedule/schedule.h"

#include <string.h>

static const berth_schedule_policy *const policies[] = {
#define BERTH_SCHEDULE_POLICY(constant) &constant,
#include "compiler/schedule/policies.def"
#undef BERTH_SCHEDULE_POLICY
};

berth_status berth_schedule_apply(berth_tfn *fn, const berth_target *target) {
    const char *kind = berth_device_kind_name(target->kind);
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); ++i)
        if (strcmp(policies[i]->kind, kind) == 0) return policies[i]->apply(fn, target);
    return berth_status_make(BERTH_UNSUPPORTED, "no schedules for devices of kind %s", kind);
}
