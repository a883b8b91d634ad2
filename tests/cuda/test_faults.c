// What the cuda driver says when libcuda fails: each function's first call in turn, a launch whose
// threads part at a barrier, a stream that hangs. On the emulated device only.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/device.h"
#include "devices/registry.h"
#include "tests/cuda/emulated.h"
#include "tests/leaks.h"

static const char source[] =
    "extern \"C\" __global__ void twice(int *data) { data[threadIdx.x] *= 2; }\n"
    "extern \"C\" __global__ void part(int *data) { if (threadIdx.x < 2) __syncthreads(); data[0] "
    "= 1; }\n";

// Kernels that take shared memory from the launch: the last bytes of all that sm_90 has; more than that; a line that
// is no number.
static const char wide_source[] =
    "#ifndef BERTH_EMULATED\n"
    "#define BERTH_SHARED extern __shared__ __align__(16) unsigned char berth_shared[]\n"
    "#endif\n"
    "static __device__ inline void turn(int *data, unsigned char *shared) {\n"
    "    int *last = (int *)(shared + 232448 - 16);\n"
    "    last[threadIdx.x] = data[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    data[threadIdx.x] += last[3 - threadIdx.x]; }\n"
    "extern \"C\" __global__ void all(int *data) { BERTH_SHARED; turn(data, berth_shared); }\n"
    "extern \"C\" __global__ void more(int *data) { BERTH_SHARED; turn(data, berth_shared); }\n"
    "extern \"C\" __global__ void odd(int *data) { BERTH_SHARED; turn(data, berth_shared); }\n"
    "// berth_declares_all/shared: 232448\n"
    "// berth_declares_more/shared: 232449\n"
    "// berth_declares_odd/shared: 2x\n";

typedef struct objects {
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_executable *executable;
    berth_buffer *buffer;
} objects;

static void close_all(objects *o) {
    berth_buffer_free(o->buffer);
    berth_executable_destroy(o->executable);
    berth_queue_destroy(o->queue);
    berth_device_close(o->device);
    berth_driver_close(o->driver);
}

// Long, but for what hangs: whether a machine is slow is none of what is tried here.
static const char *attributes = "timeout_ms=100000";

static berth_status run(objects *o, const char *text, const char *entry) {
    int32_t *data = NULL;
    void *mapped = NULL;
    berth_device_options options = {.attributes = attributes, .profile = true};
    berth_executable_image image = {.device_kind = "cuda",
                                    .format = BERTH_FORMAT_CUDA_C,
                                    .options = "",
                                    .data = text,
                                    .size_bytes = strlen(text) + 1};
    berth_program_kernel kernel = {.entry = entry, .binding_count = 1, .group_size = {4, 1, 1}};
    berth_command_timing timing = {0, 0};
    berth_command commands[2] = {{.kind = BERTH_COMMAND_FILL, .timing = &timing},
                                 {.kind = BERTH_COMMAND_DISPATCH, .label = "step one"}};
    BERTH_TRY(berth_driver_open("cuda", berth_allocator_system(), &o->driver));
    BERTH_TRY(berth_device_open(o->driver, 0, &options, &o->device));
    BERTH_TRY(berth_queue_open(o->device, BERTH_QUEUE_COMPUTE, &o->queue));
    BERTH_TRY(berth_executable_load(o->device, &image, &o->executable));
    BERTH_TRY(berth_buffer_allocate(o->device, 0, 16, &o->buffer));
    commands[0].fill.buffer = o->buffer;
    commands[0].fill.size_bytes = 16;
    commands[0].fill.pattern = 21;
    commands[0].fill.pattern_bytes = 4;
    commands[1].dispatch.executable = o->executable;
    commands[1].dispatch.buffers = &o->buffer;
    commands[1].dispatch.buffer_count = 1;
    for (int i = 0; i < 3; ++i) commands[1].dispatch.groups[i] = 1;
    memcpy(commands[1].dispatch.group_size, kernel.group_size, sizeof(kernel.group_size));
    BERTH_TRY(berth_executable_find(o->executable, &kernel, &commands[1].dispatch.kernel));
    BERTH_TRY(berth_queue_run(o->queue, commands, 2));
    BERTH_TRY(berth_buffer_map(o->buffer, 0, 16, false, &mapped));
    data = mapped;
    for (int i = 0; i < 4 && strcmp(entry, "part") != 0; ++i) cr_expect_eq(data[i], 42);
    return berth_buffer_unmap(o->buffer, mapped);
}

static berth_code outcome_code;  // of the last outcome

