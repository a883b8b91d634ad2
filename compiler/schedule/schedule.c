#include "compiler/schedule/schedule.h"

#include <string.h>

#include "compiler/extend.h"

static const berth_schedule_policy *const policies[] = {
#define BERTH_SCHEDULE_POLICY(constant) &constant,
#include "compiler/schedule/policies.def"
#undef BERTH_SCHEDULE_POLICY
};

static const berth_schedule_policy *registered[BERTH_EXTEND_MAX];
static uint32_t registered_count;

berth_status berth_schedule_register(const berth_schedule_policy *policy) {
    if (registered_count == BERTH_EXTEND_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d schedules are registered",
                                 BERTH_EXTEND_MAX);
    registered[registered_count++] = policy;
    return BERTH_OK;
}

static const berth_schedule_policy *of_kind(const char *kind) {
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); ++i)
        if (strcmp(policies[i]->kind, kind) == 0) return policies[i];
    for (uint32_t i = 0; i < registered_count; ++i)  // of a kind of device that is a plug-in's own
        if (!registered[i]->takes && strcmp(registered[i]->kind, kind) == 0) return registered[i];
    return NULL;
}

const berth_schedule_policy *berth_schedule_policy_for(const berth_module *module,
                                                       berth_func_id function,
                                                       const berth_target *target) {
    const char *kind = berth_device_kind_name(target->kind);
    for (uint32_t i = 0; i < registered_count; ++i)
        if (registered[i]->takes && strcmp(registered[i]->kind, kind) == 0 &&
            registered[i]->takes(module, function, target))
            return registered[i];
    return of_kind(kind);
}

berth_status berth_schedule_apply(berth_tfn *fn, const berth_target *target) {
    const char *kind = berth_device_kind_name(target->kind);
    const berth_schedule_policy *policy = of_kind(kind);
    if (policy) return policy->apply(fn, target);
    return berth_status_make(BERTH_UNSUPPORTED, "no schedules for devices of kind %s", kind);
}
