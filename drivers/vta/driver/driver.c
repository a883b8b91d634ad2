// The driver for VTA devices, a library that programs load (devices/library.h): memory of their own,
// streams as executables, and a transport (transport.h) to where they run.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "devices/host_queue.h"
#include "devices/internal.h"
#include "devices/library.h"
#include "drivers/vta/driver/pool.h"
#include "drivers/vta/driver/transport.h"
#include "drivers/vta/image.h"

typedef struct vta_device {
    berth_device base;
    berth_vta_config config;
    berth_vta_isa isa;
    berth_vta_transport *transport;
    berth_vta_pool pool;
    pthread_mutex_t running;  // one run at a time
} vta_device;

typedef struct vta_buffer {
    berth_buffer base;
    berth_vta_range range;  // empty in views
    uint64_t offset;        // in the pool
} vta_buffer;

typedef struct vta_kernel {
    berth_vta_range constants, stream;
} vta_kernel;

typedef struct vta_executable {
    berth_executable base;
    void *data;  // a copy of the image, which `image` points into
    size_t data_bytes;
    berth_vta_image image;
    vta_kernel *kernels;  // by index in the image
} vta_executable;

static vta_device *device_of(berth_device *device) {
    return (vta_device *)device;
}

// ---- buffers ----

// What this process sees of a buffer: its own memory, or a host-visible buffer of another device.
static uint8_t *bytes_of(const berth_buffer *buffer, const berth_device *device,
                         uint64_t offset_bytes) {
    if (buffer->device != device && buffer->host)
        return berth_devices__host_at(buffer, offset_bytes);
    const vta_device *own = (const vta_device *)buffer->device;
    return own->pool.memory.data + ((const vta_buffer *)buffer)->offset + offset_bytes;
}

