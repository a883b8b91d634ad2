// Helper functions of generated C: types, casts, integer rules, and elementary functions that
// compilers can vectorise.
#ifndef BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_
#define BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_

#include "base/str.h"

void berth_c_preamble(berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_C_PREAMBLE_H_
