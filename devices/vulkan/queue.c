// Queues of Vulkan devices below a host queue. A submission whose commands all run on the device
// becomes one command buffer, which is handed over at once and ends in a value of the queue's
// timeline semaphore. One that has work for the host in between (host calls, copies from and to
// memory that is not the device's) is put off to the queue's thread, which runs it part by part;
// what is submitted meanwhile waits behind it.
#include <string.h>

#include "base/clock.h"
#include "devices/vulkan/vulkan.h"

enum { STAGING_BYTES = 4 << 20, FILL_BYTES = 16 };

typedef struct vulkan_queue {
    berth_host_queue base;
    vulkan_engine *engine;
    VkSemaphore timeline;
    uint64_t value;        // that the last submission signals
    pthread_mutex_t lock;  // of `value` and `put_off`
    uint32_t put_off;      // submissions that are left to the queue's thread
    vulkan_block staging;  // of the queue's thread
} vulkan_queue;

// What a submission leaves behind to be finished.
typedef struct vulkan_record {
    VkCommandPool pool;  // of its own: a later submission may be recorded beside this one
    VkCommandBuffer commands;
    VkQueryPool queries;  // two times per command, when profiling
    uint32_t query_capacity;
    vulkan_block block;  // tables of addresses and patterns of fills
    uint64_t block_used;
    uint64_t value;  // of the timeline, 0 = nothing was submitted
    bool put_off;
    bool recording;
    uint32_t first;  // the first command of the part that is recorded
} vulkan_record;

static vulkan_device *device_of(const berth_queue *queue) {
    return (vulkan_device *)queue->device;
}

static bool is_timed(const vulkan_device *device, const berth_command *command) {
    return device->base.options.profile && command->timing;
}

static bool is_empty(const berth_command *command) {
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

static bool is_for_host(const berth_device *device, const berth_command *command) {
    if (command->kind == BERTH_COMMAND_HOST_CALL) return true;
    return command->kind == BERTH_COMMAND_COPY && command->copy.size_bytes &&
           (command->copy.source->device != device || command->copy.destination->device != device);
}

// ---- recording ----

static void barrier(const vulkan_device *device, VkCommandBuffer commands) {
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

static void copy(const vulkan_device *device, VkCommandBuffer commands, VkBuffer source,
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
        copy(device, record->commands, record->block.handle, offset + begin % 4, buffer->handle,
             begin, end - begin);
        return;
    }
    copy(device, record->commands, record->block.handle, offset + begin % 4, buffer->handle, begin,
         first - begin);
    device->vk.vkCmdFillBuffer(record->commands, buffer->handle, first, last - first, word);
    copy(device, record->commands, record->block.handle, offset, buffer->handle, last, end - last);
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
    copy(device, record->commands, from->handle,
         from->offset_bytes + command->copy.source_offset_bytes, to->handle,
         to->offset_bytes + command->copy.destination_offset_bytes, command->copy.size_bytes);
    return BERTH_OK;
}

static void write_time(const vulkan_device *device, vulkan_record *record, uint32_t query) {
    device->vk.vkCmdWriteTimestamp(record->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                   record->queries, query);
}

static berth_status begin(const vulkan_device *device, vulkan_record *record, uint32_t first) {
    if (record->recording) return BERTH_OK;
    VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                     .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    BERTH_TRY(berth_vulkan__check(device->vk.vkBeginCommandBuffer(record->commands, &info),
                                  "begin a command buffer"));
    record->recording = true;
    record->first = first;
    if (record->queries)
        device->vk.vkCmdResetQueryPool(record->commands, record->queries, 0,
                                       record->query_capacity);
    barrier(device, record->commands);  // what earlier submissions wrote
    return BERTH_OK;
}

static berth_status named(berth_status status, const berth_command *command, uint32_t index) {
    return command->label ? berth_status_prefix(status, "%s", command->label)
                          : berth_status_prefix(status, "commands[%u]", index);
}

static berth_status record_command(const vulkan_device *device, vulkan_record *record,
                                   const berth_command *command, uint32_t index) {
    BERTH_TRY(begin(device, record, index));
    bool timed = is_timed(device, command) && record->queries;
    uint32_t query = 2 * (index - record->first);
    if (timed) write_time(device, record, query);
    BERTH_TRY(named(record_one(device, record, command), command, index));
    if (timed) write_time(device, record, query + 1);
    barrier(device, record->commands);
    return BERTH_OK;
}

// ---- submitting and waiting ----

static berth_status hand_over(const vulkan_device *device, vulkan_queue *queue,
                              vulkan_record *record) {
    if (!record->recording) return BERTH_OK;
    record->recording = false;
    BERTH_TRY(berth_vulkan__check(device->vk.vkEndCommandBuffer(record->commands),
                                  "end a command buffer"));
    uint64_t value = queue->value + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType =
                                                  VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &value};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &record->commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &queue->timeline};
    pthread_mutex_lock(&queue->engine->lock);
    VkResult result = device->vk.vkQueueSubmit(queue->engine->handle, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&queue->engine->lock);
    BERTH_TRY(berth_vulkan__check(result, "submit"));
    record->value = queue->value = value;
    return BERTH_OK;
}

