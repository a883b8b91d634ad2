// Command lists on CUDA devices: graphs, captured once and launched again and again.
#include "devices/cuda/cuda.h"

// Copies from and to memory of others stay out: where the host's is not pinned, the call itself copies.
static bool in_graph(const berth_command_list *list, uint32_t i) {
    const berth_command *command = &list->commands[i];
    if (command->kind == BERTH_COMMAND_COPY)
        return command->copy.source->device == list->device &&
               command->copy.destination->device == list->device;
    return command->kind == BERTH_COMMAND_FILL || command->kind == BERTH_COMMAND_DISPATCH;
}

// The next part from command `i` on; false where there is none. One command alone gains nothing.
static bool next_part(const berth_command_list *list, uint32_t i, cuda_part *out_part) {
    do {
        while (i < list->command_count && !in_graph(list, i)) ++i;
        *out_part = (cuda_part){.first = i};
        while (i < list->command_count && in_graph(list, i)) ++i;
        out_part->count = i - out_part->first;
    } while (out_part->count == 1);
    return out_part->count > 0;
}

static berth_status capture(const cuda_device *device, const berth_command_list *list,
                            const cuda_part *part, cuda_stream stream, cuda_graph *out_graph) {
    const cuda_api *api = device->api;
    BERTH_TRY(berth_cuda__check(
        device, api->cuStreamBeginCapture_v2(stream, BERTH_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "begin a graph"));
    berth_status status = BERTH_OK;
    for (uint32_t i = part->first; i < part->first + part->count && !status; ++i) {
        status = berth_cuda__put(device, stream, &list->commands[i]);
        if (status && list->commands[i].label)
            status = berth_status_prefix(status, "%s", list->commands[i].label);
    }
    cuda_result ended = api->cuStreamEndCapture(stream, out_graph);
    return status ? status : berth_cuda__check(device, ended, "end a graph");
}

static berth_status make_part(const cuda_device *device, const berth_command_list *list,
                              cuda_stream stream, cuda_part *part) {
    cuda_graph graph = NULL;
    berth_status status = capture(device, list, part, stream, &graph);
    if (!status)
        status = berth_cuda__check(device,
                                   device->api->cuGraphInstantiateWithFlags(&part->graph, graph, 0),
                                   "make a graph ready");
    if (graph) (void)device->api->cuGraphDestroy(graph);
    return status;
}

// A stream of its own: that of the queue may be at work.
static berth_status make_parts(const cuda_device *device, const berth_command_list *list,
                               cuda_list *ready) {
    cuda_stream stream = NULL;
    BERTH_TRY(berth_cuda__enter(device, "prepare commands"));
    cuda_result result = device->api->cuStreamCreate(&stream, BERTH_CU_STREAM_NON_BLOCKING);
    berth_status status = berth_cuda__check(device, result, "prepare commands");
    for (uint32_t p = 0; p < ready->part_count && !status; ++p)
        status = make_part(device, list, stream, &ready->parts[p]);
    if (stream) (void)device->api->cuStreamDestroy_v2(stream);
    berth_cuda__leave(device);
    return status;
}

static size_t list_bytes(uint32_t part_count) {
    return sizeof(cuda_list) + part_count * sizeof(cuda_part);
}

berth_status berth_cuda__list_prepare(berth_command_list *list) {
    const cuda_device *device = (const cuda_device *)list->device;
    if (!device->api->cuGraphInstantiateWithFlags) return BERTH_OK;
    cuda_part part = {0};
    uint32_t count = 0;
    while (next_part(list, part.first + part.count, &part)) ++count;
    if (count == 0) return BERTH_OK;
    cuda_list *ready = berth_calloc(device->base.allocator, 1, list_bytes(count));
    if (!ready) return berth_status_oom();
    part = (cuda_part){0};
    while (next_part(list, part.first + part.count, &part))
        ready->parts[ready->part_count++] = part;
    list->prepared = ready;
    berth_status status = make_parts(device, list, ready);
    if (!status) return BERTH_OK;
    berth_cuda__list_destroy(list);
    list->prepared = NULL;
    return status;
}

void berth_cuda__list_destroy(berth_command_list *list) {
    const cuda_device *device = (const cuda_device *)list->device;
    cuda_list *ready = list->prepared;
    if (berth_cuda__enter_to_free(device)) {
        for (uint32_t p = 0; p < ready->part_count; ++p)
            if (ready->parts[p].graph) (void)device->api->cuGraphExecDestroy(ready->parts[p].graph);
        berth_cuda__leave(device);
    }
    berth_free(device->base.allocator, ready, list_bytes(ready->part_count));
}
