// What only Vulkan has: tables of addresses, grids of several axes, loops that llvmpipe would cut, the
// functions of the generator's own, the cache of pipelines.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "devices/device.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "tests/check.h"
#include "tests/toolkit/vulkan_work.h"

static vulkan_work build(const char *text) {
    return vulkan_build(text, "vulkan -host=cpu");
}

static double compare(const char *text, void (*fill)(berth_tensor *tensor, uint32_t index)) {
    return vulkan_compare(build(text), text, fill);
}

static void fill_random(berth_tensor *tensor, uint32_t index) {
    berth_tensor_fill_random(tensor, 5 + index);
}

// More operands than push constants hold addresses.
Test(vulkan, table_of_addresses) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    char text[4096] = "module \"m\"\ngraph @main(";
    for (int i = 0; i < 24; ++i)
        sprintf(text + strlen(text), "%s%%x%d: f32[3,5]", i ? ", " : "", i);
    strcat(text, ") {\n  %y = sum(");
    for (int i = 0; i < 24; ++i) sprintf(text + strlen(text), "%s%%x%d", i ? ", " : "", i);
    strcat(text, ")\n  return %y\n}\n");
    cr_expect_lt(compare(text, fill_random), 1e-6);
}

// More work-groups than one axis of a grid is sure to have.
Test(vulkan, grid_of_two_axes) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    cr_expect_lt(compare("module \"m\"\ngraph @main(%x: f32[2200001]) {\n  %y = abs(%x)\n"
                         "  return %y\n}\n",
                         fill_random),
                 1e-9);
}

// 300,000 additions one after another: right, or refused by name.
Test(vulkan, long_loops) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    vulkan_work w = build("module \"m\"\ngraph @main(%x: f32[300000]) {\n"
                          "  %y = reduce_sum(%x) {keepdims = 0}\n  return %y\n}\n");
    berth_session *session = NULL;
    berth_status status = berth_session_open(berth_allocator_system(), w.program, NULL, &session);
    if (!status) {
        const berth_tensor *x = berth_session_input(session, 0);
        for (int64_t i = 0; i < 300000; ++i)
            berth_tensor_set_f64((berth_tensor *)(uintptr_t)x, i, 1);
        assert_ok(berth_session_run(session, -1));
        cr_expect_eq(berth_tensor_get_f64(berth_session_output(session, 0), 0), 300000);
    } else {
        cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED);
        cr_expect_not_null(strstr(berth_status_message(status), "rounds"), "%s",
                           berth_status_message(status));
    }
    berth_status_free(status);
    berth_session_close(session);
    berth_arena_destroy(w.arena);
}

static void fill_spread(berth_tensor *tensor, uint32_t index) {
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 1e-30, -1e30};
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_f64(tensor, i,
                             i < 9 ? special[(i + (int64_t)index) % 9]
                                   : (double)(i % 401 - 200) * (index ? 0.013 : 0.11) + 0.003);
}

// Every power of two, and numbers between, of both signs.
static void fill_large(berth_tensor *tensor, uint32_t index) {
    (void)index;
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        double size = ldexp(1 + (double)(i * 7919 % 1000) / 1000, (int)(i % 128));
        berth_tensor_set_f64(tensor, i, i % 2 ? -size : size);
    }
}

static bool is_of_subgroup(const uint32_t *at, uint32_t half) {
    enum { first = 333, last = 364 };  // SPIR-V 1.5: OpGroupNonUniform*
    (void)half;
    return (at[0] & 0xffff) >= first && (at[0] & 0xffff) <= last;
}

static int subgroup_instructions(const berth_program *program) {
    return vulkan_count(program, is_of_subgroup);
}

