// The opencl driver: every device of every platform that the loader knows, in its order. Each
// opened device has a context of its own, so that two of them are two GPUs with separate memories;
// those that are opened as peers have one together, in which OpenCL copies from one to the other.
#include "devices/opencl/opencl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_PLATFORMS 32
#define MAX_DEVICES 64  // of one platform

berth_status berth_opencl__make_buffer(berth_device *device, cl_mem memory, cl_int error,
                                       const char *what, berth_buffer **out_buffer) {
    BERTH_TRY(berth_opencl__check((opencl_device *)device, error, what));
    opencl_buffer *buffer = berth_calloc(device->allocator, 1, sizeof(*buffer));
    if (!buffer) {
        ((opencl_device *)device)->api->clReleaseMemObject(memory);
        return berth_status_oom();
    }
    buffer->memory = memory;
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

static uint64_t device_ulong(const opencl_api *api, cl_device_id id, cl_device_info what) {
    cl_ulong value = 0;
    api->clGetDeviceInfo(id, what, sizeof(value), &value, NULL);
    return value;
}

// ---- memory without maps ----
//
// A map is a command of the device. On processor cores it comes after the kernels that run, since all cores are in
// them (PoCL), and so does the end of an unmap: constants that are read beside kernels would wait for both, each
// time. What OpenCL 2.0 calls a fine-grained buffer (section 5.6.1 of its specification) the host may touch without
// a map, and a buffer object over it is an object like any other. Used on processor cores alone, where that is the
// same memory; on others it may be slower for kernels. A context of several devices would need it of each of them.

enum { DEVICE_SVM_CAPABILITIES = 0x1053, FINE_GRAIN_CAPABILITY = 1 << 1, FINE_GRAIN = 1 << 10 };

static bool has_open_memory(const opencl_device *device, const berth_device_options *options) {
    const berth_device_info *info = &device->base.info;
    return info->is_cpu && info->unified && !options->queue && !options->peers &&
           device->api->svm_alloc &&
           (device_ulong(device->api, device->id, DEVICE_SVM_CAPABILITIES) & FINE_GRAIN_CAPABILITY);
}

// NULL: there is none; the buffer is then one that has to be mapped.
static void *allocate_open(const opencl_device *device, uint64_t size_bytes) {
    if (!device->is_open_memory) return NULL;
    return device->api->svm_alloc(device->context, CL_MEM_READ_WRITE | FINE_GRAIN,
                                  (size_t)size_bytes, 0);
}

// ---- buffers ----

static berth_status opencl_buffer_allocate(berth_device *base, uint32_t memory, uint64_t size_bytes,
                                           berth_buffer **out_buffer) {
    (void)memory;  // there is one
    opencl_device *device = (opencl_device *)base;
    if (size_bytes > device->max_allocation_bytes)
        return berth_status_make(
            BERTH_OUT_OF_MEMORY, "%s allows %" PRIu64 " bytes in one allocation, not %" PRIu64,
            base->info.name, (uint64_t)device->max_allocation_bytes, size_bytes);
    cl_int error = CL_SUCCESS;
    void *open = allocate_open(device, size_bytes);
    cl_mem handle = device->api->clCreateBuffer(
        device->context, CL_MEM_READ_WRITE | (open ? CL_MEM_USE_HOST_PTR : 0), (size_t)size_bytes,
        open, &error);
    berth_status status = berth_opencl__make_buffer(base, handle, error, "allocate", out_buffer);
    if (!status)
        ((opencl_buffer *)*out_buffer)->open = open;
    else if (open)
        device->api->svm_free(device->context, open);
    return status;
}

static berth_status opencl_buffer_view(berth_buffer *root, uint64_t offset_bytes,
                                       uint64_t size_bytes, berth_buffer **out_view) {
    const opencl_device *device = (const opencl_device *)root->device;
    cl_buffer_region region = {.origin = (size_t)offset_bytes, .size = (size_t)size_bytes};
    cl_int error = CL_SUCCESS;
    cl_mem handle = device->api->clCreateSubBuffer(berth_opencl__memory(root), 0,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    BERTH_TRY(berth_opencl__make_buffer(root->device, handle, error, "view", out_view));
    if (root->host) (*out_view)->host = berth_devices__host_at(root, offset_bytes);
    unsigned char *open = ((const opencl_buffer *)root)->open;
    if (open) ((opencl_buffer *)*out_view)->open = open + offset_bytes;
    return BERTH_OK;
}

static void opencl_buffer_free(berth_buffer *base) {
    const opencl_device *device = (const opencl_device *)base->device;
    berth_opencl__buffer_take(base);
    void *open = ((opencl_buffer *)base)->open;
    if (!atomic_load(&device->is_lost)) {  // its kernels may still be at work on it
        device->api->clReleaseMemObject(berth_opencl__memory(base));
        if (open && !base->root) device->api->svm_free(device->context, open);
    }
    berth_free(device->base.allocator, base, sizeof(opencl_buffer));
}

// Waits for a command of the queue for maps.
static berth_status end_transfer(opencl_device *device, cl_event end, const char *what) {
    berth_status status = berth_opencl__check(device, device->api->clFlush(device->transfer), what);
    if (!status) return berth_opencl__wait_and_release(device, end, what);
    device->api->clReleaseEvent(end);
    return status;
}

static berth_status opencl_buffer_map(berth_buffer *buffer, uint64_t offset_bytes,
                                      uint64_t size_bytes, bool write_only, void **out_data) {
    opencl_device *device = (opencl_device *)buffer->device;
    unsigned char *open = ((const opencl_buffer *)buffer)->open;
    if (open) {
        *out_data = open + offset_bytes;
        return BERTH_OK;
    }
    cl_map_flags flags = write_only ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_READ | CL_MAP_WRITE;
    cl_int error = CL_SUCCESS;
    cl_event end = NULL;
    BERTH_TRY(berth_opencl__alive(device, "map"));
    void *data = device->api->clEnqueueMapBuffer(device->transfer, berth_opencl__memory(buffer),
                                                 CL_FALSE, flags, (size_t)offset_bytes,
                                                 (size_t)size_bytes, 0, NULL, &end, &error);
    BERTH_TRY(berth_opencl__check(device, error, "map"));
    BERTH_TRY(end_transfer(device, end, "map"));
    *out_data = data;
    return BERTH_OK;
}

static berth_status opencl_buffer_unmap(berth_buffer *buffer, void *data) {
    if (((const opencl_buffer *)buffer)->open) return BERTH_OK;
    opencl_device *device = (opencl_device *)buffer->device;
    cl_event end = NULL;
    BERTH_TRY(berth_opencl__alive(device, "unmap"));
    BERTH_TRY(berth_opencl__check(device,
                                  device->api->clEnqueueUnmapMemObject(device->transfer,
                                                                       berth_opencl__memory(buffer),
                                                                       data, 0, NULL, &end),
                                  "unmap"));
    return end_transfer(device, end, "unmap");
}

// ---- facts ----

static void device_text(const opencl_api *api, cl_device_id id, cl_device_info what, char *out_text,
                        size_t capacity) {
    // clGetDeviceInfo fails when the text does not fit: read into a larger buffer first.
    char text[1024] = "";
    if (api->clGetDeviceInfo(id, what, sizeof(text), text, NULL) != CL_SUCCESS) text[0] = '\0';
    text[sizeof(text) - 1] = '\0';
    snprintf(out_text, capacity, "%.*s", (int)(capacity - 1), text);
}

static uint32_t device_uint(const opencl_api *api, cl_device_id id, cl_device_info what) {
    cl_uint value = 0;
    api->clGetDeviceInfo(id, what, sizeof(value), &value, NULL);
    return value;
}

// Arguments of a kernel are pointers, and at most so many bytes.
static uint32_t most_bindings(const opencl_api *api, cl_device_id id) {
    size_t argument_bytes = 0;
    api->clGetDeviceInfo(id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(argument_bytes), &argument_bytes,
                         NULL);
    uint32_t pointer_bytes = device_uint(api, id, CL_DEVICE_ADDRESS_BITS) / 8;
    size_t most = pointer_bytes ? argument_bytes / pointer_bytes : 0;
    return most < BERTH_DEVICE_MAX_BINDINGS ? (uint32_t)most : BERTH_DEVICE_MAX_BINDINGS;
}

// Extensions that people ask about. That of f64 is used, and on GPUs that of subgroups (on processor cores sums are of one
// work-item); f16 is stored in 16 bits and computed in 32.
static const char *const extensions[] = {"cl_khr_fp64", "cl_khr_subgroups", "cl_khr_fp16",
                                         "cl_khr_integer_dot_product"};

static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + length, word))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

