// The compiler as the command line sets it: for commands with a model.
#ifndef BERTH_TOOLS_CLI_COMPILER_H_
#define BERTH_TOOLS_CLI_COMPILER_H_

#include <berth/compile.h>

#include "tools/cli_inputs.h"

// Makes a compiler with all options of the command line, which says on stderr what it has to say, and with
// --input files as values of inputs when `read_inputs`. The caller destroys it, after errors, too; `cli`
// outlives it. Inside berth_arena_try of the command's arena.
BERTH_MUST_USE berth_status berth_cli_compiler(berth_cli_model *cli, bool read_inputs,
                                               berth_compiler **out_compiler);

// The same with --input files, and what these are; lives in the command's arena.
BERTH_MUST_USE berth_status berth_cli_compiler_of(berth_cli_model *cli,
                                                  berth_compiler **out_compiler,
                                                  berth_cli_values *out_values);
// The same without a model: for what has options of targets alone.
BERTH_MUST_USE berth_status berth_cli_target_compiler(berth_cli_model *cli,
                                                      berth_compiler **out_compiler);

// Messages on stderr; notes without --quiet (a berth_level_callback, `user` = the berth_cli_model).
void berth_cli_level_message(void *user, berth_message_level level, const char *message);

#endif  // BERTH_TOOLS_CLI_COMPILER_H_
