// State that a program of the executor "vm" keeps from run to run: inputs whose value is an output of the run
// before (berth_vm_port.state), as a decoder's cache is. Not thread-safe: of one runner.
#ifndef BERTH_EXECUTOR_VM_STATES_H_
#define BERTH_EXECUTOR_VM_STATES_H_

#include "artifact/vm.h"
#include "executor/vm_value.h"

typedef struct berth_vm_states {
    const berth_vm_program *program;  // outlives them
    berth_vm_value **held;            // per input: NULL where there is none yet
    berth_vm_value **fed;             // per input, of the run under way: borrowed
    berth_allocator allocator;        // of the first ones
} berth_vm_states;

// Errors: OUT_OF_MEMORY.
// `*out_states` is all zero before, and after an error.
BERTH_MUST_USE berth_status berth_vm_states_open(const berth_vm_program *program,
                                                 berth_allocator allocator,
                                                 berth_vm_states *out_states);
void berth_vm_states_close(berth_vm_states *states);

// The inputs of a run, as `fed`: those given, and where one that is state is NULL, what is held, or at first
// zeros of its fixed dimensions and the least of its bounds.
// Errors: INVALID_ARGUMENT an input is NULL that is no state, or has no bounds; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_states_feed(berth_vm_states *states,
                                                 berth_vm_value *const *inputs);
// After a run that did not fail: what it gave for state is held, and NULL among the outputs.
// Errors: OUT_OF_MEMORY; then all that was held stays.
BERTH_MUST_USE berth_status berth_vm_states_take(berth_vm_states *states, berth_vm_value **outputs);

void berth_vm_states_reset(berth_vm_states *states);
// A dense value (a reference, the caller's) of what is held for an input; NULL: nothing yet, or no state.
// Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_states_get(const berth_vm_states *states, uint32_t input,
                                                berth_vm_value **out_value);

#endif  // BERTH_EXECUTOR_VM_STATES_H_
