// Register tiles on CPUs, what policy_cpu_tile.c (which builds them) and cpu_tile_choice.c share.
#ifndef BERTH_COMPILER_SCHEDULE_CPU_TILE_H_
#define BERTH_COMPILER_SCHEDULE_CPU_TILE_H_

#include "compiler/schedule/cpu_panel.h"
#include "compiler/schedule/tensorize.h"

#define BERTH_CPU_WANTED_GROUPS 16  // so that a few threads are evenly loaded

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
    berth_cpu_panel panel;
    berth_intrinsic intrinsic;  // step of the sum; BERTH_INTRINSIC_COUNT = products one by one
} berth_cpu_tile;

static inline int64_t berth_cpu_tile__ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// Splits reduction loops by the blocks of what they read; inner parts go innermost: ic -> ic_o,
// ..., ic_i.
void berth_cpu_tile__split_reduction(berth_tfn *fn, berth_reduction *r,
                                     const berth_access_list *loads);

// Finds what the update loads and where the epilogue stores.
void berth_cpu_tile__collect(berth_cpu_tile *p);
// Whether the load's place depends on loop `loop` of the nest.
bool berth_cpu_tile__load_uses(const berth_cpu_tile *p, uint32_t load, int loop);
// Loads that move with the lanes ("weights") and those that do not ("broadcast").
bool berth_cpu_tile__is_vector(const berth_cpu_tile *p, uint32_t load);

// Weights whose storage ends with the last column cannot be read in whole vectors after it.
bool berth_cpu_tile__rest_is_padded(const berth_cpu_tile *p, int64_t rest);

// Lanes of columns after the last whole vector, where nothing may be read after them.
int64_t berth_cpu_tile__rest_lanes(const berth_cpu_tile *p, int64_t rest);

// Sets lanes, vec, col and row; false: the nest has no such form.
bool berth_cpu_tile__choose_loops(berth_cpu_tile *p);
// Sets columns and rows.
void berth_cpu_tile__choose_sizes(berth_cpu_tile *p);

#endif  // BERTH_COMPILER_SCHEDULE_CPU_TILE_H_
