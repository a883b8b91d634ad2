// The driver interface: one struct of functions per kind of object, small enough to clone in a day
// (devices/null is the template, docs/add_driver.md the guide). The core (devices/device.c) checks
// every argument before a driver sees it, so a driver only does the work. Objects are allocated
// through the allocator given to berth_driver_open.
//
//   driver ── enumerate ──▶ device infos ── open ──▶ device ─┬─ memories
//                                                           ├─ buffers (allocate, share, view, map)
//                                                           ├─ executables ── kernels
//                                                           └─ queues ── submit
//
// Callers use the berth_device_*, berth_buffer_*, ... functions of devices/device.h, never the
// tables below.
// "(optional)" = NULL means the core supplies the fallback named there.
#ifndef BERTH_DEVICES_DRIVER_H_
#define BERTH_DEVICES_DRIVER_H_

#include <berth/threads.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "artifact/program.h"
#include "base/alloc.h"
#include "base/atomics.h"
#include "base/status.h"
#include "devices/semaphore.h"
#include "target/target.h"

typedef struct berth_driver berth_driver;
typedef struct berth_device berth_device;
typedef struct berth_buffer berth_buffer;
typedef struct berth_executable berth_executable;
typedef struct berth_queue berth_queue;

// ---- facts ----

#define BERTH_DEVICE_MAX_MEMORIES 8
#define BERTH_DEVICE_MAX_BINDINGS BERTH_TARGET_MAX_BINDINGS  // buffers of one dispatch

typedef struct berth_memory_info {
    char scope[32];            // "global", "numa:1"
    uint64_t capacity_bytes;   // 0 = unknown
    uint32_t alignment_bytes;  // of allocations and views
    bool host_visible;         // map gives a pointer to the very bytes, without a copy
    bool
        element_aligned;  // imports (berth_buffer_import) and moves need no more alignment than elements
                          // have: kernels load and store at any such address
} berth_memory_info;

typedef struct berth_device_info {
    char name[128];  // for people: "AMD EPYC (2 cores)", "pthread-AMD EPYC"
    char vendor[64];
    char driver_version[128];
    uint32_t ordinal;  // physical index within the driver
    uint32_t compute_units;
    char features
        [384];  // for people: what kernels may use, and what is lacking; "" = nothing to say
    char kernel_features
        [128];  // what kernels may use, as targets list it, with commas between: "subgroup_arithmetic"
    char arch[32];    // what kernels are compiled for, as targets say it: "sm_90"; "" = not said
    bool is_cpu;      // the processor itself behind another interface (PoCL)
    bool lacks_f64;   // kernels cannot use 64-bit floats
    bool unified;     // works in the host's memory: buffers can be shared with the host. Always so,
                      // and not said here, where memory 0 is host_visible
    bool lacks_i64;   // kernels cannot use 64-bit integers,
    bool lacks_8bit;  // elements of 8 bits, bool among them,
    bool lacks_16bit;  // elements of 16 bits, floats among them
    uint64_t max_group_size;
    uint64_t local_memory_bytes;
    uint32_t max_bindings;    // buffers of one kernel; 0 = as many as BERTH_DEVICE_MAX_BINDINGS
    uint64_t cache_bytes[3];  // data caches of level 1 to 3 that one core uses; 0 = none or unknown
    uint64_t clock_hz;        // of GPUs, the highest; 0 = unknown
    uint64_t bandwidth_bytes_per_s;  // of memory 0, as clock and width give it; 0 = unknown
    uint32_t memory_count;
    berth_memory_info memories[BERTH_DEVICE_MAX_MEMORIES];
} berth_device_info;