// "" where all went well.
static const char *outcome_of(const char *source_text, const char *entry) {
    static char text[1000];
    objects o = {.driver = NULL};
    berth_status status = run(&o, source_text, entry);
    snprintf(text, sizeof(text), "%s", status ? berth_status_message(status) : "");
    outcome_code = berth_status_code(status);
    berth_status_free(status);
    close_all(&o);
    return text;
}

static const char *outcome(const char *entry) {
    return outcome_of(source, entry);
}

Test(cuda_faults, every_function_fails_once, .timeout = 120) {
    static const char *const functions[] = {"cuInit",
                                            "cuDeviceGetCount",
                                            "cuDeviceGet",
                                            "cuDevicePrimaryCtxRetain",
                                            "cuCtxPushCurrent_v2",
                                            "cuMemAlloc_v2",
                                            "cuMemHostAlloc",
                                            "cuMemcpyHtoDAsync_v2",
                                            "cuMemcpyDtoHAsync_v2",
                                            "cuMemsetD32Async",
                                            "cuStreamCreate",
                                            "cuEventCreate",
                                            "cuEventRecord",
                                            "cuEventQuery",
                                            "cuModuleLoadDataEx",
                                            "cuModuleGetFunction",
                                            "cuFuncGetAttribute",
                                            "cuLaunchKernel"};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    cr_expect_str_empty(outcome("twice"));
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        char fault[128];
        snprintf(fault, sizeof(fault), "%s:0:2", functions[i]);
        setenv("BERTH_EMULATION_FAIL", fault, 1);
        const char *message = outcome("twice");
        cr_expect(strstr(message, "CUDA says CUDA_ERROR_OUT_OF_MEMORY (2)"), "%s: \"%s\"",
                  functions[i], message);
        if (i > 2)
            cr_expect(strstr(message, "cuda device 0 (emulated GPU 0"), "%s: \"%s\"", functions[i],
                      message);
    }
    cr_expect(strstr(outcome("twice"), "step one: "), "a failed launch names its step");
    unsetenv("BERTH_EMULATION_FAIL");
    cr_expect_str_empty(outcome("twice"), "nothing stays of the faults");
}

// From one call on nothing works any more: whoever waits hears of it at once, everything can be closed, and the process
// goes on with a device that works.
Test(cuda_faults, a_device_that_is_lost, .timeout = 120) {
    static const char *const functions[] = {
        "cuMemAlloc_v2", "cuModuleLoadDataEx", "cuMemsetD32Async", "cuLaunchKernel",
        "cuEventRecord", "cuEventQuery",       "cuMemHostAlloc",   "cuMemcpyDtoHAsync_v2"};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        char fault[128];
        snprintf(fault, sizeof(fault), "*%s:0:999", functions[i]);
        setenv("BERTH_EMULATION_FAIL", fault, 1);
        const char *message = outcome("twice");
        cr_expect(strstr(message, "cuda device 0 (emulated GPU 0") && strstr(message, "(999)"),
                  "%s: \"%s\"", functions[i], message);
        if (strcmp(functions[i], "cuLaunchKernel") == 0)
            cr_expect(strstr(message, "step one: "), "%s: \"%s\"", functions[i], message);
        unsetenv("BERTH_EMULATION_FAIL");
        cr_expect_str_empty(outcome("twice"), "nothing stays of the loss");
    }
}

Test(cuda_faults, a_kernel_that_does_not_compile, .timeout = 60) {
    static const char wrong[] =
        "extern \"C\" __global__ void twice(int *data) { data[0] = undeclared_thing; }\n";
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    const char *message = outcome_of(wrong, "twice");
    cr_expect(strstr(message, "CUDA kernels do not build for emulated GPU 0"), "%s", message);
    cr_expect(strstr(message, "undeclared_thing"), "the compiler's words: %s", message);
    cr_expect_str_empty(outcome("twice"));
}

