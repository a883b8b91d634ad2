// Tensor functions: buffers, loops, loads, stores, scalar (and later vector) expressions. An
// operator's plain definition is written with this; schedules (compiler/schedule) rewrite it; code
// generators only print it.
//
// A function has parameters (buffers, inputs before outputs: destination-passing style) and a body.
// The body is a sequence of *nests*: each nest runs after the one before it is complete and becomes
// one kernel. Buffers with scope WORKSPACE carry values between nests and are planned like any
// other tensor.
//
//   tensor @relu(%x: f32[64, 100] in, %y: f32[64, 100] out) {
//     parallel %i in 64 {
//       for %j in 100 {
//         %y[%i, %j] = max(%x[%i, %j], 0.0)
//       }
//     }
//   }
//
// Expressions and statements are nodes with dense ids in their function (0 = none). Expressions
// form a DAG: sharing an id means computing once where the printer's let-insertion
// (berth_tfn_bind_shared) makes it so. Building folds constants and trivial identities of index
// arithmetic. Thread-compatible.
#ifndef BERTH_IR_TENSOR_FUNCTION_H_
#define BERTH_IR_TENSOR_FUNCTION_H_

#include "ir/dim.h"
#include "ir/layout.h"
#include "ir/module.h"

typedef uint32_t berth_expr;
typedef uint32_t berth_stmt;
typedef uint32_t berth_var;  // loop or let variable
typedef uint32_t berth_buf;

// Index arithmetic has the dtype BERTH_DTYPE_I64 with `is_index` set on the node: printers may use
// a narrower integer where all buffers allow it. Index division and remainder are floor division by
// a positive constant.

typedef enum berth_expr_kind {
    BERTH_EXPR_NONE,
    BERTH_EXPR_INT,         // i
    BERTH_EXPR_FLOAT,       // f
    BERTH_EXPR_VAR,         // var
    BERTH_EXPR_LOAD,        // buf [list of index expressions, one per logical dimension]
    BERTH_EXPR_UNARY,       // unary a
    BERTH_EXPR_BINARY,      // a binary b
    BERTH_EXPR_FMA,         // a * b + c, rounded once
    BERTH_EXPR_SELECT,      // a ? b : c; only the chosen side may be evaluated (loads under it are
                            // guarded)
    BERTH_EXPR_CAST,        // a as dtype: C conversion, floats to integers truncate and saturate
    BERTH_EXPR_BROADCAST,   // scalar a in every lane
    BERTH_EXPR_RAMP,        // index a, a+1, ..., a+lanes-1
    BERTH_EXPR_REDUCE_ADD,  // sum of the lanes of a
    BERTH_EXPR_INTRINSIC,  // op of a (which it updates: the result), b and c (ir/tensor/intrinsic.h)
    BERTH_EXPR_SYMBOL,  // i: a dimension that is a symbol of a parameter's shape (ir/dim.h); an index
} berth_expr_kind;

// clang-format off
#define BERTH_TFN_UNARY(X)                                                                         \
    X(NEG, "neg")                                                                                  \
    X(NOT, "not")                                                                                  \
    X(BIT_NOT, "bit_not") X(ABS, "abs") X(SIGN, "sign") X(FLOOR, "floor") X(CEIL, "ceil")          \
        X(ROUND, "round") /* half to even */ X(TRUNC, "trunc") X(SQRT, "sqrt") X(RSQRT, "rsqrt")   \
            X(EXP, "exp") X(LOG, "log") X(SIN, "sin") X(COS, "cos") X(TAN, "tan") X(ASIN, "asin")  \
                X(ACOS, "acos") X(ATAN, "atan") X(SINH, "sinh") X(COSH, "cosh") X(TANH, "tanh")    \
                    X(ASINH, "asinh") X(ACOSH, "acosh") X(ATANH, "atanh") X(ERF, "erf")            \
                        X(SIGMOID, "sigmoid") X(IS_NAN, "is_nan") X(IS_INF, "is_inf")