static berth_status wait_for(const vulkan_device *device, const vulkan_queue *queue,
                             uint64_t value) {
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &queue->timeline,
                                .pValues = &value};
    if (value == 0) return BERTH_OK;
    return berth_vulkan__check(
        device->vk.vkWaitSemaphores(device->handle, &info, VULKAN_TIMEOUT_NS), "run commands");
}

// Times of the device's clock, set so that the last command ends when its end was seen: the device
// was idle or behind by then, never ahead.
static void read_times(const vulkan_device *device, const vulkan_record *record,
                       const berth_command *commands, uint32_t count) {
    int64_t now_ns = berth_clock_ns(), last_ns = INT64_MIN;
    double period = (double)device->facts->limits.timestampPeriod;
    if (!record->queries) return;
    for (int pass = 0; pass < 2; ++pass)
        for (uint32_t i = 0; i < count; ++i) {
            uint64_t ticks[2];
            if (!is_timed(device, &commands[i]) || is_empty(&commands[i])) continue;
            if (device->vk.vkGetQueryPoolResults(device->handle, record->queries, 2 * i, 2,
                                                 sizeof(ticks), ticks, sizeof(ticks[0]),
                                                 VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
                continue;
            int64_t start_ns = (int64_t)((double)ticks[0] * period);
            int64_t end_ns = (int64_t)((double)ticks[1] * period);
            if (pass == 0) {
                if (end_ns > last_ns) last_ns = end_ns;
                continue;
            }
            commands[i].timing->start_ns = start_ns - last_ns + now_ns;
            commands[i].timing->end_ns = end_ns - last_ns + now_ns;
        }
}

// Commands that touch nothing took no time after the one before.
static void fill_empty_times(const vulkan_device *device, const berth_command *commands,
                             uint32_t count) {
    int64_t at_ns = 0;
    for (uint32_t i = count; i-- > 0;)
        if (is_timed(device, &commands[i]) && !is_empty(&commands[i]))
            at_ns = commands[i].timing->start_ns;
    if (at_ns == 0) at_ns = berth_clock_ns();
    for (uint32_t i = 0; i < count; ++i) {
        if (!is_timed(device, &commands[i])) continue;
        if (is_empty(&commands[i])) *commands[i].timing = (berth_command_timing){at_ns, at_ns};
        at_ns = commands[i].timing->end_ns;
    }
}

// What is recorded so far runs and ends.
static berth_status flush(const vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                          const berth_command *commands, uint32_t end) {
    if (!record->recording) return BERTH_OK;
    pthread_mutex_lock(&queue->lock);
    berth_status status = hand_over(device, queue, record);
    pthread_mutex_unlock(&queue->lock);
    if (!status) status = wait_for(device, queue, record->value);
    if (!status) read_times(device, record, commands + record->first, end - record->first);
    return status;
}

// ---- work for the host ----

static berth_status move_part(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                              const vulkan_buffer *buffer, uint64_t offset, unsigned char *host,
                              uint64_t size_bytes, bool to_host) {
    uint64_t at = buffer->offset_bytes + offset;
    if (!to_host) memcpy(queue->staging.host, host, (size_t)size_bytes);
    BERTH_TRY(begin(device, record, 0));
    if (to_host)
        copy(device, record->commands, buffer->handle, at, queue->staging.handle, 0, size_bytes);
    else
        copy(device, record->commands, queue->staging.handle, 0, buffer->handle, at, size_bytes);
    barrier(device, record->commands);
    BERTH_TRY(flush(device, queue, record, NULL, 0));
    if (to_host) memcpy(host, queue->staging.host, (size_t)size_bytes);
    return BERTH_OK;
}

static berth_status host_copy(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                              const berth_command *command) {
    bool to_host = command->copy.source->device == &device->base;
    const berth_buffer *ours = to_host ? command->copy.source : command->copy.destination;
    if (ours->host) {
        berth_devices__host_copy(command);
        return BERTH_OK;
    }
    if (!queue->staging.handle)
        BERTH_TRY(berth_vulkan__block_create(device, STAGING_BYTES, device->facts->host_memory,
                                             &queue->staging));
    const berth_buffer *theirs = to_host ? command->copy.destination : command->copy.source;
    uint64_t our_offset =
        to_host ? command->copy.source_offset_bytes : command->copy.destination_offset_bytes;
    uint64_t their_offset =
        to_host ? command->copy.destination_offset_bytes : command->copy.source_offset_bytes;
    for (uint64_t done = 0; done < command->copy.size_bytes; done += STAGING_BYTES) {
        uint64_t left = command->copy.size_bytes - done;
        BERTH_TRY(move_part(device, queue, record, berth_vulkan__buffer(ours), our_offset + done,
                            berth_devices__host_at(theirs, their_offset + done),
                            left < STAGING_BYTES ? left : STAGING_BYTES, to_host));
    }
    return BERTH_OK;
}

static berth_status run_on_host(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                                const berth_command *command) {
    int64_t start_ns = berth_clock_ns();
    berth_status status = command->kind == BERTH_COMMAND_HOST_CALL
                              ? command->host_call.call(command->host_call.user)
                              : host_copy(device, queue, record, command);
    if (is_timed(device, command))
        *command->timing = (berth_command_timing){start_ns, berth_clock_ns()};
    return status;
}

// The whole submission, part by part.
static berth_status run_parts(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                              const berth_command *commands, uint32_t count) {
    pthread_mutex_lock(&queue->lock);
    uint64_t before = queue->value;
    pthread_mutex_unlock(&queue->lock);
    BERTH_TRY(wait_for(device, queue, before));
    for (uint32_t i = 0; i < count; ++i) {
        if (is_empty(&commands[i])) continue;
        if (!is_for_host(&device->base, &commands[i])) {
            BERTH_TRY(record_command(device, record, &commands[i], i));
            continue;
        }
        BERTH_TRY(flush(device, queue, record, commands, i));
        BERTH_TRY(named(run_on_host(device, queue, record, &commands[i]), &commands[i], i));
    }
    return flush(device, queue, record, commands, count);
}

// ---- the host queue's functions ----

static berth_status reserve_block(vulkan_device *device, vulkan_record *record, uint64_t need) {
    record->block_used = 0;
    if (need <= record->block.size_bytes) return BERTH_OK;
    berth_vulkan__block_destroy(device, &record->block);
    return berth_vulkan__block_create(device, 2 * need, device->facts->host_memory, &record->block);
}

static berth_status start(berth_queue *base, const berth_command *commands, uint32_t count,
                          void *user) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    record->value = 0;
    record->recording = false;
    BERTH_TRY(reserve_block(device, record, block_need(commands, count)));
    pthread_mutex_lock(&queue->lock);
    record->put_off = queue->put_off > 0;
    for (uint32_t i = 0; i < count; ++i)
        record->put_off |= is_for_host(&device->base, &commands[i]);
    if (record->put_off) queue->put_off++;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count && !status && !record->put_off; ++i)
        if (!is_empty(&commands[i])) status = record_command(device, record, &commands[i], i);
    if (!status && !record->put_off) status = hand_over(device, queue, record);
    pthread_mutex_unlock(&queue->lock);
    if (status) device->vk.vkResetCommandBuffer(record->commands, 0);
    return status;
}

