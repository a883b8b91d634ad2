// Schedules for devices that run work-groups: parallel loops as groups, and tiles of matrix
// products and convolutions in local memory. Loops of kind GROUP_* and LOCAL_* become the ids of
// the kernel's grid.
#ifndef BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_
#define BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_

#include "compiler/schedule/nest.h"

// The outermost parallel loops as work-groups of one work-item each (loops beyond the third are
// fused outwards). `stmt` itself when there are none.
berth_stmt berth_work_groups(berth_tfn *fn, berth_stmt stmt);

#endif  // BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_
