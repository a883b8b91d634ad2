// What `berth devices` says of drivers and devices.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

// A loader with faults in front of the system's (tests/faults), and what of it fails.
static void use_loader(const char *name, const char *variable, const char *fault) {
    char folder[512];
    snprintf(folder, sizeof(folder), FLAKY_LOADERS "/%s", name);
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv(variable, fault, 1);
}

static bool is_here(const char *device) {
    const char *text = strstr(berth_run("devices")->out, device);
    return text != NULL;
}

// Each extension that people ask about is used, there and not used, or lacking.
Test(devices_command, what_opencl_uses_and_lacks) {
    static const char *const names[] = {"cl_khr_fp64", "cl_khr_fp16", "cl_khr_subgroups",
                                        "cl_khr_integer_dot_product"};
    const char *text = berth_run("devices")->out;
    const char *device = strstr(text, "  opencl:0 ");
    if (!device) cr_skip("skipped: this needs OpenCL");
    const char *memory = strstr(device, "memory global");
    cr_assert(memory, "%s", text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *first = strstr(device, names[i]);
        cr_assert(first && first < memory, "%s is missing: %s", names[i], text);
        const char *again = strstr(first + 1, names[i]);
        cr_assert(!again || again > memory, "%s twice: %s", names[i], text);
    }
}

// A CUDA driver whose compiler is not there: files by its names that are no libraries come first.
Test(devices_command, a_driver_without_its_compiler, .timeout = 60) {
    static const char make[] = "for f in .13 .12 .11.2 ''; do : > $F/libnvrtc.so$f; done; "
                               "cp " CUDA_EMULATION "/libcuda.so.1 $F";
    char folder[] = "/tmp/berth-devices-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    setenv("F", folder, 1);
    cr_assert_eq(system(make), 0);
    const char *before = getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", folder, 1);
    const char *text = berth_run("devices")->out;
    const char *cuda = strstr(text, "\ncuda: ");
    const char *said =
        cuda ? strstr(cuda, "\n  lacking: kernels are CUDA C, and there is no NVRTC") : NULL;
    const char *device = cuda ? strstr(cuda, "\n  cuda:0  ") : NULL;
    cr_expect(said && device && said < device, "%s", text);
    const char *features = device ? strstr(device, "; lacks NVRTC\n") : NULL;
    cr_expect(features && features < strstr(device, "memory global"), "%s", text);
    json_t *json = berth_run_json("devices --format=json"), *driver = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "drivers"), i, driver) {
        bool is_cuda = strcmp(json_string_value(json_object_get(driver, "kind")), "cuda") == 0;
        const char *lacking = json_string_value(json_object_get(driver, "lacking"));
        cr_expect_eq(strstr(lacking, "there is no NVRTC") != NULL, is_cuda, "%s", lacking);
    }
    json_decref(json);
    before ? setenv("LD_LIBRARY_PATH", before, 1) : unsetenv("LD_LIBRARY_PATH");
    cr_expect_eq(system("rm -r $F"), 0);
}

// A driver that says that it has no memory is one that is not available: the others are shown. Vulkan's loader says so of a
// driver's description that it cannot read.
Test(devices_command, a_driver_that_has_no_memory, .timeout = 60) {
    static const char first[] =
        "\nvulkan: Vulkan 1.2 devices that compute (libvulkan, loaded at run time)\n"
        "  not available: ";
    if (!is_here("  vulkan:0 ")) cr_skip("skipped: this needs Vulkan");
    static const char *const faults[] = {"vkCreateInstance:0:-1",
                                         "vkEnumeratePhysicalDevices:0:-2"};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
        use_loader("flaky_vulkan", "BERTH_FLAKY_VULKAN", faults[i]);
        const result *r = berth_run("devices");
        cr_expect_eq(r->exit_status, 0, "%s", r->err);
        const char *vulkan = strstr(r->out, first);
        cr_expect(vulkan && strstr(vulkan, "OUT_OF_") && strstr(r->out, "  cpu:0 "), "%s", r->out);
        r = berth_run("target show local");
        cr_expect(r->exit_status == 0 && !strstr(r->out, "vulkan:0"), "%s%s", r->out, r->err);
    }
}

