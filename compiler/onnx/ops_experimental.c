// Operators that ONNX had for trial and took out again, which files of that time (CoreML's and Caffe2's
// converters, winmltools) still have.
#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// alpha x + beta.
berth_status onnx_build_affine(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    x = onnx_mul(&c, x, onnx_like(&c, x, onnx_call_float(call, "alpha", 1)));
    onnx_compose_output(&c, 0, onnx_add(&c, x, onnx_like(&c, x, onnx_call_float(call, "beta", 0))));
    return c.status;
}

// scale x + bias[channel].
berth_status onnx_build_image_scaler(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    const onnx_attr *bias = onnx_call_attr(call, "bias");
    int rank = onnx_compose_want_rank(&c, x, "the input", 2, BERTH_MAX_RANK);
    if (c.status) return c.status;
    x = onnx_mul(&c, x, onnx_like(&c, x, onnx_call_float(call, "scale", 1)));
    berth_value_id *channels =
        berth_arena_new_array(call->im->scratch, berth_value_id, bias->floats.count + 1);
    for (uint32_t i = 0; i < bias->floats.count; ++i)
        channels[i] = onnx_reshaped(&c, onnx_like(&c, x, bias->floats.data[i]), (int64_t[]){1}, 1);
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < rank; ++i) dims[i] = i == 1 ? bias->floats.count : 1;
    berth_value_id all = onnx_concatenated(&c, channels, bias->floats.count, 0);
    onnx_compose_output(&c, 0, onnx_add(&c, x, onnx_reshaped(&c, all, dims, (uint32_t)rank)));
    return c.status;
}

// alpha f(beta x): f is the hyperbolic tangent, or log(1 + e^x).
static berth_status scaled(onnx_call *call, berth_op_kind function) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    berth_value_id alpha = onnx_like(&c, x, onnx_call_float(call, "alpha", 1));
    x = onnx_mul(&c, x, onnx_like(&c, x, onnx_call_float(call, "beta", 1)));
    onnx_compose_output(&c, 0, onnx_mul(&c, onnx_make1(&c, function, x), alpha));
    return c.status;
}

berth_status onnx_build_scaled_tanh(onnx_call *call) {
    return scaled(call, BERTH_OP_TANH);
}

berth_status onnx_build_parametric_softplus(onnx_call *call) {
    return scaled(call, BERTH_OP_SOFTPLUS);
}

// What is left without a border (left, top, right, bottom); with a scale (height, width), so much from
// the left upper corner of that.
berth_status onnx_build_crop(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    berth_value_id x = onnx_compose_input(&c, 0);
    const onnx_attr *border = onnx_call_attr(call, "border"),
                    *scale = onnx_call_attr(call, "scale");
    onnx_compose_want_rank(&c, x, "the input", 4, 4);
    if (border->ints.count != 4 || (scale && scale->ints.count && scale->ints.count != 2))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "border must have 4 numbers and scale 2");
    for (int i = 0; i < 2 && !c.status; ++i) {  // height, width
        int64_t first = border->ints.data[1 - i], last = border->ints.data[3 - i];
        int64_t end = scale && scale->ints.count ? first + scale->ints.data[i]
                      : last                     ? -last
                                                 : INT64_MAX;
        x = onnx_sliced(&c, x, 2 + i, first, end, 1);
    }
    onnx_compose_output(&c, 0, x);
    return c.status;
}
