// Register tiles on CPUs, what policy_cpu_tile.c (which builds them) and cpu_tile_choice.c share.
#ifndef BERTH_COMPILER_SCHEDULE_CPU_TILE_H_
#define BERTH_COMPILER_SCHEDULE_CPU_TILE_H_

#include "compiler/schedule/cpu_panel.h"
#include "compiler/schedule/cpu_weight_panel.h"
#include "compiler/schedule/tensorize.h"

#define BERTH_CPU_WANTED_GROUPS 16  // so that a few threads are evenly loaded
#define BERTH_CPU_LEAST_GROUPS 8    // where larger ones are worth more than that

// What is known and chosen of one nest.
typedef struct berth_cpu_tile {
    berth_tfn *fn;
    const berth_cpu_facts *facts;
    berth_nest nest;  // the plain one
    berth_reduction reduction;
    berth_access_list loads;  // of the update, without the accumulator
    berth_linear store;       // position of the first store of the epilogue
    berth_ranges ranges;      // of the variables in these positions
    int64_t lanes;            // of a vector of this nest
    int vec;                  // loop of the lanes (the last one)
    int col;                  // loop of whole vectors, -1 = the vec loop is split for them
    int row;                  // -1 = none
    int64_t columns;          // vectors of a tile
    int64_t rows;
    int64_t rest_rows;  // of the tiles for rows after whole ones, where their number varies
    bool uses_panel;
    bool uses_weight_panel;
    int64_t chunk;  // tiles of rows (of columns: weight panel) that one group works through
    berth_nest_loop column_tiles;  // the loop that a tile is built for; extent 0: none
    berth_tile_order order;        // of the loops around tiles
    berth_cpu_panel panel;         // that there could be
    berth_cpu_weight_panel weight_panel;
    berth_intrinsic intrinsic;  // step of the sum; BERTH_INTRINSIC_COUNT = products one by one
} berth_cpu_tile;

static inline int64_t berth_cpu_tile__ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

typedef struct berth_cpu_tile_shape {
    int64_t full;  // whole tiles along a loop
    int64_t rest;  // iterations after them
} berth_cpu_tile_shape;

// Tiles and rest of the loops that the tile has.
berth_cpu_tile_shape berth_cpu_tile__columns_of(const berth_cpu_tile *p);
berth_cpu_tile_shape berth_cpu_tile__rows_of(const berth_cpu_tile *p);

// Whether there are whole tiles of rows, and their number, with the rest's, is another for some sizes.
bool berth_cpu_tile__tiles_vary(const berth_cpu_tile *p);
// Whether rows after the whole tiles have code of their own. Of many sizes those without such rows have it, too, where others
// have some, and an empty group for it: one form for all.
bool berth_cpu_tile__has_rest_of_rows(const berth_cpu_tile *p);
// Groups of `chunk` tiles of rows, with the one for the rows after them.
int64_t berth_cpu_tile__row_groups(const berth_cpu_tile *p);
bool berth_cpu_tile__in_tile(const berth_cpu_tile *p, int loop);
// Iterations of the loops around the tile.
int64_t berth_cpu_tile__groups_around(const berth_cpu_tile *p);
// More columns, beside those of the tile: they read the panel again.
bool berth_cpu_tile__reads_panel_again(const berth_cpu_tile *p, int loop);

// Splits reduction loops by the blocks of what they read; inner parts go innermost: ic -> ic_o,
// ..., ic_i.
void berth_cpu_tile__split_reduction(berth_cpu_tile *p);

// Finds what the update loads and where the epilogue stores.
void berth_cpu_tile__collect(berth_cpu_tile *p);
// Whether the load's place depends on loop `loop` of the nest.
bool berth_cpu_tile__load_uses(const berth_cpu_tile *p, uint32_t load, int loop);
// Loads that move with the lanes ("weights") and those that do not ("broadcast").
bool berth_cpu_tile__is_vector(const berth_cpu_tile *p, uint32_t load);

// Weights whose storage ends with the last column cannot be read in whole vectors after it.
bool berth_cpu_tile__rest_is_padded(const berth_cpu_tile *p, int64_t rest);

// Whether vectors after the last whole tile may begin before its end, where they cannot go on behind the last column.
bool berth_cpu_tile__rest_overlaps(const berth_cpu_tile *p);

// Whether many sizes share the tile, and the loop has other extents for some. -1: no loop.
bool berth_cpu_tile__varies(const berth_cpu_tile *p, int loop);

// Sets rows, and rows of the tiles for the rest, to what all sizes together take least for, by an estimate: a form for all.
// At most `limit` rows; where the sizes are not known, `usual` and half of that. O(limit^2 * sizes)
void berth_cpu_tile__share_rows(berth_cpu_tile *p, int64_t usual, int64_t limit);
// Of a tile for an extent that is less than p->rows, as share_rows has chosen them: that of the rest, or one, where many sizes
// are so short that a tile for each of them would be a form for each. 0: it has its own.
int64_t berth_cpu_tile__few_rows(const berth_cpu_tile *p);
// Rows of the tiles for those after the whole tiles, from the largest to the smallest: what some size, or this one, needs; where
// the sizes are not known, halves of halves, so that any rest is few tiles. Gives their number, 0: no size has such rows.
#define BERTH_CPU_MOST_REST_TILES 8
int berth_cpu_tile__rest_tiles(const berth_cpu_tile *p, int64_t rows[BERTH_CPU_MOST_REST_TILES]);

// Lanes of columns after the last whole vector, where nothing may be read after them.
int64_t berth_cpu_tile__rest_lanes(const berth_cpu_tile *p, int64_t rest);

// Sets lanes, vec, col and row; false: the nest has no such form.
bool berth_cpu_tile__choose_loops(berth_cpu_tile *p);
// Sets columns and rows.
void berth_cpu_tile__choose_sizes(berth_cpu_tile *p);
// Lanes of the columns after the last whole tile; their vectors are whole where what is read after them is padding.
int64_t berth_cpu_tile__lanes_of_rest(const berth_cpu_tile *p, int64_t rest);
// Sets panels, their use, chunk and order, after the sizes: cpu_tile_groups.c
void berth_cpu_tile__choose_groups(berth_cpu_tile *p, bool may_panel);
// Tiles of other sizes, with what they would cost by an estimate: cpu_tile_cost.c
void berth_cpu_tile__explain(berth_cpu_tile *p);

#endif  // BERTH_COMPILER_SCHEDULE_CPU_TILE_H_
