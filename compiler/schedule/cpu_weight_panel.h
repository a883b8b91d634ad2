// Columns of weights computed into a panel that all rows of a product read (the packed panels of Goto and
// van de Geijn 2008, section 5, here for weights that are unpacked from a few bits on the way): without one
// every tile of rows would compute them again. Private to compiler/schedule.
#ifndef BERTH_COMPILER_SCHEDULE_CPU_WEIGHT_PANEL_H_
#define BERTH_COMPILER_SCHEDULE_CPU_WEIGHT_PANEL_H_

#include "compiler/schedule/policy_cpu.h"

enum { BERTH_CPU_MOST_WEIGHTS = 4 };  // of one step of the sum: a byte has as many numbers

typedef struct berth_cpu_weight_panel {
    berth_expr
        values[BERTH_CPU_MOST_WEIGHTS];  // of a step of the sum, the last that is added first
    int count;                           // 0 = no panel
    berth_var lane;                      // of the plain nest: the column
    berth_nest sum;                      // loops of the reduction
    int64_t depth;                       // values of a column
    int64_t width;                       // columns of a tile
} berth_cpu_weight_panel;

// The operands of a sum of products that move along `lane` and not along `row`, where all of them are more than
// loads.
berth_cpu_weight_panel berth_cpu__weight_panel_of(const berth_tfn *fn,
                                                  const berth_reduction *reduction, berth_var row,
                                                  berth_var lane, int64_t width);

// A panel of `tiles` tiles of columns: [tile][value of the sum][column of the tile], f32.
berth_buf berth_cpu__weight_panel_buffer(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                         int64_t tiles);
// The update with the operands read from tile `tile` of the panel, whose first column is `first`.
berth_expr berth_cpu__weight_panel_read(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                        berth_buf buf, berth_expr tile, berth_expr first,
                                        berth_expr update);
// Loops that compute the first `columns` columns of a tile in vectors of `lanes`, which divide them.
berth_stmt berth_cpu__weight_panel_fill(berth_tfn *fn, const berth_cpu_weight_panel *panel,
                                        berth_buf buf, berth_expr tile, berth_expr first,
                                        int64_t columns, int64_t lanes);

#endif  // BERTH_COMPILER_SCHEDULE_CPU_WEIGHT_PANEL_H_
