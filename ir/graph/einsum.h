// The equation of einsum: NumPy's subscripts, with "...", repeated labels and a result that may be left out.
#ifndef BERTH_IR_GRAPH_EINSUM_H_
#define BERTH_IR_GRAPH_EINSUM_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/tensor.h"

#define BERTH_EINSUM_MAX_OPERANDS 16
// Labels: letters are themselves; BERTH_EINSUM_DOTS + k is the dimension k of "...", counted from the last one.
#define BERTH_EINSUM_DOTS 128
#define BERTH_EINSUM_MAX_LABELS (BERTH_EINSUM_DOTS + BERTH_MAX_RANK)

typedef struct berth_einsum {
    int operands;
    // A label per dimension; terms[operands] is the result, with no label twice and none that no operand has.
    uint8_t terms[BERTH_EINSUM_MAX_OPERANDS + 1][BERTH_MAX_RANK];
    int ranks[BERTH_EINSUM_MAX_OPERANDS + 1];
} berth_einsum;

// Whether the equation fits operands of these ranks (at least 0); extents are the caller's to compare. Without
// "->" the result has the dimensions of "...", then the letters that occur once, in alphabetical order.
bool berth_einsum_parse(const char *equation, int operands, const int *ranks, berth_einsum *out);
// Extents of the labels, 1 giving way to others and -1 of those that there are not; false where they differ.
// dims: of each operand, all known.
bool berth_einsum_extents(const berth_einsum *e, const int64_t *const *dims,
                          int64_t extents[BERTH_EINSUM_MAX_LABELS]);

#endif  // BERTH_IR_GRAPH_EINSUM_H_
