// The greatest common divisor.
#include <criterion/criterion.h>

#include "base/divisor.h"

Test(divisor, of_all_small_pairs) {
    for (int64_t a = -30; a <= 30; ++a)
        for (int64_t b = -30; b <= 30; ++b) {
            const int64_t found = berth_greatest_divisor(a, b);
            int64_t wanted = 0;  // the largest that divides both
            for (int64_t d = 1; d <= 30 && (a || b); ++d)
                if (a % d == 0 && b % d == 0) wanted = d;
            cr_assert_eq(found, wanted, "%d and %d: %d", (int)a, (int)b, (int)found);
        }
}
