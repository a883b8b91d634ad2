// Shared by the operator families of the interpreter: the context of one operation, reading
// operands and attributes, making outputs. Families see nothing else.
//
//   static berth_status eval_double(berth_eval_context *ctx) {
//       const berth_tensor *x = &ctx->inputs[0];
//       BERTH_TRY(berth_eval__output(ctx, 0, x->dtype, x->rank, x->dims));
//       const double *values = berth_eval__load_f64(ctx, x);
//       int64_t count = berth_tensor_element_count(x);
//       for (int64_t i = 0; i < count; ++i)
//           berth_eval__set_f64(&ctx->outputs[0], i, 2 * values[i]);
//       return BERTH_OK;
//   }
//
// Everything runs inside berth_arena_try of both arenas. Statuses carry no location: berth_eval_op
// adds it.
#ifndef BERTH_IR_EVAL_INTERNAL_H_
#define BERTH_IR_EVAL_INTERNAL_H_

#include "ir/eval.h"

typedef struct berth_eval_context {
    const berth_module *module;
    const berth_op *op;
    const berth_tensor *inputs;  // op->input_count; dtype NONE = left out
    berth_tensor *outputs;       // op->output_count
    berth_arena *arena;          // outputs
    berth_arena *scratch;        // dies with the operation
} berth_eval_context;

typedef berth_status (*berth_eval_fn)(berth_eval_context *ctx);

// ---- operands and attributes

// Operand `index`, or NULL when left out.
const berth_tensor *berth_eval__optional(const berth_eval_context *ctx, uint32_t index);
int64_t berth_eval__int(const berth_eval_context *ctx, const char *name, int64_t fallback);
double berth_eval__float(const berth_eval_context *ctx, const char *name, double fallback);
const char *berth_eval__string(const berth_eval_context *ctx, const char *name,
                               const char *fallback);
// FLOATS attribute; NULL and *out_count = 0 when absent.
const double *berth_eval__floats(const berth_eval_context *ctx, const char *name,
                                 uint32_t *out_count);
// STRINGS attribute item `index`, NULL when there is none.
const char *berth_eval__string_at(const berth_eval_context *ctx, const char *name, uint32_t index);
// DTYPE attribute (or an INT that holds a berth_dtype).
berth_dtype berth_eval__dtype(const berth_eval_context *ctx, const char *name,
                              berth_dtype fallback);
// The attribute `axis` resolved for `rank`.
BERTH_MUST_USE berth_status berth_eval__axis(const berth_eval_context *ctx, int64_t fallback,
                                             int rank, int *out_axis);
// A vector of at most BERTH_MAX_RANK integers (shapes, axes). Errors: OUT_OF_RANGE naming `what`.
BERTH_MUST_USE berth_status berth_eval__vector(const berth_tensor *tensor, const char *what,
                                               int64_t out_values[BERTH_MAX_RANK], int *out_count);
// Errors unless operand `index` is there and has the rank, or a floating-point type.
BERTH_MUST_USE berth_status berth_eval__need_rank(const berth_eval_context *ctx, uint32_t index,
                                                  int min_rank, int max_rank);
BERTH_MUST_USE berth_status berth_eval__need_float(const berth_eval_context *ctx, uint32_t index);
// Errors unless the operand has `count` elements.
BERTH_MUST_USE berth_status berth_eval__need_count(const berth_tensor *tensor, const char *what,
                                                   int64_t count);

// ---- tensors

// Makes output `index` (zeroed), with sizes checked. An index beyond the op's outputs is fine:
// nothing happens. Errors: OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_eval__output(berth_eval_context *ctx, uint32_t index,
                                               berth_dtype dtype, int rank, const int64_t *dims);
bool berth_eval__has_output(const berth_eval_context *ctx, uint32_t index);

// All elements as double or int64 (u64 keeps its bits); the tensor's own data where the type is
// right. Lives in the scratch arena.
const double *berth_eval__load_f64(berth_eval_context *ctx, const berth_tensor *tensor);
const int64_t *berth_eval__load_i64(berth_eval_context *ctx, const berth_tensor *tensor);
// The tensor broadcast to the shape (ONNX rules, which must hold), in the scratch arena.
BERTH_MUST_USE berth_status berth_eval__expand(berth_eval_context *ctx, const berth_tensor *tensor,
                                               int rank, const int64_t *dims,
                                               berth_tensor *out_tensor);
// The shape that all operands broadcast to.
BERTH_MUST_USE berth_status berth_eval__broadcast_shape(const berth_eval_context *ctx,
                                                        uint32_t first, uint32_t count,
                                                        int64_t out_dims[BERTH_MAX_RANK],
                                                        int *out_rank);
// Stores a double: floats are rounded once, integers truncate towards zero and saturate, NaN is 0.
void berth_eval__set_f64(berth_tensor *tensor, int64_t index, double value);
void berth_eval__store_f64(berth_tensor *tensor, const double *values);
void berth_eval__store_i64(berth_tensor *tensor, const int64_t *values);  // wraps

double *berth_eval__doubles(berth_eval_context *ctx, int64_t count);  // zeroed scratch
int64_t *berth_eval__indices(berth_eval_context *ctx, int64_t count);

// Row-major strides in elements.
void berth_eval__strides(const berth_tensor *tensor, int64_t out_strides[BERTH_MAX_RANK]);
// out[i] = source[base + sum index[d] * strides[d]] for every element of `out`, in order.
void berth_eval__strided_copy(const berth_tensor *source, int64_t base, const int64_t *strides,
                              berth_tensor *out);
// Steps a multi-index in row-major order; false after the last one.
bool berth_eval__next(int64_t *index, const int64_t *dims, int rank);
int64_t berth_eval__product(const int64_t *dims, int begin, int end);
// index in [-extent, extent) to [0, extent). Errors: OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_eval__wrap_index(int64_t index, int64_t extent,
                                                   int64_t *out_index);
static inline void berth_eval__copy_element(void *out, int64_t out_index, const void *source,
                                            int64_t source_index, size_t size_bytes) {
    __builtin_memcpy((char *)out + (size_t)out_index * size_bytes,
                     (const char *)source + (size_t)source_index * size_bytes, size_bytes);
}
// Saturating conversion of an already rounded value to an integer type.
double berth_eval__saturate(berth_dtype dtype, double value);

// ---- kinds: the rows of table.def

#define BERTH_EVAL_ROW(id, fn) berth_status fn(berth_eval_context *ctx);
#include "ir/eval/table.def"
#undef BERTH_EVAL_ROW

#endif  // BERTH_IR_EVAL_INTERNAL_H_
