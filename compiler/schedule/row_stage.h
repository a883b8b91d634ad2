// A scheduled tensor function as a stage that computes its results row by row: which rows of its operands an
// iteration of its loop over rows reads. Found from the loops, whatever the operator.
//
//   for oh in 16: ... y[0, oc, oh, ow] = ... x[0, ic, 2 * oh + kh, ...] ...     with kh < 3
//
// has 16 rows; of x it reads rows 2 * oh + [0, 2]. Whether they exist (padding) is the business of the conditions
// inside.
#ifndef BERTH_COMPILER_SCHEDULE_ROW_STAGE_H_
#define BERTH_COMPILER_SCHEDULE_ROW_STAGE_H_

#include "compiler/schedule/nest.h"

#define BERTH_ROW_DIM 2  // of images, [1, channels, rows, columns]

// Rows step * i + [low, high] in iteration i.
typedef struct berth_row_reads {
    bool by_rows;  // else it may read all of it
    int64_t step, low, high;
} berth_row_reads;

#define BERTH_ROW_STAGE_MAX_BEFORE 12

typedef struct berth_row_stage {
    // What stands before the nest: private buffers, and what is put into them for all rows (sums of weights). A row takes
    // it anew: there is one private memory, which other stages use in between.
    berth_stmt before[BERTH_ROW_STAGE_MAX_BEFORE];
    uint32_t before_count;
    berth_nest nest;
    int loop;                      // of the nest: over rows
    const berth_row_reads *reads;  // per parameter of the function
} berth_row_stage;

// False: the function has several nests that write results, or results that are not images of which every iteration of one loop
// writes one row, or is no function of one call. May add nodes to `fn`. Inside berth_arena_try of the module's arena.
bool berth_row_stage_find(berth_tfn *fn, berth_row_stage *out);

static inline int64_t berth_row_stage_rows(const berth_row_stage *stage) {
    return stage->nest.loops[stage->loop].extent;
}

// The nest without its loop over rows: what one row takes. Adds to `fn`, but not to its body.
berth_stmt berth_row_stage_emit(berth_tfn *fn, const berth_row_stage *stage);

#endif  // BERTH_COMPILER_SCHEDULE_ROW_STAGE_H_
