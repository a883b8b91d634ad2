// Session: a program opened on the devices of this machine, ready to run again and again. Opening does
// all the work (devices, memory, constants, code); running allocates nothing.
//
//   berth_session *session;
//   berth_status status = berth_session_create(program, NULL, &session);
//   if (!status) status = berth_session_run_with(session, &image, 1, &scores, 1, -1);
//   berth_session_destroy(session);
//
// Threads: one thread at a time uses a session, except berth_session_cancel. Any number of sessions
// of one program may run at once, each with memory of its own; constants in host memory exist once.
// Those of berth_session_create_together have one workspace, and run in turns.
#ifndef BERTH_SESSION_H_
#define BERTH_SESSION_H_

#include <berth/allocator.h>
#include <berth/program.h>
#include <berth/status.h>
#include <berth/tensor.h>
#include <berth/threads.h>
#include <berth/vulkan_queue.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_session berth_session;

// Which of this machine's devices one of the program's is. Without one, device n of a kind is the n-th
// device that the kind's driver finds.
typedef struct berth_device_choice {
    const char *device;  // the program's: "opencl:0"
    uint32_t ordinal;    // of the driver's devices (berth_device_facts)
} berth_device_choice;

// Words for the driver of one of the program's devices, after those of the device's target: where a board is
// reached, which no program should say (docs/vta.md has those of the VTA).
typedef struct berth_device_words {
    const char *device;  // the program's: "vta:0"
    const char *words;   // "memory=/dev/udmabuf0 memory_base=0x1f000000"
} berth_device_words;

// A queue that the caller has made, for one of the program's devices: work of Berth's goes there, in the
// device and context of that queue.
//
// Of opencl devices: `queue` is an in-order cl_command_queue of a device that Berth lists, from the
// libOpenCL.so.1 that the process has loaded; for profiles made with CL_QUEUE_PROFILING_ENABLE. Berth keeps
// references, not the caller's: they may be released once the session is open.
// Of cuda devices: `queue` is a CUstream (a cudaStream_t is one) in the primary context of its device, as those of the
// runtime API and of PyTorch are; not the default stream. CUDA counts no references: it outlives the session.
//
// Of vulkan devices: `queue` points to a berth_vulkan_queue (<berth/vulkan_queue.h>), which says what else belongs to it.
//
// The commands of a run come behind what is in the queue when the run is submitted, and are complete when it has
// ended: what is enqueued after that comes after them. What is enqueued meanwhile may come between them.
typedef struct berth_caller_queue {
    const char *device;  // the program's: "opencl:0"
    void *queue;
} berth_caller_queue;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members
// at the end; size_bytes says which there are.
typedef struct berth_session_settings {
    size_t size_bytes;         // sizeof(berth_session_settings)
    uint32_t thread_count;     // of the processor; 0 = as many as its target has cores
    int profile;               // not 0: record when each step ran (about 0.1 us a step)
    const char *cache_folder;  // of kernels that drivers compile; NULL = they are not kept
    const berth_device_choice *devices;
    uint32_t device_count;
    // Of all that the session and its devices allocate themselves in host memory, workspaces included;
    // NULL = malloc. Copied; its state outlives the session. Statuses and libraries of vendors use malloc.
    const berth_allocator *allocator;
    // Of a program with fallbacks: told when one of them is used, and why, by the thread that opens or
    // runs. NULL = nobody is told; berth_session_plan tells who asks.
    berth_message_callback on_message;
    void *message_user;
    int first_plan_only;  // not 0: no fallback; a device that is not here or lost is an error
    // Used by the processor's kernels instead of threads of their own, and of `thread_count`; NULL = own
    // ones. Copied; `user` outlives the session. Where these run is the caller's: targets that give cpu
    // devices certain cores do not move them.
    const berth_caller_threads *threads;
    const berth_caller_queue *queues;  // before what `devices` says of the same device
    uint32_t queue_count;
    // An open session of the same program, whose devices, threads, code and constants this one uses, too; choices,
    // queues, threads and profile are then that one's. It is destroyed after this one. NULL = none.
    struct berth_session *share;
    // Of devices that neither `devices` nor `queues` names.
    const berth_device_words *device_words;
    uint32_t device_word_count;
} berth_session_settings;

