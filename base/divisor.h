#ifndef BERTH_BASE_DIVISOR_H_
#define BERTH_BASE_DIVISOR_H_

#include <stdint.h>

// The greatest common divisor, by Euclid's algorithm; not negative. With 0 the other number's magnitude. Neither is
// INT64_MIN.
static inline int64_t berth_greatest_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

#endif  // BERTH_BASE_DIVISOR_H_
