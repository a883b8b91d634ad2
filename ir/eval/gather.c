// Data movement by indices: gather, scatter, one_hot.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

static berth_status need_integer(const berth_tensor *indices) {
    if (berth_dtype_is_integer(indices->dtype)) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "indices are %s",
                             berth_dtype_name(indices->dtype));
}

berth_status berth_eval__gather(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1];
    int axis = 0, rank = x->rank - 1 + indices->rank;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(need_integer(indices));
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    if (rank > BERTH_MAX_RANK)
        return berth_status_make(BERTH_UNSUPPORTED, "rank %d is above %d", rank, BERTH_MAX_RANK);
    int at = 0;
    for (int i = 0; i < axis; ++i) dims[at++] = x->dims[i];
    for (int i = 0; i < indices->rank; ++i) dims[at++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; ++i) dims[at++] = x->dims[i];
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, rank, dims));
    int64_t outer = berth_eval__product(x->dims, 0, axis);
    int64_t count = berth_tensor_element_count(indices);
    size_t block =
        (size_t)berth_eval__product(x->dims, axis + 1, x->rank) * berth_dtype_size_bytes(x->dtype);
    for (int64_t j = 0; j < count; ++j) {
        int64_t index = 0;
        BERTH_TRY(berth_eval__wrap_index(berth_tensor_get_i64(indices, j), x->dims[axis], &index));
        for (int64_t o = 0; block && o < outer; ++o)
            memcpy((char *)ctx->outputs[0].data + (size_t)(o * count + j) * block,
                   (const char *)x->data + (size_t)(o * x->dims[axis] + index) * block, block);
    }
    return BERTH_OK;
}

// Offset in `x` of element `i` of `indices` (at multi-index `index`), with indices[i] on `axis`.
static berth_status element_offset(const berth_tensor *x, const int64_t *strides,
                                   const berth_tensor *indices, int64_t i, const int64_t *index,
                                   int axis, int64_t *out_offset) {
    int64_t place = 0;
    BERTH_TRY(berth_eval__wrap_index(berth_tensor_get_i64(indices, i), x->dims[axis], &place));
    *out_offset = 0;
    for (int d = 0; d < x->rank; ++d) *out_offset += (d == axis ? place : index[d]) * strides[d];
    return BERTH_OK;
}

static berth_status check_elements(const berth_tensor *x, const berth_tensor *indices, int axis) {
    BERTH_TRY(need_integer(indices));
    bool fits = indices->rank == x->rank;
    for (int i = 0; fits && i < x->rank; ++i) fits = i == axis || indices->dims[i] <= x->dims[i];
    if (fits) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "indices do not fit the data's shape");
}

berth_status berth_eval__gather_elements(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1];
    int axis = 0;
    int64_t strides[BERTH_MAX_RANK], index[BERTH_MAX_RANK] = {0};
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    BERTH_TRY(check_elements(x, indices, axis));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, indices->rank, indices->dims));
    berth_eval__strides(x, strides);
    int64_t count = berth_tensor_element_count(indices);
    for (int64_t i = 0; i < count; ++i, berth_eval__next(index, indices->dims, indices->rank)) {
        int64_t from = 0;
        BERTH_TRY(element_offset(x, strides, indices, i, index, axis, &from));
        berth_eval__copy_element(ctx->outputs[0].data, i, x->data, from,
                                 berth_dtype_size_bytes(x->dtype));
    }
    return BERTH_OK;
}

