// Private to devices/cuda: NVIDIA's functions and the driver's objects.
//
// Each opened device holds its primary context, the one that CUDA's runtime and other libraries in
// the process use, too. A call makes it current and gives the calling thread its own back
// (berth_cuda__enter, berth_cuda__leave), so that callers who use CUDA themselves are not disturbed.
#ifndef BERTH_DEVICES_CUDA_CUDA_H_
#define BERTH_DEVICES_CUDA_CUDA_H_

#include <pthread.h>

#include "base/dynlib.h"
#include "devices/cuda/cuda_types.h"
#include "devices/host_code.h"
#include "devices/host_queue.h"
#include "devices/internal.h"

enum { CUDA_MAX_VALUES = BERTH_DEVICE_MAX_BINDINGS + 64 };  // buffers and constants of a kernel

typedef struct cuda_api {  // libcuda
    berth_dynlib *library;
#define CUDA(name, parameters) cuda_result(*name) parameters;
#define CUDA_NEWER(name, parameters) cuda_result(*name) parameters;  // NULL where it is missing
#include "devices/cuda/cuda_symbols.def"
} cuda_api;

typedef struct nvrtc_api {
    berth_dynlib *library;  // NULL = not loaded
#define NVRTC(name, parameters) nvrtc_result(*name) parameters;
#include "devices/cuda/cuda_symbols.def"
} nvrtc_api;

#pragma GCC visibility push(hidden)  // of no library that links this one

typedef struct cuda_driver {
    berth_driver base;
    cuda_api api;
    nvrtc_api nvrtc;
    berth_status no_nvrtc;  // why it is not loaded
    uint32_t count;
} cuda_driver;

// A block of pinned memory that stands for a mapped range, kept for the next map.
typedef struct cuda_map {
    struct cuda_map *next;
    void *host;  // pinned
    uint64_t capacity_bytes;
    uint64_t size_bytes;
    cuda_address address;  // of the range
    bool in_use;
} cuda_map;

typedef struct cuda_device {
    berth_device base;
    const cuda_api *api;  // the driver's
    cuda_device_id id;
    cuda_context context;  // NULL = not retained
    cuda_stream callers;   // of the application, for all work; NULL = streams of our own
    int capability;        // 90 for 9.0
    int driver_version;
    int64_t timeout_ns;  // of waits, before the device is given up
    // It did not answer in time: nothing more is handed to it, and what it has is not freed, which would wait for it.
    atomic_bool is_lost;
    int cache_folder;      // an open folder, -1 = compiled kernels are not kept
    pthread_mutex_t lock;  // of what follows
    cuda_map *maps;
    cuda_stream transfer;  // of map and unmap
    cuda_event transferred;
} cuda_device;

typedef struct cuda_buffer {
    berth_buffer base;
    cuda_address address;
    void *pinned;  // of a root buffer in memory 1
} cuda_buffer;

typedef struct cuda_executable {
    berth_executable base;
    cuda_module module;
    berth_declared_lines declarations;
    berth_host_code
        host;  // instead of the module, of code that the host runs (artifact/kernel_abi.h)
    struct cuda_kernel {
        cuda_function function;
        berth_cpu_kernel call;  // instead, of that code
        uint32_t most_threads;  // of a block
        uint32_t shared_bytes;  // of a block, that a launch gives
    } * kernels;
    uint32_t kernel_count, kernel_capacity;
} cuda_executable;

static inline cuda_address berth_cuda__address(const berth_buffer *buffer) {
    return ((const cuda_buffer *)buffer)->address;
}

// api.c
BERTH_MUST_USE berth_status berth_cuda__api_load(cuda_api *out_api);
// Errors: UNAVAILABLE, with what to install.
BERTH_MUST_USE berth_status berth_cuda__nvrtc_load(nvrtc_api *out_api);
// A status for a result of CUDA's; NULL for success. `what` is what was tried; messages name the
// device.
BERTH_MUST_USE berth_status berth_cuda__check(const cuda_device *device, cuda_result result,
                                              const char *what);
BERTH_MUST_USE berth_status berth_cuda__check_driver(const cuda_api *api, cuda_result result,
                                                     const char *where, const char *what);
// Makes the device's context current on this thread; leave gives the former one back. Errors: UNAVAILABLE the device
// was given up; what CUDA says.
BERTH_MUST_USE berth_status berth_cuda__enter(const cuda_device *device, const char *what);
// For what is freed, of a device that has failed, too. False where it was given up: then it stays until the process ends.
bool berth_cuda__enter_to_free(const cuda_device *device);
void berth_cuda__leave(const cuda_device *device);
// Waits for an event, for the device's timeout at most: then the device is given up. Errors: DEADLINE_EXCEEDED, or what the
// device failed with. The context is current.
BERTH_MUST_USE berth_status berth_cuda__wait(cuda_device *device, cuda_event event,
                                             const char *what);

// memory.c
BERTH_MUST_USE berth_status berth_cuda__buffer_allocate(berth_device *device, uint32_t memory,
                                                        uint64_t size_bytes,
                                                        berth_buffer **out_buffer);
BERTH_MUST_USE berth_status berth_cuda__buffer_view(berth_buffer *root, uint64_t offset_bytes,
                                                    uint64_t size_bytes, berth_buffer **out_view);
void berth_cuda__buffer_free(berth_buffer *buffer);
BERTH_MUST_USE berth_status berth_cuda__buffer_map(berth_buffer *buffer, uint64_t offset_bytes,
                                                   uint64_t size_bytes, bool write_only,
                                                   void **out_data);
BERTH_MUST_USE berth_status berth_cuda__buffer_unmap(berth_buffer *buffer, void *data);
void berth_cuda__free_maps(cuda_device *device);

// compile.c: source text to a cubin for the device (PTX where NVRTC is older than the device), in
// the device's allocator.
BERTH_MUST_USE berth_status berth_cuda__compile(cuda_device *device, const char *source,
                                                void **out_data, size_t *out_bytes);
// executable.c
BERTH_MUST_USE berth_status berth_cuda__executable_load(berth_device *device,
                                                        const berth_executable_image *image,
                                                        berth_executable **out_executable);
void berth_cuda__executable_destroy(berth_executable *executable);
BERTH_MUST_USE berth_status berth_cuda__executable_find(berth_executable *executable,
                                                        const berth_program_kernel *kernel,
                                                        uint32_t *out_kernel);
BERTH_MUST_USE berth_status berth_cuda__dispatch(const cuda_device *device, cuda_stream stream,
                                                 const berth_command *command);

// queue.c
BERTH_MUST_USE berth_status berth_cuda__queue_open(berth_device *device, berth_queue_kind kind,
                                                   berth_queue **out_queue);
void berth_cuda__queue_destroy(berth_queue *queue);
// Puts a copy, fill or dispatch into a stream. The context is current.
BERTH_MUST_USE berth_status berth_cuda__put(const cuda_device *device, cuda_stream stream,
                                            const berth_command *command);

// list.c: a command list that is ready: what follows each other on the device is one graph.
typedef struct cuda_part {
    uint32_t first, count;  // commands of the list
    cuda_graph_exec graph;
} cuda_part;
typedef struct cuda_list {
    uint32_t part_count;
    cuda_part parts[];
} cuda_list;
BERTH_MUST_USE berth_status berth_cuda__list_prepare(berth_command_list *list);
void berth_cuda__list_destroy(berth_command_list *list);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_CUDA_CUDA_H_
