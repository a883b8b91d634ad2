// Schedules for devices that run work-groups: parallel loops as groups, and tiles of matrix
// products and convolutions in local memory. Loops of kind GROUP_* and LOCAL_* become the ids of
// the kernel's grid.
#ifndef BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_
#define BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_

#include "compiler/schedule/nest.h"
#include "target/target.h"

// The outermost parallel loops as work-groups of one work-item each (loops beyond the third are
// fused outwards). `stmt` itself when there are none.
berth_stmt berth_work_groups(berth_tfn *fn, berth_stmt stmt);

// Of an operation, and of its function: results of the product whose columns were split (passes/split.h). What
// decides in which order sums are taken looks at these, so that parts give the bits that the whole gives.
#define BERTH_ATTR_WHOLE_RESULTS "whole_results"

typedef struct berth_local_tile_limits {
    uint16_t lanes;              // of the vectors that a work-item computes with
    int64_t rows;                // most rows of vectors of a work-item (accumulators)
    int64_t vectors;             // most of these beside each other; 0 = one
    int64_t row_terms;           // terms of a row that a work-item reads at once; 0 = one
    int64_t group_columns;       // most work-items of a group along columns
    int64_t group_rows;          // and along rows
    int64_t depth;               // wanted terms of a sum in local memory
    int64_t group_size;          // most work-items of a group
    int64_t local_memory_bytes;  // of a group
    int64_t
        most_memory_bytes;  // that tiles of matrix units may take, where that pays; 0 = no more than that
    int64_t
        unit_memory_bytes;  // that the groups of a compute unit have together, of most_memory_bytes
    int64_t unit_registers;  // and their registers of 32 bits
    int64_t compute_units;   // of the device; 0 = not known
    int64_t
        unit_items;  // work-items that a unit has at once, by which loads are in flight; 0 = not known
    int64_t copy_stages;  // tiles in turns, for copies that go on by themselves; 0 = it has none
    bool one_by_one;      // work-items of a group run one after the other, on a core
    const berth_target *target;  // whose intrinsics may be used; NULL = none
} berth_local_tile_limits;

// What a GPU's target says of them (target.h, item_rows and what follows it); vectors of four.
berth_local_tile_limits berth_local_tile_limits_of(const berth_target *target);

// Work-groups of the tiles that matrix units would be given by one of the two forms below; 0: by none. O(size of the nest).
int64_t berth_matrix_tile_groups(berth_tfn *fn, const berth_nest *nest,
                                 const berth_local_tile_limits *limits);

// A reduction of the form acc += x * y, where some output loops move only x and others only y
// (matrix products, convolutions), as tiles: a group computes a block of rows and columns; for each
// block of the sum its work-items stage the operands in local memory, wait for each other, and
// update a register tile each. With several tiles in turns (decision `stages`) the next blocks are
// staged while one is computed with. Rows and columns after the last are computed from clamped indices
// and not stored; what lies after the end of the sum is staged as zeros. 0 when the nest has no
// such form or is too small.
//   See V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra" (2008),
//   section 5. O(rows of a tile) statements.
berth_stmt berth_local_tile(berth_tfn *fn, const berth_nest *nest,
                            const berth_local_tile_limits *limits);

// The same on the matrix units of a device (intrinsics of fragments, ir/tensor/intrinsics.def): operands
// of a type that these take stay as they are while they are staged, in several tiles in turns, so that
// the next are copied while one is computed with; a warp of 32 work-items computes 16 x 8 results per
// instruction, and as many of these side by side as `rows` and `columns` say. 0 also where the target
// has no such units for the types.
//   See A. Kerr et al., "CUTLASS: Fast Linear Algebra in CUDA C++" (2017). O(rows * columns) statements.
berth_stmt berth_matrix_tile(berth_tfn *fn, const berth_nest *nest,
                             const berth_local_tile_limits *limits);

// Whether the target's units multiply such elements, by instructions of a warp or subgroup at least.
bool berth_matrix_units_take(const berth_target *target, berth_dtype x, berth_dtype weights);

// The same by instructions that four warps compute together and whose operands stay in the memory of the group (wgmma
// of sm_90a): 64 rows by 64 or 128 columns each, of steps of 128 bytes of the sum. 0 also where there are fewer than half as
// many rows or columns, or half a step: what a warp computes by itself leaves less undone then.
//   See PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". O(columns) statements.
berth_stmt berth_group_matrix_tile(berth_tfn *fn, const berth_nest *nest,
                                   const berth_local_tile_limits *limits);

// A nest whose body has sums (also products, minima, maxima) along loops of its own, as those of reductions, softmax and
// normalisations, with a group for every iteration of the nest: work-items take the terms in turns, neighbours in memory
// next to each other, and add up what each has in the group's memory by halves; the last 32 elements all at once where
// the target has an intrinsic for that (shuffles of a warp, arithmetic of a subgroup). Where terms lie apart and the nest's last loop
// goes along memory (a row times a matrix), a group does 32 iterations of that at once. Arrays of the body become the group's,
// and what is computed once is computed by all. 0 where a statement has no such form, the arrays do not fit, or it would not
// pay: short sums, or rows enough for a work-item each that do not lie one after another.
//   See M. Harris, "Optimizing parallel reduction in CUDA" (2007). O(statements * log(work-items)) statements.
berth_stmt berth_group_rows(berth_tfn *fn, const berth_nest *nest,
                            const berth_local_tile_limits *limits);

// A sum with many terms and few results, whose work-groups would leave most of the device idle, as two nests: parts of
// the sum, each as a nest of its own (`schedule` with `user` makes its form, whose decisions are the nest's), and what
// puts them together, in their order, with what follows the sum. 0: in one (decision `parts`, decided before the form).
//   See A. Kerr et al., "CUTLASS" (2017), split-k. O(size of the nest).
berth_stmt berth_split_sum(berth_tfn *fn, const berth_nest *nest,
                           const berth_local_tile_limits *limits, berth_schedule_nest_fn schedule,
                           const void *user);

#endif  // BERTH_COMPILER_SCHEDULE_WORK_GROUPS_H_
