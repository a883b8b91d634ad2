// What the files of the graph executor share.
#ifndef BERTH_EXECUTOR_SESSION_PRIVATE_H_
#define BERTH_EXECUTOR_SESSION_PRIVATE_H_

#include <pthread.h>

#include "devices/device.h"
#include "devices/registry.h"
#include "executor/device_choice.h"
#include "executor/schedule.h"
#include "executor/session.h"
#include "executor/store_reader.h"

#pragma GCC visibility push(hidden)  // of no library that links this one

// A physical device in use; several virtual devices may be bound to one.
typedef struct berth_session_physical {
    const char *kind;
    berth_device_choice choice;
    berth_device *device;
    bool owned;     // false: the caller's
    bool of_queue;  // opened for a queue of the application's: not for other devices of the program
} berth_session_physical;

// One of the program's devices.
typedef struct berth_session_device {
    uint32_t physical;               // index
    berth_device *device;            // NULL when the program does nothing with it
    berth_executable **executables;  // by the program's executables; NULL where not needed
    uint32_t *kernels;               // by the program's kernels: index in the executable
    berth_buffer **pools;    // by the program's pools: its own buffer over a shared one, else NULL
    berth_buffer **tensors;  // by the program's tensors: views of these
} berth_session_device;

// One of the program's queues.
typedef struct berth_session_queue {
    berth_queue *queue;          // NULL when no step runs on it
    berth_semaphore *semaphore;  // its timeline
} berth_session_queue;

// Parts of a shared pool in the view of one device, which change hands between it and the others.
typedef struct berth_session_segments {
    uint32_t device;  // whose queue hands them over
    berth_buffer **buffers;
    uint32_t count;
} berth_session_segments;

// What steps bind of one input or output, where it may be moved to the caller's memory.
typedef struct berth_session_movable {
    BERTH_VEC(uint32_t) tensors;  // in its bytes, itself among them; their buffers can be moved
    bool moved;
} berth_session_movable;

// A batch of the schedule, ready to submit.
typedef struct berth_session_batch {
    berth_command *commands;
    uint32_t command_count;
    berth_command_list *list;      // of these, for the queue that is open
    berth_semaphore_point *waits;  // filled in at each run
    bool asynchronous;
    BERTH_VEC(berth_buffer *) handed;  // shared bytes that the device gets for the batch
} berth_session_batch;

struct berth_session {
    berth_allocator allocator;
    berth_arena *arena;            // all of the session's own memory
    const berth_program *whole;    // as it was opened
    const berth_program *program;  // the plan of it that this session runs, number `plan`
    uint32_t plan;
    berth_status why;  // no earlier plan runs; BERTH_OK for the first
    berth_session
        *next;  // of a later plan, which took over; of the thread that runs, `lock` to set it
    uint32_t lost_device;  // of the plan: where the last run failed; BERTH_NO_INDEX = unknown
    berth_session_options options;

    berth_store_reader *store_reader;  // NULL: no constants are read again, or by one thread

    berth_driver **drivers;
    uint32_t driver_count;
    berth_session_physical *physicals;
    uint32_t physical_count;
    berth_session_device *devices;
    berth_session_queue *queues;
    berth_buffer **pools;                        // NULL for constant pools used in place
    BERTH_VEC(berth_session_segments) segments;  // of shared pools
    berth_buffer **roots;      // per constant: its own buffer where the pool is used in place
    berth_buffer **tensors;    // NULL where nothing binds the tensor
    uint64_t *borrowed_bytes;  // per device
    berth_tensor *inputs;
    berth_tensor *outputs;
    berth_session_movable *input_movables;  // of run_with.c
    berth_session_movable *output_movables;
    struct berth_session_bound **bounds;  // of bound.c, per input, then output; NULL: none is bound

    berth_schedule schedule;
    berth_session_batch *batches;
    bool rebound;                   // commands bind other buffers than the lists know (bound.c)
    bool moved;                     // buffers have other places than the lists know (run_with.c)
    berth_command_timing *timings;  // per step; NULL when not profiling

