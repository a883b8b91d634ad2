// The SPIR-V generator's state while it writes one kernel (private to compiler/codegen). Everything
// is scalar: a value of several lanes is a list of ids, one per lane, so that any number of lanes
// works; GPUs compute scalars per work-item anyway.
#ifndef BERTH_COMPILER_CODEGEN_SPIRV_PRINTER_H_
#define BERTH_COMPILER_CODEGEN_SPIRV_PRINTER_H_

#include "compiler/codegen/kernel_facts.h"
#include "compiler/codegen/spirv_builder.h"
#include "compiler/schedule/linear.h"

// Where a buffer is while a kernel is written.
typedef struct berth_spirv_buffer {
    enum { SPIRV_BUF_UNKNOWN, SPIRV_BUF_MEMORY, SPIRV_BUF_ARRAY, SPIRV_BUF_SCALARS } kind;
    uint32_t base;            // MEMORY: a pointer or variable of a structure; ARRAY: a variable
    const uint32_t *scalars;  // SCALARS: a variable per lane
    uint32_t pointer;         // type of pointers to elements
    berth_spirv_type type;    // of elements
} berth_spirv_buffer;

typedef struct berth_spirv_printer {
    berth_tfn *fn;  // a private copy: address arithmetic adds nodes
    berth_arena *arena;
    berth_ranges ranges;
    berth_spirv *m;
    berth_spirv_type index;  // of index arithmetic
    const uint32_t **vars;   // by variable: ids, one per lane
    const uint32_t **memo;   // by expression: its lanes, in the current statement
    uint32_t memo_count;
    BERTH_VEC(berth_expr) known;  // that have a memo
    berth_spirv_buffer *buffers;
    berth_spirv_type element_types[BERTH_DTYPE_COUNT];
    uint32_t arrays[SPIRV_TYPE_COUNT];      // runtime arrays of elements in memory
    uint32_t group_id, local_id;            // built-in variables, 0 = not used
    struct berth_spirv_matrices *matrices;  // spirv_matrix.h; NULL = the nest has none
    uint32_t
        apart;  // conditions and loops around the statement that work-items may leave at different times
    uint32_t unrolled;   // copies of the statement being written
    double around;       // how often a work-item comes by it
    double rounds;       // of all loops of the kernel, by one work-item
    bool float16;        // the target has arithmetic of f16
    bool f16_denormals;  // and promises to keep its small numbers
    berth_kernel_source *kernel;
    berth_status status;  // first error
} berth_spirv_printer;

void berth_spirv_fail(berth_spirv_printer *p, berth_status status);  // keeps the first

// What values of an element type are computed as, and what they are in memory.
berth_spirv_type berth_spirv_value_type(berth_dtype dtype);
berth_spirv_type berth_spirv_memory_type(const berth_spirv_printer *p, berth_dtype dtype);

// spirv_index.c
uint32_t berth_spirv_index(berth_spirv_printer *p, berth_expr id, int lane);
uint32_t berth_spirv_linear(berth_spirv_printer *p, berth_linear form);
uint32_t berth_spirv_index_int(berth_spirv_printer *p, int64_t value);
// A comparison of indices: decided by ranges (true or false constants), or code.
bool berth_spirv_is_index_comparison(const berth_spirv_printer *p, const berth_expr_node *node);
uint32_t berth_spirv_index_comparison(berth_spirv_printer *p, const berth_expr_node *node,
                                      int lane);

// spirv_expr.c: the lanes of an expression's value; conditions are booleans.
const uint32_t *berth_spirv_value(berth_spirv_printer *p, berth_expr id);
void berth_spirv_forget(berth_spirv_printer *p, uint32_t count);  // memos beyond the first `count`

// spirv_half.c: the lanes of an expression's value rounded to f16, as f16; the target has float16.
const uint32_t *berth_spirv_half(berth_spirv_printer *p, berth_expr id);

// spirv_memory.c
const uint32_t *berth_spirv_load(berth_spirv_printer *p, berth_expr id);
// Where every lane of a load lies, in elements from the first one, whose place is *out_first. False: their distances
// are not known.
bool berth_spirv_lane_places(berth_spirv_printer *p, berth_expr load, berth_linear *out_first,
                             int64_t *out_places);
// Where the first lane of a load of a buffer of scalars lies, and the element at such a place there.
uint32_t berth_spirv_first_place(berth_spirv_printer *p, berth_expr load);
uint32_t berth_spirv_load_place(berth_spirv_printer *p, berth_expr load, uint32_t place);
void berth_spirv_store(berth_spirv_printer *p, berth_stmt id);
// A pointer to an element of an array, and elements as they are in it.
uint32_t berth_spirv_element(berth_spirv_printer *p, berth_buf buf, uint32_t at);
void berth_spirv_declare(berth_spirv_printer *p, berth_buf buf);  // of a function or work-group
void berth_spirv_barrier(berth_spirv_printer *p);                 // spirv.c: of a work-group
void berth_spirv_bind(berth_spirv_printer *p);                    // parameters and workspace

#endif  // BERTH_COMPILER_CODEGEN_SPIRV_PRINTER_H_