static berth_status vta_buffer_allocate(berth_device *base, uint32_t memory, uint64_t size_bytes,
                                        berth_buffer **out_buffer) {
    (void)memory;
    vta_device *device = device_of(base);
    vta_buffer *buffer = berth_calloc(base->allocator, 1, sizeof(*buffer));
    if (!buffer) return berth_status_oom();
    berth_status status = berth_vta_pool_take(&device->pool, size_bytes, &buffer->range);
    if (status) {
        berth_free(base->allocator, buffer, sizeof(*buffer));
        return status;
    }
    buffer->offset = buffer->range.offset;
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

static berth_status vta_buffer_view(berth_buffer *root, uint64_t offset_bytes, uint64_t size_bytes,
                                    berth_buffer **out_view) {
    (void)size_bytes;
    vta_buffer *view = berth_calloc(root->device->allocator, 1, sizeof(*view));
    if (!view) return berth_status_oom();
    view->offset = ((vta_buffer *)root)->offset + offset_bytes;
    *out_view = &view->base;
    return BERTH_OK;
}

static void vta_buffer_free(berth_buffer *base) {
    vta_buffer *buffer = (vta_buffer *)base;
    berth_vta_pool_give(&device_of(base->device)->pool, &buffer->range);
    berth_free(base->device->allocator, buffer, sizeof(*buffer));
}

static berth_status vta_buffer_map(berth_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes,
                                   bool write_only, void **out_data) {
    (void)size_bytes;
    (void)write_only;
    *out_data = bytes_of(buffer, buffer->device, offset_bytes);
    return BERTH_OK;
}

static berth_status vta_buffer_unmap(berth_buffer *buffer, void *data) {
    (void)buffer;
    (void)data;
    return BERTH_OK;
}

// ---- executables ----

static void vta_executable_destroy(berth_executable *base) {
    vta_executable *executable = (vta_executable *)base;
    berth_allocator allocator = base->device->allocator;
    vta_device *device = device_of(base->device);
    for (uint32_t i = 0; executable->kernels && i < executable->image.kernel_count; ++i) {
        berth_vta_pool_give(&device->pool, &executable->kernels[i].constants);
        berth_vta_pool_give(&device->pool, &executable->kernels[i].stream);
    }
    if (executable->kernels)
        berth_free(allocator, executable->kernels,
                   (executable->image.kernel_count + 1) * sizeof(*executable->kernels));
    berth_vta_image_free(&executable->image);
    if (executable->data) berth_free(allocator, executable->data, executable->data_bytes);
    berth_free(allocator, executable, sizeof(*executable));
}

// Puts a kernel into the device's memory, after it was found fit.
static berth_status place_kernel(vta_device *device, const berth_vta_kernel *k, vta_kernel *out) {
    berth_allocator allocator = device->base.allocator;
    BERTH_TRY(berth_vta_kernel_check(allocator, &device->config, k, device->transport->boards));
    BERTH_TRY(berth_vta_pool_take(&device->pool, k->constant_bytes, &out->constants));
    if (k->constant_bytes)
        memcpy(device->pool.memory.data + out->constants.offset, k->constants, k->constant_bytes);
    return berth_vta_pool_take(
        &device->pool, (uint64_t)k->instruction_count * BERTH_VTA_INSTRUCTION_BYTES, &out->stream);
}

static berth_status load_image(vta_device *device, const berth_executable_image *image,
                               vta_executable *executable) {
    berth_allocator allocator = device->base.allocator;
    executable->data = berth_alloc(allocator, image->size_bytes);
    if (!executable->data) return berth_status_oom();
    executable->data_bytes = image->size_bytes;
    memcpy(executable->data, image->data, image->size_bytes);
    BERTH_TRY(
        berth_vta_image_read(allocator, executable->data, image->size_bytes, &executable->image));
    if (!berth_vta_config_equal(&executable->image.config, &device->config)) {
        char made[96], has[96];
        berth_vta_config_text(&executable->image.config, made);
        berth_vta_config_text(&device->config, has);
        return berth_status_make(
            BERTH_INCOMPATIBLE,
            "the kernels were made for a VTA of configuration %s, and this one "
            "is %s",
            made, has);
    }
    executable->kernels =
        berth_calloc(allocator, executable->image.kernel_count + 1, sizeof(*executable->kernels));
    if (!executable->kernels) return berth_status_oom();
    for (uint32_t i = 0; i < executable->image.kernel_count; ++i)
        BERTH_TRY(place_kernel(device, &executable->image.kernels[i], &executable->kernels[i]));
    return BERTH_OK;
}

static berth_status vta_executable_load(berth_device *base, const berth_executable_image *image,
                                        berth_executable **out_executable) {
    if (strcmp(image->format, BERTH_VTA_FORMAT) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE, "VTA devices run \"%s\", not \"%s\"",
                                 BERTH_VTA_FORMAT, image->format);
    vta_executable *executable = berth_calloc(base->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    executable->base.device = base;  // for destroy; the core sets it again
    berth_status status = load_image(device_of(base), image, executable);
    if (status) {
        vta_executable_destroy(&executable->base);
        return status;
    }
    *out_executable = &executable->base;
    return BERTH_OK;
}

static berth_status check_record(const berth_vta_kernel *k, const berth_program_kernel *record) {
    if (record->constant_count > 0)
        return berth_status_make(BERTH_INCOMPATIBLE, "kernel %s: streams have no constants",
                                 record->entry);
    bool same = record->binding_count == k->binding_count;
    for (uint32_t i = 0; same && record->bindings && i < k->binding_count; ++i)
        same = record->bindings[i].size_bytes == k->bindings[i].size_bytes &&
               (record->bindings[i].access & 3u) == (k->bindings[i].access & 3u);
    if (same) return BERTH_OK;
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "kernel %s: the program says otherwise what it does to its buffers "
                             "than its image; the program was changed after it was built",
                             record->entry);
}

static berth_status vta_executable_find(berth_executable *base, const berth_program_kernel *record,
                                        uint32_t *out_kernel) {
    const berth_vta_image *image = &((vta_executable *)base)->image;
    for (uint32_t i = 0; i < image->kernel_count; ++i) {
        if (strcmp(image->kernels[i].name, record->entry) != 0) continue;
        *out_kernel = i;
        return check_record(&image->kernels[i], record);
    }
    return berth_status_make(BERTH_NOT_FOUND, "the image has no kernel %s", record->entry);
}

// ---- queues ----

static berth_status run_kernel(vta_device *device, const berth_command *command) {
    const vta_executable *executable = (const vta_executable *)command->dispatch.executable;
    const berth_vta_kernel *k = &executable->image.kernels[command->dispatch.kernel];
    const vta_kernel *placed = &executable->kernels[command->dispatch.kernel];
    const uint32_t *groups = command->dispatch.groups;
    if (groups[0] != 1 || groups[1] != 1 || groups[2] != 1)
        return berth_status_make(BERTH_UNSUPPORTED, "kernel %s: a stream runs as one group",
                                 k->name);
    uint64_t base = device->pool.memory.base;
    berth_vta_addresses addresses = {.constants = base + placed->constants.offset};
    for (uint32_t i = 0; i < k->binding_count; ++i) {
        const berth_buffer *buffer = command->dispatch.buffers[i];
        if (buffer->size_bytes < k->bindings[i].size_bytes)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "kernel %s: buffer %u has %llu bytes, and %llu are used",
                                     k->name, i, (unsigned long long)buffer->size_bytes,
                                     (unsigned long long)k->bindings[i].size_bytes);
        addresses.bindings[i] = base + ((const vta_buffer *)buffer)->offset;
    }
    uint8_t *stream = device->pool.memory.data + placed->stream.offset;
    pthread_mutex_lock(&device->running);
    berth_status status = berth_vta_relocate(&device->isa, k, &addresses, stream);
    if (!status)
        status = device->transport->ops->run(device->transport, base + placed->stream.offset,
                                             k->instruction_count);
    pthread_mutex_unlock(&device->running);
    return berth_status_prefix(status, "kernel %s", k->name);
}

