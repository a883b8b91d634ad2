// Session: a program opened on the devices of this machine, ready to run again and again. Opening
// does all the work (devices, memory, constants, code, command lists); running replays a static
// schedule and allocates nothing.
//
//   berth_session *session = NULL;
//   BERTH_TRY(berth_session_open(berth_allocator_system(), program, NULL, &session));
//   const berth_tensor *x = berth_session_input(session, 0);       // host memory, written in place
//   fill(x->data);
//   BERTH_TRY(berth_session_run(session, -1));
//   const berth_tensor *y = berth_session_output(session, 0);      // valid until the next run
//   berth_session_close(session);
//
// The program (and the arena or file behind it) must outlive the session. Thread-compatible: one
// thread at a time, except berth_session_cancel. Several sessions of one program may run at once,
// each with memory of its own.
#ifndef BERTH_EXECUTOR_SESSION_H_
#define BERTH_EXECUTOR_SESSION_H_

#include "artifact/program.h"
#include "base/alloc.h"
#include "devices/driver.h"

typedef struct berth_session berth_session;

// Which physical device a virtual one is. Without a row, virtual device n of a kind is the n-th
// device of its driver, and CPU devices share the cores (executor/device_choice.h).
typedef struct berth_session_binding {
    const char *name;      // the program's device: "opencl:0"
    uint32_t ordinal;      // of the driver's devices
    berth_device *device;  // an open device of the caller, who keeps it open; NULL = the session
                           // opens `ordinal`
    void *queue;           // one of the application's, whose device is opened then; NULL = none
    // (optional) Words for the driver (berth_device_options.attributes) behind those of the device's
    // target: where a board's memory is, which no program should say. The device is then chosen as if
    // there were no row. Ignored with `device`.
    const char *attributes;
} berth_session_binding;

typedef struct berth_session_options {
    const berth_session_binding *bindings;
    uint32_t binding_count;
    uint32_t thread_count;  // cpu: threads of a device the session opens; 0 = all cores
    bool profile;           // record when each step ran (about 0.1 us per step on cpu)
    const berth_caller_threads *threads;  // cpu: instead of a pool; NULL = a pool
    const char *cache_folder;  // of kernels that drivers compile; NULL = they are not kept
    // An open session of the same program, or of one with the same code (berth_vm_family_shares_code), whose
    // devices, threads, code and constants this one uses too: bindings, threads and profile are then that one's.
    // It closes after this one. NULL = none.
    berth_session *base;
    // Inputs and outputs that the program has in a device's memory are bound by the caller (berth_session_bind_input);
    // without it, such a program is refused.
    bool binds;
    bool verified;  // the program has passed berth_program_verify, and has not changed since
    // Where its workspace is taken from, of sessions that never run at the same time; they outlive it. NULL = it
    // has its own.
    struct berth_workspaces *workspaces;
    // With whom it shares devices and workspace, and takes turns: set by berth_turns_open (executor/turns.h).
    struct berth_turns *turns;
    // Of a program with fallbacks: what is said when one of them is used. `on_message` comes from the
    // thread that opens or runs. NULL = nobody is told, berth_session_plan tells who asks.
    void (*on_message)(void *user, const char *message);
    void *message_user;
    bool first_plan_only;  // never a fallback: an error, as without them
} berth_session_options;

// Opens a program; it is verified first. `options` NULL = defaults. A device of the program that no
// step and no pool uses, and no binding names, is not opened: it may be absent. Where one is not here,
// the first of the program's fallbacks is opened whose devices are; bindings hold there as far as they
// name a device of it.
//   ownership: everything is allocated through `allocator`, drivers and devices included
//   errors:    INVALID_ARGUMENT the program breaks a rule, or a binding names no device of it;
//   UNAVAILABLE a device is
//              not here (the message says which and what is here); OUT_OF_MEMORY; INCOMPATIBLE the
//              device needs another alignment or does not take the code; build failures with the
//              build log
BERTH_MUST_USE berth_status berth_session_open(berth_allocator allocator,
                                               const berth_program *program,
                                               const berth_session_options *options,
                                               berth_session **out_session);

// Waits for running work, then frees everything. NULL is fine.
void berth_session_close(berth_session *session);

const berth_program *berth_session_program(const berth_session *session);  // that it was opened for

// The plan of it that runs.
const berth_program *berth_session_program_in_use(const berth_session *session);

// The plan that runs: 0 is the program itself, i its fallback i - 1. `out_reason` (may be NULL): why no
// earlier one, "" for 0; valid until close. Thread-safe.
uint32_t berth_session_plan(berth_session *session, const char **out_reason);

// ---- inputs and outputs ----

// The host memory of an input or output, in the program's order; NULL when there is no such index.
// The pointer stays valid until close; do not touch the data while a run is under way. What nobody
// wrote yet is undefined.
const berth_tensor *berth_session_input(const berth_session *session, uint32_t index);
const berth_tensor *berth_session_output(const berth_session *session, uint32_t index);
const char *berth_session_input_name(const berth_session *session, uint32_t index);
const char *berth_session_output_name(const berth_session *session, uint32_t index);

// Index by name. Errors: NOT_FOUND (lists the names there are).
BERTH_MUST_USE berth_status berth_session_find_input(const berth_session *session, const char *name,
                                                     uint32_t *out_index);
BERTH_MUST_USE berth_status berth_session_find_output(const berth_session *session,
                                                      const char *name, uint32_t *out_index);

