// The printer that languages of the C family share: expressions, statements, loops and address
// arithmetic of tensor functions. What differs per language is a berth_c_language; c.c and opencl.c
// each hold one.
//
// Helper functions are called berth_<op>_<type>, with <type> "f32" or "f32x8": berth_exp_f32(x),
// berth_max_f32x8(a, b), berth_select_f32x8(mask, a, b). A language's preamble defines them; vector
// types are berth_<type>x<lanes>, and masks of vectors are berth_i32x<lanes> with lanes 0 or -1.
#ifndef BERTH_COMPILER_CODEGEN_C_FAMILY_H_
#define BERTH_COMPILER_CODEGEN_C_FAMILY_H_

#include "compiler/codegen/codegen.h"
#include "compiler/schedule/linear.h"
#include "ir/tensor/intrinsic.h"

typedef struct berth_c_printer berth_c_printer;

typedef struct berth_c_language {
    berth_device_kind kind;                        // whose external code its kernels may call
    const char *refuses_calls;                     // NULL, or why they call none
    const char *index_type;                        // "int64_t"
    int index_bits;                                // of index_type, 32 or 64
    const char *storage_types[BERTH_DTYPE_COUNT];  // of elements in memory; NULL = the language
                                                   // lacks the type
    const char *value_types[BERTH_DTYPE_COUNT];  // of scalars in computations (f16 and bf16 compute
                                                 // as float)
    const char *global_pointer;  // qualifier of pointers to parameters: "", "__global "
    const char *restrict_word;   // "restrict"
    const char *f64_suffix;      // of double literals
    // Prints everything before the kernel's body (signature, pointers, group loop or ids); the body
    // is printed at the printer's depth afterwards, then close_kernel. `grid` are the parallel
    // loops that became the grid, outermost first.
    void (*open_kernel)(berth_c_printer *p, const berth_kernel_source *kernel,
                        const berth_stmt *grid, int grid_count);
    void (*close_kernel)(berth_c_printer *p);
    // The kernel's declaration (artifact/kernel_abi.h), after the kernel.
    void (*declare_kernel)(berth_c_printer *p, const char *entry, const char *declaration);
    // (optional) Prints the head of a loop of special kind, including '{'; false = print a plain
    // loop.
    bool (*open_loop)(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent);
    // (optional) Prints a loop, with all that is in it, in a form of its own; false = it has none.
    bool (*print_loop)(berth_c_printer *p, const berth_stmt_node *loop);
    // (optional) Prints a vector loop's form in vectors, which the loop follows as it is for compilers
    // without them, and the end behind that; false = it has no such form. A language without it takes no
    // vector loops.
    bool (*open_vectors)(berth_c_printer *p, const berth_stmt_node *loop);
    const char *vectors_end;
    // Declaration of a local buffer. scratch_offset >= 0: place in the per-thread scratch, else in
    // the function.
    void (*declare_buffer)(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           int64_t scratch_offset);
    // Texts of vector accesses at an element offset, of a vector literal from lane texts.
    const char *(*vector_load)(berth_c_printer *p, berth_buf buf, const char *offset, int lanes);
    // Elements that lie `step` apart from `offset` on, without what lies after the last one; NULL: there is no such
    // load. NULL = of no type.
    const char *(*steps_load)(berth_c_printer *p, berth_buf buf, const char *offset, int64_t step,
                              int lanes);
    // Prints a store of such elements; false: there is none. NULL = of no type.
    bool (*steps_store)(berth_c_printer *p, berth_buf buf, const char *offset, int64_t step,
                        int lanes, const char *value);
    // A sum of a vector and a product of narrow integers; NULL: it has no text of its own. NULL = of no type.
    const char *(*narrow_sum)(berth_c_printer *p, berth_expr_node node);
    void (*vector_store)(berth_c_printer *p, berth_buf buf, const char *offset, int lanes,
                         const char *value);
    const char *(*vector_literal)(berth_c_printer *p, berth_dtype dtype, const char *const *lanes,
                                  int count);
    const char *(*vector_lane)(berth_c_printer *p, const char *name, int lane);
    void (*after_vector_let)(berth_c_printer *p, const char *name, int bytes);  // (optional)
    // The function berth_<name> of an intrinsic; NULL = the language lacks it.
    const char *(*intrinsic_text)(const berth_intrinsic_facts *facts);
    // (optional) Text of a vector load as an operand of an intrinsic that work-items compute together;
    // NULL: it is none.
    const char *(*fragment)(berth_c_printer *p, berth_expr load);
    // (optional) Prints a store as a copy that goes on by itself until a barrier; false: it is none.
    bool (*copy_async)(berth_c_printer *p, berth_stmt store);
    // (optional) Where an element offset of a buffer really lies. What lies beside each other within 16 bytes stays so.
    const char *(*place)(berth_c_printer *p, berth_buf buf, const char *offset);
    // (optional) Prints a store to or from sums of a matrix unit; false: it is another one.
    bool (*unit_store)(berth_c_printer *p, berth_stmt store);
    bool half_vectors;     // vector_load and vector_store convert f16 and bf16
    bool f64_vectors;      // sums and products of f64, of register tiles
    bool half_bits;        // f16 and bf16 are stored as integers
    bool needs_alignment;  // they look at access_alignment
    const char *barrier;   // statement text; NULL = unsupported
    // (optional) Prints what is in front of it where the nest has `pending` barriers (ir/tensor/copies.h).
    void (*before_barrier)(berth_c_printer *p, int pending, int products);
    // (optional) Prints what is behind it.
    void (*after_barrier)(berth_c_printer *p);
    uint32_t
        stack_limit_bytes;  // private buffers of a nest beyond it go to scratch; 0 = no scratch
    uint32_t scratch_alignment_bytes;  // of each buffer there
} berth_c_language;

