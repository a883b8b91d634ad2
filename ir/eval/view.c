// Views (the output shares the operand's data), shapes and ranges, constants.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

// Output 0 = operand 0 under another shape. Errors: INVALID_ARGUMENT when the counts differ.
static berth_status set_view(berth_eval_context *ctx, int rank, const int64_t *dims) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t count = 0;
    BERTH_TRY(berth_shape_size_bytes(x->dtype, rank, dims, &count, NULL));
    if (count != berth_tensor_element_count(x))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%lld elements do not fit a shape of %lld elements",
                                 (long long)berth_tensor_element_count(x), (long long)count);
    berth_tensor view = {.dtype = x->dtype, .rank = rank, .data = x->data};
    memcpy(view.dims, dims, (size_t)rank * sizeof(*dims));
    ctx->outputs[0] = view;
    return BERTH_OK;
}

berth_status berth_eval__identity(berth_eval_context *ctx) {
    return set_view(ctx, ctx->inputs[0].rank, ctx->inputs[0].dims);
}

berth_status berth_eval__bit_cast(berth_eval_context *ctx) {
    berth_dtype to = berth_eval__dtype(ctx, "to", BERTH_DTYPE_NONE);
    const berth_tensor *x = &ctx->inputs[0];
    if (berth_dtype_size_bytes(to) != berth_dtype_size_bytes(x->dtype))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has another size than %s",
                                 berth_dtype_name(to), berth_dtype_name(x->dtype));
    BERTH_TRY(set_view(ctx, x->rank, x->dims));
    ctx->outputs[0].dtype = to;
    return BERTH_OK;
}

berth_status berth_eval__constant(berth_eval_context *ctx) {
    const berth_attr *value = berth_attrs_find(ctx->module, &ctx->op->attrs, "value");
    if (!value || value->kind != BERTH_ATTR_TENSOR || !value->tensor)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute value is missing");
    ctx->outputs[0] = berth_tensor_align(ctx->arena, value->tensor);
    return BERTH_OK;
}

berth_status berth_eval__reshape(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0, unknown = -1;
    bool allow_zero = berth_eval__int(ctx, "allowzero", 0) != 0;
    BERTH_TRY(berth_eval__vector(&ctx->inputs[1], "shape", dims, &rank));
    for (int i = 0; i < rank; ++i) {
        if (dims[i] == 0 && !allow_zero) {
            if (i >= x->rank)
                return berth_status_make(BERTH_INVALID_ARGUMENT,
                                         "shape[%d] = 0 copies a dimension that is not there", i);
            dims[i] = x->dims[i];
        }
        if (dims[i] == -1) {
            if (unknown >= 0) return berth_status_make(BERTH_INVALID_ARGUMENT, "shape has two -1");
            unknown = i;
        }
    }
    if (unknown >= 0) {
        int64_t known = 0;
        dims[unknown] = 1;
        BERTH_TRY(berth_shape_size_bytes(x->dtype, rank, dims, &known, NULL));
        dims[unknown] = known ? berth_tensor_element_count(x) / known : 0;
    }
    return set_view(ctx, rank, dims);
}

berth_status berth_eval__flatten(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t axis = berth_eval__int(ctx, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return berth_status_make(BERTH_OUT_OF_RANGE, "axis %lld is outside [-%d, %d]",
                                 (long long)axis, x->rank, x->rank);
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    int64_t dims[2] = {berth_eval__product(x->dims, 0, at),
                       berth_eval__product(x->dims, at, x->rank)};
    return set_view(ctx, 2, dims);
}

berth_status berth_eval__squeeze(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *axes = berth_eval__optional(ctx, 1);
    int64_t given[BERTH_MAX_RANK], dims[BERTH_MAX_RANK];
    int given_count = 0, rank = 0;
    bool drop[BERTH_MAX_RANK] = {false};
    if (axes) BERTH_TRY(berth_eval__vector(axes, "axes", given, &given_count));
    for (int i = 0; i < given_count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_axis_resolve(given[i], x->rank, "axes", &axis));
        if (x->dims[axis] != 1)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "dimension %d has extent %lld and cannot be squeezed", axis,
                                     (long long)x->dims[axis]);
        drop[axis] = true;
    }
    for (int i = 0; i < x->rank; ++i)
        if (axes ? !drop[i] : x->dims[i] != 1) dims[rank++] = x->dims[i];
    return set_view(ctx, rank, dims);
}

