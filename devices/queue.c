// The public functions of queues: everything about a submission that can be known before it runs
// is checked here.
#include <inttypes.h>

#include "devices/device.h"
#include "devices/internal.h"

#define BAD(code, ...) berth_status_make(BERTH_##code, __VA_ARGS__)

berth_status berth_queue_open(berth_device *device, berth_queue_kind kind,
                              berth_queue **out_queue) {
    *out_queue = NULL;
    berth_queue *queue = NULL;
    BERTH_TRY(device->ops->queue_open(device, kind, &queue));
    queue->device = device;
    queue->kind = kind;
    *out_queue = queue;
    return BERTH_OK;
}

static const char *kind_of(const berth_buffer *buffer) {
    return buffer->device->driver->ops->kind;
}

static berth_status check_copy(const berth_device *device, const berth_command *command) {
    const berth_buffer *source = command->copy.source;
    const berth_buffer *destination = command->copy.destination;
    if (!source || !destination) return BAD(INVALID_ARGUMENT, "copy: a buffer is missing");
    uint64_t size = command->copy.size_bytes;
    uint64_t from = command->copy.source_offset_bytes, to = command->copy.destination_offset_bytes;
    BERTH_TRY(berth_devices__check_range("copy source", source, from, size));
    BERTH_TRY(berth_devices__check_range("copy destination", destination, to, size));
    bool source_ok =
        source->device == device || source->host || berth_devices__is_peer(device, source->device);
    bool destination_ok = destination->device == device || destination->host ||
                          berth_devices__is_peer(device, destination->device);
    if (!source_ok || !destination_ok ||
        (source->device != device && destination->device != device))
        return BAD(INCOMPATIBLE,
                   "copy: a queue of %s device %u copies within its device, to and from host "
                   "memory and its peers, not from %s device %u to %s device %u",
                   device->driver->ops->kind, device->info.ordinal, kind_of(source),
                   source->device->info.ordinal, kind_of(destination),
                   destination->device->info.ordinal);
    const berth_buffer *source_root = source->root ? source->root : source;
    const berth_buffer *destination_root = destination->root ? destination->root : destination;
    from += source->root_offset_bytes;
    to += destination->root_offset_bytes;
    if (source_root == destination_root && from < to + size && to < from + size)
        return BAD(INVALID_ARGUMENT,
                   "copy: %" PRIu64 " bytes from %" PRIu64 " to %" PRIu64
                   " of the same memory overlap",
                   size, from, to);
    return BERTH_OK;
}

static berth_status check_fill(const berth_device *device, const berth_command *command) {
    const berth_buffer *buffer = command->fill.buffer;
    if (!buffer) return BAD(INVALID_ARGUMENT, "fill: the buffer is missing");
    if (buffer->device != device)
        return BAD(INCOMPATIBLE, "fill: the buffer is not of the queue's device");
    uint32_t unit = command->fill.pattern_bytes;
    if (unit != 1 && unit != 2 && unit != 4)
        return BAD(INVALID_ARGUMENT, "fill: a pattern has 1, 2 or 4 bytes, not %u", unit);
    if (command->fill.size_bytes % unit != 0 || command->fill.offset_bytes % unit != 0)
        return BAD(INVALID_ARGUMENT,
                   "fill: %" PRIu64 " bytes at %" PRIu64 " are no multiples of the pattern's %u",
                   command->fill.size_bytes, command->fill.offset_bytes, unit);
    return berth_devices__check_range("fill", buffer, command->fill.offset_bytes,
                                      command->fill.size_bytes);
}

