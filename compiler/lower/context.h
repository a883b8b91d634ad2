// The state of one lowering and what operator families build with it. Private to compiler/lower.
//
// An operator is lowered either by an *element function* (the expression of one output element,
// given its indices: these inline into each other) or by a *nest function* (loops that compute all
// outputs). A nest function looks like this:
//
//   berth_lower_grid grid;
//   berth_lower__grid(c, op, 0, &(berth_lower_grid_options){.names = names}, &grid);
//   berth_buf acc = berth_lower__register(c, "acc", dtype);
//   berth_lower__set(c, acc, zero);
//   berth_expr k = berth_lower__loop(c, "k", extent, BERTH_LOOP_SERIAL);
//   berth_lower__set(c, acc, ...);
//   berth_lower__end(c);
//   berth_lower__store(c, op, 0, grid.at, berth_lower__get(c, acc));
//   berth_lower__grid_end(c, &grid);
//
// f16 and bf16 values are computed in f32 (berth_lower_compute_dtype); loads and stores convert.
// The first problem is kept in `failure`; building goes on with placeholders until the driver
// looks. Thread-compatible.
#ifndef BERTH_COMPILER_LOWER_CONTEXT_H_
#define BERTH_COMPILER_LOWER_CONTEXT_H_

#include "compiler/lower/attention.h"
#include "compiler/schedule/linear.h"
#include "ir/graph/graph.h"
#include "ir/graph/op_params.h"
#include "ir/tensor/function.h"

typedef enum berth_lower_binding_kind {
    BERTH_LOWER_INLINE,  // computed where it is read
    BERTH_LOWER_BUFFER,  // lies in a buffer
    BERTH_LOWER_HERE,    // the element at `at` is `expr` (the anchor, while its epilogue is built)
} berth_lower_binding_kind;

typedef struct berth_lower_binding {
    berth_lower_binding_kind kind;
    berth_buf buf;
    berth_expr expr;
    berth_expr at[BERTH_MAX_RANK];
} berth_lower_binding;

// Where an output of the anchor goes: the element of `value` (pointwise after the output) to `buf`.
typedef struct berth_lower_sink {
    uint32_t output;
    berth_value_id value;
    berth_buf buf;
    // (optional) the operation that pads `value` to what `buf` holds, with pads as of
    // berth_lower__constant_pads: elements move by the begins, other nests fill the border.
    const berth_op *pad;
    int64_t pads[2 * BERTH_MAX_RANK];
} berth_lower_sink;

typedef enum berth_lower_frame_kind {
    BERTH_LOWER_FRAME_PLAIN,  // its statements go to the frame around it (a loop of one iteration)
    BERTH_LOWER_FRAME_FOR,
    BERTH_LOWER_FRAME_IF,
} berth_lower_frame_kind;

typedef struct berth_lower_frame {
    berth_lower_frame_kind kind;
    berth_var var;
    berth_expr extent;
    berth_loop_kind loop_kind;
    berth_expr condition;
    BERTH_VEC(berth_stmt) stmts;
} berth_lower_frame;

typedef struct berth_lower_memo {
    berth_value_id value;
    int rank;
    berth_expr at[BERTH_MAX_RANK];
    berth_expr expr;
} berth_lower_memo;

typedef struct berth_lower {
    berth_module *module;
    const berth_graph *graph;
    berth_tfn *fn;
    berth_arena *scratch;
    berth_status failure;
    berth_lower_binding *bindings;  // per value
    BERTH_VEC(berth_lower_sink) sinks;
    BERTH_VEC(berth_lower_frame) frames;
    BERTH_VEC(berth_lower_memo) memo;
    BERTH_VEC(berth_range) ranges;       // per variable
    BERTH_VEC(berth_var) lane_vars;      // loops of a dimension that is padded to its blocks
    const berth_attention **attentions;  // per operation: what it ends, lowered as one; NULL = none
    int inlined;                         // operations being inlined into each other now
    berth_expr valid;                    // inside the logical extents; 0 = always
} berth_lower;

// ---- context.c: values, loops, stores -----------------------------------------------------------

