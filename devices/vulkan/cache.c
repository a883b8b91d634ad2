// Compiled pipelines on disk, in the folder VULKAN of the kernel cache: one file per device and
// version of its driver (devices/kept_file.h).
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices/kept_file.h"
#include "devices/vulkan/vulkan.h"

static berth_hash128 identity_of(const vulkan_facts *facts) {
    struct {
        uint32_t vendor_id, device_id;
        uint8_t cache_id[VK_UUID_SIZE];
    } identity = {.vendor_id = facts->vendor_id, .device_id = facts->device_id};
    memcpy(identity.cache_id, facts->cache_id, VK_UUID_SIZE);
    return berth_hash128_of(&identity, sizeof(identity));
}

static void file_name(const vulkan_facts *facts, char out[64]) {
    int length = snprintf(out, 64, "%08x-%08x-", facts->vendor_id, facts->device_id);
    for (uint32_t i = 0; i < VK_UUID_SIZE && length > 0 && length < 60; ++i)
        length += snprintf(out + length, 64 - (size_t)length, "%02x", facts->cache_id[i]);
}

berth_status berth_vulkan__cache_open(vulkan_device *device, const char *folder) {
    char name[64];
    size_t size_bytes = 0;
    device->cache_folder = berth_kept_folder_open(folder, "vulkan");
    file_name(device->facts, name);
    void *data = berth_kept_file_read(device->cache_folder, name, identity_of(device->facts),
                                      device->base.allocator, &size_bytes);
    device->cache_hash = berth_hash64(data, size_bytes, 0);
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .initialDataSize = size_bytes,
                                      .pInitialData = data};
    VkResult result = device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &device->cache);
    berth_free(device->base.allocator, data, size_bytes);
    return berth_vulkan__check_on(device, result, "open the device");
}

static void save(const vulkan_device *device) {
    size_t size_bytes = 0;
    if (device->vk.vkGetPipelineCacheData(device->handle, device->cache, &size_bytes, NULL) !=
            VK_SUCCESS ||
        size_bytes == 0)
        return;
    void *data = berth_alloc(device->base.allocator, size_bytes);
    size_t got = size_bytes;
    if (data &&
        device->vk.vkGetPipelineCacheData(device->handle, device->cache, &got, data) ==
            VK_SUCCESS &&
        berth_hash64(data, got, 0) != device->cache_hash) {
        char name[64];
        file_name(device->facts, name);
        berth_kept_file_write(device->cache_folder, name, identity_of(device->facts), data, got);
    }
    berth_free(device->base.allocator, data, size_bytes);
}

void berth_vulkan__cache_close(vulkan_device *device) {
    if (!device->cache) return;
    if (device->cache_folder >= 0) {
        save(device);
        close(device->cache_folder);
    }
    device->vk.vkDestroyPipelineCache(device->handle, device->cache, NULL);
}
