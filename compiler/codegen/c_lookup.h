// Elements of 8 bits looked up in tables of 256 of them, in registers where the target can.
#ifndef BERTH_COMPILER_CODEGEN_C_LOOKUP_H_
#define BERTH_COMPILER_CODEGEN_C_LOOKUP_H_

#include "compiler/codegen/c_family.h"

// berth_c_language.print_loop: a loop of y[i] = table[x[i]], or table[x[i] + 128] of signed ones, over elements next to
// each other (schedule/policy_cpu_bytes.c makes them), as one call.
bool berth_c_print_lookups(berth_c_printer *p, const berth_stmt_node *loop);

extern const char berth_c_preamble_lookup[];  // the function

#endif  // BERTH_COMPILER_CODEGEN_C_LOOKUP_H_