static berth_status check_dispatch(const berth_device *device, const berth_command *command) {
    const berth_executable *executable = command->dispatch.executable;
    if (!executable) return BAD(INVALID_ARGUMENT, "dispatch: the executable is missing");
    if (executable->device != device)
        return BAD(INCOMPATIBLE, "dispatch: the executable is not of the queue's device");
    uint32_t kernel = command->dispatch.kernel;
    if (kernel >= executable->kernel_count || !executable->kernels[kernel].found)
        return BAD(OUT_OF_RANGE, "dispatch: no kernel %u was found in the executable", kernel);
    const berth_kernel_facts *facts = &executable->kernels[kernel];
    if (command->dispatch.buffer_count != facts->binding_count ||
        command->dispatch.constant_count != facts->constant_count)
        return BAD(INCOMPATIBLE,
                   "dispatch: kernel %u takes %u buffers and %u constants, not %u and %u", kernel,
                   facts->binding_count, facts->constant_count, command->dispatch.buffer_count,
                   command->dispatch.constant_count);
    for (uint32_t i = 0; i < facts->binding_count; ++i) {
        const berth_buffer *buffer = command->dispatch.buffers[i];
        if (!buffer) return BAD(INVALID_ARGUMENT, "dispatch: buffer %u is missing", i);
        if (buffer->device != device)
            return BAD(INCOMPATIBLE, "dispatch: buffer %u is not of the queue's device", i);
    }
    if (facts->constant_count && !command->dispatch.constants)
        return BAD(INVALID_ARGUMENT, "dispatch: the constants are missing");
    uint64_t size = 1;
    for (int i = 0; i < 3; ++i) {
        uint32_t extent = command->dispatch.group_size[i];
        if (extent == 0 || extent > device->info.max_group_size / size)
            return BAD(OUT_OF_RANGE,
                       "dispatch: a group of %u x %u x %u; the device allows 1 to %" PRIu64
                       " items",
                       command->dispatch.group_size[0], command->dispatch.group_size[1],
                       command->dispatch.group_size[2], device->info.max_group_size);
        size *= extent;
    }
    return BERTH_OK;
}

static berth_status check_hand_over(const berth_device *device, const berth_command *command) {
    for (uint32_t i = 0; i < command->hand_over.buffer_count; ++i) {
        const berth_buffer *buffer = command->hand_over.buffers[i];
        if (!buffer) return BAD(INVALID_ARGUMENT, "hand over: buffer %u is missing", i);
        if (buffer->device != device)
            return BAD(INCOMPATIBLE, "hand over: buffer %u is not of the queue's device", i);
        if (!buffer->host)
            return BAD(INCOMPATIBLE, "hand over: buffer %u is not shared with the host", i);
    }
    return BERTH_OK;
}

static berth_status check_command(const berth_queue *queue, const berth_command *command) {
    const berth_device *device = queue->device;
    bool for_kernels = command->kind == BERTH_COMMAND_DISPATCH ||
                       command->kind == BERTH_COMMAND_TO_DEVICE ||
                       command->kind == BERTH_COMMAND_TO_HOST;
    if (queue->kind == BERTH_QUEUE_TRANSFER && for_kernels)
        return BAD(INCOMPATIBLE, "a transfer queue takes copies, fills and host calls only");
    switch (command->kind) {
    case BERTH_COMMAND_COPY: return check_copy(device, command);
    case BERTH_COMMAND_FILL: return check_fill(device, command);
    case BERTH_COMMAND_DISPATCH: return check_dispatch(device, command);
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST: return check_hand_over(device, command);
    case BERTH_COMMAND_HOST_CALL:
        return command->host_call.call ? BERTH_OK : BAD(INVALID_ARGUMENT, "host call: no function");
    }
    return BAD(INVALID_ARGUMENT, "no such kind of command: %d", (int)command->kind);
}

static berth_status check_commands(const berth_queue *queue, const berth_command *commands,
                                   uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        berth_status status = check_command(queue, &commands[i]);
        const char *label = commands[i].label;
        if (status && label) return berth_status_prefix(status, "%s", label);
        if (status) return berth_status_prefix(status, "commands[%u]", i);
    }
    return BERTH_OK;
}

static berth_status check_submission(const berth_queue *queue, const berth_submission *submission) {
    if ((submission->wait_count && !submission->waits) ||
        (submission->command_count && !submission->commands) ||
        (submission->signal_count && !submission->signals))
        return BAD(INVALID_ARGUMENT, "submit: an array is missing");
    for (uint32_t i = 0; i < submission->wait_count; ++i)
        if (!submission->waits[i].semaphore)
            return BAD(INVALID_ARGUMENT, "submit: waits[%u] has no semaphore", i);
    for (uint32_t i = 0; i < submission->signal_count; ++i) {
        berth_semaphore *semaphore = submission->signals[i].semaphore;
        if (!semaphore) return BAD(INVALID_ARGUMENT, "submit: signals[%u] has no semaphore", i);
        uint64_t value = berth_semaphore_query(semaphore, NULL);
        if (value >= submission->signals[i].value)
            return BAD(INVALID_ARGUMENT,
                       "submit: signals[%u] is %" PRIu64 ", but the semaphore is at %" PRIu64
                       " already",
                       i, submission->signals[i].value, value);
    }
    if (!submission->list)
        return check_commands(queue, submission->commands, submission->command_count);
    if (submission->list->queue == queue) return BERTH_OK;
    return BAD(INVALID_ARGUMENT, "submit: the command list was prepared for another queue");
}

