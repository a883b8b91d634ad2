// Which results of a tensor function may be written over an operand.
//
// A pair (nest, from, to): in this nest, which alone writes `to`, every element of `from` is read
// before the element at the same place of `to` is written, or by nobody after it. So both may be
// the same bytes, when nobody reads `from` afterwards. Found from the loops, whatever the operator:
//
// - every store to `to` writes its own elements: the loops around it and the stores beside it give
//   different indices;
// - a load of `from` either has the indices of a store and is evaluated no later than that store
//   (elementwise work, residual sums after a convolution);
// - or it comes before the loops of all stores, within a loop whose iteration reads and writes one
//   part of both buffers alone (softmax over rows).
//
// Schedules keep this: what one iteration of the plain loops reads is read before what it stores is
// stored, iterations store once, and a tile's loads of the plain indices belong to its own
// elements. tests/lower runs all operators in place, scheduled.
#ifndef BERTH_COMPILER_PACKAGE_IN_PLACE_H_
#define BERTH_COMPILER_PACKAGE_IN_PLACE_H_

#include "ir/tensor/function.h"

typedef struct berth_in_place {
    uint32_t nest;   // index in the function's body
    berth_buf from;  // a parameter or workspace that the nest reads
    berth_buf to;    // an output or workspace that it writes
} berth_in_place;

// Looks at a plain (not yet scheduled) function; both buffers of a pair have equal element type,
// dimensions and layout. Marks them `may_alias`, so that code generators promise nothing else.
// Returns the number of pairs; the array lives in the module's arena. May add nodes to `fn` (not to
// its body). Inside berth_arena_try.
uint32_t berth_in_place_find(berth_tfn *fn, const berth_in_place **out_pairs);

#endif  // BERTH_COMPILER_PACKAGE_IN_PLACE_H_
