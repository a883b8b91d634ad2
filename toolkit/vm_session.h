// A model under the virtual machine, ready to run: inputs of any shape that the model allows, any
// control flow. Straight-line parts are compiled when they are first reached with new shapes, and
// kept (the least recently used ones go when there are too many).
//
//   berth_vm_session *session;
//   BERTH_TRY(berth_vm_session_open("model.onnx", &options, &session));
//   BERTH_TRY(berth_vm_session_run(session, inputs, outputs));   // berth_vm_value per input, output
#ifndef BERTH_TOOLKIT_VM_SESSION_H_
#define BERTH_TOOLKIT_VM_SESSION_H_

#include "compiler/kernels/generic_kernels.h"
#include "executor/vm_runner.h"
#include "toolkit/model.h"
#include "toolkit/vm_general.h"

typedef struct berth_vm_session berth_vm_session;

// What runs did since the session was opened, and what it holds.
typedef struct berth_vm_report {
    uint64_t run_count;
    uint64_t instructions;     // of the last run
    uint64_t segment_runs;     // of the last run
    uint64_t host_operations;  // of the last run: computed on the host by the reference interpreter
    uint64_t host_data_operations;  // of these, those that are not arithmetic on a few integers
    uint32_t segment_count;         // in the code
    uint32_t compiled_count;        // segments compiled so far, one per shape
    uint32_t dropped_count;         // of these, given up for newer ones
    int64_t compile_ns;
    berth_generic_report
        kernels;               // functions of segments: compiled, and used again for other shapes
    uint32_t kernel_count;     // of all compiled segments
    uint64_t workspace_bytes;  // that all compiled segments have together
    berth_vm_general_report general;  // of the program for many shapes, where the session makes one
    // Of the session and of all that it keeps, but for packed constants: ends to grow with the limits of
    // what is kept, however many shapes come.
    uint64_t held_bytes;
} berth_vm_report;

// Imports the model without compiling it; with states it is compiled for all values of its bounds. Of `options`, import.inputs are not looked at (their shapes
// come with a run). `thread_count` 0 = all cores.
// Errors: those of import and target; UNSUPPORTED operations that byte code cannot express.
BERTH_MUST_USE berth_status berth_vm_session_open(const char *path,
                                                  const berth_model_options *options,
                                                  uint32_t thread_count,
                                                  berth_vm_session **out_session);
// The same for an ONNX model in memory that outlives the session; `folder` is where its external data
// is (NULL = none).
BERTH_MUST_USE berth_status berth_vm_session_open_memory(const void *data, size_t size_bytes,
                                                         const char *folder,
                                                         const berth_model_options *options,
                                                         uint32_t thread_count,
                                                         berth_vm_session **out_session);
void berth_vm_session_close(berth_vm_session *session);  // NULL is fine

// How many compiled segments are kept, and how many bytes of them (constants, inputs and outputs, what the
// compiler left); the one that runs may be larger. 0 = 256; 2 GiB. Code for several sizes is kept beside
// that, as long as the session.
void berth_vm_session_set_limits(berth_vm_session *session, uint32_t segments, uint64_t bytes);

// Where messages of what runs compile go from here on, and what ends it; those of the options until then.
void berth_vm_session_follow(berth_vm_session *session, berth_log log, berth_interrupt interrupt);

const berth_vm_program *berth_vm_session_program(const berth_vm_session *session);
// What is compiled already, of a program file; else NULL.
const berth_vm_body *berth_vm_session_body(const berth_vm_session *session);

// Runs once. `inputs`: a value per input, in order, borrowed. `outputs`: a reference per output, the
// caller's; NULL after an error. Thread-compatible, but for cancel.
// Errors: INCOMPATIBLE an input's element type, rank or fixed dimension; those of the compiler, of
// devices and of the machine, with the nodes they come from; CANCELLED.
BERTH_MUST_USE berth_status berth_vm_session_run(berth_vm_session *session,
                                                 berth_vm_value *const *inputs,
                                                 berth_vm_value **outputs);
// What values lie in: its limit and what it holds. Lives with the session.
berth_pool *berth_vm_session_pool(const berth_vm_session *session);
// Until nothing is compiled beside the runs any more: what later runs need is there then, if it will ever be.
void berth_vm_session_wait(berth_vm_session *session);
// What runs a program: of a file, or of a model with states; else NULL. The session's.
berth_vm_runner *berth_vm_session_runner(berth_vm_session *session);
// Before the first run: who is told each piece (<berth/dynamic.h>).
void berth_vm_session_watch(berth_vm_session *session, berth_vm_watch watch);
// Ends a run under way on another thread, or the next one. Thread-safe.
void berth_vm_session_cancel(berth_vm_session *session);

// Errors: as berth_program_require (toolkit/verify.h), of what was compiled and ran so far; no kernel
// at all is none. Arithmetic on a few integers may run on the host; other operations that ran there
// are UNAVAILABLE where the target's host is not among `devices`.
BERTH_MUST_USE berth_status berth_vm_session_require(const berth_vm_session *session,
                                                     const char *devices);

void berth_vm_session_get_report(const berth_vm_session *session, berth_vm_report *out_report);

#endif  // BERTH_TOOLKIT_VM_SESSION_H_
