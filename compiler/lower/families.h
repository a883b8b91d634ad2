// Element and nest functions of the operator families, for the table in table.c. Private to
// compiler/lower.
#ifndef BERTH_COMPILER_LOWER_FAMILIES_H_
#define BERTH_COMPILER_LOWER_FAMILIES_H_

#include "compiler/lower/context.h"

#define BERTH_LOWER_ELEMENT_(name)                                                                 \
    berth_expr berth_lower__##name(berth_lower *c, const berth_op *op, uint32_t output,            \
                                   const berth_expr *at);
#define BERTH_LOWER_NEST_(name) void berth_lower__##name(berth_lower *c, const berth_op *op);

// elementwise.c
BERTH_LOWER_ELEMENT_(unary)
BERTH_LOWER_ELEMENT_(activation)
BERTH_LOWER_ELEMENT_(cast)
BERTH_LOWER_ELEMENT_(is_inf)
BERTH_LOWER_ELEMENT_(binary)
BERTH_LOWER_ELEMENT_(compare)
BERTH_LOWER_ELEMENT_(variadic)
BERTH_LOWER_ELEMENT_(pow)
BERTH_LOWER_ELEMENT_(mod)
BERTH_LOWER_ELEMENT_(prelu)
BERTH_LOWER_ELEMENT_(clip)
BERTH_LOWER_ELEMENT_(where)
BERTH_LOWER_ELEMENT_(qlinear_add)
BERTH_LOWER_ELEMENT_(quantize)
BERTH_LOWER_ELEMENT_(dequantize)
BERTH_LOWER_ELEMENT_(batch_norm)
// movement.c
BERTH_LOWER_ELEMENT_(same)
BERTH_LOWER_ELEMENT_(reshape)
BERTH_LOWER_ELEMENT_(transpose)
BERTH_LOWER_ELEMENT_(expand)
BERTH_LOWER_ELEMENT_(tile)
BERTH_LOWER_ELEMENT_(concat)
BERTH_LOWER_NEST_(append)
BERTH_LOWER_ELEMENT_(split)
BERTH_LOWER_ELEMENT_(slice)
BERTH_LOWER_ELEMENT_(pad)
BERTH_LOWER_ELEMENT_(depth_to_space)
BERTH_LOWER_ELEMENT_(space_to_depth)
BERTH_LOWER_ELEMENT_(reverse_sequence)
BERTH_LOWER_ELEMENT_(trilu)
BERTH_LOWER_ELEMENT_(eye_like)
// gather.c
BERTH_LOWER_ELEMENT_(gather)
BERTH_LOWER_ELEMENT_(gather_elements)
BERTH_LOWER_ELEMENT_(gather_nd)
BERTH_LOWER_ELEMENT_(one_hot)
BERTH_LOWER_ELEMENT_(constant_of_shape)
BERTH_LOWER_ELEMENT_(range)
BERTH_LOWER_ELEMENT_(window)
BERTH_LOWER_NEST_(scatter_elements)
BERTH_LOWER_NEST_(scatter_nd)
// resize.c, sample.c
BERTH_LOWER_ELEMENT_(resize)
BERTH_LOWER_ELEMENT_(grid_sample)
// matmul.c, linear_algebra.c
BERTH_LOWER_NEST_(matmul)
void berth_lower__attention(berth_lower *c, const berth_op *op, const berth_attention *attention);
BERTH_LOWER_ELEMENT_(matmul_sum)
BERTH_LOWER_NEST_(gemm)
BERTH_LOWER_ELEMENT_(gemm_sum)
BERTH_LOWER_NEST_(matmul_integer)
BERTH_LOWER_ELEMENT_(matmul_integer_sum)
BERTH_LOWER_NEST_(matmul_bits)
BERTH_LOWER_ELEMENT_(matmul_bits_sum)
BERTH_LOWER_NEST_(qlinear_matmul)
BERTH_LOWER_NEST_(einsum)
BERTH_LOWER_NEST_(det)
// conv.c
BERTH_LOWER_NEST_(conv)
BERTH_LOWER_NEST_(conv_integer)
BERTH_LOWER_NEST_(qlinear_conv)
BERTH_LOWER_NEST_(conv_transpose)
// pool.c
BERTH_LOWER_NEST_(max_pool)
BERTH_LOWER_NEST_(average_pool)
BERTH_LOWER_NEST_(qlinear_average_pool)
BERTH_LOWER_NEST_(lp_pool)
BERTH_LOWER_NEST_(global_pool)
BERTH_LOWER_NEST_(max_unpool)
// sample.c
BERTH_LOWER_NEST_(max_roi_pool)
BERTH_LOWER_NEST_(roi_align)
// reduce.c
BERTH_LOWER_NEST_(reduce)
BERTH_LOWER_NEST_(arg_reduce)
BERTH_LOWER_NEST_(cumulative)
// top_k.c
BERTH_LOWER_NEST_(top_k)
// normalize.c, softmax.c
BERTH_LOWER_NEST_(softmax)
BERTH_LOWER_NEST_(hardmax)
BERTH_LOWER_NEST_(lrn)
BERTH_LOWER_NEST_(layer_norm)
BERTH_LOWER_NEST_(instance_norm)
BERTH_LOWER_NEST_(group_norm)
BERTH_LOWER_NEST_(mean_variance_norm)
BERTH_LOWER_NEST_(dynamic_quantize)
BERTH_LOWER_NEST_(lp_norm)
// recurrent.c
BERTH_LOWER_NEST_(recurrent)
// fourier.c
BERTH_LOWER_NEST_(dft)
BERTH_LOWER_NEST_(stft)
// winograd.c
BERTH_LOWER_NEST_(winograd_weights)
BERTH_LOWER_NEST_(winograd_input)
BERTH_LOWER_NEST_(winograd_output)
BERTH_LOWER_NEST_(winograd_conv)

#undef BERTH_LOWER_ELEMENT_
#undef BERTH_LOWER_NEST_

// round(x / scale) + zero, saturated to `dtype` (quantize_linear): `value` float, scale float,
// `zero` i32 or 0 (none).
berth_expr berth_lower__saturate(berth_lower *c, berth_expr value, berth_expr scale,
                                 berth_expr zero, berth_dtype dtype);

// `value` is to replace `old` as the extremum of a row; with `last` where they are equal, too. NaN
// never wins: a number replaces it wherever it stands, and only where there is nothing else is its
// first place named. (ONNX Runtime agrees but where NaN comes first, which it keeps.)
berth_expr berth_lower__wins(berth_lower *c, berth_expr value, berth_expr old, bool maximum,
                             bool last);

// Smallest and largest value of a type; infinities for floats.
berth_expr berth_lower__lowest(berth_lower *c, berth_dtype dtype);
berth_expr berth_lower__highest(berth_lower *c, berth_dtype dtype);

#endif  // BERTH_COMPILER_LOWER_FAMILIES_H_
