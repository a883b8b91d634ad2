// Sums of 8-bit products on small cores, in the forms that their helper functions have
// (compiler/codegen/c_plain_products.h): what is multiplied lies in the order in which it is read.
//
//   columns   weights [o / 2][k][o % 2] (passes/layout_plain.h). What they are multiplied by is
//             unpacked to i16, for a few results at once, into a strip that all rows of weights
//             read; neighbours of a window share what they have in common:
//
//               for oh, ow_o: strip[t][...] = x(ow_o * C * s + t, ...) - zero     t < (C - 1) s + kw
//                 for o_o: acc[C][2] = 0
//                   for kw, kh, ic, c, r: acc[c][r] += strip[c s + kw][...] * w[o_o, kw, kh, ic, r]
//                   for r, c: y = ...
//
//   rows      weights [o][k], and one run of bytes that they are multiplied by: a product of a
//             vector, which needs no copy.
//
// Private to compiler/schedule.
#ifndef BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_
#define BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_

#include "compiler/schedule/nest.h"

// The nest in one of these forms, or 0 when it has none. O(nodes of the body).
berth_stmt berth_plain__columns(berth_tfn *fn, const berth_nest *nest);

#endif  // BERTH_COMPILER_SCHEDULE_PLAIN_COLUMNS_H_
