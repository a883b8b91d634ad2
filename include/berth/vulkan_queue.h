// A queue of the application's on a Vulkan device (berth_caller_queue in <berth/session.h>). Handles are Vulkan's own, so this
// header needs none of Vulkan's.
//
//   berth_vulkan_queue mine = {sizeof(mine), instance, physical_device, device, queue, family, &features2,
//                              extensions, extension_count, lock, unlock, &mutex};
//   const berth_caller_queue queue = {"vulkan:0", &mine};
//   settings.queues = &queue, settings.queue_count = 1;
#ifndef BERTH_VULKAN_QUEUE_H_
#define BERTH_VULKAN_QUEUE_H_

#include <berth/version.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

// Zero everything, set size_bytes, then the rest. Later versions may add members at the end. What `extensions`, `features` and the
// struct itself point to is read while a session is opened; instance, device, queue and `user` outlive the session, since
// Vulkan counts no references.
//
// The instance and the device are of Vulkan 1.2 or later, from the libvulkan.so.1 that the process has loaded, and the device
// was made with the features timelineSemaphore and bufferDeviceAddress. Kernels may use those of the others that were asked for.
typedef struct berth_vulkan_queue {
    size_t size_bytes;      // sizeof(berth_vulkan_queue)
    void *instance;         // VkInstance
    void *physical_device;  // VkPhysicalDevice, which berth_device_list has
    void *device;           // VkDevice
    void *queue;            // VkQueue, for compute
    uint32_t family;        // of the queue
    // What the device was made with: a VkPhysicalDeviceFeatures2 and its chain (VkPhysicalDeviceVulkan11Features,
    // ...12Features, or the single structures that these replace), and the names of extensions.
    const void *features;
    const char *const *extensions;  // [extension_count]
    uint32_t extension_count;
    // Vulkan lets one thread at a time submit to a queue: called before and after each submission, which is short, on the
    // threads that run the session and on those of the session. NULL = nobody else submits while a run is under way.
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void *user;
} berth_vulkan_queue;

BERTH_END

#endif  // BERTH_VULKAN_QUEUE_H_