// Element types of C: in memory, and in computations. OpenCL C has its own.
#define BERTH_C_TYPES                                                                              \
    .storage_types = {[BERTH_DTYPE_F32] = "float",    [BERTH_DTYPE_F64] = "double",                \
                      [BERTH_DTYPE_F16] = "uint16_t", [BERTH_DTYPE_BF16] = "uint16_t",             \
                      [BERTH_DTYPE_I8] = "int8_t",    [BERTH_DTYPE_I16] = "int16_t",               \
                      [BERTH_DTYPE_I32] = "int32_t",  [BERTH_DTYPE_I64] = "int64_t",               \
                      [BERTH_DTYPE_U8] = "uint8_t",   [BERTH_DTYPE_U16] = "uint16_t",              \
                      [BERTH_DTYPE_U32] = "uint32_t", [BERTH_DTYPE_U64] = "uint64_t",              \
                      [BERTH_DTYPE_BOOL] = "uint8_t"},                                             \
    .value_types = {[BERTH_DTYPE_F32] = "float",    [BERTH_DTYPE_F64] = "double",                  \
                    [BERTH_DTYPE_F16] = "float",    [BERTH_DTYPE_BF16] = "float",                  \
                    [BERTH_DTYPE_I8] = "int8_t",    [BERTH_DTYPE_I16] = "int16_t",                 \
                    [BERTH_DTYPE_I32] = "int32_t",  [BERTH_DTYPE_I64] = "int64_t",                 \
                    [BERTH_DTYPE_U8] = "uint8_t",   [BERTH_DTYPE_U16] = "uint16_t",                \
                    [BERTH_DTYPE_U32] = "uint32_t", [BERTH_DTYPE_U64] = "uint64_t",                \
                    [BERTH_DTYPE_BOOL] = "int"}

// What a printer knows while it prints one function. Languages use `out`, `line` and the naming
// functions.
struct berth_c_printer {
    const berth_c_language *language;
    berth_tfn *fn;  // a private copy: address arithmetic adds nodes
    berth_arena *arena;
    berth_strbuf out;
    int depth;
    berth_ranges ranges;
    uint32_t *loop_depth;  // by variable: order of opening, for the order of terms in addresses
    uint32_t open_loops;
    const char **memo;  // by expression: name of its temporary in the current statement
    uint32_t *uses;     // by expression, in the current statement
    uint32_t memo_count;
    BERTH_VEC(berth_expr) touched;
    uint32_t next_temporary;
    BERTH_VEC(berth_func_id) callees;      // external functions that are called, each once
    bool intrinsics[BERTH_INTRINSIC_END];  // used
    bool *is_fragment;                     // by variable: a let printed by language->fragment
    bool copies_async;                     // the nest has such copies
    berth_expr unit_holds[8];  // by register of a matrix unit: the operand in it, 0 = none
    bool *
        is_swizzled;  // by buffer: the nest's units read it where it lies; NULL = none (cuda_groups.h)
    bool *is_panel;          // by buffer: they read it in panels (cuda_groups.h)
    int bulk_turns;          // mbarriers of the nest (cuda_bulk.h)
    berth_stmt nest;         // being printed
    const berth_stmt *grid;  // its parallel loops, outermost first
    int grid_count;
    berth_kernel_source *kernel;  // of the nest: languages with work-groups set its grid
    bool marks_numbers;           // the text is a template (codegen/template.h)
    berth_status status;          // first error
    int64_t
        access_alignment;  // where the language needs it: elements that divide the offset of the vector access being printed
};