// Opens a program; `settings` NULL = defaults. Where a device is not here, the first of the program's
// fallbacks is opened whose devices are. Choices of devices hold there by the names of devices.
//   ownership: the session keeps a reference of the program; nothing of `settings` is kept
//   errors:    UNAVAILABLE a device is not here (says which, and what is here); INVALID_ARGUMENT a
//              choice names no device of the program; INCOMPATIBLE the device does not take the code;
//              or the queue; UNSUPPORTED devices of that kind take no queue; OUT_OF_MEMORY
BERTH_API BERTH_MUST_USE berth_status berth_session_create(berth_program *program,
                                                           const berth_session_settings *settings,
                                                           berth_session **out_session);
// Opens a session of each of several programs, which run in turns: they use the same devices and threads, and in each
// memory one workspace of the largest one's size, where sessions apart have one each. Constants, inputs and outputs are
// each session's own, so results stay while another one runs. `out_sessions` has room for `program_count`; all are open,
// or none. `settings` as above, for all of them: choices, queues and words are for the programs that have the device.
// Where several devices of a program work in the same memory, what they share is that session's own.
//   ownership: each session keeps a reference of its program; they are destroyed in any order
//   errors:    those of berth_session_create; INVALID_ARGUMENT no program, or settings.share; UNSUPPORTED a program of
//              the executor vm
//   threads:   each session by one thread at a time; a run waits until that of another one has ended, up to its
//              own timeout (DEADLINE_EXCEEDED)
BERTH_API BERTH_MUST_USE berth_status
berth_session_create_together(berth_program *const *programs, uint32_t program_count,
                              const berth_session_settings *settings, berth_session **out_sessions);
// Bytes of workspace that the session has together with others; 0 = it was opened by itself.
BERTH_API uint64_t berth_session_common_workspace_bytes(berth_session *session);

// Which plan runs: 0 is the program itself, i its fallback i - 1. `out_reason` (may be NULL): why no
// earlier one, "" for 0; valid until the session is destroyed.
BERTH_API uint32_t berth_session_plan(berth_session *session, const char **out_reason);

// Waits for running work, then frees everything. NULL is fine.
BERTH_API void berth_session_destroy(berth_session *session);

// The session's own memory of an input or output, in the program's order: write inputs and read
// outputs there and nothing is copied on the host. NULL when there is no such index. Valid until the
// session is destroyed; do not touch the data during a run. What nobody wrote yet is undefined;
// inputs keep their content from run to run.
BERTH_API const berth_tensor *berth_session_input(const berth_session *session, uint32_t index);
BERTH_API const berth_tensor *berth_session_output(const berth_session *session, uint32_t index);
BERTH_API const char *berth_session_input_name(const berth_session *session, uint32_t index);
BERTH_API const char *berth_session_output_name(const berth_session *session, uint32_t index);

// Index by name. Errors: NOT_FOUND (lists the names there are).
BERTH_API BERTH_MUST_USE berth_status berth_session_find_input(const berth_session *session,
                                                               const char *name,
                                                               uint32_t *out_index);
BERTH_API BERTH_MUST_USE berth_status berth_session_find_output(const berth_session *session,
                                                                const char *name,
                                                                uint32_t *out_index);

// Copies in and out. Errors: NOT_FOUND; INCOMPATIBLE element type or shape (names expected and given).
BERTH_API BERTH_MUST_USE berth_status berth_session_set_input(berth_session *session,
                                                              const char *name,
                                                              const berth_tensor *value);
BERTH_API BERTH_MUST_USE berth_status berth_session_get_output(const berth_session *session,
                                                               const char *name,
                                                               berth_tensor *value);