// "cl_khr_fp64; has and does not use cl_khr_fp16; lacks cl_khr_subgroups"
static void describe_features(const opencl_api *api, cl_device_id id, berth_device_info *info) {
    static const char *const titles[] = {"", "has and does not use ", "lacks "};
    char words[8192] = "", *out = info->features;
    const size_t capacity = sizeof(info->features);
    if (api->clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof(words), words, NULL) != CL_SUCCESS)
        return;  // not known
    words[sizeof(words) - 1] = '\0';
    size_t used_count = info->is_cpu ? 1 : 2;
    if (!info->is_cpu && has_word(words, extensions[1]))
        strcpy(info->kernel_features, strncmp(info->driver_version, "OpenCL 2", 8)
                                          ? "subgroup_arithmetic"
                                          : BERTH_OPENCL_C_2 ",subgroup_arithmetic");
    size_t used = 0;
    for (int kind = 0; kind < 3; ++kind) {
        bool first = true;
        for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]) && used < capacity; ++i) {
            int own = !has_word(words, extensions[i]) ? 2 : i < used_count ? 0 : 1;
            if (own != kind) continue;
            const char *before = !first ? ", " : used ? "; " : "";
            used += (size_t)snprintf(out + used, capacity - used, "%s%s%s", before,
                                     first ? titles[kind] : "", extensions[i]);
            first = false;
        }
    }
}

