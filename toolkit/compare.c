#include "toolkit/compare.h"

#include <math.h>
#include <stdlib.h>
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

// A short string that is a number from its first byte to its last.
static bool is_number(berth_string string, double *out) {
    char text[64], *end = NULL;
    if (string.length == 0 || string.length >= sizeof(text)) return false;
    memcpy(text, string.data, string.length);
    text[string.length] = 0;
    *out = strtod(text, &end);
    return end == text + string.length;
}

// Equal, or numbers that pass as such: digits of computed ones differ where the last bits do.
static bool strings_pass(berth_string got, berth_string expected, double rtol, double atol) {
    double g = 0, e = 0;
    if (berth_string_equal(got, expected)) return true;
    return is_number(got, &g) && is_number(expected, &e) && judge(g, e, rtol, atol).pass;
}

static berth_comparison compare_strings(const berth_tensor *got, const berth_tensor *expected,
                                        const berth_compare_options *options) {
    berth_comparison result = {.rtol = options->rtol < 0 ? 1e-3 : options->rtol,
                               .atol = options->atol < 0 ? 0 : options->atol,
                               .element_count = berth_tensor_element_count(expected),
                               .worst_index = -1};
    for (int64_t i = 0; i < result.element_count; ++i) {
        if (strings_pass(berth_tensor_strings(got)[i], berth_tensor_strings(expected)[i],
                         result.rtol, result.atol))
            continue;
        if (result.mismatch_count++ == 0) result.worst_index = i;
    }
    result.pass = result.mismatch_count == 0;
    return result;
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
    if (expected->dtype == BERTH_DTYPE_STRING) {
        *out_comparison = compare_strings(got, expected, options);
        return BERTH_OK;
    }
    int64_t count = berth_tensor_element_count(expected);
    bool exact = !berth_dtype_is_float(expected->dtype) && !options->tolerate_integers;
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
        if (exact) judged.pass = equal_integers(got, expected, i);
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
