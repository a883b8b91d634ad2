// Inputs of sessions, for `berth run` and `berth bench`; of byte code: vm_inputs.h.
#ifndef BERTH_TOOLS_RUN_INPUTS_H_
#define BERTH_TOOLS_RUN_INPUTS_H_

#include <berth/session.h>

#include "tools/cli_inputs.h"

// Writes a session's inputs: those given, and of the others seeded random values. Errors: those of
// berth_session_set_input.
BERTH_MUST_USE berth_status berth_run_inputs_feed(berth_session *session,
                                                  const berth_cli_values *given, uint64_t seed);

#endif  // BERTH_TOOLS_RUN_INPUTS_H_
