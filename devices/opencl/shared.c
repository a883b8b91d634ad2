// Buffers that host and device share, by the rules of OpenCL 1.2 (section 5.4.3 of its
// specification): the host may touch memory of a device only while it is mapped, and the device
// must not use an object that is mapped for writing, nor write one that is mapped for reading. So
// TO_HOST maps and TO_DEVICE unmaps; on devices with unified memory that is at most upkeep of
// caches. What has an object of its own (a sub-buffer) changes hands on its own: objects that do
// not overlap may be on different sides.
//
// Zero copies are what the caller was promised, so a device without unified memory says no, and a
// map that gives another address than the first is a failure. CL_MEM_ALLOC_HOST_PTR is the flag for
// which the vendors of mobile GPUs promise memory without copies; memory of the caller's
// (CL_MEM_USE_HOST_PTR) keeps its address by the specification, but an implementation may keep a
// copy of it behind our back: share first, import where the memory is there already.
#include <inttypes.h>

#include "devices/opencl/opencl.h"

static berth_status map(opencl_device *device, cl_command_queue queue, opencl_buffer *buffer,
                        bool read_only, bool blocking) {
    cl_map_flags flags = read_only ? CL_MAP_READ : CL_MAP_READ | CL_MAP_WRITE;
    static const char what[] = "hand a shared buffer to the host";
    cl_int error = CL_SUCCESS;
    buffer->mapped = device->api->clEnqueueMapBuffer(
        queue, buffer->memory, CL_FALSE, flags, 0,
        buffer->base.size_bytes ? (size_t)buffer->base.size_bytes : 1, 0, NULL, NULL, &error);
    berth_status status = berth_opencl__check(device, error, what);
    if (status) buffer->mapped = NULL;
    return status || !blocking ? status : berth_opencl__drain(device, queue, what);
}

static berth_status unmap(const opencl_device *device, cl_command_queue queue,
                          opencl_buffer *buffer) {
    void *mapped = buffer->mapped;
    buffer->mapped = NULL;
    return berth_opencl__check(
        device, device->api->clEnqueueUnmapMemObject(queue, buffer->memory, mapped, 0, NULL, NULL),
        "hand a shared buffer to the device");
}

static berth_status moved(const opencl_device *device) {
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "%s gives shared memory another address each time: give it a memory of its own in the "
        "target",
        device->base.info.name);
}

static berth_status make_shared(opencl_device *device, void *data, uint64_t size_bytes,
                                berth_buffer **out_buffer) {
    if (!device->base.info.unified)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "%s does not work in host memory (CL_DEVICE_HOST_UNIFIED_MEMORY is false): give it a "
            "memory of its own in the target",
            device->base.info.name);
    if (size_bytes > device->max_allocation_bytes)
        return berth_status_make(
            BERTH_OUT_OF_MEMORY, "%s allows %" PRIu64 " bytes in one allocation, not %" PRIu64,
            device->base.info.name, (uint64_t)device->max_allocation_bytes, size_bytes);
    cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR);
    cl_int error = CL_SUCCESS;
    cl_mem handle =
        device->api->clCreateBuffer(device->context, flags, (size_t)size_bytes, data, &error);
    BERTH_TRY(berth_opencl__make_buffer(&device->base, handle, error,
                                        data ? "use memory of the host" : "allocate shared memory",
                                        out_buffer));
    opencl_buffer *buffer = (opencl_buffer *)*out_buffer;
    buffer->base.device = &device->base;  // the core sets them when this returns
    buffer->base.size_bytes = size_bytes;
    berth_status status = map(device, device->transfer, buffer, false, true);
    if (!status && data && buffer->mapped != data) status = moved(device);
    buffer->base.host = buffer->mapped;
    if (!status) return BERTH_OK;
    device->base.ops->buffer_free(&buffer->base);
    *out_buffer = NULL;
    return status;
}

berth_status berth_opencl__buffer_share(berth_device *base, uint64_t size_bytes,
                                        berth_buffer **out_buffer) {
    return make_shared((opencl_device *)base, NULL, size_bytes, out_buffer);
}

berth_status berth_opencl__buffer_import(berth_device *base, void *data, uint64_t size_bytes,
                                         berth_buffer **out_buffer) {
    opencl_device *device = (opencl_device *)base;
    if (size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "import: there are no bytes");
    if (device->pointer_alignment_bytes && (uintptr_t)data % device->pointer_alignment_bytes != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "import: %s needs memory whose address is a multiple of %u bytes",
                                 base->info.name, device->pointer_alignment_bytes);
    return make_shared(device, data, size_bytes, out_buffer);
}

void berth_opencl__buffer_take(berth_buffer *base) {
    opencl_buffer *buffer = (opencl_buffer *)base;
    opencl_device *device = (opencl_device *)base->device;
    if (!buffer->mapped || atomic_load(&device->is_lost)) return;
    berth_status_free(unmap(device, device->transfer, buffer));
    berth_status_ignore(berth_opencl__drain(device, device->transfer, "unmap"));
}

static berth_status hand_over_one(opencl_device *device, cl_command_queue queue,
                                  const berth_command *command, opencl_buffer *buffer) {
    bool to_device = command->kind == BERTH_COMMAND_TO_DEVICE;
    if (to_device == !buffer->mapped) return BERTH_OK;  // it is there already
    if (to_device) return unmap(device, queue, buffer);
    BERTH_TRY(map(device, queue, buffer, command->hand_over.read_only, false));
    return buffer->mapped == buffer->base.host ? BERTH_OK : moved(device);
}

berth_status berth_opencl__hand_over(opencl_device *device, cl_command_queue queue,
                                     const berth_command *command, cl_event *event) {
    for (uint32_t i = 0; i < command->hand_over.buffer_count; ++i)
        BERTH_TRY(
            hand_over_one(device, queue, command, (opencl_buffer *)command->hand_over.buffers[i]));
    if (!event) return BERTH_OK;
    return berth_opencl__check(device,
                               device->api->clEnqueueMarkerWithWaitList(queue, 0, NULL, event),
                               "hand over shared buffers");
}
