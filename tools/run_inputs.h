// Inputs of runs, for `berth run` and `berth bench`.
#ifndef BERTH_TOOLS_RUN_INPUTS_H_
#define BERTH_TOOLS_RUN_INPUTS_H_

#include <berth/session.h>

#include "tools/cli_inputs.h"

// Writes a session's inputs: those given, and of the others seeded random values. Errors: those of
// berth_session_set_input.
BERTH_MUST_USE berth_status berth_run_inputs_feed(berth_session *session,
                                                  const berth_cli_values *given, uint64_t seed);

// Inputs of a program of byte code: as given, else random, with a batch of one where that is open. They live
// in `arena`; inside berth_arena_try of it. Errors: INVALID_ARGUMENT an input is not given whose shape is
// open, or there is none of a name; UNSUPPORTED it is no tensor.
BERTH_MUST_USE berth_status berth_run_inputs_make(berth_arena *arena, const berth_program *program,
                                                  const berth_cli_values *given, uint64_t seed,
                                                  berth_tensor **out_inputs);

#endif  // BERTH_TOOLS_RUN_INPUTS_H_
