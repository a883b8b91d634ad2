// Data movement by position: every output element is an input element at a place computed from the
// output's, or a fill value.
#include <stdlib.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

berth_status berth_eval__transpose(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    uint32_t count = 0;
    const int64_t *perm = berth_attrs_ints(ctx->module, &ctx->op->attrs, "perm", &count);
    if (perm && count != (uint32_t)x->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "perm has %u entries for rank %d", count,
                                 x->rank);
    int64_t own[BERTH_MAX_RANK], strides[BERTH_MAX_RANK], dims[BERTH_MAX_RANK];
    uint32_t seen = 0;
    berth_eval__strides(x, own);
    for (int i = 0; i < x->rank; ++i) {
        int axis = x->rank - 1 - i;
        if (perm) BERTH_TRY(berth_axis_resolve(perm[i], x->rank, "perm", &axis));
        seen |= 1u << axis;
        dims[i] = x->dims[axis];
        strides[i] = own[axis];
    }
    if (seen != (1u << x->rank) - 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "perm is not a permutation");
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    berth_eval__strided_copy(x, 0, strides, &ctx->outputs[0]);
    return BERTH_OK;
}

berth_status berth_eval__expand_op(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t shape[BERTH_MAX_RANK], dims[BERTH_MAX_RANK];
    int shape_rank = 0, rank = 0;
    BERTH_TRY(berth_eval__vector(&ctx->inputs[1], "shape", shape, &shape_rank));
    BERTH_TRY(berth_shape_size_bytes(x->dtype, shape_rank, shape, NULL, NULL));
    BERTH_TRY(berth_broadcast_dims(x->dims, x->rank, shape, shape_rank, dims, &rank));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, rank, dims));
    berth_tensor expanded;
    BERTH_TRY(berth_eval__expand(ctx, x, rank, dims, &expanded));
    size_t size = berth_tensor_size_bytes(&expanded);
    if (size) memcpy(ctx->outputs[0].data, expanded.data, size);
    return BERTH_OK;
}

berth_status berth_eval__tile(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t repeats[BERTH_MAX_RANK], dims[BERTH_MAX_RANK], strides[BERTH_MAX_RANK];
    int count = 0;
    BERTH_TRY(berth_eval__vector(&ctx->inputs[1], "repeats", repeats, &count));
    if (count != x->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "repeats has %d entries for rank %d",
                                 count, x->rank);
    for (int i = 0; i < count; ++i)
        if (repeats[i] < 0 || __builtin_mul_overflow(x->dims[i], repeats[i], &dims[i]))
            return berth_status_make(BERTH_OUT_OF_RANGE, "repeats[%d] = %lld", i,
                                     (long long)repeats[i]);
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    berth_eval__strides(x, strides);
    int64_t index[BERTH_MAX_RANK] = {0}, total = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < total; ++i, berth_eval__next(index, dims, x->rank)) {
        int64_t from = 0;
        for (int d = 0; d < x->rank; ++d) from += index[d] % x->dims[d] * strides[d];
        berth_eval__copy_element(ctx->outputs[0].data, i, x->data, from,
                                 berth_dtype_size_bytes(x->dtype));
    }
    return BERTH_OK;
}

// Copies between `whole` at [at, at + part extent) of `axis` and `part`.
static void copy_part(const berth_tensor *whole, const berth_tensor *part, int axis, int64_t at,
                      bool into_whole) {
    size_t size = berth_dtype_size_bytes(whole->dtype);
    size_t inner = (size_t)berth_eval__product(whole->dims, axis + 1, whole->rank) * size;
    int64_t outer = berth_eval__product(whole->dims, 0, axis);
    size_t run = inner * (size_t)part->dims[axis], step = inner * (size_t)whole->dims[axis];
    for (int64_t o = 0; run && o < outer; ++o) {
        char *big = (char *)whole->data + (size_t)o * step + (size_t)at * inner;
        char *small = (char *)part->data + (size_t)o * run;
        memcpy(into_whole ? big : small, into_whole ? small : big, run);
    }
}

berth_status berth_eval__concat(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int axis = 0;
    int64_t dims[BERTH_MAX_RANK], at = 0;
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    memcpy(dims, x->dims, sizeof(dims));
    dims[axis] = 0;
    for (uint32_t k = 0; k < ctx->op->input_count; ++k) {
        const berth_tensor *part = &ctx->inputs[k];
        bool fits = part->rank == x->rank && part->dtype == x->dtype;
        for (int i = 0; fits && i < x->rank; ++i) fits = i == axis || part->dims[i] == x->dims[i];
        if (!fits || __builtin_add_overflow(dims[axis], part->dims[axis], &dims[axis]))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "operand %u does not fit operand 0 outside axis %d", k, axis);
    }
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    for (uint32_t k = 0; k < ctx->op->input_count; ++k) {
        copy_part(&ctx->outputs[0], &ctx->inputs[k], axis, at, true);
        at += ctx->inputs[k].dims[axis];
    }
    return BERTH_OK;
}

