// A device and queue of the application's (<berth/vulkan_queue.h>).
#include <string.h>

#include "devices/vulkan/vulkan.h"

static berth_status incompatible(const char *what) {
    return berth_status_make(BERTH_INCOMPATIBLE, "the application's queue: %s", what);
}

// What the device was made with.
typedef struct enabled {
    VkPhysicalDeviceFeatures core;
    VkBool32 timeline, addresses, float16, int8, storage8, storage16;
} enabled;

static void add_features(const VkBaseInStructure *structure, enabled *e) {
    const void *at = structure;
    switch ((int)structure->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        e->core = ((const VkPhysicalDeviceFeatures2 *)at)->features;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        e->storage16 |= ((const VkPhysicalDeviceVulkan11Features *)at)->storageBuffer16BitAccess;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
        const VkPhysicalDeviceVulkan12Features *v12 = at;
        e->timeline |= v12->timelineSemaphore;
        e->addresses |= v12->bufferDeviceAddress;
        e->float16 |= v12->shaderFloat16;
        e->int8 |= v12->shaderInt8;
        e->storage8 |= v12->storageBuffer8BitAccess;
        return;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        e->timeline |= ((const VkPhysicalDeviceTimelineSemaphoreFeatures *)at)->timelineSemaphore;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        e->addresses |=
            ((const VkPhysicalDeviceBufferDeviceAddressFeatures *)at)->bufferDeviceAddress;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
        e->float16 |= ((const VkPhysicalDeviceShaderFloat16Int8Features *)at)->shaderFloat16;
        e->int8 |= ((const VkPhysicalDeviceShaderFloat16Int8Features *)at)->shaderInt8;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES:
        e->storage8 |= ((const VkPhysicalDevice8BitStorageFeatures *)at)->storageBuffer8BitAccess;
        return;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
        e->storage16 |=
            ((const VkPhysicalDevice16BitStorageFeatures *)at)->storageBuffer16BitAccess;
        return;
    default: return;
    }
}

// Leaves of the physical device's features those that the application asked for.
static berth_status limit_features(const berth_vulkan_queue *callers, vulkan_facts *facts) {
    enabled e = {.timeline = VK_FALSE};
    for (const VkBaseInStructure *s = callers->features; s; s = s->pNext) add_features(s, &e);
    if (!e.timeline)
        return incompatible("its device was made without the feature timelineSemaphore");
    if (!e.addresses)
        return incompatible("its device was made without the feature bufferDeviceAddress");
    facts->features.shaderFloat64 &= e.core.shaderFloat64;
    facts->features.shaderInt64 &= e.core.shaderInt64;
    facts->features.shaderInt16 &= e.core.shaderInt16;
    facts->features_1_1.storageBuffer16BitAccess &= e.storage16;
    facts->features_1_2.shaderFloat16 &= e.float16;
    facts->features_1_2.shaderInt8 &= e.int8;
    facts->features_1_2.storageBuffer8BitAccess &= e.storage8;
    berth_vulkan__list_features(facts);
    facts->matrix_shapes = 0;
    facts->has[VULKAN_FEATURE_MATRICES] = false;  // it would need four features and two extensions
    bool imports = false;
    for (uint32_t i = 0; i < callers->extension_count; ++i)
        imports |= strcmp(callers->extensions[i], VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) == 0;
    if (!imports) facts->pointer_alignment_bytes = 0;
    return BERTH_OK;
}

// Handles of other instances are other handles: devices are told by what they say of themselves.
static berth_status find_ordinal(const vulkan_driver *driver, const vulkan_facts *facts,
                                 uint32_t *out_ordinal) {
    for (uint32_t i = 0; i < driver->count; ++i) {
        const vulkan_facts *one = &driver->facts[i];
        if (memcmp(one->device_uuid, facts->device_uuid, VK_UUID_SIZE) ||
            strcmp(one->name, facts->name))
            continue;
        *out_ordinal = i;
        return BERTH_OK;
    }
    return incompatible("its device is none of those that are listed here");
}

static berth_status check(const berth_vulkan_queue *callers, bool profile,
                          const vulkan_facts *facts) {
    if (callers->family >= facts->family_count)
        return incompatible("its device has no such queue family");
    const VkQueueFamilyProperties *family = &facts->families[callers->family];
    if (!(family->queueFlags & VK_QUEUE_COMPUTE_BIT))
        return incompatible("its family does not compute");
    if (profile && !family->timestampValidBits)
        return incompatible("its family has no timestamps, which profiles need");
    return BERTH_OK;
}

berth_status berth_vulkan__use_callers(const vulkan_driver *driver,
                                       const berth_vulkan_queue *callers, bool profile,
                                       vulkan_device *device, uint32_t *out_ordinal) {
    if (callers->size_bytes < sizeof(*callers) || !callers->instance || !callers->physical_device ||
        !callers->device || !callers->queue)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the application's queue of a vulkan device is a "
                                 "berth_vulkan_queue with size_bytes, instance, "
                                 "physical_device, device and queue");
    vulkan_api api = driver->api;
    const char *reason = NULL;
    vulkan_facts *facts = &device->own_facts;
    BERTH_TRY(berth_vulkan__load_instance(&api, callers->instance));
    berth_vulkan__read_facts(&api, callers->physical_device, facts, &reason);
    if (reason) return incompatible(reason);
    BERTH_TRY(find_ordinal(driver, facts, out_ordinal));
    BERTH_TRY(check(callers, profile, facts));
    BERTH_TRY(limit_features(callers, facts));
    facts->compute_family = facts->transfer_family = callers->family;
    device->handle = callers->device;
    device->is_callers = true;
    BERTH_TRY(berth_vulkan__load_device(&api, device->handle, &device->vk));
    device->compute[0] =
        (vulkan_engine){.handle = callers->queue, .family = callers->family, .callers = *callers};
    pthread_mutex_init(&device->compute[0].lock, NULL);
    device->compute_count = 1;
    return BERTH_OK;
}
