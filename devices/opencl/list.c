// Command lists on OpenCL devices: a kernel object for every dispatch, whose arguments are set once; commands
// are enqueued one by one. Command buffers are an extension (cl_khr_command_buffer) that was slower than this
// where it could be measured (docs/add_driver.md, OpenCL platforms).
#include "devices/opencl/opencl.h"

berth_status berth_opencl__list_prepare(berth_command_list *list) {
    const opencl_device *device = (const opencl_device *)list->device;
    if (list->command_count == 0) return BERTH_OK;
    cl_kernel *kernels =
        berth_calloc(device->base.allocator, list->command_count, sizeof(cl_kernel));
    if (!kernels) return berth_status_oom();
    list->prepared = kernels;
    for (uint32_t i = 0; i < list->command_count; ++i) {
        const berth_command *command = &list->commands[i];
        if (command->kind != BERTH_COMMAND_DISPATCH) continue;
        berth_status status = berth_opencl__ready_kernel(device, command, &kernels[i]);
        if (!status) continue;
        berth_opencl__list_destroy(list);
        list->prepared = NULL;
        return command->label ? berth_status_prefix(status, "%s", command->label) : status;
    }
    return BERTH_OK;
}

void berth_opencl__list_destroy(berth_command_list *list) {
    const opencl_device *device = (const opencl_device *)list->device;
    cl_kernel *kernels = list->prepared;
    for (uint32_t i = 0; i < list->command_count; ++i)
        if (kernels[i]) device->api->clReleaseKernel(kernels[i]);
    berth_free(device->base.allocator, kernels, list->command_count * sizeof(cl_kernel));
}

// A kernel whose arguments cannot be set goes: the dispatch sets them itself then, and says what is wrong.
void berth_opencl__list_update(berth_command_list *list) {
    const opencl_device *device = (const opencl_device *)list->device;
    cl_kernel *kernels = list->prepared;
    for (uint32_t i = 0; i < list->command_count; ++i) {
        if (!kernels[i]) continue;
        berth_status status = berth_opencl__set_buffers(device, &list->commands[i], kernels[i]);
        if (!status) continue;
        berth_status_free(status);
        device->api->clReleaseKernel(kernels[i]);
        kernels[i] = NULL;
    }
}
