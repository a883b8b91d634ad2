// NVIDIA's compiler takes every operator case's kernels for real architectures. It needs no GPU; where
// NVRTC is not installed the test says so.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda/cuda.h"
#include "tests/cuda/kernels.h"
#include "tests/lower/op_case.h"

static nvrtc_api nvrtc;

static void compile(const char *source, const char *architecture) {
    const char *const options[] = {architecture, "--std=c++17", "--disable-warnings"};
    nvrtc_program program = NULL;
    size_t bytes = 0;
    cr_assert_eq(nvrtc.nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL), 0u);
    nvrtc_result result = nvrtc.nvrtcCompileProgram(program, 3, options);
    char *log = calloc(1, 1 << 20);
    if (result && nvrtc.nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes < 1 << 20)
        (void)nvrtc.nvrtcGetProgramLog(program, log);
    cr_assert_eq(result, 0u, "%s: NVRTC error %u: %.2000s", architecture, result, log);
    cr_expect_eq(nvrtc.nvrtcGetCUBINSize(program, &bytes), 0u);
    cr_expect_gt(bytes, 1000u);
    free(log);
    (void)nvrtc.nvrtcDestroyProgram(&program);
}

static void compile_images(const berth_target *target, cuda_images images, bool both) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = cuda_images_print(target, arena, &images);
    cr_assert(!status, "%s", berth_status_message(status));
    for (int i = 0; i < images.count; ++i) {
        if (both || i % 2) compile(images.sources[i], "--gpu-architecture=sm_80");
        if (both || !(i % 2)) compile(images.sources[i], "--gpu-architecture=sm_90");
    }
    berth_arena_destroy(arena);
}

static void compile_operators(const berth_target *target) {
    compile_images(target, cuda_images_of_operators(), false);
}

static void compile_matrices(const berth_target *target) {
    compile_images(target, cuda_images_of_matrices(NULL), true);
}

static void compile_copies(const berth_target *target) {
    compile_images(target, cuda_images_of_copies(), true);
}

static void compile_large(const berth_target *target) {
    compile_images(target, cuda_images_of_large(), true);
}

static void compile_tf32(const berth_target *target) {
    compile_images(target, cuda_images_of_tf32(), true);
}

static void compile_for_groups(const berth_target *target, cuda_images images) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = cuda_images_print(target, arena, &images);
    cr_assert(!status, "%s", berth_status_message(status));
    for (int i = 0; i < images.count; ++i) compile(images.sources[i], "--gpu-architecture=sm_90a");
    berth_arena_destroy(arena);
}

static void compile_warpgroups(const berth_target *target) {
    compile_for_groups(target, cuda_images_of_warpgroups(NULL));
}

static void compile_panels(const berth_target *target) {
    compile_for_groups(target, cuda_images_of_panels());
}

static void compile_long_sums(const berth_target *target) {
    compile_for_groups(target, cuda_images_of_long_sums());
}

// The test is skipped where NVRTC is not installed.
static void load_nvrtc(void) {
    // Where the toolkit's folder is not known to the loader.
    (void)dlopen("/usr/local/cuda/lib64/libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
    berth_status status = berth_cuda__nvrtc_load(&nvrtc);
    if (status) {
        berth_status_free(status);
        cr_skip("there is no NVRTC");
    }
}

Test(cuda_nvrtc, all_cases_compile, .timeout = 600) {
    load_nvrtc();
    with_target("cuda -arch=sm_80", compile_operators);
    with_target("cuda -arch=sm_80", compile_matrices);
    with_target("cuda -arch=sm_80", compile_copies);
    with_target("cuda -arch=sm_80 -compute_units=1", compile_large);
    with_target("cuda -arch=sm_80 -features=tf32", compile_tf32);
    berth_dynlib_abandon(nvrtc.library);
}

Test(cuda_nvrtc, warpgroups_compile, .timeout = 600) {
    load_nvrtc();
    with_target("cuda -arch=sm_90a -compute_units=1", compile_warpgroups);
    with_target("cuda -arch=sm_90a -compute_units=64", compile_warpgroups);
    with_target("cuda -arch=sm_90a -compute_units=1", compile_panels);
    with_target("cuda -arch=sm_90a -compute_units=1", compile_long_sums);
    with_target("cuda -arch=sm_90a -compute_units=64", compile_panels);
    berth_dynlib_abandon(nvrtc.library);
}