static berth_status opencl_device_info(berth_driver *base, uint32_t ordinal,
                                       berth_device_info *out_info) {
    const opencl_driver *driver = (const opencl_driver *)base;
    const opencl_api *api = &driver->api;
    cl_device_id id = driver->ordinals[ordinal].device;
    memset(out_info, 0, sizeof(*out_info));
    out_info->ordinal = ordinal;
    device_text(api, id, CL_DEVICE_NAME, out_info->name, sizeof(out_info->name));
    device_text(api, id, CL_DEVICE_VENDOR, out_info->vendor, sizeof(out_info->vendor));
    device_text(api, id, CL_DEVICE_VERSION, out_info->driver_version,
                sizeof(out_info->driver_version));
    out_info->compute_units = device_uint(api, id, CL_DEVICE_MAX_COMPUTE_UNITS);
    out_info->is_cpu = (device_ulong(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
    out_info->unified = device_uint(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    describe_features(api, id, out_info);
    if (!out_info->is_cpu)
        out_info->clock_hz = device_uint(api, id, CL_DEVICE_MAX_CLOCK_FREQUENCY) * 1000000ull;
    out_info->lacks_f64 = device_ulong(api, id, CL_DEVICE_DOUBLE_FP_CONFIG) == 0;
    size_t group = 1;
    api->clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(group), &group, NULL);
    out_info->max_group_size = group;
    out_info->local_memory_bytes = device_ulong(api, id, CL_DEVICE_LOCAL_MEM_SIZE);
    out_info->max_bindings = most_bindings(api, id);
    uint32_t alignment = device_uint(api, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    out_info->memory_count = 1;
    out_info->memories[0] = (berth_memory_info){
        .scope = "global",
        .capacity_bytes = device_ulong(api, id, CL_DEVICE_GLOBAL_MEM_SIZE),
        .alignment_bytes =
            alignment > BERTH_DEFAULT_ALIGNMENT_BYTES ? alignment : BERTH_DEFAULT_ALIGNMENT_BYTES,
    };
    return BERTH_OK;
}

// ---- device ----

static void opencl_device_destroy(berth_device *base) {
    opencl_device *device = (opencl_device *)base;
    if (device->last.end) device->api->clReleaseEvent(device->last.end);
    berth_start_order_deinit(&device->order);
    berth_opencl__wait_destroy(atomic_load(&device->spare_wait));
    if (atomic_load(&device->is_lost)) {  // what might wait for it goes with the process
        device->callers = device->transfer = NULL;
        device->context = NULL;
    }
    if (device->callers) device->api->clReleaseCommandQueue(device->callers);
    if (device->transfer) device->api->clReleaseCommandQueue(device->transfer);
    if (device->context) device->api->clReleaseContext(device->context);
    berth_free(base->allocator, device, sizeof(*device));
}

// The device of the application's queue, among those that the driver lists.
static berth_status find_device(const opencl_driver *driver, cl_command_queue queue, bool profile,
                                uint32_t *out_ordinal) {
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    const opencl_api *api = &driver->api;
    BERTH_TRY(berth_opencl__check(
        NULL, api->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(id), &id, NULL),
        "look at the application's queue"));
    BERTH_TRY(berth_opencl__check(NULL,
                                  api->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES,
                                                             sizeof(properties), &properties, NULL),
                                  "look at the application's queue"));
    bool in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (!in_order || (profile && !(properties & CL_QUEUE_PROFILING_ENABLE)))
        return berth_status_make(BERTH_INCOMPATIBLE, "the application's queue is not %s",
                                 in_order ? "for profiling (CL_QUEUE_PROFILING_ENABLE)"
                                          : "in order (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)");
    for (*out_ordinal = 0; *out_ordinal < driver->ordinal_count; ++*out_ordinal)
        if (driver->ordinals[*out_ordinal].device == id) return BERTH_OK;
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "the application's queue is of no OpenCL device that is listed here");
}

