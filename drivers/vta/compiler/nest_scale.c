#include <math.h>

#include "drivers/vta/compiler/nest.h"

// number = odd * 2^exponent. False: there are none in reach.
static bool odd_part(double number, int64_t *out_odd, int *out_exponent) {
    int e = 0;
    if (!(number > 0) || !isfinite(number)) return false;
    double odd = ldexp(frexp(number, &e), 30);
    if (odd != floor(odd)) return false;
    *out_odd = (int64_t)odd;
    *out_exponent = e - 30;
    while (*out_odd % 2 == 0) {
        *out_odd /= 2;
        ++*out_exponent;
    }
    return true;
}

bool berth_vta_nest_scale(berth_vta_nest *nest, const double numerators[2],
                          const double denominators[2], int count) {
    int64_t over[2] = {1, 1}, under[2] = {1, 1};
    int exponents[2] = {0, 0}, lowest = 0;
    for (int i = 0; i < count; ++i) {
        int up = 0, down = 0;
        if (!odd_part(numerators[i], &over[i], &up) || !odd_part(denominators[i], &under[i], &down))
            return false;
        exponents[i] = up - down;
        if (over[i] == under[i]) over[i] = under[i] = 1;
        if (over[i] != 1 || under[i] != under[0]) return false;
        if (exponents[i] < lowest) lowest = exponents[i];
    }
    for (int i = 0; i < count; ++i) {
        if (exponents[i] - lowest > 30) return false;
        nest->factors[i] = (int64_t)1 << (exponents[i] - lowest);
    }
    if (lowest < -30 || under[0] > (int64_t)1 << 30 >> -lowest) return false;
    nest->divisor = under[0] << -lowest;
    return true;
}