static void fill(const berth_command *command, uint8_t *data) {
    uint64_t size_bytes = command->fill.size_bytes;
    uint32_t pattern = command->fill.pattern, width = command->fill.pattern_bytes;
    for (uint64_t i = 0; i < size_bytes; ++i) data[i] = (uint8_t)(pattern >> (8 * (i % width)));
}

static berth_status run_command(berth_device *device, const berth_command *c) {
    switch (c->kind) {
    case BERTH_COMMAND_COPY:
        memcpy(bytes_of(c->copy.destination, device, c->copy.destination_offset_bytes),
               bytes_of(c->copy.source, device, c->copy.source_offset_bytes), c->copy.size_bytes);
        return BERTH_OK;
    case BERTH_COMMAND_FILL:
        fill(c, bytes_of(c->fill.buffer, device, c->fill.offset_bytes));
        return BERTH_OK;
    case BERTH_COMMAND_DISPATCH: return run_kernel(device_of(device), c);
    case BERTH_COMMAND_HOST_CALL: return c->host_call.call(c->host_call.user);
    default: return BERTH_OK;  // nothing is shared: nothing changes hands
    }
}

static berth_status vta_queue_start(berth_queue *queue, const berth_command *commands,
                                    uint32_t count, void *prepared, void *record) {
    (void)prepared, (void)record;
    bool profile = queue->device->options.profile;
    for (uint32_t i = 0; i < count; ++i) {
        berth_command_timing *timing = profile ? commands[i].timing : NULL;
        if (timing) timing->start_ns = berth_clock_ns();
        berth_status status = run_command(queue->device, &commands[i]);
        if (status && commands[i].label)
            status = berth_status_prefix(status, "%s", commands[i].label);
        if (status) return status;
        if (timing) timing->end_ns = berth_clock_ns();
    }
    return BERTH_OK;
}

static const berth_host_queue_ops vta_queue_ops = {.start = vta_queue_start};

