// What a session says when Vulkan fails: each function in turn, a device that is lost, out of memory, or
// that hangs. With tests/faults/flaky_vulkan.c in place of the system's loader only; the file's environment
// variable says so (tests/CMakeLists.txt).
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "tests/check.h"
#include "tests/leaks.h"
#include "tests/toolkit/loader_faults.h"

static bool is_flaky(void) {
    return getenv("BERTH_FLAKY_VULKAN") != NULL;
}

static faulty_work build(void) {
    return faulty_build("vulkan -host=cpu");
}

static const char *outcome(const faulty_work *w, const char *fault, berth_code *out_code) {
    // Without a fault that hangs, a busy machine has all the time it wants.
    const char *attributes = strcmp(fault, "hang") == 0 ? "timeout_ms=300" : NULL;
    berth_session_binding binding = {.name = "vulkan:0", .attributes = attributes};
    berth_session_options options = {.bindings = &binding, .binding_count = 1};
    return faulty_outcome(w, "BERTH_FLAKY_VULKAN", fault, &options, out_code);
}

static const char *const functions[] = {
    "vkCreateDevice",         "vkAllocateMemory",         "vkMapMemory",
    "vkCreateBuffer",         "vkBindBufferMemory",       "vkCreateShaderModule",
    "vkCreatePipelineLayout", "vkCreatePipelineCache",    "vkCreateComputePipelines",
    "vkCreateCommandPool",    "vkAllocateCommandBuffers", "vkBeginCommandBuffer",
    "vkEndCommandBuffer",     "vkCreateSemaphore",        "vkQueueSubmit",
    "vkWaitSemaphores"};

// Out of device memory (-2) and a lost device (-4), by every function: an error that names the device, and
// nothing stays of it.
Test(vulkan_faults, every_function, .timeout = 120) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    static const struct {
        int result;
        const char *name;
        berth_code code;
    } results[] = {{-2, "VK_ERROR_OUT_OF_DEVICE_MEMORY", BERTH_OUT_OF_MEMORY},
                   {-4, "VK_ERROR_DEVICE_LOST", BERTH_UNAVAILABLE}};
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    cr_expect_str_empty(outcome(&w, "none", &code));
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
        for (int r = 0; r < 2; ++r) {
            char fault[96];
            snprintf(fault, sizeof(fault), "%s:0:%d", functions[i], results[r].result);
            const char *message = outcome(&w, fault, &code);
            cr_expect_eq(code, results[r].code, "%s: \"%s\"", fault, message);
            cr_expect(strstr(message, results[r].name), "%s: \"%s\"", fault, message);
            cr_expect(strstr(message, "vulkan device 0 ("), "%s: \"%s\"", fault, message);
        }
    cr_expect_str_empty(outcome(&w, "none", &code), "nothing stays of the faults");
    berth_arena_destroy(w.arena);
}

// Before there is a device: what is said of the driver.
Test(vulkan_faults, no_device, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    const char *message = outcome(&w, "vkCreateInstance:0:-9", &code);
    cr_expect(strstr(message, "no driver is installed"), "%s", message);
    message = outcome(&w, "vkEnumeratePhysicalDevices:0:-3", &code);
    cr_expect(strstr(message, "VK_ERROR_INITIALIZATION_FAILED"), "%s", message);
    berth_arena_destroy(w.arena);
}

// A device that is lost or has no memory left when a step is handed over or waited for: the step is named.
Test(vulkan_faults, lost_in_a_step, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    static const char *const faults[] = {"vkWaitSemaphores:0:-4", "vkQueueSubmit:0:-4",
                                         "vkWaitSemaphores:0:-2", "vkQueueSubmit:0:-2"};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
        const char *message = outcome(&w, faults[i], &code);
        cr_expect(strstr(message, "steps \"x"), "%s: \"%s\"", faults[i], message);
        cr_expect(strstr(message, "vulkan device 0 ("), "%s: \"%s\"", faults[i], message);
        cr_expect_str_empty(outcome(&w, "none", &code), "the process goes on");
    }
    berth_arena_destroy(w.arena);
}

