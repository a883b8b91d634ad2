// Queues of CUDA devices: a stream below a host queue. A submission becomes a row of calls that put
// work into the stream; the event behind the last one is what the host queue's thread waits for.
#include "base/clock.h"
#include "devices/cuda/cuda.h"

typedef struct cuda_queue {
    berth_host_queue base;
    cuda_stream stream;
    cuda_event drained;   // of host calls
    int64_t last_end_ns;  // of what was timed; finish alone touches it
} cuda_queue;

// What a submission leaves behind to be finished. Events are made when they are first needed and
// used again. When profiling, events 2 i and 2 i + 1 stand around command i.
typedef struct cuda_record {
    cuda_event end;
    bool has_end;  // something is in the stream
    cuda_event *events;
    uint32_t capacity;
    int64_t first_ns;  // host clock before the first timed command was put in
    uint32_t first_timed, last_timed;
} cuda_record;

static cuda_device *device_of(const berth_queue *queue) {
    return (cuda_device *)queue->device;
}

static bool is_timed(const cuda_device *device, const berth_command *command) {
    return device->base.options.profile && command->timing;
}

// ---- commands ----

// Host and devices have one address space, by which CUDA finds out where the bytes lie.
static cuda_address place(const cuda_device *device, const berth_buffer *buffer,
                          uint64_t offset_bytes) {
    if (buffer->device == &device->base) return berth_cuda__address(buffer) + offset_bytes;
    return (cuda_address)(uintptr_t)berth_devices__host_at(buffer, offset_bytes);
}

// The buffer's device, where that is a peer of the stream's.
static const cuda_device *peer_of(const cuda_device *device, const berth_buffer *buffer) {
    bool is_peer = berth_devices__is_peer(&device->base, buffer->device) && !buffer->host;
    return is_peer ? (const cuda_device *)buffer->device : NULL;
}

static berth_status put_peer_copy(const cuda_device *device, cuda_stream stream,
                                  const berth_command *command, const cuda_device *from,
                                  const cuda_device *to) {
    cuda_result result = device->api->cuMemcpyPeerAsync(
        berth_cuda__address(command->copy.destination) + command->copy.destination_offset_bytes,
        to->context, berth_cuda__address(command->copy.source) + command->copy.source_offset_bytes,
        from->context, (size_t)command->copy.size_bytes, stream);
    return berth_cuda__check(device, result, "copy between devices");
}

static berth_status put_copy(const cuda_device *device, cuda_stream stream,
                             const berth_command *command) {
    if (command->copy.size_bytes == 0) return BERTH_OK;
    const cuda_device *from = peer_of(device, command->copy.source);
    const cuda_device *to = peer_of(device, command->copy.destination);
    if (from || to)
        return put_peer_copy(device, stream, command, from ? from : device, to ? to : device);
    cuda_result result = device->api->cuMemcpyAsync(
        place(device, command->copy.destination, command->copy.destination_offset_bytes),
        place(device, command->copy.source, command->copy.source_offset_bytes),
        (size_t)command->copy.size_bytes, stream);
    return berth_cuda__check(device, result, "copy");
}

static berth_status put_fill(const cuda_device *device, cuda_stream stream,
                             const berth_command *command) {
    const cuda_api *api = device->api;
    cuda_address to = berth_cuda__address(command->fill.buffer) + command->fill.offset_bytes;
    uint32_t pattern = command->fill.pattern, unit = command->fill.pattern_bytes;
    size_t count = (size_t)(command->fill.size_bytes / unit);
    cuda_result result = CUDA_OK;
    if (count == 0) return BERTH_OK;
    if (unit == 1)
        result = api->cuMemsetD8Async(to, (unsigned char)pattern, count, stream);
    else if (unit == 2)
        result = api->cuMemsetD16Async(to, (unsigned short)pattern, count, stream);
    else
        result = api->cuMemsetD32Async(to, pattern, count, stream);
    return berth_cuda__check(device, result, "fill");
}

// After all that is before it.
static berth_status run_host_call(cuda_device *device, cuda_queue *queue,
                                  const berth_command *command) {
    BERTH_TRY(berth_cuda__check(device, device->api->cuEventRecord(queue->drained, queue->stream),
                                "finish before a host call"));
    BERTH_TRY(berth_cuda__wait(device, queue->drained, "finish before a host call"));
    berth_cuda__leave(device);  // the call finds the thread as it knows it
    berth_status status = command->host_call.call(command->host_call.user);
    berth_status again = berth_cuda__enter(device, "go on after a host call");
    if (!status) return again;
    berth_status_free(again);
    return status;
}

berth_status berth_cuda__put(const cuda_device *device, cuda_stream stream,
                             const berth_command *command) {
    const uint32_t *groups = command->dispatch.groups;
    switch (command->kind) {
    case BERTH_COMMAND_COPY: return put_copy(device, stream, command);
    case BERTH_COMMAND_FILL: return put_fill(device, stream, command);
    case BERTH_COMMAND_DISPATCH:
        if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return BERTH_OK;
        return berth_cuda__dispatch(device, stream, command);
    case BERTH_COMMAND_TO_DEVICE:
    case BERTH_COMMAND_TO_HOST:
    case BERTH_COMMAND_HOST_CALL: return BERTH_OK;  // no memory is shared in turns
    }
    return BERTH_OK;
}