berth_status berth_eval__append(berth_eval_context *ctx) {
    if (ctx->op->input_count == 2) return berth_eval__concat(ctx);
    return berth_status_make(BERTH_UNSUPPORTED,
                             "what the cache has is in the memory of a run, not in the module");
}

// Extents of the parts: the operand `split`, or equal parts with a smaller last one.
static berth_status split_sizes(const berth_eval_context *ctx, int64_t extent, int64_t *out_sizes) {
    const berth_tensor *split = berth_eval__optional(ctx, 1);
    uint32_t count = ctx->op->output_count;
    int64_t total = 0;
    if (split) BERTH_TRY(berth_eval__need_count(split, "split", count));
    int64_t part = (extent + count - 1) / count;
    for (uint32_t i = 0; i < count; ++i) {
        int64_t rest = extent - total;
        out_sizes[i] = split ? berth_tensor_get_i64(split, i) : part < rest ? part : rest;
        if (out_sizes[i] < 0 || out_sizes[i] > rest)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "part %u does not fit the extent %lld",
                                     i, (long long)extent);
        total += out_sizes[i];
    }
    if (total != extent)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the parts cover %lld of %lld",
                                 (long long)total, (long long)extent);
    return BERTH_OK;
}

berth_status berth_eval__split(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int axis = 0;
    int64_t dims[BERTH_MAX_RANK], at = 0;
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    int64_t *sizes = berth_eval__indices(ctx, ctx->op->output_count);
    BERTH_TRY(split_sizes(ctx, x->dims[axis], sizes));
    memcpy(dims, x->dims, sizeof(dims));
    for (uint32_t k = 0; k < ctx->op->output_count; ++k) {
        dims[axis] = sizes[k];
        BERTH_TRY(berth_eval__output(ctx, k, x->dtype, x->rank, dims));
        copy_part(x, &ctx->outputs[k], axis, at, false);
        at += sizes[k];
    }
    return BERTH_OK;
}

berth_status berth_eval__slice(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    const berth_tensor *axes = berth_eval__optional(ctx, 3), *steps = berth_eval__optional(ctx, 4);
    int64_t starts[BERTH_MAX_RANK], ends[BERTH_MAX_RANK], axis_list[BERTH_MAX_RANK];
    int64_t step_list[BERTH_MAX_RANK], dims[BERTH_MAX_RANK], strides[BERTH_MAX_RANK], base = 0;
    int count = 0, end_count = 0, axis_count = 0, step_count = 0;
    BERTH_TRY(berth_eval__vector(&ctx->inputs[1], "starts", starts, &count));
    BERTH_TRY(berth_eval__vector(&ctx->inputs[2], "ends", ends, &end_count));
    if (axes) BERTH_TRY(berth_eval__vector(axes, "axes", axis_list, &axis_count));
    if (steps) BERTH_TRY(berth_eval__vector(steps, "steps", step_list, &step_count));
    if (end_count != count || (axes && axis_count != count) || (steps && step_count != count) ||
        count > x->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "starts, ends, axes and steps differ in length");
    memcpy(dims, x->dims, sizeof(dims));
    berth_eval__strides(x, strides);
    for (int i = 0; i < count; ++i) {
        int axis = i;
        int64_t start = 0;
        if (axes) BERTH_TRY(berth_axis_resolve(axis_list[i], x->rank, "axes", &axis));
        int64_t step = steps ? step_list[i] : 1;
        if (step == 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "steps has an entry that is 0");
        dims[axis] = berth_slice_axis(x->dims[axis], starts[i], ends[i], step, &start);
        base += start * strides[axis];
        strides[axis] = dims[axis] > 1 ? strides[axis] * step : 0;
    }
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    berth_eval__strided_copy(x, base, strides, &ctx->outputs[0]);
    return BERTH_OK;
}

// ---- pad

