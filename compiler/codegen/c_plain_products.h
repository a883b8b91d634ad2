// Sums of products of bytes in plain C: loops of the forms that compiler/schedule/plain_columns.h makes
// are printed as calls of functions that all layers share. Those functions are C99, and on cores with
// the DSP extension of Armv7E-M (SMLAD: two products of 16 bits and their sum) they use it, where the
// compiler that takes the sources says so (__ARM_FEATURE_DSP).
#ifndef BERTH_COMPILER_CODEGEN_C_PLAIN_PRODUCTS_H_
#define BERTH_COMPILER_CODEGEN_C_PLAIN_PRODUCTS_H_

#include "compiler/codegen/c_family.h"

// berth_c_language.print_loop. Looks only at where the loop's accesses lie, so that whatever has such
// accesses is printed so.
bool berth_c_plain_print_products(berth_c_printer *p, const berth_stmt_node *loop);

// Appends the functions that `code` calls.
void berth_c_plain_add_products(const char *code, berth_strbuf *out);

// Another text of a helper function of the preamble for such cores with an FPU (BERTH_DSP_ROUND); NULL
// = it has none.
const char *berth_c_plain_rounding(const char *name);

#endif  // BERTH_COMPILER_CODEGEN_C_PLAIN_PRODUCTS_H_
