// FlexAttention (ai.onnx.preview): attention whose scores and weights pass through graphs.
#include <math.h>

#include "compiler/onnx/attention.h"
#include "compiler/onnx/ops.h"

static berth_value_id modified(onnx_compose *c, const char *name, berth_value_id value) {
    const onnx_attr *attr = onnx_call_attr(c->call, name);
    berth_value_id result = BERTH_NONE;
    if (!attr || c->status) return value;
    c->status = onnx_inline_subgraph(c->call, attr->graph, &value, 1, &result, 1);
    return result;
}

berth_status onnx_build_flex_attention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 3);
    berth_value_id q = onnx_compose_input(&c, 0), k = onnx_compose_input(&c, 1);
    berth_value_id v = onnx_compose_input(&c, 2);
    onnx_compose_want_rank(&c, q, "Q", 4, 4);
    onnx_compose_want_rank(&c, k, "K", 4, 4);
    onnx_compose_want_rank(&c, v, "V", 4, 4);
    int64_t heads = onnx_compose_known_extent(&c, q, "Q", 1);
    int64_t key_heads = onnx_compose_known_extent(&c, k, "K", 1);
    int64_t size = onnx_compose_known_extent(&c, q, "Q", 3);
    int64_t given = onnx_call_int(call, "softmax_precision", 0);
    berth_dtype own = onnx_compose_dtype(&c, q);
    berth_dtype inner = own == BERTH_DTYPE_F64 ? own : BERTH_DTYPE_F32;
    if (given) inner = berth_dtype_from_onnx(given);
    if (!berth_dtype_is_float(inner))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "softmax_precision is no floating-point type");
    if (key_heads < 1 || heads % key_heads)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "%lld heads do not share %lld of the keys",
                          (long long)heads, (long long)key_heads);
    if (c.status) return c.status;
    berth_dtype result = onnx_compose_dtype(&c, q);
    double scale = onnx_call_float(call, "scale", 1 / sqrt(size > 0 ? (double)size : 1));
    q = onnx_cast_to(&c, q, inner);
    k = onnx_transposed(&c, onnx_cast_to(&c, k, inner), (int64_t[]){0, 1, 3, 2}, 4);
    berth_value_id scores = onnx_grouped_product(&c, q, k, heads, key_heads);
    scores = onnx_mul(&c, scores, onnx_like(&c, scores, scale));
    scores = modified(&c, "score_mod", scores);
    berth_value_id weights = onnx_softmax_along(&c, BERTH_OP_SOFTMAX, scores, -1);
    weights = modified(&c, "prob_mod", weights);
    v = onnx_cast_to(&c, v, inner);
    onnx_compose_output(
        &c, 0, onnx_cast_to(&c, onnx_grouped_product(&c, weights, v, heads, key_heads), result));
    return c.status;
}
