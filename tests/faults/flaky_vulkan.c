// A Vulkan loader with faults: the one of the system, of which BERTH_FLAKY_VULKAN says what fails.
//
//   vkQueueSubmit:2:-4   the second call of vkQueueSubmit gives result -4; number 0: every call
//   vkQueueSubmit:0:-4@2 of the second device that is opened alone; so for vkWaitSemaphores
//   hang, hang@2         what is submitted is never run
//   old:2                the second device that is looked at, and those after it, have Vulkan 1.1
//   lacks:i64            devices say that they have no shaderInt64; lacks:f64, lacks:8bit, lacks:16bit: likewise
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

// Devices that are open, from 1 on, and their queues. Both are opened by one thread at a time.
enum { most_handles = 256 };
static struct {
    const void *handle;
    int device;
} numbers[most_handles];
static int number_count, open_count;

static int number_of(const void *handle) {
    for (int i = number_count; i-- > 0;)
        if (numbers[i].handle == handle) return numbers[i].device;
    return 0;
}

static void add_number(const void *handle, int device) {
    if (number_count == most_handles) abort();
    numbers[number_count].handle = handle;
    numbers[number_count++].device = device;
}

// `handle`: a device or a queue; NULL = of none.
static VkResult fault_of(const char *name, const void *handle) {
    static const char *of;
    static int calls;
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    char function[64];
    int number = 0, result = 0, device = 0;
    if (of != wanted) calls = 0;
    of = wanted;
    if (!wanted || sscanf(wanted, "%63[^:]:%d:%d@%d", function, &number, &result, &device) < 3 ||
        strcmp(function, name) != 0 || (device && device != number_of(handle)))
        return VK_SUCCESS;
    return ++calls == number || number == 0 ? (VkResult)result : VK_SUCCESS;
}

static VkResult fault(const char *name) {
    return fault_of(name, NULL);
}

// `handle`: a device or a queue; NULL = whether any hangs.
static int hangs(const void *handle) {
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    int device = 0;
    if (!wanted || strncmp(wanted, "hang", 4) != 0) return 0;
    return sscanf(wanted, "hang@%d", &device) != 1 || !handle || device == number_of(handle);
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

static PFN_vkCreateDevice real_vkCreateDevice;
static PFN_vkGetDeviceQueue real_vkGetDeviceQueue;
static PFN_vkGetPhysicalDeviceProperties2 real_vkGetPhysicalDeviceProperties2;
static PFN_vkGetPhysicalDeviceFeatures2 real_vkGetPhysicalDeviceFeatures2;
static PFN_vkDestroyDevice real_vkDestroyDevice;
static PFN_vkDestroyInstance real_vkDestroyInstance;
static PFN_vkDeviceWaitIdle real_vkDeviceWaitIdle;
static PFN_vkQueueWaitIdle real_vkQueueWaitIdle;
static PFN_vkQueueSubmit real_vkQueueSubmit;
static PFN_vkWaitSemaphores real_vkWaitSemaphores;
static PFN_vkGetDeviceProcAddr real_vkGetDeviceProcAddr;

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkCreateDevice(VkPhysicalDevice physical,
                                                            const VkDeviceCreateInfo *info,
                                                            ALLOCATOR, VkDevice *out_device) {
    VkResult result = fault("vkCreateDevice");
    if (result == VK_SUCCESS) result = real_vkCreateDevice(physical, info, allocator, out_device);
    if (result == VK_SUCCESS) add_number(*out_device, ++open_count);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL faulty_vkGetDeviceQueue(VkDevice device, uint32_t family,
                                                          uint32_t index, VkQueue *out_queue) {
    real_vkGetDeviceQueue(device, family, index, out_queue);
    add_number(*out_queue, number_of(device));
}

// Of each device it is asked several times in a row.
static VKAPI_ATTR void VKAPI_CALL
faulty_vkGetPhysicalDeviceProperties2(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
    static VkPhysicalDevice last;
    static int count;
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    int first = 0;
    real_vkGetPhysicalDeviceProperties2(physical, out);
    if (!wanted || sscanf(wanted, "old:%d", &first) != 1) return;
    if (physical != last) ++count;
    last = physical;
    if (count >= first) out->properties.apiVersion = VK_API_VERSION_1_1;
}

static VKAPI_ATTR void VKAPI_CALL
faulty_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out) {
    const char *wanted = getenv("BERTH_FLAKY_VULKAN");
    char lacks[16] = "";
    real_vkGetPhysicalDeviceFeatures2(physical, out);
    if (!wanted || sscanf(wanted, "lacks:%15s", lacks) != 1) return;
    if (strcmp(lacks, "i64") == 0) out->features.shaderInt64 = VK_FALSE;
    if (strcmp(lacks, "f64") == 0) out->features.shaderFloat64 = VK_FALSE;
    VkBaseOutStructure *next = out->pNext;
    for (; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES &&
            strcmp(lacks, "16bit") == 0)
            ((VkPhysicalDeviceVulkan11Features *)next)->storageBuffer16BitAccess = VK_FALSE;
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES &&
            strcmp(lacks, "8bit") == 0)
            ((VkPhysicalDeviceVulkan12Features *)next)->storageBuffer8BitAccess = VK_FALSE;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkQueueSubmit(VkQueue queue, uint32_t count,
                                                           const VkSubmitInfo *infos,
                                                           VkFence fence) {
    VkResult result = fault_of("vkQueueSubmit", queue);
    if (result != VK_SUCCESS || hangs(queue)) return result;
    return real_vkQueueSubmit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkWaitSemaphores(VkDevice device,
                                                              const VkSemaphoreWaitInfo *info,
                                                              uint64_t timeout) {
    VkResult result = fault_of("vkWaitSemaphores", device);
    if (result != VK_SUCCESS) {
        atomic_store(&unfinished, device);
        return result;
    }
    result = real_vkWaitSemaphores(device, info, timeout);
    if (hangs(device) && result == VK_TIMEOUT) atomic_store(&hung, device);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL faulty_vkDestroyDevice(VkDevice device, ALLOCATOR) {
    check_unused("vkDestroyDevice", device);
    open_count--;
    real_vkDestroyDevice(device, allocator);
}

// Its devices are to be gone: one that hung is one of the last that was opened.
static VKAPI_ATTR void VKAPI_CALL faulty_vkDestroyInstance(VkInstance instance, ALLOCATOR) {
    if (hangs(NULL) && atomic_load(&hung)) refuse("vkDestroyInstance", "with a device that hangs");
    real_vkDestroyInstance(instance, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkDeviceWaitIdle(VkDevice device) {
    if (device == atomic_load(&hung)) refuse("vkDeviceWaitIdle", "waits for ever");
    if (device == atomic_load(&unfinished)) atomic_store(&unfinished, NULL);
    return real_vkDeviceWaitIdle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL faulty_vkQueueWaitIdle(VkQueue queue) {
    if (hangs(queue)) refuse("vkQueueWaitIdle", "waits for ever");
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
    FAULTY(vkCreateDevice, , )
    FAULTY(vkGetDeviceQueue, , )
    FAULTY(vkGetPhysicalDeviceProperties2, , )
    FAULTY(vkGetPhysicalDeviceFeatures2, , )
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
