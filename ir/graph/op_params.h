// Parameters of operations with their defaults resolved, shared by shape functions, the interpreter
// and lowerings, so that each default is written once. Extents may be symbolic where said.
#ifndef BERTH_IR_GRAPH_OP_PARAMS_H_
#define BERTH_IR_GRAPH_OP_PARAMS_H_

#include "ir/graph/graph.h"

#define BERTH_MAX_SPATIAL 3

// Attribute of conv_integer, not one of ONNX: what lies in the padding, less the zero point of x; 0 without it.
#define BERTH_CONV_PAD_VALUE "pad_value"

// Convolution and pooling windows. auto_pad and defaults are resolved; arrays have `spatial`
// entries.
//   convolutions and pools: output element o reads input o * stride - pad_begin + k * dilation for
//   k in [0, kernel); with ceil_mode the last window may overhang pads_end.
//   conv_transpose and max_unpool: input element i goes to output i * stride - pad_begin +
//   k * dilation; output elements that nothing reaches are zero (plus bias).
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

// `input_dims` has `rank` entries, batch and channels first. `kernel_dims` = spatial extents of the
// weights for convolutions, NULL for pools (attribute kernel_shape). Extents may be symbolic: the
// output is then the same symbol where the window keeps the extent, else BERTH_DIM_UNKNOWN, and
// pads of auto_pad = SAME_* in that dimension are left 0.
// A pool whose window is larger than its padded input has one element, of what there is, where less
// than a stride lacks, else none; a convolution is refused.
// Errors: INVALID_ARGUMENT (attribute lengths, non-positive strides, ...); UNSUPPORTED more than BERTH_MAX_SPATIAL spatial dimensions. The messages name
// no location: the caller prefixes it.
BERTH_MUST_USE berth_status berth_window_resolve(const berth_module *module, const berth_op *op,
                                                 const int64_t *input_dims, int rank,
                                                 const int64_t *kernel_dims,
                                                 berth_window *out_window);

// A convolution that puts its input apart (conv_transpose), seen from its output: in spatial
// dimension i the output elements o = stride * q + residue form an ordinary convolution of stride
// 1,
//   output[stride * q + residue] += input[q + shift - m * input_step] * kernel[first_tap + m *
//   tap_step]
// for q in [0, count) and m in [0, taps); input elements outside of the input are zero.
typedef struct berth_window_phase {
    int64_t count;
    int64_t taps;  // 0: nothing reaches these elements
    int64_t first_tap;
    int64_t tap_step;
    int64_t shift;
    int64_t input_step;
} berth_window_phase;
// `residue` in [0, stride) of dimension i; extents static. O(stride).
berth_window_phase berth_window_phase_of(const berth_window *window, int i, int64_t residue);

// How matmul_bits lies in memory, for sums of `depth` terms (BERTH_DIM_UNKNOWN: rows and blocks are, too).
typedef struct berth_bits_shape {
    int64_t bits, block;
    int64_t per_byte;
    int64_t blocks;  // of a sum
    int64_t rows;    // of bytes
} berth_bits_shape;
// Errors: INVALID_ARGUMENT bits other than 2, 4 and 8; blocks that are no whole bytes.
BERTH_MUST_USE berth_status berth_bits_resolve(const berth_module *module, const berth_op *op,
                                               int64_t depth, berth_bits_shape *out);

// axis in [-rank, rank) → [0, rank). Errors: OUT_OF_RANGE naming `what`.
BERTH_MUST_USE berth_status berth_axis_resolve(int64_t axis, int rank, const char *what,
                                               int *out_axis);

// One axis of a slice, clamped as ONNX's Slice has it: elements start, start + step, ... before
// `end`, where a start before the first element is the first one for negative steps, too (unlike
// numpy's). Returns how many there are; *out_start is in [0, extent), or 0 where there are none.
// `step` is not 0.
int64_t berth_slice_axis(int64_t extent, int64_t start, int64_t end, int64_t step,
                         int64_t *out_start);

// Multidirectional broadcasting of static or symbolic dims (ONNX "Broadcasting"). Errors:
// INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_broadcast_dims(const int64_t *a, int a_rank, const int64_t *b,
                                                 int b_rank, int64_t out_dims[BERTH_MAX_RANK],
                                                 int *out_rank);

// One axis of a resize. `how` is the operation's coordinate_transformation_mode.
typedef struct berth_resize_axis {
    const char *how;
    int64_t in, out;
    double scale;               // out / in, or as given
    double roi_start, roi_end;  // tf_crop_and_resize
} berth_resize_axis;

// The extent that a scale makes of `in`, as a real number without a fraction. Scales are floats, and so
// is the product: 10 * 0.7f is below 7, but 7 when rounded to a float.
double berth_resize_extent(int64_t in, double scale);

// Where output `i` lies in the input. In tf_crop_and_resize computed in floats, in the order of the
// operator's text: what lies outside of the input is replaced, so a region that ends at the last
// element must not end 1e-16 after it.
double berth_resize_place(const berth_resize_axis *axis, int64_t i);

// The input's element that is nearest to output `i`; `rounding` is attribute nearest_mode.
int64_t berth_resize_nearest(const berth_resize_axis *axis, const char *rounding, int64_t i);

// Elements of the input that take part in a result along an axis: of linear or cubic interpolation,
// more of them where antialiasing stretches the kernel.
int64_t berth_resize_taps(bool cubic, bool antialias, double scale);

#endif  // BERTH_IR_GRAPH_OP_PARAMS_H_
