// Operators that are written as several operations: what builders of compositions need (private to
// compiler/onnx). The first failure is kept in `status` and what follows makes nothing, so that a
// composition reads like its formula:
//
//   berth_status onnx_build_swish(onnx_call *call) {
//       onnx_compose c = onnx_compose_begin(call, 1, 1);
//       berth_value_id x = onnx_compose_input(&c, 0);
//       berth_value_id scaled = onnx_mul(&c, x, onnx_like(&c, x, onnx_call_float(call, "alpha", 1)));
//       onnx_compose_output(&c, 0, onnx_mul(&c, x, onnx_make1(&c, BERTH_OP_SIGMOID, scaled)));
//       return c.status;
//   }
//
// Every function takes BERTH_NONE for a value after a failure, and gives it. Shapes may be symbolic
// unless said; ranks must be known where a function takes an axis.
#ifndef BERTH_COMPILER_ONNX_COMPOSE_H_
#define BERTH_COMPILER_ONNX_COMPOSE_H_

#include "compiler/onnx/importer.h"

typedef struct onnx_compose {
    onnx_call *call;
    berth_status status;
} onnx_compose;

// Fails unless the node has between `least` and `most` inputs, the first `least` of them given.
onnx_compose onnx_compose_begin(onnx_call *call, uint32_t least, uint32_t most);
// The node's input, BERTH_NONE when left out.
berth_value_id onnx_compose_input(const onnx_compose *c, uint32_t index);
bool onnx_compose_wants(const onnx_compose *c, uint32_t output);  // somebody reads it
void onnx_compose_output(onnx_compose *c, uint32_t output, berth_value_id value);
void onnx_compose_fail(onnx_compose *c, berth_code code, const char *format, ...)
    BERTH_PRINTF(3, 4);

// ---- what is known of values
berth_dtype onnx_compose_dtype(const onnx_compose *c, berth_value_id value);
// Fails (UNSUPPORTED) when it is not known. 0 after a failure.
int onnx_compose_rank(onnx_compose *c, berth_value_id value);
// Fails (INVALID_ARGUMENT) unless the rank is in [low, high].
int onnx_compose_want_rank(onnx_compose *c, berth_value_id value, const char *what, int low,
                           int high);
// The extent, where it is known; else BERTH_DIM_UNKNOWN.
int64_t onnx_compose_extent(const onnx_compose *c, berth_value_id value, int axis);
// The extent, which must be known (UNSUPPORTED). 1 after a failure.
int64_t onnx_compose_known_extent(onnx_compose *c, berth_value_id value, const char *what,
                                  int axis);

// ---- operations without attributes
berth_value_id onnx_make(onnx_compose *c, berth_op_kind kind, const berth_value_id *inputs,
                         uint32_t count);
berth_value_id onnx_make1(onnx_compose *c, berth_op_kind kind, berth_value_id a);
berth_value_id onnx_make2(onnx_compose *c, berth_op_kind kind, berth_value_id a, berth_value_id b);
berth_value_id onnx_make3(onnx_compose *c, berth_op_kind kind, berth_value_id a, berth_value_id b,
                          berth_value_id d);
berth_value_id onnx_add(onnx_compose *c, berth_value_id a, berth_value_id b);
berth_value_id onnx_sub(onnx_compose *c, berth_value_id a, berth_value_id b);
berth_value_id onnx_mul(onnx_compose *c, berth_value_id a, berth_value_id b);
berth_value_id onnx_div(onnx_compose *c, berth_value_id a, berth_value_id b);
berth_value_id onnx_where(onnx_compose *c, berth_value_id condition, berth_value_id yes,
                          berth_value_id no);

// ---- operations with attributes: started, given attributes, then finished
typedef struct onnx_made {
    onnx_compose *c;
    berth_op_id op;
} onnx_made;
onnx_made onnx_start(onnx_compose *c, berth_op_kind kind, const berth_value_id *inputs,
                     uint32_t count, uint32_t outputs);
void onnx_set_int(onnx_made made, const char *name, int64_t value);
void onnx_set_float(onnx_made made, const char *name, double value);
void onnx_set_string(onnx_made made, const char *name, const char *value);
void onnx_set_ints(onnx_made made, const char *name, const int64_t *values, uint32_t count);
void onnx_set_tensor(onnx_made made, const char *name, const berth_tensor *tensor);
void onnx_set_dtype(onnx_made made, const char *name, berth_dtype dtype);
void onnx_set_copied(onnx_made made);        // the node's attributes that its row lists without '-'
berth_value_id onnx_finish(onnx_made made);  // infers; the first result
berth_value_id onnx_result(onnx_made made, uint32_t index);

