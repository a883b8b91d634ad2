// Products and convolutions whose weights RAM has no room for, some channels of the result after others, so that their
// weights can be read in pieces from a store outside of the address space (compiler/package/store.c).
//
//   y = x * w   ->   y = concat(x * w0, x * w1, ...)      w0, w1, ...: columns of w
//
// with the elementwise operations behind them, as in passes/slice_channels.h, up to where the result is the smallest. What each piece is read into is free when
// its product is done. Parts of one row are bytes in a row: nothing is copied.
#ifndef BERTH_COMPILER_PASSES_SLICE_WEIGHTS_H_
#define BERTH_COMPILER_PASSES_SLICE_WEIGHTS_H_

#include "ir/graph/graph.h"
#include "target/target.h"

// For programs that are sources (executor aot) on devices with a store, where flash has no room for all constants; after
// passes/slice_channels.h. Pieces are as large as RAM has room for beside x, y, what waits and `spare_bytes`. *out_slices, in the
// module's arena, says what runs in pieces of how many channels: of one module, equal texts are equal pieces, and "" is
// none. Errors: those of shape inference. Inside berth_arena_try. O(operations^2 + bytes of weights).
BERTH_MUST_USE berth_status berth_pass_slice_weights(berth_module *module, berth_func_id main,
                                                     const berth_multi_target *target,
                                                     uint64_t spare_bytes, const char **out_slices);

#endif  // BERTH_COMPILER_PASSES_SLICE_WEIGHTS_H_