static berth_status use_callers_context(opencl_device *device, cl_command_queue queue) {
    BERTH_TRY(berth_opencl__check(device,
                                  device->api->clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT,
                                                                     sizeof(device->context),
                                                                     &device->context, NULL),
                                  "look at the application's queue"));
    device->api->clRetainContext(device->context);
    device->api->clRetainCommandQueue(queue);
    device->callers = queue;
    return BERTH_OK;
}

static berth_status make_context(const opencl_driver *driver, const opencl_device *device,
                                 uint32_t first, uint32_t count, cl_context *out_context) {
    cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM, (cl_context_properties)driver->ordinals[first].platform, 0};
    cl_device_id ids[MAX_DEVICES] = {NULL};
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; i < count; ++i) ids[i] = driver->ordinals[first + i].device;
    *out_context = driver->api.clCreateContext(properties, count, ids, NULL, NULL, &error);
    return berth_opencl__check(device, error,
                               count > 1 ? "open the devices as peers" : "open the device");
}

// The context of all devices of the platform, kept for its other devices.
static berth_status use_peers_context(opencl_driver *driver, opencl_device *device,
                                      uint32_t ordinal) {
    struct opencl_ordinal *ordinals = driver->ordinals;
    uint32_t first = ordinal, end = ordinal + 1;
    while (first && ordinals[first - 1].platform == ordinals[ordinal].platform) --first;
    while (end < driver->ordinal_count && ordinals[end].platform == ordinals[ordinal].platform)
        ++end;
    pthread_mutex_lock(&driver->lock);
    berth_status status = BERTH_OK;
    if (!ordinals[first].peers)
        status = make_context(driver, device, first, end - first, &ordinals[first].peers);
    if (!status) {
        device->context = ordinals[first].peers;
        device->api->clRetainContext(device->context);
    }
    pthread_mutex_unlock(&driver->lock);
    return status;
}