// A platform that fails hides no other one, and is named.
Test(devices_command, a_platform_that_lists_no_devices, .timeout = 60) {
    if (!is_here("  opencl:0 ")) cr_skip("skipped: this needs OpenCL");
    use_loader("flaky_libopencl", "BERTH_FLAKY_LIBOPENCL", "clGetDeviceIDs:1:-5+");
    const result *r = berth_run("devices");
    const char *said =
        strstr(r->out, "\n  lacking: OpenCL platform 0: list its devices: OpenCL says "
                       "CL_OUT_OF_RESOURCES\n");
    cr_expect(said && strstr(said, "\n  opencl:0 "), "%s%s", r->out, r->err);
    setenv("BERTH_FLAKY_LIBOPENCL", "clGetDeviceIDs:0:-5", 1);
    r = berth_run("devices");
    cr_expect(strstr(r->out, "  not available: OpenCL platform 0: list its devices: OpenCL says "
                             "CL_OUT_OF_RESOURCES\n"),
              "%s%s", r->out, r->err);
}

static const char elements[] =
    "module \"elements\"\n"
    "graph @main(%f: f64[5], %i: i64[5], %u: u64[5], %b: i8[5], %c: u8[5], %t: bool[5], %h: "
    "f16[5],\n"
    "    %g: bf16[5], %s: i16[5], %x: f32[5]) {\n"
    "  %r1 = add(%f, %f): f64[5]  %r2 = add(%i, %i): i64[5]  %r3 = add(%u, %u): u64[5]\n"
    "  %r4 = add(%b, %b): i8[5]  %r5 = add(%c, %c): u8[5]  %r6 = not(%t): bool[5]\n"
    "  %r7 = add(%h, %h): f16[5]  %r8 = add(%g, %g): bf16[5]  %r9 = add(%s, %s): i16[5]\n"
    "  %y = add(%x, %x): f32[5]\n"
    "  return %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %y\n"
    "}\n";

// Operations on elements that a Vulkan device lacks run elsewhere, which is said; where nothing else computes they are refused.
Test(devices_command, elements_that_a_device_lacks, .timeout = 120) {
    static const struct {
        const char *lacks, *message;
        int count;
    } rows[] = {{"f64", "the device has no 64-bit floats", 1},
                {"i64", "the device has no 64-bit ", 3},  // functions of f64 look at bits
                {"8bit", "the device has no elements of 8 bits", 3},
                {"16bit", "the device has no elements of 16 bits", 3}};
    if (!is_here("  vulkan:0 ")) cr_skip("skipped: this needs Vulkan");
    char path[] = "/tmp/berth-elements-XXXXXX.txt", command[512];
    int file = mkstemps(path, 4);
    cr_assert(file >= 0 && write(file, elements, strlen(elements)) == (ssize_t)strlen(elements));
    close(file);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char fault[32], said[128];
        snprintf(fault, sizeof(fault), "lacks:%s", rows[i].lacks);
        use_loader("flaky_vulkan", "BERTH_FLAKY_VULKAN", fault);
        snprintf(command, sizeof(command), "run %s --target vulkan,cpu", path);
        const result *r = berth_run(command);
        cr_expect_eq(r->exit_status, 0, "%s: %s", fault, r->err);
        snprintf(
            said, sizeof(said),
            "\"vulkan:0\" cannot run %d of the operations, which run elsewhere: ", rows[i].count);
        const char *warning = strstr(r->err, said);
        cr_expect(warning && strstr(warning, rows[i].message), "%s: %s", fault, r->err);
        snprintf(said, sizeof(said), "): %d kernels", 10 - rows[i].count);
        cr_expect(strstr(r->out, said), "%s: %s", fault, r->out);
        snprintf(command, sizeof(command), "run %s --target vulkan", path);
        r = berth_run(command);
        cr_expect(r->exit_status == 1 && strstr(r->err, rows[i].message), "%s: %s", fault, r->err);
    }
    unlink(path);
}