// Sums of a subgroup, on rows with and without NaNs and infinities; none where the target has no such arithmetic.
Test(vulkan, sums_of_subgroups) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    static const char *const operators[] = {"reduce_max", "reduce_min", "reduce_sum", "softmax"};
    static const char *const types[] = {"f32", "f64", "i32", "i64"};
    berth_driver *driver = NULL;
    berth_device_info info;
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    assert_ok(berth_driver_device_info(driver, 0, &info));
    bool has_arithmetic = strstr(info.kernel_features, "subgroup_arithmetic") != NULL;
    berth_driver_close(driver);
    if (!has_arithmetic) cr_skip("the device has no arithmetic of subgroups");
    for (int t = 0; t < 4; ++t)
        for (int i = 0; i < 4 - (t >= 2); ++i) {
            char text[320];
            snprintf(text, sizeof(text),
                     "module \"m\"\ngraph @main(%%x: %s[5,333]) {\n"
                     "  %%axes = constant() {value = i64[1] (1)}\n  %%y = %s(%%x%s)\n"
                     "  return %%y\n}\n",
                     types[t], operators[i], i == 3 ? "" : ", %axes");
            vulkan_work without = build(text);
            cr_expect_eq(subgroup_instructions(without.program), 0, "%s", text);
            berth_arena_destroy(without.arena);
            vulkan_work w = vulkan_build(text, "vulkan -host=cpu -features=subgroup_arithmetic");
            bool has_none = t == 3;  // integers of up to 32 bits, sums too, stay in 32
            cr_expect_eq(subgroup_instructions(w.program) > 0, !has_none, "%s", text);
            double worst = vulkan_compare(w, text, t >= 2 ? fill_random : fill_spread);
            cr_expect_lt(worst, t == 1 ? 1e-12 : 2e-6, "%s: %g", text, worst);
        }
}

static bool is_of_half(const uint32_t *at, uint32_t half) {
    enum { f_negate = 127, f_add = 129, f_sub = 131, f_mul = 133 };  // SPIR-V 1.5
    uint32_t op = at[0] & 0xffff;
    return half && (op == f_negate || op == f_add || op == f_sub || op == f_mul) && at[1] == half;
}

// Every f16 that is no denormal, beside others; denormals come in where the device keeps them.
static bool keeps_denormals;
static void fill_halves(berth_tensor *tensor, uint32_t index) {
    uint16_t *bits = tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        bits[i] = (uint16_t)(index ? (i * 40503 + 977) >> (i % 3) : i);
        if (!(bits[i] & 0x7c00) && !keeps_denormals) bits[i] &= 0x8000;
    }
}

// Outputs of a program for inputs of fill_halves, as bits, NaNs as one.
static void run_halves(vulkan_work w, uint32_t inputs, uint16_t *out, int64_t count) {
    berth_session *session = NULL;
    assert_ok(berth_session_open(berth_allocator_system(), w.program, NULL, &session));
    for (uint32_t i = 0; i < inputs; ++i)
        fill_halves((berth_tensor *)(uintptr_t)berth_session_input(session, i), i);
    assert_ok(berth_session_run(session, -1));
    memcpy(out, berth_session_output(session, 0)->data, (size_t)count * sizeof(*out));
    for (int64_t i = 0; i < count; ++i)
        if ((out[i] & 0x7fff) > 0x7c00) out[i] = 0x7e00;
    berth_session_close(session);
    berth_arena_destroy(w.arena);
}

// Where the device computes with f16, every bit is what f32 gives, rounded; and what f32 must do stays there.
Test(vulkan, arithmetic_of_halves, .timeout = 120) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    enum { count = 65536 };
    static const struct {
        const char *text;
        bool in_half;
    } cases[] = {{"%y = add(%a, %b)", true},
                 {"%y = sub(%a, %b)", true},
                 {"%y = mul(%a, %b)", true},
                 {"%s = add(%a, %b)\n  %y = relu(%s)", true},
                 {"%s = mul(%a, %b)\n  %t = neg(%s)\n  %y = max(%t, %a)", true},
                 {"%s = mul(%a, %b)\n  %y = add(%s, %a)", false},  // two roundings in f16
                 {"%y = div(%a, %b)", false}};
    berth_driver *driver = NULL;
    berth_device_info info;
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    assert_ok(berth_driver_device_info(driver, 0, &info));
    keeps_denormals = strstr(info.kernel_features, "float16_denormals") != NULL;
    bool has_halves = strstr(info.kernel_features, "float16") != NULL;
    berth_driver_close(driver);
    if (!has_halves) cr_skip("the device does not compute with f16");
    uint16_t *expected = malloc(2 * count * sizeof(*expected)), *got = expected + count;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char text[320];
        snprintf(text, sizeof(text),
                 "module \"m\"\ngraph @main(%%a: f16[65536], %%b: f16[65536]) {\n  %s\n"
                 "  return %%y\n}\n",
                 cases[i].text);
        vulkan_work without = build(text),
                    with = vulkan_build(text, "vulkan -host=cpu -features=float16");
        cr_expect_eq(vulkan_count(without.program, is_of_half), 0, "%s", text);
        cr_expect_eq(vulkan_count(with.program, is_of_half) > 0, cases[i].in_half, "%s", text);
        run_halves(without, 2, expected, count);
        run_halves(with, 2, got, count);
        int64_t differ = 0, first = 0;
        for (int64_t k = count - 1; k >= 0; --k) {
            bool small = !(expected[k] & 0x7c00) && !(got[k] & 0x7c00) && !keeps_denormals;
            if (expected[k] != got[k] && !small) ++differ, first = k;
        }
        cr_expect_eq(differ, 0, "%s: %lld results differ, first %lld: %x, not %x", text,
                     (long long)differ, (long long)first, got[first], expected[first]);
    }
    free(expected);
}

