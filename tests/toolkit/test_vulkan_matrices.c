// Products on cooperative matrices: kernels as the generator writes them for devices that have these, with their matrix
// instructions written out in plain ones (vulkan_matrices.h), run on a device that may lack them, beside the interpreter.
// What this shows: what each instruction is told, and all around it. What it does not: that a device's own do the same.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/toolkit/vulkan_matrices.h"
#include "tests/toolkit/vulkan_work.h"

static void fill(berth_tensor *tensor, uint32_t index) {
    berth_tensor_fill_random(tensor, 11 + index);
}

static bool multiplies(const uint32_t *at, uint32_t half) {
    enum { mul_add = 4459 };  // SPV_KHR_cooperative_matrix: OpCooperativeMatrixMulAddKHR
    (void)half;
    return (at[0] & 0xffff) == mul_add;
}

static bool has_feature(const char *name) {
    berth_driver *driver = NULL;
    berth_device_info info;
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    assert_ok(berth_driver_device_info(driver, 0, &info));
    berth_driver_close(driver);
    return strstr(info.kernel_features, name) != NULL;
}

// `text` on matrices; *out_products: the instructions that multiply.
static double run(const char *text, const char *target, int *out_products) {
    vulkan_work w = vulkan_build(text, target);
    *out_products = vulkan_count(w.program, multiplies);
    w.program = vulkan_matrices_write_out(w.arena, w.program);
    cr_expect_eq(vulkan_count(w.program, multiplies), 0, "%s", text);
    return vulkan_compare(w, text, fill);
}

// Whole tiles, odd sizes, operands that lie across, few rows, batches, several groups, what follows the product.
Test(vulkan_matrices, products_of_f16, .timeout = 300) {
    static const char *const cases[] = {
        "%x: f16[64,64], %w: f16[64,64]) {\n  %y = matmul(%x, %w)",
        "%x: f16[67,50], %w: f16[50,83]) {\n  %y = matmul(%x, %w)",
        "%x: f16[3,40,33], %w: f16[3,33,71]) {\n  %y = matmul(%x, %w)",
        "%x: f16[130,40], %w: f16[40,140]) {\n  %y = matmul(%x, %w)",
        "%x: f16[4,96], %w: f16[96,136]) {\n  %y = matmul(%x, %w)",
        "%x: f16[90,64], %w: f16[64,3]) {\n  %y = matmul(%x, %w)",
        "%x: f16[40,48], %w: f16[72,48], %b: f16[72]) {\n  %g = gemm(%x, %w, %b) {transB = 1}\n"
        "  %y = relu(%g)",
        "%x: f16[48,40], %w: f16[48,72], %b: f16[72]) {\n  %y = gemm(%x, %w, %b) {transA = 1}",
        "%x: f16[1,16,10,10], %w: f16[24,16,3,3]) {\n  %y = conv(%x, %w) {pads = [1, 1, 1, 1]}",
        "%x: f16[2,10,9,11], %w: f16[12,10,3,3]) {\n"
        "  %y = conv(%x, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}",
    };
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    if (!has_feature("float16")) cr_skip("the device does not compute with f16");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[320];
        int products = 0;
        snprintf(text, sizeof(text), "module \"m\"\ngraph @main(%s\n  return %%y\n}\n", cases[i]);
        double worst =
            run(text, "vulkan -host=cpu -features=float16,cooperative_matrix_f16", &products);
        cr_expect_gt(products, 0, "%s", text);
        cr_expect_lt(worst, 2e-3, "%s: differs by %g", text, worst);
        vulkan_work without = vulkan_build(text, "vulkan -host=cpu -features=float16");
        cr_expect_eq(vulkan_count(without.program, multiplies), 0, "%s", text);
        berth_arena_destroy(without.arena);
    }
}

// A device that says that it has such matrices is asked for all that they need, and the target of this machine uses them. By the
// loader of tests/faults/matrix_vulkan.c, which is strict.
Test(vulkan_matrix_device, is_used, .timeout = 120) {
    static const char text[] = "module \"m\"\ngraph @main(%x: f16[70,40], %w: f16[40,50]) {\n"
                               "  %p = matmul(%x, %w)\n  %y = relu(%p)\n  return %y\n}\n";
    if (!getenv("BERTH_MATRIX_VULKAN")) cr_skip("not with the loader whose devices have matrices");
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    if (!has_feature("float16")) cr_skip("the device does not compute with f16");
    cr_assert(has_feature("cooperative_matrix_f16"));
    vulkan_work w = vulkan_build(text, "vulkan -host=cpu -features=float16,cooperative_matrix_f16");
    cr_expect_gt(vulkan_count(w.program, multiplies), 0);
    double worst = vulkan_compare(w, text, fill);
    cr_expect_lt(worst, 2e-3, "differs by %g", worst);
}

// Elsewhere it is refused by name.
Test(vulkan_matrices, refused_without) {
    static const char text[] = "module \"m\"\ngraph @main(%x: f16[64,64], %w: f16[64,64]) {\n"
                               "  %y = matmul(%x, %w)\n  return %y\n}\n";
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    if (has_feature("cooperative_matrix_f16")) cr_skip("the device has such matrices");
    vulkan_work w = vulkan_build(text, "vulkan -host=cpu -features=float16,cooperative_matrix_f16");
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), w.program, NULL, &session);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect(strstr(berth_status_message(status), "cooperativeMatrix"), "%s",
              berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(w.arena);
}
