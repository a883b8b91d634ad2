// Queues of OpenCL devices: an in-order command queue below a host queue. A submission becomes a
// row of enqueued commands; the event of the last one (and, when profiling, of each) is what the
// host queue's thread waits for.
#include "base/clock.h"
#include "devices/opencl/opencl.h"

typedef struct opencl_queue {
    berth_host_queue base;
    cl_command_queue handle;
} opencl_queue;

// What a submission leaves behind to be finished. When profiling, events[i] belongs to command i,
// NULL where none was asked for.
typedef struct opencl_record {
    cl_event *events;
    uint32_t capacity;
    uint32_t last;             // the command whose event ends the submission, or UINT32_MAX
    int64_t first_enqueue_ns;  // host clock around the enqueue of the first timed command
    uint32_t first_timed;      // UINT32_MAX when none is
    cl_event end;              // of the last command, for other queues; kept until the next start
    opencl_wait *wait;         // for the last command
} opencl_record;

static const opencl_device *device_of(const berth_queue *queue) {
    return (const opencl_device *)queue->device;
}

// Commands that touch nothing are not enqueued: OpenCL refuses empty ones.
static bool is_empty(const berth_command *command) {
    switch (command->kind) {
    case BERTH_COMMAND_COPY: return command->copy.size_bytes == 0;
    case BERTH_COMMAND_FILL: return command->fill.size_bytes == 0;
    case BERTH_COMMAND_DISPATCH:
        return command->dispatch.groups[0] == 0 || command->dispatch.groups[1] == 0 ||
               command->dispatch.groups[2] == 0;
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST: return command->hand_over.buffer_count == 0;
    case BERTH_COMMAND_HOST_CALL: return false;
    }
    return true;
}

// Whether the buffer is of the device's context: its own or a peer's.
static bool is_here(const opencl_device *device, const berth_buffer *buffer) {
    return buffer->device == &device->base || berth_devices__is_peer(&device->base, buffer->device);
}

static berth_status enqueue_copy(const opencl_device *device, cl_command_queue queue,
                                 const berth_command *command, cl_event *event) {
    const opencl_api *api = device->api;
    const berth_buffer *source = command->copy.source;
    const berth_buffer *destination = command->copy.destination;
    size_t from = (size_t)command->copy.source_offset_bytes;
    size_t to = (size_t)command->copy.destination_offset_bytes;
    size_t size = (size_t)command->copy.size_bytes;
    cl_int error;
    if (!is_here(device, source))
        error =
            api->clEnqueueWriteBuffer(queue, berth_opencl__memory(destination), CL_FALSE, to, size,
                                      berth_devices__host_at(source, from), 0, NULL, event);
    else if (!is_here(device, destination))
        error = api->clEnqueueReadBuffer(queue, berth_opencl__memory(source), CL_FALSE, from, size,
                                         berth_devices__host_at(destination, to), 0, NULL, event);
    else
        error = api->clEnqueueCopyBuffer(queue, berth_opencl__memory(source),
                                         berth_opencl__memory(destination), from, to, size, 0, NULL,
                                         event);
    return berth_opencl__check(device, error, "copy");
}

static berth_status enqueue(opencl_device *device, cl_command_queue queue,
                            const berth_command *command, cl_kernel ready, cl_event *event) {
    const opencl_api *api = device->api;
    switch (command->kind) {
    case BERTH_COMMAND_COPY: return enqueue_copy(device, queue, command, event);
    case BERTH_COMMAND_FILL:
        return berth_opencl__check(
            device,
            api->clEnqueueFillBuffer(queue, berth_opencl__memory(command->fill.buffer),
                                     &command->fill.pattern, command->fill.pattern_bytes,
                                     (size_t)command->fill.offset_bytes,
                                     (size_t)command->fill.size_bytes, 0, NULL, event),
            "fill");
    case BERTH_COMMAND_DISPATCH:
        return berth_opencl__dispatch(device, queue, command, ready, event);
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST: return berth_opencl__hand_over(device, queue, command, event);
    case BERTH_COMMAND_HOST_CALL:  // after all that is before it
        BERTH_TRY(berth_opencl__drain(device, queue, "finish before a host call"));
        return command->host_call.call(command->host_call.user);
    }
    return BERTH_OK;
}

// Without profiling, only the last command has an event, in events[0].
static uint32_t event_count(const opencl_device *device, uint32_t command_count) {
    return device->base.options.profile ? command_count : command_count != 0;
}

static cl_event *event_of(const opencl_device *device, const opencl_record *record,
                          uint32_t command) {
    return &record->events[device->base.options.profile ? command : 0];
}

