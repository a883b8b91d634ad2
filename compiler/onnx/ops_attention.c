// Operators of transformers: attention, embeddings of places, normalisation by the root mean square,
// gated activations, caches.
#include <string.h>

#include "compiler/onnx/attention.h"
#include "compiler/onnx/ops.h"
#include "compiler/passes/index_checks.h"

// An element type of ONNX that is a float; NONE for 0.
static berth_dtype float_type(onnx_compose *c, const char *name, int64_t fallback) {
    int64_t given = onnx_call_int(c->call, name, fallback);
    berth_dtype dtype = given ? berth_dtype_from_onnx(given) : BERTH_DTYPE_NONE;
    if (given && !berth_dtype_is_float(dtype))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "attribute %s is no floating-point type",
                          name);
    return dtype;
}

// ---- Attention ----

// past and new, one after the other; the new ones alone without a past.
static berth_value_id append(onnx_compose *c, berth_value_id past, berth_value_id value) {
    if (past == BERTH_NONE) return value;
    return onnx_concatenated(c, (berth_value_id[]){past, value}, 2, 2);
}

// A mask may have fewer keys than there are: the rest is not allowed.
static berth_value_id pad_mask(onnx_compose *c, berth_value_id mask, berth_value_id k) {
    int rank = onnx_compose_rank(c, mask);
    int64_t keys = onnx_compose_extent(c, k, 2);
    int64_t given = onnx_compose_extent(c, mask, -1);
    if (rank < 1 || given < 0 || keys < 0 || given >= keys || given == 1) return mask;
    int64_t pads[2 * BERTH_MAX_RANK] = {0};
    pads[2 * rank - 1] = keys - given;
    bool logical = onnx_compose_dtype(c, mask) == BERTH_DTYPE_BOOL;
    berth_value_id inputs[3] = {mask, onnx_int_list(c, pads, 2 * (uint32_t)rank),
                                onnx_like(c, mask, logical ? 0 : -__builtin_inf())};
    return onnx_make(c, BERTH_OP_PAD, inputs, 3);
}

// attn_mask, is_causal, the window and nonpad_kv_seqlen.
static void restrict_keys(onnx_compose *c, onnx_attention *a, berth_value_id past) {
    berth_value_id mask = onnx_compose_input(c, 3);
    berth_value_id given = onnx_compose_input(c, 6);
    berth_value_id valid = BERTH_NONE, offset = BERTH_NONE;
    berth_value_id queries = onnx_extent_of(c, a->q, 2);
    int64_t left = onnx_call_int(c->call, "left_window_size", -1);
    int64_t right = onnx_call_int(c->call, "right_window_size", -1);
    if (left < -1 || right < -1)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "a window of fewer than -1 places");
    if (onnx_call_int(c->call, "is_causal", 0)) right = 0;
    if (past != BERTH_NONE) offset = onnx_extent_of(c, past, 2);
    if (given != BERTH_NONE) {
        valid = onnx_reshaped(c, given, (int64_t[]){-1, 1, 1, 1}, 4);
        if (past == BERTH_NONE) offset = onnx_sub(c, valid, queries);
    }
    a->allowed =
        onnx_attention_places(c, queries, onnx_extent_of(c, a->k, 2), offset, valid, left, right);
    a->no_key_rows = mask != BERTH_NONE || given != BERTH_NONE || left >= 0;
    if (mask == BERTH_NONE) return;
    mask = pad_mask(c, mask, a->k);
    if (onnx_compose_dtype(c, mask) == BERTH_DTYPE_BOOL)
        a->allowed = onnx_both(c, a->allowed, mask);
    else
        a->bias = onnx_cast_to(c, mask, onnx_compose_dtype(c, a->q));
}

