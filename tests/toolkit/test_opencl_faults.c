// What a session says when OpenCL fails: each function in turn, a device that is lost, out of memory, a kernel that
// does not build, a queue that hangs. With tests/faults/flaky_libopencl.c in place of the system's loader only; the
// environment variable says so (tests/CMakeLists.txt).
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "tests/check.h"
#include "tests/toolkit/loader_faults.h"

static bool is_flaky(void) {
    return getenv("BERTH_FLAKY_LIBOPENCL") != NULL;
}

static faulty_work build(void) {
    return faulty_build("opencl -host=cpu");
}

static const char *outcome(const faulty_work *w, const char *fault, berth_code *out_code) {
    // Without a fault that hangs, a busy machine has all the time it wants.
    const char *attributes = strcmp(fault, "hang") == 0 ? "timeout_ms=300" : NULL;
    berth_session_binding binding = {.name = "opencl:0", .attributes = attributes};
    berth_session_options options = {.bindings = &binding, .binding_count = 1};
    return faulty_outcome(w, "BERTH_FLAKY_LIBOPENCL", fault, &options, out_code);
}

// Out of resources, or out of memory for a buffer, by every function that may fail so: an error that names the device, and
// nothing stays of it.
Test(opencl_faults, every_function, .timeout = 120) {
    static const char *const functions[] = {"clCreateContext",
                                            "clCreateCommandQueue",
                                            "clCreateBuffer",
                                            "clCreateSubBuffer",
                                            "clCreateProgramWithSource",
                                            "clCreateKernel",
                                            "clSetKernelArg",
                                            "clEnqueueNDRangeKernel",
                                            "clEnqueueReadBuffer",
                                            "clEnqueueWriteBuffer",
                                            "clFlush",
                                            "clSetEventCallback"};
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    cr_expect_str_empty(outcome(&w, "none", &code));
    for (size_t i = 0; i < 2 * sizeof(functions) / sizeof(functions[0]); ++i) {
        char fault[96];
        const char *said = i % 2 ? "CL_MEM_OBJECT_ALLOCATION_FAILURE" : "CL_OUT_OF_RESOURCES";
        snprintf(fault, sizeof(fault), "%s:0:%d", functions[i / 2], i % 2 ? -4 : -5);
        const char *message = outcome(&w, fault, &code);
        cr_expect_eq(code, BERTH_OUT_OF_MEMORY, "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, said), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "opencl device 0 ("), "%s: \"%s\"", fault, message);
        if (strstr(fault, "clEnqueue"))  // memory of buffers is often found when they are used
            cr_expect(strstr(message, "steps \"x"), "%s: \"%s\"", fault, message);
    }
    cr_expect_str_empty(outcome(&w, "none", &code), "nothing stays of the faults");
    berth_arena_destroy(w.arena);
}

// From one call on nothing works any more: the step is named, everything closes, and the process goes on.
Test(opencl_faults, a_device_that_is_lost, .timeout = 120) {
    static const char *const functions[] = {"clCreateBuffer:1", "clEnqueueNDRangeKernel:1",
                                            "clEnqueueReadBuffer:2", "clFlush:2",
                                            "clSetEventCallback:1"};
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        char fault[96];
        snprintf(fault, sizeof(fault), "%s:-2*", functions[i]);
        const char *message = outcome(&w, fault, &code);
        cr_expect_eq(code, BERTH_UNAVAILABLE, "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "CL_DEVICE_NOT_AVAILABLE"), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "opencl device 0 ("), "%s: \"%s\"", fault, message);
        if (i > 0) cr_expect(strstr(message, "steps \"x"), "%s: \"%s\"", fault, message);
        message = outcome(&w, "none", &code);
        cr_expect_str_empty(message, "%s: nothing stays: \"%s\"", fault, message);
    }
    berth_arena_destroy(w.arena);
}

Test(opencl_faults, a_kernel_that_does_not_build, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    const char *message = outcome(&w, "clBuildProgram:0:-11", &code);
    cr_expect_eq(code, BERTH_INVALID_ARGUMENT, "%s", message);
    cr_expect(strstr(message, "OpenCL kernels do not build on"), "%s", message);
    cr_expect(strstr(message, "\"rows\""), "%s", message);
    message = outcome(&w, "clBuildProgram:0:-3", &code);
    cr_expect_eq(code, BERTH_UNAVAILABLE, "%s", message);
    cr_expect(strstr(message, "CL_COMPILER_NOT_AVAILABLE"), "%s", message);
    cr_expect(strstr(message, "\"rows\""), "%s", message);
    message = outcome(&w, "clCreateKernel:0:-46", &code);
    cr_expect(strstr(message, "code of \"rows\""), "%s", message);
    berth_arena_destroy(w.arena);
}

Test(opencl_faults, a_queue_that_hangs, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    int64_t before_ns = berth_clock_ns();
    const char *message = outcome(&w, "hang", &code);
    double seconds = (double)(berth_clock_ns() - before_ns) * 1e-9;
    cr_expect_eq(code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "opencl device 0 ("), "%s", message);
    cr_expect(strstr(message, "no answer within 0.3 s"), "%s", message);
    cr_expect(strstr(message, "steps \"x"), "%s", message);
    cr_expect_geq(seconds, 0.3);
    message = outcome(&w, "none", &code);
    cr_expect_str_empty(message, "the process goes on: \"%s\"", message);
    berth_arena_destroy(w.arena);
}