// What the device's compiler does not take (VK_ERROR_UNKNOWN, VK_ERROR_INVALID_SHADER_NV): the step whose code it is.
Test(vulkan_faults, a_kernel_that_does_not_compile, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    static const char *const calls[] = {"vkCreateShaderModule", "vkCreateComputePipelines"};
    static const int results[] = {-13, -1000012000};
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    for (int i = 0; i < 4; ++i) {
        char fault[96], said[32];
        snprintf(fault, sizeof(fault), "%s:0:%d", calls[i / 2], results[i % 2]);
        snprintf(said, sizeof(said), "Vulkan error %d", results[i % 2]);
        const char *message = outcome(&w, fault, &code);
        cr_expect_eq(code, BERTH_UNAVAILABLE, "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, said), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "code of \"rows\""), "%s: \"%s\"", fault, message);
        cr_expect(strstr(message, "vulkan device 0 ("), "%s: \"%s\"", fault, message);
        cr_expect_str_empty(outcome(&w, "none", &code), "the process goes on");
    }
    berth_arena_destroy(w.arena);
}

// The device is given up: the loader ends the process where anything is freed that it may use, or where it is waited
// for once more.
Test(vulkan_faults, a_queue_that_hangs, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    leave_leaks();  // what the device has stays
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    int64_t before_ns = berth_clock_ns();
    const char *message = outcome(&w, "hang", &code);
    double seconds = (double)(berth_clock_ns() - before_ns) * 1e-9;
    cr_expect_eq(code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "vulkan device 0 ("), "%s", message);
    cr_expect(strstr(message, "no answer within 0.3 s"), "%s", message);
    cr_expect(strstr(message, "steps \"x"), "%s", message);
    cr_expect_geq(seconds, 0.3);
    cr_expect_str_empty(outcome(&w, "none", &code), "the process goes on");
    berth_arena_destroy(w.arena);
}

// Devices that are too old for Berth are named, with the reason, whether others serve or not.
Test(vulkan_faults, devices_that_are_left_out, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    berth_driver *driver = NULL;
    setenv("VK_ICD_FILENAMES", VULKAN_PAIR, 1);
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    cr_assert_eq(berth_driver_device_count(driver), 2);
    cr_expect_str_empty(driver->lacking);
    berth_driver_close(driver);
    setenv("BERTH_FLAKY_VULKAN", "old:2", 1);
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    cr_expect_eq(berth_driver_device_count(driver), 1);
    const char *reason = strstr(driver->lacking, " is here, but it has no Vulkan 1.2");
    cr_expect(reason && strncmp(driver->lacking, "llvmpipe", 8) == 0, "%s", driver->lacking);
    berth_driver_close(driver);
    setenv("BERTH_FLAKY_VULKAN", "old:1", 1);
    berth_status status = berth_driver_open("vulkan", berth_allocator_system(), &driver);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    reason = strstr(berth_status_message(status), " is here, but it has no Vulkan 1.2");
    cr_expect(reason && strstr(reason + 1, " is here, but it has no Vulkan 1.2"), "both: %s",
              berth_status_message(status));
    berth_status_free(status);
}

typedef struct opened {
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_buffer *buffer;
} opened;

// Memory that is not the host's, which is mapped by copies.
static opened open_apart(void) {
    opened o = {.driver = NULL};
    berth_device_options options = {
        .own_memory = true, .profile = true, .attributes = "timeout_ms=300"};
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &o.driver));
    assert_ok(berth_device_open(o.driver, 0, &options, &o.device));
    assert_ok(berth_queue_open(o.device, BERTH_QUEUE_COMPUTE, &o.queue));
    assert_ok(berth_buffer_allocate(o.device, 0, 64, &o.buffer));
    return o;
}

static void close_apart(opened *o) {
    berth_buffer_free(o->buffer);
    berth_queue_destroy(o->queue);
    berth_device_close(o->device);
    berth_driver_close(o->driver);
}

static void expect_failure(berth_status status, berth_code code, const char *text) {
    cr_expect_eq(berth_status_code(status), code);
    cr_expect(status && strstr(berth_status_message(status), text), "%s",
              status ? berth_status_message(status) : "");
    berth_status_free(status);
}

// A map whose copy is handed over and not seen to end: what the copy uses goes when it has ended, the loader looks.
Test(vulkan_faults, a_map_that_fails, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    opened o = open_apart();
    void *data = NULL;
    setenv("BERTH_FLAKY_VULKAN", "vkWaitSemaphores:0:-1", 1);
    expect_failure(berth_buffer_map(o.buffer, 0, 64, false, &data), BERTH_OUT_OF_MEMORY,
                   "map: Vulkan says VK_ERROR_OUT_OF_HOST_MEMORY");
    setenv("BERTH_FLAKY_VULKAN", "none", 1);
    assert_ok(berth_buffer_map(o.buffer, 0, 64, false, &data));
    setenv("BERTH_FLAKY_VULKAN", "vkWaitSemaphores:0:-4", 1);
    expect_failure(berth_buffer_unmap(o.buffer, data), BERTH_UNAVAILABLE,
                   "map: Vulkan says VK_ERROR_DEVICE_LOST");
    close_apart(&o);
}

