// The cuda driver: every NVIDIA GPU that libcuda lists, in its order (CUDA_VISIBLE_DEVICES, which
// libcuda reads, chooses).
#include "devices/cuda/cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "devices/kept_file.h"

// ---- facts ----

static int attribute(const cuda_api *api, cuda_device_id id, cuda_enum which) {
    int value = 0;
    return api->cuDeviceGetAttribute(&value, which, id) == CUDA_OK && value > 0 ? value : 0;
}

static int capability_of(const cuda_api *api, cuda_device_id id) {
    return 10 * attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
           attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

static berth_status find_device(const cuda_driver *driver, uint32_t ordinal,
                                cuda_device_id *out_id) {
    char where[32];
    snprintf(where, sizeof(where), "cuda device %u", ordinal);
    return berth_cuda__check_driver(&driver->api, driver->api.cuDeviceGet(out_id, (int)ordinal),
                                    where, "find the device");
}

// What kernels use, as cuda_device_info finds it.
static const char feature_names[] = "sums by shuffles of a warp\0"
                                    "matrix units (mma.sync)\0"
                                    "cp.async\0"
                                    "wgmma\0"
                                    "cp.async.bulk\0"
                                    "graphs\0"
                                    "NVRTC\0";

static berth_status cuda_device_info(berth_driver *base, uint32_t ordinal,
                                     berth_device_info *out_info) {
    const cuda_driver *driver = (const cuda_driver *)base;
    const cuda_api *api = &driver->api;
    cuda_device_id id = 0;
    memset(out_info, 0, sizeof(*out_info));
    BERTH_TRY(find_device(driver, ordinal, &id));
    out_info->ordinal = ordinal;
    if (api->cuDeviceGetName(out_info->name, (int)sizeof(out_info->name), id) != CUDA_OK)
        snprintf(out_info->name, sizeof(out_info->name), "NVIDIA GPU");
    out_info->name[sizeof(out_info->name) - 1] = '\0';
    snprintf(out_info->vendor, sizeof(out_info->vendor), "NVIDIA");
    int version = 0, capability = capability_of(api, id);
    (void)api->cuDriverGetVersion(&version);
    snprintf(out_info->driver_version, sizeof(out_info->driver_version), "CUDA %d.%d",
             version / 1000, version % 1000 / 10);
    bool has_warpgroups = capability == 90;  // instructions that later ones do not have
    snprintf(out_info->arch, sizeof(out_info->arch), "sm_%d%s", capability,
             has_warpgroups ? "a" : "");
    const bool has[] = {capability >= 70,
                        capability >= 80,
                        capability >= 80,
                        has_warpgroups,
                        has_warpgroups,
                        api->cuGraphInstantiateWithFlags != NULL,
                        driver->nvrtc.library != NULL};
    snprintf(out_info->features, sizeof(out_info->features), "%s", out_info->arch);
    berth_devices__put_features(out_info->features, sizeof(out_info->features), feature_names, has);
    out_info->compute_units =
        (uint32_t)attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    // Clocks are in kHz; memory moves two words in each (as CUDA's sample deviceQuery counts).
    out_info->clock_hz =
        UINT64_C(1000) * (uint64_t)attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    out_info->bandwidth_bytes_per_s =
        UINT64_C(250) * (uint64_t)attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
        (uint64_t)attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    out_info->cache_bytes[1] =
        (uint64_t)attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    int threads = attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out_info->max_group_size = threads ? (uint64_t)threads : 1;
    int shared = attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    int asked = attribute(api, id, BERTH_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    out_info->local_memory_bytes = (uint64_t)(asked > shared ? asked : shared);
    size_t capacity = 0;
    if (api->cuDeviceTotalMem_v2(&capacity, id) != CUDA_OK) capacity = 0;
    out_info->memory_count = 2;
    // cuMemAlloc's alignment (CUDA C++ Programming Guide, "Device Memory Accesses").
    out_info->memories[0] =
        (berth_memory_info){.scope = "global", .capacity_bytes = capacity, .alignment_bytes = 256};
    out_info->memories[1] =
        (berth_memory_info){.scope = "host", .alignment_bytes = 256, .host_visible = true};
    return BERTH_OK;
}

// ---- device ----

static void cuda_device_destroy(berth_device *base) {
    cuda_device *device = (cuda_device *)base;
    if (device->context) {
        bool frees = berth_cuda__enter_to_free(device);
        berth_cuda__free_maps(device);
        if (frees) {
            if (device->transferred) (void)device->api->cuEventDestroy_v2(device->transferred);
            if (device->transfer) (void)device->api->cuStreamDestroy_v2(device->transfer);
            berth_cuda__leave(device);
            (void)device->api->cuDevicePrimaryCtxRelease_v2(device->id);
        }
    }
    if (device->cache_folder >= 0) close(device->cache_folder);
    pthread_mutex_destroy(&device->lock);
    berth_free(base->allocator, device, sizeof(*device));
}

static bool cuda_device_reaches(berth_driver *base, uint32_t ordinal, uint32_t peer) {
    const cuda_api *api = &((const cuda_driver *)base)->api;
    cuda_device_id ids[2] = {0, 0};
    int yes = 0;
    return api->cuDeviceGet(&ids[0], (int)ordinal) == CUDA_OK &&
           api->cuDeviceGet(&ids[1], (int)peer) == CUDA_OK &&
           api->cuDeviceCanAccessPeer(&yes, ids[0], ids[1]) == CUDA_OK && yes;
}

// Without access CUDA copies all the same, by way of the host.
static berth_status cuda_peer_open(berth_device *base, berth_device *other) {
    const cuda_device *device = (const cuda_device *)base, *peer = (const cuda_device *)other;
    int yes = 0;
    BERTH_TRY(berth_cuda__check(
        device, device->api->cuDeviceCanAccessPeer(&yes, device->id, peer->id), "look for peers"));
    if (!yes)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "this machine gives them no access to each other's memory");
    BERTH_TRY(berth_cuda__enter(device, "open a peer"));
    cuda_result result = device->api->cuCtxEnablePeerAccess(peer->context, 0);
    berth_cuda__leave(device);
    if (result == BERTH_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return BERTH_OK;
    return berth_cuda__check(device, result, "open a peer");
}

static const berth_device_ops cuda_device_ops = {
    .destroy = cuda_device_destroy,
    .buffer_allocate = berth_cuda__buffer_allocate,
    .buffer_view = berth_cuda__buffer_view,
    .buffer_free = berth_cuda__buffer_free,
    .buffer_map = berth_cuda__buffer_map,
    .buffer_unmap = berth_cuda__buffer_unmap,
    .peer_open = cuda_peer_open,
    .executable_load = berth_cuda__executable_load,
    .executable_destroy = berth_cuda__executable_destroy,
    .executable_find = berth_cuda__executable_find,
    .queue_open = berth_cuda__queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = berth_host_queue_submit,
    .queue_destroy = berth_cuda__queue_destroy,
    .list_prepare = berth_cuda__list_prepare,
    .list_destroy = berth_cuda__list_destroy,
};

// Streams of the runtime API, and of what is built on that, are in their device's primary context, where our
// memory is, too.
static berth_status use_callers_stream(cuda_device *device, cuda_stream stream) {
    cuda_context context = NULL;
    BERTH_TRY(berth_cuda__check(device, device->api->cuStreamGetCtx(stream, &context),
                                "look at the application's stream"));
    if (context != device->context)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "the application's stream is in a context of its own, and not in "
                                 "the primary one of its device");
    device->callers = stream;
    return BERTH_OK;
}

// The device of the application's stream.
static berth_status device_of_stream(const cuda_driver *driver, cuda_stream stream,
                                     uint32_t *out_ordinal) {
    const cuda_api *api = &driver->api;
    static const char doing[] = "look at the application's stream";
    cuda_context context = NULL, popped = NULL;
    cuda_device_id id = 0, listed = 0;
    BERTH_TRY(berth_cuda__check_driver(api, api->cuStreamGetCtx(stream, &context), doing, doing));
    BERTH_TRY(berth_cuda__check_driver(api, api->cuCtxPushCurrent_v2(context), doing, doing));
    cuda_result result = api->cuCtxGetDevice(&id);
    (void)api->cuCtxPopCurrent_v2(&popped);
    BERTH_TRY(berth_cuda__check_driver(api, result, doing, doing));
    for (*out_ordinal = 0; *out_ordinal < driver->count; ++*out_ordinal)
        if (api->cuDeviceGet(&listed, (int)*out_ordinal) == CUDA_OK && listed == id)
            return BERTH_OK;
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "the application's stream is of no CUDA device that is listed here");
}