static berth_status opencl_record_reserve(berth_queue *queue, void *user, uint32_t command_count) {
    opencl_record *record = user;
    uint32_t count = event_count(device_of(queue), command_count);
    if (!record->wait && !(record->wait = berth_opencl__wait_create())) return berth_status_oom();
    if (count <= record->capacity) return BERTH_OK;
    cl_event *events = berth_resize(queue->device->allocator, record->events,
                                    record->capacity * sizeof(*events), count * sizeof(*events));
    if (!events) return berth_status_oom();
    record->events = events;
    record->capacity = count;
    return BERTH_OK;
}

static void release_events(const opencl_device *device, opencl_record *record,
                           uint32_t command_count) {
    for (uint32_t i = 0; i < event_count(device, command_count); ++i) {
        if (record->events[i]) device->api->clReleaseEvent(record->events[i]);
        record->events[i] = NULL;
    }
}

static bool is_timed(const opencl_device *device, const berth_command *command) {
    return device->base.options.profile && command->timing;
}

// `ready`: kernels with their arguments, by command; NULL = there are none.
static berth_status enqueue_all(opencl_device *device, opencl_queue *queue,
                                const berth_command *commands, uint32_t count,
                                const cl_kernel *ready, opencl_record *record) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_command *command = &commands[i];
        // Platforms whose devices compute inside these calls (PoCL's "basic") would hold up older runs.
        if (queue->base.order && i > 0) berth_start_order_give_way(queue->base.order);
        bool timed = is_timed(device, command);
        bool on_device = !is_empty(command) && command->kind != BERTH_COMMAND_HOST_CALL;
        cl_event *event =
            on_device && (timed || i == record->last) ? event_of(device, record, i) : NULL;
        int64_t before_ns = timed ? berth_clock_ns() : 0;
        berth_status status = is_empty(command) ? BERTH_OK
                                                : enqueue(device, queue->handle, command,
                                                          ready ? ready[i] : NULL, event);
        if (status)
            return command->label ? berth_status_prefix(status, "%s", command->label)
                                  : berth_status_prefix(status, "commands[%u]", i);
        if (!timed) continue;
        int64_t after_ns = berth_clock_ns();
        if (!on_device) {
            *command->timing = (berth_command_timing){before_ns, after_ns};
        } else if (record->first_timed == UINT32_MAX) {
            record->first_timed = i;
            record->first_enqueue_ns = before_ns + (after_ns - before_ns) / 2;
        }
    }
    return berth_opencl__check(device, device->api->clFlush(queue->handle), "flush");
}

// What was started before in another queue of the device comes first: OpenCL would run both in turns, command by
// command. Called in the queue's turn.
static berth_status come_after(opencl_device *device, const opencl_queue *queue) {
    if (!queue->base.order || !device->last.end || device->last.queue == queue->handle)
        return BERTH_OK;
    cl_int state = CL_COMPLETE;  // negative: it failed, which is nothing to others
    device->api->clGetEventInfo(device->last.end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                                &state, NULL);
    if (state <= CL_COMPLETE) return BERTH_OK;
    return berth_opencl__check(
        device,
        device->api->clEnqueueBarrierWithWaitList(queue->handle, 1, &device->last.end, NULL),
        "order queues");
}

// The event that others come after, from now on.
static void come_before(opencl_device *device, const opencl_queue *queue, cl_event end) {
    if (!queue->base.order) return;
    if (device->last.end) device->api->clReleaseEvent(device->last.end);
    device->api->clRetainEvent(end);
    device->last.end = end;
    device->last.queue = queue->handle;
}

static berth_status opencl_queue_start(berth_queue *base, const berth_command *commands,
                                       uint32_t count, void *prepared, void *user) {
    opencl_queue *queue = (opencl_queue *)base;
    opencl_device *device = (opencl_device *)base->device;
    opencl_record *record = user;
    if (record->end) device->api->clReleaseEvent(record->end);
    record->end = NULL;
    record->last = UINT32_MAX;
    record->first_timed = UINT32_MAX;
    for (uint32_t i = 0; i < count; ++i) {
        *event_of(device, record, i) = NULL;
        if (!is_empty(&commands[i]) && commands[i].kind != BERTH_COMMAND_HOST_CALL)
            record->last = i;
    }
    berth_status status = berth_opencl__alive(device, "run commands");
    if (status) return status;
    status = come_after(device, queue);
    if (!status) status = enqueue_all(device, queue, commands, count, prepared, record);
    if (!status && record->last != UINT32_MAX) {
        record->end = *event_of(device, record, record->last);
        device->api->clRetainEvent(record->end);
        come_before(device, queue, record->end);
    }
    if (!status) return BERTH_OK;
    // What was enqueued before it failed ends first, where the device still answers.
    berth_status_ignore(berth_opencl__drain(device, queue->handle, "end what was begun"));
    release_events(device, record, count);
    return status;
}

