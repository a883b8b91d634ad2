// Rows of a picture for what memories hold against time (private to toolkit/).
#ifndef BERTH_TOOLKIT_MEMORY_ROWS_H_
#define BERTH_TOOLKIT_MEMORY_ROWS_H_

#include "base/timeline.h"
#include "toolkit/simulate.h"

#define BERTH_MEMORY_ROW_KEYS 2u
#define BERTH_MEMORY_ROW_NOTE                                                                      \
    "memory: bytes that hold intermediate values; fixed are constants, inputs and results"

typedef struct berth_memory_rows {
    BERTH_VEC(berth_timeline_row) rows;
    BERTH_VEC(berth_timeline_curve) curves;  // one in each row
} berth_memory_rows;

// A row for each memory that holds intermediate values at some time; `first_row` is the first one's
// number in the picture. Times are in ms. `memories`: per memory of the target; NULL = no rows. Inside
// berth_arena_try.
void berth_memory_rows_make(berth_arena *arena, const berth_multi_target *target,
                            const berth_simulated_memory *memories, uint32_t first_row,
                            berth_memory_rows *out);
// Entries of the legend.
extern const berth_timeline_key berth_memory_row_keys[BERTH_MEMORY_ROW_KEYS];

// What the memories of a plan's target hold in the schedule that was predicted for one request: each
// step of the program at the time of the operations that it computes. NULL where that would take too
// long. O(steps and operations, and that of berth_simulation__follow_memory). Inside berth_arena_try.
const berth_simulated_memory *berth_plan_memories(berth_arena *arena, const berth_model *model);

#endif  // BERTH_TOOLKIT_MEMORY_ROWS_H_
