// `berth run` for models that the virtual machine runs.
#ifndef BERTH_TOOLS_RUN_VM_H_
#define BERTH_TOOLS_RUN_VM_H_

#include "tools/cli_inputs.h"

typedef struct berth_run_vm {
    berth_cli_model *cli;
    const berth_cli_values *values;  // of inputs
    const char *key;  // file of a public key that a program must be signed with; NULL = none
    const berth_cli_strings *outputs;  // NAME=FILE
    const char *require;
    uint64_t repeat, warmup, seed;
    uint32_t threads;
} berth_run_vm;

// Runs the model and prints its results. Errors: those of toolkit/vm_session.h; INVALID_ARGUMENT an
// input is not given whose shape nobody knows.
BERTH_MUST_USE berth_status berth_run_with_vm(const berth_run_vm *options);

#endif  // BERTH_TOOLS_RUN_VM_H_
