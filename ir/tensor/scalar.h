// Values of tensor functions' expressions and the arithmetic on them: what the interpreter
// computes, apart from memory, loops and conditions. Results are rounded and wrapped to the node's
// type.
#ifndef BERTH_IR_TENSOR_SCALAR_H_
#define BERTH_IR_TENSOR_SCALAR_H_

#include "base/status.h"
#include "ir/tensor/function.h"
#include "ir/tensor/interpreter.h"

// Every lane is kept as an int64 (integers, bools, indices) or a double (floats), by the node's
// dtype.
typedef union berth_lane {
    int64_t i;
    double f;
} berth_lane;

typedef struct berth_lanes {
    uint16_t lanes;  // 0 = unset
    berth_lane at[BERTH_TFN_INTERP_MAX_LANES];
} berth_lanes;

double berth_ir__round(berth_dtype dtype, double x);
int64_t berth_ir__wrap(berth_dtype dtype, uint64_t x);
// `from` is the type of the operands. Errors: as berth_tfn_interpret.
BERTH_MUST_USE berth_status berth_ir__eval_unary(const berth_expr_node *node, berth_dtype from,
                                                 const berth_lanes *a, berth_lanes *out);
BERTH_MUST_USE berth_status berth_ir__eval_binary(const berth_expr_node *node, berth_dtype from,
                                                  const berth_lanes *a, const berth_lanes *b,
                                                  berth_lanes *out);
void berth_ir__eval_cast(berth_dtype from, berth_dtype to, const berth_lanes *a, berth_lanes *out);

#endif  // BERTH_IR_TENSOR_SCALAR_H_
