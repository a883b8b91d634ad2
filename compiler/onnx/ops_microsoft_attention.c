// The attention operators of com.microsoft.
#include <string.h>

#include "compiler/onnx/attention.h"
#include "compiler/onnx/ops.h"
#include "compiler/passes/index_checks.h"

// ---- RotaryEmbedding ----

// The attribute scale is of no account, as in ONNX Runtime.
berth_status onnx_build_ms_rotary_embedding(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 4, 4);
    berth_value_id x = onnx_compose_input(&c, 0), places = onnx_compose_input(&c, 1);
    bool flat = onnx_compose_want_rank(&c, x, "the input", 3, 4) == 3;
    int64_t rotated = onnx_call_int(call, "rotary_embedding_dim", 0);
    int64_t heads = onnx_call_int(call, "num_heads", 0);
    int64_t half = onnx_compose_known_extent(&c, onnx_compose_input(&c, 2), "cos_cache", 1);
    if (flat) {
        int64_t all = onnx_compose_known_extent(&c, x, "the input", 2);
        if (!heads && !rotated && half) heads = all / (2 * half);
        if (heads < 1 || all % heads)
            onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "a dimension of %lld in %lld heads",
                              (long long)all, (long long)heads);
        if (!c.status) x = onnx_reshaped(&c, x, (int64_t[]){0, 0, heads, all / heads}, 4);
    }
    berth_value_id length = onnx_extent_of(&c, x, flat ? 1 : 2);
    if (onnx_compose_want_rank(&c, places, "position_ids", 1, 2) == 1)  // of the first one
        places = onnx_unsqueezed(&c, onnx_add(&c, places, onnx_counting(&c, length)), 0);
    berth_value_id tables[2];
    for (uint32_t i = 0; i < 2; ++i) {
        tables[i] = onnx_picked(&c, onnx_compose_input(&c, 2 + i), places, 0);
        tables[i] = onnx_unsqueezed(&c, tables[i], flat ? 2 : 1);  // of all heads
    }
    x = onnx_rotated(&c, x, tables[0], tables[1], rotated ? rotated : 2 * half,
                     onnx_call_int(call, "interleaved", 0) != 0);
    if (flat) x = onnx_reshaped(&c, x, (int64_t[]){0, 0, -1}, 3);
    onnx_compose_output(&c, 0, x);
    return c.status;
}

// ---- what MultiHeadAttention and Attention share ----

// (batch, 1, 1, keys): the keys that a mask of one dimension leaves. It is (batch), where the keys of each end, or
// (2 * batch), then where they begin. A run fails where it is neither.
static berth_value_id seen_between(onnx_compose *c, const onnx_attention *a, berth_value_id mask) {
    int64_t given = onnx_compose_extent(c, mask, 0), batch = onnx_compose_extent(c, a->q, 0);
    if (!c->status && given >= 0 && batch >= 0 && given != batch && given != 2 * batch)
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "a mask of %lld counts for a batch of %lld",
                          (long long)given, (long long)batch);
    berth_value_id one = onnx_scalar(c, BERTH_DTYPE_I64, 1), rows = onnx_extent_of(c, a->q, 0);
    berth_value_id parts =
        onnx_div(c, onnx_extent_of(c, mask, 0), onnx_make2(c, BERTH_OP_MAX, rows, one));
    parts = onnx_make2(c, BERTH_OP_MIN, parts, onnx_scalar(c, BERTH_DTYPE_I64, 2));
    if (given >= 0 && given == batch) parts = one;
    berth_value_id dims[3] = {onnx_unsqueezed(c, parts, 0), onnx_unsqueezed(c, rows, 0),
                              onnx_int_list(c, (int64_t[]){1, 1, 1}, 3)};
    mask = onnx_make2(c, BERTH_OP_RESHAPE, onnx_cast_to(c, mask, BERTH_DTYPE_I64),
                      onnx_concatenated(c, dims, 3, 0));
    berth_value_id place = onnx_counting(c, onnx_extent_of(c, a->k, 2));
    berth_value_id end = onnx_squeezed(c, onnx_sliced(c, mask, 0, 0, 1, 1), 0);
    berth_value_id seen = onnx_make2(c, BERTH_OP_LESS, place, end);
    if (given >= 0 && given == batch) return seen;
    berth_value_id begin = onnx_squeezed(c, onnx_sliced(c, mask, 0, -1, INT64_MAX, 1), 0);
    begin = onnx_mul(c, begin, onnx_sub(c, parts, one));  // one part has no beginnings
    return onnx_both(c, seen, onnx_make2(c, BERTH_OP_GREATER_OR_EQUAL, place, begin));
}

