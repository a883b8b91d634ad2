// Convolutions without the taps of their windows that read padding only, whatever the output element: with a
// dilation as large as the image (atrous pyramids: Chen et al., "Rethinking Atrous Convolution for Semantic Image
// Segmentation", 2017, section 3.3) a 3 x 3 window is a 1 x 1 window, and its padding, many times the image, goes.
#ifndef BERTH_COMPILER_PASSES_CONV_TAPS_H_
#define BERTH_COMPILER_PASSES_CONV_TAPS_H_

#include "compiler/passes/rewrite.h"

// A rule of simplify.h, for a convolution with constant weights and static extents. Zeros are no longer multiplied, so
// results are the same but for infinite weights. O(weights).
BERTH_MUST_USE berth_status berth_drop_conv_taps(berth_rewriter *rewriter, berth_op_id op);

#endif  // BERTH_COMPILER_PASSES_CONV_TAPS_H_
