// Tensors that grow: values whose rows lie in memory with room for more, so that the next run appends rows
// where they are (artifact/program.h, berth_program_io.continues). Values still never change: rows are only
// added to memory whose last row is the value's own; else what goes on from it gets memory of its own.
#ifndef BERTH_EXECUTOR_VM_GROWN_H_
#define BERTH_EXECUTOR_VM_GROWN_H_

#include "artifact/program.h"
#include "executor/vm_place.h"

// What comes of `before` when rows are added to it, as `made` (a tensor of a program that has `room`) says:
// a value whose last rows are not set. They are the value's own after berth_vm_grown_keep. Adds to
// `*copied_bytes` what had to be copied: nothing where `before` grew so itself in `memory` and nothing was added
// to it since. Errors: INCOMPATIBLE it has other dimensions, or more rows; OUT_OF_MEMORY; those of devices.
BERTH_MUST_USE berth_status berth_vm_grown_make(berth_vm_value *before,
                                                const berth_program_tensor *made,
                                                const berth_program_room *room,
                                                berth_vm_memory memory, berth_vm_traffic *traffic,
                                                uint64_t *copied_bytes, berth_vm_value **out_value);
// After a run that set them.
void berth_vm_grown_keep(berth_vm_value *value);

// Replaces a tensor that grows by a dense one in host memory; others stay. The reference at *value stays the
// caller's. Errors: OUT_OF_MEMORY, those of devices (*value is as it was).
BERTH_MUST_USE berth_status berth_vm_grown_to_dense(berth_vm_value **value,
                                                    berth_vm_traffic *traffic);

#endif  // BERTH_EXECUTOR_VM_GROWN_H_