// Place in [0, extent) that output position `at` (relative to the input's start) reads, or -1 for
// the fill value.
static int64_t pad_source(char mode, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent) return at;
    if (mode == 'c' || extent == 0) return -1;
    if (mode == 'e') return at < 0 ? 0 : extent - 1;
    if (mode == 'w') return ((at % extent) + extent) % extent;
    if (extent == 1) return 0;
    int64_t period = 2 * (extent - 1);  // reflect
    int64_t place = ((at % period) + period) % period;
    return place < extent ? place : period - place;
}

static berth_status pad_extents(const berth_eval_context *ctx, const berth_tensor *x,
                                int64_t *begin, int64_t *dims) {
    const berth_tensor *pads = &ctx->inputs[1], *axes = berth_eval__optional(ctx, 3);
    int64_t list[BERTH_MAX_RANK];
    int count = x->rank;
    if (axes) BERTH_TRY(berth_eval__vector(axes, "axes", list, &count));
    BERTH_TRY(berth_eval__need_count(pads, "pads", 2 * (int64_t)count));
    memcpy(dims, x->dims, sizeof(int64_t) * BERTH_MAX_RANK);
    for (int i = 0; i < count; ++i) {
        int axis = i;
        if (axes) BERTH_TRY(berth_axis_resolve(list[i], x->rank, "axes", &axis));
        begin[axis] = berth_tensor_get_i64(pads, i);
        int64_t end = berth_tensor_get_i64(pads, i + count);
        if (begin[axis] < -INT32_MAX || begin[axis] > INT32_MAX || end < -INT32_MAX ||
            end > INT32_MAX)
            return berth_status_make(BERTH_OUT_OF_RANGE, "pads has an entry beyond 31 bits");
        dims[axis] = x->dims[axis] + begin[axis] + end;
        if (dims[axis] < 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "pads remove more than dimension %d has", axis);
    }
    return BERTH_OK;
}

berth_status berth_eval__pad(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *fill = berth_eval__optional(ctx, 2);
    const char *mode = berth_eval__string(ctx, "mode", "constant");
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "edge") != 0 &&
        strcmp(mode, "reflect") != 0 && strcmp(mode, "wrap") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "mode %s is not known", mode);
    int64_t begin[BERTH_MAX_RANK] = {0}, dims[BERTH_MAX_RANK], strides[BERTH_MAX_RANK];
    BERTH_TRY(pad_extents(ctx, x, begin, dims));
    if (fill) BERTH_TRY(berth_eval__need_count(fill, "constant_value", 1));
    if (fill && fill->dtype != x->dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "constant_value is not %s",
                                 berth_dtype_name(x->dtype));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, dims));
    berth_eval__strides(x, strides);
    size_t size = berth_dtype_size_bytes(x->dtype);
    int64_t index[BERTH_MAX_RANK] = {0}, total = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < total; ++i, berth_eval__next(index, dims, x->rank)) {
        int64_t from = 0;
        for (int d = 0; d < x->rank && from >= 0; ++d) {
            int64_t place = pad_source(mode[0], index[d] - begin[d], x->dims[d]);
            from = place < 0 ? -1 : from + place * strides[d];
        }
        if (from >= 0)
            berth_eval__copy_element(ctx->outputs[0].data, i, x->data, from, size);
        else if (fill)
            berth_eval__copy_element(ctx->outputs[0].data, i, fill->data, 0, size);
    }
    return BERTH_OK;
}

// ---- blocks and others

static berth_status read_block(const berth_eval_context *ctx, int64_t *out_block) {
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 4, 4));
    *out_block = berth_eval__int(ctx, "blocksize", 0);
    if (*out_block > 0 && *out_block < INT16_MAX) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "blocksize is %lld", (long long)*out_block);
}

// Copies x, seen as [n, ...six], into output 0 with axes in `order`.
static void block_copy(berth_eval_context *ctx, const int64_t six[6], const int order[6]) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_tensor source = {.dtype = x->dtype, .rank = 6, .data = x->data}, out = source;
    int64_t own[BERTH_MAX_RANK], strides[BERTH_MAX_RANK];
    memcpy(source.dims, six, 6 * sizeof(int64_t));
    berth_eval__strides(&source, own);
    out.data = ctx->outputs[0].data;
    for (int i = 0; i < 6; ++i) {
        out.dims[i] = six[order[i]];
        strides[i] = own[order[i]];
    }
    berth_eval__strided_copy(&source, 0, strides, &out);
}