// out[offset] = out[offset] (reduction) updates[i]
static berth_status combine(berth_tensor *out, int64_t offset, const berth_tensor *updates,
                            int64_t i, const char *reduction) {
    if (strcmp(reduction, "none") == 0) {
        berth_eval__copy_element(out->data, offset, updates->data, i,
                                 berth_dtype_size_bytes(out->dtype));
        return BERTH_OK;
    }
    if (out->dtype == BERTH_DTYPE_STRING)
        return berth_status_make(BERTH_UNSUPPORTED, "reduction %s of strings", reduction);
    enum { ADD, MUL, MIN, MAX, COUNT };
    static const char *const names[COUNT] = {"add", "mul", "min", "max"};
    int what = 0;
    while (what < COUNT && strcmp(reduction, names[what]) != 0) ++what;
    if (what == COUNT)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "reduction %s is not known", reduction);
    if (berth_dtype_is_float(out->dtype)) {
        double a = berth_tensor_get_f64(out, offset), b = berth_tensor_get_f64(updates, i);
        double sum = what == ADD ? a + b : what == MUL ? a * b : (what == MIN) == (b < a) ? b : a;
        if (isnan(a) || isnan(b)) sum = NAN;  // as min and max have it
        berth_eval__set_f64(out, offset, sum);
        return BERTH_OK;
    }
    int64_t a = berth_tensor_get_i64(out, offset), b = berth_tensor_get_i64(updates, i);
    bool less = out->dtype == BERTH_DTYPE_U64 ? (uint64_t)b < (uint64_t)a : b < a;
    uint64_t sum = (uint64_t)a + (uint64_t)b, product = (uint64_t)a * (uint64_t)b;
    berth_tensor_set_i64(out, offset,
                         what == ADD             ? (int64_t)sum
                         : what == MUL           ? (int64_t)product
                         : (what == MIN) == less ? b
                                                 : a);
    return BERTH_OK;
}

static berth_status copy_input(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    if (ctx->inputs[2].dtype != x->dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "updates are not %s",
                                 berth_dtype_name(x->dtype));
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
    size_t size = berth_tensor_size_bytes(x);
    if (size) memcpy(ctx->outputs[0].data, x->data, size);
    return BERTH_OK;
}

berth_status berth_eval__scatter_elements(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1], *updates = &ctx->inputs[2];
    int axis = 0;
    int64_t strides[BERTH_MAX_RANK], index[BERTH_MAX_RANK] = {0};
    const char *reduction = berth_eval__string(ctx, "reduction", "none");
    BERTH_TRY(berth_eval__axis(ctx, 0, x->rank, &axis));
    BERTH_TRY(check_elements(x, indices, axis));
    int64_t count = berth_tensor_element_count(indices);
    BERTH_TRY(berth_eval__need_count(updates, "updates", count));
    BERTH_TRY(copy_input(ctx));
    berth_eval__strides(x, strides);
    for (int64_t i = 0; i < count; ++i, berth_eval__next(index, indices->dims, indices->rank)) {
        int64_t to = 0;
        BERTH_TRY(element_offset(x, strides, indices, i, index, axis, &to));
        BERTH_TRY(combine(&ctx->outputs[0], to, updates, i, reduction));
    }
    return BERTH_OK;
}

// Offset of the block that tuple `i` of `indices` (`width` entries) names in dimensions
// [first, first + width) of x.
static berth_status tuple_offset(const berth_tensor *x, int first, const int64_t *strides,
                                 const berth_tensor *indices, int64_t i, int width,
                                 int64_t *out_offset) {
    *out_offset = 0;
    for (int k = 0; k < width; ++k) {
        int64_t place = 0;
        BERTH_TRY(berth_eval__wrap_index(berth_tensor_get_i64(indices, i * width + k),
                                         x->dims[first + k], &place));
        *out_offset += place * strides[first + k];
    }
    return BERTH_OK;
}

