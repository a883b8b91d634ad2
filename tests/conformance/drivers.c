// The drivers under test.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "drivers/vta/image.h"
#include "tests/conformance/conformance.h"

// ---- kernels ----

static const char cpu_source[] =
    "#include <stdint.h>\n"
    "void scale(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    const int32_t *in = b[0]; int32_t *out = b[1]; volatile int32_t *s = scratch;\n"
    "    for (int64_t i = begin; i < end; ++i) {\n"
    "        if (i >= c[1]) continue;\n"
    "        for (int k = 0; k < 64; ++k) s[k] = in[i];\n"
    "        out[i] = (int32_t)(c[0] * s[i % 64] + i);\n"
    "    }\n"
    "}\n"
    "void add_one(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    int32_t *data = b[0]; (void)scratch;\n"
    "    for (int64_t i = begin; i < end; ++i) if (i < c[0]) data[i] += 1;\n"
    "}\n"
    "void spin(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *scratch) {\n"
    "    int32_t *data = b[0]; (void)scratch;\n"
    "    for (int64_t i = begin; i < end; ++i) {\n"
    "        if (i >= c[0]) continue;\n"
    "        uint32_t x = (uint32_t)data[i];\n"
    "        for (int64_t k = 0; k < c[1]; ++k) x = x * 3u + 1u;\n"
    "        data[i] = (int32_t)x;\n"
    "    }\n"
    "}\n";

static const char opencl_source[] =
    "__kernel void scale(__global const int *in, __global int *out, long factor, long count) {\n"
    "    long i = get_group_id(0) * get_local_size(0) + get_local_id(0);\n"
    "    if (i < count) out[i] = (int)(factor * in[i] + i);\n"
    "}\n"
    "__kernel void add_one(__global int *data, long count) {\n"
    "    long i = get_global_id(0);\n"
    "    if (i < count) data[i] += 1;\n"
    "}\n"
    "__kernel void spin(__global int *data, long count, long rounds) {\n"
    "    long i = get_global_id(0);\n"
    "    if (i >= count) return;\n"
    "    uint x = (uint)data[i];\n"
    "    for (long k = 0; k < rounds; ++k) x = x * 3u + 1u;\n"
    "    data[i] = (int)x;\n"
    "}\n";

static const char cuda_source[] =
    "extern \"C\" __global__ void scale(const int *in, int *out, long factor, long count) {\n"
    "    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count) out[i] = (int)(factor * in[i] + i);\n"
    "}\n"
    "extern \"C\" __global__ void add_one(int *data, long count) {\n"
    "    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < count) data[i] += 1;\n"
    "}\n"
    "extern \"C\" __global__ void spin(int *data, long count, long rounds) {\n"
    "    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i >= count) return;\n"
    "    unsigned x = (unsigned)data[i];\n"
    "    for (long k = 0; k < rounds; ++k) x = x * 3u + 1u;\n"
    "    data[i] = (int)x;\n"
    "}\n";

static void cpu_image(berth_arena *arena, berth_executable_image *out_image) {
    char folder[] = "/tmp/berth-conformance-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char source[64], object[64], command[256];
    snprintf(source, sizeof(source), "%s/k.c", folder);
    snprintf(object, sizeof(object), "%s/k.so", folder);
    check_ok(berth_file_write(source, cpu_source, sizeof(cpu_source) - 1));
    snprintf(command, sizeof(command), "cc -O1 -shared -fPIC -o %s %s", object, source);
    cr_assert_eq(system(command), 0, "%s failed", command);
    char *data = NULL;
    size_t size_bytes = 0;
    check_ok(berth_file_read(arena, object, (size_t)1 << 24, &data, &size_bytes));
    unlink(source);
    unlink(object);
    rmdir(folder);
    out_image->data = data;
    out_image->size_bytes = size_bytes;
}

static void opencl_image(berth_arena *arena, berth_executable_image *out_image) {
    (void)arena;
    out_image->data = opencl_source;
    out_image->size_bytes = sizeof(opencl_source) - 1;
}

static void cuda_image(berth_arena *arena, berth_executable_image *out_image) {
    (void)arena;
    out_image->data = cuda_source;
    out_image->size_bytes = sizeof(cuda_source);  // with the zero byte
}

static void null_image(berth_arena *arena, berth_executable_image *out_image) {
    (void)arena;
    out_image->data = "none";
    out_image->size_bytes = 4;
}

// A stream that does nothing: int32 arithmetic with constants is beyond it.
static void vta_image(berth_arena *arena, berth_executable_image *out_image) {
    static uint8_t finish[BERTH_VTA_INSTRUCTION_BYTES] = {BERTH_VTA_FINISH};
    berth_vta_kernel kernel = {.name = "nothing", .stream = finish, .instruction_count = 1};
    berth_vta_config config = berth_vta_config_default();
    uint8_t *data = NULL;
    size_t size_bytes = 0;
    check_ok(berth_vta_image_write(arena, &config, &kernel, 1, &data, &size_bytes));
    out_image->data = data;
    out_image->size_bytes = size_bytes;
}

// ---- rows ----