// ---- submissions ----

static berth_status cuda_record_reserve(berth_queue *queue, void *user, uint32_t command_count) {
    cuda_record *record = user;
    if (!queue->device->options.profile || 2 * command_count <= record->capacity) return BERTH_OK;
    uint32_t capacity = 2 * command_count;
    cuda_event *events =
        berth_resize(queue->device->allocator, record->events, record->capacity * sizeof(*events),
                     capacity * sizeof(*events));
    if (!events) return berth_status_oom();
    for (uint32_t i = record->capacity; i < capacity; ++i) events[i] = NULL;
    record->events = events;
    record->capacity = capacity;
    return BERTH_OK;
}

static berth_status record_event(const cuda_device *device, cuda_stream stream, bool timed,
                                 cuda_event *event) {
    cuda_result result = CUDA_OK;
    if (!*event)
        result = device->api->cuEventCreate(event, timed ? 0 : BERTH_CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_OK) result = device->api->cuEventRecord(*event, stream);
    return berth_cuda__check(device, result, "record an event");
}

static berth_status put_one(cuda_device *device, cuda_queue *queue, const berth_command *command,
                            uint32_t i, cuda_record *record) {
    bool timed = is_timed(device, command);
    bool on_host = command->kind == BERTH_COMMAND_HOST_CALL;
    int64_t before_ns = timed ? berth_clock_ns() : 0;
    if (timed && !on_host) {
        if (record->first_timed == UINT32_MAX) {
            record->first_timed = i;
            record->first_ns = before_ns;
        }
        record->last_timed = i;
        BERTH_TRY(record_event(device, queue->stream, true, &record->events[2 * i]));
    }
    BERTH_TRY(on_host ? run_host_call(device, queue, command)
                      : berth_cuda__put(device, queue->stream, command));
    if (timed && on_host)
        *command->timing = (berth_command_timing){before_ns, berth_clock_ns()};
    else if (timed)
        BERTH_TRY(record_event(device, queue->stream, true, &record->events[2 * i + 1]));
    return BERTH_OK;
}

static berth_status put_all(cuda_device *device, cuda_queue *queue, const berth_command *commands,
                            uint32_t count, const cuda_list *list, cuda_record *record) {
    const cuda_part *part = list ? list->parts : NULL;
    const cuda_part *end = list ? part + list->part_count : NULL;
    for (uint32_t i = 0; i < count; ++i) {
        if (part < end && part->first == i) {
            BERTH_TRY(berth_cuda__check(device,
                                        device->api->cuGraphLaunch(part->graph, queue->stream),
                                        "launch prepared commands"));
            i += part++->count - 1;
            continue;
        }
        berth_status status = put_one(device, queue, &commands[i], i, record);
        if (status && commands[i].label)
            return berth_status_prefix(status, "%s", commands[i].label);
        if (status) return berth_status_prefix(status, "commands[%u]", i);
    }
    return record_event(device, queue->stream, false, &record->end);
}

static berth_status cuda_queue_start(berth_queue *base, const berth_command *commands,
                                     uint32_t count, void *prepared, void *user) {
    cuda_queue *queue = (cuda_queue *)base;
    cuda_device *device = device_of(base);
    cuda_record *record = user;
    record->first_timed = record->last_timed = UINT32_MAX;
    record->has_end = count > 0;
    if (count == 0) return BERTH_OK;
    BERTH_TRY(berth_cuda__enter(device, "submit"));
    berth_status status = put_all(device, queue, commands, count, prepared, record);
    if (status) {  // what was put in before it failed
        berth_status failed = record_event(device, queue->stream, false, &record->end);
        if (!failed) failed = berth_cuda__wait(device, record->end, "finish after a failure");
        berth_status_free(failed);
    }
    berth_cuda__leave(device);
    return status;
}

// Milliseconds between events as nanoseconds; CUDA's resolution is about half a microsecond.
static int64_t between_ns(const cuda_device *device, cuda_event from, cuda_event to) {
    float milliseconds = 0;
    if (device->api->cuEventElapsedTime(&milliseconds, from, to) != CUDA_OK) return 0;
    return (int64_t)((double)milliseconds * 1e6);
}

