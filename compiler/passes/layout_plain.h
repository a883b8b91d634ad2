// Layouts of constant weights for plain C on small cores (executor aot): what is multiplied by one
// element of the input lies together, in the order in which the schedule reads it
// (compiler/schedule/policy_plain.c), so that one pointer walks over it.
#ifndef BERTH_COMPILER_PASSES_LAYOUT_PLAIN_H_
#define BERTH_COMPILER_PASSES_LAYOUT_PLAIN_H_

#include "compiler/passes/pack.h"
#include "ir/graph/graph.h"
#include "target/target.h"

// Results side by side in a tile: a divisor of `count` that is no larger than what the registers of a
// small core hold. `rows`: beside several rows of them.
int64_t berth_plain_tile(berth_dtype dtype, int64_t count, bool rows);

// Convolutions with as many weights for all their outputs, and products with transposed ones. The
// values computed are the same. Where the target multiplies signed bytes (Helium), the zero points of what
// convolutions read are those of signed bytes, and sums of weights are constants. small: only products
// of a vector. Inside berth_arena_try of the module's arena. O(operations + bytes of constants).
void berth_pass_layout_plain(berth_module *module, berth_func_id main,
                             const berth_multi_target *target, bool small, berth_packing *packing);

#endif  // BERTH_COMPILER_PASSES_LAYOUT_PLAIN_H_
