// The compiler as the command line sets it: for commands with a model.
#ifndef BERTH_TOOLS_CLI_COMPILER_H_
#define BERTH_TOOLS_CLI_COMPILER_H_

#include <berth/compile.h>

#include "tools/cli.h"

// Makes a compiler with all options of the command line, which says on stderr what it has to say, and with
// --input files as values of inputs when `read_inputs`. The caller destroys it, after errors, too; `cli`
// outlives it. Inside berth_arena_try of the command's arena.
BERTH_MUST_USE berth_status berth_cli_compiler(berth_cli_model *cli, bool read_inputs,
                                               berth_compiler **out_compiler);

#endif  // BERTH_TOOLS_CLI_COMPILER_H_
