// Operations of very many operands or results as trees of smaller ones: a kernel takes one argument
// for each (`max_bindings` of the target), and what computes an element would nest as deep as there
// are operands. Rules of passes/simplify.h, private to compiler/passes.
//   min, max     of groups, then of the groups' results (the order of operands stays)
//   mean         sum, divided by the number of operands (the sum is then simplified itself)
//   concat       of groups, then of the groups
//   split        into groups, each split again; sizes must be known
#ifndef BERTH_COMPILER_PASSES_WIDE_H_
#define BERTH_COMPILER_PASSES_WIDE_H_

#include "compiler/passes/rewrite.h"

// Operands of one min, max or mean, parts of one concat or split; fewer where a device of the target
// takes fewer buffers. One application shortens a list by this factor; the simplifier applies the rules again until nothing is wide.
#define BERTH_WIDE_VARIADIC 32
#define BERTH_WIDE_PARTS 64

BERTH_MUST_USE berth_status berth_narrow_variadic(berth_rewriter *r, berth_op_id id);
BERTH_MUST_USE berth_status berth_narrow_concat(berth_rewriter *r, berth_op_id id);
BERTH_MUST_USE berth_status berth_narrow_split(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_WIDE_H_