berth_status berth_eval__gather_nd(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1];
    int64_t batch = berth_eval__int(ctx, "batch_dims", 0), dims[BERTH_MAX_RANK];
    int64_t strides[BERTH_MAX_RANK];
    BERTH_TRY(need_integer(indices));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 1, BERTH_MAX_RANK));
    int64_t width = indices->dims[indices->rank - 1];
    if (batch < 0 || batch >= indices->rank || batch > x->rank || width > x->rank - batch)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "indices are wider than the data's rank");
    int b = (int)batch, w = (int)width, rank = indices->rank - 1 + x->rank - b - w;
    if (rank > BERTH_MAX_RANK)
        return berth_status_make(BERTH_UNSUPPORTED, "rank %d is above %d", rank, BERTH_MAX_RANK);
    for (int i = 0; i < b; ++i)
        if (indices->dims[i] != x->dims[i])
            return berth_status_make(BERTH_INVALID_ARGUMENT, "batch dimensions differ");
    int at = 0;
    for (int i = 0; i < indices->rank - 1; ++i) dims[at++] = indices->dims[i];
    for (int i = b + w; i < x->rank; ++i) dims[at++] = x->dims[i];
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, rank, dims));
    berth_eval__strides(x, strides);
    size_t size = berth_dtype_size_bytes(x->dtype);
    int64_t inner = berth_eval__product(x->dims, b + w, x->rank);
    int64_t tuples = berth_eval__product(indices->dims, 0, indices->rank - 1);
    int64_t batch_tuples = berth_eval__product(indices->dims, b, indices->rank - 1);
    int64_t batch_size = berth_eval__product(x->dims, b, x->rank);
    for (int64_t i = 0; inner && i < tuples; ++i) {
        int64_t from = 0;
        BERTH_TRY(tuple_offset(x, b, strides, indices, i, w, &from));
        from += i / batch_tuples * batch_size;
        memcpy((char *)ctx->outputs[0].data + (size_t)(i * inner) * size,
               (const char *)x->data + (size_t)from * size, (size_t)inner * size);
    }
    return BERTH_OK;
}

berth_status berth_eval__scatter_nd(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *indices = &ctx->inputs[1], *updates = &ctx->inputs[2];
    int64_t strides[BERTH_MAX_RANK];
    const char *reduction = berth_eval__string(ctx, "reduction", "none");
    BERTH_TRY(need_integer(indices));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 1, BERTH_MAX_RANK));
    int64_t width = indices->dims[indices->rank - 1];
    if (width > x->rank)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "indices are wider than the data's rank");
    int64_t tuples = berth_eval__product(indices->dims, 0, indices->rank - 1);
    int64_t inner = berth_eval__product(x->dims, (int)width, x->rank);
    BERTH_TRY(berth_eval__need_count(updates, "updates", tuples * inner));
    BERTH_TRY(copy_input(ctx));
    berth_eval__strides(x, strides);
    for (int64_t i = 0; i < tuples; ++i) {
        int64_t to = 0;
        BERTH_TRY(tuple_offset(x, 0, strides, indices, i, (int)width, &to));
        for (int64_t j = 0; j < inner; ++j)
            BERTH_TRY(combine(&ctx->outputs[0], to + j, updates, i * inner + j, reduction));
    }
    return BERTH_OK;
}

berth_status berth_eval__one_hot(berth_eval_context *ctx) {
    const berth_tensor *indices = &ctx->inputs[0], *values = &ctx->inputs[2];
    int axis = 0, rank = indices->rank + 1, from = 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 0, BERTH_MAX_RANK - 1));
    BERTH_TRY(berth_eval__need_count(&ctx->inputs[1], "depth", 1));
    BERTH_TRY(berth_eval__need_count(values, "values", 2));
    BERTH_TRY(berth_eval__axis(ctx, -1, rank, &axis));
    int64_t depth = berth_tensor_get_i64(&ctx->inputs[1], 0);
    for (int i = 0; i < rank; ++i) dims[i] = i == axis ? depth : indices->dims[from++];
    BERTH_TRY(berth_eval__output(ctx, 0, values->dtype, rank, dims));
    int64_t inner = berth_eval__product(dims, axis + 1, rank);
    int64_t total = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < total; ++i) {
        int64_t place = i / inner % depth;
        int64_t hot = berth_tensor_get_i64(indices, i / (inner * depth) * inner + i % inner);
        if (hot < 0) hot += depth;
        berth_eval__copy_element(ctx->outputs[0].data, i, values->data, hot == place,
                                 berth_dtype_size_bytes(values->dtype));
    }
    return BERTH_OK;
}
