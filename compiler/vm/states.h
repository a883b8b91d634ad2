// States of models: inputs whose value is an output of the run before (artifact/vm.h, berth_vm_port.state).
#ifndef BERTH_COMPILER_VM_STATES_H_
#define BERTH_COMPILER_VM_STATES_H_

#include "ir/graph/graph.h"

// Attributes of @main. STATES: what is declared, a line each. STATE_OUTPUTS: per input 1 + its output, or 0.
#define BERTH_ATTR_STATES "states"
#define BERTH_ATTR_STATE_OUTPUTS "state_outputs"

// Declares states before byte code is made: texts "INPUT=OUTPUT", where a * in both stands for the same text
// ("past_key_values.*=present.*": all layers). Names are looked up by berth_vm_emit. An entry point: not
// inside berth_arena_try. Errors: NOT_FOUND no @main; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_declare_states(berth_module *module, const char *const *states,
                                                    uint32_t count);

// For emit.c, once types are inferred: finds what is declared. A result that is its input with more after it
// becomes an `append` (passes/append.h), with the most rows that the dimensions' bounds allow; others must
// have their input's shape. `names` are those of results. Inside berth_arena_try of the module's arena.
// Errors: NOT_FOUND there is no such input or output; INVALID_ARGUMENT text, shape, or no bound.
BERTH_MUST_USE berth_status vm_declare_states(berth_module *module, berth_func_id main,
                                              const char *const *names);

#endif  // BERTH_COMPILER_VM_STATES_H_
