// The convolution loop, shared by the float and the quantised operators.
#ifndef BERTH_IR_EVAL_CONV_H_
#define BERTH_IR_EVAL_CONV_H_

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

typedef struct berth_conv_shape {
    berth_window window;
    int64_t out_channels;
    int64_t dims[BERTH_MAX_RANK];  // of the output, same rank as the input
} berth_conv_shape;

// x [n, c, spatial...], w [o, c / group, kernel...] (conv_transpose: [c, o / group, kernel...]).
BERTH_MUST_USE berth_status berth_eval__conv_shape(const berth_eval_context *ctx,
                                                   const berth_tensor *x, const berth_tensor *w,
                                                   berth_conv_shape *out);
// Sums of products without bias, of the output's shape, in the scratch arena. `x` and `w` hold the
// elements of `input` and the weights.
const double *berth_eval__conv_sums(berth_eval_context *ctx, const berth_conv_shape *shape,
                                    const berth_tensor *input, const double *x, const double *w,
                                    bool transposed);

#endif  // BERTH_IR_EVAL_CONV_H_