// A mask of keys: (batch) counts of keys, (batch, keys) or (batch, queries, keys) with 0 where a key
// is hidden. What is hidden gets mask_filter_value.
static void hide_keys(onnx_compose *c, onnx_attention *a, berth_value_id mask) {
    if (mask == BERTH_NONE) return;
    int rank = onnx_compose_want_rank(c, mask, "the mask of keys", 1, 3);
    berth_value_id seen;
    if (rank == 1) {
        seen = seen_between(c, a, mask);
    } else {
        seen = onnx_make2(c, BERTH_OP_GREATER, mask, onnx_like(c, mask, 0));
        if (rank == 2) seen = onnx_unsqueezed(c, seen, 1);
        seen = onnx_unsqueezed(c, seen, 1);
    }
    double filter = onnx_call_float(c->call, "mask_filter_value", -10000);
    berth_value_id bias = onnx_where(c, seen, onnx_like(c, a->q, 0), onnx_like(c, a->q, filter));
    a->bias = a->bias == BERTH_NONE ? bias : onnx_add(c, a->bias, bias);
}

static void look_back(onnx_compose *c, onnx_attention *a, berth_value_id past, int64_t left) {
    berth_value_id offset = past == BERTH_NONE ? BERTH_NONE : onnx_extent_of(c, past, 2);
    a->allowed = onnx_attention_places(c, onnx_extent_of(c, a->q, 2), onnx_extent_of(c, a->k, 2),
                                       offset, BERTH_NONE, left, 0);
}

static berth_value_id append(onnx_compose *c, berth_value_id past, berth_value_id value) {
    if (past == BERTH_NONE) return value;
    return onnx_concatenated(c, (berth_value_id[]){past, value}, 2, 2);
}

// ---- MultiHeadAttention ----

// q, k and v in heads, with their parts of the bias.
static void read_heads(onnx_compose *c, onnx_attention *a) {
    int64_t heads = onnx_call_int(c->call, "num_heads", 0), begin = 0;
    berth_value_id *parts[3] = {&a->q, &a->k, &a->v}, bias = onnx_compose_input(c, 3);
    for (uint32_t i = 0; i < 3; ++i) {
        berth_value_id x = onnx_compose_input(c, i);
        if (x == BERTH_NONE || onnx_compose_rank(c, x) > 4) {
            onnx_compose_fail(c, BERTH_UNSUPPORTED, "packed queries, keys and values");
            return;
        }
        bool flat = onnx_compose_rank(c, x) == 3;
        if (flat && bias != BERTH_NONE) {
            int64_t size = onnx_compose_known_extent(c, x, "an input", 2);
            x = onnx_add(c, x, onnx_sliced(c, bias, 0, begin, begin + size, 1));
            begin += size;
        }
        *parts[i] = flat ? onnx_split_heads(c, x, heads) : x;
    }
}

berth_status onnx_build_ms_multi_head_attention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 8);
    onnx_attention a = {.bias = onnx_compose_input(&c, 5),
                        .allowed = BERTH_NONE,
                        .scale = onnx_call_float(call, "scale", 0)};
    berth_value_id past_k = onnx_compose_input(&c, 6), past_v = onnx_compose_input(&c, 7);
    if ((past_k == BERTH_NONE) != (past_v == BERTH_NONE))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "past_key and past_value must be given together");
    if (!c.status) read_heads(&c, &a);
    if (c.status) return c.status;
    a.k = append(&c, past_k, a.k);
    a.v = append(&c, past_v, a.v);
    hide_keys(&c, &a, onnx_compose_input(&c, 4));
    if (onnx_call_int(call, "unidirectional", 0)) look_back(&c, &a, past_k, -1);
    berth_value_id result = onnx_attend(&c, &a);
    onnx_compose_output(&c, 0, onnx_join_heads(&c, result));
    onnx_compose_output(&c, 1, a.k);
    onnx_compose_output(&c, 2, a.v);
    onnx_compose_output(&c, 3, a.scores);
    return c.status;
}

// ---- Attention ----

