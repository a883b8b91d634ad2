// Kernels on CUDA devices: modules, compiled from source when loaded.
#include <stdio.h>
#include <string.h>

#include "devices/cuda/cuda.h"

static berth_status load_module(const cuda_device *device, const void *code, cuda_module *out) {
    char log[4096] = "";
    cuda_enum options[] = {BERTH_CU_JIT_ERROR_LOG_BUFFER, BERTH_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    BERTH_TRY(berth_cuda__enter(device, "load kernels"));
    cuda_result result = device->api->cuModuleLoadDataEx(out, code, 2, options, values);
    berth_cuda__leave(device);
    log[sizeof(log) - 1] = '\0';
    berth_status status = berth_cuda__check(device, result, "load kernels");
    return status && *log ? berth_status_prefix(status, "%s", log) : status;
}

static bool is_of_host(const berth_executable_image *image) {
    return strcmp(image->format, BERTH_FORMAT_CPU_ELF) == 0;
}

static berth_status check_image(const berth_executable_image *image) {
    if (is_of_host(image)) return BERTH_OK;
    if (strcmp(image->format, BERTH_FORMAT_CUDA_C) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE, "cuda devices build \"%s\" images, not \"%s\"",
                                 BERTH_FORMAT_CUDA_C, image->format);
    if (image->size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the CUDA source is empty");
    return BERTH_OK;
}

static berth_status compile_and_load(cuda_executable *executable, const char *source) {
    cuda_device *device = (cuda_device *)executable->base.device;
    void *code = NULL;
    size_t code_bytes = 0;
    BERTH_TRY(berth_devices__keep_declarations(device->base.allocator, source, strlen(source),
                                               &executable->declarations));
    BERTH_TRY(berth_cuda__compile(device, source, &code, &code_bytes));
    berth_status status = load_module(device, code, &executable->module);
    berth_free(device->base.allocator, code, code_bytes);
    return status;
}

// NVRTC wants a string: images of other makers may lack the zero byte at the end.
static berth_status fill_executable(cuda_executable *executable,
                                    const berth_executable_image *image) {
    berth_allocator allocator = executable->base.device->allocator;
    size_t size_bytes = (size_t)image->size_bytes;
    char *source = berth_calloc(allocator, 1, size_bytes + 1);
    if (!source) return berth_status_oom();
    memcpy(source, image->data, size_bytes);
    berth_status status = compile_and_load(executable, source);
    berth_free(allocator, source, size_bytes + 1);
    return status;
}

// Code that the host runs. What it opens is of the device's context.
static berth_status load_host_code(cuda_executable *executable,
                                   const berth_executable_image *image) {
    const cuda_device *device = (const cuda_device *)executable->base.device;
    berth_allocator allocator = device->base.allocator;
    BERTH_TRY(berth_devices__check_needs(allocator, image->options));
    BERTH_TRY(berth_dynlib_open_memory(image->data, (size_t)image->size_bytes, "berth-kernels",
                                       &executable->host.library));
    berth_status status = berth_cuda__enter(device, "load kernels");
    if (!status) {
        status = berth_devices__import(&executable->host, allocator);
        berth_cuda__leave(device);
    }
    if (status) berth_dynlib_close(executable->host.library);
    return status;
}

static void free_executable(cuda_executable *executable, berth_allocator allocator) {
    berth_free(allocator, executable->declarations.text, executable->declarations.size_bytes);
    berth_free(allocator, executable, sizeof(*executable));
}

berth_status berth_cuda__executable_load(berth_device *base, const berth_executable_image *image,
                                         berth_executable **out_executable) {
    BERTH_TRY(check_image(image));
    cuda_executable *executable = berth_calloc(base->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    executable->base.device = base;
    berth_status status =
        is_of_host(image) ? load_host_code(executable, image) : fill_executable(executable, image);
    if (status) {
        free_executable(executable, base->allocator);
        return status;
    }
    *out_executable = &executable->base;
    return BERTH_OK;
}

void berth_cuda__executable_destroy(berth_executable *base) {
    cuda_executable *executable = (cuda_executable *)base;
    const cuda_device *device = (const cuda_device *)base->device;
    if (berth_cuda__enter_to_free(device)) {
        if (executable->module) (void)device->api->cuModuleUnload(executable->module);
        berth_dynlib_close(executable->host.library);
        berth_cuda__leave(device);
    }
    berth_devices__import_end(&executable->host, base->device->allocator);
    berth_free(base->device->allocator, executable->kernels,
               executable->kernel_capacity * sizeof(*executable->kernels));
    free_executable(executable, base->device->allocator);
}

static berth_status reserve_kernel(cuda_executable *executable) {
    struct cuda_kernel *kernels = berth_devices__reserve_one(
        executable->base.device->allocator, executable->kernels, executable->kernel_count,
        &executable->kernel_capacity, sizeof(*kernels));
    if (!kernels) return berth_status_oom();
    executable->kernels = kernels;
    return BERTH_OK;
}

// Where libcuda tells (CUDA 12.4), that the kernel takes as many values as the program passes.
static berth_status check_parameters(const cuda_device *device, cuda_function function,
                                     const berth_program_kernel *kernel) {
    uint32_t wanted = kernel->binding_count + kernel->constant_count;
    if (wanted > CUDA_MAX_VALUES)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "kernel \"%s\" takes %u values; a launch passes %d at most",
                                 kernel->entry, wanted, (int)CUDA_MAX_VALUES);
    if (!device->api->cuFuncGetParamInfo) return BERTH_OK;
    uint32_t count = 0;
    size_t offset = 0, bytes = 0;
    while (count <= wanted &&
           device->api->cuFuncGetParamInfo(function, count, &offset, &bytes) == CUDA_OK) {
        if (bytes != 8)
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "parameter %u of the CUDA kernel \"%s\" has %zu bytes, not 8",
                                     count, kernel->entry, bytes);
        count++;
    }
    if (count == wanted) return BERTH_OK;
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "the CUDA kernel \"%s\" has %s parameters than the %u buffers and %u "
                             "constants that the program binds",
                             kernel->entry, count > wanted ? "more" : "fewer",
                             kernel->binding_count, kernel->constant_count);
}

