// Parts of berth_matrix_tile (private to compiler/schedule).
#ifndef BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_
#define BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_

#include "compiler/schedule/local_tile.h"

// An operand: a tile [slot][line][term] in the memory of the group, or [slot][term][line] (across). For warpgroups
// lines come in blocks: [slot][block][line][term], [slot][block][term][line], the last of 128 bytes; of an operand
// in panels [slot][piece][line][term], the last of 16 bytes.
typedef struct berth_matrix_side {
    const berth_flat_loops *lines;  // rows or columns
    berth_var group;
    int64_t tile_lines;
    berth_expr value;      // of the type of the tile
    berth_expr condition;  // 0 = always; else `other` where it does not hold
    berth_expr other;
    berth_dtype dtype;
    bool across;
    bool panels;       // pieces of them are copied as a whole
    bool lines_first;  // neighbours copy what lies beside each other along lines
    uint16_t vector;   // elements copied at once
    berth_buf tile;
} berth_matrix_side;

typedef struct berth_matrix_plan {
    berth_local_plan p;  // fn, nest, reduction, loops; group_y, group_x, out
    berth_intrinsic id;
    int64_t terms;      // of an instruction
    int64_t beside;     // columns of a fragment that a work-item has: 2, of a subgroup's 4
    int64_t piece;      // fragments along columns of an instruction of a warpgroup; 0 = of a warp
    int64_t rows;       // fragments of a warp along rows
    int64_t columns;    // and along columns
    int64_t warp_rows;  // warps of a group along rows
    int64_t warp_columns;
    int64_t depth;   // terms of the sum in a tile
    int64_t stages;  // tiles at a time
    berth_matrix_side row_side, column_side;
    berth_var lane, warp_row, warp_column;
    berth_expr item;  // the number of the work-item in its group
    // [rows * columns], vectors of 2 * beside: two rows of as many columns; of warpgroups [columns / piece], vectors of
    // 4 * piece.
    berth_buf acc;
    berth_buf sums;  // the same in elements, for the epilogue
} berth_matrix_plan;

// Rows of a fragment, work-items that have columns of a row, work-items of a warp.
enum { BERTH_MATRIX_ROWS = 16, BERTH_MATRIX_ACROSS = 4, BERTH_MATRIX_WARP = 32 };
// Of a warpgroup: its warps, lines of a block of an operand, bytes of a line.
enum { BERTH_MATRIX_GROUP = 4, BERTH_MATRIX_BLOCK = 64, BERTH_MATRIX_LINE_BYTES = 128 };
// Terms of a line in a piece of a panel: a row of what units read at once ("core matrix" of PTX).
enum { BERTH_MATRIX_PANEL_BYTES = 16 };

// matrix_tile.c
int64_t berth_matrix__tile_rows(const berth_matrix_plan *m);
int64_t berth_matrix__fragment_columns(const berth_matrix_plan *m);  // 8, of a subgroup's 16
int64_t berth_matrix__tile_columns(const berth_matrix_plan *m);
int64_t berth_matrix__group_count(const berth_matrix_plan *m);
// Tile and steps of a plan whose operands are known, and the nest of them. 0: refused.
berth_stmt berth_matrix__build(berth_matrix_plan *m, const berth_local_tile_limits *limits);
// Fills a plan in but for instruction and sizes. False: no product that such units have.
bool berth_matrix__analyse(berth_matrix_plan *m, berth_tfn *fn, const berth_nest *nest);

// matrix_group.c: fills a plan of instructions of four warps but for what decisions may change. False: the target
// has none for it, or it has too little.
bool berth_matrix__choose_groups(berth_matrix_plan *m, berth_tfn *fn, const berth_nest *nest,
                                 const berth_local_tile_limits *limits);
// The products of a tile, for k steps of an instruction.
void berth_matrix__group_products(berth_matrix_plan *m, berth_expr slot);

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

// matrix_panel.c
// Whether the operand lies in panels: 16 bytes of terms, lines beside each other. Weights that are packed so, and maps in
// blocks of channels whose places come one after the other.
bool berth_matrix__in_panels(const berth_matrix_plan *m, const berth_matrix_side *side);
// Copies step `step` of such an operand to slot `slot` of its tile, piece by piece, each by one store, which all
// work-items make alike.
berth_stmt berth_matrix__stage_panel(berth_matrix_plan *m, const berth_matrix_side *side,
                                     berth_expr step, berth_expr slot);

// matrix_store.c: what follows the sum, for the elements of a work-item.
void berth_matrix__epilogue(berth_matrix_plan *m);

#endif  // BERTH_COMPILER_SCHEDULE_MATRIX_TILE_H_
