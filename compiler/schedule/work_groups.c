#include "compiler/schedule/work_groups.h"

berth_stmt berth_work_groups(berth_tfn *fn, berth_stmt stmt) {
    static const berth_loop_kind axes[] = {BERTH_LOOP_GROUP_X, BERTH_LOOP_GROUP_Y,
                                           BERTH_LOOP_GROUP_Z};
    berth_nest nest;
    if (!berth_nest_parse(fn, stmt, &nest)) return stmt;
    int count = 0;
    while (count < nest.count && nest.loops[count].kind == BERTH_LOOP_PARALLEL) count++;
    if (count == 0) return stmt;
    while (count > 3) {
        berth_status status = berth_schedule_fuse(fn, &nest, 0);
        if (status) {
            berth_decisions_refuse(fn, status);
            return stmt;
        }
        count--;
    }
    for (int i = 0; i < count; ++i) nest.loops[i].kind = axes[count - 1 - i];
    return berth_nest_emit(fn, &nest);
}
