// Which compiler makes code for a target, and how it is called (private to compiler/). Names of
// compilers stand in a table: no text of a target becomes part of a command.
#ifndef BERTH_COMPILER_TOOLCHAIN_FIND_H_
#define BERTH_COMPILER_TOOLCHAIN_FIND_H_

#include "compiler/toolchain.h"

// Absolute folders of the options' search path, separated by ':'. Others (".", "") are left out:
// which programs they hold depends on where somebody stands.
const char *berth_toolchain__search_path(const berth_toolchain_options *options,
                                         berth_arena *arena);

// The absolute path of the compiler. Errors: UNAVAILABLE (the message says what to install).
BERTH_MUST_USE berth_status berth_toolchain__find(const berth_toolchain_options *options,
                                                  berth_arena *arena, const char **out_compiler);

#endif  // BERTH_COMPILER_TOOLCHAIN_FIND_H_
