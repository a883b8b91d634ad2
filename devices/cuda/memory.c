// Memory 0 is the GPU's own, memory 1 pinned memory of the host, which the GPU copies from and to at
// full speed. The host reaches memory 0 through copies in pinned blocks, which are kept for the next
// map.
#include <inttypes.h>
#include <stdio.h>

#include "devices/cuda/cuda.h"

enum { host_memory = 1, most_kept_maps = 4 };

static berth_status allocate(cuda_device *device, cuda_buffer *buffer, uint64_t size_bytes) {
    const cuda_api *api = device->api;
    if (size_bytes > SIZE_MAX) return berth_status_make(BERTH_OUT_OF_MEMORY, "too many bytes");
    BERTH_TRY(berth_cuda__enter(device, "allocate"));
    cuda_result result;
    if (buffer->base.memory == host_memory) {
        result = api->cuMemHostAlloc(&buffer->pinned, (size_t)size_bytes,
                                     BERTH_CU_MEMHOSTALLOC_PORTABLE);
        buffer->base.host = buffer->pinned;
        // One address space for host and devices: pinned memory has the same address on both.
        buffer->address = (cuda_address)(uintptr_t)buffer->pinned;
    } else {
        result = api->cuMemAlloc_v2(&buffer->address, (size_t)size_bytes);
    }
    berth_cuda__leave(device);
    char what[80];
    snprintf(what, sizeof(what), "allocate %" PRIu64 " bytes%s", size_bytes,
             buffer->base.memory == host_memory ? " of pinned memory" : "");
    return berth_cuda__check(device, result, what);
}

