// Every case of cases.def: lowered and interpreted = reference interpreter.
#include <criterion/criterion.h>

#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const cases[] = {
#include "tests/lower/cases.def"
};
#undef CASE

#define CASE(text, instruction) text,
static const char *const products[] = {
#include "tests/cuda/matrix_cases.def"
};
#undef CASE

static void run_these(const char *const *texts, int count, const berth_target *target) {
    int failed = 0;
    for (int i = 0; i < count; ++i) {
        berth_arena *arena = NULL;
        berth_status status = berth_arena_create(berth_allocator_system(), &arena);
        cr_assert_null(status);
        const char *problem = op_case_run(texts[i], target, arena);
        if (problem) cr_log_error("%s\n    %s", texts[i], problem);
        failed += problem != NULL;
        berth_arena_destroy(arena);
    }
    cr_expect_eq(failed, 0, "%d of %d cases differ", failed, count);
}

static void run_cases(const berth_target *target) {
    run_these(cases, sizeof(cases) / sizeof(cases[0]), target);
}

static void run_products(const berth_target *target) {
    run_these(products, sizeof(products) / sizeof(products[0]), target);
}

Test(lower_ops, plain) {
    run_cases(NULL);
}

// The same after the schedules of every target family.
Test(lower_ops, scheduled) {
    with_target("cpu", run_cases);
    with_target("cpu -vector_bits=512", run_cases);
    with_target("opencl", run_cases);
}

// For Vulkan, every kernel goes through spirv-val too.
Test(lower_ops, vulkan, .timeout = 300) {
    with_target("vulkan", run_cases);
    with_target("vulkan -features=subgroup_arithmetic,float16,float16_denormals", run_cases);
}

// Products on matrix units; they run on a device in tests/toolkit/test_vulkan_matrices.c.
Test(lower_ops, vulkan_matrices, .timeout = 300) {
    with_target("vulkan -features=float16,cooperative_matrix_f16", run_products);
    with_target("vulkan -features=float16,cooperative_matrix_f16 -local_memory_bytes=16384",
                run_products);
    with_target("vulkan -features=cooperative_i8_k32,cooperative_u8_k32,cooperative_u8_i8_k32",
                run_products);
    with_target("vulkan -features=cooperative_i8_k16,cooperative_u8_k16,cooperative_u8_i8_k16",
                run_products);
}