typedef struct berth_device_options {
    uint32_t thread_count;  // cpu: threads of the pool with the caller; 0 = all cores
    // cpu: the application's threads instead of a pool; NULL = a pool. Borrowed until open returns
    const berth_caller_threads *threads;
    void *
        queue;  // drivers that say takes_queue: one of the application's, whose device is opened, whatever
                // the ordinal says; kept by reference. NULL = own ones
    bool profile;     // fill berth_command.timing
    bool own_memory;  // vulkan: as if the host did not see the device's memory (discrete GPUs), for
                      // tests
    bool peers;       // copies go directly between this device and others of the driver
                      // (berth_device_open_peer): a driver that must prepare for it does so
    const char *cache_folder;  // where a driver keeps compiled kernels from one run to the next;
                               // NULL = nowhere. Borrowed until open returns
    // What the driver's own documentation lists, "NAME=VALUE NAME=VALUE"; NULL = nothing. Borrowed
    // while the device is opened.
    const char *attributes;
} berth_device_options;

// ---- commands ----

typedef enum berth_command_kind {
    BERTH_COMMAND_COPY,
    BERTH_COMMAND_FILL,
    BERTH_COMMAND_DISPATCH,
    BERTH_COMMAND_HOST_CALL,
    BERTH_COMMAND_TO_DEVICE,
    BERTH_COMMAND_TO_HOST,
} berth_command_kind;

// When a command ran, on the host's monotonic clock (base/clock.h).
typedef struct berth_command_timing {
    int64_t start_ns;
    int64_t end_ns;
} berth_command_timing;

typedef struct berth_command {
    berth_command_kind kind;
    union {
        struct {  // within the queue's device, between it and a host-visible buffer of any device,
                  // or to and from a peer (berth_device_open_peer); ranges must not overlap
            berth_buffer *source;
            berth_buffer *destination;
            uint64_t source_offset_bytes;
            uint64_t destination_offset_bytes;
            uint64_t size_bytes;
        } copy;
        struct {
            berth_buffer *buffer;
            uint64_t offset_bytes;  // a multiple of pattern_bytes
            uint64_t size_bytes;    // a multiple of pattern_bytes
            uint32_t pattern;
            uint32_t pattern_bytes;  // 1, 2 or 4
        } fill;
        struct {
            berth_executable *executable;
            uint32_t kernel;  // from berth_executable_find
            berth_buffer *const *buffers;
            uint32_t buffer_count;
            const int64_t *constants;
            uint32_t constant_count;
            uint32_t groups[3];
            uint32_t group_size[3];
        } dispatch;
        struct {
            // On a thread of the queue or inside submit; a failure fails the submission.
            berth_status (*call)(void *user);
            void *user;
        } host_call;
        // Shared buffers (buffer_share, buffer_import) change hands, see below: the device has them
        // from TO_DEVICE on, the host again once TO_HOST is done. Those that are there already
        // stay.
        struct {
            berth_buffer *const *buffers;  // roots or views
            uint32_t buffer_count;
            // TO_HOST: the host will only read them, so that commands of the device may read them
            // too until the next TO_DEVICE.
            bool read_only;
        } hand_over;
    };
    berth_command_timing *timing;  // filled on completion when the device profiles; may be NULL
    const char *label;             // for messages: a failure of the command names it; may be NULL
} berth_command;

// Commands that are submitted again and again, checked and made ready once (berth_queue_prepare).
typedef struct berth_command_list {
    berth_device *device;
    berth_queue *queue;  // the one that it was prepared for
    const berth_command *commands;
    uint32_t command_count;
    void *prepared;  // (driver) what list_prepare made; NULL = the commands run like new ones
} berth_command_list;

// One batch. The arrays are borrowed until submit returns, except `commands` and what they point to
// (buffers arrays, constants, timing): those must stay valid until the last signal is reached, so
// that a static schedule is submitted without copies. Buffers, executables and semaphores that it
// names are kept alive by the queue until then, also when their owner frees them meanwhile.
typedef struct berth_submission {
    const berth_semaphore_point *waits;  // all must be reached before the first command starts
    uint32_t wait_count;
    const berth_command *commands;  // run as if in order
    uint32_t command_count;
    const berth_command_list
        *list;  // instead of commands, whose place is then filled in; may be NULL
    // Reached after the last command; failed if a wait or command fails.
    const berth_semaphore_point *signals;
    uint32_t signal_count;
    // Without it, a synchronous driver may run the commands before submit returns. Set it where
    // submit must return soon because work for other queues is still to be submitted.
    bool asynchronous;
    // When the run that it is of began, on a clock of the caller's: where queues of a device take turns, less
    // comes first.
    uint64_t age;
} berth_submission;

