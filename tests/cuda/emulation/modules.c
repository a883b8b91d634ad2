// Modules and launches of the emulated libcuda.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/emulation/image.h"
#include "tests/cuda/emulation/libcuda.h"

cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned int option_count,
                               cuda_enum *options, void **values) {
    (void)option_count, (void)options, (void)values;
    uint64_t size = 0;
    char path[32];
    BEGIN_IN_CONTEXT();
    if (memcmp(image, EMULATED_MAGIC, EMULATED_MAGIC_BYTES) != 0)
        return BERTH_CUDA_ERROR_INVALID_IMAGE;
    memcpy(&size, (const char *)image + EMULATED_MAGIC_BYTES, sizeof(size));
    struct CUmod_st *made = calloc(1, sizeof(*made));
    made->fd = memfd_create("berth-emulated", MFD_CLOEXEC);
    if (write(made->fd, (const char *)image + EMULATED_HEADER_BYTES, size) != (ssize_t)size)
        return BERTH_CUDA_ERROR_OUT_OF_MEMORY;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", made->fd);
    made->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!made->library) fprintf(stderr, "emulated CUDA: %s\n", dlerror());
    *module = made;
    return made->library ? CUDA_OK : BERTH_CUDA_ERROR_INVALID_IMAGE;
}

static struct CUfunc_st *functions;  // of all modules; a test's process is short
static int function_count;
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

cuda_result cuModuleUnload(cuda_module module) {
    emulated_wait_for_streams();
    char path[32];
    dlclose(module->library);
    // What the loader keeps all the same (thread-local objects do that) keeps its name: another library
    // of that name would be this one.
    snprintf(path, sizeof(path), "/proc/self/fd/%d", module->fd);
    void *kept = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (kept)
        dlclose(kept);
    else
        close(module->fd);
    free(module);
    BEGIN_IN_CONTEXT();
    return CUDA_OK;
}

static void *symbol(cuda_module module, const char *start, const char *name) {
    char text[512];
    snprintf(text, sizeof(text), "berth_emulated_%s%s", start, name);
    return dlsym(module->library, text);
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name) {
    enum { most_functions = 1 << 16 };
    BEGIN_IN_CONTEXT();
    void *run = symbol(module, "run_", name), *enter = symbol(module, "enter", "");
    const int *count = symbol(module, "count_", name);
    if (!run || !enter || !count) return BERTH_CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&functions_lock);
    if (!functions) functions = calloc(most_functions, sizeof(*functions));
    struct CUfunc_st *made = &functions[function_count++ % most_functions];
    pthread_mutex_unlock(&functions_lock);
    memcpy(&made->launch.run, &run, sizeof(run));
    memcpy(&made->launch.enter, &enter, sizeof(enter));
    made->parameters = *count;
    made->shared_bytes = static_shared_bytes;
    *function = made;
    return made->parameters <= most_parameters ? CUDA_OK : BERTH_CUDA_ERROR_INVALID_VALUE;
}

cuda_result cuFuncGetAttribute(int *value, cuda_enum attribute, cuda_function function) {
    (void)function;
    BEGIN_IN_CONTEXT();
    *value = attribute == BERTH_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_OK;
}

cuda_result cuFuncSetAttribute(cuda_function function, cuda_enum attribute, int value) {
    BEGIN_IN_CONTEXT();
    if (attribute != BERTH_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > most_shared_bytes)
        return BERTH_CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes = value;
    return CUDA_OK;
}

cuda_result cuFuncGetParamInfo(cuda_function function, size_t index, size_t *offset,
                               size_t *bytes) {
    BEGIN_IN_CONTEXT();
    *offset = 8 * index;
    *bytes = 8;
    return (int)index < function->parameters ? CUDA_OK : BERTH_CUDA_ERROR_INVALID_VALUE;
}

cuda_result cuLaunchKernel(cuda_function function, unsigned int grid_x, unsigned int grid_y,
                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                           unsigned int block_z, unsigned int shared_bytes, cuda_stream stream,
                           void **parameters, void **extra) {
    BEGIN_IN_CONTEXT();
    if (extra || shared_bytes > (unsigned)function->shared_bytes || !grid_x || !grid_y || !grid_z ||
        grid_y > 65535 || grid_z > 65535 || grid_x > INT32_MAX ||
        (uint64_t)block_x * block_y * block_z > 1024)
        return BERTH_CUDA_ERROR_INVALID_VALUE;
    job j = {.kind = JOB_LAUNCH, .launch = function->launch};
    j.launch.blocks = (emulated_place){grid_x, grid_y, grid_z};
    j.launch.threads = (emulated_place){block_x, block_y, block_z};
    j.launch.shared_bytes = shared_bytes;
    for (int i = 0; i < function->parameters; ++i) memcpy(&j.values[i], parameters[i], 8);
    return emulated_push(stream, j);
}

cuda_result cuLaunchHostFunc(cuda_stream stream, void (*function)(void *), void *data) {
    BEGIN_IN_CONTEXT();
    return emulated_push(stream, (job){.kind = JOB_CALL, .call = function, .to = data});
}
