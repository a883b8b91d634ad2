// Private to devices/opencl: the vendor's functions and the driver's objects.
#ifndef BERTH_DEVICES_OPENCL_OPENCL_H_
#define BERTH_DEVICES_OPENCL_OPENCL_H_

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/dynlib.h"
#include "devices/host_queue.h"
#include "devices/internal.h"

// libOpenCL, loaded at run time.
typedef struct opencl_api {
    berth_dynlib *library;
#define SYMBOL(name) __typeof__(&name) name;
#include "devices/opencl/opencl_symbols.def"
#undef SYMBOL
    // clSVMAlloc and clSVMFree, of OpenCL 2.0: both or none (NULL).
    void *(CL_API_CALL *svm_alloc)(cl_context, cl_bitfield, size_t, cl_uint);
    void(CL_API_CALL *svm_free)(cl_context, void *);
} opencl_api;

#pragma GCC visibility push(hidden)  // of no library that links this one

BERTH_MUST_USE berth_status berth_opencl__api_load(opencl_api *out_api);
typedef struct opencl_driver {
    berth_driver base;
    opencl_api api;
    pthread_mutex_t lock;  // of `peers` in the ordinals
    struct opencl_ordinal {
        cl_platform_id platform;
        cl_device_id device;
        // At the first device of a platform: the context of all its devices, for those that copy to
        // each other. Made with the first that is opened for it, kept until the driver is closed.
        cl_context peers;
    } * ordinals;
    uint32_t ordinal_count;
    berth_status broken;  // of a platform that lists no devices; base.lacking is its message
} opencl_driver;

typedef struct opencl_wait opencl_wait;  // wait.c

typedef struct opencl_device {
    berth_device base;
    const opencl_api *api;  // the driver's
    cl_device_id id;
    cl_context context;
    cl_command_queue transfer;  // of map and unmap
    cl_command_queue callers;   // of the application, for all work; NULL = queues of our own
    berth_start_order order;    // of its compute queues
    struct {                    // whose turn it is has this
        cl_event end;           // of what was started last; NULL = nothing was
        cl_command_queue queue;
    } last;
    int64_t timeout_ns;                 // of waits, before the device is given up
    atomic_bool is_lost;                // it did not answer in time: nothing more is handed to it
    _Atomic(opencl_wait *) spare_wait;  // NULL = in use, or none yet
    bool is_open_memory;  // buffers are memory that the host may touch at any time (opencl.c)
    cl_ulong max_allocation_bytes;
    uint32_t pointer_alignment_bytes;  // of memory of the caller's
} opencl_device;

typedef struct opencl_buffer {
    berth_buffer base;  // base.host is set in shared buffers and their views
    cl_mem memory;
    void *mapped;  // what OpenCL gave when it mapped a shared buffer: the host has it; NULL = not
    void *open;    // where the bytes are, for host and device alike without a map; NULL = map them
} opencl_buffer;

typedef struct opencl_executable {
    berth_executable base;
    cl_program program;
    berth_declared_lines declarations;
    // Arguments are state of a kernel object: set and enqueued under this lock, since queues of the
    // device may use one kernel at the same time.
    pthread_mutex_t lock;
    cl_kernel *kernels;
    uint32_t kernel_count;
    uint32_t kernel_capacity;
} opencl_executable;

static inline cl_mem berth_opencl__memory(const berth_buffer *buffer) {
    return ((const opencl_buffer *)buffer)->memory;
}

// A status for an OpenCL error code; NULL for CL_SUCCESS. `what` is what was tried; device NULL: on none.
BERTH_MUST_USE berth_status berth_opencl__check(const opencl_device *device, cl_int error,
                                                const char *what);

// wait.c: all waits of the driver, for the device's timeout at most. A device that is silent for longer is given up:
// DEADLINE_EXCEEDED; whatever asks for it after that: UNAVAILABLE.
BERTH_MUST_USE berth_status berth_opencl__alive(const opencl_device *device, const char *what);
opencl_wait *berth_opencl__wait_create(void);  // NULL: out of memory
void berth_opencl__wait_destroy(opencl_wait *wait);
// Waits for an event that was flushed. *wait is used again by the next; NULL when the device was given up.
BERTH_MUST_USE berth_status berth_opencl__wait(opencl_device *device, opencl_wait **wait,
                                               cl_event event, const char *what);
BERTH_MUST_USE berth_status berth_opencl__wait_and_release(opencl_device *device, cl_event event,
                                                           const char *what);
// Waits for all that the queue was given.
BERTH_MUST_USE berth_status berth_opencl__drain(opencl_device *device, cl_command_queue queue,
                                                const char *what);

// shared.c: buffers that the host and the device share.
BERTH_MUST_USE berth_status berth_opencl__buffer_share(berth_device *device, uint64_t size_bytes,
                                                       berth_buffer **out_buffer);
BERTH_MUST_USE berth_status berth_opencl__buffer_import(berth_device *device, void *data,
                                                        uint64_t size_bytes,
                                                        berth_buffer **out_buffer);
// Unmaps what is about to be freed, and waits for it.
void berth_opencl__buffer_take(berth_buffer *buffer);
// Enqueues a command of kind TO_DEVICE or TO_HOST; *event, where event is not NULL, comes after it.
BERTH_MUST_USE berth_status berth_opencl__hand_over(opencl_device *device, cl_command_queue queue,
                                                    const berth_command *command, cl_event *event);
// opencl.c: wraps an OpenCL object, or the failure to make one.
BERTH_MUST_USE berth_status berth_opencl__make_buffer(berth_device *device, cl_mem memory,
                                                      cl_int error, const char *what,
                                                      berth_buffer **out_buffer);

// executable.c
BERTH_MUST_USE berth_status berth_opencl__executable_load(berth_device *device,
                                                          const berth_executable_image *image,
                                                          berth_executable **out_executable);
void berth_opencl__executable_destroy(berth_executable *executable);
BERTH_MUST_USE berth_status berth_opencl__executable_find(berth_executable *executable,
                                                          const berth_program_kernel *kernel,
                                                          uint32_t *out_kernel);
// `ready`: a kernel whose arguments are those of the command already; NULL = they are set now.
BERTH_MUST_USE berth_status berth_opencl__dispatch(const opencl_device *device,
                                                   cl_command_queue queue,
                                                   const berth_command *command, cl_kernel ready,
                                                   cl_event *event);
// A kernel of its own for the command, with its arguments.
BERTH_MUST_USE berth_status berth_opencl__ready_kernel(const opencl_device *device,
                                                       const berth_command *command,
                                                       cl_kernel *out_kernel);
// The buffers of the command as arguments of a kernel of its own.
BERTH_MUST_USE berth_status berth_opencl__set_buffers(const opencl_device *device,
                                                      const berth_command *command,
                                                      cl_kernel kernel);
// queue.c
BERTH_MUST_USE berth_status berth_opencl__queue_open(berth_device *device, berth_queue_kind kind,
                                                     berth_queue **out_queue);
void berth_opencl__queue_destroy(berth_queue *queue);
// list.c: command lists. What is prepared is an array with a kernel for each dispatch, NULL for all else.
BERTH_MUST_USE berth_status berth_opencl__list_prepare(berth_command_list *list);
void berth_opencl__list_update(berth_command_list *list);
void berth_opencl__list_destroy(berth_command_list *list);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_OPENCL_OPENCL_H_
