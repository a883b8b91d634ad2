// Segments of the virtual machine that were divided into parts: those that change when shapes do, and
// those that do not (compiler/vm/vm.h, split.c). Belongs to a session (vm_session.h). Segments and parts
// have one numbering: the code's segments first. Thread-compatible.
#ifndef BERTH_TOOLKIT_VM_PARTS_H_
#define BERTH_TOOLKIT_VM_PARTS_H_

#include "compiler/vm/vm.h"
#include "executor/vm_value.h"

typedef struct berth_vm_parts berth_vm_parts;

// In `arena`, inside berth_arena_try of it. Module and code live as long.
berth_vm_parts *berth_vm_parts_create(berth_arena *arena, berth_module *module,
                                      const berth_vm_code *code);

const berth_vm_segment *berth_vm_parts_segment(const berth_vm_parts *parts, uint32_t index);
const char *berth_vm_parts_name(const berth_vm_parts *parts, uint32_t index);

// Looks at inputs of a segment that it has not seen: some of the first shapes decide how it is divided.
// Errors: those of berth_vm_segment_split.
BERTH_MUST_USE berth_status berth_vm_parts_look(berth_vm_parts *parts, uint32_t index,
                                                const berth_tensor *inputs);
bool berth_vm_parts_is_divided(const berth_vm_parts *parts, uint32_t index);

// Runs one part: gives a reference per output, or none where it fails.
typedef berth_status (*berth_vm_run_part)(void *user, uint32_t index, const berth_tensor *inputs,
                                          berth_vm_value **outputs);
// Runs the parts of a divided segment in order. outputs: as of berth_vm_run_part.
BERTH_MUST_USE berth_status berth_vm_parts_run(const berth_vm_parts *parts, uint32_t index,
                                               const berth_tensor *inputs,
                                               berth_vm_run_part run_part, void *user,
                                               berth_vm_value **outputs);

#endif  // BERTH_TOOLKIT_VM_PARTS_H_