// A device that was given up takes nothing more and answers at once; another that is opened works.
Test(vulkan_faults, after_a_hang, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    leave_leaks();  // what the device has stays
    opened o = open_apart();
    void *data = NULL;
    berth_command fill = {.kind = BERTH_COMMAND_FILL};
    fill.fill.buffer = o.buffer;
    fill.fill.size_bytes = 64;
    fill.fill.pattern_bytes = 4;
    setenv("BERTH_FLAKY_VULKAN", "hang", 1);
    expect_failure(berth_buffer_map(o.buffer, 0, 64, false, &data), BERTH_DEADLINE_EXCEEDED,
                   "): map: no answer within 0.3 s");
    expect_failure(berth_buffer_map(o.buffer, 0, 64, false, &data), BERTH_UNAVAILABLE,
                   "): map: the device has not answered in time before");
    expect_failure(berth_queue_run(o.queue, &fill, 1), BERTH_UNAVAILABLE,
                   "): submit: the device has not answered in time before");
    close_apart(&o);
    o = open_apart();  // one whose commands with their queries hang, and more that would want more of these
    berth_command more[40];
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); ++i) {
        more[i] = fill;
        more[i].fill.buffer = o.buffer;
    }
    expect_failure(berth_queue_run(o.queue, more, 1), BERTH_DEADLINE_EXCEEDED,
                   "no answer within 0.3 s");
    expect_failure(berth_queue_run(o.queue, more, sizeof(more) / sizeof(more[0])),
                   BERTH_UNAVAILABLE, "): submit: the device has not answered in time before");
    close_apart(&o);
    setenv("BERTH_FLAKY_VULKAN", "none", 1);
    o = open_apart();
    fill.fill.buffer = o.buffer;
    assert_ok(berth_queue_run(o.queue, &fill, 1));
    assert_ok(berth_buffer_map(o.buffer, 0, 64, false, &data));
    assert_ok(berth_buffer_unmap(o.buffer, data));
    close_apart(&o);
}

// ---- two devices ----

// Two that hand bytes to each other through the host's memory, neither of whose own the host sees.
enum { pair_bytes = 1 << 20 };
typedef struct pair {
    berth_driver *driver;
    berth_device *devices[2];
    berth_queue *queues[2];
    berth_buffer *buffers[2], *between;
    berth_semaphore *line;
    berth_command commands[5];  // stay until the queues are gone
} pair;

static berth_status open_pair(pair *p) {
    berth_device_options options = {.own_memory = true, .attributes = "timeout_ms=300"};
    BERTH_TRY(berth_driver_open("vulkan", berth_allocator_system(), &p->driver));
    for (uint32_t i = 0; i < 2; ++i) {
        BERTH_TRY(berth_device_open(p->driver, i, &options, &p->devices[i]));
        BERTH_TRY(berth_queue_open(p->devices[i], BERTH_QUEUE_COMPUTE, &p->queues[i]));
        BERTH_TRY(berth_buffer_allocate(p->devices[i], 0, pair_bytes, &p->buffers[i]));
    }
    BERTH_TRY(berth_buffer_allocate(p->devices[0], 1, pair_bytes, &p->between));
    return berth_semaphore_create(berth_allocator_system(), 0, &p->line);
}

static void close_pair(pair *p) {
    if (p->line) berth_semaphore_release(p->line);
    for (int i = 0; i < 2; ++i)
        if (p->queues[i]) berth_queue_destroy(p->queues[i]);
    berth_buffer_free(p->between);
    for (int i = 0; i < 2; ++i) berth_buffer_free(p->buffers[i]);
    for (int i = 0; i < 2; ++i) berth_device_close(p->devices[i]);
    berth_driver_close(p->driver);
}

static berth_command copy_of(berth_buffer *from, berth_buffer *to, const char *label) {
    berth_command command = {.kind = BERTH_COMMAND_COPY, .label = label};
    command.copy.source = from;
    command.copy.destination = to;
    command.copy.size_bytes = pair_bytes;
    return command;
}

