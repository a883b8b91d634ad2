// Comparison of a computed tensor with the expected one, as `berth verify` does it.
#ifndef BERTH_TOOLKIT_COMPARE_H_
#define BERTH_TOOLKIT_COMPARE_H_

#include "base/tensor.h"

// An element passes when |got - expected| <= atol + rtol * |expected|. NaN equals NaN and an
// infinity equals itself; nothing else about them passes. Integers and bools must be equal unless
// `tolerate_integers`. Strings must be equal, unless both are numbers that pass as floats do (of strings
// the errors and the worst values below are 0).
typedef struct berth_compare_options {
    double rtol;             // < 0 = the default, 1e-3
    double atol;             // < 0 = the default, 1e-5 of the largest finite |expected|
    bool tolerate_integers;  // apply rtol and atol to integers too (quantised results)
} berth_compare_options;

#define BERTH_COMPARE_DEFAULTS ((berth_compare_options){.rtol = -1, .atol = -1})

typedef struct berth_comparison {
    bool pass;
    double rtol;  // as used
    double atol;
    double max_absolute_error;  // over elements where both are finite
    double max_relative_error;  // |got - expected| / |expected|, over elements where both are
                                // finite, expected != 0
    int64_t element_count;
    int64_t mismatch_count;  // elements that do not pass
    int64_t worst_index;  // of the first mismatch that is not finite, else of the largest excess;
                          // -1 = all pass
    double worst_got;
    double worst_expected;
} berth_comparison;

// Errors: INCOMPATIBLE dtype or shape differ (the message names both).
BERTH_MUST_USE berth_status berth_compare(const berth_tensor *got, const berth_tensor *expected,
                                          const berth_compare_options *options,
                                          berth_comparison *out_comparison);

#endif  // BERTH_TOOLKIT_COMPARE_H_