static berth_status opencl_peer_open(berth_device *base, berth_device *peer) {
    if (((const opencl_device *)base)->context == ((const opencl_device *)peer)->context)
        return BERTH_OK;
    return berth_status_make(BERTH_UNSUPPORTED,
                             "they are of two platforms, or of contexts of the application's");
}

static bool opencl_device_reaches(berth_driver *base, uint32_t ordinal, uint32_t peer) {
    const opencl_driver *driver = (const opencl_driver *)base;
    return driver->ordinals[ordinal].platform == driver->ordinals[peer].platform;
}

static berth_status open_context(opencl_driver *driver, opencl_device *device, uint32_t ordinal,
                                 const berth_device_options *options) {
    if (options->queue)
        BERTH_TRY(use_callers_context(device, options->queue));
    else if (options->peers)
        BERTH_TRY(use_peers_context(driver, device, ordinal));
    else
        BERTH_TRY(make_context(driver, device, ordinal, 1, &device->context));
    cl_int error = CL_SUCCESS;
    device->transfer = device->api->clCreateCommandQueue(device->context, device->id, 0, &error);
    return berth_opencl__check(device, error, "open the device");
}

static const berth_device_ops opencl_device_ops = {
    .destroy = opencl_device_destroy,
    .buffer_allocate = opencl_buffer_allocate,
    .buffer_view = opencl_buffer_view,
    .buffer_share = berth_opencl__buffer_share,
    .buffer_import = berth_opencl__buffer_import,
    .buffer_free = opencl_buffer_free,
    .buffer_map = opencl_buffer_map,
    .buffer_unmap = opencl_buffer_unmap,
    .peer_open = opencl_peer_open,
    .executable_load = berth_opencl__executable_load,
    .executable_destroy = berth_opencl__executable_destroy,
    .executable_find = berth_opencl__executable_find,
    .queue_open = berth_opencl__queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = berth_host_queue_submit,
    .queue_destroy = berth_opencl__queue_destroy,
    .list_prepare = berth_opencl__list_prepare,
    .list_update = berth_opencl__list_update,
    .list_destroy = berth_opencl__list_destroy,
};

