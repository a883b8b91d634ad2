// Operations against each other: identities that hold for any data.
#include <criterion/criterion.h>
#include <math.h>

#include "tests/eval/support.h"

Test(eval_properties, transpose_twice) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f32[2,3,4,5] ?1");
    berth_tensor y = eval_on(&c, "transpose", &x, 1, "perm=[3,0,2,1]");
    berth_tensor z = eval_on(&c, "transpose", &y, 1, "perm=[1,3,2,0]");
    eval_expect(&c, &z, &x, 0, "transpose back");
    eval_end(&c);
}

Test(eval_properties, pointwise_conv_is_matmul) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f32[1,6,5,7] ?1"), w = eval_tensor(&c, "f32[4,6,1,1] ?2");
    berth_tensor y = eval_on(&c, "conv", (berth_tensor[]){x, w}, 2, "");
    berth_tensor shape[] = {x, eval_tensor(&c, "i64[2] 6 35")};
    berth_tensor rows[] = {w, eval_tensor(&c, "i64[2] 4 6")};
    berth_tensor sides[] = {eval_on(&c, "reshape", rows, 2, ""),
                            eval_on(&c, "reshape", shape, 2, "")};
    berth_tensor product[] = {eval_on(&c, "matmul", sides, 2, ""),
                              eval_tensor(&c, "i64[4] 1 4 5 7")};
    berth_tensor z = eval_on(&c, "reshape", product, 2, "");
    eval_expect(&c, &y, &z, 1e-6, "1x1 convolution");
    eval_end(&c);
}

// y = conv(x, w) by the definition in one dimension per tap: a sum over shifted, padded inputs.
Test(eval_properties, conv_is_a_sum_of_shifted_products) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f32[2,1,6,5] ?1"), w = eval_tensor(&c, "f32[1,1,3,3] ?2");
    berth_tensor y = eval_on(&c, "conv", (berth_tensor[]){x, w}, 2, "pads=[1,1,1,1]");
    berth_tensor padded[] = {x, eval_tensor(&c, "i64[8] 0 0 1 1 0 0 1 1")};
    berth_tensor wide = eval_on(&c, "pad", padded, 2, "");
    berth_tensor sum = eval_tensor(&c, "f32[2,1,6,5] 0");
    for (int64_t k = 0; k < 9; ++k) {
        berth_tensor starts = eval_tensor(&c, "i64[4] 0"), ends = eval_tensor(&c, "i64[4] 2 1 0 0");
        berth_tensor tap = eval_tensor(&c, "f32[] 0");
        for (int d = 0; d < 2; ++d) {
            int64_t shift = d ? k % 3 : k / 3;
            berth_tensor_set_i64(&starts, 2 + d, shift);
            berth_tensor_set_i64(&ends, 2 + d, shift + x.dims[2 + d]);
        }
        berth_tensor_set_f64(&tap, 0, berth_tensor_get_f64(&w, k));
        berth_tensor part = eval_on(&c, "slice", (berth_tensor[]){wide, starts, ends}, 3, "");
        berth_tensor product = eval_on(&c, "mul", (berth_tensor[]){part, tap}, 2, "");
        sum = eval_on(&c, "add", (berth_tensor[]){sum, product}, 2, "");
    }
    eval_expect(&c, &y, &sum, 1e-6, "3x3 convolution");
    eval_end(&c);
}

// <conv(x, w), y> = <x, conv_transpose(y, w)>: the transposed convolution is the adjoint.
Test(eval_properties, conv_transpose_is_the_adjoint) {
    eval_case c = eval_begin();
    const char *attrs = "strides=[2,1] pads=[1,0,1,2] dilations=[1,2] group=2";
    berth_tensor x = eval_tensor(&c, "f64[1,4,7,8] ?1"), w = eval_tensor(&c, "f64[6,2,3,2] ?2");
    berth_tensor forward = eval_on(&c, "conv", (berth_tensor[]){x, w}, 2, attrs);
    berth_tensor y = berth_tensor_create(c.arena, BERTH_DTYPE_F64, 4, forward.dims);
    berth_tensor_fill_random(&y, 3);
    berth_tensor back = eval_on(&c, "conv_transpose", (berth_tensor[]){y, w}, 2, attrs);
    cr_assert(berth_tensor_same_shape(&back, &x));
    double left = 0, right = 0;
    for (int64_t i = 0; i < berth_tensor_element_count(&y); ++i)
        left += berth_tensor_get_f64(&y, i) * berth_tensor_get_f64(&forward, i);
    for (int64_t i = 0; i < berth_tensor_element_count(&x); ++i)
        right += berth_tensor_get_f64(&x, i) * berth_tensor_get_f64(&back, i);
    cr_assert_float_eq(left, right, 1e-9);
    eval_end(&c);
}