// Runs once and waits for the outputs. timeout_ns < 0 = no limit. Allocates nothing, after a failed
// run excepted.
// When a device is lost and a fallback of the program does without it, that is opened (which takes as long
// as opening a session does), and the run is done again there, as are all later ones. Steps and traces are
// then those of that plan.
//   errors: the failure of a step, named by it; DEADLINE_EXCEEDED (what runs is left to end, what has
//           not begun is dropped); CANCELLED. The session can run again afterwards.
BERTH_API BERTH_MUST_USE berth_status berth_session_run(berth_session *session, int64_t timeout_ns);

// Runs once on the caller's buffers: inputs[i] and outputs[i] are those of the program's order, all of
// them, of its element types and shapes. Data may have any alignment. What lies in host memory of the
// program, is aligned as its elements are, and overlaps no output is used where it is, as is the session's
// own memory (berth_session_input); anything else is copied once. A run that fails or is cancelled returns
// when nothing uses the buffers any more, which for a deadline may be later.
//   errors: INVALID_ARGUMENT not as many as the program has; INCOMPATIBLE element type or shape (names
//           the input); those of berth_session_run. After an error the outputs are undefined.
BERTH_API BERTH_MUST_USE berth_status
berth_session_run_with(berth_session *session, const berth_tensor *inputs, uint32_t input_count,
                       const berth_tensor *outputs, uint32_t output_count, int64_t timeout_ns);

// Makes a run under way on another thread end with CANCELLED; when none is, the next one. Steps that
// have begun still end. Thread-safe.
BERTH_API void berth_session_cancel(berth_session *session);

// ---- profile: of the last run, for sessions with settings.profile ----

// One step of the schedule. Later versions may add members at the end.
typedef struct berth_step_facts {
    const char *name;       // nodes of the model: "conv1+relu1", or "copy x cpu:0>opencl:0"
    const char *op;         // their operators: "Conv+Relu", or "copy"
    const char *device;     // "opencl:0"
    uint64_t copied_bytes;  // of copies, else 0
    int64_t start_ns;       // since the run began; 0 without settings.profile
    int64_t duration_ns;    // 0 without settings.profile
    int is_copy;            // not 0: a copy, not a kernel
    double flops;           // of a kernel, as the compiler estimates them
    double bytes;           // that a kernel reads and writes at least once; of a copy, copied
    // What it makes, the first where it is several: without data, of rank -1 where that is unknown.
    berth_tensor result;
} berth_step_facts;

BERTH_API uint32_t berth_session_step_count(const berth_session *session);
// Fills in step `index`, the first `size_bytes` (sizeof(berth_step_facts)) of it. Errors: OUT_OF_RANGE
// no such step; INVALID_ARGUMENT a size that is none.
BERTH_API BERTH_MUST_USE berth_status berth_session_get_step(berth_session *session, uint32_t index,
                                                             berth_step_facts *out_facts,
                                                             size_t size_bytes);

// The last run from its beginning to its end; 0 = nothing ran yet.
BERTH_API int64_t berth_session_run_ns(berth_session *session);

// One of the program's devices. Later versions may add members at the end.
typedef struct berth_session_device_facts {
    const char *device;         // "opencl:0"
    const char *physical_name;  // of this machine's device
    uint32_t kernel_count;      // dispatches per run
    uint32_t copy_count;        // copies per run
    int64_t busy_ns;            // of the last run; 0 without settings.profile
    uint64_t memory_bytes;      // planned
    uint64_t peak_bytes;  // that the physical device had allocated at most at a time, measured
} berth_session_device_facts;
BERTH_API uint32_t berth_session_device_count(berth_session *session);
// Fills in device `index`, the first `size_bytes` (sizeof(berth_session_device_facts)) of it. Errors: OUT_OF_RANGE
// no such device; INVALID_ARGUMENT a size that is none.
BERTH_API BERTH_MUST_USE berth_status
berth_session_get_device(berth_session *session, uint32_t index,
                         berth_session_device_facts *out_facts, size_t size_bytes);

// Writes the last run as a trace that Perfetto and Chrome open ("-" = stdout). Errors:
// FAILED_PRECONDITION not profiling, or nothing ran yet; IO.
BERTH_API BERTH_MUST_USE berth_status berth_session_write_trace(berth_session *session,
                                                                const char *path);

BERTH_END

#endif  // BERTH_SESSION_H_