    // Of the `semaphore` pointers of the queues and of the four after it; nothing is called under it.
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool lock_made;
    bool cancelled;  // somebody asked for it, and no run has ended by it yet
    bool opening;    // a thread opens `spare`
    berth_session
        *spare;   // of a session that has no base: what takes over from it and who shares it
    bool broken;  // the last run failed: queues and semaphores must be made anew
    uint64_t submitted_runs;  // since the semaphores were made
    uint64_t run_count;
    int64_t run_start_ns;
    int64_t run_end_ns;
    berth_session_device_report *device_reports;
    berth_session_step_report *step_reports;
};

// session.c. Opens one plan. Errors: UNAVAILABLE a device is not here; those of berth_session_open.
BERTH_MUST_USE berth_status berth_executor__open_plan(berth_allocator allocator,
                                                      const berth_program *program, uint32_t plan,
                                                      const berth_session_options *options,
                                                      berth_session **out_session);

// index_check.c. What the program has the host look at after a run. Errors: OUT_OF_RANGE with the node and
// the index.
BERTH_MUST_USE berth_status berth_executor__check_indices(const berth_session *session);

// fallback.c. Opens the first plan, from number `plan` on, whose devices are here and not `lost` (NULL =
// none is). `why`: what kept earlier ones from running, taken over.
BERTH_MUST_USE berth_status berth_executor__open_first(
    berth_allocator allocator, const berth_program *program, const berth_session_options *options,
    uint32_t plan, const berth_program_device *lost, berth_status why, berth_session **out_session);
// Whose plan the sessions of a base run now.
berth_session *berth_executor__newest(berth_session *base);
// Who runs for the session: itself, or what took over.
berth_session *berth_executor__in_use(const berth_session *session);

// graph.c, run_with.c. One run of the session's own plan.
BERTH_MUST_USE berth_status berth_executor__run_once(berth_session *session, int64_t timeout_ns);
BERTH_MUST_USE berth_status berth_executor__run_with_once(berth_session *session,
                                                          const berth_tensor *inputs,
                                                          const berth_tensor *outputs,
                                                          int64_t timeout_ns);

// bind.c. Whether a program does anything with a device: one that is only listed may be absent.
bool berth_executor__is_used(const berth_program *program, uint32_t device);
// Whether it has steps on this device, or on another of its kind, which may turn out to be the same physical one.
bool berth_executor__has_steps(const berth_program *program, const berth_program_device *device);
// Whether devices of the kind copy to each other.
bool berth_executor__has_peers(const berth_program *program, const char *kind);

// turns.c. Of a session that runs in turns (executor/turns.h): drivers and devices that it opens are theirs
// together. What is found lives until the last of them is closed.
BERTH_MUST_USE berth_status berth_turns__driver(struct berth_turns *turns, const char *kind,
                                                berth_driver **out_driver);
// NULL: none is open. `queue`: of the application, NULL = none.
const berth_session_physical *berth_turns__find_device(const struct berth_turns *turns,
                                                       const char *kind,
                                                       const berth_device_choice *choice,
                                                       const void *queue);
BERTH_MUST_USE berth_status berth_turns__open_device(struct berth_turns *turns,
                                                     berth_driver *driver,
                                                     const berth_device_choice *choice,
                                                     const berth_device_options *options,
                                                     const berth_session_physical **out_physical);
// What the programs do with devices of a kind; nothing, where none has one.
typedef struct berth_turns_kind {
    const char *kind;
    bool works;      // a program has steps there
    bool has_peers;  // or copies from one to another
} berth_turns_kind;
berth_turns_kind berth_turns__kind(const struct berth_turns *turns, const char *kind);
// Of a pool of workspace: its own size, or that of the largest one in its place.
uint64_t berth_turns__pool_bytes(const struct berth_turns *turns, const berth_program *program,
                                 uint32_t pool);
// Around a run. Errors: DEADLINE_EXCEEDED another one runs; those of berth_session_recover.
BERTH_MUST_USE berth_status berth_turns__begin(struct berth_turns *turns, berth_session *session,
                                               int64_t timeout_ns);