BERTH_PRINTF(3, 4)
void berth_lower__fail(berth_lower *c, const berth_op *op, const char *format, ...);
// Keeps a failed status (takes ownership); true when it was OK.
bool berth_lower__check(berth_lower *c, const berth_op *op, berth_status status);

static inline berth_dtype berth_lower_compute_dtype(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F16 || dtype == BERTH_DTYPE_BF16 ? BERTH_DTYPE_F32 : dtype;
}

// Element of a value in its compute type.
berth_expr berth_lower__element(berth_lower *c, berth_value_id value, const berth_expr *at);
berth_expr berth_lower__load(berth_lower *c, berth_buf buf, const berth_expr *at);

berth_expr berth_lower__loop(berth_lower *c, const char *name, int64_t extent,
                             berth_loop_kind kind);
// A serial loop whose extent is known only when it runs.
berth_expr berth_lower__loop_to(berth_lower *c, const char *name, berth_expr extent);
void berth_lower__if(berth_lower *c, berth_expr condition);
void berth_lower__end(berth_lower *c);  // closes the innermost loop or if
void berth_lower__emit(berth_lower *c, berth_stmt stmt);

berth_buf berth_lower__register(berth_lower *c, const char *name,
                                berth_dtype dtype);  // rank 0, allocated here
berth_buf berth_lower__private(berth_lower *c, const char *name, berth_dtype dtype, int rank,
                               const int64_t *dims);
static inline berth_expr berth_lower__get(berth_lower *c, berth_buf scalar) {
    return berth_tfn_load(c->fn, scalar, NULL, 0);
}
static inline void berth_lower__set(berth_lower *c, berth_buf scalar, berth_expr value) {
    berth_lower__emit(c, berth_tfn_store(c->fn, scalar, NULL, 0, value));
}
void berth_lower__put(berth_lower *c, berth_buf buf, const berth_expr *at, berth_expr value);

// Loops over the elements of output `output`, in the order of its layout.
// Part of a dimension: indices step * q + first + r for q in [0, count) and r in [0, run).
typedef struct berth_lower_grid_part {
    int64_t step;  // 0 = the whole dimension
    int64_t first;
    int64_t count;
    int64_t run;
} berth_lower_grid_part;
typedef struct berth_lower_grid_options {
    const char *const *names;  // per dimension, NULL = default; a blocked one gets "_o" and "_i"
    int serial;                // innermost loops that are not marked parallel; 0 = 1
    int64_t groups;  // > 1: dimension 1 in two loops "g" and its name, where the layout allows it
    const berth_lower_grid_part *parts;  // per dimension; NULL = all whole. Blocked ones are whole
} berth_lower_grid_options;
typedef struct berth_lower_grid {
    berth_expr at[BERTH_MAX_RANK];
    berth_expr quotient[BERTH_MAX_RANK];   // q of a part
    berth_expr remainder[BERTH_MAX_RANK];  // r
    berth_expr group;  // index / (extent / groups) of dimension 1, with groups > 1
    int loops;
} berth_lower_grid;
// The buffer may be larger (a sink that pads): the loops are over the elements of the output alone.
void berth_lower__grid(berth_lower *c, const berth_op *op, uint32_t output,
                       const berth_lower_grid_options *options, berth_lower_grid *grid);
void berth_lower__grid_buffer(berth_lower *c, berth_buf buf,
                              const berth_lower_grid_options *options, berth_lower_grid *grid);
void berth_lower__grid_end(berth_lower *c, const berth_lower_grid *grid);
// For nests that make the loops of a padded dimension themselves: `index` is made of the loops
// `outer` and `inner` and runs past `extent`. Ends with berth_lower__end_lanes.
void berth_lower__padded_lane(berth_lower *c, berth_expr outer, berth_expr inner, berth_expr index,
                              int64_t extent);
void berth_lower__end_lanes(berth_lower *c);

// Parallel loops over the dimensions of `dims` that are not in `skip` (a bit mask); fills those of
// `at`.
int berth_lower__outer(berth_lower *c, int rank, const int64_t *dims, uint32_t skip,
                       berth_expr *at);
// Serial loops over the dimensions in `mask`.
int berth_lower__inner(berth_lower *c, int rank, const int64_t *dims, uint32_t mask,
                       berth_expr *at);
