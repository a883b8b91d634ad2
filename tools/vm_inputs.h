// Inputs of models that the virtual machine runs, for `berth run` and `berth bench`.
#ifndef BERTH_TOOLS_VM_INPUTS_H_
#define BERTH_TOOLS_VM_INPUTS_H_

#include <berth/dynamic.h>

#include "tools/cli_compiler.h"

// A tensor per input: as given, else seeded random values of the most of the bounds, or with a batch of one where that
// is open, with a note. They live in the command's arena; inside berth_arena_try of it. Errors: INVALID_ARGUMENT an
// input is not given whose shape is open, or there is none of a name; UNSUPPORTED it is no tensor.
BERTH_MUST_USE berth_status berth_vm_inputs_make(berth_cli_model *cli, const berth_dynamic *model,
                                                 const berth_cli_values *given, uint64_t seed,
                                                 berth_tensor **out_inputs);

#endif  // BERTH_TOOLS_VM_INPUTS_H_
