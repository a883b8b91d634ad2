// What a tile needs, for planning and emitting (private to emit/).
#ifndef BERTH_DRIVERS_VTA_EMIT_CONV_FIT_H_
#define BERTH_DRIVERS_VTA_EMIT_CONV_FIT_H_

#include "drivers/vta/emit/conv.h"

typedef struct berth_vta_conv_fit {
    uint64_t tile;                       // results
    uint32_t input_rows, input_columns;  // padding included
    uint64_t input, weights;             // elements of a step
    uint32_t in_blocks, out_blocks;      // of the whole convolution
    uint32_t inp_half, wgt_half, acc_half;
    uint32_t bias, copy;  // where biases and the copy of a tile's results are among accumulators
    uint32_t micro_ops;
    bool fits;
} berth_vta_conv_fit;

BERTH_MUST_USE berth_status berth_vta__conv_check(const berth_vta_shape *shape,
                                                  const berth_vta_conv *conv);
berth_vta_conv_fit berth_vta__conv_fit(const berth_vta_shape *shape, const berth_vta_conv *conv,
                                       const berth_vta_conv_tiles *tiles);

#endif  // BERTH_DRIVERS_VTA_EMIT_CONV_FIT_H_