static inline void berth_lower__end_loops(berth_lower *c, int count) {
    for (int i = 0; i < count; ++i) berth_lower__end(c);
}

// Stores one element of an output of the anchor: runs the epilogue and writes every sink.
void berth_lower__store(berth_lower *c, const berth_op *op, uint32_t output, const berth_expr *at,
                        berth_expr value);
// Nests after the anchor's that fill the border of a sink that pads.
void berth_lower__fill_border(berth_lower *c, const berth_lower_sink *sink);
// Pads per dimension, begins, then ends; false when `op` is no padding with a constant that moves
// unblocked dimensions of its result outwards.
bool berth_lower__constant_pads(berth_lower *c, const berth_op *op,
                                int64_t pads[2 * BERTH_MAX_RANK]);
bool berth_lower__wanted(const berth_lower *c, uint32_t output);  // somebody reads it
// The buffer of an output whose row asks for one (`in_buffer`).
berth_buf berth_lower__buffer(const berth_lower *c, uint32_t output);
// Ends the kernel here and starts another one that sees its stores.
void berth_lower__next_nest(berth_lower *c);

// Constant operand; NULL (and a failure "data-dependent") when it is not known.
const berth_tensor *berth_lower__constant(berth_lower *c, const berth_op *op, uint32_t operand);

// ---- rows ---------------------------------------------------------------------------------------

typedef berth_expr (*berth_lower_element_fn)(berth_lower *c, const berth_op *op, uint32_t output,
                                             const berth_expr *at);
typedef void (*berth_lower_nest_fn)(berth_lower *c, const berth_op *op);

typedef struct berth_lower_row {
    berth_lower_element_fn element;
    berth_lower_nest_fn nest;
    // (optional) one element as loops inside those that are open: for a sum that is read once.
    berth_lower_element_fn sum;
    bool any_layout;  // the nest follows the layout of its result (berth_lower__grid)
    bool in_buffer;   // the nest updates its results in place: no epilogue
} berth_lower_row;
const berth_lower_row *berth_lower__row(berth_op_kind kind);  // NULL: no lowering

// ---- operands -----------------------------------------------------------------------------------

static inline const berth_type *type_of(const berth_lower *c, berth_value_id value) {
    return berth_type_get(c->module, c->graph->values.data[value].type);
}
static inline const berth_type *in_type(const berth_lower *c, const berth_op *op, uint32_t i) {
    return type_of(c, op->inputs[i]);
}
static inline const berth_type *out_type(const berth_lower *c, const berth_op *op, uint32_t i) {
    return type_of(c, op->outputs[i]);
}
static inline berth_dtype in_dtype(const berth_lower *c, const berth_op *op, uint32_t i) {
    return berth_lower_compute_dtype(in_type(c, op, i)->dtype);
}
static inline berth_dtype out_dtype(const berth_lower *c, const berth_op *op, uint32_t i) {
    return berth_lower_compute_dtype(out_type(c, op, i)->dtype);
}
static inline bool has_in(const berth_op *op, uint32_t i) {
    return i < op->input_count && op->inputs[i] != BERTH_NONE;
}
static inline berth_expr in_at(berth_lower *c, const berth_op *op, uint32_t i,
                               const berth_expr *at) {
    return berth_lower__element(c, op->inputs[i], at);
}
static inline int64_t attr_int(const berth_lower *c, const berth_op *op, const char *name,
                               int64_t fallback) {
    return berth_attrs_int(c->module, &op->attrs, name, fallback);
}
static inline double attr_float(const berth_lower *c, const berth_op *op, const char *name,
                                double fallback) {
    return berth_attrs_float(c->module, &op->attrs, name, fallback);
}
static inline const char *attr_str(const berth_lower *c, const berth_op *op, const char *name,
                                   const char *fallback) {
    return berth_attrs_string(c->module, &op->attrs, name, fallback);
}

// ---- expressions --------------------------------------------------------------------------------

