// Host access to memory that the host does not see: a copy in staging memory, and back.
#include <string.h>

#include "devices/vulkan/vulkan.h"

typedef struct transfer {  // one copy at once
    VkCommandPool pool;
    VkSemaphore timeline;
    VkCommandBuffer commands;
} transfer;

static berth_status open_transfer(const vulkan_device *device, transfer *t) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .queueFamilyIndex = device->compute[0].family};
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                       .pNext = &type};
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &t->pool), "map"));
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkCreateSemaphore(device->handle, &semaphore, NULL, &t->timeline),
        "map"));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = t->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    return berth_vulkan__check_on(
        device, device->vk.vkAllocateCommandBuffers(device->handle, &info, &t->commands), "map");
}

static berth_status submit(vulkan_device *device, const transfer *t) {
    const uint64_t value = 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType =
                                                  VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &value};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &t->commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &t->timeline};
    BERTH_TRY(berth_vulkan__check_on(
        device, berth_vulkan__submit(device, &device->compute[0], &info), "map"));
    return berth_vulkan__wait(device, &device->compute[0], t->timeline, value, "map");
}

static berth_status record(const vulkan_device *device, const transfer *t, VkBuffer source,
                           VkBuffer destination, const VkBufferCopy *region) {
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                              .dstAccessMask =
                                  VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    BERTH_TRY(
        berth_vulkan__check_on(device, device->vk.vkBeginCommandBuffer(t->commands, &info), "map"));
    for (int i = 0; i < 2; ++i) {  // around the copy
        device->vk.vkCmdPipelineBarrier(t->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT |
                                            VK_PIPELINE_STAGE_HOST_BIT,
                                        0, 1, &memory, 0, NULL, 0, NULL);
        if (i == 0) device->vk.vkCmdCopyBuffer(t->commands, source, destination, 1, region);
    }
    return berth_vulkan__check_on(device, device->vk.vkEndCommandBuffer(t->commands), "map");
}

static berth_status copy_now(vulkan_device *device, VkBuffer source, VkBuffer destination,
                             const VkBufferCopy *region) {
    transfer t = {.pool = VK_NULL_HANDLE};
    berth_status status = open_transfer(device, &t);
    if (!status) status = record(device, &t, source, destination, region);
    if (!status) status = submit(device, &t);
    if (atomic_load(&device->is_lost)) return status;
    if (t.timeline) device->vk.vkDestroySemaphore(device->handle, t.timeline, NULL);
    if (t.pool) device->vk.vkDestroyCommandPool(device->handle, t.pool, NULL);
    return status;
}

berth_status berth_vulkan__buffer_map(berth_buffer *base, uint64_t offset_bytes,
                                      uint64_t size_bytes, bool write_only, void **out_data) {
    vulkan_device *device = (vulkan_device *)base->device;
    const vulkan_buffer *buffer = berth_vulkan__buffer(base);
    if (base->host) {
        *out_data = berth_devices__host_at(base, offset_bytes);
        return BERTH_OK;
    }
    vulkan_map *map = berth_calloc(device->base.allocator, 1, sizeof(*map));
    if (!map) return berth_status_oom();
    map->offset_bytes = buffer->offset_bytes + offset_bytes;
    map->size_bytes = size_bytes;
    VkBufferCopy region = {map->offset_bytes, 0, size_bytes};
    berth_status status = berth_vulkan__block_create(device, size_bytes ? size_bytes : 1,
                                                     device->facts->host_memory, &map->block);
    if (!status && !write_only && size_bytes)
        status = copy_now(device, buffer->handle, map->block.handle, &region);
    if (status) {
        berth_vulkan__block_destroy(device, &map->block);
        berth_free(device->base.allocator, map, sizeof(*map));
        return status;
    }
    pthread_mutex_lock(&device->lock);
    map->next = device->maps;
    device->maps = map;
    pthread_mutex_unlock(&device->lock);
    *out_data = map->block.host;
    return BERTH_OK;
}

static vulkan_map *take_map(vulkan_device *device, const void *data) {
    pthread_mutex_lock(&device->lock);
    vulkan_map **at = &device->maps;
    while (*at && (*at)->block.host != data) at = &(*at)->next;
    vulkan_map *map = *at;
    if (map) *at = map->next;
    pthread_mutex_unlock(&device->lock);
    return map;
}

berth_status berth_vulkan__buffer_unmap(berth_buffer *base, void *data) {
    vulkan_device *device = (vulkan_device *)base->device;
    if (base->host) return BERTH_OK;
    vulkan_map *map = take_map(device, data);
    if (!map) return berth_status_make(BERTH_INVALID_ARGUMENT, "unmap: that is not mapped");
    VkBufferCopy region = {0, map->offset_bytes, map->size_bytes};
    berth_status status = BERTH_OK;
    if (map->size_bytes)
        status = copy_now(device, map->block.handle, berth_vulkan__buffer(base)->handle, &region);
    berth_vulkan__block_destroy(device, &map->block);
    berth_free(device->base.allocator, map, sizeof(*map));
    return status;
}