// ---- common ones
berth_value_id onnx_cast_to(onnx_compose *c, berth_value_id value, berth_dtype dtype);
berth_value_id onnx_scalar(onnx_compose *c, berth_dtype dtype, double value);
berth_value_id onnx_like(onnx_compose *c, berth_value_id like, double value);  // of its type
// A literal of the strings of an attribute.
berth_value_id onnx_string_list(onnx_compose *c, const onnx_attr *attr);
berth_value_id onnx_int_list(onnx_compose *c, const int64_t *values, uint32_t count);
berth_value_id onnx_transposed(onnx_compose *c, berth_value_id value, const int64_t *order,
                               uint32_t rank);
// As ONNX's Reshape: 0 keeps an extent, -1 is what is left.
berth_value_id onnx_reshaped(onnx_compose *c, berth_value_id value, const int64_t *dims,
                             uint32_t rank);
berth_value_id onnx_unsqueezed(onnx_compose *c, berth_value_id value, int64_t axis);
berth_value_id onnx_squeezed(onnx_compose *c, berth_value_id value, int64_t axis);
berth_value_id onnx_concatenated(onnx_compose *c, const berth_value_id *values, uint32_t count,
                                 int64_t axis);
// Elements [begin, end) of an axis, as ONNX's Slice; INT64_MAX for the end is the end of the axis.
berth_value_id onnx_sliced(onnx_compose *c, berth_value_id value, int64_t axis, int64_t begin,
                           int64_t end, int64_t step);
// Elements of an axis at indices that a model gives: a run fails where they are out of range.
berth_value_id onnx_picked(onnx_compose *c, berth_value_id value, berth_value_id indices,
                           int64_t axis);
// The same at indices that the composition made, none of which is out of range.
berth_value_id onnx_gathered(onnx_compose *c, berth_value_id value, berth_value_id indices,
                             int64_t axis);
berth_value_id onnx_reduced(onnx_compose *c, berth_op_kind kind, berth_value_id value,
                            const int64_t *axes, uint32_t count, bool keep);
berth_value_id onnx_softmax_along(onnx_compose *c, berth_op_kind kind, berth_value_id value,
                                  int64_t axis);
// The shape as an i64 vector; a constant where it is static.
berth_value_id onnx_shape_of(onnx_compose *c, berth_value_id value);
// One extent as an i64 scalar; a constant where it is known.
berth_value_id onnx_extent_of(onnx_compose *c, berth_value_id value, int axis);
// 0, 1, ... count - 1 of i64.
berth_value_id onnx_counting(onnx_compose *c, berth_value_id count);

// ---- parts of operators that several use (ops_attention.c)
// x over the root of the mean square of what lies behind `axis`, computed in `stash` (NONE: x's).
berth_value_id onnx_rms_normalized(onnx_compose *c, berth_value_id x, int64_t axis, double epsilon,
                                   berth_dtype stash);
// Numbers of 2, 4 or 8 bits in bytes, lowest bits first along the last axis, as bytes (ops_quantize.c).
berth_value_id onnx_unpacked(onnx_compose *c, berth_value_id bytes, int64_t bits);
// Pairs of elements of x (batch, sequence, heads, size) turned; cosines and sines are (batch,
// sequence, 1, rotated / 2). rotated: how many elements of a head, 0 = all.
berth_value_id onnx_rotated(onnx_compose *c, berth_value_id x, berth_value_id cosines,
                            berth_value_id sines, int64_t rotated, bool interleaved);
berth_value_id onnx_swished(onnx_compose *c, berth_value_id x, double alpha);  // x sigmoid(alpha x)
// A string as a literal; labels of classes as a vector, from an attribute of integers or one of strings
// (ops_ml.c).
berth_value_id onnx_ml_text(onnx_compose *c, const char *text);
berth_value_id onnx_ml_class_names(onnx_compose *c, const char *ints, const char *strings,
                                   int64_t *out_count);
// post_transform of ai.onnx.ml (ops_ml.c): NONE, LOGISTIC or SOFTMAX, over the last dimension.
berth_value_id onnx_ml_transformed(onnx_compose *c, berth_value_id scores, const char *how);
// The same of a regressor with `count` results: of a single one, PROBIT alone changes it (as in ONNX Runtime).
berth_value_id onnx_ml_regressed(onnx_compose *c, berth_value_id y, int64_t count, const char *how);
// Both scores of two classes from the one (rows, 1) of the second: 1 - y and y, or -y and y.
berth_value_id onnx_ml_both_scores(onnx_compose *c, berth_value_id y, bool shares, const char *how);

#endif  // BERTH_COMPILER_ONNX_COMPOSE_H_
