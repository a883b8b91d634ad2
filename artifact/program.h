// Program: what the compiler makes and an executor runs. Plain, immutable data; all of it lives in
// one arena (or in a mapped file) and refers by index. `berth build` writes it to a file
// (artifact/file.h), `berth run` opens it.
//
//   devices ─┬─ pools (one arena of memory each: workspace, constants, input/output)
//            └─ tensors (a range in a pool) ◀─ bindings of kernels, ends of copies, inputs, outputs
//   executables (images of code for a device kind) ◀─ kernels ◀─ steps (the static schedule of the
//   graph executor)
//
// The graph executor runs `steps` in order, each on its queue; a step starts when the steps it waits
// for (on other queues) are done; steps of one queue run in order. A device may have several queues,
// so that copies overlap its kernels. Programs of the executor "vm" are byte code around such
// programs. Thread-safe (immutable).
#ifndef BERTH_ARTIFACT_PROGRAM_H_
#define BERTH_ARTIFACT_PROGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "artifact/kernel_abi.h"
#include "base/arena.h"
#include "base/bits.h"
#include "base/dtype.h"
#include "base/tensor.h"

#define BERTH_NO_INDEX UINT32_MAX

// A virtual device. Opening a program binds each to a physical device of its kind.
typedef struct berth_program_device {
    const char *name;     // as the target names it: "opencl:0", "gpu"
    const char *kind;     // driver and kernel kind: "cpu", "opencl"
    uint32_t virtual_id;  // among the devices of its kind
    bool host_only;       // drives and holds host memory, but was not listed as a compute device
    const char *target_json;  // the device's own target, canonical
} berth_program_device;

// What a queue is for. Devices with an engine for copies run TRANSFER queues there.
typedef enum berth_queue_kind {
    BERTH_QUEUE_COMPUTE,   // kernels and copies
    BERTH_QUEUE_TRANSFER,  // copies only
} berth_queue_kind;

// A row of steps that run one after another, at the same time as those of other queues. Only the
// first queue of a device uses pools that it shares with devices of other kinds.
typedef struct berth_program_queue {
    uint32_t device;
    berth_queue_kind kind;
} berth_program_queue;

typedef enum berth_pool_usage {
    BERTH_POOL_WORKSPACE,  // intermediate values; content is undefined between runs
    BERTH_POOL_CONSTANT,   // filled once when the program is opened, then only read
    // Inputs and outputs, read and written by the host: on a cpu device. On another one, whoever runs the program
    // brings the memory (segments of byte code; executor/session.h, `binds`).
    BERTH_POOL_IO,
    BERTH_POOL_STORE,  // constants that stay where the program has them (its file, where it came
                       // from one) and take no memory of a device: only copies read them, into
                       // workspace. On a cpu device
} berth_pool_usage;

// One allocation, made when the program is opened.
//
// A pool may be shared: devices of a memory that several reach work in the very same bytes. Steps
// of two devices that touch the same bytes of a shared pool are then ordered by waits (directly or
// through others) even where both only read, unless both devices are cpu ones or the pool is
// CONSTANT: a device of another kind has the bytes for itself while it uses them (devices/driver.h,
// hand over).
typedef struct berth_program_pool {
    uint32_t device;
    const char *scope;  // memory scope: "global"; in plain C a further memory's name: "dtcm"
    berth_pool_usage usage;
    uint64_t size_bytes;
    uint32_t alignment_bytes;
    uint64_t lower_bound_bytes;  // no plan of these tensors can be smaller (for reports)
    berth_bits shared_with;      // devices that work in it too; not `device` itself
} berth_program_pool;

// A range of a pool that holds a tensor. Ranges overlap where lifetimes do not, and where one is a
// view of another.
typedef struct berth_program_tensor {
    const char *name;  // for reports; may be ""
    uint32_t pool;
    uint64_t offset_bytes;
    uint64_t size_bytes;  // with the padding of its layout
    berth_dtype dtype;
    int rank;
    int64_t dims[BERTH_MAX_RANK];  // logical dimensions
    const char *layout;            // "" = row-major, else an ir/layout.h tag
} berth_program_tensor;

