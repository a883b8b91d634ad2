// Quotients rounded to the nearest integer, the even one of two, by what the ALU has: additions and
// shifts to the right that round down.
//
// x / d, d even: the number of steps up to odd integers, which begin behind a half, and of those up to
// even ones, which begin at it:
//   floor((x + 3 * d/2 - 1) / 2d) + floor((x + d/2) / 2d)
// d odd: there are no halves, floor((x + (d - 1)/2) / d).
// A floor by a divisor that is no power of two is (x * multiplier + add) >> shift (Granlund and
// Montgomery 1994, "Division by invariant integers using multiplication"), with an `add` that makes
// it right below 0, too.
#ifndef BERTH_DRIVERS_VTA_EMIT_ROUNDING_H_
#define BERTH_DRIVERS_VTA_EMIT_ROUNDING_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// nearest(x / divisor) = sum over parts of (x * multiplier + add[part]) >> shift
typedef struct berth_vta_rounding {
    uint32_t parts;  // 1 or 2
    uint32_t multiplier;
    uint32_t shift;  // 0 to 30
    int32_t add[2];
} berth_vta_rounding;

// Right for every x of -most to most, in 32 bits. But for powers of two, all are tried: O(most).
//   errors: UNSUPPORTED 32 bits are too few, or more than 2^22 numbers
BERTH_MUST_USE berth_status berth_vta_rounding_find(uint32_t divisor, int64_t most,
                                                    berth_vta_rounding *out);

#endif  // BERTH_DRIVERS_VTA_EMIT_ROUNDING_H_
