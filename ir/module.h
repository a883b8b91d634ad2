// The module: the one data structure of the compile side. It holds functions of several dialects
// that call each other:
//   graph     tensors in SSA form, if and loop regions, tuples, calls            (ir/graph/graph.h)
//   tensor    buffers, loops, loads and stores                                   (ir/tensor/function.h)
//   external  source or object code in some other language                       (ir/external.h)
// Everything lives in the module's arena and refers by dense 32-bit ids: types, strings, locations
// and virtual devices are module-wide; values, operations and regions belong to their function.
// Every pass is module → module. Thread-compatible. Functions that build are to be called inside
// berth_arena_try of the arena.
//
//   berth_module *module = berth_module_create(arena, "digits");
//   berth_func_id main_fn = berth_graph_create(module, "main", loc);
//   berth_type_id type = berth_type_tensor(module, BERTH_DTYPE_F32, 2, dims);
//   berth_value_id x = berth_graph_add_param(module, main_fn, "x", type);
//   berth_value_id y = berth_graph_op1(module, main_fn, BERTH_OP_RELU, &x, 1, loc);
//   berth_graph_set_results(module, main_fn, &y, 1);
#ifndef BERTH_IR_MODULE_H_
#define BERTH_IR_MODULE_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/tensor.h"

// Regions, statements and types nest at most so deep in the serial forms and in inference, which
// follow them by recursion.
#define BERTH_MAX_NESTING 500

#define BERTH_NONE UINT32_MAX  // no value, function, region, ...

typedef uint32_t berth_str_id;   // interned string; 0 = ""
typedef uint32_t berth_type_id;  // 0 = unknown type
typedef uint32_t berth_loc_id;   // 0 = unknown location
typedef uint32_t
    berth_device_id;  // interned virtual device (target/virtual_device.h); 0 = fully free
typedef uint32_t berth_func_id;
typedef uint32_t berth_value_id;   // in its function
typedef uint32_t berth_op_id;      // in its function
typedef uint32_t berth_region_id;  // in its function

// ---- types --------------------------------------------------------------------------------------

// A dimension is an extent (>= 0) or a symbol (< 0). Equal symbols are equal extents; the symbol
// "?" is just unknown and equals nothing.
static inline bool berth_dim_is_symbol(int64_t dim) {
    return dim < 0;
}
static inline int64_t berth_dim_symbol(berth_str_id name) {
    return -1 - (int64_t)name;
}
static inline berth_str_id berth_dim_symbol_name(int64_t dim) {
    return (berth_str_id)(-1 - dim);
}
#define BERTH_DIM_UNKNOWN                                                                          \
    ((int64_t)-2)  // the symbol "?": berth_module_create interns that name first, as id 1

typedef enum berth_type_kind {
    BERTH_TYPE_UNKNOWN,
    BERTH_TYPE_TENSOR,
    BERTH_TYPE_TUPLE,
    BERTH_TYPE_FUNCTION,
    BERTH_TYPE_STORAGE,  // raw memory (alloc_storage)
} berth_type_kind;

typedef struct berth_type {
    berth_type_kind kind;
    berth_dtype dtype;             // TENSOR; NONE = not known yet
    int rank;                      // TENSOR; -1 = not known yet
    int64_t dims[BERTH_MAX_RANK];  // TENSOR
    berth_str_id layout;           // TENSOR: layout tag (ir/layout.h), 0 = row-major
    uint32_t field_count;          // TUPLE: fields; FUNCTION: parameters followed by results
    uint32_t param_count;          // FUNCTION
    const berth_type_id *fields;
    bool holds_function;  // a function, or a tuple with one in it at any depth
} berth_type;

// ---- locations ----------------------------------------------------------------------------------

// Where something comes from: a node of a model, a line of text, a pin; or several of these fused.
typedef struct berth_loc {
    berth_str_id file;     // model or text file, or "command line"
    berth_str_id node;     // model node name (an unnamed node is OpType_index)
    berth_str_id op_type;  // operator type in the model: "Conv"
    uint32_t line;         // 1-based; 0 = none
    uint32_t column;
    uint32_t part_count;  // fused locations: the origins, in order
    const berth_loc_id *parts;
} berth_loc;

// ---- attributes ---------------------------------------------------------------------------------

