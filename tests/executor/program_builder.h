// Builds small programs by hand: float vectors, a handful of kernels in C and OpenCL C, waits found
// from who reads and writes what. The C code is compiled with the system's compiler.
#ifndef BERTH_TESTS_EXECUTOR_PROGRAM_BUILDER_H_
#define BERTH_TESTS_EXECUTOR_PROGRAM_BUILDER_H_

#include "artifact/program.h"

typedef struct builder builder;

// Everything lives in `arena`, used outside of berth_arena_try (a test aborts when memory runs
// out).
builder *builder_create(berth_arena *arena, const char *name);

uint32_t builder_device(builder *b, const char *kind, uint32_t virtual_id);

// From here on, pools of `device` are shared with the devices of the bits in `with`, and steps of
// two queues that touch one tensor are ordered even where both only read it. Call it first.
void builder_share(builder *b, uint32_t device, uint64_t with);

// Vectors of `count` floats, each in bytes of its own.
uint32_t builder_tensor(builder *b, uint32_t device, uint32_t count);
uint32_t builder_constant(builder *b, uint32_t device, const float *values, uint32_t count);
uint32_t builder_input(builder *b, uint32_t cpu_device, const char *name, uint32_t count);
uint32_t builder_output(builder *b, uint32_t cpu_device, const char *name, uint32_t count);

// y = entry(x...): "add" (2 inputs), "scale" (1 input, times `factor`), "sleep" (1 input, cpu only:
// `factor` milliseconds, then y = x). The last tensor is the result. Returns the step.
uint32_t builder_dispatch(builder *b, uint32_t device, const char *entry, const uint32_t *tensors,
                          uint32_t count, int64_t factor);
uint32_t builder_copy(builder *b, uint32_t device, uint32_t from, uint32_t to);

// A queue of `device` for copies, besides the one that it has; and a copy there.
uint32_t builder_transfer_queue(builder *b, uint32_t device);
uint32_t builder_transfer(builder *b, uint32_t transfer_queue, uint32_t device, uint32_t from,
                          uint32_t to);

// Compiles the code and gives the program. `opencl_source` NULL = the right one.
berth_program *builder_finish(builder *b, const char *opencl_source);

// Bytes of the shared object with the C kernels; NULL when there is no compiler.
const void *builder_cpu_code(berth_arena *arena, size_t *out_size_bytes);

#endif  // BERTH_TESTS_EXECUTOR_PROGRAM_BUILDER_H_
