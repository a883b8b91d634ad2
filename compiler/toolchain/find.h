// Which compiler makes code for a target, and how it is called (private to compiler/). Names of
// compilers stand in a table: no text of a target becomes part of a command.
#ifndef BERTH_COMPILER_TOOLCHAIN_FIND_H_
#define BERTH_COMPILER_TOOLCHAIN_FIND_H_

#include "base/hash.h"
#include "compiler/toolchain/toolchain.h"

// Absolute folders of the options' search path, separated by ':'. Others (".", "") are left out:
// which programs they hold depends on where somebody stands.
const char *berth_toolchain__search_path(const berth_toolchain_options *options,
                                         berth_arena *arena);

// The absolute path of the compiler. Errors: UNAVAILABLE (the message says what to install).
BERTH_MUST_USE berth_status berth_toolchain__find(const berth_toolchain_options *options,
                                                  berth_arena *arena, const char **out_compiler);

// A key of the compiler's file: path, device, number, size, times of change of content and of state.
// False where another file decides what compiles, so that this one alone says nothing: a script, or
// a program that goes by another name (ccache, distcc).
bool berth_toolchain__identity(const char *compiler, berth_arena *arena, berth_hash128 *out_key);

#endif  // BERTH_COMPILER_TOOLCHAIN_FIND_H_
