// Work in a stream that the application has made. On the emulated device.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "devices/cuda/cuda.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "tests/check.h"

// What an application that uses CUDA has linked.
typedef struct application {
    cuda_result (*cuInit)(unsigned int flags);
    cuda_result (*cuDevicePrimaryCtxRetain)(cuda_context *context, cuda_device_id device);
    cuda_result (*cuDevicePrimaryCtxRelease_v2)(cuda_device_id device);
    cuda_result (*cuCtxPushCurrent_v2)(cuda_context context);
    cuda_result (*cuMemAlloc_v2)(cuda_address *address, size_t bytes);
    cuda_result (*cuMemFree_v2)(cuda_address address);
    cuda_result (*cuMemsetD8Async)(cuda_address to, unsigned char value, size_t count,
                                   cuda_stream stream);
    cuda_result (*cuStreamCreate)(cuda_stream *stream, unsigned int flags);
    cuda_result (*cuStreamDestroy_v2)(cuda_stream stream);
    cuda_result (*cuEventCreate)(cuda_event *event, unsigned int flags);
    cuda_result (*cuEventDestroy_v2)(cuda_event event);
    cuda_result (*cuEventRecord)(cuda_event event, cuda_stream stream);
    cuda_result (*cuEventQuery)(cuda_event event);
} application;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    cr_assert_not_null(found, "%s", name);
    return found;
}

static application load(void) {
    application a;
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
    cr_assert_not_null(library);
#define LOOK_UP(name)                                                                              \
    found = symbol(library, #name);                                                                \
    memcpy(&a.name, &found, sizeof(found));
    LOOK_UP(cuInit)
    LOOK_UP(cuDevicePrimaryCtxRetain)
    LOOK_UP(cuDevicePrimaryCtxRelease_v2)
    LOOK_UP(cuCtxPushCurrent_v2)
    LOOK_UP(cuMemAlloc_v2)
    LOOK_UP(cuMemFree_v2)
    LOOK_UP(cuMemsetD8Async)
    LOOK_UP(cuStreamCreate)
    LOOK_UP(cuStreamDestroy_v2)
    LOOK_UP(cuEventCreate)
    LOOK_UP(cuEventDestroy_v2)
    LOOK_UP(cuEventRecord)
    LOOK_UP(cuEventQuery)
    return a;
}

// A fill by way of Berth.
static void fill(berth_queue *queue, berth_buffer *buffer) {
    berth_command command = {.kind = BERTH_COMMAND_FILL};
    command.fill.buffer = buffer;
    command.fill.size_bytes = 16;
    command.fill.pattern = 21;
    command.fill.pattern_bytes = 4;
    assert_ok(berth_queue_run(queue, &command, 1));
}

// The stream has work for a while: what Berth puts behind it is done after it. The stream's device is opened, whatever the
// ordinal, and the stream is the application's still when that is closed.
Test(cuda_faults, the_applications_stream, .timeout = 120) {
    enum { bytes = 64 << 20, fills = 40 };
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    berth_queue *queue = NULL;
    berth_buffer *buffer = NULL;
    berth_device_info info = {.name = ""};
    berth_status missing = berth_driver_open("cuda", berth_allocator_system(), &driver);
    if (!missing) missing = berth_driver_device_info(driver, 0, &info);
    berth_status_free(missing);
    if (!strstr(info.name, "emulated")) cr_skip("the device is not the emulated one");
    const application cuda = load();
    cuda_context context = NULL;
    cuda_stream stream = NULL;
    cuda_event done = NULL;
    cuda_address work = 0;
    cr_assert_eq(cuda.cuInit(0), CUDA_OK);
    cr_assert_eq(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_OK);
    cr_assert_eq(cuda.cuCtxPushCurrent_v2(context), CUDA_OK);
    cr_assert_eq(cuda.cuStreamCreate(&stream, 0), CUDA_OK);
    cr_assert_eq(cuda.cuEventCreate(&done, 0), CUDA_OK);
    cr_assert_eq(cuda.cuMemAlloc_v2(&work, bytes), CUDA_OK);

    const berth_device_options options = {.queue = stream};
    assert_ok(berth_device_open(driver, 0, &options, &device));
    assert_ok(berth_queue_open(device, BERTH_QUEUE_COMPUTE, &queue));
    assert_ok(berth_buffer_allocate(device, 0, 16, &buffer));
    for (unsigned char i = 0; i < fills; ++i)
        cr_assert_eq(cuda.cuMemsetD8Async(work, i, bytes, stream), CUDA_OK);
    cr_assert_eq(cuda.cuEventRecord(done, stream), CUDA_OK);
    cr_assert_neq(cuda.cuEventQuery(done), CUDA_OK, "the stream is to be busy");
    fill(queue, buffer);
    cr_assert_eq(cuda.cuEventQuery(done), CUDA_OK, "the run came behind what was there");

    berth_buffer_free(buffer);
    berth_queue_destroy(queue);
    berth_device_close(device);
    cr_assert_eq(cuda.cuMemsetD8Async(work, 1, bytes, stream), CUDA_OK);
    cr_assert_eq(cuda.cuMemFree_v2(work), CUDA_OK);
    cr_assert_eq(cuda.cuEventDestroy_v2(done), CUDA_OK);
    cr_assert_eq(cuda.cuStreamDestroy_v2(stream), CUDA_OK);
    cr_assert_eq(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_OK);
    berth_driver_close(driver);
}
