// Queues of Vulkan devices below a host queue. A submission whose commands all run on the device
// becomes one command buffer, which is handed over at once and ends in a value of the queue's
// timeline semaphore. One that has work for the host in between (host calls, copies from and to
// memory that is not the device's) is put off to the queue's thread, which runs it part by part;
// what is submitted meanwhile waits behind it.
#include <string.h>

#include "base/clock.h"
#include "devices/vulkan/record.h"

enum { STAGING_BYTES = 4 << 20, MOST_WAITS = 8 };

typedef struct vulkan_queue {
    berth_host_queue base;
    vulkan_engine *engine;
    vulkan_timeline *timeline;
    pthread_mutex_t lock;  // of the timeline's value and the next four
    uint32_t put_off;      // submissions that are left to the queue's thread
    // What the next work that is handed over comes after: values of other queues' timelines.
    uint32_t wait_count;
    VkSemaphore waits[MOST_WAITS];
    uint64_t wait_values[MOST_WAITS];
    vulkan_block staging;  // of the queue's thread
} vulkan_queue;

static vulkan_device *device_of(const berth_queue *queue) {
    return (vulkan_device *)queue->device;
}

// ---- submitting and waiting ----

VkResult berth_vulkan__submit(const vulkan_device *device, vulkan_engine *engine,
                              const VkSubmitInfo *info) {
    if (atomic_load(&device->is_lost)) return VK_NOT_READY;
    pthread_mutex_lock(&engine->lock);
    if (engine->callers.lock) engine->callers.lock(engine->callers.user);
    VkResult result = device->vk.vkQueueSubmit(engine->handle, 1, info, VK_NULL_HANDLE);
    if (engine->callers.unlock) engine->callers.unlock(engine->callers.user);
    pthread_mutex_unlock(&engine->lock);
    return result;
}

static berth_status hand_over(const vulkan_device *device, vulkan_queue *queue,
                              vulkan_record *record, VkCommandBuffer commands) {
    static const VkPipelineStageFlags stages[MOST_WAITS] = {
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
    uint64_t value = queue->timeline->value + 1;
    VkTimelineSemaphoreSubmitInfo timeline = {.sType =
                                                  VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                              .waitSemaphoreValueCount = queue->wait_count,
                                              .pWaitSemaphoreValues = queue->wait_values,
                                              .signalSemaphoreValueCount = 1,
                                              .pSignalSemaphoreValues = &value};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .waitSemaphoreCount = queue->wait_count,
                         .pWaitSemaphores = queue->waits,
                         .pWaitDstStageMask = stages,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &queue->timeline->semaphore};
    BERTH_TRY(berth_vulkan__check_on(device, berth_vulkan__submit(device, queue->engine, &info),
                                     "submit"));
    record->value = queue->timeline->value = value;
    queue->wait_count = 0;
    return BERTH_OK;
}

// What is recorded so far.
static berth_status hand_over_recorded(const vulkan_device *device, vulkan_queue *queue,
                                       vulkan_record *record) {
    if (!record->recording) return BERTH_OK;
    record->recording = false;
    BERTH_TRY(berth_vulkan__check_on(device, device->vk.vkEndCommandBuffer(record->commands),
                                     "end a command buffer"));
    return hand_over(device, queue, record, record->commands);
}

// A device that was given up is asked, and not waited for.
static berth_status wait_for_all(vulkan_device *device, uint32_t count,
                                 const VkSemaphore *semaphores, const uint64_t *values,
                                 const char *what) {
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = count,
                                .pSemaphores = semaphores,
                                .pValues = values};
    if (count == 0) return BERTH_OK;
    uint64_t timeout_ns = atomic_load(&device->is_lost) ? 0 : (uint64_t)device->timeout_ns;
    VkResult result = device->vk.vkWaitSemaphores(device->handle, &info, timeout_ns);
    if (result == VK_TIMEOUT) atomic_store(&device->is_lost, true);
    return berth_vulkan__check_on(device, result, what);
}

// Where the wait fails for another reason than its time, what was submitted may still run; what it uses
// is freed by whoever gets the error, so that it is let run out before.
berth_status berth_vulkan__wait(vulkan_device *device, vulkan_engine *engine, VkSemaphore semaphore,
                                uint64_t value, const char *what) {
    berth_status status = wait_for_all(device, value != 0, &semaphore, &value, what);
    if (!status || atomic_load(&device->is_lost)) return status;
    pthread_mutex_lock(&engine->lock);
    if (engine->callers.lock) engine->callers.lock(engine->callers.user);
    (void)device->vk.vkQueueWaitIdle(engine->handle);  // of a lost device: returns at once
    if (engine->callers.unlock) engine->callers.unlock(engine->callers.user);
    pthread_mutex_unlock(&engine->lock);
    return status;
}