Test(vulkan, functions, .timeout = 120) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    static const char *const names[] = {"exp",   "log",  "tanh",  "sigmoid", "erf",   "asin",
                                        "acos",  "atan", "sinh",  "cosh",    "asinh", "acosh",
                                        "atanh", "sqrt", "floor", "ceil",    "round", "sign"};
    static const char *const types[] = {"f32", "f64"};
    for (size_t t = 0; t < 2; ++t)
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
            char text[256];
            snprintf(
                text, sizeof(text),
                "module \"m\"\ngraph @main(%%x: %s[802]) {\n  %%y = %s(%%x)\n  return %%y\n}\n",
                types[t], names[i]);
            double worst = compare(text, fill_spread);
            cr_expect_lt(worst, t ? 1e-13 : 2e-6, "%s of %s differs by %g", names[i], types[t],
                         worst);
        }
    // f64 is good to 1e9 (docs/vulkan.md).
    static const char *const angles[] = {"sin", "cos", "tan"};
    for (size_t i = 0; i < 3; ++i) {
        char text[256];
        snprintf(text, sizeof(text),
                 "module \"m\"\ngraph @main(%%x: f32[802]) {\n  %%y = %s(%%x)\n  return %%y\n}\n",
                 angles[i]);
        double worst = compare(text, fill_spread);
        cr_expect_lt(worst, 2e-6, "%s differs by %g", angles[i], worst);
        worst = compare(text, fill_large);
        cr_expect_lt(worst, 4e-6, "%s of large angles differs by %g", angles[i], worst);
    }
    static const char *const pairs[] = {"pow", "mod"};
    for (size_t i = 0; i < 2; ++i) {
        char text[256];
        snprintf(text, sizeof(text),
                 "module \"m\"\ngraph @main(%%x: f32[802], %%z: f32[802]) {\n"
                 "  %%y = %s(%%x, %%z)%s\n  return %%y\n}\n",
                 pairs[i], i ? " {fmod = 1}" : "");
        double worst = compare(text, fill_spread);
        cr_expect_lt(worst, 2e-6, "%s differs by %g", pairs[i], worst);
    }
}

// ---- the cache of pipelines ---------------------------------------------------------------------

static void open_and_close(const char *folder) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    assert_ok(berth_driver_open("vulkan", berth_allocator_system(), &driver));
    assert_ok(
        berth_device_open(driver, 0, &(berth_device_options){.cache_folder = folder}, &device));
    berth_device_close(device);
    berth_driver_close(driver);
}

// `command` in a shell, where $F is the folder.
static int run(const char *command, const char *folder) {
    setenv("F", folder, 1);
    return system(command);
}

Test(vulkan, pipeline_cache) {
    if (!vulkan_is_here()) cr_skip("no Vulkan device");
    char folder[] = "/tmp/berth-vulkan-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    open_and_close(folder);
    cr_expect_eq(run("test \"$(ls $F/vulkan | wc -l)\" = 1", folder), 0, "one file");
    open_and_close(folder);
    // A file that was changed, cut off or emptied is not used, and replaced.
    static const char *const harm[] = {
        "printf x | dd of=$(ls $F/vulkan/* | head -1) bs=1 seek=70 conv=notrunc 2>/dev/null",
        "truncate -s 50 $(ls $F/vulkan/* | head -1)", "truncate -s 0 $(ls $F/vulkan/* | head -1)"};
    for (size_t i = 0; i < 3; ++i) {
        cr_assert_eq(run(harm[i], folder), 0);
        open_and_close(folder);
        cr_expect_eq(run("test $(stat -c %s $(ls $F/vulkan/* | head -1)) -gt 64", folder), 0,
                     "harm %zu is repaired", i);
    }
    // A folder that others can write is left alone.
    cr_assert_eq(run("rm -r $F/vulkan", folder), 0);
    cr_assert_eq(chmod(folder, 0777), 0);
    open_and_close(folder);
    cr_expect_eq(run("test ! -e $F/vulkan", folder), 0);
    cr_assert_eq(run("rm -r $F", folder), 0);
}