static berth_status finish(berth_queue *base, const berth_command *commands, uint32_t count,
                           void *user) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    if (!record->put_off) {
        BERTH_TRY(wait_for(device, queue, record->value));
        if (record->value)
            read_times(device, record, commands + record->first, count - record->first);
        fill_empty_times(device, commands, count);
        return BERTH_OK;
    }
    berth_status status = run_parts(device, queue, record, commands, count);
    if (status && record->recording) device->vk.vkResetCommandBuffer(record->commands, 0);
    if (!status) fill_empty_times(device, commands, count);
    pthread_mutex_lock(&queue->lock);
    queue->put_off--;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static berth_status make_commands(const vulkan_device *device, const vulkan_queue *queue,
                                  vulkan_record *record) {
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = queue->engine->family};
    if (!record->pool)
        BERTH_TRY(berth_vulkan__check(
            device->vk.vkCreateCommandPool(device->handle, &pool, NULL, &record->pool),
            "make a command pool"));
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = record->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    if (record->commands) return BERTH_OK;
    return berth_vulkan__check(
        device->vk.vkAllocateCommandBuffers(device->handle, &info, &record->commands),
        "make a command buffer");
}

static berth_status record_reserve(berth_queue *base, void *user, uint32_t command_count) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    BERTH_TRY(make_commands(device, queue, record));
    bool timed = device->base.options.profile &&
                 device->facts->families[queue->engine->family].timestampValidBits > 0;
    if (!timed || 2 * command_count <= record->query_capacity) return BERTH_OK;
    if (record->queries) device->vk.vkDestroyQueryPool(device->handle, record->queries, NULL);
    record->queries = VK_NULL_HANDLE;
    record->query_capacity = 0;
    VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 2 * command_count};
    BERTH_TRY(berth_vulkan__check(
        device->vk.vkCreateQueryPool(device->handle, &queries, NULL, &record->queries),
        "make room for timestamps"));
    record->query_capacity = 2 * command_count;
    return BERTH_OK;
}

