#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "toolkit/compare.h"

static berth_tensor f32(float *values, int64_t count) {
    return (berth_tensor){.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {count}, .data = values};
}

static berth_comparison compare(const berth_tensor *got, const berth_tensor *expected,
                                berth_compare_options options) {
    berth_comparison comparison;
    berth_status status = berth_compare(got, expected, &options, &comparison);
    cr_assert_null(status, "%s", berth_status_message(status));
    return comparison;
}

Test(compare, defaults_scale_with_the_largest_expected_value) {
    float expected[] = {1000, 1, 0}, got[] = {1000.5f, 1.002f, 0.009f};
    berth_tensor e = f32(expected, 3), g = f32(got, 3);
    berth_comparison c = compare(&g, &e, BERTH_COMPARE_DEFAULTS);
    cr_assert(c.pass);
    cr_assert_float_eq(c.rtol, 1e-3, 1e-15);
    cr_assert_float_eq(c.atol, 1e-2, 1e-12);
    cr_assert_float_eq(c.max_absolute_error, 0.5, 1e-9);
    cr_assert_float_eq(c.max_relative_error, 2e-3, 1e-6);
    cr_assert_eq(c.worst_index, -1);
    got[2] = 0.02f;  // beyond atol, and rtol * 0 gives nothing
    got[0] = 1000.9f;
    c = compare(&g, &e, BERTH_COMPARE_DEFAULTS);
    cr_assert_not(c.pass);
    cr_assert_eq(c.mismatch_count, 1);
    cr_assert_eq(c.worst_index, 2);
    cr_assert_eq(c.worst_expected, 0);
}

Test(compare, the_bound_is_inclusive_and_options_are_used) {
    float expected[] = {8}, got[] = {10};
    berth_tensor e = f32(expected, 1), g = f32(got, 1);
    cr_assert(compare(&g, &e, (berth_compare_options){.rtol = 0.25, .atol = 0}).pass);
    cr_assert(compare(&g, &e, (berth_compare_options){.rtol = 0, .atol = 2}).pass);
    cr_assert_not(compare(&g, &e, (berth_compare_options){.rtol = 0.2, .atol = 0.3}).pass);
    cr_assert(compare(&g, &e, (berth_compare_options){.rtol = 0.2, .atol = 0.5}).pass);
}

Test(compare, nan_and_infinity) {
    float expected[] = {NAN, INFINITY, -INFINITY, 1}, got[] = {NAN, INFINITY, -INFINITY, 1};
    berth_tensor e = f32(expected, 4), g = f32(got, 4);
    cr_assert(compare(&g, &e, BERTH_COMPARE_DEFAULTS).pass);
    static const float wrong[] = {NAN, INFINITY, -INFINITY, 1};
    for (int i = 0; i < 4; ++i) {
        for (int w = 0; w < 4; ++w) {
            if (w == i) continue;
            memcpy(got, expected, sizeof(got));
            got[i] = wrong[w];
            berth_comparison c = compare(&g, &e, BERTH_COMPARE_DEFAULTS);
            cr_assert(!c.pass && c.mismatch_count == 1 && c.worst_index == i, "%d as %d passed", i,
                      w);
            cr_assert(isfinite(c.max_absolute_error));
        }
    }
}

Test(compare, integers_are_exact_unless_asked) {
    int64_t expected[] = {INT64_MAX, 100}, got[] = {INT64_MAX - 1, 100};  // equal as doubles
    berth_tensor e = {.dtype = BERTH_DTYPE_I64, .rank = 1, .dims = {2}, .data = expected}, g = e;
    g.data = got;
    berth_comparison c = compare(&g, &e, BERTH_COMPARE_DEFAULTS);
    cr_assert(!c.pass && c.mismatch_count == 1 && c.worst_index == 0);
    got[0] = INT64_MAX;
    cr_assert(compare(&g, &e, BERTH_COMPARE_DEFAULTS).pass);
    got[1] = 101;
    cr_assert_not(compare(&g, &e, BERTH_COMPARE_DEFAULTS).pass);
    cr_assert(
        compare(&g, &e, (berth_compare_options){.rtol = 0, .atol = 1, .tolerate_integers = true})
            .pass);
}

Test(compare, shapes_and_types_must_agree) {
    float values[6] = {0};
    berth_tensor a = {.dtype = BERTH_DTYPE_F32, .rank = 2, .dims = {2, 3}, .data = values}, b = a;
    b.dims[0] = 3;
    b.dims[1] = 2;
    berth_comparison comparison;
    berth_status status = berth_compare(&a, &b, &BERTH_COMPARE_DEFAULTS, &comparison);
    cr_assert_eq(berth_status_code(status), BERTH_INCOMPATIBLE);
    cr_assert_not_null(
        strstr(berth_status_message(status), "computed f32[2,3], expected f32[3,2]"));
    berth_status_free(status);
    b = a;
    b.dtype = BERTH_DTYPE_I32;
    status = berth_compare(&a, &b, &BERTH_COMPARE_DEFAULTS, &comparison);
    cr_assert_eq(berth_status_code(status), BERTH_INCOMPATIBLE);
    berth_status_free(status);
}

Test(compare, empty_tensors_pass) {
    berth_tensor a = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {0}};
    berth_comparison c = compare(&a, &a, BERTH_COMPARE_DEFAULTS);
    cr_assert(c.pass && c.element_count == 0 && c.atol == 0);
}
