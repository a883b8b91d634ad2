// Compiled code in a module: the program that was made of it, as an attribute that passes carry along
// and that both serial forms hold (kind "berth.program": the bytes of a program file, in base64). A
// module that has it runs without a compiler.
//
// It is a program for the module as it was: once anything in the module changed, it does not count.
// Opened sessions, and code that is only in memory, are no part of it.
#ifndef BERTH_COMPILER_PACKAGE_KEPT_PROGRAM_H_
#define BERTH_COMPILER_PACKAGE_KEPT_PROGRAM_H_

#include "artifact/program.h"
#include "ir/module.h"

#define BERTH_ATTR_PROGRAM "program"

// How readers of modules know the attribute (berth_dialect_registry.opaque_ops).
extern const berth_opaque_ops berth_kept_program_ops;

// Puts the program into its module; replaces one that is there. The program stays where it is, and
// must live as long as the module. Inside berth_arena_try of the module's arena. O(module).
BERTH_MUST_USE berth_status berth_module_keep_program(berth_module *module,
                                                      const berth_program *program);

// The program of a module that has not changed since; NULL when there is none. *out_stale (may be
// NULL): there is one, but for another state of the module. Inside berth_arena_try. O(module).
BERTH_MUST_USE berth_status berth_module_kept_program(berth_module *module,
                                                      const berth_program **out_program,
                                                      bool *out_stale);

#endif  // BERTH_COMPILER_PACKAGE_KEPT_PROGRAM_H_
