// Schedules: transformations of the loops of a tensor function, each of which checks its own
// legality, and one policy per target family that chooses them from the target's attributes. A
// scheduled function computes the same values.
#ifndef BERTH_COMPILER_SCHEDULE_SCHEDULE_H_
#define BERTH_COMPILER_SCHEDULE_SCHEDULE_H_

#include "ir/tensor/function.h"
#include "target/target.h"

// Rewrites `fn` (plain definition, as lowered) for the target by its family's policy.
// Errors: UNSUPPORTED with the reason; INTERNAL when a transformation's own check fails.
BERTH_MUST_USE berth_status berth_schedule_apply(berth_tfn *fn, const berth_target *target);

typedef struct berth_schedule_policy {
    const char *kind;  // target kind
    berth_status (*apply)(berth_tfn *fn, const berth_target *target);
    // (optional) Of a registered policy (compiler/extend.h): whether it schedules this function for
    // this target. The attribute BERTH_ATTR_OPERATORS says what registered operations are in it.
    bool (*takes)(const berth_module *module, berth_func_id function, const berth_target *target);
    bool
        skips_zeros;  // products with zeros around an operand are left out afterwards (skip_zeros.h)
} berth_schedule_policy;

// Strings, of a tensor function: the registered operations (ir/extend.h) that it was lowered from.
#define BERTH_ATTR_OPERATORS "operators"

// The policy for a function: a registered one that takes it, else that of the kind of device. NULL:
// there is none.
const berth_schedule_policy *berth_schedule_policy_for(const berth_module *module,
                                                       berth_func_id function,
                                                       const berth_target *target);

extern const berth_schedule_policy berth_schedule_policy_cpu;  // policy_cpu.c
// policy_plain.c: executor aot; for few instructions, or for few bytes of code.
extern const berth_schedule_policy berth_schedule_policy_plain;
extern const berth_schedule_policy berth_schedule_policy_plain_small;
// policy_gpu.c: one for all.
extern const berth_schedule_policy berth_schedule_policy_opencl;
extern const berth_schedule_policy berth_schedule_policy_vulkan;
extern const berth_schedule_policy berth_schedule_policy_cuda;
extern const berth_schedule_policy berth_schedule_policy_npu;  // policy_npu.c

#endif  // BERTH_COMPILER_SCHEDULE_SCHEDULE_H_