void berth_turns__end(struct berth_turns *turns);
// The session begins: it keeps the turns. Before it is closed, and when it is.
void berth_turns__retain(struct berth_turns *turns);
void berth_turns__forget(struct berth_turns *turns, const berth_session *session);
void berth_turns__release(struct berth_turns *turns);

// Inside berth_arena_try of the session's arena; what was made is recorded in the session at once,
// so that close frees it wherever opening stops.
BERTH_MUST_USE berth_status berth_executor__open_devices(berth_session *session);
BERTH_MUST_USE berth_status berth_executor__open_queues(berth_session *session);
BERTH_MUST_USE berth_status berth_executor__allocate(berth_session *session);
BERTH_MUST_USE berth_status berth_executor__load_code(berth_session *session);

// session.c. Errors: INCOMPATIBLE, INVALID_ARGUMENT (no tensor); `what` is "input" or "output".
BERTH_MUST_USE berth_status berth_executor__check_same(const char *what, const char *name,
                                                       const berth_tensor *expected,
                                                       const berth_tensor *given);

// memory.c. What a pool was planned for does for a memory of the device. Errors: INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_executor__check_alignment(const berth_program_pool *pool,
                                                            const berth_device *device,
                                                            uint32_t memory);

// run_with.c. Finds the inputs and outputs that steps can use in the caller's memory as well as in the
// session's. After their buffers are made, before make_commands.
BERTH_MUST_USE berth_status berth_executor__find_movable(berth_session *session);

// bound.c. Finds the inputs and outputs in memory of devices, where the session `binds`; before make_commands,
// which notes where commands have their buffers. Errors: UNSUPPORTED two of them share bytes.
BERTH_MUST_USE berth_status berth_executor__find_bounds(berth_session *session);
void berth_executor__note_slot(berth_session *session, uint32_t tensor, berth_buffer **slot);
void berth_executor__finish_bounds(berth_session *session);  // after it

// shared.c. The program device at which the buffers of a physical device over shared pools are
// kept.
uint32_t berth_executor__home(const berth_session *session, uint32_t device);
// Whether `device` works in the pool through a buffer of its own, not that of the pool's device.
bool berth_executor__shares(const berth_session *session, uint32_t pool, uint32_t device);
// Whether several physical devices work in the pool.
bool berth_executor__is_shared(const berth_session *session, uint32_t pool);
// Allocates such a pool once and gives every physical device a buffer over it, with the host having
// all bytes. Errors: UNSUPPORTED the devices do not share memory here.
BERTH_MUST_USE berth_status berth_executor__share_pool(berth_session *session, uint32_t pool);
// Decides which bytes of shared pools change hands around which batch (`handed`), and hands out
// what only devices use. After constants and before make_commands.
BERTH_MUST_USE berth_status berth_executor__share_segments(berth_session *session);
// Gives the host what a failed run left with devices.
BERTH_MUST_USE berth_status berth_executor__take_back(berth_session *session);
void berth_executor__free_segments(berth_session *session);
void berth_executor__make_commands(berth_session *session);
// Where constants are read from a file and the session has threads of its own. After make_commands.
BERTH_MUST_USE berth_status berth_executor__start_reader(berth_session *session);
// Makes the batches' command lists ready for the queues that are open. After make_commands.
BERTH_MUST_USE berth_status berth_executor__prepare_lists(berth_session *session);
void berth_executor__make_reports(berth_session *session);

// Fails every timeline that has not failed yet with CANCELLED: what has not begun never will.
// Thread-safe.
void berth_executor__fail_timelines(berth_session *session, const char *reason);

// Fails every timeline, waits for what still runs and drops queues and semaphores.
void berth_executor__close_queues(berth_session *session);
void berth_executor__free_memory(berth_session *session);
void berth_executor__close_devices(berth_session *session);

#pragma GCC visibility pop

#endif  // BERTH_EXECUTOR_SESSION_PRIVATE_H_
