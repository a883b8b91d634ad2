#include "drivers/vta/emit/rounding.h"

enum { most_shift = 30, most_tried = 1 << 22 };

static int64_t floor_of(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

static int64_t nearest(int64_t x, int64_t divisor) {
    int64_t whole = floor_of(x, divisor), rest = 2 * (x - whole * divisor);
    return whole + (rest > divisor || (rest == divisor && whole % 2 != 0));
}

static bool fits(int64_t value) {
    return value >= INT32_MIN && value <= INT32_MAX;
}

static bool is_right(const berth_vta_rounding *r, uint32_t divisor, int64_t most) {
    for (int p = 0; p < (int)r->parts; ++p)
        if (!fits(most * r->multiplier + r->add[p]) || !fits(-most * r->multiplier + r->add[p]))
            return false;
    bool exact = (uint64_t)1 << r->shift == (uint64_t)divisor * r->parts;
    for (int64_t x = -most; !exact && x <= most; ++x) {
        int64_t sum = 0;
        for (int p = 0; p < (int)r->parts; ++p)
            sum += floor_of(x * r->multiplier + r->add[p], (int64_t)1 << r->shift);
        if (sum != nearest(x, divisor)) return false;
    }
    return true;
}

berth_status berth_vta_rounding_find(uint32_t divisor, int64_t most, berth_vta_rounding *out) {
    int64_t d = divisor, added[2] = {(d - 1) / 2, 0};
    *out = (berth_vta_rounding){.parts = 1, .multiplier = 1};
    if (d % 2 == 0) {
        added[0] = 3 * (d / 2) - 1;
        added[1] = d / 2;
        out->parts = 2;
        d *= 2;
    }
    if (most > most_tried / 2)
        return berth_status_make(BERTH_UNSUPPORTED, "sums of up to %lld are more than are tried",
                                 (long long)most);
    for (uint32_t shift = 0; shift <= most_shift; ++shift) {
        int64_t power = (int64_t)1 << shift;
        for (int64_t multiplier = power / d; multiplier <= (power + d - 1) / d; ++multiplier) {
            // Steps come too early or too late by `error` each; `up` keeps all within their own.
            int64_t error = multiplier * d - power, steps = (most + added[0]) / d + 1;
            int64_t up = (error < 0 ? -error : error) * steps;
            if (multiplier == 0 || !fits(added[0] * multiplier + up)) continue;
            out->multiplier = (uint32_t)multiplier;
            out->shift = shift;
            for (int p = 0; p < 2; ++p) out->add[p] = (int32_t)(added[p] * multiplier + up);
            if (is_right(out, divisor, most)) return BERTH_OK;
        }
    }
    return berth_status_make(BERTH_UNSUPPORTED, "a divisor of %u needs more than 32 bits", divisor);
}
