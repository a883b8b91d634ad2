// Layouts for operations placed on CPU devices, and convolutions of GPUs with matrix units, between placement and fusion.
//
//   convolutions  (of one to three spatial dimensions, also transposed) activations in blocks of 8
//                 channels ("aBcd8b"), of 16 where the target's registers hold 16 floats and the
//                 channels fill such blocks ("aBcd16b"); weights packed in blocks of 16 outputs,
//                 padding as an operation of its own; what follows (elementwise, pools,
//                 concatenation of channels) stays blocked, and a relayout stands where a plain
//                 tensor is needed again
//   matrices      constant right-hand sides in panels of 16 columns ("Ba16b")
//
// On devices with matrix units, convolutions of their types and what stays in their blocks: layout_units.c.
//
// A constant whose value's type has a layout holds its bytes in that layout, once the packing is
// finished to which this pass adds them. The values computed are the same; what is not understood
// stays plain.
#ifndef BERTH_COMPILER_PASSES_LAYOUT_H_
#define BERTH_COMPILER_PASSES_LAYOUT_H_

#include "compiler/passes/pack.h"
#include "ir/graph/graph.h"
#include "target/target.h"

// 3 x 3 convolutions of large maps become Winograd convolutions (winograd.h) unless `winograd` is
// false; integer ones run in f32 where their sums are exact there. Rewrites `main` in place. Inside
// berth_arena_try of the module's arena. O(operations + bytes of constants).
BERTH_MUST_USE berth_status berth_pass_layout_cpu(berth_module *module, berth_func_id main,
                                                  const berth_multi_target *target, bool winograd,
                                                  berth_packing *packing);

#endif  // BERTH_COMPILER_PASSES_LAYOUT_H_