#define BERTH_TFN_BINARY(X)                                                                        \
    X(ADD, "+")                                                                                    \
    X(SUB, "-")                                                                                    \
    X(MUL, "*") X(DIV, "/") /* index: floor; integers: towards zero, by zero gives 0 */            \
        X(MOD, "%") /* index: floor; integers: sign of the dividend, 0 by zero; floats: fmod */    \
        X(MIN, "min") X(MAX, "max") X(POW, "pow") X(ATAN2, "atan2") X(AND, "&&") X(OR, "||")       \
            X(XOR, "^^") X(BIT_AND, "&") X(BIT_OR, "|") X(BIT_XOR, "^") X(SHL, "<<") X(SHR, ">>")  \
                X(EQ, "==") X(NE, "!=") X(LT, "<") X(LE, "<=") X(GT, ">") X(GE, ">=")

// clang-format on

typedef enum berth_unary {
#define BERTH_TFN_ENUM_(id, text) BERTH_UNARY_##id,
    BERTH_TFN_UNARY(BERTH_TFN_ENUM_)
#undef BERTH_TFN_ENUM_
        BERTH_UNARY_COUNT
} berth_unary;
typedef enum berth_binary {
#define BERTH_TFN_ENUM_(id, text) BERTH_BINARY_##id,
    BERTH_TFN_BINARY(BERTH_TFN_ENUM_)
#undef BERTH_TFN_ENUM_
        BERTH_BINARY_COUNT
} berth_binary;

typedef struct berth_expr_node {
    uint8_t kind;   // berth_expr_kind
    uint8_t dtype;  // berth_dtype of a lane; comparisons and logic are BOOL
    uint8_t op;     // berth_unary, berth_binary or berth_intrinsic
    bool is_index;
    uint16_t lanes;        // 1 = scalar
    uint16_t index_count;  // LOAD
    berth_expr a, b, c;
    uint32_t depth;  // nodes on the longest way down from here; set by berth_tfn_add_expr
    union {
        int64_t i;
        double f;
        berth_var var;
        struct {
            berth_buf buf;
            uint32_t first_index;  // into fn->lists
        } load;
    };
} berth_expr_node;

typedef enum berth_stmt_kind {
    BERTH_STMT_NONE,
    BERTH_STMT_SEQ,    // list of statements
    BERTH_STMT_FOR,    // var in [0, extent): body
    BERTH_STMT_STORE,  // buf [indices] = value
    BERTH_STMT_LET,    // var = value, visible in the rest of the enclosing sequence
    BERTH_STMT_IF,     // condition: body, else other
    BERTH_STMT_ALLOC,  // buf exists in the rest of the enclosing sequence (scope REGISTER, LOCAL or
                       // PRIVATE)
    BERTH_STMT_BARRIER,  // all work-items of the group
    BERTH_STMT_CALL,     // callee, a tensor or external function, on regions of buffers
} berth_stmt_kind;

// A part of a buffer that a call hands over: `extents[d]` elements from `starts[d]` on. Dimensions of
// extent BERTH_REGION_POINT are one index, and none of the parameter's.
//   %x[%i, %j * 4 for 4]      of %x: f32[16, 64], for a parameter of type f32[4]
#define BERTH_REGION_POINT ((int64_t)-1)
typedef struct berth_tfn_region {
    berth_buf buf;
    berth_expr starts[BERTH_MAX_RANK];  // scalar indices
    int64_t extents[BERTH_MAX_RANK];
} berth_tfn_region;

typedef enum berth_loop_kind {
    BERTH_LOOP_SERIAL,
    BERTH_LOOP_PARALLEL,  // iterations are independent; outermost of a nest: the kernel's grid
    BERTH_LOOP_UNROLL,
    BERTH_LOOP_VECTOR,   // to be vectorised: extent = lanes; gone after berth_schedule_vectorize
    BERTH_LOOP_SIMD,     // left to the C compiler with a hint that iterations are independent
    BERTH_LOOP_GROUP_X,  // work-group index (outermost)
    BERTH_LOOP_GROUP_Y,
    BERTH_LOOP_GROUP_Z,
    BERTH_LOOP_LOCAL_X,  // work-item index within the group
    BERTH_LOOP_LOCAL_Y,
    BERTH_LOOP_LOCAL_Z,
} berth_loop_kind;

typedef struct berth_stmt_node {
    uint8_t kind;          // berth_stmt_kind
    uint8_t loop_kind;     // FOR
    uint16_t index_count;  // STORE
    uint32_t count;        // SEQ: statements; CALL: regions
    uint32_t first;        // SEQ: into fn->lists; STORE: first index, into fn->lists; CALL: into
                           // fn->regions
    berth_var var;         // FOR, LET
    berth_buf buf;         // STORE, ALLOC
    berth_expr value;      // STORE, LET: value; IF: condition; FOR: extent (index expression)
    berth_stmt body;       // FOR, IF
    berth_stmt other;      // IF: else, or 0
    berth_func_id callee;  // CALL
} berth_stmt_node;

