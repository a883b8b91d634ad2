// What the shape functions share (private to ir/infer). A shape function berth_infer__<name> reads
// operands through an `infer` and sets the type of every output; the table of them is made from
// graph_ops.def.
#ifndef BERTH_IR_INFER_INTERNAL_H_
#define BERTH_IR_INFER_INTERNAL_H_

#include "ir/graph/op_params.h"
#include "ir/infer.h"

// More than any list of axes, sizes or pads of a tensor of BERTH_MAX_RANK dimensions has.
#define BERTH_INFER_MAX_INTS (4 * BERTH_MAX_RANK)

// Shared by an operation and all in its regions.
typedef struct berth_infer_effort {
    uint64_t steps;  // operations inferred so far, again in every round of a loop
    bool over;       // a limit: the error is final
} berth_infer_effort;

typedef struct berth_infer {
    berth_module *module;
    berth_func_id function;
    berth_graph *graph;
    berth_op_id id;
    const berth_op *op;  // shape functions never add operations, so this stays valid
    int depth;           // of regions around op
    berth_infer_effort *effort;
} berth_infer;

#define BERTH_GRAPH_OP(id, name, onnx, min_in, max_in, min_out, max_out, traits, host_operands,    \
                       shape_fn)                                                                   \
    berth_status berth_infer__##shape_fn(berth_infer *x);
#include "ir/graph/graph_ops.def"
#undef BERTH_GRAPH_OP

// A failure with the operation's location before the message.
BERTH_MUST_USE berth_status berth_infer__fail(const berth_infer *x, berth_code code,
                                              const char *format, ...) BERTH_PRINTF(3, 4);
// The same around the message of `status` (NULL stays NULL).
BERTH_MUST_USE berth_status berth_infer__at(const berth_infer *x, berth_status status);

// Operands. A left-out or untyped operand is a tensor of unknown dtype and rank -1.
bool berth_infer__has(const berth_infer *x, uint32_t operand);
berth_type berth_infer__in(const berth_infer *x, uint32_t operand);
const berth_tensor *berth_infer__literal(const berth_infer *x, uint32_t operand);

// A list of integers (axes, sizes, pads): known entries are >= INT64_MIN + 1, entries that only the
// run knows are BERTH_INFER_UNKNOWN. Shape arithmetic is followed through shape_of, concat, gather,
// slice and the like, so that symbolic dimensions survive it: entries may be symbols when `symbols`
// is true.
#define BERTH_INFER_UNKNOWN INT64_MIN
typedef struct berth_infer_ints {
    bool known;  // the count is known
    int count;
    int64_t values[BERTH_INFER_MAX_INTS];
} berth_infer_ints;
// Values of a constant operand. `known` is false when it is not constant. Errors: not an integer
// list, too long.
BERTH_MUST_USE berth_status berth_infer__ints(const berth_infer *x, uint32_t operand,
                                              berth_infer_ints *out_ints);
// Extents given by an operand: dims (symbols included) where they can be traced, BERTH_DIM_UNKNOWN
// otherwise.
BERTH_MUST_USE berth_status berth_infer__extents(const berth_infer *x, uint32_t operand,
                                                 berth_infer_ints *out_ints);

// Attributes.
int64_t berth_infer__int(const berth_infer *x, const char *name, int64_t fallback);
BERTH_MUST_USE berth_status berth_infer__axis(const berth_infer *x, const char *name,
                                              int64_t fallback, int rank, int *out_axis);
berth_dtype berth_infer__dtype(const berth_infer *x, const char *name, berth_dtype fallback);
// Fails where axes stand in an attribute, as in ONNX before opset 13: here they are operand 1.
BERTH_MUST_USE berth_status berth_infer__want_axes_operand(const berth_infer *x);

// Checks, done only as far as the types are known.
BERTH_MUST_USE berth_status berth_infer__want_rank(const berth_infer *x, uint32_t operand, int low,
                                                   int high);
BERTH_MUST_USE berth_status berth_infer__want_dtype(const berth_infer *x, uint32_t operand,
                                                    berth_dtype dtype);
BERTH_MUST_USE berth_status berth_infer__want_same_dtype(const berth_infer *x, uint32_t a,
                                                         uint32_t b);
// A scalar, or one element in a tensor of any rank.
BERTH_MUST_USE berth_status berth_infer__want_single(const berth_infer *x, uint32_t operand);
// The extent of spatial dimension `i` after a window, also where the input's is a symbol.
int64_t berth_infer__window_extent(const berth_infer *x, const berth_window *window, int i);
// Extents that must agree; returns the more precise one.
BERTH_MUST_USE berth_status berth_infer__merge_dim(const berth_infer *x, const char *what,
                                                   int64_t a, int64_t b, int64_t *out_dim);

// Outputs (ignored beyond output_count).
void berth_infer__set(berth_infer *x, uint32_t output, berth_dtype dtype, int rank,
                      const int64_t *dims);
void berth_infer__set_type(berth_infer *x, uint32_t output, berth_type_id type);
// A tensor of `rank` unknown dimensions (-1 = unknown rank).
void berth_infer__set_unknown(berth_infer *x, uint32_t output, berth_dtype dtype, int rank);

// Product of known extents with overflow check; BERTH_DIM_UNKNOWN when one is a symbol (0 if any is
// 0).
BERTH_MUST_USE berth_status berth_infer__product(const berth_infer *x, const int64_t *dims,
                                                 int count, int64_t *out_product);

// Infers every operation of a region.
BERTH_MUST_USE berth_status berth_infer__region(berth_infer *x, berth_region_id region);

#endif  // BERTH_IR_INFER_INTERNAL_H_
