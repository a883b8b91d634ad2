// Commands written into command buffers. Each is ordered after those before it.
#include "devices/vulkan/record.h"

#include <string.h>

enum { FILL_BYTES = 16 };

bool berth_vulkan__is_timed(const vulkan_device *device, const berth_command *command) {
    return device->base.options.profile && command->timing;
}

bool berth_vulkan__is_empty(const berth_command *command) {
    switch (command->kind) {
    case BERTH_COMMAND_COPY: return command->copy.size_bytes == 0;
    case BERTH_COMMAND_FILL: return command->fill.size_bytes == 0;
    case BERTH_COMMAND_DISPATCH:
        return command->dispatch.groups[0] == 0 || command->dispatch.groups[1] == 0 ||
               command->dispatch.groups[2] == 0;
    case BERTH_COMMAND_TO_DEVICE:  // host memory is coherent, other memory is not shared
    case BERTH_COMMAND_TO_HOST: return true;
    case BERTH_COMMAND_HOST_CALL: return false;
    }
    return true;
}

bool berth_vulkan__is_for_host(const berth_device *device, const berth_command *command) {
    if (command->kind == BERTH_COMMAND_HOST_CALL) return true;
    return command->kind == BERTH_COMMAND_COPY && command->copy.size_bytes &&
           (command->copy.source->device != device || command->copy.destination->device != device);
}

// ---- recording ----

void berth_vulkan__barrier(const vulkan_device *device, VkCommandBuffer commands) {
    const VkAccessFlags all = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                              .dstAccessMask = all};
    device->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                                    0, 1, &memory, 0, NULL, 0, NULL);
}

// Room in the record's block, which was made large enough before.
static unsigned char *take(vulkan_record *record, uint64_t size_bytes, uint64_t *out_offset) {
    *out_offset = record->block_used;
    record->block_used += (size_bytes + 15) / 16 * 16;
    return record->block.host + *out_offset;
}

static uint64_t value_count(const berth_command *command) {
    return (uint64_t)command->dispatch.buffer_count + command->dispatch.constant_count;
}

static uint64_t block_need(const berth_command *commands, uint32_t count) {
    uint64_t need = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (commands[i].kind == BERTH_COMMAND_FILL) need += FILL_BYTES;
        if (commands[i].kind == BERTH_COMMAND_DISPATCH &&
            value_count(&commands[i]) > BERTH_SPIRV_PUSHED_MAX)
            need += (8 * value_count(&commands[i]) + 15) / 16 * 16;
    }
    return need;
}

void berth_vulkan__copy(const vulkan_device *device, VkCommandBuffer commands, VkBuffer source,
                        uint64_t source_offset, VkBuffer destination, uint64_t destination_offset,
                        uint64_t size_bytes) {
    VkBufferCopy region = {source_offset, destination_offset, size_bytes};
    if (size_bytes) device->vk.vkCmdCopyBuffer(commands, source, destination, 1, &region);
}

// vkCmdFillBuffer writes words at multiples of 4: what is before and after them is copied.
static void record_fill(const vulkan_device *device, vulkan_record *record,
                        const berth_command *command) {
    const vulkan_buffer *buffer = berth_vulkan__buffer(command->fill.buffer);
    uint64_t begin = buffer->offset_bytes + command->fill.offset_bytes, offset = 0;
    uint64_t end = begin + command->fill.size_bytes;
    uint64_t first = (begin + 3) / 4 * 4, last = end / 4 * 4;
    unsigned char *pattern = take(record, FILL_BYTES, &offset);
    // Byte i of the pattern is what belongs at addresses that are i modulo 4.
    for (uint64_t i = 0; i < 8; ++i) {
        uint64_t within = (i + 8 - begin % 4) % command->fill.pattern_bytes;
        pattern[i] = (unsigned char)(command->fill.pattern >> (8 * within));
    }
    uint32_t word = 0;
    memcpy(&word, pattern, 4);
    if (first > last || first == last) {
        berth_vulkan__copy(device, record->commands, record->block.handle, offset + begin % 4,
                           buffer->handle, begin, end - begin);
        return;
    }
    berth_vulkan__copy(device, record->commands, record->block.handle, offset + begin % 4,
                       buffer->handle, begin, first - begin);
    device->vk.vkCmdFillBuffer(record->commands, buffer->handle, first, last - first, word);
    berth_vulkan__copy(device, record->commands, record->block.handle, offset, buffer->handle, last,
                       end - last);
}

static berth_status check_groups(const vulkan_device *device, const berth_command *command) {
    const uint32_t *groups = command->dispatch.groups;
    const uint32_t *most = device->facts->limits.maxComputeWorkGroupCount;
    if (groups[0] <= most[0] && groups[1] <= most[1] && groups[2] <= most[2]) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "%u x %u x %u work-groups are more than %s runs at once", groups[0],
                             groups[1], groups[2], device->base.info.name);
}

