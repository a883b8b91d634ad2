// Parts of berth_matrix_tile (private to compiler/schedule).
#ifndef BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_
#define BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_

#include "compiler/schedule/local_tile.h"

// An operand: a tile [slot][line][term] in the memory of the group, or [slot][term][line] (across).
typedef struct berth_matrix_side {
    const berth_flat_loops *lines;  // rows or columns
    berth_var group;
    int64_t tile_lines;
    berth_expr value;      // of the type of the tile
    berth_expr condition;  // 0 = always; else `other` where it does not hold
    berth_expr other;
    berth_dtype dtype;
    bool across;
    bool lines_first;  // neighbours copy what lies beside each other along lines
    uint16_t vector;   // elements copied at once
    berth_buf tile;
} berth_matrix_side;

typedef struct berth_matrix_plan {
    berth_local_plan p;  // fn, nest, reduction, loops; group_y, group_x, out
    berth_intrinsic id;
    int64_t terms;      // of an instruction
    int64_t rows;       // fragments of a warp along rows
    int64_t columns;    // and along columns
    int64_t warp_rows;  // warps of a group along rows
    int64_t warp_columns;
    int64_t depth;   // terms of the sum in a tile
    int64_t stages;  // tiles at a time
    berth_matrix_side row_side, column_side;
    berth_var lane, warp_row, warp_column;
    berth_expr item;  // the number of the work-item in its group
    berth_buf acc;    // [rows * columns], vectors of 4: two rows of two columns
    berth_buf sums;   // the same in elements, for the epilogue
} berth_matrix_plan;

enum { BERTH_MATRIX_ROWS = 16, BERTH_MATRIX_COLUMNS = 8, BERTH_MATRIX_WARP = 32 };

// matrix_stage.c
// Takes an operand apart into what is staged: of a narrower type that the sum widens, or f32. False: it has
// another form.
bool berth_matrix__narrow(berth_tfn *fn, berth_expr value, berth_matrix_side *out);
// Chooses across, lines_first and vector.
void berth_matrix__choose_copies(berth_matrix_plan *m, berth_matrix_side *side);
// Copies step `step` of an operand to slot `slot` of its tile: the share of one work-item.
berth_stmt berth_matrix__stage(berth_matrix_plan *m, const berth_matrix_side *side, berth_expr step,
                               berth_expr slot);
// Sets map[loop] for the loops of a flat index that counts in `lanes` elements of the last one from
// `index` on, `lane` among them.
void berth_matrix__split(const berth_matrix_plan *m, const berth_flat_loops *flat, berth_expr index,
                         uint16_t lanes, berth_var lane, berth_expr *map);

// matrix_store.c: what follows the sum, for the elements of a work-item.
void berth_matrix__epilogue(berth_matrix_plan *m);

#endif  // BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_