static berth_status wait_for(vulkan_device *device, const vulkan_queue *queue, uint64_t value) {
    return berth_vulkan__wait(device, queue->engine, queue->timeline->semaphore, value,
                              "run commands");
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
            if (!berth_vulkan__is_timed(device, &commands[i]) ||
                berth_vulkan__is_empty(&commands[i]))
                continue;
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
        if (berth_vulkan__is_timed(device, &commands[i]) && !berth_vulkan__is_empty(&commands[i]))
            at_ns = commands[i].timing->start_ns;
    if (at_ns == 0) at_ns = berth_clock_ns();
    for (uint32_t i = 0; i < count; ++i) {
        if (!berth_vulkan__is_timed(device, &commands[i])) continue;
        if (berth_vulkan__is_empty(&commands[i]))
            *commands[i].timing = (berth_command_timing){at_ns, at_ns};
        at_ns = commands[i].timing->end_ns;
    }
}

// What is recorded so far runs and ends.
static berth_status flush(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                          const berth_command *commands, uint32_t end) {
    if (!record->recording) return BERTH_OK;
    pthread_mutex_lock(&queue->lock);
    berth_status status = hand_over_recorded(device, queue, record);
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
    BERTH_TRY(berth_vulkan__begin(device, record, 0));
    if (to_host)
        berth_vulkan__copy(device, record->commands, buffer->handle, at, queue->staging.handle, 0,
                           size_bytes);
    else
        berth_vulkan__copy(device, record->commands, queue->staging.handle, 0, buffer->handle, at,
                           size_bytes);
    berth_vulkan__barrier(device, record->commands);
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
    if (berth_vulkan__is_timed(device, command))
        *command->timing = (berth_command_timing){start_ns, berth_clock_ns()};
    return status;
}

static berth_status run_part(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                             const vulkan_part *part) {
    pthread_mutex_lock(&queue->lock);
    berth_status status = hand_over(device, queue, record, part->commands);
    pthread_mutex_unlock(&queue->lock);
    return status ? status : wait_for(device, queue, record->value);
}

// What was handed over before, and what others were promised to come after.
static berth_status wait_before_parts(vulkan_device *device, vulkan_queue *queue) {
    VkSemaphore waits[MOST_WAITS];
    uint64_t values[MOST_WAITS];
    pthread_mutex_lock(&queue->lock);
    uint64_t before = queue->timeline->value;
    uint32_t count = queue->wait_count;
    memcpy(waits, queue->waits, sizeof(waits));
    memcpy(values, queue->wait_values, sizeof(values));
    queue->wait_count = 0;
    pthread_mutex_unlock(&queue->lock);
    BERTH_TRY(wait_for_all(device, count, waits, values, "run commands"));
    return wait_for(device, queue, before);
}

// The whole submission, part by part.
static berth_status run_parts(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                              const berth_command *commands, uint32_t count) {
    BERTH_TRY(wait_before_parts(device, queue));
    const vulkan_part *part = record->list ? record->list->parts : NULL;
    const vulkan_part *end = part ? part + record->list->part_count : NULL;
    for (uint32_t i = 0; i < count; ++i) {
        if (berth_vulkan__is_empty(&commands[i])) continue;
        if (part < end && part->first == i) {
            BERTH_TRY(run_part(device, queue, record, part));
            i += part++->count - 1;
            continue;
        }
        if (!berth_vulkan__is_for_host(&device->base, &commands[i])) {
            BERTH_TRY(berth_vulkan__record_command(device, record, &commands[i], i));
            continue;
        }
        BERTH_TRY(flush(device, queue, record, commands, i));
        BERTH_TRY(
            berth_vulkan__named(run_on_host(device, queue, record, &commands[i]), &commands[i], i));
    }
    return flush(device, queue, record, commands, count);
}

// ---- the host queue's functions ----

static berth_status start_new(vulkan_device *device, vulkan_queue *queue, vulkan_record *record,
                              const berth_command *commands, uint32_t count) {
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count && !status; ++i)
        if (!berth_vulkan__is_empty(&commands[i]))
            status = berth_vulkan__record_command(device, record, &commands[i], i);
    if (!status) status = hand_over_recorded(device, queue, record);
    if (status) device->vk.vkResetCommandBuffer(record->commands, 0);
    return status;
}

