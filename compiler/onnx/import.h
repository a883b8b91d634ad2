// ONNX import: a model file → a module with one graph function "main", whose operations are in the
// newest operator version's form (ir/graph/graph_ops.def), with locations that name the model's nodes.
#ifndef BERTH_COMPILER_ONNX_IMPORT_H_
#define BERTH_COMPILER_ONNX_IMPORT_H_

#include "base/limits.h"
#include "base/log.h"
#include "ir/graph/graph.h"

// A symbolic dimension fixed by the user (--dim N=60) or by the shape of a bound input.
typedef struct berth_dim_binding {
    const char *name;  // or "INPUT.AXIS", which is also the name of one that has no other
    int64_t extent;
} berth_dim_binding;

// What extents a symbolic dimension may have, by the user. `name` as above.
typedef struct berth_dim_bounds {
    const char *name;
    int64_t least, most;  // 0 <= least <= most
} berth_dim_bounds;

// A symbolic dimension that follows from others: "total" is "past+1" (ir/dim.h says what expressions there are). One
// symbol may be none of the model's, which has bounds or an extent, too: "height" is "32*a", a multiple of 32. Such a
// dimension is a number times that symbol, and perhaps a number.
typedef struct berth_dim_relation {
    const char *name;
    const char *expression;
} berth_dim_relation;

// A graph input whose value is known before compiling: its shape fixes the input's dimensions; with
// `as_constant` it is no input any more but a constant. An initializer that the model lists among its
// inputs is replaced by the value, and an input, or a constant; another one by a constant of its type and shape,
// and its own content, which may be in another file, is not read. (Where only shapes and branches need its
// value, it stays an input: berth_compile_options.known_inputs.)
typedef struct berth_input_binding {
    const char *name;
    berth_tensor tensor;
    bool as_constant;
} berth_input_binding;

// Initializers that the model lists among its inputs, so that callers may give other values (ONNX IR 4 and later).
typedef struct berth_import_overridables {
    berth_str_id *names;
    berth_type_id *types;  // as the inputs are declared
    uint32_t count;
} berth_import_overridables;

typedef struct berth_import_options {
    const berth_dim_binding *dims;
    uint32_t dim_count;
    // Dimensions with bounds stay open unless something fixes them, to an extent within the bounds. They
    // stand in attribute "bounds" of @main, "N=1..512,seq=1..128", which berth_vm_emit reads, too.
    const berth_dim_bounds *bounds;
    uint32_t bounds_count;
    const berth_dim_relation *relations;  // their dimensions have neither extent nor bounds
    uint32_t relation_count;
    bool bounds_at_most;  // instead of staying open they get the most of their bounds
    const berth_input_binding *inputs;
    uint32_t input_count;
    // Of `inputs` only constants are looked at, and which initializers become inputs, with the shapes that the model declares.
    bool inputs_stay_open;
    berth_import_overridables *overridables;  // filled in, in the module's arena; NULL = not asked
    // > 0: dimensions of the inputs that nothing fixes and that look like a batch get this extent, and
    // a note says so. Such a dimension is the first of every input that has it, and of one with more
    // dimensions.
    int64_t default_batch;
    // Dimensions, as `dims` names them, that stay open all the same. Names of none are no error.
    const char *const *open_dims;
    uint32_t open_dim_count;
    const berth_limits *limits;  // of what is read; NULL = the readers' own
    berth_log log;  // warnings: what the model or the inputs say of themselves is not so
} berth_import_options;

// Imports a file; the mapping of the file and of its external data belong to `arena` and constants
// borrow from it. Errors: NOT_FOUND, IO, INVALID_ARGUMENT with file and node; UNSUPPORTED lists all
// unknown operators at once.
BERTH_MUST_USE berth_status berth_onnx_import(berth_arena *arena, const char *path,
                                              const berth_import_options *options,
                                              berth_module **out_module);

// The same from memory that outlives the arena; `folder` is where external data is looked up (NULL
// = none allowed).
BERTH_MUST_USE berth_status berth_onnx_import_memory(berth_arena *arena, const void *data,
                                                     size_t size_bytes, const char *name,
                                                     const char *folder,
                                                     const berth_import_options *options,
                                                     berth_module **out_module);

#endif  // BERTH_COMPILER_ONNX_IMPORT_H_
