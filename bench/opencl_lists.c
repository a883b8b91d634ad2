// What a prepared command buffer (cl_khr_command_buffer) saves beside enqueueing the same kernels one by one,
// without Berth: a hundred kernels that depend on each other, on an in-order queue, in turns. Prints JSON lines
// with the least time of both; docs/add_driver.md (OpenCL platforms) says what follows for the driver.
//
//   build/release/bench/bench_opencl_lists
#define CL_TARGET_OPENCL_VERSION 300
#define CL_ENABLE_BETA_EXTENSIONS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kernels = 100, rounds = 300 };

static const char *const source = "kernel void add(global float *a, global const float *b) {\n"
                                  "    a[get_global_id(0)] += b[get_global_id(0)];\n"
                                  "}\n";

static void must(cl_int error, const char *what) {
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "bench_opencl_lists: %s: OpenCL error %d\n", what, (int)error);
    exit(1);
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

// The functions of the extension that are called.
typedef struct list_functions {
    clCreateCommandBufferKHR_fn create;
    clCommandNDRangeKernelKHR_fn add;
    clFinalizeCommandBufferKHR_fn finalize;
    clEnqueueCommandBufferKHR_fn enqueue;
    clReleaseCommandBufferKHR_fn release;
} list_functions;

static int find_functions(cl_platform_id platform, list_functions *f) {
    union {
        void *object;
        list_functions functions;
        void *all[5];
    } u;
    static const char *const names[] = {"clCreateCommandBufferKHR", "clCommandNDRangeKernelKHR",
                                        "clFinalizeCommandBufferKHR", "clEnqueueCommandBufferKHR",
                                        "clReleaseCommandBufferKHR"};
    for (int i = 0; i < 5; ++i) {
        u.all[i] = clGetExtensionFunctionAddressForPlatform(platform, names[i]);
        if (!u.all[i]) return 0;
    }
    *f = u.functions;
    return 1;
}

typedef struct work {
    cl_context context;
    cl_command_queue queue;
    cl_kernel kernel;
    cl_mem sums, ones;
} work;

static work make_work(cl_device_id device, size_t elements) {
    work w;
    const float zero = 0, one = 1;
    const char *text = source;
    cl_int error = CL_SUCCESS;
    w.context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error, "context");
    w.queue = clCreateCommandQueueWithProperties(w.context, device, NULL, &error);
    must(error, "queue");
    cl_program program = clCreateProgramWithSource(w.context, 1, &text, NULL, &error);
    must(error, "program");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
    w.kernel = clCreateKernel(program, "add", &error);
    must(error, "kernel");
    w.sums = clCreateBuffer(w.context, CL_MEM_READ_WRITE, elements * sizeof(float), NULL, &error);
    must(error, "buffer");
    w.ones = clCreateBuffer(w.context, CL_MEM_READ_WRITE, elements * sizeof(float), NULL, &error);
    must(error, "buffer");
    size_t bytes = elements * sizeof(float);
    must(clEnqueueFillBuffer(w.queue, w.sums, &zero, 4, 0, bytes, 0, NULL, NULL), "fill");
    must(clEnqueueFillBuffer(w.queue, w.ones, &one, 4, 0, bytes, 0, NULL, NULL), "fill");
    must(clSetKernelArg(w.kernel, 0, sizeof(w.sums), &w.sums), "argument");
    must(clSetKernelArg(w.kernel, 1, sizeof(w.ones), &w.ones), "argument");
    must(clFinish(w.queue), "finish");
    return w;
}

static cl_command_buffer_khr record(const list_functions *f, work *w, size_t elements) {
    cl_int error = CL_SUCCESS;
    cl_command_buffer_khr list = f->create(1, &w->queue, NULL, &error);
    must(error, "command buffer");
    cl_sync_point_khr last = 0;
    for (int i = 0; i < kernels; ++i) {
        cl_sync_point_khr next = 0;
        must(f->add(list, NULL, NULL, w->kernel, 1, NULL, &elements, NULL, i ? 1 : 0,
                    i ? &last : NULL, &next, NULL),
             "recording");
        last = next;
    }
    must(f->finalize(list), "finalize");
    return list;
}

static void compare(cl_device_id device, const list_functions *f, size_t elements) {
    work w = make_work(device, elements);
    cl_command_buffer_khr list = record(f, &w, elements);
    double least_us[2] = {1e30, 1e30};
    for (int round = 0; round < rounds; ++round)
        for (int way = 0; way < 2; ++way) {
            double start_us = now_us();
            if (way) must(f->enqueue(0, NULL, list, 0, NULL, NULL), "enqueue a command buffer");
            for (int i = 0; !way && i < kernels; ++i)
                must(clEnqueueNDRangeKernel(w.queue, w.kernel, 1, NULL, &elements, NULL, 0, NULL,
                                            NULL),
                     "enqueue a kernel");
            must(clFinish(w.queue), "finish");
            double took_us = now_us() - start_us;
            if (took_us < least_us[way]) least_us[way] = took_us;
        }
    float sum = 0;
    must(clEnqueueReadBuffer(w.queue, w.sums, CL_TRUE, 0, sizeof(sum), &sum, 0, NULL, NULL),
         "read");
    if (sum != 2.0f * kernels * rounds) must(CL_INVALID_VALUE, "wrong sums");
    printf("{\"elements\": %zu, \"kernels\": %d, \"enqueued_us\": %.1f, \"command_buffer_us\": "
           "%.1f, \"ratio\": %.2f}\n",
           elements, kernels, least_us[0], least_us[1], least_us[1] / least_us[0]);
    must(f->release(list), "release");
    clReleaseContext(w.context);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    char text[16384] = "";
    list_functions functions;
    must(clGetPlatformIDs(1, &platform, NULL), "platform");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "device");
    must(clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL), "extensions");
    int has = strstr(text, "cl_khr_command_buffer") && find_functions(platform, &functions);
    must(clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof(text), text, NULL), "version");
    printf("{\"device\": \"%s\", \"command_buffers\": %s}\n", text, has ? "true" : "false");
    for (size_t elements = 64; has && elements <= 65536; elements *= 32)
        compare(device, &functions, elements);
    return 0;
}