berth_status onnx_build_attention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 7);
    onnx_attention a = {.q = onnx_compose_input(&c, 0),
                        .k = onnx_compose_input(&c, 1),
                        .v = onnx_compose_input(&c, 2),
                        .bias = BERTH_NONE,
                        .allowed = BERTH_NONE,
                        .scale = onnx_call_float(call, "scale", 0),
                        .softcap = onnx_call_float(call, "softcap", 0),
                        .softmax_dtype = float_type(&c, "softmax_precision", 0)};
    berth_value_id past_k = onnx_compose_input(&c, 4), past_v = onnx_compose_input(&c, 5);
    int64_t mode = onnx_call_int(call, "qk_matmul_output_mode", 0);
    bool flat = onnx_compose_want_rank(&c, a.q, "Q", 3, 4) == 3;
    if ((past_k == BERTH_NONE) != (past_v == BERTH_NONE))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "past_key and past_value must be given together");
    if (mode < 0 || mode > 3)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "qk_matmul_output_mode is %lld, expected 0 to 3", (long long)mode);
    if (flat) {
        a.q = onnx_split_heads(&c, a.q, onnx_call_int(call, "q_num_heads", 0));
        a.k = onnx_split_heads(&c, a.k, onnx_call_int(call, "kv_num_heads", 0));
        a.v = onnx_split_heads(&c, a.v, onnx_call_int(call, "kv_num_heads", 0));
    }
    a.k = append(&c, past_k, a.k);
    a.v = append(&c, past_v, a.v);
    restrict_keys(&c, &a, past_k);
    berth_dtype own = onnx_compose_dtype(&c, a.q);
    berth_value_id result = onnx_attend(&c, &a);
    berth_value_id steps[4] = {a.scores, a.capped, a.biased, a.weights};
    onnx_compose_output(&c, 0, flat ? onnx_join_heads(&c, result) : result);
    onnx_compose_output(&c, 1, a.k);
    onnx_compose_output(&c, 2, a.v);
    if (onnx_compose_wants(&c, 3) && !c.status)
        onnx_compose_output(&c, 3, onnx_cast_to(&c, steps[mode], own));
    return c.status;
}

// ---- RMSNormalization ----

berth_value_id onnx_rms_normalized(onnx_compose *c, berth_value_id x, int64_t axis, double epsilon,
                                   berth_dtype stash) {
    int rank = onnx_compose_rank(c, x);
    int64_t axes[BERTH_MAX_RANK];
    uint32_t count = 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "attribute axis is none of %d dimensions",
                          rank);
    for (int64_t i = axis; !c->status && i < rank; ++i) axes[count++] = i;
    if (stash != BERTH_DTYPE_NONE) x = onnx_cast_to(c, x, stash);
    berth_value_id mean =
        onnx_reduced(c, BERTH_OP_REDUCE_MEAN, onnx_mul(c, x, x), axes, count, true);
    berth_value_id root =
        onnx_make1(c, BERTH_OP_SQRT, onnx_add(c, mean, onnx_like(c, mean, epsilon)));
    return onnx_div(c, x, root);
}

berth_status onnx_build_rms_normalization(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id x = onnx_compose_input(&c, 0), scale = onnx_compose_input(&c, 1);
    berth_value_id y = onnx_rms_normalized(&c, x, onnx_call_int(call, "axis", -1),
                                           onnx_call_float(call, "epsilon", 1e-5),
                                           float_type(&c, "stash_type", 1));
    y = onnx_cast_to(&c, onnx_cast_to(&c, y, onnx_compose_dtype(&c, x)),
                     onnx_compose_dtype(&c, scale));
    onnx_compose_output(&c, 0, onnx_mul(&c, y, scale));
    return c.status;
}

// ---- RotaryEmbedding ----

