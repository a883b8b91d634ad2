// What was decided of the scheduled functions of a module: for `berth plan --why` and `berth tune`.
#ifndef BERTH_COMPILER_TUNING_KERNEL_CHOICE_H_
#define BERTH_COMPILER_TUNING_KERNEL_CHOICE_H_

#include "base/hash.h"
#include "compiler/schedule/decisions.h"

typedef enum berth_kernel_chooser {
    BERTH_CHOSEN_BY_POLICY,
    BERTH_CHOSEN_BY_MODULE,  // the attribute BERTH_ATTR_DECISIONS
    BERTH_CHOSEN_BY_TUNING,  // a record of compiler/tuning/table.h
} berth_kernel_chooser;

typedef struct berth_kernel_choice {
    const char *name;  // of the scheduled function
    berth_func_id scheduled;
    const char *target;      // of the device, culled (berth_target_culled)
    berth_hash128 function;  // of the plain definition (berth_tfn_hash)
    berth_kernel_chooser by;
    berth_schedule_decisions *decisions;
    const char *refused;  // why a record of a trial is not used; NULL = it is, or there is none
} berth_kernel_choice;

typedef struct berth_kernel_choices {
    BERTH_VEC(berth_kernel_choice) items;
} berth_kernel_choices;

#endif  // BERTH_COMPILER_TUNING_KERNEL_CHOICE_H_
