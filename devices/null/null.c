// The template driver: a device with host memory that copies and fills, and runs no kernels.
//
// To write a driver, copy this folder to devices/NAME, rename null_ to NAME_, add a line to
// devices/drivers.def and a row to tests/conformance/drivers.c, and go through the numbered marks.
// docs/add_driver.md explains each. Arguments were checked before these functions are called
// (devices/device.c, devices/queue.c); objects start zeroed, with the core's struct first.
#include <stdio.h>
#include <string.h>

#include "devices/host_queue.h"
#include "devices/internal.h"

#define NULL_ALIGNMENT_BYTES 128
#define NULL_CAPACITY_BYTES ((uint64_t)1 << 30)

typedef struct null_device {
    berth_device base;
    // 1. Handles of the opened device: context, memory types, limits.
} null_device;

typedef struct null_buffer {
    berth_buffer base;
    berth_aligned_block block;  // 2. The vendor's memory object. Empty in views and imports.
} null_buffer;

typedef struct null_executable {
    berth_executable base;
    uint32_t kernel_count;  // 3. Module handle, kernel handles and what dispatch needs of each.
} null_executable;

typedef struct null_queue {
    berth_host_queue base;  // 4. After it: the vendor's queue or stream.
} null_queue;

// ---- buffers ----

static berth_status null_buffer_make(berth_device *device, void *host, null_buffer **out_buffer) {
    null_buffer *buffer = berth_calloc(device->allocator, 1, sizeof(*buffer));
    if (!buffer) return berth_status_oom();
    buffer->base.host = host;
    *out_buffer = buffer;
    return BERTH_OK;
}

