// What a model costs in less and less memory: plans for budgets from all that it wants down to the
// smallest that does.
#ifndef BERTH_TOOLKIT_MEMORY_SWEEP_H_
#define BERTH_TOOLKIT_MEMORY_SWEEP_H_

#include "toolkit/model.h"

typedef struct berth_memory_sweep_point {
    uint64_t budget_bytes;
    uint64_t planned_bytes;  // in the memory: pools, without what kernels keep for threads
    uint64_t read_bytes;     // of constants, in each run
    double predicted_ns;     // of a run
} berth_memory_sweep_point;

typedef struct berth_memory_sweep {
    const char *model;
    const char *memory;                      // of the target
    uint64_t least_bytes;                    // the smallest budget
    const berth_memory_sweep_point *points;  // from the largest budget to the smallest
    uint32_t point_count;
} berth_memory_sweep;

// Plans the model for about `count` (2 at least) budgets of a memory, in equal ratios; the largest is
// what the plan without a budget needs.
//   memory:    its name, or that of a device (as in --memory); NULL = the default device's own (of a board: "sram", which
//              is as large as its addresses reach, as its other memories are, unless they are declared with a size)
//   options:   as for berth_model_load; the other budgets of target_options hold for every plan
//   ownership: everything in the arena
//   errors:    those of berth_model_load; INVALID_ARGUMENT for a built program
BERTH_MUST_USE berth_status berth_memory_sweep_make(berth_arena *arena, const char *path,
                                                    const berth_model_options *options,
                                                    const char *memory, uint32_t count,
                                                    berth_memory_sweep *out_sweep);

// The predicted time against the budget, as an SVG document. Inside berth_arena_try of the buffer's
// arena.
void berth_memory_sweep_draw(const berth_memory_sweep *sweep, berth_strbuf *out);

#endif  // BERTH_TOOLKIT_MEMORY_SWEEP_H_