static void record_destroy(berth_queue *base, void *user) {
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    if (record->pool) device->vk.vkDestroyCommandPool(device->handle, record->pool, NULL);
    if (record->queries) device->vk.vkDestroyQueryPool(device->handle, record->queries, NULL);
    berth_vulkan__block_destroy(device, &record->block);
}

static const berth_host_queue_ops queue_ops = {
    .start = start,
    .finish = finish,
    .record_reserve = record_reserve,
    .record_bytes = sizeof(vulkan_record),
    .record_destroy = record_destroy,
};

static void free_queue(vulkan_device *device, vulkan_queue *queue) {
    berth_vulkan__block_destroy(device, &queue->staging);
    if (queue->timeline) device->vk.vkDestroySemaphore(device->handle, queue->timeline, NULL);
    pthread_mutex_destroy(&queue->lock);
    berth_free(device->base.allocator, queue, sizeof(*queue));
}

static berth_status create_objects(vulkan_device *device, vulkan_queue *queue) {
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                       .pNext = &type};
    return berth_vulkan__check(
        device->vk.vkCreateSemaphore(device->handle, &semaphore, NULL, &queue->timeline),
        "open a queue");
}

// Queues of ours go round those of Vulkan's: copies to engines of their own, where there are.
static vulkan_engine *choose_engine(vulkan_device *device, berth_queue_kind kind) {
    bool transfer = kind == BERTH_QUEUE_TRANSFER && device->transfer_count > 0;
    uint32_t next = atomic_fetch_add(transfer ? &device->next_transfer : &device->next_compute, 1);
    return transfer ? &device->transfer[next % device->transfer_count]
                    : &device->compute[next % device->compute_count];
}

berth_status berth_vulkan__queue_open(berth_device *base, berth_queue_kind kind,
                                      berth_queue **out_queue) {
    vulkan_device *device = (vulkan_device *)base;
    vulkan_queue *queue = berth_calloc(base->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    pthread_mutex_init(&queue->lock, NULL);
    queue->engine = choose_engine(device, kind);
    berth_status status = create_objects(device, queue);
    queue->base.base.device = base;  // the core sets it when this returns
    if (!status) status = berth_host_queue_init(&queue->base, base, &queue_ops);
    if (status) {
        free_queue(device, queue);
        return status;
    }
    *out_queue = &queue->base.base;
    return BERTH_OK;
}

void berth_vulkan__queue_destroy(berth_queue *base) {
    vulkan_queue *queue = (vulkan_queue *)base;
    berth_host_queue_deinit(&queue->base);
    free_queue(device_of(base), queue);
}
