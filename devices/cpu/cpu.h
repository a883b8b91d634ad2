// Private to devices/cpu: the device's objects.
#ifndef BERTH_DEVICES_CPU_CPU_H_
#define BERTH_DEVICES_CPU_CPU_H_

#include <pthread.h>

#include "devices/cpu/thread_pool.h"
#include "devices/cpu/topology.h"
#include "devices/host_code.h"
#include "devices/host_queue.h"
#include "devices/internal.h"

#pragma GCC visibility push(hidden)  // of no library that links this one

typedef struct cpu_driver {
    berth_driver base;
    berth_cpu_topology *topology;
} cpu_driver;

typedef struct cpu_library cpu_library;

typedef struct cpu_device {
    berth_device base;
    const berth_cpu_topology *topology;  // the driver's
    berth_cpu_part part;
    uint32_t thread_count;
    berth_thread_pool *pool;       // NULL with one thread
    berth_start_order order;       // of its compute queues
    pthread_mutex_t run_lock;      // one dispatch at a time; also guards what follows
    int64_t next_move_ns;          // no worker changes its core before
    uint32_t caller_processor;     // where the last dispatch began
    uint32_t *cores;               // per thread: its core; NULL when workers are not bound
    berth_aligned_block *scratch;  // per thread
    size_t scratch_bytes;          // of each
    char checked_isa[256];         // the last that was found here; guarded by run_lock
    pthread_mutex_t library_lock;  // guards:
    cpu_library *libraries;        // code that executables share
} cpu_device;

typedef struct cpu_kernel {
    berth_cpu_kernel function;
    uint32_t scratch_bytes;
    bool serial;           // too little work to share it with another thread
    uint32_t trials_left;  // runs on the calling thread that are timed to find that out
    int64_t least_ns;      // of those so far
    int64_t expected_ns;   // on a fast core
} cpu_kernel;

typedef struct cpu_executable {
    berth_executable base;
    cpu_library *code;
    berth_host_code host;  // that of `code`
    cpu_kernel *kernels;
    uint32_t kernel_count;
    uint32_t kernel_capacity;
} cpu_executable;

// cpu.c
// Where workers are bound: the one that has the core which the calling thread runs on now goes to
// the core that nobody has. Under run_lock.
void berth_cpu__make_way(cpu_device *device);

// isa.c: INCOMPATIBLE when this processor lacks what an image's `options` name ("x86_64 avx2 fma").
BERTH_MUST_USE berth_status berth_cpu__isa_check(cpu_device *device, const char *needs);

// library.c: the code of an image, loaded once per device as long as it is in use. Thread-safe.
// Errors: INVALID_ARGUMENT (no code that loads), OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_cpu__library_open(cpu_device *device, const void *data,
                                                    size_t size_bytes, cpu_library **out_library);
berth_dynlib *berth_cpu__library_code(const cpu_library *library);
void berth_cpu__library_close(cpu_device *device, cpu_library *library);

// executable.c
BERTH_MUST_USE berth_status berth_cpu__executable_load(berth_device *device,
                                                       const berth_executable_image *image,
                                                       berth_executable **out_executable);
void berth_cpu__executable_destroy(berth_executable *executable);
BERTH_MUST_USE berth_status berth_cpu__executable_find(berth_executable *executable,
                                                       const berth_program_kernel *kernel,
                                                       uint32_t *out_kernel);
BERTH_MUST_USE berth_status berth_cpu__dispatch(berth_device *device, const berth_command *command);
// INVALID_ARGUMENT where the command's grid is not flat.
BERTH_MUST_USE berth_status berth_cpu__check_grid(const berth_command *command);
void berth_cpu__run_kernel(cpu_device *device, cpu_kernel *kernel, void *const *buffers,
                           const int64_t *constants, int64_t groups);
// Gives every thread of the pool at least this much scratch memory.
BERTH_MUST_USE berth_status berth_cpu__reserve_scratch(cpu_device *device, size_t size_bytes);

// list.c: command lists.
BERTH_MUST_USE berth_status berth_cpu__list_prepare(berth_command_list *list);
void berth_cpu__list_update(berth_command_list *list);
void berth_cpu__list_destroy(berth_command_list *list);
BERTH_MUST_USE berth_status berth_cpu__list_run(berth_device *device, berth_start_order *order,
                                                const void *prepared);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_CPU_CPU_H_