// ---- driver tables ----

// Common heads of driver objects: a driver's own struct starts with one of these. The driver zeroes
// its struct and fills what is marked (driver); the core fills the rest.
struct berth_device {
    const struct berth_device_ops *ops;  // (driver)
    berth_device_info info;              // (driver)
    berth_driver *driver;
    berth_allocator allocator;
    berth_device_options options;
    atomic_ullong peers;       // bit i: peer_open was done for the device with ordinal i
    atomic_ullong live_bytes;  // of buffers, and what kernels keep (berth_devices__count_memory)
    atomic_ullong peak_bytes;
};
struct berth_buffer {
    berth_device *device;
    berth_buffer *root;  // the buffer this is a view of, or NULL; never a view itself
    uint64_t root_offset_bytes;
    uint64_t size_bytes;
    void *host;  // (driver) host pointer when the memory is host_visible or the buffer shared, else
                 // NULL
    uint32_t memory;         // index into the device's memories
    uint64_t counted_bytes;  // in the device's live_bytes; 0 in views and imports
    atomic_uint reference_count;
};
typedef struct berth_kernel_facts {
    uint32_t binding_count;
    uint32_t constant_count;
    bool found;
} berth_kernel_facts;
struct berth_executable {
    berth_device *device;
    berth_kernel_facts *kernels;  // by kernel index, as found so far
    uint32_t kernel_count;
    atomic_uint reference_count;
};
struct berth_queue {
    berth_device *device;
    berth_queue_kind kind;
};