// (batch, sequence, 3 * hidden) to q, k, v in heads; past is (2, batch, heads, past, size).
static void attend_to_packed(onnx_compose *c, berth_value_id packed, berth_value_id mask,
                             berth_value_id past, berth_value_id bias) {
    onnx_attention a = {
        .bias = bias, .allowed = BERTH_NONE, .scale = onnx_call_float(c->call, "scale", 0)};
    const onnx_attr *sizes = onnx_call_attr(c->call, "qkv_hidden_sizes");
    int64_t heads = onnx_call_int(c->call, "num_heads", 0), begin = 0;
    int64_t all = onnx_compose_known_extent(c, packed, "the product with the weights", 2);
    berth_value_id *parts[3] = {&a.q, &a.k, &a.v}, old[2] = {BERTH_NONE, BERTH_NONE};
    if (onnx_call_int(c->call, "do_rotary", 0) ||
        onnx_call_int(c->call, "past_present_share_buffer", 0))
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "do_rotary or past_present_share_buffer");
    if (sizes && sizes->ints.count != 3)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "qkv_hidden_sizes has %u entries, expected 3",
                          sizes->ints.count);
    for (int i = 0; i < 3 && !c->status; ++i) {
        int64_t size = sizes ? sizes->ints.data[i] : all / 3;
        if (size < 1 || size > all - begin) {
            onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "weights of %lld columns do not fit",
                              (long long)all);
            return;
        }
        *parts[i] = onnx_split_heads(c, onnx_sliced(c, packed, 2, begin, begin + size, 1), heads);
        begin += size;
    }
    if (c->status) return;
    for (int64_t i = 0; past != BERTH_NONE && i < 2; ++i)
        old[i] = onnx_squeezed(c, onnx_sliced(c, past, 0, i, i + 1, 1), 0);
    a.k = append(c, old[0], a.k);
    a.v = append(c, old[1], a.v);
    hide_keys(c, &a, mask);
    if (onnx_call_int(c->call, "unidirectional", 0)) look_back(c, &a, old[0], -1);
    onnx_compose_output(c, 0, onnx_join_heads(c, onnx_attend(c, &a)));
    if (!onnx_compose_wants(c, 1)) return;
    berth_value_id present[2] = {onnx_unsqueezed(c, a.k, 0), onnx_unsqueezed(c, a.v, 0)};
    onnx_compose_output(c, 1, onnx_concatenated(c, present, 2, 0));
}

berth_status onnx_build_ms_attention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 2, 6);
    berth_value_id packed =
        onnx_make2(&c, BERTH_OP_MATMUL, onnx_compose_input(&c, 0), onnx_compose_input(&c, 1));
    berth_value_id bias = onnx_compose_input(&c, 2);
    if (bias != BERTH_NONE) packed = onnx_add(&c, packed, bias);
    if (!c.status)
        attend_to_packed(&c, packed, onnx_compose_input(&c, 3), onnx_compose_input(&c, 4),
                         onnx_compose_input(&c, 5));
    return c.status;
}

// Input, weights, bias, the scales of both, mask, the zero points of both, past.
berth_status onnx_build_ms_qattention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 5, 9);
    berth_value_id operands[4] = {onnx_compose_input(&c, 0), onnx_compose_input(&c, 1),
                                  onnx_compose_input(&c, 6), onnx_compose_input(&c, 7)};
    berth_value_id scale = onnx_mul(&c, onnx_compose_input(&c, 3), onnx_compose_input(&c, 4));
    berth_value_id packed = onnx_make(&c, BERTH_OP_MATMUL_INTEGER, operands, 4);
    packed = onnx_mul(&c, onnx_cast_to(&c, packed, onnx_compose_dtype(&c, scale)), scale);
    packed = onnx_add(&c, packed, onnx_compose_input(&c, 2));
    if (!c.status)
        attend_to_packed(&c, packed, onnx_compose_input(&c, 5), onnx_compose_input(&c, 8),
                         BERTH_NONE);
    return c.status;
}

// ---- GroupQueryAttention ----

// The queries, keys and values in heads, before anything is turned. `past_k` and `past_v` may be BERTH_NONE. The past
// either grows, so that what comes after it is all of its rows and the new ones; or it is a buffer of which each row
// of the batch fills a part, the new rows come behind that part, and the rows stay as many as they are.
typedef struct group_query {
    onnx_attention a;
    berth_value_id past_k, past_v;
    berth_value_id lengths;  // (batch): seqlens_k, one less than the keys of each
    berth_value_id total;    // the most keys of a row of the batch; BERTH_NONE: not given
    bool rotates;
    int64_t left;
} group_query;