static const conformance_exception none[] = {{NULL, NULL}};
static const conformance_exception null_unsupported[] = {
    {"dispatch__runs*", "the template driver runs no kernels"},
    {"dispatch__broken_image", "the template driver takes any image"},
    {"dispatch__unknown_entry", "the template driver knows no entries"},
    {NULL, NULL},
};
#define VTA_REASON "streams have no constants, and results of 8 bits: see tests/vta/test_driver.c"
static const conformance_exception vta_unsupported[] = {
    {"dispatch__runs*", VTA_REASON},
    {"dispatch__says_when_unsupported", VTA_REASON},
    {"dispatch__bad_arguments", VTA_REASON},
    {"memory_out__*", VTA_REASON},
    {NULL, NULL},
};
const conformance_driver conformance_drivers[CONFORMANCE_DRIVER_COUNT] = {
    {.name = "null",
     .kind = "null",
     .device_count = 1,
     .synchronous = true,
     .format = "none",
     .group_size = 1,
     .kernel_image = null_image,
     .broken_image = "",
     .unsupported = null_unsupported,
     .expected_failures = none},
    {.name = "cpu",
     .kind = "cpu",
     .device_count = 1,
     .options = {.profile = true},
     .synchronous = true,
     .format = BERTH_FORMAT_CPU_ELF,
     .group_size = 1,
     .kernel_image = cpu_image,
     .broken_image = "\177ELF this is no shared object",
     .unsupported = none,
     .expected_failures = none},
    {.name = "cpu_1_thread",
     .kind = "cpu",
     .device_count = 1,
     .options = {.thread_count = 1, .profile = true},
     .synchronous = true,
     .format = BERTH_FORMAT_CPU_ELF,
     .group_size = 1,
     .kernel_image = cpu_image,
     .broken_image = "",
     .unsupported = none,
     .expected_failures = none},
    {.name = "opencl",
     .kind = "opencl",
     .device_count = 1,
     .options = {.profile = true},
     .format = BERTH_FORMAT_OPENCL_C,
     .group_size = 4,
     .kernel_image = opencl_image,
     .broken_image = "__kernel void k(__global int *a) { a[0] = undeclared_name; }",
     .unsupported = none,
     .expected_failures = none},
    {.name = "opencl_pair",
     .kind = "opencl",
     .device_count = 2,
     .environment = {"POCL_DEVICES", "pthread pthread"},
     .format = BERTH_FORMAT_OPENCL_C,
     .group_size = 4,
     .kernel_image = opencl_image,
     .broken_image = "this is no C",
     .unsupported = none,
     .expected_failures = none},
    {.name = "library_null",
     .kind = "example",
     .library = BERTH_LIBRARY_NULL,
     .device_count = 1,
     .synchronous = true,
     .format = "none",
     .group_size = 1,
     .kernel_image = null_image,
     .broken_image = "",
     .unsupported = null_unsupported,
     .expected_failures = none},
    {.name = "library_cpu",
     .kind = "cpu",
     .library = BERTH_LIBRARY_CPU,
     .device_count = 1,
     .options = {.thread_count = 1, .profile = true},
     .synchronous = true,
     .format = BERTH_FORMAT_CPU_ELF,
     .group_size = 1,
     .kernel_image = cpu_image,
     .broken_image = "",
     .unsupported = none,
     .expected_failures = none},
    {.name = "vulkan",
     .kind = "vulkan",
     .device_count = 1,
     .options = {.profile = true},
     .host_memory = true,  // lavapipe
     .format = BERTH_FORMAT_SPIRV,
     .group_size = 4,
     .kernel_image = conformance_vulkan_image,
     .broken_image = "this is no SPIR-V module, in words",
     .unsupported = none,
     .expected_failures = none},
    {.name = "vulkan_apart",
     .kind = "vulkan",
     .device_count = 1,
     .options = {.own_memory = true},
     .format = BERTH_FORMAT_SPIRV,
     .group_size = 4,
     .kernel_image = conformance_vulkan_image,
     .broken_image = "",
     .unsupported = none,
     .expected_failures = none},
    {.name = "library_vta",
     .kind = "vta",
     .library = BERTH_LIBRARY_VTA,
     .device_count = 1,
     .options = {.profile = true},
     .format = BERTH_VTA_FORMAT,
     .group_size = 1,
     .kernel_image = vta_image,
     .broken_image = "this is no stream",
     .unsupported = vta_unsupported,
     .expected_failures = none},
    {.name = "cuda",
     .kind = "cuda",
     .device_count = 1,
     .options = {.profile = true},
     .format = BERTH_FORMAT_CUDA_C,
     .group_size = 4,
     .kernel_image = cuda_image,
     .broken_image = "extern \"C\" __global__ void k(int *a) { a[0] = undeclared_name; }",
     .unsupported = none,
     .expected_failures = none},
    {.name = "cuda_pair",
     .kind = "cuda",
     .device_count = 2,
     .format = BERTH_FORMAT_CUDA_C,
     .group_size = 4,
     .kernel_image = cuda_image,
     .broken_image = "this is no C",
     .unsupported = none,
     .expected_failures = none},
    // lavapipe, which the loader finds twice.
    {.name = "vulkan_pair",
     .kind = "vulkan",
     .device_count = 2,
     .environment = {"VK_ICD_FILENAMES", VULKAN_PAIR},
     .host_memory = true,
     .format = BERTH_FORMAT_SPIRV,
     .group_size = 4,
     .kernel_image = conformance_vulkan_image,
     .broken_image = "this is no SPIR-V module, in words",
     .unsupported = none,
     .expected_failures = none},
    {.name = "vulkan_pair_apart",
     .kind = "vulkan",
     .device_count = 2,
     .options = {.own_memory = true},
     .environment = {"VK_ICD_FILENAMES", VULKAN_PAIR},
     .format = BERTH_FORMAT_SPIRV,
     .group_size = 4,
     .kernel_image = conformance_vulkan_image,
     .broken_image = "",
     .unsupported = none,
     .expected_failures = none},
};

const conformance_exception *conformance_find(const conformance_exception *list, const char *name) {
    for (; list->pattern; ++list)
        if (berth_glob_match(list->pattern, name)) return list;
    return NULL;
}
