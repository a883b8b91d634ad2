// A chain of stages that runs row by row, so that of the values in between a few rows exist at a time: the sliding
// windows and folded storage of Halide (Ragan-Kelley et al., PLDI 2013), the line buffers of fused-layer accelerators
// (Alwani et al., MICRO 2016). Unlike patches (patches.h) nothing is computed twice, and each stage is code once.
//
//   y = conv3x3(x); z = conv3x3(y)   ->   for t: { if (there is such a row) y[row t]; if (...) z[row t - 1] }
//
// with row r of y in place r modulo 3. The chain becomes one tensor function: a loop over time, in which each stage
// computes at most one row. A stage of *period* p has a row every p turns (strides before it make p larger), its first one
// after a *delay*, by which all rows that this row reads are there.
//
// Stages are calls of scheduled functions that have a form for it (BERTH_ATTR_ROWS_FORM, schedule/row_stage.h); nothing
// is known of operators. What is not in the chain keeps the form it has.
#ifndef BERTH_COMPILER_PASSES_ROLL_ROWS_H_
#define BERTH_COMPILER_PASSES_ROLL_ROWS_H_

#include <string.h>

#include "compiler/schedule/row_stage.h"
#include "ir/graph/graph.h"

// Of berth_compile_options.patches.
#define BERTH_PATCHES_ROLLING "rolling"

static inline bool berth_rolls_rows(const char *patches) {
    return patches && strcmp(patches, BERTH_PATCHES_ROLLING) == 0;
}

// What was done.
typedef struct berth_rolled {
    uint32_t stage_count;     // 0 = nothing: no chain lowers the peak
    const berth_op_id *ops;   // its calls; the last one calls the new function
    uint64_t ring_bytes;      // of all values that exist in part
    uint64_t unrolled_bytes;  // what these values are as a whole
} berth_rolled;

// Of one image of a ring: the first of `rows` places is that of row 0.
typedef struct berth_roll_stage {
    berth_op_id op;
    berth_func_id function;  // in the form whose loops over rows are loops of their own
    const berth_row_stage *stage;
    int64_t period, delay;
} berth_roll_stage;

typedef struct berth_roll_chain {
    berth_roll_stage *stages;
    uint32_t count;
    int64_t
        *ring_rows;  // per value of @main; 0 = it exists as a whole, or is not made in the chain
} berth_roll_chain;

// Rolls the chain of @main's calls with the lowest sum of live values at the peak, where that is lower than without;
// the shortest of equal ones. Removes the forms of all functions. @main is scheduled, for one device. Inside berth_arena_try of the module's arena.
// O(calls * stages of a chain * operations).
void berth_pass_roll_rows(berth_module *module, berth_func_id main, berth_rolled *out_rolled);

// roll_build.c: the chain as one function; its last call calls it, and the others are no more.
void berth_roll__build(berth_module *module, berth_func_id main, const berth_roll_chain *chain);

#endif  // BERTH_COMPILER_PASSES_ROLL_ROWS_H_