// Copies in and out. Errors: NOT_FOUND; INCOMPATIBLE element type or shape (names expected and
// given).
BERTH_MUST_USE berth_status berth_session_set_input(berth_session *session, const char *name,
                                                    const berth_tensor *value);
BERTH_MUST_USE berth_status berth_session_get_output(const berth_session *session, const char *name,
                                                     berth_tensor *value);

// ---- running ----

// Runs once and waits for the outputs. timeout_ns < 0 = no limit. Allocates nothing, after a failed
// run excepted. Where a device is lost (UNAVAILABLE) and a fallback does without it, that is opened, and
// this run and all later ones are done there, in the same inputs and outputs.
//   errors: the failure of a step, named by it ("conv1+relu1 on opencl:0: ..."); DEADLINE_EXCEEDED
//   (what runs is left
//           to end, what has not begun is dropped); CANCELLED. The session can run again
//           afterwards.
BERTH_MUST_USE berth_status berth_session_run(berth_session *session, int64_t timeout_ns);

// Runs once on buffers of the caller, in the program's order: in place where they are aligned as the
// pools are, apart from each other, and steps need nothing else there; else copied in or out. All are
// looked at before the run; after a failed run nothing uses them any more.
//   errors: INVALID_ARGUMENT not as many as the program has; INCOMPATIBLE element type or shape; those
//           of berth_session_run
BERTH_MUST_USE berth_status berth_session_run_with(berth_session *session,
                                                   const berth_tensor *inputs, uint32_t input_count,
                                                   const berth_tensor *outputs,
                                                   uint32_t output_count, int64_t timeout_ns);

// Of a session that `binds`: the device in whose memory the program has an input or output of its own, and the
// number of that memory; NULL: it is in the host's.
berth_device *berth_session_io_device(const berth_session *session, const berth_program_io *io,
                                      uint32_t *out_memory);
// For the next run with berth_session_run_with, where its tensor has no data then: such an input is read from
// `buffer`, an output written there; from its first byte on. The buffer stays until berth_session_unbind.
// Errors: INVALID_ARGUMENT the buffer is smaller, or it is in the host's memory; those of the device.
BERTH_MUST_USE berth_status berth_session_bind_input(berth_session *session, uint32_t index,
                                                     berth_buffer *buffer);
BERTH_MUST_USE berth_status berth_session_bind_output(berth_session *session, uint32_t index,
                                                      berth_buffer *buffer);
void berth_session_unbind(berth_session *session);  // all of them, after the run

// What berth_session_run_with looks at first: as many buffers as the program has, of its element types
// and shapes. Thread-safe.
BERTH_MUST_USE berth_status berth_session_check_buffers(const berth_session *session,
                                                        const berth_tensor *inputs,
                                                        uint32_t input_count,
                                                        const berth_tensor *outputs,
                                                        uint32_t output_count);

// Makes a run under way on another thread end with CANCELLED; when none is, the next one. Batches
// of steps that have begun still end. Thread-safe.
void berth_session_cancel(berth_session *session);

// After a failed run, or a cancel that came too late for its run: makes the session ready for the next
// run, which then is not cancelled by it. A run does so itself after a failed one. Waits for steps
// that still run. Errors: OUT_OF_MEMORY; the next run tries again.
BERTH_MUST_USE berth_status berth_session_recover(berth_session *session);

// ---- facts and profile ----

typedef struct berth_session_device_report {
    const char *name;  // the program's device
    const char *kind;
    const char *physical_name;  // the driver's device
    uint32_t kernel_count;      // dispatches per run
    uint32_t copy_count;        // copies per run, on this device's queues
    int64_t kernel_ns;          // of the last run, when profiling
    int64_t copy_ns;
    int64_t busy_ns;        // of both; steps of one queue do not overlap, those of several may
    uint64_t memory_bytes;  // planned, in its pools: the sum of the next three
    uint64_t workspace_bytes;
    uint64_t constant_bytes;
    uint64_t io_bytes;
    uint64_t
        borrowed_bytes;  // part of constant_bytes used where the program has it, without a copy
    // What the physical device had allocated at most at any one time (berth_device_peak_bytes), with
    // borrowed_bytes: measured, where memory_bytes is planned. Kernels' own memory for threads counts.
    uint64_t peak_bytes;
} berth_session_device_report;

typedef struct berth_session_step_report {
    const char *name;
    const char *op;
    uint32_t device;
    uint32_t queue;  // of the program
    bool is_copy;
    uint64_t copied_bytes;
    int64_t start_ns;  // base/clock.h; 0 when not profiling
    int64_t end_ns;
} berth_session_step_report;

// The arrays belong to the session; step and busy times are those of the last run.
typedef struct berth_session_report {
    const berth_session_device_report *devices;  // as the program lists them
    uint32_t device_count;
    const berth_session_step_report *steps;
    uint32_t step_count;
    uint64_t copied_bytes;  // by copy steps, per run
    uint64_t run_count;     // runs that succeeded
    bool profiled;
    int64_t run_start_ns;  // of the last run
    int64_t run_end_ns;
} berth_session_report;

// Fills in a report. Allocates nothing.
void berth_session_get_report(berth_session *session, berth_session_report *out_report);

// Writes the last run as a Chrome/Perfetto trace ("-" = stdout). Errors: FAILED_PRECONDITION not
// profiling, or nothing ran yet; IO.
BERTH_MUST_USE berth_status berth_session_write_trace(berth_session *session, const char *path);

#endif  // BERTH_EXECUTOR_SESSION_H_
