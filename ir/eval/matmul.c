// Matrix products, einsum, determinants.
#include "ir/eval/matmul.h"

#include <math.h>
#include <string.h>

#include "ir/graph/op_params.h"

// Matrix index in `tensor` (whose last two dimensions are a matrix) for every batch of the result.
static berth_status batch_indices(berth_eval_context *ctx, const int64_t *dims, int rank,
                                  const int64_t *batch_dims, int batch_rank, const int64_t **out) {
    berth_tensor numbers = {.dtype = BERTH_DTYPE_I64, .rank = rank}, expanded;
    memcpy(numbers.dims, dims, (size_t)rank * sizeof(*dims));
    int64_t count = berth_tensor_element_count(&numbers);
    int64_t *values = berth_eval__indices(ctx, count);
    for (int64_t i = 0; i < count; ++i) values[i] = i;
    numbers.data = values;
    BERTH_TRY(berth_eval__expand(ctx, &numbers, batch_rank, batch_dims, &expanded));
    *out = expanded.data;
    return BERTH_OK;
}

berth_status berth_eval__matmul_shape(berth_eval_context *ctx, const berth_tensor *a,
                                      const berth_tensor *b, berth_matmul_shape *out) {
    if (a->rank < 1 || b->rank < 1)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "operands must have rank 1 or more");
    int a_batch = a->rank > 2 ? a->rank - 2 : 0, b_batch = b->rank > 2 ? b->rank - 2 : 0;
    out->rows = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    out->depth = a->dims[a->rank - 1];
    out->columns = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t b_depth = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (b_depth != out->depth)
        return berth_status_make(BERTH_INCOMPATIBLE, "inner extents %lld and %lld differ",
                                 (long long)out->depth, (long long)b_depth);
    int batch_rank = 0;
    BERTH_TRY(berth_broadcast_dims(a->dims, a_batch, b->dims, b_batch, out->dims, &batch_rank));
    out->batch = berth_eval__product(out->dims, 0, batch_rank);
    BERTH_TRY(batch_indices(ctx, a->dims, a_batch, out->dims, batch_rank, &out->a_batch));
    BERTH_TRY(batch_indices(ctx, b->dims, b_batch, out->dims, batch_rank, &out->b_batch));
    out->rank = batch_rank;
    if (a->rank > 1) out->dims[out->rank++] = out->rows;
    if (b->rank > 1) out->dims[out->rank++] = out->columns;
    return berth_shape_size_bytes(BERTH_DTYPE_F64, out->rank, out->dims, NULL, NULL);
}

const double *berth_eval__matmul_sums(berth_eval_context *ctx, const berth_matmul_shape *s,
                                      const double *a, const double *b) {
    double *sums = berth_eval__doubles(ctx, s->batch * s->rows * s->columns);
    for (int64_t n = 0; n < s->batch; ++n) {
        const double *left = a + s->a_batch[n] * s->rows * s->depth;
        const double *right = b + s->b_batch[n] * s->depth * s->columns;
        for (int64_t i = 0; i < s->rows; ++i) {
            double *row = sums + (n * s->rows + i) * s->columns;
            for (int64_t k = 0; k < s->depth; ++k) {
                double factor = left[i * s->depth + k];
                const double *line = right + k * s->columns;
                for (int64_t j = 0; j < s->columns; ++j) row[j] += factor * line[j];
            }
        }
    }
    return sums;
}

static void matmul_wrapping(const berth_matmul_shape *s, const int64_t *a, const int64_t *b,
                            berth_tensor *out) {
    for (int64_t n = 0; n < s->batch; ++n) {
        const int64_t *left = a + s->a_batch[n] * s->rows * s->depth;
        const int64_t *right = b + s->b_batch[n] * s->depth * s->columns;
        for (int64_t i = 0; i < s->rows * s->columns; ++i) {
            int64_t row = i / s->columns, column = i % s->columns;
            uint64_t sum = 0;
            for (int64_t k = 0; k < s->depth; ++k)
                sum +=
                    (uint64_t)left[row * s->depth + k] * (uint64_t)right[k * s->columns + column];
            berth_tensor_set_i64(out, n * s->rows * s->columns + i, (int64_t)sum);
        }
    }
}