// Of a tensor that continues an input (berth_program_io.continues): `outer` times `capacity` rows of
// `row_bytes`, of which the first dims[axis] are its own.
typedef struct berth_program_room {
    int axis;
    uint64_t outer, capacity, row_bytes;
} berth_program_room;
// False: its layout ("abCD64c16d": all from the axis on in one block of its size, but for the axis, which
// may have a larger one) or its size is another.
bool berth_program_tensor_room(const berth_program_tensor *tensor, berth_program_room *out_room);

// The file whose mapping the program's constants lie in, kept open: what stores are read from.
typedef struct berth_program_file {
    int fd;
    const uint8_t *data;  // the mapping: byte i of the file is data[i]
    uint64_t size_bytes;
} berth_program_file;

// Content of a constant tensor. `data` is borrowed (the arena, a mapped model or the mapped program
// file).
typedef struct berth_program_constant {
    uint32_t tensor;
    const void *data;  // size_bytes of the tensor
} berth_program_constant;

typedef struct berth_program_io {
    const char *name;
    uint32_t tensor;  // in an IO pool; row-major, but for outputs that continue an input
    // Of an output of a segment (artifact/vm.h): 0, or 1 + the input of its piece that it continues. Steps
    // write what comes after that input's rows alone; before a run the output's memory has these rows, in
    // the layout of its tensor, which has room for more (compiler/passes/append.h).
    uint32_t continues;
} berth_program_io;

// Indices that a run had, and what they index: element i of the tensor is below extents[i % width] and not
// below zero or, where `from_end`, -extents[i % width]. Kernels stay inside their buffers whatever the indices
// are; a run with others fails once its steps are done.
typedef struct berth_program_check {
    const char *node;  // "node \"pick\" (Gather)"
    uint32_t
        tensor;  // integers, row-major, in an IO pool, where steps leave them: an input, an output or of its own
    bool from_end;
    uint32_t width;
    int64_t extents[BERTH_MAX_RANK];
} berth_program_check;

// An image of code for one kind of device.
typedef struct berth_executable_image {
    const char *device_kind;
    const char *format;   // BERTH_FORMAT_*
    const char *options;  // opencl: build options; cpu: what the code needs of the processor, as
                          // "x86_64 avx2 fma"; "" for none
    const void *data;     // borrowed
    uint64_t size_bytes;
    // The external function of the module whose code it holds ("@gelu, language \"c\""); "" or NULL =
    // all of it was made by the compiler.
    const char *external;
} berth_executable_image;

typedef struct berth_program_kernel {
    uint32_t executable;
    const char *entry;
    uint32_t binding_count;                // buffers
    const berth_kernel_binding *bindings;  // what it does with each
    uint32_t constant_count;               // int64 constants
    uint32_t groups[3];                    // grid; cpu: groups[0] only
    uint32_t group_size[3];                // work-items per group; cpu: 1, 1, 1
    uint32_t scratch_bytes;                // per thread (cpu)
    double flops;                          // estimate, for reports
    double bytes;                          // bytes read and written at least once
} berth_program_kernel;

typedef enum berth_step_kind {
    BERTH_STEP_DISPATCH,
    BERTH_STEP_COPY,  // between the pools of two devices, or within one; on a queue of `device`,
                      // which works in one of them; the other is its own, on a cpu device, or on
                      // another device of its kind (direct: devices/driver.h, peer_open)
} berth_step_kind;

typedef struct berth_program_step {
    berth_step_kind kind;
    uint32_t queue;   // that runs it
    uint32_t device;  // that of the queue
    uint32_t kernel;  // DISPATCH
    const uint32_t
        *bindings;  // DISPATCH: kernel.binding_count tensors; COPY: [0] source, [1] destination
    const int64_t *constants;  // DISPATCH: kernel.constant_count values
    const uint32_t *waits;     // earlier steps on other queues that must be done
    uint32_t wait_count;
    const char *name;  // for profiles: fused node names "conv1+relu1", or "copy x cpu:0>opencl:0"
    const char *op;    // operator types "Conv+Relu", or "copy"
} berth_program_step;

// Where an operation of the model ended up and why (reports; the executor does not read it).
typedef struct berth_program_placement {
    const char *node;  // model node name
    const char *op;    // operator type in the model
    uint32_t device;
    const char *reason;   // one line: "pin 1 of those given", "default device", ...
    bool host_operation;  // shape arithmetic and other host work: --require does not count it
} berth_program_placement;