// Events know the time between each other only. The first one happened after it was put in and after
// all that was timed before it in this queue, and the last one has happened by now; where the stream
// was busy with something else meanwhile, the times are early by that.
static void read_timings(const cuda_device *device, cuda_queue *queue,
                         const berth_command *commands, const cuda_record *record) {
    if (record->first_timed == UINT32_MAX) return;
    cuda_event first = record->events[2 * record->first_timed];
    int64_t now_ns = berth_clock_ns();
    int64_t whole_ns = between_ns(device, first, record->events[2 * record->last_timed + 1]);
    int64_t start_ns = record->first_ns;
    if (start_ns < queue->last_end_ns) start_ns = queue->last_end_ns;
    if (start_ns > now_ns - whole_ns) start_ns = now_ns - whole_ns;
    for (uint32_t i = record->first_timed; i <= record->last_timed; ++i) {
        const berth_command *command = &commands[i];
        if (!is_timed(device, command) || command->kind == BERTH_COMMAND_HOST_CALL) continue;
        command->timing->start_ns = start_ns + between_ns(device, first, record->events[2 * i]);
        command->timing->end_ns = start_ns + between_ns(device, first, record->events[2 * i + 1]);
    }
    queue->last_end_ns = start_ns + whole_ns;
}

static berth_status cuda_queue_finish(berth_queue *base, const berth_command *commands,
                                      uint32_t count, void *user) {
    cuda_queue *queue = (cuda_queue *)base;
    cuda_device *device = device_of(base);
    cuda_record *record = user;
    (void)count;
    if (!record->has_end) return BERTH_OK;
    BERTH_TRY(berth_cuda__enter(device, "run commands"));
    berth_status status = berth_cuda__wait(device, record->end, "run commands");
    if (!status) read_timings(device, queue, commands, record);
    berth_cuda__leave(device);
    return status;
}

static void cuda_record_destroy(berth_queue *base, void *user) {
    cuda_record *record = user;
    const cuda_device *device = device_of(base);
    if (berth_cuda__enter_to_free(device)) {
        if (record->end) (void)device->api->cuEventDestroy_v2(record->end);
        for (uint32_t i = 0; i < record->capacity; ++i)
            if (record->events[i]) (void)device->api->cuEventDestroy_v2(record->events[i]);
        berth_cuda__leave(device);
    }
    berth_free(device->base.allocator, record->events, record->capacity * sizeof(cuda_event));
}

static bool cuda_is_native(berth_queue *queue, const void *user) {
    (void)queue;
    const cuda_record *record = user;
    return record->has_end;
}

// Events are known to all devices of the process.
static bool cuda_wait_native(berth_queue *base, berth_queue *other, const void *user) {
    (void)other;
    const cuda_queue *queue = (const cuda_queue *)base;
    const cuda_device *device = device_of(base);
    const cuda_record *record = user;
    berth_status status = berth_cuda__enter(device, "wait for a queue");
    bool done = !status && device->api->cuStreamWaitEvent(queue->stream, record->end, 0) == CUDA_OK;
    if (!status) berth_cuda__leave(device);
    berth_status_free(status);
    return done;
}

static const berth_host_queue_ops cuda_queue_ops = {
    .is_native = cuda_is_native,
    .wait_native = cuda_wait_native,
    .start = cuda_queue_start,
    .finish = cuda_queue_finish,
    .record_reserve = cuda_record_reserve,
    .record_bytes = sizeof(cuda_record),
    .record_destroy = cuda_record_destroy,
};

// ---- open and close ----

static void close_stream(const cuda_device *device, cuda_queue *queue) {
    if (!berth_cuda__enter_to_free(device)) return;
    if (queue->drained) (void)device->api->cuEventDestroy_v2(queue->drained);
    if (queue->stream && queue->stream != device->callers)
        (void)device->api->cuStreamDestroy_v2(queue->stream);
    berth_cuda__leave(device);
}

static berth_status open_stream(const cuda_device *device, cuda_queue *queue) {
    BERTH_TRY(berth_cuda__enter(device, "open a queue"));
    cuda_result result = CUDA_OK;
    queue->stream = device->callers;
    if (!queue->stream)
        result = device->api->cuStreamCreate(&queue->stream, BERTH_CU_STREAM_NON_BLOCKING);
    if (result == CUDA_OK)
        result = device->api->cuEventCreate(&queue->drained, BERTH_CU_EVENT_DISABLE_TIMING);
    berth_cuda__leave(device);
    return berth_cuda__check(device, result, "open a queue");
}

berth_status berth_cuda__queue_open(berth_device *base, berth_queue_kind kind,
                                    berth_queue **out_queue) {
    (void)kind;  // CUDA chooses the engine by the commands
    const cuda_device *device = (const cuda_device *)base;
    cuda_queue *queue = berth_calloc(base->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    berth_status status = open_stream(device, queue);
    if (!status) status = berth_host_queue_init(&queue->base, base, &cuda_queue_ops);
    queue->base.domain = base->driver;
    if (status) {
        close_stream(device, queue);
        berth_free(base->allocator, queue, sizeof(*queue));
        return status;
    }
    *out_queue = &queue->base.base;
    return BERTH_OK;
}

void berth_cuda__queue_destroy(berth_queue *base) {
    cuda_queue *queue = (cuda_queue *)base;
    const cuda_device *device = device_of(base);
    berth_host_queue_deinit(&queue->base);
    close_stream(device, queue);
    berth_free(device->base.allocator, queue, sizeof(*queue));
}
