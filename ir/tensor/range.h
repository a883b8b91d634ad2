// Ranges of index expressions: the least and the greatest value that an index can take, from the
// extents of the loops that its variables belong to.
#ifndef BERTH_IR_TENSOR_RANGE_H_
#define BERTH_IR_TENSOR_RANGE_H_

#include "ir/tensor/function.h"

// Inclusive.
typedef struct berth_range {
    int64_t low;
    int64_t high;
} berth_range;

// Ranges of the loop variables of a function, by variable; one that is no loop variable is unknown.
typedef struct berth_ranges {
    const berth_range *of_var;
    uint32_t count;
} berth_ranges;

#define BERTH_RANGE_UNKNOWN ((berth_range){-(INT64_MAX / 4), INT64_MAX / 4})

// Collects the ranges of all loops of the function, in its module's arena. O(statements).
berth_ranges berth_ranges_collect(const berth_tfn *fn);
berth_ranges berth_ranges_collect_in(const berth_tfn *fn, berth_arena *arena);
berth_range berth_range_of(const berth_tfn *fn, const berth_ranges *ranges, berth_expr id);

bool berth_range_is_known(berth_range range);  // both ends
berth_range berth_range_add(berth_range a, berth_range b);
berth_range berth_range_scale(berth_range range, int64_t k);

// Rounded down; b > 0.
static inline int64_t berth_floor_div(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}

#endif  // BERTH_IR_TENSOR_RANGE_H_