static berth_status open_context(cuda_device *device, cuda_stream stream) {
    const cuda_api *api = device->api;
    BERTH_TRY(berth_cuda__check(device, api->cuDevicePrimaryCtxRetain(&device->context, device->id),
                                "open the device"));
    if (stream) BERTH_TRY(use_callers_stream(device, stream));
    BERTH_TRY(berth_cuda__enter(device, "open the device"));
    cuda_result result = api->cuStreamCreate(&device->transfer, BERTH_CU_STREAM_NON_BLOCKING);
    if (result == CUDA_OK)
        result = api->cuEventCreate(&device->transferred, BERTH_CU_EVENT_DISABLE_TIMING);
    berth_cuda__leave(device);
    return berth_cuda__check(device, result, "open the device");
}

static berth_status cuda_device_open(berth_driver *base, uint32_t ordinal,
                                     const berth_device_options *options,
                                     berth_device **out_device) {
    const cuda_driver *driver = (const cuda_driver *)base;
    cuda_device *device = berth_calloc(base->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    device->base.ops = &cuda_device_ops;
    device->base.allocator = base->allocator;
    device->api = &driver->api;
    pthread_mutex_init(&device->lock, NULL);
    device->cache_folder = berth_kept_folder_open(options->cache_folder, "cuda");
    berth_status status =
        berth_devices__read_timeout("cuda", options->attributes, &device->timeout_ns);
    if (!status && options->queue) status = device_of_stream(driver, options->queue, &ordinal);
    if (!status) status = cuda_device_info(base, ordinal, &device->base.info);
    if (!status) status = find_device(driver, ordinal, &device->id);
    if (!status) {
        device->capability = capability_of(&driver->api, device->id);
        (void)driver->api.cuDriverGetVersion(&device->driver_version);
        status = open_context(device, options->queue);
    }
    if (status) {
        cuda_device_destroy(&device->base);
        return status;
    }
    *out_device = &device->base;
    return BERTH_OK;
}

// ---- driver ----

static void cuda_close(berth_driver *base) {
    cuda_driver *driver = (cuda_driver *)base;
    berth_dynlib_abandon(driver->api.library);  // they have threads and exit handlers of their own
    berth_dynlib_abandon(driver->nvrtc.library);
    berth_status_free(driver->no_nvrtc);
    berth_free(base->allocator, driver, sizeof(*driver));
}

static berth_status cuda_open(berth_allocator allocator, berth_driver **out_driver) {
    cuda_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->base.allocator = allocator;
    int count = 0;
    berth_status status = berth_cuda__api_load(&driver->api);
    if (!status)
        status = berth_cuda__check_driver(&driver->api, driver->api.cuInit(0),
                                          "NVIDIA's driver is here, but does not start", "cuInit");
    if (!status)
        status = berth_cuda__check_driver(&driver->api, driver->api.cuDeviceGetCount(&count),
                                          "NVIDIA's driver is here", "count the devices");
    if (!status && count < 1)
        status =
            berth_status_make(BERTH_UNAVAILABLE, "NVIDIA's driver is here, but lists no device");
    if (status) {
        cuda_close(&driver->base);
        return status;
    }
    driver->count = (uint32_t)count;
    // Devices without kernels serve, too.
    driver->no_nvrtc = berth_cuda__nvrtc_load(&driver->nvrtc);
    if (driver->no_nvrtc) driver->base.lacking = berth_status_message(driver->no_nvrtc);
    *out_driver = &driver->base;
    return BERTH_OK;
}

static uint32_t cuda_device_count(berth_driver *driver) {
    return ((cuda_driver *)driver)->count;
}

extern const berth_driver_ops berth_devices__cuda_driver;
const berth_driver_ops berth_devices__cuda_driver = {
    .kind = "cuda",
    .description = "NVIDIA GPUs (libcuda and NVRTC, loaded at run time)",
    .open = cuda_open,
    .close = cuda_close,
    .device_count = cuda_device_count,
    .device_info = cuda_device_info,
    .device_open = cuda_device_open,
    .takes_queue = true,
    .device_reaches = cuda_device_reaches,
};