// Device 0 fills, device 1 takes it and gives it back; each waits for the one before.
static berth_status there_and_back(pair *p) {
    berth_command *c = p->commands;
    c[0] = (berth_command){.kind = BERTH_COMMAND_FILL, .label = "fill"};
    c[0].fill.buffer = p->buffers[0];
    c[0].fill.size_bytes = pair_bytes;
    c[0].fill.pattern = 7;
    c[0].fill.pattern_bytes = 4;
    c[1] = copy_of(p->buffers[0], p->between, "out");
    c[2] = copy_of(p->between, p->buffers[1], "there");
    c[3] = copy_of(p->buffers[1], p->between, "back");
    c[4] = copy_of(p->between, p->buffers[0], "in");
    const uint32_t firsts[] = {0, 2, 4, 5};
    for (uint32_t i = 0; i < 3; ++i) {
        berth_semaphore_point before = {p->line, i}, after = {p->line, i + 1};
        BERTH_TRY(berth_queue_submit(p->queues[i % 2],
                                     &(berth_submission){.waits = &before,
                                                         .wait_count = i > 0,
                                                         .commands = c + firsts[i],
                                                         .command_count = firsts[i + 1] - firsts[i],
                                                         .signals = &after,
                                                         .signal_count = 1,
                                                         .asynchronous = true}));
    }
    return berth_semaphore_wait(p->line, 3, -1);
}

// Whether the device still fills its own memory.
static void expect_works(pair *p, int device) {
    berth_command fill = {.kind = BERTH_COMMAND_FILL};
    fill.fill.buffer = p->buffers[device];
    fill.fill.size_bytes = pair_bytes;
    fill.fill.pattern_bytes = 4;
    assert_ok(berth_queue_run(p->queues[device], &fill, 1));
}

// "" where all went well. `other`: the device that is to go on, -1 = none is looked at.
static const char *outcome_of_pair(const char *fault, int other) {
    static char text[1000];
    pair p = {.driver = NULL};
    void *data = NULL;
    setenv("BERTH_FLAKY_VULKAN", fault, 1);
    berth_status status = open_pair(&p);
    if (!status) status = there_and_back(&p);
    if (!status) status = berth_buffer_map(p.buffers[0], 0, pair_bytes, false, &data);
    if (!status) {
        cr_expect_eq(((uint32_t *)data)[pair_bytes / 4 - 1], 7);
        status = berth_buffer_unmap(p.buffers[0], data);
    }
    snprintf(text, sizeof(text), "%s", status ? berth_status_message(status) : "");
    berth_status_free(status);
    if (other >= 0) expect_works(&p, other);
    close_pair(&p);
    return text;
}

// One of two is lost: what waits for it fails and says of which device, the other goes on, and nothing stays.
Test(vulkan_faults, a_peer_that_is_lost, .timeout = 120) {
    static const char *const calls[] = {"vkQueueSubmit", "vkWaitSemaphores"};
    if (!is_flaky()) cr_skip("the loader is the system's");
    setenv("VK_ICD_FILENAMES", VULKAN_PAIR, 1);
    cr_expect_str_empty(outcome_of_pair("none", 1));
    for (int lost = 0; lost < 2; ++lost)
        for (int i = 0; i < 2; ++i) {
            char fault[64], device[32];
            snprintf(fault, sizeof(fault), "%s:0:-4@%d", calls[i], lost + 1);
            snprintf(device, sizeof(device), "vulkan device %d (", lost);
            const char *message = outcome_of_pair(fault, 1 - lost);
            cr_expect(strstr(message, "VK_ERROR_DEVICE_LOST"), "%s: \"%s\"", fault, message);
            cr_expect(strstr(message, device), "%s: \"%s\"", fault, message);
            if (lost)  // its copy is one by the host, and of device 0 it is a submission as a whole
                cr_expect(strstr(message, "there: "), "%s: \"%s\"", fault, message);
            cr_expect_str_empty(outcome_of_pair("none", 0), "nothing stays of %s", fault);
        }
}

Test(vulkan_faults, a_peer_that_hangs, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    leave_leaks();  // what the device has stays
    setenv("VK_ICD_FILENAMES", VULKAN_PAIR, 1);
    const char *message = outcome_of_pair("hang@2", 0);
    cr_expect(strstr(message, "vulkan device 1 ("), "%s", message);
    cr_expect(strstr(message, "there: "), "%s", message);
    cr_expect(strstr(message, "no answer within 0.3 s"), "%s", message);
    cr_expect_str_empty(outcome_of_pair("none", 1), "the process goes on");
}

Test(vulkan_faults, attributes) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    if (!is_flaky()) cr_skip("the loader is the system's");
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    static const char *const wrong[] = {"speed=11", "timeout_ms=0", "timeout_ms=5x", "timeout_ms="};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_device_options options = {.attributes = wrong[i]};
        expect_failure(berth_device_open(driver, 0, &options, &device), BERTH_INVALID_ARGUMENT,
                       "timeout_ms=1 to");
    }
    berth_driver_close(driver);
}
