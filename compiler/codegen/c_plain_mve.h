// Helper functions of plain C for cores with Helium (MVE, __ARM_FEATURE_MVE): text that
// c_plain_products.c puts in front of the kernels that call them, with C99 beside it for compilers
// without. Private to compiler/codegen.
#ifndef BERTH_COMPILER_CODEGEN_C_PLAIN_MVE_H_
#define BERTH_COMPILER_CODEGEN_C_PLAIN_MVE_H_

#include "base/str.h"

// berth_sum_bytes: sums of products of signed bytes, weights in pairs of rows.
void berth_c_plain_add_sum_bytes(berth_strbuf *out);

// berth_sum_windows_3x3: windows of 3 x 3 weights that go on byte by byte.
void berth_c_plain_add_sum_windows_3x3(berth_strbuf *out);

#endif  // BERTH_COMPILER_CODEGEN_C_PLAIN_MVE_H_
