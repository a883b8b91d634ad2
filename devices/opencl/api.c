#include <stddef.h>
#include <string.h>

#include "devices/opencl/opencl.h"

static const char symbols[] =
#define SYMBOL(name) #name "\0"
#include "devices/opencl/opencl_symbols.def"
#undef SYMBOL
    ;

static void find_optional(opencl_api *api) {
    static const char names[] = "clSVMAlloc\0clSVMFree\0";
    void *found[2] = {NULL, NULL};
    if (berth_dynlib_find_functions(berth_dynlib_find_in, api->library, names, found)) return;
    memcpy(&api->svm_alloc, &found[0], sizeof(found[0]));
    memcpy(&api->svm_free, &found[1], sizeof(found[1]));
}

berth_status berth_opencl__api_load(opencl_api *out_api) {
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
    memset(out_api, 0, sizeof(*out_api));
    berth_status status = berth_dynlib_open(names, &out_api->library);
    if (status)
        return berth_status_prefix(status,
                                   "there is no OpenCL loader (Debian: ocl-icd-libopencl1, and a "
                                   "driver such as pocl-opencl-icd)");
    const char *missing = berth_dynlib_find_functions(berth_dynlib_find_in, out_api->library,
                                                      symbols, &out_api->clGetPlatformIDs);
    if (!missing) {
        find_optional(out_api);
        return BERTH_OK;
    }
    berth_dynlib_close(out_api->library);
    out_api->library = NULL;
    return berth_status_make(BERTH_UNAVAILABLE, "libOpenCL has no %s: it is older than OpenCL 1.2",
                             missing);
}

// Without "CL_".
#define ERRORS(ERROR)                                                                              \
    ERROR(DEVICE_NOT_FOUND, UNAVAILABLE)                                                           \
    ERROR(DEVICE_NOT_AVAILABLE, UNAVAILABLE)                                                       \
    ERROR(COMPILER_NOT_AVAILABLE, UNAVAILABLE)                                                     \
    ERROR(MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_MEMORY)                                            \
    ERROR(OUT_OF_RESOURCES, OUT_OF_MEMORY)                                                         \
    ERROR(OUT_OF_HOST_MEMORY, OUT_OF_MEMORY)                                                       \
    ERROR(PROFILING_INFO_NOT_AVAILABLE, INTERNAL)                                                  \
    ERROR(MEM_COPY_OVERLAP, INVALID_ARGUMENT)                                                      \
    ERROR(BUILD_PROGRAM_FAILURE, INVALID_ARGUMENT)                                                 \
    ERROR(MISALIGNED_SUB_BUFFER_OFFSET, INVALID_ARGUMENT)                                          \
    ERROR(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, UNAVAILABLE)                                  \
    ERROR(INVALID_VALUE, INTERNAL)                                                                 \
    ERROR(INVALID_BUFFER_SIZE, OUT_OF_MEMORY)                                                      \
    ERROR(INVALID_BUILD_OPTIONS, INVALID_ARGUMENT)                                                 \
    ERROR(INVALID_KERNEL_NAME, NOT_FOUND)                                                          \
    ERROR(INVALID_KERNEL_ARGS, INVALID_ARGUMENT)                                                   \
    ERROR(INVALID_ARG_INDEX, INCOMPATIBLE)                                                         \
    ERROR(INVALID_ARG_VALUE, INCOMPATIBLE)                                                         \
    ERROR(INVALID_ARG_SIZE, INCOMPATIBLE)                                                          \
    ERROR(INVALID_WORK_GROUP_SIZE, OUT_OF_RANGE)                                                   \
    ERROR(INVALID_WORK_ITEM_SIZE, OUT_OF_RANGE)                                                    \
    ERROR(INVALID_GLOBAL_WORK_SIZE, OUT_OF_RANGE)                                                  \
    ERROR(INVALID_MEM_OBJECT, INTERNAL)
static const struct {
    int8_t error;
    uint8_t code;
} errors[] = {
#define FACT(name, code) {CL_##name, BERTH_##code},
    ERRORS(FACT)
#undef FACT
};
static const char error_names[] =
#define NAME(name, code) #name "\0"
    ERRORS(NAME)
#undef NAME
    ;

berth_status berth_opencl__check(const opencl_device *device, cl_int error, const char *what) {
    if (error == CL_SUCCESS) return BERTH_OK;
    berth_status status = NULL;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && !status; ++i)
        if (errors[i].error == error)
            status = berth_status_make(errors[i].code, "%s: OpenCL says CL_%s", what,
                                       berth_devices__text_at(error_names, i));
    if (!status)
        status = berth_status_make(BERTH_UNAVAILABLE, "%s: OpenCL error %d", what, (int)error);
    if (!device) return status;
    return berth_status_prefix(status, "opencl device %u (%s)", device->base.info.ordinal,
                               device->base.info.name);
}
