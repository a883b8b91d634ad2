// Rows of a product computed into a panel that all its columns read (the packed panels of Goto and
// van de Geijn 2008, section 5, here for what is fused in front of a product): without one every
// tile of columns would compute them again. Private to compiler/schedule.
#ifndef BERTH_COMPILER_SCHEDULE_CPU_PANEL_H_
#define BERTH_COMPILER_SCHEDULE_CPU_PANEL_H_

#include "compiler/schedule/policy_cpu.h"

typedef struct berth_cpu_panel {
    berth_expr value;     // the operand that rows move; 0 = no panel
    berth_nest_loop row;  // of the plain nest
    berth_nest sum;       // loops of the reduction
    int64_t depth;        // their product
    int64_t pitch;        // elements from one row of the panel to the next
    int64_t bytes_per_row;
} berth_cpu_panel;

// The operand of acc + value * weights that does not move along `lane` and `column` (BERTH_NONE =
// none), where it is more than a load.
berth_cpu_panel berth_cpu__panel_of(const berth_tfn *fn, const berth_reduction *reduction,
                                    berth_nest_loop row, berth_var lane, berth_var column);

// The update with the operand read from the panel, whose first row is `first` of the loop.
berth_expr berth_cpu__panel_read(berth_tfn *fn, const berth_cpu_panel *panel, berth_buf buf,
                                 berth_expr first, berth_expr update);
// Loops that compute rows [first, first + count) of the panel; count is cut at the last row.
berth_stmt berth_cpu__panel_fill(berth_tfn *fn, const berth_cpu_panel *panel, berth_buf buf,
                                 berth_expr first, int64_t count);

#endif  // BERTH_COMPILER_SCHEDULE_CPU_PANEL_H_
