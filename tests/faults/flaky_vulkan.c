// A Vulkan loader with faults: the one of the system, of which BERTH_FLAKY_VULKAN says what fails.
//
//   vkQueueSubmit:2:-4   the second call of vkQueueSubmit gives result -4; number 0: every call
//   hang                 what is submitted is never run
//
// What is destroyed while work may use it ends the process: after a wait that failed, until the queue or the device was
// waited for, and after one whose time was over while the device hung, for ever. To wait for one that hangs does so, too.
//
// Found in place of the system's by the folder that it lies in (LD_LIBRARY_PATH).
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

static VkResult fault(const char *name) {
    static const char *of;
    static int calls;
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    char function[64];
    int number = 0, result = 0;
    if (of != wanted) calls = 0;
    of = wanted;
    if (!wanted || sscanf(wanted, "%63[^:]:%d:%d", function, &number, &result) != 3 ||
        strcmp(function, name) != 0)
        return VK_SUCCESS;
    return ++calls == number || number == 0 ? (VkResult)result : VK_SUCCESS;
}

static int hangs(void) {
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    return wanted && strcmp(wanted, "hang") == 0;
}

static _Atomic(VkDevice) unfinished;  // a wait for its work failed
static _Atomic(VkDevice) hung;        // a wait for its work has come to its time

static void refuse(const char *name, const char *why) {
    fprintf(stderr, "flaky_vulkan: %s %s\n", name, why);
    abort();
}

static void check_unused(const char *name, VkDevice device) {
    if (device == atomic_load(&hung)) refuse(name, "of a device that hangs");
    if (device == atomic_load(&unfinished)) refuse(name, "while work may use it");
}

// FAULTY(name, parameters, arguments): a function that gives the result asked for, or does what it does.
#define ALLOCATOR const VkAllocationCallbacks *allocator
#define FAULTY_FUNCTIONS(FAULTY)                                                                   \
    FAULTY(vkCreateInstance, (const VkInstanceCreateInfo *i, ALLOCATOR, VkInstance *o),            \
           (i, allocator, o))                                                                      \
    FAULTY(vkEnumeratePhysicalDevices, (VkInstance d, uint32_t * n, VkPhysicalDevice * o),         \
           (d, n, o))                                                                              \
    FAULTY(vkCreateDevice,                                                                         \
           (VkPhysicalDevice d, const VkDeviceCreateInfo *i, ALLOCATOR, VkDevice *o),              \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkAllocateMemory,                                                                       \
           (VkDevice d, const VkMemoryAllocateInfo *i, ALLOCATOR, VkDeviceMemory *o),              \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkMapMemory,                                                                            \
           (VkDevice d, VkDeviceMemory m, VkDeviceSize at, VkDeviceSize size,                      \
            VkMemoryMapFlags flags, void **o),                                                     \
           (d, m, at, size, flags, o))                                                             \
    FAULTY(vkCreateBuffer, (VkDevice d, const VkBufferCreateInfo *i, ALLOCATOR, VkBuffer *o),      \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkBindBufferMemory, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize at),        \
           (d, b, m, at))                                                                          \
    FAULTY(vkCreateShaderModule,                                                                   \
           (VkDevice d, const VkShaderModuleCreateInfo *i, ALLOCATOR, VkShaderModule *o),          \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkCreatePipelineLayout,                                                                 \
           (VkDevice d, const VkPipelineLayoutCreateInfo *i, ALLOCATOR, VkPipelineLayout *o),      \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkCreatePipelineCache,                                                                  \
           (VkDevice d, const VkPipelineCacheCreateInfo *i, ALLOCATOR, VkPipelineCache *o),        \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkCreateComputePipelines,                                                               \
           (VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i,       \
            ALLOCATOR, VkPipeline *o),                                                             \
           (d, c, n, i, allocator, o))                                                             \
    FAULTY(vkCreateCommandPool,                                                                    \
           (VkDevice d, const VkCommandPoolCreateInfo *i, ALLOCATOR, VkCommandPool *o),            \
           (d, i, allocator, o))                                                                   \
    FAULTY(vkAllocateCommandBuffers,                                                               \
           (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o), (d, i, o))      \
    FAULTY(vkBeginCommandBuffer, (VkCommandBuffer c, const VkCommandBufferBeginInfo *i), (c, i))   \
    FAULTY(vkEndCommandBuffer, (VkCommandBuffer c), (c))                                           \
    FAULTY(vkCreateSemaphore,                                                                      \
           (VkDevice d, const VkSemaphoreCreateInfo *i, ALLOCATOR, VkSemaphore *o),                \
           (d, i, allocator, o))

#define FAULTY(name, parameters, arguments)                                                        \
    static PFN_##name real_##name;                                                                 \
    static VKAPI_ATTR VkResult VKAPI_CALL faulty_##name parameters {                               \
        VkResult result = fault(#name);                                                            \
        return result != VK_SUCCESS ? result : real_##name arguments;                              \
    }