berth_status berth_eval__depth_to_space(berth_eval_context *ctx) {
    int64_t block = 0;
    BERTH_TRY(read_block(ctx, &block));
    const int64_t *d = ctx->inputs[0].dims;
    bool crd = strcmp(berth_eval__string(ctx, "mode", "DCR"), "CRD") == 0;
    if (d[1] % (block * block) != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%lld channels are no multiple of blocksize squared",
                                 (long long)d[1]);
    int64_t channels = d[1] / (block * block);
    int64_t dims[4] = {d[0], channels, d[2] * block, d[3] * block};
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, 4, dims));
    if (crd)
        block_copy(ctx, (int64_t[]){d[0], channels, block, block, d[2], d[3]},
                   (int[]){0, 1, 4, 2, 5, 3});
    else
        block_copy(ctx, (int64_t[]){d[0], block, block, channels, d[2], d[3]},
                   (int[]){0, 3, 4, 1, 5, 2});
    return BERTH_OK;
}

berth_status berth_eval__space_to_depth(berth_eval_context *ctx) {
    int64_t block = 0;
    BERTH_TRY(read_block(ctx, &block));
    const int64_t *d = ctx->inputs[0].dims;
    if (d[2] % block != 0 || d[3] % block != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%lld x %lld is no multiple of blocksize",
                                 (long long)d[2], (long long)d[3]);
    int64_t dims[4] = {d[0], d[1] * block * block, d[2] / block, d[3] / block};
    BERTH_TRY(berth_eval__output(ctx, 0, ctx->inputs[0].dtype, 4, dims));
    bool crd = strcmp(berth_eval__string(ctx, "mode", "DCR"), "CRD") == 0;
    block_copy(ctx, (int64_t[]){d[0], d[1], dims[2], block, dims[3], block},
               crd ? (int[]){0, 1, 3, 5, 2, 4} : (int[]){0, 3, 5, 1, 2, 4});
    return BERTH_OK;
}

berth_status berth_eval__reverse_sequence(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *lengths = &ctx->inputs[1];
    int batch = 0, time = 0;
    int64_t strides[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    BERTH_TRY(
        berth_axis_resolve(berth_eval__int(ctx, "batch_axis", 1), x->rank, "batch_axis", &batch));
    BERTH_TRY(
        berth_axis_resolve(berth_eval__int(ctx, "time_axis", 0), x->rank, "time_axis", &time));
    BERTH_TRY(berth_eval__need_count(lengths, "sequence_lens", x->dims[batch]));
    for (int64_t i = 0; i < x->dims[batch]; ++i) {
        int64_t length = berth_tensor_get_i64(lengths, i);
        if (length < 0 || length > x->dims[time])
            return berth_status_make(BERTH_OUT_OF_RANGE, "sequence_lens has %lld of %lld",
                                     (long long)length, (long long)x->dims[time]);
    }
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    berth_eval__strides(x, strides);
    int64_t index[BERTH_MAX_RANK] = {0}, total = berth_tensor_element_count(x);
    for (int64_t i = 0; i < total; ++i, berth_eval__next(index, x->dims, x->rank)) {
        int64_t length = berth_tensor_get_i64(lengths, index[batch]), t = index[time];
        int64_t from = t < length ? i + (length - 1 - 2 * t) * strides[time] : i;
        berth_eval__copy_element(ctx->outputs[0].data, i, x->data, from,
                                 berth_dtype_size_bytes(x->dtype));
    }
    return BERTH_OK;
}

berth_status berth_eval__trilu(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *k = berth_eval__optional(ctx, 1);
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    if (k) BERTH_TRY(berth_eval__need_count(k, "k", 1));
    bool upper = berth_eval__int(ctx, "upper", 1) != 0;
    int64_t shift = k ? berth_tensor_get_i64(k, 0) : 0;
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    int64_t total = berth_tensor_element_count(x);
    for (int64_t i = 0; i < total; ++i) {
        int64_t diagonal = i % columns - i / columns % rows;
        if (upper ? diagonal >= shift : diagonal <= shift)
            berth_eval__copy_element(ctx->outputs[0].data, i, x->data, i,
                                     berth_dtype_size_bytes(x->dtype));
    }
    return BERTH_OK;
}

berth_status berth_eval__eye_like(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, 2));
    int64_t shift = berth_eval__int(ctx, "k", 0);
    BERTH_TRY(berth_eval__output(ctx, 0, berth_eval__dtype(ctx, "dtype", x->dtype), 2, x->dims));
    for (int64_t i = 0; i < x->dims[0]; ++i)
        if (shift < x->dims[1] && i + shift >= 0 && i + shift < x->dims[1])
            berth_eval__set_f64(&ctx->outputs[0], i * x->dims[1] + i + shift, 1);
    return BERTH_OK;
}