// Queries or keys (batch, heads, sequence, size) turned by their places, which follow `offset`: i64, a scalar or
// (batch, 1) from data.
static berth_value_id turned(onnx_compose *c, berth_value_id x, berth_value_id offset) {
    berth_value_id given = onnx_compose_input(c, 9), tables[2];
    berth_value_id places = given;
    const bool each = offset != BERTH_NONE && onnx_compose_rank(c, offset) == 2;
    if (given == BERTH_NONE) {
        places = onnx_counting(c, onnx_extent_of(c, x, 2));
        if (offset != BERTH_NONE) places = onnx_add(c, places, offset);
        if (!each) places = onnx_unsqueezed(c, places, 0);
    }
    int64_t half = onnx_compose_known_extent(c, onnx_compose_input(c, 7), "cos_cache", 1);
    for (uint32_t i = 0; i < 2; ++i) {
        berth_value_id table = onnx_compose_input(c, 7 + i);
        table = given == BERTH_NONE && !each ? onnx_gathered(c, table, places, 0)
                                             : onnx_picked(c, table, places, 0);
        tables[i] = onnx_unsqueezed(c, table, 1);
    }
    return onnx_rotated(c, x, tables[0], tables[1], 2 * half,
                        onnx_call_int(c->call, "rotary_interleaved", 0) != 0);
}

// q, but a run fails where `wrong`, i64 (batch), is not 0: it is an index of one element.
static berth_value_id fails_where(onnx_compose *c, berth_value_id q, berth_value_id wrong) {
    wrong = onnx_reshaped(c, wrong, (int64_t[]){-1, 1, 1, 1}, 4);
    berth_value_id zero = onnx_reshaped(c, onnx_like(c, q, 0), (int64_t[]){1}, 1);
    return onnx_add(c, q, onnx_picked(c, zero, wrong, 0));
}

// A run fails where rows of the batch do not all have the whole past and the new keys, which seqlens_k says. Without past,
// keys after a row's own are those that no query of it sees.
static berth_value_id of_whole_pasts(onnx_compose *c, const group_query *g) {
    if (g->past_k == BERTH_NONE || g->lengths == BERTH_NONE) return g->a.q;
    berth_value_id before = onnx_extent_of(c, g->past_k, 2);
    berth_value_id last = onnx_add(c, before, onnx_extent_of(c, g->a.q, 2));
    last = onnx_sub(c, last, onnx_scalar(c, BERTH_DTYPE_I64, 1));
    berth_value_id less = onnx_sub(c, g->lengths, last);
    berth_value_id any = onnx_make2(c, BERTH_OP_MIN, before, onnx_scalar(c, BERTH_DTYPE_I64, 1));
    return fails_where(c, g->a.q, onnx_mul(c, onnx_mul(c, less, less), any));
}

static void attend_after_all(onnx_compose *c, const group_query *g, berth_value_id out[3]) {
    onnx_attention a = g->a;
    berth_value_id offset = BERTH_NONE;
    a.q = of_whole_pasts(c, g);
    if (g->past_k != BERTH_NONE) offset = onnx_extent_of(c, g->past_k, 2);
    if (g->rotates) a.q = turned(c, a.q, offset);
    if (g->rotates) a.k = turned(c, a.k, offset);
    a.k = append(c, g->past_k, a.k);
    a.v = append(c, g->past_v, a.v);
    look_back(c, &a, g->past_k, g->left);
    out[0] = onnx_join_heads(c, onnx_attend(c, &a));
    out[1] = a.k;
    out[2] = a.v;
}

