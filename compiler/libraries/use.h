// Operations that a library of the target may compute in place of our kernels (private to compiler/;
// functions.def, docs/libraries.md).
//
//   const berth_op_id *users = berth_library_users(graph, arena);
//   berth_library_use use;
//   if (berth_library_find(module, main, users, op, BERTH_LIBRARY_DNNL, target, &use)) ...
//
// A use takes with it what follows the operation and is done in the same call: the addition of a
// constant per column (a product's bias), the sum with another value (a residual), and a relu.
#ifndef BERTH_COMPILER_LIBRARIES_USE_H_
#define BERTH_COMPILER_LIBRARIES_USE_H_

#include "ir/graph/graph.h"
#include "ir/graph/op_params.h"
#include "target/target.h"

typedef enum berth_library_id {
#define LIBRARY(id, name, kind, file, package) BERTH_LIBRARY_##id,
#include "compiler/libraries/functions.def"
    BERTH_LIBRARY_COUNT
} berth_library_id;

typedef struct berth_library_facts {
    const char *name;  // in a target's libs
    berth_device_kind kind;
    const char *file;     // for the loader
    const char *package;  // "Debian package libdnnl2"
} berth_library_facts;

const berth_library_facts *berth_library_facts_get(berth_library_id id);
// The library of this name that devices of the kind may have in their libs. False: there is none.
bool berth_library_from_name(const char *name, berth_device_kind kind, berth_library_id *out_id);
// Whether there are libraries for devices of the kind.
bool berth_library_any_for(berth_device_kind kind);
// "openblas, dnnl"
const char *berth_library_names(berth_device_kind kind, berth_arena *arena);

// batch x [rows, depth] * [depth, columns], row-major
typedef struct berth_library_product {
    int64_t batch;
    int64_t rows, depth, columns;
    bool transposed_a, transposed_b;  // as they lie: [depth, rows], [columns, depth]
    bool shared_b;                    // by the whole batch (which is then 1: its rows are in one)
} berth_library_product;

typedef struct berth_library_convolution {
    berth_window window;
    int64_t images, inputs, outputs;
    bool depthwise;
    int64_t
        block;  // channels per block of the result, and of the input unless that is plain; 1 = all is plain
    bool plain_input;
} berth_library_convolution;

typedef struct berth_library_use {
    berth_library_id library;
    const char *what;  // "cblas_sgemm"
    berth_op_id op;
    berth_op_id last;            // whose result the call makes
    berth_value_id operands[4];  // as the call takes them: two, the bias, what is added to all
    uint32_t operand_count;
    bool bias, sum;
    bool relu;
    berth_dtype dtype;
    berth_op_kind kind;  // CONV or MATMUL (also for gemm)
    berth_library_product product;
    berth_library_convolution convolution;
    bool tf32;                // of f32: the target says that products of tf32 will do
    int64_t workspace_bytes;  // of the device, for the call: as its last result; 0 = none
    double flops;
    double result_bytes;
} berth_library_use;

#define BERTH_LIBRARY_MANY_USERS (BERTH_NONE - 1)

// Per value: the operation that uses it, BERTH_LIBRARY_MANY_USERS (results of the function count), or
// BERTH_NONE. In `arena`.
const berth_op_id *berth_library_users(const berth_graph *graph, berth_arena *arena);

// Whether the library can compute the operation, and what goes with it. `users` may be of the graph as
// it was before values were added. `target`: of the device.
bool berth_library_find(const berth_module *module, berth_func_id function,
                        const berth_op_id *users, uint32_t user_count, berth_op_id op,
                        berth_library_id library, const berth_target *target,
                        berth_library_use *out_use);

// What the use computes, apart from who does: "matmul f32[128,768]*[768,3072]+bias,relu". Under
// "NAME: KEY" measured times are kept (compiler/cost/table.h), "berth: KEY" of our own kernels.
const char *berth_library_key(const berth_library_use *use, berth_arena *arena);
#define BERTH_LIBRARY_COST_KIND "library"  // of these records
// Of the external function that calls the library: "NAME: KEY".
#define BERTH_LIBRARY_COST_KEY "cost_key"

// The C source of one use by `parts` threads at once at most, as an external function of language "c"
// (of a GPU's library: "cuda-host") with the symbol BERTH_LIBRARY_SYMBOL; `groups` is how many parts there are. `layouts`: tags of the
// operands and, last, of the result ("" = row-major). Inside berth_arena_try.
#define BERTH_LIBRARY_SYMBOL "berth_call"
typedef struct berth_library_code {
    const char *source;
    const char *const *imports;  // pairs of a library's file and a symbol
    uint32_t import_count;       // texts of these
    const char *language;        // of the external function
    int64_t groups;              // 0 = it is called once
} berth_library_code;
berth_library_code berth_library_code_of(const berth_library_use *use, const char *const *layouts,
                                         int64_t parts, berth_arena *arena);

#endif  // BERTH_COMPILER_LIBRARIES_USE_H_