berth_status berth_queue_submit(berth_queue *queue, const berth_submission *submission) {
    BERTH_TRY(check_submission(queue, submission));
    if (!submission->list) return queue->device->ops->queue_submit(queue, submission);
    berth_submission whole = *submission;
    whole.commands = submission->list->commands;
    whole.command_count = submission->list->command_count;
    return queue->device->ops->queue_submit(queue, &whole);
}

// ---- command lists ----

berth_status berth_queue_prepare(berth_queue *queue, const berth_command *commands,
                                 uint32_t command_count, berth_command_list **out_list) {
    berth_device *device = queue->device;
    *out_list = NULL;
    BERTH_TRY(check_commands(queue, commands, command_count));
    berth_command_list *list = berth_calloc(device->allocator, 1, sizeof(*list));
    if (!list) return berth_status_oom();
    *list = (berth_command_list){device, queue, commands, command_count, NULL};
    berth_status status = BERTH_OK;
    if (device->ops->list_prepare && !device->options.profile)
        status = device->ops->list_prepare(list);
    if (status) {
        berth_free(device->allocator, list, sizeof(*list));
        return status;
    }
    berth_devices__retain_commands(commands, command_count);
    *out_list = list;
    return BERTH_OK;
}

void berth_command_list_update(berth_command_list *list) {
    if (list->prepared && list->device->ops->list_update) list->device->ops->list_update(list);
}

void berth_command_list_rebind(berth_command_list *list) {
    if (!list->prepared) return;
    if (list->device->ops->list_update) {
        list->device->ops->list_update(list);
        return;
    }
    list->device->ops->list_destroy(list);
    list->prepared = NULL;
}

void berth_command_list_destroy(berth_command_list *list) {
    if (!list) return;
    if (list->prepared) list->device->ops->list_destroy(list);
    berth_devices__release_commands(list->commands, list->command_count);
    berth_free(list->device->allocator, list, sizeof(*list));
}

berth_status berth_queue_reserve(berth_queue *queue, uint32_t submission_count,
                                 uint32_t command_count, uint32_t point_count) {
    const struct berth_device_ops *ops = queue->device->ops;
    if (!ops->queue_reserve) return BERTH_OK;
    return ops->queue_reserve(queue, submission_count, command_count, point_count);
}

berth_status berth_queue_flush(berth_queue *queue) {
    const berth_device_ops *ops = queue->device->ops;
    return ops->queue_flush ? ops->queue_flush(queue) : BERTH_OK;
}

berth_status berth_queue_wait(berth_queue *queue, berth_semaphore_point point, int64_t timeout_ns) {
    const berth_device_ops *ops = queue->device->ops;
    int64_t look_ns = ops->queue_look_ns ? ops->queue_look_ns(queue) : 0;
    return berth_semaphore_look_and_wait(point.semaphore, point.value, look_ns, timeout_ns);
}

berth_status berth_queue_run(berth_queue *queue, const berth_command *commands,
                             uint32_t command_count) {
    berth_semaphore *done = NULL;
    BERTH_TRY(berth_semaphore_create(queue->device->allocator, 0, &done));
    berth_semaphore_point signal = {.semaphore = done, .value = 1};
    berth_submission submission = {.commands = commands,
                                   .command_count = command_count,
                                   .signals = &signal,
                                   .signal_count = 1};
    berth_status status = berth_queue_submit(queue, &submission);
    if (!status) status = berth_semaphore_wait(done, 1, -1);
    berth_semaphore_release(done);
    return status;
}

void berth_queue_destroy(berth_queue *queue) {
    if (queue) queue->device->ops->queue_destroy(queue);
}