// 5. Allocate `size_bytes` of memory `memory` (index into info.memories). Set base.host only if the
// host may use the very bytes at any time; otherwise leave it NULL and supply map and unmap.
static berth_status null_buffer_allocate(berth_device *device, uint32_t memory, uint64_t size_bytes,
                                         berth_buffer **out_buffer) {
    (void)memory;
    null_buffer *buffer = NULL;
    BERTH_TRY(null_buffer_make(device, NULL, &buffer));
    berth_status status = berth_devices__aligned_alloc(device->allocator, size_bytes,
                                                       NULL_ALIGNMENT_BYTES, &buffer->block);
    if (status) {
        berth_free(device->allocator, buffer, sizeof(*buffer));
        return status;
    }
    buffer->base.host = buffer->block.data;
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

// 6. A part of `root` that kernels can be given as a buffer of its own. The core keeps the root
// alive as long as the view.
static berth_status null_buffer_view(berth_buffer *root, uint64_t offset_bytes, uint64_t size_bytes,
                                     berth_buffer **out_view) {
    (void)size_bytes;
    null_buffer *view = NULL;
    BERTH_TRY(null_buffer_make(root->device, berth_devices__host_at(root, offset_bytes), &view));
    *out_view = &view->base;
    return BERTH_OK;
}

// 7. Leave out (NULL) unless the device works in host memory. Here the core shares what
// buffer_allocate gives, since it is host-visible; a device that takes turns with the host supplies
// buffer_share as well (devices/opencl/shared.c).
static berth_status null_buffer_import(berth_device *device, void *data, uint64_t size_bytes,
                                       berth_buffer **out_buffer) {
    (void)size_bytes;
    null_buffer *buffer = NULL;
    BERTH_TRY(null_buffer_make(device, data, &buffer));
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

static void null_buffer_free(berth_buffer *base) {
    null_buffer *buffer = (null_buffer *)base;
    berth_allocator allocator = base->device->allocator;
    berth_devices__aligned_free(allocator, &buffer->block);
    berth_free(allocator, buffer, sizeof(*buffer));
}

// ---- executables ----

// 8. Load or build `image`; look at image->format first. The build log goes into the message.
static berth_status null_executable_load(berth_device *device, const berth_executable_image *image,
                                         berth_executable **out_executable) {
    (void)image;
    null_executable *executable = berth_calloc(device->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    *out_executable = &executable->base;
    return BERTH_OK;
}

static void null_executable_destroy(berth_executable *base) {
    berth_free(base->device->allocator, base, sizeof(null_executable));
}

// 9. Look the entry up and keep all that a dispatch of it needs. Indices are dense from 0; asking
// again for the same entry may give a new index.
static berth_status null_executable_find(berth_executable *base, const berth_program_kernel *kernel,
                                         uint32_t *out_kernel) {
    (void)kernel;
    null_executable *executable = (null_executable *)base;
    *out_kernel = executable->kernel_count++;
    return BERTH_OK;
}

// ---- queues ----

static berth_status null_dispatch(berth_device *device, const berth_command *command) {
    (void)command;
    return berth_status_make(BERTH_UNSUPPORTED, "null device %u runs no kernels",
                             device->info.ordinal);
}

// 10. Run the commands (synchronous), or hand them to the vendor's in-order queue and wait for them
// in `finish` (asynchronous; devices/opencl shows it).
static berth_status null_queue_start(berth_queue *queue, const berth_command *commands,
                                     uint32_t count, void *prepared, void *record) {
    (void)prepared, (void)record;
    return berth_host_queue_run_commands(queue->device, NULL, commands, count, null_dispatch);
}

static const berth_host_queue_ops null_queue_ops = {.start = null_queue_start};

static berth_status null_queue_open(berth_device *device, berth_queue_kind kind,
                                    berth_queue **out_queue) {
    (void)kind;  // every queue has a thread of its own
    null_queue *queue = berth_calloc(device->allocator, 1, sizeof(*queue));
    if (!queue) return berth_status_oom();
    berth_status status = berth_host_queue_init(&queue->base, device, &null_queue_ops);
    if (status) {
        berth_free(device->allocator, queue, sizeof(*queue));
        return status;
    }
    *out_queue = &queue->base.base;
    return BERTH_OK;
}

static void null_queue_destroy(berth_queue *base) {
    null_queue *queue = (null_queue *)base;
    berth_allocator allocator = base->device->allocator;
    berth_host_queue_deinit(&queue->base);
    berth_free(allocator, queue, sizeof(*queue));
}

// ---- device and driver ----

static void null_device_destroy(berth_device *device) {
    berth_free(device->allocator, device, sizeof(null_device));
}

static const berth_device_ops null_device_ops = {
    .destroy = null_device_destroy,
    .buffer_allocate = null_buffer_allocate,
    .buffer_view = null_buffer_view,
    .buffer_import = null_buffer_import,
    .buffer_free = null_buffer_free,
    .executable_load = null_executable_load,
    .executable_destroy = null_executable_destroy,
    .executable_find = null_executable_find,
    .queue_open = null_queue_open,
    .queue_reserve = berth_host_queue_reserve,
    .queue_submit = berth_host_queue_submit,
    .queue_destroy = null_queue_destroy,
};

// 11. Load the vendor's library here (base/dynlib.h, a symbol table like devices/opencl's) and list
// the devices. UNAVAILABLE, with what is missing and how to get it, when there are none.
static berth_status null_open(berth_allocator allocator, berth_driver **out_driver) {
    berth_driver *driver = berth_calloc(allocator, 1, sizeof(*driver));
    if (!driver) return berth_status_oom();
    driver->allocator = allocator;
    *out_driver = driver;
    return BERTH_OK;
}

static void null_close(berth_driver *driver) {
    berth_free(driver->allocator, driver, sizeof(*driver));
}

static uint32_t null_device_count(berth_driver *driver) {
    (void)driver;
    return 1;
}

// 12. Facts, without opening the device. The first memory is "global".
static berth_status null_device_info(berth_driver *driver, uint32_t ordinal,
                                     berth_device_info *out_info) {
    (void)driver;
    *out_info = (berth_device_info){
        .name = "null",
        .vendor = "Berth",
        .driver_version = "1",
        .ordinal = ordinal,
        .compute_units = 1,
        .max_group_size = 1,
        .memory_count = 1,
        .memories = {{.scope = "global",
                      .capacity_bytes = NULL_CAPACITY_BYTES,
                      .alignment_bytes = NULL_ALIGNMENT_BYTES,
                      .host_visible = true}},
    };
    return BERTH_OK;
}

// 13. Open device `ordinal`; several opens of one ordinal are devices of their own.
static berth_status null_device_open(berth_driver *driver, uint32_t ordinal,
                                     const berth_device_options *options,
                                     berth_device **out_device) {
    (void)options;
    null_device *device = berth_calloc(driver->allocator, 1, sizeof(*device));
    if (!device) return berth_status_oom();
    device->base.ops = &null_device_ops;
    device->base.allocator = driver->allocator;
    *out_device = &device->base;
    return null_device_info(driver, ordinal, &device->base.info);
}

extern const berth_driver_ops berth_devices__null_driver;
const berth_driver_ops berth_devices__null_driver = {
    .kind = "null",
    .description = "template driver: host memory and copies, no kernels",
    .runs_no_kernels = true,
    .open = null_open,
    .close = null_close,
    .device_count = null_device_count,
    .device_info = null_device_info,
    .device_open = null_device_open,
};