berth_status berth_eval__matmul(berth_eval_context *ctx) {
    const berth_tensor *a = &ctx->inputs[0], *b = &ctx->inputs[1];
    berth_matmul_shape shape;
    if (a->dtype != b->dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "operands are %s and %s",
                                 berth_dtype_name(a->dtype), berth_dtype_name(b->dtype));
    BERTH_TRY(berth_eval__matmul_shape(ctx, a, b, &shape));
    BERTH_TRY(berth_eval__output(ctx, 0, a->dtype, shape.rank, shape.dims));
    if (berth_dtype_is_float(a->dtype))
        berth_eval__store_f64(&ctx->outputs[0],
                              berth_eval__matmul_sums(ctx, &shape, berth_eval__load_f64(ctx, a),
                                                      berth_eval__load_f64(ctx, b)));
    else
        matmul_wrapping(&shape, berth_eval__load_i64(ctx, a), berth_eval__load_i64(ctx, b),
                        &ctx->outputs[0]);
    return BERTH_OK;
}

static const double *transposed(berth_eval_context *ctx, const double *values, int64_t rows,
                                int64_t columns) {
    double *out = berth_eval__doubles(ctx, rows * columns);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = values[i * columns + j];
    return out;
}

berth_status berth_eval__gemm(berth_eval_context *ctx) {
    const berth_tensor *a = &ctx->inputs[0], *b = &ctx->inputs[1];
    const berth_tensor *c = berth_eval__optional(ctx, 2);
    bool trans_a = berth_eval__int(ctx, "transA", 0), trans_b = berth_eval__int(ctx, "transB", 0);
    double alpha = berth_eval__float(ctx, "alpha", 1), beta = berth_eval__float(ctx, "beta", 1);
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, 2));
    BERTH_TRY(berth_eval__need_rank(ctx, 1, 2, 2));
    const double *left = berth_eval__load_f64(ctx, a), *right = berth_eval__load_f64(ctx, b);
    if (trans_a) left = transposed(ctx, left, a->dims[0], a->dims[1]);
    if (trans_b) right = transposed(ctx, right, b->dims[0], b->dims[1]);
    berth_tensor a2 = *a, b2 = *b, wide;
    if (trans_a) a2.dims[0] = a->dims[1], a2.dims[1] = a->dims[0];
    if (trans_b) b2.dims[0] = b->dims[1], b2.dims[1] = b->dims[0];
    berth_matmul_shape shape;
    BERTH_TRY(berth_eval__matmul_shape(ctx, &a2, &b2, &shape));
    BERTH_TRY(berth_eval__output(ctx, 0, a->dtype, 2, shape.dims));
    const double *sums = berth_eval__matmul_sums(ctx, &shape, left, right), *shift = NULL;
    if (c) {
        BERTH_TRY(berth_eval__expand(ctx, c, 2, shape.dims, &wide));
        shift = berth_eval__load_f64(ctx, &wide);
    }
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i)
        berth_eval__set_f64(&ctx->outputs[0], i, alpha * sums[i] + (shift ? beta * shift[i] : 0));
    return BERTH_OK;
}

// ---- determinant

// Gaussian elimination with partial pivoting (Golub and Van Loan, 3.4). O(n^3); destroys `m`.
static double determinant(double *m, int64_t n) {
    double result = 1;
    for (int64_t k = 0; k < n; ++k) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k])) pivot = i;
        if (m[pivot * n + k] == 0) return 0;
        if (pivot != k) {
            result = -result;
            for (int64_t j = 0; j < n; ++j) {
                double held = m[k * n + j];
                m[k * n + j] = m[pivot * n + j];
                m[pivot * n + j] = held;
            }
        }
        result *= m[k * n + k];
        for (int64_t i = k + 1; i < n; ++i) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return result;
}

berth_status berth_eval__det(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__need_float(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 2, BERTH_MAX_RANK));
    int64_t n = x->dims[x->rank - 1];
    if (x->dims[x->rank - 2] != n)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the matrices are not square");
    BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank - 2, x->dims));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    const double *values = berth_eval__load_f64(ctx, x);
    double *matrix = berth_eval__doubles(ctx, n * n);
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < n * n; ++j) matrix[j] = values[i * n * n + j];
        berth_eval__set_f64(&ctx->outputs[0], i, determinant(matrix, n));
    }
    return BERTH_OK;
}