// NVRTC's own failures, each function in turn: memory that is out, and compilers that are broken.
Test(cuda_faults, every_function_of_nvrtc, .timeout = 120) {
    static const char *const functions[] = {"nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs",
                                            "nvrtcCreateProgram",        "nvrtcCompileProgram",
                                            "nvrtcGetCUBINSize",         "nvrtcGetCUBIN"};
    static const struct {
        int result;
        const char *name;
        berth_code code;
    } results[] = {{1, "NVRTC_ERROR_OUT_OF_MEMORY (1)", BERTH_OUT_OF_MEMORY},
                   {7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE (7)", BERTH_UNAVAILABLE}};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
        for (int r = 0; r < 2; ++r) {
            char fault[128];
            snprintf(fault, sizeof(fault), "%s:0:%d", functions[i], results[r].result);
            setenv("BERTH_EMULATION_FAIL", fault, 1);
            const char *message = outcome("twice");
            cr_expect_eq(outcome_code, results[r].code, "%s: \"%s\"", fault, message);
            cr_expect(strstr(message, results[r].name), "%s: \"%s\"", fault, message);
            cr_expect(strstr(message, "emulated GPU 0"), "%s: \"%s\"", fault, message);
        }
    unsetenv("BERTH_EMULATION_FAIL");
    cr_expect_str_empty(outcome("twice"), "nothing stays of the faults");
}

// Files by NVRTC's names that are no libraries come first where this program is run again: what is said then.
Test(cuda_faults, without_nvrtc, .timeout = 60) {
    static const char command[] =
        "set -e; for f in .13 .12 .11.2 ''; do : > $F/libnvrtc.so$f; done; "
        "ln -s \"${LD_LIBRARY_PATH%%:*}/libcuda.so.1\" $F; "
        "env -i PATH=\"$PATH\" BERTH_WITHOUT_NVRTC=1 LD_LIBRARY_PATH=$F $P --filter "
        "cuda_faults/without_nvrtc > $F/log "
        "2>&1 || { cat $F/log >&2; exit 1; }; rm -r $F";
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    if (getenv("BERTH_WITHOUT_NVRTC")) {
        const char *message = outcome("twice");
        cr_expect_eq(outcome_code, BERTH_UNAVAILABLE, "%s", message);
        cr_expect(strstr(message, "there is no NVRTC to compile them"), "%s", message);
        berth_driver *driver = NULL;
        berth_device_info info = {.name = ""};
        cr_assert_null(berth_driver_open("cuda", berth_allocator_system(), &driver));
        cr_expect_str_eq(driver->lacking, message, "said before a program is opened");
        cr_assert_null(berth_driver_device_info(driver, 0, &info));
        cr_expect(strstr(info.features, "; lacks NVRTC"), "%s", info.features);
        berth_driver_close(driver);
        return;
    }
    char folder[] = "/tmp/berth-nvrtc-XXXXXX", program[4096] = "";
    cr_assert_not_null(mkdtemp(folder));
    cr_assert(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    setenv("F", folder, 1);
    setenv("P", program, 1);
    cr_expect_eq(system(command), 0);
}

Test(cuda_faults, threads_that_part_at_a_barrier, .timeout = 60) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    const char *message = outcome("part");
    cr_expect(strstr(message, "CUDA_ERROR_LAUNCH_FAILED"), "%s", message);
}

Test(cuda_faults, shared_memory_that_a_launch_gives, .timeout = 60) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    cr_expect_str_empty(outcome_of(wide_source, "all"));
    const char *message = outcome_of(wide_source, "more");
    cr_expect(strstr(message,
                     "kernel \"more\" takes 232449 bytes of shared memory, and a block has "
                     "232448 on emulated GPU 0"),
              "%s", message);
    message = outcome_of(wide_source, "odd");
    cr_expect(strstr(message, "how much shared memory kernel \"odd\" takes"), "%s", message);
    setenv("BERTH_EMULATION_FAIL", "cuFuncSetAttribute:0:2", 1);
    message = outcome_of(wide_source, "all");
    cr_expect(strstr(message, "CUDA says CUDA_ERROR_OUT_OF_MEMORY (2)"), "%s", message);
    unsetenv("BERTH_EMULATION_FAIL");
}

Test(cuda_faults, a_stream_that_hangs, .timeout = 60) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    leave_leaks();  // what the device has stays
    setenv("BERTH_EMULATION_HANG", "1", 1);
    attributes = "timeout_ms=300";
    const char *message = outcome("twice");
    cr_expect_eq(outcome_code, BERTH_DEADLINE_EXCEEDED, "%s", message);
    cr_expect(strstr(message, "cuda device 0 (emulated GPU 0"), "%s", message);
    cr_expect(strstr(message, "no answer within 0.3 s"), "%s", message);
    unsetenv("BERTH_EMULATION_HANG");
    attributes = "timeout_ms=100000";
    cr_expect_str_empty(outcome("twice"), "the process goes on");
}

Test(cuda_faults, attributes) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    cr_assert_null(berth_driver_open("cuda", berth_allocator_system(), &driver));
    berth_device_options options = {.attributes = "speed=11"};
    berth_status status = berth_device_open(driver, 0, &options, &device);
    cr_expect(strstr(berth_status_message(status), "timeout_ms"));
    berth_status_free(status);
    berth_driver_close(driver);
}