// More shared memory than a kernel may declare is asked for once, and given by each launch.
static berth_status ask_for_shared(const cuda_executable *executable,
                                   const berth_program_kernel *kernel, struct cuda_kernel *out) {
    const cuda_device *device = (const cuda_device *)executable->base.device;
    uint64_t bytes = berth_devices__declared_number(&executable->declarations, kernel->entry,
                                                    BERTH_CUDA_SHARED_SUFFIX);
    if (bytes == 0) return BERTH_OK;
    if (bytes == UINT64_MAX)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the code does not say in bytes how much shared memory kernel "
                                 "\"%s\" takes",
                                 kernel->entry);
    if (bytes > device->base.info.local_memory_bytes)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "kernel \"%s\" takes %llu bytes of shared memory, and a block has "
                                 "%llu on %s; build the program for this device",
                                 kernel->entry, (unsigned long long)bytes,
                                 (unsigned long long)device->base.info.local_memory_bytes,
                                 device->base.info.name);
    out->shared_bytes = (uint32_t)bytes;
    return berth_cuda__check(
        device,
        device->api->cuFuncSetAttribute(
            out->function, BERTH_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes),
        kernel->entry);
}

static berth_status find(const cuda_executable *executable, const berth_program_kernel *kernel,
                         struct cuda_kernel *out) {
    const cuda_device *device = (const cuda_device *)executable->base.device;
    const cuda_api *api = device->api;
    cuda_result result =
        api->cuModuleGetFunction(&out->function, executable->module, kernel->entry);
    if (result == BERTH_CUDA_ERROR_NOT_FOUND)
        return berth_status_make(BERTH_NOT_FOUND, "the CUDA program has no kernel \"%s\"",
                                 kernel->entry);
    BERTH_TRY(berth_cuda__check(device, result, kernel->entry));
    BERTH_TRY(check_parameters(device, out->function, kernel));
    BERTH_TRY(ask_for_shared(executable, kernel, out));
    int threads = 0;
    result = api->cuFuncGetAttribute(&threads, BERTH_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                     out->function);
    out->most_threads = threads > 0 ? (uint32_t)threads : 0;
    BERTH_TRY(berth_cuda__check(device, result, kernel->entry));
    uint64_t size = (uint64_t)kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
    if (size <= out->most_threads) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "kernel \"%s\" runs in blocks of %llu threads, and its registers and "
                             "shared memory allow %u on %s",
                             kernel->entry, (unsigned long long)size, out->most_threads,
                             device->base.info.name);
}

