// Command lists on Vulkan devices: command buffers that are recorded once and submitted again and again.
#include "devices/vulkan/record.h"

static bool in_part(const berth_command_list *list, uint32_t i) {
    return !berth_vulkan__is_for_host(list->device, &list->commands[i]) &&
           !berth_vulkan__is_empty(&list->commands[i]);
}

// The next part from command `i` on; false where there is none.
static bool next_part(const berth_command_list *list, uint32_t i, vulkan_part *out_part) {
    while (i < list->command_count && !in_part(list, i)) ++i;
    *out_part = (vulkan_part){.first = i};
    // Commands that touch nothing end no part.
    for (; i < list->command_count && !berth_vulkan__is_for_host(list->device, &list->commands[i]);
         ++i)
        if (in_part(list, i)) out_part->count = i + 1 - out_part->first;
    return out_part->count > 0;
}

static berth_status record_part(vulkan_device *device, const berth_command_list *list,
                                vulkan_record *record, vulkan_part *part) {
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = record->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkAllocateCommandBuffers(device->handle, &info, &part->commands),
        "make a command buffer"));
    record->commands = part->commands;
    record->recording = false;
    for (uint32_t i = part->first; i < part->first + part->count; ++i)
        if (in_part(list, i))
            BERTH_TRY(berth_vulkan__record_command(device, record, &list->commands[i], i));
    return berth_vulkan__check_on(device, device->vk.vkEndCommandBuffer(part->commands),
                                  "end a command buffer");
}

static berth_status record_all(vulkan_device *device, const berth_command_list *list,
                               vulkan_list *ready) {
    BERTH_TRY(
        berth_vulkan__make_commands(device, berth_vulkan__family(list->queue), &ready->record));
    BERTH_TRY(
        berth_vulkan__reserve_block(device, &ready->record, list->commands, list->command_count));
    ready->record.usage = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    for (uint32_t p = 0; p < ready->part_count; ++p)
        BERTH_TRY(record_part(device, list, &ready->record, &ready->parts[p]));
    return BERTH_OK;
}

static size_t list_bytes(uint32_t part_count) {
    return sizeof(vulkan_list) + part_count * sizeof(vulkan_part);
}

berth_status berth_vulkan__list_prepare(berth_command_list *list) {
    vulkan_device *device = (vulkan_device *)list->device;
    uint32_t count = 0;
    for (vulkan_part part = {0}; next_part(list, part.first + part.count, &part);) ++count;
    vulkan_list *ready = berth_calloc(device->base.allocator, 1, list_bytes(count));
    if (!ready) return berth_status_oom();
    for (uint32_t i = 0; i < list->command_count; ++i)
        ready->for_host |= berth_vulkan__is_for_host(list->device, &list->commands[i]);
    vulkan_part part = {0};
    for (; next_part(list, part.first + part.count, &part);)
        ready->parts[ready->part_count++] = part;
    list->prepared = ready;
    berth_status status = record_all(device, list, ready);
    if (!status) return BERTH_OK;
    berth_vulkan__list_destroy(list);
    list->prepared = NULL;
    return status;
}

void berth_vulkan__list_destroy(berth_command_list *list) {
    vulkan_device *device = (vulkan_device *)list->device;
    vulkan_list *ready = list->prepared;
    berth_vulkan__record_free(device, &ready->record);
    berth_free(device->base.allocator, ready, list_bytes(ready->part_count));
}