typedef enum berth_buf_scope {
    BERTH_SCOPE_PARAM,      // a parameter
    BERTH_SCOPE_WORKSPACE,  // between nests, in device memory
    BERTH_SCOPE_REGISTER,   // small, private, fully unrolled accesses: registers
    BERTH_SCOPE_PRIVATE,    // private to a thread or work-item: stack, or scratch when large
    BERTH_SCOPE_LOCAL,      // shared by a work-group (OpenCL local, CUDA shared)
} berth_buf_scope;

typedef enum berth_buf_role {
    BERTH_ROLE_IN,
    BERTH_ROLE_OUT,
    BERTH_ROLE_INOUT,
    BERTH_ROLE_NONE
} berth_buf_role;

typedef struct berth_buf_info {
    berth_str_id name;
    berth_dtype dtype;
    uint16_t lanes;  // > 1: elements are vectors (register tiles after vectorisation)
    int rank;
    int64_t dims[BERTH_MAX_RANK];  // logical; < 0 = symbol, as in tensor types
    berth_str_id layout;           // tag, 0 = row-major
    berth_buf_scope scope;
    berth_buf_role role;
    berth_str_id memory_scope;  // demanded memory scope of a parameter ("vta.inp"), 0 = any
    bool
        may_alias;  // may be the same bytes as another one (compiler/package/in_place.h finds out); not
                    // part of the text and JSON forms
} berth_buf_info;

typedef struct berth_var_info {
    berth_str_id name;  // need not be unique: printers add numbers
    berth_dtype dtype;  // I64 with is_index for loops
    bool is_index;
    uint16_t lanes;
    bool
        keeps_extent;  // with berth_tfn.any_size: the loop over it has as many iterations for all sizes
    // (optional) With any_size: iterations of the loop over it for each of berth_tfn.size_count sizes; not owned.
    const int64_t *extents;
} berth_var_info;

typedef struct berth_tfn {
    berth_module *module;
    BERTH_VEC(berth_expr_node) exprs;     // [0] unused
    BERTH_VEC(berth_stmt_node) stmts;     // [0] unused
    BERTH_VEC(uint32_t) lists;            // index lists and sequences
    BERTH_VEC(berth_tfn_region) regions;  // of calls, one per parameter of the callee
    BERTH_VEC(berth_buf_info) bufs;       // parameters first, in order
    BERTH_VEC(berth_var_info) vars;
    uint32_t param_count;
    berth_stmt body;  // a SEQ of nests
    berth_loc_id loc;
    double flops;  // estimate for one call
    // Schedules take forms that many sizes share rather than the best one for these sizes
    // (compiler/kernels/generic_kernels.h); not part of the text and JSON forms.
    bool any_size;        // berth_tfn_loop_varies says of which loops
    uint32_t size_count;  // of berth_var_info.extents
    // Of any_size: only outermost loops change, so that the best tiles serve all sizes.
    bool same_tiles;
    // While it is scheduled: results of the product of which this is a part (BERTH_ATTR_WHOLE_RESULTS); 0 = it is whole.
    int64_t whole_results;
    // While it is scheduled: loops over rows of images stay loops of their own, for a form that computes row by row
    // (compiler/passes/roll_rows.h).
    bool keeps_rows;
    // (optional) While it is scheduled: what is decided of its nests (compiler/schedule/decisions.h).
    struct berth_schedule_decisions *decisions;
} berth_tfn;

berth_func_id berth_tfn_create(berth_module *module, const char *name, berth_loc_id loc);
// Only the body, for a function that exists (readers of modules).
berth_tfn *berth_tfn_new_body(berth_module *module, berth_loc_id loc);
berth_tfn *berth_tfn_get(const berth_module *module,
                         berth_func_id function);  // NULL for other dialects
// A copy of the body alone, for `module`, whose ids mean the same.
berth_tfn *berth_tfn_copy_body(berth_module *module, const berth_tfn *body);
// A copy of `function` under another name, attributes included.
berth_func_id berth_tfn_clone(berth_module *module, berth_func_id function, const char *name);