berth_status berth_cuda__executable_find(berth_executable *base, const berth_program_kernel *kernel,
                                         uint32_t *out_kernel) {
    cuda_executable *executable = (cuda_executable *)base;
    const cuda_device *device = (const cuda_device *)base->device;
    BERTH_TRY(berth_devices__check_declared_line(base->device->allocator, kernel,
                                                 &executable->declarations));
    BERTH_TRY(reserve_kernel(executable));
    struct cuda_kernel found = {0};
    if (executable->host.library) {
        BERTH_TRY(berth_devices__find_function(&executable->host, "cuda", base->device->allocator,
                                               kernel, &found.call));
    } else {
        BERTH_TRY(berth_cuda__enter(device, kernel->entry));
        berth_status status = find(executable, kernel, &found);
        berth_cuda__leave(device);
        if (status) return status;
    }
    executable->kernels[executable->kernel_count] = found;
    *out_kernel = executable->kernel_count++;
    return BERTH_OK;
}

// What stands between a queue and a library of the vendor's: it puts work into the stream. The device's context is
// current.
static berth_status call_host_code(const cuda_device *device, cuda_stream stream,
                                   const struct cuda_kernel *kernel, const berth_command *command,
                                   void *const *buffers) {
    berth_stream_call call = {.stream = stream};
    kernel->call(buffers, command->dispatch.constants, 0, command->dispatch.groups[0], &call);
    if (!call.failure) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "cuda device %u (%s): %s",
                             device->base.info.ordinal, device->base.info.name, call.failure);
}

berth_status berth_cuda__dispatch(const cuda_device *device, cuda_stream stream,
                                  const berth_command *command) {
    const cuda_executable *executable = (const cuda_executable *)command->dispatch.executable;
    const struct cuda_kernel *kernel = &executable->kernels[command->dispatch.kernel];
    const uint32_t *groups = command->dispatch.groups, *size = command->dispatch.group_size;
    void *values[CUDA_MAX_VALUES];  // CUDA copies them within the call
    void *parameters[CUDA_MAX_VALUES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < command->dispatch.buffer_count; ++i)
        values[count++] = (void *)(uintptr_t)berth_cuda__address(command->dispatch.buffers[i]);
    if (kernel->call) return call_host_code(device, stream, kernel, command, values);
    for (uint32_t i = 0; i < command->dispatch.constant_count; ++i)
        values[count++] = (void *)(uintptr_t)command->dispatch.constants[i];
    for (uint32_t i = 0; i < count; ++i) parameters[i] = &values[i];
    if (groups[0] > INT32_MAX || groups[1] > 65535 || groups[2] > 65535)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "dispatch: a grid of %u x %u x %u blocks; CUDA has up to "
                                 "2147483647 x 65535 x 65535",
                                 groups[0], groups[1], groups[2]);
    return berth_cuda__check(device,
                             device->api->cuLaunchKernel(
                                 kernel->function, groups[0], groups[1], groups[2], size[0],
                                 size[1], size[2], kernel->shared_bytes, stream, parameters, NULL),
                             "launch");
}
