// Small tools for graph rewrites (private to compiler/passes).
#ifndef BERTH_COMPILER_PASSES_REWRITE_H_
#define BERTH_COMPILER_PASSES_REWRITE_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// The right operand that a gemm's constant became: alpha times it, or times its transpose.
typedef struct berth_right_operand {
    berth_value_id value;  // 0: none yet
    bool transposed;
    double alpha;
} berth_right_operand;

typedef struct berth_rewriter {
    berth_module *module;
    berth_func_id function;
    uint32_t *uses;  // per value, kept up to date by berth_rewriter_replace
    uint32_t use_capacity;
    BERTH_VEC(berth_value_id) map;  // replacements decided so far, applied by berth_rewriter_finish
    bool changed;
    const berth_multi_target *target;     // (optional) its pins keep operations apart
    berth_right_operand *right_operands;  // per value of the beginning; NULL until there is one
    uint32_t right_operand_count;
} berth_rewriter;

void berth_rewriter_begin(berth_rewriter *rewriter, berth_module *module, berth_func_id function);
// Every later look at operands must go through this (a replaced value stands for its replacement).
berth_value_id berth_rewriter_resolve(berth_rewriter *rewriter, berth_value_id value);
uint32_t berth_rewriter_uses(const berth_rewriter *rewriter, berth_value_id value);
void berth_rewriter_replace(berth_rewriter *rewriter, berth_value_id from, berth_value_id to);
// Applies the replacements and drops dead operations.
void berth_rewriter_finish(berth_rewriter *rewriter);

// Whether an operation may be made of these two: not where pins put them on different devices.
bool berth_rewriter_may_join(const berth_rewriter *rewriter, berth_loc_id a, berth_loc_id b);

// Operation that defines a value, or NULL for a parameter.
const berth_op *berth_rewriter_def(berth_rewriter *rewriter, berth_value_id value);
const berth_tensor *berth_rewriter_constant(berth_rewriter *rewriter, berth_value_id value);
const berth_tensor *berth_rewriter_raw_constant(berth_rewriter *rewriter, berth_value_id value);
// Inserts before `position` and infers the result's type; returns the (first) result.
BERTH_MUST_USE berth_status berth_rewriter_insert(berth_rewriter *rewriter, berth_op_id position,
                                                  berth_op_kind kind, const berth_value_id *inputs,
                                                  uint32_t input_count, const berth_attrs *attrs,
                                                  berth_loc_id loc, berth_value_id *out_result);
// The same with any number of results, which are those of *out_op.
BERTH_MUST_USE berth_status berth_rewriter_insert_op(berth_rewriter *rewriter, berth_op_id position,
                                                     berth_op_kind kind,
                                                     const berth_value_id *inputs,
                                                     uint32_t input_count, uint32_t output_count,
                                                     const berth_attrs *attrs, berth_loc_id loc,
                                                     berth_op_id *out_op);
berth_value_id berth_rewriter_insert_constant(berth_rewriter *rewriter, berth_op_id position,
                                              const berth_tensor *tensor, berth_loc_id loc);

// Elements [first, first + count) of a constant along one dimension; its data may lie at any address.
berth_tensor berth_rewriter_take(berth_arena *arena, const berth_tensor *from, int dim,
                                 int64_t first, int64_t count);

// *value becomes a reshape of it to these dimensions.
BERTH_MUST_USE berth_status berth_rewriter_reshape(berth_rewriter *r, berth_op_id at, int rank,
                                                   const int64_t *dims, berth_loc_id loc,
                                                   berth_value_id *value);

#endif  // BERTH_COMPILER_PASSES_REWRITE_H_
