// Code generators: a scheduled tensor function → source text and the facts an executor needs about
// its kernels. They only print; what is fast is visible in the function. One row per device kind in
// codegen.def.
#ifndef BERTH_COMPILER_CODEGEN_CODEGEN_H_
#define BERTH_COMPILER_CODEGEN_CODEGEN_H_

#include "artifact/program.h"
#include "ir/tensor_fn.h"

// One kernel per nest of the function, in order.
typedef struct berth_kernel_source {
    const char *entry;  // symbol name
    const berth_buf
        *buffers;  // bindings: parameters and workspace buffers the nest uses, in argument order
    const bool *written;  // per binding
    const berth_kernel_binding *bindings;
    uint32_t buffer_count;
    const int64_t *constants;  // of every dispatch
    uint32_t constant_count;
    uint32_t groups[3];
    uint32_t group_size[3];
    uint32_t scratch_bytes;  // per thread (cpu)
    double flops;
    double bytes;
} berth_kernel_source;

// What the program says of the kernel, but for its executable.
berth_program_kernel berth_kernel_source_record(const berth_kernel_source *source);

typedef struct berth_codegen_result {
    const char *source;  // complete compilation unit (C), or the kernels' text without the shared
                         // preamble (OpenCL)
    const berth_kernel_source *kernels;
    uint32_t kernel_count;
} berth_codegen_result;

typedef struct berth_codegen {
    const char *kind;    // target kind: "cpu", "opencl"
    const char *format;  // BERTH_FORMAT_*
    // Prints `fn`; `prefix` makes entry names unique ("k12" gives k12_0, k12_1, ...).
    berth_status (*print)(const berth_tfn *fn, const char *prefix, berth_arena *arena,
                          berth_codegen_result *out_result);
    // (optional) Text that goes once before the kernels of a program (helper functions).
    const char *(*preamble)(berth_arena *arena);
} berth_codegen;

extern const berth_codegen berth_codegen_c;       // codegen/c.c: C with GCC/Clang vector types
extern const berth_codegen berth_codegen_opencl;  // codegen/opencl.c: OpenCL C 1.2

// How C stores an element ("float"); NULL for types that it has none for.
const char *berth_codegen_c_type(berth_dtype dtype);

// NULL when no generator serves the kind.
const berth_codegen *berth_codegen_find(const char *kind);
// Every kind that a generator serves, for messages: "cpu and opencl".
const char *berth_codegen_kinds(berth_arena *arena);

#endif  // BERTH_COMPILER_CODEGEN_CODEGEN_H_