static inline berth_expr ix(berth_lower *c, int64_t value) {
    return berth_tfn_index(c->fn, value);
}
static inline berth_expr num(berth_lower *c, berth_dtype dtype, double value) {
    return berth_tfn_const(c->fn, dtype, value);
}
#define BERTH_LOWER_BINARY_(name, op)                                                              \
    static inline berth_expr name(berth_lower *c, berth_expr a, berth_expr b) {                    \
        return berth_tfn_binary(c->fn, BERTH_BINARY_##op, a, b);                                   \
    }
BERTH_LOWER_BINARY_(x_add, ADD)
BERTH_LOWER_BINARY_(x_sub, SUB)
BERTH_LOWER_BINARY_(x_mul, MUL)
BERTH_LOWER_BINARY_(x_div, DIV)
BERTH_LOWER_BINARY_(x_mod, MOD)
BERTH_LOWER_BINARY_(x_min, MIN)
BERTH_LOWER_BINARY_(x_max, MAX)
BERTH_LOWER_BINARY_(x_pow, POW)
BERTH_LOWER_BINARY_(x_eq, EQ)
BERTH_LOWER_BINARY_(x_ne, NE)
BERTH_LOWER_BINARY_(x_lt, LT)
BERTH_LOWER_BINARY_(x_le, LE)
BERTH_LOWER_BINARY_(x_gt, GT)
BERTH_LOWER_BINARY_(x_ge, GE)
BERTH_LOWER_BINARY_(x_or, OR)
#undef BERTH_LOWER_BINARY_
// Conditions: 0 is "always".
static inline berth_expr x_and(berth_lower *c, berth_expr a, berth_expr b) {
    if (!a || !b) return a ? a : b;
    return berth_tfn_binary(c->fn, BERTH_BINARY_AND, a, b);
}
static inline berth_expr x_select(berth_lower *c, berth_expr condition, berth_expr a,
                                  berth_expr b) {
    return condition ? berth_tfn_select(c->fn, condition, a, b) : a;
}
static inline berth_expr x_unary(berth_lower *c, berth_unary op, berth_expr a) {
    return berth_tfn_unary(c->fn, op, a);
}
static inline berth_expr x_cast(berth_lower *c, berth_dtype dtype, berth_expr a) {
    return berth_tfn_cast(c->fn, dtype, a);
}
static inline berth_expr x_addi(berth_lower *c, berth_expr a, int64_t k) {
    return k < 0 ? x_sub(c, a, ix(c, -k)) : x_add(c, a, ix(c, k));
}
static inline berth_expr x_muli(berth_lower *c, berth_expr a, int64_t k) {
    return x_mul(c, a, ix(c, k));
}
static inline berth_dtype dtype_of(const berth_lower *c, berth_expr id) {
    return (berth_dtype)c->fn->exprs.data[id].dtype;
}
// acc + a * b: fused for floats.
static inline berth_expr x_fma(berth_lower *c, berth_expr a, berth_expr b, berth_expr acc) {
    if (berth_dtype_is_float(dtype_of(c, a))) return berth_tfn_fma(c->fn, a, b, acc);
    return x_add(c, acc, x_mul(c, a, b));
}

// ---- index maps (index_map.c) -------------------------------------------------------------------

// Indices of operand `i` of `op` under broadcasting to an output of `rank` dimensions.
void berth_lower__broadcast(berth_lower *c, berth_value_id value, int rank, const berth_expr *at,
                            berth_expr *out_at);
// Element of an operand under broadcasting.
berth_expr berth_lower__in_broadcast(berth_lower *c, const berth_op *op, uint32_t i, int rank,
                                     const berth_expr *at);
// Row-major position, and back.
berth_expr berth_lower__linearise(berth_lower *c, int rank, const int64_t *dims,
                                  const berth_expr *at);
void berth_lower__delinearise(berth_lower *c, int rank, const int64_t *dims, berth_expr position,
                              berth_expr *out_at);
// An index loaded from data: negative values count from the end, then clamped to [0, extent).
berth_expr berth_lower__data_index(berth_lower *c, berth_expr loaded, int64_t extent);
// Resolves a list of axes from an optional constant operand, else attribute `name`: a bit mask.
// *out_given = false when there is neither.
uint32_t berth_lower__axes(berth_lower *c, const berth_op *op, uint32_t operand, const char *name,
                           int rank, bool *out_given);
int berth_lower__axis(berth_lower *c, const berth_op *op, int64_t fallback, int rank);

#endif  // BERTH_COMPILER_LOWER_CONTEXT_H_