typedef enum berth_attr_kind {
    BERTH_ATTR_INT,
    BERTH_ATTR_FLOAT,
    BERTH_ATTR_STRING,
    BERTH_ATTR_INTS,
    BERTH_ATTR_FLOATS,
    BERTH_ATTR_STRINGS,
    BERTH_ATTR_DTYPE,
    BERTH_ATTR_TENSOR,    // a literal; data borrowed (arena or mapped model)
    BERTH_ATTR_FUNCTION,  // reference to a module-level function
    BERTH_ATTR_DEVICE,    // a virtual device
    BERTH_ATTR_TYPE,
    BERTH_ATTR_OPAQUE,  // carried along untouched: compiled code (see berth_opaque_ops)
} berth_attr_kind;

// Hooks of an opaque attribute value, so that the IR need not see what it is.
typedef struct berth_opaque_ops {
    const char *kind;  // name in the `meta` section of the text form
    void (*print)(const void *value, berth_strbuf *out);  // (optional) a comment for people
    berth_status (*serialise)(const void *value,
                              berth_strbuf *out);  // (optional) else printing reports UNSUPPORTED
    berth_status (*parse)(berth_arena *arena, const char *text, size_t length,
                          void **out_value);  // (optional)
} berth_opaque_ops;

typedef struct berth_attr {
    berth_str_id name;
    berth_attr_kind kind;
    uint32_t count;  // INTS, FLOATS, STRINGS
    union {
        int64_t i;
        double f;
        berth_str_id s;
        const int64_t *ints;
        const double *floats;
        const berth_str_id *strings;
        berth_dtype dtype;
        const berth_tensor *tensor;
        berth_func_id function;
        berth_device_id device;
        berth_type_id type;
        struct {
            const berth_opaque_ops *ops;
            void *value;
        } opaque;
    };
} berth_attr;

typedef struct berth_attrs {
    BERTH_VEC(berth_attr) items;  // at most one per name
} berth_attrs;

// ---- module -------------------------------------------------------------------------------------

typedef struct berth_dialect berth_dialect;  // ir/dialect.h
struct berth_graph;
struct berth_virtual_device_table;

typedef struct berth_function {
    berth_str_id name;  // unique in the module
    const berth_dialect *dialect;
    void *body;  // berth_graph, berth_tfn, berth_external, or a vendor's own
    berth_attrs attrs;
    berth_loc_id loc;
    bool removed;  // tombstone: ids stay valid until berth_module_compact
} berth_function;

typedef struct berth_module {
    berth_arena *arena;
    berth_interner *strings;
    struct berth_virtual_device_table *devices;
    BERTH_VEC(berth_type) types;
    BERTH_VEC(berth_loc) locs;
    BERTH_VEC(berth_function) functions;
    BERTH_VEC(uint32_t) function_of_name;  // by string id: the last function of that name, + 1
    berth_attrs attrs;
    BERTH_VEC(berth_mapping) sources;  // mapped files that constants borrow from
    berth_str_id name;
    uint32_t *type_slots;  // hash table over `types`
    uint32_t type_slot_count;
} berth_module;

berth_module *berth_module_create(berth_arena *arena, const char *name);

// A copy for passes to change: `source`, which stays as it is, must live longer than `arena`, for what
// no pass changes (the data of literals, texts, code, opaque values) is not copied. Ids are the same. O(module).
berth_module *berth_module_copy(berth_arena *arena, const berth_module *source);

// Drops the pages of the mapped sources from memory: after a pass has read large constants to make
// others.
void berth_module_drop_source_pages(const berth_module *module);

berth_str_id berth_module_intern(berth_module *module, const char *text);
const char *berth_module_str(const berth_module *module, berth_str_id id);

// Types are interned: equal types have equal ids.
berth_type_id berth_type_tensor(berth_module *module, berth_dtype dtype, int rank,
                                const int64_t *dims);
berth_type_id berth_type_tensor_layout(berth_module *module, berth_dtype dtype, int rank,
                                       const int64_t *dims, berth_str_id layout);
berth_type_id berth_type_tuple(berth_module *module, const berth_type_id *fields, uint32_t count);
berth_type_id berth_type_function(berth_module *module, const berth_type_id *params,
                                  uint32_t param_count, const berth_type_id *results,
                                  uint32_t result_count);