FAULTY_FUNCTIONS(FAULTY)
#undef FAULTY

// DESTROYED(name, type): a function that takes what work may use.
#define DESTROYED_OBJECTS(DESTROYED)                                                               \
    DESTROYED(vkFreeMemory, VkDeviceMemory)                                                        \
    DESTROYED(vkDestroyBuffer, VkBuffer)                                                           \
    DESTROYED(vkDestroyPipeline, VkPipeline)                                                       \
    DESTROYED(vkDestroyPipelineLayout, VkPipelineLayout)                                           \
    DESTROYED(vkDestroyCommandPool, VkCommandPool)                                                 \
    DESTROYED(vkDestroyQueryPool, VkQueryPool)                                                     \
    DESTROYED(vkDestroySemaphore, VkSemaphore)

#define DESTROYED(name, type)                                                                      \
    static PFN_##name real_##name;                                                                 \
    static VKAPI_ATTR void VKAPI_CALL faulty_##name(VkDevice device, type object, ALLOCATOR) {     \
        check_unused(#name, device);                                                               \
        real_##name(device, object, allocator);                                                    \
    }
DESTROYED_OBJECTS(DESTROYED)
#undef DESTROYED

static PFN_vkDestroyDevice real_vkDestroyDevice;
static PFN_vkDestroyInstance real_vkDestroyInstance;
static PFN_vkDeviceWaitIdle real_vkDeviceWaitIdle;
static PFN_vkQueueWaitIdle real_vkQueueWaitIdle;
static PFN_vkQueueSubmit real_vkQueueSubmit;
static PFN_vkWaitSemaphores real_vkWaitSemaphores;
static PFN_vkGetDeviceProcAddr real_vkGetDeviceProcAddr;

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkQueueSubmit(VkQueue queue, uint32_t count,
                                                           const VkSubmitInfo *infos,
                                                           VkFence fence) {
    VkResult result = fault("vkQueueSubmit");
    if (result != VK_SUCCESS || hangs()) return result;
    return real_vkQueueSubmit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkWaitSemaphores(VkDevice device,
                                                              const VkSemaphoreWaitInfo *info,
                                                              uint64_t timeout) {
    VkResult result = fault("vkWaitSemaphores");
    if (result != VK_SUCCESS) {
        atomic_store(&unfinished, device);
        return result;
    }
    result = real_vkWaitSemaphores(device, info, timeout);
    if (hangs() && result == VK_TIMEOUT) atomic_store(&hung, device);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL faulty_vkDestroyDevice(VkDevice device, ALLOCATOR) {
    check_unused("vkDestroyDevice", device);
    real_vkDestroyDevice(device, allocator);
}

// Its devices are to be gone: one that hung is one of the last that was opened.
static VKAPI_ATTR void VKAPI_CALL faulty_vkDestroyInstance(VkInstance instance, ALLOCATOR) {
    if (hangs() && atomic_load(&hung)) refuse("vkDestroyInstance", "with a device that hangs");
    real_vkDestroyInstance(instance, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkDeviceWaitIdle(VkDevice device) {
    if (device == atomic_load(&hung)) refuse("vkDeviceWaitIdle", "waits for ever");
    if (device == atomic_load(&unfinished)) atomic_store(&unfinished, NULL);
    return real_vkDeviceWaitIdle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkQueueWaitIdle(VkQueue queue) {
    if (hangs()) refuse("vkQueueWaitIdle", "waits for ever");
    atomic_store(&unfinished, NULL);
    return real_vkQueueWaitIdle(queue);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_vkGetDeviceProcAddr(VkDevice device,
                                                                           const char *name);

// The faulty function of that name, whose real one is `real`; `real` itself where there is none.
static PFN_vkVoidFunction replaced(const char *name, PFN_vkVoidFunction real) {
#define FAULTY(known, parameters, arguments)                                                       \
    if (real && strcmp(name, #known) == 0) {                                                       \
        real_##known = (PFN_##known)real;                                                          \
        return (PFN_vkVoidFunction)faulty_##known;                                                 \
    }
#define DESTROYED(known, type) FAULTY(known, , )
    FAULTY_FUNCTIONS(FAULTY)
    DESTROYED_OBJECTS(DESTROYED)
    FAULTY(vkDestroyDevice, , )
    FAULTY(vkDestroyInstance, , )
    FAULTY(vkDeviceWaitIdle, , )
    FAULTY(vkQueueWaitIdle, , )
    FAULTY(vkQueueSubmit, , )
    FAULTY(vkWaitSemaphores, , )
    FAULTY(vkGetDeviceProcAddr, , )
#undef DESTROYED
#undef FAULTY
    return real;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_vkGetDeviceProcAddr(VkDevice device,
                                                                           const char *name) {
    return replaced(name, real_vkGetDeviceProcAddr(device, name));
}

#include "tests/faults/vulkan_loader.h"