// Starts a printer over a copy of `fn`.
berth_c_printer *berth_c_printer_create(const berth_tfn *fn, const berth_c_language *language,
                                        berth_arena *arena);
// Prints all nests; fills kernels (entries prefix_0, prefix_1, ...). Errors: UNSUPPORTED.
BERTH_MUST_USE berth_status berth_c_printer_run(berth_c_printer *p, const char *prefix,
                                                berth_kernel_source **out_kernels,
                                                uint32_t *out_kernel_count);

// f16 and bf16 values are computed as f32.
static inline berth_dtype berth_c_compute_type(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F16 || dtype == BERTH_DTYPE_BF16 ? BERTH_DTYPE_F32 : dtype;
}
// Integers of 8 and 16 bits, whose vectors are made apart from those of 32 bits.
static inline bool berth_c_is_narrow(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_I8 || dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I16 ||
           dtype == BERTH_DTYPE_U16;
}

// Functions of the intrinsics used, each once even where the text of several sources becomes one.
void berth_c_add_intrinsics(const berth_c_printer *p, berth_strbuf *out);

void berth_c_line(berth_c_printer *p, const char *format, ...)
    BERTH_PRINTF(2, 3);                                      // indented, with newline
void berth_c_fail(berth_c_printer *p, berth_status status);  // keeps the first
const char *berth_c_buffer_name(berth_c_printer *p, berth_buf buf);
const char *berth_c_var_name(berth_c_printer *p, berth_var var);
const char *berth_c_value_type(berth_c_printer *p, berth_dtype dtype, int lanes);
const char *berth_c_storage_type(berth_c_printer *p, berth_dtype dtype);

// c_index.c: texts of index arithmetic and conditions.
const char *berth_c_number(berth_c_printer *p, int64_t value);  // that follows from sizes
const char *berth_c_hint(berth_c_printer *p, int64_t value);    // a number that changes no results
// Elements of a private array of `count`: as many, or in templates more, so that several sizes have
// the same.
int64_t berth_c_array_size(const berth_c_printer *p, berth_buf buf, int64_t count);
const char *berth_c_index(berth_c_printer *p, berth_expr id);
const char *berth_c_linear(berth_c_printer *p, berth_linear form);
// Whether `id` is round(x), or round(x) plus a whole number that the type `to` holds.
bool berth_c_rounds(const berth_c_printer *p, berth_expr id, berth_dtype to, berth_expr *out_x,
                    int *out_zero);
const char *berth_c_condition(berth_c_printer *p, berth_expr id);
// a < b and the like of indices, which ranges may decide.
// c_select.c: whether both sides of a selection are computed before its condition is looked at.
bool berth_c_computes_both(const berth_c_printer *p, const berth_expr_node *select);
bool berth_c_is_index_comparison(const berth_c_printer *p, const berth_expr_node *node);

// c_expr.c: texts of expressions; may print temporaries before the current statement.
const char *berth_c_value(berth_c_printer *p, berth_expr id);
void berth_c_begin_statement(berth_c_printer *p, const berth_expr *roots,
                             int count);  // counts uses
void berth_c_end_statement(berth_c_printer *p);
// A vector of equal lanes; `scalar` is computed once for each lane.
const char *berth_c_splat(berth_c_printer *p, berth_dtype dtype, const char *scalar, int lanes);
// Prints a variable with the value, and returns its name.
const char *berth_c_temporary(berth_c_printer *p, berth_dtype dtype, int lanes, const char *text);

// c_access.c: loads and stores.
const char *berth_c_load(berth_c_printer *p, berth_expr id);
void berth_c_store(berth_c_printer *p, berth_stmt id);
// The element offset of an access, of scalars.
const char *berth_c_offset(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count);

// Where every lane of an access lies, in elements from the first one, whose place is *out_first. False:
// their distances are not known.
bool berth_c_lane_places(berth_c_printer *p, berth_buf buf, const berth_expr *indices, int count,
                         int lanes, berth_linear *out_first, int64_t *out_places);
// The largest power of two, up to 64, that divides the offset of the first lane whatever the loops'
// variables are.
int64_t berth_c_offset_alignment(berth_c_printer *p, berth_buf buf, const berth_expr *indices,
                                 int count);

// c_call.c: a call of external code, and the sources of what was called, in front of the kernels.
void berth_c_call(berth_c_printer *p, berth_stmt id);
void berth_c_add_callees(const berth_c_printer *p, berth_strbuf *out);
// Object code of what was called, each once.
void berth_c_callee_objects(const berth_c_printer *p, berth_codegen_result *out);

#endif  // BERTH_COMPILER_CODEGEN_C_FAMILY_H_
