// Helper functions for C99 without extensions: those of the library (c_helpers.h) that code uses, in the words of C99.
#ifndef BERTH_COMPILER_CODEGEN_C_PLAIN_HELPERS_H_
#define BERTH_COMPILER_CODEGEN_C_PLAIN_HELPERS_H_

#include "base/str.h"

// Adds the functions of the shared preamble that `code` calls, directly or through others, in the
// preamble's order: `static inline`, no macros, functions of <math.h> and <string.h> by their names.
// Then the code itself, with infinities and NaN by the names of <math.h>. Inside berth_arena_try of
// out's arena. O(code).
void berth_c_plain_add(const char *code, berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_C_PLAIN_HELPERS_H_