typedef struct berth_device_ops {
    void (*destroy)(berth_device *device);

    // 1 byte at least. The core makes sizes of 0 work.
    berth_status (*buffer_allocate)(berth_device *device, uint32_t memory, uint64_t size_bytes,
                                    berth_buffer **out_buffer);
    // A buffer that is the range [offset, +size) of `root`, which is no view; offset is a multiple
    // of the memory's alignment. Made when a program is opened, so that dispatch binds whole
    // buffers and allocates nothing.
    berth_status (*buffer_view)(berth_buffer *root, uint64_t offset_bytes, uint64_t size_bytes,
                                berth_buffer **out_view);
    // (optional: buffer_allocate where memory 0 is host_visible, else UNSUPPORTED) A shared buffer
    // of memory 0: host and device work in the same bytes, in turns. base.host points to them and
    // stays as it is; views have it too. The host has it at first; BERTH_COMMAND_TO_DEVICE and
    // TO_HOST hand it, or views of it that do not overlap, over and back. Only who has the bytes
    // may touch them. No byte is copied on the way: a driver that would have to copy says
    // UNSUPPORTED and why.
    berth_status (*buffer_share)(berth_device *device, uint64_t size_bytes,
                                 berth_buffer **out_buffer);
    // (optional: UNSUPPORTED) The same over host memory of the caller. Where memory 0 is
    // host_visible there are no turns.
    berth_status (*buffer_import)(berth_device *device, void *data, uint64_t size_bytes,
                                  berth_buffer **out_buffer);
    void (*buffer_free)(berth_buffer *buffer);
    // (optional where host_visible) Host access to a range, after all submitted work on it is done.
    // `write_only` lets the old content be dropped.
    berth_status (*buffer_map)(berth_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes,
                               bool write_only, void **out_data);
    berth_status (*buffer_unmap)(berth_buffer *buffer, void *data);

    // (optional: UNSUPPORTED) From now on queues of `device` copy between its buffers and those of
    // `peer`, another device of the driver, without the host's memory on the way. Both were opened with
    // options.peers. Doing it again changes nothing. Where the bytes would go by way of the host all
    // the same, UNSUPPORTED and why: the caller plans that way better.
    berth_status (*peer_open)(berth_device *device, berth_device *peer);

    // Builds or loads an image. A failed build puts the build log into the status message.
    berth_status (*executable_load)(berth_device *device, const berth_executable_image *image,
                                    berth_executable **out_executable);
    void (*executable_destroy)(berth_executable *executable);
    // Kernel index (dense from 0) by entry name; the facts (scratch) come from the program.
    // Everything that dispatch needs is allocated here. Errors: NOT_FOUND.
    berth_status (*executable_find)(berth_executable *executable,
                                    const berth_program_kernel *kernel, uint32_t *out_kernel);

    // TRANSFER queues get copies, fills and host calls only; a device without an engine of its own
    // for them opens one more like any other.
    berth_status (*queue_open)(berth_device *device, berth_queue_kind kind,
                               berth_queue **out_queue);
    // Never blocks on the waits. Allocates nothing through the device's allocator once warm.
    // devices/host_queue.h does it all for most drivers.
    berth_status (*queue_submit)(berth_queue *queue, const berth_submission *submission);
    // (optional: nothing to reserve) See berth_queue_reserve.
    berth_status (*queue_reserve)(berth_queue *queue, uint32_t submission_count,
                                  uint32_t command_count, uint32_t point_count);
    berth_status (*queue_flush)(berth_queue *queue);  // (optional: nothing to flush)
    // (optional: no longer than anybody) How long a thread that waits for the queue, where it runs now, should
    // look before it sleeps.
    int64_t (*queue_look_ns)(berth_queue *queue);
    // (optional: lists run like new commands) Does once what every submission of the list would do again,
    // and keeps that in list->prepared, which comes back with each submission: a command buffer, a graph,
    // arguments that are set. Leaves it NULL where there is nothing to gain. Not called where the device
    // profiles. A list may be submitted again before its last submission has ended.
    berth_status (*list_prepare)(berth_command_list *list);
    void (*list_update)(
        berth_command_list *list);  // (optional) see berth_command_list_update, and _rebind
    void (*list_destroy)(berth_command_list *list);  // frees list->prepared; the queue may be gone
    void (*queue_destroy)(berth_queue *queue);       // waits for submitted work
} berth_device_ops;

typedef struct berth_driver_ops {
    const char *kind;         // "cpu": the target kind it serves
    const char *description;  // one line for `berth devices`
    // What the target `local` makes of its devices, unless they are more devices of the machine:
    bool is_host;          // they are the machine itself, which targets describe without a driver
    bool runs_no_kernels;  // nothing can be placed on them
    bool takes_queue;      // device_open looks at berth_device_options.queue
    // Loads what the driver needs. UNAVAILABLE with the reason when a library or device is missing.
    berth_status (*open)(berth_allocator allocator, berth_driver **out_driver);
    void (*close)(berth_driver *driver);
    uint32_t (*device_count)(berth_driver *driver);
    berth_status (*device_info)(berth_driver *driver, uint32_t ordinal,
                                berth_device_info *out_info);
    berth_status (*device_open)(berth_driver *driver, uint32_t ordinal,
                                const berth_device_options *options, berth_device **out_device);
    // (optional: no) Whether peer_open of the device `ordinal` for `peer`, another one, would do, as
    // far as that is known before they are open.
    bool (*device_reaches)(berth_driver *driver, uint32_t ordinal, uint32_t peer);
} berth_driver_ops;

struct berth_driver {
    const berth_driver_ops *ops;
    berth_allocator allocator;
    // (driver) What is missing here though it opens, for people: a library that kernels need, devices that are
    // left out and why. NULL or "" = nothing.
    const char *lacking;
};

#endif  // BERTH_DEVICES_DRIVER_H_
