// The virtual machine: runs byte code (artifact/vm.h). Control flow, sequences and counters are its
// own; segments and host operations are its caller's, who compiles segments for the shapes that come
// and keeps what it compiled.
//
//   berth_vm_machine machine = {.allocator = allocator, .run_segment = ..., .user = ...};
//   BERTH_TRY(berth_vm_run(&machine, program, inputs, outputs));
#ifndef BERTH_EXECUTOR_VM_H_
#define BERTH_EXECUTOR_VM_H_

#include <berth/dynamic.h>

#include "artifact/vm.h"
#include "base/atomics.h"
#include "executor/session.h"
#include "executor/vm_place.h"
#include "memory/bump.h"

#define BERTH_VM_MAX_CALL_DEPTH 64

typedef struct berth_vm_machine {
    berth_allocator allocator;  // of all values
    berth_bump
        *lists;  // of what lasts as long as a call of the byte code; NULL: lists of the run's own
    void *user;
    // Compute a segment, or an operation on the host: one new value (a reference for the machine) per
    // output. An input is NULL where the operand is left out. Inputs may be looked at until the call
    // ends. After an error no output is looked at.
    berth_status (*run_segment)(void *user, uint32_t segment, berth_vm_value *const *inputs,
                                berth_vm_value **outputs);
    berth_status (*run_host)(void *user, uint32_t operation, berth_vm_value *const *inputs,
                             berth_vm_value **outputs);
    berth_vm_traffic *traffic;  // counts values on devices that the machine itself looks at
    const atomic_uint
        *cancelled;  // (optional) not 0, set by any thread: the run ends with CANCELLED
    // Counts of the last run.
    uint64_t instructions;
    uint64_t segments;
    uint64_t host_operations;
} berth_vm_machine;

// Runs the first function of a verified program. `inputs`: program->input_count values, borrowed;
// `outputs`: as many references as the program has outputs, the caller's; all NULL after an error.
// Errors: INVALID_ARGUMENT (a condition that is no truth value, a position outside a sequence, ...),
// those of the callbacks with the piece's name before them; CANCELLED; OUT_OF_RANGE calls too deep.
BERTH_MUST_USE berth_status berth_vm_run(berth_vm_machine *machine, const berth_vm_program *program,
                                         berth_vm_value *const *inputs, berth_vm_value **outputs);

// Whether these values fit the program's inputs. Errors: INCOMPATIBLE an input's element type, rank or
// fixed dimension.
BERTH_MUST_USE berth_status berth_vm_check_inputs(const berth_vm_program *program,
                                                  berth_vm_value *const *inputs);

// ---- pieces: what callers have in common ---------------------------------------------------------

// The inputs of a piece as tensors; left out ones as such of element type NONE. Errors: INVALID_ARGUMENT
// one is no tensor.
BERTH_MUST_USE berth_status berth_vm_piece_tensors(const berth_vm_piece *piece,
                                                   berth_vm_value *const *inputs,
                                                   berth_tensor *out_tensors);

// Who is told what ran; `listener` NULL = nobody.
typedef struct berth_vm_watch {
    berth_piece_listener listener;
    void *user;
} berth_vm_watch;

// What a piece is given: its inputs, dense.
typedef struct berth_vm_piece_call {
    const berth_vm_piece *piece;
    const berth_vm_watch *watch;
    const berth_tensor *inputs;
    berth_allocator allocator;  // of the outputs
    // (optional) Of the same inputs, for outputs that continue them and for programs with inputs and outputs in
    // memory of devices; `dense`: what stands for them (NULL: themselves).
    berth_vm_value *const *values, *const *dense;
    berth_tensor *room;  // as many as the program has inputs and outputs
    // NULL without `values`. Of what is continued: counts what had to be copied.
    uint64_t *copied_bytes;
    berth_vm_traffic *traffic;
    berth_workspaces *blocks;  // of values in memories of devices
} berth_vm_piece_call;

// Runs a session of a piece's program (berth_vm_variant_input names its inputs): kernels read the inputs
// where they are, and write the outputs where they stay. Errors: those of berth_session_run_with and
// berth_vm_grown_make; no output is left then.
BERTH_MUST_USE berth_status berth_vm_piece_run(berth_session *session, const berth_program *program,
                                               const berth_vm_piece_call *call,
                                               berth_vm_value **outputs);
// New values with copies of these tensors. Errors: OUT_OF_MEMORY; no output is left then.
BERTH_MUST_USE berth_status berth_vm_piece_give(berth_allocator allocator,
                                                const berth_tensor *tensors, uint32_t count,
                                                berth_vm_value **outputs);

#endif  // BERTH_EXECUTOR_VM_H_