// Something beside what runs: the source of its kernels (`berth build --keep-source`).
typedef struct berth_program_attachment {
    // "source/0/k1_conv.c": letters, digits and "_-." in parts between slashes, of which none is "."
    // or "..", so that it names a file in a folder
    const char *name;
    const void *data;  // borrowed
    uint64_t size_bytes;
} berth_program_attachment;

typedef struct berth_program {
    const char *name;         // of the model
    const char *target_json;  // canonical MultiTarget it was planned for
    const berth_program_device *devices;
    uint32_t device_count;
    const berth_program_queue *queues;
    uint32_t queue_count;
    const berth_program_pool *pools;
    uint32_t pool_count;
    const berth_program_tensor *tensors;
    uint32_t tensor_count;
    const berth_program_constant *constants;
    uint32_t constant_count;
    const berth_program_io *inputs;
    uint32_t input_count;
    const berth_program_io *outputs;
    uint32_t output_count;
    const berth_program_check *checks;
    uint32_t check_count;
    const berth_executable_image *executables;
    uint32_t executable_count;
    const berth_program_kernel *kernels;
    uint32_t kernel_count;
    const berth_program_step *steps;  // graph executor: in a valid order
    uint32_t step_count;
    const berth_program_placement *placements;
    uint32_t placement_count;
    const berth_program_attachment *attachments;
    uint32_t attachment_count;
    // The same model for fewer or other devices, in the order of preference: what a session opens where
    // a device of this one is not here, and goes on with when one is lost. Of the same inputs and
    // outputs; without fallbacks of their own.
    const struct berth_program *const *fallbacks;
    uint32_t fallback_count;
    // Executor "vm" (artifact/vm.h): byte code and the programs of its segments, which bring their own
    // pools and steps. This program then has no steps, inputs and outputs, and its constants are those of
    // all of them, each once, in a store. Else NULL.
    const struct berth_vm_body *vm;
    // "graph"; "vm"; "aot": sources, which no session opens
    const char *executor;
    double predicted_ns;             // of one run, by the cost model; 0 = unknown
    const berth_program_file *file;  // NULL = it was not read from one
} berth_program;

// Plan 0 is the program itself, plan i its fallback i - 1; NULL: there is none of this number.
static inline const berth_program *berth_program_plan(const berth_program *program, uint32_t plan) {
    if (plan == 0) return program;
    return plan <= program->fallback_count ? program->fallbacks[plan - 1] : NULL;
}

// Whether `device` works in the pool: it is the pool's device, or the pool is shared with it.
static inline bool berth_program_pool_reached(const berth_program_pool *pool, uint32_t device) {
    return pool->device == device || berth_bits_has(pool->shared_with, device);
}

// Whether the two have bytes in common.
static inline bool berth_program_tensors_overlap(const berth_program_tensor *a,
                                                 const berth_program_tensor *b) {
    return a->pool == b->pool && a->offset_bytes < b->offset_bytes + b->size_bytes &&
           b->offset_bytes < a->offset_bytes + a->size_bytes;
}

// The device at the other end of a copy between two devices that are no cpu ones, which their driver
// makes without the host; BERTH_NO_INDEX: it is none. In artifact/verify.c.
uint32_t berth_program_copy_peer(const berth_program *program, const berth_program_step *step);

// Checks every index, range, order and overlap rule above; what passes can be opened without
// further checks. Errors: INVALID_ARGUMENT naming the record ("steps[3].bindings[1]: ..."). In
// artifact/verify.c.
//
// It proves that no step touches bytes outside of the tensors that it binds, as long as the code
// does what its kernels declare (kernel_abi.h): every tensor lies in its pool, and each binding of
// a dispatch has at least the bytes that the kernel touches there, is not a constant where it
// writes, and shares no byte with another one where either writes, unless both are declared for
// that. It looks at no code: a program from others is their native code (SECURITY.md).
BERTH_MUST_USE berth_status berth_program_verify(const berth_program *program);

// The text that declares a kernel in its code: grid, scratch, constants and bindings. Lives in the
// arena; equal declarations have equal texts. In artifact/declaration.c.
const char *berth_kernel_declaration(berth_arena *arena, const berth_program_kernel *kernel);

#endif  // BERTH_ARTIFACT_PROGRAM_H_
