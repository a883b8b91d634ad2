// Weights of Winograd convolutions, transformed and packed at compile time (private to
// compiler/passes).
#ifndef BERTH_COMPILER_PASSES_WINOGRAD_H_
#define BERTH_COMPILER_PASSES_WINOGRAD_H_

#include "ir/graph/op_params.h"

// Outputs per dimension of a tile: 4 or 2 where F(m x m, 3 x 3) pays, 0 where the direct
// convolution is as good. F(4 x 4) needs maps that its tiles fill; its weights are 4 times as large
// as the direct ones (F(2 x 2): 1.8), so that small maps are bound by memory, the more so the more
// floats a register holds (`lanes`).
int64_t berth_winograd_choose(const berth_window *w, int64_t inputs, int64_t outputs,
                              int64_t lanes);

// The tiles of a map, and its channels.
typedef struct berth_winograd_map {
    int64_t m;  // outputs per dimension of a tile
    int64_t batch;
    int64_t rows, columns;  // of tiles
    int64_t inputs, outputs;
} berth_winograd_map;

// Rows of tiles (a divisor of their number) whose points, of inputs and outputs, a core transforms
// and multiplies while they stay in its cache; 0 = the points of the whole map are tensors. These
// are (m + 2)^2 / m^2 times as large as the maps. Bands read all weights again instead: they pay
// where that moves fewer bytes, and where there are enough of them for all cores.
int64_t berth_winograd_band(const berth_winograd_map *map, int64_t l2_bytes, int64_t cores);

// weights f32 [o, i, 3, 3] (at any address) -> points [(m+2)^2, i, o] in layout "aCb16c"
// (BERTH_WINOGRAD_WEIGHTS_TAG). Lavin and Gray 2016, section 4: G g G^T. O(o * i). In blocks of
// outputs, which different threads may transform: each reads bytes in a row.
#define BERTH_WINOGRAD_WEIGHTS_TAG "aCb16c"
size_t berth_winograd_size_bytes(const berth_tensor *weights, int64_t m);
int64_t berth_winograd_block_count(const berth_tensor *weights);
void berth_winograd_pack(const berth_tensor *weights, int64_t m, float *packed, int64_t first_block,
                         int64_t block_count);

#endif  // BERTH_COMPILER_PASSES_WINOGRAD_H_