// The buffer with new rows (batch, heads, count, size) in it. `local`, (batch, rows): which of the new rows a row of the buffer
// is; one that is none of them stays.
static berth_value_id put_into(onnx_compose *c, berth_value_id buffer, berth_value_id rows,
                               berth_value_id local, int64_t count) {
    const int64_t swapped[] = {0, 2, 1, 3};
    const berth_value_id zero = onnx_scalar(c, BERTH_DTYPE_I64, 0);
    const berth_value_id last = onnx_scalar(c, BERTH_DTYPE_I64, (double)count - 1);
    berth_value_id is_new = onnx_both(c, onnx_make2(c, BERTH_OP_GREATER_OR_EQUAL, local, zero),
                                      onnx_make2(c, BERTH_OP_LESS_OR_EQUAL, local, last));
    is_new = onnx_unsqueezed(c, onnx_unsqueezed(c, is_new, 1), 3);
    if (count > 1) {
        berth_value_id index = onnx_make2(c, BERTH_OP_MIN, local, last);
        index = onnx_unsqueezed(c, onnx_make2(c, BERTH_OP_MAX, index, zero), 2);
        const berth_value_id inputs[] = {onnx_transposed(c, rows, swapped, 4), index};
        onnx_made made = onnx_start(c, BERTH_OP_GATHER_ND, inputs, 2, 1);
        onnx_set_int(made, "batch_dims", 1);
        onnx_set_int(made, BERTH_ATTR_IN_RANGE, 1);
        rows = onnx_transposed(c, onnx_finish(made), swapped, 4);
    }
    return onnx_where(c, is_new, rows, buffer);
}

// As ONNX Runtime with one buffer for past and present. Where all keys are new, none were there before; a run fails where the
// keys are more than the buffer has room for.
static void attend_in_buffer(onnx_compose *c, const group_query *g, berth_value_id out[3]) {
    onnx_attention a = g->a;
    const int64_t count = onnx_compose_known_extent(c, a.q, "the queries", 2);
    const berth_value_id zero = onnx_scalar(c, BERTH_DTYPE_I64, 0);
    const berth_value_id now = onnx_scalar(c, BERTH_DTYPE_I64, (double)count);
    const berth_value_id room = onnx_extent_of(c, g->past_k, 2);
    const berth_value_id is_first = onnx_make2(c, BERTH_OP_EQUAL, g->total, now);
    const berth_value_id keys = onnx_add(c, g->lengths, onnx_scalar(c, BERTH_DTYPE_I64, 1));
    berth_value_id before = onnx_where(c, is_first, zero, onnx_sub(c, keys, now));
    const berth_value_id too_many = onnx_sub(
        c, onnx_make2(c, BERTH_OP_MAX, onnx_make2(c, BERTH_OP_MAX, keys, g->total), room), room);
    const berth_value_id too_few = onnx_sub(c, onnx_make2(c, BERTH_OP_MAX, before, zero), before);
    a.q = fails_where(c, a.q, onnx_add(c, too_many, too_few));
    before = onnx_reshaped(c, before, (int64_t[]){-1, 1}, 2);
    if (g->rotates) a.q = turned(c, a.q, before);
    if (g->rotates) a.k = turned(c, a.k, before);
    const berth_value_id local = onnx_sub(c, onnx_counting(c, room), before);
    a.k = put_into(c, g->past_k, a.k, local, count);
    a.v = put_into(c, g->past_v, a.v, local, count);
    const berth_value_id offset = onnx_reshaped(c, before, (int64_t[]){-1, 1, 1, 1}, 4);
    a.allowed = onnx_attention_places(c, now, room, offset, BERTH_NONE, g->left, 0);
    out[0] = onnx_join_heads(c, onnx_attend(c, &a));
    out[1] = a.k;
    out[2] = a.v;
}

// Whether the past grows is known when the total is: with its value, or the shape that it comes from.
static void attend_either_way(onnx_compose *c, const group_query *g, int64_t all) {
    onnx_importer *im = c->call->im;
    const berth_value_id grows = onnx_squeezed(
        c, onnx_make2(c, BERTH_OP_EQUAL, g->total, onnx_scalar(c, BERTH_DTYPE_I64, (double)all)),
        0);
    if (c->status) return;
    const berth_op_id op = onnx_call_op(c->call, BERTH_OP_IF, &grows, 1, 3);
    const berth_region_id outer = im->region;
    for (uint32_t i = 0; i < 2 && !c->status; ++i) {
        berth_value_id results[3] = {BERTH_NONE, BERTH_NONE, BERTH_NONE};
        im->region = berth_graph_add_region(im->module, im->function, op);
        if (i == 0)
            attend_after_all(c, g, results);
        else
            attend_in_buffer(c, g, results);
        if (!c->status)
            berth_graph_set_region_results(im->module, im->function, im->region, results, 3);
        im->region = outer;
    }
    for (uint32_t i = 0; i < 3; ++i) onnx_compose_output(c, i, onnx_call_result(c->call, op, i));
    if (!c->status) c->status = onnx_call_infer(c->call, op);
}