static berth_status vta_queue_open(berth_device *device, berth_queue_kind kind,
                                   berth_queue **out_queue) {
    (void)kind;  // every queue has a thread of its own
    berth_host_queue *queue = berth_calloc(device->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    berth_status status = berth_host_queue_init(queue, device, &vta_queue_ops);
    if (status) {
        berth_free(device->allocator, queue, sizeof(*queue));
        return status;
    }
    *out_queue = &queue->base;
    return BERTH_OK;
}

static void vta_queue_destroy(berth_queue *base) {
    berth_allocator allocator = base->device->allocator;
    berth_host_queue *queue = (berth_host_queue *)base;
    berth_host_queue_deinit(queue);
    berth_free(allocator, queue, sizeof(*queue));
}

// ---- device and driver ----

static void vta_device_destroy(berth_device *base) {
    vta_device *device = device_of(base);
    if (device->transport) device->transport->ops->close(device->transport);
    pthread_mutex_destroy(&device->pool.lock);
    pthread_mutex_destroy(&device->running);
    berth_free(base->allocator, device, sizeof(*device));
}

static const berth_device_ops vta_device_ops = {
    .destroy = vta_device_destroy,
    .buffer_allocate = vta_buffer_allocate,
    .buffer_view = vta_buffer_view,
    .buffer_free = vta_buffer_free,
    .buffer_map = vta_buffer_map,
    .buffer_unmap = vta_buffer_unmap,
    .executable_load = vta_executable_load,
    .executable_destroy = vta_executable_destroy,
    .executable_find = vta_executable_find,
    .queue_open = vta_queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = berth_host_queue_submit,
    .queue_destroy = vta_queue_destroy,
};

static berth_status vta_open(berth_allocator allocator, berth_driver **out_driver) {
    berth_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->allocator = allocator;
    *out_driver = driver;
    return BERTH_OK;
}

static void vta_close(berth_driver *driver) {
    berth_free(driver->allocator, driver, sizeof(*driver));
}

static uint32_t vta_device_count(berth_driver *driver) {
    (void)driver;
    return 1;
}

// Where a buffer may begin: at a multiple of every element.
static uint32_t alignment_of(const berth_vta_config *config) {
    berth_vta_shape shape;
    uint32_t most = 64;
    berth_status_ignore(berth_vta_shape_make(config, &shape));  // it was checked
    for (int m = 0; m < BERTH_VTA_MEMORY_COUNT; ++m)
        if (shape.memory[m].element_bytes > most) most = shape.memory[m].element_bytes;
    return most;
}

static void describe(const berth_vta_device_options *options, uint32_t ordinal,
                     berth_device_info *out_info) {
    char config[96];
    berth_vta_config_text(&options->config, config);
    *out_info = (berth_device_info){
        .vendor = "Berth",
        .driver_version = "1",
        .ordinal = ordinal,
        .compute_units = 1,
        .lacks_f64 = true,
        .max_group_size = 1,
        .memory_count = 1,
        .memories = {{.scope = "global",
                      .capacity_bytes = options->memory_bytes,
                      .alignment_bytes = alignment_of(&options->config)}},
    };
    snprintf(out_info->name, sizeof(out_info->name), "%s VTA %s",
             options->registers ? "a" : "simulated", config);
}

static berth_status vta_device_info(berth_driver *driver, uint32_t ordinal,
                                    berth_device_info *out_info) {
    (void)driver;
    berth_vta_device_options options;
    BERTH_TRY(berth_vta_device_options_parse(NULL, &options));
    describe(&options, ordinal, out_info);
    return BERTH_OK;
}

static berth_status open_transport(vta_device *device, const berth_vta_device_options *options) {
    berth_vta_shape shape;
    BERTH_TRY(berth_vta_shape_make(&options->config, &shape));
    BERTH_TRY(berth_vta_isa_make(&shape, &device->isa));
    device->config = options->config;
    BERTH_TRY((options->registers ? berth_vta_registers_open : berth_vta_simulator_open)(
        device->base.allocator, options, &device->transport));
    device->pool.memory = device->transport->memory;
    return BERTH_OK;
}

static berth_status vta_device_open(berth_driver *driver, uint32_t ordinal,
                                    const berth_device_options *options,
                                    berth_device **out_device) {
    berth_vta_device_options own;
    BERTH_TRY(berth_vta_device_options_parse(options->attributes, &own));
    vta_device *device = berth_calloc(driver->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    device->base.ops = &vta_device_ops;
    device->base.allocator = driver->allocator;
    pthread_mutex_init(&device->pool.lock, NULL);
    pthread_mutex_init(&device->running, NULL);
    berth_status status = open_transport(device, &own);
    if (status) {
        vta_device_destroy(&device->base);
        return status;
    }
    describe(&own, ordinal, &device->base.info);
    *out_device = &device->base;
    return BERTH_OK;
}

static const berth_driver_ops driver = {
    .kind = "vta",
    .description = "VTA neural processing units: simulated, or by a board's registers",
    .runs_no_kernels = true,  // of what the compiler makes: `local` places nothing on it
    .open = vta_open,
    .close = vta_close,
    .device_count = vta_device_count,
    .device_info = vta_device_info,
    .device_open = vta_device_open,
};
BERTH_DRIVER_LIBRARY(driver)