berth_status berth_cuda__buffer_allocate(berth_device *base, uint32_t memory, uint64_t size_bytes,
                                         berth_buffer **out_buffer) {
    cuda_buffer *buffer = berth_calloc(base->allocator, 1, sizeof(*buffer));
    if (!buffer) return berth_status_oom();
    buffer->base.memory = memory;
    berth_status status = allocate((cuda_device *)base, buffer, size_bytes);
    if (status) {
        berth_free(base->allocator, buffer, sizeof(*buffer));
        return status;
    }
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

berth_status berth_cuda__buffer_view(berth_buffer *root, uint64_t offset_bytes, uint64_t size_bytes,
                                     berth_buffer **out_view) {
    (void)size_bytes;
    cuda_buffer *view = berth_calloc(root->device->allocator, 1, sizeof(*view));
    if (!view) return berth_status_oom();
    view->address = berth_cuda__address(root) + offset_bytes;
    if (root->host) view->base.host = berth_devices__host_at(root, offset_bytes);
    *out_view = &view->base;
    return BERTH_OK;
}

void berth_cuda__buffer_free(berth_buffer *base) {
    cuda_buffer *buffer = (cuda_buffer *)base;
    const cuda_device *device = (const cuda_device *)base->device;
    if (!base->root && berth_cuda__enter_to_free(device)) {
        if (buffer->pinned)
            (void)device->api->cuMemFreeHost(buffer->pinned);
        else
            (void)device->api->cuMemFree_v2(buffer->address);
        berth_cuda__leave(device);
    }
    berth_free(device->base.allocator, buffer, sizeof(*buffer));
}

// ---- maps ----

// A block that is not in use, or NULL.
static cuda_map *take_kept(cuda_device *device, uint64_t size_bytes) {
    pthread_mutex_lock(&device->lock);
    cuda_map *best = NULL;
    for (cuda_map *map = device->maps; map; map = map->next)
        if (!map->in_use && map->capacity_bytes >= size_bytes &&
            (!best || map->capacity_bytes < best->capacity_bytes))
            best = map;
    if (best) best->in_use = true;
    pthread_mutex_unlock(&device->lock);
    return best;
}

static berth_status make_map(cuda_device *device, uint64_t size_bytes, cuda_map **out_map) {
    cuda_map *map = berth_calloc(device->base.allocator, 1, sizeof(*map));
    if (!map) return berth_status_oom();
    map->capacity_bytes = size_bytes < 4096 ? 4096 : size_bytes;
    map->in_use = true;
    berth_status status =
        berth_cuda__check(device,
                          device->api->cuMemHostAlloc(&map->host, (size_t)map->capacity_bytes,
                                                      BERTH_CU_MEMHOSTALLOC_PORTABLE),
                          "map: allocate pinned memory");
    if (status) {
        berth_free(device->base.allocator, map, sizeof(*map));
        return status;
    }
    pthread_mutex_lock(&device->lock);
    map->next = device->maps;
    device->maps = map;
    pthread_mutex_unlock(&device->lock);
    *out_map = map;
    return BERTH_OK;
}

static void free_map(cuda_device *device, cuda_map *map) {
    if (!atomic_load(&device->is_lost)) (void)device->api->cuMemFreeHost(map->host);
    berth_free(device->base.allocator, map, sizeof(*map));
}

// Back among those that are kept; the largest of too many goes.
static void keep_map(cuda_device *device, cuda_map *map) {
    pthread_mutex_lock(&device->lock);
    map->in_use = false;
    uint32_t kept = 0;
    cuda_map **largest = NULL;
    for (cuda_map **at = &device->maps; *at; at = &(*at)->next) {
        if ((*at)->in_use) continue;
        kept++;
        if (!largest || (*at)->capacity_bytes > (*largest)->capacity_bytes) largest = at;
    }
    cuda_map *dropped = kept > most_kept_maps ? *largest : NULL;
    if (dropped) *largest = dropped->next;
    pthread_mutex_unlock(&device->lock);
    if (dropped) free_map(device, dropped);
}

void berth_cuda__free_maps(cuda_device *device) {
    for (cuda_map *map = device->maps, *next; map; map = next) {
        next = map->next;
        free_map(device, map);
    }
    device->maps = NULL;
}

// One copy between the block and the device, and the wait for it, under the lock: they share a
// stream and an event.
static berth_status copy_now(cuda_device *device, const cuda_map *map, bool to_device) {
    const cuda_api *api = device->api;
    if (map->size_bytes == 0) return BERTH_OK;
    size_t size = (size_t)map->size_bytes;
    pthread_mutex_lock(&device->lock);
    cuda_result result =
        to_device ? api->cuMemcpyHtoDAsync_v2(map->address, map->host, size, device->transfer)
                  : api->cuMemcpyDtoHAsync_v2(map->host, map->address, size, device->transfer);
    if (result == CUDA_OK) result = api->cuEventRecord(device->transferred, device->transfer);
    berth_status status = berth_cuda__check(device, result, to_device ? "unmap" : "map");
    if (!status)
        status = berth_cuda__wait(device, device->transferred, to_device ? "unmap" : "map");
    pthread_mutex_unlock(&device->lock);
    return status;
}

berth_status berth_cuda__buffer_map(berth_buffer *base, uint64_t offset_bytes, uint64_t size_bytes,
                                    bool write_only, void **out_data) {
    cuda_device *device = (cuda_device *)base->device;
    if (base->host) {
        *out_data = berth_devices__host_at(base, offset_bytes);
        return BERTH_OK;
    }
    BERTH_TRY(berth_cuda__enter(device, "map"));
    berth_status status = BERTH_OK;
    cuda_map *map = take_kept(device, size_bytes);
    if (!map) status = make_map(device, size_bytes, &map);
    if (!status) {
        map->address = berth_cuda__address(base) + offset_bytes;
        map->size_bytes = size_bytes;
        if (!write_only) status = copy_now(device, map, false);
        if (status) keep_map(device, map);
    }
    berth_cuda__leave(device);
    if (!status) *out_data = map->host;
    return status;
}

static cuda_map *find_map(cuda_device *device, const void *data) {
    pthread_mutex_lock(&device->lock);
    cuda_map *map = device->maps;
    while (map && !(map->in_use && map->host == data)) map = map->next;
    pthread_mutex_unlock(&device->lock);
    return map;
}

berth_status berth_cuda__buffer_unmap(berth_buffer *base, void *data) {
    cuda_device *device = (cuda_device *)base->device;
    if (base->host) return BERTH_OK;
    cuda_map *map = find_map(device, data);
    if (!map) return berth_status_make(BERTH_INVALID_ARGUMENT, "unmap: that is not mapped");
    BERTH_TRY(berth_cuda__enter(device, "unmap"));
    berth_status status = copy_now(device, map, true);
    keep_map(device, map);
    berth_cuda__leave(device);
    return status;
}
