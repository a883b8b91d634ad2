// Parts of berth_local_tile, which berth_matrix_tile shares (private to compiler/schedule).
#ifndef BERTH_COMPILER_SCHEDULE_LOCAL_TILE_H_
#define BERTH_COMPILER_SCHEDULE_LOCAL_TILE_H_

#include "compiler/schedule/work_groups.h"

enum { BERTH_LOCAL_MOST_VECTORS = 4 };

// Some loops of a nest as one flat index: value of loop i = index / inner_i % extent_i.
typedef struct berth_flat_loops {
    berth_nest_loop loops[BERTH_NEST_MAX_LOOPS];  // outermost first
    int count;
    int64_t extent;  // product; of the columns: the last loop counts in blocks of `lanes`
} berth_flat_loops;

typedef struct berth_local_plan {
    berth_tfn *fn;
    berth_nest nest;
    berth_reduction reduction;
    berth_expr row_value;     // operand that rows move
    berth_expr column_value;  // operand that columns move
    berth_flat_loops batch;   // move both or none
    berth_flat_loops rows;
    berth_flat_loops columns;
    berth_flat_loops sum;
    int64_t column_blocks;  // of the last column loop
    uint16_t lanes;
    int64_t tile_rows;  // of a work-item
    int64_t vectors;    // of columns of a work-item, `local_x` apart; 1 to BERTH_LOCAL_MOST_VECTORS
    int64_t row_terms;  // terms of a row that lie so that they can be read at once; divides `depth`
    int64_t local_x;    // work-items along columns
    int64_t local_y;    // along rows
    int64_t depth;      // of the sum, staged at once
    int64_t stages;     // tiles at a time, in turns
    bool copies;        // the device has copies that go on by themselves
    bool one_by_one;
    berth_buf row_tile;  // [local_y * tile_rows][row_stride]; of several stages, one after another
    berth_buf column_tile;  // [depth][vectors * local_x * lanes]
    berth_buf acc;          // [vectors][tile_rows], vectors
    berth_buf spill;        // [lanes], for partial vectors
    berth_var group_y, group_x, item_y, item_x, lane;
    berth_var marker;  // stands for an accumulator while the epilogue is vectorised
    // Of each vector of a work-item: its block, and by variable what column loops are (lane at 0).
    berth_var blocks[BERTH_LOCAL_MOST_VECTORS];
    berth_expr *values_of[BERTH_LOCAL_MOST_VECTORS];
    int64_t vector;      // the current one
    berth_var block;     // its
    berth_expr *values;  // its
    BERTH_VEC(berth_stmt) out;
} berth_local_plan;

// local_tile.c
berth_expr berth_local__ref(const berth_local_plan *p, berth_var var);
berth_expr berth_local__add(const berth_local_plan *p, berth_expr a, berth_expr b);
berth_expr berth_local__scale(const berth_local_plan *p, berth_expr a, int64_t k);
berth_expr berth_local__clamp(const berth_local_plan *p, berth_expr a,
                              int64_t extent);  // min(a, extent - 1)
// The first row of tile `slot`, whose tiles have `rows` each.
berth_expr berth_local__row_of(const berth_local_plan *p, berth_expr slot, int64_t rows,
                               berth_expr row);
berth_expr berth_local__less(const berth_local_plan *p, berth_expr a, int64_t limit);
// Sets map[loop] for the loops of a flat index.
void berth_local__split_index(const berth_local_plan *p, const berth_flat_loops *flat,
                              berth_expr index, berth_expr *map);
berth_expr *berth_local__map(const berth_local_plan *p);  // column values filled in
void berth_local__emit(berth_local_plan *p, berth_stmt stmt);
berth_stmt berth_local__take(berth_local_plan *p, uint32_t first);  // what was emitted since
berth_expr berth_local__column_block(const berth_local_plan *p);    // first column of the vector
bool berth_local__is_ragged(const berth_local_plan *p);  // vectors at the end are not whole
// Of the current vector, among those of the group.
berth_expr berth_local__vector_of_tile(const berth_local_plan *p);
void berth_local__use_vector(berth_local_plan *p, int64_t vector);

// Fills reduction, row_value, column_value and the loops of fn and nest; false: the nest has no such form.
bool berth_local__analyse(berth_local_plan *p);
// Lanes of the vectors that sums of the plan's type may have.
uint16_t berth_local__most_lanes(const berth_local_plan *p, const berth_local_tile_limits *limits);
// The grid around what one group does: group_y, group_x, and the batch along z. 0: refused.
berth_stmt berth_local__groups(berth_local_plan *p, berth_stmt group, int64_t rows,
                               int64_t columns);

// local_sizes.c: the sizes of the tile, and how it is staged; false: refused.
bool berth_local__choose_sizes(berth_local_plan *p, const berth_local_tile_limits *limits);
int64_t berth_local__row_stride(const berth_local_plan *p);  // elements of a row of the row tile

// local_stage.c: statements of one work-item that fill its share of the two tiles `slot` with block
// `step` of the sum.
void berth_local__stage(berth_local_plan *p, berth_expr step, berth_expr slot);

// Steps of a sum with `stages` tiles in turns, which are staged `stages` - 1 steps ahead (one: in front
// of what is computed with it): emits the loop. The callbacks emit; `update` computes with a tile.
//   copies    copies go on by themselves: barriers leave those pending that are not needed yet
//   update_first  what is computed goes on by itself, too: the next tile is staged behind it, of several. Of four tiles and
//             more, one is for what goes on beyond the barrier: staged `stages` - 2 steps ahead
typedef struct berth_local_steps {
    int64_t count;
    int64_t stages;
    bool copies;
    bool update_first;
    void (*stage)(void *user, berth_expr step, berth_expr slot);
    void (*update)(void *user, berth_expr slot);
    void *user;
} berth_local_steps;
void berth_local__steps(berth_local_plan *p, const berth_local_steps *steps);

#endif  // BERTH_COMPILER_SCHEDULE_LOCAL_TILE_H_
