// Results that may be written over operands because of how the plain policy computes them (apart from
// those of compiler/package/in_place.h, which any schedule keeps): a strip (plain_columns.h) holds all that a
// step still needs of the operand before the step stores anything there.
//
//   columns   pixels [ic][p], results [oc][p]: a step reads all channels of some pixels and writes these
//             pixels alone. As many channels or not: both begin at the same byte.
//   windows   a step reads a channel and writes one of at most as many bytes; the strip holds the
//             whole channel.
//
// Floats, too, where the strip takes little beside the operand (plain_floats.c).
#ifndef BERTH_COMPILER_SCHEDULE_PLAIN_IN_PLACE_H_
#define BERTH_COMPILER_SCHEDULE_PLAIN_IN_PLACE_H_

#include "compiler/schedule/nest.h"

// The operand and the result of a plain (not yet scheduled) nest that may begin at the same byte; the
// larger of both is what is reserved. small: the schedule is the one for small code, in which bytes have no
// strips. May add nodes to `fn`. O(nodes of the nest).
bool berth_plain_in_place(berth_tfn *fn, const berth_nest *nest, bool small, berth_buf *out_from,
                          berth_buf *out_to);

#endif  // BERTH_COMPILER_SCHEDULE_PLAIN_IN_PLACE_H_