// Buffers. Parameters must be added before any other buffer.
berth_buf berth_tfn_param(berth_tfn *fn, const char *name, berth_type_id tensor_type,
                          berth_buf_role role);
berth_buf berth_tfn_buffer(berth_tfn *fn, const char *name, berth_dtype dtype, int rank,
                           const int64_t *dims, berth_buf_scope scope);
// As it is; a parameter is not counted (readers; others use the functions above).
berth_buf berth_tfn_add_buf(berth_tfn *fn, berth_buf_info info);
berth_var berth_tfn_var(berth_tfn *fn, const char *name);  // a loop variable (index)
// Whether the schedule serves many sizes, for which the loop over the variable has different extents.
bool berth_tfn_loop_varies(const berth_tfn *fn, berth_var loop);
// Most iterations that the loop over the variable has for any size that is known, and those of this one, `extent`: what
// forms that all sizes share are chosen by.
int64_t berth_tfn_most_iterations(const berth_tfn *fn, berth_var loop, int64_t extent);

// Expressions may nest this deep, so that what walks over them can recurse: lowering, the readers
// and the verifier refuse more.
#define BERTH_TFN_MAX_DEPTH 2000

// Adds a node whose operands exist, as it is (readers; others use the functions below).
berth_expr berth_tfn_add_expr(berth_tfn *fn, berth_expr_node node);

// Expressions. Binary operands must have equal dtype and lanes (a scalar is broadcast to the
// other's lanes).
berth_expr berth_tfn_index(berth_tfn *fn, int64_t value);                   // index constant
berth_expr berth_tfn_int(berth_tfn *fn, berth_dtype dtype, int64_t value);  // typed constants
berth_expr berth_tfn_float(berth_tfn *fn, berth_dtype dtype, double value);
berth_expr berth_tfn_const(berth_tfn *fn, berth_dtype dtype,
                           double value);  // whichever fits the type
berth_expr berth_tfn_var_ref(berth_tfn *fn, berth_var var);
berth_expr berth_tfn_load(berth_tfn *fn, berth_buf buf, const berth_expr *indices, int count);
berth_expr berth_tfn_unary(berth_tfn *fn, berth_unary op, berth_expr a);
berth_expr berth_tfn_binary(berth_tfn *fn, berth_binary op, berth_expr a, berth_expr b);
berth_expr berth_tfn_fma(berth_tfn *fn, berth_expr a, berth_expr b, berth_expr c);
berth_expr berth_tfn_select(berth_tfn *fn, berth_expr condition, berth_expr if_true,
                            berth_expr if_false);
berth_expr berth_tfn_cast(berth_tfn *fn, berth_dtype dtype, berth_expr a);
berth_expr berth_tfn_to_index(berth_tfn *fn, berth_expr a);  // integer data as an index (gather)
berth_expr berth_tfn_from_index(berth_tfn *fn, berth_dtype dtype, berth_expr a);
berth_expr berth_tfn_broadcast(berth_tfn *fn, berth_expr a, uint16_t lanes);
berth_expr berth_tfn_ramp(berth_tfn *fn, berth_expr base, uint16_t lanes);
berth_expr berth_tfn_reduce_add(berth_tfn *fn, berth_expr a);
// Node `id` (no leaf, no load) with other operands; the node itself where they are the same.
berth_expr berth_tfn_rebuild(berth_tfn *fn, berth_expr id, berth_expr a, berth_expr b,
                             berth_expr c);

// Statements.
berth_stmt berth_tfn_seq(berth_tfn *fn, const berth_stmt *statements, uint32_t count);
berth_stmt berth_tfn_for(berth_tfn *fn, berth_var var, berth_expr extent, berth_loop_kind kind,
                         berth_stmt body);
berth_stmt berth_tfn_store(berth_tfn *fn, berth_buf buf, const berth_expr *indices, int count,
                           berth_expr value);
berth_stmt berth_tfn_let(berth_tfn *fn, berth_var var,
                         berth_expr value);  // var from berth_tfn_let_var
berth_var berth_tfn_let_var(berth_tfn *fn, const char *name, berth_dtype dtype, uint16_t lanes,
                            bool is_index);