static berth_status record_dispatch(const vulkan_device *device, vulkan_record *record,
                                    const berth_command *command) {
    const vulkan_executable *executable = (const vulkan_executable *)command->dispatch.executable;
    const struct vulkan_pipeline *pipeline = &executable->pipelines[command->dispatch.kernel];
    BERTH_TRY(check_groups(device, command));
    uint64_t values[BERTH_SPIRV_PUSHED_MAX], offset = 0;
    uint32_t count = (uint32_t)value_count(command), buffers = command->dispatch.buffer_count;
    bool pushed = count <= BERTH_SPIRV_PUSHED_MAX;
    unsigned char *at =
        pushed ? (unsigned char *)values : take(record, 8 * (uint64_t)count, &offset);
    for (uint32_t i = 0; i < count; ++i, at += 8) {
        uint64_t value = i < buffers ? berth_vulkan__buffer(command->dispatch.buffers[i])->address
                                     : (uint64_t)command->dispatch.constants[i - buffers];
        memcpy(at, &value, 8);
    }
    if (!pushed) {
        values[0] = record->block.address + offset;
        count = 1;
    }
    device->vk.vkCmdBindPipeline(record->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                 pipeline->handle);
    if (count)
        device->vk.vkCmdPushConstants(record->commands, pipeline->layout,
                                      VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 * count, values);
    device->vk.vkCmdDispatch(record->commands, command->dispatch.groups[0],
                             command->dispatch.groups[1], command->dispatch.groups[2]);
    return BERTH_OK;
}

static berth_status record_one(const vulkan_device *device, vulkan_record *record,
                               const berth_command *command) {
    if (command->kind == BERTH_COMMAND_DISPATCH) return record_dispatch(device, record, command);
    if (command->kind == BERTH_COMMAND_FILL) {
        record_fill(device, record, command);
        return BERTH_OK;
    }
    const vulkan_buffer *from = berth_vulkan__buffer(command->copy.source);
    const vulkan_buffer *to = berth_vulkan__buffer(command->copy.destination);
    berth_vulkan__copy(device, record->commands, from->handle,
                       from->offset_bytes + command->copy.source_offset_bytes, to->handle,
                       to->offset_bytes + command->copy.destination_offset_bytes,
                       command->copy.size_bytes);
    return BERTH_OK;
}

static void write_time(const vulkan_device *device, vulkan_record *record, uint32_t query) {
    device->vk.vkCmdWriteTimestamp(record->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                   record->queries, query);
}

berth_status berth_vulkan__begin(const vulkan_device *device, vulkan_record *record,
                                 uint32_t first) {
    if (record->recording) return BERTH_OK;
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = record->usage};
    BERTH_TRY(berth_vulkan__check_on(device,
                                     device->vk.vkBeginCommandBuffer(record->commands, &info),
                                     "begin a command buffer"));
    record->recording = true;
    record->first = first;
    if (record->queries)
        device->vk.vkCmdResetQueryPool(record->commands, record->queries, 0,
                                       record->query_capacity);
    berth_vulkan__barrier(device, record->commands);  // what earlier submissions wrote
    return BERTH_OK;
}

berth_status berth_vulkan__named(berth_status status, const berth_command *command,
                                 uint32_t index) {
    return command->label ? berth_status_prefix(status, "%s", command->label)
                          : berth_status_prefix(status, "commands[%u]", index);
}

berth_status berth_vulkan__record_command(const vulkan_device *device, vulkan_record *record,
                                          const berth_command *command, uint32_t index) {
    BERTH_TRY(berth_vulkan__begin(device, record, index));
    bool timed = berth_vulkan__is_timed(device, command) && record->queries;
    uint32_t query = 2 * (index - record->first);
    if (timed) write_time(device, record, query);
    BERTH_TRY(berth_vulkan__named(record_one(device, record, command), command, index));
    if (timed) write_time(device, record, query + 1);
    berth_vulkan__barrier(device, record->commands);
    return BERTH_OK;
}

berth_status berth_vulkan__make_commands(const vulkan_device *device, uint32_t family,
                                         vulkan_record *record) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = family};
    if (!record->pool)
        BERTH_TRY(berth_vulkan__check_on(
            device, device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &record->pool),
            "make a command pool"));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = record->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    if (record->commands) return BERTH_OK;
    return berth_vulkan__check_on(
        device, device->vk.vkAllocateCommandBuffers(device->handle, &info, &record->commands),
        "make a command buffer");
}

berth_status berth_vulkan__reserve_block(vulkan_device *device, vulkan_record *record,
                                         const berth_command *commands, uint32_t count) {
    uint64_t need = block_need(commands, count);
    record->block_used = 0;
    if (need <= record->block.size_bytes) return BERTH_OK;
    berth_vulkan__block_destroy(device, &record->block);
    return berth_vulkan__block_create(device, 2 * need, device->facts->host_memory, &record->block);
}

void berth_vulkan__record_free(vulkan_device *device, vulkan_record *record) {
    if (atomic_load(&device->is_lost)) return;
    if (record->pool) device->vk.vkDestroyCommandPool(device->handle, record->pool, NULL);
    if (record->queries) device->vk.vkDestroyQueryPool(device->handle, record->queries, NULL);
    berth_vulkan__block_destroy(device, &record->block);
}