static void check_winograd(int64_t tile, const char *input, const char *attrs, const char *pads,
                           int64_t oh, int64_t ow) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, input), w = eval_tensor(&c, "f32[5,3,3,3] ?2");
    berth_tensor bias = eval_tensor(&c, "f32[5] ?3");
    berth_tensor y = eval_on(&c, "conv", (berth_tensor[]){x, w, bias}, 3, pads);
    const char *weights_attrs = berth_arena_printf(c.arena, "tile=%lld", (long long)tile);
    const char *input_attrs = berth_arena_printf(c.arena, "tile=%lld %s", (long long)tile, attrs);
    const char *output_attrs =
        berth_arena_printf(c.arena, "tile=%lld output_shape=[%lld,5,%lld,%lld]", (long long)tile,
                           (long long)x.dims[0], (long long)oh, (long long)ow);
    berth_tensor sides[] = {eval_on(&c, "winograd_input", &x, 1, input_attrs),
                            eval_on(&c, "winograd_weights", &w, 1, weights_attrs)};
    berth_tensor product[] = {eval_on(&c, "winograd_matmul", sides, 2, ""), bias};
    berth_tensor z = eval_on(&c, "winograd_output", product, 2, output_attrs);
    eval_expect(&c, &z, &y, 1e-4, "Winograd");
    berth_tensor whole[] = {x, sides[1], bias};
    const char *whole_attrs = berth_arena_printf(c.arena, "%s %s", output_attrs, attrs);
    z = eval_on(&c, "winograd_conv", whole, 3, whole_attrs);
    eval_expect(&c, &z, &y, 1e-4, "Winograd in one");
    eval_end(&c);
}

Test(eval_properties, winograd_is_conv) {
    for (int64_t tile = 2; tile <= 4; tile += 2) {
        check_winograd(tile, "f32[2,3,9,7] ?1", "pads=[1,1,1,1]", "pads=[1,1,1,1]", 9, 7);
        check_winograd(tile, "f32[1,3,8,10] ?1", "pads=[0,1,2,0]", "pads=[0,1,2,0]", 8, 9);
        check_winograd(tile, "f32[1,3,6,6] ?1", "", "", 4, 4);
    }
}

Test(eval_properties, softmax_sums_to_one) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f64[3,4,5] ?1");
    berth_tensor y[] = {eval_on(&c, "softmax", &x, 1, "axis=1"), eval_tensor(&c, "i64[1] 1")};
    berth_tensor sum = eval_on(&c, "reduce_sum", y, 2, "keepdims=0");
    berth_tensor ones = eval_tensor(&c, "f64[3,5] 1");
    eval_expect(&c, &sum, &ones, 1e-12, "softmax");
    eval_end(&c);
}

Test(eval_properties, normalised_has_mean_0_and_variance_1) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f64[2,3,4,5] ?1");
    berth_tensor y = eval_on(&c, "mean_variance_normalization", &x, 1, "axes=[0,2,3]");
    berth_tensor axes = eval_tensor(&c, "i64[3] 0 2 3"), zeros = eval_tensor(&c, "f64[3] 0");
    berth_tensor mean = eval_on(&c, "reduce_mean", (berth_tensor[]){y, axes}, 2, "keepdims=0");
    berth_tensor square = eval_on(&c, "mul", (berth_tensor[]){y, y}, 2, "");
    berth_tensor variance =
        eval_on(&c, "reduce_mean", (berth_tensor[]){square, axes}, 2, "keepdims=0");
    berth_tensor ones = eval_tensor(&c, "f64[3] 1");
    eval_expect(&c, &mean, &zeros, 1e-12, "mean");
    eval_expect(&c, &variance, &ones, 1e-7, "variance");
    eval_end(&c);
}

Test(eval_properties, dft_and_back) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f64[2,6,5,2] ?1");
    berth_tensor y = eval_on(&c, "dft", &x, 1, "axis=2");
    berth_tensor z = eval_on(&c, "dft", &y, 1, "axis=2 inverse=1");
    eval_expect(&c, &z, &x, 1e-12, "inverse transform");
    eval_end(&c);
}

Test(eval_properties, einsum_is_matmul) {
    eval_case c = eval_begin();
    berth_tensor sides[] = {eval_tensor(&c, "f32[2,1,4,5] ?1"), eval_tensor(&c, "f32[3,5,6] ?2")};
    berth_tensor y = eval_on(&c, "matmul", sides, 2, "");
    berth_tensor z = eval_on(&c, "einsum", sides, 2, "equation=...ij,...jk->...ik");
    eval_expect(&c, &z, &y, 1e-6, "einsum");
    eval_end(&c);
}

Test(eval_properties, depth_to_space_and_back) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f32[2,12,3,2] ?1");
    berth_tensor y = eval_on(&c, "depth_to_space", &x, 1, "blocksize=2 mode=DCR");
    berth_tensor z = eval_on(&c, "space_to_depth", &y, 1, "blocksize=2");
    eval_expect(&c, &z, &x, 0, "space_to_depth");
    eval_end(&c);
}

// A bidirectional network is a forward and a reverse one; a reverse one runs over reversed input.
Test(eval_properties, reverse_lstm_reads_from_the_end) {
    eval_case c = eval_begin();
    berth_tensor x = eval_tensor(&c, "f32[4,1,3] ?1"), w = eval_tensor(&c, "f32[1,8,3] ?2");
    berth_tensor r = eval_tensor(&c, "f32[1,8,2] ?3"), lengths = eval_tensor(&c, "i32[1] 4");
    berth_tensor flipped = eval_on(&c, "reverse_sequence", (berth_tensor[]){x, lengths}, 2,
                                   "time_axis=0 batch_axis=1");
    berth_tensor forward[3], reverse[3];
    berth_status status = eval_try(&c, BERTH_OP_LSTM, (berth_tensor[]){flipped, w, r}, 3,
                                   "hidden_size=2", forward, 3);
    cr_assert_null(status);
    status = eval_try(&c, BERTH_OP_LSTM, (berth_tensor[]){x, w, r}, 3,
                      "hidden_size=2 direction=reverse", reverse, 3);
    cr_assert_null(status);
    eval_expect(&c, &reverse[1], &forward[1], 0, "last h");
    eval_expect(&c, &reverse[2], &forward[2], 0, "last c");
    eval_end(&c);
}
