// Leaves out the products with zeros around a padded operand: of dilated windows and of small maps,
// many. Private to compiler/schedule.
//
//   for %kh in 3 { ... acc = fma(x[.., %oh + 12 * %kh, ..], w, acc) ... }     x is zero outside [12, 45)
//   for %kh in 3 { if (%oh + 12 * %kh >= 12 && %oh + 12 * %kh < 45) { ... } }
#ifndef BERTH_COMPILER_SCHEDULE_SKIP_ZEROS_H_
#define BERTH_COMPILER_SCHEDULE_SKIP_ZEROS_H_

#include "ir/tensor/function.h"

// Attribute of a tensor function: quadruples (buffer, dimension, low, high): elements outside [low,
// high) of the dimension are zero. Only where the other factors of all products with them are finite.
#define BERTH_ATTR_ZERO_BORDER "zero_border"

// Of a scheduled body. Conditions go around the bodies of serial loops that add products with such a
// buffer, one by one or in tiles, and do nothing else, where at least one in LEAST_SHARE of their
// iterations is left out. O(statements x depth).
void berth_schedule_skip_zeros(berth_tfn *fn, const berth_attrs *attrs);

#endif  // BERTH_COMPILER_SCHEDULE_SKIP_ZEROS_H_
