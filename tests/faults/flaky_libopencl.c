// An OpenCL loader with faults: the one of the system, of which BERTH_FLAKY_LIBOPENCL says what fails.
//
//   clFlush:2:-5     the second call of clFlush gives error -5; number 0: every call
//   clFlush:2:-5*    from the second call of clFlush on every function gives error -5: a device that is lost
//   clGetDeviceIDs:1:-5+   the same as without +, and the first platform is listed twice
//   hang             what is enqueued comes after an event that never comes
//   subgroups:8      no fault: devices are GPUs with OpenCL 2.1 that have subgroups of 8 work-items (opencl_subgroups.h)
//
// Found in place of the system's by the folder that it lies in (LD_LIBRARY_PATH).
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

#include "tests/faults/opencl_subgroups.h"

static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen(REAL_OPENCL, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

static cl_int fault(const char *name) {
    static const char *of;
    static int calls;
    static bool is_lost;
    const char *wanted = getenv("BERTH_FLAKY_LIBOPENCL");
    char function[64], end = 0;
    int number = 0, error = 0;
    if (of != wanted) {
        calls = 0;
        is_lost = false;
    }
    of = wanted;
    if (!wanted || sscanf(wanted, "%63[^:]:%d:%d%c", function, &number, &error, &end) < 3)
        return CL_SUCCESS;
    if (is_lost) return error;
    if (strcmp(function, name) != 0 || (++calls != number && number != 0)) return CL_SUCCESS;
    is_lost = end == '*';
    return error;
}

static bool hangs(void) {
    const char *wanted = getenv("BERTH_FLAKY_LIBOPENCL");
    return wanted && strcmp(wanted, "hang") == 0;
}

// Work-items of a subgroup; 0: subgroups are what the system's OpenCL has.
static int subgroup_items(void) {
    int items = 0;
    const char *wanted = getenv("BERTH_FLAKY_LIBOPENCL");
    return wanted && sscanf(wanted, "subgroups:%d", &items) == 1 ? items : 0;
}

#define EXPORTED __attribute__((visibility("default"))) CL_API_ENTRY
#define REAL(name)                                                                                 \
    __typeof__(&name) real_##name;                                                                 \
    {                                                                                              \
        void *found = real(#name);                                                                 \
        memcpy(&real_##name, &found, sizeof(found));                                               \
    }

// A barrier for an event that never comes: all that is enqueued later in this queue waits behind it.
static void hold(cl_command_queue queue) {
    cl_context context = NULL;
    cl_int error = CL_SUCCESS;
    if (!hangs()) return;
    REAL(clGetCommandQueueInfo)
    REAL(clCreateUserEvent)
    REAL(clEnqueueBarrierWithWaitList)
    real_clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
    cl_event never = real_clCreateUserEvent(context, &error);
    if (error == CL_SUCCESS) real_clEnqueueBarrierWithWaitList(queue, 1, &never, NULL);
}

// FAULTY: gives the error asked for, or does what it does. MAKER: the same, whose error goes to the last parameter.
#define FAULTY(name, parameters, arguments)                                                        \
    EXPORTED cl_int CL_API_CALL name parameters {                                                  \
        REAL(name)                                                                                 \
        cl_int result = fault(#name);                                                              \
        return result != CL_SUCCESS ? result : real_##name arguments;                              \
    }
#define MAKER(type, name, parameters, arguments)                                                   \
    EXPORTED type CL_API_CALL name parameters {                                                    \
        REAL(name)                                                                                 \
        *error = fault(#name);                                                                     \
        return *error != CL_SUCCESS ? NULL : real_##name arguments;                                \
    }

EXPORTED cl_int CL_API_CALL clGetPlatformIDs(cl_uint n, cl_platform_id *o, cl_uint *c) {
    REAL(clGetPlatformIDs)
    const char *wanted = getenv("BERTH_FLAKY_LIBOPENCL");
    cl_int result = fault("clGetPlatformIDs");
    if (result == CL_SUCCESS) result = real_clGetPlatformIDs(n, o, c);
    if (result != CL_SUCCESS || !wanted || !strchr(wanted, '+') || n < 2) return result;
    o[1] = o[0];
    *c = 2;
    return CL_SUCCESS;
}

FAULTY(clGetPlatformInfo, (cl_platform_id p, cl_platform_info w, size_t n, void *o, size_t *s),
       (p, w, n, o, s))
FAULTY(clGetDeviceIDs, (cl_platform_id p, cl_device_type t, cl_uint n, cl_device_id *o, cl_uint *c),
       (p, t, n, o, c))
EXPORTED cl_int CL_API_CALL clGetDeviceInfo(cl_device_id d, cl_device_info w, size_t n, void *o,
                                            size_t *s) {
    REAL(clGetDeviceInfo)
    cl_int result = fault("clGetDeviceInfo");
    if (result == CL_SUCCESS) result = real_clGetDeviceInfo(d, w, n, o, s);
    if (result != CL_SUCCESS || !subgroup_items() || !o) return result;
    if (w == CL_DEVICE_TYPE) *(cl_device_type *)o = CL_DEVICE_TYPE_GPU;
    if (w == CL_DEVICE_VERSION) (void)snprintf(o, n, "OpenCL 2.1 with subgroups");
    if (w == CL_DEVICE_EXTENSIONS)
        (void)snprintf((char *)o + strlen(o), n - strlen(o), " cl_khr_subgroups");
    return result;
}
FAULTY(clRetainContext, (cl_context c), (c))
FAULTY(clReleaseContext, (cl_context c), (c))
FAULTY(clRetainCommandQueue, (cl_command_queue q), (q))
FAULTY(clReleaseCommandQueue, (cl_command_queue q), (q))
FAULTY(clGetCommandQueueInfo,
       (cl_command_queue q, cl_command_queue_info w, size_t n, void *o, size_t *s), (q, w, n, o, s))
FAULTY(clFlush, (cl_command_queue q), (q))
FAULTY(clReleaseMemObject, (cl_mem m), (m))
FAULTY(clBuildProgram,
       (cl_program p, cl_uint n, const cl_device_id *d, const char *o,
        void(CL_CALLBACK *f)(cl_program, void *), void *u),
       (p, n, d, o, f, u))
FAULTY(clGetProgramBuildInfo,
       (cl_program p, cl_device_id d, cl_program_build_info w, size_t n, void *o, size_t *s),
       (p, d, w, n, o, s))
FAULTY(clReleaseProgram, (cl_program p), (p))
FAULTY(clGetKernelInfo, (cl_kernel k, cl_kernel_info w, size_t n, void *o, size_t *s),
       (k, w, n, o, s))
FAULTY(clReleaseKernel, (cl_kernel k), (k))
FAULTY(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *v), (k, i, n, v))
FAULTY(clEnqueueCopyBuffer,
       (cl_command_queue q, cl_mem a, cl_mem b, size_t i, size_t k, size_t n, cl_uint c,
        const cl_event *w, cl_event *e),
       (q, a, b, i, k, n, c, w, e))
FAULTY(clEnqueueFillBuffer,
       (cl_command_queue q, cl_mem m, const void *p, size_t l, size_t i, size_t n, cl_uint c,
        const cl_event *w, cl_event *e),
       (q, m, p, l, i, n, c, w, e))
FAULTY(clEnqueueReadBuffer,
       (cl_command_queue q, cl_mem m, cl_bool b, size_t i, size_t n, void *o, cl_uint c,
        const cl_event *w, cl_event *e),
       (q, m, b, i, n, o, c, w, e))
FAULTY(clEnqueueWriteBuffer,
       (cl_command_queue q, cl_mem m, cl_bool b, size_t i, size_t n, const void *o, cl_uint c,
        const cl_event *w, cl_event *e),
       (q, m, b, i, n, o, c, w, e))
FAULTY(clEnqueueUnmapMemObject,
       (cl_command_queue q, cl_mem m, void *p, cl_uint c, const cl_event *w, cl_event *e),
       (q, m, p, c, w, e))
FAULTY(clEnqueueMarkerWithWaitList, (cl_command_queue q, cl_uint c, const cl_event *w, cl_event *e),
       (q, c, w, e))
FAULTY(clEnqueueBarrierWithWaitList,
       (cl_command_queue q, cl_uint c, const cl_event *w, cl_event *e), (q, c, w, e))
FAULTY(clSetEventCallback,
       (cl_event e, cl_int t, void(CL_CALLBACK *f)(cl_event, cl_int, void *), void *u),
       (e, t, f, u))
FAULTY(clReleaseEvent, (cl_event e), (e))
FAULTY(clRetainEvent, (cl_event e), (e))
FAULTY(clGetEventInfo, (cl_event e, cl_event_info w, size_t n, void *o, size_t *s), (e, w, n, o, s))
FAULTY(clGetEventProfilingInfo, (cl_event e, cl_profiling_info w, size_t n, void *o, size_t *s),
       (e, w, n, o, s))

MAKER(cl_context, clCreateContext,
      (const cl_context_properties *p, cl_uint n, const cl_device_id *d,
       void(CL_CALLBACK *f)(const char *, const void *, size_t, void *), void *u, cl_int *error),
      (p, n, d, f, u, error))
MAKER(cl_command_queue, clCreateCommandQueue,
      (cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *error),
      (c, d, p, error))
MAKER(cl_mem, clCreateBuffer, (cl_context c, cl_mem_flags f, size_t n, void *h, cl_int *error),
      (c, f, n, h, error))
MAKER(cl_mem, clCreateSubBuffer,
      (cl_mem m, cl_mem_flags f, cl_buffer_create_type t, const void *i, cl_int *error),
      (m, f, t, i, error))
// The functions of subgroups in front of the one text.
EXPORTED cl_program CL_API_CALL clCreateProgramWithSource(cl_context c, cl_uint n, const char **t,
                                                          const size_t *l, cl_int *error) {
    REAL(clCreateProgramWithSource)
    *error = fault("clCreateProgramWithSource");
    if (*error != CL_SUCCESS) return NULL;
    if (!subgroup_items() || !strstr(*t, "sub_group_"))
        return real_clCreateProgramWithSource(c, n, t, l, error);
    char most[64];
    (void)snprintf(most, sizeof(most), "#define SUBGROUP_MOST %d\n", subgroup_items());
    const char *texts[] = {most, opencl_subgroups, *t};
    return real_clCreateProgramWithSource(c, 3, texts, NULL, error);
}
MAKER(cl_kernel, clCreateKernel, (cl_program p, const char *n, cl_int *error), (p, n, error))

EXPORTED cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint d,
                                                   const size_t *o, const size_t *g,
                                                   const size_t *l, cl_uint c, const cl_event *w,
                                                   cl_event *e) {
    REAL(clEnqueueNDRangeKernel)
    cl_int result = fault("clEnqueueNDRangeKernel");
    if (result != CL_SUCCESS) return result;
    if (subgroup_items() && (g[0] / l[0] > OPENCL_SUBGROUPS_MOST_GROUPS || g[1] > 1 || g[2] > 1 ||
                             l[0] > OPENCL_SUBGROUPS_MOST_ITEMS))
        return CL_INVALID_WORK_GROUP_SIZE;
    hold(q);
    return real_clEnqueueNDRangeKernel(q, k, d, o, g, l, c, w, e);
}

EXPORTED void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool b,
                                              cl_map_flags f, size_t i, size_t n, cl_uint c,
                                              const cl_event *w, cl_event *e, cl_int *error) {
    REAL(clEnqueueMapBuffer)
    *error = fault("clEnqueueMapBuffer");
    if (*error != CL_SUCCESS) return NULL;
    hold(q);
    return real_clEnqueueMapBuffer(q, m, b, f, i, n, c, w, e, error);
}
