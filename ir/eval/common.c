// Operands, attributes, outputs and index arithmetic of the interpreter.
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"
#include "ir/graph/op_params.h"

const berth_tensor *berth_eval__optional(const berth_eval_context *ctx, uint32_t index) {
    if (index >= ctx->op->input_count || ctx->inputs[index].dtype == BERTH_DTYPE_NONE) return NULL;
    return &ctx->inputs[index];
}

int64_t berth_eval__int(const berth_eval_context *ctx, const char *name, int64_t fallback) {
    return berth_attrs_int(ctx->module, &ctx->op->attrs, name, fallback);
}

double berth_eval__float(const berth_eval_context *ctx, const char *name, double fallback) {
    return berth_attrs_float(ctx->module, &ctx->op->attrs, name, fallback);
}

const char *berth_eval__string(const berth_eval_context *ctx, const char *name,
                               const char *fallback) {
    return berth_attrs_string(ctx->module, &ctx->op->attrs, name, fallback);
}

const double *berth_eval__floats(const berth_eval_context *ctx, const char *name,
                                 uint32_t *out_count) {
    const berth_attr *attr = berth_attrs_find(ctx->module, &ctx->op->attrs, name);
    bool found = attr && attr->kind == BERTH_ATTR_FLOATS;
    *out_count = found ? attr->count : 0;
    return found ? attr->floats : NULL;
}

const char *berth_eval__string_at(const berth_eval_context *ctx, const char *name, uint32_t index) {
    const berth_attr *attr = berth_attrs_find(ctx->module, &ctx->op->attrs, name);
    if (!attr || attr->kind != BERTH_ATTR_STRINGS || index >= attr->count) return NULL;
    return berth_module_str(ctx->module, attr->strings[index]);
}

berth_dtype berth_eval__dtype(const berth_eval_context *ctx, const char *name,
                              berth_dtype fallback) {
    const berth_attr *attr = berth_attrs_find(ctx->module, &ctx->op->attrs, name);
    return attr && attr->kind == BERTH_ATTR_DTYPE && attr->dtype ? attr->dtype : fallback;
}

berth_status berth_eval__axis(const berth_eval_context *ctx, int64_t fallback, int rank,
                              int *out_axis) {
    return berth_axis_resolve(berth_eval__int(ctx, "axis", fallback), rank, "axis", out_axis);
}

berth_status berth_eval__vector(const berth_tensor *tensor, const char *what,
                                int64_t out_values[BERTH_MAX_RANK], int *out_count) {
    int64_t count = berth_tensor_element_count(tensor);
    if (tensor->rank > 1 || count > BERTH_MAX_RANK || berth_dtype_is_float(tensor->dtype))
        return berth_status_make(BERTH_OUT_OF_RANGE, "%s must be a vector of at most %d integers",
                                 what, BERTH_MAX_RANK);
    for (int64_t i = 0; i < count; ++i) out_values[i] = berth_tensor_get_i64(tensor, i);
    *out_count = (int)count;
    return BERTH_OK;
}

berth_status berth_eval__need_rank(const berth_eval_context *ctx, uint32_t index, int min_rank,
                                   int max_rank) {
    int rank = ctx->inputs[index].rank;
    if (rank >= min_rank && rank <= max_rank) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "operand %u has rank %d; %d to %d is expected",
                             index, rank, min_rank, max_rank);
}

berth_status berth_eval__need_float(const berth_eval_context *ctx, uint32_t index) {
    if (berth_dtype_is_float(ctx->inputs[index].dtype)) return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "operand %u is %s; a floating-point type is expected", index,
                             berth_dtype_name(ctx->inputs[index].dtype));
}

berth_status berth_eval__need_count(const berth_tensor *tensor, const char *what, int64_t count) {
    int64_t given = berth_tensor_element_count(tensor);
    if (given == count) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s has %lld elements; %lld are expected",
                             what, (long long)given, (long long)count);
}

bool berth_eval__has_output(const berth_eval_context *ctx, uint32_t index) {
    return index < ctx->op->output_count;
}

berth_status berth_eval__output(berth_eval_context *ctx, uint32_t index, berth_dtype dtype,
                                int rank, const int64_t *dims) {
    if (!berth_eval__has_output(ctx, index)) return BERTH_OK;
    BERTH_TRY(berth_shape_size_bytes(dtype, rank, dims, NULL, NULL));
    ctx->outputs[index] = berth_tensor_create(ctx->arena, dtype, rank, dims);
    return BERTH_OK;
}

double *berth_eval__doubles(berth_eval_context *ctx, int64_t count) {
    return berth_arena_new_array(ctx->scratch, double, count);
}

int64_t *berth_eval__indices(berth_eval_context *ctx, int64_t count) {
    return berth_arena_new_array(ctx->scratch, int64_t, count);
}

const double *berth_eval__load_f64(berth_eval_context *ctx, const berth_tensor *tensor) {
    if (tensor->dtype == BERTH_DTYPE_F64) return tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    double *values = berth_eval__doubles(ctx, count);
    if (tensor->dtype == BERTH_DTYPE_F32) {
        const float *source = tensor->data;
        for (int64_t i = 0; i < count; ++i) values[i] = (double)source[i];
        return values;
    }
    for (int64_t i = 0; i < count; ++i) values[i] = berth_tensor_get_f64(tensor, i);
    return values;
}

const int64_t *berth_eval__load_i64(berth_eval_context *ctx, const berth_tensor *tensor) {
    if (tensor->dtype == BERTH_DTYPE_I64) return tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    int64_t *values = berth_eval__indices(ctx, count);
    for (int64_t i = 0; i < count; ++i) values[i] = berth_tensor_get_i64(tensor, i);
    return values;
}

