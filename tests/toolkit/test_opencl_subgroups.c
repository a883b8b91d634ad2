// Sums of subgroups in OpenCL C. No OpenCL device of the project's machines has subgroups: those of
// tests/faults/opencl_subgroups.h stand in, by the loader of tests/faults/flaky_libopencl.c; that the text is OpenCL C as
// it stands, clang says.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/toolkit/vulkan_work.h"

#define WITHOUT "opencl -subgroup_size=32 -host=cpu"
#define WITH WITHOUT " -features=subgroup_arithmetic,opencl_c_2"

static bool is_flaky(void) {
    return getenv("BERTH_FLAKY_LIBOPENCL") != NULL;
}

static void set_loader(int items) {
    char setting[32] = "none";
    if (items) snprintf(setting, sizeof(setting), "subgroups:%d", items);
    setenv("BERTH_FLAKY_LIBOPENCL", setting, 1);
}

static const berth_executable_image *image_of(const berth_program *program) {
    for (uint32_t i = 0; i < program->executable_count; ++i)
        if (strcmp(program->executables[i].device_kind, "opencl") == 0)
            return &program->executables[i];
    cr_assert_fail("no kernels for opencl");
    return NULL;
}

// The first row has a NaN and both infinities, the second the infinities, the others numbers alone.
static void fill_spread(berth_tensor *tensor, uint32_t index) {
    static const double special[] = {NAN, INFINITY, -INFINITY, INFINITY, -INFINITY};
    if (index == 2) {
        berth_tensor_fill_random(tensor, 5);
        return;
    }
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_f64(tensor, i, (double)(i * 7919 % 1201 - 600) * 0.031 + 0.003);
    for (int64_t i = 0; i < 5; ++i)
        berth_tensor_set_f64(tensor, i < 3 ? 40 + 97 * i : 333 + 50 * i, special[i]);
}

// Row operators of all types that have sums of subgroups: of integers all but softmax.
static const char rows[] =
    "module \"m\"\ngraph @main(%x: f32[5,333], %d: f64[5,333], %i: i32[5,333]) {\n"
    "  %axes = constant() {value = i64[1] (1)}\n"
    "  %y0 = reduce_max(%x, %axes)  %y1 = reduce_min(%x, %axes)  %y2 = reduce_sum(%x, %axes)\n"
    "  %y3 = softmax(%x)\n"
    "  %y4 = reduce_max(%d, %axes)  %y5 = reduce_min(%d, %axes)  %y6 = reduce_sum(%d, %axes)\n"
    "  %y7 = softmax(%d)\n"
    "  %y8 = reduce_max(%i, %axes)  %y9 = reduce_min(%i, %axes)  %ya = reduce_sum(%i, %axes)\n"
    "  return %y0, %y1, %y2, %y3, %y4, %y5, %y6, %y7, %y8, %y9, %ya\n}\n";
static const char *const functions[] = {"warp_max_f32", "warp_min_f32", "warp_add_f32",
                                        "warp_max_f64", "warp_min_f64", "warp_add_f64",
                                        "warp_max_i32", "warp_min_i32", "warp_add_i32"};

static bool has_sums_of_subgroups(const berth_program *program) {
    return strstr(image_of(program)->data, "sub_group_reduce_") != NULL;
}

// Whatever the size of a subgroup is, whether it divides the group or not: every element is taken once.
Test(opencl_faults, sums_of_subgroups, .timeout = 240) {
    static const int sizes[] = {1, 8, 24, 64, 200};
    if (!is_flaky()) cr_skip("the loader is the system's");
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
        set_loader(sizes[s]);
        vulkan_work w = vulkan_build(rows, WITH);
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
            cr_expect(strstr(image_of(w.program)->data, functions[i]), "%s", functions[i]);
        double worst = vulkan_compare(w, rows, fill_spread);
        cr_expect_lt(worst, 2e-6, "%g of %d", worst, sizes[s]);
    }
}

// A device without subgroups refuses such kernels; for its own target there are none.
Test(opencl_faults, kernels_for_subgroups_need_them) {
    berth_session *session = NULL;
    if (!is_flaky()) cr_skip("the loader is the system's");
    set_loader(0);
    vulkan_work w = vulkan_build(rows, WITH);
    berth_status status = berth_session_open(berth_allocator_system(), w.program, NULL, &session);
    const char *message = status ? berth_status_message(status) : "";
    cr_expect(status &&
                  strstr(message, "need subgroups (cl_khr_subgroups), which the device lacks"),
              "\"%s\"", message);
    berth_status_free(status);
    berth_session_close(session);
    berth_arena_destroy(w.arena);
    w = vulkan_build(rows, WITHOUT);
    cr_expect(!has_sums_of_subgroups(w.program));
    cr_expect_lt(vulkan_compare(w, rows, fill_spread), 2e-6);
}

static berth_device_info first_device(void) {
    berth_driver *driver = NULL;
    berth_device_info info;
    assert_ok(berth_driver_open("opencl", berth_allocator_system(), &driver));
    assert_ok(berth_driver_device_info(driver, 0, &info));
    berth_driver_close(driver);
    return info;
}

// What a device says of subgroups is what targets and people are told.
Test(opencl_faults, features_of_subgroups) {
    if (!is_flaky()) cr_skip("the loader is the system's");
    set_loader(0);
    berth_device_info info = first_device();
    const char *lacks = strstr(info.features, "lacks "), *here;
    cr_expect_str_empty(info.kernel_features);
    cr_expect(lacks && strstr(lacks, "cl_khr_subgroups"), "%s", info.features);
    cr_expect_eq(info.clock_hz, 0);  // processor cores: the processor's
    set_loader(8);
    info = first_device();
    cr_expect_str_eq(info.kernel_features, "opencl_c_2,subgroup_arithmetic");
    here = strstr(info.features, "cl_khr_subgroups");
    lacks = strstr(info.features, "lacks ");
    cr_expect(here && lacks && here < lacks, "%s", info.features);
    cr_expect(info.clock_hz >= 100000000 && info.clock_hz % 1000000 == 0);
    set_loader(0);
}

// The text, as both languages that have subgroups; as OpenCL C 1.2 it must be refused.
Test(opencl_text, sums_of_subgroups_are_opencl_c, .timeout = 60) {
    static const char *const languages[] = {"CL2.0", "CL3.0", "CL1.2"};
    if (system("clang -x cl -cl-std=CL3.0 --target=spir64 -fsyntax-only /dev/null 2>/dev/null"))
        cr_skip("no clang for OpenCL C");
    for (int l = 0; l < 3; ++l) {
        char path[] = "/tmp/berth-subgroups-XXXXXX", command[256];
        bool is_two = l == 0;
        vulkan_work w =
            vulkan_build(rows, is_two ? WITH : WITHOUT " -features=subgroup_arithmetic");
        const berth_executable_image *image = image_of(w.program);
        cr_expect_str_eq(image->options, is_two ? "-cl-std=CL2.0" : "-cl-std=CL3.0");
        int descriptor = mkstemp(path);
        cr_assert(descriptor >= 0);
        FILE *out = fdopen(descriptor, "w");
        fputs(image->data, out);
        fclose(out);
        snprintf(command, sizeof(command),
                 "clang -x cl -cl-std=%s --target=spir64 -fsyntax-only %s %s", languages[l],
                 l == 2 ? "2>/dev/null" : "-Werror", path);
        cr_expect_eq(system(command) == 0, l < 2, "as %s", languages[l]);
        remove(path);
        berth_arena_destroy(w.arena);
    }
}
