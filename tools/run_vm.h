// `berth run` for models that the virtual machine runs.
#ifndef BERTH_TOOLS_RUN_VM_H_
#define BERTH_TOOLS_RUN_VM_H_

#include "tools/cli_compiler.h"

typedef struct berth_run_vm {
    berth_cli_model *cli;
    const berth_cli_values *values;    // of inputs
    berth_compiler *compiler;          // with the options of the command line
    const berth_cli_strings *outputs;  // NAME=FILE
    const char *require;
    const char *trace;  // a file for the last run's; NULL = none
    bool profile;
    uint64_t repeat, warmup, seed;
    uint32_t threads;
    uint64_t value_memory;  // of values, in bytes; 0 = any
} berth_run_vm;

// Runs the model and prints its results. Errors: those of <berth/dynamic.h>; INVALID_ARGUMENT an
// input is not given whose shape nobody knows.
BERTH_MUST_USE berth_status berth_run_with_vm(const berth_run_vm *options);

#endif  // BERTH_TOOLS_RUN_VM_H_
