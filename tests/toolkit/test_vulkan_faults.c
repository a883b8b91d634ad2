// What a session says when Vulkan fails: each function in turn, a device that is lost, out of memory, or
// that hangs. With tests/faults/flaky_vulkan.c in place of the system's loader only; the file's environment
// variable says so (tests/CMakeLists.txt).
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/toolkit/loader_faults.h"

static bool is_flaky(void) {
    return getenv("BERTH_FLAKY_VULKAN") != NULL;
}

static faulty_work build(void) {
    return faulty_build("vulkan -host=cpu");
}

static const char *outcome(const faulty_work *w, const char *fault, berth_code *out_code) {
    return faulty_outcome(w, "BERTH_FLAKY_VULKAN", fault, NULL, out_code);
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

// A second run fails after a first that went well, and names the step.
Test(vulkan_faults, lost_in_a_step, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    static const char *const faults[] = {"vkWaitSemaphores:0:-4", "vkQueueSubmit:0:-4"};
    for (int i = 0; i < 2; ++i) {
        const char *message = outcome(&w, faults[i], &code);
        cr_expect(strstr(message, "steps \"x"), "%s: \"%s\"", faults[i], message);
    }
    berth_arena_destroy(w.arena);
}

Test(vulkan_faults, a_queue_that_hangs, .timeout = 60) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    faulty_work w = build();
    berth_code code = BERTH_INTERNAL;
    const char *message = outcome(&w, "hang", &code);
    cr_expect_eq(code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "has not answered in time"), "%s", message);
    cr_expect(strstr(message, "steps \"x"), "%s", message);
    cr_expect_str_empty(outcome(&w, "none", &code), "the process goes on");
    berth_arena_destroy(w.arena);
}