// (a, b), the halves of x along an axis, turned: (a cos - b sin, a sin + b cos), as (a, b) * (cos, cos) + (b, a) *
// (-sin, sin): one pass over the result, which reads each element at two places.
static berth_value_id turned(onnx_compose *c, berth_value_id x, berth_value_id cosines,
                             berth_value_id sines, int64_t axis, int64_t half) {
    berth_value_id same[2] = {cosines, cosines},
                   signs[2] = {onnx_make1(c, BERTH_OP_NEG, sines), sines};
    berth_value_id other[2] = {onnx_sliced(c, x, axis, half, 2 * half, 1),
                               onnx_sliced(c, x, axis, 0, half, 1)};
    berth_value_id crossed =
        onnx_mul(c, onnx_concatenated(c, other, 2, axis), onnx_concatenated(c, signs, 2, axis));
    if (half > 1) cosines = onnx_concatenated(c, same, 2, axis);
    return onnx_add(c, onnx_mul(c, x, cosines), crossed);
}

// x: (batch, a, b, size); cosines and sines: (batch, a, b, rotated / 2), where a or b may be 1.
berth_value_id onnx_rotated(onnx_compose *c, berth_value_id x, berth_value_id cosines,
                            berth_value_id sines, int64_t rotated, bool interleaved) {
    int64_t size = onnx_compose_known_extent(c, x, "the input", 3);
    if (rotated == 0) rotated = size;
    if (rotated < 0 || rotated > size || rotated % 2)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "a rotation of %lld elements of %lld",
                          (long long)rotated, (long long)size);
    if (rotated == 0) return x;
    berth_value_id parts[2] = {rotated < size ? onnx_sliced(c, x, 3, 0, rotated, 1) : x};
    if (interleaved) {  // a and b are beside each other
        parts[0] = onnx_reshaped(c, parts[0], (int64_t[]){0, 0, 0, rotated / 2, 2}, 5);
        parts[0] =
            turned(c, parts[0], onnx_unsqueezed(c, cosines, 4), onnx_unsqueezed(c, sines, 4), 4, 1);
        parts[0] = onnx_reshaped(c, parts[0], (int64_t[]){0, 0, 0, rotated}, 4);
    } else {
        parts[0] = turned(c, parts[0], cosines, sines, 3, rotated / 2);
    }
    if (rotated == size) return parts[0];
    parts[1] = onnx_sliced(c, x, 3, rotated, size, 1);
    return onnx_concatenated(c, parts, 2, 3);
}

berth_status onnx_build_rotary_embedding(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 4);
    berth_value_id x = onnx_compose_input(&c, 0), places = onnx_compose_input(&c, 3);
    berth_value_id tables[2] = {onnx_compose_input(&c, 1), onnx_compose_input(&c, 2)};
    bool flat = onnx_compose_want_rank(&c, x, "X", 3, 4) == 3;
    for (int i = 0; i < 2; ++i) {
        onnx_compose_want_rank(&c, tables[i], "a table of cosines or sines",
                               places == BERTH_NONE ? 3 : 2, places == BERTH_NONE ? 3 : 2);
        if (places != BERTH_NONE) tables[i] = onnx_picked(&c, tables[i], places, 0);
        tables[i] = onnx_unsqueezed(&c, tables[i], flat ? 2 : 1);  // of all heads
    }
    if (flat) {
        int64_t heads = onnx_call_int(call, "num_heads", 0);
        int64_t all = onnx_compose_known_extent(&c, x, "X", 2);
        if (heads < 1 || all % heads)
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "a dimension of %lld in %lld heads",
                              (long long)all, (long long)heads);
        if (!c.status) x = onnx_reshaped(&c, x, (int64_t[]){0, 0, heads, all / heads}, 4);
    }
    x = onnx_rotated(&c, x, tables[0], tables[1], onnx_call_int(call, "rotary_embedding_dim", 0),
                     onnx_call_int(call, "interleaved", 0) != 0);
    if (flat) x = onnx_reshaped(&c, x, (int64_t[]){0, 0, -1}, 3);
    onnx_compose_output(&c, 0, x);
    return c.status;
}

