// Tiles of operations on a neural processing unit that attributes describe (target/kinds.def, npu):
// what of an operation is inside the unit at once, and how many cycles it takes so. Plain numbers, no
// graph.
//
// The unit computes, in each cycle, `results` results of `outputs` channels from `inputs` channels of
// their operands; its memory holds operands, weights and results of a tile twice, so that the next is
// brought and the last taken away meanwhile, and the 32-bit sums once.
#ifndef BERTH_COMPILER_NPU_TILES_H_
#define BERTH_COMPILER_NPU_TILES_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct berth_npu {
    int64_t inputs, outputs, results;  // multiplied and added in one cycle
    int64_t elements;                  // in one cycle, where there are no products
    uint64_t sram_bytes;
    double clock_hz;
    double value_bytes_per_s, constant_bytes_per_s;
    double latency_s;  // of the memory of values: before the first byte of a tile
    bool apart;        // values and constants come from two memories at the same time
} berth_npu;

// An operation: result [images][channels][rows][columns], each element from `depth` channels of a
// window. Elementwise: a window of one element.
typedef struct berth_npu_work {
    int64_t images, channels, rows, columns;
    int64_t groups, depth;  // input channels = groups * depth
    int64_t kernel_rows, kernel_columns, stride_rows, stride_columns;
    int64_t operands;       // of values: 2 for a sum
    int64_t element_bytes;  // of operands and results
    int64_t weight_bytes;   // of a weight; 0: there are no products
} berth_npu_work;

typedef struct berth_npu_tiles {
    int64_t channels, rows, columns;  // of the result
    int64_t depth;
    uint64_t bytes;  // of the unit's memory
    double cycles;   // of the whole operation
} berth_npu_tiles;

// The tiles that take the fewest cycles, of those the smallest. False: none fits; *out_tiles is then
// the smallest there is. Tries halves of each extent: O(log^4).
bool berth_npu_choose_tiles(const berth_npu *npu, const berth_npu_work *work,
                            berth_npu_tiles *out_tiles);

#endif  // BERTH_COMPILER_NPU_TILES_H_
