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

// One of `cases` with these features: it is on matrices, and without the feature it is not. Returns the greatest difference.
static double run_case(const char *one, const char *features, const char *without) {
    char text[400], target[200];
    int products = 0;
    snprintf(text, sizeof(text), "module \"m\"\ngraph @main(%s\n  return %%y\n}\n", one);
    snprintf(target, sizeof(target), "vulkan -host=cpu -features=%s", features);
    double worst = run(text, target, &products);
    cr_expect_gt(products, 0, "%s: %s", features, text);
    vulkan_work w = vulkan_build(text, without);
    cr_expect_eq(vulkan_count(w.program, multiplies), 0, "%s", text);
    berth_arena_destroy(w.arena);
    return worst;
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
        double worst = run_case(cases[i], "float16,cooperative_matrix_f16",
                                "vulkan -host=cpu -features=float16");
        cr_expect_lt(worst, 2e-3, "%s: differs by %g", cases[i], worst);
    }
}

// Integers are exact. All cases with the first, one with each other pair of types and depth.
Test(vulkan_matrices, products_of_bytes, .timeout = 600) {
    static const char *const types[][3] = {{"i8_k32", "i8", "i8"},    {"i8_k16", "i8", "i8"},
                                           {"u8_k32", "u8", "u8"},    {"u8_k16", "u8", "u8"},
                                           {"u8_i8_k32", "u8", "i8"}, {"u8_i8_k16", "u8", "i8"}};
    static const char *const cases[] = {
        "%%x: %s[67,50], %%w: %s[50,83]) {\n  %%y = matmul_integer(%%x, %%w)",
        "%%x: %s[3,40,33], %%w: %s[3,33,71]) {\n  %%y = matmul_integer(%%x, %%w)",
        "%%x: %s[4,96], %%w: %s[96,136]) {\n  %%p = matmul_integer(%%x, %%w)\n  %%y = neg(%%p)",
        "%%x: %s[1,32,10,10], %%w: %s[24,32,3,3]) {\n"
        "  %%y = conv_integer(%%x, %%w) {pads = [1, 1, 1, 1]}",
        "%%x: %s[2,10,9,11], %%w: %s[12,10,3,3]) {\n"
        "  %%y = conv_integer(%%x, %%w) {pads = [1, 1, 1, 1], strides = [2, 2]}",
    };
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t)
        for (size_t i = 0; i < (t ? 1 : sizeof(cases) / sizeof(cases[0])); ++i) {
            char text[320], feature[40];
            const char *const *type = types[t];
            snprintf(feature, sizeof(feature), "cooperative_%s", type[0]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof(text), cases[i], type[1], type[2]);
#pragma GCC diagnostic pop
            double worst = run_case(text, feature, "vulkan -host=cpu");
            cr_expect_eq(worst, 0, "%s: %s: differs by %g", feature, text, worst);
        }
}

// Activations of u8 where units have signed bytes alone (those of NVIDIA's devices, in Vulkan): taken as 128 less, the zero
// point, too, a constant one, one that the run finds, and none. In blocks of channels and as they are.
Test(vulkan_matrices, unsigned_activations_on_signed_units, .timeout = 300) {
    static const struct {
        const char *inputs, *weights, *zero, *body;
        int count;
    } cases[] = {
        {"%x: u8[1,32,9,7]", "16,32,3,3", "  %z = constant() {value = u8[] (7)}\n",
         "conv_integer(%x, %w, %z) {pads = [1, 1, 1, 1]}", 16 * 32 * 9},
        {"%x: u8[1,32,9,7]", "24,32,3,3", "",
         "conv_integer(%x, %w) {pads = [1, 1, 1, 1], strides = [2, 2]}", 24 * 32 * 9},
        {"%x: u8[1,19,9,7], %z: u8[]", "16,19,3,3", "",
         "conv_integer(%x, %w, %z) {pads = [1, 1, 1, 1]}", 16 * 19 * 9},
        {"%x: u8[37,70]", "70,45", "  %z = constant() {value = u8[] (200)}\n",
         "matmul_integer(%x, %w, %z)", 70 * 45},
    };
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_strbuf text = berth_strbuf_make(arena);
        berth_strbuf_addf(
            &text, "module \"m\"\ngraph @main(%s) {\n%s  %%w = constant() {value = i8[%s] (1",
            cases[i].inputs, cases[i].zero, cases[i].weights);
        for (int n = 1; n < cases[i].count; ++n)
            berth_strbuf_addf(&text, ", %d", n * 37 % 256 - 128);
        berth_strbuf_addf(&text, ")}\n  %%y = %s\n  return %%y\n}\n", cases[i].body);
        int products = 0;
        double worst = run(text.data, "vulkan -host=cpu -features=cooperative_i8_k32", &products);
        cr_expect_gt(products, 0, "%s", cases[i].body);
        cr_expect_eq(worst, 0, "%s: differs by %g", cases[i].body, worst);
        berth_arena_destroy(arena);
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
    static const char bytes[] = "module \"m\"\ngraph @main(%x: i8[70,40], %w: i8[40,50]) {\n"
                                "  %y = matmul_integer(%x, %w)\n  return %y\n}\n";
    cr_assert(has_feature("cooperative_i8_k32") && has_feature("cooperative_u8_k32"));
    cr_assert(!has_feature("cooperative_u8_i8_k32") && !has_feature("cooperative_i8_k16"));
    w = vulkan_build(bytes, "vulkan -host=cpu -features=cooperative_i8_k32");
    cr_expect_gt(vulkan_count(w.program, multiplies), 0);
    worst = vulkan_compare(w, bytes, fill);
    cr_expect_eq(worst, 0, "differs by %g", worst);
}

static void expect_refused(const char *text, const char *target, const char *why) {
    vulkan_work w = vulkan_build(text, target);
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), w.program, NULL, &session);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect(strstr(berth_status_message(status), why), "%s", berth_status_message(status));
    berth_status_free(status);
    berth_arena_destroy(w.arena);
}

// Elsewhere it is refused by name.
Test(vulkan_matrices, refused_without) {
    static const char text[] = "module \"m\"\ngraph @main(%x: f16[64,64], %w: f16[64,64]) {\n"
                               "  %y = matmul(%x, %w)\n  return %y\n}\n";
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    if (has_feature("cooperative_matrix_f16")) cr_skip("the device has such matrices");
    expect_refused(text, "vulkan -host=cpu -features=float16,cooperative_matrix_f16",
                   "cooperativeMatrix");
}

// So is a product that a device with other matrices lacks.
Test(vulkan_matrix_device, refuses_others, .timeout = 120) {
    static const char text[] = "module \"m\"\ngraph @main(%x: i8[64,64], %w: i8[64,64]) {\n"
                               "  %y = matmul_integer(%x, %w)\n  return %y\n}\n";
    if (!getenv("BERTH_MATRIX_VULKAN")) cr_skip("not with the loader whose devices have matrices");
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    expect_refused(text, "vulkan -host=cpu -features=cooperative_i8_k16",
                   "needs cooperative_i8_k16");
}