static berth_status start(berth_queue *base, const berth_command *commands, uint32_t count,
                          void *prepared, void *user) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    if (atomic_load(&device->is_lost))  // the record may still be in use
        return berth_devices__given_up(&device->base, "submit");
    record->value = 0;
    record->recording = false;
    record->usage = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    record->list = prepared;
    bool for_host = record->list && record->list->for_host;
    for (uint32_t i = 0; i < count && !record->list; ++i)
        for_host |= berth_vulkan__is_for_host(&device->base, &commands[i]);
    if (!record->list) BERTH_TRY(berth_vulkan__reserve_block(device, record, commands, count));
    pthread_mutex_lock(&queue->lock);
    record->put_off = for_host || queue->put_off > 0;
    berth_status status = BERTH_OK;
    if (record->put_off)
        queue->put_off++;
    else if (!record->list)
        status = start_new(device, queue, record, commands, count);
    else if (record->list->part_count)
        status = hand_over(device, queue, record, record->list->parts[0].commands);
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static berth_status finish(berth_queue *base, const berth_command *commands, uint32_t count,
                           void *user) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    if (!record->put_off) {
        BERTH_TRY(wait_for(device, queue, record->value));
        if (record->value && !record->list)
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

static berth_status record_reserve(berth_queue *base, void *user, uint32_t command_count) {
    vulkan_queue *queue = (vulkan_queue *)base;
    vulkan_device *device = device_of(base);
    vulkan_record *record = user;
    if (atomic_load(&device->is_lost))  // its queries may still be in use
        return berth_devices__given_up(&device->base, "submit");
    BERTH_TRY(berth_vulkan__make_commands(device, queue->engine->family, record));
    bool timed = device->base.options.profile &&
                 device->facts->families[queue->engine->family].timestampValidBits > 0;
    if (!timed || 2 * command_count <= record->query_capacity) return BERTH_OK;
    if (record->queries) device->vk.vkDestroyQueryPool(device->handle, record->queries, NULL);
    record->queries = VK_NULL_HANDLE;
    record->query_capacity = 0;
    VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 2 * command_count};
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkCreateQueryPool(device->handle, &queries, NULL, &record->queries),
        "make room for timestamps"));
    record->query_capacity = 2 * command_count;
    return BERTH_OK;
}

static void record_destroy(berth_queue *base, void *user) {
    berth_vulkan__record_free(device_of(base), user);
}

static bool is_native(berth_queue *queue, const void *user) {
    (void)queue;
    const vulkan_record *record = user;
    return !record->put_off && record->value;
}

static bool wait_native(berth_queue *base, berth_queue *other, const void *user) {
    vulkan_queue *queue = (vulkan_queue *)base;
    const vulkan_record *record = user;
    VkSemaphore semaphore = ((const vulkan_queue *)other)->timeline->semaphore;
    pthread_mutex_lock(&queue->lock);
    uint32_t at = 0;
    while (at < queue->wait_count && queue->waits[at] != semaphore) ++at;
    bool fits = at < MOST_WAITS;
    if (fits && at == queue->wait_count) {
        queue->waits[queue->wait_count++] = semaphore;
        queue->wait_values[at] = 0;
    }
    if (fits && record->value > queue->wait_values[at]) queue->wait_values[at] = record->value;
    pthread_mutex_unlock(&queue->lock);
    return fits;
}

static const berth_host_queue_ops queue_ops = {
    .is_native = is_native,
    .wait_native = wait_native,
    .start = start,
    .finish = finish,
    .record_reserve = record_reserve,
    .record_bytes = sizeof(vulkan_record),
    .record_destroy = record_destroy,
};

static void free_queue(vulkan_device *device, vulkan_queue *queue) {
    berth_vulkan__block_destroy(device, &queue->staging);
    pthread_mutex_lock(&device->lock);
    if (queue->timeline) {
        queue->timeline->next = device->unused;
        device->unused = queue->timeline;
    }
    pthread_mutex_unlock(&device->lock);
    pthread_mutex_destroy(&queue->lock);
    berth_free(device->base.allocator, queue, sizeof(*queue));
}

static berth_status create_timeline(vulkan_device *device, vulkan_timeline **out_timeline) {
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    vulkan_timeline *timeline = berth_calloc(device->base.allocator, 1, sizeof(*timeline));
    if (!timeline) return berth_status_oom();
    berth_status status = berth_vulkan__check_on(
        device, device->vk.vkCreateSemaphore(device->handle, &info, NULL, &timeline->semaphore),
        "open a queue");
    if (status)
        berth_free(device->base.allocator, timeline, sizeof(*timeline));
    else
        *out_timeline = timeline;
    return status;
}

static berth_status take_timeline(vulkan_device *device, vulkan_timeline **out_timeline) {
    pthread_mutex_lock(&device->lock);
    vulkan_timeline *timeline = device->unused;
    if (timeline) device->unused = timeline->next;
    pthread_mutex_unlock(&device->lock);
    *out_timeline = timeline;
    return timeline ? BERTH_OK : create_timeline(device, out_timeline);
}

void berth_vulkan__free_timelines(vulkan_device *device) {
    while (device->unused) {
        vulkan_timeline *timeline = device->unused;
        device->unused = timeline->next;
        if (!atomic_load(&device->is_lost))
            device->vk.vkDestroySemaphore(device->handle, timeline->semaphore, NULL);
        berth_free(device->base.allocator, timeline, sizeof(*timeline));
    }
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
    berth_status status = take_timeline(device, &queue->timeline);
    queue->base.base.device = base;  // the core sets it when this returns
    if (!status) status = berth_host_queue_init(&queue->base, base, &queue_ops);
    queue->base.domain = device;
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

uint32_t berth_vulkan__family(const berth_queue *queue) {
    return ((const vulkan_queue *)queue)->engine->family;
}
