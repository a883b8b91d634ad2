#include "toolkit/compare.h"

#include <math.h>
#include <string.h>

static double largest_finite(const berth_tensor *tensor, int64_t element_count) {
    double largest = 0;
    for (int64_t i = 0; i < element_count; ++i) {
        double value = fabs(berth_tensor_get_f64(tensor, i));
        if (isfinite(value) && value > largest) largest = value;
    }
    return largest;
}

typedef struct element {
    bool pass;
    double absolute;  // infinite when one of both is not finite and they differ
    double relative;
    double excess;  // how far outside of the tolerance
} element;

static element judge(double got, double expected, double rtol, double atol) {
    if ((isnan(got) && isnan(expected)) || got == expected) return (element){.pass = true};
    if (!isfinite(got) || !isfinite(expected))
        return (element){false, INFINITY, INFINITY, INFINITY};
    double absolute = fabs(got - expected);
    double allowed = atol + rtol * fabs(expected);
    return (element){.pass = absolute <= allowed,
                     .absolute = absolute,
                     .relative = expected == 0 ? 0 : absolute / fabs(expected),
                     .excess = absolute - allowed};
}

static bool equal_strings(const berth_tensor *a, const berth_tensor *b, int64_t index) {
    return berth_string_equal(berth_tensor_strings(a)[index], berth_tensor_strings(b)[index]);
}

// Exact, where a double could not tell two 64-bit integers apart.
static bool equal_integers(const berth_tensor *a, const berth_tensor *b, int64_t index) {
    size_t element_bytes = berth_dtype_size_bytes(a->dtype);
    return memcmp((const char *)a->data + (size_t)index * element_bytes,
                  (const char *)b->data + (size_t)index * element_bytes, element_bytes) == 0;
}

berth_status berth_compare(const berth_tensor *got, const berth_tensor *expected,
                           const berth_compare_options *options, berth_comparison *out_comparison) {
    *out_comparison = (berth_comparison){.worst_index = -1};
    BERTH_TRY(berth_status_prefix(berth_tensor_check(got), "computed"));
    BERTH_TRY(berth_status_prefix(berth_tensor_check(expected), "expected"));
    if (got->dtype != expected->dtype || !berth_tensor_same_shape(got, expected)) {
        char got_text[192], expected_text[192];
        berth_tensor_format_shape(got, got_text);
        berth_tensor_format_shape(expected, expected_text);
        return berth_status_make(BERTH_INCOMPATIBLE, "computed %s, expected %s", got_text,
                                 expected_text);
    }
    int64_t count = berth_tensor_element_count(expected);
    bool strings = expected->dtype == BERTH_DTYPE_STRING;
    bool exact = strings || (!berth_dtype_is_float(expected->dtype) && !options->tolerate_integers);
    double rtol = exact ? 0 : options->rtol < 0 ? 1e-3 : options->rtol;
    double atol = exact               ? 0
                  : options->atol < 0 ? 1e-5 * largest_finite(expected, count)
                                      : options->atol;
    berth_comparison result = {
        .rtol = rtol, .atol = atol, .element_count = count, .worst_index = -1};
    double worst_excess = -INFINITY;
    for (int64_t i = 0; i < count; ++i) {
        double g = berth_tensor_get_f64(got, i);
        double e = berth_tensor_get_f64(expected, i);
        element judged = judge(g, e, rtol, atol);
        if (exact)
            judged.pass = strings ? equal_strings(got, expected, i) : equal_integers(got, expected, i);
        if (isfinite(judged.absolute)) {
            result.max_absolute_error = fmax(result.max_absolute_error, judged.absolute);
            result.max_relative_error = fmax(result.max_relative_error, judged.relative);
        }
        if (judged.pass) continue;
        result.mismatch_count++;
        if (result.worst_index >= 0 && judged.excess <= worst_excess) continue;
        worst_excess = judged.excess;
        result.worst_index = i;
        result.worst_got = g;
        result.worst_expected = e;
    }
    result.pass = result.mismatch_count == 0;
    *out_comparison = result;
    return BERTH_OK;
}
