#include "compiler/onnx/attention.h"

#include <math.h>

berth_value_id onnx_both(onnx_compose *c, berth_value_id a, berth_value_id b) {
    if (a == BERTH_NONE) return b;
    return b == BERTH_NONE ? a : onnx_make2(c, BERTH_OP_AND, a, b);
}

berth_value_id onnx_split_heads(onnx_compose *c, berth_value_id value, int64_t heads) {
    onnx_compose_want_rank(c, value, "an input in heads", 3, 3);
    int64_t size = onnx_compose_extent(c, value, 2);
    if (heads < 1 || (size >= 0 && size % heads))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "a dimension of %lld in %lld heads",
                          (long long)size, (long long)heads);
    if (c->status) return BERTH_NONE;
    value = onnx_reshaped(c, value, (int64_t[]){0, 0, heads, size < 0 ? -1 : size / heads}, 4);
    return onnx_transposed(c, value, (int64_t[]){0, 2, 1, 3}, 4);
}

berth_value_id onnx_join_heads(onnx_compose *c, berth_value_id value) {
    int64_t heads = onnx_compose_known_extent(c, value, "the result", 1);
    int64_t size = onnx_compose_known_extent(c, value, "the result", 3);
    value = onnx_transposed(c, value, (int64_t[]){0, 2, 1, 3}, 4);
    return onnx_reshaped(c, value, (int64_t[]){0, 0, heads * size}, 3);
}

berth_value_id onnx_attention_places(onnx_compose *c, berth_value_id queries, berth_value_id keys,
                                     berth_value_id offset, berth_value_id valid, int64_t left,
                                     int64_t right) {
    berth_value_id allowed = BERTH_NONE;
    if (left < 0 && right < 0 && valid == BERTH_NONE) return BERTH_NONE;
    if (left > INT32_MAX) left = INT32_MAX;  // beyond any key
    if (right > INT32_MAX) right = INT32_MAX;
    berth_value_id key = onnx_counting(c, keys);
    berth_value_id query = onnx_unsqueezed(c, onnx_counting(c, queries), 1);
    if (offset != BERTH_NONE) query = onnx_add(c, query, offset);
    if (right >= 0) {
        berth_value_id last = query;
        if (right) last = onnx_add(c, query, onnx_scalar(c, BERTH_DTYPE_I64, (double)right));
        allowed = onnx_make2(c, BERTH_OP_LESS_OR_EQUAL, key, last);
    }
    if (left >= 0) {
        berth_value_id first = onnx_sub(c, query, onnx_scalar(c, BERTH_DTYPE_I64, (double)left));
        allowed = onnx_both(c, allowed, onnx_make2(c, BERTH_OP_GREATER_OR_EQUAL, key, first));
    }
    if (valid != BERTH_NONE)
        allowed = onnx_both(c, allowed, onnx_make2(c, BERTH_OP_LESS, key, valid));
    return allowed;
}

// (batch, heads, rows, last): the rows are what is left, `last` the extent of `like`.
static berth_value_id in_heads(onnx_compose *c, berth_value_id value, int64_t heads,
                               berth_value_id like, int axis) {
    int64_t last = onnx_compose_extent(c, like, axis);
    if (last >= 0) return onnx_reshaped(c, value, (int64_t[]){0, heads, -1, last}, 4);
    berth_value_id parts[2] = {onnx_int_list(c, (int64_t[]){0, heads, -1}, 3),
                               onnx_unsqueezed(c, onnx_extent_of(c, like, axis), 0)};
    return onnx_make2(c, BERTH_OP_RESHAPE, value, onnx_concatenated(c, parts, 2, 0));
}

berth_value_id onnx_grouped_product(onnx_compose *c, berth_value_id a, berth_value_id b,
                                    int64_t heads, int64_t key_heads) {
    if (heads == key_heads) return onnx_make2(c, BERTH_OP_MATMUL, a, b);
    berth_value_id product = onnx_make2(c, BERTH_OP_MATMUL, in_heads(c, a, key_heads, b, 2), b);
    return in_heads(c, product, heads, b, 3);
}

