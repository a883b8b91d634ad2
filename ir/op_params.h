// Parameters of operations with their defaults resolved, shared by shape functions, the interpreter
// and lowerings, so that each default is written once. All need static operand types.
#ifndef BERTH_IR_OP_PARAMS_H_
#define BERTH_IR_OP_PARAMS_H_

#include "ir/graph.h"

#define BERTH_MAX_SPATIAL 3

// Convolution and pooling windows. auto_pad and defaults are resolved; arrays have `spatial`
// entries.
typedef struct berth_window {
    int spatial;  // number of spatial dimensions (rank - 2)
    int64_t kernel[BERTH_MAX_SPATIAL];
    int64_t strides[BERTH_MAX_SPATIAL];
    int64_t dilations[BERTH_MAX_SPATIAL];
    int64_t pads_begin[BERTH_MAX_SPATIAL];
    int64_t pads_end[BERTH_MAX_SPATIAL];
    int64_t output_padding[BERTH_MAX_SPATIAL];  // conv_transpose
    int64_t input[BERTH_MAX_SPATIAL];           // spatial extents
    int64_t output[BERTH_MAX_SPATIAL];
    int64_t group;   // convolutions
    bool ceil_mode;  // pools
    bool count_include_pad;
} berth_window;

// `kernel_dims` = spatial extents of the weights for convolutions, NULL for pools (attribute
// kernel_shape). Errors: INVALID_ARGUMENT (attribute lengths, non-positive strides, a window larger
// than the padded input, ...).
BERTH_MUST_USE berth_status berth_window_resolve(const berth_module *module, const berth_op *op,
                                                 const int64_t *input_dims, int rank,
                                                 const int64_t *kernel_dims,
                                                 berth_window *out_window);

// axis in [-rank, rank) → [0, rank). Errors: OUT_OF_RANGE naming `what`.
BERTH_MUST_USE berth_status berth_axis_resolve(int64_t axis, int rank, const char *what,
                                               int *out_axis);

// Multidirectional broadcasting of static or symbolic dims (ONNX "Broadcasting"). Errors:
// INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_broadcast_dims(const int64_t *a, int a_rank, const int64_t *b,
                                                 int b_rank, int64_t out_dims[BERTH_MAX_RANK],
                                                 int *out_rank);

#endif  // BERTH_IR_OP_PARAMS_H_