// ---- Swish, SwiGLU ----

berth_value_id onnx_swished(onnx_compose *c, berth_value_id x, double alpha) {
    berth_value_id scaled = alpha == 1 ? x : onnx_mul(c, x, onnx_like(c, x, alpha));
    return onnx_mul(c, x, onnx_make1(c, BERTH_OP_SIGMOID, scaled));
}

berth_status onnx_build_swish(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    onnx_compose_output(
        &c, 0, onnx_swished(&c, onnx_compose_input(&c, 0), onnx_call_float(call, "alpha", 1)));
    return c.status;
}

berth_status onnx_build_swiglu(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 2);
    berth_value_id gate =
        onnx_swished(&c, onnx_compose_input(&c, 0), onnx_call_float(call, "alpha", 1));
    onnx_compose_output(&c, 0, onnx_mul(&c, gate, onnx_compose_input(&c, 1)));
    return c.status;
}

// ---- CausalConvWithState ----

// A depthwise convolution of what was before and the input; what was before is zero at first.
berth_status onnx_build_causal_conv(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 4);
    berth_value_id x = onnx_compose_input(&c, 0), weight = onnx_compose_input(&c, 1);
    berth_value_id bias = onnx_compose_input(&c, 2), past = onnx_compose_input(&c, 3);
    const char *activation = onnx_call_string(call, "activation", "none");
    bool swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!swish && strcmp(activation, "none") != 0)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "activation is \"%.32s\", expected silu, swish or none", activation);
    onnx_compose_want_rank(&c, x, "the input", 3, 3);
    onnx_compose_want_rank(&c, weight, "the weights", 3, 3);
    int64_t channels = onnx_compose_known_extent(&c, weight, "the weights", 0);
    int64_t before = onnx_compose_known_extent(&c, weight, "the weights", 2) - 1;
    if (before < 0) onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "the kernel has no elements");
    if (past != BERTH_NONE) {
        x = onnx_concatenated(&c, (berth_value_id[]){past, x}, 2, 2);
    } else if (before > 0) {
        berth_value_id inputs[2] = {x, onnx_int_list(&c, (int64_t[]){0, 0, before, 0, 0, 0}, 6)};
        x = onnx_make(&c, BERTH_OP_PAD, inputs, 2);
    }
    onnx_made conv = onnx_start(&c, BERTH_OP_CONV, (berth_value_id[]){x, weight, bias}, 3, 1);
    onnx_set_int(conv, "group", channels);
    berth_value_id y = onnx_finish(conv);
    onnx_compose_output(&c, 0, swish ? onnx_swished(&c, y, 1) : y);
    if (onnx_compose_wants(&c, 1))
        onnx_compose_output(&c, 1,
                            onnx_sliced(&c, x, 2, before ? -before : INT64_MAX, INT64_MAX, 1));
    return c.status;
}

// ---- TensorScatter ----

