// Scaled dot-product attention as operations, shared by ONNX's Attention and the operators of other
// domains that are forms of it (private to compiler/onnx).
//
//   scores  = (q sqrt(scale)) (k sqrt(scale))^T          (batch, heads, queries, keys)
//   scores  = softcap tanh(scores / softcap)             with a softcap
//   scores  = scores + bias, -inf where not allowed
//   weights = softmax(scores)                            zero where a row allows nothing
//   result  = weights v
//
// Where heads share keys (grouped queries) those of a group are rows of one product: nothing is
// repeated.
#ifndef BERTH_COMPILER_ONNX_ATTENTION_H_
#define BERTH_COMPILER_ONNX_ATTENTION_H_

#include "compiler/onnx/compose.h"

typedef struct onnx_attention {
    berth_value_id q;        // (batch, heads, queries, size)
    berth_value_id k;        // (batch, key heads, keys, size); heads are a multiple of key heads
    berth_value_id v;        // (batch, key heads, keys, value size)
    berth_value_id bias;     // (optional) broadcasts to the scores, of q's type
    berth_value_id allowed;  // (optional) bool, broadcasts to the scores
    double scale;            // 0: 1 / sqrt(size)
    double softcap;          // 0: none
    berth_value_id
        sink;  // (optional) broadcasts to (batch, heads, queries, 1): a score of a key without a value
    bool has_sink;
    bool no_key_rows;           // rows that allow no key may be: they give zeros
    berth_dtype softmax_dtype;  // NONE: q's
    // Results: the scores after each step, of q's type.
    berth_value_id scores, capped, biased, weights;
} onnx_attention;

// The result, (batch, heads, queries, value size). Heads and sizes must be known.
berth_value_id onnx_attend(onnx_compose *c, onnx_attention *a);

// (batch, sequence, heads * size) to (batch, heads, sequence, size), and back.
berth_value_id onnx_split_heads(onnx_compose *c, berth_value_id value, int64_t heads);
berth_value_id onnx_join_heads(onnx_compose *c, berth_value_id value);

// a (batch, heads, rows, depth) times b (batch, key heads, depth, columns), where heads / key heads of
// a share one of b: rows of one product.
berth_value_id onnx_grouped_product(onnx_compose *c, berth_value_id a, berth_value_id b,
                                    int64_t heads, int64_t key_heads);

// Which keys a query may see, by their places: a bool that broadcasts to (batch, 1, queries, keys),
// BERTH_NONE for all. The place of query i is i + offset.
//   offset:  i64, a scalar or (batch, 1, 1, 1); BERTH_NONE for 0
//   valid:   (optional) i64 (batch, 1, 1, 1): keys before it are there
//   left, right: how far a query sees; -1 = to the end
berth_value_id onnx_attention_places(onnx_compose *c, berth_value_id queries, berth_value_id keys,
                                     berth_value_id offset, berth_value_id valid, int64_t left,
                                     int64_t right);
// a and b, either of which may be BERTH_NONE (then the other).
berth_value_id onnx_both(onnx_compose *c, berth_value_id a, berth_value_id b);

#endif  // BERTH_COMPILER_ONNX_ATTENTION_H_