berth_stmt berth_tfn_if(berth_tfn *fn, berth_expr condition, berth_stmt body, berth_stmt other);
berth_stmt berth_tfn_alloc(berth_tfn *fn, berth_buf buf);
berth_stmt berth_tfn_barrier(berth_tfn *fn);
// What a call must keep to: ir/tensor/call.h.
berth_stmt berth_tfn_call(berth_tfn *fn, berth_func_id callee, const berth_tfn_region *regions,
                          uint32_t count);

// Node access (pointers are invalidated by building).
static inline const berth_expr_node *berth_tfn_expr(const berth_tfn *fn, berth_expr id) {
    return &fn->exprs.data[id];
}
static inline berth_stmt_node *berth_tfn_stmt(const berth_tfn *fn, berth_stmt id) {
    return &fn->stmts.data[id];
}
// Whether the statement is a call, or has one inside.
bool berth_tfn_has_calls(const berth_tfn *fn, berth_stmt id);
const berth_expr *berth_tfn_load_indices(const berth_tfn *fn, berth_expr load);
const berth_expr *berth_tfn_store_indices(const berth_tfn *fn, berth_stmt store);
const berth_stmt *berth_tfn_seq_items(const berth_tfn *fn, berth_stmt seq);
bool berth_tfn_const_value(const berth_tfn *fn, berth_expr id, int64_t *out_value);  // INT nodes

// The load whose bits a store of `value` to a buffer of type `to` writes: one from a buffer of that type, rounded
// to it at most; 0 = the value is another one.
berth_expr berth_tfn_moved(const berth_tfn *fn, berth_dtype to, berth_expr value);
// The value without casts to that type, and to f32 where it is a half.
berth_expr berth_tfn_unrounded(const berth_tfn *fn, berth_dtype to, berth_expr value);
// Whether the value is one of these, or zero, or what conditions choose of such values.
bool berth_tfn_only_moves(const berth_tfn *fn, berth_dtype to, berth_expr value);

// Copies expression `id` with every variable v replaced by map[v] (0 = keep). `map` has map_count
// entries.
berth_expr berth_tfn_substitute(berth_tfn *fn, berth_expr id, const berth_expr *map,
                                uint32_t map_count);
// The same for a statement tree; loop variables inside are kept.
berth_stmt berth_tfn_substitute_stmt(berth_tfn *fn, berth_stmt id, const berth_expr *map,
                                     uint32_t map_count);

// Numbers variables and buffers by their first appearance in the body (parameters and workspace
// come first, in their order) and drops those that are not there, as reading the printed function
// would. Returns the new number of every buffer it had, BERTH_NONE where dropped, in the module's
// arena.
const uint32_t *berth_tfn_compact(berth_tfn *fn);

// Makes equal expressions one expression, so that what a schedule makes of a function does not depend
// on which of them shared a node. Text does not keep that (ir/text/tfn_print.c). In
// tensor_fn_share.c; O(expressions). Inside berth_arena_try.
void berth_tfn_share(berth_tfn *fn, berth_arena *scratch);

// The dimension `symbol`, of a parameter's shape, as an index: the extent of a loop over all of it.
berth_expr berth_tfn_symbol(berth_tfn *fn, int64_t symbol);
// Whether a parameter's shape has `symbol`, a name that is no expression, also inside an expression.
// Inside berth_arena_try of `scratch`.
bool berth_tfn_has_symbol(const berth_tfn *fn, int64_t symbol, berth_arena *scratch);

// Whether a parameter's shape has a symbol: the function serves every extent of it.
bool berth_tfn_is_polymorphic(const berth_tfn *fn);
// The symbols of all shapes, regions and expressions become what `lookup` says (BERTH_DIM_UNKNOWN keeps one). In
// symbols.c; O(function). Inside berth_arena_try of the module's arena.
void berth_tfn_fix_symbols(berth_tfn *fn, berth_dim_lookup lookup, void *user);

// UNSUPPORTED where a buffer has a symbolic dimension, with the symbols as remedies.
berth_status berth_tfn_check_static(const berth_tfn *fn);

// Structural hash of a function without names (equal kernels compile once).
berth_hash128 berth_tfn_hash(const berth_tfn *fn);

// Plain text for debugging and IR dumps, as in the example above.
void berth_tfn_print(const berth_tfn *fn, berth_strbuf *out);

#endif  // BERTH_IR_TENSOR_FUNCTION_H_