// Every place of the cache takes the new element that comes there, if one does: which one is a
// difference of places, so that it is a gather and a choice.
berth_status onnx_build_tensor_scatter(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    berth_value_id cache = onnx_compose_input(&c, 0), update = onnx_compose_input(&c, 1);
    berth_value_id starts = onnx_compose_input(&c, 2);
    const char *mode = onnx_call_string(call, "mode", "linear");
    bool circular = strcmp(mode, "circular") == 0;
    int rank = onnx_compose_rank(&c, cache);
    int64_t axis = onnx_call_int(call, "axis", -2);
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "attribute axis is none of dimensions 1 to %d", rank - 1);
    if (!circular && strcmp(mode, "linear") != 0)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "mode is \"%.32s\", expected linear or circular", mode);
    if (c.status) return c.status;
    int64_t column[BERTH_MAX_RANK], batch[BERTH_MAX_RANK];
    for (int i = 0; i < rank; ++i) column[i] = batch[i] = 1;
    column[axis] = -1;
    batch[0] = -1;
    berth_value_id length = onnx_extent_of(&c, cache, (int)axis);
    berth_value_id count = onnx_extent_of(&c, update, (int)axis);
    berth_value_id from = onnx_reshaped(&c, onnx_counting(&c, length), column, (uint32_t)rank);
    if (starts != BERTH_NONE)
        from = onnx_sub(&c, from, onnx_reshaped(&c, starts, batch, (uint32_t)rank));
    if (circular) from = onnx_make2(&c, BERTH_OP_MOD, from, length);
    berth_value_id zero = onnx_scalar(&c, BERTH_DTYPE_I64, 0);
    berth_value_id one = onnx_scalar(&c, BERTH_DTYPE_I64, 1);
    berth_value_id comes = onnx_both(&c, onnx_make2(&c, BERTH_OP_GREATER_OR_EQUAL, from, zero),
                                     onnx_make2(&c, BERTH_OP_LESS, from, count));
    berth_value_id last = onnx_sub(&c, count, one);
    berth_value_id index =
        onnx_make2(&c, BERTH_OP_MAX, onnx_make2(&c, BERTH_OP_MIN, from, last), zero);
    index = onnx_make2(&c, BERTH_OP_EXPAND, index, onnx_shape_of(&c, cache));
    onnx_made taken =
        onnx_start(&c, BERTH_OP_GATHER_ELEMENTS, (berth_value_id[]){update, index}, 2, 1);
    onnx_set_int(taken, "axis", axis);
    onnx_set_int(taken, BERTH_ATTR_IN_RANGE, 1);
    onnx_compose_output(&c, 0, onnx_where(&c, comes, onnx_finish(taken), cache));
    return c.status;
}

// ---- LinearAttention ----

typedef struct recurrence {
    int64_t heads, key_heads, steps, keys, values;  // keys, values: extents of a head
    double scale;
    bool decays, corrects;                // gated..., ...delta
    berth_value_id q, k, v, decay, beta;  // (batch, key heads, group or 1, step, ...)
} recurrence;

// Step t of (batch, heads, step, size) as (batch, heads, 1, size).
static berth_value_id at_step(onnx_compose *c, berth_value_id value, int64_t t) {
    return onnx_sliced(c, value, 2, t, t + 1, 1);
}

// The state after step t: S = exp(g) S + beta k (v - k^T (exp(g) S))^T, without what the rule lacks.
// S is (batch, key heads, keys, values); BERTH_NONE is zero.
static berth_value_id next_state(onnx_compose *c, const recurrence *r, berth_value_id state,
                                 int64_t t) {
    berth_value_id key = at_step(c, r->k, t), value = at_step(c, r->v, t);
    berth_value_id column = onnx_transposed(c, key, (int64_t[]){0, 1, 3, 2}, 4);
    bool starts = state == BERTH_NONE;
    if (r->decays && !starts) {
        berth_value_id decay = onnx_make1(c, BERTH_OP_EXP, at_step(c, r->decay, t));
        decay = onnx_transposed(c, decay, (int64_t[]){0, 1, 3, 2}, 4);
        state = onnx_mul(c, state, decay);
    }
    if (r->corrects) {
        if (!starts) value = onnx_sub(c, value, onnx_make2(c, BERTH_OP_MATMUL, key, state));
        value = onnx_mul(c, value, at_step(c, r->beta, t));
    }
    value = onnx_mul(c, column, value);
    return starts ? value : onnx_add(c, state, value);
}

