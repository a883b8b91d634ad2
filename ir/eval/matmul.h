// The matrix product loop, shared by the float and the quantised operators.
#ifndef BERTH_IR_EVAL_MATMUL_H_
#define BERTH_IR_EVAL_MATMUL_H_

#include "ir/eval/internal.h"

// Shapes of numpy.matmul: batch dimensions broadcast, vectors get a dimension that the result
// lacks.
typedef struct berth_matmul_shape {
    int64_t rows, depth, columns;
    int64_t batch;                     // product of the batch dimensions
    const int64_t *a_batch, *b_batch;  // matrix index per batch
    int64_t dims[BERTH_MAX_RANK];      // of the result
    int rank;
} berth_matmul_shape;

BERTH_MUST_USE berth_status berth_eval__matmul_shape(berth_eval_context *ctx, const berth_tensor *a,
                                                     const berth_tensor *b,
                                                     berth_matmul_shape *out);
// [batch, rows, columns] in the scratch arena. O(batch * rows * depth * columns).
const double *berth_eval__matmul_sums(berth_eval_context *ctx, const berth_matmul_shape *shape,
                                      const double *a, const double *b);

#endif  // BERTH_IR_EVAL_MATMUL_H_
