// Products and convolutions of random shapes with what may follow them, computed by libraries (compiler/libraries): they are
// those of the reference interpreter, whichever part of the result each thread makes.
#ifndef BERTH_TESTS_TOOLKIT_LIBRARY_PROBLEMS_H_
#define BERTH_TESTS_TOOLKIT_LIBRARY_PROBLEMS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

typedef struct library_family {
    const char *library, *target;
    bool convolution;
    berth_dtype dtype;
    double tolerance;
    int problems;
    uint32_t calls;  // in each program
    bool
        even;  // convolutions with as much padding at the end as at the beginning, some in two groups
} library_family;

// Skips the test where the library is not here.
void library_family_try(const library_family *f);

#endif  // BERTH_TESTS_TOOLKIT_LIBRARY_PROBLEMS_H_