static void read_recurrence(onnx_compose *c, recurrence *r) {
    const char *rule = onnx_call_string(c->call, "update_rule", "gated_delta");
    berth_value_id q = onnx_compose_input(c, 0), k = onnx_compose_input(c, 1);
    berth_value_id v = onnx_compose_input(c, 2), decay = onnx_compose_input(c, 4);
    berth_value_id beta = onnx_compose_input(c, 5);
    r->heads = onnx_call_int(c->call, "q_num_heads", 0);
    r->key_heads = onnx_call_int(c->call, "kv_num_heads", 0);
    r->corrects = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    r->decays = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!r->corrects && !r->decays && strcmp(rule, "linear") != 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "update_rule \"%.32s\" is none of ONNX's",
                          rule);
    if ((r->decays && decay == BERTH_NONE) || (r->corrects && beta == BERTH_NONE))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "update_rule %s needs decay or beta", rule);
    if (r->key_heads < 1 || r->heads < 1 || r->heads % r->key_heads)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%lld heads do not share %lld of the keys",
                          (long long)r->heads, (long long)r->key_heads);
    r->q = onnx_split_heads(c, q, r->heads);
    r->k = onnx_split_heads(c, k, r->key_heads);
    r->v = onnx_split_heads(c, v, r->key_heads);
    r->steps = onnx_compose_known_extent(c, q, "the queries", 1);
    r->keys = onnx_compose_known_extent(c, r->k, "the keys", 3);
    r->values = onnx_compose_known_extent(c, r->v, "the values", 3);
    r->scale = onnx_call_float(c->call, "scale", 0);
    if (r->scale == 0) r->scale = 1 / __builtin_sqrt(r->keys > 0 ? (double)r->keys : 1);
    if (r->decays) r->decay = onnx_split_heads(c, decay, r->key_heads);
    if (r->corrects) {
        int64_t given = onnx_compose_known_extent(c, beta, "beta", 2);
        r->beta = onnx_split_heads(c, beta, given == 1 ? 1 : r->key_heads);
    }
}

// The steps are written out, one after the other.
berth_status onnx_build_linear_attention(onnx_call *call) {
    enum { most_steps = 256 };
    onnx_compose c = onnx_compose_begin(call, 3, 6);
    recurrence r = {0};
    berth_value_id state = onnx_compose_input(&c, 3), rows[most_steps];
    if (!c.status) read_recurrence(&c, &r);
    if (r.steps < 1 || r.steps > most_steps)
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "%lld steps; 1 to %d are supported",
                          (long long)r.steps, most_steps);
    if (c.status) return c.status;
    berth_dtype own = onnx_compose_dtype(&c, r.q), held = own;
    bool resumed = state != BERTH_NONE;
    if (resumed) held = onnx_compose_dtype(&c, state);
    berth_dtype inner =
        own == BERTH_DTYPE_F64 || held == BERTH_DTYPE_F64 ? BERTH_DTYPE_F64 : BERTH_DTYPE_F32;
    berth_value_id *inputs[5] = {&r.q, &r.k, &r.v, r.decays ? &r.decay : NULL,
                                 r.corrects ? &r.beta : NULL};
    for (int i = 0; i < 5; ++i)
        if (inputs[i]) *inputs[i] = onnx_cast_to(&c, *inputs[i], inner);
    if (resumed) state = onnx_cast_to(&c, state, inner);
    for (int64_t t = 0; t < r.steps; ++t) {
        state = next_state(&c, &r, state, t);
        berth_value_id query = at_step(&c, r.q, t);
        query =
            onnx_reshaped(&c, query, (int64_t[]){0, r.key_heads, r.heads / r.key_heads, r.keys}, 4);
        rows[t] = onnx_make2(&c, BERTH_OP_MATMUL, query, state);
        rows[t] = onnx_reshaped(&c, rows[t], (int64_t[]){0, 1, r.heads * r.values}, 3);
    }
    berth_value_id y = onnx_concatenated(&c, rows, (uint32_t)r.steps, 1);
    y = onnx_mul(&c, y, onnx_like(&c, y, r.scale));
    onnx_compose_output(&c, 0, onnx_cast_to(&c, y, own));
    onnx_compose_output(&c, 1, onnx_cast_to(&c, state, held));
    return c.status;
}
