// Operators with constant weights through the whole compiler: layouts, packing, schedules, kernels.
// What they compute on processor cores, with registers of several widths and with OpenCL, is what
// the reference interpreter computes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "tests/check.h"
#include "tests/hold_device.h"
#include "tests/kernel_cache.h"
#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const cases[] = {
#include "tests/toolkit/operators.def"
};
#undef CASE

enum { case_count = sizeof(cases) / sizeof(cases[0]), most_values = 10 };

typedef struct built {
    berth_arena *arena;
    berth_module *module;
    berth_func_id main;
    const char *text;
    berth_status status;
} built;

// Parameters and results need names where there are several.
static void name_values(const built *b, const berth_value_id *values, uint32_t count,
                        const char *what) {
    berth_graph *graph = berth_graph_get(b->module, b->main);
    for (uint32_t i = 0; i < count; ++i)
        graph->values.data[values[i]].name =
            berth_module_intern(b->module, berth_arena_printf(b->arena, "%s%u", what, i));
}

static berth_status build_body(void *user) {
    built *b = user;
    b->module = berth_module_create(b->arena, "case");
    BERTH_TRY(op_case_build(b->text, b->module, &b->main));
    const berth_region *root = &berth_graph_get(b->module, b->main)->regions.data[0];
    name_values(b, root->params.data, root->params.count, "in");
    name_values(b, root->results.data, root->results.count, "out");
    return BERTH_OK;
}

// The largest difference over one more than the largest value.
static double difference(const berth_tensor *got, const berth_tensor *expected) {
    int64_t count = berth_tensor_element_count(expected);
    double worst = 0;
    double scale = 1;
    if (!berth_tensor_same_shape(got, expected)) return INFINITY;
    for (int64_t i = 0; i < count; ++i) {
        double x = berth_tensor_get_f64(expected, i);
        double y = berth_tensor_get_f64(got, i);
        if (isnan(x) && isnan(y)) continue;
        if (x == y) continue;
        scale = fmax(scale, fabs(x));
        worst = fmax(worst, isnan(y) || isnan(x) ? INFINITY : fabs(x - y));
    }
    return worst / scale;
}

// False where the target's device is not here.
static bool run(berth_arena *arena, const char *text, const char *target_text, const char *folder) {
    built b = {.arena = arena, .text = text};
    assert_ok(berth_arena_try(arena, build_body, &b));
    const berth_region *root = &berth_graph_get(b.module, b.main)->regions.data[0];
    berth_tensor inputs[most_values];
    berth_tensor expected[most_values];
    uint32_t results = root->results.count;
    uint32_t params = root->params.count;
    for (uint32_t i = 0; i < params; ++i) {
        const berth_value *value =
            &berth_graph_get(b.module, b.main)->values.data[root->params.data[i]];
        const berth_type *type = berth_type_get(b.module, value->type);
        inputs[i] = berth_tensor_create(arena, type->dtype, type->rank, type->dims);
        berth_tensor_fill_random(&inputs[i], 11 + i);
    }
    assert_ok(berth_eval_function(b.module, b.main, inputs, params, expected, results, arena));
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    berth_compile_options options = {.target = target, .cache_folder = folder, .verify = true};
    berth_compile_result compiled;
    berth_status status = berth_compile(b.module, &options, &compiled);
    cr_assert(!status, "%s for %s: %s", text, target_text, berth_status_message(status));
    berth_session *session = NULL;
    status = berth_session_open(berth_allocator_system(), compiled.program, NULL, &session);
    bool here = berth_status_code(status) != BERTH_UNAVAILABLE;
    cr_assert(!status || !here, "%s for %s: %s", text, target_text, berth_status_message(status));
    berth_status_free(status);
    if (!here) return false;
    for (uint32_t i = 0; i < params; ++i) {
        const berth_tensor *held = berth_session_input(session, i);
        memcpy(held->data, inputs[i].data, berth_tensor_size_bytes(&inputs[i]));
    }
    assert_ok(berth_session_run(session, -1));
    for (uint32_t r = 0; r < results; ++r) {
        double worst = difference(berth_session_output(session, r), &expected[r]);
        cr_expect(worst < 2e-6, "%s for %s: result %u differs by %g", text, target_text, r, worst);
    }
    berth_session_close(session);
    return true;
}

// Every `every`th case of the operators whose names contain `what`.
static void run_some(const char *target, const char *what, int every) {
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    bool here = true;
    for (int i = 0; i < case_count && here; i += every) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const char *name_end = strchr(cases[i], ' ');
        const char *found = strstr(cases[i], what);
        if (found && found < name_end) here = run(arena, cases[i], target, kernels.folder);
        berth_arena_destroy(arena);
    }
    kernel_cache_close(&kernels);
    if (!here) cr_skip_test("%s: the device is not here", target);
}

static void run_all(const char *target, int every) {
    run_some(target, "", every);
}

Test(operators, cpu, .timeout = 600) {
    run_all("cpu", 1);
}

// Each third: the next test takes every operator in registers of this width.
Test(operators, cpu_of_half_the_width, .timeout = 600) {
    run_all("cpu -vector_bits=256", 3);
}

// What processors without instructions for 8-bit dot products have.
Test(operators, cpu_with_avx2_only, .timeout = 600) {
    run_all("cpu -vector_bits=256 -features=avx,avx2,fma", 1);
}

#define AVX512 "avx,avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"

// Whether this machine has all features of a list.
static bool has_features(const char *list) {
    berth_arena *arena = NULL;
    berth_machine_facts facts;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_machine_facts_host(arena, &facts));
    char *names = berth_arena_strdup(arena, list), *saved = NULL;
    bool all = true;
    for (char *name = strtok_r(names, ",", &saved); name; name = strtok_r(NULL, ",", &saved)) {
        bool found = false;
        for (uint32_t i = 0; i < facts.features.count; ++i)
            found = found || strcmp(facts.features.data[i], name) == 0;
        all = all && found;
    }
    berth_arena_destroy(arena);
    return all;
}

// The integer operators with these features, where this machine has them.
static bool run_integer(const char *bits, const char *features) {
    char target[256];
    if (!has_features(features)) return false;
    snprintf(target, sizeof(target), "cpu -vector_bits=%s -features=%s", bits, features);
    run_some(target, "_integer", 1);
    return true;
}

// Dot products of 16 bits in wide registers, and of 8 bits without and with AVX-512.
Test(operators, cpu_of_each_dot_product, .timeout = 600) {
    bool some = run_integer("512", AVX512);
    some |= run_integer("512", AVX512 ",avx512vnni");
    some |= run_integer("256", "avx,avx2,fma,f16c,avxvnni");
    if (!some) cr_skip_test("this processor has none of these");
}

Test(operators, opencl, .timeout = 600) {
    hold_device("opencl");
    run_all("opencl -host=cpu", 4);
}

Test(operators, vulkan, .timeout = 600) {
    run_all("vulkan -host=cpu", 1);
}
