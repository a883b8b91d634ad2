// Kernels on OpenCL devices: built from source when loaded.
#include <stdlib.h>
#include <string.h>

#include "devices/opencl/opencl.h"

// The driver's build log as a status. Only the failure of a build comes here: malloc is for the
// message alone.
static berth_status build_failure(const opencl_device *device, cl_program program, cl_int error) {
    size_t size_bytes = 0;
    const opencl_api *api = device->api;
    char *log = NULL;
    if (api->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL,
                                   &size_bytes) == CL_SUCCESS)
        log = calloc(1, size_bytes + 1);
    if (log)
        api->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size_bytes, log,
                                   NULL);
    berth_status reason = berth_opencl__check(NULL, error, "build");
    berth_status status = berth_status_make(
        error == CL_COMPILER_NOT_AVAILABLE ? BERTH_UNAVAILABLE : BERTH_INVALID_ARGUMENT,
        "OpenCL kernels do not build on %s (%s); the build log:\n%s", device->base.info.name,
        berth_status_message(reason), log && *log ? log : "(empty)");
    berth_status_free(reason);
    free(log);
    return status;
}

static berth_status build(const opencl_device *device, const berth_executable_image *image,
                          cl_program *out_program) {
    const opencl_api *api = device->api;
    if (image->size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the OpenCL source is empty");
    const char *source = image->data;
    size_t length = (size_t)image->size_bytes;
    cl_int error = CL_SUCCESS;
    cl_program program =
        api->clCreateProgramWithSource(device->context, 1, &source, &length, &error);
    BERTH_TRY(berth_opencl__check(device, error, "create a program"));
    error = api->clBuildProgram(program, 1, &device->id, image->options ? image->options : "", NULL,
                                NULL);
    if (error != CL_SUCCESS) {
        berth_status status = build_failure(device, program, error);
        api->clReleaseProgram(program);
        return status;
    }
    *out_program = program;
    return BERTH_OK;
}

// ---- executables ----

static void free_executable(opencl_executable *executable, berth_allocator allocator) {
    berth_free(allocator, executable->declarations.text, executable->declarations.size_bytes);
    berth_free(allocator, executable, sizeof(*executable));
}

berth_status berth_opencl__executable_load(berth_device *base, const berth_executable_image *image,
                                           berth_executable **out_executable) {
    const opencl_device *device = (const opencl_device *)base;
    if (strcmp(image->format, BERTH_FORMAT_OPENCL_C) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "opencl devices build \"%s\" images, not \"%s\"",
                                 BERTH_FORMAT_OPENCL_C, image->format);
    opencl_executable *executable = berth_calloc(base->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    executable->base.device = base;
    berth_status status = berth_devices__keep_declarations(
        base->allocator, image->data, (size_t)image->size_bytes, &executable->declarations);
    if (!status) status = build(device, image, &executable->program);
    if (status) {
        free_executable(executable, base->allocator);
        return status;
    }
    pthread_mutex_init(&executable->lock, NULL);
    *out_executable = &executable->base;
    return BERTH_OK;
}

void berth_opencl__executable_destroy(berth_executable *base) {
    opencl_executable *executable = (opencl_executable *)base;
    const opencl_device *device = (const opencl_device *)base->device;
    for (uint32_t i = 0; i < executable->kernel_count; ++i)
        device->api->clReleaseKernel(executable->kernels[i]);
    device->api->clReleaseProgram(executable->program);
    berth_free(device->base.allocator, executable->kernels,
               executable->kernel_capacity * sizeof(cl_kernel));
    pthread_mutex_destroy(&executable->lock);
    free_executable(executable, device->base.allocator);
}

static berth_status reserve_kernel(opencl_executable *executable) {
    cl_kernel *kernels = berth_devices__reserve_one(executable->base.device->allocator,
                                                    executable->kernels, executable->kernel_count,
                                                    &executable->kernel_capacity, sizeof(*kernels));
    if (!kernels) return berth_status_oom();
    executable->kernels = kernels;
    return BERTH_OK;
}

static berth_status check_argument_count(const opencl_device *device, cl_kernel handle,
                                         const berth_program_kernel *kernel) {
    cl_uint count = 0;
    BERTH_TRY(berth_opencl__check(
        device,
        device->api->clGetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL),
        kernel->entry));
    if (count == kernel->binding_count + kernel->constant_count) return BERTH_OK;
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "OpenCL kernel \"%s\" has %u arguments; the program binds %u buffers "
                             "and %u constants",
                             kernel->entry, count, kernel->binding_count, kernel->constant_count);
}

