// Runs in a Vulkan queue that the application has made (<berth/vulkan_queue.h>), through the shared libraries alone.
#define VK_NO_PROTOTYPES
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

#include "tests/check.h"

enum { class_count = 10, pixel_count = 64 };

#define INSTANCE_FUNCTIONS(F)                                                                      \
    F(vkEnumeratePhysicalDevices)                                                                  \
    F(vkGetPhysicalDeviceQueueFamilyProperties)                                                    \
    F(vkCreateDevice)                                                                              \
    F(vkGetDeviceQueue)                                                                            \
    F(vkCreateSemaphore)                                                                           \
    F(vkDestroySemaphore)                                                                          \
    F(vkSignalSemaphore)                                                                           \
    F(vkQueueSubmit)                                                                               \
    F(vkDeviceWaitIdle)                                                                            \
    F(vkDestroyDevice)                                                                             \
    F(vkDestroyInstance)

// An application that uses Vulkan.
typedef struct application {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceFeatures2 features;
    int held, submissions;  // by lock and unlock
#define POINTER(name) PFN_##name name;
    INSTANCE_FUNCTIONS(POINTER)
} application;

static void lock(void *user) {
    application *a = user;
    cr_assert_eq(a->held++, 0);
    a->submissions++;
}

static void unlock(void *user) {
    application *a = user;
    cr_assert_eq(a->held--, 1);
}

static PFN_vkGetInstanceProcAddr open_library(void) {
    void *library = dlopen("libvulkan.so.1", RTLD_NOW), *symbol = NULL;
    PFN_vkGetInstanceProcAddr find = NULL;
    if (library) symbol = dlsym(library, "vkGetInstanceProcAddr");
    memcpy(&find, &symbol, sizeof(find));
    return find;
}

static bool make_instance(application *a) {
    PFN_vkGetInstanceProcAddr find = open_library();
    if (!find) return false;
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)find(NULL, "vkCreateInstance");
    const VkApplicationInfo about = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &about};
    if (!create || create(&info, NULL, &a->instance) != VK_SUCCESS) return false;
#define LOOK_UP(name)                                                                              \
    a->name = (PFN_##name)find(a->instance, #name);                                                \
    cr_assert_not_null(a->name, #name);
    INSTANCE_FUNCTIONS(LOOK_UP)
    uint32_t count = 1;
    VkResult result = a->vkEnumeratePhysicalDevices(a->instance, &count, &a->physical);
    return (result == VK_SUCCESS || result == VK_INCOMPLETE) && count == 1;
}

static uint32_t computing_family(application *a) {
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;
    a->vkGetPhysicalDeviceQueueFamilyProperties(a->physical, &count, families);
    for (uint32_t i = 0; i < count; ++i)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
    cr_assert_fail("no queue family computes");
    return 0;
}

// False where there is no Vulkan. `timeline`: the device is made with timeline semaphores.
static bool open_vulkan(application *a, bool timeline) {
    *a = (application){.instance = NULL};
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    bool found = make_instance(a);
    cr_assert(found || !required || !strstr(required, "vulkan"), "no vulkan device");
    if (!found) return false;
    a->family = computing_family(a);
    a->v12 = (VkPhysicalDeviceVulkan12Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .bufferDeviceAddress = VK_TRUE,
        .timelineSemaphore = timeline};
    a->features = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                              .pNext = &a->v12};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = a->family,
                                            .queueCount = 1,
                                            .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &a->features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues};
    cr_assert_eq(a->vkCreateDevice(a->physical, &info, NULL, &a->device), VK_SUCCESS);
    a->vkGetDeviceQueue(a->device, a->family, 0, &a->queue);
    return true;
}

static void close_vulkan(application *a) {
    cr_assert_eq(a->vkDeviceWaitIdle(a->device), VK_SUCCESS);  // it is the application's still
    a->vkDestroyDevice(a->device, NULL);
    a->vkDestroyInstance(a->instance, NULL);
}

static berth_vulkan_queue describe(application *a) {
    return (berth_vulkan_queue){.size_bytes = sizeof(berth_vulkan_queue),
                                .instance = a->instance,
                                .physical_device = a->physical,
                                .device = a->device,
                                .queue = a->queue,
                                .family = a->family,
                                .features = &a->features,
                                .lock = lock,
                                .unlock = unlock,
                                .user = a};
}

static const char doubles[] = "module \"doubles\"\n"
                              "graph @main(%x: f64[4]) {output_names = [\"y\"]} {\n"
                              "  %y = add(%x, %x): f64[4]\n"
                              "  return %y\n"
                              "}\n";

// The digits network; or the module above, whose kernels need shaderFloat64.
static berth_program *compile_for(const char *target, bool f64) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set(compiler, "target", target));
    char path[] = "/tmp/berth_doubles_XXXXXX";
    if (f64) {
        int file = mkstemp(path);
        cr_assert_eq(write(file, doubles, strlen(doubles)), (ssize_t)strlen(doubles));
        close(file);
    } else {
        assert_ok(berth_compiler_set_dim(compiler, "batch", 1));
    }
    berth_status status =
        berth_compiler_compile_file(compiler, f64 ? path : "examples/digits/digits.onnx", &program);
    if (f64) unlink(path);
    assert_ok(status);
    berth_compiler_destroy(compiler);
    return program;
}

