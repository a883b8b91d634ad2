// What the command line says of a model, as the library's own options: for commands that do not use
// the public interface alone (tools/lint/internal_commands.txt).
#ifndef BERTH_TOOLS_CLI_MODEL_H_
#define BERTH_TOOLS_CLI_MODEL_H_

#include "toolkit/model.h"
#include "tools/cli.h"

// Fills model options from the command line (reads --input files when `read_inputs`).
BERTH_MUST_USE berth_status berth_cli_model_options(berth_cli_model *cli, bool read_inputs,
                                                    berth_model_options *out_options);

// stderr messages of compilation.
berth_log berth_cli_log(const berth_cli_model *cli);

#endif  // BERTH_TOOLS_CLI_MODEL_H_
