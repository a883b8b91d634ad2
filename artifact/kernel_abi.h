// The kernel ABI: what generated code and drivers agree on. Both the compile side and the run side
// see this file.
//
// A kernel runs over a grid of groups. Every group may run at any time and on any thread; groups of
// one dispatch never depend on each other. What must happen in order are dispatches: a tensor
// function with several loop nests becomes several kernels.
//
// cpu     A shared object (ELF) that exports one function per kernel, of type berth_cpu_kernel. The
//         group index is flat: the driver hands out ranges [begin, end) of [0, groups[0]) to the
//         threads of its pool. `scratch` is private to the calling thread, kernel->scratch_bytes
//         long and aligned to 64 bytes (NULL when 0). What it calls in shared libraries it says in
//         the symbol `berth_imports`: an array of berth_kernel_import whose last has no library; the
//         driver loads these libraries and fills in the addresses before any kernel runs. A symbol
//         `berth_imports_note` is text for the message when that fails ("Debian package libopenblas0").
//         Then `berth_open`, where the code has it, is called: what it returns is why the code cannot
//         run here, or NULL. Code with `berth_imports` is loaded for each executable anew, so that what
//         `berth_open` makes belongs to one; a destructor may free it.
// opencl  OpenCL C source; kernel arguments are the buffers in order (`__global` pointers), then
//         the constants as `long`; work-groups are groups[3] x group_size[3] (get_group_id runs
//         over groups).
// vulkan  SPIR-V 1.5 modules in a row, each behind its length: a 32-bit count of words, then as many
//         words. A module has one entry point, of the GLCompute model, whose name is the kernel's.
//         Buffers are reached through their addresses (PhysicalStorageBuffer): push constants hold
//         the addresses of the buffers in order, then the constants, 8 bytes each, where these are
//         BERTH_SPIRV_PUSHED_MAX at most; else only the address of a table that holds them in the
//         same order. Work-groups are groups[3] x group_size[3] (the module's LocalSize).
// cuda    CUDA C source text (C++ with extern "C" kernels) that includes nothing; NVRTC compiles it when a program is opened. Kernel arguments are the buffers in
//         order, then the constants as 64-bit integers; blocks are groups[3] of group_size[3]
//         threads. A kernel whose arrays in shared memory are larger than 48 KiB takes it from
//         the launch: a line `// berth_declares_ENTRY/shared: BYTES` says how much.
//         Or a shared object as for cpu: code that the host runs while it fills a queue's stream, with the device's
//         context current, and that puts its work there. `buffers` are addresses of the device, `scratch` is a
//         berth_stream_call; the grid is [0, groups[0]), in one call.
// vta     its own library has the format (drivers/vta).
//
// Declarations. What a kernel does to its buffers (berth_kernel_binding), its grid and its scratch
// stand in the program's record of it, and once more in the code itself, as one text
// (berth_kernel_declaration): a driver compares the two when it finds the kernel, so that a record
// cannot be changed without the code.
//   cpu     `const char berth_declares_ENTRY[]`, an exported symbol
//   opencl, cuda  a line `// berth_declares_ENTRY: TEXT`
//   vulkan  an OpString `berth_declares_ENTRY: TEXT` of the module
// Code written by hand may leave it out.
#ifndef BERTH_ARTIFACT_KERNEL_ABI_H_
#define BERTH_ARTIFACT_KERNEL_ABI_H_

#include <stdint.h>

// buffers:   one pointer per binding, in the order of the kernel's parameters, each aligned as its
//            pool says; those of a program's inputs and outputs may be the caller's, aligned as
//            their elements
// constants: values of symbolic dimensions and other per-dispatch integers; NULL when there are
// none
typedef void (*berth_cpu_kernel)(void *const *buffers, const int64_t *constants, int64_t begin,
                                 int64_t end, void *scratch);

// Of code that the host runs for a GPU.
typedef struct berth_stream_call {
    void *stream;         // cuda: the CUstream that the work goes into
    const char *failure;  // set where it could not: why, for a message; stays as long as the code
} berth_stream_call;

typedef struct berth_kernel_import {
    const char *library;  // as the system's loader takes it; NULL ends the array
    const char *symbol;
    void *address;  // set by the driver
} berth_kernel_import;

#define BERTH_IMPORTS_SYMBOL "berth_imports"
#define BERTH_IMPORTS_NOTE_SYMBOL "berth_imports_note"
#define BERTH_OPEN_SYMBOL "berth_open"
typedef const char *(*berth_open_function)(void);

// What a kernel may do with a buffer: bits.
typedef enum berth_access {
    BERTH_ACCESS_READ = 1,
    BERTH_ACCESS_WRITE = 2,
    BERTH_ACCESS_ALIAS = 4,  // may be the very same bytes as another binding that has this bit
} berth_access;

// One buffer of a kernel, for every group of its grid.
typedef struct berth_kernel_binding {
    uint64_t size_bytes;  // it touches nothing outside of the first size_bytes
    uint32_t access;      // berth_access
} berth_kernel_binding;

#define BERTH_DECLARATION_PREFIX "berth_declares_"

// Executable formats (berth_executable_image.format).
#define BERTH_FORMAT_CPU_ELF "elf"  // x86-64 or aarch64 shared object with berth_cpu_kernel symbols
#define BERTH_FORMAT_OPENCL_C "opencl-c"  // source text
#define BERTH_FORMAT_SPIRV "spirv"        // modules, each behind its length
#define BERTH_FORMAT_CUDA_C "cuda-c"      // source text
// C99 text of programs for the executor "aot" (compiler/bare): static functions named as the kernels,
// whose parameters are pointers to the buffers in order; each runs its whole grid.
#define BERTH_FORMAT_C "c"
// In that text: a static array of bytes, as large as the largest scratch of a kernel, aligned to 8.
#define BERTH_PLAIN_SCRATCH "berth_scratch"

// vulkan: an OpString of this and the rounds that one work-item makes in all loops, for devices that
// end loops early.
#define BERTH_SPIRV_ROUNDS_PREFIX "berth_rounds: "

// vulkan: an OpString of this and the rest of the name of the feature of targets that has the cooperative matrices of a module.
#define BERTH_SPIRV_MATRIX_PREFIX "berth_needs: cooperative_"

// vulkan: addresses and constants that fit into the push constants that every device has.
#define BERTH_SPIRV_PUSHED_MAX 16

// cuda, before the colon of that line.
#define BERTH_CUDA_SHARED_SUFFIX "/shared"

// Alignment of tensors in the pools of such programs: the largest element.
#define BERTH_PLAIN_ALIGNMENT_BYTES 8

// Alignment of every tensor in a pool unless the device asks for more.
#define BERTH_DEFAULT_ALIGNMENT_BYTES 128
// The same on cpu devices: a cache line and the widest vector, so that more parts of a value can be
// tensors of their own.
#define BERTH_CPU_ALIGNMENT_BYTES 64

#endif  // BERTH_ARTIFACT_KERNEL_ABI_H_
