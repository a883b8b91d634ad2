// Simplification of the index arithmetic of tensor functions by the ranges of their loop variables:
// (co * 8 + ci) / 8 becomes co, comparisons and selects that the ranges decide disappear. Lowering
// runs it once at its end; schedules run it after they have split loops.
//
//   berth_tfn_simplify_body(fn);
#ifndef BERTH_COMPILER_LOWER_TFN_SIMPLIFY_H_
#define BERTH_COMPILER_LOWER_TFN_SIMPLIFY_H_

#include "compiler/schedule/linear.h"

// The same value where every variable lies in its range. O(nodes × terms of an index).
berth_expr berth_tfn_simplify(berth_tfn *fn, berth_expr id, const berth_ranges *ranges);

// Every expression of the body, in place; an `if` that is decided becomes its branch (or an empty
// sequence). Expression ids held elsewhere stay valid but are no longer part of the body.
void berth_tfn_simplify_body(berth_tfn *fn);

// Floating and integer operations of one call (FMA = 2; index arithmetic not counted): for `flops`.
double berth_tfn_count_flops(const berth_tfn *fn);

#endif  // BERTH_COMPILER_LOWER_TFN_SIMPLIFY_H_