double berth_eval__saturate(berth_dtype dtype, double value) {
    if (isnan(value)) return 0;
    if (dtype == BERTH_DTYPE_BOOL) return value != 0;
    double bits = (double)(berth_dtype_size_bytes(dtype) * 8);
    double low = berth_dtype_is_signed(dtype) ? -exp2(bits - 1) : 0;
    double high = exp2(berth_dtype_is_signed(dtype) ? bits - 1 : bits) - 1;
    return value < low ? low : value > high ? high : value;
}

void berth_eval__set_f64(berth_tensor *tensor, int64_t index, double value) {
    if (berth_dtype_is_float(tensor->dtype) || tensor->dtype == BERTH_DTYPE_BOOL) {
        berth_tensor_set_f64(tensor, index, value);
        return;
    }
    value = berth_eval__saturate(tensor->dtype, trunc(value));
    if (value >= 0x1p63) {  // 2^64 - 1 and 2^63 - 1 round up to powers of two in double
        uint64_t high = tensor->dtype == BERTH_DTYPE_I64 ? INT64_MAX
                        : value >= 0x1p64                ? UINT64_MAX
                                                         : (uint64_t)value;
        berth_tensor_set_i64(tensor, index, (int64_t)high);
        return;
    }
    berth_tensor_set_i64(tensor, index, (int64_t)value);
}

void berth_eval__store_f64(berth_tensor *tensor, const double *values) {
    int64_t count = berth_tensor_element_count(tensor);
    if (tensor->dtype == BERTH_DTYPE_F32) {
        float *out = tensor->data;
        for (int64_t i = 0; i < count; ++i) out[i] = (float)values[i];
        return;
    }
    for (int64_t i = 0; i < count; ++i) berth_eval__set_f64(tensor, i, values[i]);
}

void berth_eval__store_i64(berth_tensor *tensor, const int64_t *values) {
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_i64(tensor, i, values[i]);
}

void berth_eval__strides(const berth_tensor *tensor, int64_t out_strides[BERTH_MAX_RANK]) {
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; --i) {
        out_strides[i] = stride;
        stride *= tensor->dims[i];
    }
}

bool berth_eval__next(int64_t *index, const int64_t *dims, int rank) {
    for (int i = rank - 1; i >= 0; --i) {
        if (++index[i] < dims[i]) return true;
        index[i] = 0;
    }
    return false;
}

int64_t berth_eval__product(const int64_t *dims, int begin, int end) {
    int64_t product = 1;
    for (int i = begin; i < end; ++i) product *= dims[i];
    return product;
}

berth_status berth_eval__wrap_index(int64_t index, int64_t extent, int64_t *out_index) {
    if (index < -extent || index >= extent)
        return berth_status_make(BERTH_OUT_OF_RANGE, "index %lld is outside [-%lld, %lld)",
                                 (long long)index, (long long)extent, (long long)extent);
    *out_index = index < 0 ? index + extent : index;
    return BERTH_OK;
}

void berth_eval__strided_copy(const berth_tensor *source, int64_t base, const int64_t *strides,
                              berth_tensor *out) {
    size_t size = berth_dtype_size_bytes(out->dtype);
    int64_t count = berth_tensor_element_count(out);
    int64_t index[BERTH_MAX_RANK] = {0};
    int64_t offset = base;
    for (int64_t i = 0; i < count; ++i) {
        berth_eval__copy_element(out->data, i, source->data, offset, size);
        for (int d = out->rank - 1; d >= 0; --d) {
            offset += strides[d];
            if (++index[d] < out->dims[d]) break;
            offset -= strides[d] * out->dims[d];
            index[d] = 0;
        }
    }
}

berth_status berth_eval__expand(berth_eval_context *ctx, const berth_tensor *tensor, int rank,
                                const int64_t *dims, berth_tensor *out_tensor) {
    int64_t own[BERTH_MAX_RANK], strides[BERTH_MAX_RANK] = {0};
    bool same = tensor->rank == rank;
    berth_eval__strides(tensor, own);
    for (int i = 0; i < tensor->rank; ++i) {
        int d = i + rank - tensor->rank;
        if (d < 0 || (tensor->dims[i] != 1 && tensor->dims[i] != dims[d]))
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "an operand does not broadcast to the result's shape");
        strides[d] = tensor->dims[i] == 1 ? 0 : own[i];
        same = same && tensor->dims[i] == dims[d];
    }
    if (same) {
        *out_tensor = *tensor;
        return BERTH_OK;
    }
    BERTH_TRY(berth_shape_size_bytes(tensor->dtype, rank, dims, NULL, NULL));
    *out_tensor = berth_tensor_create(ctx->scratch, tensor->dtype, rank, dims);
    berth_eval__strided_copy(tensor, 0, strides, out_tensor);
    return BERTH_OK;
}

berth_status berth_eval__broadcast_shape(const berth_eval_context *ctx, uint32_t first,
                                         uint32_t count, int64_t out_dims[BERTH_MAX_RANK],
                                         int *out_rank) {
    *out_rank = 0;
    for (uint32_t i = first; i < first + count; ++i) {
        int64_t dims[BERTH_MAX_RANK];
        memcpy(dims, out_dims, sizeof(dims));
        BERTH_TRY(berth_broadcast_dims(dims, *out_rank, ctx->inputs[i].dims, ctx->inputs[i].rank,
                                       out_dims, out_rank));
    }
    return BERTH_OK;
}
