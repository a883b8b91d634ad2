// Whether two OpenCL devices of this machine work at the same time, without Berth: a queue on each, one
// work-item that counts for some milliseconds, a hundred times. Prints the time of both over that of one:
// 1 = they do, 2 = they take turns (docs/benchmarks.md, Requests in a pipeline).
//
//   POCL_DEVICES="pthread pthread" POCL_MAX_PTHREAD_COUNT=1 chrt -f 10 build/release/bench_opencl_overlap
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { device_count = 2, commands = 100, rounds = 5 };

static const char *const source = "kernel void count(global float *x) {\n"
                                  "    float a = x[0];\n"
                                  "    for (int i = 0; i < 2000000; ++i) a = a * 1.0001f + 0.5f;\n"
                                  "    x[0] = a;\n"
                                  "}\n";

static void must(cl_int error, const char *what) {
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "bench_opencl_overlap: %s: OpenCL error %d\n", what, (int)error);
    exit(1);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef struct worker {
    cl_command_queue queue;
    cl_kernel kernel;
} worker;

static worker make_worker(cl_device_id device) {
    worker w;
    const char *text = source;
    cl_int error = CL_SUCCESS;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    must(error, "context");
    w.queue = clCreateCommandQueue(context, device, 0, &error);
    must(error, "queue");
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    must(error, "program");
    must(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
    w.kernel = clCreateKernel(program, "count", &error);
    must(error, "kernel");
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(float), NULL, &error);
    must(error, "buffer");
    must(clSetKernelArg(w.kernel, 0, sizeof(memory), &memory), "argument");
    return w;
}

// Seconds for all commands on the first `count` devices.
static double run(const worker *workers, int count) {
    const size_t one = 1;
    double start_s = now_s();
    for (int i = 0; i < commands; ++i)
        for (int w = 0; w < count; ++w)
            must(clEnqueueNDRangeKernel(workers[w].queue, workers[w].kernel, 1, NULL, &one, &one, 0,
                                        NULL, NULL),
                 "enqueue");
    for (int w = 0; w < count; ++w) must(clFlush(workers[w].queue), "flush");
    for (int w = 0; w < count; ++w) must(clFinish(workers[w].queue), "finish");
    return now_s() - start_s;
}

int main(void) {
    cl_platform_id platform = NULL;
    cl_device_id devices[device_count];
    cl_uint found = 0;
    worker workers[device_count];
    must(clGetPlatformIDs(1, &platform, NULL), "platform");
    must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, device_count, devices, &found), "devices");
    if (found < device_count) {
        puts("one device only (PoCL: POCL_DEVICES=\"pthread pthread\")");
        return 0;
    }
    for (int i = 0; i < device_count; ++i) workers[i] = make_worker(devices[i]);
    run(workers, device_count);  // compiled, and warm
    for (int round = 0; round < rounds; ++round) {
        double one_s = run(workers, 1), both_s = run(workers, device_count);
        printf("{\"one_s\": %.3f, \"both_s\": %.3f, \"ratio\": %.2f}\n", one_s, both_s,
               both_s / one_s);
    }
    return 0;
}
