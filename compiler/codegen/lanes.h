// Accesses of vectors, lane by lane: where the elements of each lane lie, whatever the language.
#ifndef BERTH_COMPILER_CODEGEN_LANES_H_
#define BERTH_COMPILER_CODEGEN_LANES_H_

#include "compiler/schedule/linear.h"

// Where lane `lane` of an access with these indices lies, as a linear form: loops see through it. May add nodes to `fn`.
//   out_status: UNSUPPORTED where an index is of a kind whose lanes are not known; else it stays as it is
berth_linear berth_lane_access(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                               const berth_expr *indices, int count, int lane,
                               berth_status *out_status);

// Where every lane lies, in elements from the first one, whose place is *out_first. False: their distances are not
// known.
bool berth_lane_places(berth_tfn *fn, const berth_ranges *ranges, berth_buf buf,
                       const berth_expr *indices, int count, int lanes, berth_linear *out_first,
                       int64_t *out_places, berth_status *out_status);

#endif  // BERTH_COMPILER_CODEGEN_LANES_H_