// The weights of the keys where one more score takes its share: exp(s - m) / (sum of those + exp(sink - m)).
static berth_value_id weigh_beside(onnx_compose *c, berth_value_id sink, berth_value_id scores) {
    sink = onnx_cast_to(c, sink, onnx_compose_dtype(c, scores));
    berth_value_id most = onnx_reduced(c, BERTH_OP_REDUCE_MAX, scores, (int64_t[]){-1}, 1, true);
    most = onnx_make2(c, BERTH_OP_MAX, most, sink);
    berth_value_id e = onnx_make1(c, BERTH_OP_EXP, onnx_sub(c, scores, most));
    berth_value_id sum = onnx_reduced(c, BERTH_OP_REDUCE_SUM, e, (int64_t[]){-1}, 1, true);
    return onnx_div(c, e, onnx_add(c, sum, onnx_make1(c, BERTH_OP_EXP, onnx_sub(c, sink, most))));
}

static berth_value_id weigh(onnx_compose *c, const onnx_attention *a, berth_value_id scores) {
    berth_dtype own = onnx_compose_dtype(c, scores);
    if (a->softmax_dtype != BERTH_DTYPE_NONE) scores = onnx_cast_to(c, scores, a->softmax_dtype);
    if (a->has_sink) return onnx_cast_to(c, weigh_beside(c, a->sink, scores), own);
    if (!a->no_key_rows)
        return onnx_cast_to(c, onnx_softmax_along(c, BERTH_OP_SOFTMAX, scores, -1), own);
    berth_value_id highest = onnx_reduced(c, BERTH_OP_REDUCE_MAX, scores, (int64_t[]){-1}, 1, true);
    berth_value_id none = onnx_make2(c, BERTH_OP_EQUAL, highest, onnx_like(c, scores, -INFINITY));
    scores = onnx_where(c, none, onnx_like(c, scores, 0), scores);
    berth_value_id weights = onnx_softmax_along(c, BERTH_OP_SOFTMAX, scores, -1);
    return onnx_cast_to(c, onnx_where(c, none, onnx_like(c, scores, 0), weights), own);
}

berth_value_id onnx_attend(onnx_compose *c, onnx_attention *a) {
    onnx_compose_want_rank(c, a->q, "the queries", 4, 4);
    onnx_compose_want_rank(c, a->k, "the keys", 4, 4);
    onnx_compose_want_rank(c, a->v, "the values", 4, 4);
    int64_t heads = onnx_compose_known_extent(c, a->q, "the queries", 1);
    int64_t key_heads = onnx_compose_known_extent(c, a->k, "the keys", 1);
    int64_t size = onnx_compose_known_extent(c, a->q, "the queries", 3);
    if (key_heads < 1 || heads % key_heads)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%lld heads do not share %lld of the keys",
                          (long long)heads, (long long)key_heads);
    if (c->status) return BERTH_NONE;
    double scale = a->scale != 0 ? a->scale : 1 / sqrt(size > 0 ? (double)size : 1);
    if (scale < 0) onnx_compose_fail(c, BERTH_UNSUPPORTED, "a negative scale");
    berth_value_id factor = onnx_like(c, a->q, sqrt(scale));
    berth_value_id q = onnx_mul(c, a->q, factor);
    berth_value_id k = onnx_transposed(c, onnx_mul(c, a->k, factor), (int64_t[]){0, 1, 3, 2}, 4);
    berth_value_id scores = onnx_grouped_product(c, q, k, heads, key_heads);
    a->scores = scores;
    if (a->softcap != 0) {
        berth_value_id cap = onnx_like(c, scores, a->softcap);
        scores = onnx_mul(c, onnx_make1(c, BERTH_OP_TANH, onnx_div(c, scores, cap)), cap);
    }
    a->capped = scores;
    if (a->bias != BERTH_NONE) scores = onnx_add(c, scores, a->bias);
    if (a->allowed != BERTH_NONE)
        scores = onnx_where(c, a->allowed, scores, onnx_like(c, scores, -INFINITY));
    a->biased = scores;
    a->weights = weigh(c, a, scores);
    return onnx_grouped_product(c, a->weights, a->v, heads, key_heads);
}
