#include "executor/workspaces.h"

#include "base/alloc.h"

struct berth_workspace {
    berth_workspace *next;
    berth_device *device;
    berth_buffer *buffer;
    uint64_t size_bytes;
    uint32_t memory;
    bool taken;          // by the session that is opened, or by a value
    uint32_t idle_runs;  // that ended since then
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

// A new one, in front of the others.
static berth_status add(berth_workspaces *workspaces, berth_device *device, uint32_t memory,
                        uint64_t generous_bytes, uint64_t size_bytes) {
    berth_workspace *made = berth_calloc(berth_allocator_system(), 1, sizeof(*made));
    if (!made) return berth_status_oom();
    *made = (berth_workspace){.next = workspaces->first, .device = device, .memory = memory};
    berth_status status = allocate(made, generous_bytes, size_bytes);
    if (status) {
        berth_free(berth_allocator_system(), made, sizeof(*made));
        return status;
    }
    workspaces->first = made;
    workspaces->made_count++;
    workspaces->reserved_bytes += made->size_bytes;
    return BERTH_OK;
}

// Blocks that no value took in the last `idle_runs` runs.
static void drop(berth_workspaces *blocks, uint32_t idle_runs) {
    for (berth_workspace **link = &blocks->first; *link;) {
        berth_workspace *w = *link;
        if (w->taken || w->idle_runs < idle_runs) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        blocks->reserved_bytes -= w->size_bytes;
        berth_buffer_free(w->buffer);
        berth_free(berth_allocator_system(), w, sizeof(*w));
    }
}

// To eight sizes for each power of two.
static uint64_t rounded(uint64_t size_bytes) {
    uint64_t unit = 32;
    while (size_bytes / unit >= 16) unit *= 2;
    return (size_bytes + unit - 1) / unit * unit;
}

berth_status berth_workspaces_take(berth_workspaces *workspaces, berth_device *device,
                                   uint32_t memory, uint64_t size_bytes,
                                   berth_buffer **out_buffer) {
    const bool of_values = workspaces->of_values;
    const uint64_t limit = workspaces->limit_bytes;
    berth_workspace *best = NULL;
    uint64_t largest = 0, held = 0, taken = 0;
    *out_buffer = NULL;
    if (of_values) size_bytes = rounded(size_bytes);
    for (berth_workspace *w = workspaces->first; w; w = w->next) {
        if (w->device != device || w->memory != memory) continue;
        held += w->size_bytes;
        if (w->taken) {
            taken += w->size_bytes;
            continue;
        }
        if (w->size_bytes > largest) largest = w->size_bytes;
        if (of_values ? w->size_bytes == size_bytes
                      : w->size_bytes >= size_bytes && (!best || w->size_bytes < best->size_bytes))
            best = w;
    }
    if (!best) {
        const uint64_t generous = of_values ? 0 : largest + largest / 2;
        if (limit && held + size_bytes > limit) drop(workspaces, 0);
        if (limit && taken + size_bytes > limit)
            return berth_status_make(BERTH_OUT_OF_MEMORY,
                                     "values need more of a device's memory than their limit of "
                                     "%llu bytes: there was no room for one of %llu",
                                     (unsigned long long)limit, (unsigned long long)size_bytes);
        BERTH_TRY(add(workspaces, device, memory, generous > size_bytes ? generous : size_bytes,
                      size_bytes));
        best = workspaces->first;
    }
    best->taken = true;
    best->idle_runs = 0;
    *out_buffer = best->buffer;
    return BERTH_OK;
}

void berth_workspaces_give(berth_workspaces *workspaces, berth_buffer *buffer) {
    for (berth_workspace *w = buffer ? workspaces->first : NULL; w; w = w->next)
        if (w->buffer == buffer) w->taken = false;
}

void berth_workspaces_end_run(berth_workspaces *workspaces) {
    enum { kept_runs = 4 };
    for (berth_workspace *w = workspaces->first; w; w = w->next) w->idle_runs++;
    drop(workspaces, kept_runs);
}

uint64_t berth_workspaces_bytes(const berth_workspaces *workspaces) {
    return workspaces->reserved_bytes;
}

void berth_workspaces_close(berth_workspaces *workspaces) {
    for (berth_workspace *next; workspaces->first; workspaces->first = next) {
        next = workspaces->first->next;
        berth_buffer_free(workspaces->first->buffer);
        berth_free(berth_allocator_system(), workspaces->first, sizeof(*workspaces->first));
    }
}
