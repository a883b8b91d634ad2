// What the virtual machine does with sequences (private to executor/). Every function gives one new
// reference, or NULL and an error.
#ifndef BERTH_EXECUTOR_VM_SEQUENCE_H_
#define BERTH_EXECUTOR_VM_SEQUENCE_H_

#include "executor/vm_value.h"

// An integer or truth value of one element. Errors: INVALID_ARGUMENT naming `what`.
berth_status berth_vm__number(const berth_vm_value *value, const char *what, int64_t *out_number);
// Errors: INVALID_ARGUMENT when it is no sequence.
berth_status berth_vm__need_sequence(const berth_vm_value *value);

// `position` NULL: at the end, the last one.
berth_status berth_vm__insert(const berth_vm_value *sequence, berth_vm_value *item,
                              const berth_vm_value *position, berth_vm_value **out);
berth_status berth_vm__erase(const berth_vm_value *sequence, const berth_vm_value *position,
                             berth_vm_value **out);
berth_status berth_vm__at(const berth_vm_value *sequence, const berth_vm_value *position,
                          berth_vm_value **out);
// The elements along an axis: a new one, or one they have. All of one type and, but for that axis, of
// one shape. Without elements: `empty`, or an error when that is NULL.
berth_status berth_vm__join(berth_allocator allocator, const berth_vm_value *sequence, int64_t axis,
                            bool new_axis, const berth_tensor *empty, berth_vm_value **out);
// Parts of a tensor along an axis: of the given sizes (a vector), of one size (a scalar; the last
// part may be smaller), or (NULL) of size 1, without the axis unless it is kept.
berth_status berth_vm__split(berth_allocator allocator, const berth_vm_value *value,
                             const berth_vm_value *sizes, int64_t axis, bool keep_axis,
                             berth_vm_value **out);

// A sequence with a map from the keys, a vector, for each row of the value. Errors: INVALID_ARGUMENT,
// OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm__zip(berth_allocator allocator, const berth_vm_value *value,
                                          const berth_tensor *keys, berth_vm_value **out);
// Keys or values of a map. Errors: INVALID_ARGUMENT it is none.
BERTH_MUST_USE berth_status berth_vm__map_part(const berth_vm_value *map, bool keys,
                                               berth_vm_value **out);

#endif  // BERTH_EXECUTOR_VM_SEQUENCE_H_
