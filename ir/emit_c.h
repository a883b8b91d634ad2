// C that rebuilds a module with the builder calls of ir/, where no parser is present: what was
// written as text becomes part of a program. `berth opt --emit=c` prints it.
//
// The text is one compilation unit with one function that is visible outside,
//     berth_module *NAME(berth_arena *arena);
// to be called inside berth_arena_try of the arena; the module refers to constant data of the unit.
// The module it makes equals the one that was given (ir/equal.h) and prints as the same text.
#ifndef BERTH_IR_EMIT_C_H_
#define BERTH_IR_EMIT_C_H_

#include "ir/module.h"

// Appends the C. `function` is the name of the C function, NULL = "build_" and the module's name with
// '_' for what C does not allow. Inside berth_arena_try of out's arena. O(size of the module).
// Errors: UNSUPPORTED a function of a dialect without this form, or an opaque value that cannot be
// serialised.
BERTH_MUST_USE berth_status berth_module_to_c(const berth_module *module, const char *function,
                                              berth_strbuf *out);

#endif  // BERTH_IR_EMIT_C_H_
