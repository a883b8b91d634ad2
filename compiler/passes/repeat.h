// Products whose second operand has been repeated for groups of the first one (heads that share keys
// and values), a row or a few at a time as decoders have them: making the copies takes as long as the
// product. Rules of passes/simplify.h, private to compiler/passes.
//
//   a[.., g*r, m, k] x repeated(b[.., g, k, n]), m < BERTH_REPEAT_ROWS
//     -> reshaped(reshaped(a)[.., g, r*m, k] x b[.., g, k, n])
//
// The operand may be transposed after it was repeated, before from then on. What goes on element by
// element after the product goes on before the reshape, where it can, so that it stays a part of the
// product's kernel.
#ifndef BERTH_COMPILER_PASSES_REPEAT_H_
#define BERTH_COMPILER_PASSES_REPEAT_H_

#include "compiler/passes/rewrite.h"

// From so many rows on, copying an element is little beside its products.
#define BERTH_REPEAT_ROWS 4

// For matmul.
BERTH_MUST_USE berth_status berth_join_repeated(berth_rewriter *r, berth_op_id id);
// For elementwise operations with an operand that is a reshaped product.
BERTH_MUST_USE berth_status berth_move_before_reshape(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_REPEAT_H_
