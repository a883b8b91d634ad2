#include "executor/workspaces.h"

#include "base/alloc.h"

struct berth_workspace {
    berth_workspace *next;
    berth_device *device;
    berth_buffer *buffer;
    uint64_t size_bytes;
    uint32_t memory;
    bool taken;  // by the session that is opened
};

void berth_workspaces_begin(berth_workspaces *workspaces) {
    for (berth_workspace *w = workspaces->first; w; w = w->next) w->taken = false;
}

// The generous size, or, where there is no room for it, the one that is needed.
static berth_status allocate(berth_workspace *w, uint64_t generous_bytes, uint64_t size_bytes) {
    w->size_bytes = generous_bytes;
    berth_status status = berth_buffer_allocate(w->device, w->memory, generous_bytes, &w->buffer);
    if (!status || generous_bytes == size_bytes) return status;
    berth_status_free(status);
    w->size_bytes = size_bytes;
    return berth_buffer_allocate(w->device, w->memory, size_bytes, &w->buffer);
}

berth_status berth_workspaces_take(berth_workspaces *workspaces, berth_device *device,
                                   uint32_t memory, uint64_t size_bytes,
                                   berth_buffer **out_buffer) {
    berth_workspace *best = NULL;
    uint64_t largest = 0;
    *out_buffer = NULL;
    for (berth_workspace *w = workspaces->first; w; w = w->next) {
        if (w->device != device || w->memory != memory || w->taken) continue;
        if (w->size_bytes > largest) largest = w->size_bytes;
        if (w->size_bytes >= size_bytes && (!best || w->size_bytes < best->size_bytes)) best = w;
    }
    if (!best) {
        best = berth_calloc(berth_allocator_system(), 1, sizeof(*best));
        if (!best) return berth_status_oom();
        *best = (berth_workspace){.next = workspaces->first, .device = device, .memory = memory};
        uint64_t generous = largest + largest / 2;
        berth_status status =
            allocate(best, generous > size_bytes ? generous : size_bytes, size_bytes);
        if (status) {
            berth_free(berth_allocator_system(), best, sizeof(*best));
            return status;
        }
        workspaces->first = best;
    }
    best->taken = true;
    *out_buffer = best->buffer;
    return BERTH_OK;
}

uint64_t berth_workspaces_bytes(const berth_workspaces *workspaces) {
    uint64_t bytes = 0;
    for (const berth_workspace *w = workspaces->first; w; w = w->next) bytes += w->size_bytes;
    return bytes;
}

void berth_workspaces_close(berth_workspaces *workspaces) {
    for (berth_workspace *next; workspaces->first; workspaces->first = next) {
        next = workspaces->first->next;
        berth_buffer_free(workspaces->first->buffer);
        berth_free(berth_allocator_system(), workspaces->first, sizeof(*workspaces->first));
    }
}
