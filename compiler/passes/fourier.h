// Fourier transforms of known length get their tables (compiler/lower/fourier.h) as constant
// operands, computed in double precision. A rule of passes/simplify.h, private to compiler/passes.
#ifndef BERTH_COMPILER_PASSES_FOURIER_H_
#define BERTH_COMPILER_PASSES_FOURIER_H_

#include "compiler/passes/rewrite.h"

// Of a dft or stft without tables. Transforms whose tables would be out of proportion (a large
// prime in the length) stay as they are.
BERTH_MUST_USE berth_status berth_add_fourier_tables(berth_rewriter *r, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_FOURIER_H_