static berth_status opencl_device_open(berth_driver *base, uint32_t ordinal,
                                       const berth_device_options *options,
                                       berth_device **out_device) {
    opencl_driver *driver = (opencl_driver *)base;
    if (options->queue) BERTH_TRY(find_device(driver, options->queue, options->profile, &ordinal));
    opencl_device *device = berth_calloc(base->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    berth_start_order_init(&device->order);
    device->base.ops = &opencl_device_ops;
    device->base.allocator = base->allocator;
    device->api = &driver->api;
    device->id = driver->ordinals[ordinal].device;
    device->max_allocation_bytes =
        device_ulong(&driver->api, device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device->pointer_alignment_bytes =
        device_uint(&driver->api, device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    berth_status status = opencl_device_info(base, ordinal, &device->base.info);
    if (!status)
        status = berth_devices__read_timeout("opencl", options->attributes, &device->timeout_ns);
    if (!status) status = open_context(driver, device, ordinal, options);
    device->is_open_memory = !status && has_open_memory(device, options);
    if (status) {
        opencl_device_destroy(&device->base);
        return status;
    }
    *out_device = &device->base;
    return BERTH_OK;
}

// ---- driver ----

static berth_status add_platform(opencl_driver *driver, cl_platform_id platform) {
    cl_device_id ids[MAX_DEVICES];
    cl_uint count = 0;
    cl_int error =
        driver->api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &count);
    if (error == CL_DEVICE_NOT_FOUND) return BERTH_OK;
    BERTH_TRY(berth_opencl__check(NULL, error, "list its devices"));
    if (count > MAX_DEVICES) count = MAX_DEVICES;
    size_t size = sizeof(*driver->ordinals);
    struct opencl_ordinal *ordinals =
        berth_resize(driver->base.allocator, driver->ordinals, driver->ordinal_count * size,
                     (driver->ordinal_count + count) * size);
    if (!ordinals) return berth_status_oom();
    driver->ordinals = ordinals;
    for (cl_uint i = 0; i < count; ++i)
        ordinals[driver->ordinal_count++] =
            (struct opencl_ordinal){.platform = platform, .device = ids[i]};
    return BERTH_OK;
}

static berth_status enumerate(opencl_driver *driver) {
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    cl_int error = driver->api.clGetPlatformIDs(MAX_PLATFORMS, platforms, &count);
    if (error != CL_SUCCESS || count == 0)
        return berth_status_make(
            BERTH_UNAVAILABLE,
            "the OpenCL loader is here but no platform is installed (error "
            "%d); Debian: pocl-opencl-icd for CPUs, or the GPU vendor's driver",
            (int)error);
    if (count > MAX_PLATFORMS) count = MAX_PLATFORMS;
    berth_status broken = BERTH_OK;  // the first platform that is: others serve without it
    for (cl_uint i = 0; i < count; ++i) {
        berth_status status = add_platform(driver, platforms[i]);
        if (status && !broken)
            broken = berth_status_prefix(status, "OpenCL platform %u", i);
        else
            berth_status_free(status);
    }
    if (broken && driver->ordinal_count == 0) return broken;
    driver->broken = broken;
    if (broken) driver->base.lacking = berth_status_message(broken);
    if (driver->ordinal_count == 0)
        return berth_status_make(BERTH_UNAVAILABLE, "%u OpenCL platform%s, but no device", count,
                                 count == 1 ? " is here" : "s are here");
    return BERTH_OK;
}

static void opencl_close(berth_driver *base) {
    opencl_driver *driver = (opencl_driver *)base;
    for (uint32_t i = 0; i < driver->ordinal_count; ++i)
        if (driver->ordinals[i].peers) driver->api.clReleaseContext(driver->ordinals[i].peers);
    pthread_mutex_destroy(&driver->lock);
    berth_status_free(driver->broken);
    berth_free(base->allocator, driver->ordinals,
               driver->ordinal_count * sizeof(*driver->ordinals));
    berth_dynlib_abandon(driver->api.library);  // platforms keep threads of their own
    berth_free(base->allocator, driver, sizeof(*driver));
}

static berth_status opencl_open(berth_allocator allocator, berth_driver **out_driver) {
    opencl_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->base.allocator = allocator;
    pthread_mutex_init(&driver->lock, NULL);
    berth_status status = berth_opencl__api_load(&driver->api);
    if (!status) status = enumerate(driver);
    if (status) {
        opencl_close(&driver->base);
        return status;
    }
    *out_driver = &driver->base;
    return BERTH_OK;
}

static uint32_t opencl_device_count(berth_driver *driver) {
    return ((opencl_driver *)driver)->ordinal_count;
}

extern const berth_driver_ops berth_devices__opencl_driver;
const berth_driver_ops berth_devices__opencl_driver = {
    .kind = "opencl",
    .description = "OpenCL devices of all installed platforms (libOpenCL, loaded at run time)",
    .takes_queue = true,
    .open = opencl_open,
    .close = opencl_close,
    .device_count = opencl_device_count,
    .device_info = opencl_device_info,
    .device_open = opencl_device_open,
    .device_reaches = opencl_device_reaches,
};