berth_type_id berth_type_storage(berth_module *module);
const berth_type *berth_type_get(const berth_module *module,
                                 berth_type_id id);  // valid until a type is added
bool berth_type_is_static(const berth_type *type);   // tensor with known dtype, rank and extents
// Bytes of a static tensor type, with the padding of its layout.
uint64_t berth_type_size_bytes(const berth_module *module, berth_type_id id);
// "f32[1,N,56,56]{aBcd8b}", "f32[*]" (rank not known), "(f32[2], i64[])", "?" into `buffer`.
// Symbols and layouts that are no plain names are in quotes.
void berth_type_print(const berth_module *module, berth_type_id id, berth_strbuf *buffer);
// The "[1,N,56,56]{aBcd8b}" of it.
void berth_shape_print(const berth_module *module, int rank, const int64_t *dims,
                       berth_str_id layout, berth_strbuf *buffer);

berth_loc_id berth_loc_node(berth_module *module, const char *file, const char *node,
                            const char *op_type);
berth_loc_id berth_loc_text(berth_module *module, const char *file, uint32_t line, uint32_t column);
berth_loc_id berth_loc_fuse(berth_module *module, const berth_loc_id *parts,
                            uint32_t count);  // flattens, drops repeats
// As it is; parts are copied.
berth_loc_id berth_loc_add(berth_module *module, berth_loc loc);
const berth_loc *berth_loc_get(const berth_module *module, berth_loc_id id);
// Names of the nodes that a location stands for, or of their operators: "conv1+bn1", "Conv+BatchNorm".
// As long as the module, or in the arena.
const char *berth_loc_names(const berth_module *module, berth_loc_id id, bool operators,
                            berth_arena *arena);
// The same for people, where operations of text have no names: "conv1+12:3", the line and the column.
const char *berth_loc_label(const berth_module *module, berth_loc_id id, berth_arena *arena);
// `node "conv1" (Conv) in model.onnx`, `model.txt:3:7`, ... for messages.
const char *berth_loc_describe(const berth_module *module, berth_loc_id id, berth_arena *arena);

// Attributes: find by name; typed getters give `fallback` when absent. Setters replace.
const berth_attr *berth_attrs_find(const berth_module *module, const berth_attrs *attrs,
                                   const char *name);
int64_t berth_attrs_int(const berth_module *module, const berth_attrs *attrs, const char *name,
                        int64_t fallback);
double berth_attrs_float(const berth_module *module, const berth_attrs *attrs, const char *name,
                         double fallback);
const char *berth_attrs_string(const berth_module *module, const berth_attrs *attrs,
                               const char *name, const char *fallback);
// NULL and *out_count = 0 when absent.
const int64_t *berth_attrs_ints(const berth_module *module, const berth_attrs *attrs,
                                const char *name, uint32_t *out_count);
void berth_attrs_set(berth_module *module, berth_attrs *attrs, const char *name,
                     berth_attr value);  // value.name ignored
void berth_attrs_set_int(berth_module *module, berth_attrs *attrs, const char *name, int64_t value);
void berth_attrs_set_float(berth_module *module, berth_attrs *attrs, const char *name,
                           double value);
void berth_attrs_set_string(berth_module *module, berth_attrs *attrs, const char *name,
                            const char *value);
void berth_attrs_set_ints(berth_module *module, berth_attrs *attrs, const char *name,
                          const int64_t *values, uint32_t count);
// A value of a kind that nobody here knows: its serialised text, carried along. The text is borrowed.
berth_attr berth_attr_carried(berth_module *module, const char *kind, const char *text,
                              size_t length);
void berth_attrs_remove(berth_module *module, berth_attrs *attrs, const char *name);

// Functions.
berth_func_id
berth_module_add_function(berth_module *module, const char *name, const berth_dialect *dialect,
                          void *body,
                          berth_loc_id loc);  // a taken name gets a suffix ".1", ".2", ...
berth_func_id berth_module_find_function(const berth_module *module,
                                         const char *name);  // BERTH_NONE when absent
berth_function *berth_module_function(const berth_module *module, berth_func_id id);

#endif  // BERTH_IR_MODULE_H_