berth_status berth_eval__unsqueeze(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t given[BERTH_MAX_RANK], dims[BERTH_MAX_RANK];
    int given_count = 0, from = 0;
    bool added[BERTH_MAX_RANK] = {false};
    BERTH_TRY(berth_eval__vector(&ctx->inputs[1], "axes", given, &given_count));
    int rank = x->rank + given_count;
    if (rank > BERTH_MAX_RANK)
        return berth_status_make(BERTH_UNSUPPORTED, "rank %d is above %d", rank, BERTH_MAX_RANK);
    for (int i = 0; i < given_count; ++i) {
        int axis = 0;
        BERTH_TRY(berth_axis_resolve(given[i], rank, "axes", &axis));
        if (added[axis])
            return berth_status_make(BERTH_INVALID_ARGUMENT, "axes name %d twice", axis);
        added[axis] = true;
    }
    for (int i = 0; i < rank; ++i) dims[i] = added[i] ? 1 : x->dims[from++];
    return set_view(ctx, rank, dims);
}

berth_status berth_eval__shape_of(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    int64_t start = berth_eval__int(ctx, "start", 0), end = berth_eval__int(ctx, "end", x->rank);
    if (start < 0) start += x->rank;
    if (end < 0) end += x->rank;
    start = start < 0 ? 0 : start > x->rank ? x->rank : start;
    end = end < start ? start : end > x->rank ? x->rank : end;
    int64_t count = end - start;
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I64, 1, &count));
    berth_eval__store_i64(&ctx->outputs[0], x->dims + start);
    return BERTH_OK;
}

berth_status berth_eval__size_of(berth_eval_context *ctx) {
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_I64, 0, NULL));
    berth_tensor_set_i64(&ctx->outputs[0], 0, berth_tensor_element_count(&ctx->inputs[0]));
    return BERTH_OK;
}

berth_status berth_eval__constant_of_shape(berth_eval_context *ctx) {
    const berth_attr *value = berth_attrs_find(ctx->module, &ctx->op->attrs, "value");
    const berth_tensor *fill = value && value->kind == BERTH_ATTR_TENSOR ? value->tensor : NULL;
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    BERTH_TRY(berth_eval__vector(&ctx->inputs[0], "shape", dims, &rank));
    if (fill) BERTH_TRY(berth_eval__need_count(fill, "attribute value", 1));
    BERTH_TRY(berth_eval__output(ctx, 0, fill ? fill->dtype : BERTH_DTYPE_F32, rank, dims));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; fill && i < count; ++i)
        berth_eval__copy_element(ctx->outputs[0].data, i, fill->data, 0,
                                 berth_dtype_size_bytes(fill->dtype));
    return BERTH_OK;
}

berth_status berth_eval__range(berth_eval_context *ctx) {
    const berth_tensor *start = &ctx->inputs[0];
    berth_dtype dtype = start->dtype;
    for (int i = 0; i < 3; ++i) BERTH_TRY(berth_eval__need_count(&ctx->inputs[i], "operand", 1));
    double delta = berth_tensor_get_f64(&ctx->inputs[2], 0);
    double count =
        ceil((berth_tensor_get_f64(&ctx->inputs[1], 0) - berth_tensor_get_f64(start, 0)) / delta);
    if (delta == 0 || !(count < 0x1p48))
        return berth_status_make(BERTH_OUT_OF_RANGE, "the range has no end");
    int64_t extent = count > 0 ? (int64_t)count : 0;
    BERTH_TRY(berth_eval__output(ctx, 0, dtype, 1, &extent));
    for (int64_t i = 0; i < extent; ++i) {
        if (berth_dtype_is_float(dtype))
            berth_eval__set_f64(&ctx->outputs[0], i,
                                berth_tensor_get_f64(start, 0) + (double)i * delta);
        else
            berth_tensor_set_i64(&ctx->outputs[0], i,
                                 berth_tensor_get_i64(start, 0) +
                                     i * berth_tensor_get_i64(&ctx->inputs[2], 0));
    }
    return BERTH_OK;
}
