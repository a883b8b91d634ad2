// What a session says when Vulkan fails: each function in turn, a device that is lost, out of memory, or
// that hangs. With tests/faults/flaky_vulkan.c in place of the system's loader only; the file's environment
// variable says so (tests/CMakeLists.txt).
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct work {
    berth_arena *arena;
    const berth_program *program;
} work;

static bool is_flaky(void) {
    return getenv("BERTH_FLAKY_VULKAN") != NULL;
}

static work build(void) {
    static const char text[] = "module \"m\"\ngraph @main(%x: f32[5,333]) {\n"
                               "  %y = softmax(%x)\n  return %y\n}\n";
    work w = {.arena = NULL};
    berth_multi_target *target = NULL;
    berth_module *module = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &w.arena));
    assert_ok(berth_module_parse(w.arena, text, strlen(text), "text", &module));
    assert_ok(berth_target_parse(w.arena, "vulkan -host=cpu", NULL, &target));
    berth_compile_options options = {.target = target};
    assert_ok(berth_compile(module, &options, &result));
    w.program = result.program;
    return w;
}

// What two runs say, with a fault from the start on; "" where all went well. The error's code in *out_code.
static const char *outcome(const work *w, const char *fault, berth_code *out_code) {
    static char text[1000];
    berth_session *session = NULL;
    setenv("BERTH_FLAKY_VULKAN", fault, 1);
    berth_status status = berth_session_open(berth_allocator_system(), w->program, NULL, &session);
    for (int run = 0; run < 2 && !status; ++run) {
        berth_tensor_fill_random((berth_tensor *)(uintptr_t)berth_session_input(session, 0), 3);
        status = berth_session_run(session, -1);
        double sum = 0;
        for (int64_t i = 0; i < 333 && !status; ++i)
            sum += berth_tensor_get_f64(berth_session_output(session, 0), i);
        if (!status) cr_expect_float_eq(sum, 1, 1e-5, "%s", fault);  // a row of a softmax
    }
    *out_code = berth_status_code(status);
    snprintf(text, sizeof(text), "%s", status ? berth_status_message(status) : "");
    berth_status_free(status);
    berth_session_close(session);
    return text;
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
    work w = build();
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
    work w = build();
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
    work w = build();
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
    work w = build();
    berth_code code = BERTH_INTERNAL;
    const char *message = outcome(&w, "hang", &code);
    cr_expect_eq(code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "has not answered in time"), "%s", message);
    cr_expect(strstr(message, "steps \"x"), "%s", message);
    cr_expect_str_empty(outcome(&w, "none", &code), "the process goes on");
    berth_arena_destroy(w.arena);
}