// A device that was given up takes nothing more, and closes without a word from it.
Test(opencl_faults, after_a_hang, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    berth_queue *queue = NULL;
    berth_buffer *buffer = NULL;
    void *data = NULL;
    uint32_t ends = 0;
    berth_device_options options = {.attributes = "timeout_ms=300"};
    assert_ok(berth_driver_open("opencl", berth_allocator_system(), &driver));
    assert_ok(berth_device_open(driver, 0, &options, &device));
    assert_ok(berth_queue_open(device, BERTH_QUEUE_COMPUTE, &queue));
    assert_ok(berth_buffer_allocate(device, 0, 64, &buffer));
    berth_command fill = {.kind = BERTH_COMMAND_FILL};
    fill.fill.buffer = buffer;
    fill.fill.size_bytes = 64;
    fill.fill.pattern_bytes = 4;
    setenv("BERTH_FLAKY_LIBOPENCL", "hang", 1);
    for (int i = 0; i < 3; ++i) {
        berth_status status = i < 2 ? berth_buffer_map(buffer, 0, 64, false, &data)
                                    : berth_queue_run(queue, &fill, 1);
        const char *expected =
            i ? "has not answered in time before" : "map: no answer within 0.3 s";
        cr_expect_eq(berth_status_code(status), i ? BERTH_UNAVAILABLE : BERTH_DEADLINE_EXCEEDED);
        cr_expect(status && strstr(berth_status_message(status), expected), "%s",
                  status ? berth_status_message(status) : "");
        ends += status != NULL;
        berth_status_free(status);
    }
    cr_expect_eq(ends, 3);
    berth_buffer_free(buffer);
    berth_queue_destroy(queue);
    berth_device_close(device);
    berth_driver_close(driver);
}

Test(opencl_faults, attributes) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    if (!is_flaky()) cr_skip("the loader is the system's");
    assert_ok(berth_driver_open("opencl", berth_allocator_system(), &driver));
    static const char *const wrong[] = {"speed=11", "timeout_ms=0", "timeout_ms=5x", "timeout_ms="};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_device_options options = {.attributes = wrong[i]};
        berth_status status = berth_device_open(driver, 0, &options, &device);
        cr_assert(status, "%s", wrong[i]);
        cr_expect(strstr(berth_status_message(status), "timeout_ms=1 to"), "%s",
                  berth_status_message(status));
        berth_status_free(status);
    }
    berth_driver_close(driver);
}
