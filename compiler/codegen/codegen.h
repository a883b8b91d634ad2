// Code generators: a scheduled tensor function → source text and the facts an executor needs about
// its kernels. They only print; what is fast is visible in the function, and `finish` makes an image
// of what was printed. One row per device kind in codegen.def.
#ifndef BERTH_COMPILER_CODEGEN_CODEGEN_H_
#define BERTH_COMPILER_CODEGEN_CODEGEN_H_

#include "artifact/program.h"
#include "base/str.h"
#include "compiler/toolchain/toolchain.h"
#include "ir/tensor/function.h"
#include "target/target.h"

// One kernel per nest of the function, in order.
typedef struct berth_kernel_source {
    const char *entry;  // symbol name
    const berth_buf
        *buffers;  // bindings: parameters and workspace buffers the nest uses, in argument order
    const bool *written;  // per binding
    const berth_kernel_binding *bindings;
    const double
        *moved_bytes;  // per binding: that loads and stores move in a dispatch; NULL = not known
    double scratch_moved_bytes;  // of private arrays
    uint32_t buffer_count;
    const int64_t *constants;  // of every dispatch
    uint32_t constant_count;
    uint32_t groups[3];
    uint32_t group_size[3];
    uint32_t scratch_bytes;  // per thread (cpu)
    double flops;
    // A condition chooses between what is read in two places, or a turn of a loop reads several elements under conditions.
    bool avoids_masks;
    bool gathers;  // single elements are read at places that are loaded
    double bytes;
} berth_kernel_source;

// What the program says of the kernel, but for its executable.
berth_program_kernel berth_kernel_source_record(const berth_kernel_source *source);

typedef struct berth_codegen_result {
    const char *source;  // the kernels' text without the helper functions that it calls; NULL where
                         // kernels are bytes
    const void *code;    // SPIR-V: the kernels' modules (artifact/kernel_abi.h)
    uint64_t code_bytes;
    const berth_object_code *objects;  // that the source calls
    uint32_t object_count;
    const berth_kernel_source *kernels;
    uint32_t kernel_count;
} berth_codegen_result;

// A printed function on its way into an image.
typedef struct berth_codegen_unit {
    const char *label;  // for messages and the names of kept sources
    const berth_codegen_result *code;
} berth_codegen_unit;

typedef struct berth_codegen_job {
    const berth_target *target;  // of all units
    const berth_codegen_unit *units;
    uint32_t count;  // at least 1
    bool foreign;    // people wrote the source: an image of its own, with nothing added
    const struct berth_compile_options *options;
    berth_arena *arena;
} berth_codegen_job;

// The image's bytes in the generator's own format.
typedef struct berth_codegen_bytes {
    const void *data;
    uint64_t size_bytes;
    const char *options;  // berth_executable_image.options
} berth_codegen_bytes;

typedef struct berth_codegen {
    const char *kind;    // target kind: "cpu", "opencl", "vulkan", "cuda"
    const char *format;  // BERTH_FORMAT_*
    // What --keep-source keeps of every unit, by its file name's end ("c"); NULL = nothing, since
    // the image is the source.
    const char *source_suffix;
    // Prints `fn`; `prefix` makes entry names unique ("k12" gives k12_0, k12_1, ...). What a device may
    // have or lack is taken from the features of `target`; NULL: it has none of them.
    berth_status (*print)(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result);
    // (optional) The same as a template (codegen/template.h), for kernels that serve several sizes;
    // with it, the texts that make n0, n1, ... of a dispatch's constants: among a kernel's arguments
    // (optional) and as its first lines.
    berth_status (*print_template)(const berth_tfn *fn, berth_arena *arena,
                                   berth_codegen_result *out_result);
    const char *(*number_arguments)(uint32_t count, berth_arena *arena);
    const char *(*number_lines)(uint32_t count, berth_arena *arena);
    // Words of targets ("a|b") beside those that intrinsics need (ir/tensor/intrinsic.h): the features that the printer asks for,
    // and architectures that have none of the instructions. NULL: any word will do (compiler/target_words.h).
    const char *features;
    const char *plain_archs;
    // (optional: result->source) The text to keep: a whole file.
    const char *(*source)(const berth_codegen_result *result, berth_arena *arena);
    // `finish` compiles: functions of several programs may be one image (compiler/kernels/later_code.h). Not where a driver
    // compiles all of an image when it is loaded.
    bool compiles;
    // One image of all units: compiled, or put together.
    berth_status (*finish)(const berth_codegen_job *job, berth_codegen_bytes *out_bytes);
} berth_codegen;

extern const berth_codegen berth_codegen_c;        // codegen/c.c: C with GCC/Clang vector types
extern const berth_codegen berth_codegen_c_plain;  // codegen/c_plain.c: C99, for executor aot
extern const berth_codegen berth_codegen_opencl;   // codegen/opencl.c: OpenCL C 1.2
extern const berth_codegen berth_codegen_spirv;    // codegen/spirv.c: SPIR-V 1.5
extern const berth_codegen berth_codegen_cuda;     // codegen/cuda.c: CUDA C
// codegen/described.c: facts of kernels and no code, for devices that are only planned for.
extern const berth_codegen berth_codegen_described;

// How C stores an element ("float"); NULL for types that it has none for.
const char *berth_codegen_c_type(berth_dtype dtype);

// NULL when no generator serves the kind.
const berth_codegen *berth_codegen_find(const char *kind);
// That of a target's devices of the kind: plain C where the executor is aot.
const berth_codegen *berth_codegen_for(const berth_multi_target *target, const char *kind);
// Every kind that a generator serves, for messages: "cpu and opencl".
const char *berth_codegen_kinds(berth_arena *arena);

#endif  // BERTH_COMPILER_CODEGEN_CODEGEN_H_