static void attend_to_group(onnx_compose *c, const group_query *g) {
    const berth_tensor *total = onnx_call_constant(c->call, onnx_compose_input(c, 6));
    const bool known = total && berth_tensor_element_count(total) == 1;
    const int64_t before = g->past_k == BERTH_NONE ? 0 : onnx_compose_extent(c, g->past_k, 2);
    const int64_t now = onnx_compose_extent(c, g->a.q, 2);
    const bool grows = g->past_k == BERTH_NONE || g->lengths == BERTH_NONE ||
                       g->total == BERTH_NONE || before < 1 || now < 0 ||
                       (known && berth_tensor_get_i64(total, 0) == before + now);
    berth_value_id results[3] = {BERTH_NONE, BERTH_NONE, BERTH_NONE};
    if (!grows && !known) {
        attend_either_way(c, g, before + now);
        return;
    }
    if (grows)
        attend_after_all(c, g, results);
    else
        attend_in_buffer(c, g, results);
    for (uint32_t i = 0; i < 3; ++i) onnx_compose_output(c, i, results[i]);
}

// q, k and v as they are given, or all in q, in heads.
static void read_group(onnx_compose *c, group_query *g, int64_t heads, int64_t key_heads) {
    berth_value_id q = onnx_compose_input(c, 0), k = onnx_compose_input(c, 1);
    berth_value_id v = onnx_compose_input(c, 2);
    if (!c->status && k == BERTH_NONE) {
        int64_t all = onnx_compose_known_extent(c, q, "the queries", 2);
        int64_t size = all / (heads + 2 * key_heads);
        k = onnx_sliced(c, q, 2, heads * size, (heads + key_heads) * size, 1);
        v = onnx_sliced(c, q, 2, (heads + key_heads) * size, all, 1);
        q = onnx_sliced(c, q, 2, 0, heads * size, 1);
    }
    if (c->status) return;
    g->a.q = onnx_split_heads(c, q, heads);
    g->a.k = onnx_split_heads(c, k, key_heads);
    g->a.v = onnx_split_heads(c, v, key_heads);
    if (g->a.sink != BERTH_NONE)  // of each head
        g->a.sink = onnx_reshaped(c, g->a.sink, (int64_t[]){1, heads, 1, 1}, 4);
    else if (g->a.has_sink)
        g->a.sink = onnx_like(c, g->a.q, 0);
    if (g->lengths != BERTH_NONE)
        g->lengths =
            onnx_reshaped(c, onnx_cast_to(c, g->lengths, BERTH_DTYPE_I64), (int64_t[]){-1}, 1);
    if (g->total != BERTH_NONE)
        g->total = onnx_reshaped(c, onnx_cast_to(c, g->total, BERTH_DTYPE_I64), (int64_t[]){1}, 1);
}

berth_status onnx_build_ms_group_query_attention(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 12);
    int64_t heads = onnx_call_int(call, "num_heads", 0),
            key_heads = onnx_call_int(call, "kv_num_heads", 0);
    int64_t window = onnx_call_int(call, "local_window_size", -1);
    group_query g = {.a = {.bias = onnx_compose_input(&c, 10),
                           .allowed = BERTH_NONE,
                           .scale = onnx_call_float(call, "scale", 0),
                           .softcap = onnx_call_float(call, "softcap", 0),
                           .sink = onnx_compose_input(&c, 11)},
                     .past_k = onnx_compose_input(&c, 3),
                     .past_v = onnx_compose_input(&c, 4),
                     .lengths = onnx_compose_input(&c, 5),
                     .total = onnx_compose_input(&c, 6),
                     .rotates = onnx_call_int(call, "do_rotary", 0) != 0,
                     .left = window < 1 ? -1 : window - 1};
    g.a.has_sink = g.a.sink != BERTH_NONE || onnx_call_int(call, "smooth_softmax", 0) == 1;
    if ((g.past_k == BERTH_NONE) != (g.past_v == BERTH_NONE) ||
        onnx_call_has(call, 1) != onnx_call_has(call, 2) || heads < 1 || key_heads < 1 ||
        heads > INT32_MAX || key_heads > INT32_MAX)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT,
                          "keys without values, or no num_heads and kv_num_heads");
    if (g.rotates && !(onnx_call_has(call, 7) && onnx_call_has(call, 8)))
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "do_rotary without cos_cache and sin_cache");
    read_group(&c, &g, heads, key_heads);
    if (!c.status) attend_to_group(&c, &g);
    return c.status;
}
