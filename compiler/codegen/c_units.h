// Statements of matrix units in generated C; for the C printer alone.
#ifndef BERTH_COMPILER_CODEGEN_C_UNITS_H_
#define BERTH_COMPILER_CODEGEN_C_UNITS_H_

#include "compiler/codegen/c_family.h"

// Prints a store to a sum of the unit, or of one to memory; false: it is another store.
bool berth_c_unit_store(berth_c_printer *p, berth_stmt store);

// A buffer of such sums.
bool berth_c_is_unit_sum(const berth_buf_info *info);

// Whether a nest has such statements: its kernel then says which registers it uses, and gives them back.
bool berth_c_uses_unit(const berth_tfn *fn, berth_stmt nest);

#endif  // BERTH_COMPILER_CODEGEN_C_UNITS_H_