static berth_status open_program(berth_vulkan_queue *mine, const char *name, bool f64,
                                 berth_session **out) {
    berth_program *program = compile_for("vulkan -host=cpu", f64);
    const berth_caller_queue queue = {name, mine};
    const berth_session_settings settings = {
        .size_bytes = sizeof(settings), .queues = &queue, .queue_count = 1};
    berth_status status = berth_session_create(program, &settings, out);
    berth_program_release(program);
    return status;
}

static berth_status open_on(berth_vulkan_queue *mine, const char *name, berth_session **out) {
    return open_program(mine, name, false, out);
}

// The same picture on the processor and in the session: the same scores.
static void check_run(berth_session *session, float first) {
    float pixels[pixel_count], scores[2][class_count];
    for (int i = 0; i < pixel_count; ++i) pixels[i] = (float)((i * 7) % 16) / 16 + first;
    const berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    berth_program *program = compile_for("cpu", false);
    berth_session *here = NULL;
    assert_ok(berth_session_create(program, NULL, &here));
    berth_program_release(program);
    for (int i = 0; i < 2; ++i) {
        const berth_tensor result = {BERTH_DTYPE_F32, 2, {1, class_count}, scores[i]};
        assert_ok(berth_session_run_with(i ? session : here, &image, 1, &result, 1, -1));
    }
    berth_session_destroy(here);
    for (int i = 0; i < class_count; ++i)
        cr_assert_lt(fabsf(scores[0][i] - scores[1][i]), 1e-4F, "class %d: %g and %g", i,
                     (double)scores[0][i], (double)scores[1][i]);
}

// The application's queue waits for the host: so does the run that is behind.
Test(vulkan_queue, runs_come_behind_what_is_there, .timeout = 120) {
    application a;
    if (!open_vulkan(&a, true)) cr_skip("no vulkan");
    berth_vulkan_queue mine = describe(&a);
    berth_session *session = NULL;
    assert_ok(open_on(&mine, "vulkan:0", &session));
    check_run(session, 0);
    int before = a.submissions;
    cr_assert_gt(before, 0);

    VkSemaphore gate = VK_NULL_HANDLE;
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    cr_assert_eq(a.vkCreateSemaphore(a.device, &info, NULL, &gate), VK_SUCCESS);
    const uint64_t one = 1;
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = 1,
        .pWaitSemaphoreValues = &one};
    const VkSubmitInfo wait = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .waitSemaphoreCount = 1,
                               .pWaitSemaphores = &gate,
                               .pWaitDstStageMask = &stage};
    cr_assert_eq(a.vkQueueSubmit(a.queue, 1, &wait, VK_NULL_HANDLE), VK_SUCCESS);
    berth_status status = berth_session_run(session, 200000000);
    cr_assert_eq(berth_status_code(status), BERTH_DEADLINE_EXCEEDED, "%s",
                 status ? berth_status_message(status) : "it did not wait");
    berth_status_free(status);
    const VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 1};
    cr_assert_eq(a.vkSignalSemaphore(a.device, &signal), VK_SUCCESS);
    check_run(session, 0.5F);
    cr_assert_gt(a.submissions, before);
    berth_session_destroy(session);
    cr_assert_eq(a.held, 0);
    a.vkDestroySemaphore(a.device, gate, NULL);
    close_vulkan(&a);
}

Test(vulkan_queue, wrong_ones, .timeout = 120) {
    application a;
    if (!open_vulkan(&a, true)) cr_skip("no vulkan");
    berth_session *session = NULL;
    berth_vulkan_queue mine = describe(&a);
    assert_fails(open_on(&mine, "vulkan:7", &session), BERTH_INVALID_ARGUMENT, "vulkan:7");
    mine.family = 100;
    assert_fails(open_on(&mine, "vulkan:0", &session), BERTH_INCOMPATIBLE, "queue family");
    mine = describe(&a);
    mine.features = NULL;  // what the device has is not known, so nothing is used
    assert_fails(open_on(&mine, "vulkan:0", &session), BERTH_INCOMPATIBLE, "timelineSemaphore");
    mine = describe(&a);
    mine.device = NULL;
    assert_fails(open_on(&mine, "vulkan:0", &session), BERTH_INVALID_ARGUMENT,
                 "berth_vulkan_queue");
    mine.size_bytes = 0;
    assert_fails(open_on(&mine, "vulkan:0", &session), BERTH_INVALID_ARGUMENT, "size_bytes");
    mine = describe(
        &a);  // what the application has not asked for is not used, though the device has it
    assert_fails(open_program(&mine, "vulkan:0", true, &session), BERTH_UNSUPPORTED,
                 "shaderFloat64");
    cr_assert_null(session);
    close_vulkan(&a);
    if (!open_vulkan(&a, false)) cr_skip("no vulkan");
    mine = describe(&a);
    assert_fails(open_on(&mine, "vulkan:0", &session), BERTH_INCOMPATIBLE, "timelineSemaphore");
    close_vulkan(&a);
}