berth_status berth_opencl__executable_find(berth_executable *base,
                                           const berth_program_kernel *kernel,
                                           uint32_t *out_kernel) {
    opencl_executable *executable = (opencl_executable *)base;
    const opencl_device *device = (const opencl_device *)base->device;
    const opencl_api *api = device->api;
    BERTH_TRY(berth_devices__check_declared_line(base->device->allocator, kernel,
                                                 &executable->declarations));
    BERTH_TRY(reserve_kernel(executable));
    cl_int error = CL_SUCCESS;
    cl_kernel handle = api->clCreateKernel(executable->program, kernel->entry, &error);
    if (error == CL_INVALID_KERNEL_NAME)
        return berth_status_make(BERTH_NOT_FOUND, "the OpenCL program has no kernel \"%s\"",
                                 kernel->entry);
    BERTH_TRY(berth_opencl__check(device, error, kernel->entry));
    berth_status status = check_argument_count(device, handle, kernel);
    if (status) {
        api->clReleaseKernel(handle);
        return status;
    }
    executable->kernels[executable->kernel_count] = handle;
    *out_kernel = executable->kernel_count++;
    return BERTH_OK;
}

static cl_int set_arguments(const opencl_api *api, cl_kernel kernel, const berth_command *command) {
    cl_uint index = 0;
    for (uint32_t i = 0; i < command->dispatch.buffer_count; ++i) {
        cl_mem memory = berth_opencl__memory(command->dispatch.buffers[i]);
        cl_int error = api->clSetKernelArg(kernel, index++, sizeof(memory), &memory);
        if (error != CL_SUCCESS) return error;
    }
    for (uint32_t i = 0; i < command->dispatch.constant_count; ++i) {
        cl_long value = command->dispatch.constants[i];
        cl_int error = api->clSetKernelArg(kernel, index++, sizeof(value), &value);
        if (error != CL_SUCCESS) return error;
    }
    return CL_SUCCESS;
}

berth_status berth_opencl__set_buffers(const opencl_device *device, const berth_command *command,
                                       cl_kernel kernel) {
    for (uint32_t i = 0; i < command->dispatch.buffer_count; ++i) {
        cl_mem memory = berth_opencl__memory(command->dispatch.buffers[i]);
        BERTH_TRY(berth_opencl__check(
            device, device->api->clSetKernelArg(kernel, i, sizeof(memory), &memory),
            "set a buffer"));
    }
    return BERTH_OK;
}

berth_status berth_opencl__dispatch(const opencl_device *device, cl_command_queue queue,
                                    const berth_command *command, cl_kernel ready,
                                    cl_event *event) {
    opencl_executable *executable = (opencl_executable *)command->dispatch.executable;
    cl_kernel kernel = ready ? ready : executable->kernels[command->dispatch.kernel];
    size_t items[3], group[3];
    for (int i = 0; i < 3; ++i) {
        group[i] = command->dispatch.group_size[i];
        items[i] = group[i] * command->dispatch.groups[i];
    }
    cl_int error = CL_SUCCESS;
    if (!ready) {
        pthread_mutex_lock(&executable->lock);
        error = set_arguments(device->api, kernel, command);
    }
    if (error == CL_SUCCESS)
        error = device->api->clEnqueueNDRangeKernel(queue, kernel, 3, NULL, items, group, 0, NULL,
                                                    event);
    if (!ready) pthread_mutex_unlock(&executable->lock);
    return berth_opencl__check(device, error, "dispatch");
}

berth_status berth_opencl__ready_kernel(const opencl_device *device, const berth_command *command,
                                        cl_kernel *out_kernel) {
    const opencl_executable *executable = (const opencl_executable *)command->dispatch.executable;
    const opencl_api *api = device->api;
    char name[1024];  // what is longer is refused: INVALID_VALUE
    BERTH_TRY(
        berth_opencl__check(device,
                            api->clGetKernelInfo(executable->kernels[command->dispatch.kernel],
                                                 CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL),
                            "prepare a kernel"));
    cl_int error = CL_SUCCESS;
    *out_kernel = api->clCreateKernel(executable->program, name, &error);
    BERTH_TRY(berth_opencl__check(device, error, name));
    return berth_opencl__check(device, set_arguments(api, *out_kernel, command), name);
}