static int64_t event_ns(const opencl_device *device, cl_event event, cl_profiling_info what) {
    cl_ulong value = 0;
    device->api->clGetEventProfilingInfo(event, what, sizeof(value), &value, NULL);
    return (int64_t)value;
}

// The device has a clock of its own; a command's QUEUED time is when the host enqueued it, which
// ties the two clocks together once per submission (the error is half the time of one enqueue). The
// work has ended by now, which keeps the order with what waits for it.
static void read_timings(const opencl_device *device, const berth_command *commands, uint32_t count,
                         const opencl_record *record) {
    if (record->first_timed == UINT32_MAX) return;
    int64_t offset_ns =
        record->first_enqueue_ns -
        event_ns(device, record->events[record->first_timed], CL_PROFILING_COMMAND_QUEUED);
    int64_t now_ns = berth_clock_ns();
    for (uint32_t i = record->first_timed; i < count; ++i) {
        if (!record->events[i] || !is_timed(device, &commands[i])) continue;
        int64_t end_ns = offset_ns + event_ns(device, record->events[i], CL_PROFILING_COMMAND_END);
        if (end_ns > now_ns) offset_ns -= end_ns - now_ns;
    }
    for (uint32_t i = record->first_timed; i < count; ++i) {
        if (!record->events[i] || !is_timed(device, &commands[i])) continue;
        commands[i].timing->start_ns =
            offset_ns + event_ns(device, record->events[i], CL_PROFILING_COMMAND_START);
        commands[i].timing->end_ns =
            offset_ns + event_ns(device, record->events[i], CL_PROFILING_COMMAND_END);
    }
}

static berth_status opencl_queue_finish(berth_queue *base, const berth_command *commands,
                                        uint32_t count, void *user) {
    opencl_device *device = (opencl_device *)base->device;
    opencl_record *record = user;
    if (record->last == UINT32_MAX) return BERTH_OK;
    berth_status status = berth_opencl__wait(
        device, &record->wait, *event_of(device, record, record->last), "run commands");
    if (!status) read_timings(device, commands, count, record);
    release_events(device, record, count);
    return status;
}

static void opencl_record_destroy(berth_queue *queue, void *user) {
    opencl_record *record = user;
    if (record->end) device_of(queue)->api->clReleaseEvent(record->end);
    berth_opencl__wait_destroy(record->wait);
    berth_free(queue->device->allocator, record->events, record->capacity * sizeof(cl_event));
}

static bool opencl_is_native(berth_queue *queue, const void *user) {
    (void)queue;
    const opencl_record *record = user;
    return record->end != NULL;
}

static bool opencl_wait_native(berth_queue *base, berth_queue *other, const void *user) {
    (void)other;
    const opencl_queue *queue = (const opencl_queue *)base;
    const opencl_record *record = user;
    return device_of(base)->api->clEnqueueBarrierWithWaitList(queue->handle, 1, &record->end,
                                                              NULL) == CL_SUCCESS;
}

static const berth_host_queue_ops opencl_queue_ops = {
    .is_native = opencl_is_native,
    .wait_native = opencl_wait_native,
    .start = opencl_queue_start,
    .finish = opencl_queue_finish,
    .record_reserve = opencl_record_reserve,
    .record_bytes = sizeof(opencl_record),
    .record_destroy = opencl_record_destroy,
};

berth_status berth_opencl__queue_open(berth_device *base, berth_queue_kind kind,
                                      berth_queue **out_queue) {
    const opencl_device *device = (const opencl_device *)base;
    opencl_queue *queue = berth_calloc(base->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    cl_command_queue_properties properties = base->options.profile ? CL_QUEUE_PROFILING_ENABLE : 0;
    cl_int error = CL_SUCCESS;
    queue->handle = device->callers;
    if (queue->handle)
        error = device->api->clRetainCommandQueue(queue->handle);
    else
        queue->handle =
            device->api->clCreateCommandQueue(device->context, device->id, properties, &error);
    berth_status status = berth_opencl__check(device, error, "open a queue");
    if (!status) {
        status = berth_host_queue_init(&queue->base, base, &opencl_queue_ops);
        queue->base.domain = device->context;
        if (kind == BERTH_QUEUE_COMPUTE) queue->base.order = &((opencl_device *)base)->order;
        if (status) device->api->clReleaseCommandQueue(queue->handle);
    }
    if (status) {
        berth_free(base->allocator, queue, sizeof(*queue));
        return status;
    }
    *out_queue = &queue->base.base;
    return BERTH_OK;
}

void berth_opencl__queue_destroy(berth_queue *base) {
    opencl_queue *queue = (opencl_queue *)base;
    const opencl_device *device = device_of(base);
    berth_host_queue_deinit(&queue->base);
    if (!atomic_load(&device->is_lost)) device->api->clReleaseCommandQueue(queue->handle);
    berth_free(device->base.allocator, queue, sizeof(*queue));
}
